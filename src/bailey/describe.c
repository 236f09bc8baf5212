/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/describe.h"
#include "bailey/policy.h"
#include "basic/text.h"

/* Text of the file's own is shown, never sent to the terminal as it is. */
static int line(FILE *f, const char *before, const char *text, const char *after) {
        _cleanup_free_ char *clean = string_escape_control(text);
        if (!clean)
                return -ENOMEM;
        fprintf(f, "  %s%s%s\n", before, clean, after);
        return 0;
}

static int describe_rule(const LayerRule *rule, FILE *f) {
        int r = 0;

        if (rule->rights) {
                char rights[6];
                path_rights_to_string(rule->rights, rights);
                strcpy(rights + 3, " ");
                r = line(f, rights, rule->path, rule->device ? "  (device)" : "");
        }
        if (r >= 0 && rule->deny)
                r = line(f, "--- ", rule->path, "  (denied)");
        if (r >= 0 && rule->read_only)
                r = line(f, "read-only ", rule->path, "");
        return r;
}

static int describe_network(const Layer *l, FILE *f) {
        int r = 0;

        if (l->egress_said && !l->egress_allow)
                r = line(f, "egress: ", "denied", "");
        if (l->egress_allow && !l->egress_hosts)
                r = line(f, "egress: ", "allowed, to anywhere", "");
        for (char **s = l->egress_hosts; s && *s && r >= 0; s++)
                r = line(f, "egress: to ", *s, "");
        for (size_t i = 0; i < l->n_bind_ports; i++)
                fprintf(f, "  listens on port %u\n", l->bind_ports[i]);
        return r;
}

static int describe_variables(const Layer *l, FILE *f) {
        int r = 0;

        for (size_t i = 0; i < l->n_variables && r >= 0; i++) {
                const LayerVariable *v = &l->variables[i];
                _cleanup_free_ char *text = NULL;

                if (asprintf(&text, "%s%s%s", v->name, v->value ? "=" : "", v->value ?: "") < 0)
                        return -ENOMEM;
                r = v->rule == VARIABLE_PASS ? line(f, "variable ", text, " with the value that it has") :
                    v->rule == VARIABLE_SET  ? line(f, "variable ", text, "") :
                                               line(f, "variable ", text, " is taken away");
        }
        return r;
}

static void describe_limits(const Layer *l, FILE *f) {
        const struct {
                const char *name;
                uint64_t value;
        } all[] = {
                {"memory in bytes", l->limits.memory_bytes}, {"processes", l->limits.pids_max},
                {"percent of a CPU", l->limits.cpu_percent}, {"bytes in /tmp", l->limits.tmp_bytes},
                {"bytes in /dev/shm", l->limits.shm_bytes},
        };

        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                if (all[i].value != LIMIT_NONE)
                        fprintf(f, "  limit: %s: %llu\n", all[i].name, (unsigned long long) all[i].value);
}

int describe_layer(const Layer *l, FILE *f) {
        const struct {
                bool said;
                const char *table;
        } resets[] = {
                {l->reset_filesystem, "[filesystem]"},
                {l->reset_network, "[network]"},
                {l->reset_environment, "[env]"},
                {l->reset_resources, "[resources]"},
        };
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(resets) && r >= 0; i++)
                if (resets[i].said)
                        r = line(f, "drops all lower layers of ", resets[i].table, "");
        for (size_t i = 0; i < l->n_rules && r >= 0; i++)
                r = describe_rule(&l->rules[i], f);
        if (r >= 0)
                r = describe_network(l, f);
        if (r >= 0)
                r = describe_variables(l, f);
        if (r < 0)
                return r;
        describe_limits(l, f);
        if (l->home)
                r = line(f, "home: ", l->home, "");
        return r;
}
