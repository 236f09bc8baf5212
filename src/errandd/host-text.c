/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>

#include "basic/text.h"
#include "errandd/host-text.h"

#define NAME_MAX_BYTES 253U
#define LABEL_MAX_BYTES 63U

static int refuse(const char **ret_problem, const char *problem) {
        if (ret_problem)
                *ret_problem = problem;
        return -EBADMSG;
}

/* What a resolver may read as an IPv4 address in octal, hexadecimal or short form. */
static bool reads_as_number(const char *name) {
        const char *dot = strrchr(name, '.'), *last = dot ? dot + 1 : name;

        return (last[0] == '0' && last[1] == 'x') || last[strspn(last, "0123456789")] == 0;
}

static bool canonical_ipv4(const char *name) {
        char canonical[INET_ADDRSTRLEN];
        struct in_addr address;

        return inet_pton(AF_INET, name, &address) == 1 && inet_ntop(AF_INET, &address, canonical, sizeof(canonical)) &&
               streq(name, canonical);
}

static int check_labels(const char *name, const char **ret_problem) {
        for (;; name++) {
                size_t n = strcspn(name, ".");
                if (n == 0)
                        return refuse(ret_problem, "has an empty label");
                if (n > LABEL_MAX_BYTES)
                        return refuse(ret_problem, "has a label of more than 63 bytes");
                name += n;
                if (*name == 0)
                        return 0;
        }
}

/* *ret_address: the name is an IPv4 address. */
static int normalize_name(const char *s, size_t size, char *ret, bool *ret_address, const char **ret_problem) {
        if (size > 1 && s[size - 1] == '.')
                size--;
        if (size == 0)
                return refuse(ret_problem, "is empty");
        if (size > NAME_MAX_BYTES)
                return refuse(ret_problem, "is longer than 253 bytes");
        for (size_t i = 0; i < size; i++) {
                if ((unsigned char) s[i] >= 0x80)
                        return refuse(ret_problem, "is not ASCII; write the name in its xn-- form");
                if (!ascii_alpha(s[i]) && !ascii_digit(s[i]) && !strchr("-_.", s[i]))
                        return refuse(ret_problem,
                                      "is not a host name alone (letters, digits, '-', '_' and '.'; no scheme, port or path)");
                ret[i] = ascii_lower(s[i]);
        }
        ret[size] = 0;
        /* A host is quoted in advice to run a command with it. */
        if (ret[0] == '-')
                return refuse(ret_problem, "begins with '-'");
        int r = check_labels(ret, ret_problem);
        if (r < 0)
                return r;
        *ret_address = reads_as_number(ret);
        if (*ret_address && !canonical_ipv4(ret))
                return refuse(ret_problem, "reads as a number but is not a plain IPv4 address");
        return 0;
}

static int normalize_ipv6(const char *s, size_t size, char *ret, const char **ret_problem) {
        struct in6_addr address;
        char copy[INET6_ADDRSTRLEN];

        if (size >= sizeof(copy))
                return refuse(ret_problem, "is not an IPv6 address");
        memcpy(copy, s, size);
        copy[size] = 0;
        if (inet_pton(AF_INET6, copy, &address) != 1 || !inet_ntop(AF_INET6, &address, ret, INET6_ADDRSTRLEN))
                return refuse(ret_problem, "is neither a host name alone (no scheme, port or path) nor an IPv6 address");
        return 0;
}

int host_text_normalize(const char *s, HostTextFlags flags, char ret[static HOST_TEXT_MAX + 1], const char **ret_problem) {
        char text[HOST_TEXT_MAX + 1] = "";
        const char *below = startswith(s, "*.");
        bool address = false;
        size_t size = strlen(s);
        int r;

        if (streq(s, "*")) {
                if (!(flags & HOST_TEXT_ANY))
                        return refuse(ret_problem, "would cover every host");
                strcpy(ret, "*");
                return 0;
        }
        if (strchr(below ?: s, '*') || (below && !(flags & HOST_TEXT_WILDCARD)))
                return refuse(ret_problem, "has a '*' elsewhere than alone or as the whole first label (*.example.com)");
        if (below) {
                r = normalize_name(below, size - 2, text + 2, &address, ret_problem);
                if (r < 0)
                        return r;
                if (address || !strchr(text + 2, '.'))
                        return refuse(ret_problem,
                                      "has a '*' before an address or a single label, which would cover a whole top-level domain");
                memcpy(text, "*.", 2);
        } else if (s[0] == '[' && s[size - 1] == ']')
                r = normalize_ipv6(s + 1, size - 2, text, ret_problem);
        else if (strchr(s, ':'))
                r = normalize_ipv6(s, size, text, ret_problem);
        else
                r = normalize_name(s, size, text, &address, ret_problem);
        if (r < 0)
                return r;
        strcpy(ret, text);
        return 0;
}

bool host_text_covers_strangers(const char *pattern) {
        static const char *const second_levels[] = {"ac", "co", "com", "edu", "gen", "go", "gob", "gov", "gv", "id", "ltd", "me", "mil", "ne", "net", "nom",
                                                    "or", "org", "plc", "sch", "web"};
        static const char *const hosting[] = {
                "amazonaws.com", "appspot.com", "azureedge.net", "azurewebsites.net", "blogspot.com", "cloudapp.net", "cloudfront.net", "fastly.net", "firebaseapp.com",
                "fly.dev", "github.io", "githubusercontent.com", "gitlab.io", "herokuapp.com", "netlify.app", "ngrok.io", "onrender.com", "pages.dev", "r2.dev",
                "run.app", "s3.amazonaws.com", "storage.googleapis.com", "trycloudflare.com", "vercel.app", "web.app", "windows.net", "workers.dev",
        };
        const char *name = startswith(pattern, "*."), *dot;

        if (!name || !(dot = strchr(name, '.')))
                return false;
        for (size_t i = 0; i < ELEMENTSOF(hosting); i++)
                if (streq(name, hosting[i]))
                        return true;
        for (size_t i = 0; i < ELEMENTSOF(second_levels); i++)
                if (strlen(dot + 1) == 2 && strlen(second_levels[i]) == (size_t) (dot - name) && startswith(name, second_levels[i]))
                        return true;
        return false;
}

bool host_text_covers(const char *pattern, const char *host) {
        if (streq(pattern, "*") || streq(pattern, host))
                return true;
        if (pattern[0] != '*' || host[0] == '[' || strchr(host, ':'))
                return false;
        /* ".example.com" ends "a.example.com" and "*.a.example.com", but not "example.com" nor "*.example.com", which was equal. */
        const char *tail = endswith(host, pattern + 1);
        return tail && tail > host && !streq(host, "*");
}
