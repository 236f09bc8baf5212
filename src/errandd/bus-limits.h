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
 * an account, since an account may have many connections: a link that keeps nothing is thrown out for the next client and made anew. Answers that
 * a client does not read are the bus daemon's, within max_outgoing_bytes; where it takes none any more, nothing is read until it does. */
#define BUS_CLIENTS_MAX 512U                /* links, some 700 bytes each; idle ones make room */
#define BUS_ACCOUNT_KEPT_MAX 64U            /* links of one account that are subscribed, or wait: eight accounts have to join to fill the table */
#define BUS_ACCOUNT_HELD_MAX 16U            /* calls of one account that wait for an authorization: so many questions polkit has at once */
#define BUS_ACCOUNT_OPERATIONS_MAX 64U      /* calls of one account that wait for a session */
#define BUS_UNKNOWN_MESSAGES_MAX 4U         /* of a client whose uid is still asked for: one turn of the bus daemon */
#define BUS_UNREAD_PING_BYTES (64U * 1024U)  /* of signals to a client, and it is asked whether it takes them */
#define BUS_UNREAD_UPDATES_MAX (1024U * 1024U) /* above it a client is not sent what agents write */
#define BUS_UNREAD_SIGNALS_MAX (1536U * 1024U) /* above it a subscriber is dropped: 64 of an account keep 96 MiB, and the bus daemon 127 for errandd */
#define BUS_UNREAD_MESSAGE_MAX (64U * 1024U)
#define BUS_UNREAD_HEADER_BYTES 256U          /* path, interface, member, names */
#define BUS_HELD_SIZE_MAX (256U * 1024U)    /* bytes of a call that is held, on either kind of connection: command, env and allow at their most */
#define BUS_HELD_ALL_MAX (16U * 1024U * 1024U) /* bytes of all of them; each may carry 16 descriptors (max_message_unix_fds) as well */
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
