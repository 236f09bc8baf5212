/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <limits.h>

#include "bailey/policy-file.h"
#include "bailey/toml.h"
#include "basic/parse.h"
#include "basic/path.h"
#include "basic/text.h"

/* Caps that no hand-written policy meets; a generated one that does should grant directories instead. */
#define RULES_MAX 4096U
#define VARIABLES_MAX 1024U
#define CPU_PERCENT_MAX (100U * 1024U)

typedef struct Reader {
        const PolicyText *text;
        Findings *findings;
        Layer *layer;
} Reader;

typedef struct Key {
        const char *table, *name; /* table "": top level */
        int (*read)(Reader *r, const struct Key *key, const TomlValue *v);
        TomlType type;
        unsigned argument; /* rights, or the limit's or flag's offset in Layer */
} Key;

/* "FILE:LINE:COLUMN: table.key: text" */
static void problem(Reader *r, const Key *key, const TomlValue *v, const char *format, ...) _printf_(4, 5);
static void problem(Reader *r, const Key *key, const TomlValue *v, const char *format, ...) {
        _cleanup_free_ char *text = string_format_own(format);

        if (!text)
                r->findings->oom = true;
        else
                finding_error(r->findings, "%s:%u:%u: %s%s%s: %s", r->text->name, v->line, v->column, key->table,
                              *key->table ? "." : "", key->name, text);
}

/* The absolute form of a path of this file; NULL after a problem, or where a bundled profile names what is not there. */
static char *read_path(Reader *r, const Key *key, const TomlValue *v) {
        _cleanup_free_ char *expanded = NULL, *text = NULL;
        char *path = NULL;

        int e = policy_path_expand(v->string, r->text->places, &expanded, &text);
        if (e >= 0)
                e = policy_path_place(expanded, r->text->base, &path, &text);
        if (e == -ENOENT && r->text->kind == POLICY_BUNDLED)
                return NULL;
        if (e < 0 && text)
                problem(r, key, v, "%s", text);
        else if (e < 0)
                r->findings->oom = true;
        return path;
}

static void check_conflict(Reader *r, const Key *key, const TomlValue *v, const LayerRule *rule) {
        if (rule->deny && rule->rights)
                problem(r, key, v, "%s is granted in line %u and denied in line %u; remove one of them", rule->path,
                        rule->grant_line, rule->deny_line);
        else if (rule->deny && rule->read_only)
                problem(r, key, v, "%s is read-only in line %u and denied in line %u; remove one of them", rule->path,
                        rule->read_only_line, rule->deny_line);
        else if (rule->read_only && (rule->rights & RIGHT_WRITE))
                problem(r, key, v, "%s is writable in line %u and read-only in line %u; remove one of them", rule->path,
                        rule->write_line, rule->read_only_line);
}

enum { PATHS_DENY = 1 << 8, PATHS_READ_ONLY = 1 << 9, FOR_PROFILES = 1 << 10 };

static int add_place(Reader *r, const Key *key, const TomlValue *v, const char *path, bool device) {
        if (r->layer->n_rules >= RULES_MAX) {
                problem(r, key, v, "more than %u paths", RULES_MAX);
                return 0;
        }
        LayerRule *rule = layer_rule(r->layer, path);
        if (!rule)
                return -ENOMEM;

        rule->device |= device;
        if (key->argument == PATHS_DENY) {
                rule->deny = true;
                rule->deny_line = rule->deny_line ?: v->line;
        } else if (key->argument == PATHS_READ_ONLY) {
                rule->read_only = true;
                rule->read_only_line = rule->read_only_line ?: v->line;
        } else {
                rule->rights |= key->argument;
                rule->grant_line = rule->grant_line ?: v->line;
                if (key->argument & RIGHT_WRITE)
                        rule->write_line = rule->write_line ?: v->line;
        }
        check_conflict(r, key, v, rule);
        return 0;
}

static int add_path(Reader *r, const Key *key, const TomlValue *v) {
        _cleanup_free_ char *path = read_path(r, key, v);
        return path ? add_place(r, key, v, path, false) : 0;
}

