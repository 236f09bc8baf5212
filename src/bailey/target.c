/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bailey/target.h"
#include "basic/log.h"
#include "basic/path.h"
#include "basic/text.h"

static int check(const char *path) {
        struct stat st;

        /* Behind a directory that cannot be entered there is nothing, for all that can be known. */
        path = path_from_working_directory(path);
        if (stat(path, &st) < 0)
                return -ENOENT;
        if (S_ISDIR(st.st_mode))
                return -EISDIR;
        if (!S_ISREG(st.st_mode) || faccessat(AT_FDCWD, path, X_OK, AT_EACCESS) < 0)
                return -EACCES;
        return 0;
}

static int find_in_path(const char *name, char **ret) {
        const char *at = getenv("PATH");
        int result = -ENOENT;

        for (at = at && *at ? at : "/usr/local/bin:/usr/bin:/bin"; *at;) {
                size_t n = strcspn(at, ":");
                if (at[0] == '/') {
                        _cleanup_free_ char *candidate = NULL;
                        if (asprintf(&candidate, "%.*s/%s", (int) n, at, name) < 0)
                                return -ENOMEM;
                        int r = check(candidate);
                        if (r >= 0)
                                return path_collapse(candidate, ret);
                        if (r == -EACCES)
                                result = r;
                }
                at += n + (at[n] == ':');
        }
        return result;
}

int target_find(const char *name, char **ret) {
        int r;

        if (!*name)
                r = -ENOENT;
        else if (!strchr(name, '/'))
                r = find_in_path(name, ret);
        else {
                r = check(name);
                if (r >= 0)
                        r = path_make_absolute(name, ret);
        }
        if (r == -EISDIR) {
                log_error("%s is a directory, not a program", name);
                return -EACCES;
        }
        if (r == -EACCES) {
                log_error("%s cannot be executed: permission denied", name);
                return r;
        }
        if (r < 0 && !*name) {
                log_error("the TARGET is an empty word; name a program");
                return -ENOENT;
        }
        if (r < 0) {
                log_error("%s: %s", name, strchr(name, '/') ? strerror(ENOENT) : "no such program in PATH");
                return -ENOENT;
        }
        return 0;
}
