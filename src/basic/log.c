/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "basic/log.h"
#include "basic/text.h"

static const char *program = "errand";
static LogLevel max_level = LOG_LEVEL_INFO;
static bool to_journal;

void log_setup(const char *name, LogLevel max) {
        program = name;
        max_level = max;
        log_set_target(LOG_TARGET_AUTO);
}

/* systemd.exec(5): the variable names the device and inode that it made stderr. It is inherited by whoever is started from a service,
 * a terminal's shell too, so it says nothing by itself. */
static bool stderr_is_journal(void) {
        const char *stream = getenv("JOURNAL_STREAM");
        char own[64];
        struct stat st;

        if (!stream || fstat(STDERR_FILENO, &st) < 0)
                return false;
        (void) snprintf(own, sizeof(own), "%ju:%ju", (uintmax_t) st.st_dev, (uintmax_t) st.st_ino);
        return streq(stream, own);
}

void log_set_target(LogTarget target) {
        to_journal = target == LOG_TARGET_AUTO ? stderr_is_journal() : target == LOG_TARGET_JOURNAL;
}

const char *log_program(void) {
        return program;
}

LogLevel log_max_level(void) {
        return max_level;
}

bool log_is_to_journal(void) {
        return to_journal;
}

void log_set_max_level(LogLevel max) {
        max_level = max;
}

_printf_(2, 0) static void log_valist(LogLevel level, const char *format, va_list ap) {
        /* The field's syslog priorities, in the order of LogLevel. */
        static const char *const priority[_LOG_LEVEL_MAX] = {"<3>", "<4>", "<6>", "<7>"};
        static const char *const word[_LOG_LEVEL_MAX] = {"", "warning: ", "", ""};
        _cleanup_free_ char *text = NULL, *clean = NULL, *line = NULL;

        if (level > max_level)
                return;
        if (vasprintf(&text, format, ap) < 0)
                return;
        clean = string_escape_control(text);
        if (!clean)
                return;
        /* The journal knows whose line it is, and how grave. */
        int n = to_journal ? asprintf(&line, "%s%s\n", priority[level], clean) : asprintf(&line, "%s: %s%s\n", program, word[level], clean);
        if (n < 0)
                return;
        /* One write a line: lines of two processes on one stderr do not mix. */
        (void) !write(STDERR_FILENO, line, (size_t) n);
}

void log_line(LogLevel level, const char *format, ...) {
        int saved = errno;
        va_list ap;

        va_start(ap, format);
        log_valist(level, format, ap);
        va_end(ap);
        errno = saved;
}

int log_errno(LogLevel level, int error, const char *format, ...) {
        va_list ap;

        if (error < 0)
                error = -error;
        errno = error;
        va_start(ap, format);
        log_valist(level, format, ap);
        va_end(ap);
        errno = error;
        return -error;
}
