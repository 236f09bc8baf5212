/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <pwd.h>

#include "basic/clock.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "errandd/authorizer-polkit.h"

#define POLKIT "org.freedesktop.PolicyKit1"
#define POLKIT_PATH "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE "org.freedesktop.PolicyKit1.Authority"
#define WATCHES 2U /* what tells that polkit may answer otherwise now */
#define ALLOW_USER_INTERACTION 1U /* of CheckAuthorizationFlags */
#define CANCELLATION_MAX 32U
#define TIMER_USEC (10 * USEC_PER_MSEC) /* as exact as a timeout is */
#define ENTRY_MAX 16384U /* bytes of one account's entry */

typedef struct Question Question;

typedef struct PolkitAuthorizer {
        Authorizer authorizer; /* first: what callers have */
        sd_bus *bus;
        uid_t *operators;
        size_t n_operators;
        uint64_t last; /* number of a question */
        usec_t timeout, interactive_timeout, ahead_timeout;
        Question *questions;
        sd_bus_slot *watches[WATCHES];
        size_t watching; /* of these, those that the bus has granted */
        void (*settled)(uid_t uid, void *userdata);
        void *settled_userdata;
        bool silent;     /* what was asked last got no answer */
} PolkitAuthorizer;

struct Question {
        PolkitAuthorizer *authorizer;
        Question *next;
        sd_bus_slot *slot;  /* NULL: it was answered, with yes, and ahead */
        AuthorizeDone done; /* NULL: nobody waits for it, since it was asked ahead, or withdrawn */
        void *userdata;
        uid_t uid;
        bool withdrawn; /* and polkit has not answered yet */
        sd_event_source *timer; /* while somebody waits, or it was asked ahead */
        char cancellation[CANCELLATION_MAX];
        bool ahead;
        /* Of one that was asked ahead alone: */
        AuthorizeRequest request; /* its texts are this one's own */
        const char *action;
        usec_t expires; /* CLOCK_MONOTONIC */
};

static void request_done(AuthorizeRequest *q) {
        free((char *) q->sender);
        free((char *) q->member);
        free((char *) q->session);
        free((char *) q->host);
        free((char *) q->duration);
        free((char *) q->project);
        *q = (AuthorizeRequest){};
}

static bool copy_text(const char *text, const char **ret) {
        *ret = text ? strdup(text) : NULL;
        return *ret || !text;
}

static int request_copy(const AuthorizeRequest *q, AuthorizeRequest *ret) {
        AuthorizeRequest copy = {.uid = q->uid, .permission = q->permission, .own = q->own};

        if (!copy_text(q->sender, &copy.sender) || !copy_text(q->member, &copy.member) || !copy_text(q->session, &copy.session) ||
            !copy_text(q->host, &copy.host) || !copy_text(q->duration, &copy.duration) || !copy_text(q->project, &copy.project)) {
                request_done(&copy);
                return -ENOMEM;
        }
        *ret = copy;
        return 0;
}

/* All that polkit is told. Whether a user may be asked is not compared: a yes for which nobody was asked is one either way. */
static bool request_equal(const AuthorizeRequest *a, const AuthorizeRequest *b) {
        return a->uid == b->uid && a->permission == b->permission && a->own == b->own && streq_ptr(a->sender, b->sender) && streq_ptr(a->member, b->member) &&
               streq_ptr(a->session, b->session) && streq_ptr(a->host, b->host) && streq_ptr(a->duration, b->duration) && streq_ptr(a->project, b->project);
}

static Question *question_free(Question *q) {
        for (Question **p = &q->authorizer->questions; *p; p = &(*p)->next)
                if (*p == q) {
                        *p = q->next;
                        break;
                }
        sd_bus_slot_unref(q->slot);
        sd_event_source_disable_unref(q->timer);
        request_done(&q->request);
        return mfree(q);
}

