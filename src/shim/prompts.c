/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shim/limits.h"
#include "shim/prompts.h"

Prompt *prompt_free(Prompt *p) {
        if (!p)
                return NULL;
        sd_event_source_disable_unref(p->deadline);
        free(p->text);
        return mfree(p);
}

void prompts_done(Prompts *q) {
        for (Prompt *p; (p = prompts_take(q));)
                prompt_free(p);
}

static void unlink_prompt(Prompts *q, Prompt *p) {
        Prompt **at = &q->first;

        while (*at != p)
                at = &(*at)->next;
        *at = p->next;
        p->next = NULL;
        p->deadline = sd_event_source_disable_unref(p->deadline);
        q->n--;
}

static int on_deadline(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Prompt *p = userdata;
        Prompts *q = p->queue;

        unlink_prompt(q, p);
        q->expired(p, q->userdata);
        return 0;
}

int prompts_add(Prompts *q, uint64_t number, usec_t wait_usec, char *text) {
        _cleanup_(prompt_freep) Prompt *p = NULL;
        Prompt **at = &q->first;

        if (number <= q->last)
                return -EEXIST;
        if (q->n >= PROMPTS_MAX)
                return -ENOBUFS;
        p = calloc(1, sizeof(Prompt));
        if (!p)
                return -ENOMEM;
        p->number = number;
        p->queue = q;
        int r = wait_usec == 0 ? 0 : sd_event_add_time_relative(q->event, &p->deadline, CLOCK_MONOTONIC, wait_usec, 1, on_deadline, p);
        if (r < 0)
                return r;
        while (*at)
                at = &(*at)->next;
        p->text = text;
        *at = TAKE_PTR(p);
        q->n++;
        q->last = number;
        return 0;
}

Prompt *prompts_take(Prompts *q) {
        Prompt *p = q->first;

        if (p)
                unlink_prompt(q, p);
        return p;
}
