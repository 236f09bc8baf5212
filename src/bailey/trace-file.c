/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bailey/trace.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/log.h"
#include "basic/text.h"

void trace_file_done(TraceFile *f) {
        f->directory = safe_close(f->directory);
        f->name = mfree(f->name);
}

static int check_place(const TraceFile *f) {
        struct stat st;

        if (faccessat(f->directory, ".", W_OK | X_OK, AT_EACCESS) < 0)
                return log_error_errno(errno, "%s: nothing can be written there: %m; nothing was run", f->path);
        if (fstatat(f->directory, f->name, &st, AT_SYMLINK_NOFOLLOW) < 0)
                return errno == ENOENT ? 0 : log_error_errno(errno, "%s: %m; nothing was run", f->path);
        if (!S_ISREG(st.st_mode)) {
                log_error("%s is there and is no ordinary file; name another or remove it. Nothing was run", f->path);
                return -EEXIST;
        }
        if (st.st_uid != geteuid()) {
                log_error("%s is there and is another account's; name another. Nothing was run", f->path);
                return -EPERM;
        }
        return 0;
}

int trace_file_open(const char *path, TraceFile *ret) {
        _cleanup_(trace_file_done) TraceFile f = TRACE_FILE_NONE;
        const char *slash = strrchr(path, '/');
        _cleanup_free_ char *directory = slash ? strndup(path, (size_t) (slash - path) + 1) : strdup(".");

        f.path = path;
        f.name = strdup(slash ? slash + 1 : path);
        if (!directory || !f.name)
                return log_oom();
        if (!*f.name || streq(f.name, ".") || streq(f.name, "..") || strlen(f.name) > NAME_MAX - 20) {
                log_error("%s is no file's name; nothing was run", path);
                return -EINVAL;
        }
        f.directory = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (f.directory < 0)
                return log_error_errno(errno, "%s: its directory cannot be opened: %m; nothing was run", path);
        int r = check_place(&f);
        if (r < 0)
                return r;
        *ret = f;
        f = TRACE_FILE_NONE;
        return 0;
}

/* The name that it has until it is whole, in the same directory. */
static int temporary_name(const TraceFile *f, char ret[NAME_MAX + 1]) {
        uint64_t number;

        if (getrandom(&number, sizeof(number), 0) != sizeof(number))
                return -EIO;
        (void) snprintf(ret, NAME_MAX + 1, ".%s.%016llx", f->name, (unsigned long long) number);
        return 0;
}

static int put(const TraceFile *f, const char *text, size_t size) {
        char name[NAME_MAX + 1];

        int r = temporary_name(f, name);
        if (r < 0)
                return r;
        _cleanup_close_ int fd = openat(f->directory, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (fd < 0)
                return -errno;
        r = write_all(fd, text, size);
        if (r >= 0 && fsync(fd) < 0)
                r = -errno;
        if (r >= 0 && renameat(f->directory, name, f->directory, f->name) < 0)
                r = -errno;
        if (r < 0)
                (void) unlinkat(f->directory, name, 0);
        return r;
}

int trace_file_write(const TraceFile *f, const Trace *t) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        int r = trace_print(t, &text, &size);
        if (r >= 0)
                r = put(f, text, size);
        return r < 0 ? log_error_errno(r, "%s: the trace cannot be written: %m", f->path) : 0;
}