/* A dialog that stands on somebody's screen goes away. Nobody waits for the answer. */
static void withdraw(const Question *q) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        sd_bus *bus = q->authorizer->bus;
        int r;

        r = sd_bus_message_new_method_call(bus, &m, POLKIT, POLKIT_PATH, POLKIT_INTERFACE, "CancelCheckAuthorization");
        if (r >= 0)
                r = sd_bus_message_append(m, "s", q->cancellation);
        if (r >= 0)
                r = sd_bus_message_set_expect_reply(m, false);
        if (r >= 0)
                r = sd_bus_message_set_auto_start(m, false);
        if (r >= 0)
                r = sd_bus_send(bus, m, NULL);
        if (r < 0)
                log_warning_errno(r, "Failed to withdraw a question from polkit, ignoring: %m");
}

/* It counts until polkit has answered, or who comes back again and again had polkit asked without bound. */
static void abandon(Question *q) {
        if (!q->slot) {
                question_free(q);
                return;
        }
        withdraw(q);
        q->timer = sd_event_source_disable_unref(q->timer);
        q->withdrawn = true;
        q->ahead = false;
        q->done = NULL;
}

static Question *question_new(PolkitAuthorizer *a, uid_t uid) {
        Question *q = calloc(1, sizeof(Question));

        if (!q)
                return NULL;
        *q = (Question){.authorizer = a, .uid = uid, .next = a->questions};
        a->questions = q;
        return q;
}

/* Whoever waits goes on without that answer. The bus daemon still waits for it, and for so many of errandd's calls and no more, so it is counted as one that
 * was withdrawn. */
static void leave_behind(Question *q) {
        Question *behind;

        q->timer = sd_event_source_disable_unref(q->timer);
        if (!q->slot)
                return;
        withdraw(q);
        behind = question_new(q->authorizer, q->uid);
        if (behind) {
                behind->withdrawn = true;
                behind->slot = TAKE_PTR(q->slot);
                (void) sd_bus_slot_set_userdata(behind->slot, behind);
        } else
                q->slot = sd_bus_slot_unref(q->slot);
}

static bool polkit_is_busy(const Authorizer *authorizer, uid_t uid) {
        const PolkitAuthorizer *a = (const PolkitAuthorizer *) authorizer;
        size_t n = 0, all = 0;

        for (const Question *q = a->questions; q; q = q->next) {
                all += q->slot != NULL;
                n += q->slot && q->uid == uid;
        }
        return n >= AUTHORIZE_ACCOUNT_MAX || all >= (n == 0 ? AUTHORIZE_FIRST_MAX : AUTHORIZE_ALL_MAX);
}

static void log_no_answer(const Question *q, const char *why) {
        if (q->ahead)
                log_debug("polkit did not answer what it was asked ahead, asking again when it is called: %s", why);
        else
                log_warning("polkit gave no answer, which is a no: %s", why);
}

static void polkit_watch(Authorizer *authorizer, void (*settled)(uid_t uid, void *userdata), void *userdata) {
        PolkitAuthorizer *a = (PolkitAuthorizer *) authorizer;

        a->settled = settled;
        a->settled_userdata = userdata;
}

static bool polkit_is_silent(const Authorizer *a) {
        return ((const PolkitAuthorizer *) a)->silent;
}

static bool read_answer(sd_bus_message *m, const Question *q) {
        const sd_bus_error *e = sd_bus_message_get_error(m);
        int authorized = 0, r;

        q->authorizer->silent = e;
        if (e) {
                log_no_answer(q, e->message ?: e->name);
                return false;
        }
        r = sd_bus_message_enter_container(m, 'r', "bba{ss}");
        if (r > 0)
                r = sd_bus_message_read_basic(m, 'b', &authorized);
        if (r <= 0) {
                log_warning("polkit gave an answer of another form, which is a no");
                return false;
        }
        return authorized;
}

static int append_details(sd_bus_message *m, const AuthorizeRequest *q) {
        const struct {
                const char *name, *value;
        } details[] = {{"member", q->member}, {"session", q->session}, {"host", q->host}, {"duration", q->duration}, {"project", q->project}};
        int r;

        r = sd_bus_message_open_container(m, 'a', "{ss}");
        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(details); i++)
                if (details[i].value && *details[i].value)
                        r = sd_bus_message_append(m, "{ss}", details[i].name, details[i].value);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int on_answer(sd_bus_message *m, void *userdata, sd_bus_error *error);
static int on_time(sd_event_source *source, uint64_t usec, void *userdata);

