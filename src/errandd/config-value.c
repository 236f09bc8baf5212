/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The types of values: one function each, from JSON into a field, and the defaults. */

#include <inttypes.h>
#include <math.h>

#include "basic/parse.h"
#include "basic/path.h"
#include "basic/size.h"
#include "basic/text.h"
#include "errandd/config-reader.h"
#include "errandd/config-values.h"
#include "errandd/host-text.h"

#define TEXT_MAX 4096U
#define ENV_VALUE_MAX (32U * 1024U)

static bool is_text(JsonNode *node) {
        return JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING;
}

static bool is_whole(JsonNode *node) {
        return JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_INT64;
}

/* What may be said of a value in a sentence. */
static const char *value_shown(const ConfigKey *key, const char *s) {
        return key->quiet ? "its value" : config_show(s);
}

static const char *expect_text(ConfigReader *r, JsonNode *node) {
        if (is_text(node))
                return json_node_get_string(node);
        config_problem(r, "must be a text, not %s", json_kind(node));
        return NULL;
}

static char *copy(ConfigReader *r, const char *s) {
        char *t = strdup(s);
        if (!t)
                r->error = -ENOMEM;
        return t;
}

static void append(ConfigReader *r, char ***list, const char *s) {
        if (strv_extend(list, s) < 0)
                r->error = -ENOMEM;
}

static void read_bool(ConfigReader *r, JsonNode *node, bool *field) {
        if (JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_BOOLEAN)
                *field = json_node_get_boolean(node);
        else
                config_problem(r, "must be true or false, not %s", json_kind(node));
}

static void read_count(ConfigReader *r, const ConfigKey *key, JsonNode *node, uint64_t scale, uint64_t *field) {
        if (!is_whole(node)) {
                config_problem(r, "must be a whole number%s, not %s", key->type == CONFIG_MSEC ? " of milliseconds" : "",
                               JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_DOUBLE ? "a fraction"
                                                                                                              : json_kind(node));
                return;
        }
        gint64 value = json_node_get_int(node);
        if (value < 0 || (uint64_t) value < key->min || (uint64_t) value > key->max) {
                config_problem(r, "%" PRIi64 " is not between %" PRIu64 " and %" PRIu64, (int64_t) value, key->min, key->max);
                return;
        }
        *field = (uint64_t) value * scale;
}

static void read_bytes(ConfigReader *r, const ConfigKey *key, JsonNode *node, uint64_t *field) {
        char least[SIZE_TEXT_MAX], most[SIZE_TEXT_MAX];
        uint64_t value;

        if (is_whole(node) && json_node_get_int(node) >= 0)
                value = (uint64_t) json_node_get_int(node);
        else if (!is_text(node)) {
                config_problem(r, "must be a size such as \"4g\" or a number of bytes, not %s",
                               is_whole(node) ? "a negative number" : json_kind(node));
                return;
        } else {
                int q = parse_bytes(json_node_get_string(node), &value);
                if (q == -EINVAL) {
                        config_problem(r, "%s is not a size such as \"4g\", \"512m\" or 65536",
                                       value_shown(key, json_node_get_string(node)));
                        return;
                }
                if (q < 0)
                        value = UINT64_MAX;
        }
        if (value < key->min || value > key->max) {
                config_problem(r, "is not between %s and %s bytes", size_exact(key->min, least), size_exact(key->max, most));
                return;
        }
        *field = value;
}

static void read_cpus(ConfigReader *r, const ConfigKey *key, JsonNode *node, uint64_t *field) {
        bool number = JSON_NODE_HOLDS_VALUE(node) &&
                      (json_node_get_value_type(node) == G_TYPE_DOUBLE || json_node_get_value_type(node) == G_TYPE_INT64);
        if (!number) {
                config_problem(r, "must be a number of processors, not %s", json_kind(node));
                return;
        }
        double value = json_node_get_double(node) * CONFIG_CPUS_SCALE;
        if (!(value >= (double) key->min) || !(value <= (double) key->max)) { /* so that a NaN is refused, too */
                config_problem(r, "is not between %g and %g processors", (double) key->min / CONFIG_CPUS_SCALE,
                               (double) key->max / CONFIG_CPUS_SCALE);
                return;
        }
        *field = (uint64_t) (value + 0.5);
}

static size_t find_word(const ConfigKey *key, const char *s) {
        for (size_t i = 0; key->words[i]; i++)
                if (streq(key->words[i], s))
                        return i;
        return SIZE_MAX;
}

