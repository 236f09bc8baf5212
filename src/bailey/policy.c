/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/policy.h"
#include "basic/path.h"
#include "basic/secret.h"
#include "basic/text.h"

Policy *policy_free(Policy *p) {
        if (!p)
                return NULL;
        for (size_t i = 0; i < p->n_rules; i++) {
                free(p->rules[i].path);
                resolved_path_done(&p->rules[i].resolved);
        }
        for (size_t i = 0; i < p->n_variables; i++) {
                /* What a supervisor hands over by fd may be a key. */
                if (p->variables[i].value)
                        secret_wipe(p->variables[i].value, strlen(p->variables[i].value));
                free(p->variables[i].name);
                free(p->variables[i].value);
                free(p->variables[i].layer);
        }
        free(p->rules);
        free(p->entries);
        free(p->variables);
        strv_free(p->files);
        strv_free(p->skipped);
        strv_free(p->layer_names);
        free(p->profile);
        free(p->home_name);
        strv_free(p->egress_hosts);
        free(p->bind_ports);
        free(p->target);
        free(p->working_directory);
        free(p->home);
        free(p->home_real);
        free(p->state_directory);
        free(p->config_directory);
        account_done(&p->account);
        return mfree(p);
}

const PolicyEntry *policy_entry_for(const Policy *p, const char *real) {
        const PolicyEntry *best = NULL;
        size_t best_length = 0;

        for (size_t i = 0; i < p->n_entries; i++) {
                const char *path = p->entries[i].rule->resolved.real;
                size_t length = strlen(path);
                if ((!best || length > best_length) && path_beneath(real, path)) {
                        best = &p->entries[i];
                        best_length = length;
                }
        }
        return best;
}

PathRights policy_rights_at(const Policy *p, const char *real) {
        const PolicyEntry *e = policy_entry_for(p, real);
        return e ? e->rights : 0;
}

const char *policy_variable(const Policy *p, const char *name) {
        for (size_t i = 0; i < p->n_variables; i++)
                if (streq(p->variables[i].name, name))
                        return p->variables[i].value;
        return NULL;
}

void path_rights_to_string(PathRights rights, char ret[4]) {
        ret[0] = rights & RIGHT_READ ? 'r' : '-';
        ret[1] = rights & RIGHT_WRITE ? 'w' : '-';
        ret[2] = rights & RIGHT_EXECUTE ? 'x' : '-';
        ret[3] = 0;
}

bool policy_network_supported(const Policy *p, const char **ret_reason) {
        if (p->egress_allow)
                *ret_reason = "the policy allows egress, and this version confines only denied egress";
        else if (p->n_bind_ports > 0)
                *ret_reason = "the policy binds a port, and this version confines only denied egress without bound ports";
        else
                return true;
        return false;
}
