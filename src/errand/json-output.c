/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "errand/exit.h"
#include "errand/json-output.h"
#include "errand/output.h"

#define DEPTH_MAX 8U

static int add_value(JsonWriter *w, const char *key, sd_bus_message *m, unsigned depth);

static int add_number(JsonWriter *w, const char *key, sd_bus_message *m, char type) {
        union {
                uint8_t y;
                int16_t n;
                uint16_t q;
                int32_t i;
                uint32_t u;
                int64_t x;
                uint64_t t;
        } v = {};
        int64_t value;
        int r = sd_bus_message_read_basic(m, type, &v);

        if (r < 0)
                return r;
        if (type == 't') {
                json_add_u64(w, key, v.t);
                return 0;
        }
        value = type == 'y' ? v.y : type == 'n' ? v.n : type == 'q' ? v.q : type == 'i' ? v.i : type == 'u' ? (int64_t) v.u : v.x;
        if (value < 0) /* nothing on this bus is */
                json_add_null(w, key);
        else
                json_add_u64(w, key, (uint64_t) value);
        return 0;
}

static int add_basic(JsonWriter *w, const char *key, sd_bus_message *m, char type) {
        const char *s;
        int b, r;

        switch (type) {
        case 's':
        case 'o':
        case 'g':
                r = sd_bus_message_read_basic(m, type, &s);
                if (r >= 0)
                        json_add_string(w, key, s);
                return r;
        case 'b':
                r = sd_bus_message_read_basic(m, 'b', &b);
                if (r >= 0)
                        json_add_bool(w, key, b);
                return r;
        case 'y':
        case 'n':
        case 'q':
        case 'i':
        case 'u':
        case 'x':
        case 't':
                return add_number(w, key, m, type);
        default:
                return -EOPNOTSUPP;
        }
}

static int add_members(JsonWriter *w, sd_bus_message *m, const char *contents, unsigned depth) {
        char inner[256], name[128];
        size_t n = strlen(contents);
        const char *s;
        int r;

        if (n < 2 || n - 2 >= sizeof(inner))
                return -EOPNOTSUPP;
        (void) snprintf(inner, sizeof(inner), "%.*s", (int) (n - 2), contents + 1);
        while ((r = sd_bus_message_enter_container(m, 'e', inner)) > 0) {
                r = sd_bus_message_read_basic(m, 's', &s);
                if (r < 0)
                        return r;
                (void) snprintf(name, sizeof(name), "%s", s);
                if (name[0] >= 'A' && name[0] <= 'Z')
                        name[0] = (char) (name[0] + ('a' - 'A'));
                r = add_value(w, name, m, depth + 1);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r;
}

static int add_array(JsonWriter *w, const char *key, sd_bus_message *m, const char *contents, unsigned depth) {
        bool object = contents[0] == '{';
        int r = sd_bus_message_enter_container(m, 'a', contents);

        if (r < 0)
                return r;
        if (object)
                json_open_object(w, key);
        else
                json_open_array(w, key);
        if (object)
                r = add_members(w, m, contents, depth);
        else
                while ((r = sd_bus_message_at_end(m, false)) == 0) {
                        r = add_value(w, NULL, m, depth + 1);
                        if (r < 0)
                                return r;
                }
        if (r < 0)
                return r;
        if (object)
                json_close_object(w);
        else
                json_close_array(w);
        return sd_bus_message_exit_container(m);
}

static int add_value(JsonWriter *w, const char *key, sd_bus_message *m, unsigned depth) {
        const char *contents;
        char type;
        int r = sd_bus_message_peek_type(m, &type, &contents);

        if (r < 0)
                return r;
        if (r == 0 || depth > DEPTH_MAX)
                return -EBADMSG;
        if (type == 'a')
                return add_array(w, key, m, contents, depth);
        if (type != 'v' && type != 'r')
                return add_basic(w, key, m, type);
        r = sd_bus_message_enter_container(m, type, contents);
        if (r < 0)
                return r;
        if (type == 'r')
                json_open_array(w, key);
        while ((r = sd_bus_message_at_end(m, false)) == 0) {
                r = add_value(w, type == 'v' ? key : NULL, m, depth + 1);
                if (r < 0)
                        return r;
        }
        if (type == 'r')
                json_close_array(w);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int json_add_value(JsonWriter *w, const char *key, sd_bus_message *m) {
        return add_value(w, key, m, 0);
}

int json_add_members(JsonWriter *w, sd_bus_message *m) {
        int r = sd_bus_message_enter_container(m, 'a', "{sv}");

        if (r >= 0)
                r = add_members(w, m, "{sv}", 0);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int json_add_structs(JsonWriter *w, const char *key, sd_bus_message *m, const char *const *names) {
        const char *contents, *inner;
        char type;
        int r = sd_bus_message_peek_type(m, &type, &contents);

        if (r < 0)
                return r;
        if (r == 0 || type != 'a')
                return -EBADMSG;
        r = sd_bus_message_enter_container(m, 'a', contents);
        if (r < 0)
                return r;
        json_open_array(w, key);
        while ((r = sd_bus_message_peek_type(m, &type, &inner)) > 0) {
                r = sd_bus_message_enter_container(m, 'r', inner);
                if (r < 0)
                        return r;
                json_open_object(w, NULL);
                for (const char *const *n = names; *n && r >= 0; n++)
                        r = add_value(w, *n, m, 0);
                json_close_object(w);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        json_close_array(w);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int json_print(JsonWriter *w) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r = json_writer_finish(w, &text, &size);

        if (r < 0) {
                log_error_errno(r, "Failed to write JSON: %m");
                return EXIT_FAILED;
        }
        printf("%s\n", text);
        return output_flush();
}
