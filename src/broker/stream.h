/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A byte stream to an upstream, plain or TLS, over one non-blocking socket. */

#include <systemd/sd-event.h>

#include "broker/tls.h"

typedef struct Stream Stream;

/* fd is taken on success only; peer is NULL for plain, else borrowed. */
int stream_new(int fd, TlsPeer *peer, Stream **ret);
/* Closes at once, without a word to the other side. */
Stream *stream_free(Stream *s);
DEFINE_CLEANUP(Stream *, stream_free);

/* Calls the handler from the loop when one of the events comes, level-triggered; 0 = none, not even errors. It takes the place of an earlier
 * one, and costs nothing when the events stay the same. The handler may free the stream. */
typedef void (*StreamHandler)(uint32_t events, void *userdata);
int stream_watch(Stream *s, sd_event *event, uint32_t events, StreamHandler handler, void *userdata);

bool stream_is_tls(const Stream *s);

/* As tls_handshake(); 0 at once for a plain stream. */
int stream_handshake(Stream *s, uint32_t *ret_events, char *problem);

/* As tls_read() and tls_write(): a plain end of file is 0. */
ssize_t stream_read(Stream *s, void *data, size_t size);
ssize_t stream_write(Stream *s, const void *data, size_t size);
bool stream_pending(const Stream *s);

/* The exchange on it went well: keeps what makes the next connection cheaper. */
void stream_remember(Stream *s);
/* Ends it politely and frees it. */
Stream *stream_close(Stream *s);
