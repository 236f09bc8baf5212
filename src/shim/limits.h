/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Every cap on what a session, or a client of its terminal, can make a shim hold, and every time limit, with its reason; those that
 * errandd and the command know as well are in conversation-limits.h. */

#include "basic/clock.h"
#include "shared/conversation-limits.h"

#define TRANSCRIPT_BYTES_MAX (UINT64_C(64) << 20) /* a day of an agent's talk; what writes more is no text for people */
#define SECRETS_MAX 256U               /* stand-ins, a credential and what the configuration names */
#define SECRETS_BYTES_MAX (256U * 1024U)
#define CHUNK_SIZE (16U * 1024U)       /* read from a terminal or a pipe at once; a terminal gives 4 KiB */
#define CLIENTS_MAX 16U                /* attached at once: people who watch, not programs */
#define CLIENT_BUFFER_SIZE (256U * 1024U) /* what a client may lag behind: some thousand lines */
#define CLIENT_PATIENCE_USEC USEC_PER_SEC /* then the payload goes on without the client */
#define INPUT_BUFFER_SIZE (64U * 1024U)   /* typed ahead of a payload that does not read */
#define REPLAY_SIZE (64U * 1024U)      /* shown to who attaches later: some screens */
#define CONNECTIONS_MAX 16U            /* of errandd, which needs one */
#define CATCH_UP_MAX 512U              /* requests of an older connection: errandd waits for half as many answers at most */
#define LOG_LINE_MAX (16U * 1024U)     /* of bailey; its closing line with every gap has some 3 KiB */
#define LOG_LINES_MAX 200U             /* kept as events; more are counted and left out */
#define AGENT_CHUNK_SIZE (64U * 1024U)    /* read from an agent at once: what a pipe holds */
#define AGENT_LINE_MAX (4U << 20)         /* one message of an agent's: a tool's output with a file in it */
#define AGENT_QUEUE_MAX (2U << 20)        /* for an agent that does not read: a prompt in its longest form, and answers */
#define AGENT_BAD_LINES_MAX 100U          /* since the last turn began; then it is no conversation */
#define AGENT_END_USEC (2 * USEC_PER_SEC) /* between the end of an agent's output and its own */
#define QUESTION_OPTIONS_MAX 16U
#define TOOL_CALLS_MAX 64U                /* whose titles are remembered, for the updates that do not repeat them */
#define UPDATE_TEXT_MAX (16U * 1024U)     /* of a message in one update */
#define PLAN_ENTRIES_MAX 64U
#define PLAN_ENTRY_MAX 240U               /* bytes; all of them fit an update */
#define TITLE_MAX 512U                    /* bytes of a title, an option's name, an error's message */
#define WORD_MAX 128U                     /* of an id, a name, a version, a status */
#define UPDATES_PENDING_BYTES (2U << 20)  /* for an errandd that is busy: the longest message of an agent comes through, most are short */
#define UPDATES_PENDING_MAX 256U          /* kept for an errandd that does not read: what a conversation's state hangs on */
#define BACKLOG_MAX 64U                   /* told last, for an errandd whose connection broke: each turn has three, and a connection is made anew at once */
#define BACKLOG_BYTES (256U * 1024U)      /* of these: questions are the longest */
#define CONVERSATION_MSEC_MAX (UINT64_C(30) * 24 * 3600 * 1000)
#define GRACE_USEC_MAX (UINT64_C(3600) * USEC_PER_SEC)
#define DRAIN_USEC (2 * USEC_PER_SEC)  /* until the last output is read, when something outside holds a pipe open */
#define LINGER_USEC USEC_PER_SEC       /* for a first client that is on its way when the command has ended already */
