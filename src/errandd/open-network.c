/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/syscall.h>
#include <unistd.h>

#include "basic/text.h"
#include "errandd/open-network.h"

#define LANDLOCK_VERSION (1U << 0) /* LANDLOCK_CREATE_RULESET_VERSION, Linux 5.13 */
#define LANDLOCK_ABI_PORTS 4       /* Linux 6.7 */

static bool pasta_found(void) {
        return access("/usr/bin/pasta", X_OK) >= 0 || access("/usr/local/bin/pasta", X_OK) >= 0;
}

int open_network_add_gaps(const ConfigSandbox *s, char ***gaps) {
        int r = 0;

        if (s->network == NETWORK_NONE || s->egress.mode != EGRESS_OPEN)
                return 0;
        if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_VERSION) < LANDLOCK_ABI_PORTS)
                r = strv_extend(gaps, "landlock-network");
        if (r >= 0 && s->hide_host_address && !pasta_found())
                r = strv_extend(gaps, "proxy-net");
        return r;
}
