/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>

#include "bailey/audit-judge.h"
#include "bailey/audit-resolve.h"
#include "bailey/audit-risk.h"
#include "bailey/grant-set.h"
#include "bailey/network-use.h"
#include "bailey/seccomp.h"
#include "bailey/trace.h"
#include "basic/json-reader.h"
#include "basic/json-writer.h"
#include "basic/text.h"
#include "test.h"

/* ---- paths ---- */

static const struct {
        const char *path, *says;
} links[] = {
        {"/to-usr", "usr"},      {"/usr/up", ".."},         {"/usr/abs", "/etc"}, {"/loop", "loop"}, {"/a", "/b"}, {"/b", "a"},
        {"/dangling", "no/way"}, {"/usr/far", "/to-usr/x"}, {"/slash", "usr/"},   {"/self", "."},
};

static ssize_t read_link(void *context, const char *path, char *ret, size_t size) {
        unsigned *asked = context;

        ++*asked;
        for (size_t i = 0; i < ELEMENTSOF(links); i++)
                if (streq(links[i].path, path)) {
                        (void) snprintf(ret, size, "%s", links[i].says);
                        return (ssize_t) strlen(ret);
                }
        return -EINVAL;
}

static void test_resolve(void) {
        static const struct {
                const char *path;
                bool follow;
                const char *result;
        } rows[] = {
                {"/", true, "/"},
                {"/usr/x", true, "/usr/x"},
                {"//usr/./x//", true, "/usr/x"},
                {"/to-usr/x", true, "/usr/x"},
                {"/to-usr", true, "/usr"},
                {"/to-usr", false, "/to-usr"},
                {"/to-usr/abs/passwd", true, "/etc/passwd"},
                {"/usr/abs/../x", true, "/x"},
                {"/to-usr/..", true, "/"},
                {"/usr/up/etc", true, "/etc"},
                {"/../../x", true, "/x"},
                {"/dangling", true, "/no/way"},
                {"/dangling/on", false, "/no/way/on"},
                {"/usr/far/y", true, "/usr/x/y"},
                {"/slash/x", true, "/usr/x"},
                {"/slash", true, "/usr"},
                {"/self/self/self/usr", true, "/usr"},
                {"/loop", false, "/loop"},
        };
        unsigned asked = 0;
        const View view = {.read_link = read_link, .context = &asked};
        char ret[PATH_MAX], longer[PATH_MAX + 2];

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                CHECK_INT(view_resolve(&view, rows[i].path, rows[i].follow, ret), 0);
                CHECK_STR(ret, rows[i].result);
        }
        CHECK_INT(view_resolve(&view, "/loop", true, ret), -ELOOP);
        CHECK_INT(view_resolve(&view, "/a/x", false, ret), -ELOOP);
        memset(longer, 'x', sizeof(longer));
        longer[0] = '/';
        longer[PATH_MAX] = 0;
        CHECK_INT(view_resolve(&view, longer, true, ret), -ENAMETOOLONG);
        longer[PATH_MAX - 1] = 0;
        CHECK_INT(view_resolve(&view, longer, true, ret), 0);
}

/* ---- what a plan allows ---- */