static void word_problem(ConfigReader *r, const ConfigKey *key, const char *s) {
        char list[256] = "";

        for (size_t i = 0; key->words[i]; i++)
                (void) snprintf(list + strlen(list), sizeof(list) - strlen(list), "%s\"%s\"",
                                i == 0              ? ""
                                : key->words[i + 1] ? ", "
                                                    : " or ",
                                key->words[i]);
        config_problem(r, "%s is not %s", value_shown(key, s), list);
}

static void read_word(ConfigReader *r, const ConfigKey *key, JsonNode *node, int *field) {
        const char *s = expect_text(r, node);
        size_t i = s ? find_word(key, s) : SIZE_MAX;

        if (i != SIZE_MAX)
                *field = (int) i;
        else if (s)
                word_problem(r, key, s);
}

/* Collapses an absolute path. NULL after a problem. */
static char *checked_path(ConfigReader *r, const ConfigKey *key, const char *s) {
        const char *problem = check_line(s) ?: key->check ? key->check(s) : NULL;
        char *path;

        if (problem)
                config_problem(r, "%s %s", value_shown(key, s), problem);
        else if (s[0] != '/')
                config_problem(r, "%s must be an absolute path%s", value_shown(key, s),
                               s[0] == '~' ? " (a ~ is not expanded)" : "");
        else {
                int q = path_collapse(s, &path);
                if (q >= 0)
                        return path;
                if (q == -ENOMEM)
                        r->error = q;
                else
                        config_problem(r, "the path is too long");
        }
        return NULL;
}

static char *checked_text(ConfigReader *r, const ConfigKey *key, const char *s, size_t max) {
        const char *problem = key->check ? key->check(s) : NULL;

        if (strlen(s) > max)
                config_problem(r, "is longer than %zu bytes", max);
        else if (key->words && find_word(key, s) == SIZE_MAX)
                word_problem(r, key, s);
        else if (problem)
                config_problem(r, "%s %s", value_shown(key, s), problem);
        else
                return copy(r, s);
        return NULL;
}

static char *checked_host(ConfigReader *r, const ConfigKey *key, const char *s) {
        HostTextFlags flags = key->type == CONFIG_HOSTS ? HOST_TEXT_ANY | HOST_TEXT_WILDCARD : 0;
        char host[HOST_TEXT_MAX + 1];
        const char *problem;

        if (host_text_normalize(s, flags, host, &problem) < 0)
                config_problem(r, "%s %s", value_shown(key, s), problem);
        else if (key->type == CONFIG_INTERNAL && !host_is_literal(host))
                config_problem(r, "%s is not an IP address: what a name points at is not trusted", value_shown(key, s));
        else {
                if (host_text_covers_strangers(host))
                        config_warning(r, "%s covers hosts of anybody who registers a name there", value_shown(key, s));
                return copy(r, host);
        }
        return NULL;
}

static char *checked_element(ConfigReader *r, const ConfigKey *key, const char *s) {
        switch (key->type) {
        case CONFIG_PATHS:
                return checked_path(r, key, s);
        case CONFIG_HOSTS:
        case CONFIG_INTERNAL:
                return checked_host(r, key, s);
        default:
                return checked_text(r, key, s, TEXT_MAX);
        }
}

static JsonArray *expect_list(ConfigReader *r, const ConfigKey *key, JsonNode *node) {
        if (!JSON_NODE_HOLDS_ARRAY(node)) {
                config_problem(r, "must be a list, not %s", json_kind(node));
                return NULL;
        }
        JsonArray *array = json_node_get_array(node);
        guint n = json_array_get_length(array);
        if (n > key->max)
                config_problem(r, "has %u entries; at most %" PRIu64 " are taken", n, key->max);
        else if (n < key->min)
                config_problem(r, "is an empty list");
        else
                return array;
        return NULL;
}

static void read_list(ConfigReader *r, const ConfigKey *key, JsonNode *node, char ***field) {
        JsonArray *array = expect_list(r, key, node);

        for (guint i = 0; array && i < json_array_get_length(array); i++) {
                size_t mark = config_enter_index(r, i);
                const char *s = expect_text(r, json_array_get_element(array, i));
                _cleanup_free_ char *element = s ? checked_element(r, key, s) : NULL;

                if (element && !key->repeats && strv_contains(*field, element))
                        config_problem(r, "%s is named twice", value_shown(key, element));
                else if (element)
                        append(r, field, element);
                config_leave(r, mark);
        }
}

