/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/policy-file.h"
#include "basic/text.h"
#include "test.h"

static Findings findings;

static Layer *parse_as(PolicyKind kind, const char *text) {
        Layer *layer = NULL;

        findings_done(&findings);
        findings = (Findings){};
        const PolicyPlaces places = {.home = "/home/you", .working_directory = "/here", .environment = true};
        const PolicyText file = {
                .text = text, .size = strlen(text), .name = "p.toml", .base = "/base/dir", .kind = kind, .places = &places,
        };
        CHECK_INT(policy_file_parse(&file, &findings, &layer), 0);
        return layer;
}

static Layer *parse(const char *text) {
        return parse_as(POLICY_FILE, text);
}

static const LayerRule *rule(const Layer *l, const char *path) {
        for (size_t i = 0; i < l->n_rules; i++)
                if (streq(l->rules[i].path, path))
                        return &l->rules[i];
        return NULL;
}

static void test_reads(void) {
        _cleanup_(layer_freep) Layer *l = parse(
                "home = \"h\"\n[filesystem]\nread = [\".\", \"./a/../b\", \"/x//y/.\"]\nwrite = [\"b\"]\nexecute = [\"b\"]\n"
                "deny = [\"b/c\"]\nread_only = [\"b/d\"]\nreset = true\n[network]\negress = \"deny\"\nbind_ports = [80]\n"
                "[env]\npass = [\"A\"]\nset = { B = \"c\" }\ndeny = [\"D\"]\nreset = true\n"
                "[resources]\nmemory = \"1k\"\npids_max = 5\ncpu_percent = 50\ntmp_size = 7\nshm_size = \"2m\"\n");

        CHECK(l);
        CHECK_STR(l->home, "/base/dir/h");
        CHECK_INT(rule(l, "/base/dir")->rights, RIGHT_READ);
        CHECK_INT(rule(l, "/base/dir/b")->rights, RIGHT_READ | RIGHT_WRITE | RIGHT_EXECUTE);
        CHECK_INT(rule(l, "/x/y")->rights, RIGHT_READ);
        CHECK(rule(l, "/base/dir/b/c")->deny && rule(l, "/base/dir/b/d")->read_only);
        CHECK(l->reset_filesystem && l->reset_environment && !l->reset_network);
        CHECK(l->egress_said && !l->egress_allow);
        CHECK_INT(l->n_bind_ports, 1);
        CHECK_INT(l->n_variables, 3);
        CHECK_INT(l->limits.memory_bytes, 1024);
        CHECK_INT(l->limits.pids_max, 5);
        CHECK_INT(l->limits.cpu_percent, 50);
        CHECK_INT(l->limits.tmp_bytes, 7);
        CHECK_INT(l->limits.shm_bytes, 2 << 20);
}

