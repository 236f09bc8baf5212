/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* Whether a call on a provider route may go on, before anything is dialled: stand-in, path, budgets, capabilities, in this order. */

#include "broker/exchange.h"

/* 0 to go on with *ret filled, else the status it has answered c with, or a negative errno when not even that was possible. path is what follows
 * "http://127.0.0.1:PORT" or the Host of an origin-form request: "/provider/ID/…". It leaves the receipt of a call that it turns away, and counts
 * one that goes on as a request of its budgets. */
int route_authorize(Connection *c, const Http1Head *head, Slice path, ExchangeTarget *ret);
