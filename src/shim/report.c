/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/pidfd.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "shared/json-check.h"
#include "shared/message.h"
#include "shim/report.h"

#define LINE_DEPTH_MAX 4U

/* A message of the expected type, or NULL with the descriptor's source off for good when there will be none. */
static Message *receive(sd_event_source **source, int *fd, const char *type) {
        _cleanup_(message_freep) Message *m = NULL;
        _cleanup_free_ char *problem = NULL;

        int r = message_receive(*fd, &m, &problem);
        if (r == -EAGAIN)
                return NULL;
        if (r >= 0 && streq(message_type(m), type))
                return TAKE_PTR(m);
        if (r != -ECONNRESET)
                log_warning("bailey's %s is not understood: %s", type, problem ?: r < 0 ? strerror(-r) : "another type");
        *source = sd_event_source_disable_unref(*source);
        *fd = safe_close(*fd);
        return NULL;
}

int report_on_report(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        Shim *s = userdata;
        _cleanup_strv_free_ char **gaps = NULL;
        Started started = {.brokered = s->options->broker_socket};

        _cleanup_(message_freep) Message *m = receive(&s->report_io, &s->child.report, "report");
        if (!m) {
                shim_check_end(s);
                return 0;
        }
        JsonObject *o = message_object(m);
        if (json_get_u64(o, "pid", INT32_MAX, &started.pid) < 0 || json_get_u64(o, "landlock", UINT16_MAX, &started.landlock) < 0 ||
            json_get_bool(o, "isolated", &started.isolated) < 0 || json_get_strv(o, "gaps", &gaps) < 0 || s->pid1 > 0) {
                log_warning("bailey's report is not understood");
                return 0;
        }
        started.gaps = gaps;
        int pidfd = message_take_fd(m, "pidfd");
        if (pidfd < 0) /* without namespaces it is a plain child of bailey's, who has not reaped it yet */
                pidfd = pidfd_open((pid_t) started.pid, 0);
        shim_started(s, &started, pidfd);
        return 0;
}

int report_on_console(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        Shim *s = userdata;

        _cleanup_(message_freep) Message *m = receive(&s->console_io, &s->child.console, "console");
        if (!m) {
                shim_check_end(s);
                return 0;
        }
        int master = message_take_fd(m, "terminal");
        int r = master < 0 ? master : terminal_open(s->terminal, master);
        if (r < 0)
                log_warning_errno(r, "The session's terminal cannot be used: %m");
        return 0;
}

int report_parse_closing(const char *line, size_t size, ExitStatus *ret) {
        _cleanup_(exit_status_done) ExitStatus status = {};
        _cleanup_json_parser_ JsonParser *parser = NULL;
        JsonObject *o;
        uint64_t code, survivors, signal = 0;
        bool killed = false;

        if (size == 0 || line[0] != '{' || json_read_object(line, size, LINE_DEPTH_MAX, &parser, &o, NULL) < 0)
                return 0;
        int r = json_get_u64(o, "signal", 64, &signal);
        if (r >= 0 || r == -ENOENT)
                r = json_get_bool(o, "killed", &killed);
        if ((r < 0 && r != -ENOENT) || json_get_u64(o, "status", 255, &code) < 0 || json_get_u64(o, "survivors", INT32_MAX, &survivors) < 0 ||
            json_get_strv(o, "enforced", &status.enforced) < 0)
                return 0;
        status.reason = killed ? EXIT_REASON_KILLED : signal > 0 ? EXIT_REASON_SIGNAL : EXIT_REASON_EXITED;
        status.status = (unsigned) code;
        status.survivors = (unsigned) survivors;
        *ret = status;
        status = (ExitStatus){};
        return 1;
}

static void take_line(Shim *s, const char *line, size_t size) {
        _cleanup_free_ char *text = NULL, *clean = NULL;
        ExitStatus closing;

        if (size == 0)
                return;
        if (!s->has_closing && report_parse_closing(line, size, &closing) > 0) {
                s->exit = closing;
                s->has_closing = true;
                return;
        }
        text = strndup(line, size);
        const char *rest = text ? startswith(text, "bailey: ") ?: text : NULL;
        if (!rest || scrub_chain_text(s->secrets, rest, &clean) < 0)
                return;
        if (++s->n_log_lines <= LOG_LINES_MAX)
                events_log(s->events, clean);
        free(s->last_line);
        s->last_line = TAKE_PTR(clean);
}

static void take_lines(Shim *s, bool ended) {
        size_t at = 0;

        for (;;) {
                const char *end = memchr(s->log + at, '\n', s->log_size - at);
                size_t n = end ? (size_t) (end - s->log) - at : s->log_size - at;
                /* What is longer than the buffer is cut in pieces. */
                if (!end && !(ended && n > 0) && n < sizeof(s->log))
                        break;
                take_line(s, s->log + at, n);
                at += n + (end ? 1 : 0);
        }
        memmove(s->log, s->log + at, s->log_size - at);
        s->log_size -= at;
}

int report_on_log(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        Shim *s = userdata;

        ssize_t n = read(s->child.log, s->log + s->log_size, sizeof(s->log) - s->log_size);
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        if (n > 0)
                s->log_size += (size_t) n;
        take_lines(s, n <= 0);
        if (n <= 0) {
                s->log_io = sd_event_source_disable_unref(s->log_io);
                s->child.log = safe_close(s->child.log);
                shim_check_end(s);
        }
        return 0;
}
