/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/socket.h>

#include "basic/log.h"
#include "broker/relay.h"

#define CHUNK_ROOM 16U               /* a chunk's size line */
#define PIECE ANSWER_SCRUB_PIECE     /* a TLS record's payload */
#define READS_MAX 64U                /* of a turn: a record of TLS may hold a byte */
#define TURNS_MAX 16U                /* before the loop may see to others */

int relay_answer_prepare(Exchange *e) {
        AnswerRelay *a = &e->answer;
        int r = relay_buffer_new(&a->in, HTTP1_HEAD_MAX + PIECE); /* too large a head must be seen to be too large */
        if (r < 0)
                return r;
        /* A head scrubbed to its longest and a buffer of body behind it, each up to a quarter longer than it came (8 bytes become
         * 10); untouched pages cost nothing. */
        return relay_buffer_new(&a->out, 2 * (HTTP1_HEAD_MAX + HTTP1_HEAD_MAX / 4) + 5 * PIECE);
}

int relay_answer_flush(Exchange *e) {
        RelayBuffer *b = &e->answer.out;

        while (relay_buffer_size(b) > 0) {
                ssize_t n = send(e->c->fd, b->data + b->start, relay_buffer_size(b), MSG_DONTWAIT | MSG_NOSIGNAL);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        return 0;
                if (n < 0)
                        return -ECONNABORTED;
                b->start += (size_t) n;
                e->active = now_monotonic();
        }
        b->start = b->end = 0;
        return 1;
}

bool relay_answer_hungry(const Exchange *e) {
        const AnswerRelay *a = &e->answer;
        return e->phase == EXCHANGE_RELAYING && !a->done && a->end == 0 && relay_buffer_size(&a->out) == 0;
}

/* The next piece of the body in a->in: 1 with *ret_piece (which may be empty), 0 when there is no more for now. */
static int next_piece(AnswerRelay *a, Slice *ret_piece) {
        const char *data = a->in.data + a->in.start;
        size_t size = MIN(relay_buffer_size(&a->in), (size_t) PIECE);
        ssize_t n = (ssize_t) size;

        *ret_piece = (Slice) {data, size};
        if (a->whole || size == 0)
                return 0;
        switch (a->framing) {
        case HTTP1_BODY_LENGTH:
                n = (ssize_t) MIN((uint64_t) size, a->left);
                ret_piece->size = (size_t) n;
                a->left -= (uint64_t) n;
                a->whole = a->left == 0;
                break;
        case HTTP1_BODY_CHUNKED:
                *ret_piece = (Slice) {};
                n = http1_chunked_next(&a->chunked, data, size, ret_piece);
                if (n <= 0)
                        return (int) n;
                a->whole = a->chunked.done;
                break;
        case HTTP1_BODY_NONE:
        case HTTP1_BODY_CLOSE:
                break;
        }
        a->in.start += (size_t) n;
        return 1;
}

/* Pieces, scrubbed, to `to`; returns the bytes written. Sets *ret_cut when the answer ends here, and is not whole. */
static size_t gather(Exchange *e, char *to, size_t room, bool *ret_cut) {
        AnswerRelay *a = &e->answer;
        bool too_large = false;
        size_t n = 0, spare = a->scrub ? answer_scrub_bound(a->scrub) : PIECE;
        Slice piece;
        int r = 0;

        while (!*ret_cut && room - n >= 2 * spare && (r = next_piece(a, &piece)) > 0) {
                if (e->provider && piece.size > RESPONSE_MAX - a->raw) {
                        piece.size = (size_t) (RESPONSE_MAX - a->raw);
                        a->whole = false;
                        *ret_cut = too_large = true;
                        log_warning("session %s: provider %s: an answer was cut at 64 MiB", e->broker->setup->session, e->provider->id);
                }
                a->raw += piece.size;
                if (a->usage)
                        usage_feed(a->usage, piece.data, piece.size);
                if (a->scrub)
                        n += answer_scrub_push(a->scrub, piece.data, piece.size, to + n);
                else if (piece.size > 0) {
                        memcpy(to + n, piece.data, piece.size);
                        n += piece.size;
                }
        }
        if (r < 0) {
                *ret_cut = true;
                log_warning("session %s: %s:%u: its answer's chunks are malformed", e->broker->setup->session, e->host.name, e->port);
        }
        /* The end: of a body that is delimited by it, or too early. */
        if (!a->whole && !*ret_cut && r == 0 && a->end != 0 && relay_buffer_size(&a->in) == 0) {
                a->whole = a->framing == HTTP1_BODY_CLOSE && a->end > 0;
                *ret_cut = !a->whole;
        } else if (!a->whole && !*ret_cut && r == 0 && a->end != 0 && a->framing == HTTP1_BODY_CHUNKED && room - n >= 2 * spare)
                *ret_cut = true; /* half a chunk line is left, and no more will come */
        /* What is held may be most of the key, and it is this cut that parts it from the rest. */
        if (a->scrub && (a->whole || *ret_cut) && !too_large)
                n += answer_scrub_finish(a->scrub, to + n);
        return n;
}

