/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The client's side of TLS to one provider: TLS 1.2 or newer, the server's name checked against its certificate, trust in the
 * system's certificates and in the provider's own, no client certificate, sessions resumed. GnuTLS stays inside tls.c. */

#include "basic/macro.h"

typedef struct TlsPeer TlsPeer;       /* what is known of a provider: trust, and the ticket of its last session */
typedef struct TlsSession TlsSession; /* one connection */

#define TLS_PROBLEM_MAX 256U

/* name is a host name or the text of an address; ca_pem may be NULL. -EBADMSG: ca_pem holds no certificate. */
int tls_peer_new(const char *name, bool is_address, const char *ca_pem, size_t ca_pem_size, TlsPeer **ret);
TlsPeer *tls_peer_free(TlsPeer *p);
DEFINE_CLEANUP(TlsPeer *, tls_peer_free);

/* fd (a connected, non-blocking stream socket) and peer are borrowed and outlive the session. Without the
 * system's trust it waits for it (trust.h). */
int tls_session_new(TlsPeer *peer, int fd, TlsSession **ret);
TlsSession *tls_session_free(TlsSession *s);
DEFINE_CLEANUP(TlsSession *, tls_session_free);

/* 0 when done; -EAGAIN with *ret_events (EPOLLIN or EPOLLOUT) to wait for; -EPROTO with the reason, in plain words, in
 * problem[TLS_PROBLEM_MAX]. */
int tls_handshake(TlsSession *s, uint32_t *ret_events, char *problem);

/* > 0 bytes; 0 when the peer said that it is done; -EAGAIN; -ECONNRESET when the connection ended without saying so; else a negative errno. */
ssize_t tls_read(TlsSession *s, void *data, size_t size);
/* Bytes taken, -EAGAIN (call again with the same bytes first), or a negative errno. */
ssize_t tls_write(TlsSession *s, const void *data, size_t size);
bool tls_pending(const TlsSession *s); /* bytes have come already: no event will tell */

/* Says that nothing more is sent, without waiting. */
void tls_bye(TlsSession *s);
/* Keeps the session's ticket, if one came, for the next connection. */
void tls_remember(TlsSession *s);
