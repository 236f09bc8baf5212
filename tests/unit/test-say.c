/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/action.h"
#include "errandd/say.h"
#include "test.h"

static void test_commands(void) {
        static const struct {
                const char *text;
                SayVerb verb;
                const char *host, *duration, *option;
                uint64_t question;
        } rows[] = {
                {"fix the build", SAY_PROMPT, NULL, NULL, NULL, 0},
                {"", SAY_PROMPT, NULL, NULL, NULL, 0},
                {" !grant a.b", SAY_PROMPT, NULL, NULL, NULL, 0},
                {"do !stop", SAY_PROMPT, NULL, NULL, NULL, 0},
                {"!grant api.example.com", SAY_GRANT, "api.example.com", "once", NULL, 0},
                {"!grant api.example.com 10m", SAY_GRANT, "api.example.com", "10m", NULL, 0},
                {"!grant  *.example.com\t1h 30m \n", SAY_GRANT, "*.example.com", "1h 30m", NULL, 0},
                {"!grant a.b always\n", SAY_GRANT, "a.b", "always", NULL, 0},
                {"!revoke a.b ", SAY_REVOKE, "a.b", NULL, NULL, 0},
                {"!grants", SAY_GRANTS, NULL, NULL, NULL, 0},
                {"!grants \n", SAY_GRANTS, NULL, NULL, NULL, 0},
                {"!answer yes", SAY_ANSWER, NULL, NULL, "yes", 0},
                {"!answer 3 yes please ", SAY_ANSWER, NULL, NULL, "yes please", 3},
                {"!answer 3", SAY_ANSWER, NULL, NULL, "3", 0},
                {"!answer 3 ", SAY_ANSWER, NULL, NULL, "3", 0},
                {"!answer 3 4", SAY_ANSWER, NULL, NULL, "4", 3},
                {"!answer 3x 4", SAY_ANSWER, NULL, NULL, "3x 4", 0},
                {"!answer 99999999999999999999 y", SAY_ANSWER, NULL, NULL, "99999999999999999999 y", 0},
                {"!interrupt", SAY_INTERRUPT, NULL, NULL, NULL, 0},
                {"!stop", SAY_STOP, NULL, NULL, NULL, 0},
                {"!status", SAY_STATUS, NULL, NULL, NULL, 0},
                {"!help", SAY_HELP, NULL, NULL, NULL, 0},
        };

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *problem = NULL;
                Say s = {};

                if (say_parse(rows[i].text, &s, &problem) < 0)
                        test_fail(__FILE__, __LINE__, "\"%s\": %s", rows[i].text, problem);
                if (s.verb != rows[i].verb || !streq(s.host ?: "", rows[i].host ?: "") || !streq(s.duration ?: "", rows[i].duration ?: "") ||
                    !streq(s.option ?: "", rows[i].option ?: "") || s.question != rows[i].question)
                        test_fail(__FILE__, __LINE__, "\"%s\" is %i \"%s\" \"%s\" \"%s\" %llu", rows[i].text, s.verb, s.host ?: "", s.duration ?: "",
                                  s.option ?: "", (unsigned long long) s.question);
                CHECK_INT(say_find(rows[i].text), s.verb);
                say_done(&s);
        }
}

static void test_bad(void) {
        static const struct {
                const char *text, *problem;
        } rows[] = {
                {"!grant", "!grant is written: !grant HOST [DURATION]"},
                {"!grant ", "!grant is written: !grant HOST [DURATION]"},
                {"!revoke", "!revoke is written: !revoke HOST"},
                {"!revoke a.b c.d", "!revoke is written: !revoke HOST"},
                {"!grants all", "!grants takes nothing after it"},
                {"!stop now", "!stop takes nothing after it"},
                {"!answer", "!answer is written: !answer [NUMBER] OPTION"},
                {"!answer \n", "!answer is written: !answer [NUMBER] OPTION"},
                {"!answer 0 yes", "!answer is written: !answer [NUMBER] OPTION"},
        };
        static const char *const unknown[] = {"!", "!!", "!Grant a.b", "!grantx a.b", "!grant\va.b", "! grant a.b", "!\x1b[2J", "!stop."};

        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                _cleanup_free_ char *problem = NULL;
                Say s = {};

                CHECK_INT(say_parse(rows[i].text, &s, &problem), -EBADMSG);
                CHECK_STR(problem, rows[i].problem);
        }
        for (size_t i = 0; i < ELEMENTSOF(unknown); i++) {
                _cleanup_free_ char *problem = NULL;
                Say s = {};

                CHECK(say_find(unknown[i]) < 0);
                CHECK_INT(say_parse(unknown[i], &s, &problem), -EBADMSG);
                CHECK(strstr(problem, "is no command; there are !grant, !revoke, !grants, !answer, !interrupt, !stop, !status and !help"));
                CHECK(!strchr(problem, 0x1b));
        }
        char *problem = NULL, text[4096];
        Say s = {};
        memset(text, 'x', sizeof(text));
        text[0] = '!';
        text[sizeof(text) - 1] = 0;
        CHECK_INT(say_parse(text, &s, &problem), -EBADMSG);
        CHECK(strlen(problem) < 256 && strstr(problem, "..."));
        free(problem);
}

/* Each command has its row in the gate's table, and each row there its command. */
static void test_permissions(void) {
        static const Permission expected[_SAY_VERB_MAX] = {
                [SAY_PROMPT] = PERMISSION_CONTROL, [SAY_GRANT] = PERMISSION_GRANT,  [SAY_REVOKE] = PERMISSION_GRANT,  [SAY_GRANTS] = PERMISSION_READ,
                [SAY_ANSWER] = PERMISSION_CONTROL, [SAY_INTERRUPT] = PERMISSION_CONTROL, [SAY_STOP] = PERMISSION_CONTROL, [SAY_STATUS] = PERMISSION_READ,
                [SAY_HELP] = PERMISSION_READ,
        };
        const Action *rows;
        size_t n, n_said = 0;

        for (SayVerb v = SAY_PROMPT; v < _SAY_VERB_MAX; v++) {
                const char *word = say_verb_word(v);
                const Action *a = action_find("org.errand1.Session", word ?: "Say", word ? MEMBER_SAID : MEMBER_METHOD);

                if (!a)
                        test_fail(__FILE__, __LINE__, "%s is not in the gate's table", word ?: "Say");
                CHECK_INT(a->permission, expected[v]);
                CHECK_INT(a->scope, SCOPE_OBJECT);
        }
        rows = action_table(&n);
        for (size_t i = 0; i < n; i++)
                if (rows[i].kind == MEMBER_SAID) {
                        n_said++;
                        CHECK(say_find(rows[i].member) > SAY_PROMPT);
                }
        CHECK_INT(n_said, _SAY_VERB_MAX - 1);
}

static void test_help(void) {
        _cleanup_free_ char *help = say_help();

        for (SayVerb v = SAY_PROMPT + 1; v < _SAY_VERB_MAX; v++)
                CHECK(strstr(help, say_verb_word(v)));
        CHECK(strstr(help, "!grant HOST [DURATION] lets") && !strchr(help, '\n') && strlen(help) < 1024);
}

int main(void) {
        RUN(test_commands, "S131: commands of the thread and their arguments; what is none is a prompt");
        RUN(test_bad, "a command that is not written as it should be, and one that there is not");
        RUN(test_permissions, "C197 S141: what each command needs is in the gate's table");
        RUN(test_help, "!help tells of every command");
        return TEST_END();
}