static int ask(Question *question, const AuthorizeRequest *q, const char *action) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        PolkitAuthorizer *a = question->authorizer;
        usec_t timeout = question->ahead ? a->ahead_timeout : q->interactive ? a->interactive_timeout : a->timeout;
        int r;

        (void) snprintf(question->cancellation, sizeof(question->cancellation), "errand-%llu", (unsigned long long) ++a->last);
        r = sd_bus_message_new_method_call(a->bus, &m, POLKIT, POLKIT_PATH, POLKIT_INTERFACE, "CheckAuthorization");
        if (r >= 0)
                r = sd_bus_message_append(m, "(sa{sv})s", "system-bus-name", 1, "name", "s", q->sender, action);
        if (r >= 0)
                r = append_details(m, q);
        if (r >= 0)
                r = sd_bus_message_append(m, "us", q->interactive ? ALLOW_USER_INTERACTION : 0U, question->cancellation);
        if (r >= 0) /* ours: libsystemd's would be over for it, and not for the bus daemon */
                r = sd_bus_call_async(a->bus, &question->slot, m, on_answer, question, UINT64_MAX);
        if (r >= 0 && timeout != USEC_INFINITY)
                r = sd_event_add_time_relative(sd_bus_get_event(a->bus), &question->timer, CLOCK_MONOTONIC, timeout, TIMER_USEC, on_time, question);
        if (r < 0)
                leave_behind(question);
        return r;
}

static void question_finish(Question *q, bool allowed) {
        AuthorizeDone done = q->done;
        void *whom = q->userdata;

        question_free(q); /* may be asked again from within */
        done(allowed, whom);
}

/* What was asked ahead does not count: whoever waits for it is asked about as if it had not been. */
static void ask_anew(Question *q) {
        int r;

        leave_behind(q);
        if (!q->done) {
                question_free(q);
                return;
        }
        q->ahead = false;
        r = ask(q, &q->request, q->action);
        if (r < 0) {
                log_warning_errno(r, "Failed to ask polkit, which is a no: %m");
                question_finish(q, false);
        }
}

/* Of one for which nobody waits. */
static void question_settle(Question *q, bool allowed) {
        PolkitAuthorizer *a = q->authorizer;
        uid_t uid = q->uid;

        if (!allowed) /* else it is kept until it is used */
                question_free(q);
        if (a->settled)
                a->settled(uid, a->settled_userdata);
}

static int on_answer(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        Question *q = userdata;
        bool allowed = !q->withdrawn && read_answer(m, q);

        q->slot = sd_bus_slot_unref(q->slot);
        q->timer = sd_event_source_disable_unref(q->timer);
        if (!q->done)
                question_settle(q, allowed);
        else if (q->ahead && !allowed)
                ask_anew(q);
        else
                question_finish(q, allowed);
        return 1;
}

static int on_time(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Question *q = userdata;

        q->authorizer->silent = true;
        log_no_answer(q, "its time is over");
        if (q->ahead)
                ask_anew(q);
        else {
                leave_behind(q);
                question_finish(q, false);
        }
        return 0;
}

/* Of that caller, about that session; NULL: any. */
static void void_ahead(PolkitAuthorizer *a, const char *sender, const char *session) {
        for (Question *next, *q = a->questions; q; q = next) {
                next = q->next;
                if (!q->ahead || (sender && !streq_ptr(q->request.sender, sender)) || (session && !streq_ptr(q->request.session, session)))
                        continue;
                if (q->done)
                        ask_anew(q);
                else
                        abandon(q);
        }
}

static void polkit_forget(Authorizer *authorizer, const char *sender, const char *session) {
        if (sender || session)
                void_ahead((PolkitAuthorizer *) authorizer, sender, session);
}

static int on_changed(_unused_ sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        void_ahead(userdata, NULL, NULL);
        return 0;
}

static int on_watched(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        PolkitAuthorizer *a = userdata;
        const sd_bus_error *e = sd_bus_message_get_error(m);

        if (e)
                log_warning("the bus does not tell when polkit answers otherwise, so that it is asked nothing ahead: %s", e->message ?: e->name);
        else
                a->watching++;
        return 1;
}

