/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errand/verbs.h"
#include "test.h"

#define WORDS_MAX 16

static Request request;
static char *said;

/* Parses a command line of words; what was logged is in `said`. */
static int parse(const char *const *words) {
        const char *argv[WORDS_MAX + 2] = {"errand"};
        int ends[2], saved, argc = 1, r;
        size_t size;

        request_done(&request);
        while (words[argc - 1]) {
                argv[argc] = words[argc - 1];
                argc++;
        }
        CHECK(pipe2(ends, O_CLOEXEC) == 0);
        saved = dup(STDERR_FILENO);
        CHECK(dup2(ends[1], STDERR_FILENO) >= 0);
        r = request_parse(argc, (char *const *) argv, &request);
        CHECK(dup2(saved, STDERR_FILENO) >= 0);
        close(saved);
        close(ends[1]);
        free(said);
        CHECK(read_fd_full(ends[0], 65536, &said, &size) >= 0);
        close(ends[0]);
        return r;
}

#define PARSE(...) parse((const char *const[]){__VA_ARGS__, NULL})

static void test_verbs(void) {
        for (size_t i = 0; i < n_verbs; i++) {
                const Verb *v = verbs + i;

                CHECK(v->run && *v->summary && *v->name);
                CHECK_INT(v->group ? PARSE(v->group, v->name, "--help") : PARSE(v->name, "--help"), 0);
                CHECK(request.verb == v && request.help);
                for (size_t k = i + 1; k < n_verbs; k++)
                        CHECK(!streq_ptr(v->group, verbs[k].group) || !streq(v->name, verbs[k].name));
        }
}

static void test_options_differ(void) {
        for (size_t v = 0; v < n_verbs; v++)
                for (size_t i = 0; i < n_options; i++)
                        for (size_t k = i + 1; k < n_options; k++) {
                                const Option *a = options + i, *b = options + k;

                                if (!option_belongs(a, verbs + v) || !option_belongs(b, verbs + v))
                                        continue;
                                CHECK(!streq(a->name, b->name));
                                CHECK(!a->brief || !b->brief || !streq(a->brief, b->brief));
                        }
}

static void test_run(void) {
        CHECK_INT(PARSE("run", "--project", "/p", "--allow=a.example", "-a", "*.b.example", "-t", "sh", "-c", "x", "--json"), 0);
        CHECK(request.verb->run == verb_run);
        CHECK_STR(request.project, "/p");
        CHECK_STR(request.allow[0], "a.example");
        CHECK_STR(request.allow[1], "*.b.example");
        CHECK(!request.allow[2] && request.keep_terminal && !request.json);
        CHECK_INT(request.n_operands, 4);
        CHECK_STR(request.operands[0], "sh");
        CHECK_STR(request.operands[3], "--json");
        CHECK(!request.operands[4]);
}

static void test_separator(void) {
        CHECK_INT(PARSE("run", "--", "--weird", "--", "x"), 0);
        CHECK_INT(request.n_operands, 3);
        CHECK_STR(request.operands[0], "--weird");
        CHECK_STR(request.operands[1], "--");
        /* A command's own -- is the command's. */
        CHECK_INT(PARSE("run", "make", "--", "all"), 0);
        CHECK_INT(request.n_operands, 3);
        CHECK_STR(request.operands[1], "--");
        CHECK_INT(PARSE("run"), 0);
        CHECK_INT(request.n_operands, 0);
}

static void test_mixed(void) {
        CHECK_INT(PARSE("grants", "s1", "--json"), 0);
        CHECK(request.json);
        CHECK_STR(request.operands[0], "s1");
        CHECK_INT(PARSE("session", "--help"), 0);
        CHECK(request.help && !request.verb);
        CHECK_INT(PARSE("session", "stop", "a", "b", "c"), 0);
        CHECK_INT(request.n_operands, 3);
        CHECK_INT(PARSE("grant", "s1", "h.example", "-"), 0); /* a lone dash is an operand */
}

