/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A session's id as every program takes it: [a-z0-9]{1,28}. It stands as it is in paths of files, sockets and objects. */

#include "basic/macro.h"

#define SESSION_ID_MAX 28U /* a dynamic user eb-ID may have 31 characters */

/* How many bytes at the beginning of s an id may be made of. */
static inline size_t session_id_span(const char *s) {
        return strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789");
}

static inline bool session_id_valid(const char *s) {
        size_t n = session_id_span(s);
        return n > 0 && n <= SESSION_ID_MAX && s[n] == 0;
}