static int watch(PolkitAuthorizer *a) {
        int r = sd_bus_match_signal_async(a->bus, a->watches, POLKIT, POLKIT_PATH, POLKIT_INTERFACE, "Changed", on_changed, on_watched, a);

        return r < 0 ? r : sd_bus_add_match_async(a->bus, a->watches + 1, "type='signal',sender='org.freedesktop.DBus',path='/org/freedesktop/DBus',"
                                                  "interface='org.freedesktop.DBus',member='NameOwnerChanged',arg0='" POLKIT "'", on_changed, on_watched, a);
}

static bool is_operator(const PolkitAuthorizer *a, uid_t uid) {
        if (uid == 0)
                return true;
        for (size_t i = 0; i < a->n_operators; i++)
                if (a->operators[i] == uid)
                        return true;
        return false;
}

static bool polkit_operator(Authorizer *authorizer, uid_t uid) {
        return is_operator((PolkitAuthorizer *) authorizer, uid);
}

/* 1, 0: yes and no, unasked; -EAGAIN: polkit has to be asked about the action. */
static int judge(const PolkitAuthorizer *a, const AuthorizeRequest *q, const char **ret_action) {
        bool operator = is_operator(a, q->uid);
        const char *action = permission_action_id(q->permission, q->own || operator);

        if (q->permission == PERMISSION_ROOT)
                return q->uid == 0;
        if (q->uid == (uid_t) -1 || !action)
                return 0;
        if (q->uid == 0 || (operator && q->permission != PERMISSION_CREATE && q->permission != PERMISSION_MANAGE))
                return 1;
        if (!q->sender)
                return 0; /* no message bus between, so there is nobody whom polkit could be asked about */
        *ret_action = action;
        return -EAGAIN;
}

/* One answer that waits to be used is replaced; one that is still out is not, and a withdrawn question costs polkit as much as an answered one. */
static bool may_ask_ahead(PolkitAuthorizer *a, uid_t uid) {
        usec_t now = now_monotonic();
        size_t n = 0;

        for (Question *next, *q = a->questions; q; q = next) {
                next = q->next;
                if (!q->ahead)
                        continue;
                if (!q->slot && (q->expires <= now || q->request.uid == uid))
                        question_free(q);
                else if (q->request.uid == uid)
                        return false;
                else
                        n++;
        }
        return n < AUTHORIZE_AHEAD_MAX;
}

static void polkit_foresee(Authorizer *authorizer, const AuthorizeRequest *request) {
        PolkitAuthorizer *a = (PolkitAuthorizer *) authorizer;
        const char *action;
        Question *q;
        int r;

        if (a->watching < WATCHES || judge(a, request, &action) != -EAGAIN || polkit_is_busy(authorizer, request->uid) || !may_ask_ahead(a, request->uid))
                return;
        q = question_new(a, request->uid);
        if (!q)
                return;
        q->ahead = true;
        q->action = action;
        q->expires = now_monotonic() + a->ahead_timeout;
        r = request_copy(request, &q->request);
        if (r >= 0)
                r = ask(q, &q->request, action);
        if (r < 0) {
                question_free(q);
                log_debug("Failed to ask polkit ahead, ignoring: %s", strerror(-r));
        }
}

/* What was asked ahead about exactly that; no longer there to be found again. */
static Question *take_ahead(PolkitAuthorizer *a, const AuthorizeRequest *request, const char *action) {
        for (Question *q = a->questions; q; q = q->next)
                if (q->ahead && !q->done && q->expires > now_monotonic() && streq(q->action, action) && request_equal(&q->request, request))
                        return q;
        return NULL;
}

static int polkit_check(Authorizer *authorizer, const AuthorizeRequest *q, AuthorizeDone done, void *userdata, void **ret_ticket) {
        PolkitAuthorizer *a = (PolkitAuthorizer *) authorizer;
        Question *question;
        const char *action;
        int r;

        r = judge(a, q, &action);
        if (r != -EAGAIN)
                return r;
        question = take_ahead(a, q, action);
        if (question && !question->slot) {
                question_free(question);
                return 1;
        }
        if (question) {
                question->done = done;
                question->userdata = userdata;
                question->request.interactive = q->interactive;
                *ret_ticket = question;
                return -EINPROGRESS;
        }
        question = question_new(a, q->uid);
        if (!question)
                return -ENOMEM;
        question->done = done;
        question->userdata = userdata;
        r = ask(question, q, action);
        if (r < 0) {
                question_free(question);
                log_warning_errno(r, "Failed to ask polkit, which is a no: %m");
                return r;
        }
        *ret_ticket = question;
        return -EINPROGRESS;
}

