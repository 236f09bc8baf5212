/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/stat.h>

#include "basic/io.h"
#include "basic/path.h"
#include "basic/text.h"
#include "errandd/config-keys.h"
#include "errandd/config-values.h"
#include "errandd/host-text.h"
#include "shared/addresses.h"
#include "shared/json-check.h"

Config *config_ref(Config *c) {
        c->n_ref++;
        return c;
}

Config *config_free(Config *c) {
        if (!c || --c->n_ref > 0)
                return NULL;
        free(c->project_root);
        free(c->state_dir);
        strv_free(c->operators);
        strv_free(c->operator_uids);
        strv_free(c->agent.command);
        free(c->agent.provider);
        free(c->agent.model);
        for (size_t i = 0; i < c->agent.n_providers; i++)
                config_provider_done(&c->agent.providers[i]);
        free(c->agent.providers);
        secret_source_done(&c->github.token);
        free(c->github.user_name);
        free(c->github.user_email);
        secret_source_done(&c->github.app.private_key);
        strv_free(c->sandbox.egress.allow);
        strv_free(c->sandbox.egress.internal_list);
        free(c->sandbox.ports);
        free(c->sandbox.image);
        free(c->sandbox.incus.project);
        free(c->sandbox.incus.image);
        free(c->sandbox.incus.golden);
        strv_free(c->sandbox.policy_extra.read);
        strv_free(c->sandbox.policy_extra.write);
        strv_free(c->sandbox.policy_extra.execute);
        strv_free(c->sandbox.env);
        strv_free(c->sandbox.path_extra);
        strv_free(c->warnings);
        strv_free(c->given);
        return mfree(c);
}

const SecretSource *config_secret_source(const Config *c, size_t i) {
        const SecretSource *const others[] = {&c->github.token, &c->github.app.private_key};
        size_t n = c->agent.n_providers;

        return i < n ? &c->agent.providers[i].credential : i - n < ELEMENTSOF(others) ? others[i - n] : NULL;
}

const ConfigProvider *config_find_provider(const Config *c, const char *id) {
        for (size_t i = 0; i < c->agent.n_providers; i++)
                if (streq(c->agent.providers[i].id, id))
                        return &c->agent.providers[i];
        return NULL;
}

const char *backend_to_string(SandboxBackend b) {
        static const char *const names[_BACKEND_MAX] = {"bailey", "podman", "incus"};
        return b >= 0 && b < _BACKEND_MAX ? names[b] : NULL;
}

/* Neither inside the other: a session may write its project, and must never reach the state by it. */
static void check_directories(ConfigReader *r, const Config *c) {
        const char *project = c->project_root, *state = c->state_dir;

        if (!project || !state)
                return;
        if (streq(project, state))
                config_problem(r, "projectRoot and stateDir are the same directory");
        else if (path_beneath(project, state))
                config_problem(r,
                               "projectRoot lies inside stateDir (%s); sessions write their projects, and must not reach the state",
                               config_show(state));
        else if (path_beneath(state, project))
                config_problem(r,
                               "stateDir lies inside projectRoot (%s); sessions write their projects, and must not reach the state",
                               config_show(project));
}

static void check_extra(ConfigReader *r, const char *key, char *const *paths, const char *state) {
        for (unsigned i = 0; state && paths && paths[i]; i++) {
                if (!path_beneath(paths[i], state) && !path_beneath(state, paths[i]))
                        continue;
                size_t mark = config_enter(r, key);
                size_t element = config_enter_index(r, i);
                config_problem(r, "%s reaches stateDir, which holds every session's records", config_show(paths[i]));
                config_leave(r, element);
                config_leave(r, mark);
        }
}

static void check_policy_extra(ConfigReader *r, const Config *c) {
        check_extra(r, "sandbox.policyExtra.read", c->sandbox.policy_extra.read, c->state_dir);
        check_extra(r, "sandbox.policyExtra.write", c->sandbox.policy_extra.write, c->state_dir);
        check_extra(r, "sandbox.policyExtra.execute", c->sandbox.policy_extra.execute, c->state_dir);
}

/* Whether a value was refused, so that it is not called missing as well. */
static bool told(const ConfigReader *r, const char *path) {
        for (char *const *s = r->problems; s && *s; s++)
                if (strstr(*s, path))
                        return true;
        return false;
}

