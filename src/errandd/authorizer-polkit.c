/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <pwd.h>

#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "errandd/authorizer-polkit.h"

#define POLKIT "org.freedesktop.PolicyKit1"
#define POLKIT_PATH "/org/freedesktop/PolicyKit1/Authority"
#define POLKIT_INTERFACE "org.freedesktop.PolicyKit1.Authority"
#define ALLOW_USER_INTERACTION 1U /* of CheckAuthorizationFlags */
#define CANCELLATION_MAX 32U
#define ENTRY_MAX 16384U /* bytes of one account's entry */

typedef struct Question Question;

typedef struct PolkitAuthorizer {
        Authorizer authorizer; /* first: what callers have */
        sd_bus *bus;
        uid_t *operators;
        size_t n_operators;
        uint64_t last; /* number of a question */
        usec_t timeout, interactive_timeout;
        Question *questions;
} PolkitAuthorizer;

struct Question {
        PolkitAuthorizer *authorizer;
        Question *next;
        sd_bus_slot *slot;
        AuthorizeDone done;
        void *userdata;
        char cancellation[CANCELLATION_MAX];
};

static Question *question_free(Question *q) {
        for (Question **p = &q->authorizer->questions; *p; p = &(*p)->next)
                if (*p == q) {
                        *p = q->next;
                        break;
                }
        sd_bus_slot_unref(q->slot);
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

static bool read_answer(sd_bus_message *m, const Question *q) {
        const sd_bus_error *e = sd_bus_message_get_error(m);
        int authorized = 0, r;

        if (e) {
                /* libsystemd makes this one itself when the time is over. */
                if (sd_bus_error_has_name(e, SD_BUS_ERROR_NO_REPLY) || sd_bus_error_has_name(e, SD_BUS_ERROR_TIMEOUT))
                        withdraw(q);
                log_warning("polkit gave no answer, which is a no: %s", e->message ?: e->name);
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

static int on_answer(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        Question *q = userdata;
        AuthorizeDone done = q->done;
        void *whom = q->userdata;
        bool allowed = read_answer(m, q);

        question_free(q); /* may be asked again from within */
        done(allowed, whom);
        return 1;
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

static int ask(Question *question, const AuthorizeRequest *q, const char *action) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        PolkitAuthorizer *a = question->authorizer;
        int r;

        r = sd_bus_message_new_method_call(a->bus, &m, POLKIT, POLKIT_PATH, POLKIT_INTERFACE, "CheckAuthorization");
        if (r >= 0)
                r = sd_bus_message_append(m, "(sa{sv})s", "system-bus-name", 1, "name", "s", q->sender, action);
        if (r >= 0)
                r = append_details(m, q);
        if (r >= 0)
                r = sd_bus_message_append(m, "us", q->interactive ? ALLOW_USER_INTERACTION : 0U, question->cancellation);
        return r < 0 ? r : sd_bus_call_async(a->bus, &question->slot, m, on_answer, question,
                                             q->interactive ? a->interactive_timeout : a->timeout);
}

static bool polkit_operator(Authorizer *authorizer, uid_t uid) {
        PolkitAuthorizer *a = (PolkitAuthorizer *) authorizer;

        if (uid == 0)
                return true;
        for (size_t i = 0; i < a->n_operators; i++)
                if (a->operators[i] == uid)
                        return true;
        return false;
}

static int polkit_check(Authorizer *authorizer, const AuthorizeRequest *q, AuthorizeDone done, void *userdata, void **ret_ticket) {
        PolkitAuthorizer *a = (PolkitAuthorizer *) authorizer;
        bool operator = polkit_operator(authorizer, q->uid);
        const char *action = permission_action_id(q->permission, q->own || operator);
        Question *question;
        int r;

        if (q->permission == PERMISSION_ROOT)
                return q->uid == 0;
        if (q->uid == (uid_t) -1 || !action)
                return 0;
        if (q->uid == 0 || (operator && q->permission != PERMISSION_CREATE && q->permission != PERMISSION_MANAGE))
                return 1;
        if (!q->sender)
                return 0; /* no message bus between, so there is nobody whom polkit could be asked about */
        question = calloc(1, sizeof(Question));
        if (!question)
                return -ENOMEM;
        *question = (Question){.authorizer = a, .next = a->questions, .done = done, .userdata = userdata};
        (void) snprintf(question->cancellation, sizeof(question->cancellation), "errand-%llu", (unsigned long long) ++a->last);
        a->questions = question;
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
        withdraw(ticket);
        question_free(ticket);
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

int authorizer_polkit_new(sd_bus *bus, char *const *operators, Authorizer **ret) {
        PolkitAuthorizer *a = calloc(1, sizeof(PolkitAuthorizer));
        int r;

        if (!a)
                return -ENOMEM;
        *a = (PolkitAuthorizer){
                .authorizer = {.check = polkit_check, .cancel = polkit_cancel, .operator = polkit_operator, .set_operators = authorizer_polkit_set_operators},
                .bus = sd_bus_ref(bus),
                .timeout = AUTHORIZE_USEC,
                .interactive_timeout = AUTHORIZE_INTERACTIVE_USEC,
        };
        r = authorizer_polkit_set_operators(&a->authorizer, operators);
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
        while (a->questions)
                polkit_cancel(authorizer, a->questions);
        sd_bus_unref(a->bus);
        free(a->operators);
        return mfree(a);
}
