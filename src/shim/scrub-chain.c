/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/fd.h"
#include "basic/secret.h"
#include "shim/limits.h"
#include "shim/scrub-chain.h"

struct SecretList {
        Secret *secrets[SECRETS_MAX];
        size_t n;
};

/* One scrubber a secret; the output of each is the input of the next. */
struct ScrubChain {
        size_t n;
        char *buffers[2];
        size_t rooms[2];
        Scrub *scrubs[];
};

SecretList *secret_list_free(SecretList *l) {
        for (size_t i = 0; l && i < l->n; i++)
                secret_free(l->secrets[i]);
        return mfree(l);
}

static int compare_longer(const void *a, const void *b) {
        size_t x = secret_size(*(Secret *const *) a), y = secret_size(*(Secret *const *) b);
        return (x < y) - (x > y);
}

static int split(SecretList *l, const char *data, size_t size) {
        if (size > 0 && data[size - 1] != 0)
                return -EINVAL;
        for (size_t at = 0; at < size; at += strlen(data + at) + 1) {
                size_t n = strlen(data + at);
                if (n < SCRUB_SECRET_MIN)
                        continue;
                if (l->n == SECRETS_MAX)
                        return -E2BIG;
                int r = secret_new(data + at, n, &l->secrets[l->n]);
                if (r < 0)
                        return r;
                l->n++;
        }
        qsort(l->secrets, l->n, sizeof(Secret *), compare_longer);
        return 0;
}

int secret_list_read(int fd, SecretList **ret) {
        _cleanup_(secret_list_freep) SecretList *l = calloc(1, sizeof(SecretList));
        _cleanup_free_ char *data = NULL;
        size_t size;

        if (!l)
                return -ENOMEM;
        int r = memfd_read_sealed(fd, SECRETS_BYTES_MAX, &data, &size);
        if (r < 0)
                return r;
        r = split(l, data, size);
        secret_wipe(data, size);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(l);
        return 0;
}

int scrub_chain_new(const SecretList *secrets, ScrubChain **ret) {
        _cleanup_(scrub_chain_freep) ScrubChain *c = calloc(1, sizeof(ScrubChain) + secrets->n * sizeof(Scrub *));

        if (!c)
                return -ENOMEM;
        for (; c->n < secrets->n; c->n++) {
                int r = scrub_new(secrets->secrets[c->n], &c->scrubs[c->n]);
                if (r < 0)
                        return r;
        }
        *ret = TAKE_PTR(c);
        return 0;
}

ScrubChain *scrub_chain_free(ScrubChain *c) {
        if (!c)
                return NULL;
        for (size_t i = 0; i < c->n; i++)
                scrub_free(c->scrubs[i]);
        for (size_t i = 0; i < ELEMENTSOF(c->buffers); i++) {
                if (c->buffers[i])
                        secret_wipe(c->buffers[i], c->rooms[i]);
                free(c->buffers[i]);
        }
        return mfree(c);
}

static int make_room(ScrubChain *c, size_t which, size_t size) {
        if (c->rooms[which] >= size)
                return 0;
        char *made = malloc(size);
        if (!made)
                return -ENOMEM;
        if (c->buffers[which])
                secret_wipe(c->buffers[which], c->rooms[which]);
        free(c->buffers[which]);
        c->buffers[which] = made;
        c->rooms[which] = size;
        return 0;
}

static int run(ScrubChain *c, const char *data, size_t size, bool finish, const char **ret, size_t *ret_size) {
        for (size_t i = 0; i < c->n; i++) {
                size_t which = i % 2;

                int r = make_room(c, which, scrub_bound(c->scrubs[i], size) + 1);
                if (r < 0)
                        return r;
                size_t n = scrub_push(c->scrubs[i], data, size, c->buffers[which]);
                if (finish)
                        n += scrub_finish(c->scrubs[i], c->buffers[which] + n);
                data = c->buffers[which];
                size = n;
        }
        *ret = data;
        *ret_size = size;
        return 0;
}

int scrub_chain_push(ScrubChain *c, const char *data, size_t size, const char **ret, size_t *ret_size) {
        return run(c, data, size, false, ret, ret_size);
}

int scrub_chain_finish(ScrubChain *c, const char **ret, size_t *ret_size) {
        return run(c, "", 0, true, ret, ret_size);
}

int scrub_chain_text(const SecretList *secrets, const char *text, char **ret) {
        _cleanup_(scrub_chain_freep) ScrubChain *c = NULL;
        const char *clean;
        size_t size;

        int r = scrub_chain_new(secrets, &c);
        if (r >= 0)
                r = run(c, text, strlen(text), true, &clean, &size);
        if (r < 0)
                return r;
        *ret = strndup(clean, size);
        return *ret ? 0 : -ENOMEM;
}
