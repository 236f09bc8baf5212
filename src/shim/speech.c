/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "basic/utf8.h"
#include "shim/limits.h"
#include "shim/speech.h"

/* What a piece may take as JSON, where a newline has six bytes and a quotation mark two: well below MESSAGE_SIZE_MAX. */
#define ENCODED_MAX (48U * 1024U)

int speech_init(Speech *s, const SecretList *secrets, SpeechPiece piece, void *userdata) {
        *s = (Speech){.piece = piece, .userdata = userdata};
        return scrub_chain_new(secrets, &s->chain);
}

void speech_done(Speech *s) {
        scrub_chain_free(s->chain);
        *s = (Speech){};
}

/* Bytes of the next piece. */
static size_t piece_size(const char *text, size_t size) {
        size_t n = utf8_cut(text, size, UPDATE_TEXT_MAX), encoded = 0;

        for (size_t i = 0; i < n; i++) {
                encoded += text[i] == '\n' || text[i] == '\t' ? 6 : text[i] == '"' || text[i] == '\\' ? 2 : 1;
                if (encoded > ENCODED_MAX)
                        return utf8_cut(text, size, i);
        }
        return n;
}

static int give(Speech *s, const char *clean, size_t size) {
        if (size == 0)
                return 0;
        _cleanup_free_ char *text = string_escape_control_text(clean, size);
        if (!text)
                return -ENOMEM;
        size_t left = strlen(text);
        for (char *at = text; left > 0;) {
                size_t n = piece_size(at, left);
                char next = at[n];

                at[n] = 0;
                s->piece(at, n, s->userdata);
                at[n] = next;
                at += n;
                left -= n;
        }
        return 0;
}

int speech_push(Speech *s, const char *text) {
        const char *clean;
        size_t size;

        int r = scrub_chain_push(s->chain, text, strlen(text), &clean, &size);
        return r < 0 ? r : give(s, clean, size);
}

int speech_flush(Speech *s) {
        const char *clean;
        size_t size;

        int r = scrub_chain_finish(s->chain, &clean, &size);
        return r < 0 ? r : give(s, clean, size);
}

int speech_line(const SecretList *secrets, const char *text, size_t max, char **ret) {
        _cleanup_free_ char *clean = NULL;

        int r = scrub_chain_text(secrets, text, &clean);
        if (r < 0)
                return r;
        char *line = string_escape_control(clean);
        if (!line)
                return -ENOMEM;
        size_t size = strlen(line);
        if (size > max)
                line[utf8_cut(line, size, max)] = 0;
        *ret = line;
        return 0;
}

int speech_excerpt(const SecretList *secrets, const char *line, size_t size, size_t max, char **ret) {
        if (size > 0 && line[size - 1] == '\r')
                size--;
        /* The whole of it: half of a secret would not be known for one. */
        _cleanup_free_ char *text = strndup(line, size);

        return text ? speech_line(secrets, text, max, ret) : -ENOMEM;
}
