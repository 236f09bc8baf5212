/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/io.h"
#include "basic/text.h"
#include "shared/bus-error.h"
#include "test.h"
#include "world.h"

static const char *directory;

static const char *const interfaces[] = {BUS_MANAGER_INTERFACE, BUS_SESSION_INTERFACE, BUS_GRANT_INTERFACE, BUS_RECEIPT_INTERFACE};

static char *introspect(const char *interface) {
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        CHECK(f && bus_introspect(interface, f) == 0);
        fclose(f);
        return text;
}

static void test_files(void) {
        for (size_t i = 0; i < ELEMENTSOF(interfaces); i++) {
                _cleanup_free_ char *text = introspect(interfaces[i]), *file = NULL, *path = NULL;
                size_t size;

                CHECK(asprintf(&path, "%s/%s.xml", directory, interfaces[i]) > 0);
                if (read_file_full(path, 1024 * 1024, &file, &size) < 0 || !streq(file, text))
                        test_fail(__FILE__, __LINE__, "%s is not what `errandd --bus-introspect %s` prints", path, interfaces[i]);
        }
        CHECK_INT(bus_introspect("org.errand1.Nothing", stdout), -ENOENT);
}

static void test_all(void) {
        _cleanup_free_ char *text = introspect(NULL);

        for (size_t i = 0; i < ELEMENTSOF(interfaces); i++)
                CHECK(strstr(text, interfaces[i]));
}

/* Every line of ours stands in libsystemd's own answer, in the same order. */
static void check_live(World *w, sd_bus *client, const char *path, const char *interface) {
        _cleanup_free_ char *text = introspect(interface);
        Reply r = call(w, client, path, "org.freedesktop.DBus.Introspectable", "Introspect", NULL);
        const char *live, *at;

        CHECK_FINE(r);
        CHECK(sd_bus_message_read(r.message, "s", &live) > 0);
        at = strstr(live, interface);
        for (char *save, *line = strtok_r(strstr(text, "    <"), "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                line += strspn(line, " ");
                if (startswith(line, "</") || streq(line, "<node>"))
                        continue;
                line[strcspn(line, ">")] = 0;
                line[strlen(line) - (endswith(line, "/") ? 1 : 0)] = 0; /* an element without children may have an end of its own */
                at = at ? strstr(at, line) : NULL;
                if (!at)
                        test_fail(__FILE__, __LINE__, "%s: no %s in: %s", interface, line, live);
        }
        reply_done(&r);
}

static void on_granted(_unused_ Session *s, const Grant *g, const Fault *fault, _unused_ void *userdata) {
        CHECK(g && !fault);
}

static void test_live(void) {
        World w = world_new(NULL);
        sd_bus *client = world_client(&w, geteuid());
        Session *s = fake_session(w.manager, "a1", geteuid());
        Fault f = {};

        fake_receipt(w.manager, "a1");
        CHECK(session_grant(s, &(Caller){.uid = geteuid()}, "example.com", "once", on_granted, NULL, &f) == 0);
        check_live(&w, client, BUS_ROOT, BUS_MANAGER_INTERFACE);
        check_live(&w, client, BUS_SESSION_ROOT "/a1", BUS_SESSION_INTERFACE);
        check_live(&w, client, BUS_GRANT_ROOT "/a1/1", BUS_GRANT_INTERFACE);
        check_live(&w, client, BUS_RECEIPT_ROOT "/1", BUS_RECEIPT_INTERFACE);
        sd_bus_close_unref(client);
        world_done(&w);
}

static void test_errors(void) {
        for (BusError e = BUS_ERROR_NONE + 1; e < _BUS_ERROR_MAX; e++) {
                sd_bus_error error = SD_BUS_ERROR_NULL;

                CHECK(startswith(bus_error_to_name(e), BUS_ERROR_PREFIX));
                CHECK_INT(bus_error_from_name(bus_error_to_name(e)), e);
                CHECK(bus_error_to_errno(e) > 0);
                CHECK_INT(bus_error_set(&error, e, "a \xff b"), -bus_error_to_errno(e));
                CHECK_STR(error.message, "a \\xff b");
                CHECK_STR(error.name, bus_error_to_name(e));
                sd_bus_error_free(&error);
        }
        CHECK_INT(bus_error_from_name("org.freedesktop.DBus.Error.Failed"), _BUS_ERROR_INVALID);
        CHECK_INT(bus_error_from_name(NULL), _BUS_ERROR_INVALID);
        CHECK(!bus_error_to_name(BUS_ERROR_NONE) && !bus_error_to_name(_BUS_ERROR_MAX));
}

static void test_paths(void) {
        static const char *const bad[] = {
                "/", "/org/errand", "/org/errand1/", "/org/errand1/session", "/org/errand1/session/", "/org/errand1/session/A",
                "/org/errand1/session/a_2d", "/org/errand1/session/a/b", "/org/errand1/session/abcdefghijklmnopqrstuvwxyz123",
                "/org/errand1/grant/a", "/org/errand1/grant/a/", "/org/errand1/grant/a/0", "/org/errand1/grant/a/01",
                "/org/errand1/grant/a/4294967296", "/org/errand1/grant/a/1/", "/org/errand1/receipt/", "/org/errand1/receipt/0",
                "/org/errand1/receipt/18446744073709551616", "/org/errand1/receipt/-1", "/org/errand1/receipt/1x", "",
        };
        BusObject o;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                if (bus_object_parse(bad[i], &o) != -EINVAL)
                        test_fail(__FILE__, __LINE__, "\"%s\" was taken", bad[i]);
        CHECK_INT(bus_object_parse(bus_session_path("abcdefghijklmnopqrstuvwxyz12").text, &o), 0);
        CHECK(o.kind == BUS_OBJECT_SESSION && streq(o.session, "abcdefghijklmnopqrstuvwxyz12"));
        CHECK_INT(bus_object_parse(bus_grant_path("abcdefghijklmnopqrstuvwxyz12", UINT32_MAX).text, &o), 0);
        CHECK(o.kind == BUS_OBJECT_GRANT && o.number == UINT32_MAX);
        CHECK_INT(bus_object_parse(bus_receipt_path(UINT64_MAX).text, &o), 0);
        CHECK(o.kind == BUS_OBJECT_RECEIPT && o.number == UINT64_MAX);
        CHECK_INT(bus_object_parse(BUS_ROOT, &o), 0);
        CHECK_INT(o.kind, BUS_OBJECT_MANAGER);
        CHECK_STR(bus_session_path("../x").text, BUS_ROOT);
        CHECK_STR(bus_grant_path("", 1).text, BUS_ROOT);
}

/* test-bus-api DIRECTORY [--write]: the second writes the files anew. */
int main(int argc, char *argv[]) {
        directory = argc > 1 ? argv[1] : ".";
        if (argc > 2 && streq(argv[2], "--write")) {
                for (size_t i = 0; i < ELEMENTSOF(interfaces); i++) {
                        char path[4096];
                        FILE *f;

                        snprintf(path, sizeof(path), "%s/%s.xml", directory, interfaces[i]);
                        f = fopen(path, "we");
                        if (!f || bus_introspect(interfaces[i], f) < 0 || fclose(f) != 0)
                                return 1;
                }
                return 0;
        }
        RUN(test_files, "dbus/*.xml is what the daemon says");
        RUN(test_all, "D002: the whole API in one document");
        RUN(test_live, "D005: introspection of live objects agrees with it");
        RUN(test_errors, "errors go there and back, and carry valid UTF-8");
        RUN(test_paths, "object paths have one spelling");
        return TEST_END();
}
