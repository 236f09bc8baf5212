/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bailey/trust-store.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"

/* "bailey-trust 1", then lines of "DIGEST PATH" in which a newline is \n and a backslash \\. */
#define HEADER "bailey-trust 1\n"

TrustStore *trust_store_free(TrustStore *s) {
        if (!s)
                return NULL;
        for (size_t i = 0; i < s->n; i++)
                free(s->entries[i].path);
        free(s->entries);
        return mfree(s);
}

const TrustEntry *trust_store_find(const TrustStore *s, const char *path) {
        for (size_t i = 0; i < s->n; i++)
                if (streq(s->entries[i].path, path))
                        return &s->entries[i];
        return NULL;
}

/* Takes path always. */
static int add(TrustStore *s, char *path, const uint8_t digest[SHA256_SIZE]) {
        TrustEntry *grown = path ? reallocarray(s->entries, s->n + 1, sizeof(TrustEntry)) : NULL;

        if (!grown) {
                free(path);
                return -ENOMEM;
        }
        s->entries = grown;
        grown[s->n] = (TrustEntry){.path = path};
        memcpy(grown[s->n++].digest, digest, SHA256_SIZE);
        return 0;
}

static void take_out(TrustStore *s, size_t at) {
        free(s->entries[at].path);
        s->n--;
        memmove(s->entries + at, s->entries + at + 1, (s->n - at) * sizeof(TrustEntry));
}

/* NULL for anything that write_path() does not write, and out of memory. */
static char *read_path(const char *s, size_t size) {
        char *path = malloc(size + 1);
        size_t n = 0;

        if (!path)
                return NULL;
        for (size_t i = 0; i < size; i++) {
                if (s[i] != '\\') {
                        path[n++] = s[i];
                        continue;
                }
                if (++i == size || (s[i] != 'n' && s[i] != '\\'))
                        return mfree(path);
                path[n++] = s[i] == 'n' ? '\n' : '\\';
        }
        path[n] = 0;
        return path;
}

int trust_store_parse(const char *text, size_t size, TrustStore **ret) {
        _cleanup_(trust_store_freep) TrustStore *s = calloc(1, sizeof(TrustStore));
        const char *at = text + STRLEN(HEADER), *end = text + size;

        if (!s)
                return -ENOMEM;
        if (size < STRLEN(HEADER) || memcmp(text, HEADER, STRLEN(HEADER)) != 0 || memchr(text, 0, size))
                return -EBADMSG;
        while (at < end) {
                const char *line = memchr(at, '\n', (size_t) (end - at));
                const size_t digits = 2 * SHA256_SIZE;
                uint8_t digest[SHA256_SIZE];

                if (!line || (size_t) (line - at) < digits + 2 || at[digits] != ' ' || at[digits + 1] != '/' ||
                    sha256_from_string(at, digits, digest) < 0)
                        return -EBADMSG;
                char *path = read_path(at + digits + 1, (size_t) (line - at) - digits - 1);
                if (!path)
                        return -EBADMSG;
                if (trust_store_find(s, path)) {
                        free(path);
                        return -EBADMSG;
                }
                int r = add(s, path, digest);
                if (r < 0)
                        return r;
                at = line + 1;
        }
        *ret = TAKE_PTR(s);
        return 0;
}

/* What others can write to could hold anything. */
static int check_own(const struct stat *st, uid_t uid, const char *what, const char *directory, char **ret_problem) {
        if (st->st_uid != uid && st->st_uid != 0)
                return problem_set(ret_problem, "%s%s belongs to another account (uid %u), so nothing is trusted", directory, what,
                                   st->st_uid);
        if (st->st_mode & (S_IWGRP | S_IWOTH))
                return problem_set(ret_problem, "other accounts can write to %s%s, so nothing is trusted; see what is in it, then "
                                   "chmod go-w it", directory, what);
        return 0;
}

static int load_at(int directory, const char *name, uid_t uid, TrustStore **ret, char **ret_problem) {
        _cleanup_free_ char *text = NULL;
        struct stat st;
        size_t size;

        if (fstat(directory, &st) < 0)
                return -errno;
        int r = check_own(&st, uid, "", name, ret_problem);
        if (r < 0)
                return r;
        _cleanup_close_ int fd = openat(directory, TRUST_STORE_NAME, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW);
        if (fd < 0 && errno == ENOENT) {
                *ret = calloc(1, sizeof(TrustStore));
                return *ret ? 0 : -ENOMEM;
        }
        if (fd < 0)
                return errno == ELOOP ? problem_set(ret_problem, "%s/" TRUST_STORE_NAME " is a link, so nothing is trusted", name) : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return problem_set(ret_problem, "%s/" TRUST_STORE_NAME " is no file, so nothing is trusted", name);
        r = check_own(&st, uid, "/" TRUST_STORE_NAME, name, ret_problem);
        if (r >= 0)
                r = read_fd_full(fd, TRUST_STORE_SIZE_MAX, &text, &size);
        if (r >= 0)
                r = trust_store_parse(text, size, ret);
        if ((r == -EBADMSG && !*ret_problem) || r == -EFBIG)
                return problem_set(ret_problem, "%s/" TRUST_STORE_NAME " is damaged, so nothing is trusted; remove it and accept your "
                                   "files again", name);
        return r;
}

