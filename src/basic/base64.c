/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/base64.h"

size_t base64_encode(const void *data, size_t size, char *buffer) {
        static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        const uint8_t *p = data;
        size_t n = 0;

        for (size_t i = 0; i < size; i += 3) {
                uint32_t v = (uint32_t) p[i] << 16 | (i + 1 < size ? (uint32_t) p[i + 1] << 8 : 0) | (i + 2 < size ? p[i + 2] : 0);
                buffer[n++] = digits[v >> 18];
                buffer[n++] = digits[v >> 12 & 63];
                buffer[n++] = i + 1 < size ? digits[v >> 6 & 63] : '=';
                buffer[n++] = i + 2 < size ? digits[v & 63] : '=';
        }
        return n;
}
