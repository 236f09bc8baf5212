/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A session as a file describes it: JSON with what `errand run` takes as options, and named after the session, ID.json. What it says is done with
 * the rights of whoever runs it, so it has to be that account's or root's, and no other account may write it, nor put another file in its place. */

#include "basic/clock.h"
#include "errand/request.h"

typedef struct SessionFile {
        Request request; /* as if it had come by the command line; borrows from here */
        char *id, *project, *network, *provider, *model, *protocol;
        char **command, **allow, **env;
        usec_t changed; /* when the file was written or put there, on the real-time clock */
} SessionFile;

void session_file_done(SessionFile *f);

/* Of q, which names the file, the options that say how to connect go into ret->request. EXIT_OK, or EXIT_CONFIGURATION after it has logged what is
 * wrong. */
int session_file_read(const Request *q, SessionFile *ret);
