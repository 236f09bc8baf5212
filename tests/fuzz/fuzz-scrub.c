/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shared/scrub.h"
#include "fuzz.h"

/* Input: one byte for the key's length and one for the splits, the key, the text. An odd second byte folds both to two letters, so that
 * keys which overlap themselves are met in dense text. */

static size_t replace_plainly(const char *key, size_t n_key, const char *data, size_t size, char *out) {
        size_t n = 0;

        for (size_t i = 0; i < size;)
                if (n_key >= SCRUB_SECRET_MIN && size - i >= n_key && memcmp(data + i, key, n_key) == 0) {
                        memcpy(out + n, SCRUB_REPLACEMENT, STRLEN(SCRUB_REPLACEMENT));
                        n += STRLEN(SCRUB_REPLACEMENT);
                        i += n_key;
                } else
                        out[n++] = data[i++];
        return n;
}

static void check_steps(const Secret *key, const char *data, size_t size, size_t step, const char *expected, size_t n_expected) {
        char *out = malloc(n_expected + 1);
        size_t n = 0;
        Scrub *s;
        HOLDS(out && scrub_new(key, &s) == 0);

        for (size_t done = 0; done < size; done += MIN(step, size - done)) {
                size_t piece = MIN(step, size - done), bound = scrub_bound(s, piece);
                char *exact = malloc(bound ? bound : 1);
                HOLDS(exact);
                size_t got = scrub_push(s, data + done, piece, exact);
                HOLDS(got <= bound && n + got <= n_expected);
                memcpy(out + n, exact, got);
                n += got;
                free(exact);
                HOLDS(memcmp(out, expected, n) == 0);
        }
        HOLDS(n_expected - n < MAX(secret_size(key), (size_t) 1));
        HOLDS(n_expected - n <= scrub_bound(s, 0));
        n += scrub_finish(s, out + n);
        HOLDS(n == n_expected && memcmp(out, expected, n) == 0);
        scrub_free(s);
        free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
        if (size < 2)
                return 0;
        size_t n_key = MIN((size_t) (bytes[0] % 40), size - 2), n_data = size - 2 - n_key;
        char *copy = malloc(size), *expected = malloc(2 * size + 16), *value;
        size_t n_value;
        Secret *key;
        HOLDS(copy && expected);

        for (size_t i = 0; i + 2 < size; i++)
                copy[i] = (char) (bytes[1] & 1 ? 'a' + (bytes[i + 2] & 1) : bytes[i + 2]);
        HOLDS(secret_new(copy, n_key, &key) == 0);
        size_t n = replace_plainly(copy, n_key, copy + n_key, n_data, expected);
        check_steps(key, copy + n_key, n_data, 1, expected, n);
        check_steps(key, copy + n_key, n_data, (size_t) bytes[1] / 2 + 1, expected, n);
        check_steps(key, copy + n_key, n_data, MAX(n_data, (size_t) 1), expected, n);
        HOLDS(scrub_value(key, copy + n_key, n_data, &value, &n_value) == 0);
        HOLDS(n_value == n && memcmp(value, expected, n) == 0 && value[n] == 0);
        free(value);
        secret_free(key);
        free(copy);
        free(expected);
        return 0;
}
