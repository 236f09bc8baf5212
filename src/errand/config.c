/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/json-writer.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errand/json-output.h"
#include "errand/table.h"
#include "errand/verbs.h"
#include "errandd/config-check.h"

/* Without a daemon: the same reader as errandd's, so that a file can be looked at before anything is installed. */

static void add_sentences(JsonWriter *w, const char *name, const char *file, char *const *list) {
        json_open_array(w, name);
        for (; list && *list; list++) {
                ConfigSentence s;

                config_sentence_parse(file, *list, &s);
                json_open_object(w, NULL);
                json_add_string(w, "file", file);
                if (s.line > 0)
                        json_add_u64(w, "line", s.line);
                if (s.key[0])
                        json_add_string(w, "key", s.key);
                json_add_string(w, "text", s.text);
                json_close_object(w);
        }
        json_close_array(w);
}

static int print_check_json(const char *file, const ConfigCheck *c) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        json_open_object(&w, NULL);
        json_add_bool(&w, "accepted", !c->problems);
        add_sentences(&w, "problems", file, c->problems);
        add_sentences(&w, "findings", file, c->findings);
        add_sentences(&w, "warnings", file, c->warnings);
        add_sentences(&w, "inert", file, c->inert);
        json_close_object(&w);
        return json_print(&w);
}

static void print_list(FILE *f, const char *before, char *const *list) {
        for (; list && *list; list++) {
                _cleanup_free_ char *text = text_for_terminal(*list);
                fprintf(f, "%s%s\n", before, text ?: "");
        }
}

static void print_check(const char *file, const ConfigCheck *c) {
        print_list(stderr, "", c->problems);
        print_list(stderr, "", c->findings);
        print_list(stdout, "warning: ", c->warnings);
        print_list(stdout, "note: ", c->inert);
        if (!c->problems && c->findings)
                fprintf(stderr, "%s: errandd takes it, and what is said above will not work on this host\n", file);
        else if (!c->problems)
                printf("%s: no problems%s\n", file, c->warnings ? " but what is warned of above" : "");
}

/* Whose configuration it is, when that is not said: root's is the system's. */
static ConfigMode mode_of_check(const Request *q) {
        if (q->embedded)
                return CONFIG_EMBEDDED;
        return q->user || (!q->system && geteuid() != 0) ? CONFIG_USER : CONFIG_SYSTEM;
}

int verb_config_check(const Request *q) {
        _cleanup_(config_check_done) ConfigCheck check = {};
        _cleanup_close_ int fd = -EBADF;
        const char *file = q->operands[0];
        int r;

        fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0) {
                r = errno;
                log_error_errno(r, "%s cannot be opened: %m", file);
                return r == ENOENT ? EXIT_NOT_THERE : r == EACCES || r == EPERM ? EXIT_NOT_PERMITTED : EXIT_FAILED;
        }
        r = config_check(file, fd, mode_of_check(q), &check);
        if (r < 0) {
                log_error_errno(r, "%s cannot be checked: %m", file);
                return EXIT_FAILED;
        }
        int code = q->json ? print_check_json(file, &check) : EXIT_OK;
        if (!q->json)
                print_check(file, &check);
        return check.problems ? EXIT_CONFIGURATION : check.findings ? EXIT_FAILED : code;
}
