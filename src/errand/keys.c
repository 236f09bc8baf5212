/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "errand/keys.h"

size_t keys_filter(Keys *k, const char *data, size_t size, char *out, bool *ret_detach) {
        size_t n = 0;

        *ret_detach = false;
        for (size_t i = 0; i < size; i++) {
                if (!k->prefix) {
                        if (data[i] == KEY_PREFIX)
                                k->prefix = true;
                        else
                                out[n++] = data[i];
                        continue;
                }
                k->prefix = false;
                if (data[i] == KEY_DETACH) {
                        *ret_detach = true;
                        return n;
                }
                out[n++] = KEY_PREFIX;
                if (data[i] != KEY_PREFIX)
                        out[n++] = data[i];
        }
        return n;
}
