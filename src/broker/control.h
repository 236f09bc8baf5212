/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The supervisor's connection: one at a time, root's or the control uid's; of two the newer one is it, once the requests that the older
 * had sent are done. Requests get one reply each. Events go out as they happen, to a connection that has asked for something; what finds
 * nobody, or a supervisor that does not read, waits (notices.h) and never takes the broker's time.
 *
 *   {"type":"setup",…}                       setup.h; once
 *   {"type":"grant","id":"g1","host":"api.example.com","duration":"once"|"always"|"until","expires":µs since the epoch (until
 * only)}
 *   {"type":"grants","fds":["grants"]}       grant-request.h: any number of them in a sealed memfd; those whose ids are there already stay as they
 *                                            are, and of the others all are given or none
 *   {"type":"revoke","id":"g1"}   {"type":"close"}   {"type":"stats"}
 *   → {"type":"ok"} | {"type":"error","text":…} | {"type":"stats",…}, each with the request's "serial" if it had one
 *   events: {"type":"refused","host","port","count","total"}  {"type":"grant-used","id","host","used":µs since the epoch}  {"type":"denied-summary","count","hosts","total"}
 *           {"type":"receipt-failed"}
 *
 * stats: "session" (null before setup), "configured", "handedOver" and "port" (0 before), "listening", "closed"; "refused", the hosts' refusals
 * of this broker as the events' "total" counts them; "turnedAway", every request that got an error of ours; "connections", "tunnels", "lookups",
 * "grants", "accepted".
 *
 * A message that is malformed, of another version or type, or with members that its type does not have, gets one error reply and
 * the close; so does a setup that is refused. A request that is well formed and cannot be done (no such grant, a host that is none)
 * gets the error alone. */

#include <systemd/sd-event.h>

#include "basic/macro.h"

typedef struct Broker Broker;
typedef struct Control Control;

/* fd (a listening or a connected SOCK_SEQPACKET socket) is taken always. */
int control_new(Broker *b, int fd, uid_t uid, Control **ret);
Control *control_free(Control *c);
DEFINE_CLEANUP(Control *, control_free);

bool control_is_connected(const Control *c);

/* What the broker before this one had counted. */
void control_set_refused_total(Control *c, uint64_t total);

/* These accept NULL, for programs that have no supervisor. */
void control_note_refused(Control *c, const char *host, uint16_t port);
void control_note_grant_used(Control *c, const char *id, const char *host, bool in_spool);
void control_note_receipt_failed(Control *c);
