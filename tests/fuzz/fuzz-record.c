/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* What a record holds, damaged in every way: session.json and grants.json. What is read reads the same when it is written again. */

#include "basic/text.h"
#include "errandd/grant-list.h"
#include "errandd/record.h"
#include "fuzz.h"
#include "shared/timespan.h"

static void try_session(const char *text, size_t size) {
        char *problem = NULL, *first = NULL, *second = NULL;
        SessionRecord *s = NULL, *again = NULL;
        size_t n, m;

        int r = session_record_parse("s1", text, size, &s, &problem);
        HOLDS((r == 0) == !!s && (r < 0) == !!problem && (r == 0 || r == -EBADMSG || r == -EPROTONOSUPPORT));
        if (s) {
                HOLDS(streq(s->id, "s1") && s->state >= 0 && s->state < SESSION_COLLECTED && s->owner != UID_NONE);
                HOLDS(session_record_format(s, &first, &n) == 0);
                HOLDS(session_record_parse("s1", first, n, &again, &problem) == 0);
                HOLDS(session_record_format(again, &second, &m) == 0 && streq(first, second));
        }
        session_record_free(s);
        session_record_free(again);
        free(first);
        free(second);
        free(problem);
}

static void try_grants(const char *text, size_t size) {
        char *problem = NULL, *first = NULL, *second = NULL;
        GrantList l = {}, again = {};
        size_t n, m;

        int r = grant_list_parse(text, size, &l, &problem);
        HOLDS((r == -EBADMSG) == !!problem && (r == 0 || r == -EBADMSG));
        if (r == 0) {
                HOLDS(grant_list_format(&l, &first, &n) == 0);
                HOLDS(grant_list_parse(first, n, &again, &problem) == 0);
                HOLDS(grant_list_format(&again, &second, &m) == 0 && streq(first, second));
        }
        grant_list_done(&l);
        grant_list_done(&again);
        free(first);
        free(second);
        free(problem);
}

/* And what a client gives as a host or a duration. */
static void try_texts(const uint8_t *data, size_t size) {
        char host[HOST_TEXT_MAX + 1], again[HOST_TEXT_MAX + 1], buffer[TIMESPAN_TEXT_MAX], *text = strndup((const char *) data, size);
        const char *problem = NULL;
        usec_t span, same;

        HOLDS(text);
        if (host_text_normalize(text, HOST_TEXT_ANY | HOST_TEXT_WILDCARD, host, &problem) == 0)
                HOLDS(host_text_normalize(host, HOST_TEXT_ANY | HOST_TEXT_WILDCARD, again, &problem) == 0 && streq(host, again) &&
                      host_text_covers(host, again) && host_text_covers("*", host));
        else
                HOLDS(problem);
        if (timespan_parse(text, USEC_INFINITY - 1, &span) == 0)
                HOLDS(timespan_parse(timespan_format(span, buffer), USEC_INFINITY - 1, &same) == 0 && same == span);
        free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        try_session((const char *) data, size);
        try_grants((const char *) data, size);
        try_texts(data, size);
        return 0;
}
