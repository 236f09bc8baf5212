/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "broker/setup-provider.h"

#define CA_SIZE_MAX (1U << 20)  /* a system's whole bundle is a quarter of it */
#define BASE_PATH_MAX 1024U     /* it must fit into a request head beside the session's path */
#define CREDENTIAL_NAME_MAX 128U

void provider_done(Provider *p) {
        free(p->id);
        free(p->credential_name);
        free(p->base_path);
        free(p->refusal);
        free(p->ca_pem);
        secret_free(p->key);
        secret_free(p->stand_in);
        if (p->tls_credentials_free)
                p->tls_credentials_free(p->tls_credentials);
        *p = (Provider){};
}

/* "" or "/", or segments that no server can read as another path. NULL when it is good. */
static const char *check_base_path(const char *path) {
        for (const char *p = path; *p; p++)
                if (*p <= 0x20 || *p >= 0x7f || strchr("\\%;", *p))
                        return "its path holds a character that is not allowed there";
        if (strlen(path) > BASE_PATH_MAX)
                return "its path is longer than 1024 bytes";
        while (*path == '/') {
                size_t n = strcspn(++path, "/");
                if (n == 0 && path[n])
                        return "its path has an empty segment";
                if ((n == 1 && path[0] == '.') || (n == 2 && path[0] == '.' && path[1] == '.'))
                        return "its path has a \".\" or \"..\" segment";
                path += n;
        }
        return NULL;
}

/* The key travels on every request, so only a loopback literal that an administrator named may go without TLS. */
static const char *plain_refusal(const Provider *p, const Setup *s) {
        Address a;

        if (p->host.kind == HOST_NAME || address_parse(p->host.name, &a) < 0 || !streq_ptr(address_classify(&a), "loopback"))
                return "the provider's base URL must be https://; http:// is for a loopback address written as a literal only";
        if (!setup_internal_allowed(s, &a))
                return "the provider's base URL is http:// and its loopback address is not in egress.allowInternal";
        return NULL;
}

static const char *scheme_rest(const char *url, const char *scheme) {
        size_t n = strlen(scheme);
        return strlen(url) >= n && ascii_case_equal(url, n, scheme) ? url + n : NULL;
}

static int malformed(const char **ret_problem, const char *problem) {
        if (ret_problem)
                *ret_problem = problem;
        return -EBADMSG;
}

int provider_set_base_url(Provider *p, const Setup *s, const char *url, const char **ret_problem) {
        const char *rest = scheme_rest(url, "https://"), *refusal = NULL;

        p->tls = rest != NULL;
        if (!rest)
                rest = scheme_rest(url, "http://");
        if (!rest)
                return malformed(ret_problem, "it must begin with https://");
        if (strpbrk(rest, "?#"))
                return malformed(ret_problem, "it has a query or a fragment");
        size_t n = strcspn(rest, "/");
        if (memchr(rest, '@', n))
                return malformed(ret_problem, "it has a user or a password");
        if (host_parse_authority((Slice){rest, n}, p->tls ? 443 : 80, &p->host, &p->port, ret_problem) < 0)
                return -EBADMSG;
        const char *path = rest + n, *problem = check_base_path(path);
        if (problem)
                return malformed(ret_problem, problem);

        n = strlen(path);
        p->base_path = strndup(path, n > 0 && path[n - 1] == '/' ? n - 1 : n);
        if (!p->tls)
                refusal = plain_refusal(p, s);
        p->refusal = refusal ? strdup(refusal) : NULL;
        return p->base_path && (p->refusal || !refusal) ? 0 : -ENOMEM;
}

static int get_string(JsonObject *o, const char *id, const char *name, const char **ret, char **ret_problem) {
        int r = json_get_string(o, name, ret);

        if (r == -ENOENT)
                return problem_set(ret_problem, "\"providers.%s.%s\" is missing", id, name);
        return r < 0 ? problem_set(ret_problem, "\"providers.%s.%s\" is not a string", id, name) : 0;
}

static bool variable_name_valid(const char *s) {
        size_t n = strlen(s);

        for (size_t i = 0; i < n; i++)
                if (!ascii_alpha(s[i]) && s[i] != '_' && (i == 0 || !ascii_digit(s[i])))
                        return false;
        return n > 0 && n <= CREDENTIAL_NAME_MAX;
}

static int take_ca(Message *m, Provider *p, char **ret_problem) {
        char name[STRLEN("ca:") + PROVIDER_ID_MAX + 1];
        struct stat st;

        (void) snprintf(name, sizeof(name), "ca:%s", p->id);
        _cleanup_close_ int fd = message_take_fd(m, name);
        if (fd < 0)
                return 0;
        /* Nothing that could block or never end. */
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return problem_set(ret_problem, "\"%s\" in \"fds\" is not a regular file", name);
        /* From its start: who reads it again after a restart shares the offset with this. */
        int r = lseek(fd, 0, SEEK_SET) < 0 ? -errno : read_fd_full(fd, CA_SIZE_MAX, &p->ca_pem, &p->ca_pem_size);
        if (r == -EFBIG)
                return problem_set(ret_problem, "\"%s\" in \"fds\" is larger than 1 MiB", name);
        if (r < 0)
                return problem_set(ret_problem, "\"%s\" in \"fds\" cannot be read: %s", name, strerrordesc_np(-r));
        if (!memmem(p->ca_pem, p->ca_pem_size, "-----BEGIN ", STRLEN("-----BEGIN ")))
                return problem_set(ret_problem, "\"%s\" in \"fds\" holds no PEM certificate", name);
        return 0;
}

int setup_parse_provider(const Setup *s, Message *m, JsonObject *o, const char *id, Keys *keys, Provider *p, char **ret_problem) {
        static const char *const members[] = {"baseUrl", "placement", "credentialName", NULL};
        const char *url = NULL, *placement = NULL, *name = NULL, *problem = NULL;
        char where[STRLEN("providers..") + PROVIDER_ID_MAX + 1];

        (void) snprintf(where, sizeof(where), "providers.%s.", id);
        int r = setup_check_members(o, where, members, ret_problem);
        if (r < 0 || (r = get_string(o, id, "baseUrl", &url, ret_problem)) < 0 ||
            (r = get_string(o, id, "placement", &placement, ret_problem)) < 0 || (r = get_string(o, id, "credentialName", &name, ret_problem)) < 0)
                return r;
        p->placement = placement_from_string(placement);
        if (p->placement < 0)
                return problem_set(ret_problem, "\"providers.%s.placement\" is neither \"bearer\" nor \"x-api-key\"", id);
        if (!variable_name_valid(name))
                return problem_set(ret_problem, "\"providers.%s.credentialName\" is not the name of a variable", id);

        KeysEntry *entry = keys_find(keys, id);
        if (!entry)
                return problem_set(ret_problem, "\"providers.%s\" has no entry in keys", id);
        p->key = TAKE_PTR(entry->key);
        p->stand_in = TAKE_PTR(entry->stand_in);
        p->id = strdup(id);
        p->credential_name = strdup(name);
        if (!p->id || !p->credential_name)
                return -ENOMEM;
        r = provider_set_base_url(p, s, url, &problem);
        if (r == -EBADMSG)
                return problem_set(ret_problem, "\"providers.%s.baseUrl\": %s", id, problem);
        return r < 0 ? r : take_ca(m, p, ret_problem);
}
