/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/epoll.h>
#include <sys/socket.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "broker/answers.h"
#include "broker/keep.h"
#include "broker/relay.h"

#define HALF_CLOSE_USEC (USEC_PER_SEC / 10)      /* a FIN that comes this soon after the answer's beginning was sent before it */
#define LEFT_USEC (USEC_PER_SEC / 2)             /* how long a client that left may still be served without noticing */

static void pump(Exchange *e);

static Exchange *exchange_free(Exchange *e) {
        if (!e)
                return NULL;
        e->trust = trust_wait_cancel(e->trust);
        e->dial = dial_cancel(e->dial);
        stream_free(e->stream);
        relay_buffer_done(&e->request.head);
        relay_buffer_done(&e->request.out);
        relay_buffer_done(&e->answer.in);
        relay_buffer_done(&e->answer.out);
        answer_scrub_free(e->answer.scrub);
        free(e->answer.usage);
        free(e->path);
        if (e->broker)
                broker_release(e->broker, EXCHANGE_HELD);
        return mfree(e);
}
DEFINE_CLEANUP(Exchange *, exchange_free);

/* What the call has come to since it was asked last goes to its budgets. */
static void spend(Exchange *e) {
        const uint64_t now[_BUDGET_KIND_MAX] = {
                [BUDGET_BYTES] = e->request.bytes + e->answer.bytes,
                [BUDGET_TOKENS] = e->answer.usage ? usage_tokens(e->answer.usage) : 0,
        };

        bool any = false;

        for (BudgetKind k = 0; e->provider && k < _BUDGET_KIND_MAX; k++) {
                /* Less when a dead connection made the call begin again. */
                uint64_t n = now[k] > e->spent[k] ? now[k] - e->spent[k] : 0;
                budget_spend(e->provider->budget, k, n);
                budget_spend(e->broker->setup->budget, k, n);
                e->spent[k] += n;
                any = any || n > 0;
        }
        if (any)
                keep_budgets(e->broker->keep, e->broker->setup);
}

/* The receipt of a provider's call, and a line for every exchange. */
static void record(Exchange *e) {
        const char *session = e->broker->setup->session;
        size_t unsent = relay_buffer_size(&e->answer.out);
        Receipt receipt = {
                .provider = e->provider,
                .method = e->method,
                .status = e->status,
                .started = e->started,
                .bytes_up = e->request.bytes,
                .bytes_down = e->answer.bytes - MIN(unsent, e->answer.bytes),
                .tokens = e->answer.usage ? usage_tokens(e->answer.usage) : 0,
                .reach = e->request.sent ? RECEIPT_SENT : RECEIPT_UNSENT,
                .outcome = e->outcome,
        };
        _cleanup_free_ char *path = NULL;

        spend(e);

        if (!e->provider) {
                log_info("session %s: %s http://%s:%u: %u, %s", session, e->method, e->host.name, e->port, e->status,
                         receipt_outcome_to_string(e->outcome));
                return;
        }
        receipt.path = receipt_split_query((Slice) {e->path, strlen(e->path)}, &receipt.query_size);
        (void) receipts_add(e->broker->receipts, &receipt);
        if (receipt_path(e->provider, receipt.path, &path) >= 0)
                log_info("session %s: provider %s: %s %s: %u, %s", session, e->provider->id, e->method, path, e->status,
                         receipt_outcome_to_string(e->outcome));
}

/* The last thing: e is gone when it returns. */
static void finish(Exchange *e, bool keep_alive) {
        Connection *c = e->c;

        /* Of an answer that ends with the connection only a reset tells that it is not whole. */
        if (e->answer.begun && !e->answer.whole && e->answer.close_out) {
                static const struct linger reset = {.l_onoff = 1};
                (void) setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
        }
        record(e);
        exchange_free(e);
        c->exchange = NULL;
        connection_exchange_done(c, keep_alive);
}

Exchange *exchange_cancel(Exchange *e) {
        if (!e)
                return NULL;
        if (e->phase != EXCHANGE_OWN_ANSWER && e->phase != EXCHANGE_LINGER)
                e->outcome = RECEIPT_INTERRUPTED;
        record(e);
        e->c->exchange = NULL;
        return exchange_free(e);
}

