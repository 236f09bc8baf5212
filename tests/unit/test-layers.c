/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <sys/mman.h>

#include "bailey/environment.h"
#include "bailey/guard.h"
#include "bailey/network.h"
#include "bailey/policy-source.h"
#include "bailey/show.h"
#include "policy-fixture.h"

#define RW (RIGHT_READ | RIGHT_WRITE)
#define RX (RIGHT_READ | RIGHT_EXECUTE)

static void test_floor(void) {
        _cleanup_(policy_freep) Policy *p = resolve(NULL);

        CHECK(p);
        CHECK_INT(policy_rights_at(p, "/etc"), RIGHT_READ);
        CHECK_INT(policy_rights_at(p, "/usr/lib/x"), RX);
        CHECK_INT(policy_rights_at(p, at("program")), RX);
        CHECK_INT(policy_rights_at(p, at("real")), 0);
        CHECK_INT(policy_rights_at(p, "/root"), 0);
        CHECK_INT(policy_rights_at(p, "/dev/null"), RW);
        CHECK_INT(policy_rights_at(p, "/dev/zero"), RIGHT_READ);
        CHECK_INT(policy_rights_at(p, "/dev/sda"), 0);
        CHECK(!p->egress_allow && !p->files);
        CHECK_STR(p->home, at("data/bailey/program/home"));
}

static void check_nested(const Policy *p) {
        CHECK_INT(policy_rights_at(p, at("H/proj/state/a")), RW);
        CHECK_INT(policy_rights_at(p, at("H/proj/x")), RIGHT_READ);
        CHECK_INT(policy_rights_at(p, at("H/other")), 0);
        CHECK_INT(policy_rights_at(p, at("H/proj/state/secret")), 0);
}

static void test_orders(void) {
        static const char *const lines[] = {"H", "H/proj", "H/proj/state", "H/proj/state/secret"};
        unsigned orders = 0;

        make_directory("H/proj/state/secret");
        for (unsigned code = 0; code < 256; code++) {
                unsigned order[4] = {code & 3, code >> 2 & 3, code >> 4 & 3, code >> 6};
                Policy p = {};
                Layer *layers[2] = {};

                if ((1U << order[0] | 1U << order[1] | 1U << order[2] | 1U << order[3]) != 15)
                        continue;
                orders++;
                /* One layer, then two: the first two rules below the others. */
                for (unsigned split = 0; split < 2; split++) {
                        findings = (Findings){};
                        layers[0] = layer_new("low");
                        layers[1] = layer_new("high");
                        CHECK(layers[0] && layers[1]);
                        for (unsigned i = 0; i < 4; i++) {
                                LayerRule *rule = layer_rule(layers[split && i > 1], at(lines[order[i]]));
                                CHECK(rule);
                                rule->deny = order[i] == 0 || order[i] == 3;
                                rule->rights = order[i] == 1 ? RIGHT_READ : order[i] == 2 ? RW : 0;
                        }
                        CHECK_INT(layers_combine_paths(&p, layers, 2, &findings), 0);
                        CHECK(!findings_failed(&findings));
                        check_nested(&p);
                        for (size_t i = 0; i < p.n_rules; i++) {
                                free(p.rules[i].path);
                                resolved_path_done(&p.rules[i].resolved);
                        }
                        free(p.rules);
                        free(p.entries);
                        p = (Policy){};
                        layer_free(layers[0]);
                        layer_free(layers[1]);
                }
        }
        CHECK_INT(orders, 24);
}

static void test_files(void) {
        _cleanup_(policy_freep) Policy *p = resolve("[filesystem]\ndeny = [\"H/proj/state/secret\", \"H\"]\n"
                                                    "write = [\"H/proj/state\"]\nread = [\"H/proj\"]\n");
        CHECK(p);
        check_nested(p);
        CHECK_INT(strv_length(p->files), 1);
}

