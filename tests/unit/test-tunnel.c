/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/fd.h"
#include "broker/broker.h"
#include "broker/tunnel.h"
#include "test.h"

#define ESTABLISHED "HTTP/1.1 200 Connection Established\r\n\r\n"
#define BULK (64U << 20)

static Broker broker;
static Connection connection;
static Tunnel *tunnel;
static bool over;
static int over_error;
static int client, upstream; /* our ends */

void connection_tunnel_done(Connection *c, int error) {
        over = true;
        over_error = error;
        tunnel = tunnel_free(tunnel);
        c->fd = safe_close(c->fd);
}

static char logged[256];

void connection_log(_unused_ Connection *c, _unused_ LogLevel level, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        (void) vsnprintf(logged, sizeof(logged), format, ap);
        va_end(ap);
}

static void tcp_pair(int pair[2]) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t size = sizeof(address);

        _cleanup_close_ int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_INT(bind(listener, (struct sockaddr *) &address, sizeof(address)), 0);
        CHECK_INT(listen(listener, 1), 0);
        CHECK_INT(getsockname(listener, (struct sockaddr *) &address, &size), 0);
        pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        CHECK_INT(connect(pair[0], (struct sockaddr *) &address, size), 0);
        pair[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        CHECK_INT(fd_nonblock(pair[0], true), 0);
        CHECK_INT(fd_nonblock(pair[1], true), 0);
}

static void begin(const char *early) {
        int a[2], b[2];

        tcp_pair(a);
        tcp_pair(b);
        client = a[0];
        upstream = b[1];
        over = false;
        CHECK(sd_event_new(&broker.event) >= 0);
        connection = (Connection){.broker = &broker, .fd = a[1]};
        connection.in = strdup(early);
        connection.in_size = strlen(early);
        CHECK_INT(tunnel_start(&connection, b[0], (Slice){ESTABLISHED, STRLEN(ESTABLISHED)}, &tunnel), 0);
        free(connection.in);
        connection.in = NULL;
        connection.in_size = 0;
}

static void end(void) {
        if (tunnel)
                connection_tunnel_done(&connection, 0);
        safe_close(client);
        safe_close(upstream);
        broker.event = sd_event_unref(broker.event);
        pipe_pool_done(&broker.pipes);
}

static void turn(void) {
        for (unsigned i = 0; i < 20 && !over; i++)
                if (sd_event_run(broker.event, 2 * USEC_PER_MSEC) == 0)
                        break;
}

/* Reads from fd while the tunnel runs, until `size` bytes or end of file. */
static size_t take(int fd, char *data, size_t size) {
        usec_t start = now_monotonic();
        size_t done = 0;

        while (done < size && now_monotonic() - start < 10 * USEC_PER_SEC) {
                turn();
                ssize_t n = recv(fd, data + done, size - done, 0);
                if (n == 0)
                        break;
                if (n > 0)
                        done += (size_t) n;
                else
                        CHECK(errno == EAGAIN);
        }
        return done;
}

static bool at_end(int fd) {
        char byte;

        for (unsigned i = 0; i < 200; i++) {
                turn();
                ssize_t n = recv(fd, &byte, 1, 0);
                if (n == 0)
                        return true;
                CHECK(n < 0 && errno == EAGAIN);
        }
        return false;
}

static void take_established(void) {
        char text[sizeof(ESTABLISHED)] = {};
        CHECK_INT(take(client, text, STRLEN(ESTABLISHED)), STRLEN(ESTABLISHED));
        CHECK_STR(text, ESTABLISHED);
}

static void test_early_bytes(void) {
        char text[12] = {};

        begin("early");
        CHECK_INT(send(client, " later", 6, 0), 6);
        CHECK_INT(take(upstream, text, 11), 11);
        CHECK_STR(text, "early later");
        take_established();
        end();
}

static void test_first_words(void) {
        char text[8] = {};

        /* Nobody sends anything more, and either side may become ready first. */
        for (unsigned i = 0; i < 50; i++) {
                begin("hello");
                CHECK_INT(take(upstream, text, 5), 5);
                take_established();
                end();
                begin("");
                take_established();
                end();
        }
}