void exchange_forget_upstreams(Broker *b) {
        upstreams_free(b->setup);
}

static void drop_upstream(Exchange *e) {
        e->trust = trust_wait_cancel(e->trust);
        e->dial = dial_cancel(e->dial);
        e->stream = stream_free(e->stream);
}

void exchange_fail(Exchange *e, ReceiptOutcome outcome, unsigned status, const char *reason, const char *body) {
        RelayBuffer *b = &e->answer.out;

        drop_upstream(e);
        e->phase = EXCHANGE_OWN_ANSWER;
        e->outcome = outcome;
        e->status = status;
        e->limit = 0;
        e->keep_alive = e->keep_alive && e->minor >= 1 && relay_request_discard(e);
        body = body ?: reason;
        int n = snprintf(b->data + b->end, b->room - b->end,
                         "HTTP/1.1 %u %s\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: %zu\r\n%s\r\n%s%s", status, reason,
                         strlen(body) + 1, e->keep_alive ? "" : "Connection: close\r\n", e->request.is_head ? "" : body,
                         e->request.is_head ? "" : "\n");
        if (n > 0 && (size_t) n < b->room - b->end)
                b->end += (size_t) n;
        if (e->provider && status >= 500)
                log_warning("session %s: provider %s: answered with %u: %s", e->broker->setup->session, e->provider->id, status, body);
}

static void update_timer(Exchange *e) {
        usec_t next = e->active + EXCHANGE_STALL_USEC;

        if (e->limit > 0)
                next = MIN(next, e->limit);
        if (e->client_left)
                next = MIN(next, e->active + LEFT_USEC);
        if (e->answer.more && relay_answer_hungry(e)) /* others have their turn, and then it goes on: no event tells of what TLS has read ahead */
                next = 0;
        /* Later is found out when it fires: bytes that move do not cost a timer each. */
        if (next >= e->armed)
                return;
        if (sd_event_source_set_time(e->c->timer, next) >= 0 && sd_event_source_set_enabled(e->c->timer, SD_EVENT_ONESHOT) >= 0)
                e->armed = next;
}

static void on_stream_io(_unused_ uint32_t events, void *userdata) {
        pump(userdata);
}

static int update_events(Exchange *e) {
        uint32_t client = e->client_done ? 0 : EPOLLRDHUP, stream = 0;

        if (relay_request_hungry(e) || e->phase == EXCHANGE_LINGER)
                client |= EPOLLIN;
        if (relay_buffer_size(&e->answer.out) > 0)
                client |= EPOLLOUT;
        int r = 0;
        /* What a waiting connection is told, each once, is enough here as well. */
        if (client != EPOLLRDHUP || e->c->watched != CONNECTION_EVENTS) {
                e->c->watched = 0;
                r = sd_event_source_set_io_events(e->c->io, client);
        }
        if (r < 0 || !e->stream)
                return r;

        if (e->phase == EXCHANGE_HANDSHAKE)
                stream = e->handshake_events;
        else
                stream = (relay_answer_hungry(e) ? UPSTREAM_EVENTS : 0U) | (relay_request_pending(e) ? EPOLLOUT : 0U);
        return stream_watch(e->stream, e->broker->event, stream, on_stream_io, e);
}

/* The stream is connected: on to the handshake, which a plain one does not have. */
static int begin_stream(Exchange *e) {
        int r = stream_watch(e->stream, e->broker->event, e->reused ? UPSTREAM_EVENTS : EPOLLOUT, on_stream_io, e);
        if (r < 0)
                return r;
        e->phase = e->reused || !stream_is_tls(e->stream) ? EXCHANGE_RELAYING : EXCHANGE_HANDSHAKE;
        e->handshake_events = EPOLLOUT;
        e->active = now_monotonic();
        e->limit = e->phase == EXCHANGE_HANDSHAKE ? e->active + DIAL_TIMEOUT_USEC : 0;
        return 0;
}

