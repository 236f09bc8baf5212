/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errand/exit.h"
#include "errand/session-file.h"
#include "shared/json-check.h"
#include "shared/message.h"
#include "shared/session-id.h"

#define SUFFIX ".json"
#define FILE_SIZE_MAX (256U * 1024U) /* command and environment may have 96 KiB */
#define DEPTH_MAX 2U

typedef enum MemberType {
        MEMBER_TEXT,
        MEMBER_TEXTS,
        MEMBER_VARIABLES, /* {"NAME": "VALUE"} */
} MemberType;

static const struct Member {
        const char *name;
        MemberType type;
        size_t offset;
} members[] = {
        {"project", MEMBER_TEXT, offsetof(SessionFile, project)},
        {"command", MEMBER_TEXTS, offsetof(SessionFile, command)},
        {"allow", MEMBER_TEXTS, offsetof(SessionFile, allow)},
        {"network", MEMBER_TEXT, offsetof(SessionFile, network)},
        {"provider", MEMBER_TEXT, offsetof(SessionFile, provider)},
        {"model", MEMBER_TEXT, offsetof(SessionFile, model)},
        {"protocol", MEMBER_TEXT, offsetof(SessionFile, protocol)},
        {"env", MEMBER_VARIABLES, offsetof(SessionFile, env)},
};

void session_file_done(SessionFile *f) {
        free(f->id);
        free(f->project);
        free(f->network);
        free(f->provider);
        free(f->model);
        free(f->protocol);
        strv_free(f->command);
        strv_free(f->allow);
        strv_free(f->env);
        *f = (SessionFile){};
}

static bool ours(const struct stat *st) {
        return st->st_uid == 0 || st->st_uid == geteuid();
}

static int check_directory(int fd, const char *path) {
        int folder = (int) (strrchr(path, '/') ? MAX(strrchr(path, '/') - path, 1) : 0);
        struct stat st;

        if (fstat(fd, &st) < 0)
                return log_error_errno(errno, "%s: its directory cannot be looked at: %m", path);
        if (!ours(&st)) {
                log_error("%s: its directory belongs to uid %u, who could put another file there; it has to be root's or your own", path, st.st_uid);
                return -EPERM;
        }
        if ((st.st_mode & 0022) && !(st.st_mode & S_ISVTX)) {
                log_error("%s: other accounts may write in its directory, and put another file there: chmod go-w %.*s", path, folder > 0 ? folder : 1,
                          folder > 0 ? path : ".");
                return -EPERM;
        }
        return 0;
}

static usec_t usec_of(const struct timespec *ts) {
        return (usec_t) ts->tv_sec * USEC_PER_SEC + (usec_t) ts->tv_nsec / 1000;
}

static int check_file(int fd, const char *path, usec_t *ret_changed) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return log_error_errno(errno, "%s cannot be looked at: %m", path);
        if (!S_ISREG(st.st_mode)) {
                log_error("%s is no regular file", path);
                return -EPERM;
        }
        if (!ours(&st)) {
                log_error("%s belongs to uid %u, and what it says would be done with your rights; it has to be root's or your own", path, st.st_uid);
                return -EPERM;
        }
        if (st.st_mode & 0022) {
                log_error("%s may be written by other accounts, and what it says would be done with your rights; chmod go-w it", path);
                return -EPERM;
        }
        /* A copy that keeps its time was put there all the same. */
        *ret_changed = MAX(usec_of(&st.st_mtim), usec_of(&st.st_ctim));
        return 0;
}

