/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "errandd/config.h"
#include "test.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)

static char **problems;

static int parse_mode(const char *text, ConfigMode mode, Config **ret) {
        problems = strv_free(problems);
        return config_parse("errand.json", text, strlen(text), mode, ret, &problems);
}

static Config *load(const char *text) {
        Config *c = NULL;
        if (parse_mode(text, CONFIG_SYSTEM, &c) < 0)
                test_fail(__FILE__, __LINE__, "%s: refused: %s", text, problems ? problems[0] : "?");
        return c;
}

/* That text is refused with these sentences, each given without the file's name, and no other. */
static void refused(const char *text, const char *first, ...) {
        const char *expected = first;
        Config *c = NULL;
        size_t n = 0;
        va_list ap;

        if (parse_mode(text, CONFIG_SYSTEM, &c) != -EBADMSG)
                test_fail(__FILE__, __LINE__, "%s: not refused", text);
        va_start(ap, first);
        for (; expected; expected = va_arg(ap, const char *), n++) {
                const char *rest = n < strv_length(problems) ? startswith(problems[n], "errand.json: ") : NULL;
                if (!rest || !startswith(rest, expected))
                        test_fail(__FILE__, __LINE__, "%s: \"%s\", not \"%s\"", text, rest ?: "(nothing)", expected);
        }
        va_end(ap);
        if (n != strv_length(problems))
                test_fail(__FILE__, __LINE__, "%s: one more: %s", text, problems[n]);
}

/* The same, within a provider that is fine without `members`. */
static void refused_provider(const char *members, const char *expected) {
        char text[1024], sentence[512];

        (void) snprintf(text, sizeof(text), "{\"agent\":{\"providers\":{\"p\":{\"credential\":\"k-12345678\"%s%s}}}}", *members ? "," : "", members);
        (void) snprintf(sentence, sizeof(sentence), "agent.providers.p%s", expected);
        refused(text, sentence, NULL);
}

static Config *load_provider(const char *members) {
        char text[1024];

        (void) snprintf(text, sizeof(text), "{\"agent\":{\"providers\":{\"p\":{\"credential\":\"k-12345678\"%s%s}}}}", *members ? "," : "", members);
        return load(text);
}

static void test_defaults(void) {
        _cleanup_(config_freep) Config *c = load("{}"), *fresh = NULL, *user = NULL;

        CHECK_STR(c->project_root, "/srv/errand");
        CHECK_STR(c->state_dir, "/var/lib/errand");
        CHECK(!c->operators && !c->agent.given && c->agent.n_providers == 0 && !c->warnings);
        const ConfigSandbox *s = &c->sandbox;
        CHECK(s->backend == BACKEND_BAILEY && s->require_full_enforcement && s->network == NETWORK_RESTRICTED && !s->hide_host_address);
        CHECK(s->memory == 4 * GIB && s->file_max == GIB && s->disk == 5 * GIB && s->tmp_size == GIB && s->shm_size == 64 * MIB);
        CHECK(s->cpus == 2 * CONFIG_CPUS_SCALE && s->pids == 512 && s->disk_check == 30 * USEC_PER_SEC && s->grace_period == 10 * USEC_PER_SEC);
        CHECK(s->n_ports == 1 && s->ports[0] == 443);
        CHECK(s->egress.mode == EGRESS_PROXY && !s->egress.given && !s->egress.allow_internal && s->egress.server_name == SERVER_NAME_LOG);
        CHECK(strv_length(s->egress.allow) == 1 && streq(s->egress.allow[0], "*"));
        CHECK_INT(s->incus.guest_uid, 1000);
        CHECK_STR(s->incus.project, "errand");
        CHECK(c->limits.live_sessions > 0 && c->timeouts.startup > 0 && c->budgets.requests == 0);
        CHECK_INT(config_new(CONFIG_SYSTEM, &fresh), 0);
        CHECK(streq(fresh->sandbox.egress.allow[0], "*") && fresh->sandbox.memory == 4 * GIB);
        CHECK_INT(parse_mode("{}", CONFIG_USER, &user), 0);
        CHECK(!user->project_root && !user->state_dir);
}

