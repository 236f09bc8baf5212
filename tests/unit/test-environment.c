/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "basic/text.h"
#include "errandd/environment.h"
#include "test.h"

static const char text[] =
        "{\"agent\":{\"providers\":{"
        "\"anthropic\":{\"baseUrl\":\"https://a.example\",\"credential\":\"sk-real-anthropic\"},"
        "\"my-openai\":{\"kind\":\"openai\",\"baseUrl\":\"https://o.example/v1\",\"credential\":\"sk-real-openai\",\"credentialName\":\"OPENAI_API_KEY\"},"
        "\"other\":{\"kind\":\"openai\",\"baseUrl\":\"https://p.example\",\"credential\":\"sk-real-other\"},"
        "\"gemini\":{\"header\":\"x-goog-api-key\",\"baseUrl\":\"https://g.example\",\"credential\":\"sk-real-gemini\"},"
        "\"open\":{\"broker\":false,\"credential\":\"sk-open-key\"},"
        "\"short\":{\"broker\":false,\"credential\":\"short\"}}},"
        "\"github\":{\"token\":\"ghp_0123456789\",\"userName\":\"A B\"},"
        "\"sandbox\":{\"pathExtra\":[\"/opt/x/bin\"],\"env\":{\"CARGO_HOME\":\"/c\",\"http_proxy\":\"http://evil\"}}}";

static Config *config;
static Credentials *credentials;

static void set_up(bool brokered) {
        char **problems = NULL;
        Fault f = {};

        config = config_free(config);
        credentials = credentials_free(credentials);
        if (config_parse("errand.json", text, strlen(text), CONFIG_EMBEDDED, &config, &problems) < 0)
                test_fail(__FILE__, __LINE__, "%s", problems ? problems[0] : "?");
        if (credentials_new(config, brokered ? SESSION_NETWORK_BROKER : SESSION_NETWORK_NONE, &credentials, &f) < 0)
                test_fail(__FILE__, __LINE__, "%s", f.text);
}

static const char *value_of(char *const *list, const char *name) {
        size_t n = strlen(name);
        const char *found = NULL;

        for (; list && *list; list++)
                if (strncmp(*list, name, n) == 0 && (*list)[n] == '=') {
                        CHECK(!found); /* each name once: bailey refuses others */
                        found = *list + n + 1;
                }
        return found;
}

static bool is_minted(const char *s) {
        const char *rest = s ? startswith(s, "errand-session-") : NULL;
        return rest && strlen(rest) == 64 && strspn(rest, "0123456789abcdef") == 64;
}

