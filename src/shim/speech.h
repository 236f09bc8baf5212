/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What an agent says in pieces, as one stream: secrets are taken out of it wherever the pieces are cut. Comes out as text for people, of which each
 * piece fits an update: control characters but newlines and tabs are written out. */

#include "shim/scrub-chain.h"

/* text holds at most UPDATE_TEXT_MAX bytes of whole characters. */
typedef void (*SpeechPiece)(const char *text, size_t size, void *userdata);

typedef struct Speech {
        ScrubChain *chain;
        SpeechPiece piece;
        void *userdata;
} Speech;

/* secrets are borrowed. */
int speech_init(Speech *s, const SecretList *secrets, SpeechPiece piece, void *userdata);
void speech_done(Speech *s);

int speech_push(Speech *s, const char *text);
/* The end of a turn: what was held back comes out, and the next is another stream. */
int speech_flush(Speech *s);

/* For what is no stream: scrubbed, in one line, at most max bytes. */
int speech_line(const SecretList *secrets, const char *text, size_t max, char **ret);
/* The same of a line of that size, which need not be text; up to a NUL. */
int speech_excerpt(const SecretList *secrets, const char *line, size_t size, size_t max, char **ret);
