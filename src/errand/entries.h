/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the bus tells as a{sv}, read into the members of a struct by a table of names. */

#include <systemd/sd-bus.h>

typedef struct Entry {
        const char *name;
        char type; /* 's': a const char *, the message's; 'a', of as: a char *, one text, to free; 'b': a bool; else as sd_bus_message_read_basic(3) has it */
        void *place;
} Entry;

/* Reads the next a{sv}: 1, or 0 when there is none. A name that no entry has, or that has another type, is passed over and its place untouched;
 * a name that comes twice counts the last time. On an error places may have been set. */
int entries_read(sd_bus_message *m, const Entry *entries, size_t n);
