/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads the text of a policy, strictly: an unknown table or key, a wrong type or a bad value is an error that names file, line,
 * column and key. man/bailey.toml.5 describes the format. */

#include "bailey/layer.h"
#include "bailey/policy-path.h"

typedef enum PolicyKind {
        POLICY_FILE,
        POLICY_PROFILE, /* a person's: may also say description and applies_to */
        POLICY_BUNDLED, /* compiled in: what names a variable that is not set is left out, and no file stands behind it */
        _POLICY_KIND_MAX,
        _POLICY_KIND_INVALID = -EINVAL,
} PolicyKind;

typedef struct PolicyText {
        const char *text;
        size_t size;
        const char *name; /* what messages and `show` call it */
        const char *base; /* absolute directory that relative paths start from; NULL: there is none, and they are errors */
        PolicyKind kind;
        const PolicyPlaces *places; /* NULL: ~ and variables are errors */
} PolicyText;

/* 0 with all that is wrong in *findings and, when nothing is, *ret set; -ENOMEM. */
int policy_file_parse(const PolicyText *text, Findings *findings, Layer **ret);
