/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/directories.h"
#include "basic/path.h"

const char *directory_home(const Account *a) {
        const char *home = a->changed ? NULL : getenv("HOME");
        return home && home[0] == '/' ? home : a->home;
}

/* $VARIABLE when it is absolute and the caller's own, else the home + fallback; then "/bailey". */
static int base_directory(const Account *a, const char *variable, const char *fallback, char **ret) {
        const char *said = a->changed ? NULL : getenv(variable);
        _cleanup_free_ char *text = NULL;

        if (said && said[0] == '/') {
                if (asprintf(&text, "%s/bailey", said) < 0)
                        return -ENOMEM;
        } else if (asprintf(&text, "%s%s/bailey", directory_home(a), fallback) < 0)
                return -ENOMEM;
        return path_collapse(text, ret);
}

int directory_state(const Account *a, char **ret) {
        return base_directory(a, "XDG_DATA_HOME", "/.local/share", ret);
}

int directory_config(const Account *a, char **ret) {
        return base_directory(a, "XDG_CONFIG_HOME", "/.config", ret);
}
