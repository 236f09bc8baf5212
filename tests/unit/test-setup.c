/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <malloc.h>
#include <sys/mman.h>

#include "broker/keys.h"
#include "broker/limits.h"
#include "setup-fixture.h"

/* A sanitizer keeps its heap elsewhere. */
#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SANITIZED 1
#endif
#endif
#if !defined(SANITIZED) && defined(__SANITIZE_ADDRESS__)
#define SANITIZED 1
#elif !defined(SANITIZED)
#define SANITIZED 0
#endif

static void test_whole(void) {
        static const char text[] =
                "{" IDENTITY ",\"serial\":1,\"fds\":[\"keys\",\"spool\",\"ca:p\"],"
                "\"egress\":{\"allow\":[\"api.example.com\",\"*.example.org\"],\"allowInternal\":[\"10.0.0.5\",\"fd00::5\"],\"ports\":[443,80]},"
                "\"providers\":{\"p\":{\"baseUrl\":\"https://api.example.com/v1\",\"placement\":\"x-api-key\",\"credentialName\":\"ANTHROPIC_API_KEY\"}}}";
        int fds[] = {sealed(KEYS_P, strlen(KEYS_P)), file("", O_WRONLY | O_APPEND), file("-----BEGIN CERTIFICATE-----\n", O_RDONLY)};
        _cleanup_(setup_freep) Setup *s = NULL;
        _cleanup_free_ char *problem = NULL;
        Address a;

        if (parse_fds(text, fds, 3, &s, &problem) < 0)
                test_fail(__FILE__, __LINE__, "%s", problem);
        CHECK_STR(s->session, "s1");
        CHECK_STR(secret_data(s->token), TOKEN);
        CHECK_STR(secret_data(s->credential), CREDENTIAL);
        CHECK(s->n_allow == 2 && s->allow[0].kind == PATTERN_EXACT && s->allow[1].kind == PATTERN_BELOW);
        CHECK(setup_port_allowed(s, 443) && setup_port_allowed(s, 80) && !setup_port_allowed(s, 22));
        CHECK_INT(address_parse("10.0.0.5", &a), 0);
        CHECK(setup_internal_allowed(s, &a));
        CHECK_INT(address_parse("::ffff:10.0.0.5", &a), 0);
        CHECK(!setup_internal_allowed(s, &a));
        CHECK_INT(address_parse("fd00::5", &a), 0);
        CHECK(setup_internal_allowed(s, &a));

        const Provider *p = setup_find_provider(s, (Slice){"pq", 1});
        CHECK(p && !setup_find_provider(s, (Slice){"pq", 2}) && !setup_find_provider(s, (Slice){"", 0}));
        CHECK_STR(p->id, "p");
        CHECK_STR(p->credential_name, "ANTHROPIC_API_KEY");
        CHECK(p->tls && p->port == 443 && !p->refusal && p->placement == PLACEMENT_X_API_KEY);
        CHECK_STR(p->host.name, "api.example.com");
        CHECK_STR(p->base_path, "/v1");
        CHECK_STR(secret_data(p->key), KEY);
        CHECK_STR(secret_data(p->stand_in), STAND_IN);
        CHECK_STR(p->ca_pem, "-----BEGIN CERTIFICATE-----\n");
        CHECK_INT(p->ca_pem_size, strlen(p->ca_pem));
        CHECK(fcntl(s->spool, F_GETFD) == FD_CLOEXEC);
        int spool = s->spool;
        /* what was only read is closed, and the spool with the setup */
        CHECK(fcntl(fds[0], F_GETFD) < 0 && fcntl(fds[2], F_GETFD) < 0);
        s = setup_free(s);
        CHECK(fcntl(spool, F_GETFD) < 0);
}

static void test_defaults(void) {
        _cleanup_(setup_freep) Setup *s = parse_good("{" IDENTITY ",\"fds\":[\"keys\"]}", KEYS);

        CHECK(s->n_allow == 1 && s->allow[0].kind == PATTERN_ANY && s->n_allow_internal == 0 && s->n_providers == 0 && s->spool == -EBADF);
        CHECK(s->n_ports == 1 && setup_port_allowed(s, 443));
        s = setup_free(s);

        s = parse_good("{" IDENTITY ",\"fds\":[\"keys\"],\"egress\":{}}", KEYS);
        CHECK(s->n_allow == 0 && s->n_ports == 1 && setup_port_allowed(s, 443));
        s = setup_free(s);

        s = parse_good("{" IDENTITY ",\"fds\":[\"keys\"],\"egress\":{\"allow\":[],\"ports\":[]}}", KEYS);
        CHECK(s->n_allow == 0 && s->n_ports == 0 && !setup_port_allowed(s, 443) && !setup_port_allowed(s, 0));
}

