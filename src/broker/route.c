/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "broker/broker.h"
#include "broker/keep.h"
#include "broker/provider.h"
#include "broker/route.h"
#include "broker/stand-in.h"
#include "shared/event-id.h"

/* One call on a route. */
typedef struct Call {
        Connection *c;
        const Http1Head *head;
        const Provider *provider;
        Slice rest; /* what follows the route */
} Call;

static bool leave_receipt(const Call *call, unsigned status, ReceiptOutcome outcome) {
        Receipt receipt = {
                .provider = call->provider,
                .method = receipt_method(call->head->method),
                .status = status,
                .started = now_monotonic(),
                .reach = RECEIPT_TURNED_AWAY,
                .outcome = outcome,
        };
        receipt.path = receipt_split_query(call->rest, &receipt.query_size);
        return receipts_add(call->c->broker->receipts, &receipt);
}

static bool may_log(const Connection *c) {
        return refusal_log_take(&c->broker->refusal_log, c->broker->setup->session, now_monotonic());
}

/* Answers with words of ours, leaves the receipt, and returns the status. `logged` is what the log says of it: NULL for the body, "" for nothing. */
static int turn_away(const Call *call, unsigned status, const char *reason, const char *body, const char *extra, const char *logged) {
        const Connection *c = call->c;
        ReceiptOutcome outcome = status == 401 ? RECEIPT_DENIED : RECEIPT_REFUSED;

        /* Denials can come by the thousand; their receipt's rule bounds the log as well. */
        bool kept = leave_receipt(call, status, outcome);
        if ((!logged || *logged) && (outcome == RECEIPT_DENIED ? kept : may_log(c)))
                log_with(LOG_LEVEL_WARNING, &(LogContext){.message_id = streq(reason, "budget spent") ? EVENT_BUDGET_SPENT : NULL}, "session %s: provider %s: %s with %u: %s",
                         c->broker->setup->session, call->provider->id, receipt_outcome_to_string(outcome), status, logged ?: body);
        int r = connection_answer(call->c, status, reason, body, extra, call->head->keep_alive);
        return r < 0 ? r : (int) status;
}

/* 0: it is there. */
static int check_stand_in(const Call *call) {
        _cleanup_free_ char *body = NULL, *challenge = NULL;
        const char *came = NULL;

        StandIn what = stand_in_check(call->provider, call->head, &came);
        if (what == STAND_IN_RIGHT)
                return 0;
        body = stand_in_words(call->provider, what, came);
        challenge = stand_in_challenge(call->provider);
        return turn_away(call, 401, "Unauthorized", body, challenge, NULL);
}

/* The list, as people write calls: "POST /v1/messages, GET /v1/models". NULL when out of memory. */
static char *list_calls(const Provider *p) {
        char *text = NULL;
        size_t size;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return NULL;
        for (size_t i = 0; i < p->n_capabilities; i++)
                (void) fprintf(f, "%s%s %s", i > 0 ? ", " : "", p->capabilities[i].method, p->capabilities[i].path);
        if (fclose(f) != 0)
                text = mfree(text);
        return text;
}

/* The entry that would name the call; a sentence's end instead when the session has put into its path what no log may hold. NULL when out of
 * memory. */
static char *entry_of(const Call *call) {
        _cleanup_free_ char *clean = NULL;
        const char *method = receipt_method(call->head->method);
        size_t unused, size;
        char *entry;

        Slice path = receipt_split_query(call->rest, &unused);
        int r = receipt_scrub_raw_path(call->provider, path, &clean, &size);
        if (r == -EPERM)
                return strdup("one that is not told, since the path holds what is kept nowhere");
        if (r < 0)
                return NULL;
        return capability_entry(streq(method, "OTHER") ? NULL : method, clean, size, &entry) < 0 ? NULL : entry;
}

