/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stdatomic.h>

#include "errandd/paths.h"

/* The configuration of an errandd: the file that paths->config names, or the defaults without one. In embedded mode requireFullEnforcement is false
 * unless the file itself says true: that mode has gaps on every host, and the report names them. */
typedef enum ConfigStage {
        CONFIG_STAGE_WAITS,
        CONFIG_STAGE_FILE, /* it is read */
        CONFIG_STAGE_HOST, /* what it names is looked for on this host */
} ConfigStage;

/* stage: how far it has come, for whoever watches from another thread; NULL: nobody does. Logs nothing. */
int config_load(const Paths *paths, atomic_uint *stage, Config **ret, Fault *f);