static void test_members(void) {
#define FDS ",\"fds\":[\"keys\"]"
        static const char *const cases[][2] = {
                {"{" IDENTITY FDS ",\"egres\":{}}", "\"egres\" is not known; did you mean \"egress\"?"},
                {"{" IDENTITY FDS ",\"frobnicate\":{}}", "\"frobnicate\" is not known"},
                {"{" IDENTITY FDS ",\"egress\":{\"alow\":[]}}", "\"egress.alow\" is not known; did you mean \"allow\"?"},
                {"{" IDENTITY FDS ",\"egress\":{\"allowinternal\":[]}}", "did you mean \"allowInternal\"?"},
                {"{" IDENTITY FDS ",\"egress\":[]}", "\"egress\" is not an object"},
                {"{" IDENTITY FDS ",\"providers\":[]}", "\"providers\" is not an object"},
                {"{" IDENTITY FDS ",\"egress\":{\"allow\":\"*\"}}", "\"egress.allow\" is not a list"},
                {"{" IDENTITY FDS ",\"egress\":{\"allow\":[\"a\",1]}}", "\"egress.allow[1]\" is not a string"},
                {"{" IDENTITY FDS ",\"egress\":{\"allow\":[null]}}", "\"egress.allow[0]\" is not a string"},
                {"{" IDENTITY FDS ",\"egress\":{\"allow\":[\"*com\"]}}", "\"egress.allow[0]\" (*com): a '*'"},
                {"{" IDENTITY FDS ",\"egress\":{\"allowInternal\":[\"localhost\"]}}", "\"egress.allowInternal[0]\" (localhost)"},
                {"{" IDENTITY FDS ",\"egress\":{\"allowInternal\":[\"10.0.0.0/8\"]}}", "\"egress.allowInternal[0]\""},
                {"{" IDENTITY FDS ",\"egress\":{\"allowInternal\":[\"127.1\"]}}", "\"egress.allowInternal[0]\""},
                {"{" IDENTITY FDS ",\"egress\":{\"allowInternal\":[7]}}", "\"egress.allowInternal[0]\" is not a string"},
                {"{" IDENTITY FDS ",\"egress\":{\"ports\":443}}", "\"egress.ports\" is not a list"},
                {"{" IDENTITY FDS ",\"egress\":{\"ports\":[443,0]}}", "\"egress.ports[1]\""},
                {"{" IDENTITY FDS ",\"egress\":{\"ports\":[65536]}}", "\"egress.ports[0]\""},
                {"{" IDENTITY FDS ",\"egress\":{\"ports\":[-1]}}", "\"egress.ports[0]\""},
                {"{" IDENTITY FDS ",\"egress\":{\"ports\":[\"443\"]}}", "\"egress.ports[0]\""},
                {"{" IDENTITY FDS ",\"egress\":{\"ports\":[443.5]}}", "\"egress.ports[0]\""},
                {"{\"v\":1,\"type\":\"grant\",\"session\":\"s1\",\"token\":\"" TOKEN "\"" FDS "}", "not a setup"},
                {"{\"v\":1,\"type\":\"setup\",\"token\":\"" TOKEN "\"" FDS "}", "\"session\""},
                {"{\"v\":1,\"type\":\"setup\",\"session\":1,\"token\":\"" TOKEN "\"" FDS "}", "\"session\""},
                {"{\"v\":1,\"type\":\"setup\",\"session\":\"\",\"token\":\"" TOKEN "\"" FDS "}", "\"session\""},
                {"{\"v\":1,\"type\":\"setup\",\"session\":\"S1\",\"token\":\"" TOKEN "\"" FDS "}", "\"session\""},
                {"{\"v\":1,\"type\":\"setup\",\"session\":\"a/b\",\"token\":\"" TOKEN "\"" FDS "}", "\"session\""},
                {"{\"v\":1,\"type\":\"setup\",\"session\":\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\",\"token\":\"" TOKEN "\"" FDS "}", "\"session\""},
                {"{\"v\":1,\"type\":\"setup\",\"session\":\"s1\"" FDS "}", "\"token\""},
                {"{\"v\":1,\"type\":\"setup\",\"session\":\"s1\",\"token\":\"abcd\"" FDS "}", "\"token\""},
                {"{\"v\":1,\"type\":\"setup\",\"session\":\"s1\",\"token\":\"" TOKEN "0\"" FDS "}", "\"token\""},
                {"{\"v\":1,\"type\":\"setup\",\"session\":\"s1\",\"token\":\"X123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\"" FDS "}", "\"token\""},
        };
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                refused_with(cases[i][0], KEYS, cases[i][1]);
}