/* 0: it may be made, as far as the list goes. A list is advice until it is strict. */
static int check_capabilities(const Call *call) {
        const Provider *p = call->provider;
        const char *session = call->c->broker->setup->session;
        _cleanup_free_ char *entry = NULL, *list = NULL, *body = NULL, *logged = NULL;
        char seen[32] = "";

        if (p->every_call || capabilities_cover(p->capabilities, p->n_capabilities, call->head->method.data, call->head->method.size, call->rest.data,
                                                call->rest.size))
                return 0;
        entry = entry_of(call);
        if (p->n_capabilities == 0) {
                log_info("session %s: provider %s: forwarding a call; its entry in capabilities would be %s", session, p->id, entry ?: "-");
                return 0;
        }
        /* A client that tries again in a loop is one line a minute for each call, with the number of them. */
        uint64_t count = repeats_note(&call->c->broker->repeats, p->id, entry ?: "", now_monotonic());
        if (count > 1)
                (void) snprintf(seen, sizeof(seen), ", %llu times", (unsigned long long) count);
        if (!p->strict) {
                if (count > 0)
                        log_warning("session %s: provider %s: forwarding a call%s that capabilities does not name; its entry would be %s", session, p->id,
                                    seen, entry ?: "-");
                return 0;
        }
        list = list_calls(p);
        if (asprintf(&body, "the key of this provider may make these calls alone: %s; the entry for this one would be %s", list ?: "", entry ?: "-") < 0)
                body = NULL;
        if (asprintf(&logged, "a call%s that capabilities does not name; its entry would be %s", seen, entry ?: "-") < 0)
                logged = NULL;
        return turn_away(call, 403, "not one of the provider's capabilities", body, NULL, count > 0 ? logged : "");
}

static int check_budget(const Call *call, Budget *b, const char *provider) {
        BudgetKind k = budget_find_spent(b);
        _cleanup_free_ char *body = NULL;

        if (k < 0)
                return 0;
        body = budget_refusal(b, k, provider);
        bool told = repeats_note(&call->c->broker->repeats, call->provider->id, "budget", now_monotonic()) == 0;
        /* Not 429, which clients take for a reason to try again. */
        return turn_away(call, 403, "budget spent", body, NULL, told ? "" : NULL);
}

static int check(const Call *call) {
        const Provider *p = call->provider;
        int r = check_stand_in(call);

        if (r != 0)
                return r;
        if (p->refusal)
                return turn_away(call, 502, "provider not called", p->refusal, NULL, NULL);
        if (call->head->has_upgrade)
                return turn_away(call, 501, "Not Implemented",
                                 "an upgrade was asked for: its frames could not be kept free of the key, so provider routes speak HTTP/1.1 only", NULL,
                                 NULL);
        const char *problem = provider_path_problem(call->rest);
        if (problem)
                return turn_away(call, 400, "Bad Request", problem, NULL, NULL);
        r = check_budget(call, p->budget, p->id);
        if (r == 0)
                r = check_budget(call, call->c->broker->setup->budget, NULL);
        return r != 0 ? r : check_capabilities(call);
}

int route_authorize(Connection *c, const Http1Head *head, Slice path, ExchangeTarget *ret) {
        const Setup *s = c->broker->setup;
        const Provider *p = NULL;
        Slice id = {}, rest = {};

        if (provider_split(path, &id, &rest) >= 0)
                p = setup_find_provider(s, id);
        if (!p) {
                if (may_log(c))
                        log_info("session %s: a call for a provider that this broker does not serve", s->session);
                int r = connection_answer(c, 404, "Not Found", "no such provider route", NULL, head->keep_alive);
                return r < 0 ? r : 404;
        }

        const Call call = {.c = c, .head = head, .provider = p, .rest = rest};
        int r = check(&call);
        if (r != 0)
                return r;
        budget_spend(p->budget, BUDGET_REQUESTS, 1);
        budget_spend(s->budget, BUDGET_REQUESTS, 1);
        keep_budgets(c->broker->keep, s);
        *ret = (ExchangeTarget) {.provider = p, .host = &p->host, .port = p->port, .path = rest};
        return 0;
}