static void test_judge(void) {
        enum { L = ACCESSED_LOOK, R = ACCESSED_READ, W = ACCESSED_WRITE, E = ACCESSED_ENTRY, X = ACCESSED_EXECUTE, C = ACCESSED_CONNECT, B = ACCESSED_BIND };
        PlanStep steps[] = {
                {.type = STEP_BIND, .flags = STEP_EXECUTABLE, .target = (char *) "/usr"},
                {.type = STEP_DIRECTORY, .target = (char *) "/home/you"},
                {.type = STEP_BIND, .flags = STEP_WRITABLE | STEP_EXECUTABLE, .target = (char *) "/home/you/code"},
                {.type = STEP_COVER, .target = (char *) "/home/you/code/hidden"},
                {.type = STEP_READ_ONLY, .target = (char *) "/home/you/code/kept"},
                {.type = STEP_TMPFS, .flags = STEP_WRITABLE, .target = (char *) "/tmp"},
                {.type = STEP_SYMLINK, .target = (char *) "/bin"},
        };
        PlanAccess accesses[] = {
                {.path = (char *) "/", .rights = ACCESS_LIST},
                {.path = (char *) "/usr", .rights = ACCESS_READ | ACCESS_EXECUTE},
                {.path = (char *) "/home/you/code", .rights = ACCESS_READ | ACCESS_WRITE},
                {.path = (char *) "/tmp", .rights = ACCESS_READ | ACCESS_WRITE | ACCESS_EXECUTE},
        };
        const Plan plan = {.steps = steps, .n_steps = ELEMENTSOF(steps), .accesses = accesses, .n_accesses = ELEMENTSOF(accesses),
                           .working_directory = (char *) "/srv/here"};
        static const struct {
                const char *path;
                unsigned allowed;
        } rows[] = {
                {"/usr/bin/true", L | R | X | C}, {"/usrx", 0}, {"/", L}, {"/home", L}, {"/home/you", L}, {"/home/you/x", 0}, {"/home/other", 0},
                {"/home/you/code", L | R | W | E | C | B}, {"/home/you/code/a/b", L | R | W | E | C | B}, {"/home/you/code/hidden", L},
                {"/home/you/code/hidden/x", 0}, {"/home/you/code/kept/x", L | R | C}, {"/tmp/x", L | R | W | E | C | B}, {"/bin", L},
                {"/srv", L}, {"/srv/here", L}, {"/srv/here/x", 0},
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                unsigned allowed = plan_allows(&plan, rows[i].path);
                if (allowed != rows[i].allowed)
                        test_fail(__FILE__, __LINE__, "%s: %x, not %x", rows[i].path, allowed, rows[i].allowed);
        }
}

static void test_addresses(void) {
        uint16_t ports[] = {443}, bound[] = {8080};
        const Network isolated = {.mode = NETWORK_ISOLATED, .denied = true}, any = {.mode = NETWORK_LANDLOCK, .connect_any = true},
                      some = {.mode = NETWORK_LANDLOCK, .connect_ports = ports, .n_connect_ports = 1, .bind_ports = bound, .n_bind_ports = 1},
                      proxy = {.mode = NETWORK_EGRESS_PROXY, .proxy_address = {htonl(0xa9fea901)}, .proxy_port = 8443};
        const struct {
                const Network *network;
                unsigned operation;
                const char *address;
                bool allowed;
        } rows[] = {
                {&isolated, ACCESSED_CONNECT, "127.0.0.1:443", false}, {&isolated, ACCESSED_SEND, "192.0.2.1:53", false},
                {&some, ACCESSED_CONNECT, "192.0.2.1:443", true},      {&some, ACCESSED_CONNECT, "[2001:db8::1]:444", false},
                {&some, ACCESSED_BIND, "0.0.0.0:8080", true},          {&some, ACCESSED_BIND, "0.0.0.0:443", false},
                {&some, ACCESSED_SEND, "192.0.2.1:53", true},          {&some, ACCESSED_CONNECT, "443", false},
                {&any, ACCESSED_CONNECT, "192.0.2.1:1", true},         {&any, ACCESSED_BIND, "0.0.0.0:1", false},
                {&proxy, ACCESSED_CONNECT, "169.254.169.1:8443", true}, {&proxy, ACCESSED_CONNECT, "169.254.169.1:8444", false},
                {&proxy, ACCESSED_CONNECT, "169.254.169.11:8443", false}, {&proxy, ACCESSED_SEND, "169.254.169.1:8443", false},
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const Plan plan = {.network = rows[i].network};
                if (plan_allows_address(&plan, rows[i].operation, rows[i].address) != rows[i].allowed)
                        test_fail(__FILE__, __LINE__, "%s, row %zu", rows[i].address, i);
        }
}

