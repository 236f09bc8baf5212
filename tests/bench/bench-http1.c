/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/clock.h"
#include "broker/http1.h"

/* What a head costs: found, parsed, and each field asked whether it ends at this hop. */

static const char request[] =
        "POST http://127.0.0.1:3128/provider/anthropic/v1/messages?beta=true HTTP/1.1\r\nHost: 127.0.0.1:3128\r\nAccept: application/json\r\n"
        "Content-Type: application/json\r\nUser-Agent: client/1.2.3 (linux; x64)\r\nAuthorization: Bearer errand-session-0f3a9c2b7d8e4165aa07c3d1e9f2b846\r\n"
        "X-Stainless-Lang: js\r\nX-Stainless-Retry-Count: 0\r\nConnection: keep-alive\r\nAccept-Encoding: gzip, deflate\r\nContent-Length: 48213\r\n\r\n";
static const char answer[] =
        "HTTP/1.1 200 OK\r\nDate: Mon, 01 Jan 2024 00:00:00 GMT\r\nContent-Type: text/event-stream; charset=utf-8\r\nTransfer-Encoding: chunked\r\n"
        "Connection: keep-alive\r\nCache-Control: no-cache\r\nRequest-Id: req_0123456789\r\nRateLimit-Remaining: 3999\r\nServer: x\r\n\r\n";

static void measure(const char *name, const char *text, size_t size, bool response, unsigned rounds) {
        Http1Head h;
        size_t kept = 0;
        usec_t start = now_monotonic();

        for (unsigned i = 0; i < rounds; i++) {
                ssize_t n = http1_find_head_end(text, size, NULL);
                if (n <= 0 || (response ? http1_parse_response : http1_parse_request)(text, (size_t) n, &h, NULL) < 0)
                        exit(1);
                for (size_t k = 0; k < h.n_fields; k++)
                        kept += !http1_is_hop_by_hop(&h, h.fields + k);
        }
        usec_t taken = now_monotonic() - start;
        printf("%-28s %8.2f us (%zu bytes, %zu of %zu fields kept)\n", name, (double) taken / rounds, size, kept / rounds, h.n_fields);
}

int main(void) {
        char *worst = malloc(HTTP1_HEAD_MAX), *p = stpcpy(worst, "GET / HTTP/1.1\r\nHost: h\r\nConnection: ");

        /* As many fields and as many options as there may be. */
        for (unsigned i = 0; i < 32; i++)
                p = stpcpy(p, i ? ",a" : "a");
        for (unsigned i = 2; i < HTTP1_FIELDS_MAX; i++)
                p = stpcpy(p, "\r\nb: c");
        strcpy(p, "\r\n\r\n");

        measure("request", request, sizeof(request) - 1, false, 200000);
        measure("answer", answer, sizeof(answer) - 1, true, 200000);
        measure("most options and fields", worst, strlen(worst), false, 200);

        p = stpcpy(worst, "GET / HTTP/1.1\r\nHost: h\r\nX: ");
        memset(p, 'x', HTTP1_HEAD_MAX - (size_t) (p - worst) - 4);
        memcpy(worst + HTTP1_HEAD_MAX - 4, "\r\n\r\n", 4);
        measure("64 KiB of one field", worst, HTTP1_HEAD_MAX, false, 2000);
        free(worst);
        return 0;
}
