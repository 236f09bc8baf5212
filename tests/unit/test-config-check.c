/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <pwd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "errandd/config-check.h"
#include "shared/json-locate.h"
#include "test.h"

static ConfigCheck check;

static void look(const char *text, ConfigMode mode) {
        _cleanup_close_ int fd = memfd_create("errand.json", MFD_CLOEXEC);

        config_check_done(&check);
        CHECK(fd >= 0 && fchmod(fd, 0600) >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
        CHECK_INT(lseek(fd, 0, SEEK_SET), 0);
        CHECK_INT(config_check("f", fd, mode, &check), 0);
}

static void holds(char *const *list, const char *start) {
        for (; list && *list; list++)
                if (startswith(*list, start))
                        return;
        test_fail(__FILE__, __LINE__, "lacks \"%s\"", start);
}

static void test_locate(void) {
        static const char text[] = "{\n \"a\": [1,\n {\"b\": \"]}\\\"\"},\n [2, 3]],\n \"c.d\": 1, \"e\": {\n\"f\":{}, \"g\"\n:\nnull}}";
        static const struct {
                const char *path;
                unsigned line;
        } rows[] = {{"", 1},      {"a", 2},   {"a[0]", 2}, {"a[1]", 3},  {"a[1].b", 3}, {"a[2]", 4}, {"a[2][1]", 4}, {"e", 5}, {"e.f", 6}, {"e.g", 6},
                    {"a[3]", 0},  {"x", 0},   {"e.x", 0},  {"a.b", 0},   {"e[0]", 0},   {"a[", 0},   {"a[x]", 0},    {".", 0}, {"e.", 0},
                    {"a[0].b", 0}, {"e.g.h", 0}, {"a[99999999999999999999999]", 0}};

        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (json_locate(text, strlen(text), rows[i].path) != rows[i].line)
                        test_fail(__FILE__, __LINE__, "\"%s\" is at line %u, not %u", rows[i].path, json_locate(text, strlen(text), rows[i].path), rows[i].line);
        /* Of a text that is cut anywhere nothing behind its end is read. */
        for (size_t n = 0; n < strlen(text); n++) {
                _cleanup_free_ char *cut = memcpy(malloc(n + 1), text, n);
                for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                        CHECK(json_locate(cut, n, rows[i].path) <= 6);
        }
}

static void test_problems(void) {
        look("{\n\"nonsense\": 1,\n\"sandbox\": {\"memory\": \"lots\",\n \"egressPorts\": [1,\n 0]}}", CONFIG_SYSTEM);
        CHECK_INT(strv_length(check.problems), 3);
        holds(check.problems, "f:2: nonsense: unknown key");
        holds(check.problems, "f:3: sandbox.memory: \"lots\" is not a size");
        holds(check.problems, "f:5: sandbox.egressPorts[1]: 0 is not between");
        CHECK(!check.findings && !check.inert);
        look("{\n \"a\": 1,,\n}", CONFIG_SYSTEM);
        CHECK_INT(strv_length(check.problems), 1);
        CHECK_STR(check.problems[0], "f:2:9: a string in double quotes is expected");
        look("{\n \"limits\": {},\n}", CONFIG_SYSTEM);
        CHECK_STR(check.problems[0], "f:3:1: there is a ',' before '}', where nothing follows");
        look("{\n // none\n}", CONFIG_SYSTEM);
        CHECK_STR(check.problems[0], "f:2:2: a string in double quotes is expected; there are no comments in JSON");
        look("# none\n{}", CONFIG_SYSTEM);
        CHECK_STR(check.problems[0], "f:1:1: a value is expected; there are no comments in JSON");
        look("{\"stateDir\": \"/elsewhere\",\n\"sandbox\": {\"backend\": \"incus\", \"incus\": {\"image\": \"x\"}}}", CONFIG_SYSTEM);
        CHECK_INT(strv_length(check.problems), 1);
        holds(check.problems, "f:2: sandbox.backend: \"incus\" is not supported");
        look("{\"github\":\n{\"app\": {\"id\": 1, \"installation\": 1, \"privateKey\": \"-----BEGIN-----\"}}}", CONFIG_SYSTEM);
        CHECK_INT(strv_length(check.problems), 1);
        holds(check.problems, "f:2: github.app: tokens of a GitHub App are not supported");
        look("{\"stateDir\": \"/elsewhere\"}", CONFIG_SYSTEM);
        CHECK(!check.problems);
        holds(check.findings, "f:1: stateDir: the units keep the sockets of brokers in /var/lib/errand");
}

static void put(const char *path, const char *text, mode_t mode) {
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);

        CHECK(fd >= 0 && fchmod(fd, mode) >= 0 && write(fd, text, strlen(text)) == (ssize_t) strlen(text));
}

