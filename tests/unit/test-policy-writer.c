/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "bailey/layer.h"
#include "bailey/profiles.h"
#include "basic/text.h"
#include "errandd/policy-writer.h"
#include "test.h"

static Config *parse(const char *text) {
        char **problems = NULL;
        Config *c;

        if (config_parse("errand.json", text, strlen(text), CONFIG_EMBEDDED, &c, &problems) < 0)
                test_fail(__FILE__, __LINE__, "%s", problems ? problems[0] : "?");
        return c;
}

static char *write_policy(const char *config, const char *project) {
        _cleanup_(config_freep) Config *c = parse(config);
        char *text, *problem = NULL;

        if (policy_format(&(PolicyInput){.session = "s1", .project = project, .sandbox = &c->sandbox}, &text, &problem) < 0)
                test_fail(__FILE__, __LINE__, "%s", problem ?: "?");
        return text;
}

static void contains(const char *text, const char *part) {
        if (!strstr(text, part))
                test_fail(__FILE__, __LINE__, "lacks \"%s\":\n%s", part, text);
}

static const char *line_of(const char *text, const char *key, char *buffer, size_t size) {
        char start[64];

        (void) snprintf(start, sizeof(start), "\n%s", key);
        const char *at = strstr(text, start);
        CHECK(at);
        at++;
        (void) snprintf(buffer, size, "%.*s", (int) strcspn(at, "\n"), at);
        return buffer;
}

static void test_floor(void) {
        _cleanup_free_ char *text = write_policy("{}", "/srv/p");
        char line[4096];

        contains(text, "[filesystem]\nreset = true\n");
        contains(text, "\n[network]\nreset = true\negress = \"deny\"\n");
        contains(text, "\n[env]\npass = []\n");
        contains(text, "\ntmp_size = \"1073741824\"\nshm_size = \"67108864\"\n");
        CHECK_STR(line_of(text, "read = ", line, sizeof(line)), "read = [\"/etc\", \"/proc\", \"/sys\", \"/srv/p\"]");
        CHECK_STR(line_of(text, "write = ", line, sizeof(line)), "write = [\"/srv/p\"]");
        contains(line_of(text, "execute = ", line, sizeof(line)), "\"/usr\", \"/srv/p\"]");
        /* The reset comes before everything that is granted. */
        CHECK(strstr(text, "reset = true") < strstr(text, "\nread = "));
}

static void test_open(void) {
        static const char *const table[][2] = {{"{\"sandbox\":{\"egressPorts\":[80,443]}}", "\n[network]\nreset = true\negress_allow = [\"80\", \"443\"]\n\n[env]"},
                                               {"{}", "\negress_allow = [\"443\"]\n"}, {"{\"sandbox\":{\"egressPorts\":[]}}", "\negress = \"deny\"\n"}};

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(config_freep) Config *c = parse(table[i][0]);
                _cleanup_free_ char *text = NULL, *problem = NULL;
                CHECK_INT(policy_format(&(PolicyInput){.session = "s1", .project = "/srv/p", .open = true, .sandbox = &c->sandbox}, &text, &problem), 0);
                contains(text, table[i][1]);
        }
}

static bool lists(const char *line, const char *path) {
        char item[128];

        (void) snprintf(item, sizeof(item), "\"%s\"", path);
        return strstr(line, item) != NULL;
}

static size_t count(const char *line) {
        size_t n = 0;

        for (; (line = strchr(line, '"')); line++)
                n++;
        return n / 2;
}

/* Two lists of one thing, in programs that share no code: what bailey puts under every run, and what errandd puts in its place. Devices stay. */
static void test_same_floor(void) {
        _cleanup_free_ char *text = write_policy("{}", NULL);
        _cleanup_(layer_freep) Layer *floor = NULL;
        char read[4096], execute[4096];
        size_t n_read = 0, n_execute = 0;

        line_of(text, "read = ", read, sizeof(read));
        line_of(text, "execute = ", execute, sizeof(execute));
        CHECK_INT(profile_new_floor(&floor), 0);
        for (size_t i = 0; i < floor->n_rules; i++) {
                const LayerRule *rule = floor->rules + i;
                if (rule->device)
                        continue;
                CHECK(!rule->deny && !rule->read_only && !(rule->rights & RIGHT_WRITE));
                bool there = access(rule->path, F_OK) >= 0, executes = rule->rights & RIGHT_EXECUTE;
                if (lists(execute, rule->path) != (there && executes) || lists(read, rule->path) != (there && !executes))
                        test_fail(__FILE__, __LINE__, "%s is not granted alike:\n%s", rule->path, text);
                n_read += there && !executes;
                n_execute += there && executes;
        }
        CHECK_INT(count(read), n_read);
        CHECK_INT(count(execute), n_execute);
        CHECK_INT(count(line_of(text, "write = ", read, sizeof(read))), 0);
}

