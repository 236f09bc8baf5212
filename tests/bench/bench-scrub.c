/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/clock.h"
#include "shared/scrub.h"

/* How fast an answer is scrubbed, in pieces of a relay's size: GB of input a second. */

#define PIECE (64U * 1024U)
#define TOTAL (UINT64_C(1) << 30)

/* No pattern: random letters, digits and signs, as in base64. */
static void fill(char *data, const char *pattern) {
        static const char signs[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        uint32_t random = 1;

        for (size_t i = 0, n = pattern ? strlen(pattern) : 1; i < PIECE; i++) {
                random = random * 1664525 + 1013904223;
                data[i] = pattern ? pattern[i % n] : signs[random >> 26];
        }
}

static void measure(const char *name, const char *key, const char *pattern, uint64_t total) {
        _cleanup_(secret_freep) Secret *secret = NULL;
        _cleanup_(scrub_freep) Scrub *s = NULL;
        _cleanup_free_ char *data = malloc(PIECE), *out = NULL;

        if (!data || secret_new(key, strlen(key), &secret) < 0 || scrub_new(secret, &s) < 0)
                exit(1);
        /* One piece more may be held back by the one before. */
        out = malloc(scrub_bound(s, PIECE + strlen(key)));
        if (!out)
                exit(1);
        fill(data, pattern);
        usec_t start = now_monotonic();
        for (uint64_t done = 0; done < total; done += PIECE)
                (void) scrub_push(s, data, PIECE, out);
        usec_t taken = now_monotonic() - start;
        printf("%-28s %6.2f GB/s\n", name, (double) total / 1000.0 / (double) (taken ? taken : 1));
}

int main(void) {
        static const char key[] = "sk-ant-api03-Qx7_kZ81hWvTbN0rYpLm";
        static const char hex[] = "errand-session-0f3a9c2b7d8e4165aa07c3d1e9f2b846";
        static const char prose[] = "The quick brown fox, who was 27 years old, asked itself what a lazy dog does all day; nobody answered.\n";
        static const char json[] = "data: {\"type\":\"content_block_delta\",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":\" sandbox\"}}\n\n";

        measure("prose", key, prose, TOTAL);
        measure("event stream", key, json, TOTAL);
        measure("prose, hexadecimal key", hex, prose, TOTAL);
        measure("event stream, hexadecimal", hex, json, TOTAL);
        measure("bytes without the rare one", key, "abcdefgh", TOTAL);
        measure("base64", key, NULL, TOTAL);
        measure("starts of the key", key, "sk-ant-api03-Qx7_k", TOTAL / 16);
        measure("the rare byte alone", "aaaaaaaaaaaaaaab", "a", TOTAL / 16);
        measure("the key itself", key, key, TOTAL / 16);
        return 0;
}
