/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Checks of single texts in the configuration. Each returns NULL when s is fine, else a static phrase that completes "VALUE …". */

#include "basic/macro.h"

const char *check_line(const char *s);            /* not empty, no control characters */
const char *check_argument(const char *s);        /* anything but control characters other than tab and newline */
const char *check_account(const char *s);         /* a name as useradd(8) makes them */
const char *check_email(const char *s);
const char *check_provider_id(const char *s);     /* [a-z0-9-]{1,32} */
const char *check_session_variable(const char *s); /* a variable's name, and not one that every session's environment places: PATH, HOME */
const char *check_credential_variable(const char *s); /* a variable's name, and not one of a proxy or the loader */
const char *check_path_element(const char *s);    /* of PATH: no ':' */
const char *check_base_url(const char *s);        /* http:// or https://, a host, no user, query or fragment */
const char *check_incus_name(const char *s);      /* of a project, image alias or instance: no option, no path */
const char *check_image(const char *s);           /* a container image's name: no option, no space */

/* The host in a base URL that check_base_url() takes, normalized; false when there is none. */
bool base_url_host(const char *url, char *ret, size_t size);

/* "127.0.0.1", "::1": a loopback address written as a literal. */
bool host_is_loopback_literal(const char *host);
bool host_is_literal(const char *host);