static void dial_failed(Exchange *e, DialResult result, const char *detail) {
        static const char *const phase[_DIAL_RESULT_MAX] = {
                [DIAL_NOT_RESOLVED] = "lookup failed",
                [DIAL_RESOLVE_TIMEOUT] = "lookup timed out",
                [DIAL_NOT_PUBLIC] = "not a public host, which no grant changes",
                [DIAL_UNREACHABLE] = "connect failed",
        };
        const AnswerWords *words = answer_words(answer_for_dial(result));

        log_warning("session %s: %s:%u: %s%s%s", e->broker->setup->session, e->host.name, e->port, phase[result], *detail ? ": " : "", detail);
        exchange_fail(e, result == DIAL_NOT_PUBLIC ? RECEIPT_REFUSED : RECEIPT_UPSTREAM_UNREACHABLE, words->status, words->reason, words->body);
}

static void on_dialled(void *userdata, DialResult result, int fd, _unused_ const Address *address, const char *detail) {
        Exchange *e = userdata;

        e->dial = NULL;
        if (result != DIAL_CONNECTED)
                dial_failed(e, result, detail ?: "");
        else {
                int r = e->upstream ? upstream_open(e->upstream, fd, &e->stream) : stream_new(fd, NULL, &e->stream);
                if (r < 0)
                        safe_close(fd);
                else
                        r = begin_stream(e);
                if (r < 0) {
                        log_error_errno(r, "session %s: %s:%u: cannot use the connection: %m", e->broker->setup->session, e->host.name, e->port);
                        exchange_fail(e, RECEIPT_UPSTREAM_UNREACHABLE, 502, "upstream unreachable", NULL);
                }
        }
        pump(e);
}

static void on_trust(void *userdata) {
        Exchange *e = userdata;

        e->trust = NULL;
        int r = dial_start(e->broker, &e->host, e->port, on_dialled, e, &e->dial);
        if (r < 0) {
                log_error_errno(r, "session %s: %s:%u: cannot be dialled: %m", e->broker->setup->session, e->host.name, e->port);
                exchange_fail(e, RECEIPT_REFUSED, 500, "Internal Server Error", NULL);
        }
        pump(e);
}

static int dial(Exchange *e) {
        e->reused = false;
        e->phase = EXCHANGE_DIALLING;
        if (e->provider && e->provider->tls && !trust_is_loaded())
                return trust_wait(e->broker->event, on_trust, e, &e->trust);
        return dial_start(e->broker, &e->host, e->port, on_dialled, e, &e->dial);
}

/* A kept connection was dead: the same request once more, over a new one. */
static int redial(Exchange *e) {
        drop_upstream(e);
        relay_request_rewind(e);
        e->answer.end = 0;
        e->answer.scanned = 0;
        return dial(e);
}

static int handshake(Exchange *e) {
        char problem[TLS_PROBLEM_MAX] = "";

        int r = stream_handshake(e->stream, &e->handshake_events, problem);
        if (r == -EAGAIN)
                return 0;
        if (r < 0) {
                log_warning("session %s: provider %s: %s:%u: TLS failed: %s", e->broker->setup->session, e->provider->id, e->host.name, e->port,
                            problem);
                exchange_fail(e, RECEIPT_UPSTREAM_UNREACHABLE, 502, "upstream unreachable", NULL);
                return 0;
        }
        e->phase = EXCHANGE_RELAYING;
        e->active = now_monotonic();
        e->limit = 0;
        return 0;
}

/* The answer has gone out: what becomes of the upstream's connection? */
static void release_stream(Exchange *e) {
        const AnswerRelay *a = &e->answer;
        bool keep = e->upstream && a->whole && a->keep_upstream && a->end == 0 && relay_buffer_size(&a->in) == 0 && e->request.taken &&
                    !e->request.broken && !e->request.odd_body && relay_buffer_size(&e->request.head) == 0 && relay_buffer_size(&e->request.out) == 0;

        if (keep)
                upstream_keep(e->upstream, TAKE_PTR(e->stream), a->keep_usec);
        else if (a->whole && e->stream) {
                stream_remember(e->stream);
                e->stream = stream_close(e->stream);
        } else
                e->stream = stream_free(e->stream);
}

