/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A call's arguments as text, for tables: "TYPES|VALUE|…", one value for each basic type. An a{sv} takes the rest, as KEY|TYPE|VALUE. In a value '@' is
 * the id that is given, '#' the project, and "%N" a text of N bytes. A file descriptor is its number here. */

#include <systemd/sd-bus.h>

int arguments_append(sd_bus_message *m, const char *text, const char *id, const char *project);
