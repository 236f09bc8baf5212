/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>

#include "basic/parse.h"
#include "basic/text.h"
#include "shared/bus-object.h"

static int parse_number(const char *s, uint64_t max, uint64_t *ret) {
        if (s[0] == '0')
                return -EINVAL; /* one spelling; and numbers begin at 1 */
        return parse_u64(s, max, ret) < 0 ? -EINVAL : 0;
}

int bus_object_parse(const char *path, BusObject *ret) {
        BusObject o = {.kind = _BUS_OBJECT_KIND_INVALID};
        const char *rest;
        size_t n;

        if (streq(path, BUS_ROOT)) {
                *ret = (BusObject){.kind = BUS_OBJECT_MANAGER};
                return 0;
        }
        if ((rest = startswith(path, BUS_RECEIPT_ROOT "/"))) {
                o.kind = BUS_OBJECT_RECEIPT;
                if (parse_number(rest, UINT64_MAX, &o.number) < 0)
                        return -EINVAL;
                *ret = o;
                return 0;
        }
        if ((rest = startswith(path, BUS_SESSION_ROOT "/")))
                o.kind = BUS_OBJECT_SESSION;
        else if ((rest = startswith(path, BUS_GRANT_ROOT "/")))
                o.kind = BUS_OBJECT_GRANT;
        else
                return -EINVAL;

        n = session_id_span(rest);
        if (n == 0 || n > SESSION_ID_MAX)
                return -EINVAL;
        memcpy(o.session, rest, n);
        if (o.kind == BUS_OBJECT_SESSION ? rest[n] != 0 : rest[n] != '/' || parse_number(rest + n + 1, UINT32_MAX, &o.number) < 0)
                return -EINVAL;
        *ret = o;
        return 0;
}

BusObjectKind bus_object_kind_of(const char *interface) {
        static const char *const interfaces[_BUS_OBJECT_KIND_MAX] = {
                [BUS_OBJECT_MANAGER] = BUS_MANAGER_INTERFACE,
                [BUS_OBJECT_SESSION] = BUS_SESSION_INTERFACE,
                [BUS_OBJECT_GRANT] = BUS_GRANT_INTERFACE,
                [BUS_OBJECT_RECEIPT] = BUS_RECEIPT_INTERFACE,
        };

        for (BusObjectKind k = 0; k < _BUS_OBJECT_KIND_MAX; k++)
                if (streq(interfaces[k], interface))
                        return k;
        return _BUS_OBJECT_KIND_INVALID;
}

BusPath bus_session_path(const char *id) {
        BusPath p;

        if (session_id_valid(id))
                snprintf(p.text, sizeof(p.text), BUS_SESSION_ROOT "/%.28s", id);
        else
                snprintf(p.text, sizeof(p.text), BUS_ROOT);
        return p;
}

BusPath bus_grant_path(const char *id, uint32_t number) {
        BusPath p;

        if (session_id_valid(id))
                snprintf(p.text, sizeof(p.text), BUS_GRANT_ROOT "/%.28s/%" PRIu32, id, number);
        else
                snprintf(p.text, sizeof(p.text), BUS_ROOT);
        return p;
}

BusPath bus_receipt_path(uint64_t number) {
        BusPath p;

        snprintf(p.text, sizeof(p.text), BUS_RECEIPT_ROOT "/%" PRIu64, number);
        return p;
}
