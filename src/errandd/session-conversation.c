/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "basic/utf8.h"
#include "errandd/session-run.h"

/* Who waits for an answer of the shim's. A session is not freed before the conversation of its run is. */
typedef struct Wait {
        Session *session;
        Done done;
        PromptDone prompted; /* or that */
        void *userdata;
} Wait;

static void on_answer(uint64_t prompt, const char *problem, void *userdata) {
        Wait wait = *(Wait *) userdata;
        Fault f = {};

        free(userdata);
        if (problem)
                (void) fault_set(&f, ERROR_WRONG_STATE, "session %s: %s", wait.session->record->id, problem);
        if (wait.prompted)
                wait.prompted(wait.session, prompt, problem ? &f : NULL, wait.userdata);
        else if (wait.done)
                wait.done(wait.session, problem ? &f : NULL, -EBADF, wait.userdata);
        fault_done(&f);
}

static void on_update(const Update *u, void *userdata) {
        Session *s = ((Run *) userdata)->session;
        const Observer *o = &s->manager->observer;

        if (o->session_update)
                o->session_update(s, u, o->userdata);
}

static void on_turn(bool given, void *userdata) {
        Session *s = ((Run *) userdata)->session;

        s->record->turn = given;
        (void) session_save(s);
}

void run_converse(Run *run) {
        Session *s = run->session;
        Manager *m = s->manager;

        if (!s->record->protocol || !run->shim || run->conversation)
                return;
        /* Who is an operator is known when one asks. */
        int r = conversation_new(m->event, run->shim, &m->turns, s->record->id, s->record->owner, m->mode->project_names, run->found && s->record->turn,
                                 &(ConversationHandler){.update = on_update, .turn = on_turn, .userdata = run}, &run->conversation);
        if (r < 0)
                log_session_error_errno(r, s->record->id, "its agent cannot be talked to: %m");
}

void run_drop_shim(Run *run, const char *text) {
        run->conversation = conversation_free(run->conversation, text);
        run->shim = shim_client_free(run->shim);
}

static int not_running(const Session *s, SessionState state, Fault *f) {
        const char *id = s->record->id, *text = s->record->exit_text;

        if (state == SESSION_CREATED)
                return fault_set(f, ERROR_WRONG_STATE, "session %s was not started yet: errand session start %s", id, id);
        if (session_state_live(state))
                return fault_set(f, ERROR_WRONG_STATE, "session %s is %s; only an agent that runs can be talked to", id, session_state_to_string(state));
        return fault_set(f, ERROR_WRONG_STATE, "session %s has ended%s%s; errand session start %s starts it again", id, text ? ": " : "", text ?: "", id);
}

static int find(Session *s, Conversation **ret, Fault *f) {
        SessionState state = session_state(s);

        if (!s->record->protocol)
                return fault_set(f, ERROR_WRONG_STATE, "session %s is not talked to: it was not created with protocol acp (errand session create --protocol acp)",
                                 s->record->id);
        if (state != SESSION_RUNNING)
                return not_running(s, state, f);
        if (!s->run || !s->run->conversation)
                return fault_set(f, ERROR_WRONG_STATE, "the shim of session %s cannot be reached, so nothing can be said to its agent", s->record->id);
        *ret = s->run->conversation;
        return 0;
}

static Wait *wait_new(Session *s, Done done, PromptDone prompted, void *userdata, Fault *f) {
        Wait *w = malloc(sizeof(Wait));

        if (w)
                *w = (Wait){.session = s, .done = done, .prompted = prompted, .userdata = userdata};
        else
                (void) fault_set(f, ERROR_SETUP, "out of memory");
        return w;
}

static int begun(Wait *w, int r) {
        if (r < 0)
                free(w);
        return r;
}

int session_prompt(Session *s, const Caller *caller, const char *text, PromptDone done, void *userdata, Fault *f) {
        Conversation *c;

        int r = find(s, &c, f);
        if (r < 0)
                return r;
        size_t size = strlen(text);
        if (size == 0)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "the prompt is empty");
        if (size > PROMPT_SIZE_MAX)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "the prompt has %zu bytes, more than %u; put it into a file of the project and name that", size,
                                 PROMPT_SIZE_MAX);
        if (!utf8_valid(text))
                return fault_set(f, ERROR_INVALID_ARGUMENT, "the prompt is not UTF-8");
        Wait *w = wait_new(s, NULL, done, userdata, f);
        return w ? begun(w, conversation_prompt(c, text, s->manager->config->limits.queue_wait, caller->operator, on_answer, w, f)) : -ENOMEM;
}

int session_interrupt(Session *s, Done done, void *userdata, Fault *f) {
        Conversation *c;

        int r = find(s, &c, f);
        Wait *w = r < 0 ? NULL : wait_new(s, done, NULL, userdata, f);
        return r < 0 ? r : w ? begun(w, conversation_interrupt(c, on_answer, w, f)) : -ENOMEM;
}

int session_answer(Session *s, uint64_t question, const char *option, Done done, void *userdata, Fault *f) {
        Conversation *c;

        int r = find(s, &c, f);
        Wait *w = r < 0 ? NULL : wait_new(s, done, NULL, userdata, f);
        return r < 0 ? r : w ? begun(w, conversation_answer(c, question, option, on_answer, w, f)) : -ENOMEM;
}

bool session_conversation(const Session *s, ConversationState *ret) {
        if (session_state(s) != SESSION_RUNNING || !s->run || !s->run->conversation)
                return false;
        conversation_state(s->run->conversation, ret);
        return true;
}
