/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "shim/transcript.h"

struct Transcript {
        int fd;
        uint64_t size, max;
        uint64_t lost; /* bytes that the disk did not take, since the last that it took */
        bool ended;    /* the cap is reached and said so */
        bool told;     /* that the disk fails */
};

struct TranscriptStream {
        Transcript *transcript;
        ScrubChain *chain;
};

int transcript_new(int fd, uint64_t max, Transcript **ret) {
        _cleanup_close_ int owned = fd;
        struct stat st;

        Transcript *t = calloc(1, sizeof(Transcript));
        if (!t)
                return -ENOMEM;
        *t = (Transcript){.fd = TAKE_FD(owned), .max = max};
        if (fstat(t->fd, &st) < 0 || !S_ISREG(st.st_mode)) {
                transcript_free(t);
                return -EINVAL;
        }
        t->size = (uint64_t) st.st_size;
        t->ended = t->size >= max; /* and an earlier run said so */
        *ret = t;
        return 0;
}

Transcript *transcript_free(Transcript *t) {
        if (t)
                safe_close(t->fd);
        return mfree(t);
}

int transcript_stream_new(Transcript *t, const SecretList *secrets, TranscriptStream **ret) {
        _cleanup_(transcript_stream_freep) TranscriptStream *s = calloc(1, sizeof(TranscriptStream));

        if (!s)
                return -ENOMEM;
        s->transcript = t;
        int r = scrub_chain_new(secrets, &s->chain);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

TranscriptStream *transcript_stream_free(TranscriptStream *s) {
        if (s)
                scrub_chain_free(s->chain);
        return mfree(s);
}

/* Bytes written; what is missing was lost. */
static size_t put(Transcript *t, const char *data, size_t size) {
        size_t done = 0;

        while (done < size) {
                ssize_t n = write(t->fd, data + done, size - done);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0) {
                        if (!t->told)
                                log_warning_errno(n < 0 ? errno : EIO, "The transcript cannot be written, the session goes on without: %m");
                        t->told = true;
                        break;
                }
                done += (size_t) n;
        }
        t->size += done;
        return done;
}

/* A line of our own that holds a number. */
static bool put_note(Transcript *t, const char *before, uint64_t number, const char *after) {
        char note[128];

        int n = snprintf(note, sizeof(note), "\n[errand: %s%" PRIu64 "%s]\n", before, number, after);
        return n > 0 && put(t, note, MIN((size_t) n, sizeof(note) - 1)) == (size_t) n;
}

static void append(Transcript *t, const char *data, size_t size) {
        if (t->ended || size == 0)
                return;
        if (t->lost > 0) {
                if (!put_note(t, "", t->lost, " bytes are missing here, there was no room for them")) {
                        t->lost += size;
                        return;
                }
                t->lost = 0;
        }
        size_t room = t->size < t->max ? (size_t) MIN((uint64_t) size, t->max - t->size) : 0;
        size_t done = put(t, data, room);
        if (done < room)
                t->lost += size - done;
        else if (room < size) {
                (void) put_note(t, "the transcript ends here, it has reached ", t->max, " bytes");
                t->ended = true;
        }
}

void transcript_note(Transcript *t, const char *text) {
        char note[512];

        int n = snprintf(note, sizeof(note), "\n[errand: %.400s]\n", text);
        append(t, note, (size_t) MAX(n, 0));
}

void transcript_write(TranscriptStream *s, const char *data, size_t size) {
        const char *clean;
        size_t n;

        int r = scrub_chain_push(s->chain, data, size, &clean, &n);
        if (r >= 0)
                append(s->transcript, clean, n);
        else if (!s->transcript->told) {
                log_warning_errno(r, "The transcript cannot be written, the session goes on without: %m");
                s->transcript->told = true;
        }
}

void transcript_finish(TranscriptStream *s) {
        const char *clean;
        size_t n;

        if (scrub_chain_finish(s->chain, &clean, &n) >= 0)
                append(s->transcript, clean, n);
}
