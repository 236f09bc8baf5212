/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/bus-objects.h"

/* org.freedesktop.LogControl1(5), which "systemctl service-log-level" and "service-log-target" speak. There are two targets, as LogLevel has four
 * of the interface's eight levels: those between are taken for the next one that says more. */

static const struct {
        const char *name;
        LogLevel level;
} levels[] = {
        {"err", LOG_LEVEL_ERROR},   {"warning", LOG_LEVEL_WARNING}, {"info", LOG_LEVEL_INFO},    {"debug", LOG_LEVEL_DEBUG},
        {"emerg", LOG_LEVEL_ERROR}, {"alert", LOG_LEVEL_ERROR},     {"crit", LOG_LEVEL_ERROR},   {"notice", LOG_LEVEL_INFO},
};

static int get_level(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                     sd_bus_message *reply, _unused_ void *userdata, _unused_ sd_bus_error *error) {
        for (size_t i = 0; i < ELEMENTSOF(levels); i++)
                if (levels[i].level == log_max_level())
                        return sd_bus_message_append(reply, "s", levels[i].name);
        return -EINVAL;
}

static int set_level(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                     sd_bus_message *value, _unused_ void *userdata, sd_bus_error *error) {
        const char *name;
        int r;

        r = sd_bus_message_read(value, "s", &name);
        if (r < 0)
                return r;
        for (size_t i = 0; i < ELEMENTSOF(levels); i++)
                if (streq(levels[i].name, name)) {
                        log_set_max_level(levels[i].level);
                        log_info("logging up to level %s now", name);
                        return 0;
                }
        return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "\"%.32s\" is no level: debug, info, notice, warning, err, crit, alert, emerg", name);
}

static int get_target(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                      sd_bus_message *reply, _unused_ void *userdata, _unused_ sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", log_is_to_journal() ? "journal" : "console");
}

/* Both are standard error: what differs is the priority before each line. */
static int set_target(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                      sd_bus_message *value, _unused_ void *userdata, sd_bus_error *error) {
        const char *name;
        int r;

        r = sd_bus_message_read(value, "s", &name);
        if (r < 0)
                return r;
        if (!streq(name, "journal") && !streq(name, "console") && !streq(name, "auto"))
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "\"%.32s\" is no target: journal, console or auto", name);
        log_set_target(streq(name, "journal") ? LOG_TARGET_JOURNAL : streq(name, "console") ? LOG_TARGET_CONSOLE : LOG_TARGET_AUTO);
        return 0;
}

static int get_identifier(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                          sd_bus_message *reply, _unused_ void *userdata, _unused_ sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", log_program());
}

/* Unprivileged: the gate decides, and libsystemd would ask for a capability that it reads from /proc by the caller's pid. */
const sd_bus_vtable log_control_vtable[] = {
        SD_BUS_VTABLE_START(0),
        SD_BUS_WRITABLE_PROPERTY("LogLevel", "s", get_level, set_level, 0, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_WRITABLE_PROPERTY("LogTarget", "s", get_target, set_target, 0, SD_BUS_VTABLE_UNPRIVILEGED),
        SD_BUS_PROPERTY("SyslogIdentifier", "s", get_identifier, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_VTABLE_END,
};
