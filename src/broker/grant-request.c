/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/fd.h"
#include "basic/text.h"
#include "broker/grant-request.h"
#include "broker/limits.h"
#include "broker/setup-provider.h"

#define DEPTH_MAX 3U

int grant_request_read(JsonObject *o, GrantRequest *ret, const char **ret_problem) {
        const char *id, *host, *word;
        usec_t expires = 0;

        if (json_get_string(o, "id", &id) < 0 || json_get_string(o, "host", &host) < 0 || json_get_string(o, "duration", &word) < 0) {
                *ret_problem = "a grant has the strings \"id\", \"host\" and \"duration\"";
                return -EBADMSG;
        }
        GrantDuration duration = grant_duration_from_string(word);
        int r = json_get_u64(o, "expires", INT64_MAX, &expires);
        if (duration < 0 || (r < 0 && r != -ENOENT) || (duration == GRANT_UNTIL) != (r >= 0)) {
                *ret_problem = "\"duration\" is \"once\", \"always\", or \"until\" with \"expires\" in µs since the epoch";
                return -EBADMSG;
        }
        *ret = (GrantRequest){.id = id, .host = host, .duration = duration, .deadline = duration == GRANT_UNTIL ? grants_deadline(expires) : 0};
        return 0;
}

static int read_one(JsonNode *node, size_t i, GrantRequest *ret, char **ret_problem) {
        static const char *const members[] = {"id", "host", "duration", "expires", NULL};
        const char *problem = NULL;
        char where[32];

        if (!JSON_NODE_HOLDS_OBJECT(node))
                return problem_set(ret_problem, "\"grants[%zu]\" is not an object", i);
        JsonObject *o = json_node_get_object(node);
        (void) snprintf(where, sizeof(where), "grants[%zu].", i);
        int r = setup_check_members(o, where, members, ret_problem);
        if (r < 0)
                return r;
        return grant_request_read(o, ret, &problem) < 0 ? problem_set(ret_problem, "\"grants[%zu]\": %s", i, problem) : 0;
}

int grant_requests_parse(const char *text, size_t size, JsonParser **ret_parser, GrantRequest **ret, size_t *ret_n, char **ret_problem) {
        static const char *const members[] = {"grants", NULL};
        _cleanup_json_parser_ JsonParser *parser = NULL;
        JsonProblem json;
        JsonObject *o;
        JsonArray *list;

        int r = json_read_object(text, size, DEPTH_MAX, &parser, &o, &json);
        if (r < 0)
                return r == -EBADMSG ? problem_set(ret_problem, "the text of the grants is no JSON object: line %u, column %u: %s", json.line, json.column, json.text) : r;
        r = setup_check_members(o, "", members, ret_problem);
        if (r < 0)
                return r;
        if (json_get_array(o, "grants", &list) < 0)
                return problem_set(ret_problem, "\"grants\" is missing or not a list");
        size_t n = json_array_get_length(list);
        if (n > GRANTS_MAX)
                return problem_set(ret_problem, "\"grants\" has more than %u entries", GRANTS_MAX);
        _cleanup_free_ GrantRequest *requests = n > 0 ? calloc(n, sizeof(GrantRequest)) : NULL;
        if (n > 0 && !requests)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                r = read_one(json_array_get_element(list, (guint) i), i, requests + i, ret_problem);
                if (r < 0)
                        return r;
        }
        *ret_parser = TAKE_PTR(parser);
        *ret = TAKE_PTR(requests);
        *ret_n = n;
        return 0;
}

int grant_requests_read(int fd, JsonParser **ret_parser, GrantRequest **ret, size_t *ret_n, char **ret_problem) {
        _cleanup_free_ char *text = NULL;
        size_t size;

        int r = memfd_read_sealed(fd, GRANTS_TEXT_MAX, &text, &size);
        if (r == -EINVAL)
                return problem_set(ret_problem, "the grants are not in a memfd sealed against writing, shrinking and growing");
        if (r == -E2BIG)
                return problem_set(ret_problem, "the text of the grants is larger than %u KiB", GRANTS_TEXT_MAX / 1024);
        if (r < 0)
                return r;
        return grant_requests_parse(text, size, ret_parser, ret, ret_n, ret_problem);
}
