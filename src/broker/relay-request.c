/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/socket.h>

#include "basic/secret.h"
#include "basic/text.h"
#include "broker/provider.h"
#include "broker/relay.h"

#define CHUNK_ROOM 16U /* a chunk's size line and its last CRLF */
#define TURNS_MAX 16U  /* reads before the loop may see to others */

int relay_buffer_new(RelayBuffer *b, size_t room) {
        char *data = malloc(room);
        if (!data)
                return -ENOMEM;
        *b = (RelayBuffer) {.data = data, .room = room};
        return 0;
}

void relay_buffer_done(RelayBuffer *b) {
        if (b->data)
                secret_wipe(b->data, b->end);
        free(b->data);
        *b = (RelayBuffer) {};
}

static void put(RelayBuffer *b, const char *data, size_t size) {
        /* The room was counted before; this is the second line. */
        if (size > b->room - b->end)
                abort();
        if (size > 0)
                memcpy(b->data + b->end, data, size);
        b->end += size;
}

static void put_text(RelayBuffer *b, const char *text) {
        put(b, text, strlen(text));
}

static bool passes(const Exchange *e, const Http1Head *head, const Http1Field *f) {
        static const char *const ours[] = {"Host", "Content-Length", "Expect", "HTTP2-Settings"};

        for (size_t i = 0; i < ELEMENTSOF(ours); i++)
                if (ascii_case_equal(f->name.data, f->name.size, ours[i]))
                        return false;
        if (http1_is_hop_by_hop(head, f))
                return false;
        return !e->provider || !provider_drops_field(e->provider, f->name);
}

static size_t head_room(const Exchange *e, const Http1Head *head, const ExchangeTarget *target) {
        size_t n = 512 + head->method.size + target->path.size + HOST_NAME_MAX_BYTES;

        for (size_t i = 0; i < head->n_fields; i++)
                n += head->fields[i].name.size + head->fields[i].value.size + 4;
        if (e->provider)
                n += strlen(e->provider->base_path) + 2 * (secret_size(e->provider->key) + PLACEMENT_HEADER_MAX) +
                     (e->provider->basic ? secret_size(e->provider->basic) : 0);
        return n;
}

static void put_target(RelayBuffer *b, const Exchange *e, Slice path) {
        const char *base = e->provider ? e->provider->base_path : "";

        put_text(b, base);
        /* "" and "?query" have no path of their own. */
        if (*base == 0 && (path.size == 0 || path.data[0] != '/'))
                put_text(b, "/");
        put(b, path.data, path.size);
}

static void put_host(RelayBuffer *b, const Exchange *e) {
        bool tls = e->provider && e->provider->tls;
        char port[8];

        put_text(b, "Host: ");
        put_text(b, e->host.kind == HOST_IPV6 ? "[" : "");
        put_text(b, e->host.name);
        put_text(b, e->host.kind == HOST_IPV6 ? "]" : "");
        if (e->port != (tls ? 443 : 80)) {
                (void) snprintf(port, sizeof(port), ":%u", e->port);
                put_text(b, port);
        }
        put_text(b, "\r\n");
}

static void put_secret(RelayBuffer *b, const char *name, const char *before, const Secret *secret, size_t padding) {
        put_text(b, name);
        put_text(b, before);
        put(b, secret_data(secret), secret_size(secret));
        put(b, "==", padding);
        put_text(b, "\r\n");
}

static void put_key(RelayBuffer *b, const Provider *p, const Http1Head *head) {
        switch (p->placement) {
        case PLACEMENT_X_API_KEY:
                put_secret(b, "x-api-key", ": ", p->key, 0);
                break;
        case PLACEMENT_BASIC:
                put_secret(b, "Authorization", ": Basic ", p->basic, (4 - secret_size(p->basic) % 4) % 4);
                break;
        case PLACEMENT_HEADER:
                put_secret(b, p->header, ": ", p->key, 0);
                break;
        case PLACEMENT_EITHER:
                if (http1_count(head, "x-api-key") > 0)
                        put_secret(b, "x-api-key", ": ", p->key, 0);
                __attribute__((fallthrough));
        case PLACEMENT_BEARER:
        case _PLACEMENT_MAX:
        case _PLACEMENT_INVALID:
                put_secret(b, "Authorization", ": Bearer ", p->key, 0);
                break;
        }
        put_text(b, "Accept-Encoding: identity\r\n");
}

static void put_framing(RelayBuffer *b, const Http1Head *head) {
        char line[64];

        if (head->framing == HTTP1_BODY_CHUNKED)
                put_text(b, "Transfer-Encoding: chunked\r\n");
        else if (head->framing == HTTP1_BODY_LENGTH || head->has_content_length) {
                (void) snprintf(line, sizeof(line), "Content-Length: %llu\r\n", (unsigned long long) head->content_length);
                put_text(b, line);
        }
}

