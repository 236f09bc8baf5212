/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "broker/answer-form.h"
#include "broker/relay.h"

#define INTERIM_MAX 32U /* 1xx answers before a final one; real servers send one or two */

/* "Keep-Alive: timeout=5": it is better not to be there when it closes. */
static usec_t keep_time(const Http1Head *head) {
        const Http1Field *f = http1_find(head, "Keep-Alive");
        uint64_t seconds;
        size_t n = STRLEN("timeout="), digits = 0;

        if (!f)
                return USEC_INFINITY;
        for (size_t i = 0; i + n <= f->value.size; i++) {
                const char *at = f->value.data + i;
                if (!ascii_case_equal(at, n, "timeout="))
                        continue;
                while (i + n + digits < f->value.size && ascii_digit(at[n + digits]))
                        digits++;
                if (parse_u64_n(at + n, digits, 86400, &seconds) < 0 || seconds <= 1)
                        return 0;
                return (seconds - 1) * USEC_PER_SEC;
        }
        return USEC_INFINITY;
}

/* Text for the client's head; the answer's head is at most HTTP1_HEAD_MAX and the buffer larger than that scrubbed. */
static int put(RelayBuffer *b, const char *data, size_t size) {
        if (size > b->room - b->end)
                return -ENOBUFS;
        if (size > 0)
                memcpy(b->data + b->end, data, size);
        b->end += size;
        return 0;
}

static int put_text(RelayBuffer *b, const char *text) {
        return put(b, text, strlen(text));
}

/* Without the provider's key. */
static int put_scrubbed(const Exchange *e, Slice text) {
        RelayBuffer *b = (RelayBuffer *) &e->answer.out;
        _cleanup_free_ char *clean = NULL;
        size_t size;

        if (!e->provider)
                return put(b, text.data, text.size);
        int r = answer_scrub_value(e->provider, text.data, text.size, &clean, &size);
        return r < 0 ? r : put(b, clean, size);
}

/* A name cannot hold "[redacted]": a field whose name holds the key goes. */
static int name_is_clean(const Exchange *e, Slice name) {
        _cleanup_free_ char *clean = NULL;
        size_t size;

        if (!e->provider)
                return true;
        int r = answer_scrub_value(e->provider, name.data, name.size, &clean, &size);
        return r < 0 ? r : size == name.size && memcmp(clean, name.data, size) == 0;
}

static int put_fields(Exchange *e, const Http1Head *head) {
        RelayBuffer *b = &e->answer.out;

        for (size_t i = 0; i < head->n_fields; i++) {
                const Http1Field *f = &head->fields[i];
                if (http1_is_hop_by_hop(head, f) || ascii_case_equal(f->name.data, f->name.size, "Content-Length"))
                        continue;
                int r = name_is_clean(e, f->name);
                if (r == 0)
                        continue;
                if (r < 0 || (r = put(b, f->name.data, f->name.size)) < 0 || (r = put_text(b, ": ")) < 0 ||
                    (r = put_scrubbed(e, f->value)) < 0 || (r = put_text(b, "\r\n")) < 0)
                        return r;
        }
        return 0;
}

/* How the client is told where the body ends. */
static int put_framing(Exchange *e, const Http1Head *head) {
        AnswerRelay *a = &e->answer;
        /* A scrubbed body can become shorter or longer. */
        bool length_kept = a->framing == HTTP1_BODY_NONE || !e->provider || head->content_length == 0;
        char line[64];

        if (head->has_content_length && length_kept && a->framing != HTTP1_BODY_CHUNKED && head->status != 204) {
                (void) snprintf(line, sizeof(line), "Content-Length: %llu\r\n", (unsigned long long) head->content_length);
                return put_text(&a->out, line);
        }
        if (a->framing == HTTP1_BODY_NONE)
                return 0;
        a->chunk_out = e->minor >= 1;
        a->close_out = !a->chunk_out;
        return a->chunk_out ? put_text(&a->out, "Transfer-Encoding: chunked\r\n") : 0;
}

static int put_head(Exchange *e, const Http1Head *head) {
        AnswerRelay *a = &e->answer;
        char line[32];
        int r;

        (void) snprintf(line, sizeof(line), "HTTP/1.1 %u ", head->status);
        if ((r = put_text(&a->out, line)) < 0 || (r = put_scrubbed(e, head->reason)) < 0 || (r = put_text(&a->out, "\r\n")) < 0 ||
            (r = put_fields(e, head)) < 0 || (r = put_framing(e, head)) < 0)
                return r;
        /* A body that is not all taken may still be coming: what follows it could not be told from it. */
        if (a->close_out || e->minor == 0 || !e->request.taken)
                e->keep_alive = false;
        return put_text(&a->out, e->keep_alive ? "\r\n" : "Connection: close\r\n\r\n");
}

