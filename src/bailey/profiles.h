/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Named policies to start from: those that are compiled in (profiles/NAME.toml), and a person's own
 * ($XDG_CONFIG_HOME/bailey/profiles/NAME.toml). Each is a layer over the floor. */

#include "bailey/account.h"
#include "bailey/policy-file.h"

#define PROFILE_FLOOR "untrusted"

/* The text of a bundled profile, NULL for another name; *ret_description may be NULL. */
const char *profile_bundled(const char *name, const char **ret_description);
const char *profile_bundled_name(size_t index); /* NULL beyond the last */

/* The floor as a layer, without reading it. */
int profile_new_floor(Layer **ret);

typedef struct ProfileRequest {
        const Account *account;
        const char *config_directory;
        const PolicyPlaces *places;
        const char *target; /* absolute, as named; NULL: a shell, which no applies_to names */
} ProfileRequest;

/* The profile of that name; with name NULL the person's own that applies to the target, if there is one. *ret stays NULL for the
 * floor's name, for none, and after an error in *findings. The layer's name is "profile NAME". -ENOMEM. */
int profile_load(const ProfileRequest *request, const char *name, Findings *findings, Layer **ret);

/* A profile as bailey profile lists it. */
typedef struct Profile {
        char *name, *path; /* path NULL: bundled */
        char *text;
        Layer *layer;      /* NULL: there is something wrong in it */
} Profile;

void profile_done(Profile *p);

/* The person's own ones, sorted by name; what is wrong with them is in *findings. *ret is to be freed with each done. */
int profile_own(const ProfileRequest *request, Findings *findings, Profile **ret, size_t *ret_n);
