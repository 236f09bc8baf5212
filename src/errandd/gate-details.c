/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/gate-details.h"

static void put(char detail[static GATE_DETAIL_MAX + 1], const char *text) {
        static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ._-:/*@+,=";
        size_t n = 0;

        for (; text[n] && n < GATE_DETAIL_MAX; n++)
                detail[n] = strchr(fine, text[n]) ? text[n] : '?';
        detail[n] = 0;
        if (text[n])
                memcpy(detail + GATE_DETAIL_MAX - 3, "...", 3);
}

static int read_grant(sd_bus_message *m, GateDetails *d) {
        const char *host, *duration;
        int r;

        if (!sd_bus_message_has_signature(m, "ss"))
                return 0;
        r = sd_bus_message_read(m, "ss", &host, &duration);
        if (r < 0)
                return r;
        put(d->host, host);
        put(d->duration, duration);
        return 0;
}

/* The first one of that name: given twice, the handler refuses both. */
static int read_project(sd_bus_message *m, GateDetails *d) {
        const char *name;
        int r;

        if (!sd_bus_message_has_signature(m, "a{sv}"))
                return 0;
        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        for (size_t i = 0; r >= 0 && i < BUS_OPTIONS_MAX; i++) {
                r = sd_bus_message_enter_container(m, 'e', "sv");
                if (r <= 0)
                        return r;
                r = sd_bus_message_read_basic(m, 's', &name);
                if (r >= 0 && streq(name, "project")) {
                        r = sd_bus_message_read(m, "v", "s", &d->whole_project);
                        if (r >= 0)
                                put(d->project, d->whole_project);
                        return r;
                }
                if (r >= 0)
                        r = sd_bus_message_skip(m, "v");
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        return r;
}

void gate_details_read(sd_bus_message *m, const Action *action, const Session *session, uint64_t grant, GateDetails *ret) {
        const Grant *g;
        int r = 0;

        *ret = (GateDetails){};
        if (session && session_record(session)->project)
                put(ret->project, session_record(session)->project);
        if (action->kind != MEMBER_METHOD)
                return;
        if (action->permission == PERMISSION_CREATE)
                r = read_project(m, ret);
        else if (action->permission == PERMISSION_GRANT && streq(action->member, "Grant"))
                r = read_grant(m, ret);
        else if (action->permission == PERMISSION_GRANT && session) {
                g = grant_list_find(session_grants(session), (uint32_t) grant);
                put(ret->host, g ? g->host : "");
        }
        if (r < 0) {
                ret->whole_project = NULL;
                ret->host[0] = ret->duration[0] = 0;
        }
        (void) sd_bus_message_rewind(m, true);
}
