/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/session-state.h"

#define TO(state) (1U << (state))

static const struct {
        const char *name;
        unsigned moves;
} states[_SESSION_STATE_MAX] = {
        [SESSION_CREATED] = {"created", TO(SESSION_STARTING) | TO(SESSION_COLLECTED)},
        [SESSION_STARTING] = {"starting", TO(SESSION_RUNNING) | TO(SESSION_FAILED)},
        [SESSION_RUNNING] = {"running", TO(SESSION_STOPPING) | TO(SESSION_STOPPED) | TO(SESSION_FAILED)},
        [SESSION_STOPPING] = {"stopping", TO(SESSION_STOPPED) | TO(SESSION_FAILED)},
        [SESSION_STOPPED] = {"stopped", TO(SESSION_STARTING) | TO(SESSION_COLLECTED)},
        [SESSION_FAILED] = {"failed", TO(SESSION_STARTING) | TO(SESSION_COLLECTED)},
        [SESSION_COLLECTED] = {"collected", 0},
};

static bool valid(SessionState s) {
        return s >= 0 && s < _SESSION_STATE_MAX;
}

const char *session_state_to_string(SessionState s) {
        return valid(s) ? states[s].name : NULL;
}

SessionState session_state_from_string(const char *s) {
        for (size_t i = 0; i < ELEMENTSOF(states); i++)
                if (streq(states[i].name, s))
                        return (SessionState) i;
        return _SESSION_STATE_INVALID;
}

bool session_state_may_move(SessionState from, SessionState to) {
        return valid(from) && valid(to) && (states[from].moves & TO(to));
}

bool session_state_live(SessionState s) {
        return s == SESSION_STARTING || s == SESSION_RUNNING || s == SESSION_STOPPING;
}
