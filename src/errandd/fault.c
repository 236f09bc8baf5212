/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/manager.h"

static const int numbers[_ERROR_CODE_MAX] = {
        [ERROR_INVALID_ARGUMENT] = EINVAL, [ERROR_NOT_FOUND] = ENOENT,    [ERROR_NOT_PERMITTED] = EPERM,
        [ERROR_WRONG_STATE] = EBUSY,       [ERROR_EXISTS] = EEXIST,       [ERROR_LIMIT] = EAGAIN,
        [ERROR_CONFIGURATION] = EBADMSG,   [ERROR_NOT_ENFORCEABLE] = EOPNOTSUPP,
        [ERROR_SETUP] = EIO,               [ERROR_STORAGE] = EIO,
};

void fault_done(Fault *f) {
        free(f->text);
        *f = (Fault){};
}

int fault_set(Fault *f, ErrorCode code, const char *format, ...) {
        if (f && f->code == ERROR_NONE) {
                f->code = code;
                f->text = string_format_own(format);
                /* A name that was put in makes no line of its own; only a configuration has a problem a line. */
                if (f->text && code != ERROR_CONFIGURATION) {
                        char *clean = string_escape_control(f->text);
                        free(f->text);
                        f->text = clean;
                }
        }
        return code > ERROR_NONE && code < _ERROR_CODE_MAX ? -numbers[code] : -EIO;
}
