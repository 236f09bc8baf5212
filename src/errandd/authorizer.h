/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Who may do what: the one question that the ways to run answer differently. */

#include "errandd/action.h"

typedef struct AuthorizeRequest {
        uid_t uid;
        const char *sender; /* the unique name on a message bus; NULL on a connection of its own */
        Permission permission;
        bool own;           /* the caller's own session, or none is meant */
        bool interactive;   /* the caller allows a question to its user */
        /* For the question's text: */
        const char *member;  /* the method or property that is called */
        const char *session; /* NULL: none is meant */
        const char *host, *duration, *project; /* "" where it is about none; cut and without anything that a dialog could take for markup */
} AuthorizeRequest;

typedef void (*AuthorizeDone)(bool allowed, void *userdata);

typedef struct Authorizer Authorizer;
struct Authorizer {
        /* 1: yes; 0: no; -EINPROGRESS: done comes later, from the event loop, once, unless *ret_ticket is cancelled before. Any other
         * error is a no. What the request points to is valid during the call alone. */
        int (*check)(Authorizer *a, const AuthorizeRequest *request, AuthorizeDone done, void *userdata, void **ret_ticket);
        void (*cancel)(Authorizer *a, void *ticket); /* NULL where nothing is ever in progress */
        /* What is under way for that account, cancelled or not, is as much as may be: nothing is to be checked for it now. NULL where nothing is ever in
         * progress, or it does not matter. */
        bool (*is_busy)(const Authorizer *a, uid_t uid);
        /* settled: called from the event loop when less is under way for an account, and no done tells of that: it was cancelled, or foreseen. NULL: no more.
         * NULL with is_busy. */
        void (*watch)(Authorizer *a, void (*settled)(uid_t uid, void *userdata), void *userdata);
        /* The same caller will most likely ask for that next: it may be found out ahead. Nothing but the time that check() takes depends on it.
         * NULL where nothing is ever in progress. */
        void (*foresee)(Authorizer *a, const AuthorizeRequest *request);
        /* What was found out for that caller, or about that session, is not used any more: it has gone. NULL with foresee. */
        void (*forget)(Authorizer *a, const char *sender, const char *session);
        /* Whether who decides gave no answer to what was asked last, which is a no, so that it can be said. NULL where nobody is asked. */
        bool (*is_silent)(const Authorizer *a);
        /* An operator may do what an owner may, and give what only an operator gives. Never asks anybody. */
        bool (*operator)(Authorizer *a, uid_t uid);
        /* The configuration was read again; the operators before stay when it fails. NULL where none are configured. */
        int (*set_operators)(Authorizer *a, char *const *operators);
};

/* User and embedded mode: the daemon's own account, and root which needs no leave, are owner and operator of everything; nobody else is
 * anything. */
Authorizer *authorizer_same_uid(void);

/* The same as a check of a connection, before a byte of it is read. */
bool authorizer_peer_allowed(uid_t uid);
