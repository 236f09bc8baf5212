/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>
#include <poll.h>
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/macro.h"
#include "broker/stream.h"
#include "test.h"

/* Certificates of this run: an issuer, and servers' of one name each. */
typedef struct Authority {
        gnutls_x509_privkey_t key;
        gnutls_x509_crt_t certificate;
        gnutls_datum_t pem;
} Authority;

static Authority known, unknown;

static void must(int e) {
        if (e < 0)
                test_fail(__FILE__, __LINE__, "GnuTLS: %s", gnutls_strerror(e));
}

static void make_key(gnutls_x509_privkey_t *ret) {
        must(gnutls_x509_privkey_init(ret));
        must(gnutls_x509_privkey_generate(*ret, GNUTLS_PK_ECDSA, GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0));
}

static gnutls_x509_crt_t make_certificate(const Authority *issuer, gnutls_x509_privkey_t key, const char *name, time_t from, time_t until) {
        static unsigned char serial = 1;
        gnutls_x509_crt_t c;

        must(gnutls_x509_crt_init(&c));
        must(gnutls_x509_crt_set_version(c, 3));
        must(gnutls_x509_crt_set_serial(c, &serial, 1));
        serial++;
        must(gnutls_x509_crt_set_key(c, key));
        must(gnutls_x509_crt_set_activation_time(c, from));
        must(gnutls_x509_crt_set_expiration_time(c, until));
        must(gnutls_x509_crt_set_dn(c, name ? "CN=server" : issuer == &known ? "CN=known issuer" : "CN=another issuer", NULL));
        must(gnutls_x509_crt_set_ca_status(c, name == NULL));
        must(gnutls_x509_crt_set_key_usage(c, name ? GNUTLS_KEY_DIGITAL_SIGNATURE : GNUTLS_KEY_KEY_CERT_SIGN));
        if (name && strcmp(name, "127.0.0.1") == 0)
                must(gnutls_x509_crt_set_subject_alt_name(c, GNUTLS_SAN_IPADDRESS, "\x7f\0\0\1", 4, 0));
        else if (name)
                must(gnutls_x509_crt_set_subject_alt_name(c, GNUTLS_SAN_DNSNAME, name, (unsigned) strlen(name), 0));
        must(gnutls_x509_crt_sign2(c, issuer->certificate ? issuer->certificate : c, issuer->key, GNUTLS_DIG_SHA256, 0));
        return c;
}

static void make_authority(Authority *a) {
        make_key(&a->key);
        a->certificate = make_certificate(a, a->key, NULL, time(NULL) - 3600, time(NULL) + 3600);
        must(gnutls_x509_crt_export2(a->certificate, GNUTLS_X509_FMT_PEM, &a->pem));
}

#define RECORD_SIZE 100U

typedef struct Server {
        const Authority *issuer;
        const char *name;
        time_t from, until;     /* relative to now; 0 = an hour */
        const char *priority;   /* NULL = NORMAL */
        bool plain;             /* answers in clear text */
        bool wants_certificate;
        bool rude;              /* ends without close_notify */
        unsigned records;       /* of RECORD_SIZE bytes, after the answer */
        gnutls_datum_t tickets; /* the key of its tickets */
        /* what it saw */
        int fd, error;
        char sni[256], got[16];
        bool resumed;
        pthread_t thread;
} Server;

static int serve_session(Server *s, gnutls_certificate_credentials_t credentials) {
        gnutls_session_t session;
        size_t size = sizeof(s->sni);
        unsigned kind;
        int e;

        gnutls_init(&session, GNUTLS_SERVER | GNUTLS_NO_SIGNAL);
        gnutls_priority_set_direct(session, s->priority ? s->priority : "NORMAL", NULL);
        gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
        gnutls_certificate_server_set_request(session, s->wants_certificate ? GNUTLS_CERT_REQUEST : GNUTLS_CERT_IGNORE);
        if (s->tickets.data)
                gnutls_session_ticket_enable_server(session, &s->tickets);
        gnutls_transport_set_int(session, s->fd);
        do
                e = gnutls_handshake(session);
        while (e < 0 && !gnutls_error_is_fatal(e));
        if (e >= 0) {
                if (gnutls_server_name_get(session, s->sni, &size, &kind, 0) < 0)
                        s->sni[0] = 0;
                s->resumed = gnutls_session_is_resumed(session) != 0;
                ssize_t n = gnutls_record_recv(session, s->got, sizeof(s->got) - 1);
                if (n > 0)
                        gnutls_record_send(session, "answer", 6);
                for (unsigned i = 0; i < s->records; i++) {
                        char record[RECORD_SIZE];
                        memset(record, (int) i, sizeof(record));
                        gnutls_record_send(session, record, sizeof(record));
                }
                if (!s->rude)
                        gnutls_bye(session, GNUTLS_SHUT_WR);
        }
        gnutls_deinit(session);
        return e;
}

