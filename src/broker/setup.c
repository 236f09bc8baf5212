/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "broker/limits.h"
#include "broker/setup-provider.h"
#include "shared/session-id.h"

#define TOKEN_SIZE 64U
#define DEFAULT_PORT 443U /* all that a provider needs */

Setup *setup_free(Setup *s) {
        if (!s)
                return NULL;
        free(s->session);
        secret_free(s->token);
        secret_free(s->credential);
        free(s->allow);
        free(s->allow_internal);
        free(s->ports);
        free(s->budget);
        for (size_t i = 0; i < s->n_providers; i++)
                provider_done(s->providers + i);
        free(s->providers);
        safe_close(s->spool);
        return mfree(s);
}

/* The known name that was probably meant, or NULL. */
static const char *nearest(const char *name, const char *const *known) {
        const char *best = NULL;
        unsigned least = 4;

        for (; *known; known++) {
                unsigned distance = string_distance(name, *known);
                if (distance < least && distance < strlen(*known)) {
                        least = distance;
                        best = *known;
                }
        }
        return best;
}

static bool is_known(const char *name, const char *const *known) {
        for (; *known; known++)
                if (streq(name, *known))
                        return true;
        return false;
}

int setup_check_members(JsonObject *o, const char *where, const char *const *known, char **ret_problem) {
        JsonObjectIter iter;
        const char *name;
        JsonNode *node;

        json_object_iter_init(&iter, o);
        while (json_object_iter_next(&iter, &name, &node)) {
                if (is_known(name, known))
                        continue;
                const char *meant = nearest(name, known);
                return problem_set(ret_problem, "\"%s%.64s\" is not known%s%s%s", where, name, meant ? "; did you mean \"" : "", meant ?: "",
                                   meant ? "\"?" : "");
        }
        return 0;
}

static int parse_identity(Setup *s, JsonObject *o, char **ret_problem) {
        const char *session, *token;

        if (json_get_string(o, "session", &session) < 0 || !session_id_valid(session))
                return problem_set(ret_problem, "\"session\" is missing or not 1 to 28 of a-z and 0-9");
        if (json_get_string(o, "token", &token) < 0 || strlen(token) != TOKEN_SIZE || strspn(token, "0123456789abcdef") != TOKEN_SIZE)
                return problem_set(ret_problem, "\"token\" is missing or not 64 hexadecimal digits");
        s->session = strdup(session);
        return s->session ? secret_new(token, TOKEN_SIZE, &s->token) : -ENOMEM;
}

/* An array member of "egress", or NULL with *ret_n = 0 when it is left out. */
static int get_list(JsonObject *egress, const char *name, size_t max, JsonArray **ret, size_t *ret_n, char **ret_problem) {
        int r = json_get_array(egress, name, ret);

        if (r == -ENOENT) {
                *ret = NULL;
                *ret_n = 0;
                return 0;
        }
        if (r < 0)
                return problem_set(ret_problem, "\"egress.%s\" is not a list", name);
        *ret_n = json_array_get_length(*ret);
        return *ret_n > max ? problem_set(ret_problem, "\"egress.%s\" has more than %zu entries", name, max) : 0;
}

static const char *get_text(JsonArray *list, size_t i) {
        JsonNode *node = json_array_get_element(list, (guint) i);
        return JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_STRING ? json_node_get_string(node) : NULL;
}

static int parse_allow(Setup *s, JsonObject *egress, char **ret_problem) {
        JsonArray *list;
        size_t n;

        int r = get_list(egress, "allow", PATTERNS_MAX, &list, &n, ret_problem);
        if (r < 0)
                return r;
        s->allow = calloc(MAX(n, (size_t) 1), sizeof(HostPattern));
        if (!s->allow)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const char *text = get_text(list, i), *problem = NULL;
                if (!text)
                        return problem_set(ret_problem, "\"egress.allow[%zu]\" is not a string", i);
                if (host_pattern_parse(text, s->allow + i, &problem) < 0)
                        return problem_set(ret_problem, "\"egress.allow[%zu]\" (%.64s): %s", i, text, problem);
                s->n_allow++;
        }
        return 0;
}