static void put_head(RelayBuffer *b, const Exchange *e, const Http1Head *head, Slice path) {
        put(b, head->method.data, head->method.size);
        put_text(b, " ");
        put_target(b, e, path);
        put_text(b, " HTTP/1.1\r\n");
        put_host(b, e);
        for (size_t i = 0; i < head->n_fields; i++) {
                const Http1Field *f = &head->fields[i];
                if (!passes(e, head, f))
                        continue;
                put(b, f->name.data, f->name.size);
                put_text(b, ": ");
                put(b, f->value.data, f->value.size);
                put_text(b, "\r\n");
        }
        if (e->provider)
                put_key(b, e->provider, head);
        put_framing(b, head);
        /* A forward's upstream connection is never shared or kept. */
        put_text(b, e->provider && !e->request.odd_body ? "\r\n" : "Connection: close\r\n\r\n");
}

int relay_request_prepare(Exchange *e, const Http1Head *head, size_t head_size, const ExchangeTarget *target) {
        RequestRelay *q = &e->request;
        size_t beyond = e->c->in_size - head_size;

        q->framing = head->framing;
        q->left = head->framing == HTTP1_BODY_LENGTH ? head->content_length : 0;
        q->taken = head->framing == HTTP1_BODY_NONE || (head->framing == HTTP1_BODY_LENGTH && q->left == 0);
        q->is_head = slice_is(head->method, "HEAD");
        /* RFC 9110, section 9.3: in other methods it has no meaning, and servers that do not read it read a request out of it, which the head of
         * the next call, key and all, would complete. */
        q->odd_body = !q->taken && !slice_is(head->method, "POST") && !slice_is(head->method, "PUT") && !slice_is(head->method, "PATCH");
        /* RFC 9110, section 9.2.2. */
        q->idempotent = q->is_head || slice_is(head->method, "GET") || slice_is(head->method, "OPTIONS") || slice_is(head->method, "PUT") ||
                        slice_is(head->method, "DELETE") || slice_is(head->method, "TRACE");
        if (q->framing == HTTP1_BODY_LENGTH && q->left > 0 && q->left <= beyond)
                q->head_body = (size_t) q->left;
        q->wants_continue = head->expect_continue && head->minor >= 1 && !q->taken && beyond == 0;

        int r = relay_buffer_new(&q->head, head_room(e, head, target) + q->head_body);
        if (r < 0)
                return r;
        put_head(&q->head, e, head, target->path);
        if (q->head_body > 0) {
                put(&q->head, e->c->in + head_size, q->head_body);
                q->taken = true;
                q->left = 0;
        }
        return 0;
}

static void consume(Connection *c, size_t n) {
        memmove(c->in, c->in + n, c->in_size - n);
        c->in_size -= n;
}

void relay_request_commit(Exchange *e, size_t head_size) {
        consume(e->c, head_size + e->request.head_body);
}

/* The next piece of the body in c->in; *ret_used bytes of it hold it. 0 when more must be read. */
static int next_piece(Exchange *e, size_t at, size_t limit, Slice *ret_piece, size_t *ret_used) {
        RequestRelay *q = &e->request;
        const char *data = e->c->in + at;
        size_t size = MIN(e->c->in_size - at, limit);

        *ret_piece = (Slice) {};
        *ret_used = 0;
        if (q->taken || size == 0)
                return 0;
        if (q->framing == HTTP1_BODY_LENGTH) {
                size_t n = (size_t) MIN((uint64_t) size, q->left);
                q->left -= n;
                q->taken = q->left == 0;
                *ret_piece = (Slice) {data, n};
                *ret_used = n;
                return 1;
        }
        ssize_t n = http1_chunked_next(&q->chunked, data, size, ret_piece);
        if (n < 0)
                return -EBADMSG;
        q->taken = q->chunked.done;
        *ret_used = (size_t) n;
        return n > 0;
}

/* Re-frames what is in c->in into out, which is empty. */
static int frame(Exchange *e) {
        RequestRelay *q = &e->request;
        size_t used = 0;

        if (!q->out.data) {
                int r = relay_buffer_new(&q->out, CLIENT_BUFFER_SIZE + 2 * CHUNK_ROOM);
                if (r < 0)
                        return r;
        }
        q->out.start = q->out.end = 0;
        while (q->out.room - q->out.end > 2 * CHUNK_ROOM) {
                Slice piece;
                size_t n;
                char line[CHUNK_ROOM + 8];

                int r = next_piece(e, used, q->out.room - q->out.end - 2 * CHUNK_ROOM, &piece, &n);
                if (r < 0)
                        return r;
                if (r == 0)
                        break;
                used += n;
                if (q->framing == HTTP1_BODY_CHUNKED && piece.size > 0) {
                        (void) snprintf(line, sizeof(line), "%zx\r\n", piece.size);
                        put_text(&q->out, line);
                }
                put(&q->out, piece.data, piece.size);
                q->bytes += piece.size;
                if (q->framing == HTTP1_BODY_CHUNKED && piece.size > 0)
                        put_text(&q->out, "\r\n");
                if (q->framing == HTTP1_BODY_CHUNKED && q->taken)
                        put_text(&q->out, "0\r\n\r\n");
        }
        consume(e->c, used);
        return used > 0;
}

