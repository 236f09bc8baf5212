/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "basic/json-writer.h"
#include "errand/connect.h"

/* A session's grants below its description, and in its JSON. An ExitCode. */
int grants_print(Connection *c, const char *id);
int grants_add_json(Connection *c, const char *id, const char *key, JsonWriter *w);

typedef struct GrantLine {
        const char *path, *host, *duration;
        uint64_t expires;
        uint32_t by;
        unsigned number;
} GrantLine;

/* Calls `each` for every grant of a session until it returns another code than EXIT_OK. */
int grants_each(Connection *c, const char *id, int (*each)(const char *id, const GrantLine *g, void *userdata), void *userdata);
