/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/conversation.h"
#include "errandd/numbers.h"
#include "errandd/prompt-queue.h"
#include "errandd/shim-pace.h"
#include "shared/message.h"

#define UNKNOWN_PROMPT "errandd's connection to its shim broke, and whether its agent got the prompt is not known; the transcript tells"
#define PROMPT_SIGNALS 3U /* queued, turn-started, turn-ended */
#define ANSWER_SIGNALS 2U /* question, answered */
#define REFUSALS_MAX 3U /* turns in a row that a shim asked for and then did not take */

typedef enum TurnPhase {
        TURN_NONE,
        TURN_ASKED,   /* the shim has been told to begin one */
        TURN_ALLOWED, /* and has said yes: which it is comes with "turn-started" */
        TURN_RUNS,
} TurnPhase;

/* A request that somebody waits for. */
typedef struct Asked {
        struct Asked *next;
        Conversation *conversation;
        ConversationDone done;
        void *userdata;
        uint64_t number; /* of a prompt that was sent once; else 0 */
        int text;        /* of a prompt; else -EBADF */
        bool sent;       /* over this connection or the one before: it may be there */
        usec_t wait;
} Asked;

struct Conversation {
        ShimClient *shim; /* NULL: there is no connection at the moment */
        char *session;
        ConversationHandler handler;
        TurnSeat seat;
        bool found;  /* an earlier errandd gave it a turn, and it has not said yet whether that goes on: it counts as one that does, for a while */
        sd_event_source *found_end;
        bool given;  /* a turn, as recorded */
        bool known;  /* the shim has said where it is */
        bool looking; /* it has been asked to */
        bool resumes; /* over a connection that was made anew, and it has not said so over that */
        bool counts;  /* its updates have numbers: told is the last that was taken */
        uint64_t told;
        bool ready;
        bool greeted; /* that was told */
        bool broken; /* the shim does not hold to the protocol: nothing is asked of it any more */
        TurnPhase phase;
        uint64_t turn, last;
        PromptQueue queue;
        uint64_t questions[QUESTIONS_MAX];
        size_t n_questions;
        Asked *asked;
        size_t n_prompts; /* of those asked */
        unsigned refusals;
        uint64_t strange; /* events that made no sense */
        ShimPace pace;
};

/* ---- what is asked ---- */

static Asked *asked_add(Conversation *c, ConversationDone done, void *userdata) {
        Asked *a = calloc(1, sizeof(Asked)), **at = &c->asked;

        if (!a)
                return NULL;
        *a = (Asked){.conversation = c, .done = done, .userdata = userdata, .text = -EBADF};
        while (*at) /* in the order in which they came */
                at = &(*at)->next;
        *at = a;
        return a;
}

static void asked_remove(Asked *a) {
        Conversation *c = a->conversation;

        for (Asked **at = &c->asked; *at; at = &(*at)->next)
                if (*at == a) {
                        *at = a->next;
                        break;
                }
        c->n_prompts -= a->text >= 0;
        if (c->shim)
                shim_client_forget(c->shim, a);
        safe_close(a->text);
        free(a);
}

static void asked_end(Asked *a, const char *problem) {
        ConversationDone done = a->done;
        void *userdata = a->userdata;
        uint64_t prompt = problem ? 0 : a->number;

        asked_remove(a);
        done(prompt, problem, userdata);
}

/* ---- numbers ---- */

static Asked *find_asked(const Conversation *c, uint64_t number) {
        for (Asked *a = c->asked; a && number > 0; a = a->next)
                if (a->number == number)
                        return a;
        return NULL;
}

static void add_queued(Conversation *c, uint64_t number) {
        if (c->turn != number)
                prompt_queue_add(&c->queue, number);
}

/* Of the queue: its head, while the turn that was asked for has not begun. */
static size_t count_taken(const Conversation *c) {
        return c->phase == TURN_ASKED || c->phase == TURN_ALLOWED ? MIN(c->queue.n, (size_t) 1) : 0;
}

static size_t count_waiting(const Conversation *c) {
        return c->queue.n - count_taken(c) + c->n_prompts;
}

static void note_turn(Conversation *c) {
        if (c->given == c->seat.running)
                return;
        c->given = c->seat.running;
        c->handler.turn(c->given, c->handler.userdata);
}

