/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Unit tests in TAP: a file defines static functions and a main that runs them. A failed check ends its test, not the file.
 * The name of a test that shows a case or a promise begins with its id: RUN(test_table, "C136 S076: special-use ranges"). */

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static jmp_buf test_jump;
static unsigned test_count, test_failures;

__attribute__((format(printf, 3, 4), noreturn, unused))
static void test_fail(const char *file, int line, const char *format, ...) {
        va_list ap;

        printf("# %s:%d: ", file, line);
        va_start(ap, format);
        vprintf(format, ap);
        va_end(ap);
        printf("\n");
        longjmp(test_jump, 1);
}

#define CHECK(condition)                                               \
        do {                                                           \
                if (!(condition))                                      \
                        test_fail(__FILE__, __LINE__, "%s", #condition); \
        } while (0)

#define CHECK_INT(actual, expected)                                                                               \
        do {                                                                                                      \
                long long _a = (long long) (actual), _e = (long long) (expected);                                 \
                if (_a != _e)                                                                                     \
                        test_fail(__FILE__, __LINE__, "%s is %lld, not %lld", #actual, _a, _e);                   \
        } while (0)

#define CHECK_STR(actual, expected)                                                                               \
        do {                                                                                                      \
                const char *_a = (actual), *_e = (expected);                                                      \
                if (!_a || strcmp(_a, _e) != 0)                                                                   \
                        test_fail(__FILE__, __LINE__, "%s is \"%s\", not \"%s\"", #actual, _a ? _a : "(null)", _e); \
        } while (0)

#define RUN(function, name)                                                     \
        do {                                                                    \
                test_count++;                                                   \
                if (setjmp(test_jump) == 0) {                                 \
                        function();                                             \
                        printf("ok %u - %s\n", test_count, name);               \
                } else {                                                        \
                        test_failures++;                                        \
                        printf("not ok %u - %s\n", test_count, name);           \
                }                                                               \
                fflush(stdout);                                                 \
        } while (0)

#define TEST_END() (printf("1..%u\n", test_count), test_failures > 0)
