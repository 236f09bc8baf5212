/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A provider route's pure judgements: the path after it, and which fields go upstream. route.h uses them. */

#include "broker/http1.h"
#include "broker/setup.h"

/* Splits "/provider/ID/rest?query" into ID and "/rest?query" ("" when nothing follows). -ENOENT when it is no such path. */
int provider_split(Slice path, Slice *ret_id, Slice *ret_rest);

/* NULL, or why a path that follows the route (query included) could be read differently by the provider than here: a phrase. "" and "/"
 * are clean. */
const char *provider_path_problem(Slice rest);

/* True for a field that must not reach a provider: any credential header, Accept-Encoding, and headers that ask for another method or path
 * ('_' counts as '-', as CGI and its kind see it). */
bool provider_drops_field(const Provider *p, Slice name);
