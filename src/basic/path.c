/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>
#include <unistd.h>

#include "basic/path.h"
#include "basic/text.h"

/* Appends the components of s to out (which holds "" or "/a/b"), collapsing as it goes. Climbing above out[floor] is
 * -EXDEV when strict, ignored otherwise. */
static int append_collapsed(char *out, size_t *length, size_t floor, const char *s, bool strict) {
        while (*s) {
                size_t n = strcspn(s, "/");

                if (n == 0 || (n == 1 && s[0] == '.'))
                        ;
                else if (n == 2 && s[0] == '.' && s[1] == '.') {
                        if (*length <= floor) {
                                if (strict)
                                        return -EXDEV;
                        } else
                                while (*length > floor && out[--*length] != '/')
                                        ;
                } else {
                        if (*length + 1 + n >= PATH_MAX)
                                return -ENAMETOOLONG;
                        out[(*length)++] = '/';
                        memcpy(out + *length, s, n);
                        *length += n;
                }
                s += n;
                while (*s == '/')
                        s++;
        }
        return 0;
}

static int finish(char *out, size_t length, char **ret) {
        if (length == 0)
                out[length++] = '/';
        out[length] = 0;
        char *copy = strdup(out);
        if (!copy)
                return -ENOMEM;
        *ret = copy;
        return 0;
}

int path_collapse(const char *s, char **ret) {
        char out[PATH_MAX];
        size_t length = 0;

        if (s[0] != '/')
                return -EINVAL;
        int r = append_collapsed(out, &length, 0, s, false);
        return r < 0 ? r : finish(out, length, ret);
}

int path_make_absolute(const char *s, char **ret) {
        _cleanup_free_ char *here = NULL, *whole = NULL;

        if (s[0] == '/')
                return path_collapse(s, ret);
        here = getcwd(NULL, 0);
        if (!here)
                return -errno;
        return asprintf(&whole, "%s/%s", here, s) < 0 ? -ENOMEM : path_collapse(whole, ret);
}

int path_join_beneath(const char *base, const char *relative, char **ret) {
        char out[PATH_MAX];
        size_t length = 0;

        if (base[0] != '/' || relative[0] == '/')
                return -EINVAL;
        int r = append_collapsed(out, &length, 0, base, false);
        if (r < 0)
                return r;
        r = append_collapsed(out, &length, length, relative, true);
        return r < 0 ? r : finish(out, length, ret);
}

bool path_beneath(const char *path, const char *dir) {
        if (streq(dir, "/"))
                return true;
        const char *rest = startswith(path, dir);
        return rest && (*rest == 0 || *rest == '/');
}

const char *path_from_working_directory(const char *path) {
        char here[PATH_MAX];

        /* One that was removed, or lies outside of the root, has no name that begins with a slash. */
        if (!getcwd(here, sizeof(here)) || here[0] != '/' || !path_beneath(path, here))
                return path;
        size_t n = strlen(here);
        const char *rest = path + (n > 1 ? n : 0);
        rest += *rest == '/';
        return *rest ? rest : ".";
}

unsigned path_depth(const char *path) {
        unsigned n = 0;
        for (const char *p = path; *p; p++)
                n += *p == '/' && p[1] != 0;
        return n;
}

char *path_parent(const char *path) {
        const char *slash = strrchr(path, '/');
        return !slash || slash == path ? strdup("/") : strndup(path, (size_t) (slash - path));
}
