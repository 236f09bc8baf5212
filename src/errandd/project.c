/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/json-writer.h"
#include "basic/path.h"
#include "basic/text.h"
#include "errandd/paths.h"
#include "errandd/project.h"
#include "errandd/record.h"
#include "shared/json-check.h"
#include "shared/message.h"

#define OWNERS_NAME ".projects"
#define OWNER_VERSION 1U
#define OWNER_DEPTH_MAX 2U

int project_root_open(const char *root, const char *state, Fault *f) {
        _cleanup_free_ char *real = NULL;
        struct stat st;

        _cleanup_close_ int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return fault_set(f, ERROR_CONFIGURATION, "projectRoot: %s cannot be opened: %s; systemd-tmpfiles --create makes the usual one", root, strerror(errno));
        int r = path_of_fd(fd, &real);
        if (r < 0)
                return fault_set(f, ERROR_CONFIGURATION, "projectRoot: %s cannot be looked up: %s", root, strerror(-r));
        if (path_beneath(real, state) || path_beneath(state, real))
                return fault_set(f, ERROR_CONFIGURATION, "projectRoot: %s and errand's state %s lie in each other; move the projects", real, state);
        if (st.st_mode & 0002)
                return fault_set(f, ERROR_CONFIGURATION, "projectRoot: every account can make directories in %s; remove that: chmod o-w %s", real, real);
        return TAKE_FD(fd);
}

int project_open(int root, const char *name, Fault *f) {
        const struct open_how how = {
                .flags = O_RDONLY | O_DIRECTORY | O_CLOEXEC,
                .resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV | RESOLVE_NO_MAGICLINKS,
        };
        const char *problem = project_name_problem(name);

        if (problem)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "the project \"%.80s\" %s", name ?: "", problem);
        int fd = (int) syscall(SYS_openat2, root, name, &how, sizeof(how));
        if (fd >= 0)
                return fd;
        switch (errno) {
        case ENOENT:
                (void) fault_set(f, ERROR_NOT_FOUND, "there is no project %s", name);
                return -ENOENT;
        case ELOOP:
                return fault_set(f, ERROR_INVALID_ARGUMENT, "the project %s is a symbolic link, which is not followed", name);
        case EXDEV:
                return fault_set(f, ERROR_INVALID_ARGUMENT, "the project %s is a mount point; projects lie on the file system of projectRoot", name);
        case ENOTDIR:
                return fault_set(f, ERROR_INVALID_ARGUMENT, "the project %s is no directory", name);
        default:
                return fault_set(f, ERROR_SETUP, "the project %s cannot be opened: %s", name, strerror(errno));
        }
}

int project_owners_open(int state_dir) {
        return paths_make_dir(state_dir, OWNERS_NAME, 0700, geteuid(), getegid());
}

static int parse_owner(const char *text, size_t size, uid_t *ret) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        uint64_t version, owner;
        JsonProblem problem;
        JsonObject *o;

        int r = json_read_object(text, size, OWNER_DEPTH_MAX, &parser, &o, &problem);
        if (r < 0)
                return r;
        if (json_get_u64(o, "v", UINT32_MAX, &version) < 0 || version != OWNER_VERSION || json_get_u64(o, "owner", UID_NONE - 1, &owner) < 0)
                return -EBADMSG;
        *ret = (uid_t) owner;
        return 0;
}

int project_owner(int owners, const char *name, uid_t *ret, Fault *f) {
        _cleanup_free_ char *text = NULL;
        size_t size;

        int r = project_name_problem(name) ? -EINVAL : record_read_file(owners, name, &text, &size);
        if (r == -ENOENT)
                return r;
        if (r >= 0)
                r = parse_owner(text, size, ret);
        return r < 0 ? fault_set(f, ERROR_STORAGE, "whose project %s is cannot be read from " OWNERS_NAME "/%s: %s; root can correct or remove that file",
                                 name, name, r == -EBADMSG ? "it is damaged" : strerror(-r)) : 0;
}

void project_give_up(int owners, const char *name, uid_t owner) {
        Fault f = {};
        uid_t known;

        if (project_owner(owners, name, &known, &f) >= 0 && known == owner)
                (void) unlinkat(owners, name, 0);
        fault_done(&f);
}

int project_claim(int owners, const char *name, uid_t owner) {
        _cleanup_free_ char *text = NULL;
        JsonWriter w = {};
        size_t size;

        json_open_object(&w, NULL);
        json_add_u64(&w, "v", OWNER_VERSION);
        json_add_u64(&w, "owner", owner);
        json_close_object(&w);
        int r = json_writer_finish(&w, &text, &size);
        if (r >= 0)
                r = project_name_problem(name) ? -EINVAL : record_replace_file(owners, name, text, size);
        return MIN(r, 0);
}
