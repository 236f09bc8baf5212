/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "shared/capability.h"
#include "test.h"

static bool covers(const char *method, const char *pattern, const char *asked_method, const char *path) {
        const Capability c = {(char *) method, (char *) pattern};
        return capability_covers(&c, asked_method, strlen(asked_method), path, strlen(path));
}

static void test_paths(void) {
        static const struct {
                const char *pattern, *path;
                bool covered;
        } rows[] = {
                {"/v1/messages", "/v1/messages", true},
                {"/v1/messages", "/v1/messages?beta=true", true},
                {"/v1/messages", "/v1/messages?/x", true},
                {"/v1/messages", "/v1/message", false},
                {"/v1/messages", "/v1/messagesx", false},
                {"/v1/messages", "/v1/messages/count_tokens", false},
                {"/v1/messages", "/v1/Messages", false},
                {"/v1/messages", "/v1", false},
                {"/v1/messages", "", false},
                /* S098: as sent, before any decoding, and never the query */
                {"/v1/models", "/v1/%6dodels", false},
                {"/v1/%6dodels", "/v1/%6dodels", true},
                {"/v1/%6dodels", "/v1/models", false},
                {"/v1/models", "/v1?x=/v1/models", false},
                {"/v1/models", "?/v1/models", false},
                /* the root */
                {"/", "", true}, {"/", "/", true}, {"/", "?x", true}, {"/", "/?x", true}, {"/", "/a", false},
                /* S099: one segment */
                {"/*", "/a", true}, {"/*", "/", false}, {"/*", "", false}, {"/*", "/a/b", false}, {"/v1/*", "/v1/models", true},
                {"/v1/*", "/v1", false}, {"/v1/*/x", "/v1/a/x", true}, {"/v1/*/x", "/v1/a/b/x", false}, {"/*/*", "/a/b", true},
                {"/*/*", "/a", false}, {"/*", "//", false}, {"/*", "/a/", false}, {"/a", "/a/", false},
                /* any number, none included */
                {"/**", "", true}, {"/**", "/", true}, {"/**", "/a", true}, {"/**", "/a/b/c", true}, {"/v1/**", "/v1", true},
                {"/v1/**", "/v1/a/b", true}, {"/v1/**", "/v2", false}, {"/v1/**", "/v11", false}, {"/**/x", "/x", true},
                {"/**/x", "/a/b/x", true}, {"/**/x", "/a/b/xx", false}, {"/**/x", "/a/x/b", false}, {"/a/**/b", "/a/b", true},
                {"/a/**/b", "/a/b/c/b", true}, {"/a/**/b", "/a/b/c", false}, {"/**/a/*/b/**", "/x/a/y/b", true},
                {"/**/a/*/b/**", "/a/a/b/b", true}, {"/**/a/*/b/**", "/a/a/b", true}, {"/**/a/*/b/**", "/a/b/b/c", true},
                {"/**/a/*/b/**", "/a/b/c", false}, {"/**/**", "/", true}, {"/**/*", "/", false}, {"/**/*", "/a/b", true}, {"/*/**", "/a", true},
                {"/*/**", "", false},
                /* what the path hygiene refuses is covered by nothing but a "**" either */
                {"/a", "a", false}, {"/**", "a", false},
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (covers("GET", rows[i].pattern, "GET", rows[i].path) != rows[i].covered)
                        test_fail(__FILE__, __LINE__, "%s %s %s", rows[i].pattern, rows[i].covered ? "does not cover" : "covers", rows[i].path);
}

static void test_methods(void) {
        CHECK(covers("POST", "/a", "POST", "/a"));
        CHECK(!covers("POST", "/a", "GET", "/a"));
        CHECK(!covers("POST", "/a", "post", "/a"));
        CHECK(!covers("POST", "/a", "POS", "/a"));
        CHECK(!covers("POST", "/a", "POSTS", "/a"));
        CHECK(covers("*", "/a", "BREW", "/a"));
        CHECK(!covers("GET", "/a", "HEAD", "/a"));

        const Capability list[] = {{(char *) "GET", (char *) "/a"}, {(char *) "POST", (char *) "/b"}};
        CHECK(capabilities_cover(list, 2, "POST", 4, "/b", 2));
        CHECK(!capabilities_cover(list, 2, "GET", 3, "/b", 2));
        CHECK(!capabilities_cover(NULL, 0, "GET", 3, "/b", 2));
}

static void test_time(void) {
        char pattern[CAPABILITY_PATH_MAX + 1] = "", path[16384] = "";

        for (unsigned i = 0; i < 200; i++)
                strcat(pattern, "/**/a");
        strcat(pattern, "/b");
        for (unsigned i = 0; i < 8000; i++)
                memcpy(path + (size_t) 2 * i, "/a", 3);
        CHECK(!capability_path_problem(pattern));
        CHECK(!covers("*", pattern, "GET", path)); /* done before anybody notices */
}

static void test_entries(void) {
        static const struct {
                const char *method, *path, *entry;
        } rows[] = {
                {"POST", "/v1/messages?beta=true", "{\"method\":\"POST\",\"path\":\"/v1/messages\"}"},
                {"GET", "", "{\"method\":\"GET\",\"path\":\"/\"}"},
                {"GET", "/", "{\"method\":\"GET\",\"path\":\"/\"}"},
                {NULL, "/a", "{\"method\":\"*\",\"path\":\"/a\"}"},
                {"GET", "/a/b*c/d", "{\"method\":\"GET\",\"path\":\"/a/*/d\"}"},
                {"GET", "/a/**", "{\"method\":\"GET\",\"path\":\"/a/*\"}"},
                {"GET", "/a/x[redacted]y/b", "{\"method\":\"GET\",\"path\":\"/a/*/b\"}"},
                {"GET", "/a\"b", "{\"method\":\"GET\",\"path\":\"/a\\\"b\"}"},
        };
        char longest[4096];

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *entry = NULL;
                CHECK_INT(capability_entry(rows[i].method, rows[i].path, strlen(rows[i].path), &entry), 0);
                CHECK_STR(entry, rows[i].entry);
        }
        for (size_t size = CAPABILITY_PATH_MAX - 10; size < CAPABILITY_PATH_MAX + 10; size++) {
                _cleanup_free_ char *entry = NULL;
                char pattern[CAPABILITY_PATH_MAX + 8] = "";
                memset(longest, 'x', size);
                for (size_t k = 0; k < size; k += 100)
                        longest[k] = '/';
                longest[size - 1] = 'x';
                CHECK_INT(capability_entry("GET", longest, size, &entry), 0);
                CHECK_INT(sscanf(entry, "{\"method\":\"GET\",\"path\":\"%1031[^\"]\"}", pattern), 1);
                longest[size] = 0;
                if (capability_path_problem(pattern) || !covers("GET", pattern, "GET", longest))
                        test_fail(__FILE__, __LINE__, "%zu bytes: %s", size, pattern);
        }
}

