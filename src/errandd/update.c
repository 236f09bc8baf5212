/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/update.h"
#include "shared/message.h"

#define NUMBER_MAX UINT64_C(999999999999999999) /* json_check() takes no longer integer */

typedef enum FieldForm {
        FORM_TEXT,
        FORM_NUMBER,
        FORM_MAYBE, /* a text, or not there */
} FieldForm;

static const struct {
        const char *name;
        FieldForm form;
} table[_UPDATE_KIND_MAX][UPDATE_FIELDS_MAX] = {
        [UPDATE_READY] = {{"agent", FORM_MAYBE}, {"version", FORM_MAYBE}},
        [UPDATE_QUEUED] = {{"prompt", FORM_NUMBER}},
        [UPDATE_TURN_STARTED] = {{"prompt", FORM_NUMBER}},
        [UPDATE_MESSAGE] = {{"text", FORM_TEXT}},
        [UPDATE_THOUGHT] = {{"text", FORM_TEXT}},
        [UPDATE_TOOL] = {{"id", FORM_TEXT}, {"title", FORM_MAYBE}, {"kind", FORM_MAYBE}, {"status", FORM_MAYBE}},
        [UPDATE_PLAN] = {{"text", FORM_TEXT}},
        [UPDATE_QUESTION] = {{"question", FORM_NUMBER}, {"title", FORM_TEXT}, {"options", FORM_TEXT}},
        [UPDATE_ANSWERED] = {{"question", FORM_NUMBER}, {"option", FORM_MAYBE}, {"reason", FORM_MAYBE}},
        [UPDATE_TURN_ENDED] = {{"prompt", FORM_NUMBER}, {"reason", FORM_TEXT}, {"text", FORM_MAYBE}},
        [UPDATE_MISSED] = {{"count", FORM_NUMBER}},
};

bool update_kind_is_text(UpdateKind k) {
        return k == UPDATE_MESSAGE || k == UPDATE_THOUGHT || k == UPDATE_TOOL || k == UPDATE_PLAN;
}

static int read_field(JsonObject *fields, const char *name, FieldForm form, Update *u) {
        UpdateField f = {.name = name};

        int r = form == FORM_NUMBER ? json_get_u64(fields, name, NUMBER_MAX, &f.number) : json_get_string(fields, name, &f.text);
        if (r == -ENOENT && form == FORM_MAYBE)
                return 0;
        if (r < 0)
                return -EBADMSG;
        u->fields[u->n_fields++] = f;
        return 0;
}

int update_read(JsonObject *event, Update *ret) {
        JsonObject *fields;
        const char *kind;

        if (json_get_string(event, "kind", &kind) < 0 || json_get_object(event, "fields", &fields) < 0)
                return -EBADMSG;
        Update u = {.kind = update_kind_from_string(kind)};
        if (u.kind < 0)
                return -ENOENT;
        for (size_t i = 0; i < UPDATE_FIELDS_MAX && table[u.kind][i].name; i++) {
                int r = read_field(fields, table[u.kind][i].name, table[u.kind][i].form, &u);
                if (r < 0)
                        return r;
        }
        *ret = u;
        return 0;
}

size_t update_size(const Update *u) {
        size_t size = 0;

        for (size_t i = 0; i < u->n_fields; i++)
                size += u->fields[i].text ? strlen(u->fields[i].text) : 0;
        return size;
}

uint64_t update_number(const Update *u, const char *name) {
        for (size_t i = 0; i < u->n_fields; i++)
                if (!u->fields[i].text && streq(u->fields[i].name, name))
                        return u->fields[i].number;
        return 0;
}
