/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/fd.h"
#include "basic/path.h"
#include "basic/text.h"
#include "errandd/environment.h"

#define BASE_PATH "/usr/local/bin:/usr/bin:/bin"
#define NO_PROXY "127.0.0.1,localhost,::1"

char **environment_free(char **list) {
        for (char **s = list; s && *s; s++)
                secret_wipe(*s, strlen(*s));
        return strv_free(list);
}

/* Takes the record; over one of the same name. */
static int put(char ***list, char *record) {
        size_t n = strcspn(record, "=") + 1;

        for (char **s = *list; s && *s; s++)
                if (strncmp(*s, record, n) == 0) {
                        secret_wipe(*s, strlen(*s));
                        free(*s);
                        *s = record;
                        return 0;
                }
        return strv_consume(list, record);
}

_printf_(3, 4) static int put_format(char ***list, const char *name, const char *format, ...) {
        _cleanup_free_ char *value = string_format_own(format);
        char *record = NULL;

        if (!value)
                return -ENOMEM;
        int n = asprintf(&record, "%s=%s", name, value);
        secret_wipe(value, strlen(value));
        return n < 0 ? -ENOMEM : put(list, record);
}

static int put_all(char ***list, char *const *records) {
        for (; records && *records; records++) {
                char *copy = strdup(*records);
                int r = copy ? put(list, copy) : -ENOMEM;
                if (r < 0)
                        return r;
        }
        return 0;
}

/* Those of the configuration, the system's, and the one of errand-connect, when that is somewhere else. */
static int put_path(char ***list, char *const *extra, const char *connect) {
        _cleanup_free_ char *path = strdup(""), *last = connect ? path_parent(connect) : NULL;
        bool elsewhere = last && !streq(last, "/usr/local/bin") && !streq(last, "/usr/bin") && !streq(last, "/bin") && !strchr(last, ':');

        for (; path && extra && *extra; extra++)
                if (string_append(&path, "%s:", *extra) < 0)
                        return -ENOMEM;
        return path ? put_format(list, "PATH", "%s" BASE_PATH "%s%s", path, elsewhere ? ":" : "", elsewhere ? last : "") : -ENOMEM;
}

/* Some tools read the lower case names, some the upper case ones. */
static int put_both(char ***list, const char *name, const char *value) {
        char upper[32];
        size_t n = strlen(name);

        for (size_t i = 0; i <= n; i++)
                upper[i] = (char) (name[i] >= 'a' && name[i] <= 'z' ? name[i] - 'a' + 'A' : name[i]);
        int r = put_format(list, name, "%s", value);
        return r < 0 ? r : put_format(list, upper, "%s", value);
}

static bool is_set(char *const *list, const char *name) {
        size_t n = strlen(name);

        for (; list && *list; list++)
                if (strncmp(*list, name, n) == 0 && (*list)[n] == '=')
                        return true;
        return false;
}

/* all_proxy too names an HTTP proxy, although the broker speaks SOCKS5 as well: clients without support for SOCKS fail at once, for every
 * host, when they only read such a URL, and those with it know the other variables, too. */
static int put_proxies(char ***list, const Credentials *c, uint16_t port) {
        static const char *const names[] = {"http_proxy", "https_proxy", "all_proxy"};
        char proxy[512];
        int r = 0;

        (void) snprintf(proxy, sizeof(proxy), "http://errand:%s@127.0.0.1:%u", secret_data(c->credential), port);
        for (size_t i = 0; i < ELEMENTSOF(names) && r >= 0; i++)
                r = put_both(list, names[i], proxy);
        secret_wipe(proxy, sizeof(proxy));
        if (r >= 0)
                r = put_both(list, "no_proxy", NO_PROXY);
        /* Node's own fetch looks at these variables only when it is told to: 22.21, 24. */
        return r < 0 || is_set(*list, "NODE_USE_ENV_PROXY") ? r : put_format(list, "NODE_USE_ENV_PROXY", "1");
}

/* The variable by which clients of that API are told where it is. */
static const char *usual_variable(const SessionProvider *p) {
        if (p->kind == PROVIDER_ANTHROPIC || (p->kind == PROVIDER_UNKNOWN && streq(p->id, "anthropic")))
                return "ANTHROPIC_BASE_URL";
        if (p->kind == PROVIDER_OPENAI || (p->kind == PROVIDER_UNKNOWN && streq(p->id, "openai")))
                return "OPENAI_BASE_URL";
        if (p->kind == PROVIDER_UNKNOWN && streq(p->id, "gemini"))
                return "GOOGLE_GEMINI_BASE_URL";
        return NULL;
}

