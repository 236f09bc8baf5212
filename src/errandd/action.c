/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/action.h"

#define MANAGER "org.errand1.Manager"
#define SESSION "org.errand1.Session"
#define GRANT "org.errand1.Grant"
#define RECEIPT "org.errand1.Receipt"
#define LOG_CONTROL "org.freedesktop.LogControl1"

#define METHOD(interface, member, permission, scope) {interface, member, MEMBER_METHOD, PERMISSION_##permission, SCOPE_##scope}
#define LARGE(interface, member, permission, scope) {interface, member, MEMBER_METHOD, PERMISSION_##permission, SCOPE_##scope, .large = true}
#define DESCRIPTORS(interface, member, permission, scope, n) {interface, member, MEMBER_METHOD, PERMISSION_##permission, SCOPE_##scope, .descriptors = n}
#define PROPERTY(interface, member, permission, scope) {interface, member, MEMBER_READ, PERMISSION_##permission, SCOPE_##scope}
#define WRITABLE(interface, member, permission, scope) {interface, member, MEMBER_WRITE, PERMISSION_##permission, SCOPE_##scope}
#define SAID(word, permission) {SESSION, word, MEMBER_SAID, PERMISSION_##permission, SCOPE_OBJECT}

static const Action actions[] = {
        METHOD("org.freedesktop.DBus", "Hello", PUBLIC, NONE), /* on a connection without a message bus: answered, for tools that insist */
        METHOD("org.freedesktop.DBus.Peer", "Ping", PUBLIC, NONE),
        METHOD("org.freedesktop.DBus.Peer", "GetMachineId", PUBLIC, NONE),
        METHOD("org.freedesktop.DBus.Introspectable", "Introspect", PUBLIC, NONE), /* child nodes of sessions are filtered */
        LARGE("org.freedesktop.DBus.ObjectManager", "GetManagedObjects", READ, FILTER),

        METHOD(MANAGER, "Subscribe", PUBLIC, NONE), /* what is sent then is filtered by READ, for each subscriber */
        METHOD(MANAGER, "Unsubscribe", PUBLIC, NONE),
        METHOD(MANAGER, "CreateSession", CREATE, OBJECT),
        METHOD(MANAGER, "GetSession", READ, OBJECT),
        LARGE(MANAGER, "ListSessions", READ, FILTER),
        LARGE(MANAGER, "ListThreads", READ, FILTER),
        LARGE(MANAGER, "ListGrants", READ, OBJECT),
        LARGE(MANAGER, "ListReceipts", READ, FILTER),
        METHOD(MANAGER, "Reload", MANAGE, NONE),
        METHOD(MANAGER, "CheckConfiguration", MANAGE, NONE),
        PROPERTY(MANAGER, "Version", PUBLIC, NONE),
        PROPERTY(MANAGER, "Ready", PUBLIC, NONE),
        PROPERTY(MANAGER, "Backend", PUBLIC, NONE),
        /* Paths and names of the configuration: for those who may see sessions of their own, whether they have any or not. */
        PROPERTY(MANAGER, "Report", READ, NONE),
        PROPERTY(MANAGER, "Gaps", READ, NONE),

        METHOD(SESSION, "Start", CONTROL, OBJECT),
        METHOD(SESSION, "Stop", CONTROL, OBJECT),
        METHOD(SESSION, "Kill", CONTROL, OBJECT),
        LARGE(SESSION, "Describe", READ, OBJECT),
        LARGE(SESSION, "ReadTranscript", READ, OBJECT),
        DESCRIPTORS(SESSION, "Attach", ATTACH, OBJECT, 1),
        DESCRIPTORS(SESSION, "OpenStdio", ATTACH, OBJECT, 3),
        METHOD(SESSION, "Resize", ATTACH, OBJECT),
        METHOD(SESSION, "Grant", GRANT, OBJECT),
        METHOD(SESSION, "Collect", COLLECT, OBJECT),
        METHOD(SESSION, "Prompt", CONTROL, OBJECT),
        METHOD(SESSION, "Interrupt", CONTROL, OBJECT),
        METHOD(SESSION, "Say", CONTROL, OBJECT), /* a prompt; or a command, and then: */
        SAID("!grant", GRANT),
        SAID("!revoke", GRANT),
        SAID("!grants", READ),
        SAID("!answer", CONTROL),
        SAID("!interrupt", CONTROL),
        SAID("!stop", CONTROL),
        SAID("!status", READ),
        SAID("!help", READ),
        PROPERTY(SESSION, "Id", READ, OBJECT),
        PROPERTY(SESSION, "State", READ, OBJECT),
        PROPERTY(SESSION, "Backend", READ, OBJECT),
        PROPERTY(SESSION, "ScopeUnit", READ, OBJECT),
        PROPERTY(SESSION, "BrokerUnit", READ, OBJECT),
        PROPERTY(SESSION, "OwnerUid", READ, OBJECT),
        PROPERTY(SESSION, "CreatedUSec", READ, OBJECT),
        PROPERTY(SESSION, "StartedUSec", READ, OBJECT),
        PROPERTY(SESSION, "RefusedCount", READ, OBJECT),

        METHOD(GRANT, "Revoke", GRANT, OBJECT),
        PROPERTY(GRANT, "Host", READ, OBJECT),
        PROPERTY(GRANT, "Duration", READ, OBJECT),
        PROPERTY(GRANT, "ExpiresUSec", READ, OBJECT),
        PROPERTY(GRANT, "GrantedByUid", READ, OBJECT),
        PROPERTY(GRANT, "Used", READ, OBJECT),

        PROPERTY(RECEIPT, "EndedUSec", READ, OBJECT),
        PROPERTY(RECEIPT, "Session", READ, OBJECT),
        PROPERTY(RECEIPT, "Provider", READ, OBJECT),
        PROPERTY(RECEIPT, "CredentialName", READ, OBJECT),
        PROPERTY(RECEIPT, "Host", READ, OBJECT),
        PROPERTY(RECEIPT, "Method", READ, OBJECT),
        PROPERTY(RECEIPT, "Path", READ, OBJECT),
        PROPERTY(RECEIPT, "QueryLength", READ, OBJECT),
        PROPERTY(RECEIPT, "Status", READ, OBJECT),
        PROPERTY(RECEIPT, "DurationUSec", READ, OBJECT),
        PROPERTY(RECEIPT, "BytesUp", READ, OBJECT),
        PROPERTY(RECEIPT, "BytesDown", READ, OBJECT),
        PROPERTY(RECEIPT, "Outcome", READ, OBJECT),
        PROPERTY(RECEIPT, "Unrecorded", READ, OBJECT),

        /* Whoever changes these can hide what they do next. */
        PROPERTY(LOG_CONTROL, "LogLevel", PUBLIC, NONE),
        PROPERTY(LOG_CONTROL, "LogTarget", PUBLIC, NONE),
        PROPERTY(LOG_CONTROL, "SyslogIdentifier", PUBLIC, NONE),
        WRITABLE(LOG_CONTROL, "LogLevel", ROOT, NONE),
        WRITABLE(LOG_CONTROL, "LogTarget", ROOT, NONE),
};

