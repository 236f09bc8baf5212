/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The service manager that started this process, where there is one (NOTIFY_SOCKET): what it is told (sd_notify(3)), and the descriptors
 * that it keeps for the next process of the unit (FileDescriptorStoreMax=, systemd.service(5)). Without one all of it does nothing. */

#include "basic/clock.h"

bool service_is_managed(void);

/* One line for `systemctl status`. */
void service_status(const char *format, ...) _printf_(1, 2);
void service_ready(void);
void service_stopping(void);

/* fd stays the caller's. It is kept whatever becomes of it: nobody but this program takes it out again. name: letters, digits, '-'. */
int service_store(const char *name, int fd);
/* All that is kept under that name. */
int service_forget(const char *name);
/* Returns once the manager has worked through what was said before, or -ETIMEDOUT. */
int service_settle(usec_t timeout);
