/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/utf8.h"

size_t utf8_sequence(const unsigned char *s, size_t size) {
        if (size == 0)
                return 0;
        if (s[0] < 0x80)
                return 1;
        size_t n = s[0] >= 0xf0 && s[0] <= 0xf4 ? 4 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3 : s[0] >= 0xc2 && s[0] < 0xe0 ? 2 : 0;
        if (n > size)
                return 0;
        for (size_t i = 1; i < n; i++)
                if ((s[i] & 0xc0) != 0x80)
                        return 0;
        if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
            (s[0] == 0xf4 && s[1] > 0x8f))
                return 0;
        return n;
}

bool utf8_valid(const char *s) {
        size_t left = strlen(s), n;

        for (; left > 0; s += n, left -= n) {
                n = utf8_sequence((const unsigned char *) s, left);
                if (n == 0)
                        return false;
        }
        return true;
}

size_t utf8_put(unsigned code, char *out) {
        if (code < 0x80) {
                out[0] = (char) code;
                return 1;
        }
        size_t n = code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
        for (size_t i = n; i-- > 1; code >>= 6)
                out[i] = (char) (0x80 | (code & 0x3f));
        out[0] = (char) ((0xf00U >> n) | code);
        return n;
}

size_t utf8_cut(const char *s, size_t size, size_t max) {
        if (size <= max)
                return size;
        while (max > 0 && ((unsigned char) s[max] & 0xc0) == 0x80)
                max--;
        return max;
}
