/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shared/scrub.h"

/* Knuth, Morris and Pratt, so the bytes held back are always the longest start of the key that the stream ends with, and no
 * byte is looked at more than twice. They need no buffer: they are the key's own first `matched` bytes. Between matches
 * memchr(3) leaps from one occurrence of the key's rarest byte to the next. */
struct Scrub {
        const char *key;
        size_t size;    /* 0: pass all through */
        size_t matched; /* bytes held back: key[0…matched) */
        size_t rare;    /* index of the key's rarest byte, the first of them */
        uint32_t border[]; /* border[i]: longest proper prefix of key[0…i] that ends there too */
};

/* How common a byte is in JSON and prose, roughly. A bad guess costs time only. */
static unsigned commonness(unsigned char c) {
        switch (c) {
        case ' ': case 'e': case 't': case 'a': case 'o': case 'i': case 'n': case 's': case 'r':
                return 6;
        case 'b': case 'c': case 'd': case 'f': case 'g': case 'h': case 'k': case 'l': case 'm': case 'p': case 'u': case 'v': case 'w': case 'y':
        case '"': case ',': case ':': case '.': case '\n':
                return 5;
        case '0': case '1': case '2':
                return 4;
        case '3' ... '9':
        case '-': case '_':
                return 3;
        case 'j': case 'q': case 'x': case 'z':
                return 2;
        case 'J': case 'Q': case 'X': case 'Z':
                return 0;
        default:
                return 1;
        }
}

int scrub_new(const Secret *key, Scrub **ret) {
        size_t size = secret_size(key) >= SCRUB_SECRET_MIN ? secret_size(key) : 0;
        const char *data = secret_data(key);
        Scrub *s = calloc(1, sizeof(Scrub) + size * sizeof(uint32_t));

        if (!s)
                return -ENOMEM;
        s->key = data;
        s->size = size;
        for (size_t i = 1, k = 0; i < size; i++) {
                while (k > 0 && data[i] != data[k])
                        k = s->border[k - 1];
                if (data[i] == data[k])
                        k++;
                s->border[i] = (uint32_t) k;
                if (commonness((unsigned char) data[i]) < commonness((unsigned char) data[s->rare]))
                        s->rare = i;
        }
        *ret = s;
        return 0;
}

Scrub *scrub_free(Scrub *s) {
        if (s) /* the borders tell a little of the key's shape */
                secret_wipe(s, sizeof(Scrub) + s->size * sizeof(uint32_t));
        return mfree(s);
}

size_t scrub_bound(const Scrub *s, size_t n) {
        return s->size == 0 ? n : n + s->matched + (n + s->matched) / s->size * STRLEN(SCRUB_REPLACEMENT);
}

static char *put(char *out, const char *data, size_t size) {
        memcpy(out, data, size);
        return out + size;
}

/* One byte through the automaton. */
static char *step(Scrub *s, char c, char *out) {
        size_t j = s->matched;

        while (j > 0 && s->key[j] != c) {
                size_t shorter = s->border[j - 1];
                out = put(out, s->key, j - shorter);
                j = shorter;
        }
        if (s->key[j] != c)
                *out++ = c;
        else if (++j == s->size) {
                out = put(out, SCRUB_REPLACEMENT, STRLEN(SCRUB_REPLACEMENT));
                j = 0;
        }
        s->matched = j;
        return out;
}

/* With nothing held: where in data[from…size) a key may begin at the earliest. */
static size_t next_candidate(const Scrub *s, const char *data, size_t from, size_t size) {
        size_t at = from + s->rare;

        while (at < size) {
                const char *hit = memchr(data + at, s->key[s->rare], size - at);
                if (!hit)
                        break;
                size_t start = (size_t) (hit - data) - s->rare;
                if (data[start] == s->key[0])
                        return start;
                at = (size_t) (hit - data) + 1;
        }
        /* One that begins in the last `rare` bytes has its rare byte still to come. */
        return MAX(from, size - MIN(size, s->rare));
}

size_t scrub_push(Scrub *s, const char *data, size_t size, char *out) {
        char *start = out;
        size_t i = 0;

        if (s->size == 0) {
                if (size > 0)
                        memcpy(out, data, size);
                return size;
        }
        while (i < size) {
                if (s->matched == 0) {
                        size_t candidate = next_candidate(s, data, i, size);
                        out = put(out, data + i, candidate - i);
                        i = candidate;
                        if (i == size)
                                break;
                }
                out = step(s, data[i++], out);
        }
        return (size_t) (out - start);
}

size_t scrub_finish(Scrub *s, char *out) {
        size_t held = s->matched;

        if (held > 0)
                memcpy(out, s->key, held);
        s->matched = 0;
        return held;
}

int scrub_value(const Secret *key, const char *data, size_t size, char **ret, size_t *ret_size) {
        _cleanup_(scrub_freep) Scrub *s = NULL;

        /* It is hardly ever there, and then nothing has to be prepared. */
        if (secret_size(key) < SCRUB_SECRET_MIN || !memmem(data, size, secret_data(key), secret_size(key))) {
                char *copy = malloc(size + 1);
                if (!copy)
                        return -ENOMEM;
                if (size > 0)
                        memcpy(copy, data, size);
                copy[size] = 0;
                *ret = copy;
                *ret_size = size;
                return 0;
        }
        int r = scrub_new(key, &s);
        if (r < 0)
                return r;

        char *out = malloc(scrub_bound(s, size) + 1);
        if (!out)
                return -ENOMEM;
        size_t n = scrub_push(s, data, size, out);
        n += scrub_finish(s, out + n);
        out[n] = 0;
        *ret = out;
        *ret_size = n;
        return 0;
}
