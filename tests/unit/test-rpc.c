/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "shim/acp.h"
#include "shim/limits.h"
#include "shim/rpc.h"
#include "test.h"

static char seen[256];

static void on_line(char *line, size_t size, _unused_ void *userdata) {
        size_t at = strlen(seen);

        (void) snprintf(seen + at, sizeof(seen) - at, "<%.*s>", line ? (int) size : 1, line ?: "!");
}

static void push(RpcLines *l, const char *text) {
        _cleanup_free_ char *data = strdup(text);

        CHECK(data);
        CHECK_INT(rpc_lines_push(l, data, strlen(data), on_line, NULL), 0);
}

static void test_lines(void) {
        RpcLines l = {};

        seen[0] = 0;
        push(&l, "one\ntw");
        push(&l, "o");
        push(&l, "\r\n\n\r\nthree\nfour\nfi");
        CHECK_STR(seen, "<one><two><three><four>");
        push(&l, "ve\n");
        CHECK_STR(seen, "<one><two><three><four><five>");
        rpc_lines_done(&l);
}

static void test_long_lines(void) {
        _cleanup_free_ char *text = calloc(AGENT_LINE_MAX + 2, 1);
        RpcLines l = {};

        CHECK(text);
        memset(text, 'x', AGENT_LINE_MAX + 1);
        seen[0] = 0;
        push(&l, text);
        CHECK_INT(l.size, 0);
        push(&l, "more of it");
        push(&l, "\nnext\n");
        CHECK_STR(seen, "<!><next>");
        seen[0] = 0;
        push(&l, text + 1);
        CHECK_INT(l.size, AGENT_LINE_MAX);
        push(&l, "\n");
        CHECK_INT(strlen(seen), sizeof(seen) - 1);
        CHECK_INT(l.room, 0);
        rpc_lines_done(&l);
}

static void test_mended(void) {
        static const struct {
                const char *line, *mended;
        } rows[] = {
                {"\\u0000", "\\ufffd"},
                {"\\\\u0000\\\\", "\\\\u0000\\\\"},
                {"\\ud83d\\uDE00", "\\ud83d\\uDE00"},
                {"\\ud83d\\ud83d\\ude00", "\\ufffd\\ud83d\\ude00"},
                {"\\ude00x\\udbff", "\\ufffdx\\ufffd"},
                {"\\ud83d\\", "\\ufffd\\"},
                {"\\ud83", "\\ud83"},
                {"\\u000g\\u00", "\\u000g\\u00"},
                {"", ""},
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *line = strdup(rows[i].line);
                CHECK(line);
                rpc_mend(line, strlen(line));
                CHECK_STR(line, rows[i].mended);
        }
}

static void test_messages(void) {
        static const struct {
                const char *line;
                RpcKind kind; /* _RPC_KIND_INVALID: refused */
                const char *says; /* the method, or the phrase */
        } rows[] = {
                {"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a/b\",\"params\":{}}", RPC_REQUEST, "a/b"},
                {" { \"method\" : \"x\\/y\" , \"jsonrpc\" : \"2.0\" , \"id\" : \"\\u0031\" } ", RPC_REQUEST, "x/y"},
                {"{\"jsonrpc\":\"2.0\",\"method\":\"n\"}", RPC_NOTIFICATION, "n"},
                {"{\"jsonrpc\":\"2.0\",\"method\":\"n\",\"id\":null}", RPC_NOTIFICATION, "n"},
                {"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":null}", RPC_RESULT, ""},
                {"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{},\"error\":null}", RPC_RESULT, ""},
                {"{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{\"code\":-1}}", RPC_ERROR, ""},
                {"{\"jsonrpc\":\"2.0\",\"id\":7,\"error\":{},\"result\":1}", _RPC_KIND_INVALID, "it is neither a call nor an answer"},
                {"{\"jsonrpc\":\"2.0\",\"id\":7}", _RPC_KIND_INVALID, "it is neither a call nor an answer"},
                {"{\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"x\",\"result\":1}", _RPC_KIND_INVALID, "it is call and answer in one"},
                {"{\"jsonrpc\":\"2.0\",\"id\":true,\"method\":\"x\"}", _RPC_KIND_INVALID, "its id is not a short text or number"},
                {"{\"jsonrpc\":\"2.0\",\"method\":[]}", _RPC_KIND_INVALID, "its method is no text"},
                {"{\"jsonrpc\":2.0,\"method\":\"x\"}", _RPC_KIND_INVALID, "it is not of JSON-RPC 2.0"},
                {"{\"method\":\"x\"}", _RPC_KIND_INVALID, "it is not of JSON-RPC 2.0"},
                {"[{\"jsonrpc\":\"2.0\",\"method\":\"x\"}]", _RPC_KIND_INVALID, "it is not an object"},
                {"{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"method\":\"y\"}", _RPC_KIND_INVALID, "it is not JSON, or nested too deep"},
                {"{\"jsonrpc\":\"2.0\",\"method\":\"x\"} x", _RPC_KIND_INVALID, "it is not JSON, or nested too deep"},
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const char *phrase = NULL;
                RpcMessage m = {.kind = _RPC_KIND_INVALID};

                int r = rpc_parse(rows[i].line, strlen(rows[i].line), &m, &phrase);
                CHECK_INT(m.kind, rows[i].kind);
                CHECK_INT(r, rows[i].kind < 0 ? -EBADMSG : 0);
                CHECK_STR(r < 0 ? phrase : m.method, rows[i].says);
        }
}

