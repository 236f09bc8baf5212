/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/json-writer.h"
#include "errand/connect.h"

/* A session's grants below its description, and in its JSON. An ExitCode. */
int grants_print(Connection *c, const char *id);
int grants_add_json(Connection *c, const char *id, const char *key, JsonWriter *w);
