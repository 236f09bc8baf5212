/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errand/describe.h"
#include "errand/exit.h"
#include "errand/keys.h"
#include "errand/modes.h"
#include "test.h"

static char passed[256];

/* Types text in pieces of `step` bytes. True: it detached. */
static bool type(const char *text, size_t step) {
        size_t size = strlen(text), n = 0;
        bool detach = false;
        Keys k = {};

        for (size_t i = 0; i < size && !detach; i += step)
                n += keys_filter(&k, text + i, MIN(step, size - i), passed + n, &detach);
        passed[n] = 0;
        return detach;
}

static void test_keys(void) {
        for (size_t step = 1; step < 5; step++) {
                CHECK(!type("hello\x03\x1a\x04", step));
                CHECK_STR(passed, "hello\x03\x1a\x04");
                CHECK(type("ab\x1d" "dxyz", step));
                CHECK_STR(passed, "ab");
                CHECK(!type("a\x1d\x1d" "d", step));
                CHECK_STR(passed, "a\x1d" "d");
                CHECK(!type("a\x1d" "xd", step));
                CHECK_STR(passed, "a\x1d" "xd");
                CHECK(!type("a\x1d", step)); /* it waits for what follows */
                CHECK_STR(passed, "a");
        }
}

static const char *undo(const char *output, size_t step) {
        static char buffer[MODES_UNDO_MAX];
        size_t size = strlen(output);
        Modes m = {};

        for (size_t i = 0; i < size; i += step)
                modes_watch(&m, output + i, MIN(step, size - i));
        return modes_undo(&m, buffer);
}

static void test_modes(void) {
        static const struct {
                const char *output, *undone;
        } cases[] = {
                {"plain text\r\n", ""},
                {"\x1b[?1049h", "\x1b[?1049l"},
                {"\x1b[?1049h\x1b[2J\x1b[1;1H\x1b[?1049l", ""},
                {"\x1b[?25l", "\x1b[?25h"},
                {"\x1b[?25l\x1b[?25h", ""},
                {"\x1b[?1000;1006h\x1b[?2004h", "\x1b[?1000l\x1b[?1006l\x1b[?2004l"},
                {"\x1b[?1h\x1b=", "\x1b[?1l\x1b>"},
                {"\x1b[?1h\x1b=\x1b[?1l\x1b>", ""},
                {"\x1b[31mred", "\x1b[0m"},
                {"\x1b[31mred\x1b[m", ""},
                {"\x1b[?1049h\x1b[?25l\x1b" "c", ""}, /* reset by the program */
                {"\x1b[1;30r", "\x1b" "7\x1b[r\x1b" "8"},
                {"\x1b[5;9r\x1b[r", ""},
                {"\x1b[>4;2m", "\x1b[>4m"},
                {"\x1b[>4;2m\x1b[>4;m", ""},
                {"\x1b[>1u\x1b[>3u", "\x1b[<2u"},
                {"\x1b[>1u\x1b[<u\x1b[<u", ""},
                {"\x1b[4 q", "\x1b[0 q"},
                {"\x1b[38;2;1;2;3mx", "\x1b[0m"},
                {"\x1b[38:5:0mx\x1b[1;0mx", ""},
                {"\x1b[?1$p\x1b[?2026$p", ""}, /* a question */
                {"\x1b[?99999999999999999999h", ""},
                {"\x1b[?1;2;3;4;5;6;7;8;9;10;11;12;13;14;15;16;1049h", "\x1b[?1l"}, /* more than is looked at */
                {"\x1b[?1049", ""},
                {"\x1b]0;title\x07\x1b[?1049h", "\x1b[?1049l"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                for (size_t step = 1; step < 8; step++)
                        CHECK_STR(undo(cases[i].output, step), cases[i].undone);
}

static void test_modes_all(void) {
        const char *s = undo("\x1b[?1000;1002;1003;1004;1005;1006;1015h\x1b[?2004;1;47;1047;1049h\x1b[?7;25l\x1b=\x1b[>4;1m\x1b[>1u\x1b[2 q\x1b[1;2r\x1b[1m", 7);

        CHECK(strlen(s) < MODES_UNDO_MAX - 1);
        CHECK(endswith(s, "\x1b[?1049l\x1b[>4m\x1b[<1u\x1b[0 q\x1b>\x1b[0m"));
}

static void test_exit_codes(void) {
        CHECK_INT(exit_code_of("exited", 0), 0);
        CHECK_INT(exit_code_of("exited", 13), 13);
        CHECK_INT(exit_code_of("signal", 137), 137);
        CHECK_INT(exit_code_of("killed", 143), 143);
        CHECK_INT(exit_code_of("setup", 127), 127);
        CHECK_INT(exit_code_of("setup", 126), 126);
        CHECK_INT(exit_code_of("setup", 0), EXIT_NOT_SET_UP);
        CHECK_INT(exit_code_of("setup", 1), EXIT_NOT_SET_UP);
        CHECK_INT(exit_code_of("lost", 0), EXIT_LOST);
        CHECK(EXIT_LOST != EXIT_DETACHED && EXIT_DETACHED != EXIT_ATTACH_NOT_PERMITTED && EXIT_LOST != EXIT_ATTACH_NOT_PERMITTED);
}

int main(void) {
        RUN(test_keys, "T: Ctrl-] d detaches, and nothing else that is typed is kept back");
        RUN(test_modes, "C054: modes of the terminal that a session left on are known, over chunk borders");
        RUN(test_modes_all, "C054: what undoes all of them has room");
        RUN(test_exit_codes, "C206: a session's own status is passed on; detached, lost and not permitted are told apart");
        return TEST_END();
}