static void test_bad(void) {
        static const struct {
                const char *text, *error; /* the first error, or its beginning */
        } table[] = {
                {"[filesystm]\n", "p.toml:1:2: filesystm: unknown table; did you mean \"filesystem\"?"},
                {"[filesystem]\ndenny = []\n", "p.toml:2:1: filesystem.denny: unknown key; did you mean \"deny\"?"},
                {"[filesystem]\nRead = []\n", "p.toml:2:1: filesystem.Read: unknown key; did you mean \"read\"?"},
                {"[env]\n\nread = []\n", "p.toml:3:1: env.read: unknown key; \"read\" belongs under [filesystem]"},
                {"[env]\nhome = \"x\"\n", "p.toml:2:1: env.home: unknown key; \"home\" belongs before the first table"},
                {"[devices]\n", "p.toml:1:2: devices: unknown table; did you mean \"device\"?"},
                {"[mounts]\n", "p.toml:1:2: mounts: unknown table; here stand home, [[device]], [filesystem], [network], [env], [resources]"},
                {"[device]\npath = \"/dev/x\"\n", "p.toml:1:2: device: each device is a table of its own; write [[device]]"},
                {"device = [3]\n", "p.toml:1:11: device: wants tables, not an integer;"},
                {"[[device]]\naccess = \"r\"\n", "p.toml:1:1: device: wants a path"},
                {"[[device]]\npath = 3\n", "p.toml:2:1: device: path wants a string"},
                {"[[device]]\npath = \"/dev/x\"\naccess = \"w\"\n", "p.toml:3:1: device: access wants \"r\" or \"rw\""},
                {"[[device]]\npath = \"/dev/x\"\nmode = 1\n", "p.toml:3:1: device: unknown key \"mode\"; here stand path, access"},
                {"[[device]]\npath = \"/dev/../etc\"\n", "p.toml:2:1: device: /etc is not in /dev"},
                {"[[device]]\npath = \"/dev\"\n", "p.toml:2:1: device: /dev is not in /dev"},
                {"[filesystem]\ndeny = [\"/dev/x\"]\n[[device]]\npath = \"/dev/x\"\n",
                 "p.toml:4:1: device: /dev/x is granted in line 4 and denied in line 2;"},
                {"description = \"x\"\n", "p.toml:1:1: description: stands in profiles only"},
                {"applies_to = []\n", "p.toml:1:1: applies_to: stands in profiles only"},
                {"[filesystem]\nhide = []\n", "p.toml:2:1: filesystem.hide: unknown key; here stand read, write, "},
                {"hom = \"x\"\n", "p.toml:1:1: hom: unknown key; did you mean \"home\"?"},
                {"include = [\"x\"]\n", "p.toml:1:1: include: unknown key;"},
                {"[resources]\nmemory = \"64 M\"\n", "p.toml:2:1: resources.memory: \"64 M\" is not a size;"},
                {"[resources]\nmemory = 0\n", "p.toml:2:1: resources.memory: wants a size"},
                {"[resources]\nmemory = true\n", "p.toml:2:1: resources.memory: wants a size"},
                {"[resources]\npids_max = 0\n", "p.toml:2:1: resources.pids_max: 0 is not between"},
                {"[resources]\npids_max = \"5\"\n", "p.toml:2:1: resources.pids_max: wants an integer, not a string"},
                {"[filesystem]\nread = [\".\"]\nread = [\".\"]\n", "p.toml:3:"},
                {"[filesystem]\nread = \".\"\n", "p.toml:2:1: filesystem.read: wants a list, not a string"},
                {"[filesystem]\nread = [\".\",\n 3]\n", "p.toml:3:2: filesystem.read: wants strings in its list, not an integer"},
                {"[filesystem]\nreset = 1\n", "p.toml:2:1: filesystem.reset: wants true or false, not an integer"},
                {"filesystem = 3\n", "p.toml:1:1: filesystem: is a table; write [filesystem]"},
                {"[[filesystem]]\n", "p.toml:1:"},
                {"[filesystem]\nread = [\"../x\"]\n", "p.toml:2:9: filesystem.read: \"../x\" leaves the file's directory /base/dir;"},
                {"[filesystem]\nread = [\"a/../../x\"]\n", "p.toml:2:9: filesystem.read: \"a/../../x\" leaves"},
                {"[filesystem]\nread = [\"~you/x\"]\n", "p.toml:2:9: filesystem.read: \"~you/x\": only one's own home"},
                {"[filesystem]\nread = [\"/${NOT_SET_HERE}/x\"]\n", "p.toml:2:9: filesystem.read: ${NOT_SET_HERE} is not set"},
                {"[filesystem]\nread = [\"${EMPTY_HERE}\"]\n", "p.toml:2:9: filesystem.read: ${EMPTY_HERE} is not set"},
                {"[filesystem]\nread = [\"${HOME\"]\n", "p.toml:2:9: filesystem.read: \"${\" without \"}\""},
                {"[filesystem]\nread = [\"${A B}\"]\n", "p.toml:2:9: filesystem.read: \"${A B}\" is not a variable's name"},
                {"[filesystem]\nread = [\"a/${UP_HERE}/x\"]\n", "p.toml:2:9: filesystem.read: \"a/../../etc/x\" leaves the file's directory"},
                {"[filesystem]\nread = [\"\"]\n", "p.toml:2:9: filesystem.read: an empty path"},
                {"home = \"../x\"\n", "p.toml:1:1: home: \"../x\" leaves"},
                {"[filesystem]\nread = [\"x\"]\ndeny = [\"./x\"]\n",
                 "p.toml:3:9: filesystem.deny: /base/dir/x is granted in line 2 and denied in line 3; remove one of them"},
                {"[filesystem]\ndeny = [\"x\"]\nwrite = [\"y/../x\"]\n",
                 "p.toml:3:10: filesystem.write: /base/dir/x is granted in line 3 and denied in line 2; remove one of them"},
                {"[filesystem]\nwrite = [\"x\"]\nread_only = [\"x\"]\n",
                 "p.toml:3:14: filesystem.read_only: /base/dir/x is writable in line 2 and read-only in line 3;"},
                {"[network]\negress = \"maybe\"\n", "p.toml:2:1: network.egress: \"maybe\" is neither"},
                {"[network]\negress = \"deny\"\negress_allow = [\"443\"]\n", "p.toml:2:1: network.egress: is \"deny\", but"},
                {"[network]\negress_allow = [\"host\"]\n", "p.toml:2:17: network.egress_allow: \"host\" is not a destination"},
                {"[network]\nbind_ports = [0]\n", "p.toml:2:15: network.bind_ports: wants port numbers"},
                {"[env]\npass = [\"A=B\"]\n", "p.toml:2:9: env.pass: \"A=B\" is not a variable's name"},
                {"[env]\nset = { A = 1 }\n", "p.toml:2:9: env.set: A wants a string, not an integer"},
                {"[env]\nset = { BAILEY_SANDBOX = \"0\" }\n", "p.toml:2:9: env.set: BAILEY_SANDBOX is set by bailey itself"},
                {"[env]\npass = [\"A\"]\ndeny = [\"A\"]\n", "p.toml:3:9: env.deny: A is named twice, in lines 2 and 3;"},
                {"[filesystem]\nread = [\"a\\u0000b\"]\n", "p.toml:2:9: a NUL in a string"},
                {"[filesystem\n", "p.toml:1:"},
                {"# x\n\n[^x]\n", "p.toml:3:1: a table, key or value is malformed"},
                {"# \xc3\xa9\n\xc3\xa9 = 1\n", "p.toml:2:1: a character outside of strings that is not ASCII"},
                {"home = '''\n\xc3\xa9\n''' \xc3\xa9\n", "p.toml:3:5: a character outside of strings that is not ASCII"},
                {"home = \"x\"\x01\n", "p.toml:1:11: a control character"},
                {"home = \"x\"\rx\n", "p.toml:1:11: a control character"},
                {"[filesystem]\nread = [\"\xff\"]\n", "p.toml:2:10: not valid UTF-8"},
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                Layer *l = parse(table[i].text);
                if (l || !findings.errors || !startswith(findings.errors[0], table[i].error))
                        printf("# row %zu: %s\n", i, findings.errors ? findings.errors[0] : "accepted");
                CHECK(!l);
                CHECK(findings.errors && startswith(findings.errors[0], table[i].error));
        }
}

