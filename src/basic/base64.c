/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/base64.h"
#include "basic/text.h"

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

static int value_of(char c) {
        if (c >= 'A' && c <= 'Z')
                return c - 'A';
        if (c >= 'a' && c <= 'z')
                return c - 'a' + 26;
        if (ascii_digit(c))
                return c - '0' + 52;
        return c == '+' ? 62 : c == '/' ? 63 : -1;
}

ssize_t base64_decode(const char *text, size_t size, char *buffer) {
        size_t n = 0, padding = 0;

        if (size % 4 != 0)
                return -EBADMSG;
        while (padding < 2 && padding < size && text[size - 1 - padding] == '=')
                padding++;
        for (size_t i = 0; i < size; i += 4) {
                size_t digits = i + 4 < size ? 4 : 4 - padding;
                uint32_t v = 0;
                for (size_t k = 0; k < 4; k++) {
                        int d = k < digits ? value_of(text[i + k]) : 0;
                        if (d < 0)
                                return -EBADMSG;
                        v = v << 6 | (uint32_t) d;
                }
                if ((digits == 3 && (v & 0xff) != 0) || (digits == 2 && (v & 0xffff) != 0))
                        return -EBADMSG;
                buffer[n++] = (char) (v >> 16);
                if (digits > 2)
                        buffer[n++] = (char) (v >> 8 & 0xff);
                if (digits > 3)
                        buffer[n++] = (char) (v & 0xff);
        }
        return (ssize_t) n;
}