static void test_whole(void) {
        _cleanup_(config_freep) Config *c = load(
                "{\"$schema\":\"x\",\"projectRoot\":\"/srv//a/\",\"stateDir\":\"/var/lib/b\",\"operators\":[\"alice\",\"bob\"],"
                "\"agent\":{\"command\":[\"kage\",\"serve\",\"serve\"],\"provider\":\"anthropic\",\"model\":\"m1\",\"providers\":{"
                "\"anthropic\":{\"kind\":\"anthropic\",\"baseUrl\":\"https://api.example.com/v1/\",\"credential\":{\"file\":\"/etc/errand/key\"},"
                "\"capabilities\":[{\"method\":\"POST\",\"path\":\"/v1/messages\"},{\"method\":\"*\",\"path\":\"/v1/*/x/**\"}],\"strictCapabilities\":true,\"note\":{\"any\":1}},"
                "\"local-x\":{\"kind\":\"openai\",\"credential\":\"not-needed\",\"credentialName\":\"LOCAL_KEY\",\"capabilities\":\"*\",\"tools\":[\"image\"],\"models\":[\"a\"]},"
                "\"third\":{\"broker\":false,\"placement\":\"x-api-key\",\"caFile\":\"/etc/ca.pem\"}}},"
                "\"github\":{\"token\":{\"systemdCredential\":\"gh\"},\"userName\":\"N\",\"userEmail\":\"n@example.com\",\"app\":{\"id\":1,\"installation\":2,\"privateKey\":{\"file\":\"/k\"}}},"
                "\"sandbox\":{\"backend\":\"incus\",\"requireFullEnforcement\":false,\"network\":\"none\",\"egress\":{\"mode\":\"open\",\"allow\":[\"API.example.com\",\"*.github.com\"],"
                "\"allowInternal\":[\"10.0.0.5\",\"::1\"],\"serverName\":\"enforce\"},\"egressPorts\":[80,443],\"incus\":{\"image\":\"img\",\"rootSize\":\"30g\",\"guestUid\":1001},"
                "\"memory\":\"512m\",\"cpus\":1.5,\"pids\":64,\"fileMax\":1048576,\"tmpSize\":\"64k\",\"disk\":\"1T\",\"diskCheckMs\":1000,\"gracePeriodMs\":0,\"hideHostAddress\":true,"
                "\"policyExtra\":{\"read\":[\"/opt/t\"],\"write\":[\"/var/cache/x\"],\"execute\":[\"/opt/t/bin\"]},\"env\":{\"CARGO_HOME\":\"/x\",\"HTTPS_PROXY\":\"y\"},\"pathExtra\":[\"/opt/t/bin\"]},"
                "\"limits\":{\"maxLiveSessions\":3},\"timeouts\":{\"idleMs\":0},\"budgets\":{\"requests\":5,\"bytes\":\"1g\",\"tokens\":7}}");
        const ConfigProvider *p = config_find_provider(c, "anthropic");

        CHECK_STR(c->project_root, "/srv/a");
        CHECK_INT(strv_length(c->operators), 2);
        CHECK_INT(strv_length(c->agent.command), 3);
        CHECK(p && p->kind == PROVIDER_ANTHROPIC && p->placement == PLACEMENT_X_API_KEY && p->strict_capabilities && p->n_capabilities == 2);
        CHECK_STR(p->base_url, "https://api.example.com/v1");
        CHECK_STR(p->credential_name, "ANTHROPIC_API_KEY");
        CHECK(p->credential.kind == SECRET_SOURCE_FILE && streq(p->credential.name, "/etc/errand/key"));
        CHECK_STR(p->capabilities[1].path, "/v1/*/x/**");
        p = config_find_provider(c, "local-x");
        CHECK(p && p->placement == PLACEMENT_BEARER && p->every_call && streq(p->credential_name, "LOCAL_KEY") && config_provider_brokered(p));
        CHECK(p->credential.kind == SECRET_SOURCE_INLINE && streq(secret_data(p->credential.value), "not-needed"));
        p = config_find_provider(c, "third");
        CHECK(p && !config_provider_brokered(p) && p->credential.kind == SECRET_SOURCE_NONE && streq(p->credential_name, "THIRD_API_KEY"));
        CHECK(c->github.token.kind == SECRET_SOURCE_SYSTEMD_CREDENTIAL && c->github.app.installation == 2);
        const ConfigSandbox *s = &c->sandbox;
        CHECK(s->egress.given && strv_length(s->egress.allow) == 2 && streq(s->egress.allow[0], "api.example.com"));
        CHECK(s->egress.allow_internal && strv_length(s->egress.internal_list) == 2);
        CHECK(s->cpus == 1500 && s->disk == UINT64_C(1) << 40 && s->tmp_size == 65536 && s->file_max == MIB && s->grace_period == 0);
        CHECK(s->n_ports == 2 && s->ports[0] == 80);
        CHECK_STR(s->env[0], "CARGO_HOME=/x");
        CHECK_INT(c->limits.live_sessions, 3);
        CHECK_INT(c->budgets.bytes, GIB);
}

static void test_all_at_once(void) {
        refused("{\"sandbox\":{\"egress\":{\"mode\":\"prox\",\"alow\":[]},\"memory\":\"4q\"},\"statedir\":\"/x\"}",
                "sandbox.egress.mode: \"prox\" is not \"proxy\" or \"open\"", "sandbox.egress.alow: unknown key; did you mean sandbox.egress.allow?",
                "sandbox.memory: \"4q\" is not a size", "statedir: unknown key; did you mean stateDir?", NULL);
}