static void test_findings(void) {
        char directory[] = "/tmp/test-config-check-XXXXXX";
        _cleanup_free_ char *key = NULL, *open_key = NULL, *text = NULL;

        CHECK(mkdtemp(directory));
        CHECK(asprintf(&key, "%s/key", directory) > 0 && asprintf(&open_key, "%s/open", directory) > 0);
        put(key, "two\nlines\n", 0600);
        put(open_key, "sk-0123456789", 0644);
        CHECK(asprintf(&text, "{\"operators\": [\"root\",\n \"no-such-account\"],\n\"projectRoot\": \"%s/none\",\n"
                       "\"github\": {\"token\": {\"file\": \"%s/none\"}},\n"
                       "\"agent\": {\"providers\": {\n \"a\": {\"credential\": {\"file\": \"%s\"}, \"baseUrl\": \"https://a.example\"},\n"
                       " \"b\": {\"credential\": {\"file\": \"%s\"}, \"baseUrl\": \"https://a.example\", \"caFile\": \"%s\"},\n"
                       " \"c\": {\"credential\": \"sk-0123456789\"},\n"
                       " \"d\": {\"credential\": {\"systemdCredential\": \"keys_no-such-key\"}, \"baseUrl\": \"https://a.example\"}}},\n"
                       "\"sandbox\": {\"policyExtra\": {\"read\": [\"/usr\", \"%s/none\"], \"execute\": [\"%s\"]},\n"
                       "\"pathExtra\": [\"%s\", \"/usr/games\", \"/etc\", \"%s\"]}}",
                       directory, directory, key, open_key, key, directory, directory, directory, key) > 0);
        look(text, CONFIG_SYSTEM);
        CHECK(!check.problems);
        holds(check.findings, "f:2: operators[1]: there is no account \"no-such-account\" on this host");
        holds(check.findings, "f:3: projectRoot: ");
        holds(check.findings, "f:4: github.token: the secret file ");
        holds(check.findings, "f:6: agent.providers.a.credential: the secret file ");
        holds(check.findings, "f:7: agent.providers.b.credential: the secret file ");
        holds(check.findings, "f:7: agent.providers.b.caFile: ");
        holds(check.findings, "f:8: agent.providers.c: it has no baseUrl, and none is known for it");
        holds(check.findings, "f:9: agent.providers.d.credential: there is no /etc/errand/credentials/no-such-key");
        holds(check.findings, "f:10: sandbox.policyExtra.read[1]: ");
        holds(check.findings, "f:10: sandbox.policyExtra.execute[0]: no session starts with it: ");
        holds(check.findings, "f:11: sandbox.pathExtra[2]: /etc is on the PATH and not granted");
        holds(check.findings, "f:11: sandbox.pathExtra[3]: ");
        for (char **s = check.findings; *s; s++) {
                CHECK(!strstr(*s, "sk-0123456789"));
                CHECK(!strstr(*s, "pathExtra[0]") && !strstr(*s, "operators[0]"));
        }
        /* What a mode does not read is not looked for. */
        look("{\"operators\": [\"no-such-account\"], \"projectRoot\": \"/no/such/place\"}", CONFIG_USER);
        CHECK(!check.problems && !check.findings);
        CHECK_INT(strv_length(check.inert), 2);
        (void) unlink(key);
        (void) unlink(open_key);
        (void) rmdir(directory);
}

static void test_command(void) {
        look("{\"agent\": {\n\"command\": [\"no-such-agent\"]}}", CONFIG_SYSTEM);
        CHECK(!check.problems);
        holds(check.findings, "f:2: agent.command[0]: there is no \"no-such-agent\" in /usr/local/bin, /usr/bin and the directories of sandbox.pathExtra");
        look("{\"agent\": {\"command\": [\"sh\", \"no-such-agent\"]}}", CONFIG_USER);
        CHECK(!check.findings);
        look("{\"agent\": {\"command\": [\"./no-such-agent\"]}}", CONFIG_USER); /* one of the project's */
        CHECK(!check.findings);
        look("{\"agent\": {\"command\": [\"group\"]}, \"sandbox\": {\"policyExtra\": {\"execute\": [\"/etc\"]}, \"pathExtra\": [\"/etc\"]}}", CONFIG_USER);
        CHECK(!check.findings);
}

