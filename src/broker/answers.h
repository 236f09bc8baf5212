/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The words of the broker's refusals, in one table. An answer's reason phrase is the row's; its body is the row's too, or a
 * sentence that the caller made. None of them repeats anything a client sent but a host that was parsed. */

#include "broker/dial.h"
#include "broker/hosts.h"
#include "broker/socks5.h"

typedef enum Answer {
        ANSWER_MALFORMED,          /* 400, closes: body is the parser's phrase */
        ANSWER_NOT_PROXIED,        /* 400: a path alone that is no provider route */
        ANSWER_SCHEME,             /* 400: https:// or another scheme in absolute form */
        ANSWER_CONNECT_BODY,       /* 400, closes: CONNECT with a length or a transfer coding */
        ANSWER_HOST_HEADER,        /* 400: none, several, or another host than the target's */
        ANSWER_AUTHORITY,          /* 400: body is the parser's phrase */
        ANSWER_CREDENTIAL,         /* 407 with its challenge */
        ANSWER_PORT,               /* 403 */
        ANSWER_NOT_GRANTED,        /* 403: body names the host and how to grant it */
        ANSWER_NOT_PUBLIC,         /* 403 */
        ANSWER_NOT_RESOLVED,       /* 502 */
        ANSWER_RESOLVE_TIMEOUT,    /* 504 */
        ANSWER_UNREACHABLE,        /* 502 */
        ANSWER_HEAD_TIMEOUT,       /* 408, closes */
        ANSWER_HEAD_TOO_LARGE,     /* 431, closes */
        ANSWER_TOO_MANY,           /* 503, closes: requests being read at once */
        ANSWER_GRANT_NOT_RECORDED, /* 503: the use of a grant for once could not be written down */
        ANSWER_INTERNAL,           /* 500, closes: out of memory */
        _ANSWER_MAX,
} Answer;

typedef struct AnswerWords {
        unsigned status;
        const char *reason;
        const char *body;  /* NULL: the reason */
        const char *extra; /* header lines with CRLF, or NULL */
        bool closes;       /* the connection ends after it, whatever the client asked for */
} AnswerWords;

const AnswerWords *answer_words(Answer a);

/* The answer for a dial that failed; not for DIAL_CONNECTED. */
Answer answer_for_dial(DialResult result);

/* What a SOCKS5 client is told in place of it. */
Socks5Reply answer_to_socks5(Answer a);

/* The body of ANSWER_NOT_GRANTED. It suggests a command only for a single exact host, which every parsed Host is; session is the
 * id. NULL when out of memory. */
char *answer_not_granted(const Host *host, const char *session);
