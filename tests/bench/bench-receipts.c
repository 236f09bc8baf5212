/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Receipts a second from the loop's thread into a spool on disk, synced. The target is 20 000. */

#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "broker/receipts.h"

#define TOTAL 200000U

static int make_provider(Provider *p) {
        static const char key[] = "sk-real-key-0123456789", stand_in[] = "errand-session-00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff";

        *p = (Provider){.id = (char *) "anthropic", .credential_name = (char *) "ANTHROPIC_API_KEY", .base_path = (char *) "",
                        .host = {.kind = HOST_NAME, .name = "api.example.com"}, .port = 443};
        int r = secret_new(key, sizeof(key) - 1, &p->key);
        return r < 0 ? r : secret_new(stand_in, sizeof(stand_in) - 1, &p->stand_in);
}

int main(void) {
        static const char path[] = "/v1/messages/batches/msgbatch_013Zva2CMHLNnXjNJJKqJ2EF";
        char name[] = "/var/tmp/errand-bench-XXXXXX";
        uint64_t full = 0;
        Receipts *r = NULL;
        Provider p;

        int fd = mkostemp(name, O_CLOEXEC | O_APPEND);
        int watch = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
        (void) unlink(name);
        if (watch < 0 || make_provider(&p) < 0 || receipts_new("bench", fd, &r) < 0)
                return 1;
        usec_t start = now_monotonic();
        for (unsigned i = 0; i < TOTAL;) {
                const Receipt receipt = {.provider = &p, .method = "POST", .path = {path, sizeof(path) - 1}, .status = 200, .started = now_monotonic(),
                                         .bytes_up = 2000, .bytes_down = 30000, .outcome = RECEIPT_COMPLETED};
                if (receipts_add(r, &receipt))
                        i++;
                else { /* the queue is full: a loop would have dropped this one */
                        full++;
                        (void) nanosleep(&(const struct timespec){.tv_nsec = 1000000}, NULL);
                }
        }
        usec_t added = now_monotonic() - start;
        receipts_free(r); /* writes and syncs the rest */
        usec_t taken = now_monotonic() - start;
        off_t size = lseek(watch, 0, SEEK_END);
        printf("%u receipts, %.1f MB: added in %.2f s, on disk after %.2f s: %.0f a second; the queue was full %llu times\n", TOTAL, (double) size / 1e6,
               (double) added / 1e6, (double) taken / 1e6, TOTAL / ((double) taken / 1e6), (unsigned long long) full);
        secret_free(p.key);
        secret_free(p.stand_in);
        (void) close(watch);
        return 0;
}