static void test_unknown(void) {
        refused("{\"egress\":{}}", "egress: unknown key; did you mean sandbox.egress?", NULL);
        refused("{\"sandbox\":{\"egressPort\":[1]}}", "sandbox.egressPort: unknown key; did you mean sandbox.egressPorts?", NULL);
        refused("{\"sandbox\":{\"EGRESS\":{}}}", "sandbox.EGRESS: unknown key; did you mean sandbox.egress?", NULL);
        refused("{\"sandbox\":{\"xyzzy\":{}}}", "sandbox.xyzzy: unknown key", NULL);
        refused("{\"github\":{\"app\":{\"id\":1,\"installation\":1,\"privateKey\":\"-----BEGIN-----\\nx\",\"installatoin\":1}}}",
                "github.app.installatoin: unknown key; did you mean github.app.installation?", NULL);
        refused("{\"a\\nb\\u001b[2J\":1}", "a\\nb\\x1b[2J: unknown key", NULL);
        refused("{\"\":1}", "\"\": unknown key", NULL);
        /* S001: nothing that turns the sandbox off. */
        refused("{\"sandbox\":{\"backend\":\"none\"}}", "sandbox.backend: \"none\" is not \"bailey\", \"podman\" or \"incus\"", NULL);
        refused("{\"sandbox\":{\"enabled\":false}}", "sandbox.enabled: unknown key", NULL);
        /* S195: no whole policy. */
        refused("{\"sandbox\":{\"policy\":\"x\"}}", "sandbox.policy: unknown key", NULL);
}

