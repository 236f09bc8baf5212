/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/macro.h"

/* One line to stderr, prefixed by the program's name ("bailey: …"), with control characters escaped so that no name that
 * came from outside can forge a line. When stderr is the journal's (JOURNAL_STREAM names it) a "<N>" priority is put
 * in place of the name; a program that called log_use_fields() sends each line to the journal with its fields instead.
 * Library code returns errors; programs log them once. */

typedef enum LogLevel {
        LOG_LEVEL_ERROR,
        LOG_LEVEL_WARNING,
        LOG_LEVEL_INFO,
        LOG_LEVEL_DEBUG,
        _LOG_LEVEL_MAX,
        _LOG_LEVEL_INVALID = -EINVAL,
} LogLevel;

typedef enum LogTarget {
        LOG_TARGET_AUTO,    /* the journal where stderr is its */
        LOG_TARGET_JOURNAL,
        LOG_TARGET_CONSOLE, /* without priorities */
} LogTarget;

/* name is kept, not copied. */
void log_setup(const char *name, LogLevel max);
void log_set_max_level(LogLevel max);
void log_set_target(LogTarget target);

/* For daemons: where stderr is the journal's, lines that have fields go to it by its native protocol (systemd's JOURNAL_NATIVE_PROTOCOL). One that cannot
 * be sent so goes to stderr, as do all others: there the journal knows the unit even of a process that is gone by then. */
void log_use_fields(void);

/* Before a process ends over what it said last: until the journal has read that, 2 s at most, since it looks up whose it is. */
void log_drain(void);

/* For a program that serves one session: whose every line is from now on. Copied; NULL: none. */
void log_set_session(const char *id);

/* What a line is about, for those who look for it: journalctl ERRAND_SESSION=ID. NULL: nothing. Never anything secret. */
typedef struct LogContext {
        const char *session;    /* ERRAND_SESSION; on a line by itself too, which begins "session ID: " */
        const char *message_id; /* MESSAGE_ID, one of shared/event-id.h */
        const char *project;    /* ERRAND_PROJECT */
        const char *host;       /* ERRAND_HOST */
        const char *grant;      /* ERRAND_GRANT: its number */
        const char *duration;   /* ERRAND_DURATION */
        const char *reason;     /* ERRAND_REASON: how it ended, or a notice's kind */
        const char *uid;        /* ERRAND_UID: on whose behalf */
} LogContext;

void log_with(LogLevel level, const LogContext *c, const char *format, ...) _printf_(3, 4);
int log_with_errno(LogLevel level, int error, const LogContext *c, const char *format, ...) _printf_(4, 5);

const char *log_program(void);
LogLevel log_max_level(void);
bool log_is_to_journal(void);

void log_line(LogLevel level, const char *format, ...) _printf_(2, 3);

/* Of what others can have happen on and on: whether the nth time has a line. The 1st, 2nd, 4th, … do, so that whoever floods does not fill the log. */
static inline bool log_is_due(uint64_t n) {
        return n > 0 && (n & (n - 1)) == 0;
}

/* Logs with errno set from `error` (so %m is its text) and returns -|error|. */
int log_errno(LogLevel level, int error, const char *format, ...) _printf_(3, 4);

#define log_error(...) log_line(LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_warning(...) log_line(LOG_LEVEL_WARNING, __VA_ARGS__)
#define log_info(...) log_line(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(...) log_line(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_error_errno(error, ...) log_errno(LOG_LEVEL_ERROR, error, __VA_ARGS__)
#define log_warning_errno(error, ...) log_errno(LOG_LEVEL_WARNING, error, __VA_ARGS__)
#define log_oom() log_errno(LOG_LEVEL_ERROR, ENOMEM, "Out of memory")

#define LOG_SESSION(id) (&(LogContext){.session = (id)})
#define log_session_error(id, ...) log_with(LOG_LEVEL_ERROR, LOG_SESSION(id), __VA_ARGS__)
#define log_session_warning(id, ...) log_with(LOG_LEVEL_WARNING, LOG_SESSION(id), __VA_ARGS__)
#define log_session_info(id, ...) log_with(LOG_LEVEL_INFO, LOG_SESSION(id), __VA_ARGS__)
#define log_session_debug(id, ...) log_with(LOG_LEVEL_DEBUG, LOG_SESSION(id), __VA_ARGS__)
#define log_session_error_errno(error, id, ...) log_with_errno(LOG_LEVEL_ERROR, error, LOG_SESSION(id), __VA_ARGS__)
#define log_session_warning_errno(error, id, ...) log_with_errno(LOG_LEVEL_WARNING, error, LOG_SESSION(id), __VA_ARGS__)
