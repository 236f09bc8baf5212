/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "shim/acp.h"

static const char *const stops[_ACP_STOP_MAX] = {
        [ACP_STOP_END_TURN] = "end_turn",
        [ACP_STOP_MAX_TOKENS] = "max_tokens",
        [ACP_STOP_MAX_TURN_REQUESTS] = "max_turn_requests",
        [ACP_STOP_REFUSAL] = "refusal",
        [ACP_STOP_CANCELLED] = "cancelled",
};

const char *acp_stop_to_string(AcpStop stop) {
        return stop >= 0 && stop < _ACP_STOP_MAX ? stops[stop] : NULL;
}

AcpStop acp_stop_from_string(const char *s) {
        for (AcpStop i = 0; i < _ACP_STOP_MAX; i++)
                if (streq(stops[i], s))
                        return i;
        return _ACP_STOP_INVALID;
}

/* ---- what is written ---- */

void acp_write_initialize(JsonWriter *w, uint64_t id, const char *client_version) {
        rpc_open_request(w, id, "initialize");
        json_add_u64(w, "protocolVersion", ACP_VERSION);
        json_open_object(w, "clientCapabilities");
        json_open_object(w, "fs");
        json_add_bool(w, "readTextFile", false);
        json_add_bool(w, "writeTextFile", false);
        json_close_object(w);
        json_add_bool(w, "terminal", false);
        json_close_object(w);
        json_open_object(w, "clientInfo");
        json_add_string(w, "name", "errand");
        json_add_string(w, "version", client_version);
        json_close_object(w);
        rpc_close(w);
}

void acp_write_new_session(JsonWriter *w, uint64_t id, const char *cwd) {
        rpc_open_request(w, id, "session/new");
        json_add_string(w, "cwd", cwd);
        json_add_strings(w, "mcpServers", NULL);
        rpc_close(w);
}

void acp_write_prompt(JsonWriter *w, uint64_t id, const char *session, const char *text) {
        rpc_open_request(w, id, "session/prompt");
        json_add_string(w, "sessionId", session);
        json_open_array(w, "prompt");
        json_open_object(w, NULL);
        json_add_string(w, "type", "text");
        json_add_string(w, "text", text);
        json_close_object(w);
        json_close_array(w);
        rpc_close(w);
}

void acp_write_cancel(JsonWriter *w, const char *session) {
        rpc_open_notification(w, "session/cancel");
        json_add_string(w, "sessionId", session);
        rpc_close(w);
}

void acp_write_outcome(JsonWriter *w, const char *id, size_t id_size, const char *option) {
        rpc_open_result(w, id, id_size);
        json_open_object(w, "outcome");
        json_add_string(w, "outcome", option ? "selected" : "cancelled");
        if (option)
                json_add_string(w, "optionId", option);
        json_close_object(w);
        rpc_close(w);
}

/* ---- what is read ---- */

/* A member that may be missing, null or of another type, which is then as if it were missing. */
static int read_optional(JsonView v, const char *name, char **ret) {
        int r = json_view_member_string(v, name, ret);
        return r == -ENOMEM ? r : 0;
}

void acp_agent_done(AcpAgent *a) {
        free(a->name);
        free(a->release);
        *a = (AcpAgent){};
}

int acp_read_initialize(JsonView result, AcpAgent *ret) {
        _cleanup_(acp_agent_done) AcpAgent a = {};
        JsonView info = {};

        if (json_view_member_u64(result, "protocolVersion", INT64_MAX, &a.version) < 0)
                return -EBADMSG;
        (void) json_view_member(result, "agentInfo", &info);
        int r = read_optional(info, "name", &a.name);
        if (r >= 0)
                r = read_optional(info, "version", &a.release);
        if (r < 0)
                return r;
        *ret = a;
        a = (AcpAgent){};
        return 0;
}

int acp_read_new_session(JsonView result, char **ret) {
        _cleanup_free_ char *id = NULL;

        int r = read_optional(result, "sessionId", &id);
        if (r < 0)
                return r;
        if (!id || !*id || strlen(id) > ACP_SESSION_MAX)
                return -EBADMSG;
        *ret = TAKE_PTR(id);
        return 0;
}

AcpStop acp_read_stop(JsonView result) {
        _cleanup_free_ char *reason = NULL;

        return json_view_member_string(result, "stopReason", &reason) < 0 ? _ACP_STOP_INVALID : acp_stop_from_string(reason);
}

int acp_read_error(JsonView error, char **ret_message, int *ret_code) {
        JsonView code;
        int value = 0;

        int r = read_optional(error, "message", ret_message);
        if (r < 0)
                return r;
        if (json_view_member(error, "code", &code) && json_view_is_number(code) && code.size < 10) {
                char digits[10] = {};
                memcpy(digits, code.at, code.size);
                value = (int) strtol(digits, NULL, 10);
        }
        *ret_code = value;
        return 0;
}

