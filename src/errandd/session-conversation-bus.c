/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Words: Prompt, and Say with the commands of the thread. What each needs was settled by the gate, from the same text. */

#include "basic/text.h"
#include "errandd/bus-objects.h"
#include "errandd/operation.h"
#include "errandd/say.h"

#define LISTED_MAX 20U /* grants in a reply */

/* What a command does: at once, with *ret_reply, or later, when *ret_reply is the reply if it works. */
typedef struct Deed {
        int (*now)(BusTarget *t, const Say *said, char **ret_reply, Fault *f);
        int (*later)(BusTarget *t, const Say *said, Done done, void *userdata, Fault *f);
        const char *reply; /* of later; NULL: its own */
} Deed;

static int out_of_memory(Fault *f) {
        return fault_set(f, ERROR_SETUP, "out of memory");
}

static int normalize(const char *host, char ret[static HOST_TEXT_MAX + 1], Fault *f) {
        const char *problem;

        return host_text_normalize(host, HOST_TEXT_WILDCARD, ret, &problem) < 0
                       ? fault_set(f, ERROR_INVALID_ARGUMENT, "the host \"%.256s\" %s", host, problem) : 0;
}

static void on_granted(Session *s, _unused_ const Grant *g, const Fault *fault, void *userdata) {
        operation_done(s, fault, -EBADF, userdata);
}

static int deed_grant(BusTarget *t, const Say *said, _unused_ Done done, void *userdata, Fault *f) {
        Caller caller = bus_link_caller(t->link);
        char host[HOST_TEXT_MAX + 1], span[TIMESPAN_TEXT_MAX], *reply;
        const char *problem;
        Grant g = {};
        int r;

        r = normalize(said->host, host, f);
        if (r < 0)
                return r;
        if (grant_duration_parse(said->duration, &g.duration, &g.span, &problem) < 0)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "%s", problem);
        r = g.duration == GRANT_ONCE     ? asprintf(&reply, "%s is granted for the session's next connection to it.", host)
            : g.duration == GRANT_ALWAYS ? asprintf(&reply, "%s is granted for as long as the session is kept.", host)
                                         : asprintf(&reply, "%s is granted for %s.", host, grant_duration_text(&g, span));
        if (r < 0)
                return out_of_memory(f);
        operation_set_text(userdata, reply);
        return session_grant(t->session, &caller, said->host, said->duration, on_granted, userdata, f);
}

static size_t count_grants(const Session *s, const char *host, uint32_t *ret_number) {
        const GrantList *l = session_grants(s);
        size_t n = 0;

        for (size_t i = 0; i < l->n_grants; i++)
                if (streq(l->grants[i].host, host)) {
                        *ret_number = l->grants[i].number;
                        n++;
                }
        return n;
}

/* All that it has for that host; the last one is written last. */
static int deed_revoke(BusTarget *t, const Say *said, Done done, void *userdata, Fault *f) {
        char host[HOST_TEXT_MAX + 1], *reply;
        uint32_t number;
        size_t n;
        int r;

        r = normalize(said->host, host, f);
        if (r < 0)
                return r;
        n = count_grants(t->session, host, &number);
        if (n == 0)
                return fault_set(f, ERROR_NOT_FOUND, "session %s has no grant for %s; !grants lists those that it has", session_record(t->session)->id, host);
        if (asprintf(&reply, "%s is not granted any more. Connections that are open stay so.", host) < 0)
                return out_of_memory(f);
        operation_set_text(userdata, reply);
        for (; n > 0 && r >= 0; n = count_grants(t->session, host, &number)) {
                r = session_revoke(t->session, number, n == 1 ? done : NULL, n == 1 ? userdata : NULL, f);
                if (n == 1)
                        break;
        }
        return r;
}

