/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* JSON-RPC 2.0 as the Agent Client Protocol has it: one object a line. What an agent writes is hostile: nothing here keeps more of it than a
 * line, and a line that is not understood is told in a phrase that holds nothing of it. */

#include "basic/json-writer.h"
#include "basic/macro.h"
#include "shared/json-view.h"

#define RPC_DEPTH_MAX 64U
#define RPC_ID_MAX 128U     /* bytes of an id as it is written */
#define RPC_METHOD_MAX 128U /* longer is no method that anybody knows */

#define RPC_METHOD_NOT_FOUND (-32601) /* JSON-RPC 2.0, section 5.1; so is the next */
#define RPC_INVALID_PARAMS (-32602)

/* Bytes → lines. */
typedef struct RpcLines {
        char *data;
        size_t size, room;
        bool skipping; /* a line that was too long */
} RpcLines;

/* line is not ended by a NUL, and the handler's to change. NULL: it was longer than AGENT_LINE_MAX, and is gone. */
typedef void (*RpcLineHandler)(char *line, size_t size, void *userdata);

/* Gives every line that is whole now, without its end; empty ones are passed over. 0 or -ENOMEM, with which what was held is lost. The handler may not
 * call this, nor rpc_lines_done(). */
int rpc_lines_push(RpcLines *l, char *data, size_t size, RpcLineHandler handler, void *userdata);
void rpc_lines_done(RpcLines *l);

typedef enum RpcKind {
        RPC_REQUEST,
        RPC_NOTIFICATION,
        RPC_RESULT,
        RPC_ERROR,
        _RPC_KIND_MAX,
        _RPC_KIND_INVALID = -EINVAL,
} RpcKind;

typedef struct RpcMessage {
        RpcKind kind;
        JsonView id;     /* of a request: a string or a number */
        uint64_t number; /* the id, where it is a whole number; of what was answered */
        bool has_number;
        char method[RPC_METHOD_MAX + 1];
        JsonView params; /* {}: none */
        JsonView result, error;
} RpcMessage;

/* Puts U+FFFD, which takes as many bytes, in place of what JSON can write and no C string or UTF-8 can hold: a NUL, and half of a surrogate pair, as is left by
 * programs that cut a text in the middle of a character. */
void rpc_mend(char *line, size_t size);

/* The views are of the line. -EBADMSG with a phrase in *ret_phrase, which is constant. */
int rpc_parse(const char *line, size_t size, RpcMessage *ret, const char **ret_phrase);

/* What is written: each opens {"jsonrpc":…,"params":{, or "result":{, and rpc_close() ends it with the line. */
void rpc_open_request(JsonWriter *w, uint64_t id, const char *method);
void rpc_open_notification(JsonWriter *w, const char *method);
void rpc_open_result(JsonWriter *w, const char *id, size_t id_size);
void rpc_close(JsonWriter *w);
/* A whole one. */
void rpc_write_error(JsonWriter *w, const char *id, size_t id_size, int code, const char *text);