static void test_long_names(void) {
        const char *phrase = NULL;
        RpcMessage m = {};
        char line[512];

        (void) snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":\"%0126d\",\"method\":\"%0126d\"}", 1, 1);
        CHECK_INT(rpc_parse(line, strlen(line), &m, &phrase), 0);
        CHECK_INT(strlen(m.method), 126);
        (void) snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"%0200d\"}", 1);
        CHECK_INT(rpc_parse(line, strlen(line), &m, &phrase), 0);
        CHECK_STR(m.method, ""); /* one that nobody knows */
        (void) snprintf(line, sizeof(line), "{\"jsonrpc\":\"2.0\",\"id\":\"%0127d\",\"method\":\"x\"}", 1);
        CHECK_INT(rpc_parse(line, strlen(line), &m, &phrase), -EBADMSG);
}

static void test_views(void) {
        static const char text[] = " {\"a\":{\"b\":[1, \"two\\n\\u00e9\\ud83d\\ude00\\\"\",[],{},null , -3.5e2]},\"c\":\"]}\\\\\",\"big\":18446744073709551616,\"d\":12} ";
        JsonView whole = json_view(text, strlen(text)), a, b, v;
        _cleanup_free_ char *two = NULL, *c = NULL, *none = NULL;
        const char *const elements[] = {"1", "\"two\\n\\u00e9\\ud83d\\ude00\\\"\"", "[]", "{}", "null", "-3.5e2"};
        size_t state = 0;
        uint64_t n;

        CHECK_INT(whole.size, strlen(text) - 2);
        CHECK(json_view_member(whole, "a", &a) && json_view_member(a, "b", &b) && !json_view_member(whole, "b", &v) && !json_view_member(b, "a", &v));
        for (size_t i = 0; i < ELEMENTSOF(elements); i++) {
                CHECK(json_view_next(b, &state, &v));
                CHECK(v.size == strlen(elements[i]) && memcmp(v.at, elements[i], v.size) == 0);
                if (i == 1)
                        CHECK_INT(json_view_string(v, &two), 0);
        }
        CHECK(!json_view_next(b, &state, &v));
        state = 0;
        CHECK(!json_view_next(a, &state, &v) && !json_view_next((JsonView){}, &state, &v));
        CHECK_STR(two, "two\n\xc3\xa9\xf0\x9f\x98\x80\"");
        CHECK_INT(json_view_member_string(whole, "c", &c), 0);
        CHECK_STR(c, "]}\\");
        CHECK_INT(json_view_member_string(whole, "d", &none), -EINVAL);
        CHECK_INT(json_view_member_string(whole, "e", &none), -ENOENT);
        CHECK_INT(json_view_member_u64(whole, "d", 12, &n), 0);
        CHECK_INT(n, 12);
        CHECK_INT(json_view_member_u64(whole, "d", 11, &n), -EINVAL);
        CHECK_INT(json_view_member_u64(whole, "big", UINT64_MAX, &n), -EINVAL);
        CHECK_INT(json_view_member_u64(whole, "c", UINT64_MAX, &n), -EINVAL);
}

static void test_stops(void) {
        for (AcpStop i = 0; i < _ACP_STOP_MAX; i++)
                CHECK_INT(acp_stop_from_string(acp_stop_to_string(i)), i);
        CHECK_INT(acp_stop_from_string("end"), _ACP_STOP_INVALID);
        CHECK(!acp_stop_to_string(_ACP_STOP_MAX) && !acp_stop_to_string(_ACP_STOP_INVALID));
}

static void test_written(void) {
        JsonWriter w = {};

        acp_write_prompt(&w, 3, "s\"", "a\nb");
        CHECK_STR(w.text, "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"session/prompt\",\"params\":{\"sessionId\":\"s\\\"\","
                          "\"prompt\":[{\"type\":\"text\",\"text\":\"a\\u000ab\"}]}}\n");
        json_writer_done(&w);
        w = (JsonWriter){};
        acp_write_cancel(&w, "s");
        CHECK_STR(w.text, "{\"jsonrpc\":\"2.0\",\"method\":\"session/cancel\",\"params\":{\"sessionId\":\"s\"}}\n");
        json_writer_done(&w);
        w = (JsonWriter){};
        acp_write_outcome(&w, "\"q\"", 3, NULL);
        CHECK_STR(w.text, "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"result\":{\"outcome\":{\"outcome\":\"cancelled\"}}}\n");
        json_writer_done(&w);
        w = (JsonWriter){};
        rpc_write_error(&w, "-1.5", 4, RPC_METHOD_NOT_FOUND, "no");
        CHECK_STR(w.text, "{\"jsonrpc\":\"2.0\",\"id\":-1.5,\"error\":{\"code\":-32601,\"message\":\"no\"}}\n");
        json_writer_done(&w);
}

int main(void) {
        RUN(test_lines, "bytes become lines, wherever they are cut");
        RUN(test_long_lines, "C190: a line of more than 4 MiB is skipped and told, and nothing of it is kept");
        RUN(test_mended, "what no C string can hold is put another character for, and nothing else is changed");
        RUN(test_messages, "T022: what is a message, and what is none");
        RUN(test_long_names, "a method that is too long is one that nobody knows, an id that is too long none");
        RUN(test_views, "values are found in a text, and told as they are");
        RUN(test_stops, "reasons for a turn's end and back");
        RUN(test_written, "what an agent is sent");
        return TEST_END();
}
