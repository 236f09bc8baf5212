/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>

#include "basic/text.h"
#include "errandd/config-keys.h"

#define SHOWN_MAX 80U /* bytes of text from the file in one sentence, before its escapes */

_printf_(3, 0) static void add_sentence(ConfigReader *r, char ***list, const char *format, va_list ap) {
        _cleanup_free_ char *text = string_format_list(format, ap);
        char *sentence;

        if (!text) {
                r->error = -ENOMEM;
                return;
        }
        if (asprintf(&sentence, "%s: %s%s%s", r->name, r->path, r->path_size > 0 ? ": " : "", text) < 0) {
                r->error = -ENOMEM;
                return;
        }
        if (strv_consume(list, sentence) < 0)
                r->error = -ENOMEM;
}

void config_problem(ConfigReader *r, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        add_sentence(r, &r->problems, format, ap);
        va_end(ap);
}

void config_warning(ConfigReader *r, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        add_sentence(r, &r->warnings, format, ap);
        va_end(ap);
}

/* Escapes and cuts into one of four buffers in turn. */
static const char *show(const char *s, const char *quote) {
        static _Thread_local char buffers[4][SHOWN_MAX * 4 + 8];
        static _Thread_local unsigned turn;
        char *buffer = buffers[turn++ % 4], cut[SHOWN_MAX + 1];
        size_t n = strnlen(s, SHOWN_MAX);

        while (n > 0 && s[n] && ((unsigned char) s[n] & 0xc0) == 0x80)
                n--; /* not in the middle of a character */
        memcpy(cut, s, n);
        cut[n] = 0;
        _cleanup_free_ char *escaped = string_escape_control(cut);
        (void) snprintf(buffer, sizeof(buffers[0]), "%s%s%s%s", quote, escaped ?: "?", s[n] ? "…" : "", quote);
        return buffer;
}

const char *config_show(const char *s) {
        return show(s, "\"");
}

static size_t append_path(ConfigReader *r, const char *separator, const char *name) {
        size_t mark = r->path_size, room = sizeof(r->path) - mark;
        int n = snprintf(r->path + mark, room, "%s%s", mark > 0 ? separator : "", name);

        r->path_size += MIN((size_t) n, room - 1);
        return mark;
}

size_t config_enter(ConfigReader *r, const char *member) {
        return append_path(r, ".", *member ? show(member, "") : "\"\"");
}

size_t config_enter_index(ConfigReader *r, unsigned index) {
        char text[16];

        (void) snprintf(text, sizeof(text), "[%u]", index);
        return append_path(r, "", text);
}

void config_leave(ConfigReader *r, size_t mark) {
        r->path_size = mark;
        r->path[mark] = 0;
}

const char *json_kind(JsonNode *node) {
        if (JSON_NODE_HOLDS_OBJECT(node))
                return "an object";
        if (JSON_NODE_HOLDS_ARRAY(node))
                return "a list";
        if (JSON_NODE_HOLDS_NULL(node))
                return "null";
        switch (json_node_get_value_type(node)) {
        case G_TYPE_STRING:
                return "a text";
        case G_TYPE_BOOLEAN:
                return "true or false";
        default:
                return "a number";
        }
}

/* The nearest known name. Looks at siblings first: the same name elsewhere is a better guess only than none. */
typedef struct Nearest {
        const char *wanted;
        unsigned distance;
        char path[256];
} Nearest;

static unsigned lower_distance(const char *a, const char *b) {
        char x[65], y[65];
        size_t i;

        for (i = 0; i < 64 && a[i]; i++)
                x[i] = ascii_lower(a[i]);
        x[i] = 0;
        for (i = 0; i < 64 && b[i]; i++)
                y[i] = ascii_lower(b[i]);
        y[i] = 0;
        return string_distance(x, y);
}

static void look_at(Nearest *n, const char *prefix, const ConfigKey *key, unsigned penalty) {
        unsigned distance = lower_distance(n->wanted, key->name) + penalty;

        if (key->name[0] == '$' || distance >= n->distance)
                return;
        n->distance = distance;
        (void) snprintf(n->path, sizeof(n->path), "%s%s%s", prefix, *prefix ? "." : "", key->name);
}

static void look_everywhere(Nearest *n, const char *prefix, const ConfigKey *keys, size_t n_keys) {
        for (size_t i = 0; i < n_keys; i++) {
                char path[128];

                look_at(n, prefix, &keys[i], 1);
                (void) snprintf(path, sizeof(path), "%s%s%s", prefix, *prefix ? "." : "", keys[i].name);
                if (keys[i].children)
                        look_everywhere(n, path, keys[i].children, keys[i].n_children);
        }
}

void config_unknown(ConfigReader *r, const ConfigKey *keys, size_t n_keys, const char *member) {
        /* A third of the letters may differ: more is another word. */
        Nearest nearest = {.wanted = member, .distance = (unsigned) MIN(strlen(member), (size_t) 30) / 3 + 2};
        char parent[sizeof(r->path)];

        strcpy(parent, r->path);
        for (size_t i = 0; i < n_keys; i++)
                look_at(&nearest, parent, &keys[i], 0);
        if (!nearest.path[0]) {
                nearest.distance = MIN(nearest.distance, 3U);
                look_everywhere(&nearest, "", config_keys, n_config_keys);
        }
        size_t mark = config_enter(r, member);
        if (nearest.path[0])
                config_problem(r, "unknown key; did you mean %s?", nearest.path);
        else
                config_problem(r, "unknown key");
        config_leave(r, mark);
}

static const ConfigKey *find_key(const ConfigKey *keys, size_t n_keys, const char *name) {
        for (size_t i = 0; i < n_keys; i++)
                if (streq(keys[i].name, name))
                        return &keys[i];
        return NULL;
}

void config_read_object(ConfigReader *r, const ConfigKey *keys, size_t n_keys, JsonNode *node, void *base, ConfigUnknown unknown) {
        if (!JSON_NODE_HOLDS_OBJECT(node)) {
                config_problem(r, "must be an object, not %s", json_kind(node));
                return;
        }
        /* In the order of the file, so that the sentences are, too. */
        JsonObject *object = json_node_get_object(node);
        GList *members = json_object_get_members(object);
        for (GList *m = members; m; m = m->next) {
                const ConfigKey *key = find_key(keys, n_keys, m->data);
                if (!key) {
                        unknown(r, keys, n_keys, m->data);
                        continue;
                }
                size_t mark = config_enter(r, m->data);
                if (!startswith(r->path, "agent.providers.") && strv_extend(&r->given, r->path) < 0)
                        r->error = -ENOMEM;
                config_read_value(r, key, json_object_get_member(object, m->data), base);
                config_leave(r, mark);
        }
        g_list_free(members);
}
