/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a sandbox is made of, piece by piece: what each is called, what its lack costs, how to close the gap, and a way to try it
 * for real. Trying leaves nothing behind: it happens in a process of its own, which is killed when it takes too long. */

#include "bailey/failure.h"
#include "bailey/gap.h"

typedef enum MechanismNeed {
        NEED_RUN,     /* nothing runs without it, but where a run falls back from having no namespaces at all */
        NEED_DEFAULT, /* every run is weaker without it, and says so */
        NEED_OPTION,  /* only what asks for it is refused */
} MechanismNeed;

/* What came of trying one. */
typedef struct Outcome {
        bool works;
        bool tried;      /* false: what it is built on does not work */
        char text[512];  /* a detail when it works, else what happened */
        Failure failure; /* of the step of a run that failed, if it was one; else stage is _STAGE_INVALID */
} Outcome;

typedef struct Mechanism {
        const char *name;
        MechanismNeed need;
        Gap gap;          /* of a run without it; _GAP_INVALID: none */
        const char *cost; /* NULL: the gap says it */
        void (*attempt)(const struct Mechanism *m, Outcome *ret); /* in the process of its own */
        int argument;     /* of attempt */
        unsigned kernel;  /* the first Linux that has it, KERNEL(x, y); 0: any that runs bailey may */
        const char *built_on; /* the name of one before it, without which this one is not tried; NULL: none */
        /* What to do, as a sentence without a full stop; NULL: what the failed step says. */
        const char *remedy;
} Mechanism;

#define KERNEL(major, minor) ((major) << 8 | (minor))

/* The table, in the order in which it is told. What others are built on comes before them. */
extern const Mechanism mechanisms[];
extern const size_t n_mechanisms;
/* The two that a run without namespaces rests on, and what it makes them by. */
#define MECHANISM_NAMESPACES "namespaces"
#define MECHANISM_LANDLOCK "landlock"
#define MECHANISM_SECCOMP "seccomp"

void mechanism_try(const Mechanism *m, Outcome *ret);

/* True when a run would refuse instead of going on without: it is needed, or it is there and a step of a run fails. */
bool mechanism_stops_runs(const Mechanism *m, const Outcome *outcome);

/* Of one that was tried and does not work. */
const char *mechanism_cost(const Mechanism *m, const Outcome *outcome);
/* What to do about it on this host; never empty. Written to `ret`. */
void mechanism_remedy(const Mechanism *m, const Outcome *outcome, char ret[512]);
