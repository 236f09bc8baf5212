/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* How a session has ended, of all that was seen of its end. */

#include "shim/shim.h"

/* Puts into s->exit what bailey's closing line does not say, or bailey itself could not. bailey is gone, and its messages were read to their end. */
void outcome_settle(Shim *s);
