/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shared/json-check.h"
#include "basic/text.h"
#include "test.h"

static int check(const char *text, JsonProblem *problem) {
        return json_check(text, strlen(text), 8, problem);
}

static void test_accepted(void) {
        static const char *const rows[] = {
                "{}", " [ ] ", "null", "\"\"", "-0", "0.5e-3", "1E+9", "999999999999999999", "-999999999999999999",
                "{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":2}]}", "\"\\u00e9\\ud83d\\ude00\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "[[[[[[[[]]]]]]]]",
                "\"\xc3\xa9\"", "{\"\":1}", "1e999", "[]", " { } ", "\t[\n]\r", "0", "12", "-1.5e+3", "1E2", "0.0", "\"a\"", "true", "false", "[1,2]",
                "[[],{}]", "{\"a\":1,\"b\":[{\"c\":null}]}", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u0041\\uD83d\\uDE00\"", "\"\x7f\"", "{\"\":\"\"}",
                "{ \"a\" : [ 1 , 2 ] , \"b\" : { } }", "[\"]\",\"{\"]", "\" \"", "\"\\u00ff\\uFFFF\\uaaaa\\u9999\\ud7ff\\ue000\"",
                "\"\\ud800\\udc00\\udbff\\udfff\"",
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                JsonProblem problem = {};
                if (check(rows[i], &problem) < 0)
                        test_fail(__FILE__, __LINE__, "%s: %s", rows[i], problem.text);
        }
}

static void test_refused(void) {
        static const char *const rows[] = {
                "", " ", "{", "}", "[1,]", "{\"a\":1,}", "{a:1}", "{'a':1}", "[1 2]", "{\"a\" 1}", "{\"a\":}", "// x\n{}", "/* x */{}", "#\n{}",
                "var x = {};", "{} {}", "01", "-", "1.", ".5", "1e", "0x10", "+1", "NaN", "Infinity", "nul", "True", "\"\t\"", "\"\\x41\"",
                "\"\\u12g4\"", "\"\\ud800\"", "\"\\udc00\"", "\"\\ud800\\u0041\"", "\"\\u0000\"", "\"abc", "\"abc\\", "\"\xff\"", "\"\xc0\xaf\"",
                "\xef\xbb\xbf{}", "[[[[[[[[[]]]]]]]]]", "1000000000000000000", "-18446744073709551616", "{\"a\":1,\"a\":2}",
                "{\"a\":1,\"\\u0061\":2}", "{\"x\":[{\"b\":1,\"c\":2,\"b\":3}]}", "{\"\\ud83d\\ude00\":1,\"\xf0\x9f\x98\x80\":2}", "[", "]", "{}{}",
                "{} x", "[,1]", "{,}", "{\"a\"}", "{\"a\":'b'}", "{1:2}", "/* c */{}", "{}/* c */", "{}//", "var a = {}", "[}", "{]", "[[]", "[]]",
                "1e+", "--1", "0x1", "1_0", "tru", "truex", "\"", "\"a", "\"a\n\"", "\"\x01\"", "\"\\\"", "\"\\0\"", "\"\\q\"", "\"\\udfff\"",
                "\"\\udbff\"", "\"\\ud800\\n0041\"", "\"\\ud800xudc00\"", "\"\\ud800\\udbff\"", "\"\\ud800\\ue000\"", "\"\\u000g\"", "\"\\u/000\"",
                "\"\\u12\"", "\"\\ud800x\"", "\"\\ud800\\\"", "\"\\u", "\"\\ud800\\ud800\"", "{\"a\":1:2}", "[1:2]", ",", ":", "{\"a\",\"b\"}",
                "[\"a\":1]", "1,2",
        };
        for (size_t i = 0; i < ELEMENTSOF(rows); i++)
                if (check(rows[i], NULL) != -EBADMSG)
                        test_fail(__FILE__, __LINE__, "accepted: %s", rows[i]);
        CHECK_INT(json_check("{}\0{}", 5, 8, NULL), -EBADMSG);
        CHECK_INT(json_check("{}\0", 3, 8, NULL), -EBADMSG);
        CHECK_INT(json_check("\"\\\0\"", 4, 8, NULL), -EBADMSG);
}

static void test_depth(void) {
        JsonProblem problem;
        char text[256];

        for (unsigned max = 1; max <= 65; max++) /* 65: more than there is room for */
                for (unsigned n = max; n <= max + 1; n++) {
                        memset(text, '[', n);
                        memset(text + n, ']', n);
                        CHECK_INT(json_check(text, 2 * n, max, &problem), n > MIN(max, 64U) ? -EBADMSG : 0);
                }
        CHECK_STR(problem.text, "nested deeper than 64");
        /* kinds are remembered at every depth */
        CHECK_INT(check("[{\"a\":[{\"b\":[]}]},[]]", NULL), 0);
        CHECK_INT(check("[{\"a\":[{\"b\":[]]}},[]]", NULL), -EBADMSG);
}

static void test_position(void) {
        JsonProblem problem;

        CHECK_INT(check("{\n \"mode\": 1,\n \"mode\": 2}", &problem), -EBADMSG);
        CHECK_INT(problem.line, 3);
        CHECK_STR(problem.text, "\"mode\" is given twice");
        CHECK_INT(check("{\"a\\u001b\":1,\"a\\u001b\":2}", &problem), -EBADMSG);
        CHECK_STR(problem.text, "\"a\\x1b\" is given twice");
}

static void test_many(void) {
        size_t size = 1 << 20, n = 0;
        char *text = malloc(size + 32);

        CHECK(text);
        text[n++] = '{';
        for (unsigned i = 0; n < size; i++)
                n += (size_t) sprintf(text + n, "%s\"%x\":0", i > 0 ? "," : "", i);
        text[n++] = '}';
        CHECK_INT(json_check(text, n, 8, NULL), -EBADMSG); /* at once, without a quadratic look at 80 000 names */
        memset(text, '[', size);
        CHECK_INT(json_check(text, size, 1000000, NULL), -EBADMSG);
        free(text);
}

static void test_same_as_json_glib(void) {
        static const char text[] = "{\"a\":\"\\u00e9\\ud83d\\ude00\\n\",\"n\":999999999999999999}";
        _cleanup_json_parser_ JsonParser *parser = NULL;
        JsonObject *object;

        CHECK_INT(json_read_object(text, strlen(text), 8, &parser, &object, NULL), 0);
        CHECK_STR(json_object_get_string_member(object, "a"), "\xc3\xa9\xf0\x9f\x98\x80\n");
        CHECK_INT(json_object_get_int_member(object, "n"), 999999999999999999);
        g_clear_object(&parser);
        CHECK_INT(json_read_object("[]", 2, 8, &parser, &object, NULL), -EBADMSG);
}

int main(void) {
        RUN(test_accepted, "JSON is accepted");
        RUN(test_refused, "comments, trailing commas, repeated names, big integers and what else is not JSON are refused");
        RUN(test_depth, "depth is limited, and brackets match");
        RUN(test_position, "a problem tells its line, and nothing that moves a terminal's cursor");
        RUN(test_many, "many members and great depth cost nothing");
        RUN(test_same_as_json_glib, "what is checked reads the same in json-glib");
        return TEST_END();
}
