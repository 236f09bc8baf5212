/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/show.h"
#include "basic/json-writer.h"
#include "basic/path.h"
#include "basic/text.h"

static bool is_device(const PolicyRule *rule) {
        return path_beneath(rule->path, "/dev") && rule->rights;
}

/* What really holds for a rule's path once every rule counts. */
static PathRights effective(const Policy *p, const PolicyRule *rule) {
        return policy_rights_at(p, rule->resolved.real);
}

static int print_escaped(FILE *f, const char *before, const char *s, const char *after) {
        _cleanup_free_ char *clean = string_escape_control(s);
        if (!clean)
                return -ENOMEM;
        fprintf(f, "%s%s%s", before, clean, after);
        return 0;
}

/* Sorted by path, but for the target's own line, which stands before /usr: the documented order. */
static const PolicyRule **sorted_rules(const Policy *p) {
        const PolicyRule **list = calloc(p->n_rules + 1, sizeof(PolicyRule *));
        const PolicyRule *target = NULL;
        size_t n = 0;

        if (!list)
                return NULL;
        for (size_t i = 0; i < p->n_rules; i++)
                target = p->rules[i].is_target ? &p->rules[i] : target;
        for (size_t i = 0; i < p->n_rules; i++) {
                if (target && strcmp(p->rules[i].path, "/usr") >= 0 && target != &p->rules[i]) {
                        list[n++] = target;
                        target = NULL;
                }
                if (!p->rules[i].is_target)
                        list[n++] = &p->rules[i];
        }
        if (target)
                list[n++] = target;
        return list;
}

static void print_limit(FILE *f, const char *name, uint64_t value, const char *after) {
        if (value == LIMIT_NONE)
                fprintf(f, "%s: None%s", name, after);
        else
                fprintf(f, "%s: Some(%llu)%s", name, (unsigned long long) value, after);
}

static void print_process_limit(FILE *f, const char *name, uint64_t value) {
        if (value != LIMIT_NONE)
                fprintf(f, "  %s: %llu (each process)\n", name, (unsigned long long) value);
}

/* The two lowest layers are the documented form, and need no word; what anybody added is told with its layer. */
static int print_layer(const Policy *p, size_t layer, unsigned line, FILE *f) {
        if (layer <= FLOOR_LAYER)
                return fputs("\n", f) < 0 ? -EIO : 0;
        int r = print_escaped(f, "  (", p->layer_names[layer], "");
        if (line > 0 && p->layer_names[layer][0] == '/')
                fprintf(f, ":%u", line);
        fputs(")\n", f);
        return r;
}

static int print_rules(const Policy *p, const PolicyRule *const *rules, bool devices, FILE *f) {
        int r = 0;

        for (; *rules && r >= 0; rules++) {
                char rights[4];
                if (is_device(*rules) != devices)
                        continue;
                path_rights_to_string(effective(p, *rules), rights);
                fprintf(f, "  %s", rights);
                r = print_escaped(f, " ", (*rules)->path, "");
                if (r >= 0)
                        r = print_layer(p, (*rules)->layer, (*rules)->line, f);
        }
        return r;
}

static int print_network(const Policy *p, FILE *f) {
        const char *reason;

        if (!p->egress_allow)
                fputs("network:\n  egress: DenyAll", f);
        else if (!p->egress_hosts)
                fputs("network:\n  egress: AllowAll", f);
        else {
                fputs("network:\n  egress: Allow [", f);
                for (char **s = p->egress_hosts; *s; s++)
                        fprintf(f, "%s%s", s == p->egress_hosts ? "" : ", ", *s);
                fputs("]", f);
        }
        int r = print_layer(p, p->egress_layer, 0, f);
        fputs("  bind_ports: [", f);
        for (size_t i = 0; i < p->n_bind_ports; i++)
                fprintf(f, "%s%u", i ? ", " : "", p->bind_ports[i]);
        fputs("]\n", f);
        if (policy_network_supported(p, &reason))
                fputs("  mode: isolated (own namespace, loopback only, no route off the host)\n", f);
        else
                fprintf(f, "  mode: refused (%s)\n", reason);
        return r;
}

/* In whole; a project in it is no grant of the home. */
static bool real_home_granted(const Policy *p) {
        ResolvedPath home = {};

        if (streq(p->account.home, "/") || path_resolve(p->account.home, &home) < 0)
                return false;
        bool granted = policy_rights_at(p, home.real);
        resolved_path_done(&home);
        return granted;
}

