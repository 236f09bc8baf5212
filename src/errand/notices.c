/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "errand/notices.h"

#define NOTICES_MAX 20U

int notices_add(Notices *n, const char *text) {
        if (strv_length(n->lines) < NOTICES_MAX)
                return strv_extend(&n->lines, text);
        n->n_left_out++;
        return 0;
}

void notices_show(Notices *n, const char *session) {
        for (char **s = n->lines; s && *s; s++)
                log_info("%s", *s);
        if (n->n_left_out > 0)
                log_info("%zu more of these were left out; errand session show %s counts the refused connections", n->n_left_out, session);
        n->lines = strv_free(n->lines);
        n->n_left_out = 0;
}

/* A name that could be pasted into a shell as it is; what else a session asked for is named, and no more. */
static bool is_exact_host(const char *s) {
        return *s && *s != '-' && s[strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789.-_:")] == 0;
}

const char *refused_text(const char *session, const char *host, uint16_t port, char buffer[static REFUSED_TEXT_MAX]) {
        if (is_exact_host(host))
                (void) snprintf(buffer, REFUSED_TEXT_MAX, "refused: %.255s, port %u; \"errand grant %s %.255s\" lets the next connection through", host, port,
                                session, host);
        else
                (void) snprintf(buffer, REFUSED_TEXT_MAX, "refused: \"%.255s\", port %u", host, port);
        return buffer;
}