/* One [[device]]: a device, or a directory of them. */
static int read_device(Reader *r, const Key *key, const TomlValue *v) {
        const TomlValue *path = NULL;
        PathRights rights = RIGHT_READ | RIGHT_WRITE;

        for (size_t i = 0; i < v->n_items; i++) {
                const TomlValue *item = &v->items[i];
                if (streq(item->key, "path") && item->type == TOML_STRING)
                        path = item;
                else if (streq(item->key, "access") && item->type == TOML_STRING && streq(item->string, "r"))
                        rights = RIGHT_READ;
                else if (streq(item->key, "access") && item->type == TOML_STRING && streq(item->string, "rw"))
                        rights = RIGHT_READ | RIGHT_WRITE;
                else if (streq(item->key, "path") || streq(item->key, "access")) {
                        problem(r, key, item, "%s", streq(item->key, "path") ? "path wants a string" :
                                "access wants \"r\" or \"rw\"");
                        return 0;
                } else {
                        problem(r, key, item, "unknown key \"%s\"; here stand path, access", item->key);
                        return 0;
                }
        }
        if (!path) {
                problem(r, key, v, "wants a path");
                return 0;
        }
        _cleanup_free_ char *place = read_path(r, key, path);
        if (!place)
                return 0;
        if (!path_beneath(place, "/dev") || streq(place, "/dev")) {
                problem(r, key, path, "%s is not in /dev", place);
                return 0;
        }
        const Key as = {.table = "", .name = "device", .argument = rights};
        return add_place(r, &as, path, place, true);
}

static int read_devices(Reader *r, const Key *key, const TomlValue *v) {
        if (v->type != TOML_ARRAY) {
                problem(r, key, v, "each device is a table of its own; write [[device]]");
                return 0;
        }
        for (size_t i = 0; i < v->n_items; i++) {
                if (v->items[i].type != TOML_TABLE) {
                        problem(r, key, &v->items[i], "wants tables, not %s; write [[device]]", toml_type_to_string(v->items[i].type));
                        continue;
                }
                int e = read_device(r, key, &v->items[i]);
                if (e < 0)
                        return e;
        }
        return 0;
}

/* Calls `one` for each member of a list of strings. */
static int each_string(Reader *r, const Key *key, const TomlValue *v,
                       int (*one)(Reader *r, const Key *key, const TomlValue *v)) {
        for (size_t i = 0; i < v->n_items; i++) {
                const TomlValue *item = &v->items[i];
                if (item->type != TOML_STRING) {
                        problem(r, key, item, "wants strings in its list, not %s", toml_type_to_string(item->type));
                        continue;
                }
                int e = one(r, key, item);
                if (e < 0)
                        return e;
        }
        return 0;
}

static int read_paths(Reader *r, const Key *key, const TomlValue *v) {
        return each_string(r, key, v, add_path);
}

static int read_flag(Reader *r, const Key *key, const TomlValue *v) {
        *(bool *) ((char *) r->layer + key->argument) = v->boolean;
        return 0;
}

static int read_egress(Reader *r, const Key *key, const TomlValue *v) {
        if (!streq(v->string, "deny") && !streq(v->string, "allow")) {
                problem(r, key, v, "\"%s\" is neither \"deny\" nor \"allow\"", v->string);
                return 0;
        }
        r->layer->egress_said = true;
        r->layer->egress_allow = streq(v->string, "allow");
        r->layer->egress_line = v->line;
        return 0;
}

/* "PORT", "HOST:PORT", "ADDRESS/BITS:PORT", "[V6]:PORT"; the host is advisory, so only its characters are looked at. */
static bool egress_destination_valid(const char *s) {
        const char *colon = strrchr(s, ':'), *port = colon ? colon + 1 : s;
        uint16_t number;

        if (parse_port(port, &number) < 0)
                return false;
        size_t host = colon ? (size_t) (colon - s) : 1;
        for (size_t i = 0; colon && i < host; i++)
                if (!ascii_alpha(s[i]) && !ascii_digit(s[i]) && !strchr(".-_*/[]:", s[i]))
                        return false;
        return host > 0;
}

static int add_egress(Reader *r, const Key *key, const TomlValue *v) {
        if (!egress_destination_valid(v->string)) {
                problem(r, key, v, "\"%s\" is not a destination; write \"PORT\" or \"HOST:PORT\"", v->string);
                return 0;
        }
        return strv_extend(&r->layer->egress_hosts, v->string);
}

