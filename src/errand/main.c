/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "errand/connect.h"
#include "errand/journal-stream.h"
#include "errand/output.h"
#include "errand/verbs.h"

/* Before anything is started for it. */
static int check_ids(const Request *q) {
        for (size_t i = 0; i < q->n_operands && i < verb_ids(q->verb); i++)
                if (check_id(q->operands[i]) != EXIT_OK)
                        return EXIT_NOT_THERE;
        return EXIT_OK;
}

static int act(const Request *q) {
        if (q->version)
                puts("errand " ERRAND_VERSION);
        else if (q->print_verbs)
                return verbs_print_json(stdout) < 0 ? EXIT_FAILED : EXIT_OK;
        else if (!q->verb)
                verbs_print_help(stdout);
        else if (q->help)
                verb_print_help(q->verb, stdout);
        else {
                int r = check_ids(q);
                if (q->full)
                        output_full();
                return r == EXIT_OK ? q->verb->run(q) : r;
        }
        return EXIT_OK;
}

int main(int argc, char **argv) {
        _cleanup_(request_done) Request q = {};
        int code;

        log_setup("errand", LOG_LEVEL_INFO);
        if (fd_fill_standard() < 0)
                return EXIT_NOT_SET_UP;
        /* A reader of ours that goes away is an error like another: it must not take a session, or a terminal's mode, with it. */
        (void) signal(SIGPIPE, SIG_IGN);
        table_setup();
        journal_stream_stdout();

        if (request_parse(argc, argv, &q) < 0)
                return q.verb && q.verb->run == verb_run ? EXIT_NOT_SET_UP : EXIT_FAILED;
        code = act(&q);
        int flushed = output_flush();
        journal_stream_drain();
        return code == EXIT_OK ? flushed : code;
}
