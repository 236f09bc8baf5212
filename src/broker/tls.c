/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "basic/secret.h"
#include "broker/tls.h"
#include "broker/trust.h"

#define CHAIN_MAX 16U /* certificates of a server; real chains have two to five */
#define AHEAD_SIZE (17U * 1024U) /* a whole record */
#define PRIORITY "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2"
/* At least 112 bits (RSA 2048), in chains too. */
#define VERIFY_FLAGS GNUTLS_PROFILE_TO_VFLAGS(GNUTLS_PROFILE_MEDIUM)

/* Shared by all peers of the process: loaded by the first session, freed with the last peer. */
static struct {
        unsigned users;
        gnutls_certificate_credentials_t credentials; /* holds nothing but the callback: there are no client certificates */
        gnutls_priority_t priority;
} shared;

struct TlsPeer {
        char *name;
        bool is_address;
        gnutls_x509_trust_list_t own; /* of ca_pem; NULL = none */
        gnutls_datum_t ticket;        /* holds a session's secrets: wiped */
};

struct TlsSession {
        TlsPeer *peer;
        gnutls_session_t session;
        int fd;
        char *ahead; /* bytes of the peer that GnuTLS has not asked for yet; NULL while there are none */
        size_t ahead_start, ahead_end;
        bool dry;     /* the last call had nothing */
        bool drained; /* the last call gave less than it could: there is no need to ask again before the next event */
        unsigned verify_status; /* why the certificate was refused */
        size_t unsent;          /* bytes that GnuTLS has taken but not yet written */
        bool failed;
};

static int from_gnutls(ssize_t e) {
        switch (e) {
        case GNUTLS_E_AGAIN:
        case GNUTLS_E_INTERRUPTED:
                return -EAGAIN;
        case GNUTLS_E_MEMORY_ERROR:
                return -ENOMEM;
        case GNUTLS_E_PREMATURE_TERMINATION:
        case GNUTLS_E_PULL_ERROR:
        case GNUTLS_E_PUSH_ERROR:
                return -ECONNRESET;
        default:
                return -EPROTO;
        }
}

static int verify_peer(gnutls_session_t session);

static int shared_load(void) {
        if (!trust_get())
                return -ENOMEM;
        if (!shared.credentials) {
                int e = gnutls_certificate_allocate_credentials(&shared.credentials);
                if (e < 0)
                        return from_gnutls(e);
                gnutls_certificate_set_verify_function(shared.credentials, verify_peer);
        }
        if (!shared.priority) {
                int e = gnutls_priority_init(&shared.priority, PRIORITY, NULL);
                if (e < 0)
                        return from_gnutls(e);
        }
        return 0;
}

static void shared_unload(void) {
        trust_forget();
        if (shared.priority)
                gnutls_priority_deinit(shared.priority);
        if (shared.credentials)
                gnutls_certificate_free_credentials(shared.credentials);
        memset(&shared, 0, sizeof(shared));
}

int tls_peer_new(const char *name, bool is_address, const char *ca_pem, size_t ca_pem_size, TlsPeer **ret) {
        _cleanup_(tls_peer_freep) TlsPeer *p = calloc(1, sizeof(TlsPeer));

        if (!p)
                return -ENOMEM;
        shared.users++;
        p->is_address = is_address;
        p->name = strdup(name);
        if (!p->name)
                return -ENOMEM;
        if (ca_pem) {
                gnutls_datum_t pem = {(unsigned char *) ca_pem, (unsigned) ca_pem_size};
                if (ca_pem_size > UINT32_MAX || gnutls_x509_trust_list_init(&p->own, 0) < 0)
                        return -ENOMEM;
                if (gnutls_x509_trust_list_add_trust_mem(p->own, &pem, NULL, GNUTLS_X509_FMT_PEM, 0, 0) <= 0)
                        return -EBADMSG;
        }
        *ret = TAKE_PTR(p);
        return 0;
}

static void forget_ticket(TlsPeer *p) {
        if (p->ticket.data) {
                secret_wipe(p->ticket.data, p->ticket.size);
                gnutls_free(p->ticket.data);
        }
        p->ticket = (gnutls_datum_t) {};
}

TlsPeer *tls_peer_free(TlsPeer *p) {
        if (!p)
                return NULL;
        forget_ticket(p);
        if (p->own)
                gnutls_x509_trust_list_deinit(p->own, 1);
        free(p->name);
        if (--shared.users == 0)
                shared_unload();
        return mfree(p);
}

/* All that came was taken, and the kernel gave less than it was asked for: true once, and then it is asked again. An idle connection holds no memory. */
static bool nothing_came(TlsSession *s) {
        if (s->ahead_start < s->ahead_end || !s->drained)
                return false;
        s->drained = false;
        s->ahead = mfree(s->ahead);
        return true;
}

