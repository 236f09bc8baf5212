/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "ingest-fixture.h"

static void test_plain(void) {
        IngestReport r;

        setup();
        CHECK_INT(ingest(false, &r), 0);
        for (unsigned i = 0; i < 2000; i++)
                append_receipt(i); /* more than one chunk */
        append_use();
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(r.receipts, 2000);
        CHECK_INT(r.grants_used, 1);
        CHECK(!r.torn && r.damaged == 0);
        CHECK_INT(ingest(true, &r), 0);
        CHECK_INT(r.receipts, 0);
        append_receipt(2000);
        store = store_close(store);
        open_store();
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(r.receipts, 1);
        check_serials(2001);
        CHECK_INT(n_warnings, 0);
        CHECK_INT(n_uses, 1);
        teardown();
}

static void test_torn(void) {
        uint8_t record[1024];
        IngestReport r;

        setup();
        append_receipt(0);
        size_t size = make_record("s1", 1, record);
        for (size_t i = 0; i < size; i++) {
                CHECK_INT(ingest(false, &r), 0);
                CHECK_INT(r.receipts, i == 0);
                CHECK_INT(r.torn, i > 0);
                append(record + i, 1);
        }
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(r.receipts, 1);
        check_serials(2);
        CHECK_INT(n_warnings, 0);
        teardown();
}

static void test_torn_for_ever(void) {
        uint8_t record[1024];
        IngestReport r;

        setup();
        /* A writer that died in a record, and one after it that goes on behind it. */
        append_receipt(0);
        size_t size = make_record("s1", 9, record);
        append(record, size - 10);
        append_receipt(1);
        append_receipt(2);
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(r.receipts, 3);
        CHECK_INT(r.damaged, 1);
        CHECK_INT(r.skipped, size - 10);
        CHECK_INT(n_warnings, 1);
        CHECK(strstr(last_warning, "session s1 is damaged in 1 place(s), the first at byte "));
        /* At the end nobody will complete it, and what hid in the length it claimed is found. */
        record[8] = 0xff;
        record[9] = 0x0f;
        append(record, 20);
        append_receipt(3);
        CHECK_INT(ingest(false, &r), 0);
        CHECK(r.receipts == 0 && r.torn);
        CHECK_INT(ingest(true, &r), 0);
        CHECK_INT(r.receipts, 1);
        CHECK_INT(r.damaged, 1);
        append(record, 3);
        CHECK_INT(ingest(true, &r), 0);
        CHECK_INT(r.damaged, 1);
        append_receipt(4); /* the session is resumed */
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(r.receipts, 1);
        check_serials(5);
        teardown();
}

static void test_damaged(void) {
        static const char *const payloads[] = {
                "", "{}", "[]", "{\"a\":1", "null", "{\"session\":\"s1\"}",
                "{\"ended\":1,\"session\":\"s2\",\"provider\":\"a\",\"credential\":\"B\",\"host\":\"c\",\"method\":\"GET\",\"path\":\"/\",\"query\":0,\"status\":200,"
                "\"duration\":1,\"up\":1,\"down\":1,\"outcome\":\"completed\"}",
                "{\"ended\":1,\"session\":\"s1\",\"provider\":\"a\",\"credential\":\"B\",\"host\":\"c\",\"method\":\"GET\",\"path\":\"/\",\"query\":0,\"status\":200,"
                "\"duration\":1,\"up\":1,\"down\":1,\"outcome\":\"lost\"}",
                "{\"ended\":-1,\"session\":\"s1\",\"provider\":\"a\",\"credential\":\"B\",\"host\":\"c\",\"method\":\"GET\",\"path\":\"/\",\"query\":0,\"status\":200,"
                "\"duration\":1,\"up\":1,\"down\":1,\"outcome\":\"completed\"}",
        };
        char junk[3000];
        IngestReport r;
        SpoolPosition p;

        setup();
        for (unsigned i = 0; i < ELEMENTSOF(payloads); i++) {
                append_receipt(i);
                append_payload(SPOOL_RECEIPT, payloads[i]);
        }
        append_payload(SPOOL_GRANT_USED, "{\"used\":1,\"session\":\"s2\",\"grant\":\"7\",\"host\":\"a\"}");
        append_payload(SPOOL_GRANT_USED, "{\"used\":1,\"session\":\"s1\",\"grant\":\"-7\",\"host\":\"a\"}");
        memset(junk, 'E', sizeof(junk)); /* the magic's first letter, again and again */
        append(junk, sizeof(junk));
        append_receipt(ELEMENTSOF(payloads));
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(r.receipts, ELEMENTSOF(payloads) + 1);
        CHECK_INT(r.damaged, ELEMENTSOF(payloads) + 3);
        CHECK_INT(n_warnings, 1);
        CHECK_INT(n_uses, 0);
        CHECK_INT(store_get_spool(store, "s1", &p), 0);
        CHECK_INT(p.damaged, ELEMENTSOF(payloads) + 3);
        check_serials(ELEMENTSOF(payloads) + 1);
        teardown();
}

static void test_flipped_bits(void) {
        uint8_t record[1024];
        IngestReport r;

        /* Whatever byte of the middle one is wrong: the first and the last are in, once. */
        size_t size = make_record("s1", 5, record);
        for (size_t i = 0; i < size; i += 7) {
                setup();
                append_receipt(0);
                record[i] ^= 0x20;
                append(record, size);
                record[i] ^= 0x20;
                append_receipt(1);
                CHECK_INT(ingest(true, &r), 0);
                CHECK_INT(r.receipts, 2);
                CHECK_INT(r.damaged, 1);
                check_serials(2);
                teardown();
        }
}

static void test_shrunk(void) {
        IngestReport r;
        struct stat st;

        setup();
        append_receipt(0);
        append_receipt(1);
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(fstat(spool, &st), 0);
        CHECK_INT(ftruncate(spool, st.st_size - 1), 0);
        CHECK_INT(ingest(false, &r), -ESTALE);
        CHECK_INT(n_warnings, 1);
        CHECK(strstr(last_warning, "session s1 became shorter"));
        /* It grows again: it stays what it is, also after a restart, and is told once. */
        for (unsigned i = 2; i < 9; i++)
                append_receipt(i);
        store = store_close(store);
        open_store();
        CHECK_INT(ingest(true, &r), -ESTALE);
        CHECK_INT(n_warnings, 1);
        check_serials(2);
        teardown();
}

static void test_use_fails(void) {
        IngestReport r;

        setup();
        append_receipt(0);
        append_use();
        use_error = -EIO;
        CHECK_INT(ingest(false, &r), -EIO);
        CHECK_INT(r.receipts, 0);
        use_error = -EBADMSG; /* the handler's error is not taken for a damaged record */
        CHECK_INT(ingest(false, &r), -EIO);
        use_error = 0;
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(r.receipts, 1);
        CHECK_INT(r.grants_used, 1);
        CHECK_INT(n_warnings, 0);
        check_serials(1);
        teardown();
}

int main(void) {
        RUN(test_plain, "receipts and uses of grants are read by offset, also after a restart");
        RUN(test_torn, "a torn tail is waited for");
        RUN(test_torn_for_ever, "a record whose writer died is skipped, and what follows it is found");
        RUN(test_damaged, "S052: damaged and falsified records are skipped, counted and told once; another session's is not taken");
        RUN(test_flipped_bits, "any flipped bit costs that record alone");
        RUN(test_shrunk, "a spool that became shorter is tampering: told, remembered, and read no further");
        RUN(test_use_fails, "a use of a grant that could not be kept comes again");
        return TEST_END();
}
