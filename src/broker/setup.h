/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a supervisor gives a broker once, before anything else: read from the `setup` message and its sealed memfd of keys.
 *
 *   {"v":1,"type":"setup","serial":1,"session":"s1","token":"<64 hex>","fds":["keys","spool","ca:anthropic"],
 *    "egress":{"allow":["api.example.com","*.example.org"],"allowInternal":["10.0.0.5"] or true,"ports":[443],"serverName":"log"|"enforce"},
 *    "budgets":{"requests":{"limit":100,"spent":3},"bytes":…,"tokens":…},
 *    "providers":{"anthropic":{"baseUrl":"https://api.example.com/v1","placement":"bearer"|"x-api-key"|"either"|"basic"|"header",
 *                              "credentialName":"ANTHROPIC_API_KEY","header":"PRIVATE-TOKEN","user":"x-access-token",
 *                              "capabilities":[{"method":"POST","path":"/v1/messages"}] or "*","strictCapabilities":true,"budgets":{…}}}}
 *
 * keys (sealed memfd): {"credential":"errand-session-…","providers":{"anthropic":{"key":"…","standIn":"errand-session-…"}}}
 *
 * "egress" left out means allow ["*"], ports [443]; an egress object without "allow" allows no host. allowInternal takes no metadata address of
 * a cloud. "spool" is a regular file open for appending, "ca:ID" a readable one with PEM certificates trusted for that provider beside the
 * system's. "header" belongs to the placement of that name and "user" to "basic"; capabilities and budgets may be left out, and a budget of 0 is none.
 * serverName left out is "log". Unknown members are refused by name. A base URL is https://HOST[:PORT][/path]; what else is malformed is refused, while http:// is
 * taken and, but to a loopback literal of allowInternal, gets the provider a refusal. */

#include "basic/macro.h" /* before GLib, which defines MIN and MAX anew */

#include <json-glib/json-glib.h>

#include "basic/secret.h"
#include "broker/budget.h"
#include "broker/hosts.h"
#include "shared/addresses.h"
#include "shared/capability.h"
#include "shared/message.h"
#include "shared/placement.h"

typedef struct Provider {
        char *id;              /* [a-z0-9-]{1,32} */
        char *credential_name; /* name of the variable, for receipts */
        bool tls;
        Host host;
        uint16_t port;
        char *base_path;       /* "" or "/v1": without a trailing slash */
        char *refusal;         /* why it will not be called (S083): answered with 502; NULL = fine */
        Placement placement;
        char *header;          /* of PLACEMENT_HEADER */
        Secret *basic;         /* of PLACEMENT_BASIC: what follows "Basic ", key and all, without the padding at its end: it may be quoted so */
        Capability *capabilities;
        size_t n_capabilities;
        bool every_call;       /* capabilities is "*": nothing is logged of them */
        bool strict;           /* a call that they do not name is refused */
        Budget *budget;        /* NULL = none */
        Secret *key;
        Secret *stand_in;
        char *ca_pem;          /* NULL = system trust alone */
        size_t ca_pem_size;
        void *tls_credentials; /* of tls.c, loaded at the first call: the system's trust store costs 4 MiB */
        void (*tls_credentials_free)(void *); /* NULL while there are none */
} Provider;

typedef struct Setup {
        char *session;    /* [a-z0-9]{1,28} */
        Secret *token;
        Secret *credential;
        HostPattern *allow;
        size_t n_allow;
        bool allow_internal_any; /* every internal literal but metadata and unspecified addresses; the list is empty then */
        Address *allow_internal;
        size_t n_allow_internal;
        uint16_t *ports;
        size_t n_ports;
        bool enforce_server_name; /* a tunnel whose TLS asks for another host than it was opened for is closed, not only logged */
        Budget *budget;           /* of all calls; NULL = none */
        Provider *providers;
        size_t n_providers;
        int spool; /* fd, -EBADF = none: receipts are then not kept, and a line says so */
} Setup;

Setup *setup_free(Setup *s);
DEFINE_CLEANUP(Setup *, setup_free);

/* -EBADMSG with *ret_problem, a sentence that names the member (to free; never holds a secret). Takes the fds it uses out of m. */
int setup_parse(Message *m, Setup **ret, char **ret_problem);

bool setup_port_allowed(const Setup *s, uint16_t port);
bool setup_internal_allowed(const Setup *s, const Address *a);
const Provider *setup_find_provider(const Setup *s, Slice id);
