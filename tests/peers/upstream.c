/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* test-upstream: an HTTP/1.1 server for tests, over TLS (GnuTLS) or plain, that does what the path of a request says.
 *
 *   test-upstream --directory DIR [--cert FILE --key FILE] ADDRESS:PORT…      ([v6]:PORT)
 *
 * What happens is told on stdout, one line each: "ready", "accept K ADDRESS:PORT", "handshake K ok|failed", "request K METHOD PATH",
 * "sent K", "gone K" (the peer went while a handler waited), "end K". DIR/request.K holds every byte that connection K received. Stdin is the control:
 * "go" lets one waiting handler take one step (instead of a sleep), "sync WORD" accepts whatever is pending and is then answered with
 * "sync WORD", so that the lines before it are all the connections there were. End of file ends the program.
 *
 * Paths (a leading "/v1" is skipped; a query of "paced" waits for a "go" before each piece):
 *   /echo            the request as it came, head and body, as text/plain
 *   /sse/N           N events "data: I\n\n", chunked;  /sse-close/N  the same until close;  /endless  without an end
 *   /length/N[/M]    Content-Length N, M (default N) bytes of 'x';  /chunked/N  N bytes in chunks
 *   /status/NNN      that status and an empty body, Content-Encoding: gzip when the query is "gzip"
 *   /raw/NAME        the bytes of DIR/raw.NAME, or of DIR/raw.NAME.0, .1, … when paced; the query adds how it ends: "keep", "cut"
 *                    (no close_notify), "reset" (RST); otherwise a clean close
 *   /wait            waits until the peer goes, or for a "go"; then answers 200 */

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <gnutls/gnutls.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define LISTENERS_MAX 32
#define HEAD_MAX (256U * 1024U)

typedef struct Peer {
        unsigned number;
        int fd;
        int record; /* DIR/request.K */
        gnutls_session_t tls; /* NULL = plain */
        char *in;   /* received, from the start of the current request */
        size_t in_size;
        size_t head_size;
        size_t request_size; /* head and body */
        char path[4096];
        char query[256];
        bool head_only;
        bool broken; /* a read or write failed, or the answer ends the connection */
} Peer;

static const char *directory = ".";
static gnutls_certificate_credentials_t credentials;
static gnutls_priority_t priorities;
static sem_t steps;
static unsigned n_accepted;

__attribute__((format(printf, 1, 2)))
static void tell(const char *format, ...) {
        static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
        va_list ap;

        pthread_mutex_lock(&lock);
        va_start(ap, format);
        vprintf(format, ap);
        va_end(ap);
        putchar('\n');
        fflush(stdout);
        pthread_mutex_unlock(&lock);
}

__attribute__((noreturn, format(printf, 1, 2)))
static void die(const char *format, ...) {
        va_list ap;

        fprintf(stderr, "test-upstream: ");
        va_start(ap, format);
        vfprintf(stderr, format, ap);
        va_end(ap);
        fputc('\n', stderr);
        exit(1);
}

static ssize_t peer_receive(Peer *p, char *data, size_t size) {
        ssize_t n;

        if (p->tls)
                do
                        n = gnutls_record_recv(p->tls, data, size);
                while (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED);
        else
                n = recv(p->fd, data, size, 0);
        if (n > 0 && write(p->record, data, (size_t) n) != n)
                die("cannot record a request: %s", strerror(errno));
        return n;
}

static void peer_send(Peer *p, const char *data, size_t size) {
        while (size > 0 && !p->broken) {
                ssize_t n = p->tls ? gnutls_record_send(p->tls, data, size) : send(p->fd, data, size, MSG_NOSIGNAL);
                if (n == GNUTLS_E_AGAIN || n == GNUTLS_E_INTERRUPTED)
                        continue;
                if (n <= 0) {
                        p->broken = true;
                        return;
                }
                data += n;
                size -= (size_t) n;
        }
}

