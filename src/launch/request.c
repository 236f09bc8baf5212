/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "launch/limits.h"
#include "launch/request.h"

typedef enum FdKind {
        FD_DIRECTORY,
        FD_READABLE, /* a regular file */
        FD_APPEND,   /* a regular file, for writing, O_APPEND */
        FD_SEALED,   /* a memfd that cannot change */
        FD_ANY,
        FD_STREAM,   /* a unix stream socket */
} FdKind;

static const struct {
        const char *name;
        FdKind kind;
        const char *wanted;
} fd_table[_LAUNCH_FD_MAX] = {
        [LAUNCH_FD_PROJECT] = {"project", FD_DIRECTORY, "a directory"},
        [LAUNCH_FD_POLICY] = {"policy", FD_READABLE, "a regular file that is open for reading"},
        [LAUNCH_FD_TRANSCRIPT] = {"transcript", FD_APPEND, "a regular file that is open for appending"},
        [LAUNCH_FD_EVENTS] = {"events", FD_APPEND, "a regular file that is open for appending"},
        [LAUNCH_FD_ENVIRONMENT] = {"environment", FD_SEALED, "a memfd sealed against shrinking, growing and writing"},
        [LAUNCH_FD_SCRUB] = {"scrub", FD_SEALED, "a memfd sealed against shrinking, growing and writing"},
        [LAUNCH_FD_TOKEN] = {"token", FD_SEALED, "a memfd sealed against shrinking, growing and writing"},
        [LAUNCH_FD_STDIN] = {"stdin", FD_ANY, "a file"},
        [LAUNCH_FD_STDOUT] = {"stdout", FD_ANY, "a file"},
        [LAUNCH_FD_STDERR] = {"stderr", FD_ANY, "a file"},
        [LAUNCH_FD_TERMINAL] = {"terminal", FD_STREAM, "a unix stream socket"},
};

const char *launch_fd_to_string(LaunchFd fd) {
        return fd >= 0 && fd < _LAUNCH_FD_MAX ? fd_table[fd].name : NULL;
}

_printf_(2, 3) static int problem(char **ret_problem, const char *format, ...) {
        *ret_problem = string_format_own(format);
        return -EBADMSG;
}

void launch_plan_close(LaunchPlan *p) {
        for (size_t i = 0; i < _LAUNCH_FD_MAX; i++)
                p->fds[i] = safe_close(p->fds[i]);
}

LaunchPlan *launch_plan_free(LaunchPlan *p) {
        if (!p)
                return NULL;
        launch_plan_close(p);
        free(p->session);
        free(p->home);
        free(p->socket);
        free(p->broker_socket);
        free(p->listen);
        scope_plan_free(p->scope);
        strv_free(p->command);
        strv_free(p->accept_gaps);
        return mfree(p);
}

bool request_members_known(JsonObject *o, const char *const *known, const char **ret_name) {
        static const char *const always[] = {"v", "type", "serial", "fds"};
        GList *names = json_object_get_members(o);
        const char *unknown = NULL;

        for (GList *i = names; i && !unknown; i = i->next) {
                bool found = false;
                for (size_t k = 0; k < ELEMENTSOF(always); k++)
                        found |= streq(i->data, always[k]);
                for (const char *const *k = known; *k; k++)
                        found |= streq(i->data, *k);
                unknown = found ? NULL : i->data;
        }
        g_list_free(names);
        if (unknown)
                *ret_name = unknown;
        return !unknown;
}

static int read_path(JsonObject *o, const char *name, bool optional, char **ret, char **ret_problem) {
        const char *s;

        int r = json_get_string(o, name, &s);
        if (r == -ENOENT && optional)
                return 0;
        if (r < 0 || s[0] != '/' || strlen(s) >= PATH_MAX)
                return problem(ret_problem, "\"%s\" is not an absolute path", name);
        *ret = strdup(s);
        return *ret ? 0 : -ENOMEM;
}

static int read_number(JsonObject *o, const char *name, uint64_t max, bool optional, uint64_t *ret, char **ret_problem) {
        int r = json_get_u64(o, name, max, ret);
        if (r == -ENOENT && optional)
                return 0;
        return r < 0 ? problem(ret_problem, "\"%s\" is not a number from 0 to %llu", name, (unsigned long long) max) : 0;
}

static int read_bool(JsonObject *o, const char *name, bool *ret, char **ret_problem) {
        return json_get_bool(o, name, ret) < 0 ? problem(ret_problem, "\"%s\" is not true or false", name) : 0;
}

