/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* The decision on one request: whose route it is, whether it carries the session's credential, and whether host, port and address
 * are allowed. */

#include "broker/answers.h"
#include "broker/connection.h"

/* head points into c->in[0…c->head_size). Afterwards c has an answer to write, dials, or is an exchange's. */
void request_decide(Connection *c, const Http1Head *head);

/* Answers with a row of the table and logs it. body replaces the row's (NULL: the row's own); detail is NULL or for the log alone.
 */
void request_refuse(Connection *c, Answer a, const char *body, const char *detail);