static int parse_allow_internal(Setup *s, JsonObject *egress, char **ret_problem) {
        JsonArray *list;
        size_t n;

        if (json_get_bool(egress, "allowInternal", &s->allow_internal_any) >= 0)
                return 0;
        int r = get_list(egress, "allowInternal", PATTERNS_MAX, &list, &n, ret_problem);
        if (r < 0)
                return r;
        s->allow_internal = calloc(MAX(n, (size_t) 1), sizeof(Address));
        if (!s->allow_internal)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                const char *text = get_text(list, i);
                Address *a = s->allow_internal + i;
                if (!text)
                        return problem_set(ret_problem, "\"egress.allowInternal[%zu]\" is not a string", i);
                if (address_parse(text, a) < 0)
                        return problem_set(ret_problem, "\"egress.allowInternal[%zu]\" (%.64s) is not an address in its plain form", i, text);
                const char *what = address_classify(a);
                if (address_never_opened(what))
                        return problem_set(ret_problem, "\"egress.allowInternal[%zu]\" (%.64s) is %s; it is never opened", i, text, what);
                s->n_allow_internal++;
        }
        return 0;
}

static int set_default_port(Setup *s) {
        s->ports = malloc(sizeof(uint16_t));
        if (!s->ports)
                return -ENOMEM;
        s->ports[0] = DEFAULT_PORT;
        s->n_ports = 1;
        return 0;
}

static int parse_ports(Setup *s, JsonObject *egress, char **ret_problem) {
        JsonArray *list;
        size_t n;

        int r = get_list(egress, "ports", UINT16_MAX, &list, &n, ret_problem);
        if (r < 0)
                return r;
        if (!list)
                return set_default_port(s);
        s->ports = calloc(MAX(n, (size_t) 1), sizeof(uint16_t));
        if (!s->ports)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++) {
                JsonNode *node = json_array_get_element(list, (guint) i);
                gint64 port = JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_INT64 ? json_node_get_int(node) : 0;
                if (port < 1 || port > UINT16_MAX)
                        return problem_set(ret_problem, "\"egress.ports[%zu]\" is not a number from 1 to 65535", i);
                s->ports[s->n_ports++] = (uint16_t) port;
        }
        return 0;
}

static int parse_server_name(Setup *s, JsonObject *egress, char **ret_problem) {
        const char *word;

        int r = json_get_string(egress, "serverName", &word);
        if (r == -ENOENT)
                return 0;
        s->enforce_server_name = r >= 0 && streq(word, "enforce");
        return r < 0 || (!s->enforce_server_name && !streq(word, "log"))
                       ? problem_set(ret_problem, "\"egress.serverName\" is neither \"log\" nor \"enforce\"") : 0;
}

static int parse_egress(Setup *s, JsonObject *o, char **ret_problem) {
        static const char *const members[] = {"allow", "allowInternal", "ports", "serverName", NULL};
        JsonObject *egress;

        int r = json_get_object(o, "egress", &egress);
        if (r == -ENOENT) {
                /* Only a block left out altogether opens every host. */
                s->allow = calloc(1, sizeof(HostPattern));
                if (!s->allow)
                        return -ENOMEM;
                s->allow[0].kind = PATTERN_ANY;
                s->n_allow = 1;
                return set_default_port(s);
        }
        if (r < 0)
                return problem_set(ret_problem, "\"egress\" is not an object");
        r = setup_check_members(egress, "egress.", members, ret_problem);
        if (r >= 0)
                r = parse_allow(s, egress, ret_problem);
        if (r >= 0)
                r = parse_allow_internal(s, egress, ret_problem);
        if (r >= 0)
                r = parse_server_name(s, egress, ret_problem);
        return r < 0 ? r : parse_ports(s, egress, ret_problem);
}

static int parse_providers(Setup *s, Message *m, Keys *keys, char **ret_problem) {
        JsonObject *providers;
        JsonObjectIter iter;
        const char *id;
        JsonNode *node;

        int r = json_get_object(message_object(m), "providers", &providers);
        if (r == -EINVAL)
                return problem_set(ret_problem, "\"providers\" is not an object");
        size_t n = r < 0 ? 0 : json_object_get_size(providers);
        if (n > PROVIDERS_MAX)
                return problem_set(ret_problem, "\"providers\" names more than %u", PROVIDERS_MAX);
        s->providers = calloc(MAX(n, (size_t) 1), sizeof(Provider));
        if (!s->providers)
                return -ENOMEM;
        if (n > 0)
                json_object_iter_init(&iter, providers);
        while (s->n_providers < n && json_object_iter_next(&iter, &id, &node)) {
                if (!provider_id_valid(id, strlen(id)))
                        return problem_set(ret_problem, "\"providers.%.64s\": the id is not 1 to 32 of a-z, 0-9 and '-'", id);
                if (!JSON_NODE_HOLDS_OBJECT(node))
                        return problem_set(ret_problem, "\"providers.%s\" is not an object", id);
                r = setup_parse_provider(s, m, json_node_get_object(node), id, keys, s->providers + s->n_providers++, ret_problem);
                if (r < 0)
                        return r;
        }
        for (size_t i = 0; i < keys->n_entries; i++)
                if (keys->entries[i].key)
                        return problem_set(ret_problem, "keys has an entry for a provider that \"providers\" does not name");
        return 0;
}

