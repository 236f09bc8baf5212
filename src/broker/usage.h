/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Counts the tokens that a provider's answer names as it passes, in JSON or in an event stream of JSON; keeps numbers alone. Pure.
 *
 * Read are the numbers of the object "usage" at the top of a text, or in its "message" or "response", as the Anthropic messages API
 * (input_tokens, output_tokens, cache_creation_input_tokens, cache_read_input_tokens; message_start and message_delta of a stream) and the OpenAI
 * APIs (prompt_tokens, completion_tokens, total_tokens; input_tokens, output_tokens, total_tokens; the last piece of a stream) write them. Of a number
 * that comes several times the largest counts, since streams repeat what they have counted so far. Anything deeper is what a model or a tool
 * wrote. What is not JSON counts nothing. */

#include "basic/macro.h"

#define USAGE_NAME_MAX 31U

typedef enum UsageField {
        USAGE_INPUT,
        USAGE_OUTPUT,
        USAGE_CACHE_CREATION,
        USAGE_CACHE_READ,
        USAGE_PROMPT,
        USAGE_COMPLETION,
        USAGE_TOTAL,
        _USAGE_FIELD_MAX,
} UsageField;

typedef struct Usage {
        bool events;               /* an event stream */
        bool in_data;              /* of which this line is data */
        bool line_begun;
        char line[8];              /* how the line begins, until it is known what it is */
        size_t line_size;
        unsigned depth;            /* of objects and lists */
        unsigned usage_depth;      /* of the object "usage", 0 = not in one */
        bool in_string, escaped;
        bool expect_name;          /* the next text in an object is a member's name */
        bool parent;               /* the first level's member is "message" or "response" */
        bool broken;               /* not JSON, until the text ends */
        char name[USAGE_NAME_MAX + 1];
        size_t name_size;          /* USAGE_NAME_MAX + 1: longer than any that matters */
        bool lists[3];             /* whether what was opened at depth 1 and 2 is a list */
        uint64_t number;
        bool in_number;
        uint64_t most[_USAGE_FIELD_MAX];
} Usage;

void usage_init(Usage *u, bool events);
void usage_feed(Usage *u, const char *data, size_t size);

/* What was counted so far. */
uint64_t usage_tokens(const Usage *u);
