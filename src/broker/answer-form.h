/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether a key that is quoted in an answer's body would be found there. Pure. */

#include "broker/http1.h"

typedef enum AnswerForm {
        ANSWER_FORM_PLAIN,
        ANSWER_FORM_CODED,   /* compressed, or coded in another way */
        ANSWER_FORM_PART,    /* 206, or 226 of RFC 3229: the other part may hold the other half of the key */
        ANSWER_FORM_CHARSET, /* in a character set in which ASCII is not ASCII */
        _ANSWER_FORM_MAX,
} AnswerForm;

/* Of an answer that has a body. */
AnswerForm answer_form(const Http1Head *head);

/* A sentence for log and session; not for PLAIN. */
const char *answer_form_words(AnswerForm form);