static void test_directions(void) {
        _cleanup_(policy_freep) Policy *p = NULL;

        make_directory("W/ro/deep/rw");
        make_directory("W/exec");
        make_file("W/file", "", 0644);
        p = resolve("[filesystem]\nwrite = [\"W\", \"W/ro/deep/rw\"]\nread_only = [\"W/ro\", \"W/file\"]\nexecute = [\"W/exec\"]\n");
        CHECK(p);
        CHECK_INT(policy_rights_at(p, at("W/x")), RW);
        CHECK_INT(policy_rights_at(p, at("W/ro/x")), RIGHT_READ);
        CHECK_INT(policy_rights_at(p, at("W/ro/deep/rw/x")), RW);
        CHECK_INT(policy_rights_at(p, at("W/file")), RIGHT_READ);
        CHECK_INT(policy_rights_at(p, at("W/exec/x")), RX);
}

static void test_override(void) {
        _cleanup_(policy_freep) Policy *p = resolve("[filesystem]\ndeny = [\"/usr/share\"]\nread = [\"/usr\", \"/usr/bin\"]\nexecute = [\"/usr/lib\"]\n");
        CHECK(p);
        CHECK_INT(policy_rights_at(p, "/usr/x"), RIGHT_READ);
        CHECK_INT(policy_rights_at(p, "/usr/share/x"), 0);
        /* One place by two names, /bin in the floor and /usr/bin here: the higher layer's rule counts. */
        CHECK_INT(policy_rights_at(p, "/usr/bin"), RIGHT_READ);
        CHECK_INT(policy_rights_at(p, "/usr/lib/x"), RX);
}

static void test_same_place(void) {
        make_directory("one");
        make_link("one", "two");
        CHECK(!resolve("[filesystem]\nread = [\"one\"]\ndeny = [\"two\"]\n"));
        CHECK(listed(findings.errors, "are the same place, one granted and one denied"));
}

static void test_reset(void) {
        CHECK(!resolve("[filesystem]\nreset = true\nread = [\"one\"]\n"));
        CHECK(listed(findings.errors, "does not let"));
        _cleanup_(policy_freep) Policy *p = resolve("[filesystem]\nreset = true\nexecute = [\"program\"]\n");
        CHECK(p);
        CHECK_INT(policy_rights_at(p, "/usr"), 0);
        CHECK_INT(policy_rights_at(p, "/etc"), 0);
        CHECK_INT(policy_rights_at(p, "/proc"), 0);
        CHECK_INT(policy_rights_at(p, at("program")), RX);
        CHECK_INT(policy_rights_at(p, "/dev/null"), RW);
}

static void test_target_denied(void) {
        CHECK(!resolve("[filesystem]\ndeny = [\"program\"]\n"));
        CHECK(listed(findings.errors, "does not let"));
}

static void test_planted_link(void) {
        make_directory("private");
        make_directory("W");
        make_link(at("private"), "W/link");
        CHECK(!resolve("[filesystem]\nwrite = [\"W\", \"W/link\"]\n"));
        CHECK(listed(findings.errors, at("p.toml:2")));
        CHECK(listed(findings.errors, at("private")));
        CHECK(!resolve("[filesystem]\nwrite = [\"W\"]\nread = [\"W/link/deeper\"]\n"));
        /* What it leads to is granted, but for less than the link would give. */
        CHECK(!resolve("[filesystem]\nwrite = [\"W\", \"W/link\"]\nread = [\"private\"]\n"));
        /* Two links do not vouch for each other. */
        make_link(at("private"), "W/link2");
        CHECK(!resolve("[filesystem]\nwrite = [\"W\", \"W/link\", \"W/link2\"]\n"));

        Policy *p = resolve("[filesystem]\nwrite = [\"W\", \"W/link\", \"private\"]\n");
        CHECK(p);
        policy_free(p);
        /* Out of reach of a session a link is the owner's own. */
        p = resolve("[filesystem]\nread = [\"W\", \"W/link\"]\n");
        CHECK(p);
        CHECK_INT(policy_rights_at(p, at("private/x")), RIGHT_READ);
        policy_free(p);
}

