/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <systemd/sd-daemon.h>

#include "basic/text.h"
#include "broker/service.h"

bool service_is_managed(void) {
        const char *path = getenv("NOTIFY_SOCKET");
        return path && *path;
}

void service_status(const char *format, ...) {
        _cleanup_free_ char *text = service_is_managed() ? string_format_own(format) : NULL;

        if (text)
                (void) sd_notifyf(0, "STATUS=%s", text);
}

void service_ready(void) {
        (void) sd_notify(0, "READY=1");
}

void service_stopping(void) {
        (void) sd_notify(0, "STOPPING=1");
}

/* 0, or why the manager was not told. */
static int told(int r) {
        return r < 0 ? r : r == 0 ? -EOPNOTSUPP : 0;
}

int service_store(const char *name, int fd) {
        char text[128];

        /* FDPOLL=0: a listener that its session shuts down, or a file, must not drop out on its own. */
        (void) snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s\nFDPOLL=0", name);
        return told(sd_pid_notify_with_fds(0, 0, text, &fd, 1));
}

int service_forget(const char *name) {
        return told(sd_notifyf(0, "FDSTOREREMOVE=1\nFDNAME=%s", name));
}

int service_settle(usec_t timeout) {
        return told(sd_notify_barrier(0, timeout));
}
