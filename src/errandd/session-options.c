/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "errandd/bus-limits.h"
#include "errandd/bus-options.h"
#include "errandd/config-values.h"
#include "errandd/session-options.h"
#include "shared/bus-error.h"

#define FIELD(name) offsetof(ParsedOptions, options.name)

static int refuse(sd_bus_error *error, const BusOption *option, const char *value, const char *problem) {
        return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "%s \"%.64s\" %s", option->name, value, problem);
}

static int read_checked(sd_bus_message *m, const BusOption *option, void *userdata, const char *(*check)(const char *), sd_bus_error *error) {
        const char *s, *problem;
        int r;

        r = bus_option_text(m, option, userdata, error);
        if (r < 0)
                return r;
        s = *(const char **) bus_option_place(option, userdata);
        problem = check(s);
        return problem ? refuse(error, option, s, problem) : 0;
}

static const char *check_id(const char *s) {
        return session_id_valid(s) ? NULL : "is no session's id: 1 to 28 of a-z and 0-9";
}

static const char *check_network(const char *s) {
        return streq(s, "restricted") || streq(s, "none") ? NULL : "is neither \"restricted\" nor \"none\"";
}

static const char *check_protocol(const char *s) {
        return streq(s, "none") || streq(s, "acp") ? NULL : "is neither \"none\" nor \"acp\"";
}

static int read_id(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error) {
        return read_checked(m, option, userdata, check_id, error);
}

static int read_line(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error) {
        return read_checked(m, option, userdata, check_line, error);
}

static int read_network(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error) {
        return read_checked(m, option, userdata, check_network, error);
}

static int read_protocol(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error) {
        return read_checked(m, option, userdata, check_protocol, error);
}

static int read_provider(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error) {
        return read_checked(m, option, userdata, check_provider_id, error);
}

static int read_command(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error) {
        ParsedOptions *o = userdata;
        int r;

        r = bus_read_texts(m, option->name, BUS_COMMAND_MAX, BUS_COMMAND_SIZE_MAX, &o->command, error);
        if (r < 0)
                return r;
        if (!o->command || !*o->command[0])
                return bus_error_set(error, BUS_ERROR_INVALID_ARGUMENT, "command names no program; leave it out for the configured agent's");
        return 0;
}

static int read_allow(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error) {
        char host[HOST_TEXT_MAX + 1];
        ParsedOptions *o = userdata;
        const char *problem;
        int r;

        r = bus_read_texts(m, option->name, BUS_ALLOW_MAX, BUS_ALLOW_SIZE_MAX, &o->allow, error);
        if (r < 0)
                return r;
        for (char **s = o->allow; s && *s; s++) {
                char *copy;

                if (host_text_normalize(*s, HOST_TEXT_WILDCARD | HOST_TEXT_ANY, host, &problem) < 0)
                        return refuse(error, option, *s, problem);
                copy = strdup(host);
                if (!copy)
                        return -ENOMEM;
                free(*s);
                *s = copy;
        }
        o->options.allow_given = true; /* an empty list narrows to no host */
        return 0;
}

static int read_variable(sd_bus_message *m, const BusOption *option, ParsedOptions *o, size_t *size, sd_bus_error *error) {
        const char *name, *value, *problem;
        char *text;
        int r;

        r = sd_bus_message_read(m, "ss", &name, &value);
        if (r < 0)
                return r;
        problem = check_session_variable(name);
        if (problem)
                return refuse(error, option, name, problem);
        *size += strlen(name) + strlen(value) + 2;
        if (*size > BUS_ENVIRONMENT_SIZE_MAX)
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "env has more than %u bytes", BUS_ENVIRONMENT_SIZE_MAX);
        if (asprintf(&text, "%s=%s", name, value) < 0)
                return -ENOMEM;
        for (char **s = o->env; s && *s; s++)
                if (strncmp(*s, text, strlen(name) + 1) == 0) {
                        free(text);
                        return refuse(error, option, name, "is given twice");
                }
        return strv_consume(&o->env, text);
}

static int read_env(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error) {
        ParsedOptions *o = userdata;
        size_t n = 0, size = 0;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{ss}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "ss")) > 0) {
                if (++n > BUS_ENVIRONMENT_MAX)
                        return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "env has more than %u variables", BUS_ENVIRONMENT_MAX);
                r = read_variable(m, option, o, &size, error);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

