/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <locale.h>

#include "basic/text.h"
#include "errand/output.h"
#include "errand/table.h"
#include "test.h"

static char *printed;

static void print(const Table *t, unsigned width, bool colours) {
        size_t size;
        FILE *f;

        free(printed);
        printed = NULL;
        f = open_memstream(&printed, &size);
        CHECK(f && table_print(t, f, width, colours) == 0 && fclose(f) == 0);
}

static Table *make(void) {
        static const TableColumn columns[] = {{"ID"}, {"N", .right = true}, {"PROJECT", .least = 8}};
        Table *t = NULL;

        CHECK_INT(table_new(columns, ELEMENTSOF(columns), &t), 0);
        return t;
}

static void test_aligned(void) {
        _cleanup_(table_freep) Table *t = make();

        table_add(t, "a");
        table_addf(t, "%d", 5);
        table_add(t, "/srv/x");
        table_add(t, "longer");
        table_addf(t, "%d", 1234);
        table_add(t, NULL);
        CHECK_INT(table_rows(t), 2);
        print(t, 0, false);
        CHECK_STR(printed, "ID         N  PROJECT\n"
                           "a          5  /srv/x\n"
                           "longer  1234  -\n");
}

static void test_width(void) {
        _cleanup_(table_freep) Table *t = make();

        table_add(t, "日本"); /* two columns each */
        table_add(t, "1");
        table_add(t, "e\xcc\x81"); /* e and a combining accent: one */
        table_add(t, "abcd");
        table_add(t, "2");
        table_add(t, "z");
        print(t, 0, false);
        CHECK_STR(printed, "ID    N  PROJECT\n"
                           "日本  1  e\xcc\x81\n"
                           "abcd  2  z\n");
        CHECK_INT(text_width("日本"), 4);
        CHECK_INT(text_width("e\xcc\x81"), 1);
}

static void test_cut(void) {
        _cleanup_(table_freep) Table *t = make();

        table_add(t, "abcdef");
        table_add(t, "1");
        table_add(t, "/srv/a/very/long/path");
        print(t, 24, false);
        CHECK_STR(printed, "ID      N  PROJECT\nabcdef  1  /srv/a/ver...\n");
        print(t, 16, false); /* beyond its least, where that is enough */
        CHECK_STR(printed, "ID      N  PR...\nabcdef  1  /s...\n");
        print(t, 5, false); /* narrower than what must not be cut: the rest keeps its least */
        CHECK_STR(printed, "ID      N  PROJECT\nabcdef  1  /srv/...\n");
        print(t, 0, false);
        CHECK(strstr(printed, "/srv/a/very/long/path\n"));
}

static void test_left_out(void) {
        static const TableColumn columns[] = {{"A", .optional = 2}, {"B", .least = 2}, {"C", .optional = 1}, {"D", .optional = 3}};
        _cleanup_(table_freep) Table *t = NULL;

        CHECK_INT(table_new(columns, ELEMENTSOF(columns), &t), 0);
        table_add(t, "aaaa");
        table_add(t, "bbbbbb");
        table_add(t, "cccc");
        table_add(t, "dddd");
        print(t, 24, false);
        CHECK_STR(printed, "A     B       C     D\naaaa  bbbbbb  cccc  dddd\n");
        print(t, 17, false);
        CHECK_STR(printed, "A     B      D\naaaa  bb...  dddd\n");
        print(t, 11, false);
        CHECK_STR(printed, "B      D\nbb...  dddd\n");
        print(t, 5, false); /* nothing stands behind the one that is the last now */
        CHECK_STR(printed, "B\nbb...\n");
        print(t, 0, false);
        CHECK(strstr(printed, "bbbbbb  cccc  dddd\n"));
}

static void test_escaped(void) {
        static const struct {
                const char *text, *shown;
        } cases[] = {
                {"plain", "plain"},
                {"a\x1b[2Jb", "a\\x1b[2Jb"},
                {"line\nforged", "line\\nforged"},
                {"\xff", "\\xff"},
                {"\xc2\x9b", "\\xc2\\x9b"},         /* C1: CSI in one character */
                {"a\xe2\x80\xae" "b", "a\\u{202e}b"}, /* right to left */
                {"\xe2\x81\xa6", "\\u{2066}"},
                {"a\xe2\x80\x8b", "a\\u{200b}"},
                {"\xf3\xa0\x81\x81", "\\u{e0041}"},
                {"\xef\xbb\xbf", "\\u{feff}"},
                {"ä…日", "ä…日"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                _cleanup_free_ char *s = text_for_terminal(cases[i].text);
                CHECK_STR(s, cases[i].shown);
        }
}

static void test_forged_cell(void) {
        _cleanup_(table_freep) Table *t = make();

        table_add(t, "a");
        table_add(t, "1");
        table_add(t, "/x\nb  2  /y\x1b[31m");
        print(t, 0, true);
        CHECK(strstr(printed, "/x\\nb  2  /y\\x1b[31m\n"));
        CHECK(!strstr(printed, "\x1b[31m"));
}

static void test_colours(void) {
        _cleanup_(table_freep) Table *t = make();

        table_add_coloured(t, "a", COLOUR_GOOD);
        table_add(t, "1");
        table_add(t, "x");
        print(t, 0, true);
        CHECK(strstr(printed, "\x1b[32ma\x1b[0m"));
        print(t, 0, false);
        CHECK(!strchr(printed, '\x1b'));
}

static void test_texts(void) {
        char buffer[32];

        CHECK_STR(bytes_text(0, buffer), "0");
        CHECK_STR(bytes_text(1023, buffer), "1023");
        CHECK_STR(bytes_text(1024, buffer), "1.0K");
        CHECK_STR(bytes_text(1536, buffer), "1.5K");
        CHECK_STR(bytes_text(1024 * 1024 - 1, buffer), "1023.9K");
        CHECK_STR(bytes_text(5 * 1024 * 1024, buffer), "5.0M");
        CHECK(bytes_text(UINT64_MAX, buffer)[0]);
        CHECK_STR(time_text(0, buffer), "");
        CHECK(setenv("TZ", "UTC", 1) == 0);
        CHECK_STR(time_text(UINT64_C(1700000000) * USEC_PER_SEC, buffer), "2023-11-14 22:13:20");
}

int main(void) {
        CHECK(setenv("LC_ALL", "C", 1) == 0);
        table_setup();
        RUN(test_aligned, "T: columns are aligned, numbers to the right");
        RUN(test_width, "T: wide and combining characters take the columns they take");
        RUN(test_cut, "T: only what may be cut is cut to the terminal's width");
        RUN(test_left_out, "T: on a narrow terminal optional columns are left out in their order");
        RUN(test_escaped, "T: nothing in a cell can move the cursor or turn the direction");
        RUN(test_forged_cell, "T: a cell cannot forge a row or a colour");
        RUN(test_colours, "T: colours only where they are asked for");
        RUN(test_texts, "T: sizes and times as people read them");
        free(printed);
        return TEST_END();
}