static void test_never_internal(void) {
        static const char *const never[] = {"169.254.169.254", "168.63.129.16", "169.254.170.2", "100.100.100.200", "fd00:ec2::254", "::ffff:169.254.169.254", "0.0.0.0", "::"};
        char text[512];

        for (size_t i = 0; i < ELEMENTSOF(never); i++) {
                (void) snprintf(text, sizeof(text), "{" IDENTITY FDS ",\"egress\":{\"allowInternal\":[\"%s\"]}}", never[i]);
                refused_with(text, KEYS, "it is never opened");
        }
}

/* An address in text, as setup_internal_allowed() judges it. */
static bool lifted(const Setup *s, const char *text) {
        Address a;
        CHECK_INT(address_parse(text, &a), 0);
        return setup_internal_allowed(s, &a);
}

static void test_any_internal(void) {
        _cleanup_(setup_freep) Setup *any = parse_good("{" IDENTITY FDS ",\"egress\":{\"allowInternal\":true}}", KEYS);
        _cleanup_(setup_freep) Setup *none = parse_good("{" IDENTITY FDS ",\"egress\":{\"allowInternal\":false}}", KEYS);

        CHECK(lifted(any, "10.0.0.5") && lifted(any, "127.0.0.1") && lifted(any, "fd00::5"));
        CHECK(!lifted(any, "169.254.169.254") && !lifted(any, "168.63.129.16") && !lifted(any, "0.0.0.0") && !lifted(any, "fd00:ec2::254"));
        CHECK(!lifted(none, "10.0.0.5") && !lifted(none, "127.0.0.1"));
        refused_with("{" IDENTITY FDS ",\"egress\":{\"allowInternal\":\"yes\"}}", KEYS, "\"egress.allowInternal\"");
}

static const char *provider(const char *members) {
        static char text[8192];
        (void) snprintf(text, sizeof(text), "{" IDENTITY FDS ",\"egress\":{\"allowInternal\":[\"127.0.0.1\",\"::1\",\"10.0.0.5\"]},\"providers\":{%s}}", members);
        return text;
}

static void test_provider_members(void) {
        static const char *const cases[][2] = {
                {"\"p\":{" URL "," PLACE "}", "\"providers.p.credentialName\" is missing"},
                {"\"p\":{" URL "," NAME "}", "\"providers.p.placement\" is missing"},
                {"\"p\":{" PLACE "," NAME "}", "\"providers.p.baseUrl\" is missing"},
                {"\"p\":{\"baseUrl\":1," PLACE "," NAME "}", "\"providers.p.baseUrl\" is not a string"},
                {"\"p\":{" URL ",\"placement\":\"query\"," NAME "}", "\"providers.p.placement\" is not \"bearer\""},
                {"\"p\":{" URL ",\"placement\":\"Bearer\"," NAME "}", "\"providers.p.placement\" is not \"bearer\""},
                {"\"p\":{" URL "," PLACE ",\"credentialName\":\"\"}", "\"providers.p.credentialName\""},
                {"\"p\":{" URL "," PLACE ",\"credentialName\":\"1A\"}", "\"providers.p.credentialName\""},
                {"\"p\":{" URL "," PLACE ",\"credentialName\":\"A=B\"}", "\"providers.p.credentialName\""},
                {"\"p\":{" URL "," PLACE "," NAME ",\"baseURL\":1}", "\"providers.p.baseURL\" is not known; did you mean \"baseUrl\"?"},
                {"\"p\":1", "\"providers.p\" is not an object"},
                {"\"P\":{" URL "," PLACE "," NAME "}", "\"providers.P\""},
                {"\"a.b\":{}", "\"providers.a.b\""},
                {"\"\":{}", "the id is not"},
                {"\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\":{}", "the id is not"},
                {"\"q\":{" URL "," PLACE "," NAME "}", "\"providers.q\" has no entry in keys"},
                {"", "does not name"},
        };
        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                refused_with(provider(cases[i][0]), KEYS_P, cases[i][1]);
}

