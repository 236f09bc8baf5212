/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The shim's socket: errandd asks (attach, resize, signal, stop, status; of a conversation prompt, turn, interrupt, answer), nobody else. */

#include <systemd/sd-event.h>

#include "basic/json-writer.h"
#include "basic/macro.h"

typedef struct Shim Shim;
typedef struct Control Control;

/* Listens at `path`, replacing a socket that was left there; a path that sun_path cannot hold is reached over its directory. `uid` is the
 * account that may ask, beside root. Where that is another account, it comes by the group of the directory, which is setgid then and its own:
 * mode 0660, else 0600. Logs what is wrong. */
int control_new(Shim *s, const char *path, uid_t uid, Control **ret);
Control *control_free(Control *c); /* removes the socket */
DEFINE_CLEANUP(Control *, control_free);

/* Tells every connection that asked to watch. */
void control_tell_state(Control *c);
/* The same of an update of the conversation, which is open and finished here. Without anybody who watches, and from one who does not read, it is missed,
 * and that is told later; keep: it is the last to be dropped. */
void control_tell_update(Control *c, JsonWriter *w, bool keep);
/* Whether somebody who watches has not taken everything yet. */
bool control_has_pending(const Control *c);
