/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>

#include "bailey/audit-judge.h"
#include "basic/parse.h"
#include "basic/path.h"
#include "basic/text.h"

static unsigned shown_by(const PlanStep *s, unsigned before, const char *path) {
        switch (s->type) {
        case STEP_BIND:
        case STEP_DEVICE:
        case STEP_TMPFS:
                return ACCESSED_LOOK | ACCESSED_READ | (s->flags & STEP_WRITABLE ? ACCESSED_WRITE : 0U) |
                       (s->flags & STEP_EXECUTABLE ? ACCESSED_EXECUTE : 0U);
        case STEP_DEVPTS:
        case STEP_PROC:
                return ACCESSED_LOOK | ACCESSED_READ | ACCESSED_WRITE; /* where Landlock lets */
        case STEP_SYSFS:
        case STEP_FILE:
                return ACCESSED_LOOK | ACCESSED_READ;
        case STEP_READ_ONLY:
                return before & ~(unsigned) ACCESSED_WRITE;
        case STEP_COVER:
        case STEP_SYMLINK:
                return streq(s->target, path) ? ACCESSED_LOOK : 0U;
        case STEP_DIRECTORY:
        default:
                return before;
        }
}

/* Later steps stand on earlier ones. */
static unsigned shown(const Plan *plan, const char *path) {
        unsigned now = 0;

        for (size_t i = 0; i < plan->n_steps; i++) {
                const PlanStep *s = &plan->steps[i];
                if (path_beneath(path, s->target))
                        now = shown_by(s, now, path);
                else if (now == 0 && path_beneath(s->target, path))
                        now = ACCESSED_LOOK; /* on the way to it */
        }
        if (now == 0 && path_beneath(plan->working_directory, path))
                now = ACCESSED_LOOK;
        return now;
}

unsigned plan_allows(const Plan *plan, const char *path) {
        unsigned granted = ACCESSED_LOOK; /* Landlock hides nothing */

        for (size_t i = 0; i < plan->n_accesses; i++) {
                const PlanAccess *a = &plan->accesses[i];
                if (path_beneath(path, a->path))
                        granted |= (a->rights & ACCESS_READ ? ACCESSED_READ : 0U) | (a->rights & ACCESS_WRITE ? ACCESSED_WRITE : 0U) |
                                   (a->rights & ACCESS_EXECUTE ? ACCESSED_EXECUTE : 0U);
        }
        unsigned allowed = granted & shown(plan, path);
        /* A socket is connected to wherever it is shown, and made where files are. */
        return allowed | (allowed & ACCESSED_READ ? ACCESSED_CONNECT : 0U) | (allowed & ACCESSED_WRITE ? ACCESSED_BIND | ACCESSED_ENTRY : 0U);
}

static bool has_port(const uint16_t *ports, size_t n, uint16_t port) {
        for (size_t i = 0; i < n; i++)
                if (ports[i] == port)
                        return true;
        return false;
}

bool plan_allows_address(const Plan *plan, unsigned operation, const char *address) {
        const Network *n = plan->network;
        const char *colon = strrchr(address, ':');
        uint16_t port;

        if (!colon || parse_port(colon + 1, &port) < 0)
                return false;
        if (n->mode == NETWORK_EGRESS_PROXY) {
                char proxy[INET_ADDRSTRLEN] = "";
                (void) inet_ntop(AF_INET, &n->proxy_address, proxy, sizeof(proxy));
                return operation == ACCESSED_CONNECT && port == n->proxy_port && strlen(proxy) == (size_t) (colon - address) &&
                       startswith(address, proxy);
        }
        if (!network_has_ports(n))
                return false;
        if (operation == ACCESSED_CONNECT)
                return n->connect_any || has_port(n->connect_ports, n->n_connect_ports, port);
        return operation == ACCESSED_SEND || has_port(n->bind_ports, n->n_bind_ports, port);
}