/* The CA files were taken by their providers: any left has none. */
static int check_fds(Setup *s, Message *m, char **ret_problem) {
        JsonArray *names;

        if (json_get_array(message_object(m), "fds", &names) < 0)
                return 0;
        for (guint i = 0; i < json_array_get_length(names); i++) {
                const char *name = json_array_get_string_element(names, i), *ca = startswith(name, "ca:");
                if (streq(name, "keys") || streq(name, "spool") || (ca && setup_find_provider(s, (Slice){ca, strlen(ca)})))
                        continue;
                return problem_set(ret_problem, "\"%.64s\" in \"fds\" is neither \"keys\" nor \"spool\" nor \"ca:\" and a provider's id", name);
        }
        return 0;
}

static int take_spool(Setup *s, Message *m, char **ret_problem) {
        struct stat st;

        s->spool = message_take_fd(m, "spool");
        if (s->spool < 0) {
                s->spool = -EBADF;
                return 0;
        }
        int flags = fcntl(s->spool, F_GETFL);
        if (flags < 0 || fstat(s->spool, &st) < 0)
                return -errno;
        /* Appending, so that a broker that was started again does not write over what is there. */
        if (!S_ISREG(st.st_mode) || (flags & O_ACCMODE) == O_RDONLY || !(flags & O_APPEND))
                return problem_set(ret_problem, "\"spool\" in \"fds\" is not a regular file open for appending");
        return 0;
}

static int take_keys(Message *m, Keys **ret, char **ret_problem) {
        _cleanup_close_ int fd = message_take_fd(m, "keys");

        return fd < 0 ? problem_set(ret_problem, "\"keys\" is missing in \"fds\"") : keys_read(fd, ret, ret_problem);
}

int setup_parse(Message *m, Setup **ret, char **ret_problem) {
        static const char *const members[] = {"v", "type", "serial", "session", "token", "fds", "egress", "budgets", "providers", NULL};
        _cleanup_(setup_freep) Setup *s = calloc(1, sizeof(Setup));
        _cleanup_(keys_freep) Keys *keys = NULL;
        JsonObject *o = message_object(m);

        if (!s)
                return -ENOMEM;
        s->spool = -EBADF;
        if (!streq(message_type(m), "setup"))
                return problem_set(ret_problem, "the message is not a setup");

        int r = setup_check_members(o, "", members, ret_problem);
        if (r >= 0)
                r = parse_identity(s, o, ret_problem);
        if (r >= 0)
                r = parse_egress(s, o, ret_problem);
        if (r >= 0)
                r = setup_parse_budgets(o, "", &s->budget, ret_problem);
        if (r >= 0)
                r = take_keys(m, &keys, ret_problem);
        if (r >= 0)
                r = parse_providers(s, m, keys, ret_problem);
        if (r >= 0)
                r = check_fds(s, m, ret_problem);
        if (r >= 0)
                r = take_spool(s, m, ret_problem);
        if (r < 0)
                return r;
        s->credential = TAKE_PTR(keys->credential);
        *ret = TAKE_PTR(s);
        return 0;
}

bool setup_port_allowed(const Setup *s, uint16_t port) {
        for (size_t i = 0; i < s->n_ports; i++)
                if (s->ports[i] == port)
                        return true;
        return false;
}

bool setup_internal_allowed(const Setup *s, const Address *a) {
        if (s->allow_internal_any)
                return !address_never_opened(address_classify(a));
        for (size_t i = 0; i < s->n_allow_internal; i++)
                if (address_equal(s->allow_internal + i, a))
                        return true;
        return false;
}

const Provider *setup_find_provider(const Setup *s, Slice id) {
        for (size_t i = 0; i < s->n_providers; i++)
                if (slice_is(id, s->providers[i].id))
                        return s->providers + i;
        return NULL;
}
