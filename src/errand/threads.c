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

static int remove_one(Connection *c, const char *id, _unused_ const Request *q) {
        return session_call(c, id, "Collect", "Failed to remove its record", NULL, NULL);
}

int verb_threads_rm(const Request *q) {
        return sessions_act(q, remove_one);
}