static void test_types(void) {
        static const char *const rows[][2] = {
                {"{\"projectRoot\":1}", "projectRoot: must be a text, not a number"},
                {"{\"projectRoot\":null}", "projectRoot: must be a text, not null"},
                {"{\"projectRoot\":\"srv\"}", "projectRoot: \"srv\" must be an absolute path"},
                {"{\"projectRoot\":\"~/x\"}", "projectRoot: \"~/x\" must be an absolute path (a ~ is not expanded)"},
                {"{\"projectRoot\":\"\"}", "projectRoot: \"\" is empty"},
                {"{\"projectRoot\":\"/a\\nb\"}", "projectRoot: \"/a\\nb\" holds control characters"},
                {"{\"operators\":\"alice\"}", "operators: must be a list, not a text"},
                {"{\"operators\":[\"alice\",1]}", "operators[1]: must be a text, not a number"},
                {"{\"operators\":[\"alice\",\"alice\"]}", "operators[1]: \"alice\" is named twice"},
                {"{\"operators\":[\"-x\"]}", "operators[0]: \"-x\" is not an account's name"},
                {"{\"agent\":{\"command\":[]}}", "agent.command: is an empty list"},
                {"{\"agent\":[]}", "agent: must be an object, not a list"},
                {"{\"agent\":{\"provider\":\"x\"}}", "agent.provider: \"x\" is not defined under agent.providers"},
                {"{\"sandbox\":{\"requireFullEnforcement\":\"yes\"}}", "sandbox.requireFullEnforcement: must be true or false, not a text"},
                {"{\"sandbox\":{\"requireFullEnforcement\":0}}", "sandbox.requireFullEnforcement: must be true or false, not a number"},
                {"{\"sandbox\":{\"network\":\"open\"}}", "sandbox.network: \"open\" is not \"restricted\" or \"none\""},
                {"{\"sandbox\":{\"egress\":{\"allow\":[\"a.example\",\"https://x.example/\"]}}}", "sandbox.egress.allow[1]: \"https://x.example/\" is neither"},
                {"{\"sandbox\":{\"egress\":{\"allow\":[\"*.com\"]}}}", "sandbox.egress.allow[0]: \"*.com\" has a '*' before"},
                {"{\"sandbox\":{\"egress\":{\"allow\":[\"A.example\",\"a.example.\"]}}}", "sandbox.egress.allow[1]: \"a.example\" is named twice"},
                {"{\"sandbox\":{\"egress\":{\"allowInternal\":[\"db.internal\"]}}}", "sandbox.egress.allowInternal[0]: \"db.internal\" is not an IP address"},
                {"{\"sandbox\":{\"egress\":{\"allowInternal\":\"yes\"}}}", "sandbox.egress.allowInternal: must be true, false or a list"},
                {"{\"sandbox\":{\"egressPorts\":[0]}}", "sandbox.egressPorts[0]: 0 is not between 1 and 65535"},
                {"{\"sandbox\":{\"egressPorts\":[443,443]}}", "sandbox.egressPorts[1]: port 443 is named twice"},
                {"{\"sandbox\":{\"egressPorts\":[443.5]}}", "sandbox.egressPorts[0]: must be a whole number, not a fraction"},
                {"{\"sandbox\":{\"egressPorts\":443}}", "sandbox.egressPorts: must be a list, not a number"},
                {"{\"sandbox\":{\"memory\":1}}", "sandbox.memory: is not between 16m and 1024t bytes"},
                {"{\"sandbox\":{\"memory\":\"99999999999999999999g\"}}", "sandbox.memory: is not between 16m and 1024t bytes"},
                {"{\"sandbox\":{\"memory\":-5}}", "sandbox.memory: must be a size such as \"4g\" or a number of bytes, not a negative number"},
                {"{\"sandbox\":{\"memory\":4.5}}", "sandbox.memory: must be a size such as"},
                {"{\"sandbox\":{\"cpus\":0}}", "sandbox.cpus: is not between 0.01 and 4096 processors"},
                {"{\"sandbox\":{\"cpus\":1e999}}", "sandbox.cpus: is not between 0.01 and 4096 processors"},
                {"{\"sandbox\":{\"cpus\":\"2\"}}", "sandbox.cpus: must be a number of processors, not a text"},
                {"{\"sandbox\":{\"pids\":0}}", "sandbox.pids: 0 is not between 4 and 4194304"},
                {"{\"sandbox\":{\"gracePeriodMs\":-1}}", "sandbox.gracePeriodMs: -1 is not between 0 and 3600000"},
                {"{\"sandbox\":{\"diskCheckMs\":\"1s\"}}", "sandbox.diskCheckMs: must be a whole number of milliseconds, not a text"},
                {"{\"sandbox\":{\"image\":\"--rm\"}}", "sandbox.image: \"--rm\" is not the name of a container image"},
                {"{\"sandbox\":{\"backend\":\"podman\"}}", "sandbox.backend is \"podman\", which needs sandbox.image"},
                {"{\"sandbox\":{\"backend\":\"podman\",\"image\":\"a b\"}}", "sandbox.image: \"a b\" is not"},
                {"{\"sandbox\":{\"backend\":\"incus\"}}", "sandbox.backend is \"incus\", which needs sandbox.incus.image or"},
                {"{\"sandbox\":{\"incus\":{\"guestUid\":0}}}", "sandbox.incus.guestUid: 0 is not between 1 and"},
                {"{\"sandbox\":{\"incus\":{\"guestUid\":4294967295}}}", "sandbox.incus.guestUid: 4294967295 is not between"},
                {"{\"sandbox\":{\"policyExtra\":{\"read\":[\"opt\"]}}}", "sandbox.policyExtra.read[0]: \"opt\" must be an absolute path"},
                {"{\"sandbox\":{\"pathExtra\":[\"/a:/b\"]}}", "sandbox.pathExtra[0]: \"/a:/b\" holds a ':'"},
                {"{\"sandbox\":{\"env\":{\"PATH\":\"/x\"}}}", "sandbox.env.PATH: the name is placed by the policy"},
                {"{\"sandbox\":{\"env\":{\"HOME\":\"/x\"}}}", "sandbox.env.HOME: the name is placed by the policy"},
                {"{\"sandbox\":{\"env\":{\"A-B\":\"/x\"}}}", "sandbox.env.A-B: the name is not a variable's name"},
                {"{\"sandbox\":{\"env\":{\"A\":1}}}", "sandbox.env.A: must be a text, not a number"},
                {"{\"sandbox\":{\"env\":[\"A=b\"]}}", "sandbox.env: must be an object of names and texts"},
                {"{\"github\":{\"userEmail\":\"nobody\"}}", "github.userEmail: its value is not an e-mail address"},
                {"{\"github\":{\"app\":{\"id\":1,\"installation\":1}}}", "github.app: has no privateKey"},
                {"{\"github\":{\"app\":{\"id\":\"1\",\"installation\":1,\"privateKey\":\"k\"}}}", "github.app.id: must be a whole number, not a text"},
                {"{\"budgets\":{\"requests\":1000000000000000000}}", "line 1, column 43: an integer of more than 18 digits"},
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                refused(rows[i][0], rows[i][1], NULL);
}

static void test_syntax(void) {
        char deep[200] = "";

        refused("", "line 1, column 1: ", NULL);
        refused("[]", "line 1, column 1: not a JSON object", NULL);
        refused("{\"a\":1,}", "line 1, column 8: ", NULL);
        refused("// x\n{}", "line 1, column 1: ", NULL);
        refused("{\"sandbox\":{},\n\"sandbox\":{}}", "line 2, column 10: \"sandbox\" is given twice", NULL);
        for (unsigned i = 0; i < 33; i++)
                strcat(deep, "[");
        refused(deep, "line 1, column 34: nested deeper than 32", NULL);

        Config *c = NULL;
        char *large = malloc(CONFIG_SIZE_MAX + 2);
        CHECK(large);
        memset(large, ' ', CONFIG_SIZE_MAX + 1);
        memcpy(large, "{}", 2);
        problems = strv_free(problems);
        CHECK_INT(config_parse("errand.json", large, CONFIG_SIZE_MAX + 1, CONFIG_SYSTEM, &c, &problems), -EBADMSG);
        CHECK_STR(problems[0], "errand.json: is larger than 1 MiB");
        CHECK_INT(config_parse("errand.json", large, CONFIG_SIZE_MAX, CONFIG_SYSTEM, &c, &problems), 0);
        config_free(c);
        free(large);
}

static void test_directories(void) {
        refused("{\"projectRoot\":\"/var/lib/errand/projects\"}", "projectRoot lies inside stateDir (\"/var/lib/errand\")", NULL);
        refused("{\"stateDir\":\"/srv/errand/x/../state\"}", "stateDir lies inside projectRoot (\"/srv/errand\")", NULL);
        refused("{\"stateDir\":\"/srv/./errand/\"}", "projectRoot and stateDir are the same directory", NULL);
        refused("{\"sandbox\":{\"policyExtra\":{\"write\":[\"/tmp/a\",\"/var\"],\"read\":[\"/\"],\"execute\":[\"/var/lib/errand/x\"]}}}",
                "sandbox.policyExtra.read[0]: \"/\" reaches stateDir", "sandbox.policyExtra.write[1]: \"/var\" reaches stateDir",
                "sandbox.policyExtra.execute[0]: \"/var/lib/errand/x\" reaches stateDir", NULL);
        config_free(load("{\"projectRoot\":\"/var/lib/errand-projects\"}")); /* beside is not inside */
}

static void test_egress(void) {
        _cleanup_(config_freep) Config *block = load("{\"sandbox\":{\"egress\":{\"mode\":\"proxy\"}}}"), *empty = load("{\"sandbox\":{\"egress\":{\"allow\":[]}}}"),
                                       *any = load("{\"sandbox\":{\"egress\":{\"allow\":[\"*\"],\"allowInternal\":true}}}"), *outside = load("{\"sandbox\":{}}");

        CHECK(block->sandbox.egress.given && !block->sandbox.egress.allow);
        CHECK(!empty->sandbox.egress.allow);
        CHECK_STR(any->sandbox.egress.allow[0], "*");
        CHECK(any->sandbox.egress.allow_internal && !any->sandbox.egress.internal_list);
        CHECK_STR(outside->sandbox.egress.allow[0], "*");
}

static void test_misspelt(void) {
        static const char *const bad[] = {"placment", "Placement", "PLACEMENT", "place", "placed", "placements", "Capabilities", "capability", "capabilites",
                                          "capabilitys", "capab", "apabilities", "strict", "strictness", "Strict", "strict_capabilities", "strictcapabilities",
                                          "StrictCapabilities", "strictCapabilites", "trictCapabilities", "plcaement"};
        static const char *const fine[] = {"platform", "capacity", "note", "x", "plan", "stream", "caps", "structure", "replacement-plan"};
        char text[256], expected[256];

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                (void) snprintf(text, sizeof(text), "\"%s\":\"bearer\"", bad[i]);
                (void) snprintf(expected, sizeof(expected), ".%s: reads as a misspelling of ", bad[i]);
                refused_provider(text, expected);
        }
        for (size_t i = 0; i < ELEMENTSOF(fine); i++) {
                (void) snprintf(text, sizeof(text), "\"%s\":{\"any\":[1,null]}", fine[i]);
                _cleanup_(config_freep) Config *c = load_provider(text);
                CHECK(!c->warnings);
        }
        _cleanup_(config_freep) Config *c = load_provider("\"baseURL\":\"x\"");
        CHECK_STR(c->warnings[0], "errand.json: agent.providers.p.baseURL: is not read; did you mean baseUrl?");
}

