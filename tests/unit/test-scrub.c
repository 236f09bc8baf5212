/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shared/scrub.h"
#include "test.h"

static Secret *secret(const char *text) {
        Secret *s;
        CHECK_INT(secret_new(text, strlen(text), &s), 0);
        return s;
}

/* What a scrubber must give, done the plain way. Returns its length. */
static size_t replace_plainly(const char *key, size_t n_key, const char *data, size_t size, char *out) {
        size_t n = 0;

        for (size_t i = 0; i < size;) {
                if (n_key >= SCRUB_SECRET_MIN && size - i >= n_key && memcmp(data + i, key, n_key) == 0) {
                        memcpy(out + n, SCRUB_REPLACEMENT, STRLEN(SCRUB_REPLACEMENT));
                        n += STRLEN(SCRUB_REPLACEMENT);
                        i += n_key;
                } else
                        out[n++] = data[i++];
        }
        return n;
}

/* The longest start of the key, but not the key, that the data ends with: all that may be held back. */
static size_t longest_start(const char *key, size_t n_key, const char *data, size_t size) {
        for (size_t n = MIN(n_key - 1, size); n > 0; n--)
                if (memcmp(data + size - n, key, n) == 0)
                        return n;
        return 0;
}

/* Pushes data in pieces of the given sizes, the last one repeated. Compares with the plain way, and what is held after each. */
static void check_split(const char *key, const char *data, size_t size, const size_t *steps, size_t n_steps) {
        _cleanup_(secret_freep) Secret *k = secret(key);
        _cleanup_(scrub_freep) Scrub *s = NULL;
        _cleanup_free_ char *expected = malloc(size * 2 + 64), *out = malloc(size * 2 + 64);
        size_t done = 0, n = 0, n_key = strlen(key);

        CHECK_INT(scrub_new(k, &s), 0);
        for (size_t i = 0; done < size; i++) {
                size_t step = MIN(steps[MIN(i, n_steps - 1)], size - done), bound = scrub_bound(s, step);
                _cleanup_free_ char *exact = malloc(bound ?: 1); /* so that a sanitizer sees a write beyond the bound */
                size_t got = scrub_push(s, data + done, step, exact);
                CHECK(got <= bound);
                memcpy(out + n, exact, got);
                n += got;
                done += step;

                /* After a replacement nothing before it can be held, so compare with what is left of the plain way. */
                size_t plain = replace_plainly(key, n_key, data, done, expected);
                CHECK(n <= plain && plain - n <= longest_start(key, n_key, data, done) && memcmp(out, expected, n) == 0);
        }
        _cleanup_free_ char *exact = malloc(scrub_bound(s, 0) + 1);
        size_t got = scrub_finish(s, exact);
        CHECK(got <= scrub_bound(s, 0) || got < n_key);
        memcpy(out + n, exact, got);
        n += got;
        CHECK_INT(n, replace_plainly(key, n_key, data, size, expected));
        CHECK(memcmp(out, expected, n) == 0);
}

static const char *const keys[] = {
        "sk-ant-api03-Qx7_kZ", "errand-session-0123456789abcdef", "aaaaaaaa", "aaaaaaab", "abababab", "ababababc", "kkkeykkkey", "aabaabaaab", "abcabcabd",
        "zzzzzzzzzzzzzzza", "12345678", "\x01\xff\x80z\x7f\xfe\xfd\xfc",
};

static void test_every_offset(void) {
        char data[256];

        for (size_t k = 0; k < ELEMENTSOF(keys); k++) {
                size_t n_key = strlen(keys[k]);
                for (size_t offset = 0; offset < 40; offset++) {
                        memset(data, '.', sizeof(data));
                        memcpy(data + offset, keys[k], n_key);
                        /* cut at every place of and around the key, and byte by byte */
                        for (size_t cut = 1; cut < offset + n_key + 2; cut++)
                                check_split(keys[k], data, offset + n_key + 20, (size_t[]){cut, 1000}, 2);
                        check_split(keys[k], data, offset + n_key, (size_t[]){1}, 1);
                        check_split(keys[k], data, offset + n_key, (size_t[]){1000}, 1);
                }
        }
}

static void test_two_cuts(void) {
        char data[256];

        for (size_t k = 0; k < ELEMENTSOF(keys); k++) {
                size_t n_key = strlen(keys[k]);
                int n = snprintf(data, sizeof(data), "%.3s%s%s%.5s%s%.*s", keys[k], keys[k], keys[k], keys[k], keys[k], (int) n_key - 1, keys[k]);
                for (size_t a = 1; a < (size_t) n; a++)
                        for (size_t b = 1; b < 12; b++)
                                check_split(keys[k], data, (size_t) n, (size_t[]){a, b, 1000}, 3);
        }
}

