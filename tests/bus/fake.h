/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Stands in for the logic behind manager.h and session.h: keeps sessions in memory, notes what it was asked, answers when it is told to. */

#include "errandd/manager.h"
#include "errandd/session.h"

struct Session {
        Manager *manager;
        SessionRecord *record;
        SessionState state;
        GrantList grants;
        Done done; /* of a call that is under way */
        void *done_userdata;
        bool collecting;
        unsigned rows, columns;
        int signal;
};

struct Manager {
        sd_event *event;
        Config *config;
        Session *sessions[4096]; /* by id */
        size_t n_sessions;
        Observer observer;
        StoredReceipt receipts[64]; /* numbered from 1 */
        size_t n_receipts;
        unsigned acts;     /* how often something was asked that has an effect */
        unsigned queries;  /* of receipts */
        bool wait;         /* Start, Stop, Attach and Collect are answered by fake_finish() */
        bool unreadable;   /* receipts and transcripts are */
        bool full;         /* the caller's share of sessions that run is used up */
        bool stdio_taken;
        char **report;
        SessionOptions seen; /* of CreateSession, texts duplicated where tests look */
        char *seen_project, *seen_command, *seen_allow, *seen_env;
        char *seen_text; /* of a prompt, or an answer */
        bool seen_operator;
        bool talks;      /* sessions have this conversation */
        ConversationState conversation;
        Fault fail; /* what the next act fails with */
        const char *project; /* one that has an owner */
        uid_t project_owner;
        bool projects_wait; /* CreateSession waits for its project, until project_made is called */
        ProjectDone project_made;
        void *project_userdata;
};

Manager *fake_manager(sd_event *event);
Manager *fake_manager_free(Manager *m);
Session *fake_session(Manager *m, const char *id, uid_t owner);
void fake_receipt(Manager *m, const char *session);
/* Ends the session's pending call, with a fault or with an fd that it is given. */
void fake_finish(Session *s, ErrorCode code, const char *text, int fd);
void fake_forget(Session *s); /* as after Collect */
