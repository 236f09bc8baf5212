/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bailey/handover.h"
#include "bailey/reply.h"
#include "basic/clock.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/secret.h"
#include "basic/text.h"

#define TOKEN_SIZE 64U

static int listener_new(const RunOptions *options, Failure *f) {
        struct sockaddr_in address = {
                .sin_family = AF_INET,
                .sin_addr = options->listen_address,
                .sin_port = htons(options->listen_port),
        };

        _cleanup_close_ int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return failure_set(f, STAGE_LISTENER, errno, "socket");
        if (bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0)
                return failure_set(f, STAGE_LISTENER, errno, "bind to port %u", options->listen_port);
        if (listen(fd, SOMAXCONN) < 0)
                return failure_set(f, STAGE_LISTENER, errno, "listen");
        return TAKE_FD(fd);
}

/* 64 hex digits, then the end of the file or a newline. */
static int read_token(int fd, char token[TOKEN_SIZE + 1], Failure *f) {
        char buffer[TOKEN_SIZE + 2];

        ssize_t n = read_all(fd, buffer, sizeof(buffer));
        if (n < 0)
                return failure_set(f, STAGE_HANDOVER, (int) n, "reading the token");
        bool valid = n == TOKEN_SIZE || (n == TOKEN_SIZE + 1 && buffer[TOKEN_SIZE] == '\n');
        for (size_t i = 0; valid && i < TOKEN_SIZE; i++) {
                char c = ascii_lower(buffer[i]);
                valid = ascii_digit(c) || (c >= 'a' && c <= 'f');
        }
        if (valid) {
                memcpy(token, buffer, TOKEN_SIZE);
                token[TOKEN_SIZE] = 0;
        }
        secret_wipe(buffer, sizeof(buffer));
        return valid ? 0 : failure_set(f, STAGE_HANDOVER, 0, "the token is not 64 hex digits");
}

static int send_listener(int sock, int listener, const char *token, Failure *f) {
        char message[TOKEN_SIZE + 80];

        /* Written by hand on the stack: hex digits need no escaping, and no copy of the token stays on the heap. */
        int n = snprintf(message, sizeof(message), "{\"v\":1,\"type\":\"listeners\",\"token\":\"%s\",\"fds\":[\"proxy\"]}", token);
        ssize_t r = n < 0 || (size_t) n >= sizeof(message) ? -EMSGSIZE : send_fds(sock, message, (size_t) n, &listener, 1);
        secret_wipe(message, sizeof(message));
        return r < 0 ? failure_set(f, STAGE_HANDOVER, (int) r, "sending to the broker") : 0;
}

static int wait_readable(int fd, usec_t deadline) {
        for (;;) {
                usec_t now = now_monotonic();
                if (now >= deadline)
                        return -ETIMEDOUT;
                struct pollfd p = {.fd = fd, .events = POLLIN};
                int n = poll(&p, 1, (int) ((deadline - now + USEC_PER_MSEC - 1) / USEC_PER_MSEC));
                if (n > 0)
                        return 0;
                if (n < 0 && errno != EINTR)
                        return -errno;
        }
}

static int await_ready(int sock, Failure *f) {
        char data[4096], text[REPLY_TEXT_MAX + 1];
        size_t n_fds;

        int r = wait_readable(sock, now_monotonic() + HANDOVER_TIMEOUT_USEC);
        if (r == -ETIMEDOUT)
                return failure_set(f, STAGE_HANDOVER, -r, "the broker did not answer within 10 seconds");
        if (r < 0)
                return failure_set(f, STAGE_HANDOVER, -r, "waiting for the broker");
        ssize_t n = recv_fds(sock, data, sizeof(data), NULL, 0, &n_fds);
        if (n == 0 || n == -ECONNRESET)
                return failure_set(f, STAGE_HANDOVER, ECONNRESET, "the broker went away without an answer");
        if (n < 0)
                return failure_set(f, STAGE_HANDOVER, (int) n, "reading the broker's answer");

        switch (reply_parse(data, (size_t) n, text)) {
        case REPLY_READY:
                return 0;
        case REPLY_ERROR:
                return failure_set(f, STAGE_HANDOVER, 0, "the broker refused: %s", text);
        default:
                return failure_set(f, STAGE_HANDOVER, EBADMSG, "the broker's answer is not understood");
        }
}

int handover_run(const RunOptions *options, Failure *f) {
        char token[TOKEN_SIZE + 1];

        _cleanup_close_ int listener = listener_new(options, f);
        if (listener < 0)
                return listener;
        int r = read_token(options->broker_token, token, f);
        if (r < 0)
                return r;
        r = send_listener(options->broker_socket, listener, token, f);
        secret_wipe(token, sizeof(token));
        if (r < 0)
                return r;
        return await_ready(options->broker_socket, f);
}
