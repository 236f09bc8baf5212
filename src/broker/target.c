/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/target.h"

#define SCHEME "http://"
#define ROUTE_PREFIX "/provider/"

/* What follows "http://". */
static int parse_absolute(Slice rest, Target *t, const char **ret_problem) {
        Slice authority = {.data = rest.data};

        while (authority.size < rest.size && !memchr("/?#", rest.data[authority.size], 3))
                authority.size++;
        Slice path = {rest.data + authority.size, rest.size - authority.size};
        if (memchr(path.data, '#', path.size)) {
                *ret_problem = "a target has no fragment";
                return -EBADMSG;
        }
        if (path.size == 0)
                path = (Slice) {"/", 1};
        else if (path.data[0] == '?') {
                *ret_problem = "the target has a query but no path";
                return -EBADMSG;
        }
        int r = host_parse_authority(authority, 80, &t->host, &t->port, ret_problem);
        if (r >= 0)
                t->path = path;
        return r;
}

int target_parse(const Http1Head *head, Target *ret, const char **ret_problem) {
        Slice target = head->target;
        int r = 0;

        *ret = (Target) {.form = TARGET_OTHER};
        if (slice_is(head->method, "CONNECT")) {
                ret->form = TARGET_CONNECT;
                r = host_parse_authority(target, 0, &ret->host, &ret->port, ret_problem);
        } else if (target.data[0] == '/') {
                ret->form = TARGET_ORIGIN;
                ret->path = target;
        } else if (target.size >= STRLEN(SCHEME) && ascii_case_equal(target.data, STRLEN(SCHEME), SCHEME)) {
                ret->form = TARGET_ABSOLUTE;
                r = parse_absolute((Slice) {target.data + STRLEN(SCHEME), target.size - STRLEN(SCHEME)}, ret, ret_problem);
        }
        if (r == -ERANGE)
                *ret_problem = "the port is not one of 1 to 65535";
        return r;
}

bool target_host_matches(const Target *t, const Http1Head *head) {
        size_t n = http1_count(head, "Host");
        uint16_t port;
        Host host;

        if (n == 0)
                return head->minor == 0;
        if (n != 1 || host_parse_authority(http1_find(head, "Host")->value, t->port, &host, &port, NULL) < 0)
                return false;
        return host.kind == t->host.kind && streq(host.name, t->host.name) && port == t->port;
}

bool target_is_route(const Target *t) {
        return t->path.size >= STRLEN(ROUTE_PREFIX) && memcmp(t->path.data, ROUTE_PREFIX, STRLEN(ROUTE_PREFIX)) == 0;
}
