/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a supervisor gives a broker once, before anything else: read from the `setup` message and its sealed memfd of keys.
 *
 *   {"v":1,"type":"setup","serial":1,"session":"s1","token":"<64 hex>","fds":["keys","spool","ca:anthropic"],
 *    "egress":{"allow":["api.example.com","*.example.org"],"allowInternal":["10.0.0.5"] or true,"ports":[443]},
 *    "providers":{"anthropic":{"baseUrl":"https://api.example.com/v1","placement":"bearer"|"x-api-key",
 *                              "credentialName":"ANTHROPIC_API_KEY"}}}
 *
 * keys (sealed memfd): {"credential":"errand-session-…","providers":{"anthropic":{"key":"…","standIn":"errand-session-…"}}}
 *
 * "egress" left out means allow ["*"], ports [443]; an egress object without "allow" allows no host. allowInternal takes no metadata address of
 * a cloud. "spool" is a regular file open for appending, "ca:ID" a readable one with PEM certificates trusted for that provider beside the
 * system's. Unknown members are refused by name. A base URL is https://HOST[:PORT][/path]; what else is malformed is refused, while http:// is
 * taken and, but to a loopback literal of allowInternal, gets the provider a refusal. */

#include <json-glib/json-glib.h>

#include "basic/secret.h"
#include "broker/addresses.h"
#include "broker/hosts.h"
#include "shared/message.h"

typedef enum Placement {
        PLACEMENT_BEARER,    /* Authorization: Bearer KEY */
        PLACEMENT_X_API_KEY, /* x-api-key: KEY */
        _PLACEMENT_MAX,
        _PLACEMENT_INVALID = -EINVAL,
} Placement;

const char *placement_to_string(Placement p); /* "bearer", "x-api-key" */
Placement placement_from_string(const char *s);
const char *placement_header(Placement p);    /* "Authorization", "x-api-key": as the 401 names it */

typedef struct Provider {
        char *id;              /* [a-z0-9-]{1,32} */
        char *credential_name; /* name of the variable, for receipts */
        bool tls;
        Host host;
        uint16_t port;
        char *base_path;       /* "" or "/v1": without a trailing slash */
        char *refusal;         /* why it will not be called (S083): answered with 502; NULL = fine */
        Placement placement;
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
