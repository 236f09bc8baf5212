/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "broker/refusal-log.h"

void refusal_log_sum_up(RefusalLog *l, const char *session) {
        if (l->left_out > 0)
                log_warning("session %s: %llu more refusals, without a line of their own", session, (unsigned long long) l->left_out);
        l->left_out = 0;
}

bool refusal_log_take(RefusalLog *l, const char *session, usec_t now) {
        if (l->since == 0 || now - l->since >= USEC_PER_MINUTE) {
                l->since = now;
                l->n = 0;
        }
        if (l->n >= REFUSAL_LINES_A_MINUTE) {
                l->left_out++;
                return false;
        }
        l->n++;
        refusal_log_sum_up(l, session);
        return true;
}
