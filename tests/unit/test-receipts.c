/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/log.h"
#include "basic/macro.h"
#include "broker/limits.h"
#include "broker/receipts.h"
#include "broker/spool-file.h"
#include "test.h"

#define STAND_IN "errand-session-00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff"
#define OTHER "errand-session-ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"
#define KEY "sk-real-key-0123456789"

static Provider provider = {
        .id = (char *) "anthropic",
        .credential_name = (char *) "ANTHROPIC_API_KEY",
        .host = {.kind = HOST_NAME, .name = "api.example.com"},
        .port = 443,
        .tls = true,
        .base_path = (char *) "",
};

static Slice slice(const char *text) {
        return (Slice) {text, strlen(text)};
}

static void check_path(const char *sent, const char *kept) {
        _cleanup_free_ char *path = NULL;

        CHECK_INT(receipt_path(&provider, slice(sent), &path), 0);
        CHECK_STR(path, kept);
}

static void test_methods(void) {
        static const char *const standard[] = {"GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "CONNECT"};

        for (size_t i = 0; i < ELEMENTSOF(standard); i++)
                CHECK_STR(receipt_method(slice(standard[i])), standard[i]);
        CHECK_STR(receipt_method(slice("SECRETTOKEN")), "OTHER");
        CHECK_STR(receipt_method(slice("get")), "OTHER");
        CHECK_STR(receipt_method(slice("")), "OTHER");
}

static void test_paths(void) {
        check_path("/v1/messages", "/v1/messages");
        check_path("", "");
        check_path("/v1/%6dodels", "/v1/models");
        check_path("/a%2525", "/a%25");
        check_path("/a%zz%4", "/a%zz%4");
        /* any query, plain, encoded, encoded twice */
        check_path("/a?key=x", "/a");
        check_path("/a%3fkey=x", "/a");
        check_path("/a%3Fkey=x", "/a");
        check_path("/a%253fkey=x", "/a");
        check_path("/a#key=x", "/a");
        check_path("/a%23key=x", "/a");
        /* controls, invalid and line-moving characters */
        check_path("/a%0ab%1b[2J%7f%00c", "/a\\x0ab\\x1b[2J\\x7f\\x00c");
        check_path("/%c2%85%ff%c3%a9", "/\\xc2\\x85\\xff\xc3\xa9");
        check_path("/%e2%80%aex", "/\\xe2\\x80\\xaex");
        /* secrets, in any disguise that one decoding takes off */
        check_path("/a/" STAND_IN "/b", "/a/[redacted]/b");
        check_path("/a/%65rrand-session-00112233445566778899aabbccddeeff00112233445566778899aabbccddeef%66/b", "/a/[redacted]/b");
        check_path("/a/" OTHER, "/a/[redacted]");
        check_path("/a/" KEY "/b", "/a/[redacted]/b");
        check_path("/errand-session-0011", "/errand-session-0011");
}

static void test_path_length(void) {
        char sent[1024], kept[257];

        memset(sent, 'a', sizeof(sent));
        sent[0] = '/';
        sent[300] = 0;
        memset(kept, 'a', 256);
        kept[0] = '/';
        kept[256] = 0;
        check_path(sent, kept);
        sent[256] = 0;
        check_path(sent, kept);
        /* a character of two bytes over the border goes whole */
        memcpy(sent + 255, "\xc3\xa9zzzz", 7);
        kept[255] = 0;
        check_path(sent, kept);
        /* so does an escape */
        memcpy(sent + 253, "%0azzzz", 8);
        kept[253] = 0;
        check_path(sent, kept);
        /* a secret is replaced before the cut */
        memcpy(sent + 240, STAND_IN, strlen(STAND_IN) + 1);
        memcpy(kept + 240, "[redacted]", 11);
        check_path(sent, kept);
}

typedef struct Spool {
        int fd; /* for reading; the broker's own is a duplicate made by opening again */
        char *data;
        size_t size;
} Spool;

static int spool_open(Spool *s) {
        char path[64];

        s->fd = memfd_create("spool", MFD_CLOEXEC);
        (void) snprintf(path, sizeof(path), "/proc/self/fd/%d", s->fd);
        return open(path, O_RDWR | O_APPEND | O_CLOEXEC);
}

static void spool_load(Spool *s) {
        struct stat st;

        free(s->data);
        CHECK(fstat(s->fd, &st) >= 0);
        s->size = (size_t) st.st_size;
        s->data = malloc(s->size + 1);
        CHECK_INT(pread(s->fd, s->data, s->size, 0), (long long) s->size);
}

static void spool_close(Spool *s) {
        close(s->fd);
        free(s->data);
        s->data = NULL;
}

/* The n-th record as text in a static buffer, or NULL; every byte of the spool must belong to a record. */
static const char *spool_record(const Spool *s, size_t n, SpoolKind *ret_kind) {
        static char text[SPOOL_PAYLOAD_MAX + 1];
        const char *found = NULL;

        for (size_t at = 0, i = 0; at < s->size; i++) {
                SpoolKind kind = 0;
                const char *payload;
                size_t size;
                ssize_t k = spool_decode((const uint8_t *) s->data + at, s->size - at, &kind, &payload, &size);
                if (k <= 0)
                        test_fail(__FILE__, __LINE__, "record %zu at %zu of %zu is torn or damaged", i, at, s->size);
                if (i == n) {
                        memcpy(text, payload, size);
                        text[size] = 0;
                        *ret_kind = kind;
                        found = text;
                }
                at += (size_t) k;
        }
        return found;
}

static size_t spool_count(const Spool *s) {
        SpoolKind kind;
        const char *payload;
        size_t size, n = 0;

        (void) spool_record(s, SIZE_MAX, &kind);
        for (size_t at = 0; at < s->size; n++)
                at += (size_t) spool_decode((const uint8_t *) s->data + at, s->size - at, &kind, &payload, &size);
        return n;
}

/* Of one that is being written, in which the last record may be torn. */
static size_t spool_whole_records(const Spool *s) {
        SpoolKind kind;
        const char *payload;
        size_t size, n = 0;
        ssize_t k;

        for (size_t at = 0; at < s->size && (k = spool_decode((const uint8_t *) s->data + at, s->size - at, &kind, &payload, &size)) > 0; n++)
                at += (size_t) k;
        return n;
}

static Receipt example(void) {
        return (Receipt) {
                .provider = &provider,
                .method = "POST",
                .path = slice("/v1/messages"),
                .query_size = 7,
                .status = 200,
                .started = now_monotonic() - 1500,
                .bytes_up = 12,
                .bytes_down = 345,
                .outcome = RECEIPT_COMPLETED,
        };
}

static void test_fields(void) {
        _cleanup_(receipts_freep) Receipts *r = NULL;
        Spool s = {};
        SpoolKind kind;
        Receipt receipt = example();

        CHECK_INT(receipts_new("s1", spool_open(&s), &r), 0);
        CHECK(receipts_add(r, &receipt));
        r = receipts_free(r);
        spool_load(&s);
        const char *text = spool_record(&s, 0, &kind);
        CHECK(text);
        CHECK_INT(kind, SPOOL_RECEIPT);
        CHECK(strncmp(text, "{\"ended\":1", 10) == 0);
        CHECK(strstr(text, "\"session\":\"s1\",\"provider\":\"anthropic\",\"credential\":\"ANTHROPIC_API_KEY\",\"host\":\"api.example.com\","
                           "\"method\":\"POST\",\"path\":\"/v1/messages\",\"query\":7,\"status\":200,\"duration\":"));
        CHECK(strstr(text, "\"up\":12,\"down\":345,\"outcome\":\"completed\"}"));
        CHECK_INT(spool_count(&s), 1);
        spool_close(&s);
}

static void test_denied(void) {
        _cleanup_(receipts_freep) Receipts *r = NULL;
        Spool s = {};
        SpoolKind kind;
        Receipt receipt = example();
        unsigned kept = 0;

        receipt.outcome = RECEIPT_DENIED;
        receipt.status = 401;
        CHECK_INT(receipts_new("s1", spool_open(&s), &r), 0);
        for (unsigned i = 0; i < 100; i++)
                kept += receipts_add(r, &receipt);
        CHECK_INT(kept, 1);
        receipt.started += USEC_PER_MINUTE;
        CHECK(receipts_add(r, &receipt));
        CHECK(!receipts_add(r, &receipt));
        r = receipts_free(r);
        spool_load(&s);
        CHECK_INT(spool_count(&s), 2);
        CHECK(!strstr(spool_record(&s, 0, &kind), "unrecorded"));
        CHECK(strstr(spool_record(&s, 1, &kind), "\"unrecorded\":99"));
        spool_close(&s);
}

/* The rations of what is turned away and of what was not sent are two; a call that was sent has none. */
static void test_rationed(void) {
        _cleanup_(receipts_freep) Receipts *r = NULL;
        Spool s = {};
        SpoolKind kind;
        Receipt refused = example(), unsent = example(), sent = example();
        size_t kept = 0;

        refused.outcome = sent.outcome = RECEIPT_REFUSED;
        refused.reach = RECEIPT_TURNED_AWAY;
        unsent.outcome = RECEIPT_UPSTREAM_UNREACHABLE;
        unsent.reach = RECEIPT_UNSENT;
        CHECK_INT(receipts_new("s1", spool_open(&s), &r), 0);
        for (unsigned i = 0; i < 2 * IDLE_RECEIPTS_BURST; i++)
                kept += receipts_add(r, &refused);
        CHECK_INT(kept, IDLE_RECEIPTS_BURST);
        for (unsigned i = 0; i < 2 * IDLE_RECEIPTS_BURST; i++)
                kept += receipts_add(r, &unsent);
        CHECK_INT(kept, 2 * IDLE_RECEIPTS_BURST);
        for (unsigned i = 0; i < 2 * IDLE_RECEIPTS_BURST; i++)
                kept += receipts_add(r, &sent);
        CHECK_INT(kept, 4 * IDLE_RECEIPTS_BURST);
        refused.started += IDLE_RECEIPT_USEC;
        CHECK(receipts_add(r, &refused));
        CHECK(!receipts_add(r, &refused));
        refused.started += 10 * IDLE_RECEIPT_USEC;
        for (unsigned i = 0; i < 20; i++)
                kept += receipts_add(r, &refused);
        CHECK_INT(kept, 4 * IDLE_RECEIPTS_BURST + 10);
        r = receipts_free(r);
        spool_load(&s);
        CHECK_INT(spool_count(&s), kept + 1);
        CHECK(strstr(spool_record(&s, 4 * IDLE_RECEIPTS_BURST, &kind), "\"unrecorded\":1000"));
        spool_close(&s);
}

static void test_written_while_running(void) {
        _cleanup_(receipts_freep) Receipts *r = NULL;
        Spool s = {};
        Receipt receipt = example();

        CHECK_INT(receipts_new("s1", spool_open(&s), &r), 0);
        for (unsigned i = 0; i < 1000; i++)
                CHECK(receipts_add(r, &receipt));
        for (spool_load(&s); spool_whole_records(&s) < 1000; spool_load(&s))
                usleep(2000); /* a look at a file */
        CHECK_INT(spool_count(&s), 1000);
        spool_close(&s);
}

static void test_grant(void) {
        _cleanup_(receipts_freep) Receipts *r = NULL;
        Spool s = {};
        SpoolKind kind;
        Receipt receipt = example();

        CHECK_INT(receipts_new("s1", spool_open(&s), &r), 0);
        CHECK(receipts_add(r, &receipt));
        CHECK_INT(receipts_grant_used(r, "g7", "api.example.com"), 0);
        /* there before the call returned, behind what came first */
        spool_load(&s);
        const char *text = spool_record(&s, 1, &kind);
        CHECK(text);
        CHECK_INT(kind, SPOOL_GRANT_USED);
        CHECK(strstr(text, "\"session\":\"s1\",\"grant\":\"g7\",\"host\":\"api.example.com\"}"));
        spool_close(&s);
}

static void test_no_spool(void) {
        _cleanup_(receipts_freep) Receipts *r = NULL;
        Receipt receipt = example();

        CHECK_INT(receipts_new("s1", -EBADF, &r), 0);
        CHECK(!receipts_add(r, &receipt));
        CHECK_INT(receipts_grant_used(r, "g7", "api.example.com"), -EBADF);
}

/* A file that may grow to `size` bytes only: what a full disk does, without one. */
static void limit_files(rlim_t size) {
        struct rlimit limit;

        CHECK(getrlimit(RLIMIT_FSIZE, &limit) >= 0);
        limit.rlim_cur = size;
        CHECK(setrlimit(RLIMIT_FSIZE, &limit) >= 0);
}

static void test_full(void) {
        _cleanup_(receipts_freep) Receipts *r = NULL;
        Spool s = {};
        Receipt receipt = example();
        int fd = spool_open(&s);

        limit_files(1000);
        CHECK_INT(receipts_new("s1", fd, &r), 0);
        for (unsigned i = 0; i < 20; i++)
                CHECK(receipts_add(r, &receipt)); /* never a failure of the call */
        CHECK_INT(receipts_grant_used(r, "g7", "api.example.com"), -EFBIG);
        spool_load(&s);
        size_t before = spool_count(&s); /* whole ones only */
        CHECK(before > 0 && before < 20);
        limit_files(RLIM_INFINITY);
        CHECK_INT(receipts_grant_used(r, "g8", "api.example.com"), 0); /* it recovers by itself */
        spool_load(&s);
        CHECK_INT(spool_count(&s), 21);
        SpoolKind kind;
        CHECK(strstr(spool_record(&s, 20, &kind), "\"g8\"")); /* and the grant that failed is not there */
        spool_close(&s);
}

static void test_queue_is_bounded(void) {
        _cleanup_(receipts_freep) Receipts *r = NULL;
        Receipt receipt = example();
        unsigned kept = 0;
        int fd = open("/dev/full", O_WRONLY | O_CLOEXEC);

        CHECK(fd >= 0);
        CHECK_INT(receipts_new("s1", fd, &r), 0);
        for (unsigned i = 0; i < 10000; i++)
                kept += receipts_add(r, &receipt);
        CHECK_INT(kept, 8192);
}

/* A file that can be neither truncated nor read back: a torn record must be finished before anything else. */
static void test_torn_is_finished(void) {
        SpoolBatch b = {};
        SpoolFile f = {};
        int pipes[2];
        static char got[1 << 20];
        size_t n = 0, n_records = 0;

        CHECK(pipe2(pipes, O_NONBLOCK | O_CLOEXEC) >= 0);
        CHECK(fcntl(pipes[1], F_SETPIPE_SZ, 4096) >= 0);
        spool_file_init(&f, pipes[1]);
        for (unsigned i = 0; i < 300; i++) {
                char payload[128];
                int k = snprintf(payload, sizeof(payload), "{\"n\":%u,\"fill\":\"%.*s\"}", i, (int) (i % 60), STAND_IN STAND_IN);
                CHECK_INT(spool_batch_add(&b, SPOOL_RECEIPT, payload, (size_t) k), 0);
        }
        for (int e = -EAGAIN; e == -EAGAIN;) {
                char part[777];
                e = spool_file_write(&f, &b);
                ssize_t k = read(pipes[0], part, sizeof(part));
                CHECK(k > 0);
                memcpy(got + n, part, (size_t) k);
                n += (size_t) k;
        }
        for (ssize_t k; (k = read(pipes[0], got + n, sizeof(got) - n)) > 0;)
                n += (size_t) k;
        for (size_t at = 0; at < n; n_records++) {
                SpoolKind kind;
                const char *payload;
                size_t size;
                ssize_t k = spool_decode((const uint8_t *) got + at, n - at, &kind, &payload, &size);
                CHECK(k > 0);
                at += (size_t) k;
        }
        CHECK_INT(n_records, 300);
        CHECK_INT(b.n, 0);
        spool_batch_done(&b);
        close(pipes[0]);
        close(pipes[1]);
}

static void test_torn_start(void) {
        Spool s = {};
        int fd = spool_open(&s);
        uint8_t record[64];

        spool_encode(SPOOL_RECEIPT, "{\"a\":1}", 7, record);
        for (size_t cut = 1; cut < SPOOL_HEADER_SIZE + 7; cut++) {
                SpoolFile f;
                CHECK(ftruncate(fd, 0) >= 0);
                CHECK_INT(write(fd, record, SPOOL_HEADER_SIZE + 7), SPOOL_HEADER_SIZE + 7);
                CHECK_INT(write(fd, record, cut), (long long) cut); /* killed here */
                spool_file_init(&f, fd);
                CHECK_INT(f.good, SPOOL_HEADER_SIZE + 7);
                SpoolBatch b = {};
                CHECK_INT(spool_batch_add(&b, SPOOL_RECEIPT, "{}", 2), 0);
                CHECK_INT(spool_file_write(&f, &b), 0);
                spool_batch_done(&b);
                spool_load(&s);
                CHECK_INT(spool_count(&s), 2);
        }
        close(fd);
        spool_close(&s);
}

int main(void) {
        log_setup("test-receipts", LOG_LEVEL_INFO);
        signal(SIGXFSZ, SIG_IGN);
        if (secret_new(KEY, strlen(KEY), &provider.key) < 0 || secret_new(STAND_IN, strlen(STAND_IN), &provider.stand_in) < 0)
                return 1;
        RUN(test_methods, "S059: methods are kept as standard names only");
        RUN(test_paths, "S060 S061 S062 C190: paths decoded, cut at a query, scrubbed, escaped");
        RUN(test_path_length, "S060: paths are cut to 256 bytes between characters, after scrubbing");
        RUN(test_fields, "S053: the fields of a receipt");
        RUN(test_denied, "S056: denied once a minute, with the count of the others");
        RUN(test_rationed, "S052 S057 S058: of calls that a provider saw nothing of a burst is kept, then one a second, with the count of the others");
        RUN(test_written_while_running, "S052: receipts reach the spool while the broker runs");
        RUN(test_grant, "S139: the use of a grant is in the spool before the call returns");
        RUN(test_no_spool, "S067: without a spool nothing fails but the use of a grant");
        RUN(test_full, "S067 C189: a full disk fails no call, leaves no torn record, and is recovered from");
        RUN(test_queue_is_bounded, "S067: a disk that never takes anything bounds the queue");
        RUN(test_torn_is_finished, "C189: a torn record that cannot be taken back is finished first");
        RUN(test_torn_start, "C189: a torn record of a killed writer is cut off");
        secret_free(provider.key);
        secret_free(provider.stand_in);
        return TEST_END();
}