static void read_internal(ConfigReader *r, const ConfigKey *key, JsonNode *node, ConfigEgress *egress) {
        if (JSON_NODE_HOLDS_ARRAY(node)) {
                read_list(r, key, node, &egress->internal_list);
                egress->allow_internal = egress->internal_list;
        } else if (JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_BOOLEAN)
                egress->allow_internal = json_node_get_boolean(node);
        else
                config_problem(r, "must be true, false or a list of addresses, not %s", json_kind(node));
}

static void read_ports(ConfigReader *r, const ConfigKey *key, JsonNode *node, ConfigSandbox *sandbox) {
        JsonArray *array = expect_list(r, key, node);

        if (!array)
                return;
        sandbox->n_ports = 0;
        for (guint i = 0; i < json_array_get_length(array); i++) {
                const ConfigKey port = {.type = CONFIG_COUNT, .min = 1, .max = UINT16_MAX};
                size_t mark = config_enter_index(r, i);
                uint64_t value = 0;

                read_count(r, &port, json_array_get_element(array, i), 1, &value);
                for (size_t k = 0; k < sandbox->n_ports && value > 0; k++)
                        if (sandbox->ports[k] == value) {
                                config_problem(r, "port %" PRIu64 " is named twice", value);
                                value = 0;
                        }
                if (value > 0)
                        sandbox->ports[sandbox->n_ports++] = (uint16_t) value;
                config_leave(r, mark);
        }
}

/* Names are shown, values never: people put keys there although nothing secret belongs there. */
static void read_env(ConfigReader *r, const ConfigKey *key, JsonNode *node, char ***field) {
        if (!JSON_NODE_HOLDS_OBJECT(node)) {
                config_problem(r, "must be an object of names and texts, not %s", json_kind(node));
                return;
        }
        JsonObject *object = json_node_get_object(node);
        if (json_object_get_size(object) > key->max)
                config_problem(r, "has more than %" PRIu64 " variables", key->max);
        GList *members = json_object_get_members(object);
        for (GList *m = members; m; m = m->next) {
                size_t mark = config_enter(r, m->data);
                const char *problem = key->check(m->data), *value = expect_text(r, json_object_get_member(object, m->data));

                if (problem)
                        config_problem(r, "the name %s", problem);
                else if (value && strlen(value) > ENV_VALUE_MAX)
                        config_problem(r, "is longer than %u bytes", ENV_VALUE_MAX);
                else if (value && strv_extend_format(field, "%s=%s", (const char *) m->data, value) < 0)
                        r->error = -ENOMEM;
                config_leave(r, mark);
        }
        g_list_free(members);
}

/* json-glib's copy is wiped, so that ours is the only one left once the text of the file is. */
static void wipe_text(JsonNode *node) {
        const char *s = json_node_get_string(node);
        secret_wipe((char *) s, strlen(s));
}

static void read_inline_secret(ConfigReader *r, const ConfigKey *key, JsonNode *node, SecretSource *field) {
        const char *s = json_node_get_string(node), *problem = key->check(s);
        int q = 0;

        r->inline_secrets = true;
        if (problem)
                config_problem(r, "the secret %s", problem);
        else {
                q = secret_new(s, strlen(s), &field->value);
                if (q >= 0)
                        field->kind = SECRET_SOURCE_INLINE;
                else
                        r->error = q;
        }
        wipe_text(node);
}

static void read_secret_member(ConfigReader *r, const char *member, const char *s, SecretSource *field) {
        const ConfigKey path = {.type = CONFIG_PATH, .quiet = true};
        bool file = streq(member, "file");

        if (!file && r->mode == CONFIG_EMBEDDED)
                config_problem(r, "needs a systemd unit; without one, name a {\"file\": PATH}");
        else if (!file && !systemd_credential_name_valid(s))
                config_problem(r, "is not a credential's name (letters, digits, '_', '.' and '-')");
        else {
                field->name = file ? checked_path(r, &path, s) : copy(r, s);
                if (field->name)
                        field->kind = file ? SECRET_SOURCE_FILE : SECRET_SOURCE_SYSTEMD_CREDENTIAL;
        }
}

static void read_secret(ConfigReader *r, const ConfigKey *key, JsonNode *node, SecretSource *field) {
        if (is_text(node)) {
                read_inline_secret(r, key, node, field);
                return;
        }
        JsonObject *object = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
        GList *members = object ? json_object_get_members(object) : NULL;
        const char *member = members ? members->data : "";
        if (!members || members->next || (!streq(member, "file") && !streq(member, "systemdCredential")))
                config_problem(r, "must be a text, {\"file\": PATH} or {\"systemdCredential\": NAME}, not %s",
                               object ? "another object" : json_kind(node));
        else {
                size_t mark = config_enter(r, member);
                const char *s = expect_text(r, json_object_get_member(object, member));
                if (s)
                        read_secret_member(r, member, s, field);
                config_leave(r, mark);
        }
        g_list_free(members);
}

