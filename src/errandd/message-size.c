/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/message-size.h"

/* libsystemd tells no size of a message, so its contents are walked. */

static int spend(size_t *left, size_t n) {
        if (n > *left)
                return -E2BIG;
        *left -= n;
        return 0;
}

static int walk_basic(sd_bus_message *m, char type, size_t *left) {
        union {
                const char *text;
                uint64_t number; /* the largest of the others */
        } value = {};
        int r;

        r = sd_bus_message_read_basic(m, type, &value);
        if (r < 0)
                return r;
        return spend(left, strchr("sog", type) ? strlen(value.text) + sizeof(uint32_t) + 1 : sizeof(value));
}

/* At once: a transcript's bytes are a million. */
static int walk_numbers(sd_bus_message *m, char type, size_t *left) {
        const void *data;
        size_t size;
        int r;

        r = sd_bus_message_read_array(m, type, &data, &size);
        return r < 0 ? r : spend(left, sizeof(uint32_t) + size);
}

/* As deep as the field allows: 64 containers. */
static int walk(sd_bus_message *m, size_t *left) {
        const char *contents;
        char type;
        int r;

        while ((r = sd_bus_message_peek_type(m, &type, &contents)) > 0) {
                if (!strchr("avre", type))
                        r = walk_basic(m, type, left);
                else if (type == 'a' && strlen(contents) == 1 && strchr("ynqiuxtd", *contents))
                        r = walk_numbers(m, *contents, left);
                else {
                        r = spend(left, sizeof(uint32_t));
                        if (r >= 0)
                                r = sd_bus_message_enter_container(m, type, contents);
                        if (r >= 0)
                                r = walk(m, left);
                        if (r >= 0)
                                r = sd_bus_message_exit_container(m);
                }
                if (r < 0)
                        return r;
        }
        return r;
}

static size_t field(const char *value) {
        return value ? 2 * sizeof(uint64_t) + strlen(value) : 0; /* its code, type and length, and what it is aligned to */
}

/* A path has any length, the other fields 255 bytes each; what others a message has, no bus daemon passes on. */
static size_t head_size(sd_bus_message *m) {
        return 2 * sizeof(uint64_t) + 4 * sizeof(uint64_t) /* those that are numbers */ + field(sd_bus_message_get_path(m)) + field(sd_bus_message_get_interface(m)) +
               field(sd_bus_message_get_member(m)) + field(sd_bus_message_get_sender(m)) + field(sd_bus_message_get_destination(m)) +
               field(sd_bus_message_get_signature(m, true));
}

int message_size(sd_bus_message *m, size_t max, size_t *ret) {
        size_t left = max;
        int r, q;

        r = spend(&left, head_size(m));
        if (r >= 0)
                r = walk(m, &left);
        q = sd_bus_message_rewind(m, true);
        if (r < 0 || q < 0)
                return r < 0 ? r : q;
        *ret = max - left;
        return 0;
}