static void test_provider_count(void) {
        char members[4096] = "", keys[4096] = "{\"credential\":\"c\",\"providers\":{", *m = members, *k = keys + strlen(keys);

        for (unsigned i = 0; i < PROVIDERS_MAX; i++) {
                m += sprintf(m, "%s\"p%u\":{" URL "," PLACE "," NAME "}", i ? "," : "", i);
                k += sprintf(k, "%s\"p%u\":{\"key\":\"k\",\"standIn\":\"s\"}", i ? "," : "", i);
        }
        strcpy(k, "}}");
        _cleanup_(setup_freep) Setup *s = parse_good(provider(members), keys);
        CHECK_INT(s->n_providers, PROVIDERS_MAX);
        for (size_t i = 0; i < s->n_providers; i++)
                CHECK(setup_find_provider(s, (Slice){s->providers[i].id, strlen(s->providers[i].id)}) == s->providers + i);
        strcpy(m, ",\"q\":{" URL "," PLACE "," NAME "}");
        refused_with(provider(members), keys, "names more than");
        strcpy(k, ",\"q\":{\"key\":\"k\",\"standIn\":\"s\"}}}");
        refused_with(provider(""), keys, "names too many");
        /* a surplus entry wherever it stands */
        static const char two[] = "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"k\",\"standIn\":\"s\"},\"q\":{\"key\":\"k\",\"standIn\":\"s\"}}}";
        refused_with(provider("\"p\":{" URL "," PLACE "," NAME "}"), two, "does not name");
        refused_with(provider("\"q\":{" URL "," PLACE "," NAME "}"), two, "does not name");
}

#define S28 "aaaaaaaaaaaaaaaaaaaaaaaaaz09"
#define ID32 "abcdefghijklmnopqrstuvwxyz-09012"

static void test_bounds(void) {
        _cleanup_(setup_freep) Setup *s = parse_good("{\"v\":1,\"type\":\"setup\",\"session\":\"" S28 "\",\"token\":\"" TOKEN "\"" FDS ",\"egress\":{\"ports\":[1,65535]}}", KEYS);
        char members[4096], name[CREDENTIAL_SIZE_MAX], path[1100];

        CHECK_STR(s->session, S28);
        CHECK(setup_port_allowed(s, 1) && setup_port_allowed(s, 65535) && !setup_port_allowed(s, 0));
        s = setup_free(s);
        for (size_t n_name = 128; n_name <= 129; n_name++)
                for (size_t n_path = 1024; n_path <= 1025; n_path++) {
                        memset(name, 'N', n_name);
                        name[n_name] = 0;
                        memset(path, 'p', n_path);
                        path[0] = '/';
                        path[n_path] = 0;
                        (void) snprintf(members, sizeof(members), "\"" ID32 "\":{\"baseUrl\":\"https://a.example%s\"," PLACE ",\"credentialName\":\"%s\"}", path, name);
                        static const char keys[] = "{\"credential\":\"c\",\"providers\":{\"" ID32 "\":{\"key\":\"k\",\"standIn\":\"s\"}}}";
                        if (n_name == 128 && n_path == 1024) {
                                s = parse_good(provider(members), keys);
                                CHECK_STR(s->providers[0].base_path, path);
                                s = setup_free(s);
                        } else
                                refused_with(provider(members), keys, n_name > 128 ? "credentialName" : "longer than 1024");
                }
}

static void test_pattern_count(void) {
        _cleanup_free_ char *text = malloc(MESSAGE_SIZE_MAX);

        for (size_t n = PATTERNS_MAX; n <= PATTERNS_MAX + 1; n++) {
                char *p = stpcpy(text, "{" IDENTITY FDS ",\"egress\":{\"allow\":[\"a\"");
                for (size_t i = 1; i < n; i++)
                        p = stpcpy(p, ",\"a\"");
                strcpy(p, "]}}");
                if (n <= PATTERNS_MAX) {
                        Setup *s = parse_good(text, KEYS);
                        CHECK_INT(s->n_allow, PATTERNS_MAX);
                        setup_free(s);
                } else
                        refused_with(text, KEYS, "\"egress.allow\" has more than 4096 entries");
        }
}

