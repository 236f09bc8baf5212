/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <limits.h>
#include <unistd.h>

#include "bailey/directories.h"
#include "bailey/discovery.h"
#include "bailey/environment.h"
#include "bailey/guard.h"
#include "bailey/home.h"
#include "bailey/layers.h"
#include "bailey/policy-source.h"
#include "bailey/profiles.h"
#include "basic/path.h"
#include "basic/text.h"

/* The lowest layer. */
static int layer_new_target(const char *path, Layer **ret) {
        _cleanup_(layer_freep) Layer *l = layer_new("target");

        if (!l || layer_grant(l, path, RIGHT_READ | RIGHT_EXECUTE) < 0)
                return -ENOMEM;
        l->is_target = true;
        *ret = TAKE_PTR(l);
        return 0;
}

static int put_rule(Policy *p, const LayerRule *from, const Layer *layer, size_t index, Findings *findings);

/* A directory of devices stands for those that are in it now. */
static int put_devices(Policy *p, const LayerRule *from, const char *directory, const Layer *layer, size_t index, Findings *findings) {
        DIR *d = opendir(directory);
        int r = 0;

        for (const struct dirent *e; d && r >= 0 && (e = readdir(d));) {
                char path[PATH_MAX];
                LayerRule one = *from;

                if (e->d_type != DT_CHR || snprintf(path, sizeof(path), "%s/%s", directory, e->d_name) >= (int) sizeof(path))
                        continue;
                one.path = path;
                r = put_rule(p, &one, layer, index, findings);
        }
        if (d)
                closedir(d);
        return r;
}

/* A layer's rule on top of what lower layers said of the same name. */
static int put_rule(Policy *p, const LayerRule *from, const Layer *layer, size_t index, Findings *findings) {
        PolicyRule *rule = NULL;

        for (size_t i = 0; i < p->n_rules; i++)
                if (streq(p->rules[i].path, from->path))
                        rule = &p->rules[i];
        if (!rule) {
                ResolvedPath resolved = {};
                int r = path_resolve(from->path, &resolved);
                if (r == -ENOMEM)
                        return r;
                if (r < 0) {
                        finding_error(findings, "%s: %s cannot be resolved: %s", layer->name, from->path, strerror(-r));
                        return 0;
                }
                if (layer->bundled && from->rights && resolved.error < 0) {
                        resolved_path_done(&resolved);
                        return 0;
                }
                if (from->device && resolved.error == 0 && S_ISDIR(resolved.mode)) {
                        r = put_devices(p, from, resolved.real, layer, index, findings);
                        resolved_path_done(&resolved);
                        return r;
                }
                PolicyRule *grown = reallocarray(p->rules, p->n_rules + 1, sizeof(PolicyRule));
                char *path = strdup(from->path);
                if (grown)
                        p->rules = grown;
                if (!grown || !path) {
                        free(path);
                        resolved_path_done(&resolved);
                        return -ENOMEM;
                }
                rule = &p->rules[p->n_rules++];
                *rule = (PolicyRule){.path = path, .resolved = resolved};
        }
        if (from->deny || from->rights) {
                rule->rights = from->rights;
                rule->deny = from->deny;
                rule->read_only = false;
                rule->is_target = layer->is_target;
        }
        if (from->read_only)
                rule->read_only = true;
        rule->layer = index;
        rule->line = from->deny_line ?: from->grant_line ?: from->read_only_line;
        return 0;
}

static int compare_named(const void *a, const void *b) {
        return strcmp(((const PolicyRule *) a)->path, ((const PolicyRule *) b)->path);
}

static int compare_real(const void *a, const void *b) {
        const PolicyRule *x = *(PolicyRule *const *) a, *y = *(PolicyRule *const *) b;
        int c = strcmp(x->resolved.real, y->resolved.real);
        return c ?: (x->layer > y->layer) - (x->layer < y->layer);
}

