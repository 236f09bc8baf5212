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

/* As deep as the field allows: 64 containers. */
static int walk(sd_bus_message *m, size_t *left) {
        const char *contents;
        char type;
        int r;

        while ((r = sd_bus_message_peek_type(m, &type, &contents)) > 0) {
                if (!strchr("avre", type))
                        r = walk_basic(m, type, left);
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

int message_size(sd_bus_message *m, size_t max, size_t *ret) {
        const char *path = sd_bus_message_get_path(m); /* of any length, unlike the other fields */
        size_t left = max;
        int r, q;

        r = spend(&left, sizeof(uint32_t) * 4 + strlen(path ?: ""));
        if (r >= 0)
                r = walk(m, &left);
        q = sd_bus_message_rewind(m, true);
        if (r < 0 || q < 0)
                return r < 0 ? r : q;
        *ret = max - left;
        return 0;
}
