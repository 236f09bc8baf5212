/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a leak sanitizer is told by programs that look names up in threads of their own; in sanitized builds alone.
 *
 * glibc frees a thread's resolver state after the sanitizer has taken the thread for ended. A process that ends in between would be said to
 * leak the name servers' addresses. */

__attribute__((visibility("default"))) const char *__lsan_default_suppressions(void);
__attribute__((visibility("default"))) const char *__lsan_default_options(void);

const char *__lsan_default_suppressions(void) {
        return "leak:__res_context_send\n";
}

const char *__lsan_default_options(void) {
        return "print_suppressions=0"; /* it would do so in the middle of a log */
}
