/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "errandd/grant-list.h"
#include "errandd/record-dir.h"
#include "shared/timespan.h"
#include "test.h"

#define BOOT_A "11111111-1111-1111-1111-111111111111"
#define BOOT_B "22222222-2222-2222-2222-222222222222"
#define EPOCH (UINT64_C(1800000000) * USEC_PER_SEC)

static GrantClock clock_at(usec_t realtime, usec_t boottime, const char *boot) {
        GrantClock c = {.realtime = EPOCH + realtime, .boottime = boottime};
        strcpy(c.boot_id, boot);
        return c;
}

static const Grant *add(GrantList *l, const char *host, const char *duration, const GrantClock *now) {
        const char *problem = NULL;
        const Grant *g = NULL;
        if (grant_list_add(l, host, duration, 1000, now, &g, &problem) < 0)
                test_fail(__FILE__, __LINE__, "%s %s: %s", host, duration, problem ?: "?");
        return g;
}

static void test_hosts(void) {
        static const struct {
                const char *in, *out;
        } good[] = {
                {"api.example.com", "api.example.com"}, {"API.Example.COM.", "api.example.com"}, {"*.Example.com", "*.example.com"},
                {"localhost", "localhost"},             {"9.9.9.9", "9.9.9.9"},                  {"[2606:4700::0001]", "2606:4700::1"},
                {"2606:4700::1", "2606:4700::1"},       {"a_b.example.com", "a_b.example.com"},  {"xn--bcher-kva.example", "xn--bcher-kva.example"},
        };
        static const char *const bad[] = {"", "*", "*.com", "*.9.9.9.9", "a.*.com", "*a.example.com", "**.example.com", "example.com:443",
                                          "https://example.com", "example.com/path", "user@example.com", "a b", "-rf", "--privileged", "a..b", ".a",
                                          "127.1", "0x7f.1", "2130706433", "010.0.0.1", "1.2.3.4.5", "[::1", "::1]", "fe80::1%eth0", "b\303\274cher.example",
                                          "a\nb", "x;id", "$(id)", "../../x", "example.com..",
                                          "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggg.example"};
        GrantClock now = clock_at(0, 0, BOOT_A);
        _cleanup_(grant_list_done) GrantList l = {};

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                CHECK_STR(add(&l, good[i].in, "once", &now)->host, good[i].out);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                const char *problem = NULL;
                const Grant *g;
                if (grant_list_add(&l, bad[i], "once", 1000, &now, &g, &problem) != -EBADMSG || !startswith(problem ?: "", "the host "))
                        test_fail(__FILE__, __LINE__, "not refused as a host: %s", bad[i]);
        }
        CHECK_INT(l.n_grants, ELEMENTSOF(good));
}

static void test_covers(void) {
        CHECK(host_text_covers("*", "a.example"));
        CHECK(host_text_covers("*.example.com", "a.example.com"));
        CHECK(host_text_covers("*.example.com", "a.b.example.com"));
        CHECK(host_text_covers("*.example.com", "*.b.example.com"));
        CHECK(host_text_covers("*.example.com", "*.example.com"));
        CHECK(!host_text_covers("*.example.com", "example.com"));
        CHECK(!host_text_covers("*.example.com", "badexample.com"));
        CHECK(!host_text_covers("*.b.example.com", "*.example.com"));
        CHECK(!host_text_covers("example.com", "a.example.com"));
        CHECK(!host_text_covers("a.example.com", "*.example.com"));
        CHECK(!host_text_covers("*.example.com", "*"));
}

static void test_durations(void) {
        static const char *const bad[] = {"", "Once", "forever", "10", "-10m", "0s", "999ms", "30d 1s", "5w", "1y", "10m;", "once always"};
        GrantClock now = clock_at(0, 0, BOOT_A);
        _cleanup_(grant_list_done) GrantList l = {};

        CHECK_INT(add(&l, "a.example", "once", &now)->duration, GRANT_ONCE);
        CHECK_INT(add(&l, "a.example", "always", &now)->duration, GRANT_ALWAYS);
        CHECK_INT(add(&l, "a.example", "1h 30m", &now)->span, 90 * USEC_PER_MINUTE);
        CHECK_INT(add(&l, "a.example", "30d", &now)->span, GRANT_SPAN_MAX);
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                const char *problem = NULL;
                const Grant *g;
                CHECK_INT(grant_list_add(&l, "a.example", bad[i], 1000, &now, &g, &problem), -EBADMSG);
                CHECK(startswith(problem, "the duration "));
        }
        const Grant *g;
        const char *problem;
        CHECK_INT(grant_list_add(&l, "a.example", "once", (uid_t) -1, &now, &g, &problem), -EINVAL);
}