/* The table that addresses come to, by what was done there. */
static void test_network(void) {
        enum { C = ACCESSED_CONNECT, B = ACCESSED_BIND, S = ACCESSED_SEND };
        static struct {
                Access seen[4];
                const char *table;   /* without comments */
                unsigned left_out;
        } rows[] = {
                {{{.name = (char *) "192.0.2.1:443", .operations = C}, {.name = (char *) "[2001:db8::1]:443", .operations = C},
                  {.name = (char *) "192.0.2.9:80", .operations = C}, {.name = (char *) "192.0.2.9:53", .operations = S}},
                 "[network]\negress_allow = [\"80\", \"443\"]\n", 1},
                {{{.name = (char *) "0.0.0.0:8080", .operations = B}, {.name = (char *) "[::]:8080", .operations = B}}, "[network]\nbind_ports = [8080]\n", 0},
                /* What stays on a loopback that every sandbox has needs nothing. */
                {{{.name = (char *) "127.0.0.1:9000", .operations = B | C}, {.name = (char *) "[::1]:9001", .operations = B},
                  {.name = (char *) "127.0.0.1:9001", .operations = C}, {.name = (char *) "127.0.0.1:53", .operations = S}}, "", 0},
                /* Unless it is in the host's network, where it is held like all else. */
                {{{.name = (char *) "127.0.0.1:9000", .operations = B | C}, {.name = (char *) "192.0.2.1:443", .operations = C}},
                 "[network]\negress_allow = [\"443\", \"9000\"]\nbind_ports = [9000]\n", 0},
                /* A service of the host's; one whose port is another the next time. */
                {{{.name = (char *) "127.0.0.1:5432", .operations = C}, {.name = (char *) "127.0.0.1:40000", .operations = C}},
                 "[network]\negress_allow = [\"5432\"]\n", 1},
                {{{.name = (char *) "[::1]:40000", .operations = C}, {.name = (char *) "x\"]\n:0", .operations = C}, {.name = (char *) "1.2.3.4:99999", .operations = B}}, "", 3},
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_(network_use_done) NetworkUse use = {};
                Trace t = {.accesses.items = (Access *) rows[i].seen};
                char *text = NULL, plain[512] = "";
                size_t size = 0;
                unsigned left_out = 0;

                while (t.accesses.n < ELEMENTSOF(rows[i].seen) && rows[i].seen[t.accesses.n].name)
                        t.accesses.items[t.accesses.n++].kind = ACCESS_ADDRESS;
                for (size_t k = 0; k < t.accesses.n; k++) {
                        const char *reason;
                        CHECK_INT(network_use_add(&use, &t, &t.accesses.items[k], &reason), 0);
                        left_out += reason != NULL;
                }
                FILE *f = open_memstream(&text, &size);
                CHECK(f);
                network_use_print(&use, f);
                fclose(f);
                for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
                        if (line[0] != '#')
                                (void) snprintf(plain + strlen(plain), sizeof(plain) - strlen(plain), "%s\n", line);
                CHECK_STR(plain, rows[i].table);
                CHECK_INT(left_out, rows[i].left_out);
                free(text);
        }
}

static void test_risks(void) {
        static const struct {
                const char *name;
                unsigned operations;
                bool risk;
        } rows[] = {
                {"/home/you/.ssh/id_rsa", ACCESSED_READ, true}, {"/home/you/.ssh", ACCESSED_LOOK, true}, {"/home/you/.sshx", ACCESSED_READ, false},
                {"/home/other/.ssh/x", ACCESSED_READ, false}, {"/home/you/.bashrc", ACCESSED_READ, false}, {"/home/you/.bashrc", ACCESSED_WRITE, true},
                {"/home/you/.config/autostart/x", ACCESSED_ENTRY, true}, {"/home/you", ACCESSED_READ, true}, {"/home", ACCESSED_READ, true},
                {"/", ACCESSED_READ, true}, {"/home/you", ACCESSED_LOOK, false}, {"/home/you/x", ACCESSED_READ, false}, {"/x/id_ed25519", ACCESSED_READ, true},
                {"/x/.git/hooks/y", ACCESSED_WRITE, true}, {"/x/.git/hooks/y", ACCESSED_READ, false}, {"/run/docker.sock", ACCESSED_CONNECT, true},
                {"/x/sock", ACCESSED_CONNECT, true}, {"/etc/x", ACCESSED_WRITE, true}, {"/etc/x", ACCESSED_READ, false}, {"/dev/sda1", ACCESSED_READ, true},
                {"/dev/input/event0", ACCESSED_READ, true}, {"/x/.env", ACCESSED_READ, true}, {"/x/.env", ACCESSED_LOOK, false},
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const Access a = {.kind = ACCESS_PATH, .name = (char *) rows[i].name, .operations = rows[i].operations};
                if (!!access_risk(&a, "/home/you", NULL) != rows[i].risk)
                        test_fail(__FILE__, __LINE__, "%s %x", rows[i].name, rows[i].operations);
        }
        CHECK(access_risk(&(Access) {.kind = ACCESS_ADDRESS, .name = (char *) "169.254.169.254:80", .operations = ACCESSED_CONNECT}, "/h", NULL));
        CHECK(!access_risk(&(Access) {.kind = ACCESS_ADDRESS, .name = (char *) "192.0.2.1:80", .operations = ACCESSED_CONNECT}, "/h", NULL));
}

