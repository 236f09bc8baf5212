/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/grants.h"
#include "broker/limits.h"
#include "fuzz.h"
#include "shared/json-check.h"

/* Input: a state's text, as a broker finds it after a restart. What is taken is written out and read again as the same, and no grant comes of it
 * that could not have been given. */

#define DEPTH_MAX 3U /* as restore.c reads it */
#define NOW 1000

static char *save(const Grants *g) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        char *text;
        size_t size;

        json_open_object(&w, NULL);
        grants_save(g, &w);
        json_close_object(&w);
        HOLDS(json_writer_finish(&w, &text, &size) == 0);
        return text;
}

static int load(const char *text, size_t size, Grants *g, GrantSpent *ret) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        const char *problem = NULL;
        JsonProblem json;
        JsonObject *o;

        if (json_read_object(text, size, DEPTH_MAX, &parser, &o, &json) < 0)
                return -EBADMSG;
        int r = grants_load(g, o, NOW, ret, &problem);
        HOLDS(r == 0 || (r == -EBADMSG && problem));
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        _cleanup_(grants_freep) Grants *g = NULL, *again = NULL;
        _cleanup_free_ char *text = NULL, *copy = malloc(size + 1);
        GrantSpent spent, none;

        HOLDS(copy && grants_new(&g) == 0 && grants_new(&again) == 0);
        if (size > 0)
                memcpy(copy, data, size);
        copy[size] = 0;
        if (load(copy, size, g, &spent) < 0)
                return 0;
        HOLDS(grants_count(g) <= GRANTS_MAX && strlen(spent.id) <= GRANT_ID_MAX && strlen(spent.host) <= HOST_NAME_MAX_BYTES);
        HOLDS((*spent.id == 0) == (*spent.host == 0));
        text = save(g);
        HOLDS(load(text, strlen(text), again, &none) == 0 && !*none.id);
        /* The second drops what has expired as it adds; so nothing is there that was not. */
        HOLDS(grants_count(again) <= grants_count(g));
        _cleanup_free_ char *last = save(again);
        HOLDS(grants_count(again) < grants_count(g) || streq(text, last));
        return 0;
}
