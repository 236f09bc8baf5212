/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What is told of a conversation: signal Update, org.errand1(5). */

#include <systemd/sd-bus.h>

#include "shared/update-kind.h"

/* Strings are the message's, "" where there is none. */
typedef struct Update {
        UpdateKind kind; /* _UPDATE_KIND_INVALID: one that is not known here */
        const char *word; /* of the kind */
        uint64_t prompt, question, count;
        const char *text, *reason, *id, *title, *status, *options, *option, *agent, *version;
        sd_bus_message *fields; /* at its a{sv}, again */
} Update;

/* Reads the body of m. Negative errno: it is none. */
int update_read(sd_bus_message *m, Update *ret);

/* The next line of a question's options, "ID\tname\tkind"; false: there is no other. To be freed: *ret_id, *ret_name, *ret_kind. */
bool update_next_option(const char **options, char **ret_id, char **ret_name, char **ret_kind);

/* Why a turn ended, as a phrase: "it was interrupted". */
const char *turn_end_text(const Update *u);
