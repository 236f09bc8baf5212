/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>

#include "basic/text.h"
#include "broker/provider.h"
#include "broker/target.h"
#include "fuzz.h"
#include "shared/capability.h"

/* Input: four lines. The allowlist, by spaces; a capability; a request's method and target; its Host. From the first line of a request to what is
 * passed on: whoever reads that in another way finds the same host and the same path, or there was nothing to pass on. */

#define ALLOW_MAX 8U
#define SEGMENTS_MAX 512U
#define TIMES_MAX 4U /* that a server decodes */

static char *next_line(char **text) {
        return strsep(text, "\n") ?: (char *) "";
}

/* ---- hosts ---- */

/* "host:port" as a careless client takes it apart: at the last colon, in small letters, without a last dot. */
static void read_authority(Slice text, char *host, size_t room, long *ret_port) {
        _cleanup_free_ char *copy = strndup(text.data, text.size);
        HOLDS(copy);
        char *colon = strrchr(copy, ':'), *close = strrchr(copy, ']');
        size_t n;

        *ret_port = 80;
        if (colon && colon > close) {
                *ret_port = strtol(colon + 1, NULL, 10);
                *colon = 0;
        }
        HOLDS(strlen(copy) < room);
        n = strlen(strcpy(host, copy + (*copy == '[')));
        if (n > 0 && strchr("].", host[n - 1]))
                host[n - 1] = 0;
        for (char *p = host; *p; p++)
                *p = ascii_lower(*p);
}

static void check_authority(Slice text, const Target *t) {
        char host[512];
        struct in6_addr a, b;
        long port;

        /* Nothing in it at which another reader ends a host or begins one. */
        for (size_t i = 0; i < text.size; i++)
                HOLDS(ascii_alpha(text.data[i]) || ascii_digit(text.data[i]) || (text.data[i] && strchr("-_.:[]", text.data[i])));
        read_authority(text, host, sizeof(host), &port);
        HOLDS(port == t->port);
        if (t->host.kind == HOST_IPV6)
                HOLDS(inet_pton(AF_INET6, host, &a) == 1 && inet_pton(AF_INET6, t->host.name, &b) == 1 && memcmp(&a, &b, sizeof(a)) == 0);
        else
                HOLDS(streq(host, t->host.name));
}

/* Whether a list that is written so covers a host that is judged: by its text alone. */
static bool listed(const char *pattern, const Host *host) {
        size_t n = strlen(pattern), h = strlen(host->name);
        struct in6_addr a, b;

        if (streq(pattern, "*"))
                return true;
        if (host->kind == HOST_IPV6)
                return inet_pton(AF_INET6, host->name, &a) == 1 &&
                       inet_pton(AF_INET6, *pattern == '[' ? strndupa(pattern + 1, n - 2) : pattern, &b) == 1 && memcmp(&a, &b, sizeof(a)) == 0;
        if (n > 1 && pattern[n - 1] == '.')
                n--;
        if (pattern[0] == '*') /* with its dot */
                return host->kind == HOST_NAME && h > n - 1 && strncasecmp(host->name + h - (n - 1), pattern + 1, n - 1) == 0;
        return h == n && strncasecmp(host->name, pattern, n) == 0;
}

static void check_allowlist(char *line, const Host *host) {
        HostPattern list[ALLOW_MAX];
        bool expected = false;
        size_t n = 0;

        for (char *word; n < ALLOW_MAX && (word = strsep(&line, " "));)
                if (host_pattern_parse(word, &list[n], NULL) == 0) {
                        expected = expected || listed(word, host);
                        n++;
                }
        HOLDS(host_patterns_match(list, n, host) == expected);
}

/* ---- paths ---- */

typedef struct Segments {
        Slice at[SEGMENTS_MAX];
        size_t n;
} Segments;

static size_t decode(char *text, size_t size) {
        size_t n = 0;

        for (size_t i = 0; i < size; i++)
                if (text[i] == '%' && i + 2 < size && ascii_hex_value(text[i + 1]) >= 0 && ascii_hex_value(text[i + 2]) >= 0) {
                        text[n++] = (char) (ascii_hex_value(text[i + 1]) * 16 + ascii_hex_value(text[i + 2]));
                        i += 2;
                } else
                        text[n++] = text[i];
        return n;
}

/* As the most obliging server: either slash parts, parameters go, a query or fragment ends it, dots are followed, nothing is nothing. */
static bool read_path(const char *path, size_t size, Segments *ret) {
        ret->n = 0;
        for (size_t i = 0; i <= size; i++) {
                Slice s = {path + i, 0};
                while (i < size && path[i] && !strchr("/\\;?#", path[i])) {
                        s.size++;
                        i++;
                }
                while (i < size && path[i] == ';' && ++i)
                        while (i < size && !(path[i] && strchr("/\\;?#", path[i])))
                                i++;
                bool ends = i < size && !strchr("/\\", path[i]);
                if (slice_is(s, "..") && ret->n > 0)
                        ret->n--;
                else if (s.size > 0 && !slice_is(s, ".") && !slice_is(s, "..")) {
                        if (ret->n == SEGMENTS_MAX)
                                return false;
                        ret->at[ret->n++] = s;
                }
                if (ends)
                        break;
        }
        return true;
}