static int read_text(const char *path, char **ret, size_t *ret_size, usec_t *ret_changed) {
        _cleanup_free_ char *copy = strdup(path), *last = strdup(path);

        if (!copy || !last)
                return log_oom();
        _cleanup_close_ int dir = open(dirname(copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (dir < 0)
                return log_error_errno(errno, "%s: its directory cannot be opened: %m", path);
        int r = check_directory(dir, path);
        if (r < 0)
                return r;
        /* O_NONBLOCK: not to wait for a fifo's other end. */
        _cleanup_close_ int fd = openat(dir, basename(last), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
        if (fd < 0 && errno == ELOOP) {
                log_error("%s is a symbolic link, and a session is described by a file", path);
                return -ELOOP;
        }
        if (fd < 0)
                return log_error_errno(errno, "%s cannot be opened: %m", path);
        r = check_file(fd, path, ret_changed);
        if (r < 0)
                return r;
        r = read_fd_full(fd, FILE_SIZE_MAX, ret, ret_size);
        return r < 0 ? log_error_errno(r, "%s cannot be read: %m", path) : 0;
}

static int read_variables(JsonObject *o, const char *name, char ***ret) {
        JsonObject *variables;

        int r = json_get_object(o, name, &variables);
        if (r < 0)
                return r;
        GList *names = json_object_get_members(variables);
        for (GList *i = names; i && r >= 0; i = i->next) {
                const char *value;

                r = json_get_string(variables, i->data, &value);
                if (r >= 0)
                        r = strv_extend_format(ret, "%s=%s", (const char *) i->data, value);
        }
        g_list_free(names);
        return r;
}

static int read_member(JsonObject *o, const struct Member *m, SessionFile *f) {
        void *at = (char *) f + m->offset;
        const char *text;
        int r;

        switch (m->type) {
        case MEMBER_TEXT:
                r = json_get_string(o, m->name, &text);
                if (r < 0)
                        return r;
                *(char **) at = strdup(text);
                return *(char **) at ? 0 : -ENOMEM;
        case MEMBER_TEXTS:
                return json_get_strv(o, m->name, at);
        case MEMBER_VARIABLES:
                return read_variables(o, m->name, at);
        }
        return -EINVAL;
}

static int check_names(JsonObject *o, const char *path) {
        GList *names = json_object_get_members(o);
        int r = 0;

        for (GList *i = names; i && r >= 0; i = i->next) {
                bool known = false;
                for (size_t k = 0; k < ELEMENTSOF(members); k++)
                        known = known || streq(members[k].name, i->data);
                if (known)
                        continue;
                _cleanup_free_ char *shown = string_escape_control(i->data);
                log_error("%s: \"%.80s\" is nothing that a session's file may say; it takes project, command, protocol, allow, network, provider, model and env",
                          path, shown ?: "");
                r = -EINVAL;
        }
        g_list_free(names);
        return r;
}

static int parse(const char *path, const char *text, size_t size, SessionFile *f) {
        static const char *const kinds[] = {[MEMBER_TEXT] = "a string", [MEMBER_TEXTS] = "a list of strings", [MEMBER_VARIABLES] = "an object of strings"};
        _cleanup_json_parser_ JsonParser *parser = NULL;
        JsonProblem problem;
        JsonObject *o;

        int r = json_read_object(text, size, DEPTH_MAX, &parser, &o, &problem);
        if (r == -EBADMSG) {
                log_error("%s: line %u, column %u: %s", path, problem.line, problem.column, problem.text);
                return r;
        }
        if (r >= 0)
                r = check_names(o, path);
        for (size_t i = 0; i < ELEMENTSOF(members) && r >= 0; i++) {
                r = read_member(o, &members[i], f);
                if (r == -ENOENT)
                        r = 0;
                if (r == -EINVAL)
                        log_error("%s: \"%s\" has to be %s", path, members[i].name, kinds[members[i].type]);
        }
        if (r >= 0 && !f->project) {
                log_error("%s does not say which project the session works in: \"project\": \"NAME\"", path);
                return -EINVAL;
        }
        return r == -ENOMEM ? log_oom() : r;
}

static int take_id(const char *path, SessionFile *f) {
        const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
        const char *end = endswith(name, SUFFIX);

        f->id = end ? strndup(name, (size_t) (end - name)) : strdup(name);
        if (!f->id)
                return log_oom();
        if (end && session_id_valid(f->id))
                return 0;
        log_error("%s: the file of a session is named after it, ID" SUFFIX ", with an ID of 1 to 28 of a-z and 0-9", path);
        return -EINVAL;
}

static int check_alone(const Request *q) {
        if (!q->project && !q->id && !q->provider && !q->model && !q->network && !q->allow && !q->env && !q->keep_terminal && !q->no_terminal &&
            !q->remove && q->n_operands == 0)
                return 0;
        log_error("--file says all of a session: a command, and options that say something of it, belong in %s", q->file);
        return -EINVAL;
}

int session_file_read(const Request *q, SessionFile *ret) {
        _cleanup_(session_file_done) SessionFile f = {};
        _cleanup_free_ char *text = NULL;
        size_t size;

        int r = check_alone(q);
        if (r >= 0)
                r = take_id(q->file, &f);
        if (r >= 0)
                r = read_text(q->file, &text, &size, &f.changed);
        if (r >= 0)
                r = parse(q->file, text, size, &f);
        if (r < 0)
                return EXIT_CONFIGURATION;
        f.request = *q;
        f.request.id = f.id;
        f.request.project = f.project;
        f.request.network = f.network;
        f.request.provider = f.provider;
        f.request.model = f.model;
        f.request.protocol = f.protocol;
        f.request.allow = f.allow;
        f.request.env = f.env;
        f.request.operands = f.command;
        f.request.n_operands = strv_length(f.command);
        *ret = f;
        f = (SessionFile){};
        return EXIT_OK;
}
