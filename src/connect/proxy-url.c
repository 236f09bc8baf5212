/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/base64.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "connect/proxy-url.h"

#define HOST_MAX 253U
#define USERINFO_MAX 1024U

ProxyUrl *proxy_url_free(ProxyUrl *u) {
        if (!u)
                return NULL;
        free(u->host);
        secret_free(u->basic);
        return mfree(u);
}

static int refuse(const char **ret_problem, const char *problem, int error) {
        *ret_problem = problem;
        return error;
}

/* "user:password" with percent-encoding taken away; buffer holds as many bytes as text. */
static ssize_t decode(const char *text, size_t size, char *buffer) {
        size_t n = 0;

        for (size_t i = 0; i < size; i++) {
                if (text[i] != '%') {
                        buffer[n++] = text[i];
                        continue;
                }
                int high = i + 2 < size ? ascii_hex_value(text[i + 1]) : -1, low = i + 2 < size ? ascii_hex_value(text[i + 2]) : -1;
                if (high < 0 || low < 0)
                        return -EBADMSG;
                buffer[n++] = (char) (high << 4 | low);
                i += 2;
        }
        return (ssize_t) n;
}

static int parse_userinfo(const char *text, size_t size, ProxyUrl *u, const char **ret_problem) {
        char plain[USERINFO_MAX], encoded[BASE64_SIZE(USERINFO_MAX)];

        if (size > USERINFO_MAX)
                return refuse(ret_problem, "user and password are too long", -EBADMSG);
        ssize_t n = decode(text, size, plain);
        int r = n < 0 ? refuse(ret_problem, "user or password have a '%' that is followed by no two hexadecimal digits", -EBADMSG)
                      : secret_new(encoded, base64_encode(plain, (size_t) n, encoded), &u->basic);
        secret_wipe(plain, sizeof(plain));
        secret_wipe(encoded, sizeof(encoded));
        return r;
}

static int parse_host(const char *text, size_t size, ProxyUrl *u, const char **ret_problem) {
        const char *end = text + size, *host = text, *port = NULL;

        if (size > 0 && text[0] == '[') {
                const char *close = memchr(text, ']', size);
                if (!close || (close + 1 < end && close[1] != ':'))
                        return refuse(ret_problem, "its host has an opening bracket without a closing one", -EBADMSG);
                port = close + 1 < end ? close + 2 : NULL;
                host++;
                end = close;
        } else {
                const char *colon = memchr(text, ':', size);
                port = colon ? colon + 1 : NULL;
                end = colon ?: end;
        }
        if (host == end || (size_t) (end - host) > HOST_MAX)
                return refuse(ret_problem, "it names no host", -EBADMSG);
        uint64_t number = 80;
        if (port && (parse_u64_n(port, (size_t) (text + size - port), UINT16_MAX, &number) < 0 || number == 0))
                return refuse(ret_problem, "its port is not one of 1 to 65535", -EBADMSG);
        u->host = strndup(host, (size_t) (end - host));
        u->port = (uint16_t) number;
        return u->host ? 0 : -ENOMEM;
}

int proxy_url_parse(const char *text, ProxyUrl **ret, const char **ret_problem) {
        const char *rest = startswith(text, "http://");

        if (!rest)
                return refuse(ret_problem, "it is no http:// address", -EPROTONOSUPPORT);
        _cleanup_(proxy_url_freep) ProxyUrl *u = calloc(1, sizeof(ProxyUrl));
        if (!u)
                return -ENOMEM;
        size_t size = strcspn(rest, "/?#");
        const char *at = memrchr(rest, '@', size);
        int r = at ? parse_userinfo(rest, (size_t) (at - rest), u, ret_problem) : 0;
        const char *host = at ? at + 1 : rest;
        if (r >= 0)
                r = parse_host(host, (size_t) (rest + size - host), u, ret_problem);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(u);
        return 0;
}

int proxy_url_from_environment(ProxyUrl **ret, const char **ret_name, const char **ret_problem) {
        static const char *const names[] = {"https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"};

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                const char *value = getenv(names[i]);
                if (!value || !*value)
                        continue;
                *ret_name = names[i];
                return proxy_url_parse(value, ret, ret_problem);
        }
        return -ENOENT;
}
