/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <linux/sockios.h>
#include <poll.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "basic/log.h"
#include "basic/text.h"

/* A journal on a busy machine may come to it late. */
#define DRAIN_ROUNDS 1000U
#define DRAIN_ROUND_MSEC 2

static const char *program = "errand";
static LogLevel max_level = LOG_LEVEL_INFO;
static bool to_journal, with_fields;
static int journal = -EBADF;
static char own_session[64];

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

void log_use_fields(void) {
        with_fields = true;
}

void log_set_session(const char *id) {
        (void) snprintf(own_session, sizeof(own_session), "%s", id ?: "");
}

/* What is in it was escaped, so that no value holds the end of its line. */
static void add_fields(FILE *f, const LogContext *c) {
        const struct {
                const char *name, *value;
        } fields[] = {
                {"ERRAND_SESSION", c->session ?: *own_session ? own_session : NULL},
                {"MESSAGE_ID", c->message_id},
                {"ERRAND_PROJECT", c->project},
                {"ERRAND_HOST", c->host},
                {"ERRAND_GRANT", c->grant},
                {"ERRAND_DURATION", c->duration},
                {"ERRAND_REASON", c->reason},
                {"ERRAND_UID", c->uid},
        };

        for (size_t i = 0; i < ELEMENTSOF(fields); i++) {
                _cleanup_free_ char *clean = fields[i].value ? string_escape_control(fields[i].value) : NULL;

                if (clean)
                        fprintf(f, "%s=%s\n", fields[i].name, clean);
        }
}

static bool has_fields(const LogContext *c) {
        return *own_session || c->session || c->message_id || c->project || c->host;
}

static bool send_to_journal(LogLevel level, const LogContext *c, const char *text) {
        static const int priority[_LOG_LEVEL_MAX] = {3, 4, 6, 7}; /* syslog's */
        static const struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = "/run/systemd/journal/socket"};
        _cleanup_free_ char *entry = NULL;
        size_t size = 0;
        FILE *f;

        if (journal < 0)
                journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (journal < 0 || !(f = open_memstream(&entry, &size)))
                return false;
        fprintf(f, "MESSAGE=%s\nPRIORITY=%d\nSYSLOG_IDENTIFIER=%s\n", text, priority[level], program);
        add_fields(f, c);
        if (fclose(f) != 0)
                return false;
        return sendto(journal, entry, size, MSG_NOSIGNAL, (const struct sockaddr *) &address, sizeof(address)) >= 0;
}

_printf_(3, 0) static void log_valist(LogLevel level, const LogContext *c, const char *format, va_list ap) {
        /* The field's syslog priorities, in the order of LogLevel. */
        static const char *const priority[_LOG_LEVEL_MAX] = {"<3>", "<4>", "<6>", "<7>"};
        static const char *const word[_LOG_LEVEL_MAX] = {"", "warning: ", "", ""};
        _cleanup_free_ char *text = NULL, *about = NULL, *clean = NULL, *line = NULL;

        if (level > max_level)
                return;
        if (vasprintf(&text, format, ap) < 0)
                return;
        if (c->session && asprintf(&about, "session %s: %s", c->session, text) < 0)
                return;
        clean = string_escape_control(about ?: text);
        if (!clean)
                return;
        if (to_journal && with_fields && has_fields(c) && send_to_journal(level, c, clean))
                return;
        /* The journal knows whose line it is, and how grave. */
        int n = to_journal ? asprintf(&line, "%s%s\n", priority[level], clean) : asprintf(&line, "%s: %s%s\n", program, word[level], clean);
        if (n < 0)
                return;
        /* One write a line: lines of two processes on one stderr do not mix. */
        (void) !write(STDERR_FILENO, line, (size_t) n);
}

void log_drain(void) {
        for (unsigned i = 0, waiting = 0; journal >= 0 && i < DRAIN_ROUNDS; i++) {
                if (ioctl(journal, SIOCOUTQ, &waiting) < 0)
                        return;
                (void) poll(NULL, 0, DRAIN_ROUND_MSEC); /* it was read, and is about to be looked into */
                if (waiting == 0)
                        return;
        }
}

static const LogContext nothing;

void log_line(LogLevel level, const char *format, ...) {
        int saved = errno;
        va_list ap;

        va_start(ap, format);
        log_valist(level, &nothing, format, ap);
        va_end(ap);
        errno = saved;
}

void log_with(LogLevel level, const LogContext *c, const char *format, ...) {
        int saved = errno;
        va_list ap;

        va_start(ap, format);
        log_valist(level, c, format, ap);
        va_end(ap);
        errno = saved;
}

_printf_(4, 0) static int log_errno_valist(LogLevel level, int error, const LogContext *c, const char *format, va_list ap) {
        if (error < 0)
                error = -error;
        errno = error;
        log_valist(level, c, format, ap);
        errno = error;
        return -error;
}

int log_errno(LogLevel level, int error, const char *format, ...) {
        va_list ap;
        int r;

        va_start(ap, format);
        r = log_errno_valist(level, error, &nothing, format, ap);
        va_end(ap);
        return r;
}

int log_with_errno(LogLevel level, int error, const LogContext *c, const char *format, ...) {
        va_list ap;
        int r;

        va_start(ap, format);
        r = log_errno_valist(level, error, c, format, ap);
        va_end(ap);
        return r;
}
