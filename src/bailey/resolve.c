/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bailey/resolve.h"
#include "basic/fd.h"
#include "basic/text.h"

void resolved_path_done(ResolvedPath *p) {
        for (size_t i = 0; i < p->n_links; i++) {
                free(p->links[i].path);
                free(p->links[i].text);
        }
        free(p->links);
        free(p->real);
        *p = (ResolvedPath){};
}

static int add_link(ResolvedPath *p, const char *path, const char *text, const struct stat *st) {
        PathLink *grown = reallocarray(p->links, p->n_links + 1, sizeof(PathLink));
        if (!grown)
                return -ENOMEM;
        p->links = grown;
        PathLink *link = &p->links[p->n_links++];
        *link = (PathLink){.path = strdup(path), .text = strdup(text), .device = st->st_dev, .inode = st->st_ino};
        return link->path && link->text ? 0 : -ENOMEM;
}

/* Goes down by descriptors: each component is looked up in the very directory that was looked at before, so that whoever swaps a
 * directory for a link meanwhile cannot lead the walk astray. */
typedef struct Walk {
        int fd;              /* O_PATH, of what was walked */
        char done[PATH_MAX]; /* its name, without links, "" for the root */
        size_t length;
        char rest[PATH_MAX * 2]; /* still to come */
        ResolvedPath *result;
        char here[PATH_MAX]; /* the working directory's name, "" when it has none */
} Walk;

static int walk_to_root(Walk *w) {
        safe_close(w->fd);
        w->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
        w->length = 0;
        return w->fd < 0 ? -errno : 0;
}

/* `link` is a symbolic link named `name` in w: what it says takes its place. An absolute text starts over. */
static int follow(Walk *w, int link, const struct stat *st, const char *name) {
        char text[PATH_MAX], rest[sizeof(w->rest)], path[PATH_MAX + NAME_MAX + 2];

        ssize_t n = readlinkat(link, "", text, sizeof(text) - 1);
        if (n < 0)
                return -errno;
        text[n] = 0;
        (void) snprintf(path, sizeof(path), "%s/%s", w->done, name);
        int r = add_link(w->result, path, text, st);
        if (r < 0)
                return r;
        if (w->result->n_links > RESOLVE_LINKS_MAX)
                return -ELOOP;
        if (snprintf(rest, sizeof(rest), "%s/%s", text, w->rest) >= (int) sizeof(rest))
                return -ENAMETOOLONG;
        memcpy(w->rest, rest, strlen(rest) + 1);
        if (text[0] == '/') {
                r = walk_to_root(w);
                w->done[0] = 0;
        }
        return r;
}

