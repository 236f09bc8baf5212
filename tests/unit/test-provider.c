/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <ctype.h>

#include "basic/macro.h"
#include "broker/broker.h"
#include "broker/keep.h"
#include "broker/provider.h"
#include "broker/route.h"
#include "test.h"

#define STAND_IN "errand-session-00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define KEY "sk-real-key-0123456789"

static struct {
        unsigned status;
        char body[1024], extra[256];
} answered;

/* In place of connection.c: what it would answer. */
int connection_answer(_unused_ Connection *c, unsigned status, const char *reason, const char *body, const char *extra, _unused_ bool keep_alive) {
        answered.status = status;
        (void) snprintf(answered.body, sizeof(answered.body), "%s", body ? body : reason);
        (void) snprintf(answered.extra, sizeof(answered.extra), "%s", extra ? extra : "");
        return 0;
}

/* In place of receipts.c. */
static Receipt left;
static unsigned n_left;

bool receipts_add(_unused_ Receipts *r, const Receipt *receipt) {
        left = *receipt;
        n_left++;
        return true;
}

/* In place of keep.c. */
void keep_budgets(_unused_ Keep *k, _unused_ const Setup *s) {
}

/* In place of setup.c. */
static Provider providers[8];

const Provider *setup_find_provider(const Setup *s, Slice id) {
        for (size_t i = 0; i < s->n_providers; i++)
                if (slice_is(id, s->providers[i].id))
                        return &s->providers[i];
        return NULL;
}

static Slice slice(const char *text) {
        return (Slice) {text, strlen(text)};
}

static void test_split(void) {
        static const struct {
                const char *path, *id, *rest;
        } rows[] = {
                {"/provider/a/v1/x?y", "a", "/v1/x?y"},
                {"/provider/a", "a", ""},
                {"/provider/a?x", "a", "?x"},
                {"/provider/a/", "a", "/"},
                {"/provider//x", "", "/x"},
                {"/provider/", "", ""},
        };
        Slice id, rest;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                CHECK_INT(provider_split(slice(rows[i].path), &id, &rest), 0);
                CHECK(slice_is(id, rows[i].id));
                CHECK(slice_is(rest, rows[i].rest));
        }
        CHECK_INT(provider_split(slice("/provider"), &id, &rest), -ENOENT);
        CHECK_INT(provider_split(slice("/providers/a"), &id, &rest), -ENOENT);
        CHECK_INT(provider_split(slice("/Provider/a"), &id, &rest), -ENOENT);
        CHECK_INT(provider_split(slice(""), &id, &rest), -ENOENT);
}

static void test_clean_paths(void) {
        static const char *const clean[] = {
                "", "/", "?x", "/?x=//..", "/v1/messages", "/v1/messages?beta=true", "/v1/models?next=/../a;b//c", "/v1/%6dodels", "/v1/a.b/..c",
                "/v1/...", "/v1/a%20b", "/v1/a%25b", "/v1/100%25", "/v1/100%2525", "/v1/%25zz", "/v1/models/claude-3:latest@x", "/~u/(a)!*',=+&$", "/v1/%c3%a9", "/v1/%f0%9f%90%9a",
        };
        for (size_t i = 0; i < ELEMENTSOF(clean); i++) {
                const char *problem = provider_path_problem(slice(clean[i]));
                if (problem)
                        test_fail(__FILE__, __LINE__, "%s: %s", clean[i], problem);
        }
}

static void test_dirty_paths(void) {
        static const char *const dirty[] = {
                /* S109 */ "//", "//x", "/v1//x", "/v1/", "/v1/x/", "/v1/x/?q", "//denied.example/x",
                /* S110 */ "/.", "/..", "/./x", "/../x", "/v1/./x", "/v1/../x", "/v1/..", "/v1/.", "/v1/..?x",
                /* S111 */ "/%2e", "/%2E%2e", "/.%2e", "/%2e./x", "/v1/%2e%2e/admin", "/v1/%2f", "/v1/a%2Fb", "/v1/..%2fadmin", "/v1/%2f..",
                "/v1/%5c", "/v1/..%5cadmin", "/v1/a%5Cb", "/v1/..\\admin", "/\\\\denied.example",
                /* S112 */ "/v1;a=b/models", "/v1/models;x", "/;", "/..;/x",
                /* C173: twice encoded, controls, what encodes nothing */ "/%252e%252e/x", "/%252e%252e%252fx", "/v1/a%252fb", "/v1/%255c",
                /* C173: as often as you like */ "/v1/a%25252fb", "/v1/%2525252e%252e", "/v1/a%25%32%66b", "/v1/%25zz%25252f", "/v1/%25%35%63", "/v1/a%25253bb",
                "/v1/%00", "/v1/a%0ab", "/v1/%7f", "/v1/%", "/v1/%4", "/v1/%zz", "/v1/a%2",
                /* C173: it ends elsewhere for who decodes it first */ "/v1/a%3fb", "/v1/a%23b", "/v1/..%3b/x", "/v1/a%253fb",
                /* C173: overlong and broken UTF-8, which a loose decoder reads as a slash or a dot */ "/v1/%c0%ae%c0%ae/x", "/v1/a%c0%afb", "/v1/%e0%80%af",
                "/v1/%ff", "/v1/%c3",
                /* C175 */ "@denied.example/x", ".denied.example/", ":9/x", "http://denied.example/x", "x",
                "/v1/x#y", "/v1/x?y#z", "/v1/a b", "/v1/\x01", "/v1/\x7f", "/v1/\xc3\xa9",
        };
        for (size_t i = 0; i < ELEMENTSOF(dirty); i++)
                if (!provider_path_problem(slice(dirty[i])))
                        test_fail(__FILE__, __LINE__, "\"%s\" passed", dirty[i]);
}