static void test_nearest(void) {
        static const struct {
                const char *words[4], *expected;
        } cases[] = {
                {{"list"}, "did you mean \"errand session list\"?"},
                {{"recipts"}, "did you mean \"errand receipts\"?"},
                {{"sesion", "list"}, "did you mean \"errand session list\"?"},
                {{"session", "lsit"}, "did you mean \"errand session list\"?"},
                {{"thread", "list"}, "did you mean \"errand threads list\"?"},
                {{"frobnicate"}, "errand run -- frobnicate"},
                {{"run", "--alow", "x"}, "did you mean --allow?"},
                {{"grants", "--jsno"}, "did you mean --json?"},
                {{"grants", "-x"}, "errand grants --help lists them"},
                {{"session"}, "create, start, stop, kill, interrupt, attach, logs, list, show"},
                {{"session", "--all"}, "create, start, stop, kill, interrupt, attach, logs, list, show"},
                {{"--json"}, "options come after the verb"},
                {{"--system", "run", "x"}, "options come after the verb: errand run --system"},
                {{"--json", "session", "list"}, "options come after the verb: errand session list --json"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                CHECK_INT(parse(cases[i].words), -EINVAL);
                if (!strstr(said, cases[i].expected))
                        test_fail(__FILE__, __LINE__, "not said: %s; but: %s", cases[i].expected, said);
        }
}

static void test_refused(void) {
        CHECK_INT(parse((const char *const[]){NULL}), -EINVAL);
        CHECK_INT(PARSE("grant", "s1"), -EINVAL);
        CHECK(strstr(said, "ID HOST"));
        CHECK_INT(PARSE("grants", "a", "b"), -EINVAL);
        CHECK(strstr(said, "\"b\" is too much"));
        CHECK_INT(PARSE("run", "--project"), -EINVAL);
        CHECK(strstr(said, "--project wants DIR"));
        CHECK_INT(PARSE("run", "--project="), -EINVAL);
        CHECK_INT(PARSE("run", "--project", "a", "--project", "b"), -EINVAL);
        CHECK(strstr(said, "given twice"));
        CHECK_INT(PARSE("grants", "--json=yes"), -EINVAL);
        CHECK(strstr(said, "takes no value"));
        CHECK_INT(PARSE("run", "-t", "-T"), -EINVAL);
        CHECK_INT(PARSE("run", "--follow"), -EINVAL); /* another verb's */
        CHECK_INT(PARSE("config", "check"), -EINVAL);
}

static void test_like_options(void) {
        CHECK_INT(PARSE("session", "show", "--privileged"), -EINVAL);
        CHECK_INT(PARSE("session", "show", "--", "--privileged"), 0);
        CHECK_STR(request.operands[0], "--privileged");
        CHECK_INT(verb_ids(request.verb), 1);
        CHECK_INT(PARSE("session", "kill", "-s", "KILL", "--", "-v/:/h"), 0);
        CHECK_STR(request.signal, "KILL");
        CHECK_INT(verb_ids(request.verb), UINT32_MAX);
        CHECK_INT(PARSE("config", "check", "--", "-f"), 0);
        CHECK_INT(verb_ids(request.verb), 0);
        CHECK_INT(PARSE("receipts"), 0);
        CHECK_INT(verb_ids(request.verb), 1);
}

static void test_escaped(void) {
        CHECK_INT(PARSE("ru\x1b[2Jn"), -EINVAL);
        CHECK(!strchr(said, '\x1b'));
}

int main(void) {
        log_setup("errand", LOG_LEVEL_INFO);
        RUN(test_verbs, "T: every verb of the table is read, and has its help");
        RUN(test_options_differ, "T: no verb has two options of one name");
        RUN(test_run, "T: options of run end at the command");
        RUN(test_separator, "T: -- ends options, once");
        RUN(test_mixed, "T: options stand before, between and behind operands");
        RUN(test_nearest, "T: what is unknown is named together with the nearest that is known");
        RUN(test_refused, "T: missing, superfluous and repeated words are refused");
        RUN(test_like_options, "C199: names that look like options are operands behind -- alone");
        RUN(test_escaped, "C199: a word's control characters are not passed on to the terminal");
        request_done(&request);
        free(said);
        return TEST_END();
}
