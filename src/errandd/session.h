/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One session's life: record, broker, shim. Logic only, see manager.h. What takes time reports through a Done, called once from the event loop
 * or before the function returns; a function that returns a negative errno has set *f and will not call it. */

#include "errandd/conversation-state.h"
#include "errandd/manager.h"
#include "errandd/session-state.h"

typedef void (*Done)(Session *s, const Fault *fault /* NULL: it worked */, int fd /* Attach: the terminal, now the callee's; else -EBADF */, void *userdata);

const SessionRecord *session_record(const Session *s);
SessionState session_state(const Session *s);
/* What a session that is being started, or stopped, waits for: a phrase; NULL for another. */
const char *session_waiting(const Session *s);
const GrantList *session_grants(const Session *s);
bool session_may_see(const Session *s, const Caller *c); /* owner or operator */

/* Whether one more of its owner's may run beside those that do. Who is no operator has at most half of limits.maxLiveSessions, so that no account keeps all others
 * from starting any. */
int session_check_share(const Session *s, const Caller *caller, Fault *f);
/* created|stopped|failed → starting → running: mints, starts the broker, hands the launch over. Done after the shim said that the command runs, or why not. */
int session_start(Session *s, Done done, void *userdata, Fault *f);
/* Broker closed first, then SIGTERM, SIGKILL after the grace period. Done when it has ended. */
int session_stop(Session *s, Done done, void *userdata, Fault *f);
/* Done when the shim has sent it. */
int session_kill(Session *s, int signal, Done done, void *userdata, Fault *f);
int session_attach(Session *s, Done done, void *userdata, Fault *f);
/* Pipes for the next Start of a session without a terminal: the caller's ends of standard input, output and error, which are its own. */
int session_open_stdio(Session *s, int ret[static 3], Fault *f);
/* Done when its terminal has that size. */
int session_resize(Session *s, unsigned rows, unsigned columns, Done done, void *userdata, Fault *f);

/* host as in an allowlist (exact or *.name); duration: once, always, or a time span. On disk before the broker is told, and done after that; a session that went
 * meanwhile is NULL. A revocation is told to the broker at once, and done when it is on disk. */
typedef void (*GrantDone)(Session *s, const Grant *g, const Fault *fault /* NULL: it is given */, void *userdata);
int session_grant(Session *s, const Caller *caller, const char *host, const char *duration, GrantDone done, void *userdata, Fault *f);
int session_revoke(Session *s, uint32_t number, Done done, void *userdata, Fault *f);

/* Of a session that is talked to (CreateSession's protocol). text: 1 to PROMPT_SIZE_MAX bytes, UTF-8. Done when it is in the shim's queue,
 * with its number. */
typedef void (*PromptDone)(Session *s, uint64_t number, const Fault *fault /* NULL: it is queued */, void *userdata);
int session_prompt(Session *s, const Caller *caller, const char *text, PromptDone done, void *userdata, Fault *f);
/* Cancels the turn and drops what is queued; Done when that is on its way to the agent. */
int session_interrupt(Session *s, Done done, void *userdata, Fault *f);
/* question 0: the one that is open. */
int session_answer(Session *s, uint64_t question, const char *option, Done done, void *userdata, Fault *f);
/* False: there is none to be had now. */
bool session_conversation(const Session *s, ConversationState *ret);

/* Record, state and receipts go; the project stays. s is gone after Done. */
int session_collect(Session *s, Done done, void *userdata, Fault *f);

/* At most max (1 MiB) bytes from offset; *ret_next is where to go on. */
int session_read_transcript(Session *s, uint64_t offset, size_t max, char **ret, size_t *ret_size, uint64_t *ret_next, Fault *f);