static int read_words(JsonObject *o, LaunchPlan *p, char **ret_problem) {
        const char *s;

        if (json_get_string(o, "session", &s) < 0 || !session_id_valid(s))
                return problem(ret_problem, "\"session\" is not an id of 1 to %u characters a-z and 0-9", SESSION_ID_MAX);
        p->session = strdup(s);
        if (json_get_string(o, "backend", &s) < 0 || !streq(s, "bailey"))
                return problem(ret_problem, "\"backend\" is not \"bailey\", the only one that there is here");
        int r = json_get_strv(o, "command", &p->command);
        if (r < 0 || !p->command || !p->command[0][0] || strv_length(p->command) > COMMAND_WORDS_MAX)
                return problem(ret_problem, "\"command\" is not a list of words that begins with a program");
        r = json_get_strv(o, "acceptGaps", &p->accept_gaps);
        if ((r < 0 && r != -ENOENT) || strv_length(p->accept_gaps) > GAPS_MAX)
                return problem(ret_problem, "\"acceptGaps\" is not a list of at most %u names", GAPS_MAX);
        for (char **g = p->accept_gaps; g && *g; g++)
                if (!**g || strspn(*g, "abcdefghijklmnopqrstuvwxyz0123456789-") != strlen(*g) || **g == '-')
                        return problem(ret_problem, "\"acceptGaps\" holds what is no name of a gap");
        return p->session ? 0 : -ENOMEM;
}

static int read_broker(JsonObject *o, LaunchPlan *p, char **ret_problem) {
        uint32_t address;
        uint16_t port;
        const char *s;

        int r = read_path(o, "brokerSocket", true, &p->broker_socket, ret_problem);
        if (r < 0)
                return r;
        r = json_get_string(o, "listen", &s);
        if (!p->broker_socket != (r == -ENOENT))
                return problem(ret_problem, "\"brokerSocket\" and \"listen\" are given together or not at all");
        if (!p->broker_socket)
                return 0;
        if (r < 0 || parse_loopback_listen(s, &address, &port) < 0)
                return problem(ret_problem, "\"listen\" is not 127.0.0.1:PORT");
        p->listen = strdup(s);
        return p->listen ? 0 : -ENOMEM;
}

static int read_scope(JsonObject *o, LaunchPlan *p, char **ret_problem) {
        JsonObject *scope;

        int r = json_get_object(o, "scope", &scope);
        if (r == -ENOENT)
                return 0;
        return r < 0 ? problem(ret_problem, "\"scope\" is not an object") : scope_plan_parse(scope, p->session, &p->scope, ret_problem);
}

static int read_conversation(JsonObject *o, LaunchPlan *p, char **ret_problem) {
        static const char *const known[] = {"protocol", "startupMs", "questionMs", "abortMs", NULL};
        JsonObject *c;
        const char *s;

        int r = json_get_object(o, "conversation", &c);
        if (r == -ENOENT)
                return 0;
        if (r < 0 || !request_members_known(c, known, &s))
                return problem(ret_problem, "\"conversation\" is not an object of protocol, startupMs, questionMs and abortMs");
        if (json_get_string(c, "protocol", &s) < 0 || !streq(s, "acp"))
                return problem(ret_problem, "the \"protocol\" of \"conversation\" is not \"acp\", the only one that is known here");
        r = read_number(c, "startupMs", CONVERSATION_MS_MAX, false, &p->startup_ms, ret_problem);
        if (r >= 0)
                r = read_number(c, "questionMs", CONVERSATION_MS_MAX, false, &p->question_ms, ret_problem);
        if (r >= 0)
                r = read_number(c, "abortMs", CONVERSATION_MS_MAX, false, &p->abort_ms, ret_problem);
        if (r >= 0 && (p->startup_ms == 0 || p->question_ms == 0 || p->abort_ms == 0))
                r = problem(ret_problem, "\"conversation\" has a time of 0, in which no agent can answer");
        if (r >= 0 && p->interactive)
                r = problem(ret_problem, "\"conversation\" and \"interactive\" are two uses of one terminal or pipe");
        p->conversation = true;
        return r;
}

