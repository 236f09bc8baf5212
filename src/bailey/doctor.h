/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/options.h"

/* Tries everything that a run may rest on, and says what works, what the rest costs and how to close it. Returns bailey's exit
 * code: */
#define DOCTOR_WHOLE 0    /* a run has all that it is confined by; what some options need may be missing */
#define DOCTOR_WEAKER 1   /* a run says that something is not enforced, and --strict refuses it */
#define DOCTOR_NOTHING 2  /* nothing runs */
int doctor_verb(const Options *o);