/* Of this session, which is the only one. */
static bool is_of_session(JsonView params, const char *session) {
        _cleanup_free_ char *id = NULL;

        return json_view_member_string(params, "sessionId", &id) >= 0 && streq(id, session);
}

void acp_update_done(AcpUpdate *u) {
        free(u->text);
        free(u->id);
        free(u->title);
        free(u->sort);
        free(u->status);
        *u = (AcpUpdate){};
}

static int read_chunk(JsonView update, AcpUpdateKind kind, AcpUpdate *u) {
        _cleanup_free_ char *type = NULL;
        JsonView content;

        if (!json_view_member(update, "content", &content))
                return 0;
        int r = read_optional(content, "type", &type);
        if (r < 0 || !type || !streq(type, "text"))
                return r;
        r = read_optional(content, "text", &u->text);
        if (u->text)
                u->kind = kind;
        return r;
}

static int read_tool(JsonView update, AcpUpdate *u) {
        int r = read_optional(update, "toolCallId", &u->id);
        if (r >= 0)
                r = read_optional(update, "title", &u->title);
        if (r >= 0)
                r = read_optional(update, "kind", &u->sort);
        if (r >= 0)
                r = read_optional(update, "status", &u->status);
        if (r >= 0 && u->id)
                u->kind = ACP_UPDATE_TOOL;
        return r;
}

int acp_read_update(JsonView params, const char *session, AcpUpdate *ret) {
        _cleanup_(acp_update_done) AcpUpdate u = {};
        _cleanup_free_ char *kind = NULL;
        JsonView update;

        int r = 0;
        if (is_of_session(params, session) && json_view_member(params, "update", &update))
                r = read_optional(update, "sessionUpdate", &kind);
        if (r < 0)
                return r;
        if (streq_ptr(kind, "agent_message_chunk"))
                r = read_chunk(update, ACP_UPDATE_MESSAGE, &u);
        else if (streq_ptr(kind, "agent_thought_chunk"))
                r = read_chunk(update, ACP_UPDATE_THOUGHT, &u);
        else if (streq_ptr(kind, "tool_call") || streq_ptr(kind, "tool_call_update")) {
                u.first = streq_ptr(kind, "tool_call");
                r = read_tool(update, &u);
        } else if (streq_ptr(kind, "plan") && json_view_member(update, "entries", &u.entries) && json_view_is_array(u.entries))
                u.kind = ACP_UPDATE_PLAN;
        if (r < 0)
                return r;
        *ret = u;
        u = (AcpUpdate){};
        return 0;
}

int acp_next_entry(JsonView entries, size_t *state, AcpEntry *ret) {
        _cleanup_free_ char *text = NULL, *status = NULL;
        JsonView entry;

        while (json_view_next(entries, state, &entry)) {
                int r = read_optional(entry, "content", &text);
                if (r < 0)
                        return r;
                if (!text)
                        continue;
                r = read_optional(entry, "status", &status);
                if (r < 0)
                        return r;
                *ret = (AcpEntry){.mark = streq_ptr(status, "completed") ? 'x' : streq_ptr(status, "in_progress") ? '>' : ' ',
                                  .text = TAKE_PTR(text)};
                return 1;
        }
        return 0;
}

void acp_question_done(AcpQuestion *q) {
        free(q->title);
        for (size_t i = 0; i < q->n_options; i++) {
                free(q->options[i].id);
                free(q->options[i].name);
                free(q->options[i].kind);
        }
        *q = (AcpQuestion){};
}

static int read_option(JsonView option, AcpOption *ret) {
        int r = read_optional(option, "optionId", &ret->id);
        if (r >= 0)
                r = read_optional(option, "name", &ret->name);
        if (r >= 0)
                r = read_optional(option, "kind", &ret->kind);
        return r < 0 ? r : ret->id && *ret->id && strlen(ret->id) <= WORD_MAX && ret->name ? 0 : -EBADMSG;
}

int acp_read_question(JsonView params, const char *session, AcpQuestion *ret) {
        _cleanup_(acp_question_done) AcpQuestion q = {};
        JsonView tool = {}, options = {}, option;
        size_t state = 0;

        if (!is_of_session(params, session))
                return -EBADMSG;
        (void) json_view_member(params, "toolCall", &tool);
        (void) json_view_member(params, "options", &options);
        int r = read_optional(tool, "title", &q.title);
        while (r >= 0 && json_view_next(options, &state, &option)) {
                if (q.n_options == QUESTION_OPTIONS_MAX)
                        return -EBADMSG;
                r = read_option(option, &q.options[q.n_options++]);
        }
        if (r < 0)
                return r;
        if (q.n_options == 0)
                return -EBADMSG;
        *ret = q;
        q = (AcpQuestion){};
        return 0;
}
