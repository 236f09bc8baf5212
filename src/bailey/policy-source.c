/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <unistd.h>

#include "bailey/policy-source.h"
#include "bailey/toml.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/parse.h"
#include "basic/path.h"
#include "basic/text.h"

void policy_source_done(PolicySource *s) {
        safe_close(s->fd);
        free(s->path);
        free(s->base);
        free(s->text);
        *s = POLICY_SOURCE_NONE;
}

/* A supervisor hands the file itself over: it is read whether or not it has a name. */
static int open_named(const char *path, bool *ret_handed_over) {
        const char *number = startswith(path, "/proc/self/fd/");
        int given, fd;

        *ret_handed_over = number && parse_fd(number, &given) >= 0;
        if (*ret_handed_over) {
                fd = fcntl(given, F_DUPFD_CLOEXEC, 3);
                if (fd >= 0)
                        (void) lseek(fd, 0, SEEK_SET);
        } else
                /* O_NONBLOCK: a fifo must not hold us up. */
                fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        return fd < 0 ? -errno : fd;
}

static int check(PolicySource *s) {
        if (fstat(s->fd, &s->status) < 0)
                return -errno;
        if (!S_ISREG(s->status.st_mode))
                return S_ISDIR(s->status.st_mode) ? -EISDIR : -EINVAL;
        return 0;
}

/* The name that an open file has, when it is one that leads to it; else the one it was given by. */
static int name_source(PolicySource *s, const char *given) {
        char link[32], text[PATH_MAX];
        struct stat there;

        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", s->fd);
        ssize_t n = readlink(link, text, sizeof(text) - 1);
        if (n > 0) {
                text[n] = 0;
                if (text[0] == '/' && lstat(text, &there) >= 0 && there.st_dev == s->status.st_dev && there.st_ino == s->status.st_ino) {
                        s->path = strdup(text);
                        s->base = path_parent(text);
                        return s->path && s->base ? 0 : -ENOMEM;
                }
        }
        s->path = strdup(given);
        return s->path ? 0 : -ENOMEM;
}

int policy_source_open(const char *path, PolicySource *ret) {
        _cleanup_(policy_source_done) PolicySource s = POLICY_SOURCE_NONE;
        bool handed_over;

        s.fd = open_named(path, &handed_over);
        int r = s.fd < 0 ? s.fd : check(&s);
        if (r < 0)
                return r;
        r = name_source(&s, path);
        if (r < 0)
                return r;
        /* A place without /proc, or a file that was renamed just now. */
        if (!s.base && !handed_over) {
                free(s.path);
                s.path = realpath(path, NULL);
                s.base = s.path ? path_parent(s.path) : NULL;
                if (!s.base)
                        return s.path ? -ENOMEM : -errno;
        }
        *ret = s;
        s = POLICY_SOURCE_NONE;
        return 0;
}

int policy_source_open_found(const char *directory, bool here, const char *name, PolicySource *ret) {
        _cleanup_(policy_source_done) PolicySource s = POLICY_SOURCE_NONE;
        char path[PATH_MAX];

        if (snprintf(path, sizeof(path), "%s/%s", streq(directory, "/") ? "" : directory, name) >= (int) sizeof(path))
                return -ENAMETOOLONG;
        /* Whatever a link that came with a project leads to, a device among them, is looked at before it is opened. */
        s.fd = open(here ? name : path, O_PATH | O_CLOEXEC);
        if (s.fd < 0)
                return -errno;
        s.path = strdup(path);
        s.base = strdup(directory);
        if (!s.path || !s.base)
                return -ENOMEM;
        if (fstat(s.fd, &s.status) < 0)
                return -errno;
        *ret = s;
        s = POLICY_SOURCE_NONE;
        return 0;
}

int policy_source_read(PolicySource *s) {
        _cleanup_close_ int fd = TAKE_FD(s->fd);

        if (fcntl(fd, F_GETFL) & O_PATH) {
                /* The very same file, by whatever name. */
                char name[32];
                (void) snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
                int opened = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
                if (opened < 0)
                        return -errno;
                safe_close(fd);
                fd = opened;
        }
        return read_fd_full(fd, TOML_SIZE_MAX, &s->text, &s->size);
}

bool policy_source_is_own(const struct stat *st, const Account *a, const char **ret_reason) {
        /* Where everybody has a group of their own, its right to write is nobody else's. */
        bool private_group = st->st_gid == a->gid && a->gid == a->uid && streq(a->name, a->group_name);

        if (st->st_uid != a->uid && st->st_uid != 0)
                *ret_reason = "it belongs to another account";
        else if ((st->st_mode & S_IWOTH) || ((st->st_mode & S_IWGRP) && !private_group))
                *ret_reason = "other accounts can write to it (chmod go-w)";
        else
                return true;
        return false;
}

int policy_source_parse(const PolicySource *s, const char *name, PolicyKind kind, const PolicyPlaces *places, Findings *findings,
                        Layer **ret) {
        return policy_file_parse(&(PolicyText){
                .text = s->text,
                .size = s->size,
                .name = name ?: s->path,
                .base = s->base,
                .kind = kind,
                .places = places,
        }, findings, ret);
}

int policy_source_load(const char *path, const PolicyPlaces *places, Findings *findings, struct stat *ret_status, Layer **ret) {
        _cleanup_(policy_source_done) PolicySource s = POLICY_SOURCE_NONE;

        int r = policy_source_open(path, &s);
        if (r >= 0)
                r = policy_source_read(&s);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                finding_error(findings, "%s: the policy cannot be read: %s", path,
                              r == -EINVAL ? "not a regular file" : strerror(-r));
                return 0;
        }
        *ret_status = s.status;
        return policy_source_parse(&s, NULL, POLICY_FILE, places, findings, ret);
}