static void read_text(ConfigReader *r, const ConfigKey *key, JsonNode *node, void *field) {
        const char *s = expect_text(r, node);
        char *text = !s                         ? NULL
                     : key->type == CONFIG_PATH ? checked_path(r, key, s)
                                                : checked_text(r, key, s, key->max ? key->max : TEXT_MAX);

        if (!field)
                free(text);
        else if (text) {
                free(*(char **) field); /* a default */
                *(char **) field = text;
        }
}

void config_read_value(ConfigReader *r, const ConfigKey *key, JsonNode *node, void *base) {
        void *field = key->offset == NO_OFFSET ? NULL : (char *) base + key->offset;

        switch (key->type) {
        case CONFIG_OBJECT:
                if (field)
                        *(bool *) field = true;
                return config_read_object(r, key->children, key->n_children, node, base, config_unknown);
        case CONFIG_BOOL:
                return read_bool(r, node, field);
        case CONFIG_COUNT:
                return read_count(r, key, node, 1, field);
        case CONFIG_MSEC:
                return read_count(r, key, node, USEC_PER_MSEC, field);
        case CONFIG_BYTES:
                return read_bytes(r, key, node, field);
        case CONFIG_CPUS:
                return read_cpus(r, key, node, field);
        case CONFIG_WORD:
                return read_word(r, key, node, field);
        case CONFIG_TEXT:
        case CONFIG_PATH:
                return read_text(r, key, node, field);
        case CONFIG_TEXTS:
        case CONFIG_PATHS:
        case CONFIG_HOSTS:
                return read_list(r, key, node, field);
        case CONFIG_INTERNAL:
                return read_internal(r, key, node, field);
        case CONFIG_PORTS:
                return read_ports(r, key, node, &((Config *) base)->sandbox);
        case CONFIG_ENV:
                return read_env(r, key, node, field);
        case CONFIG_SECRET:
                return read_secret(r, key, node, field);
        case CONFIG_PROVIDERS:
                return config_read_providers(r, node, field);
        case CONFIG_CAPABILITIES:
                return config_read_capabilities(r, node, base);
        }
}

static void set_default(ConfigReader *r, const ConfigKey *key, void *base) {
        void *field = (char *) base + key->offset;
        uint64_t value = 0;

        switch (key->type) {
        case CONFIG_BOOL:
                *(bool *) field = streq(key->fallback, "true");
                break;
        case CONFIG_BYTES:
                (void) parse_bytes(key->fallback, field);
                break;
        case CONFIG_COUNT:
        case CONFIG_MSEC:
        case CONFIG_CPUS:
                (void) parse_u64(key->fallback, UINT32_MAX, &value);
                *(uint64_t *) field = value * (key->type == CONFIG_MSEC   ? USEC_PER_MSEC
                                               : key->type == CONFIG_CPUS ? CONFIG_CPUS_SCALE
                                                                          : 1);
                break;
        case CONFIG_WORD:
                *(int *) field = (int) find_word(key, key->fallback);
                break;
        case CONFIG_PATH:
                if (r->mode != CONFIG_SYSTEM)
                        break;
                __attribute__((fallthrough));
        case CONFIG_TEXT:
                *(char **) field = copy(r, key->fallback);
                break;
        case CONFIG_PORTS: {
                ConfigSandbox *sandbox = &((Config *) base)->sandbox;
                sandbox->ports = calloc(key->max, sizeof(uint16_t));
                if (!sandbox->ports)
                        r->error = -ENOMEM;
                else if (parse_port(key->fallback, sandbox->ports) >= 0)
                        sandbox->n_ports = 1;
                break;
        }
        default: /* the rest has none */
                break;
        }
}

void config_set_defaults(ConfigReader *r, const ConfigKey *keys, size_t n_keys, void *base) {
        for (size_t i = 0; i < n_keys; i++) {
                if (keys[i].fallback && keys[i].type != CONFIG_INTERNAL)
                        set_default(r, &keys[i], base);
                if (keys[i].type == CONFIG_OBJECT)
                        config_set_defaults(r, keys[i].children, keys[i].n_children, base);
        }
}
