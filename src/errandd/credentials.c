/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/fd.h"
#include "basic/json-writer.h"
#include "basic/text.h"
#include "errandd/credentials.h"

#define STAND_IN_PREFIX "errand-session-"
#define MINTED_BYTES 32U /* 64 hex digits */

static void provider_done(SessionProvider *p) {
        free(p->id);
        free(p->credential_name);
        free(p->base_url);
        free(p->ca_file);
        free(p->header);
        free(p->user);
        capabilities_free(p->capabilities, p->n_capabilities);
        secret_free(p->key);
        secret_free(p->stand_in);
}

Credentials *credentials_free(Credentials *c) {
        if (!c)
                return NULL;
        secret_free(c->token);
        secret_free(c->credential);
        for (size_t i = 0; i < c->n_providers; i++)
                provider_done(&c->providers[i]);
        free(c->providers);
        secret_free(c->github_token);
        return mfree(c);
}

static int resolve(const SecretSource *source, const char *what, Secret **ret, Fault *f) {
        _cleanup_free_ char *problem = NULL;

        int r = secret_source_resolve(source, SECRET_ONE_LINE, getenv("CREDENTIALS_DIRECTORY"), ret, &problem);
        if (r >= 0 || r == -ENOENT)
                return r;
        return fault_set(f, ERROR_SETUP, "%s: %s", what, problem ?: strerror(-r));
}

/* What its calls may be: read when a session starts, and kept however the configuration changes (S115). */
static int copy_rules(SessionProvider *p, const ConfigProvider *from) {
        p->every_call = from->every_call;
        p->strict_capabilities = from->strict_capabilities;
        p->budgets = from->budgets;
        int r = string_copy(from->header, &p->header);
        if (r >= 0)
                r = string_copy(from->user, &p->user);
        if (r < 0 || from->n_capabilities == 0)
                return r;
        p->capabilities = calloc(from->n_capabilities, sizeof(Capability));
        if (!p->capabilities)
                return -ENOMEM;
        p->n_capabilities = from->n_capabilities;
        for (size_t i = 0; i < p->n_capabilities && r >= 0; i++) {
                r = string_copy(from->capabilities[i].method, &p->capabilities[i].method);
                if (r >= 0)
                        r = string_copy(from->capabilities[i].path, &p->capabilities[i].path);
        }
        return r;
}

static int add_provider(Credentials *c, const ConfigProvider *from, bool broker, Fault *f) {
        _cleanup_free_ char *what = NULL;
        SessionProvider *p = &c->providers[c->n_providers];

        if (asprintf(&what, "agent.providers.%s.credential", from->id) < 0)
                return fault_set(f, ERROR_SETUP, "out of memory");
        *p = (SessionProvider){.kind = from->kind, .placement = from->placement, .brokered = broker && config_provider_brokered(from)};
        int r = resolve(&from->credential, what, &p->key, f);
        if (r == -ENOENT)
                return 0; /* one without a key needs no broker's care: it is a host as any other */
        c->n_providers++;
        if (r < 0)
                return r;
        const char *url = config_provider_url(from);
        if (p->brokered && !url)
                return fault_set(f, ERROR_CONFIGURATION, "agent.providers.%s has no baseUrl, and none is known for it; give one, or \"broker\": false",
                                 from->id);
        if (string_copy(from->id, &p->id) < 0 || string_copy(from->credential_name, &p->credential_name) < 0 || string_copy(url, &p->base_url) < 0 ||
            string_copy(from->ca_file, &p->ca_file) < 0 || copy_rules(p, from) < 0)
                return fault_set(f, ERROR_SETUP, "out of memory");
        if (!p->brokered)
                return 0;
        r = secret_mint(STAND_IN_PREFIX, MINTED_BYTES, &p->stand_in);
        return r < 0 ? fault_set(f, ERROR_SETUP, "a stand-in cannot be minted: %s", strerror(-r)) : 0;
}

int credentials_new(const Config *config, SessionNetwork network, Credentials **ret, Fault *f) {
        _cleanup_(credentials_freep) Credentials *c = calloc(1, sizeof(Credentials));
        size_t n = network != SESSION_NETWORK_NONE ? config->agent.n_providers : 0;

        if (!c || !(c->providers = calloc(MAX(n, (size_t) 1), sizeof(SessionProvider))))
                return fault_set(f, ERROR_SETUP, "out of memory");
        int r = secret_mint("", MINTED_BYTES, &c->token);
        if (r >= 0)
                r = secret_mint(STAND_IN_PREFIX, MINTED_BYTES, &c->credential);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "a credential cannot be minted: %s", strerror(-r));
        for (size_t i = 0; i < n; i++) {
                r = add_provider(c, &config->agent.providers[i], network == SESSION_NETWORK_BROKER, f);
                if (r < 0)
                        return r;
        }
        if (network != SESSION_NETWORK_NONE && !config->github.app.given) {
                r = resolve(&config->github.token, "github.token", &c->github_token, f);
                if (r < 0 && r != -ENOENT)
                        return r;
        }
        *ret = TAKE_PTR(c);
        return 0;
}

int credentials_format_keys(const Credentials *c, int *ret_fd) {
        _cleanup_free_ char *text = NULL;
        _cleanup_(json_writer_done) JsonWriter w = {};
        size_t size;

        json_open_object(&w, NULL);
        json_add_string(&w, "credential", secret_data(c->credential));
        json_open_object(&w, "providers");
        for (size_t i = 0; i < c->n_providers; i++) {
                const SessionProvider *p = &c->providers[i];
                if (!p->brokered)
                        continue;
                json_open_object(&w, p->id);
                json_add_string(&w, "key", secret_data(p->key));
                json_add_string(&w, "standIn", secret_data(p->stand_in));
                json_close_object(&w);
        }
        json_close_object(&w);
        json_close_object(&w);
        int r = json_writer_finish(&w, &text, &size);
        if (r < 0)
                return r;
        int fd = memfd_new_sealed("errand-keys", text, size);
        secret_wipe(text, size);
        if (fd < 0)
                return fd;
        *ret_fd = fd;
        return 0;
}