static void test_clocks(void) {
        GrantClock start = clock_at(0, 1000 * USEC_PER_SEC, BOOT_A), at;
        _cleanup_(grant_list_done) GrantList l = {};
        const Grant g = *add(&l, "a.example", "10m", &start);

        CHECK_INT(grant_remaining(&g, &start), 10 * USEC_PER_MINUTE);
        CHECK_INT(grant_expires(&g), EPOCH + 10 * USEC_PER_MINUTE);
        /* The calendar may be set forward and back by an hour: the running machine's clock counts, suspend included. */
        at = clock_at(USEC_PER_HOUR, 1000 * USEC_PER_SEC + 9 * USEC_PER_MINUTE, BOOT_A);
        CHECK_INT(grant_remaining(&g, &at), USEC_PER_MINUTE);
        at.realtime = EPOCH - USEC_PER_HOUR;
        CHECK_INT(grant_remaining(&g, &at), USEC_PER_MINUTE);
        at.boottime = 1000 * USEC_PER_SEC + 10 * USEC_PER_MINUTE;
        CHECK(!grant_in_force(&g, &at));
        /* After a boot the calendar counts, and one from before the grant ends it. */
        at = clock_at(9 * USEC_PER_MINUTE, 5, BOOT_B);
        CHECK_INT(grant_remaining(&g, &at), USEC_PER_MINUTE);
        at = clock_at(10 * USEC_PER_MINUTE, 5, BOOT_B);
        CHECK(!grant_in_force(&g, &at));
        at = clock_at(0, 5, BOOT_B);
        at.realtime -= 1;
        CHECK(!grant_in_force(&g, &at));
}

static void test_once(void) {
        GrantClock now = clock_at(0, 0, BOOT_A), later = clock_at(400 * USEC_PER_DAY, 0, BOOT_B);
        _cleanup_(grant_list_done) GrantList l = {};
        uint32_t once = add(&l, "a.example", "once", &now)->number, always = add(&l, "b.example", "always", &now)->number;

        CHECK(grant_in_force(grant_list_find(&l, once), &later));
        CHECK(grant_in_force(grant_list_find(&l, always), &later));
        CHECK_INT(grant_list_mark_used(&l, once, EPOCH), 1);
        CHECK_INT(grant_list_mark_used(&l, once, EPOCH + 5), 0);
        CHECK_INT(grant_list_find(&l, once)->used, EPOCH);
        CHECK(!grant_in_force(grant_list_find(&l, once), &later));
        CHECK_INT(grant_list_mark_used(&l, always, EPOCH), -ENOENT);
        CHECK_INT(grant_list_mark_used(&l, 99, EPOCH), -ENOENT);
        CHECK_INT(grant_list_prune(&l, &later), 1);
        CHECK(!grant_list_find(&l, once));
        CHECK_INT(grant_list_revoke(&l, always), 0);
        CHECK_INT(grant_list_revoke(&l, always), -ENOENT);
        CHECK_INT(add(&l, "c.example", "once", &now)->number, 3); /* a number never comes back */
}

static void test_many(void) {
        GrantClock now = clock_at(0, 0, BOOT_A), later = clock_at(0, USEC_PER_MINUTE, BOOT_A);
        _cleanup_(grant_list_done) GrantList l = {};
        const char *problem;
        const Grant *g;

        for (unsigned i = 0; i < GRANTS_MAX; i++)
                (void) add(&l, "a.example", i == 7 ? "1m" : "once", &now);
        CHECK_INT(grant_list_add(&l, "a.example", "once", 1000, &now, &g, &problem), -ENOSPC);
        CHECK_INT(add(&l, "a.example", "once", &later)->number, GRANTS_MAX + 1);
        CHECK_INT(l.n_grants, GRANTS_MAX);
}

static int write_list(int dir, const GrantList *l) {
        _cleanup_free_ char *text = NULL;
        size_t size;

        int r = grant_list_format(l, &text, &size);
        return r < 0 ? r : record_replace_file(dir, GRANT_LIST_NAME, text, size);
}

