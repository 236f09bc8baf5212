/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What an agent asks, from its request to the answer of a person, of time or of the turn's end. */

#include "basic/text.h"
#include "shim/acp.h"
#include "shim/conversation-private.h"

static void answer_question(Conversation *c, const char *request, const char *theirs) {
        JsonWriter w = {};

        acp_write_outcome(&w, request, strlen(request), theirs);
        conversation_dispatch(c, &w);
}

static void close_question(Conversation *c, Question *taken, const char *reason) {
        _cleanup_(question_freep) Question *q = taken;
        char text[64];

        (void) snprintf(text, sizeof(text), "none: %s", reason);
        rendering_line(&c->rendering, "answer", text);
        updates_answered(&c->links.updates, q->number, "", reason);
        if (c->stage == STAGE_READY)
                answer_question(c, q->request, NULL);
}

void conversation_close_questions(Conversation *c) {
        for (Question *q; (q = questions_take(&c->questions, 0));)
                close_question(c, q, "cancelled");
}

void conversation_question_expired(Question *q, void *userdata) {
        close_question(userdata, q, "timeout");
}

static void tell_question(const Conversation *c, const Question *q) {
        _cleanup_free_ char *options = question_options(q);

        updates_question(&c->links.updates, q->number, q->title, options ?: "");
}

static void render_question(Conversation *c, const Question *q) {
        _cleanup_free_ char *text = strdup(q->title);

        int r = text ? 0 : -ENOMEM;

        for (size_t i = 0; i < q->n_choices && r >= 0; i++)
                r = string_append(&text, "%s%s%s", i > 0 ? ", " : " (", q->choices[i].id, i + 1 == q->n_choices ? ")" : "");
        rendering_line(&c->rendering, "question", r < 0 ? q->title : text);
}

void conversation_take_question(Conversation *c, const RpcMessage *m) {
        _cleanup_(acp_question_done) AcpQuestion asked = {};
        JsonWriter w = {};
        const Question *q;

        int r = acp_read_question(m->params, c->session ?: "", &asked);
        if (r >= 0)
                r = questions_add(&c->questions, &asked, m->id, &q);
        if (r >= 0) {
                render_question(c, q);
                tell_question(c, q);
        } else if (r == -EBADMSG) {
                rpc_write_error(&w, m->id.at, m->id.size, RPC_INVALID_PARAMS, "not a question that can be put to a person");
                conversation_dispatch(c, &w);
        } else { /* nobody will answer it: as if it had been cancelled */
                acp_write_outcome(&w, m->id.at, m->id.size, NULL);
                conversation_dispatch(c, &w);
        }
}

int conversation_answer(Conversation *c, uint64_t number, const char *option, const char **ret_problem) {
        const Question *open = number > 0 ? questions_find(&c->questions, number) : NULL;

        if (!open)
                return conversation_refuse(ret_problem, "there is no such question, or it has been answered");
        const Choice *choice = question_find(open, option);
        if (!choice)
                return conversation_refuse(ret_problem, "the question has no such option; the transcript has those that it has");
        _cleanup_(question_freep) Question *q = questions_take(&c->questions, number);
        rendering_line(&c->rendering, "answer", choice->id);
        updates_answered(&c->links.updates, q->number, choice->id, NULL);
        answer_question(c, q->request, choice->theirs);
        return 0;
}

void conversation_tell_questions(const Conversation *c) {
        for (size_t i = 0; i < c->questions.n; i++)
                tell_question(c, c->questions.open[i]);
}
