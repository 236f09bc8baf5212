/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "basic/secret.h"

#define SECRET_SIZE_MAX (64U * 1024U)

struct Secret {
        size_t size;
        size_t mapped;
        char data[];
};

void secret_wipe(void *data, size_t size) {
        if (data)
                explicit_bzero(data, size);
}

static int secret_allocate(size_t size, Secret **ret) {
        size_t page = (size_t) sysconf(_SC_PAGESIZE);
        size_t mapped = (sizeof(Secret) + size + 1 + page - 1) / page * page;

        if (size > SECRET_SIZE_MAX)
                return -EMSGSIZE;
        Secret *s = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (s == MAP_FAILED)
                return -errno;
        /* Each of these is a second line behind not being dumpable; none is worth refusing a session for. */
        (void) mlock(s, mapped);
        (void) madvise(s, mapped, MADV_DONTDUMP);
        (void) madvise(s, mapped, MADV_WIPEONFORK);
        s->size = size;
        s->mapped = mapped;
        *ret = s;
        return 0;
}

int secret_new(const void *data, size_t size, Secret **ret) {
        Secret *s;
        int r = secret_allocate(size, &s);
        if (r < 0)
                return r;
        memcpy(s->data, data, size);
        s->data[size] = 0;
        *ret = s;
        return 0;
}

Secret *secret_free(Secret *s) {
        if (s) {
                size_t mapped = s->mapped;
                secret_wipe(s, mapped);
                (void) munmap(s, mapped);
        }
        return NULL;
}

const char *secret_data(const Secret *s) {
        return s->data;
}

size_t secret_size(const Secret *s) {
        return s->size;
}

int secret_mint(const char *prefix, size_t n_bytes, Secret **ret) {
        static const char hex[] = "0123456789abcdef";
        unsigned char random[64];
        size_t n_prefix = strlen(prefix);
        Secret *s;

        if (n_bytes > sizeof(random))
                return -EINVAL;
        if (getrandom(random, n_bytes, 0) != (ssize_t) n_bytes)
                return -EIO;
        int r = secret_allocate(n_prefix + 2 * n_bytes, &s);
        if (r >= 0) {
                memcpy(s->data, prefix, n_prefix);
                for (size_t i = 0; i < n_bytes; i++) {
                        s->data[n_prefix + 2 * i] = hex[random[i] >> 4];
                        s->data[n_prefix + 2 * i + 1] = hex[random[i] & 15];
                }
                s->data[s->size] = 0;
                *ret = s;
        }
        secret_wipe(random, sizeof(random));
        return r;
}