int trust_store_load(const char *config_directory, uid_t uid, TrustStore **ret, char **ret_problem) {
        _cleanup_close_ int fd = open(config_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

        *ret_problem = NULL;
        if (fd < 0 && errno == ENOENT) {
                *ret = calloc(1, sizeof(TrustStore));
                return *ret ? 0 : -ENOMEM;
        }
        return fd < 0 ? -errno : load_at(fd, config_directory, uid, ret, ret_problem);
}

static void write_path(FILE *f, const char *path) {
        for (; *path; path++)
                if (*path == '\n' || *path == '\\')
                        fputs(*path == '\n' ? "\\n" : "\\\\", f);
                else
                        fputc(*path, f);
}

static int print(const TrustStore *s, char **ret, size_t *ret_size) {
        FILE *f = open_memstream(ret, ret_size);

        if (!f)
                return -ENOMEM;
        fputs(HEADER, f);
        for (size_t i = 0; i < s->n; i++) {
                char digest[2 * SHA256_SIZE + 1];
                sha256_to_string(s->entries[i].digest, digest);
                fprintf(f, "%s ", digest);
                write_path(f, s->entries[i].path);
                fputc('\n', f);
        }
        bool failed = ferror(f);
        return fclose(f) != 0 || failed ? -ENOMEM : 0;
}

/* Whoever reads sees the old store or the new one, and after a power cut too. */
static int replace(int directory, const TrustStore *s) {
        static const char temporary[] = "." TRUST_STORE_NAME ".new";
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        int r = print(s, &text, &size);
        if (r < 0)
                return r;
        if (size > TRUST_STORE_SIZE_MAX)
                return -EFBIG;
        /* The lock is held: what lies there is of a writer that died. */
        if (unlinkat(directory, temporary, 0) < 0 && errno != ENOENT)
                return -errno;
        _cleanup_close_ int fd = openat(directory, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, text, size);
        if (r >= 0 && fsync(fd) < 0)
                r = -errno;
        if (r >= 0 && renameat(directory, temporary, directory, TRUST_STORE_NAME) < 0)
                r = -errno;
        if (r < 0) {
                (void) unlinkat(directory, temporary, 0);
                return r;
        }
        return fsync(directory) < 0 ? -errno : 0;
}

static int make_directory(const char *path) {
        _cleanup_free_ char *copy = strdup(path);

        if (!copy)
                return -ENOMEM;
        for (char *p = strchr(copy + 1, '/'); p; p = strchr(p + 1, '/')) {
                *p = 0;
                if (mkdir(copy, 0700) < 0 && errno != EEXIST && access(copy, F_OK) < 0)
                        return -errno;
                *p = '/';
        }
        return mkdir(copy, 0700) < 0 && errno != EEXIST ? -errno : 0;
}

/* The store as it is, with its directory locked until *ret_fd is closed. */
static int begin(const char *config_directory, uid_t uid, int *ret_fd, TrustStore **ret, char **ret_problem) {
        *ret_problem = NULL;
        int r = make_directory(config_directory);
        if (r < 0)
                return r;
        _cleanup_close_ int fd = open(config_directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || flock(fd, LOCK_EX) < 0)
                return -errno;
        r = load_at(fd, config_directory, uid, ret, ret_problem);
        if (r >= 0)
                *ret_fd = TAKE_FD(fd);
        return r;
}

int trust_store_change(const char *config_directory, uid_t uid, const char *path, const uint8_t *digest, char **ret_problem) {
        _cleanup_(trust_store_freep) TrustStore *s = NULL;
        _cleanup_close_ int fd = -EBADF;

        int r = begin(config_directory, uid, &fd, &s, ret_problem);
        if (r < 0)
                return r;
        const TrustEntry *old = trust_store_find(s, path);
        if (!digest && !old)
                return 0;
        if (old)
                take_out(s, (size_t) (old - s->entries));
        if (digest)
                r = add(s, strdup(path), digest);
        if (r >= 0)
                r = replace(fd, s);
        return r < 0 ? r : 1;
}

int trust_store_forget(const char *config_directory, uid_t uid, const uint8_t digest[SHA256_SIZE], char **ret_problem) {
        _cleanup_(trust_store_freep) TrustStore *s = NULL;
        _cleanup_close_ int fd = -EBADF;
        int n = 0;

        int r = begin(config_directory, uid, &fd, &s, ret_problem);
        if (r < 0)
                return r;
        for (size_t i = s->n; i-- > 0;)
                if (memcmp(s->entries[i].digest, digest, SHA256_SIZE) == 0) {
                        take_out(s, i);
                        n++;
                }
        r = n > 0 ? replace(fd, s) : 0;
        return r < 0 ? r : n;
}
