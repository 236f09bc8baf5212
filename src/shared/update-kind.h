/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What may happen in a conversation with an agent: the kinds of a shim's message "update" and of signal Update, org.errand1(5). */

#include "basic/macro.h"

typedef enum UpdateKind {
        UPDATE_READY,
        UPDATE_QUEUED,
        UPDATE_TURN_STARTED,
        UPDATE_MESSAGE,
        UPDATE_THOUGHT,
        UPDATE_TOOL,
        UPDATE_PLAN,
        UPDATE_QUESTION,
        UPDATE_ANSWERED,
        UPDATE_TURN_ENDED,
        UPDATE_MISSED, /* so many were dropped here */
        _UPDATE_KIND_MAX,
        _UPDATE_KIND_INVALID = -EINVAL, /* of a newer program */
} UpdateKind;

const char *update_kind_to_string(UpdateKind k);
UpdateKind update_kind_from_string(const char *s);