static void test_base_urls(void) {
        static const struct {
                const char *url, *host, *path;
                uint16_t port;
                bool tls;
                const char *refusal; /* part of it */
        } good[] = {
                {"https://api.example.com", "api.example.com", "", 443, true, NULL},
                {"https://api.example.com/", "api.example.com", "", 443, true, NULL},
                {"HTTPS://API.example.com:8443/v1/", "api.example.com", "/v1", 8443, true, NULL},
                {"https://api.example.com/a/b.c/~d", "api.example.com", "/a/b.c/~d", 443, true, NULL},
                {"https://[2606:4700::1]:8443/v1", "2606:4700::1", "/v1", 8443, true, NULL},
                {"https://127.0.0.1", "127.0.0.1", "", 443, true, NULL},
                {"http://127.0.0.1:8080", "127.0.0.1", "", 8080, false, NULL},
                {"http://127.0.0.1", "127.0.0.1", "", 80, false, NULL},
                {"http://[::1]:8080/v1", "::1", "/v1", 8080, false, NULL},
                {"http://127.0.0.2:8080", "127.0.0.2", "", 8080, false, "not in egress.allowInternal"},
                {"http://[::ffff:127.0.0.1]:8080", "::ffff:127.0.0.1", "", 8080, false, "not in egress.allowInternal"},
                {"http://localhost:8080", "localhost", "", 8080, false, "must be https://"},
                {"http://api.example.com", "api.example.com", "", 80, false, "must be https://"},
                {"http://9.9.9.9/v1", "9.9.9.9", "/v1", 80, false, "must be https://"},
                {"http://10.0.0.5", "10.0.0.5", "", 80, false, "must be https://"},
        };
        static const char *const bad[][2] = {
                {"", "must begin with https://"}, {"api.example.com", "must begin"}, {"ftp://x/", "must begin"}, {"https:/x", "must begin"}, {"https:api", "must begin"},
                {"httpss://x", "must begin"}, {"unix:/x", "must begin"}, {"https://u@api.example.com/", "user or a password"}, {"https://u:sk-real-key@api.example.com/", "user or a password"},
                {"https://a.example/?x", "query"}, {"https://a.example?x", "query"}, {"https://a.example/#x", "fragment"}, {"https://a.example#@b", "fragment"},
                {"https://", "empty"}, {"https:///v1", "empty"}, {"https://:443/", "empty"}, {"https://a.example:/", "port"}, {"https://a.example:0/", "port"},
                {"https://a.example:65536", "port"}, {"https://a.example:443x", "port"}, {"https://127.1/", "number"}, {"https://a b/", "character"}, {"https://a%2e/", "character"},
                {"https://a.example\\\\@b/", "user"}, {"https://a.example\\\\b/", "character"}, {"https://a.example/v1/../x", "segment"}, {"https://a.example/./x", "segment"},
                {"https://a.example/..", "segment"}, {"https://a.example//x", "segment"}, {"https://a.example/x//", "segment"}, {"https://a.example/%2e%2e/x", "character"},
                {"https://a.example/a b", "character"}, {"https://a.example/a\\\\b", "character"}, {"https://a.example/\xc3\xa9", "character"}, {"https://a.example/a;b", "character"},
                {"https://a.example/a\\nb", "character"}, {"https://a.example/\x7f", "character"}, {"https://\xc3\xa9.example/", "not ASCII"}, {"http://u@127.0.0.1/", "user"}, {"http://127.0.0.1/?x", "query"},
        };
        char members[2048];

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                (void) snprintf(members, sizeof(members), "\"p\":{\"baseUrl\":\"%s\"," PLACE "," NAME "}", good[i].url);
                _cleanup_(setup_freep) Setup *s = parse_good(provider(members), KEYS_P);
                const Provider *p = s->providers;
                CHECK_STR(p->host.name, good[i].host);
                CHECK_STR(p->base_path, good[i].path);
                CHECK(p->port == good[i].port && p->tls == good[i].tls);
                if (!good[i].refusal != !p->refusal || (p->refusal && !strstr(p->refusal, good[i].refusal)))
                        test_fail(__FILE__, __LINE__, "%s: %s", good[i].url, p->refusal ?: "not refused");
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                (void) snprintf(members, sizeof(members), "\"p\":{\"baseUrl\":\"%s\"," PLACE "," NAME "}", bad[i][0]);
                refused_with(provider(members), KEYS_P, bad[i][1]);
        }
}

