/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "errand/sessions.h"
#include "errand/verbs.h"

#define SHOWN_RECEIPTS 20U

int verb_threads_list(const Request *q) {
        return sessions_list(q, true);
}

int verb_threads_show(const Request *q) {
        return session_show(q, SHOWN_RECEIPTS);
}

int verb_threads_rm(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        int code, r;

        code = connection_open(q, CONNECT_START_STATE | CONNECT_ASKS, &c);
        if (code != EXIT_OK)
                return code;
        for (size_t i = 0; i < q->n_operands; i++) {
                r = session_call(c, q->operands[i], "Collect", "Failed to remove its record", NULL, NULL);
                if (code == EXIT_OK)
                        code = r;
        }
        return code;
}
