/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "shim/rendering.h"

int rendering_init(Rendering *r, Transcript *transcript, const SecretList *secrets) {
        *r = (Rendering){.transcript = transcript, .secrets = secrets};
        return transcript_stream_new(transcript, secrets, &r->stream);
}

void rendering_done(Rendering *r) {
        if (r->stream)
                transcript_finish(r->stream);
        transcript_stream_free(r->stream);
        *r = (Rendering){};
}

static void put(Rendering *r, const char *text, size_t size) {
        if (size == 0 || !r->stream)
                return;
        transcript_write(r->stream, text, size);
        r->in_line = text[size - 1] != '\n';
}

static void begin_line(Rendering *r) {
        if (r->in_line)
                put(r, "\n", 1);
}

static void put_text(Rendering *r, const char *text) {
        put(r, text, strlen(text));
}

void rendering_message(Rendering *r, const char *text, size_t size) {
        put(r, text, size);
}

void rendering_prompt(Rendering *r, const char *text) {
        begin_line(r);
        do {
                size_t n = strcspn(text, "\n");
                put_text(r, "> ");
                put(r, text, n);
                put_text(r, "\n");
                text += n;
        } while (*text && *++text);
}

void rendering_line(Rendering *r, const char *kind, const char *text) {
        begin_line(r);
        put_text(r, "[");
        put_text(r, kind);
        put_text(r, "] ");
        put_text(r, text);
        put_text(r, "\n");
}

void rendering_end(Rendering *r, bool sent, const char *reason, const char *text) {
        TranscriptStream *next = NULL;

        begin_line(r);
        put_text(r, sent ? "[turn ended: " : "[prompt not sent: ");
        put_text(r, reason);
        if (text) {
                put_text(r, ": ");
                put_text(r, text);
        }
        put_text(r, "]\n");
        if (!r->stream)
                return;
        /* Nothing may follow what was finished: the next turn is another stream. */
        transcript_finish(r->stream);
        transcript_stream_free(r->stream);
        if (transcript_stream_new(r->transcript, r->secrets, &next) < 0)
                log_warning("There is no memory for the transcript, which ends here");
        r->stream = next;
}