static void test_keys_content(void) {
        static const char *const bad[] = {
                "", "{", "[]", "1", "not json", "{}", "{}{}", "{\"credential\":1}", "{\"credential\":\"\"}", "{\"credential\":\"a b\"}", "{\"credential\":\"a:b\"}", "{\"credential\":\"a\\u0040b\"}",
                "{\"credential\":\"\xc3\xa9\"}", "{\"credential\":\"\\u00e9\"}", "{\"credential\":\"c\",\"credential\":\"c\"}", "{\"credential\":\"c\",\"provider\":{}}", "{\"credential\":null}",
                "{\"credential\":{\"a\":\"b\"}}", "{\"credential\":\"c\",\"providers\":[]}", "{\"credential\":\"c\",\"providers\":{\"p\":\"k\"}}", "{\"credential\":\"c\",\"providers\":{\"p\":{}}}",
                "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"k\"}}}", "{\"credential\":\"c\",\"providers\":{\"p\":{\"standIn\":\"s\"}}}",
                "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"\",\"standIn\":\"s\"}}}", "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"k\",\"standIn\":\"\"}}}",
                "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"k\",\"standIn\":\"s\",\"x\":\"y\"}}}", "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"k\",\"x\":\"s\"}}}", "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"k\",\"key\":\"k\",\"standIn\":\"s\"}}}",
                "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"sk-real\\r\\nX-Evil: 1\",\"standIn\":\"s\"}}}", "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"sk-real\\n\",\"standIn\":\"s\"}}}",
                "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\" sk-real\",\"standIn\":\"s\"}}}", "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"a\\u0000b\",\"standIn\":\"s\"}}}",
                "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"a\\u000db\",\"standIn\":\"s\"}}}", "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"a\x7f\",\"standIn\":\"s\"}}}",
                "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"\\ud83d\\ude00\",\"standIn\":\"s\"}}}", "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":7,\"standIn\":\"s\"}}}",
                "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"sk-real\",\"standIn\":\"sk-real\"}}}", "{\"credential\":\"c\",\"providers\":{\"P\":{\"key\":\"k\",\"standIn\":\"s\"}}}",
                "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":\"k\",\"standIn\":\"s\"},\"p\":{\"key\":\"k\",\"standIn\":\"s\"}}}",
                "{\"credential\":\"c\",\"providers\":{},\"providers\":{}}", "{\"credential\":\"c\",\"providers\":{\"p\":{\"key\":[[[]]],\"standIn\":\"s\"}}}", "{\"credential\":\"c\"}//", "{\"credential\":'c'}",
        };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_free_ char *problem = NULL;
                _cleanup_close_ int fd = sealed(bad[i], strlen(bad[i]));
                Keys *k = NULL;
                if (keys_read(fd, &k, &problem) != -EBADMSG || k)
                        test_fail(__FILE__, __LINE__, "%s was taken", bad[i]);
                CHECK(problem && startswith(problem, "keys: ") && !strstr(problem, "sk-real"));
        }
}

static void test_keys_good(void) {
        static const char text[] = " { \"providers\" : { \"a-1\" : { \"standIn\" : \"errand-session-x_Y-9\" , \"key\" : \"\\u0073k\\/\\\"\\\\~!\" } ,\n\"b\":{\"key\":\"k\",\"standIn\":\"s\"} } , "
                                   "\"cr\\u0065dential\" : \"C\" } ";
        _cleanup_close_ int fd = sealed(text, strlen(text));
        _cleanup_(keys_freep) Keys *k = NULL;

        CHECK_INT(lseek(fd, 0, SEEK_END), strlen(text)); /* wherever its offset is */
        CHECK_INT(keys_read(fd, &k, NULL), 0);
        CHECK_STR(secret_data(k->credential), "C");
        CHECK_INT(k->n_entries, 2);
        CHECK_STR(secret_data(keys_find(k, "a-1")->key), "sk/\"\\~!");
        CHECK_STR(secret_data(keys_find(k, "a-1")->stand_in), "errand-session-x_Y-9");
        CHECK_STR(secret_data(keys_find(k, "b")->key), "k");
        CHECK(!keys_find(k, "c"));
}

