/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "setup-fixture.h"

static Setup *provider_with(const char *members) {
        char text[4096];

        (void) snprintf(text, sizeof(text), "{" IDENTITY ",\"fds\":[\"keys\"],\"providers\":{\"p\":{" URL "," NAME ",%s}}}", members);
        return parse_good(text, KEYS_P);
}

static void test_placements(void) {
        _cleanup_(setup_freep) Setup *s = provider_with("\"placement\":\"basic\",\"user\":\"oauth2\"");

        /* base64 of "oauth2:" and the key */
        CHECK_STR(secret_data(s->providers[0].basic), "b2F1dGgyOnNrLXJlYWwta2V5LTAxMjM0NTY3ODk");
        s = setup_free(s);
        s = provider_with("\"placement\":\"header\",\"header\":\"PRIVATE-TOKEN\"");
        CHECK_STR(s->providers[0].header, "PRIVATE-TOKEN");
        CHECK(!s->providers[0].basic && s->providers[0].placement == PLACEMENT_HEADER);
        s = setup_free(s);
        s = provider_with("\"placement\":\"either\"");
        CHECK_INT(s->providers[0].placement, PLACEMENT_EITHER);

        static const char *const rows[][2] = {
                {"\"placement\":\"basic\"", "\"providers.p.user\" belongs to"}, {PLACE ",\"user\":\"x\"", "\"providers.p.user\" belongs to"},
                {"\"placement\":\"header\"", "\"providers.p.header\" belongs to"}, {PLACE ",\"header\":\"x\"", "\"providers.p.header\" belongs to"},
                {"\"placement\":\"header\",\"header\":\"Host\"", "\"providers.p.header\" is a header with a meaning"},
                {"\"placement\":\"header\",\"header\":1", "\"providers.p.header\" is not a string"},
                {"\"placement\":\"basic\",\"user\":\"a:b\"", "\"providers.p.user\" is not a user's name"},
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char text[1024];
                (void) snprintf(text, sizeof(text), "{" IDENTITY ",\"fds\":[\"keys\"],\"providers\":{\"p\":{" URL "," NAME ",%s}}}", rows[i][0]);
                refused_with(text, KEYS_P, rows[i][1]);
        }
}

static void test_rules(void) {
        _cleanup_(setup_freep) Setup *s = provider_with(
                PLACE ",\"capabilities\":[{\"method\":\"POST\",\"path\":\"/v1/messages\"},{\"method\":\"*\",\"path\":\"/a/**\"}],\"strictCapabilities\":true,"
                      "\"budgets\":{\"requests\":{\"limit\":5,\"spent\":2},\"tokens\":{\"limit\":7}}");
        const Provider *p = s->providers;

        CHECK(p->n_capabilities == 2 && p->strict && !p->every_call && streq(p->capabilities[1].path, "/a/**"));
        CHECK(p->budget && p->budget->limit[BUDGET_REQUESTS] == 5 && p->budget->spent[BUDGET_REQUESTS] == 2 && p->budget->limit[BUDGET_TOKENS] == 7);
        CHECK(!s->budget && !s->enforce_server_name);
        s = setup_free(s);
        s = provider_with(PLACE ",\"capabilities\":\"*\"");
        CHECK(s->providers[0].every_call && !s->providers[0].budget);
        s = setup_free(s);
        s = parse_good("{" IDENTITY ",\"fds\":[\"keys\"],\"egress\":{\"serverName\":\"enforce\"},\"budgets\":{\"bytes\":{\"limit\":9}}}", KEYS);
        CHECK(s->enforce_server_name && s->budget && s->budget->limit[BUDGET_BYTES] == 9);

        static const char *const rows[][2] = {
                {"\"capabilities\":[]", "\"providers.p.capabilities\" has not 1 to"}, {"\"capabilities\":{}", "is neither a list nor \"*\""},
                {"\"capabilities\":\"all\"", "is neither a list nor \"*\""}, {"\"capabilities\":[\"GET /\"]", "capabilities[0]\" is not an object"},
                {"\"capabilities\":[{\"method\":\"GET\"}]", "capabilities[0]\" lacks the string"},
                {"\"capabilities\":[{\"method\":\"get\",\"path\":\"/\"}]", "capabilities[0].method\" is neither"},
                {"\"capabilities\":[{\"method\":\"GET\",\"path\":\"a\"}]", "capabilities[0].path\" does not begin"},
                {"\"capabilities\":[{\"method\":\"GET\",\"path\":\"/\",\"x\":1}]", "capabilities[0].x\" is not known"},
                {"\"strictCapabilities\":true", "is true without \"capabilities\""}, {"\"strictCapabilities\":1", "is not true or false"},
                {"\"budgets\":1", "\"providers.p.budgets\" is not an object"}, {"\"budgets\":{\"x\":{}}", "\"providers.p.budgets.x\" is not known"},
                {"\"budgets\":{\"bytes\":{}}", "\"providers.p.budgets.bytes\" has not the number"},
                {"\"budgets\":{\"bytes\":{\"limit\":-1}}", "\"providers.p.budgets.bytes\" has not the number"},
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char text[1024];
                (void) snprintf(text, sizeof(text), "{" IDENTITY ",\"fds\":[\"keys\"],\"providers\":{\"p\":{" URL "," NAME "," PLACE ",%s}}}", rows[i][0]);
                refused_with(text, KEYS_P, rows[i][1]);
        }
        refused_with("{" IDENTITY ",\"fds\":[\"keys\"],\"egress\":{\"serverName\":\"off\"}}", KEYS, "\"egress.serverName\" is neither");
}

int main(void) {
        RUN(test_placements, "S089 C185: placements and what belongs to them");
        RUN(test_rules, "S096 S104: capabilities, budgets and the rule for server names");
        return TEST_END();
}
