/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Small pieces of messages. The bus carries valid UTF-8 alone, while paths and arguments are bytes: what is not UTF-8 is escaped on its
 * way out, so that one odd name does not make a whole answer fail. NULL is sent as "". */

#include <systemd/sd-bus.h>

#include "basic/macro.h"

int bus_append_text(sd_bus_message *m, const char *s);
int bus_append_texts(sd_bus_message *m, char *const *list); /* as "as" */

/* One entry of an open a{sv}. */
int bus_append_entry_text(sd_bus_message *m, const char *name, const char *s);
int bus_append_entry_texts(sd_bus_message *m, const char *name, char *const *list);
int bus_append_entry_path(sd_bus_message *m, const char *name, const char *path);
int bus_append_entry_bool(sd_bus_message *m, const char *name, bool b);
int bus_append_entry_i32(sd_bus_message *m, const char *name, int32_t i);
int bus_append_entry_u32(sd_bus_message *m, const char *name, uint32_t u);
int bus_append_entry_u64(sd_bus_message *m, const char *name, uint64_t u);
