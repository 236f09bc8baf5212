/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The broker's one answer to a hand-over. bailey loads no JSON library: this reads one flat object of strings, numbers and
 * words, and takes nothing else for an answer. */

#include "basic/macro.h"

typedef enum ReplyType {
        REPLY_READY, /* {"v":1,"type":"ready"} */
        REPLY_ERROR, /* {"v":1,"type":"error","text":"…"} */
        _REPLY_TYPE_MAX,
        _REPLY_TYPE_INVALID = -EINVAL,
} ReplyType;

#define REPLY_TEXT_MAX 400U

/* ret_text is set for REPLY_ERROR: cut, not escaped. _REPLY_TYPE_INVALID for anything that is not such an object. */
ReplyType reply_parse(const char *data, size_t size, char ret_text[REPLY_TEXT_MAX + 1]);