static int step_up(Walk *w) {
        if (w->length == 0)
                return 0;
        while (w->length > 0 && w->done[--w->length] != '/')
                ;
        w->done[w->length] = 0;
        if (w->result->error < 0)
                return 0;
        int up = openat(w->fd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (up < 0)
                return -errno;
        safe_close(w->fd);
        w->fd = up;
        return 0;
}

static bool leads_here(const Walk *w, const char *name) {
        return strncmp(w->here, w->done, w->length) == 0 && w->here[w->length] == '/' && streq(w->here + w->length + 1, name);
}

/* The working directory was opened by whoever started us, so it is looked at as what it is and not by its name: directories above it may
 * be closed to this account. The kernel names it without links, so an equal name is no guess. */
static int enter_here(Walk *w) {
        int fd = open(".", O_PATH | O_DIRECTORY | O_CLOEXEC);
        if (fd >= 0 && w->result->error == -EACCES)
                w->result->error = 0;
        return fd;
}

static int step_down(Walk *w, const char *name) {
        _cleanup_close_ int next = -EBADF;
        size_t n = strlen(name);
        struct stat st;

        /* Below something that is not there nothing can be looked at; the name is still followed by text. */
        bool here = (w->result->error == 0 || w->result->error == -EACCES) && leads_here(w, name);
        if (w->result->error == 0 || here) {
                next = here ? enter_here(w) : openat(w->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
                if (next < 0)
                        w->result->error = -errno;
                else if (fstat(next, &st) < 0)
                        return -errno;
                else if (S_ISLNK(st.st_mode))
                        return follow(w, next, &st, name);
        }
        if (w->length + 1 + n >= sizeof(w->done))
                return -ENAMETOOLONG;
        w->done[w->length++] = '/';
        memcpy(w->done + w->length, name, n + 1);
        w->length += n;
        if (next >= 0) {
                safe_close(w->fd);
                w->fd = TAKE_FD(next);
        }
        return 0;
}

/* The next component of w->rest. */
static int step(Walk *w) {
        char name[NAME_MAX + 1];
        const char *at = w->rest + strspn(w->rest, "/");
        size_t n = strcspn(at, "/");

        if (n >= sizeof(name))
                return -ENAMETOOLONG;
        memcpy(name, at, n);
        name[n] = 0;
        memmove(w->rest, at + n, strlen(at + n) + 1);
        if (n == 0 || streq(name, "."))
                return 0;
        return streq(name, "..") ? step_up(w) : step_down(w, name);
}

/* Most paths have no link in them, and the kernel says so in one call. 0 when it could not settle the matter, > 0 when it did. */
static int look_plain(const char *path, ResolvedPath *result) {
        struct open_how how = {.flags = O_PATH | O_CLOEXEC, .resolve = RESOLVE_NO_SYMLINKS};
        struct stat st;

        _cleanup_close_ int fd = (int) syscall(SYS_openat2, AT_FDCWD, path, &how, sizeof(how));
        if (fd < 0) {
                if (errno != ENOENT)
                        return 0;
                result->error = -ENOENT; /* a link before the missing part would have been ELOOP */
                return 1;
        }
        if (fstat(fd, &st) < 0)
                return -errno;
        result->device = st.st_dev;
        result->inode = st.st_ino;
        result->mode = st.st_mode;
        return 1;
}

static int resolve_plain(const char *path, ResolvedPath *ret) {
        ResolvedPath result = {};

        int r = look_plain(path, &result);
        if (r <= 0)
                return r;
        result.real = strdup(path);
        if (!result.real)
                return -ENOMEM;
        *ret = result;
        return 1;
}

/* Behind a link there is seldom another: what is left is looked at in one piece. As above. */
static int look_rest(Walk *w) {
        char path[PATH_MAX];
        size_t length = w->length;

        if (w->result->error < 0)
                return 0;
        memcpy(path, w->done, length);
        for (const char *at = w->rest + strspn(w->rest, "/"); *at;) {
                size_t n = strcspn(at, "/");
                if ((n <= 2 && strncmp(at, "..", n) == 0) || length + 1 + n >= sizeof(path))
                        return 0; /* upward is to be walked */
                path[length++] = '/';
                memcpy(path + length, at, n);
                length += n;
                at += n + strspn(at + n, "/");
        }
        path[length] = 0;
        int r = length > 0 ? look_plain(path, w->result) : 0;
        if (r <= 0)
                return r;
        memcpy(w->done, path, length + 1);
        w->length = length;
        return r;
}

static int walk(Walk *w) {
        struct stat st;

        int r = walk_to_root(w);
        while (r >= 0 && w->rest[0]) {
                size_t links = w->result->n_links;
                r = step(w);
                if (r >= 0 && w->result->n_links > links) {
                        r = look_rest(w);
                        if (r > 0)
                                return 0;
                }
        }
        if (r < 0 || w->result->error < 0)
                return r;
        if (fstat(w->fd, &st) < 0)
                return -errno;
        w->result->device = st.st_dev;
        w->result->inode = st.st_ino;
        w->result->mode = st.st_mode;
        return 0;
}

int path_resolve(const char *path, ResolvedPath *ret) {
        _cleanup_(resolved_path_done) ResolvedPath result = {};
        _cleanup_free_ Walk *w = NULL;

        if (path[0] != '/' || strlen(path) >= PATH_MAX)
                return path[0] != '/' ? -EINVAL : -ENAMETOOLONG;
        int r = resolve_plain(path, ret);
        if (r != 0)
                return MIN(r, 0);
        w = malloc(sizeof(Walk)); /* its texts are long, and mostly empty */
        if (!w)
                return -ENOMEM;
        w->fd = -EBADF;
        w->result = &result;
        w->length = 0;
        w->done[0] = 0;
        memcpy(w->rest, path, strlen(path) + 1);
        if (!getcwd(w->here, sizeof(w->here)) || w->here[0] != '/')
                w->here[0] = 0;
        r = walk(w);
        safe_close(w->fd);
        if (r < 0)
                return r;
        result.real = strdup(w->length ? w->done : "/");
        if (!result.real)
                return -ENOMEM;
        *ret = result;
        result = (ResolvedPath){};
        return 0;
}
