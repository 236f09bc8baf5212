/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/prctl.h>
#include <sys/resource.h>

#include "basic/log.h"
#include "shim/ahead.h"
#include "shim/shim.h"

static const char help[] =
        "errand-shim OPTION… -- COMMAND…\n"
        "\n"
        "Keeps one session: starts bailey, holds its terminal, writes transcript and\n"
        "events. errand-launch starts it.\n"
        "\n"
        "  --session ID --socket PATH --home DIR --errandd-uid UID\n"
        "                         whose, where it listens, and to whom\n"
        "  --interactive --rows N --columns N\n"
        "                         a terminal inside\n"
        "  --broker-socket PATH --listen 127.0.0.1:PORT\n"
        "                         the only way out\n"
        "  --strict --accept-gap NAME\n"
        "                         as for bailey\n"
        "  --grace-ms N           between SIGTERM and SIGKILL\n"
        "  --conversation acp --startup-ms N --question-ms N --abort-ms N\n"
        "                         its standard input and output are the conversation\n"
        "  --scope UNIT           what is made around bailey before it runs\n"
        "  --file-max N           bytes of one file that the payload writes\n"
        "  --journal              standard error is the journal's\n"
        "  --fd NAME=N            what it is given\n"
        "  --wait-fd N TEXT       alone: all that comes later, in a message\n"
        "  --help, --version\n";

/* It holds a session's secrets: no core file, and no other process of its account reads its memory. Not no_new_privs: that would be bailey's,
 * too, and keep it from the AppArmor profile that lets it make namespaces. */
static uint64_t harden(void) {
        struct rlimit core = {}, none;

        (void) prctl(PR_SET_DUMPABLE, 0);
        (void) getrlimit(RLIMIT_CORE, &core);
        none = core;
        none.rlim_cur = 0;
        (void) setrlimit(RLIMIT_CORE, &none);
        return core.rlim_cur;
}

int main(int argc, char *argv[]) {
        ShimOptions options;
        _cleanup_(ahead_done) Ahead ahead = {.gate = -EBADF};
        int wait_fd;

        uint64_t core_limit = harden();
        log_setup("errand-shim", LOG_LEVEL_INFO);
        log_use_fields();
        if (ahead_waits(argc, argv, &wait_fd)) {
                int r = ahead_wait(wait_fd, argc, argv, &ahead);
                if (r < 0)
                        return r == -ECONNRESET ? 0 : EXIT_FAILURE;
                argc = ahead.argc;
                argv = ahead.argv;
        }
        if (shim_options_parse(argc, argv, &options) < 0)
                return 2;
        if (options.help || options.version) {
                fputs(options.help ? help : "errand-shim " ERRAND_VERSION "\n", stdout);
                return fflush(stdout) == 0 ? 0 : EXIT_FAILURE;
        }
        if (options.journal)
                log_set_target(LOG_TARGET_JOURNAL);
        log_set_session(options.session);
        options.core_limit = core_limit;
        options.ahead_pid = ahead.first;
        options.ahead_gate = ahead.gate;
        options.ahead_made = ahead.made;
        return shim_run(&options) < 0 ? EXIT_FAILURE : 0;
}