static void polkit_cancel(_unused_ Authorizer *a, void *ticket) {
        abandon(ticket);
}

static int find_uid(const char *name, uid_t *ret) {
        _cleanup_free_ char *buffer = NULL;
        struct passwd entry, *found = NULL;
        uint64_t number;

        if (parse_u64(name, (uid_t) -2, &number) >= 0) {
                *ret = (uid_t) number;
                return 0;
        }
        buffer = malloc(ENTRY_MAX);
        if (!buffer)
                return -ENOMEM;
        if (getpwnam_r(name, &entry, buffer, ENTRY_MAX, &found) != 0 || !found)
                return -ESRCH;
        *ret = found->pw_uid;
        return 0;
}

int authorizer_polkit_set_operators(Authorizer *authorizer, char *const *operators) {
        PolkitAuthorizer *a = (PolkitAuthorizer *) authorizer;
        uid_t *uids = NULL;
        size_t n = 0;

        for (char *const *name = operators; name && *name; name++) {
                uid_t *grown = reallocarray(uids, n + 1, sizeof(uid_t));
                int r;

                if (!grown) {
                        free(uids);
                        return -ENOMEM;
                }
                uids = grown;
                r = find_uid(*name, uids + n);
                if (r == -ENOMEM) {
                        free(uids);
                        return r;
                }
                if (r < 0)
                        log_warning("the operator \"%s\" is no account here, ignoring", *name);
                else
                        n++;
        }
        void_ahead(a, NULL, NULL);
        free(a->operators);
        a->operators = uids;
        a->n_operators = n;
        return 0;
}

void authorizer_polkit_set_timeouts(Authorizer *authorizer, usec_t plain, usec_t interactive) {
        PolkitAuthorizer *a = (PolkitAuthorizer *) authorizer;

        a->timeout = plain;
        a->interactive_timeout = interactive;
}

void authorizer_polkit_set_ahead(Authorizer *authorizer, usec_t ahead) {
        ((PolkitAuthorizer *) authorizer)->ahead_timeout = ahead;
}

int authorizer_polkit_new(sd_bus *bus, char *const *operators, Authorizer **ret) {
        PolkitAuthorizer *a = calloc(1, sizeof(PolkitAuthorizer));
        int r;

        if (!a)
                return -ENOMEM;
        *a = (PolkitAuthorizer){
                .authorizer = {.check = polkit_check, .cancel = polkit_cancel, .foresee = polkit_foresee, .forget = polkit_forget, .is_busy = polkit_is_busy,
                               .watch = polkit_watch, .is_silent = polkit_is_silent, .operator = polkit_operator,
                               .set_operators = authorizer_polkit_set_operators},
                .bus = sd_bus_ref(bus),
                .timeout = AUTHORIZE_USEC,
                .interactive_timeout = AUTHORIZE_INTERACTIVE_USEC,
                .ahead_timeout = AUTHORIZE_AHEAD_USEC,
        };
        r = authorizer_polkit_set_operators(&a->authorizer, operators);
        if (r >= 0)
                r = watch(a);
        if (r < 0) {
                authorizer_polkit_free(&a->authorizer);
                return r;
        }
        *ret = &a->authorizer;
        return 0;
}

Authorizer *authorizer_polkit_free(Authorizer *authorizer) {
        PolkitAuthorizer *a = (PolkitAuthorizer *) authorizer;

        if (!a)
                return NULL;
        while (a->questions) {
                if (a->questions->slot && !a->questions->withdrawn)
                        withdraw(a->questions);
                question_free(a->questions);
        }
        for (size_t i = 0; i < WATCHES; i++)
                sd_bus_slot_unref(a->watches[i]);
        sd_bus_unref(a->bus);
        free(a->operators);
        return mfree(a);
}