/* The rules of one real path, which different names may lead to, lowest layer first, become one entry. */
static void put_entry(Policy *p, PolicyRule *const *same, size_t n, Layer *const *layers, Findings *findings) {
        const PolicyRule *winner = NULL;
        PathRights rights = 0;
        bool deny = false, read_only = false;

        for (size_t i = 0; i < n; i++) {
                const PolicyRule *rule = same[i];
                if (rule->deny || rule->rights) {
                        bool same_layer = winner && winner->layer == rule->layer;
                        if (same_layer && rule->deny != deny)
                                finding_error(findings, "%s:%u: %s and %s (line %u) are the same place, one granted and one denied; "
                                              "remove one of them", layers[rule->layer]->name, rule->line, rule->path,
                                              winner->path, winner->line);
                        rights = same_layer ? rights | rule->rights : rule->rights;
                        read_only = same_layer && read_only;
                        deny = rule->deny || (same_layer && deny);
                        winner = rule;
                }
                read_only |= rule->read_only;
                winner = winner ?: rule;
        }
        PolicyEntry *e = &p->entries[p->n_entries];
        *e = (PolicyEntry){.rule = winner, .rights = deny ? 0 : rights};
        if (read_only && !deny) {
                if (!rights) {
                        e->rights = policy_rights_at(p, winner->resolved.real);
                        e->island = true;
                }
                e->rights &= ~(unsigned) RIGHT_WRITE;
        }
        p->n_entries++;
}

int layers_combine_paths(Policy *p, Layer *const *layers, size_t n_layers, Findings *findings) {
        size_t first = 0;

        for (size_t i = 0; i < n_layers; i++)
                if (layers[i]->reset_filesystem)
                        first = i;
        for (size_t i = 0; i < n_layers; i++)
                for (size_t k = 0; k < layers[i]->n_rules; k++) {
                        const LayerRule *rule = &layers[i]->rules[k];
                        /* The minimal /dev is no grant that a table could drop: no program works without /dev/null. */
                        if (i < first && (layers[i]->from_file || !path_beneath(rule->path, "/dev")))
                                continue;
                        int r = put_rule(p, rule, layers[i], i, findings);
                        if (r < 0)
                                return r;
                }
        if (p->n_rules == 0)
                return 0;
        qsort(p->rules, p->n_rules, sizeof(PolicyRule), compare_named);

        _cleanup_free_ PolicyRule **by_real = calloc(p->n_rules, sizeof(PolicyRule *));
        p->entries = calloc(p->n_rules, sizeof(PolicyEntry));
        if (!by_real || !p->entries)
                return -ENOMEM;
        for (size_t i = 0; i < p->n_rules; i++)
                by_real[i] = &p->rules[i];
        qsort(by_real, p->n_rules, sizeof(PolicyRule *), compare_real);
        /* A parent is a prefix, so it sorts before what lies below it: an island finds what holds around it. */
        for (size_t i = 0, n; i < p->n_rules; i += n) {
                for (n = 1; i + n < p->n_rules && streq(by_real[i]->resolved.real, by_real[i + n]->resolved.real); n++)
                        ;
                put_entry(p, by_real + i, n, layers, findings);
        }
        return 0;
}

static void combine_limit(uint64_t *limit, uint64_t said, uint64_t *from, size_t layer) {
        if (said != LIMIT_NONE) {
                *limit = said;
                *from = layer;
        }
}

static void combine_limits(Policy *p, const Layer *l, size_t index) {
        Limits *to = &p->limits, *from = &p->limit_layers;

        if (l->reset_resources)
                *to = *from = LIMITS_NONE;
        combine_limit(&to->memory_bytes, l->limits.memory_bytes, &from->memory_bytes, index);
        combine_limit(&to->pids_max, l->limits.pids_max, &from->pids_max, index);
        combine_limit(&to->cpu_percent, l->limits.cpu_percent, &from->cpu_percent, index);
        combine_limit(&to->tmp_bytes, l->limits.tmp_bytes, &from->tmp_bytes, index);
        combine_limit(&to->shm_bytes, l->limits.shm_bytes, &from->shm_bytes, index);
        combine_limit(&to->file_bytes, l->limits.file_bytes, &from->file_bytes, index);
        combine_limit(&to->core_bytes, l->limits.core_bytes, &from->core_bytes, index);
        combine_limit(&to->files_max, l->limits.files_max, &from->files_max, index);
}

