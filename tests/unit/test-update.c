/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/update.h"
#include "shared/json-check.h"
#include "shared/message.h"
#include "test.h"

static int parse(const char *text, Update *ret, JsonParser **parser) {
        JsonObject *o;
        JsonProblem problem;

        CHECK(json_read_object(text, strlen(text), 8, parser, &o, &problem) >= 0);
        return update_read(o, ret);
}

static void test_kinds(void) {
        for (int k = 0; k < _UPDATE_KIND_MAX; k++)
                CHECK_INT(update_kind_from_string(update_kind_to_string((UpdateKind) k)), k);
        CHECK(update_kind_from_string("") < 0 && update_kind_from_string("Message") < 0 && !update_kind_to_string(_UPDATE_KIND_MAX));
}

static void test_fields(void) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        Update u;

        CHECK_INT(parse("{\"kind\":\"tool\",\"fields\":{\"status\":\"done\",\"id\":\"t1\",\"more\":[1],\"kind\":\"edit\"}}", &u, &parser), 0);
        CHECK_INT(u.n_fields, 3);
        CHECK(streq(u.fields[0].name, "id") && streq(u.fields[0].text, "t1") && streq(u.fields[2].text, "done"));
}

static void test_numbers(void) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        Update u;

        CHECK_INT(parse("{\"kind\":\"turn-ended\",\"fields\":{\"prompt\":7,\"reason\":\"end_turn\"}}", &u, &parser), 0);
        CHECK_INT(u.n_fields, 2);
        CHECK(update_number(&u, "prompt") == 7 && update_number(&u, "reason") == 0 && update_number(&u, "question") == 0);
}

static void test_bad(void) {
        static const char *const bad[] = {
                "{}", "{\"kind\":1,\"fields\":{}}", "{\"kind\":\"message\"}", "{\"kind\":\"message\",\"fields\":[]}", "{\"kind\":\"message\",\"fields\":{}}",
                "{\"kind\":\"message\",\"fields\":{\"text\":1}}", "{\"kind\":\"message\",\"fields\":{\"text\":null}}",
                "{\"kind\":\"turn-started\",\"fields\":{\"prompt\":\"1\"}}", "{\"kind\":\"turn-started\",\"fields\":{\"prompt\":-1}}",
                "{\"kind\":\"turn-started\",\"fields\":{\"prompt\":1.5}}", "{\"kind\":\"turn-ended\",\"fields\":{\"prompt\":1,\"reason\":\"x\",\"text\":{}}}",
                "{\"kind\":\"question\",\"fields\":{\"question\":1,\"title\":\"t\"}}",
        };
        Update u;

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                _cleanup_json_parser_ JsonParser *parser = NULL;

                if (parse(bad[i], &u, &parser) != -EBADMSG)
                        test_fail(__FILE__, __LINE__, "%s was taken", bad[i]);
        }
        _cleanup_json_parser_ JsonParser *parser = NULL;
        CHECK_INT(parse("{\"kind\":\"mood\",\"fields\":{}}", &u, &parser), -ENOENT);
}

int main(void) {
        RUN(test_kinds, "each kind there and back");
        RUN(test_fields, "fields in the table's order, those that may be left out left out, others not passed on");
        RUN(test_numbers, "numbers are found by name");
        RUN(test_bad, "what is not of the table's form is no update");
        return TEST_END();
}