enum { EITHER = 3, BASIC, HEADER, STRICT, WARNED };

static void test_dropped_fields(void) {
        static const char *const dropped[] = {
                "Authorization", "AUTHORIZATION", "x-api-key", "X-Api-Key", "X_API_KEY", "Accept-Encoding", "X-HTTP-Method-Override",
                "x-http-method-override", "X_HTTP_Method_Override", "X-Method-Override", "X-HTTP-Method", "X-Original-URL", "X-Rewrite-URL",
                "X-Original-URI", "X-Forwarded-Uri", "X-Original-Path",
                /* S227: of two parts each could hold half a key */ "Range", "If-Range", "Request-Range", "A-IM",
                /* S227: nobody looks for it in UTF-16 */ "Accept-Charset",
                "Forwarded", "X-Forwarded-Host", "X-Forwarded-Server", "X-Original-Host", "X-Host",
        };
        static const char *const kept[] = {
                "anthropic-version", "anthropic-beta", "openai-organization", "idempotency-key", "x-stainless-lang", "accept", "user-agent",
                "x-new-thing", "cookie", "x-api-keys", "authorizatio",
        };
        for (size_t i = 0; i < ELEMENTSOF(dropped); i++)
                CHECK(provider_drops_field(&providers[0], slice(dropped[i])));
        for (size_t i = 0; i < ELEMENTSOF(kept); i++)
                CHECK(!provider_drops_field(&providers[0], slice(kept[i])));
        CHECK(provider_drops_field(&providers[HEADER], slice("private-TOKEN")) && !provider_drops_field(&providers[0], slice("Private-Token")));
}

static Setup setup = {.session = (char *) "s1", .providers = providers, .n_providers = ELEMENTSOF(providers)};
static Broker broker = {.setup = &setup};
static Connection connection = {.broker = &broker};

/* Runs a whole request head through the route; 0 or the status. */
static int authorize(const char *text, ExchangeTarget *ret) {
        static Http1Head head;
        const char *problem = "";

        n_left = 0;
        answered.status = 0;
        if (http1_parse_request(text, strlen(text), &head, &problem) < 0)
                test_fail(__FILE__, __LINE__, "test request: %s", problem);
        int status = route_authorize(&connection, &head, head.target, ret);
        CHECK_INT(status, (int) answered.status);
        CHECK(!strstr(answered.body, KEY));
        CHECK(!strstr(answered.body, "errand-session-"));
        return status;
}

#define REQUEST(path, fields) "POST " path " HTTP/1.1\r\nHost: x\r\n" fields "\r\n"
#define BEARER "Authorization: Bearer " STAND_IN "\r\n"
#define API_KEY "x-api-key: " STAND_IN "\r\n"

static void check_denied(const char *request, const char *words) {
        ExchangeTarget target;

        CHECK_INT(authorize(request, &target), 401);
        if (!strstr(answered.body, words))
                test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", answered.body, words);
        CHECK(strstr(answered.extra, "WWW-Authenticate: ") == answered.extra);
        CHECK_INT(n_left, 1);
        CHECK_INT(left.outcome, RECEIPT_DENIED);
        CHECK_INT(left.status, 401);
}

