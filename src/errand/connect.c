/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errand/connect.h"
#include "errand/embedded.h"
#include "errand/message-bus.h"
#include "errand/table.h"
#include "errand/tty-agent.h"
#include "errand/waiting.h"
#include "shared/bus-error.h"
#include "shared/bus-object.h"
#include "shared/session-id.h"

#define HELLO_USEC (5 * USEC_PER_SEC) /* a daemon that says nothing for so long hangs */

Connection *connection_free(Connection *c) {
        if (!c)
                return NULL;
        /* Flushing waits for a peer that says nothing. */
        if (c->bus && sd_bus_is_ready(c->bus) > 0)
                (void) sd_bus_flush(c->bus);
        sd_bus_close_unref(c->bus);
        tty_agent_stop(c->agent);
        free(c->owner);
        free(c->place);
        return mfree(c);
}

void connection_leave_terminal(Connection *c) {
        tty_agent_stop(c->agent);
        c->agent = 0;
}

int connection_set_owner(Connection *c, const char *owner) {
        char *copy = strdup(owner);

        if (!copy)
                return log_oom(), EXIT_FAILED;
        free(c->owner);
        c->owner = copy;
        return EXIT_OK;
}

bool connection_is_errandd(const Connection *c, sd_bus_message *m) {
        return !c->owner || streq_ptr(c->owner, sd_bus_message_get_sender(m));
}