static void no_answer(Exchange *e, const char *body) {
        exchange_fail(e, RECEIPT_INTERRUPTED, 502, "Bad Gateway", body);
}

static bool counts_tokens(const Budget *b) {
        return b && b->limit[BUDGET_TOKENS] > 0;
}

/* Only where there is a budget of tokens to count for. */
static int begin_counting(Exchange *e, const Http1Head *head) {
        static const char stream[] = "text/event-stream";
        const Http1Field *type = http1_find(head, "Content-Type");
        size_t n = sizeof(stream) - 1;

        if (!counts_tokens(e->provider->budget) && !counts_tokens(e->broker->setup->budget))
                return 0;
        e->answer.usage = malloc(sizeof(Usage));
        if (!e->answer.usage)
                return -ENOMEM;
        usage_init(e->answer.usage, type && type->value.size >= n && ascii_case_equal(type->value.data, n, stream));
        return 0;
}

/* A final answer that is going to be relayed, or a refusal of it. */
static int begin(Exchange *e, const Http1Head *head) {
        AnswerRelay *a = &e->answer;
        const Setup *s = e->broker->setup;

        a->framing = http1_response_framing(head, e->request.is_head);
        if (e->provider && a->framing != HTTP1_BODY_NONE) {
                bool has_body = a->framing != HTTP1_BODY_LENGTH || head->content_length > 0;
                const AnswerForm form = has_body ? answer_form(head) : ANSWER_FORM_PLAIN;
                if (form != ANSWER_FORM_PLAIN) {
                        log_warning("session %s: provider %s: %s", s->session, e->provider->id, answer_form_words(form));
                        exchange_fail(e, RECEIPT_REFUSED, 502, form == ANSWER_FORM_CODED ? "compressed answer" : "unreadable answer",
                                      answer_form_words(form));
                        return 1;
                }
                if (a->framing == HTTP1_BODY_LENGTH && head->content_length > RESPONSE_MAX) {
                        exchange_fail(e, RECEIPT_REFUSED, 502, "answer too large", "the provider's answer is larger than 64 MiB");
                        return 1;
                }
                int r = answer_scrub_new(e->provider, &a->scrub);
                if (r >= 0)
                        r = begin_counting(e, head);
                if (r < 0)
                        return r;
        }
        a->left = a->framing == HTTP1_BODY_LENGTH ? head->content_length : 0;
        a->keep_upstream = head->keep_alive && a->framing != HTTP1_BODY_CLOSE;
        a->keep_usec = keep_time(head);
        size_t before = a->out.end;
        int r = put_head(e, head);
        if (r < 0)
                a->out.end = before;
        if (r == -ENOBUFS) {
                no_answer(e, "the upstream's answer has a head that is too large");
                return 1;
        }
        if (r < 0)
                return r;
        a->begun = true;
        e->begun_at = now_monotonic();
        a->status = e->status = head->status;
        return 1;
}

/* 1: something was read (or the exchange has failed, see e->phase). 0: more is needed. */
int answer_head_read(Exchange *e) {
        AnswerRelay *a = &e->answer;
        const char *data = a->in.data + a->in.start, *problem = "the upstream's answer is not HTTP/1.1";
        size_t size = relay_buffer_size(&a->in);
        Http1Head *head;

        ssize_t n = http1_find_head_end(data, size, &a->scanned);
        if (n == 0)
                return 0;
        _cleanup_free_ void *memory = head = malloc(sizeof(Http1Head));
        if (!memory)
                return -ENOMEM;
        int r = n < 0 ? (int) n : http1_parse_response(data, (size_t) n, head, &problem);
        if (r == -EMSGSIZE) {
                no_answer(e, "the upstream's answer has a head that is too large");
                return 1;
        }
        if (r < 0) {
                log_warning("session %s: %s:%u answered what is not HTTP/1.1: %s", e->broker->setup->session, e->host.name, e->port, problem);
                no_answer(e, "the upstream's answer is not valid HTTP/1.1");
                return 1;
        }
        if (head->status == 101 || (head->status < 200 && ++a->n_interim > INTERIM_MAX)) {
                no_answer(e, head->status == 101 ? "the upstream switched protocols unasked" : "the upstream sent too many interim answers");
                return 1;
        }
        if (head->status >= 200 && (r = begin(e, head)) < 0)
                return r;
        if (e->phase == EXCHANGE_RELAYING) {
                a->in.start += (size_t) n;
                a->scanned = 0;
        }
        return 1;
}
