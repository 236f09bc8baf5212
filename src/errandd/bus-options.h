/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads an a{sv} of options strictly: an unknown name is an error that names it and the nearest known one, so are a repeated name and a value
 * of another type. */

#include <systemd/sd-bus.h>

#include "basic/macro.h"

typedef struct BusOption {
        const char *name;
        const char *type; /* the signature of its value */
        /* Reads the value, which is entered and has the type. Sets the error itself. */
        int (*read)(sd_bus_message *m, const struct BusOption *option, void *userdata, sd_bus_error *error);
        size_t offset; /* for readers that serve several options: where in *userdata the value goes */
} BusOption;

static inline void *bus_option_place(const BusOption *option, void *userdata) {
        return (char *) userdata + option->offset;
}

int bus_options_read(sd_bus_message *m, const char *method, const BusOption *table, size_t n, void *userdata, sd_bus_error *error);

/* Readers: a string of at most BUS_TEXT_MAX bytes, borrowed from the message, not empty (const char *); b (bool); t (uint64_t). */
int bus_option_text(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error);
int bus_option_bool(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error);
int bus_option_u64(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error);

/* A bounded "as" at the message's position: at most n_max strings of size_max bytes in all. `what` is for the sentence. */
int bus_read_texts(sd_bus_message *m, const char *what, size_t n_max, size_t size_max, char ***ret, sd_bus_error *error);

/* A string argument of at most `max` bytes, borrowed. */
int bus_read_text(sd_bus_message *m, const char *what, size_t max, const char **ret, sd_bus_error *error);
