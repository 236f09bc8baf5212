/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bailey/git-watch.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/path.h"
#include "basic/text.h"

#define FILE_SIZE_MAX (256U * 1024U) /* of a configuration; a larger one is told of, not read */
#define PLACES_MAX 64U               /* directories that are looked at */
#define WORDS_MAX 256U               /* hooks, or lines of one file: what a session makes more of is told of as that */
#define TOLD_MAX 16U

/* Every state is a list of words, each of which is told when it is there afterwards and was not before. */
struct GitWatch {
        char **directories;
        char **before;
};

GitWatch *git_watch_free(GitWatch *w) {
        if (!w)
                return NULL;
        strv_free(w->directories);
        strv_free(w->before);
        return mfree(w);
}

/* A key of git-config(1) is written out in its file, whatever its case, and each that names a program, a file of more settings or a
 * directory of hooks has one of these in it, or its section has. Better one line too many than one too few. */
static bool names_program(const char *s, size_t size) {
        static const char *const words[] = {
                "fsmonitor", "hook",    "command",   "cmd",    "helper", "driver", "textconv", "program",  "editor",     "pager",       "askpass",
                "clean",     "smudge",  "process",   "path",   "include", "alias", "external", "proxy",    "uploadpack", "receivepack", "template",
                "insteadof", "update",  "vcs",       "filter", "protocol", "browser", "attributesfile", "worktree", "credential",
        };
        static const char harmless[] = "logallrefupdates";
        char text[128];

        (void) snprintf(text, sizeof(text), "%.*s", (int) MIN(size, sizeof(text)), s);
        if (size >= sizeof(text))
                return true; /* no key of git's is as long */
        if (strncasecmp(text, harmless, sizeof(harmless) - 1) == 0)
                return false;
        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (strcasestr(text, words[i]))
                        return true;
        return false;
}

/* Whether a line has to do with programs: by its key, or by the section it stands in, which *section keeps from line to line. */
static bool line_names_program(const char *line, bool *section) {
        const char *at = line + strspn(line, " \t");

        if (*at == '[') {
                const char *end = strrchr(at, ']'); /* a name in quotes may have one, too */
                *section = names_program(at, strcspn(at, " \t\"]"));
                if (*section || !end)
                        return true;
                at = end + 1;
                at += strspn(at, " \t");
        }
        if (*at == 0 || *at == '#' || *at == ';')
                return false;
        return *section || names_program(at, strcspn(at, "="));
}

static int open_file(int directory, const char *name) {
        struct stat st;

        _cleanup_close_ int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        return S_ISREG(st.st_mode) ? TAKE_FD(fd) : -EINVAL;
}

static int look_at_settings(int directory, const char *where, const char *name, char ***list) {
        _cleanup_close_ int fd = open_file(directory, name);
        _cleanup_free_ char *text = NULL;
        bool section = false;
        unsigned n = 0;
        size_t size;

        if (fd < 0)
                return fd == -ENOENT || fd == -ENOTDIR ? 0 : strv_extend_format(list, "%s/%s is no file", where, name);
        int r = read_fd_full(fd, FILE_SIZE_MAX, &text, &size);
        if (r < 0)
                return r == -ENOMEM ? r : strv_extend_format(list, "%s/%s cannot be read", where, name);
        for (size_t i = 0; i < size; i++)
                text[i] = text[i] ? text[i] : ' '; /* nothing hides behind a NUL */
        for (char *save = NULL, *line = strtok_r(text, "\n", &save); line && r >= 0 && n <= WORDS_MAX; line = strtok_r(NULL, "\n", &save))
                if (line_names_program(line, &section))
                        r = n++ == WORDS_MAX ? strv_extend_format(list, "%s/%s has many such lines", where, name)
                                             : strv_extend_format(list, "%s/%s says \"%.200s\"", where, name, line + strspn(line, " \t"));
        return r;
}

/* A pointer: "gitdir: PATH", or where shared things are. */
static int look_at_pointer(int directory, const char *where, const char *name, char ***list) {
        _cleanup_close_ int fd = open_file(directory, name);
        _cleanup_free_ char *text = NULL;

        if (fd < 0)
                return fd == -ENOENT || fd == -ENOTDIR ? 0 : strv_extend_format(list, "%s/%s is no file", where, name);
        int r = read_fd_full(fd, FILE_SIZE_MAX, &text, NULL);
        if (r < 0)
                return r == -ENOMEM ? r : strv_extend_format(list, "%s/%s cannot be read", where, name);
        text[strcspn(text, "\n")] = 0;
        return strv_extend_format(list, "%s/%s leads to \"%.200s\"", where, name, text);
}

