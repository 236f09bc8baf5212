/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/config-keys.h"
#include "errandd/config-values.h"

void config_provider_done(ConfigProvider *p) {
        free(p->id);
        free(p->base_url);
        free(p->ca_file);
        secret_source_done(&p->credential);
        free(p->credential_name);
        free(p->header);
        free(p->user);
        capabilities_free(p->capabilities, p->n_capabilities);
        free(p->extension);
        strv_free(p->tools);
        strv_free(p->models);
        memset(p, 0, sizeof(*p));
}

bool config_provider_brokered(const ConfigProvider *p) {
        return p->broker && !p->extension;
}

const char *config_provider_url(const ConfigProvider *p) {
        if (p->base_url)
                return p->base_url;
        return streq(p->id, "anthropic") ? "https://api.anthropic.com" : streq(p->id, "openai") ? "https://api.openai.com/v1" : NULL;
}

static char *lower(const char *s) {
        char *copy = strdup(s);

        for (char *p = copy; p && *p; p++)
                *p = ascii_lower(*p);
        return copy;
}

/* S105: a misspelt one of these three would leave the route open. S106, S107: every other key is the operator's own. */
static const char *reads_as(ConfigReader *r, const char *member) {
        static const struct {
                const char *key, *lower, *start;
        } guarded[] = {
                {"placement", "placement", "place"},
                {"capabilities", "capabilities", "capab"},
                {"strictCapabilities", "strictcapabilities", "strict"},
        };
        _cleanup_free_ char *name = lower(member);

        if (!name) {
                r->error = -ENOMEM;
                return NULL;
        }
        for (size_t i = 0; i < ELEMENTSOF(guarded); i++)
                if (startswith(name, guarded[i].start) || string_distance(name, guarded[i].lower) <= 2)
                        return guarded[i].key;
        return NULL;
}

static void unknown_in_provider(ConfigReader *r, const ConfigKey *keys, size_t n_keys, const char *member) {
        const char *meant = reads_as(r, member);

        if (meant) {
                size_t mark = config_enter(r, member);
                config_problem(r, "reads as a misspelling of %s; a misspelt one would leave the route open", meant);
                config_leave(r, mark);
                return;
        }
        for (size_t i = 0; i < n_keys; i++)
                if (string_distance(keys[i].name, member) <= (strlen(member) > 6 ? 2U : 1U)) {
                        size_t mark = config_enter(r, member);
                        config_warning(r, "is not read; did you mean %s?", keys[i].name);
                        config_leave(r, mark);
                        return;
                }
}

static void read_capability(ConfigReader *r, JsonNode *node, Capability *c) {
        config_read_object(r, config_capability_keys, n_config_capability_keys, node, c, config_unknown);
        if (!JSON_NODE_HOLDS_OBJECT(node))
                return;
        for (size_t i = 0; i < n_config_capability_keys; i++)
                if (!json_object_has_member(json_node_get_object(node), config_capability_keys[i].name))
                        config_problem(r, "has no %s", config_capability_keys[i].name);
}

void config_read_capabilities(ConfigReader *r, JsonNode *node, ConfigProvider *provider) {
        if (JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING &&
            streq(json_node_get_string(node), "*")) {
                provider->every_call = true;
                return;
        }
        if (!JSON_NODE_HOLDS_ARRAY(node)) {
                config_problem(r, "must be a list of {\"method\": …, \"path\": …} or \"*\" for every call, not %s",
                               JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING ? "another text"
                                                                                                              : json_kind(node));
                return;
        }
        JsonArray *array = json_node_get_array(node);
        guint n = json_array_get_length(array);
        if (n == 0)
                config_problem(r, "is an empty list, which would allow no call; leave it out, or write \"*\" for every call");
        if (n > CAPABILITIES_MAX)
                config_problem(r, "has more than %u entries", CAPABILITIES_MAX);
        if (n == 0 || n > CAPABILITIES_MAX)
                return;
        provider->capabilities = calloc(n, sizeof(Capability));
        if (!provider->capabilities) {
                r->error = -ENOMEM;
                return;
        }
        provider->n_capabilities = n;
        for (guint i = 0; i < n; i++) {
                size_t mark = config_enter_index(r, i);
                read_capability(r, json_array_get_element(array, i), &provider->capabilities[i]);
                config_leave(r, mark);
        }
}

/* ID_API_KEY, with '_' for '-'. */
static void derive_credential_name(ConfigReader *r, ConfigProvider *p) {
        if (asprintf(&p->credential_name, "%s%s_API_KEY", ascii_digit(p->id[0]) ? "_" : "", p->id) < 0) {
                p->credential_name = NULL;
                r->error = -ENOMEM;
                return;
        }
        for (char *c = p->credential_name; *c; c++)
                if (*c >= 'a' && *c <= 'z')
                        *c = (char) (*c - ('a' - 'A'));
                else if (*c == '-')
                        *c = '_';
}

