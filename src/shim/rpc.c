/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "shared/json-check.h"
#include "shim/limits.h"
#include "shim/rpc.h"

void rpc_lines_done(RpcLines *l) {
        if (l->data)
                explicit_bzero(l->data, l->room); /* it may hold a secret that would have been taken out */
        free(l->data);
        *l = (RpcLines){};
}

/* Adds to the line that is not whole yet. */
static int hold(RpcLines *l, const char *data, size_t size) {
        if (l->skipping)
                return 0;
        if (size > AGENT_LINE_MAX - l->size) {
                rpc_lines_done(l);
                l->skipping = true;
                return 0;
        }
        if (l->size + size > l->room) {
                size_t room = MIN(MAX(l->room * 2, l->size + size), (size_t) AGENT_LINE_MAX);
                char *grown = malloc(room);
                if (!grown) {
                        rpc_lines_done(l);
                        l->skipping = true;
                        return -ENOMEM;
                }
                if (l->size > 0)
                        memcpy(grown, l->data, l->size);
                size_t held = l->size;
                rpc_lines_done(l);
                *l = (RpcLines){.data = grown, .size = held, .room = room};
        }
        memcpy(l->data + l->size, data, size);
        l->size += size;
        return 0;
}

static void give(char *line, size_t size, RpcLineHandler handler, void *userdata) {
        if (size > 0 && line[size - 1] == '\r')
                size--;
        if (size > 0)
                handler(line, size, userdata);
}

int rpc_lines_push(RpcLines *l, char *data, size_t size, RpcLineHandler handler, void *userdata) {
        int r = 0;

        while (size > 0) {
                char *end = memchr(data, '\n', size);
                size_t n = end ? (size_t) (end - data) : size;

                if (!end || l->size > 0 || l->skipping) {
                        int q = hold(l, data, n);
                        r = q < 0 ? q : r;
                }
                if (!end)
                        return r;
                if (l->skipping) {
                        l->skipping = false;
                        handler(NULL, 0, userdata);
                } else if (l->size > 0) {
                        give(l->data, l->size, handler, userdata);
                        l->size = 0;
                        if (l->room > AGENT_CHUNK_SIZE) /* the rare long one is not kept room for */
                                rpc_lines_done(l);
                } else
                        give(data, n, handler, userdata);
                data += n + 1;
                size -= n + 1;
        }
        return r;
}

/* "\uXXXX" at s; -1: it is none. */
static int escaped_unit(const char *s, size_t size) {
        int value = 0;

        if (size < 6 || s[0] != '\\' || s[1] != 'u')
                return -1;
        for (size_t i = 2; i < 6; i++) {
                int digit = ascii_hex_value(s[i]);
                if (digit < 0)
                        return -1;
                value = value * 16 + digit;
        }
        return value;
}

void rpc_mend(char *line, size_t size) {
        char *end = line + size;

        for (char *at = line; (at = memchr(at, '\\', (size_t) (end - at)));) {
                int unit = escaped_unit(at, (size_t) (end - at));
                size_t n = unit >= 0 ? 6 : MIN((size_t) (end - at), (size_t) 2);

                if (unit >= 0xd800 && unit < 0xdc00) {
                        int low = escaped_unit(at + 6, (size_t) (end - at) - 6);
                        if (low >= 0xdc00 && low < 0xe000) {
                                at += 12;
                                continue;
                        }
                }
                if (unit == 0 || (unit >= 0xd800 && unit < 0xe000))
                        memcpy(at + 2, "fffd", 4);
                at += n;
        }
}

static int refuse(const char **ret_phrase, const char *phrase) {
        *ret_phrase = phrase;
        return -EBADMSG;
}

static int read_id(JsonView line, RpcMessage *m, const char **ret_phrase) {
        if (!json_view_member(line, "id", &m->id) || *m->id.at == 'n') { /* null: an error whose request was not understood */
                m->id = (JsonView){};
                return 0;
        }
        if ((!json_view_is_string(m->id) && !json_view_is_number(m->id)) || m->id.size > RPC_ID_MAX)
                return refuse(ret_phrase, "its id is not a short text or number");
        m->has_number = json_view_u64(m->id, INT64_MAX, &m->number) >= 0;
        return 0;
}

static int read_call(JsonView line, JsonView method, RpcMessage *m, const char **ret_phrase) {
        _cleanup_free_ char *name = NULL;
        JsonView other;

        if (json_view_member(line, "result", &other) || json_view_member(line, "error", &other))
                return refuse(ret_phrase, "it is call and answer in one");
        if (!json_view_is_string(method))
                return refuse(ret_phrase, "its method is no text");
        if (method.size <= RPC_METHOD_MAX) {
                int r = json_view_string(method, &name);
                if (r < 0)
                        return r;
                memcpy(m->method, name, strlen(name) + 1);
        }
        m->kind = m->id.size > 0 ? RPC_REQUEST : RPC_NOTIFICATION;
        (void) json_view_member(line, "params", &m->params);
        return 0;
}

int rpc_parse(const char *line, size_t size, RpcMessage *ret, const char **ret_phrase) {
        RpcMessage m = {};
        JsonView method, version;

        int r = json_check(line, size, RPC_DEPTH_MAX, NULL);
        if (r < 0)
                return r == -EBADMSG ? refuse(ret_phrase, "it is not JSON, or nested too deep") : r;
        JsonView whole = json_view(line, size);
        if (!json_view_is_object(whole))
                return refuse(ret_phrase, "it is not an object");
        if (!json_view_member(whole, "jsonrpc", &version) || version.size != 5 || memcmp(version.at, "\"2.0\"", 5) != 0)
                return refuse(ret_phrase, "it is not of JSON-RPC 2.0");
        r = read_id(whole, &m, ret_phrase);
        if (r < 0)
                return r;
        if (json_view_member(whole, "method", &method)) {
                r = read_call(whole, method, &m, ret_phrase);
                if (r < 0)
                        return r;
        } else {
                bool result = json_view_member(whole, "result", &m.result);
                bool error = json_view_member(whole, "error", &m.error) && *m.error.at != 'n'; /* some write "error":null */
                if (result == error)
                        return refuse(ret_phrase, "it is neither a call nor an answer");
                m.kind = error ? RPC_ERROR : RPC_RESULT;
        }
        *ret = m;
        return 0;
}

static void open_message(JsonWriter *w) {
        json_open_object(w, NULL);
        json_add_string(w, "jsonrpc", "2.0");
}

void rpc_open_request(JsonWriter *w, uint64_t id, const char *method) {
        open_message(w);
        json_add_u64(w, "id", id);
        json_add_string(w, "method", method);
        json_open_object(w, "params");
}

void rpc_open_notification(JsonWriter *w, const char *method) {
        open_message(w);
        json_add_string(w, "method", method);
        json_open_object(w, "params");
}

void rpc_open_result(JsonWriter *w, const char *id, size_t id_size) {
        open_message(w);
        json_add_raw(w, "id", id, id_size);
        json_open_object(w, "result");
}

static void end_line(JsonWriter *w) {
        w->comma = false;
        json_add_raw(w, NULL, "\n", 1);
}

void rpc_close(JsonWriter *w) {
        json_close_object(w);
        json_close_object(w);
        end_line(w);
}

void rpc_write_error(JsonWriter *w, const char *id, size_t id_size, int code, const char *text) {
        char number[16];

        open_message(w);
        json_add_raw(w, "id", id, id_size);
        json_open_object(w, "error");
        json_add_raw(w, "code", number, (size_t) snprintf(number, sizeof(number), "%d", code));
        json_add_string(w, "message", text);
        rpc_close(w);
}
