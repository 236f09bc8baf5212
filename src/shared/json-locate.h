/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Where a value is in a JSON text, for sentences about it: json-glib, by which json_read_object() reads, does not say. */

#include "basic/macro.h"

/* The line, from 1, of the member or element that path names ("a.b[2].c"); 0 when there is none. The text is JSON already, by json_check(); what is not is
 * found nowhere. Members whose names have escapes in them, or dots, are not found. */
unsigned json_locate(const char *text, size_t size, const char *path);
