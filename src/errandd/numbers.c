/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "errandd/numbers.h"

bool numbers_take(uint64_t *list, size_t *n, uint64_t number) {
        for (size_t i = 0; i < *n; i++)
                if (list[i] == number) {
                        memmove(list + i, list + i + 1, (--*n - i) * sizeof(*list));
                        return true;
                }
        return false;
}

bool numbers_has(const uint64_t *list, size_t n, uint64_t number) {
        for (size_t i = 0; i < n; i++)
                if (list[i] == number)
                        return true;
        return false;
}

int numbers_read(JsonObject *o, const char *name, size_t max, uint64_t ret[], size_t *ret_n) {
        JsonArray *list;
        size_t n = 0;

        int r = json_get_array(o, name, &list);
        if (r < 0)
                return r;
        for (guint i = 0; i < json_array_get_length(list); i++) {
                JsonNode *node = json_array_get_element(list, i);
                gint64 number = JSON_NODE_HOLDS_VALUE(node) && json_node_get_value_type(node) == G_TYPE_INT64 ? json_node_get_int(node) : 0;

                if (number <= 0 || n >= max)
                        return -EBADMSG;
                if (!numbers_has(ret, n, (uint64_t) number))
                        ret[n++] = (uint64_t) number;
        }
        *ret_n = n;
        return 0;
}
