/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A plan is all that entering a sandbox needs, as data: the steps that build the new root in the order in which they are
 * done, the Landlock rules, the environment and what to run. It is computed from a Policy (plan.c) without side effects,
 * can be printed, and is carried out by enter.c, which decides nothing. Strings are owned by the plan. */

#include <limits.h>

#include "bailey/network.h"
#include "basic/macro.h"

typedef enum StepType {
        STEP_DIRECTORY, /* target and missing parents, mode 0755, in the new root's own tmpfs or in a cover */
        STEP_SYMLINK,   /* target → source */
        STEP_BIND,      /* source, a host path, with all below it, at target; must still be `device`/`inode` */
        STEP_DEVICE,    /* the same for one device node: the only mounts without nodev */
        STEP_TMPFS,     /* a fresh tmpfs at target: size_bytes (0 = kernel default), mode */
        STEP_PROC,      /* a fresh proc at target, dangerous parts covered or read-only */
        STEP_SYSFS,     /* a fresh read-only sysfs at target, or nothing and GAP_SYSFS */
        STEP_DEVPTS,    /* a private devpts instance at target */
        STEP_FILE,      /* a read-only file with `content` over target, which exists (passwd, group) or is made */
        STEP_COVER,     /* target, whatever it is, covered by an empty unreadable directory or file. Ignored when absent, unless
                         * `inode` says what must be there: then it must still be `device`/`inode` */
        STEP_READ_ONLY, /* target and all below it made read-only; the same when absent */
        _STEP_TYPE_MAX,
        _STEP_TYPE_INVALID = -EINVAL,
} StepType;

/* Mount attributes beside nosuid, which every mount has. */
typedef enum StepFlags {
        STEP_WRITABLE = 1 << 0,   /* else read-only, recursively */
        STEP_EXECUTABLE = 1 << 1, /* else noexec, recursively */
} StepFlags;

typedef struct PlanStep {
        StepType type;
        StepFlags flags;
        char *source;  /* host path (BIND, DEVICE), link text (SYMLINK); else NULL */
        char *target;  /* path inside, collapsed */
        char *content; /* STEP_FILE */
        uint64_t size_bytes;
        mode_t mode;
        dev_t device; /* of source when the policy was resolved: a path that changed since is refused */
        ino_t inode;
} PlanStep;

/* Rights of one Landlock rule, independent of the ABI. */
typedef enum AccessRights {
        ACCESS_READ = 1 << 0,    /* read files, list directories */
        ACCESS_WRITE = 1 << 1,   /* write, truncate, create and remove all but device nodes, rename */
        ACCESS_EXECUTE = 1 << 2,
        ACCESS_LIST = 1 << 3,    /* list directories only: the new root's own skeleton */
        ACCESS_IOCTL = 1 << 4,   /* device ioctls: terminals */
} AccessRights;

typedef struct PlanAccess {
        char *path;      /* inside; without isolation host_path is used */
        char *host_path; /* NULL when there is no such thing without isolation */
        AccessRights rights;
} PlanAccess;

/* Of all processes in the sandbox together, by cgroup; 0: not limited. */
typedef struct PlanLimits {
        uint64_t memory_bytes; /* swap is none then */
        uint64_t pids;         /* processes and threads, the sandbox's first one included */
        uint64_t cpu_percent;  /* of one CPU */
} PlanLimits;

static inline bool plan_limits_any(const PlanLimits *l) {
        return l->memory_bytes > 0 || l->pids > 0 || l->cpu_percent > 0;
}

/* Of each process, as setrlimit(2) has them; never more than the caller's own. */
typedef struct PlanProcessLimit {
        int resource; /* RLIMIT_… */
        uint64_t value;
} PlanProcessLimit;

#define PLAN_PROCESS_LIMITS_MAX 3U

typedef struct Plan {
        PlanStep *steps;
        size_t n_steps;
        PlanAccess *accesses;
        size_t n_accesses;
        const Network *network; /* borrowed */
        PlanLimits limits;
        PlanProcessLimit process_limits[PLAN_PROCESS_LIMITS_MAX];
        size_t n_process_limits;
        char *executable; /* path inside of the file to execute */
        char **argv;      /* argv[0] as the caller wrote it */
        char **environment;
        char *working_directory; /* inside; a step makes it when nothing grants it */
        bool nested_deny;        /* the policy denies something inside a granted directory */
        bool nested_read_only;
} Plan;

Plan *plan_free(Plan *p);
DEFINE_CLEANUP(Plan *, plan_free);

/* As a policy has them. */
void plan_set_limits(Plan *p, const Limits *limits);

/* One line a step and a rule, for `bailey show --plan` and for tests: stable and deterministic. */
int plan_print(const Plan *p, FILE *f);
