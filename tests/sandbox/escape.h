/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The attempts of a hostile program, in tables. A row is tried in a child of its own, once inside a sandbox, where it has to fail as
 * it says, and once without, where it has to succeed: an attempt that succeeds nowhere shows nothing. */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What stops an attempt: each of them alone is enough. test-escape.py knows under which name a run's summary tells of each one's
 * absence; an attempt succeeds when all that it names are absent, and only then. */
typedef enum Stop {
        STOP_NAMESPACES = 1 << 0, /* own root, mounts, processes, network, IPC, host name */
        STOP_LANDLOCK = 1 << 1,   /* rights on files of ABI 1, no access to processes outside */
        STOP_TRUNCATE = 1 << 2,   /* ABI 3 */
        STOP_SCOPE = 1 << 3,      /* ABI 6 */
        STOP_IOCTL = 1 << 4,      /* ABI 5 */
        STOP_SECCOMP = 1 << 5,
        STOP_COVER = 1 << 6,      /* mounts over what is denied inside of a grant */
        STOP_ISLAND = 1 << 7,     /* read-only mounts inside of a grant */
        STOP_TMP = 1 << 8,        /* /tmp and /dev/shm of its own */
        STOP_PRIVILEGE = 1 << 9,  /* no capability, no_new_privs, not dumpable; never absent */
        STOP_NETWORK = 1 << 11,   /* the network namespace and the user namespace around it, which a run has without the others, too, and no more */
        STOP_START = 1 << 10,     /* descriptors closed, environment built; never absent */
} Stop;

/* How an attempt is made without a sandbox. */
typedef enum Off {
        OFF_PLAIN,   /* by the same account */
        OFF_PRIVATE, /* as root of a user namespace of its own, with all other namespaces: what needs a privilege */
        OFF_ROOT,    /* by root, so that it is not shown where the tests run as an ordinary account */
        OFF_NEVER,   /* what the kernel has not yet, or what would harm the machine: its row is no proof of the sandbox alone */
} Off;

typedef struct Attempt {
        const char *name;
        const char *what; /* what it would bring */
        long (*try)(const char *argument); /* negative with errno, as a system call */
        const char *argument;
        int error;        /* inside, with nothing missing */
        unsigned stops;
        Off off;
        int off_error;    /* where the harmless form of a call fails, too, but later: with this. 0: it succeeds */
        unsigned since;   /* the kernel that brought it, 0x0608 for 6.8; 0: the oldest supported */
        bool optional;    /* the kernel may be built or set up without it: off, it may fail as inside, or as what is not there */
        const char *ids;
} Attempt;

typedef struct AttemptTable {
        const Attempt *rows;
        size_t n;
} AttemptTable;

extern const AttemptTable escape_mounts, escape_namespaces, escape_processes, escape_kernel, escape_compat, escape_sockets, escape_files,
        escape_places, escape_descriptors, escape_terminal;

/* A value that the test gave: NAME=VALUE. Ends the attempt when there is none: there is nothing to try it on. */
const char *fixture(const char *name);
unsigned long fixture_number(const char *name);

/* A path below the test's directory, in one of a few static buffers. */
const char *place(const char *path);

/* Numbers in arguments. */
unsigned long number(const char *argument);

/* Ends the attempt: what comes before it did not work. Told apart from a refusal. */
__attribute__((noreturn)) void broken(const char *what);

/* Waits for a child made for this attempt: 0, or errno from its exit status. */
long child_result(long pid);