/* The place among those that want a turn follows from what is known, so that no event that is lost, doubled or made up puts it out of step. */
static void settle(Conversation *c) {
        bool in_turn = c->found || c->phase != TURN_NONE;

        if (c->broken)
                turn_seat_set(&c->seat, false, false, false, 0);
        else
                turn_seat_set(&c->seat, c->known && c->ready && !in_turn, in_turn, c->queue.n > 0, prompt_queue_count_own(&c->queue, count_taken(c)) + c->n_prompts);
        note_turn(c);
}

static void tell(Conversation *c, const Update *u) {
        c->handler.update(u, c->handler.userdata);
        usec_t pause = update_kind_is_text(u->kind) ? 0 : shim_pace_spend(&c->pace, update_size(u), now_monotonic());
        if (pause > 0 && c->shim)
                shim_client_pause(c->shim, pause);
}

static void tell_ended(Conversation *c, uint64_t number, const char *text) {
        tell(c, &(Update){.kind = UPDATE_TURN_ENDED, .n_fields = 3,
                          .fields = {{.name = "prompt", .number = number}, {.name = "reason", .text = "error"}, {.name = "text", .text = text}}});
}

/* Nobody is told of it any more, whatever the shim does. */
static void forget_prompts(Conversation *c, const char *text) {
        if (c->turn > 0)
                tell_ended(c, c->turn, text);
        for (size_t i = 0; i < c->queue.n; i++)
                tell_ended(c, c->queue.numbers[i], text);
        c->phase = TURN_NONE;
        c->turn = 0;
        c->queue.n = c->n_questions = 0;
}

static void break_off(Conversation *c, const char *why) {
        if (c->broken)
                return;
        log_session_error(c->session, "its agent cannot be talked to any more: %s", why);
        c->broken = true;
        while (c->asked)
                asked_end(c->asked, why);
        forget_prompts(c, why);
        settle(c);
}

/* ---- where the shim is ---- */

/* What was there and is not any more ended without a word, or the word was lost. */
static void tell_lost(Conversation *c, const uint64_t before[], size_t n) {
        for (size_t i = 0; i < n; i++)
                if (before[i] > 0 && before[i] != c->turn && !prompt_queue_has(&c->queue, before[i]))
                        tell_ended(c, before[i], "it is over, and how it ended was not told");
}

static bool was_sent(uint64_t number, const void *userdata) {
        return find_asked(userdata, number);
}

static int adopt(Conversation *c, JsonObject *o, uint64_t *ret_last) {
        uint64_t before[PROMPTS_MAX + 1], queued[PROMPTS_MAX], turn, last;
        size_t n_before = c->queue.n, n_queued;
        bool ready;

        if (json_get_bool(o, "ready", &ready) < 0 || json_get_u64(o, "turn", INT64_MAX, &turn) < 0 || json_get_u64(o, "last", INT64_MAX - 1, &last) < 0 ||
            numbers_read(o, "queued", PROMPTS_MAX, queued, &n_queued) < 0)
                return -EBADMSG;
        (void) numbers_take(queued, &n_queued, turn);
        memcpy(before, c->queue.numbers, n_before * sizeof(*before));
        prompt_queue_replace(&c->queue, queued, n_queued, was_sent, c);
        before[n_before++] = c->turn;
        c->ready = ready;
        c->last = MAX(c->last, last);
        if (turn != c->turn)
                c->n_questions = 0;
        c->turn = turn;
        if (turn > 0)
                c->phase = TURN_RUNS;
        else if (c->phase != TURN_ASKED || c->resumes) /* it is asked for after this, and answered after this */
                c->phase = TURN_NONE;
        c->known = true;
        c->found = false;
        tell_lost(c, before, n_before);
        *ret_last = last;
        return 0;
}

static int send_prompt(Asked *a);

static void send_waiting(Conversation *c) {
        for (Asked *a = c->asked; a; a = a->next)
                if (a->text >= 0 && !a->sent && send_prompt(a) < 0) {
                        shim_client_break(c->shim);
                        return;
                }
}

/* What was sent over a connection that broke is there, or was not taken and goes again, with the number that it had: a shim takes none twice. */
static void settle_sent(Conversation *c, uint64_t last) {
        for (Asked *a = c->asked, *next; a; a = next) {
                next = a->next;
                if (!a->sent)
                        continue;
                if (a->number == c->turn || prompt_queue_has(&c->queue, a->number))
                        asked_end(a, NULL);
                else if (a->number > last)
                        a->sent = false;
                else
                        asked_end(a, UNKNOWN_PROMPT);
        }
}