int connection_new_call(Connection *c, const char *path, const char *interface, const char *member, sd_bus_message **ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = sd_bus_message_new_method_call(c->bus, &m, c->owner, path, interface, member);
        if (r >= 0)
                r = sd_bus_message_set_allow_interactive_authorization(m, true);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

/* A sentence may have several lines: every problem of a configuration. Names in it may hold marks that turn a line around. */
static void log_lines(const char *before, const char *text) {
        _cleanup_free_ char *copy = strdup(text ?: "no reason was given");
        char *rest = copy, *line;
        bool first = true;

        while (copy && (line = strsep(&rest, "\n"))) {
                _cleanup_free_ char *shown = *line ? text_for_terminal(line) : NULL;

                if (!shown)
                        continue;
                if (first)
                        log_error("%s: %s", before, shown);
                else
                        log_error("%s", shown);
                first = false;
        }
}

static int error_code(const sd_bus_error *e, int r) {
        switch (bus_error_from_name(e->name)) {
        case BUS_ERROR_NOT_FOUND:
                return EXIT_NOT_THERE;
        case BUS_ERROR_NOT_PERMITTED:
                return EXIT_NOT_PERMITTED;
        default:
                break;
        }
        if (sd_bus_error_has_name(e, SD_BUS_ERROR_ACCESS_DENIED) || sd_bus_error_has_name(e, SD_BUS_ERROR_INTERACTIVE_AUTHORIZATION_REQUIRED))
                return EXIT_NOT_PERMITTED;
        /* A path that has no object is a session, grant or receipt that is not there. */
        if (sd_bus_error_has_name(e, SD_BUS_ERROR_UNKNOWN_OBJECT))
                return EXIT_NOT_THERE;
        if (sd_bus_error_has_name(e, SD_BUS_ERROR_SERVICE_UNKNOWN) || sd_bus_error_has_name(e, SD_BUS_ERROR_NAME_HAS_NO_OWNER) ||
            sd_bus_error_has_name(e, SD_BUS_ERROR_NO_REPLY) || r == -ECONNRESET || r == -ENOTCONN || r == -EPIPE)
                return EXIT_NO_DAEMON;
        return EXIT_FAILED;
}

int bus_failure(const sd_bus_error *e, int r, const char *format, ...) {
        _cleanup_free_ char *text = string_format_own(format);
        int code = error_code(e, r);
        const char *before = text ?: "out of memory";
        if (code == EXIT_NO_DAEMON)
                log_error("%s: errandd went away before it answered", before);
        else if (sd_bus_error_is_set(e) && e->message)
                log_lines(before, e->message);
        else
                log_error_errno(r, "%s: %m", before);
        return code;
}

/* Says why the socket cannot be used. Three things that look alike and are not: nobody there, not allowed, no answer. */
static int refuse_connection(const Paths *p, int r) {
        switch (r) {
        case -ENOENT:
        case -ECONNREFUSED:
                log_error("no errandd answers here: there is no service at %s; \"errand run --embedded\" starts one for a command", p->bus);
                return EXIT_NO_DAEMON;
        case -EACCES:
        case -EPERM:
                log_error_errno(r, "you may not use the errandd at %s: %m; nothing was started or changed", p->bus);
                return EXIT_NOT_PERMITTED;
        case -EXDEV:
                log_error("you may not use the errandd at %s: that directory is another account's, or others may write to it; remove it, or name another "
                          "place with --state-dir", p->bus);
                return EXIT_NOT_PERMITTED;
        case -EBADE:
                log_error("the socket %s is served by another account, so nothing was said to it", p->bus);
                return EXIT_NOT_PERMITTED;
        default:
                log_error_errno(r, "Failed to connect to %s: %m", p->bus);
                return EXIT_NO_DAEMON;
        }
}

static bool is_gone(int error) {
        return error == -ECONNRESET || error == -EPIPE || error == -ENOTCONN;
}

/* ret_left: NULL, or whether it went before it answered, which is not said then. */
static int say_hello(Connection *c, bool *ret_left) {
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = bus_await_ready(c->bus, HELLO_USEC);
        if (r >= 0)
                r = connection_new_call(c, BUS_ROOT, "org.freedesktop.DBus.Peer", "Ping", &m);
        if (r >= 0)
                r = sd_bus_call(c->bus, m, HELLO_USEC, &e, NULL);
        if (r >= 0)
                return EXIT_OK;
        if (r == -ETIMEDOUT || sd_bus_error_has_name(&e, SD_BUS_ERROR_TIMEOUT)) {
                log_error("the errandd at %s took the connection and does not answer; it hangs, or it is stopped%s", c->place,
                          c->mode == CONNECT_SYSTEM ? ": systemctl restart errandd ends no session" :
                          c->mode == CONNECT_USER   ? ": systemctl --user restart errandd ends no session" : "");
                return EXIT_NO_DAEMON;
        }
        if (sd_bus_error_has_name(&e, SD_BUS_ERROR_ACCESS_DENIED) || r == -EPERM || r == -EACCES) {
                log_error("you may not use the errandd at %s", c->place);
                return EXIT_NOT_PERMITTED;
        }
        if (bus_error_from_name(e.name) == BUS_ERROR_LIMIT)
                return bus_failure(&e, r, "the errandd at %s is not to be had", c->place);
        if (ret_left && is_gone(r))
                *ret_left = true;
        else
                log_error_errno(r, "the errandd at %s closed the connection: %m", c->place);
        return EXIT_NO_DAEMON;
}

static int speak(int socket, const Paths *p, bool *ret_left, Connection **ret) {
        _cleanup_close_ int fd = socket;
        _cleanup_(connection_freep) Connection *c = calloc(1, sizeof(Connection));
        int r = -ENOMEM;

        if (c && (c->place = strdup(p->bus)))
                r = sd_bus_new(&c->bus);
        if (r >= 0)
                r = sd_bus_set_fd(c->bus, fd, fd);
        if (r >= 0) {
                TAKE_FD(fd);
                r = sd_bus_negotiate_fds(c->bus, true);
        }
        if (r >= 0)
                r = sd_bus_set_method_call_timeout(c->bus, UINT64_MAX);
        if (r >= 0)
                r = sd_bus_start(c->bus);
        if (r < 0 && ret_left && is_gone(r)) {
                *ret_left = true;
                return EXIT_NO_DAEMON;
        }
        if (r < 0) {
                log_error_errno(r, "Failed to speak to %s: %m", p->bus);
                return EXIT_NO_DAEMON;
        }
        c->mode = CONNECT_EMBEDDED;
        r = say_hello(c, ret_left);
        if (r != EXIT_OK)
                return r;
        *ret = TAKE_PTR(c);
        return EXIT_OK;
}

/* What only an embedded errandd knows chooses it: the name of that, or NULL. */
static const char *embedded_option(const Request *q) {
        return q->state_dir ? "--state-dir" : q->config ? "--config" : q->account ? "--account" :
               getenv("ERRAND_EMBEDDED_STATE") ? "ERRAND_EMBEDDED_STATE" : NULL;
}

static void say_embedded(const Request *q) {
        const char *option = embedded_option(q);

        log_info("%s%s, so this runs in embedded mode: with an errandd of its own, and without limits on memory, processor and processes",
                 option ?: "no errandd runs here", option ? " is for an errandd of one's own" : "");
}

static bool may_start(const Request *q, ConnectFlags flags, const Paths *p) {
        if (q->no_start)
                return false;
        return q->embedded || (flags & CONNECT_START) || ((flags & CONNECT_START_STATE) && embedded_has_state(p));
}

/* An errandd that runs has its configuration: what was asked for must be what it has. The account goes with each session. */
static bool same_configuration(const Request *q, const Paths *p, int socket) {
        if (!q->config || embedded_was_given(socket, "--config", p->config))
                return true;
        log_error("--config %s would have no effect: the errandd at %s runs already, without it; end its sessions first (it ends some seconds after the "
                  "last one), or use another --state-dir", q->config, p->bus);
        return false;
}

static int open_embedded(const Request *q, ConnectFlags flags, Connection **ret) {
        _cleanup_(paths_freep) Paths *p = NULL;
        _cleanup_(connection_freep) Connection *c = NULL;
        bool reload, left = false;
        Fault f = {};
        int fd = -EBADF, r, code = EXIT_OK;

        if (paths_embedded(q->state_dir, q->config, &p, &f) < 0) {
                log_error("%s", f.text ?: "errand's directories cannot be found");
                fault_done(&f);
                return EXIT_FAILED;
        }
        /* Whoever it is that would read it. */
        if (q->config && faccessat(AT_FDCWD, p->config, R_OK, AT_EACCESS) < 0) {
                log_error_errno(errno, "--config: %s cannot be read: %m", p->config);
                return EXIT_CONFIGURATION;
        }
        r = embedded_connect(p, &fd);
        if (r >= 0 && !same_configuration(q, p, fd)) {
                safe_close(fd);
                return EXIT_FAILED;
        }
        if (r >= 0) /* it may have been about to leave */
                code = speak(fd, p, may_start(q, flags, p) ? &left : NULL, &c);
        reload = r >= 0 && !left && q->config;
        if (left || ((r == -ENOENT || r == -ECONNREFUSED) && may_start(q, flags, p))) {
                r = embedded_start(p, q, &fd);
                if (r != EXIT_OK)
                        return r;
                if ((flags & CONNECT_START_SAYS) && !q->embedded) /* of one that runs: why one did not start is what is read first */
                        say_embedded(q);
                code = speak(fd, p, NULL, &c);
        } else if (r < 0)
                return refuse_connection(p, r);
        if (code == EXIT_OK && reload) /* the file may have changed since */
                code = manager_call(c, "Reload", "the configuration is refused", NULL, NULL);
        if (code != EXIT_OK)
                return code;
        *ret = TAKE_PTR(c);
        return EXIT_OK;
}

int connection_again(const Request *q, Connection **ret) {
        _cleanup_(paths_freep) Paths *p = NULL;
        Fault f = {};
        int fd = -EBADF, r;

        r = paths_embedded(q->state_dir, q->config, &p, &f);
        fault_done(&f);
        return r >= 0 && embedded_connect(p, &fd) >= 0 ? speak(fd, p, NULL, ret) : EXIT_NO_DAEMON;
}

static const struct {
        MessageBusKind kind;
        const char *name, *option, *unit;
} buses[] = {
        [CONNECT_SYSTEM] = {MESSAGE_BUS_SYSTEM, "the system bus", "--system", "errandd.service"},
        [CONNECT_USER] = {MESSAGE_BUS_USER, "the bus of your session", "--user", "errandd.service of your own manager"},
};

/* Five things that look alike and are not. */
static int refuse_bus(ConnectMode mode, int r, const char *problem) {
        const char *name = buses[mode].name;

        switch (r) {
        case -ENOMEDIUM:
                log_error("%s is not there, so no errandd can be asked on it; \"errand run --embedded\" needs none", name);
                return EXIT_NO_DAEMON;
        case -ENXIO:
                log_error("no errandd is on %s: nobody has the name " BUS_NAME ", and nothing is installed that could be started for it (%s)", name,
                          buses[mode].unit);
                return EXIT_NO_DAEMON;
        case -EACCES:
        case -EPERM:
                log_error_errno(r, "you may not use %s: %m; nothing was started or changed (--embedded uses an errandd of your own)", name);
                return EXIT_NOT_PERMITTED;
        case -EREMOTEIO:
                log_lines("errandd did not start", problem);
                log_error("its log says more: journalctl %s-xu errandd%s; %s an errandd of your own", mode == CONNECT_USER ? "--user " : "",
                          mode == CONNECT_SYSTEM && geteuid() != 0 ? ", which an administrator may read" : "",
                          mode == CONNECT_USER ? "--embedded uses" : "--user and --embedded use");
                return EXIT_NO_DAEMON;
        case -ETIMEDOUT:
                log_error("%s does not answer", name);
                return EXIT_NO_DAEMON;
        default:
                log_error_errno(r, "Failed to ask on %s for errandd: %m", name);
                return EXIT_NO_DAEMON;
        }
}

/* EXIT_OK with *ret; with NULL where there is none and it was not asked for by name. */
static int open_bus(const Request *q, ConnectMode mode, bool chosen, Connection **ret) {
        _cleanup_(connection_freep) Connection *c = calloc(1, sizeof(Connection));
        _cleanup_free_ char *problem = NULL;
        int r;

        if (!c || !(c->place = strdup(buses[mode].name)))
                return log_oom(), EXIT_FAILED;
        c->mode = mode;
        r = message_bus_open(buses[mode].kind, !q->no_start, &c->bus, &c->owner, &problem);
        if ((r == -ENOMEDIUM || r == -ENXIO) && !chosen) {
                *ret = NULL;
                return EXIT_OK;
        }
        if (r < 0)
                return refuse_bus(mode, r, problem);
        r = say_hello(c, NULL);
        if (r != EXIT_OK)
                return r;
        *ret = TAKE_PTR(c);
        return EXIT_OK;
}

/* Who has a session in one's own errandd, and is led to another one, would not find it there. */
static void say_which(const Connection *c) {
        _cleanup_(paths_freep) Paths *p = NULL;
        _cleanup_close_ int fd = -EBADF;
        Fault f = {};

        if (paths_embedded(NULL, NULL, &p, &f) >= 0 && embedded_connect(p, &fd) >= 0)
                log_info("this asks the errandd on %s; one of your own runs too, and --embedded asks that one", c->place);
        fault_done(&f);
}

static int open_first(const Request *q, ConnectFlags flags, Connection **ret) {
        static const ConnectMode modes[] = {CONNECT_SYSTEM, CONNECT_USER};
        bool chosen = q->system || q->user;

        for (size_t i = 0; i < ELEMENTSOF(modes) && (chosen || (!q->embedded && !embedded_option(q))); i++) {
                Connection *c = NULL;
                int r;

                if (chosen && q->system != (modes[i] == CONNECT_SYSTEM))
                        continue;
                r = open_bus(q, modes[i], chosen, &c);
                if (r != EXIT_OK)
                        return r;
                if (!c)
                        continue;
                if (!chosen)
                        say_which(c);
                *ret = c;
                return EXIT_OK;
        }
        return open_embedded(q, flags, ret);
}

int connection_open(const Request *q, ConnectFlags flags, Connection **ret) {
        int r = open_first(q, flags, ret);

        if (r == EXIT_OK && (*ret)->mode == CONNECT_SYSTEM && (flags & CONNECT_ASKS))
                (*ret)->agent = tty_agent_start();
        return r;
}

static int call_valist(Connection *c, const char *path, const char *interface, const char *member, const char *doing, sd_bus_message **ret,
                       const char *types, va_list ap) {
        BusObject o = {.kind = _BUS_OBJECT_KIND_INVALID};
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = connection_new_call(c, path, interface, member, &m);
        if (r >= 0 && types && *types)
                r = sd_bus_message_appendv(m, types, ap);
        if (r >= 0)
                r = waiting_call(c, bus_object_parse(path, &o) >= 0 && o.kind == BUS_OBJECT_SESSION ? o.session : NULL, m, &e, ret);
        return r < 0 ? bus_failure(&e, r, "%s", doing) : EXIT_OK;
}

int bus_call(Connection *c, const char *path, const char *interface, const char *member, const char *doing, sd_bus_message **ret,
             const char *types, ...) {
        va_list ap;
        int r;

        va_start(ap, types);
        r = call_valist(c, path, interface, member, doing, ret, types, ap);
        va_end(ap);
        return r;
}

int manager_call(Connection *c, const char *member, const char *doing, sd_bus_message **ret, const char *types, ...) {
        va_list ap;
        int r;

        va_start(ap, types);
        r = call_valist(c, BUS_ROOT, BUS_MANAGER_INTERFACE, member, doing, ret, types, ap);
        va_end(ap);
        return r;
}

int check_id(const char *id) {
        if (session_id_valid(id))
                return EXIT_OK;
        log_error("\"%.64s\" is no session's id: 1 to 28 of a-z and 0-9; errand threads list shows them", id);
        return EXIT_NOT_THERE;
}

int session_call(Connection *c, const char *id, const char *member, const char *doing, sd_bus_message **ret, const char *types, ...) {
        char before[128];
        va_list ap;
        int r;

        r = check_id(id);
        if (r != EXIT_OK)
                return r;
        (void) snprintf(before, sizeof(before), "session %s: %s", id, doing);
        va_start(ap, types);
        r = call_valist(c, bus_session_path(id).text, BUS_SESSION_INTERFACE, member, before, ret, types, ap);
        va_end(ap);
        return r;
}
