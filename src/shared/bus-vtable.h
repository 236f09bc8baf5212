/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads what a vtable says: its introspection, and the properties of one object. libsystemd's own emitters broadcast; signals that go to
 * chosen callers are built with these. */

#include <systemd/sd-bus.h>

#include "basic/macro.h"

/* The <interface> element, its members in the order of the vtable, indented by two. */
void vtable_introspect(const char *interface, const sd_bus_vtable *vtable, FILE *f);

/* Appends a{sv} with all properties, or with those alone that can change. userdata is the object, as a getter gets it. */
int vtable_append_properties(sd_bus_message *m, const char *path, const char *interface, const sd_bus_vtable *vtable, bool changing,
                             void *userdata);
