/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>

#include "basic/parse.h"
#include "basic/text.h"
#include "errandd/config-values.h"
#include "errandd/host-text.h"

static bool consists_of(const char *s, const char *extra, size_t max) {
        size_t n = strlen(s);

        for (size_t i = 0; i < n; i++)
                if (!ascii_alpha(s[i]) && !ascii_digit(s[i]) && !strchr(extra, s[i]))
                        return false;
        return n > 0 && n <= max;
}

static bool has_control(const char *s, const char *except) {
        for (; *s; s++)
                if (((unsigned char) *s < 0x20 || *s == 0x7f) && !strchr(except, *s))
                        return true;
        return false;
}

const char *check_line(const char *s) {
        if (!*s)
                return "is empty";
        return has_control(s, "") ? "holds control characters" : NULL;
}

const char *check_argument(const char *s) {
        return has_control(s, "\t\n") ? "holds control characters" : NULL;
}

const char *check_account(const char *s) {
        if (!consists_of(s, "_-.", 31) || ascii_digit(s[0]) || s[0] == '-' || s[0] == '.')
                return "is not an account's name";
        return NULL;
}

const char *check_email(const char *s) {
        const char *at = strchr(s, '@');

        if (!at || at == s || !at[1] || has_control(s, "") || strpbrk(s, " <>,;"))
                return "is not an e-mail address";
        return NULL;
}

const char *check_provider_id(const char *s) {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789-");

        return n == 0 || n > 32 || s[n] || s[0] == '-' ? "is not a provider's id (1 to 32 of a-z, 0-9 and '-', not first a '-')"
                                                       : NULL;
}

static const char *check_variable(const char *s) {
        return !consists_of(s, "_", 128) || ascii_digit(s[0])
                       ? "is not a variable's name (letters, digits and '_', not first a digit)"
                       : NULL;
}

const char *check_session_variable(const char *s) {
        if (streq(s, "PATH"))
                return "is placed by the policy of each session; name directories under sandbox.pathExtra instead";
        if (streq(s, "HOME"))
                return "is placed by the policy of each session and cannot be set";
        return check_variable(s);
}

const char *check_credential_variable(const char *s) {
        static const char *const taken[] = {"http_proxy", "https_proxy", "all_proxy", "no_proxy",
                                            "user",       "logname",     "shell",     "tmpdir"};
        const char *problem = check_variable(s);

        if (problem)
                return problem;
        for (size_t i = 0; i < ELEMENTSOF(taken); i++)
                if (ascii_case_equal(s, strlen(s), taken[i]))
                        return "is a variable that each session has already";
        if (streq(s, "PATH") || streq(s, "HOME") || startswith(s, "LD_") || startswith(s, "BAILEY_") || startswith(s, "ERRAND_"))
                return "is a variable that each session has already, or that changes how programs are loaded";
        return NULL;
}

const char *check_path_element(const char *s) {
        return strchr(s, ':') ? "holds a ':', which would divide it in PATH" : check_line(s);
}

static const char *check_url_path(const char *path) {
        while (*path) {
                size_t n = strcspn(++path, "/");
                if (n == 0 && path[0])
                        return "has an empty segment in its path";
                if ((n == 1 && path[0] == '.') || (n == 2 && startswith(path, "..")))
                        return "has a . or .. segment in its path";
                path += n;
        }
        return NULL;
}

static const char *url_authority(const char *url) {
        return startswith(url, "https://") ?: startswith(url, "http://");
}

bool base_url_host(const char *url, char *ret, size_t size) {
        const char *from = url_authority(url);
        char text[HOST_TEXT_MAX + 3], host[HOST_TEXT_MAX + 1];

        if (!from)
                return false;
        size_t n = strcspn(from, "/");
        const char *bracket = from[0] == '[' ? memchr(from, ']', n) : NULL;
        const char *colon = memchr(bracket ?: from, ':', n - (size_t) (bracket ? bracket - from : 0));
        if (from[0] == '[' && (!bracket || (bracket[1] != ':' && bracket + 1 != from + n)))
                return false;
        size_t host_size = colon ? (size_t) (colon - from) : n;
        if (host_size >= sizeof(text))
                return false;
        memcpy(text, from, host_size);
        text[host_size] = 0;
        if (host_text_normalize(text, 0, host, NULL) < 0 || strlen(host) >= size)
                return false;
        if (colon) {
                char digits[8];
                uint16_t port;
                size_t k = n - host_size - 1;
                if (k >= sizeof(digits))
                        return false;
                memcpy(digits, colon + 1, k);
                digits[k] = 0;
                if (parse_port(digits, &port) < 0)
                        return false;
        }
        strcpy(ret, host);
        return true;
}

const char *check_base_url(const char *s) {
        const char *authority = url_authority(s);
        char host[HOST_TEXT_MAX + 1];

        if (!authority)
                return "is not an https:// URL";
        for (const char *p = s; *p; p++)
                if ((unsigned char) *p <= 0x20 || (unsigned char) *p >= 0x7f || *p == '\\')
                        return "holds a character that has no place in a URL";
        if (memchr(authority, '@', strcspn(authority, "/")))
                return "carries a user name or password";
        if (strpbrk(s, "?#"))
                return "has a query or a fragment";
        if (!base_url_host(s, host, sizeof(host)))
                return "has no proper host or port";
        return check_url_path(authority + strcspn(authority, "/"));
}

const char *check_incus_name(const char *s) {
        return !consists_of(s, "-_./:", 255) || s[0] == '-' ? "is not a name that Incus takes" : NULL;
}

const char *check_image(const char *s) {
        return !consists_of(s, "-_./:@", 255) || s[0] == '-' ? "is not the name of a container image" : NULL;
}

bool host_is_literal(const char *host) {
        struct in6_addr six;
        struct in_addr four;

        return inet_pton(AF_INET, host, &four) == 1 || inet_pton(AF_INET6, host, &six) == 1;
}

bool host_is_loopback_literal(const char *host) {
        struct in6_addr six;
        struct in_addr four;

        if (inet_pton(AF_INET, host, &four) == 1)
                return ntohl(four.s_addr) >> 24 == 127;
        return inet_pton(AF_INET6, host, &six) == 1 && IN6_IS_ADDR_LOOPBACK(&six);
}