/* ~, ${VARIABLE}, [[device]], and what a profile says of itself. */
static void test_places(void) {
        _cleanup_(layer_freep) Layer *l = parse_as(POLICY_PROFILE,
                "description = \"d\"\napplies_to = [\"/usr/bin/x\", \"~/bin/y\"]\nhome = \"~/h\"\n"
                "[filesystem]\nread = [\"~\", \"~/a/../b\", \"${HOME}/c\", \"${WORKDIR}\", \"${ROOT_HERE}/d\", \"e$f\", \"e${NAME_HERE}\"]\n"
                "[[device]]\npath = \"/dev/dri\"\n[[device]]\npath = \"/dev/kvm\"\naccess = \"r\"\n[resources]\nreset = true\n");

        CHECK(l);
        CHECK_STR(l->description, "d");
        CHECK_STR(l->applies_to[0], "/usr/bin/x");
        CHECK_STR(l->applies_to[1], "/home/you/bin/y");
        CHECK_STR(l->home, "/home/you/h");
        static const char *const paths[] = {"/home/you", "/home/you/b", "/home/you/c", "/here", "/srv/d", "/base/dir/e$f", "/base/dir/ename"};
        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                CHECK(rule(l, paths[i]));
                CHECK_INT(rule(l, paths[i])->rights, RIGHT_READ);
        }
        CHECK(rule(l, "/dev/dri")->device && rule(l, "/dev/kvm")->device);
        CHECK_INT(rule(l, "/dev/dri")->rights, RIGHT_READ | RIGHT_WRITE);
        CHECK_INT(rule(l, "/dev/kvm")->rights, RIGHT_READ);
        CHECK(l->reset_resources);
        CHECK(!parse_as(POLICY_PROFILE, "applies_to = [\"x\"]\n"));
        CHECK(startswith(findings.errors[0], "p.toml:1:15: applies_to: \"x\" is not an absolute path; any program could take that name"));
}

