/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the bus says, as JSON for programs: the bus's own names with a small first letter ("CreatedUSec" is "createdUSec"). */

#include <systemd/sd-bus.h>

#include "basic/json-writer.h"

/* Reads the next complete value of a message into the writer. -EOPNOTSUPP for a type that is not on this bus. */
int json_add_value(JsonWriter *w, const char *key, sd_bus_message *m);

/* Reads the next a{sv} as members of the object that is open. */
int json_add_members(JsonWriter *w, sd_bus_message *m);

/* Reads the next a(…) as an array of objects whose members are named by `names`. */
int json_add_structs(JsonWriter *w, const char *key, sd_bus_message *m, const char *const *names);

/* Finishes it and prints it on standard output as a line, or logs why not. An ExitCode. */
int json_print(JsonWriter *w);
