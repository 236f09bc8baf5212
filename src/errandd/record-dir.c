/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "errandd/record-dir.h"

#define RECORDS_NAME ".records"
#define DAMAGED_NAME ".damaged"
#define ASIDE_TRIES 1000U /* of one id */
#define MINTED_SIZE 8U /* 36^8: two that are the same are not met, and are tried again if so */
#define MINT_TRIES 16U

/* Ours alone, or whoever could change it would decide what sessions may do. */
static int open_private_dir(int at, const char *name) {
        _cleanup_close_ int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (st.st_uid != geteuid() || (st.st_mode & 0077))
                return -EPERM;
        return TAKE_FD(fd);
}

static int make_private_dir(int at, const char *name) {
        if (mkdirat(at, name, 0700) < 0)
                return -errno;
        /* mkdir(2) inherits the setgid bit of the state directory, and a default ACL of it would open the record. */
        return fchmodat(at, name, 0700, 0) < 0 ? -errno : 0;
}

int record_root_open(int state_dir) {
        int r = make_private_dir(state_dir, RECORDS_NAME);
        if (r >= 0 && fsync(state_dir) < 0)
                r = -errno;
        if (r < 0 && r != -EEXIST)
                return r;
        return open_private_dir(state_dir, RECORDS_NAME);
}

int record_mint_id(char ret[static SESSION_ID_MAX + 1]) {
        static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz0123456789";
        uint8_t random[4 * MINTED_SIZE];
        size_t n = 0;

        while (n < MINTED_SIZE) {
                if (getrandom(random, sizeof(random), 0) != (ssize_t) sizeof(random))
                        return -EIO;
                for (size_t i = 0; i < sizeof(random) && n < MINTED_SIZE; i++)
                        if (random[i] < 252) /* 7 * 36: no letter is likelier than another */
                                ret[n++] = alphabet[random[i] % 36];
        }
        ret[n] = 0;
        return 0;
}

int record_create(int root, char id[static SESSION_ID_MAX + 1], int *ret_dir) {
        char name[SESSION_ID_MAX + 1];
        bool mint = !id[0];
        int r = -EEXIST;

        if (!mint && !session_id_valid(id))
                return -EINVAL;
        for (unsigned i = 0; i < (mint ? MINT_TRIES : 1) && r == -EEXIST; i++) {
                r = mint ? record_mint_id(name) : (strcpy(name, id), 0);
                if (r < 0)
                        return r;
                r = make_private_dir(root, name);
        }
        if (r < 0)
                return r;
        int dir = open_private_dir(root, name);
        if (dir < 0) {
                (void) unlinkat(root, name, AT_REMOVEDIR);
                return dir;
        }
        strcpy(id, name);
        *ret_dir = dir;
        return 0;
}

int record_open(int root, const char *id) {
        return session_id_valid(id) ? open_private_dir(root, id) : -EINVAL;
}

