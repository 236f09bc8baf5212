/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "basic/utf8.h"
#include "errandd/action.h"
#include "errandd/bus.h"
#include "errandd/bus-objects.h"
#include "random-message.h"

#define PROPERTIES "org.freedesktop.DBus.Properties"
#define DEPTH_MAX 5U
#define SIGNATURE_MAX 120U

static uint64_t state;

void random_begin(uint64_t seed) {
        state = seed ^ UINT64_C(0x9e3779b97f4a7c15);
}

/* xorshift64*: the same numbers for the same seed, everywhere. */
static uint64_t random_number(void) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        return state * UINT64_C(0x2545f4914f6cdd1d);
}

uint32_t random_below(uint32_t n) {
        return (uint32_t) ((random_number() >> 32) % n);
}

#define PICK(table) ((table)[random_below(ELEMENTSOF(table))])

static const char *random_text(void) {
        static const char *const words[] = {
                "", "a1", "b2", "c3", "zz", "A1", "..", "../a1", "/", "/etc/shadow", "/dev/zero", "/proc/self/mem", "demo", "-rf", "--", "%s%n%s", "$(id)",
                "api.example.com", "*.example.com", "*", "127.0.0.1", "[::1]", "a..b", "once", "always", "10m", "1h 30m", "99999999999999999999y", "-1s", "0",
                "restricted", "none", "open", "true", "/bin/sh", "-c", "org.errand1.Session", "org.errand1.Manager", "org.errand1.Grant", "org.errand1.Receipt",
                "org.freedesktop.LogControl1", "LogLevel", "LogTarget", "debug", "journal", "State", "Report", "Gaps", "Host", "Id", "PATH=/tmp", "HOME",
                "BAILEY_SANDBOX", "project", "projectFd", "ownProject", "id", "command", "network", "allow", "env", "interactive", "protocol", "rows", "columns", "stdin", "stdout",
                "stderr", "!grant api.example.com", "!grant", "!revoke *.example.com", "!grants", "!answer 3 yes", "!interrupt", "!stop", "!help", "!status", "!", "acp",
                "provider", "model", "user", "session", "outcome", "since", "before", "limit", "completed", "\xc3\xa9\xe2\x82\xac", "a\nb\r\x1b[2J",
        };
        static char long_text[70000];
        uint32_t n;

        if (random_below(12) != 0)
                return PICK(words);
        n = random_below(random_below(10) == 0 ? sizeof(long_text) : 300);
        for (uint32_t i = 0; i < n; i++)
                long_text[i] = (char) (random_below(4) == 0 ? 1 + random_below(127) : 'a' + random_below(26));
        long_text[n] = 0;
        return long_text;
}

static const char *random_path(void) {
        static const char *const known[] = {
                BUS_ROOT, BUS_ROOT, "/", "/org", "/org/freedesktop/LogControl1", "/org/freedesktop/DBus", BUS_SESSION_ROOT, BUS_GRANT_ROOT, BUS_RECEIPT_ROOT,
                BUS_SESSION_ROOT "/a1", BUS_SESSION_ROOT "/b2", BUS_SESSION_ROOT "/c3", BUS_SESSION_ROOT "/a1", BUS_SESSION_ROOT "/zz",
                BUS_SESSION_ROOT "/A1", BUS_SESSION_ROOT "/a_31", BUS_SESSION_ROOT "/a1/a1", BUS_GRANT_ROOT "/a1/1", BUS_GRANT_ROOT "/a1/2",
                BUS_GRANT_ROOT "/b2/1", BUS_GRANT_ROOT "/a1/4294967296", BUS_GRANT_ROOT "/a1/01", BUS_RECEIPT_ROOT "/1", BUS_RECEIPT_ROOT "/2",
                BUS_RECEIPT_ROOT "/9223372036854775807", BUS_RECEIPT_ROOT "/18446744073709551615", BUS_RECEIPT_ROOT "/99999999999999999999",
        };
        static char long_path[9000];
        uint32_t n;

        if (random_below(50) != 0)
                return PICK(known);
        n = random_below(8000);
        (void) snprintf(long_path, sizeof(long_path), "%s/", PICK(known));
        for (uint32_t i = 0, at = (uint32_t) strlen(long_path); i < n; i++, at++) {
                long_path[at] = i % 50 == 49 ? '/' : (char) ('a' + random_below(26));
                long_path[at + 1] = 0;
        }
        return long_path;
}

