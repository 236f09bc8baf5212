/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shared/timespan.h"
#include "test.h"

#define MAX_SPAN (30 * USEC_PER_DAY)

static void test_accepted(void) {
        static const struct {
                const char *text;
                usec_t span;
        } rows[] = {
                {"10m", 10 * USEC_PER_MINUTE},
                {"1h 30m", 90 * USEC_PER_MINUTE},
                {"1h30m", 90 * USEC_PER_MINUTE},
                {"90s", 90 * USEC_PER_SEC},
                {"2d", 2 * USEC_PER_DAY},
                {"1w 2d 3h 4min 5sec 6ms 7us", USEC_PER_WEEK + 2 * USEC_PER_DAY + 3 * USEC_PER_HOUR + 4 * USEC_PER_MINUTE + 5 * USEC_PER_SEC + 6007},
                {"3 days 1 hour", 3 * USEC_PER_DAY + USEC_PER_HOUR},
                {"0s", 0},
                {"30d", MAX_SPAN},
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                char buffer[TIMESPAN_TEXT_MAX];
                usec_t span, again;
                CHECK_INT(timespan_parse(rows[i].text, MAX_SPAN, &span), 0);
                CHECK_INT(span, rows[i].span);
                CHECK_INT(timespan_parse(timespan_format(span, buffer), MAX_SPAN, &again), 0);
                CHECK_INT(again, span);
        }
}

static void test_refused(void) {
        static const char *const malformed[] = {"", " ", "10", "m", "10 ", "10m ", " 10m", "10  m", "1h  30m", "30m 1h", "1h 1h", "10m10", "-10m", "+10m",
                                                "1.5h", "1h,30m", "1H", "1M", "1y", "1 month", "10m\n", "0x10s", "infinity", "once", "１０m"};
        usec_t span = 77;

        for (size_t i = 0; i < ELEMENTSOF(malformed); i++)
                CHECK_INT(timespan_parse(malformed[i], MAX_SPAN, &span), -EINVAL);
        CHECK_INT(timespan_parse("30d 1us", MAX_SPAN, &span), -ERANGE);
        CHECK_INT(timespan_parse("99999999999999999999s", USEC_INFINITY, &span), -ERANGE);
        CHECK_INT(timespan_parse("18446744073709551615w", USEC_INFINITY, &span), -ERANGE);
        CHECK_INT(timespan_parse("18446744073709551615us", USEC_INFINITY, &span), 0);
        CHECK(span == USEC_INFINITY);
}

static void test_format(void) {
        char buffer[TIMESPAN_TEXT_MAX];

        CHECK_STR(timespan_format(90 * USEC_PER_MINUTE, buffer), "1h 30m");
        CHECK_STR(timespan_format(0, buffer), "0s");
        CHECK_STR(timespan_format(USEC_INFINITY, buffer), "infinity");
        CHECK(strlen(timespan_format(USEC_INFINITY - 1, buffer)) < TIMESPAN_TEXT_MAX - 1);
}

int main(void) {
        RUN(test_accepted, "C167: time spans with units, and their written form reads back");
        RUN(test_refused, "C167: numbers alone, fractions, months, repeated and disordered units are refused");
        RUN(test_format, "time spans are written in their shortest exact form");
        return TEST_END();
}
