/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "errandd/config-check.h"
#include "shared/json-locate.h"

#define LINES_MAX 256U /* sentences whose lines are looked for: a text of 1 MiB with mistakes all over would take long */

void config_check_done(ConfigCheck *c) {
        char ***lists[] = {&c->problems, &c->findings, &c->warnings, &c->inert};

        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                *lists[i] = strv_free(*lists[i]);
}

/* What a sentence begins with, when it is a key of the file. */
static size_t key_size(const char *s) {
        size_t n = strcspn(s, ": ");

        return n < sizeof(((ConfigSentence *) NULL)->key) ? n : 0;
}

static unsigned find_line(const char *text, size_t size, const char *sentence) {
        char key[sizeof(((ConfigSentence *) NULL)->key)];
        size_t n = key_size(sentence);

        memcpy(key, sentence, n);
        key[n] = 0;
        return n > 0 ? json_locate(text, size, key) : 0;
}

/* "NAME: KEY: …" and "KEY: …" become "NAME:LINE: KEY: …"; "NAME: line 3, column 4: …" is what it is, with the line in its place. */
static int add_lines(const char *name, const char *text, size_t size, char **list) {
        for (char **s = list; s && *s; s++) {
                bool look = s < list + LINES_MAX;
                const char *rest = startswith(*s, name);
                unsigned line = 0, column = 0;
                int used = 0;
                char *better;

                rest = rest && startswith(rest, ": ") ? rest + 2 : *s;
                if (sscanf(rest, "line %u, column %u: %n", &line, &column, &used) == 2 && used > 0)
                        rest += used;
                else
                        line = look ? find_line(text, size, rest) : 0;
                int r = column > 0 ? asprintf(&better, "%s:%u:%u: %s", name, line, column, rest)
                        : line > 0 ? asprintf(&better, "%s:%u: %s", name, line, rest)
                                   : asprintf(&better, "%s: %s", name, rest);
                if (r < 0)
                        return -ENOMEM;
                free(*s);
                *s = better;
        }
        return 0;
}

static bool digits(const char **s, unsigned *ret) {
        size_t n = **s == ':' ? strspn(*s + 1, "0123456789") : 0;

        if (n == 0 || n > 9)
                return false;
        *ret = (unsigned) strtoul(*s + 1, NULL, 10);
        *s += 1 + n;
        return true;
}

void config_sentence_parse(const char *name, const char *sentence, ConfigSentence *ret) {
        const char *rest = startswith(sentence, name) ?: sentence;
        unsigned column;

        *ret = (ConfigSentence){};
        if (digits(&rest, &ret->line))
                (void) digits(&rest, &column);
        rest = startswith(rest, ": ") ?: rest;
        size_t n = key_size(rest);
        if (ret->line > 0 && n > 0 && startswith(rest + n, ": ")) {
                memcpy(ret->key, rest, n);
                rest += n + 2;
        }
        ret->text = rest;
}

static int read_again(int fd, char **ret, size_t *ret_size) {
        return lseek(fd, 0, SEEK_SET) < 0 ? -errno : read_fd_full(fd, CONFIG_SIZE_MAX, ret, ret_size);
}

int config_check_open(const char *path, char **ret_problem) {
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        struct stat st;

        int r = fd < 0 || fstat(fd, &st) < 0 ? -errno : 0;
        if (r < 0 || !S_ISREG(st.st_mode)) {
                (void) (r < 0 ? problem_set(ret_problem, "%s cannot be read: %s", path, strerror(-r)) : problem_set(ret_problem, "%s is not a regular file", path));
                return r < 0 ? r : -EINVAL;
        }
        return TAKE_FD(fd);
}

int config_check(const char *name, int fd, ConfigMode mode, ConfigCheck *ret) {
        _cleanup_(config_check_done) ConfigCheck check = {};
        _cleanup_(config_freep) Config *c = NULL;
        char *text = NULL;
        size_t size = 0;

        int r = config_read_fd(name, fd, mode, &c, &check.problems);
        if (r < 0 && r != -EBADMSG)
                return r;
        r = c ? config_add_refusals(c, &check.problems) : 0;
        if (r >= 0 && !check.problems) {
                check.warnings = TAKE_PTR(c->warnings);
                r = config_add_findings(c, mode, getenv("CREDENTIALS_DIRECTORY"), &check.findings);
                if (r >= 0)
                        r = config_add_inert(c, mode, &check.inert);
        }
        (void) read_again(fd, &text, &size); /* without it there are no lines */
        char **lists[] = {check.problems, check.findings, check.warnings, check.inert};
        for (size_t i = 0; i < ELEMENTSOF(lists) && r >= 0; i++)
                r = add_lines(name, text ?: "", size, lists[i]);
        if (text)
                secret_wipe(text, size);
        free(text);
        if (r < 0)
                return r;
        *ret = check;
        check = (ConfigCheck){};
        return 0;
}