/* ---- grants ---- */

static bool below_whole(void *context, const char *directory) {
        (void) context;
        return strncmp(directory, "/whole", 6) == 0;
}

static void test_grants(void) {
        static const Grant given[] = {
                {(char *) "/w", RIGHT_READ | RIGHT_WRITE, true}, {(char *) "/w/run", RIGHT_READ | RIGHT_EXECUTE, false},
                {(char *) "/w/read", RIGHT_READ, false},         {(char *) "/r", RIGHT_READ, true},
                {(char *) "/r/x", RIGHT_READ, false},            {(char *) "/r-x", RIGHT_READ, false},
                {(char *) "/whole/1", RIGHT_READ, false},        {(char *) "/whole/2", RIGHT_READ, false},
                {(char *) "/whole/3", RIGHT_READ, false},        {(char *) "/whole/4/x", RIGHT_READ, false},
                {(char *) "/whole/4", RIGHT_READ | RIGHT_EXECUTE, true}, {(char *) "/not/1", RIGHT_READ, false},
                {(char *) "/not/2", RIGHT_READ, false},          {(char *) "/not/3", RIGHT_READ, false},
                {(char *) "/not/4", RIGHT_READ, false},          {(char *) "/r", RIGHT_READ, true},
        };
        static const struct {
                const char *path;
                unsigned rights;
        } wanted[] = {
                {"/not/1", RIGHT_READ}, {"/not/2", RIGHT_READ}, {"/not/3", RIGHT_READ}, {"/not/4", RIGHT_READ}, {"/r", RIGHT_READ},
                {"/r-x", RIGHT_READ}, {"/w", RIGHT_READ | RIGHT_WRITE}, {"/w/run", RIGHT_READ | RIGHT_WRITE | RIGHT_EXECUTE},
                {"/whole", RIGHT_READ | RIGHT_EXECUTE},
        };
        GrantSet s = {};

        for (size_t i = 0; i < ELEMENTSOF(given); i++)
                CHECK_INT(grant_set_add(&s, given[i].path, given[i].rights, given[i].directory), 0);
        CHECK_INT(grant_set_simplify(&s, below_whole, NULL), 0);
        CHECK_INT(s.n, ELEMENTSOF(wanted));
        for (size_t i = 0; i < s.n; i++) {
                CHECK_STR(s.items[i].path, wanted[i].path);
                CHECK_INT(s.items[i].rights, wanted[i].rights);
        }
        grant_set_done(&s);
}

/* ---- the trace ---- */

static void test_trace(void) {
        Trace t = {.target = strdup("/t"), .working_directory = strdup("/w"), .home = strdup("/h"), .unconfined = true, .started = 1, .ended = UINT64_MAX,
                   .status = 137, .signal = 9, .calls = 5, .unreadable = 2}, back = {};
        char *text = NULL, *again = NULL, name[64];
        size_t size = 0, again_size = 0;

        for (unsigned i = 0; i < 1000; i++) {
                (void) snprintf(name, sizeof(name), "/\"\\\n\xc3\xbc/%u", i);
                Access *a = access_list_get(&t.accesses, ACCESS_PATH, name);
                CHECK(a && a->count++ == 0);
                a->operations = 1 + i % ((1U << ACCESS_OPERATIONS) - 1);
                a->first = a->last = i;
                a->missing = i % 2;
                a = access_list_get(&t.accesses, ACCESS_PATH, name);
                CHECK(a && a->count == 1 && t.accesses.n == i + 1);
        }
        access_list_get(&t.accesses, ACCESS_ADDRESS, "/1")->operations = ACCESSED_CONNECT;
        access_list_get(&t.accesses, ACCESS_ABSTRACT, "/1")->operations = ACCESSED_CONNECT;
        access_list_sort(&t.accesses);
        CHECK_INT(trace_print(&t, &text, &size), 0);
        CHECK_INT(size, strlen(text));
        CHECK_INT(trace_parse(text, size, &back), 0);
        CHECK(trace_truncated(&back) && back.unconfined && back.ended == UINT64_MAX && back.accesses.n == 1002);
        access_list_sort(&back.accesses);
        CHECK_INT(trace_print(&back, &again, &again_size), 0);
        CHECK_STR(again, text);
        /* Whatever is cut off it, it is none. */
        for (size_t n = 0; n < size - 2; n += 1 + n / 50)
                CHECK_INT(trace_parse(text, n, &(Trace) {}), -EBADMSG);
        free(text);
        free(again);
        trace_done(&t);
        trace_done(&back);
}