static void test_keys_limits(void) {
        _cleanup_free_ char *text = malloc(KEYS_SIZE_MAX + 100);
        static const char head[] = "{\"credential\":\"c\",\"providers\":{\"p\":{\"standIn\":\"s\",\"key\":\"", tail[] = "\"}}}";

        for (size_t n = KEY_SIZE_MAX; n <= KEY_SIZE_MAX + 1; n++) {
                memset(stpcpy(text, head), 'k', n);
                strcpy(text + strlen(head) + n, tail);
                _cleanup_close_ int fd = sealed(text, strlen(text));
                _cleanup_(keys_freep) Keys *k = NULL;
                CHECK_INT(keys_read(fd, &k, NULL), n > KEY_SIZE_MAX ? -EBADMSG : 0);
        }
        for (size_t n = KEYS_SIZE_MAX; n <= KEYS_SIZE_MAX + 1; n++) {
                memset(text, ' ', n);
                memcpy(text, "{\"credential\":\"c\"}", 18);
                _cleanup_close_ int fd = sealed(text, n);
                _cleanup_(keys_freep) Keys *k = NULL;
                CHECK_INT(keys_read(fd, &k, NULL), n > KEYS_SIZE_MAX ? -EBADMSG : 0);
        }
}

static void test_keys_seals(void) {
        static const int seals[] = {0, F_SEAL_WRITE | F_SEAL_SHRINK, F_SEAL_WRITE | F_SEAL_GROW, F_SEAL_SHRINK | F_SEAL_GROW, F_SEAL_SEAL};

        for (size_t i = 0; i < ELEMENTSOF(seals); i++) {
                _cleanup_free_ char *problem = NULL;
                _cleanup_close_ int fd = memfd_create("keys", MFD_CLOEXEC | MFD_ALLOW_SEALING);
                Keys *k = NULL;
                CHECK(fd >= 0 && write_all(fd, KEYS, strlen(KEYS)) == 0 && fcntl(fd, F_ADD_SEALS, seals[i]) == 0);
                CHECK_INT(keys_read(fd, &k, &problem), -EBADMSG);
                CHECK(strstr(problem, "sealed"));
        }
        _cleanup_close_ int plain = file(KEYS, O_RDONLY);
        Keys *k = NULL;
        CHECK_INT(keys_read(plain, &k, NULL), -EBADMSG);
}

/* Whether the heap, freed parts included, holds the text; the program's own constants lie elsewhere. */
static bool heap_holds(const char *text) {
        _cleanup_free_ char *maps = NULL;
        unsigned long start, end;

        CHECK_INT(read_file_full("/proc/self/maps", 1 << 20, &maps, NULL), 0);
        const char *at = strstr(maps, "[heap]");
        if (!at)
                return false;
        while (at > maps && at[-1] != '\n')
                at--;
        CHECK_INT(sscanf(at, "%lx-%lx", &start, &end), 2);
        return memmem((const void *) start, end - start, text, strlen(text)) != NULL;
}

static void test_keys_wiped(void) {
        (void) mallopt(M_PERTURB, 0); /* test runners ask for freed memory to be overwritten, which would hide what is looked for */
        _cleanup_(setup_freep) Setup *s = parse_good(provider("\"p\":{" URL "," PLACE "," NAME "}"), KEYS_P);

        CHECK(secret_size(s->credential) > 0);
        CHECK(!heap_holds(KEY) && !heap_holds(STAND_IN) && !heap_holds(CREDENTIAL));
        /* the search finds what is there */
        _cleanup_free_ char *copy = strdup("another-text-on-the-heap");
        __asm__ volatile("" : : "r"(copy) : "memory"); /* else a compiler sees that nobody reads it */
        CHECK(copy && (SANITIZED || heap_holds("another-text-on-the-heap")));
        refused_with(provider(""), KEYS_P, "does not name");
        CHECK(!heap_holds(KEY) && !heap_holds(STAND_IN) && !heap_holds(CREDENTIAL));
}