__attribute__((format(printf, 2, 3)))
static void peer_printf(Peer *p, const char *format, ...) {
        char buffer[1024];
        va_list ap;

        va_start(ap, format);
        int n = vsnprintf(buffer, sizeof(buffer), format, ap);
        va_end(ap);
        if (n < 0 || (size_t) n >= sizeof(buffer))
                die("an answer's head does not fit");
        peer_send(p, buffer, (size_t) n);
}

static bool query_has(const Peer *p, const char *word) {
        return strstr(p->query, word) != NULL;
}

/* Waits for a "go". False when the peer went first. */
static bool peer_wait(Peer *p) {
        for (;;) {
                char byte;

                if (sem_trywait(&steps) == 0)
                        return true;
                /* A close_notify counts as going too, but what is only more of a request does not. */
                struct pollfd pfd = { .fd = p->fd, .events = POLLIN | POLLRDHUP };
                if (poll(&pfd, 1, 20) > 0) {
                        ssize_t n = recv(p->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
                        bool gone = n == 0 || (n < 0 && errno != EAGAIN);
                        if (n > 0 && p->tls) {
                                char more[256];
                                gone = peer_receive(p, more, sizeof(more)) <= 0;
                        } else if (n > 0)
                                usleep(1000);
                        if (gone) {
                                tell("gone %u", p->number);
                                p->broken = true;
                                return false;
                        }
                }
        }
}

static bool peer_pace(Peer *p) {
        return p->broken ? false : query_has(p, "paced") ? peer_wait(p) : true;
}

/* ---- Reading requests ---- */

static size_t header_number(const Peer *p, const char *name) {
        size_t length = strlen(name);

        for (const char *line = p->in; line && line < p->in + p->head_size; line = strstr(line, "\r\n") ? strstr(line, "\r\n") + 2 : NULL)
                if (strncasecmp(line, name, length) == 0)
                        return strtoul(line + length, NULL, 10);
        return 0;
}

static bool peer_fill(Peer *p) {
        if (p->in_size >= HEAD_MAX)
                p->in_size = p->head_size; /* the body is recorded in the file; only its end matters here */
        ssize_t n = peer_receive(p, p->in + p->in_size, HEAD_MAX - p->in_size);
        if (n <= 0)
                return false;
        p->in_size += (size_t) n;
        p->in[p->in_size] = 0;
        return true;
}

static bool read_body(Peer *p) {
        char *chunked = strcasestr(p->in, "\r\ntransfer-encoding: chunked\r\n");

        if (chunked && chunked < p->in + p->head_size) {
                /* Bodies of tests hold no such bytes of their own. */
                char *end;
                while (!(end = memmem(p->in + p->head_size - 2, p->in_size - p->head_size + 2, "\r\n0\r\n\r\n", 7)))
                        if (!peer_fill(p))
                                return false;
                p->request_size = (size_t) (end - p->in) + 7;
                return true;
        }
        size_t left = header_number(p, "content-length:");
        while (p->in_size - p->head_size < left) {
                size_t before = p->in_size;
                if (before >= HEAD_MAX)
                        left -= before - p->head_size;
                if (!peer_fill(p))
                        return false;
        }
        p->request_size = p->head_size + left;
        return true;
}

static bool read_request(Peer *p) {
        char method[32], target[4096];
        char *end;

        while (!(end = strstr(p->in, "\r\n\r\n")))
                if (!peer_fill(p))
                        return false;
        p->head_size = (size_t) (end - p->in) + 4;
        if (!read_body(p) || sscanf(p->in, "%31s %4095s", method, target) != 2)
                return false;

        char *question = strchr(target, '?');
        snprintf(p->query, sizeof(p->query), "%s", question ? question + 1 : "");
        if (question)
                *question = 0;
        snprintf(p->path, sizeof(p->path), "%s", strncmp(target, "/v1/", 4) == 0 ? target + 3 : target);
        p->head_only = strcmp(method, "HEAD") == 0;
        tell("request %u %s %s", p->number, method, target);
        return true;
}

/* ---- Answers ---- */

static void send_chunk(Peer *p, const char *data, size_t size) {
        char buffer[64 + 16384];
        int n = snprintf(buffer, sizeof(buffer), "%zx\r\n", size);

        memcpy(buffer + n, data, size);
        memcpy(buffer + n + size, "\r\n", 2);
        peer_send(p, buffer, (size_t) n + size + 2);
}

static void answer_echo(Peer *p) {
        peer_printf(p, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: %zu\r\n\r\n", p->request_size);
        if (!p->head_only)
                peer_send(p, p->in, p->request_size);
}

static void answer_events(Peer *p, unsigned long n, bool chunked, bool endless) {
        peer_printf(p, "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n%s\r\n",
                    chunked ? "Transfer-Encoding: chunked\r\n" : "Connection: close\r\n");
        for (unsigned long i = 1; (endless || i <= n) && peer_pace(p); i++) {
                char event[64];
                int size = snprintf(event, sizeof(event), "data: %lu\n\n", i);
                if (chunked)
                        send_chunk(p, event, (size_t) size);
                else
                        peer_send(p, event, (size_t) size);
        }
        if (chunked)
                peer_send(p, "0\r\n\r\n", 5);
        else
                p->broken = true;
}

static void answer_bytes(Peer *p, uint64_t announced, uint64_t n, bool chunked) {
        static const char block[16384] = { [0 ... 16383] = 'x' };

        if (chunked)
                peer_printf(p, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
        else
                peer_printf(p, "HTTP/1.1 200 OK\r\nContent-Length: %llu\r\n\r\n", (unsigned long long) announced);
        if (p->head_only)
                return;
        for (uint64_t left = n; left > 0 && !p->broken; ) {
                size_t size = left < sizeof(block) ? (size_t) left : sizeof(block);
                if (chunked)
                        send_chunk(p, block, size);
                else
                        peer_send(p, block, size);
                left -= size;
        }
        if (chunked)
                peer_send(p, "0\r\n\r\n", 5);
        else if (n < announced)
                p->broken = true;
}

static bool send_file(Peer *p, const char *name) {
        char file[4096], buffer[65536];
        ssize_t n;

        if (snprintf(file, sizeof(file), "%s/raw.%s", directory, name) >= (int) sizeof(file))
                die("a file name does not fit");
        int fd = open(file, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
                return false;
        while ((n = read(fd, buffer, sizeof(buffer))) > 0)
                peer_send(p, buffer, (size_t) n);
        close(fd);
        return true;
}

static void answer_raw(Peer *p, const char *name) {
        if (query_has(p, "paced"))
                for (unsigned i = 0;; i++) {
                        char piece[4200], file[8400];
                        snprintf(piece, sizeof(piece), "%s.%u", name, i);
                        snprintf(file, sizeof(file), "%s/raw.%s", directory, piece);
                        if (access(file, R_OK) < 0 || !peer_wait(p))
                                break;
                        send_file(p, piece);
                }
        else if (!send_file(p, name))
                die("there is no raw.%s", name);
        if (!query_has(p, "keep"))
                p->broken = true;
}

static void answer(Peer *p) {
        unsigned long long a = 0, b = 0;

        if (strcmp(p->path, "/echo") == 0)
                answer_echo(p);
        else if (sscanf(p->path, "/sse/%llu", &a) == 1)
                answer_events(p, (unsigned long) a, true, false);
        else if (sscanf(p->path, "/sse-close/%llu", &a) == 1)
                answer_events(p, (unsigned long) a, false, false);
        else if (strcmp(p->path, "/endless") == 0)
                answer_events(p, 0, true, true);
        else if (sscanf(p->path, "/chunked/%llu", &a) == 1)
                answer_bytes(p, a, a, true);
        else if (sscanf(p->path, "/length/%llu/%llu", &a, &b) == 2)
                answer_bytes(p, a, b, false);
        else if (sscanf(p->path, "/length/%llu", &a) == 1)
                answer_bytes(p, a, a, false);
        else if (sscanf(p->path, "/status/%llu", &a) == 1)
                peer_printf(p, "HTTP/1.1 %llu Status\r\n%s%s\r\n", a, query_has(p, "gzip") ? "Content-Encoding: gzip\r\n" : "",
                            a == 204 || a == 304 ? "" : "Content-Length: 0\r\n");
        else if (strncmp(p->path, "/raw/", 5) == 0)
                answer_raw(p, p->path + 5);
        else if (strcmp(p->path, "/wait") == 0) {
                if (peer_wait(p))
                        peer_printf(p, "HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\nwaited\n");
        } else
                peer_printf(p, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n");
        tell("sent %u", p->number);
}

/* ---- Connections ---- */

static bool peer_handshake(Peer *p) {
        int r;

        if (!credentials)
                return true;
        gnutls_init(&p->tls, GNUTLS_SERVER);
        gnutls_priority_set(p->tls, priorities);
        gnutls_credentials_set(p->tls, GNUTLS_CRD_CERTIFICATE, credentials);
        gnutls_transport_set_int(p->tls, p->fd);
        do
                r = gnutls_handshake(p->tls);
        while (r < 0 && !gnutls_error_is_fatal(r));
        tell("handshake %u %s", p->number, r < 0 ? "failed" : "ok");
        return r >= 0;
}

static void peer_close(Peer *p) {
        if (query_has(p, "reset"))
                (void) setsockopt(p->fd, SOL_SOCKET, SO_LINGER, &(struct linger) { .l_onoff = 1 }, sizeof(struct linger));
        else if (p->tls && !query_has(p, "cut"))
                gnutls_bye(p->tls, GNUTLS_SHUT_WR);
        if (p->tls)
                gnutls_deinit(p->tls);
        close(p->fd);
        close(p->record);
        tell("end %u", p->number);
        free(p->in);
        free(p);
}

static void *peer_run(void *userdata) {
        Peer *p = userdata;

        if (peer_handshake(p))
                while (!p->broken && read_request(p)) {
                        answer(p);
                        memmove(p->in, p->in + p->request_size, p->in_size - p->request_size + 1);
                        p->in_size -= p->request_size;
                }
        peer_close(p);
        return NULL;
}

static void peer_start(int fd, const char *name) {
        char file[4096];
        pthread_t thread;
        Peer *p = calloc(1, sizeof(Peer));

        if (!p || !(p->in = calloc(1, HEAD_MAX + 1)))
                die("out of memory");
        p->number = ++n_accepted;
        p->fd = fd;
        if (snprintf(file, sizeof(file), "%s/request.%u", directory, p->number) >= (int) sizeof(file))
                die("a file name does not fit");
        p->record = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
        if (p->record < 0)
                die("cannot make %s: %s", file, strerror(errno));
        (void) setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int) { 1 }, sizeof(int));
        tell("accept %u %s", p->number, name);
        if (pthread_create(&thread, NULL, peer_run, p) != 0)
                die("cannot start a thread");
        pthread_detach(thread);
}

static void accept_all(int listener, const char *name) {
        int fd;

        while ((fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC)) >= 0)
                peer_start(fd, name);
}

static int listen_on(const char *name) {
        struct sockaddr_storage storage = {};
        char host[128];
        const char *colon = strrchr(name, ':');
        socklen_t size;

        if (!colon || (size_t) (colon - name) >= sizeof(host))
                die("%s is not ADDRESS:PORT", name);
        snprintf(host, sizeof(host), "%.*s", (int) (colon - name), name);
        uint16_t port = (uint16_t) atoi(colon + 1);
        if (host[0] == '[') {
                struct sockaddr_in6 *in6 = (struct sockaddr_in6 *) &storage;
                host[strlen(host) - 1] = 0;
                *in6 = (struct sockaddr_in6) { .sin6_family = AF_INET6, .sin6_port = htons(port) };
                if (inet_pton(AF_INET6, host + 1, &in6->sin6_addr) != 1)
                        die("%s is not an address", host);
                size = sizeof(*in6);
        } else {
                struct sockaddr_in *in4 = (struct sockaddr_in *) &storage;
                *in4 = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htons(port) };
                if (inet_pton(AF_INET, host, &in4->sin_addr) != 1)
                        die("%s is not an address", host);
                size = sizeof(*in4);
        }
        int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int) { 1 }, sizeof(int)) < 0 ||
            (storage.ss_family == AF_INET6 && setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &(int) { 1 }, sizeof(int)) < 0) ||
            bind(fd, (struct sockaddr *) &storage, size) < 0 || listen(fd, 128) < 0)
                die("cannot listen on %s: %s", name, strerror(errno));
        return fd;
}

