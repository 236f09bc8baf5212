/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/ahead.h"
#include "bailey/audit.h"
#include "bailey/doctor.h"
#include "bailey/options.h"
#include "bailey/profile-verbs.h"
#include "bailey/run.h"
#include "bailey/shell.h"
#include "bailey/trust.h"
#include "basic/fd.h"
#include "basic/log.h"

int main(int argc, char **argv) {
        Options o;
        int gate;

        log_setup("bailey", LOG_LEVEL_INFO);
        if (ahead_waits(argc, argv, &gate) && ahead_wait(gate, &argc, &argv) < 0)
                return EXIT_NOT_RUN;
        if (fd_fill_standard() < 0)
                return EXIT_NOT_RUN;
        if (options_parse(argc, argv, &o) < 0)
                return EXIT_NOT_RUN;
        switch (o.verb) {
        case VERB_RUN:
                return run_verb(&o);
        case VERB_SHOW:
                return show_verb(&o);
        case VERB_SHELL:
                return shell_verb(&o);
        case VERB_TRUST:
                return trust_verb(&o);
        case VERB_PROFILE_LIST:
                return profile_list_verb(&o);
        case VERB_PROFILE_SHOW:
                return profile_show_verb(&o);
        case VERB_DOCTOR:
                return doctor_verb(&o);
        case VERB_PRINT_VERBS:
                if (options_print_verbs(stdout) < 0)
                        return EXIT_NOT_RUN;
                break;
        case VERB_PROFILE_GENERATE:
                return profile_generate_verb(&o);
        case VERB_AUDIT:
                return audit_verb(&o);
        case VERB_VERSION:
                puts("bailey " ERRAND_VERSION);
                break;
        default:
                options_print_help(stdout);
        }
        return fflush(stdout) == 0 ? 0 : EXIT_NOT_RUN;
}
