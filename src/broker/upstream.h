/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is kept of a provider between two calls: its trust and TLS ticket, and a few idle connections. A kept connection was judged when it was
 * dialled; it is closed as soon as the provider says anything on it, and before a provider's own limit would close it. */

#include <sys/epoll.h>

#include "broker/broker.h"
#include "broker/limits.h"
#include "broker/stream.h"

typedef struct Upstream Upstream;

/* The provider's, made at the first call and kept in provider->tls_credentials until upstreams_free(). -EBADMSG: its CA file holds no
 * certificate. */
int upstream_get(Broker *b, const Provider *provider, Upstream **ret);

/* A stream over fd; fd is taken on success only. */
int upstream_open(Upstream *u, int fd, Stream **ret);

/* Waited for on a kept connection, and for answers: the same, so that neither keeping nor taking one costs a call. */
#define UPSTREAM_EVENTS (EPOLLIN | EPOLLRDHUP)

/* A kept connection that is not known to be dead, or NULL. It is to be watched anew before the loop comes by. */
Stream *upstream_take(Upstream *u);

/* Takes s always. idle is how long the provider said that it keeps one, USEC_INFINITY when it said nothing. */
void upstream_keep(Upstream *u, Stream *s, usec_t idle);

/* Closes what is kept of all providers. */
void upstreams_free(Setup *s);
