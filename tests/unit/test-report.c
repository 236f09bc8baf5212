/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <stdarg.h>

#include "bailey/gap.h"
#include "basic/text.h"
#include "errandd/report.h"
#include "test.h"

static Report report;
static char *const *controllers; /* of a host that makes scopes */

static const char *build(const char *config, char *const *gaps, const char *problem, bool require) {
        static char text[8192];
        _cleanup_(config_freep) Config *c = NULL;
        char **problems = NULL;

        if (config_parse("errand.json", config, strlen(config), CONFIG_EMBEDDED, &c, &problems) < 0)
                test_fail(__FILE__, __LINE__, "%s", problems ? problems[0] : "?");
        c->sandbox.require_full_enforcement = require;
        report_done(&report);
        CHECK_INT(report_build(&(ReportInput){.config = c, .mode = CONFIG_EMBEDDED, .gaps = gaps, .probe_problem = problem, .scopes = controllers != NULL, .controllers = controllers}, &report), 0);
        text[0] = 0;
        for (char **line = report.lines; *line; line++) {
                CHECK(strlen(*line) <= 78 || !strchr(*line + 6, ' '));
                size_t n = strlen(text);
                (void) snprintf(text + n, sizeof(text) - n, "%s\n", *line);
        }
        return text;
}

static void contains(const char *text, const char *part) {
        if (!strstr(text, part))
                test_fail(__FILE__, __LINE__, "lacks \"%s\":\n%s", part, text);
}

static void test_form(void) {
        CHECK_STR(build("{}", NULL, NULL, true),
                  "sandbox backend: bailey\n"
                  "  sessions run as confined host processes using the host's own tools\n"
                  "  no single file may exceed 1g, enforced as an rlimit\n"
                  "  disk use is measured, not capped: a session that takes more than 5g is\n"
                  "    stopped\n"
                  "  sessions reach every public host on port 443, through brokers of their own\n"
                  "  1 guarantee(s) cannot be enforced on this host:\n"
                  "    - per-session memory, cpu, and process limits are not applied: this host\n"
                  "      reports no cgroup delegation\n");
        CHECK_INT(strv_length(report.gaps), 1);
        contains(build("{}", NULL, NULL, false), "sandbox.requireFullEnforcement is false: ");
}

static void test_limits(void) {
        char *const all[] = {(char *) "cpu", (char *) "memory", (char *) "pids", NULL}, *const some[] = {(char *) "pids", NULL}, *const none[] = {NULL};

        controllers = all;
        contains(build("{\"sandbox\":{\"memory\":\"3g\",\"cpus\":1.5,\"pids\":99}}", NULL, NULL, true),
                 "each session is held to 3g of memory, 1.5 cpus, 99 processes\n");
        CHECK(!report.gaps);
        contains(build("{}", NULL, NULL, true), "each session is held to 4g of memory, 2 cpus, 512 processes\n");
        controllers = some;
        contains(build("{}", NULL, NULL, true), "each session is held to 512 processes\n");
        CHECK_INT(strv_length(report.gaps), 1);
        CHECK_STR(report.gaps[0], "per-session memory and cpu limits are not applied: this host delegates no cgroup controller for them");
        controllers = none;
        CHECK(!strstr(build("{}", NULL, NULL, true), "is held to"));
        CHECK_STR(report.gaps[0], "per-session memory, cpu, and process limits are not applied: this host delegates no cgroup controller for them");
        controllers = NULL;
}

static void test_grants(void) {
        const char *text = build("{\"sandbox\":{\"policyExtra\":{\"read\":[\"/opt/a\"],\"write\":[\"/var/b\"]},\"env\":{\"A_NAME\":\"a-value\"},"
                                 "\"egress\":{\"allow\":[\"a.example\"]},\"egressPorts\":[80,443],\"fileMax\":\"1536k\"}}", NULL, NULL, true);

        contains(text, "sessions may read beyond their projects: /opt/a\n");
        contains(text, "sessions can CHANGE, outside of their own projects: /var/b\n");
        contains(text, "sessions have the variables: A_NAME\n");
        CHECK(!strstr(text, "a-value"));
        contains(text, "sessions reach 1 named hosts and those granted, on port 80, 443");
        contains(text, "exceed 1536k");
}

static void test_gaps(void) {
        char *gaps[] = {(char *) "sysfs", (char *) "landlock-scope", NULL};

        contains(build("{}", gaps, NULL, true), "  3 guarantee(s) cannot be enforced on this host:\n");
        contains(build("{}", gaps, NULL, true), "    - there is no /sys in a session");
        contains(build("{}", NULL, "bailey is broken", true), "sandbox backend: bailey, which does not work here\n");
        contains(build("{}", NULL, "bailey is broken", true), "    - sessions cannot be confined: bailey is broken\n");
}

static void inert(const char *config, ConfigMode mode, const char *first, ...) {
        _cleanup_strv_free_ char **problems = NULL, **list = NULL;
        _cleanup_(config_freep) Config *c = NULL;
        const char *expected = first;
        size_t n = 0;
        va_list ap;

        if (config_parse("errand.json", config, strlen(config), mode, &c, &problems) < 0)
                test_fail(__FILE__, __LINE__, "%s", problems ? problems[0] : "?");
        CHECK_INT(config_add_inert(c, mode, &list), 0);
        va_start(ap, first);
        for (; expected; expected = va_arg(ap, const char *), n++)
                if (n >= strv_length(list) || !startswith(list[n], expected))
                        test_fail(__FILE__, __LINE__, "%s: \"%s\", not \"%s\"", config, n < strv_length(list) ? list[n] : "(nothing)", expected);
        va_end(ap);
        CHECK_INT(strv_length(list), n);
}

