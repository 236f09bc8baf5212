/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/config.h"

static const char *elsewhere(const Config *c, SandboxBackend backend) {
        static const char *const reasons[_BACKEND_MAX] = {
                "it is a setting of the bailey backend", "it is a setting of the podman backend", "it is a setting of the incus backend",
        };
        return c->sandbox.backend != (int) backend ? reasons[backend] : NULL;
}

static const char *of_podman(const Config *c, _unused_ ConfigMode mode) {
        return elsewhere(c, BACKEND_PODMAN);
}

static const char *of_incus(const Config *c, _unused_ ConfigMode mode) {
        return elsewhere(c, BACKEND_INCUS);
}

/* A guest's file system is its image's. */
static const char *of_the_host(const Config *c, _unused_ ConfigMode mode) {
        return c->sandbox.backend == BACKEND_INCUS ? "paths of the host are not there in an incus guest" : NULL;
}

static const char *without_network(const Config *c) {
        return c->sandbox.network == NETWORK_NONE ? "sandbox.network is \"none\"" : NULL;
}

static const char *of_a_broker(const Config *c, _unused_ ConfigMode mode) {
        return without_network(c) ?: c->sandbox.egress.mode == EGRESS_OPEN ? "sandbox.egress.mode is \"open\", so that there is no broker" : NULL;
}

static const char *of_broker_units(const Config *c, ConfigMode mode) {
        return mode == CONFIG_EMBEDDED ? "brokers are no units in embedded mode" : of_a_broker(c, mode);
}

static const char *of_egress(const Config *c, _unused_ ConfigMode mode) {
        return without_network(c);
}

static const char *ports(const Config *c, _unused_ ConfigMode mode) {
        static const char *const reasons[_BACKEND_MAX] = {
                NULL, "podman bounds an open network by its namespace, not by port", "an open network of incus is not bounded by port",
        };
        return without_network(c) ?: c->sandbox.egress.mode == EGRESS_OPEN ? reasons[c->sandbox.backend] : NULL;
}

static const char *address(const Config *c, _unused_ ConfigMode mode) {
        if (!c->sandbox.hide_host_address)
                return NULL;
        return elsewhere(c, BACKEND_BAILEY) ?: without_network(c) ?:
               c->sandbox.egress.mode == EGRESS_PROXY ? "a session behind its broker never sees the host's address" : NULL;
}

static const char *of_system_mode(_unused_ const Config *c, ConfigMode mode) {
        return mode == CONFIG_SYSTEM ? NULL : mode == CONFIG_USER ? "errandd serves its own account alone in user mode"
                                                                  : "errandd serves its own account alone in embedded mode";
}

static const char *names_of_projects(_unused_ const Config *c, ConfigMode mode) {
        return mode == CONFIG_SYSTEM ? NULL : "a project is any directory of the caller's in this mode";
}

static const char *state(_unused_ const Config *c, ConfigMode mode) {
        return mode == CONFIG_EMBEDDED ? "--state-dir moves the state in embedded mode" : NULL;
}

static const char *of_the_command(const Config *c, _unused_ ConfigMode mode) {
        return c->agent.command ? NULL : "it is how agent.command is talked to, and there is none";
}

static const struct {
        const char *key; /* with what is below it */
        const char *(*reason)(const Config *c, ConfigMode mode); /* NULL: it counts */
} table[] = {
        {"projectRoot", names_of_projects},
        {"stateDir", state},
        {"operators", of_system_mode},
        {"sandbox.egress.allow", of_a_broker}, /* S031 */
        {"sandbox.egress.allowInternal", of_a_broker},
        {"sandbox.egress.serverName", of_a_broker},
        {"sandbox.egress.mode", of_egress},
        {"sandbox.egressPorts", ports}, /* S040 */
        {"sandbox.hideHostAddress", address},
        {"sandbox.image", of_podman},
        {"sandbox.incus", of_incus},
        {"sandbox.policyExtra", of_the_host},
        {"sandbox.pathExtra", of_the_host},
        {"limits.brokersAhead", of_broker_units},
        {"agent.protocol", of_the_command},
};

int config_add_inert(const Config *c, ConfigMode mode, char ***list) {
        for (size_t i = 0; i < ELEMENTSOF(table); i++) {
                const char *reason = strv_contains(c->given, table[i].key) ? table[i].reason(c, mode) : NULL;

                if (reason && strv_extend_format(list, "%s does nothing: %s", table[i].key, reason) < 0)
                        return -ENOMEM;
        }
        return 0;
}
