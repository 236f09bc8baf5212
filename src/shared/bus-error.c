/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "basic/utf8.h"
#include "shared/bus-error.h"

static const struct {
        const char *name;
        int code;
} errors[_BUS_ERROR_MAX] = {
        [BUS_ERROR_INVALID_ARGUMENT] = {BUS_ERROR_PREFIX "InvalidArgument", EINVAL},
        [BUS_ERROR_NOT_FOUND] = {BUS_ERROR_PREFIX "NotFound", ENOENT},
        [BUS_ERROR_NOT_PERMITTED] = {BUS_ERROR_PREFIX "NotPermitted", EPERM},
        [BUS_ERROR_WRONG_STATE] = {BUS_ERROR_PREFIX "WrongState", EBUSY},
        [BUS_ERROR_EXISTS] = {BUS_ERROR_PREFIX "Exists", EEXIST},
        [BUS_ERROR_LIMIT] = {BUS_ERROR_PREFIX "LimitExceeded", EAGAIN},
        [BUS_ERROR_CONFIGURATION] = {BUS_ERROR_PREFIX "Configuration", EBADMSG},
        [BUS_ERROR_NOT_ENFORCEABLE] = {BUS_ERROR_PREFIX "NotEnforceable", EOPNOTSUPP},
        [BUS_ERROR_SETUP] = {BUS_ERROR_PREFIX "SetupFailed", EIO},
        [BUS_ERROR_STORAGE] = {BUS_ERROR_PREFIX "Storage", EIO},
};

const char *bus_error_to_name(BusError e) {
        return e > BUS_ERROR_NONE && e < _BUS_ERROR_MAX ? errors[e].name : NULL;
}

BusError bus_error_from_name(const char *name) {
        for (BusError e = BUS_ERROR_NONE + 1; name && e < _BUS_ERROR_MAX; e++)
                if (streq(errors[e].name, name))
                        return e;
        return _BUS_ERROR_INVALID;
}

int bus_error_to_errno(BusError e) {
        return e > BUS_ERROR_NONE && e < _BUS_ERROR_MAX ? errors[e].code : 0;
}

int bus_error_set(sd_bus_error *ret, BusError e, const char *text) {
        _cleanup_free_ char *escaped = NULL, *cut = NULL;
        size_t max;

        if (!bus_error_to_name(e))
                e = BUS_ERROR_SETUP; /* a failure without a name is still a failure */
        if (!text)
                text = "no reason was given";
        if (!utf8_valid(text)) {
                escaped = string_escape_control(text);
                text = escaped ?: "out of memory";
        }
        max = e == BUS_ERROR_CONFIGURATION ? BUS_ERROR_PROBLEMS_MAX : BUS_ERROR_TEXT_MAX;
        if (strlen(text) > max) {
                cut = strndup(text, utf8_cut(text, strlen(text), max));
                text = cut ?: "out of memory";
        }
        sd_bus_error_set(ret, bus_error_to_name(e), text);
        return -bus_error_to_errno(e);
}

int bus_error_setf(sd_bus_error *ret, BusError e, const char *format, ...) {
        _cleanup_free_ char *text = string_format_own(format), *line = NULL;

        if (!text)
                return sd_bus_error_set_errno(ret, -ENOMEM);
        line = string_escape_control(text); /* a name that was put in makes no line of its own */
        return bus_error_set(ret, e, line ?: "out of memory");
}