static void test_inert(void) {
        static const char everything[] = "{\"operators\":[\"root\"],\"stateDir\":\"/s\",\"sandbox\":{\"egress\":{\"mode\":\"open\",\"allow\":[\"a.example\"]},"
                                         "\"egressPorts\":[80],\"hideHostAddress\":true}}";

        inert("{}", CONFIG_USER, NULL, NULL);
        inert(everything, CONFIG_SYSTEM, "sandbox.egress.allow does nothing: sandbox.egress.mode is \"open\"", NULL);
        inert(everything, CONFIG_EMBEDDED, "stateDir does nothing: --state-dir moves", "operators does nothing: ", "sandbox.egress.allow", NULL);
        inert("{\"sandbox\":{\"network\":\"none\",\"egressPorts\":[80],\"hideHostAddress\":true}}", CONFIG_SYSTEM,
              "sandbox.egressPorts does nothing: sandbox.network is \"none\"", "sandbox.hideHostAddress", NULL);
        inert("{\"sandbox\":{\"hideHostAddress\":true,\"image\":\"x\",\"incus\":{\"image\":\"x\"}}}", CONFIG_SYSTEM,
              "sandbox.hideHostAddress does nothing: a session behind its broker", "sandbox.image does nothing: it is a setting of the podman backend",
              "sandbox.incus does nothing: it is a setting of the incus backend", NULL);
        inert("{\"sandbox\":{\"backend\":\"podman\",\"image\":\"x\",\"egress\":{\"mode\":\"open\"},\"egressPorts\":[80]}}", CONFIG_SYSTEM,
              "sandbox.egressPorts does nothing: podman bounds an open network by its namespace", NULL);
        inert("{\"sandbox\":{\"backend\":\"incus\",\"incus\":{\"image\":\"x\"},\"egress\":{\"mode\":\"open\",\"allow\":[]},\"egressPorts\":[80],"
              "\"policyExtra\":{\"read\":[\"/x\"]},\"pathExtra\":[\"/x\"],\"hideHostAddress\":true,\"image\":\"x\"}}", CONFIG_SYSTEM,
              "sandbox.egress.allow", "sandbox.egressPorts", "sandbox.hideHostAddress", "sandbox.image", "sandbox.policyExtra", "sandbox.pathExtra", NULL);
        contains(build("{\"operators\":[\"root\"]}", NULL, NULL, true), "  operators does nothing: errandd serves its own account alone in embedded\n");
}

static void test_names(void) {
        for (Gap g = 0; g < _GAP_MAX; g++)
                if (!report_gap_sentence(gap_to_string(g)))
                        test_fail(__FILE__, __LINE__, "no sentence for %s", gap_to_string(g));
        CHECK(!report_gap_sentence("nothing"));
}

static void test_real_keys(void) {
        contains(build("{\"agent\":{\"providers\":{\"a\":{\"credential\":\"0123456789\"},\"b\":{\"credential\":\"0123456789\",\"broker\":false},"
                       "\"c\":{\"credential\":\"0123456789\",\"extension\":\"x\"},\"d\":{\"broker\":false}}}}", NULL, NULL, true),
                 "  sessions HOLD the real keys of providers that are not brokered: b, c\n");
}

static void test_unsupported(void) {
        contains(build("{\"github\":{\"app\":{\"id\":1,\"installation\":2,\"privateKey\":{\"file\":\"/k\"}}}}", NULL, NULL, true),
                 "sessions get no GitHub token");
        /* and what is done is none */
        const char *whole = build("{\"agent\":{\"providers\":{\"a\":{\"credential\":\"0123456789\",\"capabilities\":\"*\",\"strictCapabilities\":true},"
                                  "\"b\":{\"credential\":\"0123456789\",\"header\":\"api-key\",\"budgets\":{\"tokens\":1}}}},"
                                  "\"sandbox\":{\"egress\":{\"allow\":[\"*\"],\"serverName\":\"enforce\"}},\"budgets\":{\"requests\":5}}", NULL, NULL, false);
        if (!strstr(whole, "  1 guarantee(s) cannot be enforced")) /* the one of embedded mode */
                test_fail(__FILE__, __LINE__, "%s", whole);
}

int main(void) {
        RUN(test_form, "S179 S180: the report has its documented form");
        RUN(test_limits, "S182 S185: limits are named where a scope holds them, and what it does not hold is a gap");
        RUN(test_grants, "S194: what is granted beyond the floor is named, a writable grant apart, values of variables never");
        RUN(test_gaps, "S184: a gap is always stated");
        RUN(test_inert, "S031 S040: a key that does nothing with the rest of the file is reported as such");
        RUN(test_names, "each gap that bailey knows has a sentence");
        RUN(test_real_keys, "S026: a key that a session holds is named");
        RUN(test_unsupported, "what is configured and not done is a gap");
        report_done(&report);
        return TEST_END();
}
