/* SPDX-License-Identifier: LGPL-2.1-or-later */

#include "basic/fd.h"
#include "basic/text.h"
#include "shared/json-check.h"
#include "shared/message.h"

struct Message {
        JsonParser *parser; /* owns the tree that object lies in */
        JsonObject *object;
        const char *type;
        int fds[MESSAGE_FDS_MAX];
        size_t n_fds;
};

Message *message_free(Message *m) {
        if (!m)
                return NULL;
        for (size_t i = 0; i < m->n_fds; i++)
                safe_close(m->fds[i]);
        g_clear_object(&m->parser);
        return mfree(m);
}

static JsonArray *fd_names(const Message *m) {
        JsonArray *names;
        return json_get_array(m->object, "fds", &names) < 0 ? NULL : names;
}

static int check_fd_names(const Message *m, char **ret_problem) {
        JsonNode *node = json_object_get_member(m->object, "fds");
        JsonArray *names = fd_names(m);
        size_t n = names ? json_array_get_length(names) : 0;

        if (node && !names)
                return problem_set(ret_problem, "\"fds\" is not a list of names");
        if (n != m->n_fds)
                return problem_set(ret_problem, "%zu file descriptors came with %zu names", m->n_fds, n);
        for (size_t i = 0; i < n; i++) {
                JsonNode *element = json_array_get_element(names, (guint) i);
                if (json_node_get_value_type(element) != G_TYPE_STRING)
                        return problem_set(ret_problem, "\"fds\" is not a list of names");
                for (size_t k = 0; k < i; k++)
                        if (streq(json_node_get_string(element), json_array_get_string_element(names, (guint) k)))
                                return problem_set(ret_problem, "\"fds\" names \"%s\" twice", json_node_get_string(element));
        }
        return 0;
}

static int parse_object(Message *m, const char *data, size_t size, char **ret_problem) {
        JsonProblem json;
        uint64_t version;

        if (size > MESSAGE_SIZE_MAX)
                return problem_set(ret_problem, "the message is larger than %u bytes", MESSAGE_SIZE_MAX);
        int r = json_read_object(data, size, MESSAGE_DEPTH_MAX, &m->parser, &m->object, &json);
        if (r < 0)
                return r == -EBADMSG ? problem_set(ret_problem, "the message cannot be read: %s", json.text) : r;

        if (json_get_u64(m->object, "v", UINT32_MAX, &version) < 0)
                return problem_set(ret_problem, "the message has no version");
        if (version != MESSAGE_VERSION)
                return problem_set(ret_problem, "protocol version %u is not known here, only %d", (unsigned) version, MESSAGE_VERSION);
        if (json_get_string(m->object, "type", &m->type) < 0)
                return problem_set(ret_problem, "the message has no type");
        return check_fd_names(m, ret_problem);
}

int message_parse(const char *data, size_t size, const int *fds, size_t n_fds, Message **ret, char **ret_problem) {
        _cleanup_(message_freep) Message *m = calloc(1, sizeof(Message));

        if (!m || n_fds > MESSAGE_FDS_MAX) {
                for (size_t i = 0; i < n_fds; i++)
                        safe_close(fds[i]);
                return m ? problem_set(ret_problem, "more than %u file descriptors", MESSAGE_FDS_MAX) : -ENOMEM;
        }
        if (n_fds > 0)
                memcpy(m->fds, fds, n_fds * sizeof(int));
        m->n_fds = n_fds;

        int r = parse_object(m, data, size, ret_problem);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        return 0;
}

int message_receive(int sock, Message **ret, char **ret_problem) {
        _cleanup_free_ char *buffer = malloc(MESSAGE_SIZE_MAX);
        int fds[MESSAGE_FDS_MAX];
        size_t n_fds = 0;

        if (!buffer)
                return -ENOMEM;
        ssize_t n = recv_fds(sock, buffer, MESSAGE_SIZE_MAX, fds, MESSAGE_FDS_MAX, &n_fds);
        if (n == -EMSGSIZE)
                return problem_set(ret_problem, "the message is larger than %u bytes or carries more than %u file descriptors",
                                   MESSAGE_SIZE_MAX, MESSAGE_FDS_MAX);
        if (n < 0)
                return (int) n;
        if (n == 0 && n_fds == 0)
                return -ECONNRESET;
        int r = message_parse(buffer, (size_t) n, fds, n_fds, ret, ret_problem);
        explicit_bzero(buffer, (size_t) n); /* it may have held a token */
        return r;
}

const char *message_type(const Message *m) {
        return m->type;
}

JsonObject *message_object(const Message *m) {
        return m->object;
}