static int deed_grants(BusTarget *t, _unused_ const Say *said, char **ret_reply, Fault *f) {
        const GrantList *l = session_grants(t->session);
        _cleanup_free_ char *list = NULL;
        char span[TIMESPAN_TEXT_MAX];
        GrantClock now;
        size_t n = 0;
        int r;

        r = grant_clock_now(&now);
        for (size_t i = 0; i < l->n_grants && r >= 0; i++)
                if (!l->grants[i].pending && grant_in_force(&l->grants[i], &now) && n++ < LISTED_MAX)
                        r = string_append(&list, "%s%s (%s)", list ? ", " : "", l->grants[i].host, grant_duration_text(&l->grants[i], span));
        if (r < 0)
                return out_of_memory(f);
        r = n == 0           ? asprintf(ret_reply, "Nothing is granted beyond what is configured.")
            : n > LISTED_MAX ? asprintf(ret_reply, "Granted: %s and %zu more.", list, n - LISTED_MAX)
                             : asprintf(ret_reply, "Granted: %s.", list);
        return r < 0 ? out_of_memory(f) : 0;
}

/* What its agent does, or "". */
static int tell_conversation(const Session *s, char **ret) {
        _cleanup_free_ char *turn = NULL, *asks = NULL;
        ConversationState c;
        int r;

        if (!session_conversation(s, &c)) {
                *ret = strdup("");
                return *ret ? 0 : -ENOMEM;
        }
        if (!c.known) { /* what was known is of before */
                *ret = strdup(c.reached ? " Its shim has not answered yet."
                                        : " Its shim cannot be reached at the moment, and errandd goes on trying; where its agent is is told then.");
                return *ret ? 0 : -ENOMEM;
        }
        r = !c.ready         ? asprintf(&turn, " Its agent has not answered yet.")
            : c.prompt > 0   ? asprintf(&turn, " Its agent works on prompt %llu.", (unsigned long long) c.prompt)
            : c.turn         ? asprintf(&turn, " Its agent begins a turn.")
            : c.queued == 0  ? asprintf(&turn, " Its agent waits for a prompt.")
                             : asprintf(&turn, " Its agent waits for a turn.");
        if (r >= 0 && c.n_questions > 0)
                r = asprintf(&asks, " It asks, as its transcript has it: !answer %llu OPTION answers.", (unsigned long long) c.questions[0]);
        if (r >= 0)
                r = c.queued > 0 ? asprintf(ret, "%s %zu %s.%s", turn, c.queued, c.queued == 1 ? "prompt waits" : "prompts wait", asks ?: "")
                                 : asprintf(ret, "%s%s", turn, asks ?: "");
        return r < 0 ? -ENOMEM : 0;
}

static int deed_status(BusTarget *t, _unused_ const Say *said, char **ret_reply, Fault *f) {
        const SessionRecord *record = session_record(t->session);
        const char *waiting = session_waiting(t->session), *state = session_state_to_string(session_state(t->session));
        _cleanup_free_ char *doing = NULL;
        int r;

        r = tell_conversation(t->session, &doing);
        if (r >= 0)
                r = waiting ? asprintf(ret_reply, "Session %s is %s and waits for %s.", record->id, state, waiting)
                    : record->exit_reason && !session_state_live(session_state(t->session))
                            ? asprintf(ret_reply, "Session %s is %s: %s, status %llu%s%s.", record->id, state, record->exit_reason,
                                       (unsigned long long) record->exit_status, record->exit_text ? "; " : "", record->exit_text ?: "")
                            : asprintf(ret_reply, "Session %s is %s.%s", record->id, state, doing);
        return r < 0 ? out_of_memory(f) : 0;
}

static int deed_help(_unused_ BusTarget *t, _unused_ const Say *said, char **ret_reply, Fault *f) {
        *ret_reply = say_help();
        return *ret_reply ? 0 : out_of_memory(f);
}

static int deed_answer(BusTarget *t, const Say *said, Done done, void *userdata, Fault *f) {
        return session_answer(t->session, said->question, said->option, done, userdata, f);
}

static int deed_interrupt(BusTarget *t, _unused_ const Say *said, Done done, void *userdata, Fault *f) {
        return session_interrupt(t->session, done, userdata, f);
}