static const struct {
        const char *own, *others;
} ids[_PERMISSION_MAX] = {
        [PERMISSION_PUBLIC] = {NULL, NULL},
        [PERMISSION_CREATE] = {"org.errand1.create-session", "org.errand1.create-others"},
        [PERMISSION_CONTROL] = {"org.errand1.control-own", "org.errand1.control-others"},
        [PERMISSION_ATTACH] = {"org.errand1.attach-own", "org.errand1.attach-others"},
        [PERMISSION_GRANT] = {"org.errand1.grant-own", "org.errand1.grant-others"},
        [PERMISSION_READ] = {"org.errand1.read-own", "org.errand1.read-others"},
        [PERMISSION_COLLECT] = {"org.errand1.collect-own", "org.errand1.collect-others"},
        [PERMISSION_MANAGE] = {"org.errand1.manage-daemon", "org.errand1.manage-daemon"},
        [PERMISSION_ROOT] = {NULL, NULL},
};

const Action *action_find(const char *interface, const char *member, MemberKind kind) {
        for (size_t i = 0; i < ELEMENTSOF(actions); i++)
                if (actions[i].kind == kind && streq(actions[i].member, member) && streq(actions[i].interface, interface))
                        return &actions[i];
        return NULL;
}

const char *permission_action_id(Permission p, bool own) {
        if (p < 0 || p >= _PERMISSION_MAX)
                return NULL;
        return own ? ids[p].own : ids[p].others;
}

const Action *action_table(size_t *ret_n) {
        *ret_n = ELEMENTSOF(actions);
        return actions;
}