static void on_state(Message *m, const char *problem, void *userdata) {
        Conversation *c = userdata;
        uint64_t last, told;
        JsonObject *o;

        if (!m)
                return; /* the connection went: conversation_detach() */
        c->looking = false;
        if (problem || json_get_object(message_object(m), "conversation", &o) < 0 || adopt(c, o, &last) < 0) {
                break_off(c, problem ?: "its shim does not say where the conversation is");
                return;
        }
        if (!c->counts && json_get_u64(message_object(m), "told", INT64_MAX, &told) >= 0) {
                c->counts = true;
                c->told = told;
        }
        if (c->resumes)
                settle_sent(c, last);
        c->resumes = false;
        send_waiting(c);
        settle(c);
}

/* Until that is answered no turn begins. */
static void look_again(Conversation *c) {
        c->known = false;
        if (c->looking || c->broken) /* what comes is of after this */
                return;
        c->looking = true;
        if (shim_client_status(c->shim, on_state, c) < 0)
                shim_client_break(c->shim);
}

/* ---- turns ---- */

static void on_turn(Message *m, const char *problem, void *userdata) {
        Conversation *c = userdata;

        if (!m)
                return;
        if (!problem) {
                c->refusals = 0;
                if (c->phase == TURN_ASKED)
                        c->phase = TURN_ALLOWED;
                return;
        }
        /* Its prompt may have been given up, or taken back, at that moment. */
        if (c->phase == TURN_ASKED)
                c->phase = TURN_NONE;
        if (++c->refusals >= REFUSALS_MAX)
                break_off(c, "its shim takes no turns");
        else
                look_again(c);
        settle(c);
}

static void on_begin(void *userdata) {
        Conversation *c = userdata;

        if (!c->shim) {
                settle(c);
                return;
        }
        c->phase = TURN_ASKED;
        note_turn(c); /* before the shim knows of it */
        if (shim_client_turn(c->shim, on_turn, c) < 0) {
                c->phase = TURN_NONE;
                c->known = false; /* until it is asked over another connection */
                shim_client_break(c->shim);
        }
        settle(c);
}

/* ---- what the shim tells ---- */

/* True: it makes sense. */
static bool follow_prompt(Conversation *c, const Update *u) {
        uint64_t number = update_number(u, "prompt");
        Asked *a;

        switch (u->kind) {
        case UPDATE_QUEUED:
                a = find_asked(c, number);
                if (!a)
                        return prompt_queue_has(&c->queue, number);
                add_queued(c, number);
                asked_end(a, NULL);
                return true;
        case UPDATE_TURN_STARTED:
                if (c->phase == TURN_RUNS || !prompt_queue_take(&c->queue, number))
                        return false;
                c->phase = TURN_RUNS;
                c->turn = number;
                return true;
        case UPDATE_TURN_ENDED:
                if (number == 0 || (c->turn != number && !prompt_queue_take(&c->queue, number)))
                        return false;
                if (c->turn == number) {
                        c->phase = TURN_NONE;
                        c->turn = 0;
                        c->n_questions = 0;
                }
                return true;
        default:
                return true;
        }
}

static bool follow_question(Conversation *c, const Update *u) {
        uint64_t number = update_number(u, "question");

        if (u->kind == UPDATE_ANSWERED)
                return numbers_take(c->questions, &c->n_questions, number);
        if (number == 0 || c->n_questions >= QUESTIONS_MAX || numbers_has(c->questions, c->n_questions, number))
                return false;
        c->questions[c->n_questions++] = number;
        return true;
}

static bool follow(Conversation *c, const Update *u) {
        if (u->kind == UPDATE_READY)
                return c->ready = c->greeted = true;
        if (u->kind == UPDATE_QUESTION || u->kind == UPDATE_ANSWERED)
                return follow_question(c, u);
        return follow_prompt(c, u);
}

/* No news, and no nonsense either: a shim says again what is open to whoever begins to follow, and some of what it answered itself was never asked. */
static bool is_old(const Conversation *c, const Update *u) {
        bool open = numbers_has(c->questions, c->n_questions, update_number(u, "question"));

        return u->kind == UPDATE_READY ? c->greeted : u->kind == UPDATE_QUESTION ? open : u->kind == UPDATE_ANSWERED && !open;
}

