/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shim/backlog.h"

static struct BacklogEntry *entry_at(const Backlog *b, size_t i) {
        return (struct BacklogEntry *) &b->entries[(b->first + i) % BACKLOG_MAX];
}

static void drop_oldest(Backlog *b) {
        struct BacklogEntry *e = entry_at(b, 0);

        b->size -= e->size;
        free(e->text);
        *e = (struct BacklogEntry){};
        b->first = (b->first + 1) % BACKLOG_MAX;
        b->n--;
}

void backlog_add(Backlog *b, uint64_t number, const char *text, size_t size) {
        if (size > BACKLOG_BYTES)
                return;
        while (b->n > 0 && (b->n >= BACKLOG_MAX || b->size + size > BACKLOG_BYTES))
                drop_oldest(b);
        char *copy = malloc(size);
        if (!copy)
                return;
        memcpy(copy, text, size);
        *entry_at(b, b->n) = (struct BacklogEntry){.number = number, .text = copy, .size = size};
        b->n++;
        b->size += size;
}

int backlog_tell(const Backlog *b, Watcher *w, uint64_t after, uint64_t last) {
        int r = 0;

        for (size_t i = 0; i < b->n && r >= 0; i++) {
                const struct BacklogEntry *e = entry_at(b, i);

                if (e->number <= after)
                        continue;
                r = watcher_miss(w, e->number - after - 1, e->number - 1);
                if (r >= 0)
                        r = watcher_send(w, e->text, e->size, e->number, true);
                after = e->number;
        }
        return r >= 0 && last > after ? watcher_miss(w, last - after, last) : r;
}

void backlog_done(Backlog *b) {
        while (b->n > 0)
                drop_oldest(b);
}
