/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "shared/spool.h"
#include "test.h"

static void test_crc(void) {
        /* RFC 3720, appendix B.4. */
        CHECK(crc32c("123456789", 9) == 0xe3069283U);
        CHECK(crc32c((uint8_t[32]){}, 32) == 0x8a9136aaU);
        CHECK(crc32c_by_table("123456789", 9) == 0xe3069283U);

        /* Whatever remains of a word, and wherever it begins. */
        uint8_t bytes[64];
        for (size_t i = 0; i < sizeof(bytes); i++)
                bytes[i] = (uint8_t) (i * 37 + 200);
        for (size_t from = 0; from < 8; from++)
                for (size_t size = 0; from + size <= sizeof(bytes); size++)
                        CHECK(crc32c(bytes + from, size) == crc32c_by_table(bytes + from, size));
}

static void test_round_trip(void) {
        uint8_t record[SPOOL_HEADER_SIZE + 7];
        const char *payload;
        SpoolKind kind;
        size_t size;

        spool_encode(SPOOL_RECEIPT, "{\"a\":1}", 7, record);
        for (size_t n = 0; n < sizeof(record); n++)
                CHECK_INT(spool_decode(record, n, &kind, &payload, &size), 0);
        CHECK_INT(spool_decode(record, sizeof(record), &kind, &payload, &size), sizeof(record));
        CHECK_INT(kind, SPOOL_RECEIPT);
        CHECK_INT(size, 7);
        for (size_t n = 0; n < sizeof(record); n++) {
                record[n] ^= 0x40;
                CHECK(spool_decode(record, sizeof(record), &kind, &payload, &size) <= 0);
                record[n] ^= 0x40;
        }
}

static void test_outcomes(void) {
        for (ReceiptOutcome o = 0; o < _RECEIPT_OUTCOME_MAX; o++)
                CHECK_INT(receipt_outcome_from_string(receipt_outcome_to_string(o)), o);
        CHECK_INT(receipt_outcome_from_string("lost"), _RECEIPT_OUTCOME_INVALID);
}

int main(void) {
        RUN(test_crc, "CRC-32C agrees with RFC 3720");
        RUN(test_round_trip, "a torn record is waited for, a damaged one is refused");
        RUN(test_outcomes, "outcome names round-trip");
        return TEST_END();
}
