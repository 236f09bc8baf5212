/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <string.h>

#include "basic/text.h"
#include "shared/project-name.h"

static bool name_byte(char c) {
        return ascii_alpha(c) || ascii_digit(c) || c == '_';
}

const char *project_name_problem(const char *name) {
        if (!name || !name[0])
                return "is empty";
        if (strlen(name) > PROJECT_NAME_MAX)
                return "is longer than 63 bytes";
        if (!name_byte(name[0]))
                return "begins with something else than a letter, a digit or '_'";
        for (const char *p = name; *p; p++)
                if (!name_byte(*p) && *p != '.' && *p != '-')
                        return "has something else in it than letters, digits, '.', '_' and '-'";
        return NULL;
}
