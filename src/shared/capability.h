/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One call that a provider's key may make: a method and a path. The one definition of what an entry may look like and of what it covers, for
 * the configuration that is checked and the broker that judges. Pure. */

#include "basic/macro.h"

#define CAPABILITY_METHOD_MAX 32U
#define CAPABILITY_PATH_MAX 1024U
#define CAPABILITIES_MAX 256U /* of one provider: a list that is longer wants a "**" */

typedef struct Capability {
        char *method; /* upper case, or "*" for any */
        char *path;   /* begins with '/'; a segment "*" stands for one segment, "**" for any number of them, none included */
} Capability;

void capability_done(Capability *c);
/* Frees the list and what is in it. */
void capabilities_free(Capability *list, size_t n);

/* NULL when it is good, else a phrase that completes "VALUE …". A path that no call could have is a mistake: such calls are refused whatever a
 * list says. */
const char *capability_method_problem(const char *method);
const char *capability_path_problem(const char *path);

/* The path is what follows a provider's route, as it was sent: never decoded, and cut at its query here. "" is the same as "/". */
bool capability_covers(const Capability *c, const char *method, size_t method_size, const char *path, size_t path_size);
bool capabilities_cover(const Capability *list, size_t n, const char *method, size_t method_size, const char *path, size_t path_size);

/* The entry that would name a call, as the configuration takes it: {"method":"POST","path":"/v1/messages"}. method is a standard name, or
 * NULL, which becomes "*"; a segment that no entry can spell ("a*b"), or that a secret was cut out of ("[redacted]"), becomes "*"; what is longer than an entry may be ends in "**". *ret is the
 * caller's to free. */
int capability_entry(const char *method, const char *path, size_t path_size, char **ret);