static void test_half_close(void) {
        static char data[1 << 20];
        char text[16] = {};

        begin("");
        take_established();
        CHECK_INT(send(client, "question", 8, 0), 8);
        CHECK_INT(shutdown(client, SHUT_WR), 0);
        CHECK_INT(take(upstream, text, 8), 8);
        CHECK(at_end(upstream));
        CHECK(!over);
        /* The answer comes after the end of the question, and whole. */
        size_t sent = 0, got = 0;
        for (unsigned i = 0; i < 100000 && got < sizeof(data); i++) {
                ssize_t n = sent < sizeof(data) ? send(upstream, data + sent, sizeof(data) - sent, MSG_NOSIGNAL) : 0;
                if (n > 0)
                        sent += (size_t) n;
                turn();
                n = recv(client, data, sizeof(data), 0);
                if (n > 0)
                        got += (size_t) n;
        }
        CHECK_INT(got, sizeof(data));
        CHECK_INT(shutdown(upstream, SHUT_WR), 0);
        CHECK(at_end(client));
        turn();
        CHECK(over);
        CHECK_INT(over_error, 0);
        end();
}

static void test_half_close_mirrored(void) {
        char text[16] = {};

        begin("");
        take_established();
        CHECK_INT(send(upstream, "banner", 6, 0), 6);
        CHECK_INT(shutdown(upstream, SHUT_WR), 0);
        CHECK_INT(take(client, text, 6), 6);
        CHECK(at_end(client));
        CHECK_INT(send(client, "still here", 10, 0), 10);
        CHECK_INT(take(upstream, text, 10), 10);
        CHECK(!over);
        CHECK_INT(shutdown(client, SHUT_WR), 0);
        CHECK(at_end(upstream));
        turn();
        CHECK(over);
        CHECK_INT(over_error, 0);
        end();
}

static void reset(int *fd) {
        struct linger l = {.l_onoff = 1};
        CHECK_INT(setsockopt(*fd, SOL_SOCKET, SO_LINGER, &l, sizeof(l)), 0);
        *fd = safe_close(*fd);
}

static void expect_reset(int fd) {
        char byte;

        for (unsigned i = 0; i < 200 && !over; i++)
                turn();
        CHECK(over);
        CHECK(over_error < 0);
        struct pollfd p = {.fd = fd, .events = POLLIN};
        CHECK_INT(poll(&p, 1, 5000), 1);
        CHECK_INT(recv(fd, &byte, 1, 0), -1);
        CHECK_INT(errno, ECONNRESET);
}

static void test_reset(void) {
        begin("");
        take_established();
        reset(&client);
        expect_reset(upstream);
        end();

        begin("");
        take_established();
        reset(&upstream);
        expect_reset(client);
        end();
}

static void pattern(char *data, size_t size, size_t offset, unsigned salt) {
        for (size_t i = 0; i < size; i++)
                data[i] = (char) ((offset + i) * 31 + (offset + i) / 4099 + salt);
}

typedef struct Stream {
        int from, to;
        unsigned salt;
        size_t sent, got;
        bool whole;
} Stream;

static void advance(Stream *s) {
        static char data[1 << 16], expected[1 << 16];

        if (s->sent < BULK) {
                size_t n = MIN(sizeof(data), BULK - s->sent);
                pattern(data, n, s->sent, s->salt);
                ssize_t k = send(s->from, data, n, MSG_NOSIGNAL);
                if (k > 0)
                        s->sent += (size_t) k;
                if (s->sent == BULK)
                        (void) shutdown(s->from, SHUT_WR);
        }
        ssize_t k = recv(s->to, data, sizeof(data), 0);
        if (k > 0) {
                pattern(expected, (size_t) k, s->got, s->salt);
                s->whole = s->whole && memcmp(data, expected, (size_t) k) == 0;
                s->got += (size_t) k;
        }
}

static void test_bulk(void) {
        begin("");
        take_established();
        Stream up = {client, upstream, 1, 0, 0, true}, down = {upstream, client, 2, 0, 0, true};
        usec_t start = now_monotonic();
        while (!over && now_monotonic() - start < 25 * USEC_PER_SEC) {
                advance(&up);
                advance(&down);
                (void) sd_event_run(broker.event, 0);
                (void) sd_event_run(broker.event, 0);
        }
        for (unsigned i = 0; i < 10000; i++) {
                advance(&up);
                advance(&down);
        }
        CHECK(over);
        CHECK_INT(over_error, 0);
        CHECK_INT(up.got, BULK);
        CHECK_INT(down.got, BULK);
        CHECK(up.whole && down.whole);
        end();
}

static size_t fill_up(int fd) {
        static char data[1 << 16];
        size_t sent = 0;

        for (unsigned still = 0; still < 20;) {
                ssize_t n = send(fd, data, sizeof(data), MSG_NOSIGNAL);
                if (n > 0) {
                        sent += (size_t) n;
                        still = 0;
                } else
                        still++;
                turn();
                CHECK(sent < (256U << 20));
        }
        return sent;
}

