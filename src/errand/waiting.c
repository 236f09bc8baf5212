/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/clock.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errand/entries.h"
#include "errand/table.h"
#include "errand/waiting.h"
#include "shared/bus-object.h"

#define ANSWER_USEC (2 * USEC_PER_SEC)

typedef struct Waiting {
        sd_bus_message *answer;
        char *said; /* last */
} Waiting;

static int on_answer(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        ((Waiting *) userdata)->answer = sd_bus_message_ref(m);
        return 0;
}

char *waiting_text(sd_bus_message *description) {
        const char *text = "";
        const Entry entries[] = {{"Waiting", 's', &text}};

        return strdup(entries_read(description, entries, ELEMENTSOF(entries)) > 0 ? text : "");
}

static char *ask(Connection *c, const char *id) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL, *reply = NULL;

        if (!id)
                return NULL;
        if (sd_bus_message_new_method_call(c->bus, &m, c->owner, bus_session_path(id).text, BUS_SESSION_INTERFACE, "Describe") < 0 ||
            sd_bus_call(c->bus, m, ANSWER_USEC, NULL, &reply) < 0)
                return NULL;
        return waiting_text(reply);
}

static void say(Waiting *w, Connection *c, const char *id) {
        _cleanup_free_ char *text = ask(c, id), *shown = text && *text ? text_for_terminal(text) : NULL;

        if (streq_ptr(w->said, shown ?: ""))
                return;
        if (shown)
                log_info("session %s: waiting for %s", id, shown);
        else
                log_info("waiting for errandd, which has not answered yet");
        free(w->said);
        w->said = strdup(shown ?: "");
}

static int wait_for(Waiting *w, Connection *c, const char *id) {
        usec_t next = now_monotonic() + WAITING_USEC, now;

        while (!w->answer) {
                int r = sd_bus_process(c->bus, NULL);

                if (r < 0)
                        return r;
                if (r > 0)
                        continue;
                now = now_monotonic();
                if (now >= next) {
                        if (c->agent == 0) /* else somebody may be typing a password there */
                                say(w, c, id);
                        next = now_monotonic() + WAITING_USEC;
                        continue;
                }
                r = sd_bus_wait(c->bus, next - now);
                if (r < 0 && r != -EINTR)
                        return r;
        }
        return 0;
}

int waiting_call(Connection *c, const char *id, sd_bus_message *m, sd_bus_error *e, sd_bus_message **ret) {
        _cleanup_(sd_bus_slot_unrefp) sd_bus_slot *slot = NULL;
        Waiting w = {};
        int r;

        if (c->listens || sd_bus_get_current_message(c->bus))
                return sd_bus_call(c->bus, m, UINT64_MAX, e, ret);
        r = sd_bus_call_async(c->bus, &slot, m, on_answer, &w, UINT64_MAX);
        if (r >= 0)
                r = wait_for(&w, c, id);
        free(w.said);
        if (r >= 0 && sd_bus_message_is_method_error(w.answer, NULL) > 0) {
                r = -sd_bus_message_get_errno(w.answer);
                if (e && sd_bus_error_copy(e, sd_bus_message_get_error(w.answer)) >= 0 && r >= 0)
                        r = -EIO;
        }
        if (r >= 0 && ret)
                *ret = TAKE_PTR(w.answer);
        sd_bus_message_unref(w.answer);
        return r < 0 ? r : 1;
}
