/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/clock.h"
#include "basic/text.h"
#include "errand/activation.h"
#include "errand/message-bus.h"
#include "shared/bus-object.h"

#define ANSWER_USEC (5 * USEC_PER_SEC) /* of the bus daemon itself */

int bus_await_ready(sd_bus *bus, usec_t timeout) {
        usec_t deadline = now_monotonic() + timeout, now;
        int r;

        while ((r = sd_bus_is_ready(bus)) == 0) {
                r = sd_bus_process(bus, NULL);
                if (r > 0)
                        continue;
                now = now_monotonic();
                if (r < 0 || now >= deadline)
                        return r < 0 ? r : -ETIMEDOUT;
                r = sd_bus_wait(bus, deadline - now);
                if (r < 0 && r != -EINTR)
                        return r;
        }
        return r;
}

static int ask(sd_bus *bus, const char *member, usec_t timeout, sd_bus_error *e, sd_bus_message **ret, const char *types, ...) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        va_list ap;
        int r;

        r = sd_bus_message_new_method_call(bus, &m, BUS_DRIVER, BUS_DRIVER_PATH, BUS_DRIVER, member);
        if (r >= 0 && types) {
                va_start(ap, types);
                r = sd_bus_message_appendv(m, types, ap);
                va_end(ap);
        }
        return r < 0 ? r : sd_bus_call(bus, m, timeout, e, ret);
}

static int ask_owner(sd_bus *bus, char **ret) {
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *owner;
        int r;

        r = ask(bus, "GetNameOwner", ANSWER_USEC, &e, &reply, "s", BUS_NAME);
        if (sd_bus_error_has_name(&e, SD_BUS_ERROR_NAME_HAS_NO_OWNER))
                return -ENXIO;
        if (r >= 0)
                r = sd_bus_message_read_basic(reply, 's', &owner);
        if (r < 0)
                return r;
        *ret = strdup(owner);
        return *ret ? 0 : -ENOMEM;
}

static int can_be_started(sd_bus *bus) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        const char *name;
        int r;

        r = ask(bus, "ListActivatableNames", ANSWER_USEC, NULL, &reply, NULL);
        if (r >= 0)
                r = sd_bus_message_enter_container(reply, 'a', "s");
        if (r < 0)
                return r;
        while ((r = sd_bus_message_read_basic(reply, 's', &name)) > 0)
                if (streq(name, BUS_NAME))
                        return 1;
        return r;
}

static int find_owner(sd_bus *bus, MessageBusKind kind, bool may_start, char **ret_owner, char **ret_problem) {
        int r = ask_owner(bus, ret_owner);

        if (r != -ENXIO || !may_start)
                return r;
        r = can_be_started(bus);
        if (r <= 0)
                return r < 0 ? r : -ENXIO;
        r = activation_start(bus, kind, ret_problem);
        return r < 0 ? r : ask_owner(bus, ret_owner);
}

int message_bus_open(MessageBusKind kind, bool may_start, sd_bus **ret, char **ret_owner, char **ret_problem) {
        _cleanup_(sd_bus_close_unrefp) sd_bus *bus = NULL;
        int r;

        r = kind == MESSAGE_BUS_SYSTEM ? sd_bus_open_system(&bus) : sd_bus_open_user(&bus);
        if (r == -ENOENT || r == -ECONNREFUSED || r == -ENOMEDIUM || r == -ENOTDIR)
                return -ENOMEDIUM;
        if (r >= 0)
                r = sd_bus_set_method_call_timeout(bus, UINT64_MAX); /* somebody may be typing a password */
        if (r >= 0)
                r = bus_await_ready(bus, ANSWER_USEC);
        if (r >= 0)
                r = find_owner(bus, kind, may_start, ret_owner, ret_problem);
        if (r >= 0 && sd_bus_can_send(bus, 'h') <= 0)
                r = -EOPNOTSUPP;
        if (r < 0)
                return r;
        *ret = TAKE_PTR(bus);
        return 0;
}
