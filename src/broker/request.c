/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>

#include "basic/text.h"
#include "broker/broker.h"
#include "broker/egress.h"
#include "broker/exchange.h"
#include "broker/request.h"
#include "broker/route.h"
#include "broker/socks.h"
#include "broker/target.h"

static bool slice_starts_case(Slice s, const char *prefix) {
        size_t n = strlen(prefix);
        return s.size >= n && ascii_case_equal(s.data, n, prefix);
}

void request_refuse(Connection *c, Answer a, const char *body, const char *detail) {
        const AnswerWords *w = answer_words(a);
        const char *text = body ? body : w->body ? w->body : w->reason;

        connection_log_refusal(c, "refused with %u: %s%s%s%s", w->status, text, a == ANSWER_NOT_PUBLIC ? ", which no grant changes" : "",
                               detail && *detail ? ": " : "", detail ? detail : "");
        if (c->protocol == CONNECTION_SOCKS5)
                socks_refuse(c, answer_to_socks5(a));
        else
                (void) connection_answer(c, w->status, w->reason, text, w->extra, c->request_keep_alive && !w->closes);
}

static void set_subject_host(Connection *c, const Http1Head *head, const char *scheme, const Target *t) {
        bool v6 = t->host.kind == HOST_IPV6;
        connection_set_subject(c, "%.*s %s%s%s%s:%u", (int) head->method.size, head->method.data, scheme, v6 ? "[" : "", t->host.name,
                               v6 ? "]" : "", t->port);
}

/* Exactly one Proxy-Authorization that carries what the proxy variables make every client send. */
static bool authorized(const Broker *b, const Http1Head *head) {
        if (b->closed || !b->basic || http1_count(head, "Proxy-Authorization") != 1)
                return false;
        Slice v = http1_find(head, "Proxy-Authorization")->value;
        if (!slice_starts_case(v, "Basic "))
                return false;
        size_t skip = STRLEN("Basic ");
        while (skip < v.size && v.data[skip] == ' ')
                skip++;
        return secret_equal(v.data + skip, v.size - skip, secret_data(b->basic), secret_size(b->basic));
}

static bool is_own(const Broker *b, const Host *host, uint16_t port) {
        char text[INET_ADDRSTRLEN];
        struct in_addr own = {.s_addr = b->listen_address};

        if (port != b->listen_port)
                return false;
        return streq(host->name, "127.0.0.1") || streq(host->name, "localhost") ||
               streq(host->name, inet_ntop(AF_INET, &own, text, sizeof(text)));
}

/* r and problem: what target_parse() said. */
static void decide_connect(Connection *c, const Http1Head *head, const Target *t, int r, const char *problem) {
        if (head->framing != HTTP1_BODY_NONE || head->has_content_length) {
                request_refuse(c, ANSWER_CONNECT_BODY, NULL, NULL);
                return;
        }
        if (r >= 0)
                set_subject_host(c, head, "", t);
        if (!authorized(c->broker, head))
                request_refuse(c, ANSWER_CREDENTIAL, NULL, NULL);
        else if (r < 0)
                request_refuse(c, ANSWER_AUTHORITY, problem, NULL);
        else if (!target_host_matches(t, head))
                request_refuse(c, ANSWER_HOST_HEADER, NULL, NULL);
        else
                egress_open_tunnel(c, &t->host, t->port);
}

static void start_exchange(Connection *c, const Http1Head *head, const ExchangeTarget *target) {
        size_t size = c->head_size;

        c->head_size = 0; /* the exchange consumes it */
        c->state = CONNECTION_BUSY;
        int r = exchange_start(c, head, size, target);
        if (r >= 0) {
                c->body_unread = false; /* it knows */
                return;
        }
        c->head_size = size;
        request_refuse(c, r == -ENOBUFS ? ANSWER_TOO_MANY : ANSWER_INTERNAL, NULL, r == -ENOBUFS ? NULL : strerror(-r));
}

static void decide_route(Connection *c, const Http1Head *head, Slice path) {
        ExchangeTarget target = {};

        int r = route_authorize(c, head, path, &target);
        if (r == 0)
                start_exchange(c, head, &target);
        /* A negative errno: c is gone. */
}

static void decide_absolute(Connection *c, const Http1Head *head, const Target *t, int r, const char *problem) {
        if (r >= 0)
                set_subject_host(c, head, "http://", t);
        if (r >= 0 && is_own(c->broker, &t->host, t->port) && target_is_route(t) && target_host_matches(t, head)) {
                decide_route(c, head, t->path); /* here the stand-in is the credential */
                return;
        }
        if (!authorized(c->broker, head))
                request_refuse(c, ANSWER_CREDENTIAL, NULL, NULL);
        else if (r < 0)
                request_refuse(c, ANSWER_AUTHORITY, problem, NULL);
        else if (!target_host_matches(t, head))
                request_refuse(c, ANSWER_HOST_HEADER, NULL, NULL);
        else if (egress_judge(c, &t->host, t->port)) {
                ExchangeTarget target = {.host = &t->host, .port = t->port, .path = t->path};
                start_exchange(c, head, &target);
        }
}

/* Under another name than its own, this port leads nowhere. */
static bool names_us(const Broker *b, const Http1Head *head) {
        uint16_t port;
        Host host;

        return http1_count(head, "Host") == 1 && host_parse_authority(http1_find(head, "Host")->value, b->listen_port, &host, &port, NULL) >= 0 &&
               is_own(b, &host, port);
}

static void decide_origin(Connection *c, const Http1Head *head, const Target *t) {
        bool is_route = target_is_route(t);

        if (!is_route || !names_us(c->broker, head)) {
                connection_set_subject(c, "%.*s of a path", (int) head->method.size, head->method.data);
                request_refuse(c, is_route ? ANSWER_HOST_HEADER : ANSWER_NOT_PROXIED, NULL, NULL);
                return;
        }
        connection_set_subject(c, "%.*s of a provider route", (int) head->method.size, head->method.data);
        decide_route(c, head, t->path);
}

void request_decide(Connection *c, const Http1Head *head) {
        const char *problem = NULL;
        Target t;

        c->body_unread = head->framing != HTTP1_BODY_NONE;
        c->body_size = head->framing == HTTP1_BODY_LENGTH ? head->content_length : UINT64_MAX;
        c->request_keep_alive = head->keep_alive;
        c->request_was_head = slice_is(head->method, "HEAD");

        int r = target_parse(head, &t, &problem);
        switch (t.form) {
        case TARGET_CONNECT:
                decide_connect(c, head, &t, r, problem);
                break;
        case TARGET_ORIGIN:
                decide_origin(c, head, &t);
                break;
        case TARGET_ABSOLUTE:
                decide_absolute(c, head, &t, r, problem);
                break;
        case TARGET_OTHER:
                connection_set_subject(c, "%.*s", (int) head->method.size, head->method.data);
                request_refuse(c, authorized(c->broker, head) ? ANSWER_SCHEME : ANSWER_CREDENTIAL, NULL, NULL);
                break;
        }
}
