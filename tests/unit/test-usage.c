/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "broker/usage.h"
#include "test.h"

/* Counts the text whole, and in pieces of every size up to 9 bytes: it must not matter. */
static void counts(const char *text, bool events, uint64_t tokens) {
        Usage u;

        usage_init(&u, events);
        usage_feed(&u, text, strlen(text));
        if (usage_tokens(&u) != tokens)
                test_fail(__FILE__, __LINE__, "%s counts %llu, not %llu", text, (unsigned long long) usage_tokens(&u), (unsigned long long) tokens);
        for (size_t piece = 1; piece < 10; piece++) {
                usage_init(&u, events);
                for (size_t at = 0; at < strlen(text); at += piece)
                        usage_feed(&u, text + at, MIN(piece, strlen(text) - at));
                CHECK_INT(usage_tokens(&u), tokens);
        }
}

static void test_json(void) {
        counts("{\"id\":\"m\",\"type\":\"message\",\"content\":[{\"type\":\"text\",\"text\":\"hi\"}],\"usage\":{\"input_tokens\":2095,"
               "\"cache_creation_input_tokens\":10,\"cache_read_input_tokens\":5,\"output_tokens\":503,\"service_tier\":\"standard\","
               "\"cache_creation\":{\"ephemeral_5m_input_tokens\":10,\"input_tokens\":9999}}}", false, 2613);
        counts("{\"object\":\"chat.completion\",\"choices\":[],\"usage\":{\"prompt_tokens\":19,\"completion_tokens\":10,\"total_tokens\":29,"
               "\"prompt_tokens_details\":{\"cached_tokens\":7,\"total_tokens\":1000}}}", false, 29);
        counts("{\"object\":\"embedding.list\",\"usage\":{\"prompt_tokens\":8}}", false, 8);
        counts("{ \"usage\" : {\n \"input_tokens\" : 36 ,\n \"output_tokens\" : 87 , \"total_tokens\" : 123 }\n}\n", false, 123);
        counts("{\"usage\":null}", false, 0);
        counts("{\"usage\":5}", false, 0);
        counts("{\"usage\":[{\"input_tokens\":5}]}", false, 0);
        counts("", false, 0);
        counts("not JSON \"usage\":{\"input_tokens\":5}}}}{\"usage\":{\"input_tokens\":5}}", false, 0);
        counts("{\"usage\":{\"input_tokens\":99999999999999999999999999999}}", false, 1000000000000);
}

static void test_written_by_a_model(void) {
        /* what a model or a tool wrote is text, or too deep */
        counts("{\"content\":[{\"text\":\"{\\\"usage\\\":{\\\"input_tokens\\\":5}}\"}],\"usage\":{\"input_tokens\":1}}", false, 1);
        counts("{\"content\":[{\"type\":\"tool_use\",\"input\":{\"usage\":{\"input_tokens\":500}}}]}", false, 0);
        counts("{\"content\":{\"usage\":{\"input_tokens\":500}}}", false, 0);
        counts("[{\"usage\":{\"input_tokens\":500}}]", false, 0);
        counts("{\"message\":[{\"usage\":{\"input_tokens\":500}}]}", false, 0);
        counts("{\"\\u0075sage\":{\"input_tokens\":500}}", false, 0);
        counts("{\"a\":\"usage\",\"b\":{\"input_tokens\":500}}", false, 0);
        counts("{\"a\":\"\\\\\",\"usage\":{\"input_tokens\":3}}", false, 3);
}

static void test_events(void) {
        counts("event: message_start\ndata: {\"type\":\"message_start\",\"message\":{\"id\":\"m\",\"usage\":{\"input_tokens\":25,\"output_tokens\":1}}}\n\n"
               "event: ping\ndata: {\"type\": \"ping\"}\n\n"
               "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"delta\":{\"text\":\"\\\"usage\\\":{\"}}\n\n"
               "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{},\"usage\":{\"output_tokens\":15}}\n\n"
               "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n", true, 40);
        counts("data: {\"choices\":[{}],\"usage\":null}\r\n\r\ndata: {\"choices\":[],\"usage\":{\"prompt_tokens\":9,\"completion_tokens\":12,\"total_tokens\":21}}\r\n\r\n"
               "data: [DONE]\r\n\r\n", true, 21);
        counts("event: response.completed\ndata: {\"type\":\"response.completed\",\"response\":{\"id\":\"r\",\"usage\":{\"input_tokens\":37,\"output_tokens\":11,\"total_tokens\":48}}}\n\n",
               true, 48);
        counts(": {\"usage\":{\"input_tokens\":5}}\nevent: {\"usage\":{\"input_tokens\":5}}\n\n", true, 0);
        counts("data:{\"usage\":\ndata:{\"input_tokens\":5}}\n\n", true, 5); /* one text in two lines */
        counts("data:{\"usage\":\n\ndata:{\"input_tokens\":5}}\n\n", true, 0);
}

int main(void) {
        RUN(test_json, "budgets: tokens of an answer in JSON");
        RUN(test_written_by_a_model, "budgets: nothing that a model wrote is counted");
        RUN(test_events, "budgets: tokens of an event stream, the largest of each number");
        return TEST_END();
}