/* GnuTLS asks for a record's five bytes, and then for the rest: both come with one call here, and small records several at a time. */
static ssize_t pull(gnutls_transport_ptr_t userdata, void *data, size_t size) {
        TlsSession *s = userdata;

        if (nothing_came(s)) {
                s->dry = true;
                errno = EAGAIN;
                return -1;
        }
        if (s->ahead_start == s->ahead_end) {
                if (!s->ahead)
                        s->ahead = malloc(AHEAD_SIZE);
                ssize_t n = s->ahead ? recv(s->fd, s->ahead, AHEAD_SIZE, MSG_DONTWAIT) : recv(s->fd, data, size, MSG_DONTWAIT);
                s->dry = n <= 0;
                if (n <= 0) /* an idle connection holds no memory */
                        s->ahead = mfree(s->ahead);
                if (!s->ahead)
                        return n;
                s->ahead_start = 0;
                s->ahead_end = (size_t) n;
                s->drained = s->ahead_end < AHEAD_SIZE;
        }
        size = MIN(size, s->ahead_end - s->ahead_start);
        memcpy(data, s->ahead + s->ahead_start, size);
        s->ahead_start += size;
        return (ssize_t) size;
}

static int pull_timeout(gnutls_transport_ptr_t userdata, unsigned msec) {
        TlsSession *s = userdata;
        struct pollfd p = {.fd = s->fd, .events = POLLIN};

        return s->ahead_start < s->ahead_end ? 1 : poll(&p, 1, (int) MIN(msec, 60000U));
}

int tls_session_new(TlsPeer *peer, int fd, TlsSession **ret) {
        _cleanup_(tls_session_freep) TlsSession *s = calloc(1, sizeof(TlsSession));
        static const unsigned char http[] = "http/1.1";
        gnutls_datum_t alpn = {(unsigned char *) http, sizeof(http) - 1};

        if (!s)
                return -ENOMEM;
        s->peer = peer;
        int r = shared_load();
        if (r < 0)
                return r;
        int e = gnutls_init(&s->session, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL);
        if (e < 0)
                return from_gnutls(e);
        gnutls_session_set_ptr(s->session, s);
        s->fd = fd;
        gnutls_transport_set_ptr2(s->session, s, (gnutls_transport_ptr_t) (intptr_t) fd);
        gnutls_transport_set_pull_function(s->session, pull);
        gnutls_transport_set_pull_timeout_function(s->session, pull_timeout);
        gnutls_handshake_set_timeout(s->session, 0); /* the exchange has its own */
        e = gnutls_priority_set(s->session, shared.priority);
        if (e >= 0)
                e = gnutls_credentials_set(s->session, GNUTLS_CRD_CERTIFICATE, shared.credentials);
        if (e >= 0)
                e = gnutls_alpn_set_protocols(s->session, &alpn, 1, 0);
        if (e >= 0 && !peer->is_address) /* RFC 6066: literals are not sent */
                e = gnutls_server_name_set(s->session, GNUTLS_NAME_DNS, peer->name, strlen(peer->name));
        if (e < 0)
                return from_gnutls(e);
        /* A ticket that cannot be read costs a full handshake, nothing else. */
        if (peer->ticket.data)
                (void) gnutls_session_set_data(s->session, peer->ticket.data, peer->ticket.size);
        *ret = TAKE_PTR(s);
        return 0;
}

TlsSession *tls_session_free(TlsSession *s) {
        if (!s)
                return NULL;
        if (s->session)
                gnutls_deinit(s->session);
        free(s->ahead);
        return mfree(s);
}

static unsigned verify_chain(gnutls_x509_trust_list_t list, const TlsPeer *peer, gnutls_x509_crt_t *chain, unsigned n) {
        unsigned status = 0;
        gnutls_typed_vdata_st data[] = {
                {.type = GNUTLS_DT_DNS_HOSTNAME, .data = (unsigned char *) peer->name}, /* takes the text of an address as well */
                {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *) GNUTLS_KP_TLS_WWW_SERVER},
        };

        if (gnutls_x509_trust_list_verify_crt2(list, chain, n, data, ELEMENTSOF(data), VERIFY_FLAGS, &status, NULL) < 0)
                return GNUTLS_CERT_INVALID;
        return status;
}

static int verify_peer(gnutls_session_t session) {
        TlsSession *s = gnutls_session_get_ptr(session);
        gnutls_x509_crt_t chain[CHAIN_MAX];
        unsigned n = 0, n_chain = 0;
        int e = 0;

        s->verify_status = GNUTLS_CERT_INVALID;
        const gnutls_datum_t *certificates = gnutls_certificate_get_peers(session, &n);
        if (gnutls_certificate_type_get2(session, GNUTLS_CTYPE_SERVER) != GNUTLS_CRT_X509 || !certificates || n == 0 || n > CHAIN_MAX)
                return GNUTLS_E_CERTIFICATE_ERROR;
        for (; e >= 0 && n_chain < n; n_chain++) {
                e = gnutls_x509_crt_init(&chain[n_chain]);
                if (e < 0)
                        break;
                e = gnutls_x509_crt_import(chain[n_chain], &certificates[n_chain], GNUTLS_X509_FMT_DER);
        }
        if (e >= 0 && s->peer->own)
                s->verify_status = verify_chain(s->peer->own, s->peer, chain, n_chain);
        if (e >= 0 && s->verify_status != 0) {
                unsigned status = verify_chain(trust_get(), s->peer, chain, n_chain);
                /* What its own issuer's list found is the better reason than "unknown issuer". */
                if (status == 0 || !s->peer->own || (s->verify_status & GNUTLS_CERT_SIGNER_NOT_FOUND))
                        s->verify_status = status;
        }
        for (unsigned i = 0; i < n_chain; i++)
                gnutls_x509_crt_deinit(chain[i]);
        return s->verify_status == 0 ? 0 : GNUTLS_E_CERTIFICATE_ERROR;
}