/* Everything that is not a path or a variable. */
static int combine_rest(Policy *p, Layer *const *layers, size_t n_layers) {
        p->limits = p->limit_layers = LIMITS_NONE;
        for (size_t i = 0; i < n_layers; i++) {
                Layer *l = layers[i];

                if (strv_extend(&p->layer_names, l->name) < 0 ||
                    (l->from_file && !l->is_profile && strv_extend(&p->files, l->name) < 0))
                        return -ENOMEM;
                if (l->reset_network) {
                        p->egress_layer = i;
                        p->egress_allow = false;
                        p->egress_hosts = strv_free(p->egress_hosts);
                        p->n_bind_ports = 0;
                }
                if (l->egress_said || l->egress_hosts) {
                        p->egress_allow = l->egress_allow || l->egress_hosts;
                        p->egress_layer = i;
                        /* "deny", and "allow" without a list, are all that is said: lower layers' lists are about something else. */
                        if (l->egress_said && !l->egress_hosts)
                                p->egress_hosts = strv_free(p->egress_hosts);
                }
                if (strv_extend_list(&p->egress_hosts, l->egress_hosts) < 0)
                        return -ENOMEM;
                if (l->n_bind_ports > 0) {
                        uint16_t *grown = reallocarray(p->bind_ports, p->n_bind_ports + l->n_bind_ports, sizeof(uint16_t));
                        if (!grown)
                                return -ENOMEM;
                        p->bind_ports = grown;
                        memcpy(grown + p->n_bind_ports, l->bind_ports, l->n_bind_ports * sizeof(uint16_t));
                        p->n_bind_ports += l->n_bind_ports;
                }
                combine_limits(p, l, i);
        }
        return 0;
}

/* Mostly a layer has granted it, and it was resolved for that. */
static int settle_target(Policy *p, const char *path) {
        for (size_t i = 0; i < p->n_rules; i++)
                if (streq(p->rules[i].path, path)) {
                        p->target = strdup(p->rules[i].resolved.real);
                        return p->target ? 0 : -ENOMEM;
                }
        ResolvedPath target = {};
        int r = path_resolve(path, &target);
        if (r < 0)
                return r;
        p->target = TAKE_PTR(target.real);
        resolved_path_done(&target);
        return 0;
}

static int settle_places(Policy *p, const PolicyRequest *request, Layer *const *layers, size_t n_layers, Findings *findings) {
        _cleanup_free_ char *name = NULL;
        const char *chosen = NULL;

        for (size_t i = 0; i < n_layers; i++)
                chosen = layers[i]->home ?: chosen;
        int r = request->shell ? home_name_directory(p->working_directory, &name) : home_name_program(request->target, &name);
        if (r >= 0)
                r = home_settle(p, name, chosen, request->home, findings);
        if (r < 0)
                return r;

        return settle_target(p, request->target);
}

static int copy_account(Account *to, const Account *from) {
        *to = *from;
        to->name = strdup(from->name);
        to->home = strdup(from->home);
        to->group_name = strdup(from->group_name);
        return to->name && to->home && to->group_name ? 0 : -ENOMEM;
}

/* Landlock knows ports. "*:443" claims nothing else. */
static void warn_advisory_hosts(const Policy *p, Findings *findings) {
        for (char **s = p->egress_hosts; s && *s; s++)
                if (strchr(*s, ':') && !startswith(*s, "*:"))
                        finding_warning(findings, "egress_allow: the host in \"%s\" is advisory: any host can be reached at that TCP port", *s);
}

