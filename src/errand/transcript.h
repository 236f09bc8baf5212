/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a session writes into its transcript, on standard output. */

#include <systemd/sd-event.h>

#include "errand/connect.h"

/* Prints one piece from *offset on; *ret_more: there was something. An ExitCode. */
int transcript_print(Connection *c, const char *id, uint64_t *offset, bool *ret_more);

typedef struct Transcript Transcript;

/* Begins behind what is there already, and prints what comes, some moments later. Waits for nothing but its first answer. An ExitCode. */
int transcript_new(Connection *c, const char *id, sd_event *event, Transcript **ret);
/* It has ended: prints the rest. */
void transcript_finish(Transcript *t);
Transcript *transcript_free(Transcript *t);