static void test_capabilities(void) {
        refused_provider("\"capabilities\":[]", ".capabilities: is an empty list");
        refused_provider("\"strictCapabilities\":true", ": strictCapabilities is true without a list");
        refused_provider("\"capabilities\":\"all\"", ".capabilities: must be a list");
        refused_provider("\"capabilities\":[\"*\"]", ".capabilities[0]: must be an object, not a text");
        refused_provider("\"capabilities\":[{\"method\":\"POST\"}]", ".capabilities[0]: has no path");
        refused_provider("\"capabilities\":[{\"method\":\"post\",\"path\":\"/x\"}]", ".capabilities[0].method: \"post\" is neither a method in upper case");
        refused_provider("\"capabilities\":[{\"method\":\"GET\",\"path\":\"/x\",\"query\":\"y\"}]", ".capabilities[0].query: unknown key");
        static const char *const paths[] = {"", "x", "/a//b", "/a/", "/../a", "/a/.", "/a?b", "/a#b", "/a;b=c", "/a b", "/a*", "/a/***", "/a\\\\b"};
        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                char text[256];
                (void) snprintf(text, sizeof(text), "\"capabilities\":[{\"method\":\"GET\",\"path\":\"%s\"}]", paths[i]);
                refused_provider(text, ".capabilities[0].path: ");
        }
        static const char *const fine[] = {"/", "/v1/messages", "/*", "/**", "/v1/*/x/**", "/v1/%6dodels", "/a:b"};
        for (size_t i = 0; i < ELEMENTSOF(fine); i++) {
                char text[256];
                (void) snprintf(text, sizeof(text), "\"strictCapabilities\":true,\"capabilities\":[{\"method\":\"*\",\"path\":\"%s\"}]", fine[i]);
                config_free(load_provider(text));
        }
        config_free(load_provider("\"strictCapabilities\":false"));
}

