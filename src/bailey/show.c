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

/* Why a run cannot have what is asked for; NULL: it can. */
static const char *network_refusal(const ShownNetwork *s) {
        if (s->network->mode != NETWORK_EGRESS_PROXY)
                return NULL;
        return !s->namespaces ? "--egress-proxy needs user namespaces, which there are none of here" :
               !s->pasta      ? "--egress-proxy needs pasta, which is not here: install the package passt" : NULL;
}

/* What the mode means on this host. */
static const char *network_meaning(const ShownNetwork *s) {
        const Network *n = s->network;
        bool ports = s->landlock_abi >= LANDLOCK_ABI_PORTS;

        switch (n->mode) {
        case NETWORK_LANDLOCK:
                return !ports          ? "TCP ports are not enforced: Landlock is older than ABI 4" :
                       n->connect_any ? "TCP to any port, listening on bind_ports; UDP, QUIC, and DNS are not restricted" :
                                        "TCP ports; UDP, QUIC, and DNS are not restricted";
        case NETWORK_PROXY:
                return n->denied ? "own namespace with a private address, and nothing leaves it" :
                       !ports    ? "own namespace, connected by pasta; TCP ports are not enforced: Landlock is older than ABI 4" :
                                   "own namespace, connected by pasta; TCP ports; UDP, QUIC, and DNS are not restricted";
        case NETWORK_EGRESS_PROXY:
                return "own namespace, connected by pasta; TCP to the broker and nothing else";
        case NETWORK_BROKER:
                return "own namespace, a broker is the only way out";
        case NETWORK_ISOLATED:
        case _NETWORK_MODE_MAX:
        case _NETWORK_MODE_INVALID:
                break;
        }
        return s->namespaces ? "own namespace, loopback only, no route off the host" :
                               "no user namespaces here: internet sockets are refused";
}

static const char *network_name(NetworkMode m) {
        return m == NETWORK_LANDLOCK ? "landlock only" : network_mode_to_string(m);
}

static int print_network(const Policy *p, const ShownNetwork *network, FILE *f) {
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
        const char *refusal = network_refusal(network);
        fprintf(f, "  mode: %s (%s)\n", refusal ? "refused" : network_name(network->network->mode), refusal ?: network_meaning(network));
        if (network->proxy_asked && !network_has_pasta(network->network))
                fprintf(f, "  proxy-net: not here (%s)%s\n", network->namespaces ? "pasta is missing" : "no user namespaces",
                        network->network->mode == NETWORK_ISOLATED && network->namespaces ? "" : ": the host's address stays visible");
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

int show_policy(const Policy *p, const ShownNetwork *network, FILE *f) {
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
                r = print_network(p, network, f);
        for (Gap g = 0; g < _GAP_MAX; g++)
                if (network->gaps & ((GapSet) 1 << g))
                        fprintf(f, "not enforced: %s: %s\n", gap_to_string(g), gap_describe(g));
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

static void add_network(JsonWriter *w, const Policy *p, const ShownNetwork *network) {
        const char *refusal = network_refusal(network);

        json_open_object(w, "network");
        json_add_string(w, "egress", p->egress_allow ? "allow" : "deny");
        json_add_strings(w, "egress_allow", p->egress_hosts);
        json_add_string(w, "egress_layer", p->layer_names[p->egress_layer ?: FLOOR_LAYER]);
        json_open_array(w, "bind_ports");
        for (size_t i = 0; i < p->n_bind_ports; i++)
                json_add_u64(w, NULL, p->bind_ports[i]);
        json_close_array(w);
        json_add_string(w, "mode", refusal ? "refused" : network_mode_to_string(network->network->mode));
        json_add_string(w, "meaning", refusal ? NULL : network_meaning(network));
        json_add_string(w, "refused_because", refusal);
        json_close_object(w);
}

int show_policy_json(const Policy *p, const ShownNetwork *network, FILE *f) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ const PolicyRule **rules = sorted_rules(p);

        if (!rules)
                return -ENOMEM;
        json_open_object(&w, NULL);
        json_add_string(&w, "profile_base", p->base);
        json_add_string(&w, "profile", p->profile);
        json_add_strings(&w, "config_layers", p->files);
        json_add_strings(&w, "skipped", p->skipped);
        json_add_strings(&w, "layers", p->layer_names);
        add_rules(&w, "filesystem", p, rules, false);
        add_network(&w, p, network);
        add_rules(&w, "devices", p, rules, true);
        add_limits(&w, p);
        if (network->gaps)
                gaps_add_json(&w, network->gaps);
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
        return json_writer_print(&w, f);
}
