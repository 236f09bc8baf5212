/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/json-writer.h"
#include "errand/connect.h"

/* The newest provider calls of a session below its description, and in its JSON. An ExitCode. */
int receipts_print(Connection *c, const char *id, unsigned limit);
int receipts_add_json(Connection *c, const char *id, unsigned limit, const char *key, JsonWriter *w);