static int read_egress_allow(Reader *r, const Key *key, const TomlValue *v) {
        return each_string(r, key, v, add_egress);
}

static int read_bind_ports(Reader *r, const Key *key, const TomlValue *v) {
        for (size_t i = 0; i < v->n_items; i++) {
                const TomlValue *item = &v->items[i];
                if (item->type != TOML_INTEGER || item->integer < 1 || item->integer > UINT16_MAX) {
                        problem(r, key, item, "wants port numbers of 1 to 65535 in its list");
                        continue;
                }
                uint16_t *grown = reallocarray(r->layer->bind_ports, r->layer->n_bind_ports + 1, sizeof(uint16_t));
                if (!grown)
                        return -ENOMEM;
                grown[r->layer->n_bind_ports++] = (uint16_t) item->integer;
                r->layer->bind_ports = grown;
        }
        return 0;
}

static int add_variable(Reader *r, const Key *key, const TomlValue *at, const char *name, const char *value, VariableRule rule) {
        Layer *l = r->layer;

        if (!variable_name_valid(name, strlen(name)))
                problem(r, key, at, "\"%s\" is not a variable's name", name);
        else if (startswith(name, "BAILEY_SANDBOX"))
                problem(r, key, at, "%s is set by bailey itself", name);
        else if (l->n_variables >= VARIABLES_MAX)
                problem(r, key, at, "more than %u variables", VARIABLES_MAX);
        else {
                for (size_t i = 0; i < l->n_variables; i++)
                        if (streq(l->variables[i].name, name)) {
                                problem(r, key, at, "%s is named twice, in lines %u and %u; remove one of them", name,
                                        l->variables[i].line, at->line);
                                return 0;
                        }
                LayerVariable *grown = reallocarray(l->variables, l->n_variables + 1, sizeof(LayerVariable));
                if (!grown)
                        return -ENOMEM;
                l->variables = grown;
                LayerVariable *v = &l->variables[l->n_variables++];
                *v = (LayerVariable){
                        .name = strdup(name), .value = value ? strdup(value) : NULL, .rule = rule, .line = at->line};
                if (!v->name || (value && !v->value))
                        return -ENOMEM;
        }
        return 0;
}

static int add_named_variable(Reader *r, const Key *key, const TomlValue *v) {
        return add_variable(r, key, v, v->string, NULL, (VariableRule) key->argument);
}

static int read_variables(Reader *r, const Key *key, const TomlValue *v) {
        return each_string(r, key, v, add_named_variable);
}

static int read_set(Reader *r, const Key *key, const TomlValue *v) {
        for (size_t i = 0; i < v->n_items; i++) {
                const TomlValue *item = &v->items[i];
                if (item->type != TOML_STRING) {
                        problem(r, key, item, "%s wants a string, not %s", item->key, toml_type_to_string(item->type));
                        continue;
                }
                int e = add_variable(r, key, item, item->key, item->string, VARIABLE_SET);
                if (e < 0)
                        return e;
        }
        return 0;
}

static int read_bytes(Reader *r, const Key *key, const TomlValue *v) {
        uint64_t *limit = (uint64_t *) (void *) ((char *) r->layer + key->argument), bytes = 0;

        bool none = key->argument == offsetof(Layer, limits.core_bytes); /* may be */
        if (v->type == TOML_INTEGER && v->integer >= !none)
                bytes = (uint64_t) v->integer;
        else if (v->type != TOML_STRING || parse_bytes(v->string, &bytes) < 0 || (bytes == 0 && !none)) {
                if (v->type == TOML_STRING)
                        problem(r, key, v, "\"%s\" is not a size; write \"512m\", \"4g\" or a number of bytes", v->string);
                else
                        problem(r, key, v, "wants a size such as \"512m\" or a number of bytes");
                return 0;
        }
        *limit = bytes;
        return 0;
}

static int read_count(Reader *r, const Key *key, const TomlValue *v) {
        uint64_t *limit = (uint64_t *) (void *) ((char *) r->layer + key->argument);
        int64_t max = key->argument == offsetof(Layer, limits.cpu_percent) ? CPU_PERCENT_MAX : INT32_MAX;

        if (v->integer < 1 || v->integer > max)
                problem(r, key, v, "%lld is not between 1 and %lld", (long long) v->integer, (long long) max);
        else
                *limit = (uint64_t) v->integer;
        return 0;
}

