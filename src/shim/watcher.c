/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>

#include "basic/fd.h"
#include "shared/message.h"
#include "shim/limits.h"
#include "shim/updates.h"
#include "shim/watcher.h"

struct Pending {
        Pending *next;
        uint64_t missed, number; /* instead of a text; and that of the last one of them */
        bool keep, reply;
        int fd;          /* beside the text; -EBADF: none */
        size_t size;
        char text[];
};

static int append(Watcher *w, const char *text, size_t size, bool keep) {
        Pending *p = malloc(sizeof(Pending) + size);

        if (!p)
                return -ENOMEM;
        *p = (Pending){.keep = keep, .fd = -EBADF, .size = size};
        if (size > 0)
                memcpy(p->text, text, size);
        if (w->last)
                w->last->next = p;
        else
                w->first = p;
        w->last = p;
        w->n_kept += keep;
        w->size += sizeof(Pending) + size;
        return 0;
}

static int send_missed(int fd, const Pending *p) {
        _cleanup_(json_writer_done) JsonWriter m = {};

        updates_open(&m, UPDATE_MISSED);
        json_add_u64(&m, "count", p->missed);
        json_close_object(&m);
        json_add_u64(&m, "number", p->number);
        return message_send(fd, &m, NULL, 0);
}

int watcher_flush(Watcher *w) {
        while (w->first) {
                Pending *p = w->first;

                ssize_t n = p->missed > 0 ? send_missed(w->fd, p) : send_fds(w->fd, p->text, p->size, &p->fd, p->fd >= 0 ? 1 : 0);
                if (n < 0)
                        return n == -EAGAIN ? 0 : (int) n;
                safe_close(p->fd);
                w->n_kept -= p->keep;
                w->size -= sizeof(Pending) + p->size;
                w->first = p->next;
                if (!w->first)
                        w->last = NULL;
                free(p);
        }
        return 0;
}

int watcher_miss(Watcher *w, uint64_t count, uint64_t number) {
        if (count == 0)
                return 0;
        if (!w->last || w->last->missed == 0) {
                int r = append(w, NULL, 0, false);
                if (r < 0)
                        return r;
        }
        w->last->missed += count;
        w->last->number = number;
        return 0;
}

int watcher_send(Watcher *w, const char *text, size_t size, uint64_t number, bool keep) {
        int r = watcher_flush(w);

        if (r < 0)
                return r;
        if (!w->first) {
                ssize_t n = send_fds(w->fd, text, size, NULL, 0);
                if (n >= 0)
                        return 0;
                if (n != -EAGAIN)
                        return (int) n;
        }
        bool room = w->size + size <= UPDATES_PENDING_BYTES || (keep && w->n_kept < UPDATES_PENDING_MAX);
        return room ? append(w, text, size, keep) : watcher_miss(w, 1, number);
}

int watcher_reply(Watcher *w, const char *text, size_t size, int fd) {
        int r = watcher_flush(w);

        if (r < 0)
                return r;
        if (!w->first) {
                ssize_t n = send_fds(w->fd, text, size, &fd, fd >= 0 ? 1 : 0);
                if (n >= 0 || n != -EAGAIN)
                        return n >= 0 ? 0 : (int) n;
        }
        if (w->n_kept >= UPDATES_PENDING_MAX)
                return -ENOBUFS;
        _cleanup_close_ int own = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -EBADF;
        if (fd >= 0 && own < 0)
                return -errno;
        r = append(w, text, size, true);
        if (r < 0)
                return r;
        w->last->reply = true;
        w->last->fd = TAKE_FD(own);
        return 0;
}

uint64_t watcher_done(Watcher *w) {
        uint64_t dropped = 0;

        for (Pending *p = w->first, *next; p; p = next) {
                next = p->next;
                dropped += p->missed > 0 ? p->missed : !p->reply;
                safe_close(p->fd);
                free(p);
        }
        w->first = w->last = NULL;
        w->n_kept = w->size = 0;
        return dropped;
}
