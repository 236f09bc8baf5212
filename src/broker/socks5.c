/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>

#include "broker/socks5.h"

#define CREDENTIAL_VERSION 1U /* RFC 1929, section 2 */
#define COMMAND_CONNECT 1U
#define TYPE_IPV4 1U
#define TYPE_NAME 3U
#define TYPE_IPV6 4U
#define REQUEST_FIXED 4U /* version, command, reserved, type */

static int refuse(const char **ret_problem, const char *problem, int error) {
        if (ret_problem)
                *ret_problem = problem;
        return error;
}

static uint8_t byte_at(const char *data, size_t i) {
        return (uint8_t) data[i];
}

ssize_t socks5_parse_greeting(const char *data, size_t size, bool *ret_password, const char **ret_problem) {
        if (size >= 1 && byte_at(data, 0) != SOCKS5_VERSION)
                return refuse(ret_problem, "the greeting is not of SOCKS5", -EBADMSG);
        if (size >= 2 && byte_at(data, 1) == 0)
                return refuse(ret_problem, "the greeting offers no method", -EBADMSG);
        if (size < 2 || size < 2U + byte_at(data, 1))
                return 0;
        *ret_password = memchr(data + 2, SOCKS5_METHOD_PASSWORD, byte_at(data, 1)) != NULL;
        return 2 + byte_at(data, 1);
}

/* A length and so many bytes, at least one. 0 when more are needed. */
static ssize_t parse_counted(const char *data, size_t size, Slice *ret) {
        if (size == 0)
                return 0;
        if (byte_at(data, 0) == 0)
                return -EBADMSG;
        if (size < 1U + byte_at(data, 0))
                return 0;
        *ret = (Slice){data + 1, byte_at(data, 0)};
        return 1 + byte_at(data, 0);
}

ssize_t socks5_parse_credential(const char *data, size_t size, Slice *ret_user, Slice *ret_password, const char **ret_problem) {
        Slice user, password;

        if (size == 0)
                return 0;
        if (byte_at(data, 0) != CREDENTIAL_VERSION)
                return refuse(ret_problem, "the credential is not of the version that was chosen", -EBADMSG);
        ssize_t n = parse_counted(data + 1, size - 1, &user);
        if (n < 0)
                return refuse(ret_problem, "the user is empty", -EBADMSG);
        if (n == 0)
                return 0;
        size_t at = 1 + (size_t) n;
        ssize_t m = parse_counted(data + at, size - at, &password);
        if (m < 0)
                return refuse(ret_problem, "the password is empty", -EBADMSG);
        if (m == 0)
                return 0;
        *ret_user = user;
        *ret_password = password;
        return (ssize_t) at + m;
}

/* The name as it stands, a literal among them; it brings no port and no brackets of its own. */
static int parse_name(Slice text, Host *ret, const char **ret_problem) {
        char copy[UINT8_MAX + 1];

        if (memchr(text.data, 0, text.size))
                return refuse(ret_problem, "the host holds a NUL byte", -EBADMSG);
        if (memchr(text.data, '[', text.size))
                return refuse(ret_problem, "the host is in brackets", -EBADMSG);
        memcpy(copy, text.data, text.size);
        copy[text.size] = 0;
        return host_parse(copy, ret, ret_problem);
}

static int parse_literal(int family, const char *data, Host *ret, const char **ret_problem) {
        Host host = {.kind = family == AF_INET ? HOST_IPV4 : HOST_IPV6};

        if (!inet_ntop(family, data, host.name, sizeof(host.name)))
                return refuse(ret_problem, "the address cannot be read", -EBADMSG);
        *ret = host;
        return 0;
}

/* The size of the address behind the type: 0 when the byte that says it is not there yet. */
static int address_size(const char *data, size_t size, size_t *ret, const char **ret_problem) {
        switch (byte_at(data, REQUEST_FIXED - 1)) {
        case TYPE_IPV4:
                *ret = sizeof(struct in_addr);
                return 0;
        case TYPE_IPV6:
                *ret = sizeof(struct in6_addr);
                return 0;
        case TYPE_NAME:
                if (size > REQUEST_FIXED && byte_at(data, REQUEST_FIXED) == 0)
                        return refuse(ret_problem, "the host is empty", -EBADMSG);
                *ret = size > REQUEST_FIXED ? 1U + byte_at(data, REQUEST_FIXED) : 0;
                return 0;
        default:
                return refuse(ret_problem, "the type of address is not IPv4, IPv6 or a name", -EAFNOSUPPORT);
        }
}

/* What is wrong in the fixed part, byte by byte as it comes. */
static int check_fixed(const char *data, size_t size, const char **ret_problem) {
        if (size >= 1 && byte_at(data, 0) != SOCKS5_VERSION)
                return refuse(ret_problem, "the request is not of SOCKS5", -EBADMSG);
        if (size >= 2 && byte_at(data, 1) != COMMAND_CONNECT)
                return refuse(ret_problem, "only CONNECT can be asked for", -EOPNOTSUPP);
        if (size >= 3 && byte_at(data, 2) != 0)
                return refuse(ret_problem, "the reserved byte of the request is not 0", -EBADMSG);
        return 0;
}

ssize_t socks5_parse_request(const char *data, size_t size, Host *ret_host, uint16_t *ret_port, const char **ret_problem) {
        size_t n = 0;
        Host host;

        int r = check_fixed(data, size, ret_problem);
        if (r < 0)
                return r;
        if (size < REQUEST_FIXED)
                return 0;
        r = address_size(data, size, &n, ret_problem);
        if (r < 0)
                return r;
        if (n == 0 || size < REQUEST_FIXED + n + 2)
                return 0;

        const char *address = data + REQUEST_FIXED;
        uint16_t port = (uint16_t) (byte_at(address, n) << 8 | byte_at(address, n + 1));
        switch (byte_at(data, REQUEST_FIXED - 1)) {
        case TYPE_NAME:
                r = parse_name((Slice){address + 1, n - 1}, &host, ret_problem);
                break;
        case TYPE_IPV4:
                r = parse_literal(AF_INET, address, &host, ret_problem);
                break;
        default:
                r = parse_literal(AF_INET6, address, &host, ret_problem);
                break;
        }
        if (r < 0)
                return r;
        if (port == 0)
                return refuse(ret_problem, "the port is not one of 1 to 65535", -ERANGE);
        *ret_host = host;
        *ret_port = port;
        return (ssize_t) (REQUEST_FIXED + n + 2);
}

void socks5_format_reply(Socks5Reply reply, char buffer[SOCKS5_REPLY_SIZE]) {
        memset(buffer, 0, SOCKS5_REPLY_SIZE);
        buffer[0] = (char) SOCKS5_VERSION;
        buffer[1] = (char) reply;
        buffer[3] = (char) TYPE_IPV4;
}