static void test_planted_target(void) {
        make_directory("W/bin");
        make_file("W/bin/tool", "", 0755);
        make_link("bin/tool", "W/tool");
        make_link("/bin/true", "W/true");
        make_file("private/key", "", 0755);
        make_link("../private/key", "W/key");

        Policy *p = resolve_with("[filesystem]\nwrite = [\"W\"]\n", &(PolicyRequest){.target = at("W/tool")});
        CHECK(p);
        policy_free(p);
        p = resolve_with("[filesystem]\nwrite = [\"W\"]\n", &(PolicyRequest){.target = at("W/true")});
        CHECK(p);
        policy_free(p);
        CHECK(!resolve_with("[filesystem]\nwrite = [\"W\"]\n", &(PolicyRequest){.target = at("W/key")}));
        CHECK(listed(findings.errors, "which a session could have made"));
}

static void test_egress_layers(void) {
        static const struct {
                const char *text;
                bool allow;
                size_t hosts;
        } table[] = {
                {"", true, 2},
                {"[network]\negress = \"deny\"\n", false, 0},
                {"[network]\negress = \"allow\"\n", true, 0},
                {"[network]\negress_allow = [\"22\"]\n", true, 3},
                {"[network]\nreset = true\n", false, 0},
                {"[network]\nreset = true\negress_allow = [\"22\"]\n", true, 1},
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(policy_freep) Policy *p = resolve_with(table[i].text, &(PolicyRequest){.profile = "network-client"});
                CHECK(p);
                CHECK_INT(p->egress_allow, table[i].allow);
                CHECK_INT(strv_length(p->egress_hosts), table[i].hosts);
                CHECK_STR(p->layer_names[p->egress_layer], *table[i].text ? at("p.toml") : "profile network-client");
        }
}

static void test_protected_link(void) {
        _cleanup_(policy_freep) Policy *p = NULL;

        make_link("/nonexistent/target", "W/.bashrc");
        make_directory("elsewhere");
        make_file("elsewhere/rc", "", 0644);
        make_link("../elsewhere/rc", "W/.zshrc");
        p = resolve("[filesystem]\nwrite = [\"W\", \"elsewhere\"]\nread_only = [\"W/.bashrc\", \"W/.zshrc\"]\n");
        CHECK(p);
        CHECK_INT(policy_rights_at(p, at("elsewhere/rc")), RIGHT_READ);
        CHECK(!findings.warnings);
}

static void test_bundle_link(void) {
        _cleanup_(policy_freep) Policy *p = NULL;

        make_directory("etc/ssl/certs");
        make_directory("etc/ca-extracted");
        make_file("etc/ca-extracted/bundle.pem", "", 0644);
        make_link("../../ca-extracted/bundle.pem", "etc/ssl/certs/ca.crt");
        p = resolve("[filesystem]\nread = [\"etc/ssl\", \"etc/ssl/certs/ca.crt\"]\n");
        CHECK(p);
        CHECK_INT(policy_rights_at(p, at("etc/ca-extracted/bundle.pem")), RIGHT_READ);
        CHECK_INT(policy_rights_at(p, at("etc/ca-extracted")), 0);
}

static void test_state(void) {
        make_directory("data/bailey/other/home");
        make_directory("config/bailey");
        CHECK(!resolve("[filesystem]\nwrite = [\"data/bailey/other/home\"]\n"));
        CHECK(listed(findings.errors, "bailey's own state"));
        make_link(at("data/bailey"), "state-link");
        CHECK(!resolve("[filesystem]\nwrite = [\"state-link\"]\n"));
        CHECK(listed(findings.errors, at("data/bailey")));
        CHECK(!resolve("[filesystem]\nwrite = [\"config/bailey\"]\n"));
        CHECK(listed(findings.errors, "bailey's own configuration"));

        /* A grant above it is taken, without it. */
        _cleanup_(policy_freep) Policy *p = resolve("[filesystem]\nwrite = [\"data\"]\n");
        _cleanup_strv_free_ char **covers = NULL;
        CHECK(p);
        CHECK_INT(guard_covers(p, &covers), 0);
        CHECK(strv_contains(covers, at("data/bailey")));
}

