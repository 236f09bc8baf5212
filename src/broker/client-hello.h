/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the first message of a tunnel asks for: the server name of a TLS client (RFC 6066, section 3; RFC 8446, section 4.1.2), read strictly and from
 * however many segments and records it comes in. Pure, but for the memory it collects in.
 *
 * It says which name the first ClientHello holds, and no more: a name that is encrypted (ECH), and one in a second ClientHello that a server
 * asked for, are not seen. */

#include "broker/hosts.h"

#define CLIENT_HELLO_MAX (8U * 1024U) /* bytes on the wire; with post-quantum shares, tickets and padding they have 2 to 4 KiB */

typedef enum ClientHelloFinding {
        CLIENT_HELLO_MORE,      /* cannot be said yet */
        CLIENT_HELLO_SAME,      /* the host, or no name where the host is an address, which has none */
        CLIENT_HELLO_OTHER,     /* another name */
        CLIENT_HELLO_NONE,      /* no name */
        CLIENT_HELLO_SSH,       /* the beginning of SSH, which names no host */
        CLIENT_HELLO_NOT_TLS,
        CLIENT_HELLO_MALFORMED, /* begins as TLS does and is none, or is too large */
        _CLIENT_HELLO_FINDING_MAX,
        _CLIENT_HELLO_FINDING_INVALID = -EINVAL,
} ClientHelloFinding;

/* "asks for another host", …: completes "its TLS …" or stands alone; not for MORE. */
const char *client_hello_words(ClientHelloFinding finding);

typedef struct ClientHello {
        Host host;                          /* that it is compared with */
        bool enforce;                       /* for the caller: nothing is passed on before it is SAME or SSH */
        char *data;                         /* what has come so far */
        size_t size, room;
        char name[HOST_NAME_MAX_BYTES + 1]; /* with OTHER: what it asked for, when that is a host */
} ClientHello;

int client_hello_new(const Host *host, bool enforce, ClientHello **ret);
ClientHello *client_hello_free(ClientHello *h);
DEFINE_CLEANUP(ClientHello *, client_hello_free);

/* Takes all of data; CLIENT_HELLO_MORE until it is decided, a negative errno when out of memory. After a decision it is not to be called again. */
int client_hello_feed(ClientHello *h, const char *data, size_t size);