static void test_small_alphabet(void) {
        static const char *const small[] = {"aaaaaaaa", "aaaaaaab", "abababab", "baaaaaaa", "aabaabaa", "abaababa", "abbabbab"};
        uint32_t random = 1;
        char data[300];

        /* dense text over two letters: every border is used */
        for (size_t k = 0; k < ELEMENTSOF(small); k++)
                for (size_t round = 0; round < 300; round++) {
                        for (size_t i = 0; i < sizeof(data); i++) {
                                random = random * 1664525 + 1013904223;
                                data[i] = random >> 28 < (round % 15) + 1 ? 'a' : 'b';
                        }
                        check_split(small[k], data, sizeof(data), (size_t[]){round % 23 + 1}, 1);
                }
}

static void test_no_delay(void) {
        _cleanup_(secret_freep) Secret *k = secret("s3cret-key-value");
        _cleanup_(scrub_freep) Scrub *s = NULL;
        char out[256];

        CHECK_INT(scrub_new(k, &s), 0);
        /* an event that ends outside any start of the key leaves whole */
        CHECK_INT(scrub_push(s, "data: this\n\n", 12, out), 12);
        /* one byte may be the key's first: it is held, and nothing else */
        CHECK_INT(scrub_push(s, "data: yes", 9, out), 8);
        CHECK(memcmp(out, "data: ye", 8) == 0);
        CHECK_INT(scrub_push(s, "!", 1, out), 2);
        CHECK(memcmp(out, "s!", 2) == 0);
        CHECK_INT(scrub_push(s, "s3cret-", 7, out), 0);
        CHECK_INT(scrub_push(s, "", 0, out), 0);
        CHECK_INT(scrub_push(s, "s", 1, out), 7);
        CHECK_INT(scrub_finish(s, out), 1);
        CHECK_INT(out[0], 's');
        CHECK_INT(scrub_finish(s, out), 0);
}

static void test_short_keys(void) {
        _cleanup_(secret_freep) Secret *seven = secret("1234567"), *none = secret(""), *eight = secret("12345678");
        char *out;
        size_t n;

        CHECK_INT(scrub_value(seven, "a1234567b", 9, &out, &n), 0);
        CHECK_STR(out, "a1234567b");
        free(out);
        CHECK_INT(scrub_value(none, "ab", 2, &out, &n), 0);
        CHECK_STR(out, "ab");
        free(out);
        CHECK_INT(scrub_value(eight, "a12345678b", 10, &out, &n), 0);
        CHECK_STR(out, "a[redacted]b");
        CHECK_INT(n, 12);
        free(out);
        CHECK_INT(scrub_value(eight, "", 0, &out, &n), 0);
        CHECK_STR(out, "");
        free(out);
}

static void test_values(void) {
        static const char *const cases[][2] = {
                {"Bearer sk-12345678", "Bearer [redacted]"}, {"sk-12345678", "[redacted]"}, {"sk-12345678sk-12345678", "[redacted][redacted]"},
                {"sk-1234567", "sk-1234567"}, {"sk-sk-12345678", "sk-[redacted]"}, {"SK-12345678", "SK-12345678"}, {"https://a/?key=sk-12345678&b", "https://a/?key=[redacted]&b"},
        };
        _cleanup_(secret_freep) Secret *k = secret("sk-12345678");

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *out = NULL;
                size_t n;
                CHECK_INT(scrub_value(k, cases[i][0], strlen(cases[i][0]), &out, &n), 0);
                CHECK_STR(out, cases[i][1]);
                CHECK_INT(n, strlen(cases[i][1]));
        }
}

static void test_bytes_pass(void) {
        _cleanup_(secret_freep) Secret *k = secret("Zq-unlikely-9");
        _cleanup_free_ char *data = malloc(1 << 16), *out = NULL;
        uint32_t random = 7;
        size_t n;

        for (size_t i = 0; i < 1 << 16; i++) {
                random = random * 1664525 + 1013904223;
                data[i] = (char) (random >> 24);
        }
        CHECK_INT(scrub_value(k, data, 1 << 16, &out, &n), 0);
        CHECK_INT(n, 1 << 16);
        CHECK(memcmp(data, out, n) == 0);
}

static void test_long_key(void) {
        char key[60001];
        _cleanup_free_ char *data = malloc(200000), *out = NULL;
        size_t n;

        memset(key, 'a', 60000);
        key[60000] = 0;
        _cleanup_(secret_freep) Secret *k = secret(key);
        memset(data, 'a', 200000);
        data[59999] = 'b';
        CHECK_INT(scrub_value(k, data, 200000, &out, &n), 0);
        CHECK_INT(n, 60000 + 2 * STRLEN(SCRUB_REPLACEMENT) + 20000);
}

int main(void) {
        RUN(test_every_offset, "S227 C179: a key at every offset, cut at every place");
        RUN(test_two_cuts, "S227 C179: keys back to back and behind their own starts, cut twice");
        RUN(test_small_alphabet, "S227 C179: keys that overlap themselves in dense text");
        RUN(test_no_delay, "C180: only what may begin the key is held");
        RUN(test_short_keys, "S223 S225: keys under eight bytes pass");
        RUN(test_values, "S228 C178 C181: whole values");
        RUN(test_bytes_pass, "C179: all other bytes pass unchanged");
        RUN(test_long_key, "S227: a long key takes linear time");
        return TEST_END();
}
