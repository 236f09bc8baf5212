/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/failure.h"
#include "bailey/gap.h"
#include "bailey/landlock.h"
#include "test.h"

static void test_names(void) {
        for (Gap g = 0; g < _GAP_MAX; g++) {
                CHECK(gap_to_string(g) && gap_describe(g));
                CHECK_INT(gap_from_string(gap_to_string(g)), g);
        }
        CHECK_INT(gap_from_string("nothing"), _GAP_INVALID);
        CHECK(!gap_to_string(_GAP_MAX) && !gap_to_string(_GAP_INVALID) && !gap_describe(_GAP_MAX));
}

static void test_landlock(void) {
        GapSet refer = 1U << GAP_LANDLOCK_REFER, truncate = 1U << GAP_LANDLOCK_TRUNCATE, ioctl = 1U << GAP_LANDLOCK_IOCTL,
               scope = 1U << GAP_LANDLOCK_SCOPE;
        const GapSet expected[LANDLOCK_ABI_MAX + 1] = {
                1U << GAP_LANDLOCK, refer | truncate | ioctl | scope, truncate | ioctl | scope, ioctl | scope, ioctl | scope,
                scope, 0, 0,
        };

        for (int abi = 0; abi <= LANDLOCK_ABI_MAX; abi++)
                CHECK_INT(landlock_gaps(abi, false), expected[abi]);
        CHECK(landlock_abi() >= 0 && landlock_abi() <= LANDLOCK_ABI_MAX);
}

static void test_words(void) {
        Failure f;

        for (Stage s = 0; s < _STAGE_MAX; s++)
                CHECK(stage_describe(s) && *stage_describe(s));
        CHECK_INT(failure_set(&f, STAGE_PIVOT, EPERM, "with %d", 1), -EPERM);
        CHECK_INT(failure_set(&f, STAGE_PIVOT, -EPERM, "with %d", 1), -EPERM);
        CHECK_INT(f.error, EPERM);
        CHECK_STR(f.text, "with 1");
        CHECK_INT(failure_set(&f, STAGE_GAP, 0, "no errno"), -EIO);
}

int main(void) {
        RUN(test_names, "names of gaps");
        RUN(test_landlock, "N031 T013: what each Landlock ABI lacks");
        RUN(test_words, "each step has words");
        return TEST_END();
}
