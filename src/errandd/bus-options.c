/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/bus-limits.h"
#include "errandd/bus-options.h"
#include "shared/bus-error.h"

#define NEAR_MAX 3U /* edits; more is another word */
#define NAME_SHOWN 64

static int unknown_option(sd_bus_error *error, const char *method, const char *name, const BusOption *table, size_t n) {
        const char *nearest = NULL;
        unsigned best = NEAR_MAX + 1;

        for (size_t i = 0; i < n; i++) {
                unsigned d = string_distance(name, table[i].name);

                if (d < best && d < strlen(table[i].name)) {
                        best = d;
                        nearest = table[i].name;
                }
        }
        if (nearest)
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "%s knows no option \"%.*s\"; did you mean \"%s\"?", method,
                                      NAME_SHOWN, name, nearest);
        return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "%s knows no option \"%.*s\"", method, NAME_SHOWN, name);
}

static int read_entry(sd_bus_message *m, const char *method, const BusOption *table, size_t n, uint32_t *seen, void *userdata,
                      sd_bus_error *error) {
        const char *name, *type;
        size_t i;
        int r;

        r = sd_bus_message_read_basic(m, 's', &name);
        if (r < 0)
                return r;
        for (i = 0; i < n && !streq(table[i].name, name); i++)
                ;
        if (i == n)
                return unknown_option(error, method, name, table, n);
        if (*seen & UINT32_C(1) << i)
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "the option \"%s\" is given twice", name);
        *seen |= UINT32_C(1) << i;

        r = sd_bus_message_peek_type(m, NULL, &type);
        if (r < 0)
                return r;
        if (!streq(type, table[i].type))
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "the option \"%s\" has type \"%s\", not \"%.*s\"", name,
                                      table[i].type, NAME_SHOWN, type);
        r = sd_bus_message_enter_container(m, 'v', type);
        if (r >= 0)
                r = table[i].read(m, table + i, userdata, error);
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int bus_options_read(sd_bus_message *m, const char *method, const BusOption *table, size_t n, void *userdata, sd_bus_error *error) {
        uint32_t seen = 0;
        int r;

        if (n > BUS_OPTIONS_MAX)
                return -E2BIG;
        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = read_entry(m, method, table, n, &seen, userdata, error);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        return r < 0 ? r : sd_bus_message_exit_container(m);
}

int bus_read_text(sd_bus_message *m, const char *what, size_t max, const char **ret, sd_bus_error *error) {
        const char *s;
        int r;

        r = sd_bus_message_read_basic(m, 's', &s);
        if (r < 0)
                return r;
        if (strlen(s) > max)
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "%s has more than %zu bytes", what, max);
        *ret = s;
        return 0;
}

int bus_option_text(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error) {
        const char *s = "";
        int r;

        r = bus_read_text(m, option->name, BUS_TEXT_MAX, &s, error);
        if (r < 0)
                return r;
        if (!*s)
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "the option \"%s\" is empty; leave it out instead", option->name);
        *(const char **) bus_option_place(option, userdata) = s;
        return 0;
}

int bus_option_bool(sd_bus_message *m, const BusOption *option, void *userdata, _unused_ sd_bus_error *error) {
        int value, r;

        r = sd_bus_message_read_basic(m, 'b', &value);
        if (r < 0)
                return r;
        *(bool *) bus_option_place(option, userdata) = value != 0;
        return 0;
}

int bus_option_u64(sd_bus_message *m, const BusOption *option, void *userdata, _unused_ sd_bus_error *error) {
        uint64_t value;
        int r;

        r = sd_bus_message_read_basic(m, 't', &value);
        if (r < 0)
                return r;
        *(uint64_t *) bus_option_place(option, userdata) = value;
        return 0;
}

int bus_read_texts(sd_bus_message *m, const char *what, size_t n_max, size_t size_max, char ***ret, sd_bus_error *error) {
        _cleanup_strv_free_ char **list = NULL;
        size_t n = 0, size = 0;
        const char *s;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "s");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read_basic(m, 's', &s)) > 0) {
                size += strlen(s) + 1;
                if (++n > n_max || size > size_max)
                        return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "%s has more than %zu entries or %zu bytes", what, n_max,
                                              size_max);
                r = strv_extend(&list, s);
                if (r < 0)
                        return r;
        }
        if (r < 0)
                return r;
        r = sd_bus_message_exit_container(m);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(list);
        return 0;
}