static int remove_files(int dir, const char *except) {
        DIR *d = fd_opendir(openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        int r = 0;

        if (!d)
                return negative_errno();
        for (struct dirent *e; r >= 0 && (errno = 0, e = readdir(d));) {
                if (streq(e->d_name, ".") || streq(e->d_name, "..") || streq(e->d_name, except))
                        continue;
                if (unlinkat(dir, e->d_name, 0) < 0 && errno != ENOENT)
                        r = -errno;
        }
        if (r >= 0 && errno > 0)
                r = -errno;
        closedir(d);
        return r;
}

int record_remove(int root, const char *id) {
        _cleanup_close_ int dir = record_open(root, id);
        if (dir < 0)
                return dir;
        int r = remove_files(dir, RECORD_DESCRIPTION_NAME);
        if (r < 0)
                return r;
        if (unlinkat(dir, RECORD_DESCRIPTION_NAME, 0) < 0 && errno != ENOENT)
                return -errno;
        if (unlinkat(root, id, AT_REMOVEDIR) < 0 || fsync(root) < 0)
                return -errno;
        return 0;
}

/* Of a file's neighbours: the one that is being written, those that are ahead of it, the newest first, and the one of record_replace_file(). */
#define BEING_WRITTEN ".tmp"
static const char *const ahead[RECORD_AHEAD_MAX] = {".new", ".sync"};

#define NEIGHBOUR_MAX 80U

static bool plain_name(const char *name) {
        return name[0] && name[0] != '.' && !strchr(name, '/') && strlen(name) < 64;
}

static void neighbour(const char *name, const char *suffix, char ret[static NEIGHBOUR_MAX]) {
        (void) snprintf(ret, NEIGHBOUR_MAX, ".%s%s", name, suffix);
}

static int remove_neighbour(int dir, const char *name, const char *suffix) {
        char other[NEIGHBOUR_MAX];

        neighbour(name, suffix, other);
        return unlinkat(dir, other, 0) < 0 && errno != ENOENT ? -errno : 0;
}

int record_remove_unfinished(int root, const char *id) {
        _cleanup_close_ int dir = record_open(root, id);
        struct stat st;

        if (dir < 0)
                return dir;
        if (fstatat(dir, RECORD_DESCRIPTION_NAME, &st, AT_SYMLINK_NOFOLLOW) >= 0)
                return -EEXIST;
        int r = errno != ENOENT ? -errno : remove_neighbour(dir, RECORD_DESCRIPTION_NAME, BEING_WRITTEN);
        for (size_t i = 0; i < ELEMENTSOF(ahead) && r >= 0; i++)
                r = remove_neighbour(dir, RECORD_DESCRIPTION_NAME, ahead[i]);
        return r < 0 ? r : unlinkat(root, id, AT_REMOVEDIR) < 0 ? -errno : 0;
}

static int write_new(int dir, const char *name, const char *text, size_t size, bool sync) {
        _cleanup_close_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        int r = write_all(fd, text, size);
        if (r < 0)
                return r;
        return sync && fsync(fd) < 0 ? -errno : 0;
}

/* By way of a neighbour, so that at any moment it is the one text or the other. */
static int put(int dir, const char *name, const char *by, const char *as, const char *text, size_t size, bool sync) {
        char temporary[NEIGHBOUR_MAX];

        if (!plain_name(name))
                return -EINVAL;
        if (size > RECORD_FILE_MAX)
                return -EFBIG; /* it could not be read back */
        int r = remove_neighbour(dir, name, by); /* of a write that was cut short */
        if (r < 0)
                return r;
        neighbour(name, by, temporary);
        r = write_new(dir, temporary, text, size, sync);
        if (r >= 0 && renameat(dir, temporary, dir, as) < 0)
                r = -errno;
        if (r < 0)
                (void) unlinkat(dir, temporary, 0);
        return r;
}

/* The old text stays beside the new one until that is sure to be on disk, so that after an error it is in its place again: whoever was told that a change
 * failed does not find it later. */
int record_replace_file(int dir, const char *name, const char *text, size_t size) {
        char other[NEIGHBOUR_MAX];
        int r = plain_name(name) ? 0 : -EINVAL;

        if (r >= 0 && size > RECORD_FILE_MAX)
                r = -EFBIG; /* it could not be read back */
        if (r >= 0)
                r = remove_neighbour(dir, name, BEING_WRITTEN); /* of a write that was cut short */
        if (r < 0)
                return r;
        neighbour(name, BEING_WRITTEN, other);
        r = write_new(dir, other, text, size, true);
        bool exchanged = r >= 0 && renameat2(dir, other, dir, name, RENAME_EXCHANGE) >= 0, first = !exchanged && errno == ENOENT;
        if (r >= 0 && !exchanged && renameat(dir, other, dir, name) < 0) /* there was none, or the file system cannot */
                r = -errno;
        else if (r >= 0 && fsync(dir) < 0) {
                r = -errno;
                if (exchanged && renameat2(dir, other, dir, name, RENAME_EXCHANGE) < 0)
                        return r;
                if (first)
                        (void) unlinkat(dir, name, 0);
        }
        (void) unlinkat(dir, other, 0);
        return r;
}

int record_place_file(int dir, const char *name, const char *text, size_t size) {
        return put(dir, name, BEING_WRITTEN, name, text, size, false);
}

int record_write_ahead(int dir, const char *name, const char *text, size_t size) {
        char as[NEIGHBOUR_MAX];

        if (!plain_name(name))
                return -EINVAL;
        neighbour(name, ahead[0], as);
        return put(dir, name, BEING_WRITTEN, as, text, size, false);
}

static int open_one(int dir, const char *name, int flags) {
        struct stat st;

        /* O_NONBLOCK: not to wait for a fifo's other end; without effect on a regular file. */
        _cleanup_close_ int fd = openat(dir, name, flags | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
        if (fd < 0)
                return errno == ELOOP ? -EPERM : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_nlink != 1 || st.st_uid != geteuid())
                return -EPERM;
        return TAKE_FD(fd);
}

static int open_plain_file(int dir, const char *name, int flags) {
        return plain_name(name) ? open_one(dir, name, flags) : -EINVAL;
}

static int read_one(int dir, const char *name, char **ret, size_t *ret_size) {
        _cleanup_close_ int fd = open_one(dir, name, O_RDONLY);
        if (fd < 0)
                return fd;
        return read_fd_full(fd, RECORD_FILE_MAX, ret, ret_size);
}

int record_read_file(int dir, const char *name, char **ret, size_t *ret_size) {
        return plain_name(name) ? read_one(dir, name, ret, ret_size) : -EINVAL;
}

int record_read_ahead(int dir, const char *name, size_t which, char **ret, size_t *ret_size) {
        char other[NEIGHBOUR_MAX];

        if (!plain_name(name) || which >= ELEMENTSOF(ahead))
                return -EINVAL;
        neighbour(name, ahead[which], other);
        return read_one(dir, other, ret, ret_size);
}

/* Its text on disk first: until then the file of that name is the only one that is sure to be. */
static int settle(int dir, const char *from, const char *name) {
        _cleanup_close_ int fd = open_one(dir, from, O_RDONLY);
        if (fd < 0)
                return fd;
        if (fsync(fd) < 0 || renameat(dir, from, dir, name) < 0 || fsync(dir) < 0)
                return -errno;
        return 1;
}

/* Taken under a name of its own: what is written ahead meanwhile takes the other one. */
int record_settle(int dir, const char *name) {
        char newest[NEIGHBOUR_MAX], mine[NEIGHBOUR_MAX];

        if (!plain_name(name))
                return -EINVAL;
        neighbour(name, ahead[0], newest);
        neighbour(name, ahead[1], mine);
        /* One that could not be synced is left where it is: the kernel may say of it the next time that it is on disk. The next text is. */
        if (renameat(dir, newest, dir, mine) < 0)
                return errno == ENOENT ? 0 : -errno;
        return settle(dir, mine, name);
}

/* The other one goes first: it is older, or torn, and would be taken for a newer one. */
int record_settle_found(int dir, const char *name, size_t which) {
        char from[NEIGHBOUR_MAX];
        int r = plain_name(name) ? remove_neighbour(dir, name, BEING_WRITTEN) : -EINVAL;

        for (size_t i = 0; i < ELEMENTSOF(ahead) && r >= 0; i++)
                if (i != which)
                        r = remove_neighbour(dir, name, ahead[i]);
        if (r < 0 || which >= ELEMENTSOF(ahead))
                return r;
        neighbour(name, ahead[which], from);
        return settle(dir, from, name);
}

int record_open_append(int dir, const char *name) {
        return open_plain_file(dir, name, O_WRONLY | O_APPEND | O_CREAT);
}

int record_open_spool(int dir) {
        return open_plain_file(dir, "receipts.spool", O_RDWR | O_APPEND | O_CREAT);
}

int record_open_read(int dir, const char *name) {
        return open_plain_file(dir, name, O_RDONLY);
}

int record_watch_length(int fd, uint64_t *length) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if ((uint64_t) st.st_size < *length)
                return -ESTALE;
        *length = (uint64_t) st.st_size;
        return 0;
}