static int read_home(Reader *r, const Key *key, const TomlValue *v) {
        free(r->layer->home);
        r->layer->home = read_path(r, key, v);
        r->layer->home_line = v->line;
        return 0;
}

static int read_description(Reader *r, const Key *key, const TomlValue *v) {
        (void) key;
        free(r->layer->description);
        r->layer->description = strdup(v->string);
        return r->layer->description ? 0 : -ENOMEM;
}

static int add_applies_to(Reader *r, const Key *key, const TomlValue *v) {
        if (v->string[0] != '/' && v->string[0] != '~' && !startswith(v->string, "${")) {
                problem(r, key, v, "\"%s\" is not an absolute path; any program could take that name", v->string);
                return 0;
        }
        char *path = read_path(r, key, v);
        return path ? strv_consume(&r->layer->applies_to, path) : 0;
}

static int read_applies_to(Reader *r, const Key *key, const TomlValue *v) {
        return each_string(r, key, v, add_applies_to);
}

/* TOML_OTHER: more than one type will do, the reader looks. */
static const Key keys[] = {
        {"", "home", read_home, TOML_STRING, 0},
        {"", "device", read_devices, TOML_OTHER, 0},
        {"", "description", read_description, TOML_STRING, FOR_PROFILES},
        {"", "applies_to", read_applies_to, TOML_ARRAY, FOR_PROFILES},
        {"filesystem", "read", read_paths, TOML_ARRAY, RIGHT_READ},
        {"filesystem", "write", read_paths, TOML_ARRAY, RIGHT_READ | RIGHT_WRITE},
        {"filesystem", "execute", read_paths, TOML_ARRAY, RIGHT_READ | RIGHT_EXECUTE},
        {"filesystem", "deny", read_paths, TOML_ARRAY, PATHS_DENY},
        {"filesystem", "read_only", read_paths, TOML_ARRAY, PATHS_READ_ONLY},
        {"filesystem", "reset", read_flag, TOML_BOOLEAN, offsetof(Layer, reset_filesystem)},
        {"network", "egress", read_egress, TOML_STRING, 0},
        {"network", "egress_allow", read_egress_allow, TOML_ARRAY, 0},
        {"network", "bind_ports", read_bind_ports, TOML_ARRAY, 0},
        {"network", "reset", read_flag, TOML_BOOLEAN, offsetof(Layer, reset_network)},
        {"env", "pass", read_variables, TOML_ARRAY, VARIABLE_PASS},
        {"env", "set", read_set, TOML_TABLE, 0},
        {"env", "deny", read_variables, TOML_ARRAY, VARIABLE_DENY},
        {"env", "reset", read_flag, TOML_BOOLEAN, offsetof(Layer, reset_environment)},
        {"resources", "memory", read_bytes, TOML_OTHER, offsetof(Layer, limits.memory_bytes)},
        {"resources", "pids_max", read_count, TOML_INTEGER, offsetof(Layer, limits.pids_max)},
        {"resources", "cpu_percent", read_count, TOML_INTEGER, offsetof(Layer, limits.cpu_percent)},
        {"resources", "tmp_size", read_bytes, TOML_OTHER, offsetof(Layer, limits.tmp_bytes)},
        {"resources", "shm_size", read_bytes, TOML_OTHER, offsetof(Layer, limits.shm_bytes)},
        {"resources", "file_size", read_bytes, TOML_OTHER, offsetof(Layer, limits.file_bytes)},
        {"resources", "core_size", read_bytes, TOML_OTHER, offsetof(Layer, limits.core_bytes)},
        {"resources", "files_max", read_count, TOML_INTEGER, offsetof(Layer, limits.files_max)},
        {"resources", "reset", read_flag, TOML_BOOLEAN, offsetof(Layer, reset_resources)},
};

/* A key that only profiles have stands in no other file. */
static bool key_stands_in(const Key *key, const Reader *r) {
        return key->argument != FOR_PROFILES || r->text->kind != POLICY_FILE;
}

static bool is_table(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (*name && streq(keys[i].table, name))
                        return true;
        return false;
}

