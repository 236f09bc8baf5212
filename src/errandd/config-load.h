/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "errandd/paths.h"

/* The configuration of an errandd: the file that paths->config names, or the defaults without one. In embedded mode requireFullEnforcement is false
 * unless the file itself says true: that mode has gaps on every host, and the report names them. */
int config_load(const Paths *paths, Config **ret, Fault *f);
