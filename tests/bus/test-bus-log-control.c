/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "message-bus.h"
#include "test.h"

#define PROPERTIES "org.freedesktop.DBus.Properties"

static MessageBus *b;
static TestAuthorizer authorizer;
static sd_bus *client;

static void begin(void) {
        authorizer = test_authorizer();
        b = message_bus_new();
        client = message_bus_begin(b, &authorizer.authorizer);
}

static void end(void) {
        message_bus_end(&b, &client);
}

static void check_property(const char *name, const char *expected) {
        const char *value;
        Reply r = call(&b->world, client, "/org/freedesktop/LogControl1", PROPERTIES, "Get", "ss", "org.freedesktop.LogControl1", name);

        CHECK_FINE(r);
        CHECK(sd_bus_message_read(r.message, "v", "s", &value) > 0);
        CHECK_STR(value, expected);
        reply_done(&r);
}

static void check_set(const char *name, const char *value, const char *error) {
        Reply r = call(&b->world, client, "/org/freedesktop/LogControl1", PROPERTIES, "Set", "ssv", "org.freedesktop.LogControl1", name, "s", value);

        CHECK_ERROR(r, error);
        reply_done(&r);
}

static int deny(_unused_ Authorizer *a, const AuthorizeRequest *q, _unused_ AuthorizeDone done, _unused_ void *userdata,
                _unused_ void **ret_ticket) {
        return q->permission != PERMISSION_ROOT;
}

static void test_log_control(void) {
        begin();
        check_property("SyslogIdentifier", "errandd-test");
        check_property("LogLevel", "warning");
        check_set("LogLevel", "err", "no error");
        check_property("LogLevel", "err");
        CHECK_INT(log_max_level(), LOG_LEVEL_ERROR);
        check_set("LogLevel", "alert", "no error");
        check_property("LogLevel", "err");
        check_set("LogLevel", "loud", "InvalidArgument");
        check_property("LogTarget", "console");
        check_set("LogTarget", "journal", "no error");
        check_property("LogTarget", "journal");
        check_set("LogTarget", "console", "no error");
        check_set("LogTarget", "/dev/sda", "InvalidArgument");
        check_set("SyslogIdentifier", "x", "NotPermitted");
        authorizer.authorizer.check = deny;
        check_set("LogLevel", "debug", "NotPermitted");
        CHECK_INT(log_max_level(), LOG_LEVEL_ERROR);
        log_set_max_level(LOG_LEVEL_WARNING);
        end();
}

int main(void) {
        log_setup("errandd-test", LOG_LEVEL_WARNING);
        RUN(test_log_control, "the log is read by everybody, and controlled by root");
        return TEST_END();
}
