/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "basic/utf8.h"
#include "shared/bus-message.h"

int bus_append_text(sd_bus_message *m, const char *s) {
        _cleanup_free_ char *escaped = NULL;

        if (!s)
                s = "";
        if (!utf8_valid(s)) {
                escaped = string_escape_control(s);
                if (!escaped)
                        return -ENOMEM;
                s = escaped;
        }
        return sd_bus_message_append_basic(m, 's', s);
}

int bus_append_texts(sd_bus_message *m, char *const *list) {
        int r;

        r = sd_bus_message_open_container(m, 'a', "s");
        for (; r >= 0 && list && *list; list++)
                r = bus_append_text(m, *list);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int open_entry(sd_bus_message *m, const char *name, const char *type) {
        int r;

        r = sd_bus_message_open_container(m, 'e', "sv");
        if (r >= 0)
                r = sd_bus_message_append_basic(m, 's', name);
        return r < 0 ? r : sd_bus_message_open_container(m, 'v', type);
}

static int close_entry(sd_bus_message *m, int r) {
        if (r >= 0)
                r = sd_bus_message_close_container(m);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

int bus_append_entry_text(sd_bus_message *m, const char *name, const char *s) {
        int r = open_entry(m, name, "s");

        return close_entry(m, r < 0 ? r : bus_append_text(m, s));
}

int bus_append_entry_texts(sd_bus_message *m, const char *name, char *const *list) {
        int r = open_entry(m, name, "as");

        return close_entry(m, r < 0 ? r : bus_append_texts(m, list));
}

static int append_entry_basic(sd_bus_message *m, const char *name, const char *type, const void *p) {
        int r = open_entry(m, name, type);

        return close_entry(m, r < 0 ? r : sd_bus_message_append_basic(m, *type, p));
}

int bus_append_entry_path(sd_bus_message *m, const char *name, const char *path) {
        return append_entry_basic(m, name, "o", path);
}

int bus_append_entry_bool(sd_bus_message *m, const char *name, bool b) {
        int value = b;

        return append_entry_basic(m, name, "b", &value);
}

int bus_append_entry_i32(sd_bus_message *m, const char *name, int32_t i) {
        return append_entry_basic(m, name, "i", &i);
}

int bus_append_entry_u32(sd_bus_message *m, const char *name, uint32_t u) {
        return append_entry_basic(m, name, "u", &u);
}

int bus_append_entry_u64(sd_bus_message *m, const char *name, uint64_t u) {
        return append_entry_basic(m, name, "t", &u);
}
