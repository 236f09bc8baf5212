/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "errandd/paths.h"

/* The configuration of an errandd in embedded mode: the file that paths->config names, or the defaults without one. requireFullEnforcement is false
 * unless the file itself says true: this mode has gaps on every host, and the report names them. */
int config_embedded_read(const Paths *paths, Config **ret, Fault *f);
