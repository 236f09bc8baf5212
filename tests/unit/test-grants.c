/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/grants.h"
#include "broker/limits.h"
#include "test.h"

static Host host(const char *name) {
        const char *problem;
        Host h;
        CHECK_INT(host_parse(name, &h, &problem), 0);
        return h;
}

static int add(Grants *g, const char *id, const char *pattern, GrantDuration d, usec_t deadline, usec_t now) {
        const char *problem;
        return grants_add(g, id, pattern, d, deadline, now, &problem);
}

/* Finds and uses, as a connection does. */
static const char *use(Grants *g, const char *name, usec_t now) {
        static GrantUse u;
        Host h = host(name);

        if (!grants_find(g, &h, now, &u))
                return "none";
        grants_use(g, &u);
        return u.id;
}

static void test_once(void) {
        _cleanup_(grants_freep) Grants *g = NULL;

        CHECK_INT(grants_new(&g), 0);
        CHECK_INT(add(g, "g1", "api.example.com", GRANT_ONCE, 0, 5), 0);
        CHECK_STR(use(g, "other.example.com", 6), "none");
        /* A day and a year later it is still there. */
        Host h = host("api.example.com");
        GrantUse u;
        CHECK(grants_find(g, &h, UINT64_C(366) * 86400 * USEC_PER_SEC, &u));
        CHECK_INT(grants_count(g), 1);
        CHECK_STR(use(g, "API.example.com.", 7), "g1");
        CHECK_STR(use(g, "api.example.com", 7), "none");
        CHECK_INT(grants_count(g), 0);
}

static void test_until(void) {
        _cleanup_(grants_freep) Grants *g = NULL;

        CHECK_INT(grants_new(&g), 0);
        CHECK_INT(add(g, "g1", "api.example.com", GRANT_UNTIL, 1000, 5), 0);
        CHECK_STR(use(g, "api.example.com", 998), "g1");
        CHECK_STR(use(g, "api.example.com", 999), "g1");
        CHECK_STR(use(g, "api.example.com", 1000), "none");
        CHECK_INT(grants_count(g), 0);
        CHECK_INT(grants_revoke(g, "g1"), -ENOENT);
}

static void test_preference(void) {
        _cleanup_(grants_freep) Grants *g = NULL;
        Host h = host("api.example.com");
        GrantUse u;

        CHECK_INT(grants_new(&g), 0);
        CHECK_INT(add(g, "short", "api.example.com", GRANT_ONCE, 0, 1), 0);
        CHECK_INT(add(g, "long", "*.example.com", GRANT_ALWAYS, 0, 1), 0);
        CHECK(grants_find(g, &h, 2, &u));
        CHECK_STR(u.id, "long");
        CHECK(u.first);
        CHECK_STR(use(g, "api.example.com", 2), "long");
        CHECK(grants_find(g, &h, 2, &u));
        CHECK(!u.first);
        CHECK_INT(grants_revoke(g, "long"), 0);
        CHECK_STR(use(g, "api.example.com", 3), "short");
}

static void test_below(void) {
        _cleanup_(grants_freep) Grants *g = NULL;

        CHECK_INT(grants_new(&g), 0);
        CHECK_INT(add(g, "g1", "*.example.com", GRANT_ALWAYS, 0, 1), 0);
        CHECK_STR(use(g, "a.example.com", 2), "g1");
        CHECK_STR(use(g, "a.b.example.com", 2), "g1");
        CHECK_STR(use(g, "example.com", 2), "none");
        CHECK_STR(use(g, "evilexample.com", 2), "none");
}

static void test_refused(void) {
        static const char *const hosts[] = {"",     "*com", "https://x.com", "x.com/path", "x.com:443",
                                            "a..b", "*.",   "x y",           "127.1",      "user@x.com"};
        static const char *const ids[] = {"",    "a b",      "a/b",
                                          "a\n", "\xc3\xa9", "0123456789012345678901234567890123456789012345678901234567890123x"};
        _cleanup_(grants_freep) Grants *g = NULL;
        char id[16];

        CHECK_INT(grants_new(&g), 0);
        for (size_t i = 0; i < ELEMENTSOF(hosts); i++)
                CHECK_INT(add(g, "g1", hosts[i], GRANT_ALWAYS, 0, 1), -EBADMSG);
        for (size_t i = 0; i < ELEMENTSOF(ids); i++)
                CHECK_INT(add(g, ids[i], "x.com", GRANT_ALWAYS, 0, 1), -EBADMSG);
        CHECK_INT(add(g, "g1", "x.com", GRANT_ALWAYS, 0, 1), 0);
        CHECK_INT(add(g, "g1", "y.com", GRANT_ALWAYS, 0, 1), -EEXIST);
        for (unsigned i = 2; i <= GRANTS_MAX; i++) {
                (void) snprintf(id, sizeof(id), "g%u", i);
                CHECK_INT(add(g, id, "x.com", GRANT_UNTIL, 10, 1), 0);
        }
        CHECK_INT(add(g, "more", "x.com", GRANT_ALWAYS, 0, 2), -ENOSPC);
        /* Those that have expired make room. */
        CHECK_INT(add(g, "more", "x.com", GRANT_ALWAYS, 0, 10), 0);
        CHECK_INT(grants_count(g), 2);
}