/* True when e is gone. */
static bool answered(Exchange *e) {
        if (e->phase == EXCHANGE_RELAYING)
                release_stream(e);
        if (e->request.taken || e->answer.close_out || relay_request_discard(e)) {
                finish(e, e->keep_alive && e->request.taken);
                return true;
        }
        /* It may still be sending its body; closing now would reset the answer out of its hands. */
        (void) shutdown(e->c->fd, SHUT_WR);
        e->phase = EXCHANGE_LINGER;
        e->limit = now_monotonic() + LINGER_USEC;
        return false;
}

/* True when e is gone. */
static bool linger(Exchange *e) {
        char scratch[16 * 1024];

        for (unsigned i = 0; i < 16; i++) {
                ssize_t n = recv(e->c->fd, scratch, sizeof(scratch), MSG_DONTWAIT);
                if (n < 0 && errno == EAGAIN)
                        return false;
                if (n > 0)
                        e->lingered += (size_t) n;
                if (n <= 0 || e->lingered > LINGER_MAX) {
                        finish(e, false);
                        return true;
                }
        }
        return false;
}

/* What a direction could not do. True when e is gone. */
static bool failed(Exchange *e, int r) {
        if (r == -ESTALE) {
                r = redial(e);
                if (r >= 0)
                        return false;
        }
        if (r == -ECONNABORTED || e->answer.begun || e->phase == EXCHANGE_OWN_ANSWER || e->phase == EXCHANGE_LINGER) {
                if (e->phase != EXCHANGE_OWN_ANSWER && e->phase != EXCHANGE_LINGER)
                        e->outcome = RECEIPT_INTERRUPTED;
                finish(e, false);
                return true;
        }
        e->keep_alive = false;
        if (r == -EBADMSG)
                exchange_fail(e, RECEIPT_REFUSED, 400, "Bad Request", "the request's chunks are malformed");
        else {
                log_error_errno(r, "session %s: %s:%u: a call cannot go on: %m", e->broker->setup->session, e->host.name, e->port);
                exchange_fail(e, RECEIPT_REFUSED, 500, "Internal Server Error", NULL);
        }
        return false;
}

static int move(Exchange *e) {
        int r = 0;

        if (e->phase == EXCHANGE_HANDSHAKE)
                r = handshake(e);
        if (r >= 0 && e->phase == EXCHANGE_RELAYING && !e->answer.done)
                r = relay_request_move(e);
        if (r >= 0 && e->phase == EXCHANGE_RELAYING)
                r = relay_answer_move(e);
        if (r >= 0 && e->phase == EXCHANGE_OWN_ANSWER)
                r = relay_answer_flush(e);
        return r;
}

/* Moves what can be moved, then waits for what it needs, or ends. */
static void pump(Exchange *e) {
        if (e->phase == EXCHANGE_LINGER && linger(e))
                return;
        for (int r; (r = move(e)) < 0;)
                if (failed(e, r))
                        return;
        spend(e);
        bool out = relay_buffer_size(&e->answer.out) > 0;
        if (!out && (e->phase == EXCHANGE_OWN_ANSWER || (e->phase == EXCHANGE_RELAYING && e->answer.done)) && answered(e))
                return;
        int r = update_events(e);
        if (r < 0) {
                log_error_errno(r, "session %s: cannot wait for a call: %m", e->broker->setup->session);
                e->outcome = RECEIPT_INTERRUPTED;
                finish(e, false);
                return;
        }
        update_timer(e);
}

void exchange_on_client(Exchange *e, uint32_t events) {
        if (events & (EPOLLHUP | EPOLLERR)) {
                (void) failed(e, -ECONNABORTED);
                return;
        }
        if ((events & EPOLLRDHUP) && !e->client_done) {
                e->client_done = true;
                /* Before the answer began it may be a half-close, and then the answer is still wanted. */
                e->client_left = e->answer.begun && now_monotonic() > e->begun_at + HALF_CLOSE_USEC;
        }
        pump(e);
}

