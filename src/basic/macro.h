/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What every file uses: cleanup attributes, ownership moves, array lengths. */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#define _cleanup_(f) __attribute__((cleanup(f)))
#define _printf_(a, b) __attribute__((format(printf, a, b)))
#define _noreturn_ __attribute__((noreturn))
#define _unused_ __attribute__((unused))

#define ELEMENTSOF(a) (sizeof(a) / sizeof((a)[0]))
#define STRLEN(s) (sizeof("" s "") - 1)
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

/* Moves a pointer or an fd out of a variable whose cleanup would release it. */
#define TAKE_PTR(p)                    \
        ({                             \
                typeof(p) _taken = (p); \
                (p) = NULL;            \
                _taken;                \
        })
#define TAKE_FD(fd)               \
        ({                        \
                int _taken = (fd); \
                (fd) = -EBADF;    \
                _taken;           \
        })

/* Defines the function that _cleanup_() wants from one that takes the pointer itself. */
#define DEFINE_CLEANUP(type, func)               \
        static inline void func##p(type *p) {    \
                if (*p)                          \
                        *p = func(*p);           \
        }                                        \
        struct _cleanup_needs_a_semicolon_

static inline void freep(void *p) {
        free(*(void **) p);
        *(void **) p = NULL;
}
#define _cleanup_free_ _cleanup_(freep)

static inline void *mfree(void *p) {
        free(p);
        return NULL;
}

/* An errno-style value that is certainly negative, for callers that trust "r < 0". */
static inline int negative_errno(void) {
        return errno > 0 ? -errno : -EIO;
}