static void describe(const TlsSession *s, int e, char *problem) {
        gnutls_datum_t words = {};

        if (e == GNUTLS_E_CERTIFICATE_ERROR || e == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR) {
                if (gnutls_certificate_verification_status_print(s->verify_status, GNUTLS_CRT_X509, &words, 0) >= 0) {
                        (void) snprintf(problem, TLS_PROBLEM_MAX, "%.*s", (int) words.size, words.data);
                        gnutls_free(words.data);
                        size_t n = strlen(problem);
                        while (n > 0 && problem[n - 1] == ' ')
                                problem[--n] = 0;
                        return;
                }
        }
        if (e == GNUTLS_E_FATAL_ALERT_RECEIVED || e == GNUTLS_E_WARNING_ALERT_RECEIVED) {
                const char *name = gnutls_alert_get_name(gnutls_alert_get(s->session));
                (void) snprintf(problem, TLS_PROBLEM_MAX, "the server sent an alert: %s", name ? name : "unknown");
                return;
        }
        if (from_gnutls(e) == -ECONNRESET)
                (void) snprintf(problem, TLS_PROBLEM_MAX, "the server ended the connection");
        else
                (void) snprintf(problem, TLS_PROBLEM_MAX, "%s", gnutls_strerror(e));
}

int tls_handshake(TlsSession *s, uint32_t *ret_events, char *problem) {
        int e;

        do
                e = gnutls_handshake(s->session);
        while (e == GNUTLS_E_INTERRUPTED || e == GNUTLS_E_WARNING_ALERT_RECEIVED || e == GNUTLS_E_GOT_APPLICATION_DATA);
        if (e == GNUTLS_E_AGAIN) {
                *ret_events = gnutls_record_get_direction(s->session) ? EPOLLOUT : EPOLLIN;
                return -EAGAIN;
        }
        if (e >= 0)
                return 0;
        describe(s, e, problem);
        s->failed = true;
        /* An old ticket must not make the next connection fail as well. */
        forget_ticket(s->peer);
        return -EPROTO;
}

ssize_t tls_read(TlsSession *s, void *data, size_t size) {
        /* GnuTLS makes room for a record before it asks for one. */
        if (gnutls_record_check_pending(s->session) == 0 && nothing_came(s))
                return -EAGAIN;
        /* Tickets, ignored renegotiations and warnings are not data; a peer that sends nothing else is stopped. */
        for (unsigned i = 0; i < 64; i++) {
                s->dry = false;
                ssize_t n = gnutls_record_recv(s->session, data, size);
                if (n >= 0)
                        return n;
                /* It is said of a ticket, too, and what came behind that in one piece no event tells of again. */
                if (n == GNUTLS_E_AGAIN && (s->dry || gnutls_record_get_direction(s->session)))
                        return -EAGAIN;
                if (gnutls_error_is_fatal((int) n)) {
                        s->failed = true;
                        return from_gnutls(n);
                }
        }
        s->failed = true;
        return -EPROTO;
}

ssize_t tls_write(TlsSession *s, const void *data, size_t size) {
        ssize_t n;

        do {
                /* GnuTLS keeps what it could not write and wants to be called without new data. */
                n = s->unsent > 0 ? gnutls_record_send(s->session, NULL, 0) : gnutls_record_send(s->session, data, size);
        } while (n == GNUTLS_E_INTERRUPTED);
        if (n == GNUTLS_E_AGAIN) {
                s->unsent = MIN(size, (size_t) 16384);
                return -EAGAIN;
        }
        s->unsent = 0;
        if (n < 0) {
                s->failed = true;
                return from_gnutls(n);
        }
        return n;
}

bool tls_pending(const TlsSession *s) {
        return s->ahead_start < s->ahead_end || gnutls_record_check_pending(s->session) > 0;
}

void tls_bye(TlsSession *s) {
        if (!s->failed)
                (void) gnutls_bye(s->session, GNUTLS_SHUT_WR);
}

void tls_remember(TlsSession *s) {
        gnutls_datum_t data = {};

        s->drained = false; /* whether it is still there is asked of the kernel */
        /* Without a ticket that has come already, TLS 1.3 would wait for one here. */
        if (s->failed || (gnutls_protocol_get_version(s->session) >= GNUTLS_TLS1_3 &&
                          !(gnutls_session_get_flags(s->session) & GNUTLS_SFLAGS_SESSION_TICKET)))
                return;
        if (gnutls_session_get_data2(s->session, &data) < 0)
                return;
        forget_ticket(s->peer);
        s->peer->ticket = data;
}