int show_policy(const Policy *p, FILE *f) {
        _cleanup_free_ const PolicyRule **rules = sorted_rules(p);
        int r = rules ? 0 : -ENOMEM;

        fprintf(f, "profile base: %s%s%s\nconfig layers:%s", p->base, p->profile ? ", " : "", p->profile ?: "",
                p->files ? "\n" : " (none)\n");
        for (char **s = p->files; s && *s && r >= 0; s++)
                r = print_escaped(f, "  ", *s, "\n");
        fputs("\nfilesystem:\n", f);
        if (r >= 0)
                r = print_rules(p, rules, false, f);
        if (r >= 0)
                r = print_network(p, f);
        fputs("devices:\n", f);
        if (r >= 0)
                r = print_rules(p, rules, true, f);
        fputs("resources: ResourceLimits { ", f);
        print_limit(f, "memory_bytes", p->limits.memory_bytes, ", ");
        print_limit(f, "pids_max", p->limits.pids_max, ", ");
        print_limit(f, "cpu_percent", p->limits.cpu_percent, ", ");
        print_limit(f, "tmp_bytes", p->limits.tmp_bytes, ", ");
        print_limit(f, "shm_bytes", p->limits.shm_bytes, " }\n");
        print_process_limit(f, "file_size", p->limits.file_bytes);
        print_process_limit(f, "core_size", p->limits.core_bytes);
        print_process_limit(f, "files_max", p->limits.files_max);
        if (r >= 0)
                r = print_escaped(f, "home: ", p->home, "\n");
        fprintf(f, "  (private; the real home is %sgranted)\nenvironment:\n", real_home_granted(p) ? "" : "not ");
        for (size_t i = 0; i < p->n_variables && r >= 0; i++) {
                fprintf(f, "  %s=", p->variables[i].name);
                r = print_escaped(f, "", p->variables[i].value, "");
                if (r >= 0)
                        r = print_escaped(f, "  (", p->variables[i].layer, ")\n");
        }
        return r < 0 ? r : ferror(f) ? -EIO : 0;
}

static void add_limit(JsonWriter *w, const char *name, uint64_t value) {
        if (value == LIMIT_NONE)
                json_add_null(w, name);
        else
                json_add_u64(w, name, value);
}

static void add_limits(JsonWriter *w, const Policy *p) {
        const struct {
                const char *name;
                uint64_t value, layer;
        } all[] = {
                {"memory_bytes", p->limits.memory_bytes, p->limit_layers.memory_bytes},
                {"pids_max", p->limits.pids_max, p->limit_layers.pids_max},
                {"cpu_percent", p->limits.cpu_percent, p->limit_layers.cpu_percent},
                {"tmp_bytes", p->limits.tmp_bytes, p->limit_layers.tmp_bytes},
                {"shm_bytes", p->limits.shm_bytes, p->limit_layers.shm_bytes},
                {"file_bytes", p->limits.file_bytes, p->limit_layers.file_bytes},
                {"core_bytes", p->limits.core_bytes, p->limit_layers.core_bytes},
                {"files_max", p->limits.files_max, p->limit_layers.files_max},
        };

        json_open_object(w, "resources");
        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                add_limit(w, all[i].name, all[i].value);
        json_close_object(w);
        json_open_object(w, "resource_layers");
        for (size_t i = 0; i < ELEMENTSOF(all); i++)
                if (all[i].layer != LIMIT_NONE)
                        json_add_string(w, all[i].name, p->layer_names[all[i].layer]);
        json_close_object(w);
}

static void add_rules(JsonWriter *w, const char *name, const Policy *p, const PolicyRule *const *rules, bool devices) {
        json_open_array(w, name);
        for (; *rules; rules++) {
                char rights[4];
                if (is_device(*rules) != devices)
                        continue;
                path_rights_to_string(effective(p, *rules), rights);
                json_open_object(w, NULL);
                json_add_string(w, "path", (*rules)->path);
                json_add_string(w, "resolved", (*rules)->resolved.real);
                json_add_string(w, "rights", rights);
                json_add_bool(w, "exists", (*rules)->resolved.error == 0);
                json_add_string(w, "layer", p->layer_names[(*rules)->layer]);
                if ((*rules)->line > 0)
                        json_add_u64(w, "line", (*rules)->line);
                json_close_object(w);
        }
        json_close_array(w);
}

static void add_network(JsonWriter *w, const Policy *p) {
        const char *reason = NULL;
        bool supported = policy_network_supported(p, &reason);

        json_open_object(w, "network");
        json_add_string(w, "egress", p->egress_allow ? "allow" : "deny");
        json_add_strings(w, "egress_allow", p->egress_hosts);
        json_add_string(w, "egress_layer", p->layer_names[p->egress_layer ?: FLOOR_LAYER]);
        json_open_array(w, "bind_ports");
        for (size_t i = 0; i < p->n_bind_ports; i++)
                json_add_u64(w, NULL, p->bind_ports[i]);
        json_close_array(w);
        json_add_string(w, "mode", supported ? "isolated" : "refused");
        json_add_string(w, "refused_because", supported ? NULL : reason);
        json_close_object(w);
}

int show_policy_json(const Policy *p, FILE *f) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ const PolicyRule **rules = sorted_rules(p);
        _cleanup_free_ char *text = NULL;

        if (!rules)
                return -ENOMEM;
        json_open_object(&w, NULL);
        json_add_string(&w, "profile_base", p->base);
        json_add_string(&w, "profile", p->profile);
        json_add_strings(&w, "config_layers", p->files);
        json_add_strings(&w, "skipped", p->skipped);
        json_add_strings(&w, "layers", p->layer_names);
        add_rules(&w, "filesystem", p, rules, false);
        add_network(&w, p);
        add_rules(&w, "devices", p, rules, true);
        add_limits(&w, p);
        json_add_string(&w, "home", p->home);
        json_open_array(&w, "environment");
        for (size_t i = 0; i < p->n_variables; i++) {
                json_open_object(&w, NULL);
                json_add_string(&w, "name", p->variables[i].name);
                json_add_string(&w, "value", p->variables[i].value);
                json_add_string(&w, "layer", p->variables[i].layer);
                json_close_object(&w);
        }
        json_close_array(&w);
        json_close_object(&w);
        int r = json_writer_finish(&w, &text, NULL);
        if (r < 0)
                return r;
        fprintf(f, "%s\n", text);
        return ferror(f) ? -EIO : 0;
}
