/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/size.h"
#include "errandd/disk-pace.h"
#include "test.h"

#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define LONGEST (30 * USEC_PER_SEC)

/* How long it takes until a session that writes at that rate is found beyond its budget, and by how much. */
static uint64_t beyond(uint64_t bytes_per_second, uint64_t budget, unsigned *ret_looks) {
        DiskPace p = {};
        usec_t now = USEC_PER_SEC;
        uint64_t used = 0;

        for (*ret_looks = 0; used <= budget; (*ret_looks)++) {
                usec_t next = disk_pace_next(&p, used, budget, now, 0, LONGEST);
                CHECK(next > 0 && next <= LONGEST);
                now += next;
                used += (uint64_t) ((double) next / USEC_PER_SEC * (double) bytes_per_second);
        }
        return used - budget;
}

static void test_idle(void) {
        DiskPace p = {};
        usec_t next = 0, now = USEC_PER_SEC;

        for (unsigned i = 0; i < 10; i++) {
                usec_t longer = disk_pace_next(&p, 5 * MIB, GIB, now, 0, LONGEST);
                CHECK(longer >= next);
                next = longer;
                now += next;
        }
        CHECK_INT(next, LONGEST);
        /* and then it begins to write */
        next = disk_pace_next(&p, 5 * MIB + 300 * MIB, GIB, now, 0, LONGEST);
        CHECK(next > 30 * USEC_PER_SEC || next == LONGEST);
        now += next;
        next = disk_pace_next(&p, 900 * MIB, GIB, now, 0, LONGEST);
        CHECK(next < 5 * USEC_PER_SEC);
}

static void test_writers(void) {
        unsigned slow, fast;

        /* Found within what it writes in the shortest time, or in half of what was left: never a look too few. */
        CHECK(beyond(10 * MIB, 5 * GIB, &slow) < 10 * MIB);
        CHECK(beyond(500 * MIB, 5 * GIB, &fast) < 500 * MIB);
        CHECK(slow < 40 && fast < 20);
        DiskPace a = {}, b = {};
        (void) disk_pace_next(&a, 0, 5 * GIB, USEC_PER_SEC, 0, LONGEST);
        (void) disk_pace_next(&b, 0, 5 * GIB, USEC_PER_SEC, 0, LONGEST);
        CHECK(disk_pace_next(&a, 2 * GIB, 5 * GIB, 2 * USEC_PER_SEC, 0, LONGEST) < disk_pace_next(&b, MIB, 5 * GIB, 2 * USEC_PER_SEC, 0, LONGEST));
}

static void test_bounds(void) {
        DiskPace p = {};

        /* A look that takes long is not taken all the time, and the longest time is never passed. */
        CHECK_INT(disk_pace_next(&p, 0, GIB, USEC_PER_SEC, 2 * USEC_PER_SEC, LONGEST), 8 * USEC_PER_SEC);
        CHECK_INT(disk_pace_next(&p, 0, GIB, 20 * USEC_PER_SEC, 20 * USEC_PER_SEC, LONGEST), LONGEST);
        CHECK_INT(disk_pace_next(&p, GIB * 2, GIB, 30 * USEC_PER_SEC, 0, LONGEST), DISK_SHORTEST_USEC);
        CHECK_INT(disk_pace_next(&p, GIB * 3, GIB, 31 * USEC_PER_SEC, 0, 100 * USEC_PER_MSEC), 100 * USEC_PER_MSEC);
        CHECK(disk_pace_next(&p, UINT64_MAX, UINT64_MAX, 32 * USEC_PER_SEC, 0, LONGEST) <= LONGEST);
        p = (DiskPace){.used = UINT64_MAX - 1, .at = 1, .interval = UINT64_MAX};
        CHECK_INT(disk_pace_next(&p, UINT64_MAX - 1, UINT64_MAX, 2, 0, LONGEST), LONGEST);
        /* One that removes something is as one that is idle. */
        p = (DiskPace){.used = GIB, .at = 1, .interval = USEC_PER_SEC};
        CHECK_INT(disk_pace_next(&p, 0, GIB, USEC_PER_SEC, 0, LONGEST), 2 * USEC_PER_SEC);
}

static void test_sizes(void) {
        static const struct {
                uint64_t bytes;
                const char *exact, *about;
        } rows[] = {{0, "0", "0"}, {1023, "1023", "1023"}, {1024, "1k", "1k"}, {1536, "1536", "1.5k"}, {5 * GIB, "5g", "5g"}, {5 * GIB + 1, "5368709121", "5.1g"},
                    {MIB - 1, "1048575", "1024k"}, {2048 * GIB, "2t", "2t"}, {UINT64_MAX, "18446744073709551615", "16777216t"}};
        char buffer[SIZE_TEXT_MAX];

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                CHECK_STR(size_exact(rows[i].bytes, buffer), rows[i].exact);
                CHECK_STR(size_about(rows[i].bytes, buffer), rows[i].about);
        }
}

int main(void) {
        RUN(test_idle, "S209: who writes nothing is looked at more and more seldom, and who begins to soon again");
        RUN(test_writers, "S209: the faster a session writes, the sooner it is looked at");
        RUN(test_bounds, "S209: looking takes a bounded part of the time, and never comes later than configured");
        RUN(test_sizes, "sizes for people");
        return TEST_END();
}
