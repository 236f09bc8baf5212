/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "errand/describe.h"
#include "errand/entries.h"
#include "shared/bus-error.h"
#include "shared/bus-object.h"

void description_done(Description *d) {
        free(d->command);
        free(d->allow);
        sd_bus_message_unref(d->message);
        *d = (Description){};
}

bool session_has_ended(const char *state) {
        return streq(state, "stopped") || streq(state, "failed");
}

bool description_ended(const Description *d) {
        return session_has_ended(d->state);
}

int exit_code_of(const char *reason, int status) {
        if (streq(reason, "lost"))
                return EXIT_LOST;
        if (streq(reason, "setup"))
                return status >= EXIT_NOT_SET_UP && status <= EXIT_NOT_FOUND ? status : EXIT_NOT_SET_UP;
        return status & 0xff;
}

static int read_description(sd_bus_message *m, Description *d) {
        const Entry entries[] = {
                {"State", 's', &d->state},       {"ExitReason", 's', &d->reason},    {"ExitText", 's', &d->text},
                {"Project", 's', &d->project},   {"Waiting", 's', &d->waiting},
                {"Provider", 's', &d->provider}, {"Model", 's', &d->model},          {"Network", 's', &d->network},
                {"Backend", 's', &d->backend},   {"Command", 'a', &d->command},      {"Allow", 'a', &d->allow},
                {"ExitStatus", 'i', &d->status}, {"OwnerUid", 'u', &d->owner},       {"PayloadUid", 'u', &d->payload},
                {"CreatedUSec", 't', &d->created}, {"StartedUSec", 't', &d->started}, {"EndedUSec", 't', &d->ended},
                {"RefusedCount", 't', &d->refused}, {"Interactive", 'b', &d->interactive}, {"Protocol", 's', &d->protocol},
                {"Turn", 't', &d->turn}, {"QueuedPrompts", 't', &d->queued}, {"OpenQuestions", 't', &d->questions},
        };

        int r = entries_read(m, entries, ELEMENTSOF(entries));
        if (r == 0)
                return -EBADMSG;
        if (r > 0 && !d->command && !(d->command = strdup("")))
                return -ENOMEM;
        return r < 0 ? r : sd_bus_message_rewind(m, true);
}

static int take_description(sd_bus_message *m /* taken */, const char *id, Description *ret) {
        _cleanup_(description_done) Description d = {.state = "", .reason = "", .text = "", .project = "", .provider = "", .model = "", .network = "", .backend = "",
                                                     .protocol = "none", .waiting = "", .turn = UINT64_MAX, .message = m};

        int r = read_description(m, &d);
        if (r < 0) {
                log_error_errno(r, "errandd's description of session %s cannot be read: %m", id);
                return EXIT_FAILED;
        }
        *ret = d;
        d = (Description){};
        return EXIT_OK;
}

int describe(Connection *c, const char *id, Description *ret) {
        sd_bus_message *m = NULL;

        int r = session_call(c, id, "Describe", "Failed to look at it", &m, NULL);
        return r == EXIT_OK ? take_description(m, id, ret) : r;
}

int describe_if_there(Connection *c, const char *id, Description *ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;
        sd_bus_message *reply = NULL;

        int r = connection_new_call(c, bus_session_path(id).text, BUS_SESSION_INTERFACE, "Describe", &m);
        if (r >= 0)
                r = sd_bus_call(c->bus, m, UINT64_MAX, &e, &reply);
        if (r >= 0)
                return take_description(reply, id, ret);
        return bus_error_from_name(e.name) == BUS_ERROR_NOT_FOUND ? EXIT_NOT_THERE : bus_failure(&e, r, "Failed to look at session %s", id);
}
