/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/bus-limits.h"
#include "errandd/gate-details.h"
#include "errandd/host-text.h"
#include "errandd/say.h"
#include "shared/timespan.h"

static void put(char detail[static GATE_DETAIL_MAX + 1], const char *text) {
        static const char fine[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 ._-:/*@+,=";
        size_t n = 0;

        for (; text[n] && n < GATE_DETAIL_MAX; n++)
                detail[n] = strchr(fine, text[n]) ? text[n] : '?';
        detail[n] = 0;
        if (text[n])
                memcpy(detail + GATE_DETAIL_MAX - 3, "...", 3);
}

_Static_assert(GATE_DETAIL_MAX >= HOST_TEXT_MAX, "a host is never cut");

/* What is no host or no duration is told as it came, and refused by the handler. */
static void put_grant(GateDetails *d, const char *host, const char *duration) {
        char normal[HOST_TEXT_MAX + 1], span[TIMESPAN_TEXT_MAX];
        const char *problem;
        Grant g = {};

        put(d->host, host && host_text_normalize(host, HOST_TEXT_WILDCARD, normal, &problem) >= 0 ? normal : host ?: "");
        put(d->duration, duration && grant_duration_parse(duration, &g.duration, &g.span, &problem) >= 0 ? grant_duration_text(&g, span) : duration ?: "");
}

static int read_grant(sd_bus_message *m, GateDetails *d) {
        const char *host, *duration;
        int r;

        if (!sd_bus_message_has_signature(m, "ss"))
                return 0;
        r = sd_bus_message_read(m, "ss", &host, &duration);
        if (r < 0)
                return r;
        put_grant(d, host, duration);
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

static int read_details(sd_bus_message *m, const Say *said, const Action *action, const Session *session, uint64_t grant, GateDetails *d) {
        char buffer[TIMESPAN_TEXT_MAX];
        const Grant *g;

        if (action->permission == PERMISSION_CREATE)
                return read_project(m, d);
        if (action->kind == MEMBER_SAID) {
                put_grant(d, said->host, said->duration);
                return 0;
        }
        if (streq(action->member, "Grant"))
                return read_grant(m, d);
        g = session ? grant_list_find(session_grants(session), (uint32_t) grant) : NULL;
        if (g) {
                put(d->host, g->host);
                put(d->duration, grant_duration_text(g, buffer));
        }
        return 0;
}

void gate_details_read(sd_bus_message *m, const Say *said, const Action *action, const Session *session, uint64_t grant, GateDetails *ret) {
        bool create = action->permission == PERMISSION_CREATE;

        *ret = (GateDetails){};
        if (session && session_record(session)->project)
                put(ret->project, session_record(session)->project);
        if ((action->kind != MEMBER_METHOD && action->kind != MEMBER_SAID) || (!create && action->permission != PERMISSION_GRANT))
                return;
        if (read_details(m, said, action, session, grant, ret) < 0)
                ret->whole_project = NULL;
        (void) sd_bus_message_rewind(m, true);
        /* A message's variable without a value would stand in it as it is. */
        if (create && !*ret->project)
                put(ret->project, "-");
        if (!create && !*ret->host)
                put(ret->host, "-");
        if (!create && !*ret->duration)
                put(ret->duration, "-");
}