static void check_backend(ConfigReader *r, const Config *c) {
        if (c->sandbox.backend == BACKEND_PODMAN && !c->sandbox.image && !told(r, ": sandbox.image"))
                config_problem(r, "sandbox.backend is \"podman\", which needs sandbox.image");
        if (c->sandbox.backend == BACKEND_INCUS && !c->sandbox.incus.image && !c->sandbox.incus.golden &&
            !told(r, ": sandbox.incus."))
                config_problem(r, "sandbox.backend is \"incus\", which needs sandbox.incus.image or sandbox.incus.golden");
}

/* S203: nothing in sandbox.env decides what the agent authenticates as. */
static void check_environment(ConfigReader *r, const Config *c) {
        for (char *const *line = c->sandbox.env; line && *line; line++)
                for (size_t i = 0; i < c->agent.n_providers; i++) {
                        const char *name = c->agent.providers[i].credential_name;
                        const char *rest = name ? startswith(*line, name) : NULL;
                        if (rest && *rest == '=')
                                config_problem(r, "sandbox.env: %s carries the credential of provider %s and cannot be set", name,
                                               config_show(c->agent.providers[i].id));
                }
}

static void check_agent(ConfigReader *r, const Config *c) {
        if (c->agent.provider && !config_find_provider(c, c->agent.provider))
                config_problem(r, "agent.provider: %s is not defined under agent.providers", config_show(c->agent.provider));
}

static void check_app(ConfigReader *r, const Config *c) {
        if (!c->github.app.given)
                return;
        if (c->github.app.id == 0 && !told(r, ": github.app.id"))
                config_problem(r, "github.app: has no id");
        if (c->github.app.installation == 0 && !told(r, ": github.app.installation"))
                config_problem(r, "github.app: has no installation");
        if (c->github.app.private_key.kind == SECRET_SOURCE_NONE && !told(r, ": github.app.privateKey"))
                config_problem(r, "github.app: has no privateKey");
}

static bool internal_allowed(const ConfigEgress *e, const char *host) {
        return e->allow_internal && (!e->internal_list || strv_contains(e->internal_list, host));
}

/* What the broker would say of a host that is an address, but for the host's own, which errandd may not ask for; NULL: nothing, or it is a name. */
static const char *refused_as(const ConfigEgress *e, const char *host) {
        Address address;

        const char *what = address_parse(host, &address) < 0 ? NULL : address_classify(&address);
        return what && (address_never_opened(what) || !internal_allowed(e, host)) ? what : NULL;
}

/* S085: what the broker will not call is no reason not to start. */
static void warn_of_uncalled(ConfigReader *r, const Config *c) {
        for (size_t i = 0; i < c->agent.n_providers; i++) {
                const ConfigProvider *p = &c->agent.providers[i];
                char host[HOST_TEXT_MAX + 1];

                if (!p->base_url || !config_provider_brokered(p) || !base_url_host(p->base_url, host, sizeof(host)))
                        continue;
                bool tls = startswith(p->base_url, "https://");
                const char *what = refused_as(&c->sandbox.egress, host);
                size_t mark = config_enter(r, "agent.providers");
                size_t inner = config_enter(r, p->id);
                if (!tls && !host_is_loopback_literal(host))
                        config_warning(r, "will not be called: its baseUrl is not https://, and the key travels on every request");
                else if (what && address_never_opened(what))
                        config_warning(r, "will not be called: %s is %s, and never opened", host, what);
                else if (what && host_is_loopback_literal(host))
                        config_warning(r, "will not be called: %sa loopback address also needs sandbox.egress.allowInternal", tls ? "" : "plain http:// to ");
                else if (what)
                        config_warning(r, "will not be called: %s is no public address (%s), and needs sandbox.egress.allowInternal", host, what);
                config_leave(r, inner);
                config_leave(r, mark);
        }
}

static bool on_allowlist(const ConfigEgress *e, const char *host) {
        for (char *const *pattern = e->allow; pattern && *pattern; pattern++)
                if (host_text_covers(*pattern, host))
                        return true;
        return false;
}

/* One that is not brokered is a host as any other, and easily forgotten in the list. */
static void warn_of_unlisted(ConfigReader *r, const Config *c) {
        if (c->sandbox.egress.mode != EGRESS_PROXY || c->sandbox.network == NETWORK_NONE)
                return;
        for (size_t i = 0; i < c->agent.n_providers; i++) {
                const ConfigProvider *p = &c->agent.providers[i];
                char host[HOST_TEXT_MAX + 1];

                if (config_provider_brokered(p) || !p->base_url || !base_url_host(p->base_url, host, sizeof(host)) || on_allowlist(&c->sandbox.egress, host))
                        continue;
                size_t mark = config_enter(r, "agent.providers");
                size_t inner = config_enter(r, p->id);
                config_warning(r, "is not brokered, so that its host is reached as any other, and sandbox.egress.allow does not name it");
                config_leave(r, inner);
                config_leave(r, mark);
        }
}