/* The kernel's own time of the last change: nobody inside can set it back. */
static int look_at_hooks(int directory, const char *where, char ***list) {
        struct stat st;
        unsigned n = 0;
        int r = 0;

        int fd = openat(directory, "hooks", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (fd < 0)
                return errno == ENOENT ? 0 : strv_extend_format(list, "%s/hooks is no directory", where);
        DIR *d = fd_opendir(fd);
        if (!d)
                return -ENOMEM;
        for (const struct dirent *e; r >= 0 && (e = readdir(d));) {
                if (e->d_name[0] == '.' || endswith(e->d_name, ".sample") || fstatat(fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                        continue;
                if (n++ == WORDS_MAX) {
                        r = strv_extend_format(list, "%s/hooks has many", where);
                        break;
                }
                r = strv_extend_format(list, "%s/hooks/%s is a hook\n%llu.%llu.%ld", where, e->d_name, (unsigned long long) st.st_ino,
                        (unsigned long long) st.st_ctim.tv_sec, st.st_ctim.tv_nsec);
        }
        closedir(d);
        return r;
}

static int look_at_repository(int fd, const char *where, char ***list) {
        int r = look_at_settings(fd, where, "config", list);
        if (r >= 0)
                r = look_at_settings(fd, where, "config.worktree", list);
        if (r >= 0)
                r = look_at_pointer(fd, where, "commondir", list);
        return r < 0 ? r : look_at_hooks(fd, where, list);
}

static int look(const char *directory, char ***list) {
        _cleanup_close_ int fd = open(path_from_working_directory(directory), O_PATH | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW), git = -EBADF;
        _cleanup_free_ char *where = NULL;
        bool itself = endswith(directory, "/.git");
        struct stat st;

        if (fd < 0 || (!itself && fstatat(fd, ".git", &st, AT_SYMLINK_NOFOLLOW) < 0))
                return 0;
        if (asprintf(&where, "%s%s", streq(directory, "/") ? "" : directory, itself ? "" : "/.git") < 0)
                return -ENOMEM;
        if (!itself && S_ISREG(st.st_mode))
                return look_at_pointer(fd, directory, ".git", list);
        git = openat(fd, itself ? "." : ".git", O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
        if (git < 0)
                return errno == EACCES ? 0 : strv_extend_format(list, "%s is no directory", where);
        return look_at_repository(git, where, list);
}

/* The granted directory, and what lies between it and the working directory. */
static int add_places(GitWatch *w, const char *granted, const char *working_directory) {
        _cleanup_free_ char *at = path_beneath(working_directory, granted) ? strdup(working_directory) : strdup(granted);

        if (!at)
                return -ENOMEM;
        while (strv_length(w->directories) < PLACES_MAX) {
                int r = strv_contains(w->directories, at) ? 0 : strv_extend(&w->directories, at);
                if (r < 0 || streq(at, granted))
                        return r;
                char *slash = strrchr(at, '/');
                slash[slash == at] = 0;
        }
        return 0;
}

int git_watch_begin(const Policy *p, GitWatch **ret) {
        _cleanup_(git_watch_freep) GitWatch *w = calloc(1, sizeof(GitWatch));
        int r = w ? 0 : -ENOMEM;

        for (size_t i = 0; i < p->n_entries && r >= 0; i++) {
                const ResolvedPath *to = &p->entries[i].rule->resolved;
                if ((p->entries[i].rights & RIGHT_WRITE) && to->error == 0 && S_ISDIR(to->mode))
                        r = add_places(w, to->real, p->working_directory);
        }
        if (r < 0)
                return r;
        if (!w->directories) {
                *ret = NULL;
                return 0;
        }
        for (char **s = w->directories; *s && r >= 0; s++)
                r = look(*s, &w->before);
        if (r >= 0)
                *ret = TAKE_PTR(w);
        return r;
}

int git_watch_end(const GitWatch *w, char ***ret) {
        _cleanup_strv_free_ char **after = NULL, **list = NULL;
        int r = 0;

        for (char **s = w ? w->directories : NULL; s && *s && r >= 0; s++)
                r = look(*s, &after);
        for (char **s = after; s && *s && r >= 0; s++)
                if (!strv_contains(w->before, *s)) {
                        /* Behind a newline stands what only tells one from another. */
                        (*s)[strcspn(*s, "\n")] = 0;
                        r = strv_extend(&list, *s);
                        if (strv_length(list) == TOLD_MAX)
                                break;
                }
        if (r >= 0)
                *ret = TAKE_PTR(list);
        return r;
}
