/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What there is to be told of a session while its terminal is shown here, kept until it is not. */

#include "basic/macro.h"

typedef struct Notices {
        char **lines;
        size_t n_left_out;
} Notices;

/* The newest are left out: they would be lost among thousands anyway. */
int notices_add(Notices *n, const char *text);

/* Logs and forgets them. */
void notices_show(Notices *n, const char *session);

/* That a host was refused, with the command that grants it where it is a name. */
#define REFUSED_TEXT_MAX 768U
const char *refused_text(const char *session, const char *host, uint16_t port, char buffer[static REFUSED_TEXT_MAX]);