/* From the layers to a policy. p has its account and working directory. */
static int resolve_layers(Policy *p, const PolicyRequest *request, Layer *const *layers, size_t n_layers, Findings *findings) {
        int r = layers_combine_paths(p, layers, n_layers, findings);
        if (r >= 0)
                r = combine_rest(p, layers, n_layers);
        if (r >= 0 && !request->brokered)
                warn_advisory_hosts(p, findings);
        if (r >= 0)
                r = settle_places(p, request, layers, n_layers, findings);
        if (r >= 0 && !findings_failed(findings))
                r = environment_settle(p, layers, n_layers, request->brokered, request->shell ? request->target : NULL,
                                       request->extra_environment, findings);
        if (r >= 0 && !findings_failed(findings))
                r = guard_check(p, layers, findings);
        return r;
}

static int load_profile(Policy *p, const PolicyRequest *request, const PolicyPlaces *places, LayerList *list, Findings *findings) {
        Layer *layer = NULL;

        int r = profile_load(&(ProfileRequest){
                .account = request->account,
                .config_directory = p->config_directory,
                .places = places,
                .target = request->shell ? NULL : request->target,
        }, request->profile, findings, &layer);
        if (r < 0 || !layer)
                return r;
        layer->is_profile = true;
        p->profile = strdup(layer->name + STRLEN("profile "));
        r = layer_list_add(list, layer);
        return r < 0 || p->profile ? r : -ENOMEM;
}

static int load_files(Policy *p, const PolicyRequest *request, LayerList *list, Findings *findings) {
        const char *home = directory_home(request->account);
        const PolicyPlaces places = {
                .home = streq(home, "/") ? NULL : home, /* an account without a home does not mean all there is */
                .working_directory = p->working_directory,
                .environment = !request->account->changed,
        };
        struct stat status;
        Layer *config = NULL;
        int r = 0;

        if (!request->only_config || request->profile)
                r = load_profile(p, request, &places, list, findings);
        if (r >= 0 && request->config)
                r = policy_source_load(request->config, &places, findings, &status, &config);
        if (r >= 0 && !request->only_config)
                r = discovery_load(&(DiscoveryRequest){
                        .account = request->account,
                        .config_directory = p->config_directory,
                        .target = request->shell ? NULL : request->target,
                        .working_directory = p->working_directory,
                        .config = config ? &status : NULL,
                        .places = &places,
                }, findings, list, &p->skipped);
        if (r < 0) {
                layer_free(config);
                return r;
        }
        return config ? layer_list_add(list, config) : 0;
}

static int begin(const PolicyRequest *request, Findings *findings, Policy *p, LayerList *list) {
        Layer *target = NULL, *floor = NULL;

        p->base = PROFILE_FLOOR;
        int r = copy_account(&p->account, request->account);
        if (r >= 0)
                r = directory_config(&p->account, &p->config_directory);
        if (r < 0)
                return r;
        p->working_directory = getcwd(NULL, 0);
        if (!p->working_directory)
                finding_error(findings, "The working directory cannot be named: %s; change to another", strerror(errno));
        else if (p->working_directory[0] != '/')
                finding_error(findings, "The working directory lies outside of the root directory; change to another");
        if (findings_failed(findings))
                return 0;
        r = layer_new_target(request->target, &target);
        if (r >= 0)
                r = layer_list_add(list, target);
        if (r >= 0)
                r = profile_new_floor(&floor);
        return r < 0 ? r : layer_list_add(list, floor);
}

int policy_resolve(const PolicyRequest *request, Findings *findings, Policy **ret) {
        _cleanup_(policy_freep) Policy *p = calloc(1, sizeof(Policy));
        _cleanup_(layer_list_done) LayerList list = {};

        if (!p)
                return -ENOMEM;
        int r = begin(request, findings, p, &list);
        if (r >= 0 && !findings_failed(findings))
                r = load_files(p, request, &list, findings);
        if (r >= 0 && !findings_failed(findings))
                r = resolve_layers(p, request, list.items, list.n, findings);
        if (r >= 0 && !findings_failed(findings) && request->config)
                r = guard_check_config(p, request->config, findings);
        if (r < 0)
                return r;
        if (!findings_failed(findings))
                *ret = TAKE_PTR(p);
        return 0;
}
