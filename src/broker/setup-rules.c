/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/setup-provider.h"

static int parse_capability(JsonNode *node, const char *where, size_t i, Capability *c, char **ret_problem) {
        static const char *const members[] = {"method", "path", NULL};
        const char *method, *path, *problem;
        char inner[128];

        if (!JSON_NODE_HOLDS_OBJECT(node))
                return problem_set(ret_problem, "\"%scapabilities[%zu]\" is not an object", where, i);
        JsonObject *o = json_node_get_object(node);
        (void) snprintf(inner, sizeof(inner), "%scapabilities[%zu].", where, i);
        int r = setup_check_members(o, inner, members, ret_problem);
        if (r < 0)
                return r;
        if (json_get_string(o, "method", &method) < 0 || json_get_string(o, "path", &path) < 0)
                return problem_set(ret_problem, "\"%scapabilities[%zu]\" lacks the string \"method\" or \"path\"", where, i);
        if ((problem = capability_method_problem(method)))
                return problem_set(ret_problem, "\"%smethod\" %s", inner, problem);
        if ((problem = capability_path_problem(path)))
                return problem_set(ret_problem, "\"%spath\" %s", inner, problem);
        c->method = strdup(method);
        c->path = strdup(path);
        return c->method && c->path ? 0 : -ENOMEM;
}

static int parse_list(JsonNode *node, const char *where, Provider *p, char **ret_problem) {
        JsonArray *list = json_node_get_array(node);
        size_t n = json_array_get_length(list);

        if (n == 0 || n > CAPABILITIES_MAX)
                return problem_set(ret_problem, "\"%scapabilities\" has not 1 to %u entries", where, CAPABILITIES_MAX);
        p->capabilities = calloc(n, sizeof(Capability));
        if (!p->capabilities)
                return -ENOMEM;
        while (p->n_capabilities < n) {
                size_t i = p->n_capabilities++;
                int r = parse_capability(json_array_get_element(list, (guint) i), where, i, &p->capabilities[i], ret_problem);
                if (r < 0)
                        return r;
        }
        return 0;
}

int setup_parse_capabilities(JsonObject *o, const char *where, Provider *p, char **ret_problem) {
        JsonNode *node = json_object_get_member(o, "capabilities");
        int r = 0;

        if (node && JSON_NODE_HOLDS_ARRAY(node))
                r = parse_list(node, where, p, ret_problem);
        else if (node && JSON_NODE_HOLDS_VALUE(node) && streq_ptr(json_node_get_string(node), "*"))
                p->every_call = true;
        else if (node)
                r = problem_set(ret_problem, "\"%scapabilities\" is neither a list nor \"*\"", where);
        if (r < 0)
                return r;
        r = json_get_bool(o, "strictCapabilities", &p->strict);
        if (r < 0 && r != -ENOENT)
                return problem_set(ret_problem, "\"%sstrictCapabilities\" is not true or false", where);
        return p->strict && !node ? problem_set(ret_problem, "\"%sstrictCapabilities\" is true without \"capabilities\"", where) : 0;
}

static int parse_budget(JsonObject *all, const char *where, BudgetKind k, Budget *b, char **ret_problem) {
        static const char *const members[] = {"limit", "spent", NULL};
        const char *name = budget_kind_to_string(k);
        char inner[128];
        JsonObject *o;

        int r = json_get_object(all, name, &o);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return problem_set(ret_problem, "\"%sbudgets.%s\" is not an object", where, name);
        (void) snprintf(inner, sizeof(inner), "%sbudgets.%s.", where, name);
        r = setup_check_members(o, inner, members, ret_problem);
        if (r < 0)
                return r;
        r = json_get_u64(o, "spent", INT64_MAX, &b->spent[k]);
        if (json_get_u64(o, "limit", INT64_MAX, &b->limit[k]) < 0 || (r < 0 && r != -ENOENT))
                return problem_set(ret_problem, "\"%sbudgets.%s\" has not the number \"limit\", or a \"spent\" that is none", where, name);
        return 0;
}

int setup_parse_budgets(JsonObject *o, const char *where, Budget **ret, char **ret_problem) {
        static const char *const members[] = {"requests", "bytes", "tokens", NULL};
        char inner[128];
        JsonObject *all;
        Budget b = {};

        int r = json_get_object(o, "budgets", &all);
        if (r == -ENOENT)
                return 0;
        if (r < 0)
                return problem_set(ret_problem, "\"%sbudgets\" is not an object", where);
        (void) snprintf(inner, sizeof(inner), "%sbudgets.", where);
        r = setup_check_members(all, inner, members, ret_problem);
        for (BudgetKind k = 0; k < _BUDGET_KIND_MAX && r >= 0; k++)
                r = parse_budget(all, where, k, &b, ret_problem);
        if (r < 0)
                return r;
        *ret = malloc(sizeof(Budget));
        if (!*ret)
                return -ENOMEM;
        **ret = b;
        return 0;
}