static void test_stand_in(void) {
        ExchangeTarget target;

        CHECK_INT(authorize(REQUEST("/provider/b/v1/x?q=1", BEARER), &target), 0);
        CHECK(target.provider == &providers[0]);
        CHECK(slice_is(target.path, "/v1/x?q=1"));
        CHECK_INT(n_left, 0);
        CHECK_INT(authorize(REQUEST("/provider/b/x", "authorization: bearer " STAND_IN "\r\n"), &target), 0);
        CHECK_INT(authorize(REQUEST("/provider/b/x", BEARER API_KEY), &target), 0); /* S091: the other one does not matter */
        CHECK_INT(authorize(REQUEST("/provider/k/x", API_KEY), &target), 0);
        CHECK_INT(authorize(REQUEST("/provider/k/x", API_KEY "Authorization: Basic eDp5\r\n"), &target), 0);

        check_denied(REQUEST("/provider/b/x", ""), "neither Authorization nor x-api-key came");
        check_denied(REQUEST("/provider/b/x", API_KEY), "\"Authorization: Bearer\"; x-api-key came");
        check_denied(REQUEST("/provider/k/x", BEARER), "\"x-api-key\"; Authorization came");
        check_denied(REQUEST("/provider/b/x", BEARER BEARER), "more than once");
        check_denied(REQUEST("/provider/b/x", "Authorization: Bearer wrong\r\n" BEARER), "more than once");
        check_denied(REQUEST("/provider/k/x", API_KEY "X-API-Key: y\r\n"), "more than once");
        check_denied(REQUEST("/provider/b/x", "Authorization: Basic " STAND_IN "\r\n"), "another scheme");
        check_denied(REQUEST("/provider/b/x", "Authorization: Bearer" STAND_IN "\r\n"), "another scheme");
        check_denied(REQUEST("/provider/b/x", "Authorization: " STAND_IN "\r\n"), "another scheme");
        check_denied(REQUEST("/provider/b/x", "Authorization: Bearer " STAND_IN "0\r\n"), "another value");
        check_denied(REQUEST("/provider/b/x", "Authorization: Bearer errand-session-0011\r\n"), "another value");
        check_denied(REQUEST("/provider/b/x", "Authorization: Bearer " KEY "\r\n"), "another value"); /* the key itself opens nothing */
        check_denied(REQUEST("/provider/k/x", "x-api-key:\r\n"), "another value");
        check_denied(REQUEST("/provider/b/x", "Cookie: a=" STAND_IN "\r\n"), "neither");
        check_denied(REQUEST("/provider/b/x?key=" STAND_IN, ""), "neither");
}

#define BASIC_AUTH "Authorization: Basic eC1hY2Nlc3MtdG9rZW46ZXJyYW5kLXNlc3Npb24tMDAxMTIyMzM0NDU1NjY3Nzg4OTlhYWJiY2NkZGVlZmYwMDExMjIzMzQ0NTU2Njc3ODg5OWFhYmJjY2RkZWVmZg==\r\n"

static void test_other_placements(void) {
        ExchangeTarget target;

        CHECK_INT(authorize(REQUEST("/provider/e/x", BEARER), &target), 0);
        CHECK_INT(authorize(REQUEST("/provider/e/x", API_KEY), &target), 0);
        CHECK_INT(authorize(REQUEST("/provider/e/x", API_KEY BEARER), &target), 0);
        CHECK_INT(authorize(REQUEST("/provider/e/x", "x-api-key: other\r\n" BEARER), &target), 0);
        check_denied(REQUEST("/provider/e/x", ""), "\"Authorization: Bearer\" or \"x-api-key\"; neither Authorization nor x-api-key came");
        check_denied(REQUEST("/provider/e/x", "x-api-key: wrong\r\n"), "x-api-key came with another value");
        check_denied(REQUEST("/provider/e/x", "x-api-key: wrong\r\nAuthorization: Bearer wrong\r\n"), "Authorization came with another value");
        check_denied(REQUEST("/provider/e/x", BEARER BEARER), "Authorization came more than once");

        CHECK_INT(authorize(REQUEST("/provider/a/x", BASIC_AUTH), &target), 0);
        check_denied(REQUEST("/provider/a/x", BEARER), "the password of \"Authorization: Basic\"; Authorization came with another scheme");
        CHECK_STR(answered.extra, "WWW-Authenticate: Basic realm=\"errand\"\r\n"); /* git asks without, and then again with what this names */
        check_denied(REQUEST("/provider/a/x", "Authorization: Basic eDp5\r\n"), "another value");
        check_denied(REQUEST("/provider/a/x", "Authorization: Basic ????\r\n"), "another value");
        check_denied(REQUEST("/provider/a/x", "Authorization: Basic " STAND_IN "\r\n"), "another value");
        check_denied(REQUEST("/provider/a/x", API_KEY), "x-api-key came");

        CHECK_INT(authorize(REQUEST("/provider/h/x", "private-token: " STAND_IN "\r\n" BEARER), &target), 0);
        check_denied(REQUEST("/provider/h/x", BEARER), "\"PRIVATE-TOKEN\"; Authorization came");
        check_denied(REQUEST("/provider/h/x", ""), "no header came that carries a key");
        check_denied(REQUEST("/provider/h/x", "private-token: x\r\n"), "PRIVATE-TOKEN came with another value");
}

