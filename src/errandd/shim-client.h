/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A session's shim, asked over its socket. */

#include "errandd/channel.h"

typedef struct ShimClient ShimClient;

/* Connects by the directory's descriptor, whatever the length of its path; -EPERM: that is no process of uid. `gone` is called when the connection ended. */
int shim_client_new(sd_event *event, int directory, const char *name, uid_t uid, void (*gone)(void *userdata), void *userdata, ShimClient **ret);
/* The process that answers, as the kernel says it: an fd (pidfd) that is the caller's. -ESRCH: it has gone. */
int shim_client_open_pidfd(const ShimClient *s);
pid_t shim_client_pid(const ShimClient *s); /* the same as a number; -1: not known */
/* Nothing is read of it for so long: channel_pause(). */
void shim_client_pause(ShimClient *s, usec_t usec);
/* It is of no use any more: what has come is taken, and then it is gone. */
void shim_client_break(ShimClient *s);
ShimClient *shim_client_free(ShimClient *s);
DEFINE_CLEANUP(ShimClient *, shim_client_free);

/* reply: "attached" with the fd "terminal". */
int shim_client_attach(ShimClient *s, ChannelReply reply, ChannelDrop drop, void *userdata);
int shim_client_resize(ShimClient *s, unsigned rows, unsigned columns, ChannelReply reply, ChannelDrop drop, void *userdata);
int shim_client_signal(ShimClient *s, int signal, ChannelReply reply, ChannelDrop drop, void *userdata);
/* reply: "status" with "attached", how many are attached to its terminal; and, of a session that is talked to, "conversation" with "ready", "turn", "queued"
 * and "last": where it is at that moment, between the events before and after, and "told", the number of the last update. */
int shim_client_status(ShimClient *s, ChannelReply reply, void *userdata);
/* The same, and from then on `event` is called with what happens. after, the number of the last update that was taken before a connection broke: what came since
 * is told before the reply; NULL: there is none. */
int shim_client_watch(ShimClient *s, const uint64_t *after, void (*event)(Message *m, void *userdata), ChannelReply reply, void *userdata);
void shim_client_unwatch(ShimClient *s); /* nothing is called any more */
/* Queues a prompt of that number, higher than all before; text is a sealed memfd (borrowed). */
int shim_client_prompt(ShimClient *s, uint64_t number, usec_t wait, int text, ChannelReply reply, void *userdata);
/* Lets the first one of its queue go. */
int shim_client_turn(ShimClient *s, ChannelReply reply, void *userdata);
/* Cancels the turn, and drops what is queued. */
int shim_client_interrupt(ShimClient *s, ChannelReply reply, void *userdata);
int shim_client_answer(ShimClient *s, uint64_t question, const char *option, ChannelReply reply, void *userdata);
/* No reply is called with that userdata any more. */
void shim_client_forget(ShimClient *s, const void *userdata);
/* text, a sentence for the transcript, may be NULL. */
int shim_client_stop(ShimClient *s, usec_t grace, const char *text, ChannelReply reply, void *userdata);