static void test_fixed(void) {
        static const struct {
                const char *text, *error;
        } table[] = {
                {"[filesystem]\nread = [\"/run/user\"]\n", "always covered"},
                {"[filesystem]\nread = [\"/run/user/1000/bus\"]\n", "always covered"},
                {"[filesystem]\nwrite = [\"/run/docker.sock\"]\n", "always covered"},
                {"[filesystem]\nread = [\"/run/dbus/system_bus_socket\"]\n", "always covered"},
                {"[filesystem]\nread = [\"/run/errand/launch\"]\n", "always covered"},
                {"[filesystem]\nwrite = [\"/run/errand-embedded\"]\n", "always covered"},
                {"[filesystem]\nread = [\"/etc/shadow\"]\n", "always covered"},
                {"[filesystem]\nwrite = [\"/proc\"]\n", "made by bailey itself"},
                {"[filesystem]\nwrite = [\"/proc/sys\"]\n", "made by bailey itself"},
                {"[filesystem]\nexecute = [\"/sys\"]\n", "made by bailey itself"},
                {"[filesystem]\nread = [\"/dev\"]\n", "grant single devices"},
                {"[filesystem]\nread = [\"/dev/pts\"]\n", "not a character device"},
                {"[filesystem]\nexecute = [\"/dev/null\"]\n", "cannot be executed"},
                {"home = \"/\"\n", "cannot be"},
                {"home = \"real\"\n", "the real home"},
                {"home = \".\"\n", "the real home or hold it"},
                {"home = \"/run\"\n", "cannot be where /run/dbus is"},
                {"home = \"/run/user/1000/x\"\n", "cannot be where /run/user is"},
                {"home = \"/etc\"\n", "cannot be where /etc/shadow is"},
                {"home = \"data\"\n", "data/bailey is"},
                {"home = \"config/bailey/x\"\n", "config/bailey is"},
                {"home = \"kept\"\n[env]\nset = {HOME = \"/elsewhere\"}\n[filesystem]\ndeny = [\"kept/secret\"]\n", "kept/secret is"},
                {"home = \"kept\"\n[env]\nset = {HOME = \"/elsewhere\"}\n[filesystem]\nread_only = [\"kept/secret\"]\n", "kept/secret is"},
                {"[env]\nset = { HOME = \"x\" }\n", "not an absolute path"},
        };

        make_directory("kept/secret");
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                CHECK(!resolve(table[i].text));
                CHECK(listed(findings.errors, table[i].error));
        }
        /* Where the home shows at its own place, what is protected in it is. */
        _cleanup_(policy_freep) Policy *p = resolve("home = \"kept\"\n[filesystem]\ndeny = [\"kept/secret\"]\n");
        CHECK(p);
}

static void test_shown_home(void) {
        static const struct {
                const char *text, *line;
        } table[] = {
                {NULL, "(private; the real home is not granted)"},
                {"[filesystem]\nwrite = [\"real/project\"]\n", "(private; the real home is not granted)"},
                {"[filesystem]\nread = [\"real\"]\n", "(private; the real home is granted)"},
                {"[filesystem]\nwrite = [\".\"]\n", "(private; the real home is granted)"},
                {"[filesystem]\nwrite = [\".\"]\ndeny = [\"real\"]\n", "(private; the real home is not granted)"},
        };

        make_directory("real/project");
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(policy_freep) Policy *p = resolve(table[i].text);
                char *text = NULL;
                size_t size;
                FILE *f = open_memstream(&text, &size);

                CHECK(p && f && show_policy(p, &(ShownNetwork){.network = &(Network){.mode = NETWORK_ISOLATED}}, f) == 0 && fclose(f) == 0);
                CHECK(strstr(text, table[i].line));
                free(text);
        }
}

