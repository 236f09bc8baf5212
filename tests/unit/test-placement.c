/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/base64.h"
#include "basic/text.h"
#include "shared/placement.h"
#include "test.h"

static void test_words(void) {
        static const char *const configured[] = {PLACEMENT_WORDS};

        for (Placement p = 0; p < _PLACEMENT_MAX; p++)
                CHECK_INT(placement_from_string(placement_to_string(p)), p);
        CHECK_INT(placement_from_string("query"), _PLACEMENT_INVALID);
        CHECK_INT(placement_from_string(""), _PLACEMENT_INVALID);
        CHECK(!placement_to_string(_PLACEMENT_MAX) && !placement_to_string(_PLACEMENT_INVALID));
        for (size_t i = 0; i < ELEMENTSOF(configured); i++)
                CHECK_INT(placement_from_string(configured[i]), i);
}

static void test_names(void) {
        static const char *const good[] = {"PRIVATE-TOKEN", "x-goog-api-key", "api-key", "Authorization", "X-JFrog-Art-Api"};
        static const char *const bad[] = {"", "a b", "a:b", "a_b", "a\r\nX", "é", "Host", "content-LENGTH", "Transfer-Encoding", "connection", "Accept-Encoding",
                                          "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"};
        static const char *const users[] = {"", "a:b", "a b", "a\n", "é"};

        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                CHECK(!placement_header_problem(good[i]));
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                if (!placement_header_problem(bad[i]))
                        test_fail(__FILE__, __LINE__, "header \"%s\" passed", bad[i]);
        for (size_t i = 0; i < ELEMENTSOF(users); i++)
                if (!placement_user_problem(users[i]))
                        test_fail(__FILE__, __LINE__, "user \"%s\" passed", users[i]);
        CHECK(!placement_user_problem(PLACEMENT_USER_DEFAULT) && !placement_user_problem("oauth2") && !placement_user_problem("a@b.c"));
}

static void test_base64(void) {
        /* RFC 4648, section 10, and bytes of every kind */
        static const char *const rows[][2] = {{"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}, {"fooba", "Zm9vYmE="}, {"foobar", "Zm9vYmFy"},
                                              {"\xff\xfe\xfb", "//77"}};
        static const char *const bad[] = {"Z", "Zg", "Zg=", "Z===", "====", "Zh==", "Zm9=", "Zg==Zg==", "Zm 9", "Zm9v\n", "Zm-_", "Zg=a"};
        char text[16], back[16];

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                size_t n = strlen(rows[i][0]);
                CHECK_INT(BASE64_SIZE(n), strlen(rows[i][1]));
                base64_encode(rows[i][0], n, text);
                CHECK(memcmp(text, rows[i][1], BASE64_SIZE(n)) == 0);
                CHECK_INT(base64_decode(text, BASE64_SIZE(n), back), n);
                CHECK(memcmp(back, rows[i][0], n) == 0);
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++)
                if (base64_decode(bad[i], strlen(bad[i]), back) != -EBADMSG)
                        test_fail(__FILE__, __LINE__, "\"%s\" passed", bad[i]);
}

int main(void) {
        RUN(test_words, "S089: placements, there and back");
        RUN(test_names, "C185: headers and users that a key may travel with");
        RUN(test_base64, "base64, canonical alone");
        return TEST_END();
}
