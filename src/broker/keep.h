/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a broker leaves with its service manager, so that the next process of its unit goes on with the same session: the setup as it came, its
 * descriptors, the listener, and the state that changed since (state-file.h). In the order of what it says: the state and the descriptors, then
 * the setup, without which nothing of it is used; the listener before the session is told "ready"; a change before it is answered; the end of it
 * all before a close is answered. What cannot be kept up is taken out altogether: rather no session than one with a grant that was revoked. */

#include "broker/limits.h"
#include "broker/setup.h"
#include "broker/state-file.h"
#include "shared/message.h"

#define KEEP_NAME_MAX 48U
#define KEEP_MAX (5U + PROVIDERS_MAX) /* setup, keys, spool, state, listener, and a CA file a provider */

/* The numbers of a StateFile. */
#define COUNT_REFUSED 0U
#define COUNT_BUDGETS 1U
_Static_assert(COUNT_BUDGETS + (1 + PROVIDERS_MAX) * _BUDGET_KIND_MAX <= STATE_COUNTS, "a number for each budget");

typedef struct Broker Broker;
typedef struct Keep Keep;

/* Descriptors under the names that the service manager has them by. */
typedef struct Stored {
        struct {
                char name[KEEP_NAME_MAX];
                int fd;
        } items[KEEP_MAX];
        size_t n;
} Stored;

/* Takes fd on success. -EINVAL: no name of ours, -EEXIST: there is one already. */
int stored_add(Stored *s, const char *name, int fd);
/* The fd, now the caller's; -ENOENT. */
int stored_take(Stored *s, const char *name);
void stored_done(Stored *s);
/* The stored name of what a setup's "fds" call so: "ca:ID" is "ca-ID". */
void stored_name(const char *name, char ret[static KEEP_NAME_MAX]);

/* Before a setup is taken apart. *ret is NULL when there is no service manager; all that follows takes NULL and does nothing. */
int keep_new(const Message *setup, Keep **ret);
/* Of what was kept already. */
int keep_again(const Stored *s, StateFile *state, Keep **ret);
Keep *keep_free(Keep *k);
DEFINE_CLEANUP(Keep *, keep_free);

/* The setup was accepted: hands it over. b->keep is k already. */
void keep_begin(Keep *k, const Broker *b);
void keep_listener(Keep *k, int fd);
void keep_no_listener(Keep *k); /* it could not be used after all */
void keep_save(Keep *k, const Broker *b);
void keep_count(Keep *k, uint64_t refused);
/* What was spent of the budgets, before it is acted on, and the way back: never less than the setup says. */
void keep_budgets(Keep *k, const Setup *s);
void keep_load_budgets(const Keep *k, const Setup *s);
/* Another process can go on. */
bool keep_is_whole(const Keep *k);
/* Nothing is kept any more when it returns, or what is kept says that the session is closed. */
void keep_end(Keep *k, const Broker *b);

/* What a process of this unit finds: sets b up as it was, judging everything as when it came first. What is not whole is forgotten, with a
 * line in the log, and b stays as new; so is a closed session, and b is then closed. Empties s. Negative errno: it could not be done now. */
int keep_restore(Broker *b, Stored *s);
