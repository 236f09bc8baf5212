/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "shared/placement.h"

static const char *const words[_PLACEMENT_MAX] = {
        [PLACEMENT_BEARER] = "bearer", [PLACEMENT_X_API_KEY] = "x-api-key", [PLACEMENT_BASIC] = "basic",
        [PLACEMENT_EITHER] = "either", [PLACEMENT_HEADER] = "header",
};

const char *placement_to_string(Placement p) {
        return p >= 0 && p < _PLACEMENT_MAX ? words[p] : NULL;
}

Placement placement_from_string(const char *s) {
        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                if (streq(words[i], s))
                        return (Placement) i;
        return _PLACEMENT_INVALID;
}

const char *placement_header_problem(const char *name) {
        static const char *const refused[] = {
                "accept-encoding", "connection", "content-encoding", "content-length", "content-type", "expect", "host", "http2-settings",
                "keep-alive", "proxy-authorization", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
        };
        size_t n = strlen(name);

        for (size_t i = 0; i < n; i++)
                /* Without '_': gateways read it as '-', and no request with one in a name is passed on. */
                if (!ascii_alpha(name[i]) && !ascii_digit(name[i]) && !strchr("!#$%&'*+-.^`|~", name[i]))
                        return "is not the name of a header";
        if (n == 0 || n > PLACEMENT_HEADER_MAX)
                return "is not the name of a header";
        for (size_t i = 0; i < ELEMENTSOF(refused); i++)
                if (ascii_case_equal(name, n, refused[i]))
                        return "is a header with a meaning of its own";
        return NULL;
}

const char *placement_user_problem(const char *user) {
        size_t n = strlen(user);

        for (size_t i = 0; i < n; i++)
                if (user[i] <= 0x20 || user[i] >= 0x7f || user[i] == ':')
                        return "is not a user's name for Basic (visible ASCII without a ':')";
        return n == 0 || n > PLACEMENT_USER_MAX ? "is not 1 to 128 bytes long" : NULL;
}
