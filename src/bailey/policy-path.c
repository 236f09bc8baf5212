/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>

#include "bailey/layer.h"
#include "bailey/policy-path.h"
#include "basic/path.h"
#include "basic/text.h"

typedef struct Text {
        char s[PATH_MAX];
        size_t size;
} Text;

static int append(Text *t, const char *s, size_t size) {
        if (size >= sizeof(t->s) - t->size)
                return -ENAMETOOLONG;
        memcpy(t->s + t->size, s, size);
        t->size += size;
        t->s[t->size] = 0;
        return 0;
}

static const char *look_up(const char *name, const PolicyPlaces *places) {
        if (!places)
                return NULL;
        if (streq(name, "HOME"))
                return places->home;
        if (streq(name, "WORKDIR"))
                return places->working_directory;
        const char *value = places->environment ? getenv(name) : NULL;
        return value && *value ? value : NULL;
}

/* s stands at "${". Returns how much of it was read. */
static ssize_t expand_variable(Text *t, const char *s, const PolicyPlaces *places, char **ret_problem) {
        const char *end = strchr(s, '}');
        size_t size = end ? (size_t) (end - s) - 2 : 0;
        _cleanup_free_ char *name = end ? strndup(s + 2, size) : NULL;

        if (!end)
                return problem_set(ret_problem, "\"${\" without \"}\"");
        if (!name)
                return -ENOMEM;
        if (!variable_name_valid(name, size))
                return problem_set(ret_problem, "\"${%s}\" is not a variable's name", name);
        const char *value = look_up(name, places);
        if (!value) {
                int r = problem_set(ret_problem, "${%s} is not set", name);
                return r == -ENOMEM ? r : -ENOENT;
        }
        int r = append(t, value, strlen(value));
        return r < 0 ? r : (ssize_t) size + 3;
}

int policy_path_expand(const char *s, const PolicyPlaces *places, char **ret, char **ret_problem) {
        Text t = {};
        ssize_t n = 0;

        if (*s == 0)
                return problem_set(ret_problem, "an empty path; write \".\" for the file's own directory");
        if (*s == '~') {
                if (s[1] && s[1] != '/')
                        return problem_set(ret_problem, "\"%s\": only one's own home has a short name; write the path out, or "
                                           "\"./%s\" for a file of that name", s, s);
                if (!places || !places->home)
                        return problem_set(ret_problem, "\"%s\": there is no home directory here; write the path out", s);
                n = append(&t, places->home, strlen(places->home));
                s++;
        }
        while (*s && n >= 0) {
                bool variable = s[0] == '$' && s[1] == '{';
                n = variable ? expand_variable(&t, s, places, ret_problem) : append(&t, s, 1);
                s += variable ? MAX(n, 0) : 1;
        }
        if (n == -ENAMETOOLONG)
                return problem_set(ret_problem, "longer than the %d bytes a path may have", PATH_MAX - 1);
        if (n < 0)
                return (int) n;
        char *copy = strdup(t.s);
        if (!copy)
                return -ENOMEM;
        *ret = copy;
        return 0;
}

int policy_path_place(const char *s, const char *base, char **ret, char **ret_problem) {
        if (s[0] != '/' && !base)
                return problem_set(ret_problem, "\"%s\" starts from the file's directory, and this file has none here; write an "
                                   "absolute path", s);
        int r = s[0] == '/' ? path_collapse(s, ret) : path_join_beneath(base, s, ret);
        if (r == -EXDEV)
                return problem_set(ret_problem, "\"%s\" leaves the file's directory %s; write an absolute path", s, base);
        if (r == -ENAMETOOLONG)
                return problem_set(ret_problem, "\"%s\" is longer than the %d bytes a path may have", s, PATH_MAX - 1);
        return r;
}