static void on_event(Message *m, void *userdata) {
        Conversation *c = userdata;
        uint64_t number;
        Update u;

        if (!streq(message_type(m), "update") || c->broken)
                return;
        if (json_get_u64(message_object(m), "number", INT64_MAX, &number) >= 0)
                c->told = MAX(c->told, number);
        int r = update_read(message_object(m), &u);
        if (r == -ENOENT) /* of a newer shim */
                return;
        if (r >= 0 && is_old(c, &u))
                return;
        if (r < 0 || !follow(c, &u)) {
                if (log_is_due(++c->strange))
                        log_session_warning(c->session, "%llu events of its conversation made no sense and were passed over", (unsigned long long) c->strange);
                return;
        }
        tell(c, &u);
        if (u.kind == UPDATE_MISSED)
                look_again(c); /* among them may have been the end of a turn */
        settle(c);
}

/* ---- outside ---- */

static int on_found_end(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Conversation *c = userdata;

        c->found_end = sd_event_source_disable_unref(c->found_end);
        if (!c->found)
                return 0;
        log_session_warning(c->session, "its shim does not say whether its agent is in a turn, and others do not wait for that any longer");
        c->found = false;
        settle(c);
        return 0;
}

int conversation_new(sd_event *event, ShimClient *shim, Turns *turns, const char *session, uid_t owner, bool shares, bool given, const ConversationHandler *handler, Conversation **ret) {
        Conversation *c = calloc(1, sizeof(Conversation));

        if (!c)
                return -ENOMEM;
        *c = (Conversation){.shim = shim, .looking = true, .found = given, .given = given, .handler = *handler, .session = strdup(session)};
        int r = c->session ? 0 : -ENOMEM;
        if (r >= 0 && given)
                r = sd_event_add_time_relative(event, &c->found_end, CLOCK_MONOTONIC, FOUND_TURN_USEC, 0, on_found_end, c);
        if (r >= 0)
                r = shim_client_watch(shim, NULL, on_event, on_state, c);
        if (r < 0) {
                sd_event_source_disable_unref(c->found_end);
                free(c->session);
                free(c);
                return r;
        }
        turn_seat_open(&c->seat, turns, owner, shares, given, on_begin, c);
        settle(c);
        *ret = c;
        return 0;
}

static void leave_shim(Conversation *c) {
        if (!c->shim)
                return;
        shim_client_forget(c->shim, c);
        for (const Asked *a = c->asked; a; a = a->next)
                shim_client_forget(c->shim, a);
        shim_client_unwatch(c->shim);
        c->shim = NULL;
}

void conversation_detach(Conversation *c) {
        if (!c || !c->shim)
                return;
        leave_shim(c);
        c->known = c->looking = false;
        for (Asked *a = c->asked, *next; a; a = next) {
                next = a->next;
                if (a->text < 0)
                        asked_end(a, "errandd's connection to its shim broke, and whether that got to its agent is not known; see how the session is, and ask again");
        }
        settle(c);
}

int conversation_attach(Conversation *c, ShimClient *shim) {
        if (c->broken)
                return 0;
        int r = shim_client_watch(shim, c->counts ? &c->told : NULL, on_event, on_state, c);
        if (r < 0)
                return r;
        c->shim = shim;
        c->looking = c->resumes = true;
        return 0;
}

void conversation_give_up(Conversation *c) {
        while (c && c->asked)
                asked_end(c->asked, c->asked->sent ? UNKNOWN_PROMPT : "errandd's connection to its shim broke before the prompt was sent; ask again in a while");
        if (c)
                settle(c);
}

Conversation *conversation_free(Conversation *c, const char *text) {
        if (!c)
                return NULL;
        leave_shim(c);
        while (c->asked)
                asked_end(c->asked, text ?: "errandd ends; whether the agent got it is told when it is there again");
        if (text)
                forget_prompts(c, text);
        turn_seat_close(&c->seat);
        sd_event_source_disable_unref(c->found_end);
        free(c->session);
        return mfree(c);
}

static void on_prompt(Message *m, const char *problem, void *userdata) {
        Asked *a = userdata;
        Conversation *c = a->conversation;

        if (!m) /* whether it got there is known when there is another connection */
                return;
        if (!problem)
                add_queued(c, a->number);
        asked_end(a, problem);
        settle(c);
}

static int send_prompt(Asked *a) {
        Conversation *c = a->conversation;

        if (a->number == 0)
                a->number = ++c->last;
        int r = shim_client_prompt(c->shim, a->number, a->wait, a->text, on_prompt, a);
        a->sent = r >= 0;
        shim_pace_credit(&c->pace, PROMPT_SIGNALS);
        return r;
}