static void load_credentials(const char *cert, const char *key) {
        int r = gnutls_certificate_allocate_credentials(&credentials);

        if (r >= 0)
                r = gnutls_certificate_set_x509_key_file(credentials, cert, key, GNUTLS_X509_FMT_PEM);
        if (r >= 0)
                r = gnutls_priority_init(&priorities, "NORMAL", NULL);
        if (r < 0)
                die("cannot load %s: %s", cert, gnutls_strerror(r));
}

/* True while a connection to one of the ports is being made: who has dialled may use it before the last segment of its handshake is
 * here, and it is not there to be accepted before that. */
static bool is_being_made(const char *table, char **names, size_t n) {
        unsigned port, state;
        bool found = false;
        char line[512];

        FILE *f = fopen(table, "re");
        if (!f)
                return false; /* without IPv6 */
        while (!found && fgets(line, sizeof(line), f))
                if (sscanf(line, " %*u: %*[0-9A-F]:%x %*[0-9A-F]:%*x %x", &port, &state) == 2 && state == TCP_SYN_RECV)
                        for (size_t i = 0; i < n; i++)
                                found = found || (unsigned) atoi(strrchr(names[i], ':') + 1) == port;
        fclose(f);
        return found;
}

static void serve(char **names, size_t n) {
        struct pollfd pfds[LISTENERS_MAX + 1] = { { .fd = STDIN_FILENO, .events = POLLIN } };
        char line[256];
        size_t size = 0;

        for (size_t i = 0; i < n; i++)
                pfds[i + 1] = (struct pollfd) { .fd = listen_on(names[i]), .events = POLLIN };
        tell("ready");

        while (poll(pfds, n + 1, -1) >= 0 || errno == EINTR) {
                for (size_t i = 0; i < n; i++)
                        accept_all(pfds[i + 1].fd, names[i]);
                if (pfds[0].revents == 0)
                        continue;
                if (size == sizeof(line) - 1 || read(STDIN_FILENO, line + size, 1) != 1)
                        exit(0);
                if (line[size++] != '\n')
                        continue;
                line[size - 1] = 0;
                size = 0;
                if (strcmp(line, "go") == 0)
                        sem_post(&steps);
                else {
                        while (is_being_made("/proc/self/net/tcp", names, n) || is_being_made("/proc/self/net/tcp6", names, n))
                                usleep(1000);
                        for (size_t i = 0; i < n; i++)
                                accept_all(pfds[i + 1].fd, names[i]);
                        tell("%s", line);
                }
        }
}

int main(int argc, char *argv[]) {
        const char *cert = NULL, *key = NULL;
        int i = 1;

        for (; i + 1 < argc && argv[i][0] == '-'; i += 2)
                if (strcmp(argv[i], "--directory") == 0)
                        directory = argv[i + 1];
                else if (strcmp(argv[i], "--cert") == 0)
                        cert = argv[i + 1];
                else if (strcmp(argv[i], "--key") == 0)
                        key = argv[i + 1];
                else
                        die("unknown option %s", argv[i]);
        if (i >= argc || argc - i > LISTENERS_MAX || !cert != !key)
                die("usage: test-upstream --directory DIR [--cert FILE --key FILE] ADDRESS:PORT…");
        signal(SIGPIPE, SIG_IGN);
        sem_init(&steps, 0, 0);
        if (cert)
                load_credentials(cert, key);
        serve(argv + i, (size_t) (argc - i));
        return 0;
}