static void test_own_places(void) {
        look("{\"agent\": {\"providers\": {\"a\": {\"credential\": {\"file\": \"/usr/lib/os-release\"}, \"baseUrl\": \"https://a.example\"}}},\n"
             "\"sandbox\": {\"policyExtra\": {\"read\": [\"/etc\", \"/etc/errand/credentials\", \"/usr/lib\"],\n\"write\": [\"/run\", \"/run/errand/x\"],\n"
             "\"execute\": [\"/usr/bin\"]}}}", CONFIG_SYSTEM);
        CHECK(!check.problems);
        holds(check.findings, "f:2: sandbox.policyExtra.read[0]: no session starts with it: /etc holds errand's configuration, /etc/errand/errand.json");
        holds(check.findings, "f:2: sandbox.policyExtra.read[1]: no session starts with it: /etc/errand/credentials is errand's own");
        holds(check.findings, "f:2: sandbox.policyExtra.read[2]: no session starts with it: /usr/lib holds a key's file, /usr/lib/os-release");
        holds(check.findings, "f:3: sandbox.policyExtra.write[0]: no session starts with it: /run holds errand's sockets, /run/errand");
        holds(check.findings, "f:3: sandbox.policyExtra.write[1]: no session starts with it: /run/errand/x is errand's own");
        for (char **s = check.findings; *s; s++)
                CHECK(!strstr(*s, "policyExtra.execute"));
        look("{\"github\": {\"token\": {\"file\": \"/usr/lib/os-release\"}},\n"
             "\"sandbox\": {\"policyExtra\": {\"read\": [\"/usr/lib\"]}}}", CONFIG_SYSTEM);
        holds(check.findings, "f:2: sandbox.policyExtra.read[0]: no session starts with it: /usr/lib holds a key's file, /usr/lib/os-release");
        look("{\"sandbox\": {\"policyExtra\": {\"read\": [\"/etc\", \"/etc/errand\"]}}}", CONFIG_EMBEDDED);
        holds(check.findings, "f:1: sandbox.policyExtra.read[1]: no session starts with it: /etc/errand is errand's own");
        for (char **s = check.findings; *s; s++)
                CHECK(!strstr(*s, "read[0]"));
}

static void test_sentences(void) {
        ConfigSentence s;

        config_sentence_parse("a:b", "a:b:12: sandbox.egress.allow[2]: is \"a: b\"", &s);
        CHECK_INT(s.line, 12);
        CHECK_STR(s.key, "sandbox.egress.allow[2]");
        CHECK_STR(s.text, "is \"a: b\"");
        config_sentence_parse("f", "f:3:4: no key: here", &s);
        CHECK_INT(s.line, 3);
        CHECK_STR(s.key, "");
        CHECK_STR(s.text, "no key: here");
        config_sentence_parse("f", "f: is larger than 1 MiB", &s);
        CHECK_INT(s.line, 0);
        CHECK_STR(s.text, "is larger than 1 MiB");
}

/* It is looked up in a thread, beside an event loop that does the same. */
static void test_accounts(void) {
        const struct passwd *mine = getpwnam("root");

        CHECK(mine);
        look("{\"operators\": [\"nobody\"]}", CONFIG_SYSTEM);
        CHECK_STR(mine->pw_name, "root");
        CHECK_INT(mine->pw_uid, 0);
}

int main(void) {
        RUN(test_locate, "the line of a value, in whole texts and in cut ones");
        RUN(test_problems, "every problem of a file with its line, what this installation does not do among them");
        RUN(test_findings, "what a good file names and the host does not have: accounts, keys, certificates, directories");
        RUN(test_command, "an agent that is nowhere on the PATH of sessions is told, one of the project's is not looked for");
        RUN(test_own_places, "T: what policyExtra names and no session starts with is told of a configuration");
        RUN(test_sentences, "a sentence comes apart into file, line, key and text");
        RUN(test_accounts, "who looks up an account meanwhile keeps what was found");
        config_check_done(&check);
        return TEST_END();
}
