/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The Agent Client Protocol, version 1: what a client says, and what it reads of what an agent says. Pure: no state and no descriptors.
 * Texts that are read are as the agent wrote them, not scrubbed, of any length up to that of a line, and hold any character but NUL. */

#include "shim/limits.h"
#include "shim/rpc.h"

#define ACP_VERSION 1
#define ACP_AUTH_REQUIRED (-32000)

/* ---- what is written ---- */

void acp_write_initialize(JsonWriter *w, uint64_t id, const char *client_version);
/* cwd: where the agent runs, inside. The client offers neither files nor terminals: the agent has the sandbox's own. */
void acp_write_new_session(JsonWriter *w, uint64_t id, const char *cwd);
void acp_write_prompt(JsonWriter *w, uint64_t id, const char *session, const char *text);
void acp_write_cancel(JsonWriter *w, const char *session);
/* The answer to a permission request; option NULL: cancelled. */
void acp_write_outcome(JsonWriter *w, const char *id, size_t id_size, const char *option);

/* ---- what is read ---- */

typedef struct AcpAgent {
        uint64_t version; /* of the protocol */
        char *name, *release; /* NULL: it does not say */
} AcpAgent;

void acp_agent_done(AcpAgent *a);
/* -EBADMSG: no version. */
int acp_read_initialize(JsonView result, AcpAgent *ret);
/* *ret is to free. -EBADMSG: none, an empty one, or one that is longer than ACP_SESSION_MAX. */
#define ACP_SESSION_MAX 256U
int acp_read_new_session(JsonView result, char **ret);

typedef enum AcpStop {
        ACP_STOP_END_TURN,
        ACP_STOP_MAX_TOKENS,
        ACP_STOP_MAX_TURN_REQUESTS,
        ACP_STOP_REFUSAL,
        ACP_STOP_CANCELLED,
        _ACP_STOP_MAX,
        _ACP_STOP_INVALID = -EINVAL,
} AcpStop;

const char *acp_stop_to_string(AcpStop stop);
AcpStop acp_stop_from_string(const char *s);
/* Of the answer to a prompt; _ACP_STOP_INVALID: none that is known. */
AcpStop acp_read_stop(JsonView result);

/* An error's message, NULL where it has none, and its number, 0. */
int acp_read_error(JsonView error, char **ret_message, int *ret_code);

typedef enum AcpUpdateKind {
        ACP_UPDATE_OTHER, /* nothing to tell: a kind that is not known here, or one without what it needs */
        ACP_UPDATE_MESSAGE,
        ACP_UPDATE_THOUGHT,
        ACP_UPDATE_TOOL,
        ACP_UPDATE_PLAN,
        _ACP_UPDATE_KIND_MAX,
        _ACP_UPDATE_KIND_INVALID = -EINVAL,
} AcpUpdateKind;

typedef struct AcpUpdate {
        AcpUpdateKind kind;
        bool first;                  /* TOOL: it begins here */
        char *text;                  /* MESSAGE, THOUGHT */
        char *id, *title, *sort, *status; /* TOOL: id always, the others where they are said */
        JsonView entries;            /* PLAN: of the line */
} AcpUpdate;

void acp_update_done(AcpUpdate *u);
int acp_read_update(JsonView params, const char *session, AcpUpdate *ret);

typedef struct AcpEntry {
        char mark; /* ' ', '>', 'x' */
        char *text;
} AcpEntry;

/* The next entry of a plan; text is to free. 0 at the end; those without text are passed over. *state is 0 at first. */
int acp_next_entry(JsonView entries, size_t *state, AcpEntry *ret);

typedef struct AcpOption {
        char *id, *name, *kind; /* id and name always */
} AcpOption;

typedef struct AcpQuestion {
        char *title; /* NULL: it does not say */
        AcpOption options[QUESTION_OPTIONS_MAX];
        size_t n_options;
} AcpQuestion;

void acp_question_done(AcpQuestion *q);
/* -EBADMSG: not of this session, or no options, or more than that. */
int acp_read_question(JsonView params, const char *session, AcpQuestion *ret);
