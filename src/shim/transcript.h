/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What a session wrote, on disk: scrubbed, capped, and never in the payload's way. Each source of bytes is a stream of its own, so that a
 * secret is found in it although another source writes in between. */

#include "shim/scrub-chain.h"

typedef struct Transcript Transcript;
typedef struct TranscriptStream TranscriptStream;

/* Takes fd, an append-only file that may hold earlier runs. `max` is TRANSCRIPT_BYTES_MAX but in tests. */
int transcript_new(int fd, uint64_t max, Transcript **ret);
Transcript *transcript_free(Transcript *t);
DEFINE_CLEANUP(Transcript *, transcript_free);

int transcript_stream_new(Transcript *t, const SecretList *secrets, TranscriptStream **ret);
TranscriptStream *transcript_stream_free(TranscriptStream *s);
DEFINE_CLEANUP(TranscriptStream *, transcript_stream_free);

/* Cannot fail: what a disk does not take is told once in the log, and where it is missing when there is room again. */
void transcript_write(TranscriptStream *s, const char *data, size_t size);
/* A line of our own, between what the session writes: "[errand: TEXT]". The text has no line's end in it, and no secret. */
void transcript_note(Transcript *t, const char *text);
/* Writes what was held back; nothing may be written afterwards. */
void transcript_finish(TranscriptStream *s);