static void test_placement(void) {
        static const struct {
                const char *members;
                Placement placement;
        } rows[] = {
                {"", PLACEMENT_EITHER},
                {"\"kind\":\"anthropic\"", PLACEMENT_X_API_KEY},
                {"\"kind\":\"openai\"", PLACEMENT_BEARER},
                {"\"kind\":\"anthropic\",\"placement\":\"bearer\"", PLACEMENT_BEARER},
                {"\"kind\":\"anthropic\",\"placement\":\"bearer\",\"tools\":[\"image\"]", PLACEMENT_BEARER},
                {"\"tools\":[\"image\",\"speech\",\"music\"]", PLACEMENT_EITHER},
                {"\"kind\":\"anthropic\",\"header\":\"api-key\"", PLACEMENT_HEADER},
                {"\"kind\":\"openai\",\"placement\":\"basic\"", PLACEMENT_BASIC},
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(config_freep) Config *c = load_provider(rows[i].members);
                CHECK_INT(c->agent.providers[0].placement, rows[i].placement);
        }
        refused_provider("\"placement\":\"query\"", ".placement: its value is not \"bearer\", \"x-api-key\" or \"basic\"");
        refused_provider("\"kind\":\"acme\"", ".kind: its value is not \"anthropic\" or \"openai\"");
        refused_provider("\"placement\":\"x-api-key\",\"tools\":[\"image\"]", ": its tools send the key as a bearer token");
        refused_provider("\"kind\":\"anthropic\",\"tools\":[\"music\"]", ": its tools send the key as a bearer token");
        refused_provider("\"placement\":\"basic\",\"tools\":[\"image\"]", ": its tools send the key as a bearer token");
        refused_provider("\"header\":\"api-key\",\"tools\":[\"image\"]", ": its tools send the key as a bearer token");
        refused_provider("\"header\":\"api-key\",\"placement\":\"bearer\"", ": header and placement both say");
        refused_provider("\"header\":\"Host\"", ".header: its value is a header with a meaning of its own");
        refused_provider("\"user\":\"x\"", ": user is the name beside the key of \"placement\": \"basic\"");
        refused_provider("\"placement\":\"basic\",\"user\":\"a:b\"", ".user: its value is not a user's name");
        refused_provider("\"budgets\":{\"requests\":-1}", ".budgets.requests: ");
        refused_provider("\"budgets\":{\"request\":1}", ".budgets.request: ");
        _cleanup_(config_freep) Config *c = load_provider("\"placement\":\"basic\",\"budgets\":{\"requests\":3,\"bytes\":\"1m\",\"tokens\":9}");
        CHECK_STR(c->agent.providers[0].user, PLACEMENT_USER_DEFAULT);
        CHECK(c->agent.providers[0].budgets.requests == 3 && c->agent.providers[0].budgets.bytes == 1048576 && c->agent.providers[0].budgets.tokens == 9);
        c = config_free(c);
        c = load_provider("\"placement\":\"basic\",\"user\":\"oauth2\"");
        CHECK_STR(c->agent.providers[0].user, "oauth2");
        refused_provider("\"tools\":[\"video\"]", ".tools[0]: \"video\" is not \"image\", \"speech\" or \"music\"");
}

static void test_providers(void) {
        refused("{\"agent\":{\"providers\":{\"A b\":{\"credential\":\"x\"}}}}", "agent.providers.A b: is not a provider's id", NULL);
        refused("{\"agent\":{\"providers\":{\"p\":{}}}}", "agent.providers.p: has no credential for its broker", NULL);
        refused("{\"agent\":{\"providers\":{\"p\":[]}}}", "agent.providers.p: must be an object, not a list", NULL);
        refused("{\"agent\":{\"providers\":{\"a-b\":{\"credential\":\"x\"},\"c\":{\"credential\":\"x\",\"credentialName\":\"A_B_API_KEY\"}}}}",
                "agent.providers: \"a-b\" and \"c\" have the same credentialName, A_B_API_KEY", NULL);
        refused("{\"agent\":{\"providers\":{\"a\":{\"credential\":\"x\"}}},\"sandbox\":{\"env\":{\"A_API_KEY\":\"x\",\"A_API_KEYS\":\"fine\"}}}",
                "sandbox.env: A_API_KEY carries the credential of provider \"a\"", NULL);
        static const char *const names[] = {"PATH", "HOME", "https_proxy", "HTTP_PROXY", "LD_PRELOAD", "1A", "a=b", ""};
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                char text[128];
                (void) snprintf(text, sizeof(text), "\"credentialName\":\"%s\"", names[i]);
                refused_provider(text, ".credentialName: its value is");
        }
        static const char *const urls[] = {"", "ftp://a.example", "https://", "https://u:p@a.example", "https://a.example/x?y", "https://a.example/#f", "https://a.example:0",
                                           "https://a.example:99999", "https://a.example/a//b", "https://a.example/../b", "https://a b.example", "https://0x7f.1", "https://[::1",
                                           "https://[::1]x", "https://a.example:/x"};
        for (size_t i = 0; i < ELEMENTSOF(urls); i++) {
                char text[128];
                (void) snprintf(text, sizeof(text), "\"baseUrl\":\"%s\"", urls[i]);
                refused_provider(text, ".baseUrl: its value ");
        }
        char many[8192] = "{\"agent\":{\"providers\":{";
        for (unsigned i = 0; i < 13; i++)
                (void) snprintf(many + strlen(many), sizeof(many) - strlen(many), "%s\"p%u\":{\"credential\":\"x\"}", i > 0 ? "," : "", i);
        strcat(many, "}}}");
        refused(many, "agent.providers: 13 providers are brokered; a session's broker serves at most 12", NULL);
}

