/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is said to the proxy, and what it answers. Pure, but for dialogue_hold(). */

#include "connect/proxy-url.h"

#define ANSWER_HEAD_MAX (16U * 1024U)
#define ANSWER_BODY_MAX 4096U /* of a refusal: a sentence */
#define AUTHORITY_MAX (253U + 8U)

/* "host:port", "[v6]:port" into a buffer of AUTHORITY_MAX + 1. -EINVAL for what no host or port looks like: it goes into a request. */
int authority_format(const char *host, const char *port, char *buffer);

typedef struct ProxyAnswer {
        unsigned status;
        char *text;  /* NULL when it opened the tunnel; else what it said, control characters escaped */
        char *early; /* the tunnel's first bytes, which came with the answer */
        size_t early_size;
} ProxyAnswer;

void proxy_answer_done(ProxyAnswer *a);

/* Status and length of the body of the head at the beginning of data. The bytes that the head takes, 0 when more are needed, -EBADMSG: no
 * answer of HTTP/1, -EMSGSIZE: over ANSWER_HEAD_MAX. */
ssize_t answer_parse_head(const char *data, size_t size, unsigned *ret_status, uint64_t *ret_body_size);

/* Asks over a connected, blocking socket. -ENODATA: the proxy ended the connection before its answer was whole; or as above. */
int dialogue_hold(int fd, const ProxyUrl *proxy, const char *authority, ProxyAnswer *ret);
