/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a program did that its policy does not grant, as an audit finds and a trace file keeps it: one entry a path or address. */

#include "basic/clock.h"
#include "basic/macro.h"

typedef enum AccessKind {
        ACCESS_PATH,     /* name is absolute and collapsed, in the program's view; a socket there has CONNECT or BIND */
        ACCESS_ADDRESS,  /* "192.0.2.1:443", "[2001:db8::1]:443" */
        ACCESS_ABSTRACT, /* an abstract Unix socket's name, without its NUL */
        _ACCESS_KIND_MAX,
        _ACCESS_KIND_INVALID = -EINVAL,
} AccessKind;

typedef enum AccessOperation {
        ACCESSED_LOOK = 1 << 0, /* whether it is there, and what it is */
        ACCESSED_READ = 1 << 1,
        ACCESSED_WRITE = 1 << 2,
        ACCESSED_EXECUTE = 1 << 3,
        ACCESSED_CONNECT = 1 << 4,
        ACCESSED_BIND = 1 << 5,
        ACCESSED_SEND = 1 << 6,
        ACCESSED_ENTRY = 1 << 7, /* a directory's entry of that name: made, removed, renamed */
} AccessOperation;
#define ACCESS_OPERATIONS 8U

/* "look" … "entry"; by the number of the bit. NULL and 0 for what is none. */
const char *access_operation_to_string(unsigned bit);
unsigned access_operation_from_string(const char *s); /* the bit itself */
/* For people, "read, write": without a look that is part of more, and an entry is written. Cut when longer. */
void access_operations_print(unsigned operations, char *ret, size_t size);
const char *access_kind_to_string(AccessKind k);
AccessKind access_kind_from_string(const char *s);

typedef struct Access {
        AccessKind kind;
        char *name;
        unsigned operations;
        unsigned granted; /* what the policy allows there, of a path */
        bool lossy;       /* the name is not UTF-8: a trace file holds it with U+FFFD instead, and no policy can name it */
        bool missing;   /* was not there on the host when it was first asked for */
        bool directory;
        bool link;      /* a symbolic link that was followed: missing, directory and granted are of where it leads */
        uint64_t count;
        usec_t first, last; /* CLOCK_REALTIME */
        pid_t pid;          /* of the first, as seen by bailey */
        char command[16];   /* its name then */
} Access;

#define ACCESSES_MAX 65536U /* of one trace: what a program that names paths at random can make bailey keep */

#define ACCESS_NAMES_MAX (6U * 1024 * 1024) /* all names together: escaped, and with ACCESSES_MAX entries, within TRACE_SIZE_MAX */

typedef struct AccessList {
        Access *items;
        size_t n;
        uint32_t *places; /* by hash: index + 1 into items, 0 where there is none */
        size_t n_places;
        size_t names_size;
} AccessList;

void access_list_done(AccessList *list);

/* The entry of that name, made when there is none. NULL when out of memory or full. Good until the next call. */
Access *access_list_get(AccessList *list, AccessKind kind, const char *name);

void access_list_sort(AccessList *list); /* by kind and name; nothing is added afterwards */

/* Everything that a run was seen to do, and how well. */
typedef struct Trace {
        char *target, *working_directory, *home; /* the caller's home directory, which "~" in a policy means */
        bool unconfined;
        usec_t started, ended;
        unsigned status, signal; /* the command's exit code, or the signal that ended it, else 0 */
        uint64_t calls;          /* that were seen */
        uint64_t unreadable;     /* whose arguments could not be read: lost */
        uint64_t dropped;        /* beyond ACCESSES_MAX: lost */
        AccessList accesses;
} Trace;

void trace_done(Trace *t);
static inline bool trace_truncated(const Trace *t) {
        return t->unreadable + t->dropped > 0;
}
