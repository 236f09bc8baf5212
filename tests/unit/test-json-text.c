/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shared/json-text.h"
#include "test.h"

static void test_good(void) {
        static const char *const good[] = {
                "{}", "[]", " { } ", "\t[\n]\r", "0", "-0", "12", "-1.5e+3", "1E2", "0.0", "\"\"", "\"a\"", "true", "false", "null", "[1,2]", "[[],{}]", "{\"a\":1,\"b\":[{\"c\":null}]}",
                "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\uD83d\\uDE00\"", "\"\x7f\"", "{\"\":\"\"}", "{ \"a\" : [ 1 , 2 ] , \"b\" : { } }", "\"\xc3\xa9\"", "[\"]\",\"{\"]",
                "\" \"", "\"\\u00ff\\uFFFF\\uaaaa\\u9999\\ud7ff\\ue000\"", "\"\\ud800\\udc00\\udbff\\udfff\"",
        };
        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                if (json_text_check(good[i], strlen(good[i]), 16) != 0)
                        test_fail(__FILE__, __LINE__, "%s was refused", good[i]);
}

static void test_bad(void) {
        static const char *const bad[] = {
                "", " ", "{", "}", "[", "]", "{}{}", "{} x", "[1,]", "[,1]", "[1 2]", "{\"a\":1,}", "{,}", "{\"a\"}", "{\"a\":}", "{\"a\" 1}", "{a:1}", "{'a':1}", "{\"a\":'b'}", "{1:2}",
                "/* c */{}", "{}/* c */", "{}//", "var a = {}", "[}", "{]", "[[]", "[]]", "01", "+1", "1.", ".5", "1e", "1e+", "-", "--1", "0x1", "1_0", "NaN", "Infinity", "True", "tru", "truex",
                "nul", "\"", "\"a", "\"a\n\"", "\"\t\"", "\"\x01\"", "\"\\\"", "\"\\x41\"", "\"\\0\"", "\"\\q\"", "\"\\u0000\"", "\"\\udfff\"", "\"\\udbff\"", "\"\\ud800\\n0041\"", "\"\\ud800xudc00\"", "\"\\ud800\\udbff\"", "\"\\ud800\\ue000\"", "\"\\u000g\"", "\"\\u/000\"", "\"\\u12\"", "\"\\u12g4\"", "\"\\ud800\"", "\"\\udc00\"",
                "\"\\ud800\\u0041\"", "\"\\ud800x\"", "\"\\ud800\\\"", "\"\\u", "\"\\ud800\\ud800\"", "{\"a\":1:2}", "[1:2]", ",", ":", "\xef\xbb\xbf{}", "{\"a\",\"b\"}", "[\"a\":1]", "1,2",
        };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                if (json_text_check(bad[i], strlen(bad[i]), 16) != -EBADMSG)
                        test_fail(__FILE__, __LINE__, "%s was taken", bad[i]);
        CHECK_INT(json_text_check("{}\0", 3, 16), -EBADMSG);
        CHECK_INT(json_text_check("\"\\\0\"", 4, 16), -EBADMSG);
}

static void test_depth(void) {
        char text[256];

        for (unsigned max = 1; max <= JSON_TEXT_DEPTH_MAX; max++)
                for (unsigned n = max; n <= max + 1; n++) {
                        memset(text, '[', n);
                        memset(text + n, ']', n);
                        CHECK_INT(json_text_check(text, 2 * n, max), n > max ? -E2BIG : 0);
                }
        /* asked for more than there is room for */
        memset(text, '[', 65);
        memset(text + 65, ']', 65);
        CHECK_INT(json_text_check(text, 130, 1000), -E2BIG);
}

static void test_nesting(void) {
        /* kinds are remembered at every depth */
        CHECK_INT(json_text_check("[{\"a\":[{\"b\":[]}]},[]]", 21, 16), 0);
        CHECK_INT(json_text_check("[{\"a\":[{\"b\":[]]}},[]]", 21, 16), -EBADMSG);
}

int main(void) {
        RUN(test_good, "JSON texts");
        RUN(test_bad, "what only looks like JSON");
        RUN(test_depth, "depth");
        RUN(test_nesting, "brackets match");
        return TEST_END();
}
