/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/stat.h>
#include <unistd.h>

#include "basic/base64.h"
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
        free(p->header);
        free(p->budget);
        capabilities_free(p->capabilities, p->n_capabilities);
        secret_free(p->basic);
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

/* https://HOST[:PORT][/path] without user, query or fragment; else -EBADMSG with a static phrase that quotes nothing of the URL, as it may hold
 * a password. The same with http:// is taken, but p->refusal is set unless HOST is a loopback literal of allowInternal. */
static int set_base_url(Provider *p, const Setup *s, const char *url, const char **ret_problem) {
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

/* base64(USER:KEY): the only form of the key that travels with this placement. */
static int make_basic(Provider *p, const char *user) {
        size_t n = strlen(user) + 1 + secret_size(p->key);
        char *plain = NULL, *text = malloc(BASE64_SIZE(n));

        if (!text || asprintf(&plain, "%s:%s", user, secret_data(p->key)) < 0) {
                free(text);
                return -ENOMEM;
        }
        base64_encode(plain, n, text);
        int r = secret_new(text, BASE64_SIZE(n) - (3 - n % 3) % 3, &p->basic);
        secret_wipe(plain, n);
        secret_wipe(text, BASE64_SIZE(n));
        free(plain);
        free(text);
        return r;
}

/* Placement, and what belongs to one of them; p has its key. */
static int parse_placement(Provider *p, JsonObject *o, const char *id, char **ret_problem) {
        const char *word, *header = NULL, *user = NULL, *problem = NULL;

        int r = get_string(o, id, "placement", &word, ret_problem);
        if (r < 0)
                return r;
        p->placement = placement_from_string(word);
        if (p->placement < 0)
                return problem_set(ret_problem, "\"providers.%s.placement\" is not \"bearer\", \"x-api-key\", \"either\", \"basic\" or \"header\"", id);
        if (json_object_has_member(o, "header") != (p->placement == PLACEMENT_HEADER))
                return problem_set(ret_problem, "\"providers.%s.header\" belongs to the placement \"header\", and that to it", id);
        if (json_object_has_member(o, "user") != (p->placement == PLACEMENT_BASIC))
                return problem_set(ret_problem, "\"providers.%s.user\" belongs to the placement \"basic\", and that to it", id);
        if (p->placement == PLACEMENT_HEADER) {
                r = get_string(o, id, "header", &header, ret_problem);
                if (r < 0)
                        return r;
                problem = placement_header_problem(header);
                if (problem)
                        return problem_set(ret_problem, "\"providers.%s.header\" %s", id, problem);
                p->header = strdup(header);
                return p->header ? 0 : -ENOMEM;
        }
        if (p->placement != PLACEMENT_BASIC)
                return 0;
        r = get_string(o, id, "user", &user, ret_problem);
        if (r < 0)
                return r;
        problem = placement_user_problem(user);
        return problem ? problem_set(ret_problem, "\"providers.%s.user\" %s", id, problem) : make_basic(p, user);
}

int setup_parse_provider(const Setup *s, Message *m, JsonObject *o, const char *id, Keys *keys, Provider *p, char **ret_problem) {
        static const char *const members[] = {"baseUrl", "placement", "header", "user", "credentialName", "capabilities", "strictCapabilities", "budgets",
                                              NULL};
        const char *url = NULL, *name = NULL, *problem = NULL;
        char where[STRLEN("providers..") + PROVIDER_ID_MAX + 1];

        (void) snprintf(where, sizeof(where), "providers.%s.", id);
        int r = setup_check_members(o, where, members, ret_problem);
        if (r < 0 || (r = get_string(o, id, "baseUrl", &url, ret_problem)) < 0 ||
            (r = get_string(o, id, "credentialName", &name, ret_problem)) < 0)
                return r;
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
        r = parse_placement(p, o, id, ret_problem);
        if (r >= 0)
                r = setup_parse_capabilities(o, where, p, ret_problem);
        if (r >= 0)
                r = setup_parse_budgets(o, where, &p->budget, ret_problem);
        if (r < 0)
                return r;
        r = set_base_url(p, s, url, &problem);
        if (r == -EBADMSG)
                return problem_set(ret_problem, "\"providers.%s.baseUrl\": %s", id, problem);
        return r < 0 ? r : take_ca(m, p, ret_problem);
}