static void check_together(ConfigReader *r, Config *c) {
        check_directories(r, c);
        check_policy_extra(r, c);
        check_backend(r, c);
        check_environment(r, c);
        check_agent(r, c);
        check_app(r, c);
        warn_of_uncalled(r, c);
        warn_of_unlisted(r, c);
}

static Config *new_config(ConfigReader *r) {
        Config *c = calloc(1, sizeof(Config));

        if (c) {
                c->n_ref = 1;
                config_set_defaults(r, config_keys, n_config_keys, c);
        } else
                r->error = -ENOMEM;
        return c;
}

/* Only a block left out altogether means every host. */
static void finish_egress(ConfigReader *r, Config *c) {
        if (!c->sandbox.egress.given && strv_extend(&c->sandbox.egress.allow, "*") < 0)
                r->error = -ENOMEM;
}

int config_new(ConfigMode mode, Config **ret) {
        ConfigReader r = {.name = "", .mode = mode};
        _cleanup_(config_freep) Config *c = new_config(&r);

        if (c)
                finish_egress(&r, c);
        if (r.error < 0)
                return r.error;
        *ret = TAKE_PTR(c);
        return 0;
}

/* What reading came to; c may be NULL when it did not come to anything. */
static int finish(ConfigReader *r, Config *c, char ***ret_problems) {
        if (r->error < 0 || r->problems || !c) {
                strv_free(r->warnings);
                strv_free(r->given);
        } else {
                c->warnings = r->warnings;
                c->given = r->given;
        }
        if (r->error < 0 || (!c && !r->problems)) {
                strv_free(r->problems);
                return r->error < 0 ? r->error : -ENOMEM;
        }
        if (!r->problems)
                return 0;
        *ret_problems = r->problems;
        return -EBADMSG;
}

static void read_tree(ConfigReader *r, Config *c, const char *text, size_t size) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        JsonProblem problem;
        JsonObject *object;

        int q = json_read_object(text, size, CONFIG_DEPTH_MAX, &parser, &object, &problem);
        if (q == -EBADMSG)
                config_problem(r, "line %u, column %u: %s", problem.line, problem.column, problem.text);
        else if (q < 0)
                r->error = q;
        else {
                config_read_object(r, config_keys, n_config_keys, json_parser_get_root(parser), c, config_unknown);
                finish_egress(r, c);
                check_together(r, c);
        }
}

static int parse(ConfigReader *r, const char *text, size_t size, bool open_to_all, Config **ret, char ***ret_problems) {
        _cleanup_(config_freep) Config *c = new_config(r);

        if (c && size > CONFIG_SIZE_MAX)
                config_problem(r, "is larger than 1 MiB");
        else if (c)
                read_tree(r, c, text, size);
        if (r->inline_secrets && open_to_all)
                config_warning(r,
                               "holds secrets and can be read by every account: chmod o-r it, or keep them in files of their own");
        int q = finish(r, c, ret_problems);
        if (q >= 0)
                *ret = TAKE_PTR(c);
        return q;
}

int config_parse(const char *name, const char *text, size_t size, ConfigMode mode, Config **ret, char ***ret_problems) {
        ConfigReader r = {.name = name, .mode = mode};
        return parse(&r, text, size, false, ret, ret_problems);
}

int config_read_fd(const char *name, int fd, ConfigMode mode, Config **ret, char ***ret_problems) {
        ConfigReader r = {.name = name, .mode = mode};
        char *text = NULL;
        struct stat st;
        size_t size;

        int q = fstat(fd, &st) < 0 ? -errno : S_ISREG(st.st_mode) ? read_fd_full(fd, CONFIG_SIZE_MAX, &text, &size) : -EINVAL;
        if (q == -ENOMEM)
                return q;
        if (q < 0) {
                const char *reason = q == -EFBIG ? "is larger than 1 MiB" : q == -EINVAL ? "is not a regular file" : strerror(-q);
                config_problem(&r, "%s%s", q == -EFBIG || q == -EINVAL ? "" : "cannot be read: ", reason);
                return finish(&r, NULL, ret_problems);
        }
        if (st.st_mode & 0002)
                config_problem(&r, "can be changed by every account, which would decide what sessions may do: chmod o-w it");
        q = parse(&r, text, size, st.st_mode & 0004, ret, ret_problems);
        secret_wipe(text, size);
        free(text);
        return q;
}