static void test_uncalled(void) {
        static const struct {
                const char *url, *internal;
                bool warned;
        } rows[] = {
                {"http://api.example.com", "true", true},   {"http://localhost:8080", "true", true},           {"http://10.0.0.5", "true", true},
                {"http://127.0.0.1:8080", "false", true},   {"http://127.0.0.1:8080", "true", false},          {"http://127.0.0.1:8080", "[\"127.0.0.1\"]", false},
                {"http://127.0.0.1", "[\"10.0.0.5\"]", true}, {"http://[::1]:8080/v1", "true", false},           {"https://10.0.0.5", "false", true},
                {"https://127.0.0.1:8443", "false", true},  {"https://[::1]", "[\"127.0.0.1\"]", true},         {"https://127.0.0.1:8443", "true", false},
                {"https://10.0.0.5", "true", false},        {"https://10.0.0.5", "[\"10.0.0.5\"]", false},       {"https://10.0.0.5", "[\"10.0.0.6\"]", true},
                {"https://[fd00::5]/v1", "false", true},    {"https://169.254.169.254", "true", true},          {"https://1.1.1.1", "false", false},
                {"https://192.0.2.1:8443", "false", true},  {"https://[::ffff:10.0.0.5]", "false", true},
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char text[512];
                (void) snprintf(text, sizeof(text), "{\"agent\":{\"providers\":{\"p\":{\"credential\":\"x\",\"baseUrl\":\"%s\"}}},\"sandbox\":{\"egress\":{\"allowInternal\":%s}}}",
                                rows[i].url, rows[i].internal);
                _cleanup_(config_freep) Config *c = load(text);
                if (strv_length(c->warnings) != rows[i].warned || (rows[i].warned && !startswith(c->warnings[0], "errand.json: agent.providers.p: will not be called: ")))
                        test_fail(__FILE__, __LINE__, "%s with %s: %s", rows[i].url, rows[i].internal, c->warnings ? c->warnings[0] : "no warning");
        }
}

static void test_warned_hosts(void) {
        static const struct {
                const char *text, *warning;
        } rows[] = {
                {"{\"sandbox\":{\"egress\":{\"allow\":[\"*.co.uk\",\"*.example.com\"]}}}", "errand.json: sandbox.egress.allow[0]: \"*.co.uk\" covers hosts of anybody"},
                {"{\"agent\":{\"providers\":{\"p\":{\"broker\":false,\"baseUrl\":\"https://api.example.com\"}}},\"sandbox\":{\"egress\":{\"allow\":[\"b.example\"]}}}",
                 "errand.json: agent.providers.p: is not brokered"},
                {"{\"agent\":{\"providers\":{\"p\":{\"broker\":false,\"baseUrl\":\"https://api.example.com\"}}},\"sandbox\":{\"egress\":{\"allow\":[\"*.example.com\"]}}}", NULL},
                {"{\"agent\":{\"providers\":{\"p\":{\"extension\":\"x\",\"baseUrl\":\"https://api.example.com\"}}}}", NULL},
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(config_freep) Config *c = load(rows[i].text);
                if (strv_length(c->warnings) != (rows[i].warning ? 1 : 0) || (rows[i].warning && !startswith(c->warnings[0], rows[i].warning)))
                        test_fail(__FILE__, __LINE__, "%s: %s", rows[i].text, c->warnings ? c->warnings[0] : "no warning");
        }
}

/* Wherever a key is pasted, no sentence has it. */
static void test_secrets(void) {
#define KEY "sk-MARKER-0123456789"
        static const char *const rows[] = {
                "{\"agent\":{\"providers\":{\"p\":{\"credential\":\"" KEY " \"}}}}",
                "{\"agent\":{\"providers\":{\"p\":{\"credential\":\"" KEY "\\n" KEY "\"}}}}",
                "{\"agent\":{\"providers\":{\"p\":{\"credential\":[\"" KEY "\"]}}}}",
                "{\"agent\":{\"providers\":{\"p\":{\"credential\":{\"value\":\"" KEY "\"}}}}}",
                "{\"agent\":{\"providers\":{\"p\":{\"credential\":{\"file\":\"" KEY "\"}}}}}",
                "{\"agent\":{\"providers\":{\"p\":{\"credential\":{\"systemdCredential\":\"/" KEY "\"}}}}}",
                "{\"agent\":{\"providers\":{\"p\":{\"credential\":\"x\",\"credentialName\":\"" KEY "\"}}}}",
                "{\"agent\":{\"providers\":{\"p\":{\"credential\":\"x\",\"baseUrl\":\"" KEY "\"}}}}",
                "{\"agent\":{\"providers\":{\"p\":{\"credential\":\"x\",\"placement\":\"" KEY "\"}}}}",
                "{\"agent\":{\"providers\":{\"p\":{\"credential\":\"x\",\"kind\":\"" KEY "\"}}}}",
                "{\"agent\":{\"providers\":{\"p\":{\"credential\":\"x\",\"header\":\"a " KEY "\"}}}}",
                "{\"agent\":{\"providers\":{\"p\":{\"credential\":\"x\",\"caFile\":\"" KEY "\"}}}}",
                "{\"github\":{\"token\":\"" KEY "\\u007f\"}}",
                "{\"github\":{\"userEmail\":\"" KEY "\"}}",
                "{\"sandbox\":{\"env\":{\"A\":[\"" KEY "\"]}}}",
                "{\"sandbox\":{\"env\":{\"PATH\":\"" KEY "\"}}}",
                "{\"agent\":{\"providers\":{\"p\":{\"credential\":\"" KEY "\", }}}}",
                "{\"agent\":{\"providers\":{\"p\":{\"credential\":\"" KEY "}}}}",
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                Config *c = NULL;
                CHECK_INT(parse_mode(rows[i], CONFIG_SYSTEM, &c), -EBADMSG);
                for (char **s = problems; *s; s++)
                        if (strstr(*s, "MARKER"))
                                test_fail(__FILE__, __LINE__, "told: %s", *s);
        }
        refused("{\"github\":{\"token\":\"seven77\"}}", "github.token: the secret is shorter than 8 bytes", NULL);
        config_free(load("{\"agent\":{\"providers\":{\"p\":{\"credential\":\"k\"}}}}")); /* S225 */
        refused_provider("\"credential2\":1,\"credentials\":1,\"strict\":1", ".strict: ");
}

