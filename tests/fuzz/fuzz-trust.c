/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/trust-store.h"
#include "fuzz.h"

/* A store of any bytes: it is read whole or refused whole, and what it holds are absolute paths, each once. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        TrustStore *store = NULL;

        int r = trust_store_parse((const char *) data, size, &store);
        if ((r < 0) == !!store || (r < 0 && r != -EBADMSG && r != -ENOMEM))
                abort();
        for (size_t i = 0; store && i < store->n; i++)
                if (store->entries[i].path[0] != '/' || trust_store_find(store, store->entries[i].path) != &store->entries[i])
                        abort();
        trust_store_free(store);
        return 0;
}
