/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/answers.h"
#include "broker/refusals.h"
#include "test.h"

#define START (100 * USEC_PER_SEC)

static void test_once_a_minute(void) {
        Refusals r = {};
        uint64_t count = 0;

        CHECK(refusals_note(&r, "a.example", 443, START, &count));
        CHECK_INT(count, 1);
        for (unsigned i = 1; i < 60; i++)
                CHECK(!refusals_note(&r, "a.example", 443, START + i * USEC_PER_SEC, &count));
        CHECK(refusals_note(&r, "a.example", 443, START + USEC_PER_MINUTE, &count));
        CHECK_INT(count, 60);
}

static void test_three_hosts(void) {
        Refusals r = {};
        uint64_t count, hosts;
        char name[16];
        unsigned told = 0;

        /* Ten new hosts a second for three minutes: in no 60 s are there more than three. */
        for (unsigned i = 0; i < 1800; i++) {
                (void) snprintf(name, sizeof(name), "h%u.example", i);
                told += refusals_note(&r, name, 443, START + i * (USEC_PER_SEC / 10), &count);
        }
        CHECK_INT(told, 9);
        CHECK(refusals_summary(&r, &count, &hosts));
        CHECK_INT(count, 1791);
        CHECK(hosts > 0 && hosts <= REFUSALS_HOSTS_MAX);
        CHECK(!refusals_summary(&r, &count, &hosts));
}

static void test_window_slides(void) {
        Refusals r = {};
        uint64_t count;

        CHECK(refusals_note(&r, "a", 443, START, &count));
        CHECK(refusals_note(&r, "b", 443, START + 59 * USEC_PER_SEC, &count));
        CHECK(refusals_note(&r, "c", 443, START + 59 * USEC_PER_SEC, &count));
        CHECK(refusals_note(&r, "d", 443, START + 60 * USEC_PER_SEC, &count));
        CHECK(!refusals_note(&r, "e", 443, START + 61 * USEC_PER_SEC, &count));
}

static void test_sentence(void) {
        const char *problem;
        Host h;

        CHECK_INT(host_parse("API.example.com.", &h, &problem), 0);
        _cleanup_free_ char *text = answer_not_granted(&h, "s1");
        CHECK_STR(text,
                  "api.example.com is not on the egress allowlist or granted; its owner can run: errand grant s1 api.example.com");
}

static void test_words(void) {
        for (Answer a = 0; a < _ANSWER_MAX; a++) {
                const AnswerWords *w = answer_words(a);
                CHECK(w->status >= 400 && w->status < 600 && w->reason && *w->reason);
                CHECK(!strpbrk(w->reason, "\r\n") && (!w->body || !strpbrk(w->body, "\r\n")));
                CHECK(!w->extra || endswith(w->extra, "\r\n"));
        }
        static const struct {
                DialResult result;
                unsigned status;
                const char *reason;
        } rows[] = {
                {DIAL_NOT_RESOLVED, 502, "the name did not resolve"},
                {DIAL_RESOLVE_TIMEOUT, 504, "the name did not resolve in time"},
                {DIAL_NOT_PUBLIC, 403, "not a public host"},
                {DIAL_UNREACHABLE, 502, "upstream unreachable"},
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                const AnswerWords *w = answer_words(answer_for_dial(rows[i].result));
                CHECK_INT(w->status, rows[i].status);
                CHECK_STR(w->reason, rows[i].reason);
        }
        CHECK_INT(answer_words(ANSWER_CREDENTIAL)->status, 407);
        CHECK_STR(answer_words(ANSWER_CREDENTIAL)->reason, "Proxy Authentication Required");
        CHECK_STR(answer_words(ANSWER_CREDENTIAL)->extra, "Proxy-Authenticate: Basic realm=\"errand\"\r\n");
}

int main(void) {
        RUN(test_once_a_minute, "S129: a host that is refused again and again is told once a minute, with a count");
        RUN(test_three_hosts, "S129 C166: no more than three hosts a minute are told, the rest is summed up");
        RUN(test_window_slides, "S129: no minute holds four, wherever it begins");
        RUN(test_sentence, "S128 S140: the refusal names the host as it was judged, and the command that grants it");
        RUN(test_words, "S068 S075 S079 S117 S118: the answers carry the promised words");
        return TEST_END();
}