static void test_brokered(void) {
        char *own[] = {(char *) "CARGO_HOME=/mine", (char *) "ANTHROPIC_API_KEY=mine", (char *) "LANG=de", NULL};
        char expected[256];
        char **list;

        set_up(true);
        CHECK_INT(environment_build(&(EnvironmentInput){.config = config, .credentials = credentials, .port = 20001, .env = own}, &list), 0);
        CHECK(is_minted(secret_data(credentials->credential)));
        (void) snprintf(expected, sizeof(expected), "http://errand:%s@127.0.0.1:20001", secret_data(credentials->credential));
        const char *const http[] = {"http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};
        for (size_t i = 0; i < ELEMENTSOF(http); i++)
                CHECK_STR(value_of(list, http[i]), expected);
        CHECK_STR(value_of(list, "no_proxy"), "127.0.0.1,localhost,::1");
        CHECK_STR(value_of(list, "NO_PROXY"), "127.0.0.1,localhost,::1");
        CHECK(is_minted(value_of(list, "ANTHROPIC_API_KEY")));
        CHECK(is_minted(value_of(list, "OPENAI_API_KEY")));
        CHECK(strcmp(value_of(list, "ANTHROPIC_API_KEY"), value_of(list, "OPENAI_API_KEY")) != 0);
        CHECK_STR(value_of(list, "ERRAND_PROVIDER_ANTHROPIC_URL"), "http://127.0.0.1:20001/provider/anthropic");
        CHECK_STR(value_of(list, "ERRAND_PROVIDER_MY_OPENAI_URL"), "http://127.0.0.1:20001/provider/my-openai");
        CHECK_STR(value_of(list, "ANTHROPIC_BASE_URL"), "http://127.0.0.1:20001/provider/anthropic");
        CHECK_STR(value_of(list, "OPENAI_BASE_URL"), "http://127.0.0.1:20001/provider/my-openai");
        CHECK_STR(value_of(list, "GOOGLE_GEMINI_BASE_URL"), "http://127.0.0.1:20001/provider/gemini");
        CHECK(is_minted(value_of(list, "GEMINI_API_KEY")));
        CHECK_STR(value_of(list, "OPEN_API_KEY"), "sk-open-key");
        CHECK(!value_of(list, "ERRAND_PROVIDER_OPEN_URL"));
        CHECK_STR(value_of(list, "CARGO_HOME"), "/mine");
        CHECK_STR(value_of(list, "LANG"), "de");
        CHECK_STR(value_of(list, "PATH"), "/opt/x/bin:/usr/local/bin:/usr/bin:/bin");
        CHECK_STR(value_of(list, "GITHUB_TOKEN"), "ghp_0123456789");
        CHECK_STR(value_of(list, "GIT_AUTHOR_NAME"), "A B");
        CHECK(!value_of(list, "TERM") && !value_of(list, "HOME"));
        for (char **s = list; *s; s++)
                CHECK(!strstr(*s, "sk-real-"));
        environment_free(list);
}

static void test_connect(void) {
        static const char *const cases[][2] = {{"/usr/bin/errand-connect", "/opt/x/bin:/usr/local/bin:/usr/bin:/bin"},
                                               {"/srv/e/.bin/errand-connect", "/opt/x/bin:/usr/local/bin:/usr/bin:/bin:/srv/e/.bin"},
                                               {"/srv/a:b/errand-connect", "/opt/x/bin:/usr/local/bin:/usr/bin:/bin"}};
        char *own[] = {(char *) "NODE_USE_ENV_PROXY=0", NULL};
        char **list;

        set_up(true);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                CHECK_INT(environment_build(&(EnvironmentInput){.config = config, .credentials = credentials, .port = 20001, .connect = cases[i][0]}, &list), 0);
                CHECK_STR(value_of(list, "PATH"), cases[i][1]);
                CHECK_STR(value_of(list, "NODE_USE_ENV_PROXY"), "1");
                environment_free(list);
        }
        CHECK_INT(environment_build(&(EnvironmentInput){.config = config, .credentials = credentials, .port = 20001, .env = own}, &list), 0);
        CHECK_STR(value_of(list, "NODE_USE_ENV_PROXY"), "0");
        environment_free(list);
}

static void test_choice(void) {
        char **list;

        set_up(true);
        CHECK_INT(environment_build(&(EnvironmentInput){.config = config, .credentials = credentials, .port = 20001, .provider = "other",
                                                        .interactive = true}, &list), 0);
        CHECK_STR(value_of(list, "OPENAI_BASE_URL"), "http://127.0.0.1:20001/provider/other");
        CHECK_STR(value_of(list, "TERM"), "xterm-256color");
        environment_free(list);
}

static void test_without_network(void) {
        char **list;

        set_up(false);
        CHECK_INT(environment_build(&(EnvironmentInput){.config = config, .credentials = credentials}, &list), 0);
        CHECK(!value_of(list, "https_proxy") && !value_of(list, "NODE_USE_ENV_PROXY") && !value_of(list, "ANTHROPIC_API_KEY") && !value_of(list, "OPEN_API_KEY") &&
              !value_of(list, "GITHUB_TOKEN"));
        environment_free(list);
}

