/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The messages of SOCKS5 (RFC 1928) with a user and a password (RFC 1929), read strictly and without side effects. */

#include "broker/hosts.h"

#define SOCKS4_VERSION 4U
#define SOCKS5_VERSION 5U
#define SOCKS5_METHOD_PASSWORD 2U
#define SOCKS5_METHOD_NONE 0xffU /* "no acceptable methods" */
#define SOCKS5_REPLY_SIZE 10U

typedef enum Socks5Reply {
        SOCKS5_SUCCEEDED,
        SOCKS5_FAILURE,
        SOCKS5_NOT_ALLOWED,
        SOCKS5_NETWORK_UNREACHABLE,
        SOCKS5_HOST_UNREACHABLE,
        SOCKS5_REFUSED,
        SOCKS5_TTL_EXPIRED,
        SOCKS5_COMMAND,
        SOCKS5_ADDRESS_TYPE,
} Socks5Reply;

/* Each reads one message at the beginning of data[0…size): the bytes that it takes, 0 when more are needed, or -EBADMSG with a static
 * phrase. What is missing is asked for only while what is there is right. */

/* What the client offers: whether a password is among it. */
ssize_t socks5_parse_greeting(const char *data, size_t size, bool *ret_password, const char **ret_problem);

/* Both point into data. */
ssize_t socks5_parse_credential(const char *data, size_t size, Slice *ret_user, Slice *ret_password, const char **ret_problem);

/* A CONNECT. -EOPNOTSUPP for another command, -EAFNOSUPPORT for an unknown type of address, -EBADMSG also for a name that is no host by
 * hosts.h, -ERANGE for port 0; each with a phrase. */
ssize_t socks5_parse_request(const char *data, size_t size, Host *ret_host, uint16_t *ret_port, const char **ret_problem);

/* With the address 0.0.0.0:0: which one of the host's goes out is nothing that a session needs to know. */
void socks5_format_reply(Socks5Reply reply, char buffer[SOCKS5_REPLY_SIZE]);
