/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "shared/json-locate.h"
#include "shared/json-view.h"

static bool find_element(JsonView list, unsigned long index, JsonView *ret) {
        size_t state = 0;

        do
                if (!json_view_next(list, &state, ret))
                        return false;
        while (index-- > 0);
        return true;
}

unsigned json_locate(const char *text, size_t size, const char *path) {
        JsonView value = json_view(text, size), place = {.at = text};
        unsigned line = 1;

        while (*path) {
                if (*path == '[') {
                        char *rest;
                        unsigned long index = strtoul(path + 1, &rest, 10);
                        if (rest == path + 1 || *rest != ']' || !find_element(value, index, &place))
                                return 0;
                        value = place;
                        path = rest + 1;
                } else {
                        size_t n = strcspn(path, ".[");
                        if (n == 0 || !json_view_named(value, path, n, &place, &value))
                                return 0;
                        path += n;
                }
                if (*path == '.' && !*++path)
                        return 0;
        }
        for (const char *s = text; s < place.at; s++)
                line += *s == '\n';
        return line;
}
