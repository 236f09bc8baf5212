/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "broker/socks5.h"
#include "fuzz.h"

/* Whatever n bytes say, n + 1 bytes that begin so do not take back: the answer comes with a byte and stays. */

static ssize_t check_greeting(const char *data, size_t size) {
        const char *problem = NULL;
        bool password = false;

        ssize_t r = socks5_parse_greeting(data, size, &password, &problem);
        HOLDS(r == -EBADMSG || (r >= 0 && (size_t) r <= size));
        HOLDS((r < 0) == (problem != NULL));
        HOLDS(r > 0 || !password);
        return r;
}

static ssize_t check_credential(const char *data, size_t size) {
        const char *problem = NULL;
        Slice user = {}, password = {};

        ssize_t r = socks5_parse_credential(data, size, &user, &password, &problem);
        HOLDS(r == -EBADMSG || (r >= 0 && (size_t) r <= size));
        HOLDS((r < 0) == (problem != NULL));
        if (r > 0)
                HOLDS(user.data == data + 2 && user.size > 0 && password.size > 0 && password.data + password.size == data + r);
        return r;
}

static ssize_t check_request(const char *data, size_t size) {
        const char *problem = NULL;
        uint16_t port = 0;
        Host host, again;

        ssize_t r = socks5_parse_request(data, size, &host, &port, &problem);
        HOLDS(r == -EBADMSG || r == -EOPNOTSUPP || r == -EAFNOSUPPORT || r == -ERANGE || (r >= 0 && (size_t) r <= size));
        HOLDS((r < 0) == (problem != NULL));
        if (r > 0) {
                HOLDS(port > 0 && data[1] == 1 && data[2] == 0);
                HOLDS(host_parse(host.name, &again, NULL) == 0 && again.kind == host.kind && streq(again.name, host.name));
        }
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        ssize_t (*const checks[])(const char *data, size_t size) = {check_greeting, check_credential, check_request};

        if (size > 600)
                return 0;
        for (size_t i = 0; i < ELEMENTSOF(checks); i++) {
                ssize_t before = 0;
                for (size_t n = 0; n <= size; n++) {
                        char *exact = malloc(MAX(n, (size_t) 1)); /* of the size itself, for a sanitizer to see a byte too many */
                        HOLDS(exact);
                        memcpy(exact, data, n);
                        ssize_t r = checks[i](exact, n);
                        HOLDS(before == 0 || r == before);
                        before = r;
                        free(exact);
                }
        }
        return 0;
}
