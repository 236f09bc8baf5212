/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* grants.json: {"v":1,"last":3,"grants":[{"number":1,"host":"api.example.com","duration":"10m","granted":µs,"boottime":µs,
 * "boot":"…","by":1000,"used":µs}, …]}; "used" only of a grant for once that was used. */

#include "basic/json-writer.h"
#include "basic/text.h"
#include "errandd/grant-list.h"
#include "errandd/record-dir.h"
#include "shared/json-check.h"
#include "shared/message.h"

#define GRANTS_VERSION 1U
#define GRANTS_DEPTH_MAX 4U
#define TIME_MAX UINT64_C(999999999999999999) /* json_check() takes no longer integer */

static void write_grant(JsonWriter *w, const Grant *g) {
        char buffer[TIMESPAN_TEXT_MAX];

        json_open_object(w, NULL);
        json_add_u64(w, "number", g->number);
        json_add_string(w, "host", g->host);
        json_add_string(w, "duration", grant_duration_text(g, buffer));
        json_add_u64(w, "granted", g->granted.realtime);
        json_add_u64(w, "boottime", g->granted.boottime);
        json_add_string(w, "boot", g->granted.boot_id);
        json_add_u64(w, "by", g->granted_by);
        if (g->used > 0)
                json_add_u64(w, "used", g->used);
        json_close_object(w);
}

int grant_list_format(const GrantList *l, char **ret, size_t *ret_size) {
        JsonWriter w = {};

        json_open_object(&w, NULL);
        json_add_u64(&w, "v", GRANTS_VERSION);
        json_add_u64(&w, "last", l->last);
        json_open_array(&w, "grants");
        for (size_t i = 0; i < l->n_grants; i++)
                write_grant(&w, &l->grants[i]);
        json_close_array(&w);
        json_close_object(&w);
        return json_writer_finish(&w, ret, ret_size);
}

/* Only what grant_list_format() writes: a host that is not in its normal form was put there by hand. */
static bool read_texts(JsonObject *o, Grant *g) {
        const char *host, *duration, *boot, *problem;
        char normal[HOST_TEXT_MAX + 1];

        if (json_get_string(o, "host", &host) < 0 || json_get_string(o, "duration", &duration) < 0 ||
            json_get_string(o, "boot", &boot) < 0)
                return false;
        if (host_text_normalize(host, HOST_TEXT_WILDCARD, normal, &problem) < 0 || !streq(normal, host) ||
            grant_duration_parse(duration, &g->duration, &g->span, &problem) < 0 || strlen(boot) != BOOT_ID_SIZE)
                return false;
        strcpy(g->host, host);
        strcpy(g->granted.boot_id, boot);
        return true;
}

static bool read_numbers(JsonObject *o, Grant *g) {
        uint64_t number, by;

        if (json_get_u64(o, "number", GRANT_NUMBER_MAX, &number) < 0 || json_get_u64(o, "by", UINT32_MAX - 1, &by) < 0 ||
            json_get_u64(o, "granted", TIME_MAX, &g->granted.realtime) < 0 ||
            json_get_u64(o, "boottime", TIME_MAX, &g->granted.boottime) < 0)
                return false;
        int r = json_get_u64(o, "used", TIME_MAX, &g->used);
        if (r == -EINVAL || (r >= 0 && (g->used == 0 || g->duration != GRANT_ONCE)))
                return false;
        g->number = (uint32_t) number;
        g->granted_by = (uid_t) by;
        return json_object_get_size(o) == (r >= 0 ? 8U : 7U);
}

static int read_grants(JsonArray *array, GrantList *l, char **ret_problem) {
        guint n = json_array_get_length(array);
        uint32_t previous = 0;

        if (n > GRANTS_MAX)
                return problem_set(ret_problem, "has more than %u grants", GRANTS_MAX);
        l->grants = calloc(n + 1, sizeof(Grant));
        if (!l->grants)
                return -ENOMEM;
        for (guint i = 0; i < n; i++) {
                JsonNode *node = json_array_get_element(array, i);
                Grant *g = &l->grants[i];

                if (!JSON_NODE_HOLDS_OBJECT(node) || !read_texts(json_node_get_object(node), g) ||
                    !read_numbers(json_node_get_object(node), g))
                        return problem_set(ret_problem, "has a grant, the %u. of them, that is not what it must be", i + 1);
                if (g->number <= previous || g->number > l->last)
                        return problem_set(ret_problem, "has grants whose numbers do not fit each other");
                previous = g->number;
                l->n_grants++;
        }
        return 0;
}

int grant_list_parse(const char *text, size_t size, GrantList *ret, char **ret_problem) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        _cleanup_(grant_list_done) GrantList l = {};
        uint64_t version, last;
        JsonProblem problem;
        JsonObject *object;
        JsonArray *array;

        int r = json_read_object(text, size, GRANTS_DEPTH_MAX, &parser, &object, &problem);
        if (r == -EBADMSG)
                return problem_set(ret_problem, "line %u, column %u: %s", problem.line, problem.column, problem.text);
        if (r < 0)
                return r;
        if (json_get_u64(object, "v", UINT32_MAX, &version) < 0 || version != GRANTS_VERSION)
                return problem_set(ret_problem, "is not of version %u, the only one known here", GRANTS_VERSION);
        if (json_get_u64(object, "last", GRANT_NUMBER_MAX, &last) < 0 || json_get_array(object, "grants", &array) < 0 ||
            json_object_get_size(object) != 3)
                return problem_set(ret_problem, "does not hold \"last\" and \"grants\" and nothing else");
        l.last = (uint32_t) last;
        r = read_grants(array, &l, ret_problem);
        if (r < 0)
                return r;
        *ret = l;
        l = (GrantList){};
        return 0;
}

int grant_list_read(int dir, GrantList *ret, char **ret_problem) {
        _cleanup_free_ char *text = NULL, *reason = NULL;
        size_t size;

        int r = record_read_file(dir, GRANT_LIST_NAME, &text, &size);
        if (r == -ENOENT) {
                *ret = (GrantList){};
                return 0;
        }
        if (r == -ENOMEM)
                return r;
        if (r < 0)
                return problem_set(ret_problem, GRANT_LIST_NAME " cannot be read: %s",
                                   r == -EPERM ? "it is not a regular file of this account" : strerror(-r));
        r = grant_list_parse(text, size, ret, &reason);
        return r == -EBADMSG ? problem_set(ret_problem, GRANT_LIST_NAME " %s", reason) : r;
}