static int random_fd(void) {
        int fds[2];

        switch (random_below(5)) {
        case 0:
                return open("/dev/null", O_RDWR | O_CLOEXEC);
        case 1:
                return open("/tmp", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        case 2:
                return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        case 3:
                return open("/", O_PATH | O_CLOEXEC);
        default:
                if (pipe2(fds, O_CLOEXEC) < 0)
                        return -errno;
                close(fds[1]);
                return fds[0];
        }
}

static int append_basic(sd_bus_message *m, char type) {
        static const uint64_t edges[] = {0, 1, 2, 9, 64, 127, 128, 1000, 1001, 65535, 65536, INT32_MAX, UINT32_MAX, INT64_MAX, UINT64_MAX};
        uint64_t number = random_below(3) == 0 ? random_number() : PICK(edges);
        _cleanup_close_ int fd = -EBADF;
        int truth = random_below(2) == 0;

        if (strchr("sog", type))
                return sd_bus_message_append_basic(m, type, type == 's' ? random_text() : type == 'o' ? random_path() : "a{sv}");
        if (type == 'b')
                return sd_bus_message_append_basic(m, type, &truth);
        if (type != 'h')
                return sd_bus_message_append_basic(m, type, &number); /* the lower bytes of it */
        fd = random_fd();
        return fd < 0 ? fd : sd_bus_message_append_basic(m, type, &fd);
}

/* Makes one complete type at *at. */
static void make_type(char signature[static SIGNATURE_MAX + 1], size_t *at, unsigned depth) {
        static const char basic[] = "ybnqiuxtdsoghsss";
        uint32_t kind = depth >= DEPTH_MAX || *at > SIGNATURE_MAX - 24 ? 0 : random_below(8);

        switch (kind) {
        case 4:
                signature[(*at)++] = 'v';
                break;
        case 5:
                signature[(*at)++] = 'a';
                make_type(signature, at, depth + 1);
                break;
        case 6:
                signature[(*at)++] = 'a';
                signature[(*at)++] = '{';
                signature[(*at)++] = basic[random_below(sizeof(basic) - 1)];
                make_type(signature, at, depth + 1);
                signature[(*at)++] = '}';
                break;
        case 7:
                signature[(*at)++] = '(';
                for (uint32_t n = 1 + random_below(3); n > 0; n--)
                        make_type(signature, at, depth + 1);
                signature[(*at)++] = ')';
                break;
        default:
                signature[(*at)++] = basic[random_below(sizeof(basic) - 1)];
        }
        signature[*at] = 0;
}

/* Where the complete type at s ends. */
static const char *type_end(const char *s) {
        unsigned depth = 0;

        while (*s == 'a')
                s++;
        do {
                depth += strchr("({", *s) != NULL;
                depth -= strchr(")}", *s) != NULL;
                s++;
        } while (depth > 0);
        return s;
}

static int append(sd_bus_message *m, const char *signature, unsigned depth);

static int append_container(sd_bus_message *m, char type, const char *contents, unsigned depth) {
        uint32_t n = type == 'a' ? random_below(depth > 1 ? 4 : 7) : 1;
        int r;

        r = sd_bus_message_open_container(m, type, contents);
        while (r >= 0 && n-- > 0)
                r = append(m, contents, depth + 1);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int append_variant(sd_bus_message *m, unsigned depth) {
        static const char *const usual[] = {"s", "s", "as", "a{ss}", "b", "q", "u", "t", "h", "i"};
        char signature[SIGNATURE_MAX + 1] = "";
        size_t at = 0;

        if (depth < DEPTH_MAX && random_below(4) == 0)
                make_type(signature, &at, depth + 1);
        else
                (void) snprintf(signature, sizeof(signature), "%s", PICK(usual));
        return append_container(m, 'v', signature, depth);
}

static int append(sd_bus_message *m, const char *signature, unsigned depth) {
        int r = 0;

        while (*signature && r >= 0) {
                const char *end = type_end(signature);
                char inner[SIGNATURE_MAX + 1];

                if (*signature == 'v')
                        r = append_variant(m, depth);
                else if (*signature == 'a') {
                        (void) snprintf(inner, sizeof(inner), "%.*s", (int) (end - signature - 1), signature + 1);
                        r = append_container(m, 'a', inner, depth);
                } else if (strchr("({", *signature)) {
                        (void) snprintf(inner, sizeof(inner), "%.*s", (int) (end - signature - 2), signature + 1);
                        r = append_container(m, *signature == '(' ? 'r' : 'e', inner, depth);
                } else
                        r = append_basic(m, *signature);
                signature = end;
        }
        return r;
}

static const char *signature_of(const char *interface, const char *member) {
        static const sd_bus_vtable *const vtables[_BUS_OBJECT_KIND_MAX] = {manager_vtable, session_vtable, grant_vtable, receipt_vtable};
        BusObjectKind k = bus_object_kind_of(interface);

        if (streq(interface, PROPERTIES))
                return streq(member, "GetAll") ? "s" : streq(member, "Get") ? "ss" : "ssv";
        for (const sd_bus_vtable *v = k < 0 ? NULL : vtables[k] + 1; v && v->type != _SD_BUS_VTABLE_END; v++)
                if (v->type == _SD_BUS_VTABLE_METHOD && streq(v->x.method.member, member))
                        return v->x.method.signature;
        return "";
}

/* A path where the interface is, most of the time. */
static const char *path_for(const char *interface) {
        static const char *const sessions[] = {BUS_SESSION_ROOT "/a1", BUS_SESSION_ROOT "/b2", BUS_SESSION_ROOT "/c3"};

        if (random_below(4) == 0)
                return random_path();
        switch (bus_object_kind_of(interface)) {
        case BUS_OBJECT_SESSION:
                return PICK(sessions);
        case BUS_OBJECT_GRANT:
                return BUS_GRANT_ROOT "/a1/1";
        case BUS_OBJECT_RECEIPT:
                return BUS_RECEIPT_ROOT "/1";
        default:
                return streq(interface, "org.freedesktop.LogControl1") ? "/org/freedesktop/LogControl1" : BUS_ROOT;
        }
}

/* What of the message's a service must not take for its own: a signal, and an answer that nobody asked for. */
static int random_noise(sd_bus *bus, sd_bus_message **ret, RandomCall *ret_call) {
        static const char *const members[][3] = {
                {"/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "JobRemoved"},
                {"/org/freedesktop/DBus", "org.freedesktop.DBus", "NameOwnerChanged"},
                {"/org/freedesktop/DBus/Local", "org.freedesktop.DBus", "NameLost"},
                {BUS_ROOT, BUS_MANAGER_INTERFACE, "Unsubscribed"},
        };
        const char *const *which = PICK(members);
        int r;

        *ret_call = (RandomCall){.path = which[0], .interface = which[1], .member = which[2], .of = "", .property = ""};
        r = sd_bus_message_new_signal(bus, ret, which[0], which[1], which[2]);
        if (r >= 0)
                r = sd_bus_message_set_destination(*ret, BUS_NAME);
        return r < 0 ? r : append(*ret, streq(which[2], "JobRemoved") ? "uoss" : "sss", 0);
}

static int append_arguments(sd_bus_message *m, RandomCall *c) {
        char signature[SIGNATURE_MAX + 1] = "";
        size_t at = 0;
        int r;

        if (*c->of) {
                r = sd_bus_message_append_basic(m, 's', c->of);
                if (r >= 0 && !streq(c->member, "GetAll"))
                        r = sd_bus_message_append_basic(m, 's', c->property);
                return r < 0 || !streq(c->member, "Set") ? r : append_variant(m, 0);
        }
        if (streq(c->member, "Say") && random_below(3) != 0) { /* a command with anything after it */
                static const char *const words[] = {"!grant ", "!revoke ", "!answer ", "!answer 7 ", "!stop", "!status", "!grants", "!help", "!interrupt", "!", ""};
                char text[300];

                (void) snprintf(text, sizeof(text), "%s%.200s", PICK(words), random_text());
                return sd_bus_message_append_basic(m, 's', utf8_valid(text) ? text : "!stop");
        }
        if (random_below(3) != 0)
                return append(m, signature_of(c->interface, c->member), 0);
        for (uint32_t n = random_below(4); n > 0; n--)
                make_type(signature, &at, 0);
        return append(m, signature, 0);
}

/* One of the table's members, as a call: properties by the interface that reads and writes them. */
static void choose(RandomCall *c) {
        static const char *const names[] = {"Start", "Shutdown", "start", "Get", "GetAll", "Prompt", "ListNames", "Introspect", "_", "A1", "Say"};
        static const char *const interfaces[] = {PROPERTIES, "org.freedesktop.DBus", "org.freedesktop.DBus.Debug.Stats", "org.errand1.Nothing",
                                                 BUS_SESSION_INTERFACE, "org.freedesktop.DBus.ObjectManager", "a.b"};
        const Action *table, *a;
        size_t n;

        table = action_table(&n);
        a = table + random_below((uint32_t) n);
        *c = (RandomCall){.interface = a->interface, .member = a->member, .of = "", .property = ""};
        if (a->kind == MEMBER_SAID)
                c->member = "Say";
        else if (a->kind != MEMBER_METHOD) {
                static const char *const verbs[] = {"Get", "GetAll", "Set"};

                *c = (RandomCall){.interface = PROPERTIES, .member = PICK(verbs), .of = a->interface, .property = a->member};
                if (streq(c->member, "GetAll"))
                        c->property = "";
        }
        c->path = path_for(a->interface);
        if (random_below(20) == 0)
                *c = (RandomCall){.path = random_path(), .interface = PICK(interfaces), .member = PICK(names), .of = "", .property = ""};
}

int random_call(sd_bus *bus, sd_bus_message **ret, RandomCall *ret_call) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        bool no_interface = random_below(100) == 0;
        RandomCall c;
        int r;

        if (random_below(40) == 0) {
                r = random_noise(bus, &m, &c);
        } else {
                choose(&c);
                r = sd_bus_message_new_method_call(bus, &m, BUS_NAME, c.path, no_interface ? NULL : c.interface, c.member);
                if (r >= 0)
                        r = append_arguments(m, &c);
                c.answered = random_below(20) != 0;
                if (r >= 0 && !c.answered)
                        r = sd_bus_message_set_expect_reply(m, false);
                if (r >= 0 && random_below(4) == 0)
                        r = sd_bus_message_set_allow_interactive_authorization(m, true);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(m);
        *ret_call = c;
        return 0;
}
