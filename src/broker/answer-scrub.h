/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Keeps a provider's key out of its answers, in every form in which it was sent: plain, and as Basic carries it. */

#include "broker/setup.h"
#include "shared/scrub.h"

typedef struct AnswerScrub AnswerScrub;

int answer_scrub_new(const Provider *p, AnswerScrub **ret);
AnswerScrub *answer_scrub_free(AnswerScrub *s);

/* As their namesakes of shared/scrub.h; a push takes at most ANSWER_SCRUB_PIECE bytes. */
#define ANSWER_SCRUB_PIECE (16U * 1024U)
size_t answer_scrub_bound(const AnswerScrub *s);
size_t answer_scrub_push(AnswerScrub *s, const char *data, size_t size, char *out);
size_t answer_scrub_finish(AnswerScrub *s, char *out);

/* A header's value, whole. *ret is the caller's to free. */
int answer_scrub_value(const Provider *p, const char *data, size_t size, char **ret, size_t *ret_size);
