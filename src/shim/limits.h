/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Every cap on what a session, or a client of its terminal, can make a shim hold, and every time limit, with its reason. */

#include "basic/clock.h"

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
#define LOG_LINE_MAX (16U * 1024U)     /* of bailey; its closing line with every gap has some 3 KiB */
#define LOG_LINES_MAX 200U             /* kept as events; more are counted and left out */
#define GRACE_USEC_MAX (UINT64_C(3600) * USEC_PER_SEC)
#define DRAIN_USEC (2 * USEC_PER_SEC)  /* until the last output is read, when something outside holds a pipe open */
#define LINGER_USEC USEC_PER_SEC       /* for a first client that is on its way when the command has ended already */