static void refused_fds(const char *names, const int *fds, size_t n, const char *says) {
        _cleanup_free_ char *problem = NULL;
        char text[1024];
        Setup *s = NULL;

        (void) snprintf(text, sizeof(text), "{" IDENTITY ",\"fds\":[%s],\"providers\":{\"p\":{" URL "," PLACE "," NAME "}}}", names);
        if (parse_fds(text, fds, n, &s, &problem) >= 0)
                test_fail(__FILE__, __LINE__, "%s was taken", names);
        if (!strstr(problem, says))
                test_fail(__FILE__, __LINE__, "\"%s\" does not say \"%s\"", problem, says);
        for (size_t i = 0; i < n; i++)
                CHECK(fcntl(fds[i], F_GETFD) < 0);
}

static void test_fds(void) {
#define SEALED sealed(KEYS_P, strlen(KEYS_P))
        int pipe_fds[2];

        refused_fds("", NULL, 0, "\"keys\" is missing");
        refused_fds("\"keyss\"", (int[]){SEALED}, 1, "\"keys\" is missing");
        refused_fds("\"keys\",\"other\"", (int[]){SEALED, file("", O_RDONLY)}, 2, "\"other\"");
        refused_fds("\"keys\",\"ca:q\"", (int[]){SEALED, file("-----BEGIN ", O_RDONLY)}, 2, "\"ca:q\"");
        refused_fds("\"keys\",\"ca:\"", (int[]){SEALED, file("-----BEGIN ", O_RDONLY)}, 2, "\"ca:\"");
        refused_fds("\"keys\",\"ca:p\"", (int[]){SEALED, file("no certificate", O_RDONLY)}, 2, "holds no PEM");
        refused_fds("\"keys\",\"ca:p\"", (int[]){SEALED, file("", O_WRONLY)}, 2, "cannot be read");
        CHECK_INT(pipe2(pipe_fds, O_CLOEXEC), 0);
        refused_fds("\"keys\",\"ca:p\"", (int[]){SEALED, pipe_fds[0]}, 2, "not a regular file");
        close(pipe_fds[1]);
        refused_fds("\"keys\",\"ca:p\"", (int[]){SEALED, open("/", O_RDONLY | O_CLOEXEC)}, 2, "not a regular file");
        refused_fds("\"keys\",\"spool\"", (int[]){SEALED, open("/dev/null", O_WRONLY | O_APPEND | O_CLOEXEC)}, 2, "open for appending");
        refused_fds("\"keys\",\"spool\"", (int[]){SEALED, file("", O_RDONLY | O_APPEND)}, 2, "open for appending");
        refused_fds("\"keys\",\"spool\"", (int[]){SEALED, file("", O_RDONLY)}, 2, "open for appending");
        refused_fds("\"keys\",\"spool\"", (int[]){SEALED, file("", O_WRONLY)}, 2, "open for appending");
        CHECK_INT(pipe2(pipe_fds, O_CLOEXEC), 0);
        refused_fds("\"keys\",\"spool\"", (int[]){SEALED, pipe_fds[1]}, 2, "open for appending");
        close(pipe_fds[0]);
        refused_fds("\"keys\"", (int[]){file(KEYS_P, O_RDONLY)}, 1, "sealed");
}

int main(void) {
        RUN(test_whole, "S036 S089: a whole setup");
        RUN(test_defaults, "S135: an egress block left out, and one without a list");
        RUN(test_members, "C119 C125: wrong, missing and unknown members are named");
        RUN(test_never_internal, "C135 C138 S078: no setting opens a cloud's own addresses");
        RUN(test_any_internal, "S078 C135: allowInternal true lifts every internal literal but metadata addresses");
        RUN(test_provider_members, "S089 C185: members of a provider");
        RUN(test_provider_count, "providers are counted");
        RUN(test_bounds, "C171 C175: names, ids and paths up to their limits");
        RUN(test_pattern_count, "patterns are counted");
        RUN(test_base_urls, "S083 S084 S086 C175: base URLs");
        RUN(test_keys_content, "C177: malformed keys, and no word of them");
        RUN(test_keys_good, "C171: keys are read as they are");
        RUN(test_keys_limits, "C177: keys up to their limit");
        RUN(test_keys_seals, "S043 C177: keys come sealed");
        RUN(test_keys_wiped, "S043: no copy of a key is left behind");
        RUN(test_fds, "C177: descriptors of the wrong kind");
        return TEST_END();
}
