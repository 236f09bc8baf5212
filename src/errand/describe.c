/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "errand/describe.h"
#include "errand/entries.h"

void description_done(Description *d) {
        free(d->command);
        free(d->allow);
        sd_bus_message_unref(d->message);
        *d = (Description){};
}

bool description_ended(const Description *d) {
        return streq(d->state, "stopped") || streq(d->state, "failed");
}

static int read_description(sd_bus_message *m, Description *d) {
        const Entry entries[] = {
                {"State", 's', &d->state},       {"ExitReason", 's', &d->reason},    {"ExitText", 's', &d->text},
                {"Project", 's', &d->project},
                {"Provider", 's', &d->provider}, {"Model", 's', &d->model},          {"Network", 's', &d->network},
                {"Backend", 's', &d->backend},   {"Command", 'a', &d->command},      {"Allow", 'a', &d->allow},
                {"ExitStatus", 'i', &d->status}, {"OwnerUid", 'u', &d->owner},       {"PayloadUid", 'u', &d->payload},
                {"CreatedUSec", 't', &d->created}, {"StartedUSec", 't', &d->started}, {"EndedUSec", 't', &d->ended},
                {"RefusedCount", 't', &d->refused}, {"Interactive", 'b', &d->interactive},
        };

        int r = entries_read(m, entries, ELEMENTSOF(entries));
        if (r == 0)
                return -EBADMSG;
        if (r > 0 && !d->command && !(d->command = strdup("")))
                return -ENOMEM;
        return r < 0 ? r : sd_bus_message_rewind(m, true);
}

int describe(Connection *c, const char *id, Description *ret) {
        _cleanup_(description_done) Description d = {.state = "", .reason = "", .text = "", .project = "", .provider = "", .model = "", .network = "", .backend = ""};
        int r;

        r = session_call(c, id, "Describe", "Failed to look at it", &d.message, NULL);
        if (r != EXIT_OK)
                return r;
        r = read_description(d.message, &d);
        if (r < 0) {
                log_error_errno(r, "errandd's description of session %s cannot be read: %m", id);
                return EXIT_FAILED;
        }
        *ret = d;
        d = (Description){};
        return EXIT_OK;
}
