/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker/answer-scrub.h"

/* The most that one piece can become, with what was held of a key before it: 8 bytes become 10. */
#define BETWEEN_SIZE (2U * ANSWER_SCRUB_PIECE)

struct AnswerScrub {
        Scrub *key;
        Scrub *basic;  /* NULL but for PLACEMENT_BASIC */
        char *between; /* from the first to the second */
};

int answer_scrub_new(const Provider *p, AnswerScrub **ret) {
        AnswerScrub *s = calloc(1, sizeof(AnswerScrub));

        if (!s)
                return -ENOMEM;
        int r = scrub_new(p->key, &s->key);
        if (r >= 0 && p->basic) {
                s->between = malloc(BETWEEN_SIZE);
                r = s->between ? scrub_new(p->basic, &s->basic) : -ENOMEM;
        }
        if (r < 0) {
                answer_scrub_free(s);
                return r;
        }
        *ret = s;
        return 0;
}

AnswerScrub *answer_scrub_free(AnswerScrub *s) {
        if (!s)
                return NULL;
        scrub_free(s->key);
        scrub_free(s->basic);
        free(s->between);
        return mfree(s);
}

size_t answer_scrub_bound(const AnswerScrub *s) {
        size_t n = scrub_bound(s->key, ANSWER_SCRUB_PIECE);
        return s->basic ? scrub_bound(s->basic, n) : n;
}

size_t answer_scrub_push(AnswerScrub *s, const char *data, size_t size, char *out) {
        if (!s->basic)
                return scrub_push(s->key, data, size, out);
        if (scrub_bound(s->key, size) > BETWEEN_SIZE)
                abort(); /* a piece is no larger than it may be */
        size_t n = scrub_push(s->key, data, size, s->between);
        return scrub_push(s->basic, s->between, n, out);
}

size_t answer_scrub_finish(AnswerScrub *s, char *out) {
        if (!s->basic)
                return scrub_finish(s->key, out);
        size_t n = scrub_push(s->basic, s->between, scrub_finish(s->key, s->between), out);
        return n + scrub_finish(s->basic, out + n);
}

int answer_scrub_value(const Provider *p, const char *data, size_t size, char **ret, size_t *ret_size) {
        _cleanup_free_ char *clean = NULL;
        size_t n;

        int r = scrub_value(p->key, data, size, &clean, &n);
        if (r < 0)
                return r;
        if (p->basic)
                return scrub_value(p->basic, clean, n, ret, ret_size);
        *ret = TAKE_PTR(clean);
        *ret_size = n;
        return 0;
}
