/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The states of a session. Only errandd moves one, after the record with the new state is on disk; what a state allows beside moves is the
 * caller's business, told here so that it is told once. */

#include "basic/macro.h"

typedef enum SessionState {
        /* Enters: CreateSession. A record and nothing else. Legal: Start, Collect, everything that reads. */
        SESSION_CREATED,
        /* Enters: Start, from created, stopped (resume) and failed. Credential, stand-ins and port are minted; broker, scope and shim are on
         * their way. Legal: reading; grants, which the broker gets with its set-up. A Stop now ends in failed: nothing ran. */
        SESSION_STARTING,
        /* Enters: the shim's word that the command was executed. Legal: Attach, Resize, Kill, Grant, Say, Prompt, Interrupt, Stop. */
        SESSION_RUNNING,
        /* Enters: Stop, `systemctl stop` of the scope, a budget. The broker is closed; SIGTERM, later SIGKILL. Legal: Kill, Attach (to watch). */
        SESSION_STOPPING,
        /* Enters: the shim's status line, whatever the exit code. Broker, scope and shim are gone. Legal: Start, Collect, reading. */
        SESSION_STOPPED,
        /* Enters: a set-up error, or lost: a scope that went without a status line. Legal: Start, Collect, reading. */
        SESSION_FAILED,
        /* Enters: Collect, from created, stopped and failed. Record, state and receipts are gone; the object goes with them. Nothing is legal. */
        SESSION_COLLECTED,
        _SESSION_STATE_MAX,
        _SESSION_STATE_INVALID = -EINVAL,
} SessionState;

const char *session_state_to_string(SessionState s);
SessionState session_state_from_string(const char *s);

/* The one table of legal moves. A state does not move to itself. */
bool session_state_may_move(SessionState from, SessionState to);

/* starting, running, stopping: processes, a broker or a port may exist. */
bool session_state_live(SessionState s);
