/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/action.h"
#include "test.h"

/* Every member of the bus API, by interface, with the action that its own object needs; "" = public. */
static const struct {
        const char *interface, *members, *action;
        MemberKind kind;
} expected[] = {
        {"org.errand1.Manager", "Subscribe Unsubscribe", "", MEMBER_METHOD},
        {"org.errand1.Manager", "CreateSession", "org.errand1.create-session", MEMBER_METHOD},
        {"org.errand1.Manager", "GetSession ListSessions ListThreads ListGrants ListReceipts", "org.errand1.read-own", MEMBER_METHOD},
        {"org.errand1.Manager", "Reload CheckConfiguration", "org.errand1.manage-daemon", MEMBER_METHOD},
        {"org.errand1.Manager", "Version Backend Ready", "", MEMBER_READ},
        {"org.errand1.Manager", "Report Gaps", "org.errand1.read-own", MEMBER_READ},
        {"org.errand1.Session", "Start Stop Kill", "org.errand1.control-own", MEMBER_METHOD},
        {"org.errand1.Session", "Attach OpenStdio Resize", "org.errand1.attach-own", MEMBER_METHOD},
        {"org.errand1.Session", "Describe ReadTranscript", "org.errand1.read-own", MEMBER_METHOD},
        {"org.errand1.Session", "Grant", "org.errand1.grant-own", MEMBER_METHOD},
        {"org.errand1.Session", "Say Prompt Interrupt", "org.errand1.control-own", MEMBER_METHOD},
        {"org.errand1.Session", "!answer !interrupt !stop", "org.errand1.control-own", MEMBER_SAID},
        {"org.errand1.Session", "!grant !revoke", "org.errand1.grant-own", MEMBER_SAID},
        {"org.errand1.Session", "!grants !status !help", "org.errand1.read-own", MEMBER_SAID},
        {"org.errand1.Session", "Collect", "org.errand1.collect-own", MEMBER_METHOD},
        {"org.errand1.Session", "Id State Backend ScopeUnit BrokerUnit OwnerUid CreatedUSec StartedUSec RefusedCount", "org.errand1.read-own",
         MEMBER_READ},
        {"org.errand1.Grant", "Revoke", "org.errand1.grant-own", MEMBER_METHOD},
        {"org.errand1.Grant", "Host Duration ExpiresUSec GrantedByUid Used", "org.errand1.read-own", MEMBER_READ},
        {"org.errand1.Receipt",
         "EndedUSec Session Provider CredentialName Host Method Path QueryLength Status DurationUSec BytesUp BytesDown Outcome Unrecorded",
         "org.errand1.read-own", MEMBER_READ},
        {"org.freedesktop.DBus.ObjectManager", "GetManagedObjects", "org.errand1.read-own", MEMBER_METHOD},
        {"org.freedesktop.DBus", "Hello", "", MEMBER_METHOD},
        {"org.freedesktop.DBus.Peer", "Ping GetMachineId", "", MEMBER_METHOD},
        {"org.freedesktop.DBus.Introspectable", "Introspect", "", MEMBER_METHOD},
        {"org.freedesktop.LogControl1", "LogLevel LogTarget SyslogIdentifier", "", MEMBER_READ},
        {"org.freedesktop.LogControl1", "LogLevel LogTarget", "", MEMBER_WRITE},
};

static void test_members(void) {
        size_t n_table, n_seen = 0;

        (void) action_table(&n_table);
        for (size_t i = 0; i < ELEMENTSOF(expected); i++) {
                char members[512], *state = NULL;
                strcpy(members, expected[i].members);
                for (char *m = strtok_r(members, " ", &state); m; m = strtok_r(NULL, " ", &state), n_seen++) {
                        const Action *a = action_find(expected[i].interface, m, expected[i].kind);
                        if (!a)
                                test_fail(__FILE__, __LINE__, "%s.%s is not in the table", expected[i].interface, m);
                        if (!streq(permission_action_id(a->permission, true) ?: "", expected[i].action))
                                test_fail(__FILE__, __LINE__, "%s.%s needs %s", expected[i].interface, m,
                                          permission_action_id(a->permission, true) ?: "nothing");
                }
        }
        CHECK_INT(n_seen, n_table); /* no row that is not expected, and none twice */
}

static void test_unlisted(void) {
        static const char *const rows[][2] = {
                {"org.errand1.Manager", "Shutdown"},        {"org.errand1.Manager", "start"},     {"org.errand1.Session", "CreateSession"},
                {"org.errand1.Session", ""},                {"", "Start"},                        {"org.errand1.session", "Start"},
                {"org.freedesktop.DBus.Properties", "Set"}, {"org.errand1.Manager", "Version"},   {"org.freedesktop.LogControl1", "LogLevel"},
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                CHECK(!action_find(rows[i][0], rows[i][1], MEMBER_METHOD));
        /* No property of ours is writable. */
        CHECK(!action_find("org.errand1.Session", "State", MEMBER_WRITE));
        CHECK(!action_find("org.errand1.Manager", "Version", MEMBER_WRITE));
        CHECK(!action_find("org.errand1.Session", "Start", MEMBER_READ));
        /* A command is no member, and a member no command. */
        CHECK(!action_find("org.errand1.Session", "!stop", MEMBER_METHOD) && !action_find("org.errand1.Session", "Stop", MEMBER_SAID));
}

static void test_ids(void) {
        for (Permission p = PERMISSION_PUBLIC + 1; p < PERMISSION_ROOT; p++) {
                const char *own = permission_action_id(p, true), *others = permission_action_id(p, false);
                CHECK(own && startswith(own, "org.errand1."));
                CHECK(others && startswith(others, "org.errand1."));
                CHECK_INT(streq(own, others), p == PERMISSION_MANAGE);
        }
        CHECK(!permission_action_id(PERMISSION_PUBLIC, true) && !permission_action_id(PERMISSION_ROOT, true));
        CHECK_INT(action_find("org.freedesktop.LogControl1", "LogLevel", MEMBER_WRITE)->permission, PERMISSION_ROOT);
        CHECK_INT(action_find("org.freedesktop.LogControl1", "LogTarget", MEMBER_WRITE)->permission, PERMISSION_ROOT);
        CHECK(!permission_action_id(_PERMISSION_MAX, false));
}

static void test_public(void) {
        /* C197: the reviewed list of members for everybody, each without a word about any session. */
        static const char *const reviewed[] = {"Subscribe", "Unsubscribe", "Version", "Backend", "Ready", "Ping", "GetMachineId", "Introspect",
                                               "SyslogIdentifier", "LogLevel", "LogTarget", "Hello"};
        size_t n, n_public = 0;
        const Action *table = action_table(&n);

        for (size_t i = 0; i < n; i++) {
                bool listed = false;
                for (size_t k = 0; k < ELEMENTSOF(reviewed); k++)
                        listed |= streq(reviewed[k], table[i].member);
                if (table[i].permission == PERMISSION_PUBLIC) {
                        CHECK(listed);
                        CHECK_INT(table[i].scope, SCOPE_NONE);
                        n_public++;
                }
        }
        CHECK_INT(n_public, ELEMENTSOF(reviewed));
}

int main(void) {
        RUN(test_members, "C197: each member of the API has its action, and the table holds no other");
        RUN(test_unlisted, "C197: what is not in the table is denied");
        RUN(test_ids, "each permission has an own and an others action");
        RUN(test_public, "C197: the members for everybody are a reviewed list");
        return TEST_END();
}
