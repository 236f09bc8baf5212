/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* A spool and a store in a directory of their own, for the tests of ingestion. */

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/json-writer.h"
#include "basic/text.h"
#include "errandd/ingest.h"
#include "test.h"

static char state_path[64];
static int spool = -EBADF;
static Store *store;

static unsigned n_warnings, n_uses, kill_at_use;
static int use_error;
static char last_warning[512];

_unused_ static int grant_used(const char *session, uint32_t number, usec_t used, void *userdata) {
        (void) userdata;
        if (!streq(session, "s1") || number != 7 || used == 0)
                return -EINVAL;
        n_uses++;
        if (n_uses == kill_at_use)
                (void) kill(getpid(), SIGKILL);
        return use_error;
}

_unused_ static void warn(const char *text, void *userdata) {
        (void) userdata;
        n_warnings++;
        (void) snprintf(last_warning, sizeof(last_warning), "%s", text);
}

static const IngestHandler handler = {.grant_used = grant_used, .warn = warn};

_unused_ static void open_store(void) {
        char *problem = NULL;
        CHECK_INT(store_open(state_path, &store, &problem), 0);
}

_unused_ static void setup(void) {
        char path[128];

        strcpy(state_path, "/tmp/errand-test-ingest.XXXXXX");
        CHECK(mkdtemp(state_path));
        (void) snprintf(path, sizeof(path), "%s/spool", state_path);
        spool = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        CHECK(spool >= 0);
        open_store();
        n_warnings = n_uses = kill_at_use = 0;
        use_error = 0;
}

_unused_ static void teardown(void) {
        char command[160];

        store = store_close(store);
        spool = safe_close(spool);
        (void) snprintf(command, sizeof(command), "rm -rf -- '%s'", state_path);
        CHECK_INT(system(command), 0);
}

/* A receipt whose "up" is a serial number, by which it is found again. */
_unused_ static size_t make_record(const char *session, uint64_t serial, uint8_t *out) {
        _cleanup_free_ char *text = NULL;
        JsonWriter w = {};
        size_t size;

        json_open_object(&w, NULL);
        json_add_u64(&w, "ended", 1000 + serial);
        json_add_string(&w, "session", session);
        json_add_string(&w, "provider", "anthropic");
        json_add_string(&w, "credential", "ANTHROPIC_API_KEY");
        json_add_string(&w, "host", "api.example.com");
        json_add_string(&w, "method", "POST");
        json_add_string(&w, "path", "/v1/messages");
        json_add_u64(&w, "query", 0);
        json_add_u64(&w, "status", 200);
        json_add_u64(&w, "duration", 5);
        json_add_u64(&w, "up", serial);
        json_add_u64(&w, "down", 1);
        json_add_string(&w, "outcome", "completed");
        json_close_object(&w);
        CHECK_INT(json_writer_finish(&w, &text, &size), 0);
        spool_encode(SPOOL_RECEIPT, text, size, out);
        return SPOOL_HEADER_SIZE + size;
}

_unused_ static void append(const void *data, size_t size) {
        CHECK_INT(write_all(spool, data, size), 0);
}

_unused_ static void append_receipt(uint64_t serial) {
        uint8_t record[1024];
        append(record, make_record("s1", serial, record));
}

_unused_ static void append_payload(SpoolKind kind, const char *payload) {
        uint8_t record[SPOOL_HEADER_SIZE + SPOOL_PAYLOAD_MAX];
        spool_encode(kind, payload, strlen(payload), record);
        append(record, SPOOL_HEADER_SIZE + strlen(payload));
}

_unused_ static void append_use(void) {
        append_payload(SPOOL_GRANT_USED, "{\"used\":1000,\"session\":\"s1\",\"grant\":\"7\",\"host\":\"a.example\"}");
}

_unused_ static int ingest(bool final, IngestReport *ret) {
        return ingest_spool(store, "s1", spool, final, &handler, ret);
}

/* That the receipts in the store are those of 0…n-1, each once. */
_unused_ static void check_serials(uint64_t n) {
        uint64_t before = 0, expected = n;

        for (;;) {
                ReceiptFilter f = {.session = "s1", .outcome = _RECEIPT_OUTCOME_INVALID, .before = before};
                StoredReceiptList l;
                CHECK_INT(store_query(store, &f, &l), 0);
                if (l.n_receipts == 0)
                        break;
                for (size_t i = 0; i < l.n_receipts; i++)
                        if (l.receipts[i].up != --expected)
                                test_fail(__FILE__, __LINE__, "receipt %" PRIu64 " in place of %" PRIu64, l.receipts[i].up, expected);
                before = l.receipts[l.n_receipts - 1].number;
                stored_receipt_list_done(&l);
        }
        CHECK_INT(expected, 0);
}
