/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where the configuration says that a secret is: inline, {"file": PATH} or {"systemdCredential": NAME}. Reading the configuration
 * opens none of them; a source is resolved when a session needs it, so a changed key file counts from the next start on. */

#include "basic/secret.h"

typedef enum SecretSourceKind {
        SECRET_SOURCE_NONE,
        SECRET_SOURCE_INLINE,
        SECRET_SOURCE_FILE,
        SECRET_SOURCE_SYSTEMD_CREDENTIAL,
} SecretSourceKind;

typedef struct SecretSource {
        SecretSourceKind kind;
        Secret *value; /* INLINE */
        char *name;    /* FILE: a collapsed absolute path; SYSTEMD_CREDENTIAL: [A-Za-z0-9_.-]{1,255}, no leading '.' */
} SecretSource;

void secret_source_done(SecretSource *s);

bool systemd_credential_name_valid(const char *s);

typedef enum SecretForm {
        SECRET_ONE_LINE, /* a key or token as it goes into a header: printable ASCII without spaces; one newline at its end is dropped */
        SECRET_TEXT,     /* a private key in PEM */
} SecretForm;

/* NULL when data is fine in that form, else a phrase that holds nothing of it. */
const char *secret_form_problem(SecretForm form, const char *data, size_t size);

/* credentials_directory is the value of $CREDENTIALS_DIRECTORY, or NULL. -EBADMSG with *ret_problem, a sentence without the secret (to
 * free), when it is not there, not a regular file, readable or writable for every account, over 64 KiB, empty or malformed. -ENOENT for NONE. */
int secret_source_resolve(const SecretSource *s, SecretForm form, const char *credentials_directory, Secret **ret, char **ret_problem);

/* What that would say of a file's contents, whoever else may read it: -EBADMSG with *ret_problem, of what, or why it cannot be read. */
int secret_file_check(const char *what, const char *path, SecretForm form, char **ret_problem);
