/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/state-unit.h"

#define SYSTEMD "org.freedesktop.systemd1"
#define ANY_SESSION "x" /* an instance that is never started */

static int read_listens(sd_bus *bus, const char *path, const char *wanted, bool *ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        const char *kind, *address;

        int r = sd_bus_get_property(bus, SYSTEMD, path, SYSTEMD ".Socket", "Listen", &error, &m, "a(ss)");
        if (r >= 0)
                r = sd_bus_message_enter_container(m, 'a', "(ss)");
        while (r >= 0 && (r = sd_bus_message_read(m, "(ss)", &kind, &address)) > 0)
                *ret |= streq(address, wanted);
        return r;
}

int state_unit_check(sd_bus *bus, const char *state, Fault *f) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error error = SD_BUS_ERROR_NULL;
        _cleanup_free_ char *wanted = NULL;
        bool there = false;
        const char *path;

        if (asprintf(&wanted, "%s/" ANY_SESSION "/broker/session", state) < 0)
                return fault_set(f, ERROR_SETUP, "out of memory");
        int r = sd_bus_call_method(bus, SYSTEMD, "/org/freedesktop/systemd1", SYSTEMD ".Manager", "LoadUnit", &error, &m, "s",
                                   "errand-broker@" ANY_SESSION ".socket");
        if (r >= 0)
                r = sd_bus_message_read(m, "o", &path);
        if (r >= 0)
                r = read_listens(bus, path, wanted, &there);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "where the sockets of brokers are cannot be asked: %s", error.message ?: strerror(-r));
        if (there)
                return 0;
        return fault_set(f, ERROR_CONFIGURATION, "stateDir: the units have the sockets of brokers elsewhere than in %s; move them with drop-ins, as "
                         "errand.json(5) says, or mount another file system at /var/lib/errand", state);
}
