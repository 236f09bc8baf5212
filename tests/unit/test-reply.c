/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/reply.h"
#include "test.h"

static ReplyType parse(const char *s) {
        char text[REPLY_TEXT_MAX + 1];
        return reply_parse(s, strlen(s), text);
}

static void test_ready(void) {
        static const char *const good[] = {
                "{\"v\":1,\"type\":\"ready\"}", "{\"type\":\"ready\",\"v\":1}", " { \"v\" : 1 , \"type\" : \"ready\" } \n",
                "{\"v\":1,\"type\":\"ready\",\"more\":true,\"less\":null,\"n\":-1.5e3}", "{\"v\":1,\"type\":\"re\\u0061dy\"}",
        };
        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                if (parse(good[i]) != REPLY_READY)
                        test_fail(__FILE__, __LINE__, "refused: %s", good[i]);
}

static void test_error(void) {
        char text[REPLY_TEXT_MAX + 1];
        static const char message[] = "{\"v\":1,\"type\":\"error\",\"text\":\"no \\\"token\\\"\\n\\u001b\\u00e9\"}";

        CHECK_INT(reply_parse(message, sizeof(message) - 1, text), REPLY_ERROR);
        CHECK_STR(text, "no \"token\"\n\033?");
        CHECK_INT(parse("{\"v\":1,\"type\":\"error\"}"), REPLY_ERROR);
}

static void test_long_text(void) {
        char message[3000], text[REPLY_TEXT_MAX + 1];
        int n = snprintf(message, sizeof(message), "{\"v\":1,\"type\":\"error\",\"text\":\"%02000d\"}", 0);

        CHECK_INT(reply_parse(message, (size_t) n, text), REPLY_ERROR);
        CHECK_INT(strlen(text), REPLY_TEXT_MAX);
}

static void test_invalid(void) {
        static const char *const bad[] = {
                "", "{", "{}", "ready", "[]", "null", "{\"type\":\"ready\"}", "{\"v\":2,\"type\":\"ready\"}",
                "{\"v\":\"1\",\"type\":\"ready\"}", "{\"v\":1,\"type\":\"Ready\"}", "{\"v\":1,\"type\":\"ready\"",
                "{\"v\":1,\"type\":\"ready\"}}", "{\"v\":1,\"type\":\"ready\"}{", "{\"v\":1,\"type\":\"ready\",}",
                "{\"v\":1 \"type\":\"ready\"}", "{\"v\":1,\"type\":\"ready-or-not-here-i-come\"}", "{\"v\":1,\"type\":ready}",
                "{\"v\":1,\"type\":\"rea\\qdy\"}", "{\"v\":1,\"type\":\"rea\\u00", "{\"v\":1,\"type\":[\"ready\"]}",
                "{\"v\":1,\"type\":{\"type\":\"ready\"}}", "{\"v\":1,\"type\":\"ready\n\"}", "{\"v\":1,\"type\":\"listeners\"}",
                "{\"v\":,\"type\":\"ready\"}", "{\"v\":11,\"type\":\"ready\"}",
        };
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                if (parse(bad[i]) != _REPLY_TYPE_INVALID)
                        test_fail(__FILE__, __LINE__, "taken: %s", bad[i]);
}

/* Every beginning of a good answer, in memory of exactly its size so that a sanitizer sees a read beyond it. */
static void test_cut(void) {
        static const char message[] = "{\"v\":1,\"type\":\"error\",\"text\":\"a\\u0041\\n\"}";
        char text[REPLY_TEXT_MAX + 1];

        for (size_t n = 0; n < sizeof(message) - 1; n++) {
                char *copy = malloc(n + (n == 0));
                CHECK(copy);
                memcpy(copy, message, n);
                ReplyType t = reply_parse(copy, n, text);
                free(copy);
                CHECK_INT(t, _REPLY_TYPE_INVALID);
        }
}

int main(void) {
        RUN(test_ready, "a broker's ready");
        RUN(test_error, "a broker's error");
        RUN(test_long_text, "a long text is cut");
        RUN(test_invalid, "anything else is no answer");
        RUN(test_cut, "a cut answer is no answer");
        return TEST_END();
}