static void test_extra(void) {
        _cleanup_free_ char *text = write_policy("{\"sandbox\":{\"tmpSize\":\"2m\",\"policyExtra\":{\"read\":[\"/opt/a\"],\"write\":[\"/var/b\"],\"execute\":"
                                                 "[\"/opt/a/bin\"]}}}", "/srv/p");
        char line[4096];

        CHECK_STR(line_of(text, "read = ", line, sizeof(line)), "read = [\"/etc\", \"/proc\", \"/sys\", \"/srv/p\", \"/opt/a\"]");
        CHECK_STR(line_of(text, "write = ", line, sizeof(line)), "write = [\"/srv/p\", \"/var/b\"]");
        contains(line_of(text, "execute = ", line, sizeof(line)), "\"/srv/p\", \"/opt/a/bin\"]");
        contains(text, "tmp_size = \"2097152\"");
}

/* Where it is part of the system it is granted with that, and a grant of its own would say nothing more. */
static void test_connect(void) {
        static const char *const paths[][2] = {{"/opt/errand/bin/errand-connect", "/opt/errand/bin/errand-connect"}, {"/usr/local/bin/errand-connect", NULL},
                                               {"/usrx/errand-connect", "/usrx/errand-connect"}};
        _cleanup_(config_freep) Config *c = parse("{}");
        char line[4096];

        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                _cleanup_free_ char *text = NULL;
                char *problem = NULL;
                CHECK_INT(policy_format(&(PolicyInput){.session = "s1", .project = "/srv/p", .connect = paths[i][0], .sandbox = &c->sandbox}, &text, &problem), 0);
                line_of(text, "execute = ", line, sizeof(line));
                CHECK_INT(strstr(line, "errand-connect") != NULL, paths[i][1] != NULL);
                CHECK(!strstr(line_of(text, "write = ", line, sizeof(line)), "errand-connect"));
                CHECK(!strstr(line_of(text, "read = ", line, sizeof(line)), "errand-connect"));
        }
}

static void test_deny(void) {
        _cleanup_free_ char *plain = write_policy("{}", "/srv/p"),
                            *granted = write_policy("{\"sandbox\":{\"policyExtra\":{\"read\":[\"/etc/ssh/ssh_config.d\"]}}}", "/srv/p");

        CHECK_INT(strstr(plain, "\"/etc/ssh/ssh_config.d\"]\n") != NULL, access("/etc/ssh/ssh_config.d", F_OK) >= 0);
        CHECK(!strstr(granted, "ssh_config.d\"]\n\n"));
}

static void test_hidden(void) {
        static char *hidden[] = {(char *) "/etc/errand/key", (char *) "/etc/keys/a", (char *) "/home/a/key", (char *) "/usr/local/etc/key", NULL};
        _cleanup_(config_freep) Config *c = parse("{\"sandbox\":{\"policyExtra\":{\"read\":[\"/etc/ssh/ssh_config.d\"]}}}");
        _cleanup_free_ char *text = NULL;
        char *problem = NULL, line[4096];

        CHECK_INT(policy_format(&(PolicyInput){.session = "s1", .project = "/srv/p", .hidden = hidden, .sandbox = &c->sandbox}, &text, &problem), 0);
        CHECK_STR(line_of(text, "deny = ", line, sizeof(line)),
                  access("/etc/errand", F_OK) >= 0 ? "deny = [\"/etc/errand\", \"/etc/keys/a\", \"/usr/local/etc/key\"]"
                                                   : "deny = [\"/etc/errand/key\", \"/etc/keys/a\", \"/usr/local/etc/key\"]");
}

static void test_quoting(void) {
        _cleanup_free_ char *text = write_policy("{}", "/srv/a \"b\"\\c\n\x7f\xc3\xa4]\nwrite = [\"/");
        char line[4096];

        CHECK_STR(line_of(text, "write = ", line, sizeof(line)), "write = [\"/srv/a \\\"b\\\"\\\\c\\u000A\\u007F\xc3\xa4]\\u000Awrite = [\\\"/\"]");
}

static void test_not_utf8(void) {
        _cleanup_(config_freep) Config *c = parse("{}");
        char *text = NULL, *problem = NULL;

        CHECK_INT(policy_format(&(PolicyInput){.session = "s1", .project = "/srv/\xff", .sandbox = &c->sandbox}, &text, &problem), -EBADMSG);
        contains(problem, "/srv/\\xff is not UTF-8");
        free(problem);
}

int main(void) {
        RUN(test_floor, "S188 S190: a policy clears the profile, then places the floor, the project and nothing else");
        RUN(test_open, "S029 S039: open egress is to the named ports, and no host is named");
        RUN(test_same_floor, "S188 S190: the floor of a session is bailey's own");
        RUN(test_extra, "S191: policyExtra is added");
        RUN(test_hidden, "T: keys' files are covered where the floor would show them");
        RUN(test_deny, "C089: what ssh would end over is covered, unless somebody grants it");
        RUN(test_connect, "C089: errand-connect alone may be executed where the system's directories do not hold it");
        RUN(test_quoting, "C027 C199: a path cannot write a line of its own into a policy");
        RUN(test_not_utf8, "C027: a path that TOML cannot name is refused with a sentence");
        return TEST_END();
}
