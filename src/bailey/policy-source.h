/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A policy as it lies on the disk: opened once, read once. What is looked at, compared and applied is one and the same text. */

#include <sys/stat.h>

#include "bailey/account.h"
#include "bailey/policy-file.h"

typedef struct PolicySource {
        int fd; /* before it is read, perhaps of O_PATH; -EBADF after */
        struct stat status;
        char *path; /* absolute; for a descriptor that has no name the name it was given by */
        char *base; /* the directory of path; NULL when it has no name */
        char *text;
        size_t size;
} PolicySource;

#define POLICY_SOURCE_NONE ((PolicySource){.fd = -EBADF})
void policy_source_done(PolicySource *s);

/* The name that the file really has is its path: links are followed. "/proc/self/fd/N" is that very descriptor, whatever may
 * lie in its way by name. A negative errno; -EINVAL for what is no regular file. */
int policy_source_open(const char *path, PolicySource *ret);

/* A file found in a directory, which has no links in its name: path and base are where it was found, also when a link stands
 * there. here: that is the working directory, whose parents may be closed to this account. It may be anything but absent, and is not opened yet but for its
 * status. */
int policy_source_open_found(const char *directory, bool here, const char *name, PolicySource *ret);

/* Closes the fd. -EFBIG beyond 256 KiB. */
int policy_source_read(PolicySource *s);

/* Whether only that account and root can have written it; else *ret_reason is a sentence. */
bool policy_source_is_own(const struct stat *st, const Account *a, const char **ret_reason);

/* Parses what was read. As policy_file_parse(); `name` NULL: the path. */
int policy_source_parse(const PolicySource *s, const char *name, PolicyKind kind, const PolicyPlaces *places, Findings *findings,
                        Layer **ret);

/* All of it for a file that the person named. One that cannot be read is an error in *findings. */
int policy_source_load(const char *path, const PolicyPlaces *places, Findings *findings, struct stat *ret_status, Layer **ret);