static int make_aside(int damaged, const char *id, char **ret_name) {
        _cleanup_free_ char *name = NULL;
        int r = -EEXIST;

        for (unsigned i = 1; i <= ASIDE_TRIES && r == -EEXIST; i++) {
                free(name);
                if (asprintf(&name, "%s-%u", id, i) < 0) {
                        name = NULL;
                        return -ENOMEM;
                }
                r = make_private_dir(damaged, name);
        }
        if (r >= 0)
                *ret_name = TAKE_PTR(name);
        return r;
}

/* The record last: until it has gone, it is found damaged again, and asked for again. */
int record_set_aside(int state_dir, int root, const char *id, char **ret_name) {
        _cleanup_free_ char *name = NULL;

        if (!session_id_valid(id))
                return -EINVAL;
        int r = make_private_dir(state_dir, DAMAGED_NAME);
        if (r < 0 && r != -EEXIST)
                return r;
        _cleanup_close_ int damaged = open_private_dir(state_dir, DAMAGED_NAME);
        if (damaged < 0)
                return damaged;
        r = make_aside(damaged, id, &name);
        if (r < 0)
                return r;
        _cleanup_close_ int aside = open_private_dir(damaged, name);
        if (aside < 0)
                return aside;
        if (renameat(state_dir, id, aside, "session") < 0 && errno != ENOENT)
                return -errno;
        if (renameat(root, id, aside, "record") < 0 || fsync(aside) < 0 || fsync(damaged) < 0 || fsync(root) < 0 || fsync(state_dir) < 0)
                return -errno;
        *ret_name = TAKE_PTR(name);
        return 0;
}