static int find_fd(const Message *m, const char *name) {
        JsonArray *names = fd_names(m);

        for (size_t i = 0; i < m->n_fds; i++)
                if (m->fds[i] >= 0 && streq(json_array_get_string_element(names, (guint) i), name))
                        return (int) i;
        return -ENOENT;
}

int message_peek_fd(const Message *m, const char *name) {
        int i = find_fd(m, name);
        return i < 0 ? i : m->fds[i];
}

int message_take_fd(Message *m, const char *name) {
        int i = find_fd(m, name);
        return i < 0 ? i : TAKE_FD(m->fds[i]);
}

int message_format(const Message *m, char **ret, size_t *ret_size) {
        gchar *text = json_to_string(json_parser_get_root(m->parser), FALSE);

        if (!text)
                return -ENOMEM;
        *ret = text; /* GLib's allocator is the C library's since 2.46 */
        *ret_size = strlen(text);
        return 0;
}

static int get_value(JsonObject *o, const char *name, GType type, JsonNode **ret) {
        JsonNode *node = json_object_get_member(o, name);

        if (!node)
                return -ENOENT;
        if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != type)
                return -EINVAL;
        *ret = node;
        return 0;
}

int json_get_string(JsonObject *o, const char *name, const char **ret) {
        JsonNode *node;
        int r = get_value(o, name, G_TYPE_STRING, &node);
        if (r >= 0)
                *ret = json_node_get_string(node);
        return r;
}

int json_get_u64(JsonObject *o, const char *name, uint64_t max, uint64_t *ret) {
        JsonNode *node;
        int r = get_value(o, name, G_TYPE_INT64, &node);
        if (r < 0)
                return r;
        gint64 value = json_node_get_int(node);
        if (value < 0 || (uint64_t) value > max)
                return -EINVAL;
        *ret = (uint64_t) value;
        return 0;
}

int json_get_bool(JsonObject *o, const char *name, bool *ret) {
        JsonNode *node;
        int r = get_value(o, name, G_TYPE_BOOLEAN, &node);
        if (r >= 0)
                *ret = json_node_get_boolean(node);
        return r;
}

int json_get_object(JsonObject *o, const char *name, JsonObject **ret) {
        JsonNode *node = json_object_get_member(o, name);
        if (!node)
                return -ENOENT;
        if (!JSON_NODE_HOLDS_OBJECT(node))
                return -EINVAL;
        *ret = json_node_get_object(node);
        return 0;
}

int json_get_array(JsonObject *o, const char *name, JsonArray **ret) {
        JsonNode *node = json_object_get_member(o, name);
        if (!node)
                return -ENOENT;
        if (!JSON_NODE_HOLDS_ARRAY(node))
                return -EINVAL;
        *ret = json_node_get_array(node);
        return 0;
}

int json_get_strv(JsonObject *o, const char *name, char ***ret) {
        _cleanup_strv_free_ char **list = NULL;
        JsonArray *array;

        int r = json_get_array(o, name, &array);
        if (r < 0)
                return r;
        for (guint i = 0; i < json_array_get_length(array); i++) {
                JsonNode *node = json_array_get_element(array, i);
                if (!JSON_NODE_HOLDS_VALUE(node) || json_node_get_value_type(node) != G_TYPE_STRING)
                        return -EINVAL;
                r = strv_extend(&list, json_node_get_string(node));
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(list);
        return 0;
}

void message_open(JsonWriter *w, const char *type) {
        json_open_object(w, NULL);
        json_add_u64(w, "v", MESSAGE_VERSION);
        json_add_string(w, "type", type);
}

void message_add_fd(JsonWriter *w, const char *name) {
        json_open_array(w, "fds");
        json_add_string(w, NULL, name);
        json_close_array(w);
}

int message_close(JsonWriter *w, char **ret, size_t *ret_size) {
        _cleanup_free_ char *text = NULL;
        size_t size;

        json_close_object(w);
        int r = json_writer_finish(w, &text, &size);
        if (r < 0)
                return r;
        if (size > MESSAGE_SIZE_MAX)
                return -EMSGSIZE;
        *ret = TAKE_PTR(text);
        *ret_size = size;
        return 0;
}

int message_send(int sock, JsonWriter *w, const int *fds, size_t n_fds) {
        _cleanup_free_ char *text = NULL;
        size_t size;

        int r = message_close(w, &text, &size);
        if (r < 0)
                return r;
        ssize_t n = send_fds(sock, text, size, fds, n_fds);
        explicit_bzero(text, size);
        return n < 0 ? (int) n : 0;
}

int message_reply_error(int sock, const char *text) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        message_open(&w, "error");
        json_add_string(&w, "text", text);
        return message_send(sock, &w, NULL, 0);
}
