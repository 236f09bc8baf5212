/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/broker.h"
#include "broker/egress.h"
#include "broker/socks.h"

/* The user of the proxy variables. */
#define USER "errand"

bool socks_begins(char first) {
        return (uint8_t) first == SOCKS5_VERSION || (uint8_t) first == SOCKS4_VERSION;
}

Slice socks_established(void) {
        static char reply[SOCKS5_REPLY_SIZE];

        socks5_format_reply(SOCKS5_SUCCEEDED, reply);
        return (Slice){reply, sizeof(reply)};
}

void socks_refuse(Connection *c, Socks5Reply reply) {
        char buffer[SOCKS5_REPLY_SIZE];

        if (c->step != SOCKS_REQUEST) { /* before there is a request there is nothing to answer it with */
                connection_free(c);
                return;
        }
        socks5_format_reply(reply, buffer);
        (void) connection_send(c, buffer, sizeof(buffer), false);
}

void socks_time_out(Connection *c) {
        connection_log_refusal(c, "refused: the request did not arrive in time");
        connection_free(c);
}

static void take_greeting(Connection *c) {
        const char *problem = NULL;
        bool password = false;

        if ((uint8_t) c->in[0] == SOCKS4_VERSION) {
                connection_log_refusal(c, "refused: SOCKS4 has no place for the session's credential; use socks5h");
                connection_free(c);
                return;
        }
        ssize_t n = socks5_parse_greeting(c->in, c->in_size, &password, &problem);
        if (n == 0)
                connection_read_more(c);
        else if (n < 0) {
                connection_log_refusal(c, "refused: %s", problem);
                connection_free(c);
        } else {
                const uint8_t choice[] = {SOCKS5_VERSION, password ? SOCKS5_METHOD_PASSWORD : SOCKS5_METHOD_NONE};
                c->head_size = (size_t) n;
                c->step = SOCKS_CREDENTIAL;
                if (!password)
                        connection_log_refusal(c, "refused: the client does not offer a user and a password");
                (void) connection_send(c, choice, sizeof(choice), password);
        }
}

/* The password in constant time; that the user is always the same is no secret. */
static bool authorized(const Broker *b, Slice user, Slice password) {
        if (b->closed || !b->basic || !slice_is(user, USER))
                return false;
        return secret_equal(password.data, password.size, secret_data(b->setup->credential), secret_size(b->setup->credential));
}

static void take_credential(Connection *c) {
        uint8_t answer[] = {1, 0}; /* RFC 1929, section 2: a status other than 0 is followed by the close */
        const char *problem = NULL;
        Slice user, password;

        ssize_t n = socks5_parse_credential(c->in, c->in_size, &user, &password, &problem);
        if (n == 0) {
                connection_read_more(c);
                return;
        }
        bool good = n > 0 && authorized(c->broker, user, password);
        if (!good) {
                connection_log_refusal(c, "refused: %s", problem ?: "the credential is not this session's");
                answer[1] = 1;
        }
        c->head_size = n > 0 ? (size_t) n : c->in_size;
        secret_wipe(c->in, c->head_size);
        c->step = SOCKS_REQUEST;
        (void) connection_send(c, answer, sizeof(answer), good);
}

static void take_request(Connection *c) {
        const char *problem = NULL;
        uint16_t port;
        Host host;

        ssize_t n = socks5_parse_request(c->in, c->in_size, &host, &port, &problem);
        if (n == 0) {
                connection_read_more(c);
                return;
        }
        c->head_size = n > 0 ? (size_t) n : c->in_size;
        if (n < 0) {
                connection_log_refusal(c, "refused: %s", problem);
                socks_refuse(c, n == -EOPNOTSUPP ? SOCKS5_COMMAND : n == -EAFNOSUPPORT ? SOCKS5_ADDRESS_TYPE : SOCKS5_FAILURE);
                return;
        }
        bool v6 = host.kind == HOST_IPV6;
        connection_set_subject(c, "SOCKS5 %s%s%s:%u", v6 ? "[" : "", host.name, v6 ? "]" : "", port);
        egress_open_tunnel(c, &host, port);
}

void socks_process(Connection *c) {
        switch (c->step) {
        case SOCKS_GREETING:
                take_greeting(c);
                break;
        case SOCKS_CREDENTIAL:
                take_credential(c);
                break;
        case SOCKS_REQUEST:
                take_request(c);
                break;
        }
}
