/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "errandd/config-reader.h"

/* Every key of the configuration. The order is the schema's. */
extern const ConfigKey config_keys[];
extern const size_t n_config_keys;

extern const ConfigKey config_provider_keys[];
extern const size_t n_config_provider_keys;

extern const ConfigKey config_capability_keys[];
extern const size_t n_config_capability_keys;

/* The table as a JSON schema (draft 2020-12), indented, with a final newline; to free. */
int config_schema_write(char **ret);
