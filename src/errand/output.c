/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errand/exit.h"
#include "errand/output.h"

static pid_t pager = 0;
static bool pager_plain = false; /* it takes a colour's bytes for characters of the line */
static bool full = false;
static int failed = 0; /* the errno of the first write that did, since a stream forgets it with what it could not write */

int output_error(void) {
        if (fflush(stdout) < 0 && failed == 0)
                failed = errno;
        if (failed == 0 && ferror(stdout))
                failed = EIO; /* of a write in between */
        return failed;
}

/* For sh, to free; NULL: none. Where a bare system has no less, nothing is said of that; a pager of one's own that is not there is named by sh, and
 * what it was to show comes all the same. */
static char *pager_command(void) {
        const char *s = getenv("ERRAND_PAGER") ?: getenv("PAGER");
        char *command;

        if (!s)
                return strdup("for p in less more; do command -v $p >/dev/null && exec $p; done; exec cat");
        if (!*s || streq(s, "cat") || asprintf(&command, "%s\ncase $? in 126|127) exec cat; esac", s) < 0)
                return NULL;
        return command;
}

static bool in_path(const char *name) {
        const char *path = getenv("PATH");
        char program[PATH_MAX];

        for (size_t n; path && *path; path += n + (path[n] != 0)) {
                n = strcspn(path, ":");
                if (snprintf(program, sizeof(program), "%.*s/%s", (int) MIN(n, (size_t) PATH_MAX), path, name) < PATH_MAX && access(program, X_OK) >= 0)
                        return true;
        }
        return false;
}

/* more(1) breaks lines in the middle of a colour's bytes. */
static bool pager_is_more(void) {
        const char *s = getenv("ERRAND_PAGER") ?: getenv("PAGER");
        char word[256];

        if (!s)
                return !in_path("less");
        (void) snprintf(word, sizeof(word), "%.*s", (int) MIN(strcspn(s, " \t"), sizeof(word) - 1), s);
        const char *slash = strrchr(word, '/');
        return streq(slash ? slash + 1 : word, "more");
}

void output_begin(const Request *q) {
        _cleanup_free_ char *command = pager_command();
        int ends[2];

        if (q->no_pager || q->json || pager != 0 || !command || !isatty(STDOUT_FILENO) || !isatty(STDIN_FILENO))
                return;
        if (pipe2(ends, O_CLOEXEC) < 0)
                return;
        (void) output_error();
        pager = fork();
        if (pager == 0) {
                (void) dup2(ends[0], STDIN_FILENO);
                (void) signal(SIGPIPE, SIG_DFL);
                /* F: no pager for what fits, R: colours, S: long lines are cut, X: what was read stays on the screen. */
                (void) setenv("LESS", "FRSXMK", 0);
                (void) execl("/bin/sh", "sh", "-c", command, (char *) NULL);
                _exit(127);
        }
        if (pager > 0) {
                pager_plain = pager_is_more();
                (void) dup2(ends[1], STDOUT_FILENO);
                (void) signal(SIGINT, SIG_IGN); /* it is the pager's */
        } else
                pager = 0;
        safe_close(ends[0]);
        safe_close(ends[1]);
}

void output_end(void) {
        int null;

        (void) output_error();
        if (pager <= 0)
                return;
        null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (null >= 0)
                (void) dup2(null, STDOUT_FILENO); /* the pager sees the end */
        safe_close(null);
        while (waitpid(pager, NULL, 0) < 0 && errno == EINTR)
                ;
        pager = 0;
        pager_plain = false;
}

int output_flush(void) {
        static bool told = false;

        if (output_error() == 0 || failed == EPIPE)
                return EXIT_OK;
        if (!told)
                log_error_errno(failed, "Failed to write to standard output: %m");
        told = true;
        return EXIT_FAILED;
}

static bool on_terminal(void) {
        return pager > 0 || isatty(STDOUT_FILENO);
}

void output_full(void) {
        full = true;
}

unsigned output_width(void) {
        struct winsize size;

        if (full)
                return 0;
        if (!on_terminal() || ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0)
                if (!isatty(STDOUT_FILENO) || ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
                        return 0;
        return size.ws_col;
}

bool output_colours(void) {
        const char *term = getenv("TERM"), *no = getenv("NO_COLOR");

        return on_terminal() && !pager_plain && term && !streq(term, "dumb") && !(no && *no);
}

int output_table(const Request *q, const Table *t, const char *none) {
        int r;

        if (table_rows(t) == 0 && none) {
                /* For people only: a program gets an empty output. */
                if (isatty(STDOUT_FILENO))
                        printf("%s\n", none);
                return EXIT_OK;
        }
        output_begin(q);
        r = table_print(t, stdout, output_width(), output_colours());
        output_end();
        if (r < 0 && failed == 0) {
                log_error_errno(r, "Failed to print the table: %m");
                return EXIT_FAILED;
        }
        return output_flush();
}

const char *time_text(usec_t realtime, char buffer[static TIME_TEXT_MAX]) {
        time_t seconds = (time_t) (realtime / USEC_PER_SEC);
        struct tm tm;

        if (realtime == 0 || !localtime_r(&seconds, &tm) || strftime(buffer, TIME_TEXT_MAX, "%Y-%m-%d %H:%M:%S", &tm) == 0)
                buffer[0] = 0;
        return buffer;
}

const char *bytes_text(uint64_t bytes, char buffer[static BYTES_TEXT_MAX]) {
        static const char units[] = "KMGTPE";
        uint64_t tenths;
        size_t i = 0;

        if (bytes < 1024) {
                (void) snprintf(buffer, BYTES_TEXT_MAX, "%llu", (unsigned long long) bytes);
                return buffer;
        }
        while (bytes >= 1024 * 1024) {
                bytes /= 1024;
                i++;
        }
        tenths = bytes * 10 / 1024;
        (void) snprintf(buffer, BYTES_TEXT_MAX, "%llu.%llu%c", (unsigned long long) tenths / 10, (unsigned long long) tenths % 10, units[i]);
        return buffer;
}
