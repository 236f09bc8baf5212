/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a client of the bus can make the daemon hold. libsystemd bounds one message (128 MiB, 1024 fds), how many unread ones it keeps,
 * and the time a client may take to authenticate. */

#define BUS_CONNECTIONS_MAX 64U      /* a person's terminals and tools; each costs some 20 KiB */
#define BUS_ARRIVALS_MAX 200U        /* connections a second: a client that connects in a loop cannot occupy the daemon */
#define BUS_BUFFER_SIZE (256 * 1024)  /* bytes that the kernel keeps for a connection on top of what is queued here */
#define BUS_BUFFERED_MAX 64U          /* messages that fit into what is read at once while a client authenticates, and more */
#define BUS_OPERATIONS_MAX 32U       /* calls of one connection that wait for a session: Start, Stop, Attach, Collect */
#define BUS_HELD_MAX 32U             /* calls of one connection that wait for an authorization */
#define BUS_QUEUED_MAX 256U          /* messages that a connection has not taken: above it no more of its calls are read */
#define BUS_QUEUED_LARGE_MAX 8U      /* above it a call whose answer may have a MiB waits: 8 + 256 small ones are some 10 MiB */
#define BUS_QUEUED_UPDATES_MAX 64U   /* above it a subscriber is not sent what agents write, up to 16 KiB each: a MiB */
#define BUS_QUEUED_SIGNALS_MAX 1024U /* above it a subscriber is dropped; signals have some hundred bytes */

/* On a message bus the daemon has one connection with all clients, and cannot stop reading one of them. What a client sends waits with the bus
 * daemon, which bounds it (dbus-daemon(1): max_incoming_bytes of the sender, max_replies_per_connection), and comes one message a turn of the
 * event loop; each is answered or refused in that turn, so that a flood costs some microseconds a message and no memory. What is kept here is kept for
 * an account, since an account may have many connections: a link that keeps nothing is thrown out for the next client and made anew. What a client
 * does not read the bus daemon keeps, and counts against errandd: of one sender it keeps 127 MiB and 64 descriptors (max_incoming_bytes,
 * max_incoming_unix_fds), and then does not hear it. So each account has a part of that (bus-unread.c). */
#define BUS_CLIENTS_MAX 2048U               /* links, some 700 bytes each: as many as a system's bus has connections (max_completed_connections) */
#define BUS_ACCOUNT_KEPT_MAX 64U            /* links of one account that are subscribed, or wait: so many may hear of everything */
#define BUS_ACCOUNT_HELD_MAX 16U            /* calls of one account that wait for an authorization: so many questions polkit has at once */
#define BUS_ACCOUNT_OPERATIONS_MAX 64U      /* calls of one account that wait for a session */
#define BUS_UNKNOWN_MESSAGES_MAX 32U        /* of a client whose uid is still asked for, one turn of the bus daemon: as many as may be held then */
#define BUS_UNKNOWN_SIZE_MAX (1024U * 1024U) /* bytes of these */
#define BUS_UNKNOWN_ALL_MAX (4U * 1024U * 1024U) /* of all such clients; nobody else is refused for them */
#define BUS_UNKNOWN_FIRST_MAX 4096U          /* which the first message of each may have nevertheless: 8 MiB of as many as there may be */
#define BUS_UNREAD_PINGS_ACCOUNT_MAX 16U /* connections of an account that have yet to answer one; the others wait for these to, or to go */
#define BUS_UNREAD_PINGS_MAX 64U         /* of all accounts: of errandd itself, too, the bus daemon lets 128 calls be without an answer */
#define BUS_UNREAD_PINGS_FIRST_MAX 96U   /* and so many where an account has none yet; the rest is for polkit and the service manager */
#define BUS_UNREAD_PING_BYTES (64U * 1024U)  /* of signals to a client, and it is asked whether it takes them */
#define BUS_UNREAD_UPDATES_MAX (1024U * 1024U) /* above it a client is not sent what agents write */
#define BUS_UNREAD_SIGNALS_MAX (1536U * 1024U) /* above it a subscriber is dropped */
#define BUS_UNREAD_MESSAGE_MAX (64U * 1024U)   /* a signal */
#define BUS_UNREAD_ANSWER_MAX (32U * 1024U * 1024U) /* max_message_size of a system's bus */
/* Bytes that count for an answer whose size nobody tells, since libsystemd makes it. */
#define BUS_UNREAD_CALL_BYTES 1024U            /* any, also an error */
#define BUS_UNREAD_INTROSPECT_BYTES (8U * 1024U)
#define BUS_UNREAD_OBJECT_BYTES 1024U          /* one of GetManagedObjects */
#define BUS_UNREAD_NAME_BYTES 64U              /* one that Introspect names */
#define BUS_UNREAD_DESCRIPTOR_BYTES (2U * 1024U * 1024U) /* 48 of them are all */
#define BUS_UNREAD_ACCOUNT_MAX (24U * 1024U * 1024U) /* above it calls of the account wait */
#define BUS_UNREAD_ACCOUNT_MIN (256U * 1024U)  /* which it has, whatever others have */
#define BUS_UNREAD_REFUSALS_MAX (8U * 1024U)   /* of a client, and above that they are not even refused: the bus daemon stops at 128 calls without an answer (max_replies_per_connection) */
#define BUS_UNREAD_ALL_MAX (96U * 1024U * 1024U) /* of all accounts. Beyond it comes one answer more of each, which are small but for few */
#define BUS_DELAYED_USEC (2 * USEC_PER_SEC) /* so long, while nothing is taken, and then they are refused */
#define BUS_TAKEN_USEC (200 * USEC_PER_MSEC) /* between questions to the bus daemon what was taken, meanwhile */
#define BUS_TAKEN_LOOK_BYTES BUS_UNREAD_ACCOUNT_MIN /* of connections with as much, which are few */
#define BUS_ACCOUNT_DELAYED_MAX 64U         /* of one account, and BUS_HELD_MAX of one connection: a desktop with as many terminals */
#define BUS_ACCOUNT_DELAYED_SIZE_MAX (4U * 1024U * 1024U) /* bytes of these, as 16 of the largest */
#define BUS_HELD_SIZE_MAX (256U * 1024U)    /* bytes of a call that is held, on either kind of connection: command, env and allow at their most */
#define BUS_HELD_ALL_MAX (16U * 1024U * 1024U) /* bytes of all of them, delayed ones as well; each may carry 16 descriptors (max_message_unix_fds) as well. One account has
                                               * half of what is left of it and, whatever others have, one of the largest */
#define BUS_FOLLOWED_MAX 16U                /* sessions of others whose signals a link was let through to */

#define BUS_OPTIONS_MAX 32U              /* entries of an a{sv}; no method knows as many */
#define BUS_TEXT_MAX 4096U               /* one string: a path is the longest of them (PATH_MAX) */
#define BUS_COMMAND_MAX 1024U            /* arguments */
#define BUS_COMMAND_SIZE_MAX (32U * 1024U) /* bytes of all: they travel to the launcher in one message of 64 KiB */
#define BUS_ENVIRONMENT_MAX 256U
#define BUS_ENVIRONMENT_SIZE_MAX (64U * 1024U)
#define BUS_ALLOW_MAX 256U
#define BUS_ALLOW_SIZE_MAX (BUS_ALLOW_MAX * 256U)
#define BUS_TRANSCRIPT_MAX (1024U * 1024U) /* of one ReadTranscript */
#define BUS_OBJECTS_MAX 16384U             /* of one GetManagedObjects, some 8 MiB */