static void test_open(void) {
        Fault f = {};
        char **list;

        set_up(false);
        credentials = credentials_free(credentials);
        CHECK_INT(credentials_new(config, SESSION_NETWORK_OPEN, &credentials, &f), 0);
        CHECK_INT(environment_build(&(EnvironmentInput){.config = config, .credentials = credentials}, &list), 0);
        CHECK(!value_of(list, "https_proxy") && !value_of(list, "ANTHROPIC_BASE_URL") && !value_of(list, "ERRAND_PROVIDER_ANTHROPIC_URL"));
        CHECK(value_of(list, "ANTHROPIC_API_KEY") && !startswith(value_of(list, "ANTHROPIC_API_KEY"), "errand-session-"));
        environment_free(list);
}

static void test_fresh(void) {
        _cleanup_free_ char *first = NULL;

        set_up(true);
        first = strdup(secret_data(credentials->credential));
        _cleanup_free_ char *stand_in = strdup(secret_data(credentials->providers[0].stand_in));
        set_up(true);
        CHECK(strcmp(first, secret_data(credentials->credential)) != 0);
        CHECK(strcmp(stand_in, secret_data(credentials->providers[0].stand_in)) != 0);
        CHECK_INT(secret_size(credentials->token), 64);
}

static size_t read_sealed(int fd, char *buffer, size_t size) {
        CHECK(fd >= 0);
        CHECK((fcntl(fd, F_GET_SEALS) & (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)) == (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE));
        ssize_t n = pread(fd, buffer, size, 0);
        CHECK(n >= 0);
        return (size_t) n;
}

static void test_sealed(void) {
        char *list[] = {(char *) "A=1", (char *) "B=two", NULL};
        char buffer[4096];
        int fd = -EBADF;

        CHECK_INT(environment_seal(list, &fd), 0);
        size_t n = read_sealed(fd, buffer, sizeof(buffer));
        CHECK_INT(n, 10);
        CHECK(memcmp(buffer, "A=1\0B=two\0", 10) == 0);
        close(fd);

        set_up(true);
        CHECK_INT(scrub_seal(credentials, &fd), 0);
        n = read_sealed(fd, buffer, sizeof(buffer));
        CHECK(memmem(buffer, n, "ghp_0123456789", 15));
        CHECK(memmem(buffer, n, "sk-open-key", 12));
        CHECK(!memmem(buffer, n, "sk-real", 7)); /* the shim is not given what the session is not */
        CHECK(!memmem(buffer, n, "short", 5));
        CHECK(memmem(buffer, n, secret_data(credentials->credential), secret_size(credentials->credential)));
        close(fd);

        CHECK_INT(credentials_format_keys(credentials, &fd), 0);
        n = read_sealed(fd, buffer, sizeof(buffer));
        CHECK(memmem(buffer, n, "sk-real-anthropic", 17) && !memmem(buffer, n, "sk-open-key", 11));
        close(fd);
}

static void test_no_url(void) {
        static const char none[] = "{\"agent\":{\"providers\":{\"local-model\":{\"credential\":\"0123456789\"}}}}";
        char **problems = NULL;
        Credentials *c = NULL;
        Fault f = {};

        config = config_free(config);
        CHECK_INT(config_parse("errand.json", none, strlen(none), CONFIG_EMBEDDED, &config, &problems), 0);
        CHECK_INT(credentials_new(config, SESSION_NETWORK_BROKER, &c, &f), -EBADMSG);
        CHECK(strstr(f.text, "agent.providers.local-model has no baseUrl"));
        fault_done(&f);
}

int main(void) {
        RUN(test_brokered, "S204: a brokered session's variables, each once, without a real key of a brokered provider");
        RUN(test_connect, "C089 C090: errand-connect is found in PATH; Node is told of the proxy unless somebody chose otherwise");
        RUN(test_choice, "S204: the provider that was asked for has its kind's usual variable");
        RUN(test_without_network, "a session without a network is given no key");
        RUN(test_open, "S028 S211: with open egress there is no proxy, no route, and the real key");
        RUN(test_fresh, "S043: credential, stand-ins and token are minted at each start");
        RUN(test_sealed, "C058 S217 S223: secrets travel in sealed memfds; the scrub list holds what the session was given");
        RUN(test_no_url, "a provider whose address nobody knows is refused by name");
        config_free(config);
        credentials_free(credentials);
        return TEST_END();
}
