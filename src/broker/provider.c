/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "broker/broker.h"
#include "broker/exchange.h"
#include "broker/provider.h"

#define ROUTE "/provider/"

int provider_split(Slice path, Slice *ret_id, Slice *ret_rest) {
        size_t n = STRLEN(ROUTE), i = n;

        if (path.size < n || memcmp(path.data, ROUTE, n) != 0)
                return -ENOENT;
        while (i < path.size && path.data[i] != '/' && path.data[i] != '?')
                i++;
        *ret_id = (Slice) {path.data + n, i - n};
        *ret_rest = (Slice) {path.data + i, path.size - i};
        return 0;
}

static int hex_value(char c) {
        if (ascii_digit(c))
                return c - '0';
        c = ascii_lower(c);
        return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Decodes in place; -EBADMSG for a '%' that begins no octet. */
static ssize_t decode(char *text, size_t size) {
        size_t n = 0;

        for (size_t i = 0; i < size; i++) {
                if (text[i] != '%') {
                        text[n++] = text[i];
                        continue;
                }
                if (size - i < 3 || hex_value(text[i + 1]) < 0 || hex_value(text[i + 2]) < 0)
                        return -EBADMSG;
                text[n++] = (char) (hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
                i += 2;
        }
        return (ssize_t) n;
}

static const char *decoded_problem(const char *text, size_t size) {
        for (size_t i = 0; i < size; i++) {
                if (text[i] == '/' || text[i] == '\\')
                        return "the path has an encoded slash or a backslash";
                if ((unsigned char) text[i] < 0x20 || text[i] == 0x7f)
                        return "the path has an encoded control character";
        }
        if ((size == 1 && text[0] == '.') || (size == 2 && text[0] == '.' && text[1] == '.'))
                return "the path has a . or .. segment";
        return NULL;
}

static const char *segment_problem(const char *segment, size_t size) {
        const char *problem;

        if (size == 0)
                return "the path has an empty segment";
        if (memchr(segment, ';', size))
                return "the path has ; parameters";
        if (!memchr(segment, '%', size))
                return decoded_problem(segment, size);

        _cleanup_free_ char *text = malloc(size);
        if (!text)
                return "the path could not be judged: out of memory";
        memcpy(text, segment, size);
        ssize_t n = decode(text, size);
        if (n < 0)
                return "the path has a % that encodes nothing";
        problem = decoded_problem(text, (size_t) n);
        if (problem || !memchr(text, '%', (size_t) n))
                return problem;
        /* Some servers decode twice. What decodes to nothing the second time is an ordinary percent sign. */
        n = decode(text, (size_t) n);
        return n < 0 ? NULL : decoded_problem(text, (size_t) n);
}

const char *provider_path_problem(Slice rest) {
        const char *mark = rest.size > 0 ? memchr(rest.data, '?', rest.size) : NULL;
        size_t size = mark ? (size_t) (mark - rest.data) : rest.size;

        for (size_t i = 0; i < rest.size; i++) {
                if (rest.data[i] == '#')
                        return "the path has a fragment";
                if (rest.data[i] <= ' ' || rest.data[i] >= 0x7f)
                        return "the path has characters that must be encoded";
        }
        if (size == 0 || (size == 1 && rest.data[0] == '/'))
                return NULL;
        if (rest.data[0] != '/')
                return "the path does not begin with a slash";
        for (size_t at = 1; at <= size;) {
                const char *slash = at < size ? memchr(rest.data + at, '/', size - at) : NULL;
                size_t end = slash ? (size_t) (slash - rest.data) : size;
                const char *problem = segment_problem(rest.data + at, end - at);
                if (problem)
                        return problem;
                at = end + 1;
        }
        return NULL;
}

StandIn provider_check_stand_in(const Provider *p, const Http1Head *head) {
        const char *other = placement_header(p->placement == PLACEMENT_BEARER ? PLACEMENT_X_API_KEY : PLACEMENT_BEARER);
        size_t n = http1_count(head, placement_header(p->placement));

        if (n == 0)
                return http1_count(head, other) > 0 ? STAND_IN_OTHER : STAND_IN_NONE;
        if (n > 1)
                return STAND_IN_SEVERAL;

        Slice value = http1_find(head, placement_header(p->placement))->value;
        if (p->placement == PLACEMENT_BEARER) {
                size_t i = STRLEN("Bearer");
                if (value.size <= i || !ascii_case_equal(value.data, i, "Bearer") || value.data[i] != ' ')
                        return STAND_IN_SCHEME;
                while (i < value.size && value.data[i] == ' ')
                        i++;
                value = (Slice) {value.data + i, value.size - i};
        }
        return secret_equal(value.data, value.size, secret_data(p->stand_in), secret_size(p->stand_in)) ? STAND_IN_RIGHT : STAND_IN_WRONG;
}

const char *provider_stand_in_words(Placement placement, StandIn what) {
        static const char *const words[_PLACEMENT_MAX][_STAND_IN_MAX] = {
                [PLACEMENT_BEARER] = {
                        [STAND_IN_NONE] = "this provider takes the session's stand-in as \"Authorization: Bearer\"; neither Authorization nor "
                                          "x-api-key came",
                        [STAND_IN_OTHER] = "this provider takes the session's stand-in as \"Authorization: Bearer\"; x-api-key came",
                        [STAND_IN_SEVERAL] = "this provider takes the session's stand-in as \"Authorization: Bearer\"; Authorization came more "
                                             "than once",
                        [STAND_IN_SCHEME] = "this provider takes the session's stand-in as \"Authorization: Bearer\"; Authorization came with "
                                            "another scheme",
                        [STAND_IN_WRONG] = "this provider takes the session's stand-in as \"Authorization: Bearer\"; Authorization came with "
                                           "another value",
                },
                [PLACEMENT_X_API_KEY] = {
                        [STAND_IN_NONE] = "this provider takes the session's stand-in as \"x-api-key\"; neither x-api-key nor Authorization came",
                        [STAND_IN_OTHER] = "this provider takes the session's stand-in as \"x-api-key\"; Authorization came",
                        [STAND_IN_SEVERAL] = "this provider takes the session's stand-in as \"x-api-key\"; x-api-key came more than once",
                        [STAND_IN_SCHEME] = "this provider takes the session's stand-in as \"x-api-key\"",
                        [STAND_IN_WRONG] = "this provider takes the session's stand-in as \"x-api-key\"; x-api-key came with another value",
                },
        };
        return words[placement][what];
}

static bool same_name(Slice name, const char *other) {
        if (name.size != strlen(other))
                return false;
        for (size_t i = 0; i < name.size; i++)
                if ((name.data[i] == '_' ? '-' : ascii_lower(name.data[i])) != other[i])
                        return false;
        return true;
}

bool provider_drops_field(Slice name) {
        static const char *const dropped[] = {
                "authorization", "x-api-key", "accept-encoding",
                /* Two ranges of an answer that quotes the key would each hold a part of it, which nobody finds: the whole is asked for. */
                "range", "if-range",
                /* Read by Rack, Symfony, Express middleware, ASP.NET, WCF and OData as the method to run. */
                "x-http-method-override", "x-method-override", "x-http-method", "x-original-method",
                /* Read by IIS rewriting, Zend, Symfony and several gateways as the path to run. */
                "x-original-url", "x-rewrite-url", "x-original-uri", "x-rewrite-uri", "x-override-url", "x-http-path-override",
        };
        for (size_t i = 0; i < ELEMENTSOF(dropped); i++)
                if (same_name(name, dropped[i]))
                        return true;
        return false;
}

static bool leave_receipt(const Connection *c, const Provider *p, const Http1Head *head, Slice rest, unsigned status, ReceiptOutcome outcome) {
        Receipt receipt = {
                .provider = p,
                .method = receipt_method(head->method),
                .status = status,
                .started = now_monotonic(),
                .outcome = outcome,
        };
        receipt.path = receipt_split_query(rest, &receipt.query_size);
        return receipts_add(c->broker->receipts, &receipt);
}

/* Answers with words of ours, leaves the receipt, and returns the status. */
static int turn_away(Connection *c, const Http1Head *head, const Provider *p, Slice rest, unsigned status, const char *reason, const char *body,
                     const char *extra) {
        const Setup *s = c->broker->setup;
        ReceiptOutcome outcome = status == 401 ? RECEIPT_DENIED : RECEIPT_REFUSED;

        /* Denials can come by the thousand; their receipt's rule bounds the log as well. */
        bool kept = leave_receipt(c, p, head, rest, status, outcome);
        if (kept || outcome != RECEIPT_DENIED)
                log_warning("session %s: provider %s: %s with %u: %s", s->session, p->id, receipt_outcome_to_string(outcome), status, body);
        int r = connection_answer(c, status, reason, body, extra, head->keep_alive);
        return r < 0 ? r : (int) status;
}

int provider_authorize(Connection *c, const Http1Head *head, Slice path, ExchangeTarget *ret) {
        const Setup *s = c->broker->setup;
        const Provider *p = NULL;
        Slice id = {}, rest = {};

        if (provider_split(path, &id, &rest) >= 0)
                p = setup_find_provider(s, id);
        if (!p) {
                log_info("session %s: a call for a provider that this broker does not serve", s->session);
                int r = connection_answer(c, 404, "Not Found", "no such provider route", NULL, head->keep_alive);
                return r < 0 ? r : 404;
        }

        StandIn what = provider_check_stand_in(p, head);
        if (what != STAND_IN_RIGHT)
                return turn_away(c, head, p, rest, 401, "Unauthorized", provider_stand_in_words(p->placement, what),
                                 p->placement == PLACEMENT_BEARER ? "WWW-Authenticate: Bearer realm=\"errand\"\r\n" :
                                                                    "WWW-Authenticate: x-api-key realm=\"errand\"\r\n");
        if (p->refusal)
                return turn_away(c, head, p, rest, 502, "provider not called", p->refusal, NULL);
        if (head->has_upgrade)
                return turn_away(c, head, p, rest, 501, "Not Implemented",
                                 "an upgrade was asked for: its frames could not be kept free of the key, so provider routes speak HTTP/1.1 only",
                                 NULL);
        const char *problem = provider_path_problem(rest);
        if (problem)
                return turn_away(c, head, p, rest, 400, "Bad Request", problem, NULL);

        *ret = (ExchangeTarget) {.provider = p, .host = &p->host, .port = p->port, .path = rest};
        return 0;
}
