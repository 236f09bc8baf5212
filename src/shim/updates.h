/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What errandd is told of a conversation: {"v":1,"type":"update","kind":K,"fields":{…}}, the fields flat. All texts are clean when they come here. */

#include "basic/json-writer.h"
#include "basic/macro.h"
#include "shared/update-kind.h"

typedef struct Updates {
        /* Finishes w, a message; keep: a conversation's state hangs on it, so that it is the last to be dropped. */
        void (*send)(JsonWriter *w, bool keep, void *userdata);
        void *userdata;
} Updates;

/* Opens a message up to its fields; json_close_object() ends these, and message_send() or message_close() the message. */
void updates_open(JsonWriter *w, UpdateKind kind);

void updates_ready(const Updates *u, const char *agent, const char *version);
/* QUEUED or TURN_STARTED. */
void updates_prompt(const Updates *u, UpdateKind kind, uint64_t number);
/* MESSAGE or THOUGHT. */
void updates_text(const Updates *u, UpdateKind kind, const char *text);
void updates_tool(const Updates *u, const char *id, const char *title, const char *sort, const char *status);
void updates_plan(const Updates *u, const char *text);
void updates_question(const Updates *u, uint64_t number, const char *title, const char *options);
/* option "" has a reason. */
void updates_answered(const Updates *u, uint64_t number, const char *option, const char *reason);
/* text: why, for "error", else NULL. */
void updates_turn_ended(const Updates *u, uint64_t number, const char *reason, const char *text);
