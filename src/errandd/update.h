/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What happens in a conversation, as a shim tells it: a kind and flat fields, of one table. It comes from the payload's account, so what is not of the
 * table's form is no update at all, and a field that the table does not have is left out. */

#include <json-glib/json-glib.h>

#include "shared/update-kind.h"

#define UPDATE_FIELDS_MAX 4U

typedef struct UpdateField {
        const char *name;
        const char *text; /* NULL: it is a number */
        uint64_t number;
} UpdateField;

typedef struct Update {
        UpdateKind kind;
        UpdateField fields[UPDATE_FIELDS_MAX]; /* texts are borrowed from what it was read from */
        size_t n_fields;
} Update;

/* What a client cannot do without: text that comes as it is written can be lost, and that is told. */
bool update_kind_is_text(UpdateKind k);

/* `event` is {"kind":K,"fields":{…}} with more beside them. -EBADMSG: not of the table's form; -ENOENT: a kind that is not known. */
int update_read(JsonObject *event, Update *ret);
/* The number in that field; 0 where there is none, which no prompt and no question has. */
uint64_t update_number(const Update *u, const char *name);
/* Bytes of its texts. */
size_t update_size(const Update *u);