static void test_capabilities(void) {
        ExchangeTarget target;

        CHECK_INT(authorize(REQUEST("/provider/s/v1/messages?x=1", BEARER), &target), 0);
        CHECK_INT(authorize(REQUEST("/provider/s/v1/other?key=QUERY", BEARER), &target), 403);
        CHECK_STR(answered.body, "the key of this provider may make these calls alone: POST /v1/messages, * /v1/files/**; the entry for this one would be "
                                 "{\"method\":\"POST\",\"path\":\"/v1/other\"}");
        CHECK(n_left == 1 && left.outcome == RECEIPT_REFUSED && left.status == 403);
        CHECK_INT(authorize(REQUEST("/provider/s/v1/%6dessages", BEARER), &target), 403);
        CHECK_INT(authorize(REQUEST("/provider/s/v1/files/a/b", BEARER), &target), 0);
        CHECK_INT(authorize(REQUEST("/provider/s/v1/files/../x", BEARER), &target), 400); /* hygiene goes first */
        CHECK_INT(authorize(REQUEST("/provider/s/x/" STAND_IN "/y", BEARER), &target), 403); /* authorize() looks for it in the body */
        CHECK(strstr(answered.body, "\"/x/*/y\""));
        CHECK_INT(authorize(REQUEST("/provider/s/x/%65" "rrand-session-00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff/y", BEARER), &target), 403);
        CHECK(!strstr(answered.body, "0011"));
        CHECK_INT(authorize(REQUEST("/provider/s/v1/other", ""), &target), 401); /* without the stand-in the list is nobody's to know */
        CHECK_INT(authorize(REQUEST("/provider/w/v1/other", BEARER), &target), 0);
        CHECK_INT(n_left, 0);
}

static void test_budgets(void) {
        Budget session = {.limit = {[BUDGET_REQUESTS] = 3}}, own = {.limit = {[BUDGET_REQUESTS] = 2, [BUDGET_TOKENS] = 10}};
        ExchangeTarget target;

        setup.budget = &session;
        providers[0].budget = &own;
        CHECK_INT(authorize(REQUEST("/provider/b/x", ""), &target), 401); /* what is turned away costs nothing */
        CHECK_INT(authorize(REQUEST("/provider/b/a/..", BEARER), &target), 400);
        CHECK_INT(authorize(REQUEST("/provider/b/x", BEARER), &target), 0);
        CHECK_INT(authorize(REQUEST("/provider/b/x", BEARER), &target), 0);
        CHECK_INT(authorize(REQUEST("/provider/b/x", BEARER), &target), 403);
        CHECK_STR(answered.body, "this session has spent its budget of 2 requests for provider b; an administrator can raise agent.providers.b.budgets.requests in "
                                 "errand.json, which counts from a session's next start");
        CHECK(n_left == 1 && left.outcome == RECEIPT_REFUSED);
        CHECK_INT(authorize(REQUEST("/provider/k/x", API_KEY), &target), 0);
        CHECK_INT(authorize(REQUEST("/provider/k/x", API_KEY), &target), 403);
        CHECK_STR(answered.body, "this session has spent its budget of 3 requests; an administrator can raise budgets.requests in errand.json, which counts from a "
                                 "session's next start");
        session.limit[BUDGET_REQUESTS] = 0;
        own.limit[BUDGET_REQUESTS] = 0;
        budget_spend(&own, BUDGET_TOKENS, 9);
        CHECK_INT(authorize(REQUEST("/provider/b/x", BEARER), &target), 0);
        budget_spend(&own, BUDGET_TOKENS, UINT64_MAX); /* stays at the top */
        CHECK_INT(authorize(REQUEST("/provider/b/x", BEARER), &target), 403);
        CHECK(strstr(answered.body, "10 tokens for provider b"));
        setup.budget = providers[0].budget = NULL;
}

