/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a request is for, read off its head: the authority of a CONNECT, the URL of an absolute-form request, the path of one that is for this
 * port itself. Pure. */

#include "broker/hosts.h"

typedef enum TargetForm {
        TARGET_CONNECT,  /* host and port */
        TARGET_ABSOLUTE, /* http://: host, port and path */
        TARGET_ORIGIN,   /* path alone */
        TARGET_OTHER,    /* another scheme, or none: nothing more is known of it */
} TargetForm;

typedef struct Target {
        TargetForm form;
        Host host;
        uint16_t port;
        Slice path; /* as sent, query included; "/" where a URL has none. Begins with '/', and has no fragment in the absolute form */
} Target;

/* 0, or -EBADMSG or -ERANGE with a phrase: then form alone is set. Slices point into what head points into. */
int target_parse(const Http1Head *head, Target *ret, const char **ret_problem);

/* One Host field that names host and port, and nothing else; HTTP/1.0 may leave it out. */
bool target_host_matches(const Target *t, const Http1Head *head);

/* Whether it asks for a provider route. */
bool target_is_route(const Target *t);
