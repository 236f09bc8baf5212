/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/macro.h" /* before GLib, which defines MIN and MAX anew */
#include "basic/text.h"
#include "basic/utf8.h"
#include "fuzz.h"
#include "shared/json-check.h"
#include "shared/message.h"
#include "shim/acp.h"

/* Input: what an agent writes. Lines are the same wherever they are cut; a line that is taken says the same to json-glib. */

typedef struct Lines {
        char *text;
        size_t size;
        unsigned n;
} Lines;

static void on_line(char *line, size_t size, void *userdata) {
        Lines *l = userdata;

        HOLDS(line && size > 0 && !memchr(line, '\n', size));
        l->text = realloc(l->text, l->size + size + 1);
        HOLDS(l->text);
        memcpy(l->text + l->size, line, size);
        l->text[l->size + size] = '\n';
        l->size += size + 1;
        l->n++;
}

static Lines split(const char *data, size_t size, size_t step) {
        RpcLines lines = {};
        Lines l = {};

        char *copy = malloc(size + 1);
        HOLDS(copy);
        if (size > 0)
                memcpy(copy, data, size);
        for (size_t at = 0; at < size; at += step)
                HOLDS(rpc_lines_push(&lines, copy + at, MIN(step, size - at), on_line, &l) == 0);
        rpc_lines_done(&lines);
        free(copy);
        return l;
}

/* Of a text that json_check() takes, both readers say the same. */
static void compare(JsonView view, JsonNode *node) {
        static const char *const names[] = {"id", "method", "params", "result", "error", "update", "sessionUpdate", "content", "text", "a"};
        _cleanup_free_ char *text = NULL;
        JsonView member;
        size_t state = 0;

        if (JSON_NODE_HOLDS_OBJECT(node)) {
                HOLDS(json_view_is_object(view));
                for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                        JsonNode *other = json_object_get_member(json_node_get_object(node), names[i]);
                        if (json_view_member(view, names[i], &member)) {
                                HOLDS(other);
                                compare(member, other);
                        } else /* or its name is written with escapes */
                                HOLDS(!other || memchr(view.at, '\\', view.size));
                }
        } else if (JSON_NODE_HOLDS_ARRAY(node)) {
                JsonArray *array = json_node_get_array(node);
                for (guint i = 0; i < json_array_get_length(array); i++) {
                        HOLDS(json_view_next(view, &state, &member));
                        compare(member, json_array_get_element(array, i));
                }
                HOLDS(!json_view_next(view, &state, &member));
        } else if (JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING) {
                HOLDS(json_view_string(view, &text) == 0);
                HOLDS(streq(text, json_node_get_string(node)) && utf8_valid(text));
        } else
                HOLDS(json_view_string(view, &text) == -EINVAL && !json_view_is_object(view) && !json_view_is_array(view));
}

static void read_all(const RpcMessage *m) {
        _cleanup_(acp_agent_done) AcpAgent agent = {};
        _cleanup_(acp_update_done) AcpUpdate update = {};
        _cleanup_(acp_question_done) AcpQuestion question = {};
        _cleanup_free_ char *session = NULL, *text = NULL;
        AcpEntry entry;
        size_t state = 0;
        int code;

        (void) acp_read_initialize(m->result, &agent);
        HOLDS(acp_read_new_session(m->result, &session) < 0 || (*session && strlen(session) <= ACP_SESSION_MAX));
        (void) acp_read_stop(m->result);
        HOLDS(acp_read_error(m->error, &text, &code) == 0);
        HOLDS(acp_read_update(m->params, "s", &update) == 0);
        while (update.kind == ACP_UPDATE_PLAN && acp_next_entry(update.entries, &state, &entry) > 0)
                free(entry.text);
        if (acp_read_question(m->params, "s", &question) == 0) {
                HOLDS(question.n_options > 0 && question.n_options <= QUESTION_OPTIONS_MAX);
                for (size_t i = 0; i < question.n_options; i++)
                        HOLDS(question.options[i].id && *question.options[i].id && question.options[i].name);
        }
}

/* An id comes back as it came. */
static void answer(const RpcMessage *m) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ char *text = NULL;
        const char *phrase = NULL;
        RpcMessage back;
        size_t size;

        acp_write_outcome(&w, m->id.at, m->id.size, "yes");
        HOLDS(json_writer_finish(&w, &text, &size) == 0 && text[size - 1] == '\n');
        HOLDS(rpc_parse(text, size - 1, &back, &phrase) == 0 && back.kind == RPC_RESULT);
        HOLDS(back.id.size == m->id.size && memcmp(back.id.at, m->id.at, m->id.size) == 0);
}

static void try_line(const char *line, size_t size) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        const char *phrase = NULL;
        JsonObject *object;
        RpcMessage m;

        int r = rpc_parse(line, size, &m, &phrase);
        HOLDS(r == 0 || (r == -EBADMSG && phrase));
        if (json_read_object(line, size, RPC_DEPTH_MAX, &parser, &object, NULL) == 0)
                compare(json_view(line, size), json_parser_get_root(parser));
        else
                HOLDS(r < 0);
        if (r < 0)
                return;
        HOLDS((m.kind == RPC_REQUEST) <= (m.id.size > 0) && m.id.size <= RPC_ID_MAX);
        read_all(&m);
        if (m.kind == RPC_REQUEST)
                answer(&m);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        Lines whole = split((const char *) data, size, MAX(size, (size_t) 1)), pieces = split((const char *) data, size, 7);

        HOLDS(whole.n == pieces.n && whole.size == pieces.size && (whole.size == 0 || memcmp(whole.text, pieces.text, whole.size) == 0));
        for (size_t at = 0; at < whole.size;) {
                size_t n = (size_t) ((char *) memchr(whole.text + at, '\n', whole.size - at) - (whole.text + at));
                char *line = malloc(n); /* of its own, so that a step beyond its end is seen */
                HOLDS(line);
                memcpy(line, whole.text + at, n);
                bool good = json_check(line, n, RPC_DEPTH_MAX, NULL) == 0;
                try_line(line, n);
                rpc_mend(line, n);
                HOLDS(!good || memcmp(line, whole.text + at, n) == 0);
                try_line(line, n);
                free(line);
                at += n + 1;
        }
        free(whole.text);
        free(pieces.text);
        return 0;
}
