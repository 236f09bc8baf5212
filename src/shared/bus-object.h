/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Object paths of the bus API. A session's id stands in a path as it is. */

#include "shared/session-id.h"

#define BUS_ROOT "/org/errand1"
#define BUS_SESSION_ROOT BUS_ROOT "/session"
#define BUS_GRANT_ROOT BUS_ROOT "/grant"
#define BUS_RECEIPT_ROOT BUS_ROOT "/receipt"

#define BUS_MANAGER_INTERFACE "org.errand1.Manager"
#define BUS_SESSION_INTERFACE "org.errand1.Session"
#define BUS_GRANT_INTERFACE "org.errand1.Grant"
#define BUS_RECEIPT_INTERFACE "org.errand1.Receipt"

/* The message bus itself. */
#define BUS_DRIVER "org.freedesktop.DBus"
#define BUS_DRIVER_PATH "/org/freedesktop/DBus"

#define BUS_PATH_MAX 96U /* the longest, a grant's, has 18 + 28 + 1 + 10 bytes */

typedef enum BusObjectKind {
        BUS_OBJECT_MANAGER,
        BUS_OBJECT_SESSION,
        BUS_OBJECT_GRANT,
        BUS_OBJECT_RECEIPT,
        _BUS_OBJECT_KIND_MAX,
        _BUS_OBJECT_KIND_INVALID = -EINVAL,
} BusObjectKind;

typedef struct BusObject {
        BusObjectKind kind;
        char session[SESSION_ID_MAX + 1]; /* SESSION, GRANT */
        uint64_t number;                      /* GRANT (32 bits), RECEIPT; never 0 */
} BusObject;

/* -EINVAL for a path of another form: each object has one spelling. */
int bus_object_parse(const char *path, BusObject *ret);

/* The kind of object that has the interface. */
BusObjectKind bus_object_kind_of(const char *interface);

typedef struct BusPath {
        char text[BUS_PATH_MAX];
} BusPath;

/* An id that is none gives the root's path, which names no session. */
BusPath bus_session_path(const char *id);
BusPath bus_grant_path(const char *id, uint32_t number);
BusPath bus_receipt_path(uint64_t number);
