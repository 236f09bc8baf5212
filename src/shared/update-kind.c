/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "shared/update-kind.h"

static const char *const kinds[_UPDATE_KIND_MAX] = {
        [UPDATE_READY] = "ready",
        [UPDATE_QUEUED] = "queued",
        [UPDATE_TURN_STARTED] = "turn-started",
        [UPDATE_MESSAGE] = "message",
        [UPDATE_THOUGHT] = "thought",
        [UPDATE_TOOL] = "tool",
        [UPDATE_PLAN] = "plan",
        [UPDATE_QUESTION] = "question",
        [UPDATE_ANSWERED] = "answered",
        [UPDATE_TURN_ENDED] = "turn-ended",
        [UPDATE_MISSED] = "missed",
};

const char *update_kind_to_string(UpdateKind k) {
        return k >= 0 && k < _UPDATE_KIND_MAX ? kinds[k] : NULL;
}

UpdateKind update_kind_from_string(const char *s) {
        for (UpdateKind i = 0; i < _UPDATE_KIND_MAX; i++)
                if (streq(kinds[i], s))
                        return i;
        return _UPDATE_KIND_INVALID;
}
