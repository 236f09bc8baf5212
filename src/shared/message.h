/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The one framing between our programs: a SOCK_SEQPACKET datagram holding one JSON object {"v":1,"type":…} of at most
 * 64 KiB; file descriptors travel beside it in the order of its "fds":[names]. Larger things travel in a memfd.
 * An unknown version or type gets one error reply and the close; that is the caller's job, message_reply_error() helps. */

#include <json-glib/json-glib.h>

#include "basic/json-writer.h"
#include "basic/macro.h"

#define MESSAGE_VERSION 1
#define MESSAGE_SIZE_MAX (64U * 1024U)
#define MESSAGE_FDS_MAX 16U   /* setup: keys, spool and a CA file per provider */
#define MESSAGE_DEPTH_MAX 16U /* json-glib 1.6 recurses without a limit */

typedef struct Message Message;

Message *message_free(Message *m); /* closes the fds that were not taken */
DEFINE_CLEANUP(Message *, message_free);

/* Parses one datagram. Takes the fds always. -EBADMSG with *ret_problem (a sentence, to free) for anything that is not a
 * message of this version: not JSON, not UTF-8, too deep, no type, names and fds that do not match, a repeated name. */
int message_parse(const char *data, size_t size, const int *fds, size_t n_fds, Message **ret, char **ret_problem);

/* Receives one datagram and parses it. -EAGAIN when there is none, -ECONNRESET at end of file, else as message_parse(). */
int message_receive(int sock, Message **ret, char **ret_problem);

const char *message_type(const Message *m);
JsonObject *message_object(const Message *m); /* borrowed */

/* The fd of that name, still the message's; -ENOENT when there is none, or it was taken. */
int message_peek_fd(const Message *m, const char *name);
/* The message as JSON text, without what stood between its tokens; to free, and to wipe if it holds a secret. */
int message_format(const Message *m, char **ret, size_t *ret_size);

/* The fd of that name, now the caller's; -ENOENT when there is none. */
int message_take_fd(Message *m, const char *name);

/* Typed members of an object. A missing member is -ENOENT and a member of another type -EINVAL; strings and objects are borrowed. */
int json_get_string(JsonObject *o, const char *name, const char **ret);
int json_get_u64(JsonObject *o, const char *name, uint64_t max, uint64_t *ret);
int json_get_bool(JsonObject *o, const char *name, bool *ret);
int json_get_object(JsonObject *o, const char *name, JsonObject **ret);
int json_get_array(JsonObject *o, const char *name, JsonArray **ret);
/* An array of strings, copied; *ret is strv_free()d by the caller and NULL for []. */
int json_get_strv(JsonObject *o, const char *name, char ***ret);

/* Opens {"v":1,"type":TYPE in w; the caller adds members, then message_send() closes, sends and frees. -EAGAIN when the
 * peer does not read; nothing is sent in part. */
void message_open(JsonWriter *w, const char *type);
/* Names the one descriptor that is sent with it. */
void message_add_fd(JsonWriter *w, const char *name);
int message_send(int sock, JsonWriter *w, const int *fds, size_t n_fds);
/* Only closes it: the text, to free, is for who sends it more than once, or later. -EMSGSIZE: it is over MESSAGE_SIZE_MAX. */
int message_close(JsonWriter *w, char **ret, size_t *ret_size);
int message_reply_error(int sock, const char *text);
