/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What errandd tells of one session (Session.Describe), as far as this program acts on it. */

#include "errand/connect.h"

typedef struct Description {
        const char *state, *reason, *text, *project, *provider, *model, *network, *backend, *protocol,
                *waiting; /* of the message; never NULL after describe() */
        char *command; /* nor this */
        char *allow;   /* NULL: as configured */
        int status;
        uint32_t owner, payload;
        uint64_t created, started, ended, refused;
        uint64_t turn;   /* of a conversation: the prompt whose turn it is; 0: none's; UINT64_MAX: not told */
        uint64_t queued; /* prompts that wait */
        uint64_t questions; /* of the agent's, that wait for an answer */
        bool interactive;
        sd_bus_message *message; /* rewound: for JSON */
} Description;

void description_done(Description *d);
int describe(Connection *c, const char *id, Description *ret); /* an ExitCode */
/* EXIT_NOT_THERE without a word when there is none that the caller may see. */
int describe_if_there(Connection *c, const char *id, Description *ret);

/* Its command has ended, or never will begin: of a session in that state. */
bool session_has_ended(const char *state);
bool description_ended(const Description *d);

/* The exit code of a session that has ended, for reason and status as errandd tells them. */
int exit_code_of(const char *reason, int status);
