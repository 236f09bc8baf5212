/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>

#include "basic/fd.h"
#include "basic/json-writer.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errand/json-output.h"
#include "errand/table.h"
#include "errand/verbs.h"
#include "errandd/config.h"

/* Without a daemon: the same reader as errandd's, so that a file can be looked at before anything is installed. */

static int print_json(char *const *problems, char *const *warnings) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        json_open_object(&w, NULL);
        json_add_bool(&w, "accepted", !problems);
        json_add_strings(&w, "problems", problems);
        json_add_strings(&w, "warnings", warnings);
        json_close_object(&w);
        return json_print(&w, stdout);
}

static void print_list(FILE *f, const char *before, char *const *list) {
        for (; list && *list; list++) {
                _cleanup_free_ char *text = text_for_terminal(*list);
                fprintf(f, "%s%s\n", before, text ?: "");
        }
}

static void print_inert(const Config *c) {
        _cleanup_strv_free_ char **list = NULL;

        if (config_add_inert(c, CONFIG_SYSTEM, &list) >= 0)
                print_list(stdout, "note: ", list);
}

int verb_config_check(const Request *q) {
        _cleanup_(config_freep) Config *c = NULL;
        _cleanup_strv_free_ char **problems = NULL;
        _cleanup_close_ int fd = -EBADF;
        const char *file = q->operands[0];
        int r;

        fd = open(file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0) {
                r = errno;
                log_error_errno(r, "%s cannot be opened: %m", file);
                return r == ENOENT ? EXIT_NOT_THERE : r == EACCES || r == EPERM ? EXIT_NOT_PERMITTED : EXIT_FAILED;
        }
        r = config_read_fd(file, fd, CONFIG_SYSTEM, &c, &problems);
        if (r < 0 && r != -EBADMSG) {
                log_error_errno(r, "%s cannot be checked: %m", file);
                return EXIT_FAILED;
        }
        if (q->json) {
                int code = print_json(problems, c ? c->warnings : NULL);
                return r < 0 ? EXIT_CONFIGURATION : code;
        }
        print_list(stderr, "", problems);
        if (r < 0)
                return EXIT_CONFIGURATION;
        print_list(stdout, "warning: ", c->warnings);
        print_inert(c);
        printf("%s: no problems\n", file);
        return EXIT_OK;
}