/* However often it is decoded before it is taken apart, it is what is found by taking it apart first. */
static void check_path(const char *path, size_t size) {
        const char *mark = memchr(path, '?', size);
        size_t n = mark ? (size_t) (mark - path) : size;
        _cleanup_free_ char *whole = malloc(n + 1);
        static Segments plain, decoded;
        HOLDS(whole);

        memcpy(whole, path, n);
        if (!read_path(path, n, &plain))
                return;
        for (unsigned times = 1; times <= TIMES_MAX; times++) {
                size_t left = decode(whole, times == 1 ? n : strlen(whole));
                whole[left] = 0;
                HOLDS(strlen(whole) == left);
                HOLDS(read_path(whole, left, &decoded) && decoded.n == plain.n);
                for (size_t i = 0; i < plain.n; i++) {
                        _cleanup_free_ char *s = strndup(plain.at[i].data, plain.at[i].size);
                        HOLDS(s);
                        for (unsigned k = 0; k < times; k++)
                                s[decode(s, strlen(s))] = 0;
                        HOLDS(slice_is(decoded.at[i], s));
                }
        }
}

/* An entry that is spelled out covers what is spelled so; one that ends in "**" what begins so. */
static void check_capability(char *line, const Http1Head *head, Slice rest) {
        char *path = line;
        Capability c = {.method = strsep(&path, " ")};
        c.path = path;

        if (!path || capability_method_problem(c.method) || capability_path_problem(c.path) ||
            !capability_covers(&c, head->method.data, head->method.size, rest.data, rest.size))
                return;
        HOLDS(streq(c.method, "*") || slice_is(head->method, c.method));
        const char *mark = rest.size > 0 ? memchr(rest.data, '?', rest.size) : NULL, *star = strchr(c.path, '*');
        size_t n = mark ? (size_t) (mark - rest.data) : rest.size, spelled = star ? (size_t) (star - c.path) : strlen(c.path);
        if (n <= 1) /* the root, or the route itself */
                HOLDS(spelled <= 1);
        else if (n < spelled)
                HOLDS(streq(star, "**") && n + 1 == spelled && memcmp(rest.data, c.path, n) == 0);
        else
                HOLDS(memcmp(rest.data, c.path, spelled) == 0 && (star || n == spelled));
}

static void check_route(const Http1Head *head, const Target *t, char *capability) {
        static const char *const bases[] = {"", "/v1", "/api/v4"};
        Slice id, rest;

        HOLDS(provider_split(t->path, &id, &rest) == 0);
        HOLDS(id.data == t->path.data + strlen("/provider/") && rest.data == id.data + id.size && rest.data + rest.size == t->path.data + t->path.size);
        HOLDS(!memchr(id.data, '/', id.size) && !memchr(id.data, '?', id.size));
        if (provider_path_problem(rest))
                return;
        check_capability(capability, head, rest);
        for (size_t i = 0; i < ELEMENTSOF(bases); i++) {
                _cleanup_free_ char *line = NULL;
                const char *root = *bases[i] == 0 && (rest.size == 0 || *rest.data != '/') ? "/" : "";
                static Http1Head again;

                /* As relay-request.c writes it. */
                int n = asprintf(&line, "GET %s%s%.*s HTTP/1.1\r\nHost: h\r\n\r\n", bases[i], root, (int) rest.size, rest.data);
                HOLDS(n > 0 && http1_parse_request(line, (size_t) n, &again, NULL) == 0);
                HOLDS(again.target.size == strlen(bases[i]) + strlen(root) + rest.size);
                check_path(again.target.data, again.target.size);
        }
}

/* ---- all of it ---- */

static void check_request(const Http1Head *head, char *allow, char *capability) {
        const char *problem = NULL;
        Target t;

        int r = target_parse(head, &t, &problem);
        HOLDS((r < 0) == (problem != NULL) && (r == 0 || r == -EBADMSG || r == -ERANGE));
        HOLDS((t.form == TARGET_CONNECT) == slice_is(head->method, "CONNECT"));
        if (r < 0 || t.form == TARGET_OTHER)
                return;
        if (t.form == TARGET_ORIGIN)
                HOLDS(t.path.data == head->target.data && t.path.size == head->target.size);
        else {
                Slice authority = head->target;
                if (t.form == TARGET_ABSOLUTE) {
                        authority = (Slice) {head->target.data + strlen("http://"), 0};
                        const char *end = head->target.data + head->target.size;
                        while (authority.data + authority.size < end && authority.data[authority.size] != '/')
                                authority.size++;
                        const char *path = authority.data + authority.size;
                        HOLDS(path == end ? slice_is(t.path, "/") : t.path.data == path && path + t.path.size == end);
                        HOLDS(!memchr(t.path.data, '#', t.path.size));
                }
                check_authority(authority, &t);
                check_allowlist(allow, &t.host);
                /* A Host that passes names what is judged, for whoever goes by it. */
                if (target_host_matches(&t, head) && http1_count(head, "Host") == 1) {
                        Target named = t;
                        char host[512];
                        long port;
                        read_authority(http1_find(head, "Host")->value, host, sizeof(host), &port);
                        HOLDS(t.host.kind == HOST_IPV6 || streq(host, named.host.name));
                }
        }
        if (t.form != TARGET_CONNECT && target_is_route(&t))
                check_route(head, &t, capability);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_free_ char *text = size > 0 && size < 8192 ? strndup((const char *) data, size) : NULL, *request = NULL;
        static Http1Head head;

        if (!text)
                return 0;
        char *rest = text, *allow = next_line(&rest), *capability = next_line(&rest), *line = next_line(&rest), *host = next_line(&rest);
        int n = asprintf(&request, "%s HTTP/1.1\r\nHost: %s\r\n\r\n", line, host);
        HOLDS(n > 0);
        if (http1_find_head_end(request, (size_t) n, NULL) == n && http1_parse_request(request, (size_t) n, &head, NULL) == 0) {
                char *copy = strdup(capability);
                HOLDS(copy);
                check_request(&head, allow, copy);
                free(copy);
        }
        return 0;
}
