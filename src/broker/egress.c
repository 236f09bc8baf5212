/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>

#include "basic/text.h"
#include "broker/broker.h"
#include "broker/control.h"
#include "broker/egress.h"
#include "broker/grants.h"
#include "broker/keep.h"
#include "broker/request.h"

/* The allowlist, then a grant, which is used by this. _ANSWER_MAX: go on. */
static Answer use_grant(Connection *c, const Host *host, uint16_t port) {
        Broker *b = c->broker;
        bool in_spool = false;
        GrantUse use;

        if (host_patterns_match(b->setup->allow, b->setup->n_allow, host))
                return _ANSWER_MAX;
        if (!grants_find(b->grants, host, grants_now(), &use)) {
                control_note_refused(b->control, host->name, port);
                return ANSWER_NOT_GRANTED;
        }
        /* Written down before it is used: a broker that is restarted must not find it unused. */
        if (use.duration == GRANT_ONCE) {
                grants_spend(b->grants, &use, host->name);
                keep_save(b->keep, b);
                int r = receipts_grant_used(b->receipts, use.id, host->name);
                if (r < 0 && r != -EBADF) { /* -EBADF: without a spool nothing outlives this broker */
                        grants_spare(b->grants);
                        keep_save(b->keep, b);
                        connection_log(c, LOG_LEVEL_WARNING, "the use of grant %s could not be recorded: %s", use.id, strerror(-r));
                        return ANSWER_GRANT_NOT_RECORDED;
                }
                in_spool = r >= 0;
        }
        grants_use(b->grants, &use);
        if (use.first)
                keep_save(b->keep, b);
        connection_log(c, LOG_LEVEL_INFO, "allowed by grant %s (%s)", use.id, grant_duration_to_string(use.duration));
        if (use.first)
                control_note_grant_used(b->control, use.id, host->name, in_spool);
        return _ANSWER_MAX;
}

/* Everything that can be said before a lookup. A literal is judged before the grants, because no grant opens an internal address. */
bool egress_judge(Connection *c, const Host *host, uint16_t port) {
        Broker *b = c->broker;
        _cleanup_free_ char *body = NULL;
        const char *detail = NULL;
        Answer a = _ANSWER_MAX;
        Address address;

        if (!setup_port_allowed(b->setup, port))
                a = ANSWER_PORT;
        else if (host->kind != HOST_NAME) {
                int r = address_parse(host->name, &address);
                detail = r < 0 ? "not an address" : address_judge(&address);
                if (r < 0 || (detail && !setup_internal_allowed(b->setup, &address)))
                        a = ANSWER_NOT_PUBLIC;
        }
        if (a == _ANSWER_MAX) {
                detail = NULL;
                a = use_grant(c, host, port);
        }
        if (a == _ANSWER_MAX)
                return true;
        if (a == ANSWER_NOT_GRANTED)
                body = answer_not_granted(host, b->setup->session);
        request_refuse(c, a, body, detail);
        return false;
}

static void on_dialled(void *userdata, DialResult result, int fd, const Address *address, const char *detail) {
        Connection *c = userdata;
        char text[INET6_ADDRSTRLEN];

        c->dial = NULL;
        if (result != DIAL_CONNECTED) {
                c->hello = client_hello_free(c->hello);
                request_refuse(c, answer_for_dial(result), NULL, detail);
                return;
        }
        connection_log(c, LOG_LEVEL_INFO, "connected to %s", address_format(address, text));
        connection_start_tunnel(c, fd);
}

void egress_open_tunnel(Connection *c, const Host *host, uint16_t port) {
        if (!egress_judge(c, host, port))
                return;
        int r = client_hello_new(host, c->broker->setup->enforce_server_name, &c->hello);
        if (r >= 0)
                r = dial_start(c->broker, host, port, on_dialled, c, &c->dial);
        if (r < 0) {
                c->hello = client_hello_free(c->hello);
                request_refuse(c, ANSWER_INTERNAL, NULL, strerror(-r));
        } else
                connection_wait_for_dial(c);
}
