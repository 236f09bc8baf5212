/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker/grant-request.h"
#include "broker/limits.h"
#include "fuzz.h"

/* Input: the text in which a supervisor tells several grants. Of what is refused nothing is given, and what was there before stays; of what is taken
 * each is there afterwards, and asking again gives nothing new. */

#define NOW 1000

static bool known(const GrantRequest *list, size_t n, const char *id) {
        for (size_t i = 0; i < n; i++)
                if (strcmp(list[i].id, id) == 0)
                        return true;
        return false;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        _cleanup_free_ GrantRequest *list = NULL;
        _cleanup_(grants_freep) Grants *g = NULL;
        _cleanup_free_ char *text = malloc(size + 1), *problem = NULL;
        const char *why = NULL;
        size_t n = 0, added = 0, at = 0;

        HOLDS(text && grants_new(&g) == 0 && grants_add(g, "g1", "before.example", GRANT_ALWAYS, 0, NOW, &why) == 0);
        if (size > 0)
                memcpy(text, data, size);
        text[size] = 0;
        int r = grant_requests_parse(text, size, &parser, &list, &n, &problem);
        HOLDS(r == 0 || (r == -EBADMSG && problem));
        if (r < 0)
                return 0;
        HOLDS(n <= GRANTS_MAX);
        r = grants_add_all(g, list, n, NOW, &added, &at, &why);
        if (r < 0) {
                HOLDS(at < n && (r == -EEXIST || r == -ENOSPC || (r == -EBADMSG && why)));
                HOLDS(grants_count(g) == 1);
                return 0;
        }
        HOLDS(added == n - known(list, n, "g1") && grants_count(g) <= added + 1);
        HOLDS(grants_revoke(g, "g1") == 0);
        return 0;
}