static void test_bundled(void) {
        _cleanup_(layer_freep) Layer *l = parse_as(POLICY_BUNDLED, "[filesystem]\nread = [\"${NOT_SET_HERE}/x\", \"/y\"]\n");

        CHECK(l && l->bundled && l->n_rules == 1 && rule(l, "/y"));
}

static void test_all_at_once(void) {
        CHECK(!parse("hom = 1\n[filesystem]\nred = []\nread = 3\n[env]\npass = [\"\"]\n"));
        CHECK_INT(strv_length(findings.errors), 4);
        CHECK(startswith(findings.errors[0], "p.toml:1:"));
        CHECK(startswith(findings.errors[1], "p.toml:3:"));
        CHECK(startswith(findings.errors[2], "p.toml:4:"));
        CHECK(startswith(findings.errors[3], "p.toml:6:"));
}

static void test_bom_crlf(void) {
        _cleanup_(layer_freep) Layer *l = parse("\xef\xbb\xbf[filesystem]\r\nread = [\".\"]\r\n");
        CHECK(l && rule(l, "/base/dir"));
}

static void test_odd_bytes(void) {
        _cleanup_(layer_freep) Layer *l = parse("[filesystem]\nread = [\"a:b\", \"a,b\", \"-n\", \"a\\nb\", \"日本\"]\n");
        CHECK(l && rule(l, "/base/dir/a:b") && rule(l, "/base/dir/a,b") && rule(l, "/base/dir/-n"));
        CHECK(rule(l, "/base/dir/a\nb") && rule(l, "/base/dir/日本"));
        CHECK(!parse("[filesystem]\nread = [\"\xff\xfe\"]\n"));
}

static void test_long_path(void) {
        char text[6000];
        char name[3901];

        memset(name, 'a', sizeof(name) - 1);
        for (size_t i = 100; i < sizeof(name) - 1; i += 100)
                name[i] = '/';
        name[sizeof(name) - 1] = 0;
        (void) snprintf(text, sizeof(text), "[filesystem]\nread = [\"%s\"]\n", name);
        Layer *l = parse(text);
        CHECK(l);
        layer_free(l);
        (void) snprintf(text, sizeof(text), "[filesystem]\nread = [\"%s%.200s\"]\n", name, name);
        CHECK(!parse(text));
}

int main(void) {
        if (setenv("ROOT_HERE", "/srv", 1) < 0 || setenv("NAME_HERE", "name", 1) < 0 || setenv("EMPTY_HERE", "", 1) < 0 ||
            setenv("UP_HERE", "../../etc", 1) < 0 || unsetenv("NOT_SET_HERE") < 0)
                return 1;
        RUN(test_reads, "every key of a policy file is read");
        RUN(test_bad, "C100 C107: what is not known, of the wrong type or contradictory is an error with file, line, column and key");
        RUN(test_places, "paths take ~ and variables; devices, profiles and resets are read");
        RUN(test_bundled, "a bundled profile leaves out what names a variable that is not set");
        RUN(test_all_at_once, "C100: every problem of a file is told at once, in the order of its lines");
        RUN(test_bom_crlf, "C100: a byte order mark and CRLF line ends are accepted");
        RUN(test_odd_bytes, "C027: odd bytes in paths are kept; what is not UTF-8 is refused");
        RUN(test_long_path, "C027: a path of 3900 bytes is taken, one beyond the kernel's limit refused");
        findings_done(&findings);
        return TEST_END();
}