static bool given(JsonNode *node, const char *member) {
        return json_object_has_member(json_node_get_object(node), member);
}

static void check_keys_together(ConfigReader *r, JsonNode *node, ConfigProvider *p) {
        if (p->strict_capabilities && !given(node, "capabilities"))
                config_problem(r, "strictCapabilities is true without a list of capabilities to hold calls to");
        if (p->header && given(node, "placement"))
                config_problem(r, "header and placement both say where the key travels; give one");
        if (p->user && p->placement != PLACEMENT_BASIC)
                config_problem(r, "user is the name beside the key of \"placement\": \"basic\", and of no other");
        if (p->tools && p->placement == PLACEMENT_X_API_KEY)
                config_problem(r, "its tools send the key as a bearer token, so it cannot travel in x-api-key%s",
                               given(node, "placement") ? "" : ", which kind anthropic means; give \"placement\": \"bearer\"");
        if (p->tools && (p->placement == PLACEMENT_HEADER || p->placement == PLACEMENT_BASIC))
                config_problem(r, "its tools send the key as a bearer token, so it cannot travel %s",
                               p->placement == PLACEMENT_BASIC ? "as the password of Basic" : "in another header");
        if (!given(node, "credential") && config_provider_brokered(p))
                config_problem(r, "has no credential for its broker to send; give one, or \"broker\": false");
}

static void read_provider(ConfigReader *r, const char *id, JsonNode *node, ConfigProvider *p) {
        const char *problem = check_provider_id(id);

        if (problem)
                config_problem(r, "%s", problem);
        p->id = strdup(id);
        if (!p->id) {
                r->error = -ENOMEM;
                return;
        }
        p->kind = PROVIDER_UNKNOWN;
        p->placement = PLACEMENT_EITHER;
        config_set_defaults(r, config_provider_keys, n_config_provider_keys, p);
        config_read_object(r, config_provider_keys, n_config_provider_keys, node, p, unknown_in_provider);
        if (!JSON_NODE_HOLDS_OBJECT(node))
                return;

        if (p->header)
                p->placement = PLACEMENT_HEADER;
        else if (p->placement == PLACEMENT_EITHER && p->kind != PROVIDER_UNKNOWN)
                p->placement = p->kind == PROVIDER_ANTHROPIC ? PLACEMENT_X_API_KEY : PLACEMENT_BEARER;
        if (!p->credential_name)
                derive_credential_name(r, p);
        size_t size = p->base_url ? strlen(p->base_url) : 0;
        if (size > 0 && p->base_url[size - 1] == '/')
                p->base_url[size - 1] = 0;
        check_keys_together(r, node, p);
        if (p->placement == PLACEMENT_BASIC && !p->user && !(p->user = strdup(PLACEMENT_USER_DEFAULT)))
                r->error = -ENOMEM;
}

/* Two providers under one variable: whichever came last would get the other's calls. */
static void check_credential_names(ConfigReader *r, const ConfigAgent *agent) {
        unsigned brokered = 0;

        for (size_t i = 0; i < agent->n_providers; i++) {
                const ConfigProvider *p = &agent->providers[i];
                brokered += config_provider_brokered(p);
                for (size_t k = 0; k < i && p->credential_name; k++)
                        if (streq_ptr(agent->providers[k].credential_name, p->credential_name))
                                config_problem(r, "%s and %s have the same credentialName, %s; each needs its own",
                                               config_show(agent->providers[k].id), config_show(p->id), p->credential_name);
        }
        if (brokered > CONFIG_BROKERED_MAX)
                config_problem(r, "%u providers are brokered; a session's broker serves at most %u", brokered, CONFIG_BROKERED_MAX);
}

void config_read_providers(ConfigReader *r, JsonNode *node, ConfigAgent *agent) {
        if (!JSON_NODE_HOLDS_OBJECT(node)) {
                config_problem(r, "must be an object of providers by their ids, not %s", json_kind(node));
                return;
        }
        JsonObject *object = json_node_get_object(node);
        guint n = json_object_get_size(object);
        if (n > CONFIG_PROVIDERS_MAX) {
                config_problem(r, "has more than %u providers", CONFIG_PROVIDERS_MAX);
                return;
        }
        agent->providers = calloc(n + 1, sizeof(ConfigProvider));
        if (!agent->providers) {
                r->error = -ENOMEM;
                return;
        }
        GList *members = json_object_get_members(object);
        for (GList *m = members; m; m = m->next) {
                size_t mark = config_enter(r, m->data);
                read_provider(r, m->data, json_object_get_member(object, m->data), &agent->providers[agent->n_providers++]);
                config_leave(r, mark);
        }
        g_list_free(members);
        check_credential_names(r, agent);
}