static int read_size(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error) {
        uint16_t n;
        int r;

        r = sd_bus_message_read_basic(m, 'q', &n);
        if (r < 0)
                return r;
        if (n == 0)
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "%s is 0", option->name);
        *(unsigned *) bus_option_place(option, userdata) = n;
        return 0;
}

/* A session that held a socket of its caller's could talk past its broker: files, pipes and terminals only. */
static const char *stdio_problem(int fd, bool writes) {
        struct stat st;
        int flags = fcntl(fd, F_GETFL);

        if (flags < 0 || fstat(fd, &st) < 0)
                return "cannot be examined";
        if (S_ISSOCK(st.st_mode))
                return "is a socket; give a file, a pipe or a terminal";
        if ((flags & O_PATH) || !(S_ISREG(st.st_mode) || S_ISFIFO(st.st_mode) || S_ISCHR(st.st_mode)))
                return "is neither a file nor a pipe nor a terminal";
        if ((flags & O_ACCMODE) == (writes ? O_RDONLY : O_WRONLY))
                return writes ? "is not open for writing" : "is not open for reading";
        return NULL;
}

static int read_fd(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error) {
        int *place = bus_option_place(option, userdata), fd, r;
        ParsedOptions *o = userdata;
        const char *problem;
        struct stat st;

        r = sd_bus_message_read_basic(m, 'h', &fd);
        if (r < 0)
                return r;
        if (place == &o->options.project_fd)
                problem = fstat(fd, &st) < 0 || !S_ISDIR(st.st_mode) ? "is no directory" : NULL;
        else
                problem = stdio_problem(fd, place != &o->options.stdio[0]);
        if (problem)
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "%s %s", option->name, problem);
        *place = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        return *place < 0 ? negative_errno() : 0;
}

static const BusOption session_options[] = {
        {"project", "s", read_line, FIELD(project)},
        {"projectFd", "h", read_fd, FIELD(project_fd)},
        {"ownProject", "b", bus_option_bool, FIELD(own_project)},
        {"id", "s", read_id, FIELD(id)},
        {"command", "as", read_command, 0},
        {"network", "s", read_network, FIELD(network)},
        {"allow", "as", read_allow, 0},
        {"env", "a{ss}", read_env, 0},
        {"interactive", "b", bus_option_bool, FIELD(interactive)},
        {"rows", "q", read_size, FIELD(rows)},
        {"columns", "q", read_size, FIELD(columns)},
        {"stdin", "h", read_fd, FIELD(stdio[0])},
        {"stdout", "h", read_fd, FIELD(stdio[1])},
        {"stderr", "h", read_fd, FIELD(stdio[2])},
        {"protocol", "s", read_protocol, FIELD(protocol)},
        {"provider", "s", read_provider, FIELD(provider)},
        {"model", "s", read_line, FIELD(model)},
        {"user", "s", read_line, FIELD(user)},
};

const BusOption *session_options_table(size_t *ret_n) {
        *ret_n = ELEMENTSOF(session_options);
        return session_options;
}

void session_options_done(ParsedOptions *o) {
        o->options.project_fd = safe_close(o->options.project_fd);
        for (size_t i = 0; i < ELEMENTSOF(o->options.stdio); i++)
                o->options.stdio[i] = safe_close(o->options.stdio[i]);
        o->command = strv_free(o->command);
        o->allow = strv_free(o->allow);
        o->env = strv_free(o->env);
}

int session_options_read(sd_bus_message *m, ParsedOptions *ret, sd_bus_error *error) {
        ParsedOptions o = {.options = {.project_fd = -EBADF, .stdio = {-EBADF, -EBADF, -EBADF}}};
        unsigned n_stdio = 0;
        int r;

        r = bus_options_read(m, "CreateSession", session_options, ELEMENTSOF(session_options), &o, error);
        for (size_t i = 0; i < ELEMENTSOF(o.options.stdio); i++)
                n_stdio += o.options.stdio[i] >= 0;
        if (r >= 0 && o.options.interactive && n_stdio > 0)
                r = bus_error_set(error, BUS_ERROR_INVALID_ARGUMENT,
                                  "an interactive session has a terminal of its own: leave stdin, stdout and stderr out");
        if (r >= 0 && n_stdio != 0 && n_stdio != ELEMENTSOF(o.options.stdio))
                r = bus_error_set(error, BUS_ERROR_INVALID_ARGUMENT, "give stdin, stdout and stderr together, or none of them");
        if (r < 0) {
                session_options_done(&o);
                return r;
        }
        o.options.command = o.command;
        o.options.allow = o.allow;
        o.options.env = o.env;
        *ret = o;
        return 0;
}