static void test_repeats(void) {
        Repeats r = {};
        usec_t now = 5;

        CHECK_INT(repeats_note(&r, "p", "a", now), 1);
        CHECK_INT(repeats_note(&r, "p", "b", now), 1);
        CHECK_INT(repeats_note(&r, "q", "a", now), 1);
        for (unsigned i = 0; i < 9; i++)
                CHECK_INT(repeats_note(&r, "p", "a", now + i), 0);
        CHECK_INT(repeats_note(&r, "p", "a", now + USEC_PER_MINUTE), 10);
        CHECK_INT(repeats_note(&r, "p", "a", now + USEC_PER_MINUTE + 1), 0);
        CHECK_INT(repeats_note(&r, "pa", "", now), 1);
        for (unsigned i = 0; i < 100; i++) {
                char text[8];
                (void) snprintf(text, sizeof(text), "%u", i);
                CHECK_INT(repeats_note(&r, "p", text, now + USEC_PER_MINUTE + 2 + i), 1);
        }
}

static void test_turned_away(void) {
        ExchangeTarget target;

        CHECK_INT(authorize(REQUEST("/provider/unknown/x", BEARER), &target), 404);
        CHECK_INT(n_left, 0);
        CHECK_INT(authorize(REQUEST("/provider/%62/x", BEARER), &target), 404);
        CHECK_INT(authorize(REQUEST("/provider//b/x", BEARER), &target), 404);

        CHECK_INT(authorize(REQUEST("/provider/r/x", BEARER), &target), 502);
        CHECK_STR(answered.body, "its base URL is not https://");
        CHECK_INT(left.outcome, RECEIPT_REFUSED);

        CHECK_INT(authorize(REQUEST("/provider/b/v1/../x?secret", BEARER), &target), 400);
        CHECK_INT(n_left, 1);
        CHECK_INT(left.outcome, RECEIPT_REFUSED);
        CHECK_INT(left.query_size, 6);
        CHECK(slice_is(left.path, "/v1/../x"));
        CHECK_STR(left.method, "POST");
        /* no stand-in, no word about the path */
        CHECK_INT(authorize(REQUEST("/provider/b/v1/../x", ""), &target), 401);

        CHECK_INT(authorize(REQUEST("/provider/b/x", BEARER "Connection: upgrade\r\nUpgrade: websocket\r\n"), &target), 501);
        CHECK_INT(left.outcome, RECEIPT_REFUSED);
}

int main(void) {
        providers[0] = (Provider) {.id = (char *) "b", .placement = PLACEMENT_BEARER};
        providers[1] = (Provider) {.id = (char *) "k", .placement = PLACEMENT_X_API_KEY};
        providers[2] = (Provider) {.id = (char *) "r", .placement = PLACEMENT_BEARER, .refusal = (char *) "its base URL is not https://"};
        static Capability list[] = {{(char *) "POST", (char *) "/v1/messages"}, {(char *) "*", (char *) "/v1/files/**"}};
        providers[EITHER] = (Provider) {.id = (char *) "e", .placement = PLACEMENT_EITHER};
        providers[BASIC] = (Provider) {.id = (char *) "a", .placement = PLACEMENT_BASIC};
        providers[HEADER] = (Provider) {.id = (char *) "h", .placement = PLACEMENT_HEADER, .header = (char *) "PRIVATE-TOKEN"};
        providers[STRICT] = (Provider) {.id = (char *) "s", .placement = PLACEMENT_BEARER, .capabilities = list, .n_capabilities = 2, .strict = true};
        providers[WARNED] = (Provider) {.id = (char *) "w", .placement = PLACEMENT_BEARER, .capabilities = list, .n_capabilities = 2};
        for (size_t i = 0; i < ELEMENTSOF(providers); i++)
                if (secret_new(KEY, strlen(KEY), &providers[i].key) < 0 ||
                    secret_new(STAND_IN, strlen(STAND_IN), &providers[i].stand_in) < 0)
                        return 1;
        RUN(test_split, "provider routes");
        RUN(test_clean_paths, "S109 S110 S111 S112: paths that every reader reads alike pass");
        RUN(test_dirty_paths, "S109 S110 S111 S112 C173 C175: paths that could be read differently");
        RUN(test_dropped_fields, "S113 S091 C187: what does not go to a provider, and what does");
        RUN(test_stand_in, "S089 S090 S091 C176: the stand-in in the placed header only");
        RUN(test_other_placements, "S093 C176 C185: either header, Basic, and a named header");
        RUN(test_capabilities, "S096 S098 S101 S102 S103 C188: a call that the list does not name");
        RUN(test_budgets, "budgets: a spent one is 403 with a sentence");
        RUN(test_repeats, "C188: repeats are counted, not logged one by one");
        RUN(test_turned_away, "S057 S063 S086 C148: calls that are turned away, and their receipts");
        for (size_t i = 0; i < ELEMENTSOF(providers); i++) {
                secret_free(providers[i].key);
                secret_free(providers[i].stand_in);
        }
        return TEST_END();
}