static int deed_stop(BusTarget *t, _unused_ const Say *said, Done done, void *userdata, Fault *f) {
        return session_stop(t->session, done, userdata, f);
}

static const Deed deeds[_SAY_VERB_MAX] = {
        [SAY_GRANT] = {.later = deed_grant},
        [SAY_REVOKE] = {.later = deed_revoke},
        [SAY_GRANTS] = {.now = deed_grants},
        [SAY_STATUS] = {.now = deed_status},
        [SAY_HELP] = {.now = deed_help},
        [SAY_ANSWER] = {.later = deed_answer, .reply = "The agent has the answer."},
        [SAY_INTERRUPT] = {.later = deed_interrupt, .reply = "The turn is being ended, and what waited is dropped."},
        [SAY_STOP] = {.later = deed_stop, .reply = "The session has ended."},
};

static int do_now(sd_bus_message *m, BusTarget *t, const Say *said, sd_bus_error *error) {
        _cleanup_free_ char *reply = NULL;
        Fault f = {};
        int r;

        r = deeds[said->verb].now(t, said, &reply, &f);
        if (r < 0)
                return bus_fault(error, &f, r);
        bus_unread_add_answer(t->link, strlen(reply));
        return sd_bus_reply_method_return(m, "s", reply);
}

static int do_later(sd_bus_message *m, BusTarget *t, const Say *said, sd_bus_error *error) {
        _cleanup_free_ char *reply = deeds[said->verb].reply ? strdup(deeds[said->verb].reply) : NULL;
        Operation *o;
        Fault f = {};
        int r;

        if (deeds[said->verb].reply && !reply)
                return -ENOMEM;
        r = operation_new(t->link, m, "s", &o, error);
        if (r < 0)
                return r;
        if (reply) /* else the deed says itself what was done */
                operation_set_text(o, TAKE_PTR(reply));
        r = deeds[said->verb].later(t, said, operation_done, o, &f);
        return operation_begun(o, r, &f, error);
}

static void on_prompted(_unused_ Session *s, uint64_t number, const Fault *fault, void *userdata) {
        operation_answer_number(userdata, fault, number);
}

static void on_said(Session *s, _unused_ uint64_t number, const Fault *fault, void *userdata) {
        operation_done(s, fault, -EBADF, userdata);
}

/* reply: what it is answered with; taken. NULL: the prompt's number. */
static int prompt(sd_bus_message *m, BusTarget *t, const char *text, char *reply, sd_bus_error *error) {
        Caller caller = bus_link_caller(t->link);
        Operation *o;
        Fault f = {};
        int r;

        r = operation_new(t->link, m, reply ? "s" : "t", &o, error);
        if (r < 0) {
                free(reply);
                return r;
        }
        operation_set_text(o, reply);
        r = session_prompt(t->session, &caller, text, reply ? on_said : on_prompted, o, &f);
        return operation_begun(o, r, &f, error);
}

static int deed_prompt(sd_bus_message *m, BusTarget *t, const char *text, sd_bus_error *error) {
        ConversationState c;
        size_t ahead = session_conversation(t->session, &c) ? c.queued + c.turn : 0;
        char *reply;
        int r;

        r = ahead > 0 ? asprintf(&reply, "It waits: the agent has %zu to do before it.", ahead) : asprintf(&reply, "It is on its way to the agent.");
        return r < 0 ? -ENOMEM : prompt(m, t, text, reply, error);
}

int session_method_say(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        BusTarget *t = userdata;
        const Say *said = bus_link_said(t->link);
        const char *text;

        int r = sd_bus_message_read_basic(m, 's', &text);
        if (r < 0)
                return r;
        return said->verb == SAY_PROMPT ? deed_prompt(m, t, text, error) : deeds[said->verb].now ? do_now(m, t, said, error) : do_later(m, t, said, error);
}

int session_method_prompt(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *text;
        int r;

        r = sd_bus_message_read_basic(m, 's', &text);
        return r < 0 ? r : prompt(m, userdata, text, NULL, error);
}
