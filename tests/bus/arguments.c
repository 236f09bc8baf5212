/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdlib.h>

#include "arguments.h"
#include "basic/text.h"

#define PARTS_MAX 128U
#define PART_MAX (300U * 1024U)

typedef struct Parts {
        char *parts[PARTS_MAX];
        size_t n, next;
        const char *id, *project;
} Parts;

static char *expand(const Parts *p, const char *part, size_t size) {
        char *text = calloc(1, PART_MAX);
        size_t n = 0;

        if (size > 1 && part[0] == '%')
                return memset(text, 'a', strtoul(part + 1, NULL, 10));
        for (size_t i = 0; i < size; i++) {
                const char *what = part[i] == '@' ? p->id : part[i] == '#' ? p->project : NULL;

                if (what)
                        n += (size_t) sprintf(text + n, "%s", what);
                else
                        text[n++] = part[i];
        }
        return text;
}

static const char *next(Parts *p) {
        return p->next < p->n ? p->parts[p->next++] : "";
}

static int append_basic(sd_bus_message *m, char type, const char *value) {
        uint64_t number = type == 'i' ? (uint64_t) strtoll(value, NULL, 0) : strtoull(value, NULL, 0);
        union {
                uint8_t y;
                int b, i, h;
                uint16_t q;
                uint32_t u;
                uint64_t t;
                double d;
        } v = {};

        if (strchr("sog", type))
                return sd_bus_message_append_basic(m, type, value);
        switch (type) {
        case 'y': v.y = (uint8_t) number; break;
        case 'q': v.q = (uint16_t) number; break;
        case 'u': v.u = (uint32_t) number; break;
        case 't': v.t = number; break;
        case 'd': v.d = 1; break;
        default: v.i = (int) number; break;
        }
        return sd_bus_message_append_basic(m, type, &v);
}

static int append_value(sd_bus_message *m, const char *type, Parts *p) {
        const char *value = next(p);
        int r;

        if (streq(type, "as"))
                return *value ? sd_bus_message_append(m, "as", 1, value) : sd_bus_message_append(m, "as", 0);
        if (streq(type, "a{ss}"))
                return sd_bus_message_append(m, "a{ss}", 1, value, "x");
        if (streq(type, "v")) {
                r = sd_bus_message_open_container(m, 'v', "s");
                if (r >= 0)
                        r = sd_bus_message_append_basic(m, 's', value);
                return r < 0 ? r : sd_bus_message_close_container(m);
        }
        return append_basic(m, type[0], value);
}

static int append_options(sd_bus_message *m, Parts *p) {
        int r;

        r = sd_bus_message_open_container(m, 'a', "{sv}");
        while (r >= 0 && p->next < p->n) {
                const char *key = next(p), *type = next(p);

                r = sd_bus_message_open_container(m, 'e', "sv");
                if (r >= 0)
                        r = sd_bus_message_append_basic(m, 's', key);
                if (r >= 0)
                        r = sd_bus_message_open_container(m, 'v', type);
                if (r >= 0)
                        r = append_value(m, type, p);
                if (r >= 0)
                        r = sd_bus_message_close_container(m);
                if (r >= 0)
                        r = sd_bus_message_close_container(m);
        }
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_all(sd_bus_message *m, Parts *p) {
        const char *types = next(p);
        int r = 0;

        if (streq(types, "a{sv}"))
                return append_options(m, p);
        if (streq(types, "as") || streq(types, "a{ss}"))
                return append_value(m, types, p);
        for (; *types && r >= 0; types++)
                r = *types == 'v' ? append_value(m, "v", p) : append_basic(m, *types, next(p));
        return r;
}

int arguments_append(sd_bus_message *m, const char *text, const char *id, const char *project) {
        Parts p = {.id = id, .project = project};
        int r;

        for (const char *end; p.n < PARTS_MAX; text = end + 1) {
                end = text + strcspn(text, "|");
                p.parts[p.n++] = expand(&p, text, (size_t) (end - text));
                if (!*end)
                        break;
        }
        r = append_all(m, &p);
        for (size_t i = 0; i < p.n; i++)
                free(p.parts[i]);
        return r;
}
