/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The asking end of a connection to another program of ours: requests with serials, each answered once, and events in between. */

#include <systemd/sd-event.h>

#include "basic/clock.h"
#include "shared/message.h"

#define CHANNEL_PENDING_MAX 256U /* more requests on their way than errandd ever has: the other side does not answer any more */

typedef struct Channel Channel;

/* `problem` is NULL when it worked; else the other side's sentence, or why there is none. m is borrowed, NULL when the connection went. Not called
 * for requests that are pending when the channel is freed. */
typedef void (*ChannelReply)(Message *m, const char *problem, void *userdata);
/* Called instead of the reply, once, where that will not be: what the request alone held goes, and whoever waits for it is told. */
typedef void (*ChannelDrop)(void *userdata);

typedef struct ChannelHandler {
        void (*event)(Message *m, void *userdata); /* a message without a serial */
        void (*gone)(void *userdata);              /* after every pending request was answered */
        void *userdata;
} ChannelHandler;

/* Takes fd, a connected SOCK_SEQPACKET socket, always. Any callback may free the channel. */
int channel_new(sd_event *event, int fd, const ChannelHandler *handler, Channel **ret);
Channel *channel_free(Channel *c);
DEFINE_CLEANUP(Channel *, channel_free);

/* It is over as if the other side had ended it: soon, after what it has sent already. */
void channel_break(Channel *c);

/* For so long, or longer where it was told before, nothing is read of it, neither events nor answers, and the other side waits. */
void channel_pause(Channel *c, usec_t usec);

/* Connects to the SOCK_SEQPACKET socket `name` in that directory, whatever the length of its path; never waits. uid is whom the listening process has to be
 * (-EPERM), UID_ANY: whoever may make a socket there. An fd or a negative errno. */
#define UID_ANY ((uid_t) -1)
int channel_connect(int directory, const char *name, uid_t uid);

/* Begins a request in w; the caller adds members. */
void channel_open(Channel *c, JsonWriter *w, const char *type);
/* Sends it; fds stay the caller's. reply may be NULL. A negative errno means that nothing was sent and nothing will be called. */
int channel_send(Channel *c, JsonWriter *w, const int *fds, size_t n_fds, ChannelReply reply, void *userdata);
/* The same; reply or drop is called, one of them and once, when this was 0. */
int channel_send_owned(Channel *c, JsonWriter *w, const int *fds, size_t n_fds, ChannelReply reply, ChannelDrop drop, void *userdata);
/* No reply is called with that userdata any more: what it points to goes. */
void channel_forget(Channel *c, const void *userdata);