/* The list holds what errandd has put so far: a configured value does not count as the first of a kind. */
static int put_route(char ***list, const SessionProvider *p, uint16_t port, bool chosen) {
        char name[128] = "ERRAND_PROVIDER_", route[128];
        size_t n = strlen(name);

        for (const char *s = p->id; *s && n < sizeof(name) - sizeof("_URL"); s++)
                name[n++] = (char) (*s >= 'a' && *s <= 'z' ? *s - 'a' + 'A' : *s == '-' ? '_' : *s);
        (void) snprintf(name + n, sizeof(name) - n, "_URL");
        (void) snprintf(route, sizeof(route), "http://127.0.0.1:%u/provider/%s", port, p->id);
        int r = put_format(list, name, "%s", route);
        const char *usual = usual_variable(p);
        if (r >= 0 && usual && (chosen || !is_set(*list, usual)))
                r = put_format(list, usual, "%s", route);
        return r;
}

static int put_providers(char ***list, const EnvironmentInput *in) {
        const Credentials *c = in->credentials;
        char **own = NULL;
        int r = 0;

        for (size_t i = 0; i < c->n_providers && r >= 0; i++) {
                const SessionProvider *p = &c->providers[i];
                const Secret *secret = p->brokered ? p->stand_in : p->key;
                bool chosen = in->provider && streq(in->provider, p->id);

                if (p->credential_name && (chosen || !is_set(own, p->credential_name)))
                        r = put_format(&own, p->credential_name, "%s", secret_data(secret));
                if (r >= 0 && p->brokered)
                        r = put_route(&own, p, in->port, chosen);
        }
        if (r >= 0)
                r = put_all(list, own);
        environment_free(own);
        return r;
}

static int put_github(char ***list, const EnvironmentInput *in) {
        const ConfigGithub *g = &in->config->github;
        const char *const pairs[][2] = {
                {"GITHUB_TOKEN", in->credentials->github_token ? secret_data(in->credentials->github_token) : NULL},
                {"GIT_AUTHOR_NAME", g->user_name}, {"GIT_COMMITTER_NAME", g->user_name},
                {"GIT_AUTHOR_EMAIL", g->user_email}, {"GIT_COMMITTER_EMAIL", g->user_email},
        };
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(pairs) && r >= 0; i++)
                if (pairs[i][1])
                        r = put_format(list, pairs[i][0], "%s", pairs[i][1]);
        return r;
}

int environment_build(const EnvironmentInput *in, char ***ret) {
        char **list = NULL;

        int r = in->interactive ? put_format(&list, "TERM", "xterm-256color") : 0;
        if (r >= 0)
                r = put_all(&list, in->config->sandbox.env);
        if (r >= 0)
                r = put_all(&list, in->env);
        if (r >= 0)
                r = put_github(&list, in);
        if (r >= 0)
                r = put_path(&list, in->config->sandbox.path_extra, in->port > 0 ? in->connect : NULL);
        if (r >= 0 && in->port > 0)
                r = put_proxies(&list, in->credentials, in->port);
        if (r >= 0)
                r = put_providers(&list, in);
        if (r < 0) {
                environment_free(list);
                return r;
        }
        *ret = list;
        return 0;
}

int environment_seal(char *const *list, int *ret_fd) {
        size_t size = 0, at = 0;

        for (char *const *s = list; s && *s; s++)
                size += strlen(*s) + 1;
        _cleanup_free_ char *data = malloc(MAX(size, (size_t) 1));
        if (!data)
                return -ENOMEM;
        for (char *const *s = list; s && *s; s++) {
                size_t n = strlen(*s) + 1;
                memcpy(data + at, *s, n);
                at += n;
        }
        int fd = memfd_new_sealed("errand-environment", data, size);
        secret_wipe(data, size);
        if (fd < 0)
                return fd;
        *ret_fd = fd;
        return 0;
}

static int add_secret(char ***list, const Secret *s) {
        return !s || secret_size(s) < SCRUB_SIZE_MIN ? 0 : strv_extend(list, secret_data(s));
}

int scrub_seal(const Credentials *c, int *ret_fd) {
        char **list = NULL;

        int r = add_secret(&list, c->credential);
        if (r >= 0)
                r = add_secret(&list, c->github_token);
        for (size_t i = 0; i < c->n_providers && r >= 0; i++)
                r = add_secret(&list, c->providers[i].brokered ? c->providers[i].stand_in : c->providers[i].key);
        if (r >= 0)
                r = environment_seal(list, ret_fd);
        environment_free(list);
        return r;
}
