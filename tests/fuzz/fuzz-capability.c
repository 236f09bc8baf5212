/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "fuzz.h"
#include "shared/capability.h"

typedef struct Segments {
        const char *at[64];
        size_t size[64], n;
} Segments;

static bool split(const char *s, size_t size, Segments *ret) {
        ret->n = 0;
        if (size == 0 || (size == 1 && *s == '/'))
                return true;
        for (size_t i = 0; i < size;) {
                size_t from = ++i;
                while (i < size && s[i] != '/')
                        i++;
                if (ret->n == ELEMENTSOF(ret->at))
                        return false;
                ret->at[ret->n] = s + from;
                ret->size[ret->n++] = i - from;
                if (i + 1 == size && s[i] == '/') { /* the empty segment behind a last slash */
                        if (ret->n == ELEMENTSOF(ret->at))
                                return false;
                        ret->at[ret->n] = s + size;
                        ret->size[ret->n++] = 0;
                        break;
                }
        }
        return true;
}

/* The same said in another way: by a table of which starts cover which. */
static bool oracle(const Segments *p, const Segments *s) {
        bool covered[65][65] = {};

        covered[0][0] = true;
        for (size_t i = 1; i <= p->n; i++)
                for (size_t k = 0; k <= s->n; k++) {
                        bool any = p->size[i - 1] == 2 && memcmp(p->at[i - 1], "**", 2) == 0, one = p->size[i - 1] == 1 && *p->at[i - 1] == '*';
                        if (any)
                                covered[i][k] = covered[i - 1][k] || (k > 0 && covered[i][k - 1]);
                        else if (k > 0)
                                covered[i][k] = covered[i - 1][k - 1] && ((one && s->size[k - 1] > 0) || (p->size[i - 1] == s->size[k - 1] &&
                                                memcmp(p->at[i - 1], s->at[k - 1], s->size[k - 1]) == 0));
                }
        return covered[p->n][s->n];
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const char *nul = memchr(data, '\n', size);
        _cleanup_free_ char *pattern = NULL, *entry = NULL;
        Segments p, s;

        if (!nul)
                return 0;
        pattern = strndup((const char *) data, (size_t) (nul - (const char *) data));
        const char *path = nul + 1;
        size_t path_size = size - (size_t) (path - (const char *) data);
        HOLDS(pattern);
        (void) capability_method_problem(pattern);
        if (capability_path_problem(pattern))
                return 0;
        const Capability c = {(char *) "GET", pattern};
        bool covered = capability_covers(&c, "GET", 3, path, path_size);
        HOLDS(!capability_covers(&c, "PUT", 3, path, path_size));
        const char *query = path_size > 0 ? memchr(path, '?', path_size) : NULL;
        size_t n = query ? (size_t) (query - path) : path_size;
        if ((n == 0 || *path == '/') && split(pattern, strlen(pattern), &p) && split(path, n, &s))
                HOLDS(covered == oracle(&p, &s));
        HOLDS(capability_entry("GET", path, path_size, &entry) == 0);
        return 0;
}
