/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/stat.h>
#include <unistd.h>

#include "bailey/trust-store.h"
#include "policy-fixture.h"

static const uint8_t one[SHA256_SIZE] = {1}, two[SHA256_SIZE] = {2};
static char *problem;

static const char *directory(void) {
        return at("config/bailey");
}

static int change(const char *path, const uint8_t *digest) {
        free(problem);
        problem = NULL;
        return trust_store_change(directory(), getuid(), path, digest, &problem);
}

static TrustStore *load(void) {
        TrustStore *store = NULL;

        free(problem);
        problem = NULL;
        CHECK_INT(trust_store_load(directory(), getuid(), &store, &problem), 0);
        return store;
}

static void test_round_trip(void) {
        static const char *const paths[] = {"/a/bailey.toml", "/a\nb/bailey.toml", "/a\\nb/bailey.toml", "/a\\/bailey.toml", "/\n\\\n",
                                            "/\xff\xfe", "/ /  "};
        TrustStore *store = load();

        CHECK_INT(store->n, 0);
        trust_store_free(store);
        for (size_t i = 0; i < ELEMENTSOF(paths); i++)
                CHECK_INT(change(paths[i], one), 1);
        store = load();
        CHECK_INT(store->n, ELEMENTSOF(paths));
        for (size_t i = 0; i < ELEMENTSOF(paths); i++) {
                CHECK_STR(store->entries[i].path, paths[i]);
                CHECK(memcmp(store->entries[i].digest, one, SHA256_SIZE) == 0);
        }
        trust_store_free(store);
}

static void test_one_a_path(void) {
        CHECK_INT(change("/x", one), 1);
        CHECK_INT(change("/x", two), 1);
        TrustStore *store = load();
        const TrustEntry *e = trust_store_find(store, "/x");
        CHECK(e && memcmp(e->digest, two, SHA256_SIZE) == 0);
        trust_store_free(store);
        CHECK_INT(change("/x", NULL), 1);
        CHECK_INT(change("/x", NULL), 0);
        store = load();
        CHECK(!trust_store_find(store, "/x"));
        trust_store_free(store);
}

static void test_forget(void) {
        CHECK_INT(change("/p", two), 1);
        CHECK_INT(change("/q", two), 1);
        CHECK_INT(trust_store_forget(directory(), getuid(), two, &problem), 2);
        CHECK_INT(trust_store_forget(directory(), getuid(), two, &problem), 0);
        TrustStore *store = load();
        CHECK(!trust_store_find(store, "/p") && trust_store_find(store, "/a/bailey.toml"));
        trust_store_free(store);
}

static void test_debris(void) {
        /* Of a writer that died: it is in nobody's way, and a link is not written through. */
        make_link("/nonexistent/victim", "config/bailey/.trusted.new");
        CHECK_INT(change("/y", one), 1);
        struct stat st;
        CHECK_INT(lstat(at("config/bailey/.trusted.new"), &st), -1);
        CHECK(lstat(at("config/bailey/trusted"), &st) == 0 && S_ISREG(st.st_mode) && (st.st_mode & 07777) == 0600);
}

static void test_not_writable(void) {
        /* A directory cannot be replaced by a file: nothing is lost, and the error is the system's. */
        CHECK(rename(at("config/bailey/trusted"), at("kept")) == 0);
        make_directory("config/bailey/trusted");
        TrustStore *store = NULL;
        CHECK_INT(trust_store_load(directory(), getuid(), &store, &problem), -EBADMSG);
        CHECK(!store && strstr(problem, "is no file, so nothing is trusted"));
        CHECK_INT(change("/z", one), -EBADMSG);
        CHECK(rmdir(at("config/bailey/trusted")) == 0 && rename(at("kept"), at("config/bailey/trusted")) == 0);
}

int main(void) {
        fixture_make();
        RUN(test_round_trip, "C106 C027: any path goes into the store and comes back");
        RUN(test_one_a_path, "C104: a path has one accepted text, the last");
        RUN(test_forget, "C106: what has a digest is taken out by it");
        RUN(test_debris, "a store that was half written is none");
        RUN(test_not_writable, "C106: a store that is no file holds nothing and is not replaced");
        free(problem);
        return TEST_END();
}