void exchange_on_timer(Exchange *e) {
        usec_t now = now_monotonic();

        e->armed = USEC_INFINITY;
        if ((e->client_left && now >= e->active + LEFT_USEC) || (e->phase == EXCHANGE_LINGER && now >= e->limit)) {
                (void) failed(e, -ECONNABORTED);
                return;
        }
        if (e->phase == EXCHANGE_HANDSHAKE && now >= e->limit) {
                log_warning("session %s: provider %s: %s:%u: TLS timed out", e->broker->setup->session, e->provider->id, e->host.name, e->port);
                exchange_fail(e, RECEIPT_UPSTREAM_UNREACHABLE, 502, "upstream unreachable", NULL);
        } else if (now >= e->active + EXCHANGE_STALL_USEC && e->phase != EXCHANGE_DIALLING) {
                log_warning("session %s: %s:%u: a call stood still for too long", e->broker->setup->session, e->host.name, e->port);
                if (e->answer.begun || e->phase == EXCHANGE_OWN_ANSWER) {
                        (void) failed(e, -ECONNABORTED);
                        return;
                }
                exchange_fail(e, RECEIPT_INTERRUPTED, 504, "Gateway Timeout", "the upstream did not answer in time");
        }
        pump(e);
}

/* A forward that asks to switch protocols; HTTP/2 over plain text is an offer that a server may ignore, and so is dropped. */
static bool wants_upgrade(const Http1Head *head) {
        const Http1Field *f = http1_find(head, "Upgrade");

        return f && http1_count(head, "Connection") > 0 && !(http1_count(head, "Upgrade") == 1 && slice_is(f->value, "h2c"));
}

static int prepare(Exchange *e, const Http1Head *head, size_t head_size, const ExchangeTarget *target) {
        e->path = strndup(target->path.data ?: "", target->path.size);
        if (!e->path)
                return -ENOMEM;
        int r = relay_answer_prepare(e);
        if (r >= 0)
                r = relay_request_prepare(e, head, head_size, target);
        return r;
}

/* Begins the way to the upstream. 0 with *ret_refusal set when there is none: the words of the answer. */
static int begin(Exchange *e, const Http1Head *head, const char **ret_refusal) {
        if (!e->provider) {
                if (wants_upgrade(head)) {
                        *ret_refusal = "this proxy does not switch protocols: use CONNECT";
                        return 0;
                }
                return dial(e);
        }
        int r = upstream_get(e->broker, e->provider, &e->upstream);
        if (r == -EBADMSG) {
                *ret_refusal = "the provider's caFile holds no certificate";
                return 0;
        }
        if (r < 0)
                return r;
        e->stream = upstream_take(e->upstream);
        if (!e->stream)
                return dial(e);
        e->reused = true;
        return begin_stream(e);
}

int exchange_start(Connection *c, const Http1Head *head, size_t head_size, const ExchangeTarget *target) {
        _cleanup_(exchange_freep) Exchange *e = calloc(1, sizeof(Exchange));
        const char *refusal = NULL;
        int r;

        if (!e)
                return -ENOMEM;
        if (!broker_hold(c->broker, EXCHANGE_HELD))
                return -ENOBUFS;
        e->c = c;
        e->broker = c->broker;
        e->provider = target->provider;
        e->host = *target->host;
        e->port = target->port;
        e->method = receipt_method(head->method);
        e->minor = head->minor;
        e->keep_alive = head->keep_alive;
        e->started = e->active = now_monotonic();
        e->outcome = RECEIPT_INTERRUPTED;
        r = prepare(e, head, head_size, target);
        if (r < 0)
                return r;
        e->armed = USEC_INFINITY;
        r = begin(e, head, &refusal);
        if (r < 0)
                return r;
        relay_request_commit(e, head_size);
        if (refusal && e->provider)
                exchange_fail(e, RECEIPT_REFUSED, 502, "provider not called", refusal);
        else if (refusal)
                exchange_fail(e, RECEIPT_REFUSED, 501, "Not Implemented", refusal);
        else if (e->phase == EXCHANGE_RELAYING)
                relay_request_begin(e);
        (void) update_events(e);
        update_timer(e);
        c->exchange = TAKE_PTR(e);
        return 0;
}
