/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A conversation as people read it in the transcript. All texts are clean when they come here; they are scrubbed once more as one stream, so that no
 * secret is put together by what stands next to each other. */

#include "shim/transcript.h"

typedef struct Rendering {
        Transcript *transcript;
        const SecretList *secrets;
        TranscriptStream *stream;
        bool in_line; /* something stands in the last line */
} Rendering;

/* Both are borrowed. */
int rendering_init(Rendering *r, Transcript *transcript, const SecretList *secrets);
void rendering_done(Rendering *r);

void rendering_message(Rendering *r, const char *text, size_t size);
/* Each line of a prompt behind "> ". */
void rendering_prompt(Rendering *r, const char *text);
/* A line of its own: "[KIND] TEXT". */
void rendering_line(Rendering *r, const char *kind, const char *text);
/* The line "[turn ended: REASON]", or of a prompt that was never sent "[prompt not sent: REASON]"; then what was held back is written. text may be NULL. */
void rendering_end(Rendering *r, bool sent, const char *reason, const char *text);