static void test_missing(void) {
        _cleanup_(policy_freep) Policy *p = resolve("[filesystem]\nread = [\"not-there\"]\nwrite = [\"W\"]\ndeny = [\"W/not-yet\"]\n");
        CHECK(p);
        CHECK(listed(findings.warnings, "not-there does not exist; the grant is skipped"));
        CHECK(listed(findings.warnings, "W/not-yet does not exist, so there is nothing to protect"));
}

static void test_unreadable_file(void) {
        CHECK(!resolve_with(NULL, &(PolicyRequest){.target = "/nowhere/x"}));
        findings_done(&findings);
        findings = (Findings){};
        Layer *layer = NULL;
        struct stat st;
        CHECK_INT(policy_source_load(at("no.toml"), NULL, &findings, &st, &layer), 0);
        CHECK(!layer && listed(findings.errors, "no.toml: the policy cannot be read: No such file"));
        CHECK_INT(policy_source_load(at("W"), NULL, &findings, &st, &layer), 0);
        CHECK(!layer && listed(findings.errors, "Is a directory"));
}

static void test_breadth(void) {
        _cleanup_(policy_freep) Policy *p = resolve("[filesystem]\nwrite = [\"real\"]\n");
        CHECK(p);
        CHECK(listed(findings.warnings, "makes the real home writable"));
}

static void test_network(void) {
        static const struct {
                const char *text;
                int abi;
                NetworkMode mode;
                size_t connect, bind;
                bool any;
        } table[] = {
                {"[network]\negress = \"deny\"\n", 7, NETWORK_ISOLATED, 0, 0, false},
                {"", 7, NETWORK_ISOLATED, 0, 0, false},
                {"[network]\negress = \"allow\"\n", 7, NETWORK_LANDLOCK, 0, 0, true},
                {"[network]\negress_allow = [\"443\", \"a.example:22\"]\n", 7, NETWORK_LANDLOCK, 2, 0, false},
                {"[network]\nbind_ports = [80]\n", 7, NETWORK_LANDLOCK, 0, 1, false},
                {"[network]\negress = \"allow\"\nbind_ports = [80]\n", 7, NETWORK_LANDLOCK, 0, 1, true},
                /* Without rules for ports what is allowed is, and what is denied stays so. */
                {"[network]\negress_allow = [\"443\"]\n", 3, NETWORK_LANDLOCK, 1, 0, false},
                {"[network]\nbind_ports = [80]\n", 3, NETWORK_ISOLATED, 0, 1, false},
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(policy_freep) Policy *p = resolve(table[i].text);
                _cleanup_(network_done) Network n = {};
                CHECK(p);
                CHECK_INT(network_choose(p, &(NetworkRequest){.landlock_abi = table[i].abi}, &n), 0);
                CHECK_INT(n.mode, table[i].mode);
                CHECK_INT(n.n_connect_ports, table[i].connect);
                CHECK_INT(n.n_bind_ports, table[i].bind);
                CHECK_INT(n.connect_any, table[i].any);
        }
}