static void test_back_pressure(void) {
        static char data[1 << 20];
        char text[8] = {};

        begin("");
        take_established();
        /* Nobody reads upstream: the client is stopped, and costs no processor time, while the other direction flows. */
        size_t sent = fill_up(client), got = 0;
        struct rusage before, after;
        CHECK_INT(getrusage(RUSAGE_SELF, &before), 0);
        for (unsigned i = 0; i < 30; i++)
                (void) sd_event_run(broker.event, 10 * USEC_PER_MSEC);
        CHECK_INT(getrusage(RUSAGE_SELF, &after), 0);
        CHECK((after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 + after.ru_utime.tv_usec - before.ru_utime.tv_usec <
              100000);
        CHECK_INT(send(upstream, "hello", 5, 0), 5);
        CHECK_INT(take(client, text, 5), 5);
        for (unsigned i = 0; i < 100000 && got < sent; i++) {
                ssize_t n = recv(upstream, data, sizeof(data), 0);
                if (n > 0)
                        got += (size_t) n;
                turn();
        }
        CHECK_INT(got, sent);
        CHECK(!over);
        end();
}

static void test_hangup_behind_pressure(void) {
        static char data[1 << 20];

        begin("");
        take_established();
        /* The upstream ended its side, and reads nothing; the client sends, ends too and is gone: only the rest of its bytes is
         * left. */
        CHECK_INT(shutdown(upstream, SHUT_WR), 0);
        CHECK(at_end(client));
        size_t sent = fill_up(client), got = 0;
        client = safe_close(client);
        struct rusage before, after;
        CHECK_INT(getrusage(RUSAGE_SELF, &before), 0);
        for (unsigned i = 0; i < 30; i++)
                (void) sd_event_run(broker.event, 10 * USEC_PER_MSEC);
        CHECK_INT(getrusage(RUSAGE_SELF, &after), 0);
        CHECK((after.ru_utime.tv_sec - before.ru_utime.tv_sec) * 1000000 + after.ru_utime.tv_usec - before.ru_utime.tv_usec <
              100000);
        CHECK(!over);
        for (unsigned i = 0; i < 1000000; i++) {
                ssize_t n = recv(upstream, data, sizeof(data), 0);
                if (n == 0)
                        break;
                if (n > 0)
                        got += (size_t) n;
                if (!over)
                        (void) sd_event_run(broker.event, USEC_PER_MSEC);
        }
        CHECK_INT(got, sent);
        CHECK(over);
        end();
}

static void test_without_pipes(void) {
        struct rlimit old, none;
        char text[16] = {};

        begin("");
        take_established();
        pipe_pool_done(&broker.pipes);
        int lowest = dup(client);
        CHECK_INT(getrlimit(RLIMIT_NOFILE, &old), 0);
        none = (struct rlimit){.rlim_cur = (rlim_t) lowest, .rlim_max = old.rlim_max};
        close(lowest);
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &none), 0);
        CHECK_INT(send(client, "question", 8, 0), 8);
        size_t n = take(upstream, text, 8);
        CHECK_INT(setrlimit(RLIMIT_NOFILE, &old), 0);
        CHECK_INT(n, 8);
        CHECK_STR(text, "question");
        CHECK_INT(broker.pipes.n, 0);
        end();
}

static void test_idle_holds_no_pipe(void) {
        char text[8] = {};

        begin("");
        take_established();
        CHECK_INT(send(client, "x", 1, 0), 1);
        CHECK_INT(take(upstream, text, 1), 1);
        turn();
        CHECK_INT(broker.pipes.n, 1);
        end();
}

int main(void) {
        RUN(test_early_bytes, "C149: bytes behind the CONNECT head go into the tunnel unchanged, and first");
        RUN(test_first_words, "C149: the 200 and the early bytes leave without waiting for more");
        RUN(test_half_close, "C155: an answer that comes after the client's end of file arrives whole");
        RUN(test_half_close_mirrored, "C155: the same the other way round");
        RUN(test_reset, "C155: a reset is passed on as one");
        RUN(test_bulk, "C155: 64 MiB both ways at once arrive as they were sent");
        RUN(test_back_pressure, "C157: a side that does not read stops the other one, at no cost, and not the other direction");
        RUN(test_hangup_behind_pressure, "C155: the last bytes of a client that is gone are delivered, without spinning");
        RUN(test_without_pipes, "a tunnel that gets no pipe copies");
        RUN(test_idle_holds_no_pipe, "an idle tunnel holds no pipe");
        return TEST_END();
}
