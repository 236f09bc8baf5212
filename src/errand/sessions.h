/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Sessions and their records as people and programs read them. */

#include "errand/connect.h"
#include "errand/table.h"

/* ListThreads, or with all false those that run or may. An ExitCode. */
int sessions_list(const Request *q, bool all);

/* Everything about one; with receipts > 0 its grants and that many of its newest provider calls, too. */
int session_show(const Request *q, unsigned receipts);

/* Calls `act` for each session that is an operand, going on after one that failed, while there is an errandd. The first failure's ExitCode. */
int sessions_act(const Request *q, int (*act)(Connection *c, const char *id, const Request *q));

typedef struct SessionLine {
        const char *id, *path, *state, *project;
        uint64_t created;
} SessionLine;

/* "exited with 3": how a session ended, of which something ran or nothing did. */
#define EXIT_TEXT_MAX 160U
const char *exit_text(const char *reason, int status, bool ran, char buffer[static EXIT_TEXT_MAX]);

/* Calls `each` for every session, the oldest first, until it returns another code than EXIT_OK. */
int sessions_each(Connection *c, bool all, int (*each)(const SessionLine *s, void *userdata), void *userdata);