static int check_talks(const Conversation *c, Fault *f) {
        if (c->broken)
                return fault_set(f, ERROR_WRONG_STATE, "the agent of session %s cannot be talked to any more; errandd's log says why", c->session);
        return c->shim ? 0 : fault_set(f, ERROR_WRONG_STATE, "the shim of session %s cannot be reached at the moment, and errandd goes on trying; ask again in a while",
                                       c->session);
}

static int check_prompt(Conversation *c, bool operator, Fault *f) {
        int r = check_talks(c, f);
        if (r < 0)
                return r;
        if (c->queue.n + c->n_prompts >= PROMPTS_MAX)
                return fault_set(f, ERROR_LIMIT, "%u prompts of session %s wait already; let it answer some", PROMPTS_MAX, c->session);
        c->seat.shares = !operator;
        r = turn_seat_check(&c->seat);
        if (r == -ENOSPC)
                return fault_set(f, ERROR_LIMIT, "as many prompts wait for a turn as may (limits.maxQueueLength); try again later");
        return r == -EDQUOT ? fault_set(f, ERROR_LIMIT, "half of the prompts that may wait for a turn (limits.maxQueueLength) are yours; try again later") : 0;
}

int conversation_prompt(Conversation *c, const char *text, usec_t wait, bool operator, ConversationDone done, void *userdata, Fault *f) {
        int r = check_prompt(c, operator, f);
        if (r < 0)
                return r;
        _cleanup_close_ int fd = memfd_new_sealed("errand-prompt", text, strlen(text));
        Asked *a = fd < 0 ? NULL : asked_add(c, done, userdata);
        if (!a)
                return fault_set(f, ERROR_SETUP, "the prompt cannot be handed over: %s", strerror(fd < 0 ? -fd : ENOMEM));
        a->text = TAKE_FD(fd);
        a->wait = wait;
        c->n_prompts++;
        /* Else numbers are not known yet, or others go before it: it is sent when the shim has said where it is. */
        r = c->known || (c->last > 0 && !c->resumes) ? send_prompt(a) : 0;
        if (r < 0) {
                asked_remove(a);
                return fault_set(f, ERROR_SETUP, "the shim of session %s does not take the prompt: %s", c->session, strerror(-r));
        }
        settle(c);
        return 0;
}

static void on_answered(Message *m, const char *problem, void *userdata) {
        if (m) /* else conversation_detach() tells it */
                asked_end(userdata, problem);
}

int conversation_interrupt(Conversation *c, ConversationDone done, void *userdata, Fault *f) {
        int r = check_talks(c, f);
        if (r < 0)
                return r;
        Asked *a = asked_add(c, done, userdata);
        r = a ? shim_client_interrupt(c->shim, on_answered, a) : -ENOMEM;
        if (r < 0 && a)
                asked_remove(a);
        return r < 0 ? fault_set(f, ERROR_SETUP, "the shim of session %s cannot be asked: %s", c->session, strerror(-r)) : 0;
}

int conversation_answer(Conversation *c, uint64_t question, const char *option, ConversationDone done, void *userdata, Fault *f) {
        int r = check_talks(c, f);
        if (r < 0)
                return r;
        if (question == 0 && c->n_questions == 0)
                return fault_set(f, ERROR_WRONG_STATE, "session %s has no open question that is known here; one that is older than errandd is answered with its number",
                                 c->session);
        if (question == 0 && c->n_questions > 1)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "session %s has %zu open questions; say the number of the one that is meant", c->session, c->n_questions);
        Asked *a = asked_add(c, done, userdata);
        shim_pace_credit(&c->pace, ANSWER_SIGNALS);
        r = a ? shim_client_answer(c->shim, question > 0 ? question : c->questions[0], option, on_answered, a) : -ENOMEM;
        if (r < 0 && a)
                asked_remove(a);
        return r < 0 ? fault_set(f, ERROR_SETUP, "the shim of session %s cannot be asked: %s", c->session, strerror(-r)) : 0;
}

bool conversation_busy(const Conversation *c) {
        return c && !c->broken && (c->phase != TURN_NONE || c->queue.n > 0 || c->n_prompts > 0);
}

void conversation_state(const Conversation *c, ConversationState *ret) {
        *ret = (ConversationState){.reached = c->shim, .known = c->known, .ready = c->known && c->ready, .turn = c->phase != TURN_NONE,
                                   .prompt = c->turn > 0 ? c->turn : count_taken(c) > 0 ? c->queue.numbers[0] : 0, .queued = count_waiting(c),
                                   .n_questions = c->n_questions};
        memcpy(ret->questions, c->questions, c->n_questions * sizeof(*c->questions));
}
