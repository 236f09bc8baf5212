/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker/client-hello.h"
#include "fuzz.h"

static int judge(const uint8_t *data, size_t size, size_t piece, char *ret_name) {
        _cleanup_(client_hello_freep) ClientHello *h = NULL;
        Host host;
        int found = CLIENT_HELLO_MORE;

        HOLDS(host_parse("api.example.com", &host, NULL) == 0 && client_hello_new(&host, true, &h) == 0);
        for (size_t at = 0; at < size && found == CLIENT_HELLO_MORE; at += piece) {
                found = client_hello_feed(h, (const char *) data + at, MIN(piece, size - at));
                HOLDS(h->size <= CLIENT_HELLO_MAX && h->room <= CLIENT_HELLO_MAX);
        }
        strcpy(ret_name, h->name);
        return found;
}

/* In whatever pieces it comes, it is found to be the same. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        char whole[HOST_NAME_MAX_BYTES + 1], cut[HOST_NAME_MAX_BYTES + 1];

        int found = judge(data, size, size > 0 ? size : 1, whole);
        HOLDS(found >= 0 && found < _CLIENT_HELLO_FINDING_MAX);
        int again = judge(data, size, size > 0 ? (size_t) data[size - 1] % 61 + 1 : 1, cut);
        HOLDS(found == again && strcmp(whole, cut) == 0);
        return 0;
}
