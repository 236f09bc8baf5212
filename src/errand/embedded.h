/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* An errandd of one's own: where its socket is, whether somebody listens there, and how it is started. */

#include "errand/request.h"
#include "errandd/paths.h"

/* A stream to the private socket, whatever the length of its path: 0 with *ret; -ENOENT and -ECONNREFUSED: nobody serves it; -EACCES, -EPERM: it
 * may not be used; -EBADE: it is served by another account, so nothing was said to it. */
int embedded_connect(const Paths *p, int *ret);

/* Whether the errandd behind that socket was started with that option and value. */
bool embedded_was_given(int socket, const char *name, const char *value);

/* Whether an embedded errandd has left records. */
bool embedded_has_state(const Paths *p);

/* Starts errandd --embedded in a session of its own, so that neither Ctrl-C nor the end of this program ends it, and waits until its socket
 * answers; *ret as above. Logs what is wrong, errandd's own last words included. An ExitCode. */
int embedded_start(const Paths *p, const Request *q, int *ret);