static void test_file(void) {
        char path[] = "/tmp/errand-test-grants.XXXXXX", *problem = NULL;
        GrantClock now = clock_at(0, 7, BOOT_A);
        _cleanup_(grant_list_done) GrantList l = {}, again = {}, none = {};

        CHECK(mkdtemp(path));
        _cleanup_close_ int dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK_INT(grant_list_read(dir, &none, &problem), 0);
        CHECK_INT(none.n_grants, 0);
        (void) add(&l, "*.example.com", "1h 30m", &now);
        uint32_t once = add(&l, "2606:4700::1", "once", &now)->number;
        CHECK_INT(grant_list_mark_used(&l, once, EPOCH), 1);
        (void) add(&l, "a.example", "always", &now);
        CHECK_INT(grant_list_revoke(&l, 3), 0);
        CHECK_INT(write_list(dir, &l), 0);
        CHECK_INT(grant_list_read(dir, &again, &problem), 0);
        CHECK_INT(again.n_grants, 2);
        CHECK_INT(again.last, 3);
        for (size_t i = 0; i < 2; i++)
                CHECK(streq(l.grants[i].host, again.grants[i].host) && l.grants[i].duration == again.grants[i].duration &&
                      l.grants[i].span == again.grants[i].span && l.grants[i].used == again.grants[i].used &&
                      l.grants[i].granted.boottime == again.grants[i].granted.boottime && again.grants[i].granted_by == 1000);
        CHECK_INT(unlinkat(dir, "grants.json", 0), 0);
        CHECK_INT(rmdir(path), 0);
}

static void test_damaged_file(void) {
        GrantClock now = clock_at(0, 7, BOOT_A);
        _cleanup_(grant_list_done) GrantList l = {};
        _cleanup_free_ char *text = NULL;
        size_t size;

        (void) add(&l, "a.example.com", "10m", &now);
        CHECK_INT(grant_list_format(&l, &text, &size), 0);
        /* Cut anywhere: a named error. */
        for (size_t n = 0; n < size; n++) {
                char *problem = NULL;
                GrantList cut;
                CHECK_INT(grant_list_parse(text, n, &cut, &problem), -EBADMSG);
                CHECK(problem);
                free(problem);
        }
        static const char *const edits[][2] = {
                {"a.example.com", "A.example.com"}, {"a.example.com", "*.com"},  {"a.example.com", "*"},       {"\"10m\"", "\"31d\""},
                {"\"10m\"", "10"},                  {"\"by\":1000", "\"by\":4294967295"}, {"\"by\":1000", "\"by\":-1"}, {"\"number\":1", "\"number\":2"},
                {"\"number\":1", "\"number\":0"},   {"\"v\":1", "\"v\":2"},      {"\"last\":1", "\"last\":1,\"x\":1"}, {"\"by\"", "\"secret\":\"x\",\"by\""},
                {"\"by\":1000", "\"by\":1000,\"used\":5"},
        };
        for (size_t i = 0; i < ELEMENTSOF(edits); i++) {
                char edited[1024], *problem = NULL, *at = strstr(text, edits[i][0]);
                GrantList other;
                CHECK(at);
                (void) snprintf(edited, sizeof(edited), "%.*s%s%s", (int) (at - text), text, edits[i][1], at + strlen(edits[i][0]));
                if (grant_list_parse(edited, strlen(edited), &other, &problem) != -EBADMSG)
                        test_fail(__FILE__, __LINE__, "accepted: %s", edited);
                free(problem);
        }
}

static void test_now(void) {
        GrantClock a, b;

        CHECK_INT(grant_clock_now(&a), 0);
        CHECK_INT(grant_clock_now(&b), 0);
        CHECK_STR(a.boot_id, b.boot_id);
        CHECK(b.boottime >= a.boottime && a.realtime > EPOCH / 2);
}

int main(void) {
        RUN(test_hosts, "C165 C199 S133 S134: a grant names a host alone; ports, paths, options and odd addresses are refused");
        RUN(test_covers, "S133: what a pattern covers");
        RUN(test_durations, "S131: once, always and time spans of up to 30 days");
        RUN(test_clocks, "C167: a span counts suspend, not the calendar; after a boot the calendar, and never one turned back");
        RUN(test_once, "S139: a grant for once stays until it is used, and is used once");
        RUN(test_many, "grants that ended make room; more than the cap is refused");
        RUN(test_file, "S136 S137: the grant file holds hosts, times and account ids and reads back");
        RUN(test_damaged_file, "S136: a cut or hand-damaged grant file is a named error");
        RUN(test_now, "both clocks and the boot are read");
        return TEST_END();
}