/* Moves body from in to out, framed for the client. */
static int move_body(Exchange *e) {
        AnswerRelay *a = &e->answer;
        size_t base = a->out.end, before = relay_buffer_size(&a->in);
        char *to = a->out.data + base + (a->chunk_out ? CHUNK_ROOM : 0);
        bool cut = false;

        size_t n = gather(e, to, a->out.room - base - CHUNK_ROOM - PIECE / 2, &cut);
        a->bytes += n;
        if (a->chunk_out && n > 0) {
                char line[CHUNK_ROOM + 1];
                size_t k = (size_t) snprintf(line, sizeof(line), "%zx\r\n", n);
                if (base == a->out.start) { /* nothing before it: the line goes right in front */
                        a->out.start = base + CHUNK_ROOM - k;
                        memcpy(a->out.data + a->out.start, line, k);
                        a->out.end = base + CHUNK_ROOM + n;
                } else {
                        memmove(a->out.data + base + k, to, n);
                        memcpy(a->out.data + base, line, k);
                        a->out.end = base + k + n;
                }
                memcpy(a->out.data + a->out.end, "\r\n", 2);
                a->out.end += 2;
        } else
                a->out.end += n;
        if (a->chunk_out && a->whole) {
                memcpy(a->out.data + a->out.end, "0\r\n\r\n", 5);
                a->out.end += 5;
        }
        if (a->whole || cut) {
                a->done = true;
                e->outcome = a->whole ? RECEIPT_COMPLETED : RECEIPT_INTERRUPTED;
                if (cut)
                        e->keep_alive = false;
        }
        return a->done || relay_buffer_size(&a->in) != before || a->out.end > base;
}

/* The upstream is gone before its answer's head was whole. */
static int ended_early(Exchange *e) {
        AnswerRelay *a = &e->answer;
        const char *reason = a->end > 0 ? "it closed the connection" : strerror(-a->end);

        if (e->reused && a->n_interim == 0 && relay_buffer_size(&a->in) == 0 && relay_request_replayable(e))
                return -ESTALE;
        log_warning("session %s: %s:%u: no answer: %s", e->broker->setup->session, e->host.name, e->port, reason);
        exchange_fail(e, RECEIPT_INTERRUPTED, 502, "Bad Gateway", "the upstream closed the connection without an answer");
        return 1;
}

static int process(Exchange *e) {
        AnswerRelay *a = &e->answer;

        if (!a->begun) {
                int r = answer_head_read(e);
                if (r != 0 && (r < 0 || !a->begun))
                        return r;
                if (r == 0)
                        return a->end != 0 ? ended_early(e) : 0;
                if (a->framing == HTTP1_BODY_NONE || (a->framing == HTTP1_BODY_LENGTH && a->left == 0)) {
                        a->done = a->whole = true;
                        e->outcome = RECEIPT_COMPLETED;
                        return 1;
                }
                (void) move_body(e);
                return 1;
        }
        return move_body(e);
}

/* Reads until the upstream has no more for now, in is full, or it was read often enough. */
static int fill(Exchange *e) {
        RelayBuffer *b = &e->answer.in;
        int got = 0;

        if (b->start > 0) {
                memmove(b->data, b->data + b->start, relay_buffer_size(b));
                b->end -= b->start;
                b->start = 0;
        }
        for (unsigned reads = 0; reads < READS_MAX && b->end < b->room && e->answer.end == 0; reads++) {
                ssize_t n = stream_read(e->stream, b->data + b->end, b->room - b->end);
                if (n == -EAGAIN)
                        break;
                if (n <= 0)
                        e->answer.end = n == 0 ? 1 : (int) n;
                else
                        b->end += (size_t) n;
                got = 1;
                e->active = now_monotonic();
        }
        return got;
}

int relay_answer_move(Exchange *e) {
        int progress = 0;

        e->answer.more = false;
        for (unsigned turns = 0;;) {
                size_t before = relay_buffer_size(&e->answer.out);
                int r = relay_answer_flush(e);
                if (r < 0)
                        return r;
                progress |= relay_buffer_size(&e->answer.out) < before;
                if (r == 0 || e->answer.done || e->phase != EXCHANGE_RELAYING)
                        return progress;

                r = process(e);
                if (r < 0)
                        return r;
                if (r > 0) {
                        progress = 1;
                        continue;
                }
                if (turns++ >= TURNS_MAX) {
                        e->answer.more = stream_pending(e->stream);
                        return progress;
                }
                if (fill(e) == 0)
                        return progress;
                progress = 1;
        }
}
