/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "errandd/service.h"

/* errandd in user mode, all of it, but that polkit is asked as in system mode. */
int main(void) {
        log_setup("errandd", LOG_LEVEL_INFO);
        return service_run(&(ServiceOptions){.mode = CONFIG_USER, .polkit = true});
}
