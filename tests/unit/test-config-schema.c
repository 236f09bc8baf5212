/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* data/errand.schema.json is made from the table of keys and kept in the tree: this compares the two. With --print it writes what the file
 * ought to be: test-config-schema --print > data/errand.schema.json */

#include "errandd/config-keys.h"
#include "basic/io.h"
#include "basic/text.h"
#include "shared/json-check.h"
#include "test.h"

static char *wanted, *kept;

static void test_same(void) {
        size_t n = 0;

        while (wanted[n] && wanted[n] == kept[n])
                n++;
        if (wanted[n] || kept[n])
                test_fail(__FILE__, __LINE__, "differs from the table at byte %zu: \"%.40s\", not \"%.40s\"", n, kept + n, wanted + n);
}

static void count_keys(JsonObject *o, const ConfigKey *keys, size_t n_keys, size_t *count) {
        JsonObject *properties = json_object_get_object_member(o, "properties");

        CHECK_INT(json_object_get_size(properties), n_keys);
        for (size_t i = 0; i < n_keys; i++, (*count)++) {
                JsonObject *key;
                if (!json_object_has_member(properties, keys[i].name))
                        test_fail(__FILE__, __LINE__, "%s is not in the schema", keys[i].name);
                key = json_object_get_object_member(properties, keys[i].name);
                CHECK(strlen(json_object_get_string_member(key, "description")) > 5);
                CHECK(keys[i].offset != NO_OFFSET || keys[i].type == CONFIG_OBJECT || keys[i].type == CONFIG_TEXT);
                CHECK(keys[i].type != CONFIG_WORD || keys[i].words);
                if (keys[i].children) {
                        CHECK(!json_object_get_boolean_member(key, "additionalProperties"));
                        count_keys(key, keys[i].children, keys[i].n_children, count);
                }
        }
}

static void test_keys(void) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        JsonProblem problem;
        JsonObject *object;
        size_t n = 0;

        if (json_read_object(kept, strlen(kept), 32, &parser, &object, &problem) < 0)
                test_fail(__FILE__, __LINE__, "line %u: %s", problem.line, problem.text);
        count_keys(object, config_keys, n_config_keys, &n);
        CHECK(n > 60);
}

/* What users were told of, each to be there under that very name. */
static void test_promised(void) {
        static const char *const promised[] = {
                "projectRoot", "stateDir", "agent.providers.credential", "agent.providers.baseUrl", "agent.providers.kind", "agent.providers.placement",
                "agent.providers.capabilities", "agent.providers.strictCapabilities", "agent.providers.broker", "github.token", "github.app", "sandbox.backend",
                "sandbox.requireFullEnforcement", "sandbox.network", "sandbox.egress.mode", "sandbox.egress.allow", "sandbox.egress.allowInternal",
                "sandbox.egressPorts", "sandbox.image", "sandbox.incus.project", "sandbox.incus.image", "sandbox.incus.golden", "sandbox.incus.rootSize",
                "sandbox.incus.guestUid", "sandbox.hideHostAddress", "sandbox.policyExtra.read", "sandbox.policyExtra.write", "sandbox.policyExtra.execute",
                "sandbox.env", "sandbox.pathExtra", "sandbox.memory", "sandbox.cpus", "sandbox.pids", "sandbox.fileMax", "sandbox.tmpSize", "sandbox.shmSize",
                "sandbox.disk", "sandbox.diskCheckMs", "sandbox.gracePeriodMs",
        };

        for (size_t i = 0; i < ELEMENTSOF(promised); i++) {
                const ConfigKey *keys = config_keys, *found = NULL;
                size_t n_keys = n_config_keys;
                for (const char *part = promised[i]; *part; part += strcspn(part, "."), part += *part == '.') {
                        size_t n = strcspn(part, ".");
                        found = NULL;
                        for (size_t k = 0; k < n_keys && !found; k++)
                                if (strlen(keys[k].name) == n && memcmp(keys[k].name, part, n) == 0)
                                        found = &keys[k];
                        if (!found)
                                test_fail(__FILE__, __LINE__, "there is no key %s", promised[i]);
                        bool providers = found->type == CONFIG_PROVIDERS;
                        keys = providers ? config_provider_keys : found->children;
                        n_keys = providers ? n_config_provider_keys : found->n_children;
                }
        }
}

int main(int argc, char **argv) {
        if (config_schema_write(&wanted) < 0)
                return 1;
        if (argc == 2 && streq(argv[1], "--print")) {
                fputs(wanted, stdout);
                return 0;
        }
        if (argc != 2 || read_file_full(argv[1], 1 << 20, &kept, NULL) < 0) {
                fprintf(stderr, "test-config-schema: give the schema's path, or --print\n");
                return 1;
        }
        RUN(test_same, "the editors' schema is what the table of keys makes");
        RUN(test_keys, "the schema is JSON and holds every key");
        RUN(test_promised, "every key that was promised is there");
        free(wanted);
        free(kept);
        return TEST_END();
}