static int add_all(Grants *g, const GrantRequest *list, size_t n, size_t *ret_added, size_t *ret_at) {
        const char *problem = NULL;

        return grants_add_all(g, list, n, 1, ret_added, ret_at, &problem);
}

static void test_all(void) {
        const GrantRequest good[] = {{"g1", "other.example", GRANT_ALWAYS, 0}, {"g2", "b.example", GRANT_ALWAYS, 0}, {"g3", "c.example", GRANT_UNTIL, 5}};
        const GrantRequest twice[] = {{"g4", "d.example", GRANT_ALWAYS, 0}, {"g4", "e.example", GRANT_ALWAYS, 0}};
        const GrantRequest bad[] = {{"g4", "d.example", GRANT_ALWAYS, 0}, {"g5", "e.example/", GRANT_ALWAYS, 0}};
        _cleanup_free_ GrantRequest *many = calloc(GRANTS_MAX, sizeof(GrantRequest));
        char (*ids)[16] = calloc(GRANTS_MAX, sizeof(*ids));
        _cleanup_(grants_freep) Grants *g = NULL;
        size_t added = 0, at = 0;

        CHECK(many && ids);
        CHECK_INT(grants_new(&g), 0);
        CHECK_INT(add_all(g, NULL, 0, &added, &at), 0);
        CHECK_INT(add(g, "g1", "a.example", GRANT_ONCE, 0, 1), 0);
        CHECK_INT(add_all(g, good, ELEMENTSOF(good), &added, &at), 0);
        CHECK_INT(added, 2);
        CHECK_INT(add_all(g, good, ELEMENTSOF(good), &added, &at), 0);
        CHECK_INT(added, 0);
        CHECK_STR(use(g, "other.example", 2), "none");
        CHECK_STR(use(g, "a.example", 2), "g1");
        CHECK_STR(use(g, "c.example", 6), "none");
        CHECK_INT(add_all(g, twice, ELEMENTSOF(twice), &added, &at), -EEXIST);
        CHECK_INT(at, 1);
        CHECK_INT(add_all(g, bad, ELEMENTSOF(bad), &added, &at), -EBADMSG);
        CHECK_INT(at, 1);
        CHECK_STR(use(g, "d.example", 2), "none");
        for (size_t i = 0; i < GRANTS_MAX; i++) {
                (void) snprintf(ids[i], sizeof(ids[i]), "m%zu", i);
                many[i] = (GrantRequest){ids[i], "m.example", GRANT_ALWAYS, 0};
        }
        CHECK_INT(grants_count(g), 1);
        CHECK_INT(add_all(g, many, GRANTS_MAX, &added, &at), -ENOSPC);
        CHECK_INT(at, GRANTS_MAX - 1);
        CHECK_INT(grants_count(g), 1);
        CHECK_INT(add_all(g, many, GRANTS_MAX - 1, &added, &at), 0);
        CHECK_INT(grants_count(g), GRANTS_MAX);
        free(ids);
}

static void test_words(void) {
        for (GrantDuration d = 0; d < _GRANT_DURATION_MAX; d++)
                CHECK_INT(grant_duration_from_string(grant_duration_to_string(d)), d);
        CHECK_INT(grant_duration_from_string("10m"), _GRANT_DURATION_INVALID);
        CHECK(!grant_duration_to_string(_GRANT_DURATION_INVALID));
}

static void test_deadline(void) {
        usec_t before = grants_now(), deadline = grants_deadline(now_realtime() + 600 * USEC_PER_SEC), after = grants_now();

        CHECK(deadline >= before + 599 * USEC_PER_SEC && deadline <= after + 600 * USEC_PER_SEC);
        CHECK(grants_deadline(1) <= grants_now());
        CHECK(grants_deadline(USEC_INFINITY) > grants_now());
}

int main(void) {
        RUN(test_once, "S131 S139 C163: a grant for once is used once, however long it waited");
        RUN(test_until, "S131 C167: a grant for a time ends with it");
        RUN(test_preference, "S131: a longer grant is used before one for once");
        RUN(test_below, "S133: *.name covers every name below it, not itself");
        RUN(test_refused, "S134: hosts with paths, ports and odd stars, bad ids, and too many grants are refused");
        RUN(test_all, "S131: several grants are added all or none, and one that is there stays as it is");
        RUN(test_words, "the words of durations go there and back");
        RUN(test_deadline, "C167: a wall clock time becomes one of a clock that nobody sets");
        return TEST_END();
}