static void test_embedded(void) {
        static const char text[] = "{\"agent\":{\"providers\":{\"p\":{\"credential\":{\"systemdCredential\":\"key\"}}}}}";
        Config *c = NULL;

        CHECK_INT(parse_mode(text, CONFIG_EMBEDDED, &c), -EBADMSG);
        CHECK(startswith(problems[0], "errand.json: agent.providers.p.credential.systemdCredential: needs a systemd unit"));
        CHECK_INT(strv_length(problems), 1);
        CHECK_INT(parse_mode(text, CONFIG_USER, &c), 0);
        config_free(c);
}

static void test_file(void) {
        char path[] = "/tmp/errand-test-config.XXXXXX";
        Config *c = NULL;

        problems = strv_free(problems);
        _cleanup_close_ int fd = mkostemp(path, O_CLOEXEC);
        CHECK(fd >= 0);
        CHECK_INT(unlink(path), 0);
        static const char text[] = "{\"agent\":{\"providers\":{\"p\":{\"credential\":\"inline-key\"}}}}";
        CHECK_INT(write_all(fd, text, strlen(text)), 0);
        CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
        CHECK_INT(config_read_fd("/etc/errand/errand.json", fd, CONFIG_SYSTEM, &c, &problems), 0);
        CHECK(!c->warnings);
        c = config_free(c);
        CHECK_INT(fchmod(fd, 0644), 0);
        CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
        CHECK_INT(config_read_fd("/etc/errand/errand.json", fd, CONFIG_SYSTEM, &c, &problems), 0);
        CHECK(startswith(c->warnings[0], "/etc/errand/errand.json: holds secrets and can be read by every account"));
        c = config_free(c);
        _cleanup_close_ int dir = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        CHECK_INT(config_read_fd("d", dir, CONFIG_SYSTEM, &c, &problems), -EBADMSG);
        CHECK_STR(problems[0], "d: is not a regular file");
        problems = strv_free(problems);
        CHECK_INT(config_read_fd("n", null, CONFIG_SYSTEM, &c, &problems), -EBADMSG);
        problems = strv_free(problems);
}

int main(void) {
        RUN(test_defaults, "S017 S019 S035: an empty configuration is the defaults");
        RUN(test_whole, "S022 S089 S096: every key is read into its place");
        RUN(test_all_at_once, "every problem is told at once, with its path and the nearest known name");
        RUN(test_unknown, "S001 S195: an unknown key is refused, and nothing turns the sandbox off");
        RUN(test_types, "S036 S193 S203: types, ranges, words and names, one sentence each");
        RUN(test_syntax, "what is no JSON, twice named, too deep or too large is refused with its place");
        RUN(test_directories, "projectRoot, stateDir and extra paths do not reach into each other");
        RUN(test_egress, "S023: an egress block without allow names no host");
        RUN(test_misspelt, "S105 S106 S107: misspelt placement and capabilities are refused, the operator's own keys ignored");
        RUN(test_capabilities, "S100 S103 S104: capabilities");
        RUN(test_placement, "S089 S092 S093 S094: where the key travels");
        RUN(test_providers, "S203: providers, their variables and URLs");
        RUN(test_warned_hosts, "C119 S026: hosts that are probably not what was meant");
        RUN(test_uncalled, "S083 S084 S085: a provider that will not be called is warned of, with the reason");
        RUN(test_secrets, "S224 S225: no sentence holds a secret, wherever it was pasted");
        RUN(test_embedded, "systemdCredential is refused in embedded mode");
        RUN(test_file, "C190: a file with secrets that everybody can read is warned of");
        problems = strv_free(problems);
        return TEST_END();
}