/* > 0 when b is empty now, 0 when the upstream takes no more for the time being or at all. */
static int write_out(Exchange *e, RelayBuffer *b) {
        RequestRelay *q = &e->request;

        while (relay_buffer_size(b) > 0) {
                ssize_t n = stream_write(e->stream, b->data + b->start, relay_buffer_size(b));
                if (n == -EAGAIN)
                        return 0;
                if (n < 0) {
                        /* It may have answered before it closed: the answer's direction decides. */
                        q->broken = true;
                        return 0;
                }
                b->start += (size_t) n;
                q->sent = true;
                e->active = now_monotonic();
        }
        return 1;
}

static int read_client(Exchange *e) {
        Connection *c = e->c;
        ssize_t n;

        if (c->in_size >= CLIENT_BUFFER_SIZE)
                return 0;
        do
                n = recv(c->fd, c->in + c->in_size, CLIENT_BUFFER_SIZE - c->in_size, MSG_DONTWAIT);
        while (n < 0 && errno == EINTR);
        if (n < 0 && errno == EAGAIN)
                return 0;
        if (n <= 0)
                return -ECONNABORTED; /* in the middle of its body */
        c->in_size += (size_t) n;
        e->active = now_monotonic();
        return 1;
}

bool relay_request_pending(const Exchange *e) {
        return !e->request.broken && !e->answer.done && (relay_buffer_size(&e->request.head) > 0 || relay_buffer_size(&e->request.out) > 0);
}

bool relay_request_hungry(const Exchange *e) {
        return e->phase == EXCHANGE_RELAYING && !e->answer.done && !e->request.broken && !e->request.taken && !relay_request_pending(e);
}

bool relay_request_replayable(const Exchange *e) {
        const RequestRelay *q = &e->request;
        /* A body that was not all there at once is gone once any of it was taken. What was written may have been acted on. */
        return !q->out.data && (q->head.start == 0 || (q->idempotent && q->bytes == 0));
}

void relay_request_rewind(Exchange *e) {
        e->request.head.start = 0;
        e->request.bytes = 0;
        e->request.broken = false;
}

bool relay_request_discard(Exchange *e) {
        RequestRelay *q = &e->request;
        size_t used = 0, n;
        Slice piece;

        /* Who waits for 100 Continue and gets an answer may or may not send the body. */
        if (q->wants_continue)
                return false;
        while (!q->taken && next_piece(e, used, CLIENT_BUFFER_SIZE, &piece, &n) > 0)
                used += n;
        consume(e->c, used);
        return q->taken;
}

static void send_continue(Exchange *e) {
        static const char text[] = "HTTP/1.1 100 Continue\r\n\r\n";

        e->request.wants_continue = false;
        if (!e->answer.begun)
                put(&e->answer.out, text, strlen(text));
}

/* As write_out(). */
static int write_head(Exchange *e) {
        RequestRelay *q = &e->request;
        size_t before = relay_buffer_size(&q->head);
        int r = write_out(e, &q->head);
        size_t left = relay_buffer_size(&q->head);

        q->bytes += MIN(before, q->head_body) - MIN(left, q->head_body);
        return r;
}

void relay_request_begin(Exchange *e) {
        (void) write_head(e);
}

int relay_request_move(Exchange *e) {
        RequestRelay *q = &e->request;
        int progress = 0;

        for (unsigned turns = 0; !q->broken;) {
                if (relay_buffer_size(&q->head) > 0) {
                        size_t before = relay_buffer_size(&q->head);
                        int r = write_head(e);
                        progress |= relay_buffer_size(&q->head) < before;
                        if (r == 0)
                                return progress;
                        continue;
                }
                if (relay_buffer_size(&q->out) > 0) {
                        if (write_out(e, &q->out) == 0)
                                return progress;
                        progress = 1;
                }
                if (q->taken)
                        return progress;
                int r = frame(e);
                if (r == 0) {
                        if (turns++ >= TURNS_MAX)
                                return progress;
                        if (q->wants_continue) {
                                send_continue(e);
                                progress = 1;
                        }
                        r = read_client(e);
                }
                if (r <= 0)
                        return r < 0 ? r : progress;
                progress = 1;
        }
        return progress;
}
