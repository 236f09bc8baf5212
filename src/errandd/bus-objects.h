/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The vtables, and what finds the objects they belong to. userdata is a connection: see bus_link_of(). */

#include "errandd/bus-handler.h"

extern const sd_bus_vtable manager_vtable[], session_vtable[], grant_vtable[], receipt_vtable[], log_control_vtable[];

int session_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret, sd_bus_error *error);
int session_enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret, sd_bus_error *error);
int grant_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret, sd_bus_error *error);
int grant_enumerate(sd_bus *bus, const char *prefix, void *userdata, char ***ret, sd_bus_error *error);
int receipt_find(sd_bus *bus, const char *path, const char *interface, void *userdata, void **ret, sd_bus_error *error);

/* session-conversation-bus.c, for the sessions' vtable */
int session_method_say(sd_bus_message *m, void *userdata, sd_bus_error *error);
int session_method_prompt(sd_bus_message *m, void *userdata, sd_bus_error *error);

/* A receipt's fields, as entries of an a{sv}. */
int receipt_append_entries(sd_bus_message *m, const StoredReceipt *r);

/* What ListReceipts takes, for who describes it. */
const struct BusOption *receipt_options_table(size_t *ret_n);