static void test_problems(void) {
        static const char *const bad_methods[] = {"", "get", "Get", "GET ", "G*", "**", "G1", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"};
        static const char *const bad_paths[] = {"", "v1", "*", "/a//b", "/a/", "//", "/a/./b", "/..", "/a?b", "/a#b", "/a;b", "/a\\b", "/a b", "/a*", "/*a", "/***", "/\xc3\xa9"};

        for (size_t i = 0; i < ELEMENTSOF(bad_methods); i++)
                if (!capability_method_problem(bad_methods[i]))
                        test_fail(__FILE__, __LINE__, "method \"%s\" passed", bad_methods[i]);
        for (size_t i = 0; i < ELEMENTSOF(bad_paths); i++)
                if (!capability_path_problem(bad_paths[i]))
                        test_fail(__FILE__, __LINE__, "path \"%s\" passed", bad_paths[i]);
        CHECK(!capability_method_problem("*") && !capability_method_problem("M-SEARCH") && !capability_path_problem("/") && !capability_path_problem("/**/a/*"));
}

int main(void) {
        RUN(test_paths, "S097 S098 S099: what a path covers");
        RUN(test_methods, "S100: what a method covers");
        RUN(test_time, "S099: a list of many ** is judged in time");
        RUN(test_entries, "S103: the entry that would name a call is taken, and names it");
        RUN(test_problems, "S096 S100: what no entry may be");
        return TEST_END();
}
