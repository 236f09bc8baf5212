/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "broker/spool-file.h"

void spool_batch_done(SpoolBatch *b) {
        free(b->data);
        *b = (SpoolBatch) {};
}

static int batch_reserve(SpoolBatch *b, size_t more) {
        size_t room = MAX(b->room, (size_t) 4096);

        while (room - b->size < more)
                room *= 2;
        if (room == b->room)
                return 0;
        uint8_t *data = realloc(b->data, room);
        if (!data)
                return -ENOMEM;
        b->data = data;
        b->room = room;
        return 0;
}

int spool_batch_add(SpoolBatch *b, SpoolKind kind, const char *payload, size_t size) {
        int r = batch_reserve(b, SPOOL_HEADER_SIZE + size);
        if (r < 0)
                return r;
        spool_encode(kind, payload, size, b->data + b->size);
        b->size += SPOOL_HEADER_SIZE + size;
        b->n++;
        return 0;
}

void spool_batch_move(SpoolBatch *to, SpoolBatch *from) {
        if (from->size == 0)
                return;
        if (to->size == 0) {
                SpoolBatch empty = *to;
                *to = *from;
                *from = (SpoolBatch) {.data = empty.data, .room = empty.room};
                return;
        }
        if (batch_reserve(to, from->size) < 0)
                return;
        memcpy(to->data + to->size, from->data, from->size);
        to->size += from->size;
        to->n += from->n;
        from->size = from->n = 0;
}

static void batch_consume(SpoolBatch *b, size_t size, size_t n, size_t rest) {
        memmove(b->data, b->data + size, b->size - size);
        b->size -= size;
        b->n -= n;
        b->rest = rest;
}

/* How many of the first `written` bytes belong to records that are whole in them. *ret_end is the end of the record that
 * the next byte would belong to. */
static size_t batch_whole(const SpoolBatch *b, size_t written, size_t *ret_n, size_t *ret_end) {
        size_t whole = 0, n = 0, end = b->rest;

        for (;;) {
                if (end == whole) { /* at a record's beginning */
                        SpoolKind kind;
                        const char *payload;
                        size_t size;
                        ssize_t k = spool_decode(b->data + whole, b->size - whole, &kind, &payload, &size);
                        if (k <= 0)
                                break;
                        end = whole + (size_t) k;
                }
                if (end > written)
                        break;
                whole = end;
                n++;
        }
        *ret_n = n;
        *ret_end = MAX(end, whole);
        return whole;
}

/* Where whole records end in what is in the file already; the file's size when that cannot be told. */
static off_t find_end(int fd, off_t size) {
        _cleanup_free_ uint8_t *buffer = NULL;
        const size_t room = 64 * 1024;
        size_t have = 0;
        off_t at = 0;

        buffer = malloc(room);
        if (!buffer)
                return size;
        for (;;) {
                ssize_t k = pread(fd, buffer + have, room - have, at + (off_t) have);
                if (k < 0)
                        return size;
                have += (size_t) k;
                size_t used = 0;
                for (;;) {
                        SpoolKind kind;
                        const char *payload;
                        size_t payload_size;
                        ssize_t n = have > used ? spool_decode(buffer + used, have - used, &kind, &payload, &payload_size) : 0;
                        if (n < 0)
                                return size; /* damaged in the middle: not ours to cut away */
                        if (n == 0)
                                break;
                        used += (size_t) n;
                }
                at += (off_t) used;
                memmove(buffer, buffer + used, have - used);
                have -= used;
                if (k == 0)
                        return at;
        }
}

void spool_file_init(SpoolFile *f, int fd) {
        struct stat st;

        *f = (SpoolFile) {.fd = fd};
        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return;
        f->good = st.st_size;
        if (st.st_size > 0) {
                char path[sizeof("/proc/self/fd/") + 3 * sizeof(int)];
                (void) snprintf(path, sizeof(path), "/proc/self/fd/%i", fd);
                _cleanup_close_ int reader = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
                off_t end = find_end(reader >= 0 ? reader : fd, st.st_size);
                if (end < st.st_size && ftruncate(fd, end) >= 0)
                        f->good = end;
        }
        (void) lseek(fd, f->good, SEEK_SET);
}

/* Bytes written; *ret_error says why it were not all. */
static size_t write_some(SpoolFile *f, const uint8_t *data, size_t size, int *ret_error) {
        size_t done = 0;

        *ret_error = 0;
        while (done < size) {
                ssize_t k = write(f->fd, data + done, size - done);
                if (k < 0 && errno == EINTR)
                        continue;
                if (k <= 0) {
                        *ret_error = k < 0 ? negative_errno() : -EIO;
                        break;
                }
                done += (size_t) k;
        }
        f->dirty |= done > 0;
        return done;
}

static bool take_back(SpoolFile *f, off_t end) {
        if (ftruncate(f->fd, end) < 0)
                return false;
        (void) lseek(f->fd, end, SEEK_SET);
        return true;
}

int spool_file_write(SpoolFile *f, SpoolBatch *b) {
        int error;

        if (b->size == 0)
                return 0;
        size_t written = write_some(f, b->data, b->size, &error), n, end;
        if (error == 0) {
                f->good += (off_t) written;
                b->size = b->n = b->rest = 0;
                return 0;
        }
        size_t whole = batch_whole(b, written, &n, &end);
        bool torn = written > whole, begins_here = whole > 0 || b->rest == 0;
        if (!torn || (begins_here && take_back(f, f->good + (off_t) whole))) {
                f->good += (off_t) whole;
                batch_consume(b, whole, n, whole == 0 ? b->rest : 0);
        } else {
                /* It stays in the file: what comes next must be its other half. */
                f->good += (off_t) written;
                batch_consume(b, written, n, end - written);
        }
        return error;
}

int spool_file_write_one(SpoolFile *f, SpoolBatch *left, const uint8_t *record, size_t size) {
        int error;
        size_t written = write_some(f, record, size, &error);

        if (error == 0) {
                f->good += (off_t) written;
                return 0;
        }
        if (written == 0 || take_back(f, f->good))
                return error;
        f->good += (off_t) written;
        if (batch_reserve(left, size - written) >= 0) {
                memcpy(left->data, record + written, size - written);
                left->size = left->rest = size - written;
                left->n = 1;
        }
        return error;
}

int spool_file_sync(SpoolFile *f) {
        if (!f->dirty)
                return 0;
        f->dirty = false;
        /* A pipe or a device cannot be synced, and need not be. */
        if (fdatasync(f->fd) < 0 && errno != EINVAL && errno != EROFS)
                return negative_errno();
        return 0;
}
