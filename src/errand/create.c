/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errand/create.h"
#include "errand/terminal.h"
#include "errand/waiting.h"
#include "shared/bus-object.h"
#include "shared/session-id.h"

bool create_interactive(const Request *q) {
        if (q->keep_terminal || q->no_terminal)
                return q->keep_terminal;
        return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static int append_text(sd_bus_message *m, const char *name, const char *value) {
        return value ? sd_bus_message_append(m, "{sv}", name, "s", value) : 0;
}

static int append_texts(sd_bus_message *m, const char *name, char *const *list) {
        int r;

        r = sd_bus_message_open_container(m, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append_basic(m, 's', name);
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "as");
        if (r >= 0)
                r = sd_bus_message_append_strv(m, (char **) list);
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_env(sd_bus_message *m, char *const *env) {
        int r;

        r = sd_bus_message_open_container(m, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append_basic(m, 's', "env");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'v', "a{ss}");
        if (r >= 0)
                r = sd_bus_message_open_container(m, 'a', "{ss}");
        for (; r >= 0 && *env; env++) {
                char name[256];

                (void) snprintf(name, sizeof(name), "%.*s", (int) strcspn(*env, "="), *env);
                r = sd_bus_message_append(m, "{ss}", name, strchr(*env, '=') + 1);
        }
        for (int i = 0; r >= 0 && i < 3; i++)
                r = sd_bus_message_close_container(m);
        return r;
}

static int check_env(char *const *env) {
        for (; env && *env; env++) {
                size_t n = strcspn(*env, "=");

                if (n == 0 || n > 255 || !(*env)[n]) {
                        log_error("--env %.64s wants NAME=VALUE", *env);
                        return -EINVAL;
                }
        }
        return 0;
}

/* The project by its own descriptor as well, so that what was meant is what is used, wherever the path leads by then. */
static int open_project(const Request *q, int *ret_fd, char **ret_path) {
        const char *path = q->project ?: ".";
        _cleanup_free_ char *real = realpath(path, NULL);
        _cleanup_close_ int fd = -EBADF;

        if (real)
                fd = open(real, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0) {
                log_error_errno(errno, "the project %s cannot be opened: %m", path);
                return -errno;
        }
        *ret_fd = TAKE_FD(fd);
        *ret_path = TAKE_PTR(real);
        return 0;
}

/* The system's errandd opens projects itself, by name. */
static int name_project(const Request *q, char **ret_path) {
        if (!q->project) {
                log_error("name the project: --project NAME, which is a directory below the projectRoot of the system's errandd; to work in the "
                          "current directory, use --user or --embedded");
                return -EINVAL;
        }
        if (strchr(q->project, '/') || streq(q->project, ".") || streq(q->project, "..")) {
                log_error("--project %.256s: the system's errandd knows projects by their names below its projectRoot, not by paths; to work in a "
                          "directory of yours, use --user or --embedded", q->project);
                return -EINVAL;
        }
        *ret_path = strdup(q->project);
        return *ret_path ? 0 : log_oom();
}

static bool is_socket(int fd) {
        struct stat st;
        return fstat(fd, &st) >= 0 && S_ISSOCK(st.st_mode);
}

/* The session's end of one of the three: our own descriptor, or a pipe for a socket, which a session is not given. */
static int session_end(int fd, int *ret_ours, int *ret_theirs) {
        int ends[2];

        if (!is_socket(fd)) {
                *ret_theirs = fcntl(fd, F_DUPFD_CLOEXEC, 3);
                return *ret_theirs < 0 ? negative_errno() : 0;
        }
        if (pipe2(ends, O_CLOEXEC) < 0)
                return negative_errno();
        *ret_ours = ends[fd == STDIN_FILENO ? 1 : 0];
        *ret_theirs = ends[fd == STDIN_FILENO ? 0 : 1];
        return 0;
}

static int append_stdio(sd_bus_message *m, AttachPipes *pipes) {
        static const char *const names[] = {"stdin", "stdout", "stderr"};
        int *const ours[] = {&pipes->in, &pipes->out, &pipes->error};
        int r = 0;

        for (int i = 0; r >= 0 && i < 3; i++) {
                _cleanup_close_ int theirs = -EBADF;

                r = session_end(i, ours[i], &theirs);
                if (r >= 0)
                        r = sd_bus_message_append(m, "{sv}", names[i], "h", theirs); /* duplicated */
        }
        return r;
}

static int append_terminal(sd_bus_message *m) {
        uint16_t rows, columns;
        int r;

        r = sd_bus_message_append(m, "{sv}", "interactive", "b", 1);
        if (r >= 0 && terminal_size(STDOUT_FILENO, &rows, &columns) >= 0)
                r = sd_bus_message_append(m, "{sv}{sv}", "rows", "q", rows, "columns", "q", columns);
        return r;
}

static int append_options(sd_bus_message *m, const Request *q, bool interactive, AttachPipes *pipes, int project, const char *path) {
        int r;

        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0)
                r = append_text(m, "project", path);
        if (r >= 0 && project >= 0)
                r = sd_bus_message_append(m, "{sv}", "projectFd", "h", project);
        if (r >= 0 && q->file) /* what root's unit runs shall be what root put there, whoever came first to the name */
                r = sd_bus_message_append(m, "{sv}", "ownProject", "b", 1);
        if (r >= 0)
                r = append_text(m, "id", q->id);
        if (r >= 0)
                r = append_text(m, "provider", q->provider);
        if (r >= 0)
                r = append_text(m, "model", q->model);
        if (r >= 0)
                r = append_text(m, "user", q->account);
        if (r >= 0)
                r = append_text(m, "network", q->network);
        if (r >= 0)
                r = append_text(m, "protocol", q->protocol);
        if (r >= 0 && q->n_operands > 0)
                r = append_texts(m, "command", q->operands);
        if (r >= 0 && q->allow)
                r = append_texts(m, "allow", q->allow);
        if (r >= 0 && q->env)
                r = append_env(m, q->env);
        if (r >= 0 && interactive)
                r = append_terminal(m);
        if (r >= 0 && !interactive && pipes)
                r = append_stdio(m, pipes);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int check_form(const Request *q) {
        if (q->id && !session_id_valid(q->id)) {
                log_error("--id \"%.64s\" is no session's id: 1 to 28 of a-z and 0-9", q->id);
                return -EINVAL;
        }
        if (q->n_operands > 0 && !*q->operands[0]) {
                log_error("the command is empty");
                return -EINVAL;
        }
        return check_env(q->env);
}

int create_session(Connection *c, const Request *q, bool interactive, AttachPipes *pipes, char **ret_id) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *path = NULL;
        _cleanup_close_ int project = -EBADF;
        const char *object;
        BusObject o;
        int r;

        if (check_form(q) < 0 || (c->mode == CONNECT_SYSTEM ? name_project(q, &path) : open_project(q, &project, &path)) < 0)
                return EXIT_FAILED;
        r = connection_new_call(c, BUS_ROOT, BUS_MANAGER_INTERFACE, "CreateSession", &m);
        if (r >= 0)
                r = append_options(m, q, interactive, pipes, project, path);
        if (r < 0) {
                log_error_errno(r, "Failed to ask for a session: %m%s", r == -EINVAL ? " (a path or an argument is no UTF-8)" : "");
                return EXIT_FAILED;
        }
        r = waiting_call(c, NULL, m, &e, &reply);
        if (r < 0)
                return bus_failure(&e, r, "Failed to make a session");
        r = sd_bus_message_read_basic(reply, 'o', &object);
        if (r >= 0)
                r = bus_object_parse(object, &o);
        if (r < 0 || o.kind != BUS_OBJECT_SESSION) {
                log_error("errandd made a session and did not say which");
                return EXIT_FAILED;
        }
        *ret_id = strdup(o.session);
        return *ret_id ? EXIT_OK : EXIT_FAILED;
}