static void test_network_ways(void) {
        _cleanup_(policy_freep) Policy *p = resolve("[network]\negress_allow = [\"443\"]\n");
        static const struct {
                const char *proxy, *address;
                unsigned prefix;
        } table[] = {
                {"169.254.169.1", "169.254.169.2", 30}, {"169.254.169.2", "169.254.169.1", 30},
                {"10.0.0.3", "10.0.0.4", 29}, {"10.0.1.0", "10.0.1.1", 23},
        };

        CHECK(p);
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                _cleanup_(network_done) Network n = {};
                NetworkRequest request = {.proxy_port = 8443, .proxy = true, .landlock_abi = 7};
                char text[INET_ADDRSTRLEN];
                CHECK_INT(inet_pton(AF_INET, table[i].proxy, &request.proxy_address), 1);
                CHECK(network_proxy_address_valid(request.proxy_address));
                CHECK_INT(network_choose(p, &request, &n), 0);
                CHECK_INT(n.mode, NETWORK_EGRESS_PROXY);
                CHECK_STR(inet_ntop(AF_INET, &n.address, text, sizeof(text)), table[i].address);
                CHECK_INT(n.prefix, table[i].prefix);
        }
        static const char *const nobodys[] = {"127.0.0.1", "0.0.0.0", "224.0.0.1", "255.255.255.255", "10.255.255.255", "10.0.0.0"};
        for (size_t i = 0; i < ELEMENTSOF(nobodys); i++) {
                struct in_addr a;
                CHECK_INT(inet_pton(AF_INET, nobodys[i], &a), 1);
                CHECK(!network_proxy_address_valid(a));
        }
        _cleanup_(network_done) Network brokered = {};
        CHECK_INT(network_choose(p, &(NetworkRequest){.brokered = true, .landlock_abi = 7}, &brokered), 0);
        CHECK_INT(brokered.mode, NETWORK_BROKER);
        CHECK(!network_has_ports(&brokered) && !network_has_pasta(&brokered));
}

static void test_environment(void) {
        CHECK(setenv("SECRET", "s3cret", 1) == 0 && setenv("GIVEN", "yes\nno", 1) == 0 && setenv("TERM", "vt100", 1) == 0);
        CHECK(setenv("BASH_FUNC_x%%", "() { :; }", 1) == 0 && setenv("LD_PRELOAD_X", "x", 1) == 0);

        Policy *p = resolve(NULL);
        CHECK(p);
        static const char *const base[] = {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "BAILEY_SANDBOX",
                                           "BAILEY_SANDBOX_NET"};
        CHECK_INT(p->n_variables, ELEMENTSOF(base));
        for (size_t i = 0; i < ELEMENTSOF(base); i++)
                CHECK_STR(p->variables[i].name, base[i]);
        CHECK_STR(policy_variable(p, "HOME"), p->home);
        CHECK_STR(policy_variable(p, "USER"), "you");
        CHECK_STR(policy_variable(p, "BAILEY_SANDBOX_NET"), "none");
        policy_free(p);

        p = resolve("[env]\npass = []\n");
        CHECK(p);
        CHECK_INT(p->n_variables, ELEMENTSOF(base));
        policy_free(p);

        p = resolve("[env]\npass = [\"GIVEN\", \"NOT_SET\"]\nset = { LANG = \"C\", X = \"\" }\ndeny = [\"TERM\"]\n");
        CHECK(p);
        CHECK_STR(policy_variable(p, "GIVEN"), "yes\nno");
        CHECK_STR(policy_variable(p, "LANG"), "C");
        CHECK_STR(policy_variable(p, "X"), "");
        CHECK(!policy_variable(p, "TERM") && !policy_variable(p, "NOT_SET") && !policy_variable(p, "SECRET"));
        policy_free(p);

        p = resolve("[env]\nreset = true\nset = { A = \"b\" }\n");
        CHECK(p);
        CHECK_INT(p->n_variables, 3);
        policy_free(p);
}