static int read_members(JsonObject *o, LaunchPlan *p, char **ret_problem) {
        static const char *const known[] = {"session", "backend", "command", "interactive", "rows", "columns", "home", "brokerSocket",
                                            "listen",  "strict",  "acceptGaps", "graceMs",  "shimSocket", "fileMax", "scope",
                                            "proxyNet", "conversation", NULL};
        uint64_t rows = 0, columns = 0, grace = 0;
        const char *unknown;

        if (!request_members_known(o, known, &unknown)) {
                _cleanup_free_ char *shown = string_escape_control(unknown);
                return problem(ret_problem, "\"%.64s\" is no member of a launch", shown ?: "");
        }
        int r = read_words(o, p, ret_problem);
        if (r >= 0)
                r = read_bool(o, "interactive", &p->interactive, ret_problem);
        if (r >= 0)
                r = read_number(o, "rows", UINT16_MAX, true, &rows, ret_problem);
        if (r >= 0)
                r = read_number(o, "columns", UINT16_MAX, true, &columns, ret_problem);
        if (r >= 0)
                r = read_path(o, "home", false, &p->home, ret_problem);
        if (r >= 0)
                r = read_broker(o, p, ret_problem);
        if (r >= 0 && json_object_has_member(o, "proxyNet"))
                r = read_bool(o, "proxyNet", &p->proxy_net, ret_problem);
        if (r >= 0 && p->proxy_net && p->broker_socket)
                r = problem(ret_problem, "\"proxyNet\" and \"brokerSocket\" are two ways out");
        if (r >= 0)
                r = read_bool(o, "strict", &p->strict, ret_problem);
        if (r >= 0 && p->accept_gaps && !p->strict)
                r = problem(ret_problem, "\"acceptGaps\" does nothing where \"strict\" is false");
        if (r >= 0)
                r = read_number(o, "graceMs", GRACE_MS_MAX, false, &grace, ret_problem);
        if (r >= 0)
                r = read_path(o, "shimSocket", false, &p->socket, ret_problem);
        if (r >= 0)
                r = read_number(o, "fileMax", INT64_MAX, true, &p->file_max, ret_problem);
        if (r >= 0)
                r = read_conversation(o, p, ret_problem);
        if (r >= 0)
                r = read_scope(o, p, ret_problem);
        p->rows = (uint16_t) rows;
        p->columns = (uint16_t) columns;
        p->grace_ms = (uint32_t) grace;
        return r;
}

static bool fd_is(int fd, FdKind kind) {
        int flags = fcntl(fd, F_GETFL), value;
        socklen_t size = sizeof(value);
        struct stat st;

        if (flags < 0 || fstat(fd, &st) < 0)
                return false;
        switch (kind) {
        case FD_DIRECTORY:
                return S_ISDIR(st.st_mode);
        case FD_READABLE:
                return S_ISREG(st.st_mode) && (flags & O_ACCMODE) != O_WRONLY && !(flags & O_PATH);
        case FD_APPEND:
                return S_ISREG(st.st_mode) && (flags & O_ACCMODE) != O_RDONLY && (flags & O_APPEND) && !(flags & O_PATH);
        case FD_SEALED:
                return memfd_is_sealed(fd);
        case FD_STREAM:
                return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &size) == 0 && value == AF_UNIX &&
                       getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &size) == 0 && value == SOCK_STREAM;
        case FD_ANY:
        default:
                return !(flags & O_PATH) && !S_ISDIR(st.st_mode);
        }
}

/* Which descriptors there have to be, and may be. */
static bool fd_needed(const LaunchPlan *p, LaunchFd fd) {
        return fd <= LAUNCH_FD_SCRUB || (fd == LAUNCH_FD_TOKEN && p->broker_socket);
}

static bool fd_allowed(const LaunchPlan *p, LaunchFd fd) {
        return fd_needed(p, fd) || (fd >= LAUNCH_FD_STDIN && (fd == LAUNCH_FD_TERMINAL) == p->interactive && !p->conversation);
}

static int take_fds(Message *m, LaunchPlan *p, char **ret_problem) {
        JsonArray *names = NULL;
        size_t n_given = 0, n_taken = 0;

        if (json_get_array(message_object(m), "fds", &names) >= 0)
                n_given = json_array_get_length(names);
        for (LaunchFd i = 0; i < _LAUNCH_FD_MAX; i++) {
                p->fds[i] = message_take_fd(m, fd_table[i].name);
                if (p->fds[i] < 0) {
                        p->fds[i] = -EBADF;
                        if (fd_needed(p, i))
                                return problem(ret_problem, "the descriptor \"%s\" is missing", fd_table[i].name);
                        continue;
                }
                n_taken++;
                if (!fd_allowed(p, i))
                        return problem(ret_problem, "the descriptor \"%s\" has no place in such a launch", fd_table[i].name);
                if (!fd_is(p->fds[i], fd_table[i].kind))
                        return problem(ret_problem, "the descriptor \"%s\" is not %s", fd_table[i].name, fd_table[i].wanted);
        }
        return n_taken == n_given ? 0 : problem(ret_problem, "there is a descriptor of a name that a launch does not know");
}

int launch_plan_parse(Message *m, LaunchPlan **ret, char **ret_problem) {
        _cleanup_(launch_plan_freep) LaunchPlan *p = calloc(1, sizeof(LaunchPlan));

        if (!p)
                return -ENOMEM;
        for (size_t i = 0; i < _LAUNCH_FD_MAX; i++)
                p->fds[i] = -EBADF;
        int r = read_members(message_object(m), p, ret_problem);
        if (r >= 0)
                r = take_fds(m, p, ret_problem);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}
