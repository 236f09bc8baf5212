/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "shim/questions.h"
#include "shim/speech.h"

#define ID_CHARACTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:"
#define ID_MAX 64U

Question *question_free(Question *q) {
        if (!q)
                return NULL;
        sd_event_source_disable_unref(q->deadline);
        for (size_t i = 0; i < q->n_choices; i++) {
                free(q->choices[i].id);
                free(q->choices[i].name);
                free(q->choices[i].kind);
                free(q->choices[i].theirs);
        }
        free(q->title);
        return mfree(q);
}

const Choice *question_find(const Question *q, const char *id) {
        for (size_t i = 0; i < q->n_choices; i++)
                if (q->choices[i].id && streq(q->choices[i].id, id))
                        return &q->choices[i];
        return NULL;
}

char *question_options(const Question *q) {
        char *text = NULL;
        size_t size;

        FILE *f = open_memstream(&text, &size);
        if (!f)
                return NULL;
        for (size_t i = 0; i < q->n_choices; i++)
                fprintf(f, "%s%s\t%s\t%s", i > 0 ? "\n" : "", q->choices[i].id, q->choices[i].name, q->choices[i].kind);
        if (fclose(f) != 0)
                text = mfree(text);
        return text;
}

/* What a person can type and a secret cannot be in. */
static int choose_id(const SecretList *secrets, const char *theirs, size_t place, char **ret) {
        _cleanup_free_ char *clean = NULL;

        int r = speech_line(secrets, theirs, WORD_MAX, &clean);
        if (r < 0)
                return r;
        bool plain = streq(clean, theirs) && strlen(theirs) <= ID_MAX && strspn(theirs, ID_CHARACTERS) == strlen(theirs) && *theirs != '-';
        if (plain)
                *ret = TAKE_PTR(clean);
        else if (asprintf(ret, "option%zu", place + 1) < 0) {
                *ret = NULL;
                return -ENOMEM;
        }
        return 0;
}

static int add_choice(const SecretList *secrets, Question *q, const AcpOption *option) {
        _cleanup_free_ char *id = NULL;
        Choice *c = &q->choices[q->n_choices];

        int r = choose_id(secrets, option->id, q->n_choices, &id);
        if (r < 0)
                return r;
        if (question_find(q, id))
                return -EBADMSG;
        q->n_choices++;
        c->id = TAKE_PTR(id);
        c->theirs = strdup(option->id);
        r = c->theirs ? speech_line(secrets, option->name, TITLE_MAX, &c->name) : -ENOMEM;
        return r < 0 ? r : speech_line(secrets, option->kind ?: "", WORD_MAX, &c->kind);
}

static int on_deadline(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Question *q = userdata;
        Questions *all = q->questions;

        all->expired(questions_take(all, q->number), all->userdata);
        return 0;
}

int questions_add(Questions *all, const AcpQuestion *asked, JsonView request, const Question **ret) {
        _cleanup_(question_freep) Question *q = NULL;

        if (all->n >= QUESTIONS_MAX)
                return -ENOBUFS;
        q = calloc(1, sizeof(Question));
        if (!q)
                return -ENOMEM;
        q->questions = all;
        memcpy(q->request, request.at, MIN(request.size, (size_t) RPC_ID_MAX));
        int r = speech_line(all->secrets, asked->title ?: "", TITLE_MAX, &q->title);
        for (size_t i = 0; i < asked->n_options && r >= 0; i++)
                r = add_choice(all->secrets, q, &asked->options[i]);
        if (r >= 0)
                r = sd_event_add_time_relative(all->event, &q->deadline, CLOCK_MONOTONIC, all->patience_usec, 1, on_deadline, q);
        if (r < 0)
                return r;
        q->number = ++all->last;
        *ret = q;
        all->open[all->n++] = TAKE_PTR(q);
        return 0;
}

const Question *questions_find(const Questions *all, uint64_t number) {
        for (size_t i = 0; i < all->n; i++)
                if (number == 0 || all->open[i]->number == number)
                        return all->open[i];
        return NULL;
}

Question *questions_take(Questions *all, uint64_t number) {
        for (size_t i = 0; i < all->n; i++) {
                Question *q = all->open[i];
                if (number > 0 && q->number != number)
                        continue;
                memmove(all->open + i, all->open + i + 1, (all->n - i - 1) * sizeof(Question *));
                all->n--;
                q->deadline = sd_event_source_disable_unref(q->deadline);
                return q;
        }
        return NULL;
}

void questions_done(Questions *all) {
        for (Question *q; (q = questions_take(all, 0));)
                question_free(q);
}
