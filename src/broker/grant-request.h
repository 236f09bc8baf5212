/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Grants as a supervisor words them (control.h): one in a message, or a list of them in a text. */

#include "shared/json-check.h" /* before GLib, which defines MIN and MAX anew */

#include "broker/grants.h"

#define GRANTS_TEXT_MAX (512U * 1024U) /* bytes: GRANTS_MAX grants of the longest ids and hosts */

/* The strings are o's. -EBADMSG with *ret_problem, a static sentence: a member is missing, or of another kind. What else o has is the caller's to judge. */
int grant_request_read(JsonObject *o, GrantRequest *ret, const char **ret_problem);

/* A text {"grants":[{"id","host","duration","expires"},…]}, which has to be in a memfd sealed against every change. *ret, to free, is of *ret_n whose strings
 * are *ret_parser's, NULL with 0 when the list is empty. -EBADMSG with *ret_problem, to free: it is not such a text, to the last member. */
int grant_requests_read(int fd, JsonParser **ret_parser, GrantRequest **ret, size_t *ret_n, char **ret_problem);
/* The same of a text in memory. */
int grant_requests_parse(const char *text, size_t size, JsonParser **ret_parser, GrantRequest **ret, size_t *ret_n, char **ret_problem);