static void test_json(void) {
        static const struct {
                const char *text, *means; /* NULL: refused */
        } rows[] = {
                {"\"a\"", "a"}, {" \"\" ", ""}, {"\"\\u00fc\\n\\/\\\\\\\"\"", "\xc3\xbc\n/\\\""}, {"\"\\ud83d\\ude00\"", "\xf0\x9f\x98\x80"},
                {"\"\\ud83d\"", NULL}, {"\"\\ude00\"", NULL}, {"\"\\ud83d\\u0041\"", NULL}, {"\"\\u0000\"", NULL}, {"\"\\u00g0\"", NULL},
                {"\"\\x\"", NULL}, {"\"\n\"", NULL}, {"\"", NULL}, {"\"\\\"", NULL}, {"\"\\", NULL}, {"'a'", NULL}, {"\"a\" x", NULL}, {"\"\xff\"", NULL},
                {"\"\\u\"", NULL}, {"\"\\u00f\"", NULL}, {"", NULL},
        };
        JsonReader r;

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char *text = NULL;
                int e = json_reader_init(&r, rows[i].text, strlen(rows[i].text));
                if (e >= 0)
                        e = json_take_string(&r, &text);
                if (e >= 0)
                        e = json_reader_finish(&r);
                if ((e >= 0) != !!rows[i].means)
                        test_fail(__FILE__, __LINE__, "%s: %d", rows[i].text, e);
                if (rows[i].means)
                        CHECK_STR(text, rows[i].means);
                free(text);
        }
        static const char *const numbers[] = {"-1", "01", "1.0", "1e3", "18446744073709551616", "", "x", "+1"};
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
                uint64_t value;
                CHECK_INT(json_reader_init(&r, numbers[i], strlen(numbers[i])), 0);
                CHECK_INT(json_take_u64(&r, &value), -EBADMSG);
        }
        static const char *const lists[] = {"[,]", "[true,]", "[true true]", "[", "[true", "{"};
        for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
                bool value;
                CHECK_INT(json_reader_init(&r, lists[i], strlen(lists[i])), 0);
                int n = json_enter_array(&r);
                while (n >= 0 && (n = json_next_element(&r)) > 0)
                        n = json_take_bool(&r, &value);
                CHECK_INT(n, -EBADMSG);
        }
}

static void test_words(void) {
        for (unsigned i = 0; i < ACCESS_OPERATIONS; i++)
                CHECK_INT(access_operation_from_string(access_operation_to_string(i)), 1U << i);
        CHECK(!access_operation_to_string(ACCESS_OPERATIONS) && !access_operation_from_string(""));
        for (AccessKind k = 0; k < _ACCESS_KIND_MAX; k++)
                CHECK_INT(access_kind_from_string(access_kind_to_string(k)), k);
        CHECK_INT(access_kind_from_string("x"), _ACCESS_KIND_INVALID);
}

int main(void) {
        RUN(test_resolve, "a path is followed as the kernel follows it");
        RUN(test_judge, "what a plan allows is what is mounted and what Landlock grants");
        RUN(test_addresses, "what a plan's network lets through");
        RUN(test_network, "Q019: addresses come to TCP ports, and what stays on a loopback of one's own to none");
        RUN(test_risks, "Q018: what is of high risk");
        RUN(test_grants, "Q019: grants add up along a path, and many siblings are their directory");
        RUN(test_trace, "Q017: a trace comes back as it was written, or not at all");
        RUN(test_json, "the reader takes JSON and nothing else");
        RUN(test_words, "words and values go there and back");
        return TEST_END();
}
