/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/sha256.h"

#define BLOCK_SIZE 64U

/* FIPS 180-4, section 4.2.2: of the cube roots of the first 64 primes the first 32 bits of the fraction. */
static const uint32_t constants[64] = {
        0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
        0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
        0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
        0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
        0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
        0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
        0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
        0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate(uint32_t x, unsigned n) {
        return x >> n | x << (32 - n);
}

/* Section 6.2.2. */
static void take_block(uint32_t hash[8], const uint8_t *block) {
        uint32_t w[64], s[8];

        for (unsigned t = 0; t < 16; t++)
                w[t] = (uint32_t) block[4 * t] << 24 | (uint32_t) block[4 * t + 1] << 16 | (uint32_t) block[4 * t + 2] << 8 |
                       block[4 * t + 3];
        for (unsigned t = 16; t < 64; t++)
                w[t] = (rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10) + w[t - 7] +
                       (rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3) + w[t - 16];
        memcpy(s, hash, sizeof(s));
        for (unsigned t = 0; t < 64; t++) {
                uint32_t first = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) +
                                 constants[t] + w[t];
                uint32_t second = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                                  ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
                memmove(s + 1, s, 7 * sizeof(s[0]));
                s[4] += first;
                s[0] = first + second;
        }
        for (unsigned i = 0; i < 8; i++)
                hash[i] += s[i];
}

void sha256(const void *data, size_t size, uint8_t ret[SHA256_SIZE]) {
        /* Section 5.3.3. */
        uint32_t hash[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
        const uint8_t *p = data;
        size_t whole = size / BLOCK_SIZE * BLOCK_SIZE, rest = size - whole;
        uint8_t last[2 * BLOCK_SIZE] = {};

        for (size_t at = 0; at < whole; at += BLOCK_SIZE)
                take_block(hash, p + at);
        /* Section 5.1.1: a one, zeros, and the number of bits. */
        if (rest > 0)
                memcpy(last, p + whole, rest);
        last[rest] = 0x80;
        size_t padded = rest < BLOCK_SIZE - 8 ? BLOCK_SIZE : 2 * BLOCK_SIZE;
        uint64_t bits = (uint64_t) size * 8;
        for (unsigned i = 0; i < 8; i++)
                last[padded - 1 - i] = (uint8_t) (bits >> (8 * i) & 0xff);
        for (size_t at = 0; at < padded; at += BLOCK_SIZE)
                take_block(hash, last + at);
        for (unsigned i = 0; i < SHA256_SIZE; i++)
                ret[i] = (uint8_t) (hash[i / 4] >> (24 - 8 * (i % 4)) & 0xff);
}

void sha256_to_string(const uint8_t digest[SHA256_SIZE], char ret[2 * SHA256_SIZE + 1]) {
        static const char digits[] = "0123456789abcdef";

        for (unsigned i = 0; i < SHA256_SIZE; i++) {
                ret[2 * i] = digits[digest[i] >> 4];
                ret[2 * i + 1] = digits[digest[i] & 15];
        }
        ret[2 * SHA256_SIZE] = 0;
}

int sha256_from_string(const char *s, size_t size, uint8_t ret[SHA256_SIZE]) {
        uint8_t digest[SHA256_SIZE] = {};

        if (size != 2 * SHA256_SIZE)
                return -EINVAL;
        for (size_t i = 0; i < size; i++) {
                unsigned digit = s[i] >= '0' && s[i] <= '9' ? (unsigned) (s[i] - '0') : s[i] >= 'a' && s[i] <= 'f' ? (unsigned) (s[i] - 'a') + 10 : 16;
                if (digit > 15)
                        return -EINVAL;
                digest[i / 2] = (uint8_t) (digest[i / 2] << 4 | digit);
        }
        memcpy(ret, digest, SHA256_SIZE);
        return 0;
}
