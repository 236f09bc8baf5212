/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/macro.h" /* before GLib, which defines MIN and MAX anew */
#include "shared/message.h"
#include "shim/updates.h"

void updates_open(JsonWriter *w, UpdateKind kind) {
        message_open(w, "update");
        json_add_string(w, "kind", update_kind_to_string(kind));
        json_open_object(w, "fields");
}

static void finish(const Updates *u, JsonWriter *w, bool keep) {
        json_close_object(w);
        u->send(w, keep, u->userdata);
        json_writer_done(w);
}

void updates_ready(const Updates *u, const char *agent, const char *version) {
        JsonWriter w = {};

        updates_open(&w, UPDATE_READY);
        json_add_string(&w, "agent", agent);
        json_add_string(&w, "version", version);
        finish(u, &w, true);
}

void updates_prompt(const Updates *u, UpdateKind kind, uint64_t number) {
        JsonWriter w = {};

        updates_open(&w, kind);
        json_add_u64(&w, "prompt", number);
        finish(u, &w, true);
}

void updates_text(const Updates *u, UpdateKind kind, const char *text) {
        JsonWriter w = {};

        updates_open(&w, kind);
        json_add_string(&w, "text", text);
        finish(u, &w, false);
}

void updates_tool(const Updates *u, const char *id, const char *title, const char *sort, const char *status) {
        JsonWriter w = {};

        updates_open(&w, UPDATE_TOOL);
        json_add_string(&w, "id", id);
        json_add_string(&w, "title", title);
        json_add_string(&w, "kind", sort);
        json_add_string(&w, "status", status);
        finish(u, &w, false);
}

void updates_plan(const Updates *u, const char *text) {
        JsonWriter w = {};

        updates_open(&w, UPDATE_PLAN);
        json_add_string(&w, "text", text);
        finish(u, &w, false);
}

void updates_question(const Updates *u, uint64_t number, const char *title, const char *options) {
        JsonWriter w = {};

        updates_open(&w, UPDATE_QUESTION);
        json_add_u64(&w, "question", number);
        json_add_string(&w, "title", title);
        json_add_string(&w, "options", options);
        finish(u, &w, true);
}

void updates_answered(const Updates *u, uint64_t number, const char *option, const char *reason) {
        JsonWriter w = {};

        updates_open(&w, UPDATE_ANSWERED);
        json_add_u64(&w, "question", number);
        json_add_string(&w, "option", option);
        if (reason)
                json_add_string(&w, "reason", reason);
        finish(u, &w, true);
}

void updates_turn_ended(const Updates *u, uint64_t number, const char *reason, const char *text) {
        JsonWriter w = {};

        updates_open(&w, UPDATE_TURN_ENDED);
        json_add_u64(&w, "prompt", number);
        json_add_string(&w, "reason", reason);
        if (text)
                json_add_string(&w, "text", text);
        finish(u, &w, true);
}