static void test_env_fd(void) {
        static const struct {
                const char *data;
                size_t size;
                bool good;
        } table[] = {
                {"A=1\0B=\0http_proxy=http://x:y@z\0", 31, true},
                {"", 0, true},
                {"A=1", 3, false},
                {"A\0", 2, false},
                {"=1\0", 3, false},
                {"\0", 1, false},
                {"A B=1\0", 6, false},
                {"A=1\0A=2\0", 8, false},
                {"BAILEY_SANDBOX_NET=none\0", 24, false},
        };

        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);
                char **list = NULL;

                findings_done(&findings);
                findings = (Findings){};
                CHECK(fd >= 0 && write_all(fd, table[i].data, table[i].size) == 0);
                if (i == 0) {
                        CHECK_INT(environment_read_fd(fd, &findings, &list), 0);
                        CHECK(!list && listed(findings.errors, "not a memfd sealed"));
                        findings_done(&findings);
                        findings = (Findings){};
                }
                CHECK_INT(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE), 0);
                CHECK_INT(environment_read_fd(fd, &findings, &list), 0);
                if (findings_failed(&findings) == table[i].good)
                        printf("# row %zu\n", i);
                CHECK(findings_failed(&findings) != table[i].good);
                for (char **s = findings.errors; s && *s; s++)
                        CHECK(!strstr(*s, "=1"));
                if (i == 0) {
                        Policy *p = resolve_with("[env]\nset = { A = \"file\" }\n",
                                                 &(PolicyRequest){.extra_environment = list, .brokered = true});
                        CHECK(p);
                        CHECK_STR(policy_variable(p, "A"), "1");
                        CHECK_STR(policy_variable(p, "http_proxy"), "http://x:y@z");
                        CHECK_STR(policy_variable(p, "BAILEY_SANDBOX_NET"), "broker");
                        policy_free(p);
                }
                environment_free(list);
                close(fd);
        }
        int pipes[2];
        char **list = NULL;
        CHECK_INT(pipe2(pipes, O_CLOEXEC), 0);
        findings_done(&findings);
        findings = (Findings){};
        CHECK_INT(environment_read_fd(pipes[0], &findings, &list), 0);
        CHECK(findings_failed(&findings));
}

int main(void) {
        fixture_make();
        RUN(test_floor, "Q002 Q003 Q005 Q009 Q010 N004: without a file there are the floor and the target");
        RUN(test_orders, "C010: the most specific path wins in all 24 orders, in one layer and over two");
        RUN(test_files, "C010: the same from a file");
        RUN(test_directions, "C030: read_only takes writing away, a narrower grant is narrower, a deeper one counts again");
        RUN(test_override, "C108: of one path the highest layer wins");
        RUN(test_same_place, "C014: one place by two names cannot be granted and denied");
        RUN(test_reset, "reset drops the floor and the target's grant, not the minimal /dev");
        RUN(test_target_denied, "a policy that denies its target is an error");
        RUN(test_planted_link, "C014 C018: a grant over a link that a session could have made is refused, the place is named");
        RUN(test_planted_target, "C014: so is a target, but where the link leads to what is granted");
        RUN(test_egress_layers, "a higher layer's egress stands for itself");
        RUN(test_protected_link, "C011 C012: of a protected link the place it leads to is protected, and that is said");
        RUN(test_bundle_link, "C017: a file named over a link is granted where it really is");
        RUN(test_state, "C014 C109: bailey's own state and configuration can never be writable");
        RUN(test_fixed, "C064 C028: sockets of daemons, password hashes, /proc, /sys and /dev are no policy's to give");
        RUN(test_shown_home, "Q007: the real home is called granted when it is");
        RUN(test_missing, "C013 C029: what does not exist is a warning");
        RUN(test_unreadable_file, "a policy file that cannot be read is an error");
        RUN(test_breadth, "C024: a grant of the real home is warned about");
        RUN(test_network, "N001 N002 N003: the mode is chosen from the policy and what the host can do");
        RUN(test_network_ways, "N021: what the command line asks for, and the addresses that go with it");
        RUN(test_environment, "C057 Q008 T020: the environment is built; an empty pass list passes nothing");
        RUN(test_env_fd, "C058: --env-fd takes KEY=VALUE records from a sealed memfd alone and overrides; no value in a message");
        findings_done(&findings);
        return TEST_END();
}
