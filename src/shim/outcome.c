/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <sys/wait.h>

#include "basic/text.h"
#include "shim/outcome.h"

/* Whether it is the kernel that ended what the end of the session was. */
static bool out_of_memory(Shim *s) {
        const ExitStatus *e = &s->exit;

        if (s->killed || group_oom_kills(s->group) == 0)
                return false;
        if (!s->has_closing)
                return s->child_code != CLD_EXITED && s->child_status == SIGKILL;
        return e->reason == EXIT_REASON_KILLED || (e->reason == EXIT_REASON_SIGNAL && e->status == 128 + SIGKILL);
}

/* Whether it is the conversation that says how a command ended that has run. */
static bool settle_conversation(Shim *s, char **ret_text) {
        const char *awaited = s->conversation ? conversation_awaits(s->conversation) : NULL;
        ExitStatus *e = &s->exit;

        if (s->failure)
                *ret_text = TAKE_PTR(s->failure);
        else if (!awaited || s->stopping || s->killed)
                return false;
        else if (asprintf(ret_text, "the agent ended with status %u before it had answered %s", e->status, awaited) < 0)
                *ret_text = NULL;
        e->reason = awaited ? EXIT_REASON_SETUP : EXIT_REASON_KILLED;
        e->status = awaited ? 125 : e->status ?: 128 + SIGTERM; /* it may have taken the stop for a good end */
        return true;
}

void outcome_settle(Shim *s) {
        ExitStatus *e = &s->exit;
        char *text = NULL;
        int n = 0;

        if (s->refused) {
                e->reason = EXIT_REASON_SETUP;
                e->status = 125;
                n = asprintf(&text, "%s", s->refused);
        } else if (out_of_memory(s)) {
                e->reason = EXIT_REASON_KILLED;
                e->status = 128 + SIGKILL;
                n = asprintf(&text, "out of memory: it used as much as it may, and the kernel ended it");
        } else if (s->has_closing && settle_conversation(s, &text))
                n = 0;
        else if (s->has_closing && e->reason != EXIT_REASON_KILLED)
                return;
        else if (!s->has_closing && s->stopping && !s->killed && s->state == SHIM_STARTING && s->child_code != CLD_EXITED) {
                e->reason = EXIT_REASON_KILLED;
                e->status = 128 + SIGTERM;
                n = asprintf(&text, "it was stopped before it ran");
        } else if (!s->has_closing && s->child_code != CLD_EXITED) {
                e->reason = EXIT_REASON_KILLED;
                e->status = 128U + (unsigned) s->child_status;
                n = asprintf(&text, "its supervisor was ended by signal %d", s->child_status);
        } else if (s->killed) {
                e->reason = EXIT_REASON_KILLED;
                e->status = 128 + SIGKILL;
                n = asprintf(&text, "it did not end in time after it was asked to");
        } else if (s->has_closing)
                n = asprintf(&text, "%s", s->last_line ?: "its first process was killed");
        else if (s->stopping && s->child_status == 125) { /* also between the report and the command's first instruction */
                e->reason = EXIT_REASON_KILLED;
                e->status = 128 + SIGTERM;
                n = asprintf(&text, "it was stopped before it ran");
        } else {
                e->reason = EXIT_REASON_SETUP;
                e->status = (unsigned) s->child_status;
                n = asprintf(&text, "%s", s->last_line ?: "bailey gives no reason");
        }
        e->text = n < 0 ? NULL : text;
}
