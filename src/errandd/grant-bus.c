/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/bus-limits.h"
#include "errandd/bus-objects.h"
#include "errandd/operation.h"

int grant_find(_unused_ sd_bus *bus, const char *path, _unused_ const char *interface, void *userdata, void **ret,
               _unused_ sd_bus_error *error) {
        BusLink *l = bus_link_of(userdata);
        const Grant *g;
        BusObject o;
        Session *s;

        if (!l || bus_object_parse(path, &o) < 0 || o.kind != BUS_OBJECT_GRANT)
                return 0;
        s = bus_link_find(l, o.session);
        g = s ? grant_list_find(session_grants(s), (uint32_t) o.number) : NULL;
        if (!g)
                return 0;
        *ret = bus_link_set_target(l, (BusTarget){.session = s, .grant = g});
        return 1;
}

int grant_enumerate(_unused_ sd_bus *bus, _unused_ const char *prefix, void *userdata, char ***ret, sd_bus_error *error) {
        _cleanup_strv_free_ char **paths = NULL;
        BusLink *l = bus_link_of(userdata);
        size_t n = 0;

        if (!l)
                return 0;
        for (Session *s = NULL; (s = manager_next(bus_link_manager(l), s));)
                if (bus_link_may_see(l, s))
                        n += session_grants(s)->n_grants;
        if (n > BUS_OBJECTS_MAX)
                return bus_error_setf(error, BUS_ERROR_LIMIT, "there are %zu grants; list them session by session with ListGrants", n);
        paths = calloc(n + 1, sizeof(char *));
        if (!paths)
                return -ENOMEM;
        n = 0;
        for (Session *s = NULL; (s = manager_next(bus_link_manager(l), s));) {
                const GrantList *grants = session_grants(s);

                for (size_t i = 0; i < grants->n_grants && bus_link_may_see(l, s); i++) {
                        paths[n] = strdup(bus_grant_path(session_record(s)->id, grants->grants[i].number).text);
                        if (!paths[n++])
                                return -ENOMEM;
                }
        }
        bus_unread_add_objects(l, n);
        *ret = TAKE_PTR(paths);
        return 0;
}

static int method_revoke(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        BusTarget *t = userdata;
        Operation *o;
        Fault f = {};
        int r;

        r = operation_new(t->link, m, "", &o, error);
        if (r < 0)
                return r;
        r = session_revoke(t->session, t->grant->number, operation_done, o, &f);
        return operation_begun(o, r, &f, error);
}

static int get_text(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error) {
        char buffer[TIMESPAN_TEXT_MAX];
        BusTarget *t = userdata;

        return sd_bus_message_append(reply, "s", streq(property, "Host") ? t->grant->host : grant_duration_text(t->grant, buffer));
}

static int get_expires(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                       sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error) {
        BusTarget *t = userdata;

        return sd_bus_message_append(reply, "t", (uint64_t) grant_expires(t->grant));
}

static int get_granted_by(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                          sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error) {
        BusTarget *t = userdata;

        return sd_bus_message_append(reply, "u", (uint32_t) t->grant->granted_by);
}

static int get_used(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                    sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error) {
        BusTarget *t = userdata;

        return sd_bus_message_append(reply, "b", (int) (t->grant->used != 0));
}

const sd_bus_vtable grant_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_METHOD("Revoke", "", "", method_revoke, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("Host", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Duration", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("ExpiresUSec", "t", get_expires, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("GrantedByUid", "u", get_granted_by, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Used", "b", get_used, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_VTABLE_END,
};
