/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The proxy that a session's variables name: http://USER:PASSWORD@HOST:PORT. */

#include "basic/secret.h"

typedef struct ProxyUrl {
        char *host;    /* without brackets */
        uint16_t port; /* 80 when the URL has none */
        Secret *basic; /* what Proxy-Authorization carries after "Basic "; NULL: the URL has no user */
} ProxyUrl;

ProxyUrl *proxy_url_free(ProxyUrl *u);
DEFINE_CLEANUP(ProxyUrl *, proxy_url_free);

/* -EBADMSG with a static phrase, -EPROTONOSUPPORT for another scheme than http. */
int proxy_url_parse(const char *text, ProxyUrl **ret, const char **ret_problem);

/* From the first of https_proxy, HTTPS_PROXY, all_proxy, ALL_PROXY that is set and not empty, which *ret_name then is. -ENOENT: none is. */
int proxy_url_from_environment(ProxyUrl **ret, const char **ret_name, const char **ret_problem);