static void *serve(void *userdata) {
        Server *s = userdata;
        gnutls_certificate_credentials_t credentials;
        gnutls_x509_privkey_t key;
        time_t now = time(NULL);

        if (s->plain) {
                (void) !recv(s->fd, s->sni, sizeof(s->sni), 0); /* its greeting */
                (void) !send(s->fd, "HTTP/1.1 400 Bad Request\r\n\r\n", 28, MSG_NOSIGNAL);
                s->sni[0] = 0;
                s->fd = safe_close(s->fd);
                return NULL;
        }
        make_key(&key);
        gnutls_x509_crt_t c = make_certificate(s->issuer, key, s->name, now + (s->from ? s->from : -3600), now + (s->until ? s->until : 3600));
        must(gnutls_certificate_allocate_credentials(&credentials));
        must(gnutls_certificate_set_x509_key(credentials, &c, 1, key));
        s->error = serve_session(s, credentials);
        gnutls_certificate_free_credentials(credentials);
        gnutls_x509_crt_deinit(c);
        gnutls_x509_privkey_deinit(key);
        s->fd = safe_close(s->fd);
        return NULL;
}

static void wait_for(int fd, uint32_t events) {
        struct pollfd p = {.fd = fd, .events = events == EPOLLOUT ? POLLOUT : POLLIN};
        CHECK(poll(&p, 1, 10000) == 1);
}

/* Says "hello", reads to the end: *ret_end is what the end was. 0, or the handshake's error with its words. */
static int talk(TlsPeer *peer, Server *s, char *problem, ssize_t *ret_end, bool *ret_resumed) {
        _cleanup_(stream_freep) Stream *stream = NULL;
        char answer[64];
        size_t n = 0;
        uint32_t events = 0;
        int fds[2], e;

        problem[0] = 0;
        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) >= 0);
        s->fd = fds[1];
        s->sni[0] = s->got[0] = 0;
        CHECK(fd_nonblock(fds[0], true) >= 0);
        CHECK_INT(stream_new(fds[0], peer, &stream), 0);
        CHECK_INT(pthread_create(&s->thread, NULL, serve, s), 0);
        while ((e = stream_handshake(stream, &events, problem)) == -EAGAIN)
                wait_for(fds[0], events);
        if (e >= 0) {
                CHECK_INT(stream_write(stream, "hello", 5), 5);
                for (;;) {
                        ssize_t k = stream_read(stream, answer + n, sizeof(answer) - n);
                        if (k == -EAGAIN) {
                                wait_for(fds[0], EPOLLIN);
                                continue;
                        }
                        if (k <= 0) {
                                *ret_end = k;
                                break;
                        }
                        n += (size_t) k;
                }
                CHECK_INT(n, 6);
                CHECK(memcmp(answer, "answer", 6) == 0);
                stream_remember(stream);
                *ret_resumed = s->resumed;
        }
        stream = stream_free(stream);
        pthread_join(s->thread, NULL);
        return e;
}

static TlsPeer *peer_of(const char *name, bool is_address) {
        TlsPeer *p = NULL;
        CHECK_INT(tls_peer_new(name, is_address, (const char *) known.pem.data, known.pem.size, &p), 0);
        return p;
}

static void test_good(void) {
        static const char *const versions[] = {"NORMAL:-VERS-ALL:+VERS-TLS1.3", "NORMAL:-VERS-ALL:+VERS-TLS1.2"};

        for (size_t i = 0; i < ELEMENTSOF(versions); i++) {
                _cleanup_(tls_peer_freep) TlsPeer *peer = peer_of("provider.example", false);
                Server s = {.issuer = &known, .name = "provider.example", .priority = versions[i]};
                char problem[TLS_PROBLEM_MAX];
                bool resumed = true;
                ssize_t end = -1;

                must(gnutls_session_ticket_key_generate(&s.tickets));
                CHECK_INT(talk(peer, &s, problem, &end, &resumed), 0);
                CHECK_STR(s.sni, "provider.example");
                CHECK_STR(s.got, "hello");
                CHECK_INT(end, 0);
                CHECK(!resumed);
                CHECK_INT(talk(peer, &s, problem, &end, &resumed), 0);
                CHECK(resumed);
                gnutls_free(s.tickets.data);
        }
}

/* What has come is told as pending, however many records of it, and is read without an event, to its end. */
static void test_small_records(void) {
        _cleanup_(tls_peer_freep) TlsPeer *peer = peer_of("provider.example", false);
        _cleanup_(stream_freep) Stream *stream = NULL;
        Server s = {.issuer = &known, .name = "provider.example", .records = 100};
        char problem[TLS_PROBLEM_MAX], record[RECORD_SIZE];
        uint32_t events = 0;
        int fds[2], e;

        CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) >= 0);
        s.fd = fds[1];
        CHECK(fd_nonblock(fds[0], true) >= 0);
        CHECK_INT(stream_new(fds[0], peer, &stream), 0);
        CHECK_INT(pthread_create(&s.thread, NULL, serve, &s), 0);
        while ((e = stream_handshake(stream, &events, problem)) == -EAGAIN)
                wait_for(fds[0], events);
        CHECK_INT(e, 0);
        CHECK(!stream_pending(stream));
        CHECK_INT(stream_read(stream, record, sizeof(record)), -EAGAIN);
        CHECK_INT(stream_write(stream, "hello", 5), 5);
        pthread_join(s.thread, NULL);
        CHECK_INT(stream_read(stream, record, sizeof(record)), 6);
        for (unsigned i = 0; i < s.records; i++) {
                CHECK(stream_pending(stream));
                CHECK_INT(stream_read(stream, record, sizeof(record)), RECORD_SIZE);
                CHECK(record[0] == (char) i && record[RECORD_SIZE - 1] == (char) i);
        }
        CHECK(stream_pending(stream));
        CHECK_INT(stream_read(stream, record, sizeof(record)), 0);
}

