/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Receipts a second from a spool into the store. The target is 20 000. */

#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

#include "basic/clock.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/parse.h"
#include "errandd/ingest.h"

#define ROUNDS 3U

static int no_use(const char *session, uint32_t number, usec_t used, void *userdata) {
        (void) session;
        (void) number;
        (void) used;
        (void) userdata;
        return 0;
}

static void warn(const char *text, void *userdata) {
        (void) userdata;
        fprintf(stderr, "bench-ingest: %s\n", text);
}

static int fill(int fd, unsigned n) {
        uint8_t record[SPOOL_HEADER_SIZE + SPOOL_PAYLOAD_MAX];
        char payload[SPOOL_PAYLOAD_MAX];

        for (unsigned i = 0; i < n; i++) {
                int size = snprintf(payload, sizeof(payload),
                                    "{\"ended\":%" PRIu64 ",\"session\":\"bench\",\"provider\":\"anthropic\",\"credential\":\"ANTHROPIC_API_KEY\","
                                    "\"host\":\"api.example.com\",\"method\":\"POST\",\"path\":\"/v1/messages/batches/%u\",\"query\":0,\"status\":200,"
                                    "\"duration\":%u,\"up\":%u,\"down\":%u,\"outcome\":\"completed\"}",
                                    now_realtime(), i, 100000 + i, 2000 + i, 30000 + i);
                spool_encode(SPOOL_RECEIPT, payload, (size_t) size, record);
                int r = write_all(fd, record, SPOOL_HEADER_SIZE + (size_t) size);
                if (r < 0)
                        return r;
        }
        return 0;
}

/* µs, or a negative errno. */
static int64_t ingest_once(const char *directory, int fd, uint64_t expected) {
        const IngestHandler handler = {.grant_used = no_use, .warn = warn};
        _cleanup_(store_closep) Store *store = NULL;
        _cleanup_free_ char *problem = NULL;
        IngestReport report;

        int r = store_open(directory, &store, &problem);
        if (r < 0)
                return r;
        r = store_collect(store, "bench");
        if (r < 0)
                return r;
        usec_t start = now_monotonic();
        r = ingest_spool(store, "bench", fd, true, &handler, &report);
        if (r < 0)
                return r;
        return report.receipts == expected ? (int64_t) (now_monotonic() - start) : -EIO;
}

static int remove_all(const char *directory) {
        static const char *const names[] = {"spool", "receipts.db", "receipts.db-wal", "receipts.db-shm"};
        char path[256];

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
                (void) unlink(path);
        }
        return rmdir(directory);
}

int main(int argc, char **argv) {
        char directory[] = "/tmp/errand-bench-ingest.XXXXXX", path[256];
        uint64_t n = 50000;
        int64_t r = 0;

        if (argc > 2 || (argc == 2 && parse_u64(argv[1], 10000000, &n) < 0) || !mkdtemp(directory)) {
                fprintf(stderr, "usage: bench-ingest [RECEIPTS]\n");
                return 1;
        }
        (void) snprintf(path, sizeof(path), "%s/spool", directory);
        _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        r = fd < 0 ? -errno : fill(fd, (unsigned) n);
        for (unsigned i = 0; i < ROUNDS && r >= 0; i++) {
                r = ingest_once(directory, fd, n);
                if (r > 0)
                        printf("ingest: %" PRIu64 " receipts in %.2f s: %.0f a second (target 20000)\n", n, (double) r / 1e6,
                               (double) n * 1e6 / (double) r);
        }
        if (r < 0)
                fprintf(stderr, "bench-ingest: %s\n", strerror((int) -r));
        if (remove_all(directory) < 0)
                fprintf(stderr, "bench-ingest: %s stays: %s\n", directory, strerror(errno));
        return r < 0;
}
