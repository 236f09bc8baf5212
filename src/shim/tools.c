/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "shim/speech.h"
#include "shim/tools.h"

static void tool_done(Tool *t) {
        free(t->id);
        free(t->title);
        free(t->sort);
        free(t->status);
        *t = (Tool){};
}

void tools_done(Tools *t) {
        for (size_t i = 0; i < ELEMENTSOF(t->calls); i++)
                tool_done(&t->calls[i]);
}

/* The one of that id, made when there is none, in place of the oldest; NULL: no memory. */
static Tool *find(Tools *t, const char *id) {
        for (size_t i = 0; i < ELEMENTSOF(t->calls); i++)
                if (t->calls[i].id && streq(t->calls[i].id, id))
                        return &t->calls[i];
        Tool *tool = &t->calls[t->next];
        tool_done(tool);
        *tool = (Tool){.id = strdup(id), .title = strdup(""), .sort = strdup(""), .status = strdup("pending")};
        if (!tool->id || !tool->title || !tool->sort || !tool->status) {
                tool_done(tool);
                return NULL;
        }
        t->next = (t->next + 1) % ELEMENTSOF(t->calls);
        return tool;
}

/* What is not said stays as it was. */
static void take(char **member, char **value) {
        if (!*value)
                return;
        free(*member);
        *member = TAKE_PTR(*value);
}

/* NULL stays NULL. */
static int clean(const SecretList *secrets, const char *text, size_t max, char **ret) {
        return text ? speech_line(secrets, text, max, ret) : 0;
}

static int read_tool(const SecretList *secrets, const AcpUpdate *u, Tool *ret) {
        int r = speech_line(secrets, u->id, WORD_MAX, &ret->id);

        if (r >= 0)
                r = clean(secrets, u->title, TITLE_MAX, &ret->title);
        if (r >= 0)
                r = clean(secrets, u->sort, WORD_MAX, &ret->sort);
        return r < 0 ? r : clean(secrets, u->status, WORD_MAX, &ret->status);
}

int tools_update(Tools *t, const SecretList *secrets, const AcpUpdate *u, const Updates *updates, Rendering *rendering) {
        _cleanup_(tool_done) Tool said = {};
        _cleanup_free_ char *line = NULL;

        int r = read_tool(secrets, u, &said);
        if (r < 0)
                return r;
        if (!u->first && !said.title && !said.status)
                return 0; /* of what it put out */
        Tool *tool = find(t, said.id);
        if (!tool)
                return -ENOMEM;
        take(&tool->title, &said.title);
        take(&tool->sort, &said.sort);
        take(&tool->status, &said.status);
        updates_tool(updates, tool->id, tool->title, tool->sort, tool->status);
        if (asprintf(&line, "%s: %s", *tool->title ? tool->title : tool->id, tool->status) < 0) {
                line = NULL;
                return -ENOMEM;
        }
        rendering_line(rendering, "tool", line);
        return 0;
}