static void test_address(void) {
        _cleanup_(tls_peer_freep) TlsPeer *peer = peer_of("127.0.0.1", true);
        Server s = {.issuer = &known, .name = "127.0.0.1"}, other = {.issuer = &known, .name = "provider.example"};
        char problem[TLS_PROBLEM_MAX];
        bool resumed;
        ssize_t end;

        CHECK_INT(talk(peer, &s, problem, &end, &resumed), 0);
        CHECK_STR(s.sni, "");
        CHECK_INT(talk(peer, &other, problem, &end, &resumed), -EPROTO);
}

static void test_truncated(void) {
        _cleanup_(tls_peer_freep) TlsPeer *peer = peer_of("provider.example", false);
        Server s = {.issuer = &known, .name = "provider.example", .rude = true};
        char problem[TLS_PROBLEM_MAX];
        bool resumed;
        ssize_t end;

        CHECK_INT(talk(peer, &s, problem, &end, &resumed), 0);
        CHECK_INT(end, -ECONNRESET);
}

static void check_refused(Server s, const char *words) {
        _cleanup_(tls_peer_freep) TlsPeer *peer = peer_of("provider.example", false);
        char problem[TLS_PROBLEM_MAX];
        bool resumed;
        ssize_t end;

        CHECK_INT(talk(peer, &s, problem, &end, &resumed), -EPROTO);
        if (!strstr(problem, words))
                test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", problem, words);
        CHECK_STR(s.got, ""); /* not a byte of a request */
}

static void test_refused(void) {
        check_refused((Server) {.issuer = &known, .name = "other.example"}, "name in the certificate does not match");
        check_refused((Server) {.issuer = &known, .name = "sub.provider.example"}, "name in the certificate does not match");
        check_refused((Server) {.issuer = &unknown, .name = "provider.example"}, "issuer is unknown");
        check_refused((Server) {.issuer = &known, .name = "provider.example", .from = -7200, .until = -3600}, "expired");
        check_refused((Server) {.issuer = &known, .name = "provider.example", .from = 3600, .until = 7200}, "not yet valid");
        check_refused((Server) {.plain = true}, "TLS packet");
        check_refused((Server) {.issuer = &known, .name = "provider.example", .priority = "NORMAL:-VERS-ALL:+VERS-TLS1.1:%COMPAT"}, "version");
}

static void test_client_certificate(void) {
        _cleanup_(tls_peer_freep) TlsPeer *peer = peer_of("provider.example", false);
        Server s = {.issuer = &known, .name = "provider.example", .wants_certificate = true};
        char problem[TLS_PROBLEM_MAX];
        bool resumed;
        ssize_t end;

        /* Asked for one, it has none to give, and goes on. */
        CHECK_INT(talk(peer, &s, problem, &end, &resumed), 0);
}

static void test_trust(void) {
        _cleanup_(tls_peer_freep) TlsPeer *plain = NULL, *broken = NULL;
        Server s = {.issuer = &known, .name = "provider.example"};
        char problem[TLS_PROBLEM_MAX];
        bool resumed;
        ssize_t end;

        /* Without the provider's own CA the system's trust decides alone. */
        CHECK_INT(tls_peer_new("provider.example", false, NULL, 0, &plain), 0);
        CHECK_INT(talk(plain, &s, problem, &end, &resumed), -EPROTO);
        CHECK_INT(tls_peer_new("provider.example", false, "no certificate", 14, &broken), -EBADMSG);
}

int main(void) {
        log_setup("test-tls", LOG_LEVEL_INFO);
        make_authority(&known);
        make_authority(&unknown);
        RUN(test_good, "TLS: the right name and issuer, over TLS 1.3 and 1.2, and resumption");
        RUN(test_small_records, "TLS: what was read ahead is read on, and nothing is waited for that has come");
        RUN(test_address, "TLS: an address is checked as one, and not sent as a name");
        RUN(test_truncated, "C158: an end without close_notify is no end");
        RUN(test_refused, "TLS: another name, issuer, time, version or protocol is refused before a byte is sent");
        RUN(test_client_certificate, "TLS: no client certificate is given");
        RUN(test_trust, "TLS: a provider's own CA is trusted for it alone");
        for (Authority *a = &known; a; a = a == &known ? &unknown : NULL) {
                gnutls_x509_crt_deinit(a->certificate);
                gnutls_x509_privkey_deinit(a->key);
                gnutls_free(a->pem.data);
        }
        return TEST_END();
}
