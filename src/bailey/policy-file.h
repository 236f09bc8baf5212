/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Reads a policy file, strictly: an unknown table or key, a wrong type or a bad value is an error that names file, line, column
 * and key. man/bailey.toml.5 describes the format. */

#include "bailey/layer.h"

/* From memory. `file` is what messages call it, `base` the absolute directory that its relative paths start from (NULL: there is none,
 * and they are errors). 0 with all
 * that is wrong in *findings and, when nothing is, *ret set; -ENOMEM. */
int policy_file_parse(const char *text, size_t size, const char *file, const char *base, Findings *findings, Layer **ret);

/* From disk, or with "/proc/self/fd/N" from that very descriptor, whose name need not lead anywhere. Read once from one fd; the layer's name is the file's real path. The same, and a file that cannot be read is an
 * error in *findings. */
int policy_file_load(const char *path, Findings *findings, Layer **ret);
