/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "broker/keys.h"
#include "broker/setup.h"
#include "fuzz.h"
#include "shared/json-check.h"

/* Input: a message, and after a NUL the content of its memfd of keys. The message gets as many descriptors as it names, the keys first. */

#define FDS_MAX 4

static void open_fds(int *fds, size_t n, const char *keys, size_t size) {
        for (size_t i = 0; i < n; i++) {
                if (i == 0)
                        fds[i] = memfd_new_sealed("keys", keys, size);
                else {
                        fds[i] = memfd_create("file", MFD_CLOEXEC);
                        HOLDS(i != 2 || write(fds[i], "-----BEGIN CERTIFICATE-----\n", 28) == 28);
                        HOLDS(lseek(fds[i], 0, SEEK_SET) == 0 && fcntl(fds[i], F_SETFL, O_APPEND) == 0);
                }
                HOLDS(fds[i] >= 0);
        }
}

static bool holds_secret(const char *text, const Secret *secret) {
        return secret && secret_size(secret) >= 8 && strstr(text, secret_data(secret));
}

/* A sentence about a message repeats no secret, but for one that the message itself gives away as a name. */
static void check_silence(const char *problem, const char *message, const char *keys, size_t size) {
        int fd = memfd_new_sealed("keys", keys, size);
        Keys *k = NULL;

        HOLDS(fd >= 0);
        if (keys_read(fd, &k, NULL) == 0) {
                HOLDS(!holds_secret(problem, k->credential) || strstr(message, secret_data(k->credential)));
                for (size_t i = 0; i < k->n_entries; i++) {
                        HOLDS(!holds_secret(problem, k->entries[i].key) || strstr(message, secret_data(k->entries[i].key)));
                        HOLDS(!holds_secret(problem, k->entries[i].stand_in) || strstr(message, secret_data(k->entries[i].stand_in)));
                }
                keys_free(k);
        }
        close(fd);
}

static void check_setup(const Setup *s) {
        char buffer[HOST_NAME_MAX_BYTES + 3];
        HostPattern pattern;

        HOLDS(s->session && strlen(s->session) > 0 && strlen(s->session) <= 28 && secret_size(s->token) == 64 && secret_size(s->credential) > 0);
        for (size_t i = 0; i < s->n_allow; i++)
                HOLDS(host_pattern_parse(host_pattern_format(s->allow + i, buffer), &pattern, NULL) == 0);
        for (size_t i = 0; i < s->n_allow_internal; i++)
                HOLDS(!streq_ptr(address_classify(s->allow_internal + i), "cloud-fabric"));
        for (size_t i = 0; i < s->n_ports; i++)
                HOLDS(s->ports[i] > 0);
        for (size_t i = 0; i < s->n_providers; i++) {
                const Provider *p = s->providers + i;
                HOLDS(provider_id_valid(p->id, strlen(p->id)) && setup_find_provider(s, (Slice){p->id, strlen(p->id)}) == p);
                HOLDS(p->key && p->stand_in && p->credential_name && p->base_path && p->port > 0 && p->host.name[0]);
                HOLDS(p->tls || p->refusal || s->n_allow_internal > 0);
                HOLDS(!*p->base_path || (p->base_path[0] == '/' && p->base_path[strlen(p->base_path) - 1] != '/'));
        }
}

static int try_with(const char *text, size_t size, const char *keys, size_t n_keys, size_t n_fds) {
        char *problem = NULL;
        int fds[FDS_MAX];
        Message *m = NULL;
        Setup *s = NULL;

        open_fds(fds, n_fds, keys, n_keys);
        int r = message_parse(text, size, fds, n_fds, &m, &problem);
        HOLDS(r == 0 || r == -EBADMSG);
        HOLDS((r < 0) == (problem != NULL) && (r < 0) == (m == NULL));
        /* Two readers, one verdict: what the check takes, the library takes. */
        if (r < 0)
                HOLDS(!streq(problem, "the message cannot be read: not valid JSON"));
        if (r == 0) {
                HOLDS(json_check(text, size, MESSAGE_DEPTH_MAX, NULL) == 0);
                int q = setup_parse(m, &s, &problem);
                HOLDS(q == 0 || q == -EBADMSG);
                HOLDS((q < 0) == (problem != NULL) && (q < 0) == (s == NULL));
                if (q < 0)
                        check_silence(problem, text, keys, n_keys);
                else
                        check_setup(s);
                m = message_free(m);
        }
        s = setup_free(s);
        for (size_t i = 0; i < n_fds; i++)
                HOLDS(fcntl(fds[i], F_GETFD) < 0);
        free(problem);
        return r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const uint8_t *nul = size > 0 ? memchr(data, 0, size) : NULL;
        size_t n = nul ? (size_t) (nul - data) : size, n_keys = nul ? size - n - 1 : 0;
        char *text = malloc(n + 1);
        HOLDS(text);

        if (n > 0)
                memcpy(text, data, n);
        text[n] = 0;
        const char *keys = nul ? (const char *) nul + 1 : "";
        for (size_t n_fds = 0; n_fds <= FDS_MAX; n_fds++)
                if (try_with(text, n, keys, n_keys, n_fds) == 0)
                        break;
        free(text);
        return 0;
}
