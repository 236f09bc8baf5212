/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/egress-notice.h"
#include "errandd/host-text.h"

char *egress_notice(const char *host) {
        char normal[HOST_TEXT_MAX + 1], *text;

        if (host_text_normalize(host, 0, normal, NULL) >= 0 && streq(normal, host)) {
                if (asprintf(&text,
                             "this session tried to reach `%s`, which is not on the egress allowlist or granted. `!grant %s` lets its next connection "
                             "through, and `!grant %s 10m` or `!grant %s always` lets it through for longer", host, host, host, host) < 0)
                        return NULL;
                return text;
        }
        _cleanup_free_ char *clean = string_escape_control(host);
        if (!clean || asprintf(&text, "this session tried to reach \"%.255s\", which is not on the egress allowlist or granted", clean) < 0)
                return NULL;
        return text;
}
