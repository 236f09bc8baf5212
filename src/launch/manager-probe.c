/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "launch/limits.h"
#include "launch/manager-probe.h"
#include "shared/cgroup.h"

struct ManagerProbe {
        ManagerProbed probed;
        void *userdata;
        sd_bus_slot *call;
        sd_event_source *timeout; /* also when the connection goes meanwhile */
};

ManagerProbe *manager_probe_free(ManagerProbe *p) {
        if (!p)
                return NULL;
        sd_bus_slot_unref(p->call);
        sd_event_source_disable_unref(p->timeout);
        return mfree(p);
}

static int finish(ManagerProbe *p, const char *problem, char *const *controllers) {
        p->call = sd_bus_slot_unref(p->call);
        p->timeout = sd_event_source_disable_unref(p->timeout);
        p->probed(problem, controllers, p->userdata);
        return 0;
}

static int on_control_group(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        _cleanup_strv_free_ char **controllers = NULL;
        const char *path;

        if (sd_bus_message_is_method_error(m, NULL))
                return finish(userdata, "the account's user manager does not say where its groups are", NULL);
        int r = sd_bus_message_read(m, "v", "s", &path);
        _cleanup_close_ int group = r < 0 ? r : cgroup_open(path);
        r = group < 0 ? group : cgroup_controllers(group, &controllers);
        /* Scopes can be made all the same; then there is nothing to limit them with. */
        if (r < 0)
                log_warning_errno(r, "The controllers of the account's user manager cannot be read: %m");
        return finish(userdata, NULL, controllers);
}

static int on_timeout(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        return finish(userdata, "the account's user manager does not answer", NULL);
}

int manager_probe_new(UserManager *m, ManagerProbed probed, void *userdata, ManagerProbe **ret, char **ret_problem) {
        _cleanup_(manager_probe_freep) ManagerProbe *p = calloc(1, sizeof(ManagerProbe));
        sd_bus *bus;

        if (!p)
                return -ENOMEM;
        *p = (ManagerProbe){.probed = probed, .userdata = userdata};
        int r = user_manager_connect(m, &bus, ret_problem);
        if (r >= 0)
                r = sd_bus_call_method_async(bus, &p->call, MANAGER_DESTINATION, MANAGER_PATH, "org.freedesktop.DBus.Properties", "Get",
                                             on_control_group, p, "ss", MANAGER_INTERFACE, "ControlGroup");
        if (r >= 0)
                r = sd_event_add_time_relative(user_manager_event(m), &p->timeout, CLOCK_MONOTONIC, MANAGER_USEC, 1, on_timeout, p);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(p);
        return 0;
}