/* The names that stand in `table`, "" for the top level, "[x]" for a table: the nearest one to name, and all as text. */
static const char *known_names(const Reader *r, const char *table, const char *name, unsigned *ret_distance, char *ret_all, size_t size) {
        const char *best = "", *last = "";

        *ret_distance = UINT_MAX;
        ret_all[0] = 0;
        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                bool here = streq(keys[i].table, table);
                const char *candidate = here ? keys[i].name : keys[i].table;
                if ((!here && *table) || streq(candidate, last) || !key_stands_in(&keys[i], r))
                        continue;
                last = candidate;
                unsigned d = string_distance(name, candidate);
                size_t n = strlen(ret_all);
                (void) snprintf(ret_all + n, size - n, !here ? "%s[%s]" : keys[i].read == read_devices ? "%s[[%s]]" : "%s%s",
                                n > 0 ? ", " : "", candidate);
                if (d < *ret_distance) {
                        *ret_distance = d;
                        best = candidate;
                }
        }
        return best;
}

static void unknown(Reader *r, const char *table, const TomlValue *v) {
        const Key key = {.table = table, .name = v->key};

        for (size_t i = 0; i < ELEMENTSOF(keys); i++)
                if (streq(keys[i].name, v->key) && v->type != TOML_TABLE && key_stands_in(&keys[i], r) &&
                    keys[i].read != read_devices) {
                        problem(r, &key, v, "unknown key; \"%s\" belongs %s%s%s", v->key, *keys[i].table ? "under [" : "",
                                *keys[i].table ? keys[i].table : "before the first table", *keys[i].table ? "]" : "");
                        return;
                }
        char all[256];
        unsigned distance;
        const char *nearest = known_names(r, table, v->key, &distance, all, sizeof(all));
        const char *kind = v->type == TOML_TABLE ? "table" : "key";
        if (string_distance_near(v->key, distance))
                problem(r, &key, v, "unknown %s; did you mean \"%s\"?", kind, nearest);
        else
                problem(r, &key, v, "unknown %s; here stand %s", kind, all);
}

static int read_table(Reader *r, const char *table, const TomlValue *values) {
        for (size_t i = 0; i < values->n_items; i++) {
                const TomlValue *v = &values->items[i];
                const Key *key = NULL;
                int e = 0;

                for (size_t k = 0; k < ELEMENTSOF(keys); k++)
                        if (streq(keys[k].table, table) && streq(keys[k].name, v->key))
                                key = &keys[k];
                if (key && !key_stands_in(key, r)) {
                        problem(r, key, v, "stands in profiles only");
                        continue;
                }

                if (key && key->type != TOML_OTHER && key->type != v->type)
                        problem(r, key, v, "wants %s, not %s", toml_type_to_string(key->type), toml_type_to_string(v->type));
                else if (key)
                        e = key->read(r, key, v);
                else if (!*table && is_table(v->key) && v->type == TOML_TABLE)
                        e = read_table(r, v->key, v);
                else if (!*table && is_table(v->key))
                        problem(r, &(Key){.table = "", .name = v->key}, v, "is a table; write [%s]", v->key);
                else
                        unknown(r, table, v);
                if (e < 0)
                        return e;
        }
        return 0;
}

int policy_file_parse(const PolicyText *text, Findings *findings, Layer **ret) {
        _cleanup_(layer_freep) Layer *layer = layer_new(text->name);
        unsigned before = findings_count(findings);
        TomlValue *document = NULL;
        TomlProblem trouble;

        if (!layer)
                return -ENOMEM;
        layer->from_file = true;
        layer->bundled = text->kind == POLICY_BUNDLED;

        int r = toml_parse(text->text, text->size, &document, &trouble);
        if (r == -EBADMSG) {
                finding_error(findings, "%s:%u:%u: %s", text->name, trouble.line, trouble.column, trouble.text);
                return 0;
        }
        if (r < 0)
                return r;

        Reader reader = {.text = text, .findings = findings, .layer = layer};
        r = read_table(&reader, "", document);
        toml_free(document);
        if (r < 0)
                return r;
        if (layer->egress_said && !layer->egress_allow && layer->egress_hosts)
                finding_error(findings, "%s:%u:1: network.egress: is \"deny\", but network.egress_allow lists destinations; "
                              "remove one of them", text->name, layer->egress_line);
        if (findings_count(findings) == before)
                *ret = TAKE_PTR(layer);
        return 0;
}
