/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <getopt.h>

#include "basic/log.h"
#include "errandd/bus.h"
#include "errandd/embedded.h"

static const char help[] =
        "errandd --embedded [--state-dir DIR] [--config FILE] [--user NAME]\n\n"
        "Starts and watches confined sessions. In embedded mode it serves one account over a private socket, and ends\n"
        "when neither a client nor a session is left.\n\n"
        "  --embedded             on a private socket, without systemd and a message bus\n"
        "  --state-dir DIR        keep state (and socket) there; default: $ERRAND_EMBEDDED_STATE, else\n"
        "                         $XDG_STATE_HOME/errand-embedded, as root /var/lib/errand-embedded\n"
        "  --config FILE          read that configuration; default: $ERRAND_CONFIG, else ~/.config/errand/errand.json\n"
        "  --user NAME            as root: the account whose rights sessions have\n"
        "  --bus-introspect[=I]   print the bus API (of interface I) as XML\n"
        "  --debug                say more\n"
        "  --help, --version\n\n"
        "Exit codes: 0 stopped; 1 failed; 2 the configuration is refused; 3 a guarantee cannot be enforced here;\n"
        "4 another errandd serves this state directory.\n";

static int usage_error(const char *what, const char *which) {
        log_error("%s%s; see --help", what, which);
        return EXIT_CONFIGURATION;
}

static int introspect(const char *interface) {
        if (bus_introspect(interface, stdout) < 0)
                return usage_error("there is no interface ", interface ?: "");
        return fflush(stdout) == 0 ? EXIT_STOPPED : EXIT_FAILED;
}

static int print(const char *text) {
        fputs(text, stdout);
        return fflush(stdout) == 0 ? EXIT_STOPPED : EXIT_FAILED;
}

int main(int argc, char *argv[]) {
        static const struct option options[] = {
                {"embedded", no_argument, NULL, 'e'},           {"state-dir", required_argument, NULL, 's'},
                {"config", required_argument, NULL, 'c'},       {"user", required_argument, NULL, 'u'},
                {"bus-introspect", optional_argument, NULL, 'i'}, {"debug", no_argument, NULL, 'd'},
                {"help", no_argument, NULL, 'h'},               {"version", no_argument, NULL, 'v'}, {},
        };
        EmbeddedOptions embedded = {};
        bool wanted = false;
        int c;

        log_setup("errandd", LOG_LEVEL_INFO);
        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (c) {
                case 'e':
                        wanted = true;
                        break;
                case 's':
                        embedded.state_dir = optarg;
                        break;
                case 'c':
                        embedded.config = optarg;
                        break;
                case 'u':
                        embedded.user = optarg;
                        break;
                case 'd':
                        log_set_max_level(LOG_LEVEL_DEBUG);
                        break;
                case 'i':
                        return introspect(optarg);
                case 'h':
                        return print(help);
                case 'v':
                        return print("errandd " ERRAND_VERSION "\n");
                default:
                        return EXIT_CONFIGURATION;
                }
        if (optind < argc)
                return usage_error("unexpected argument: ", argv[optind]);
        if (!wanted)
                return usage_error("this version runs with --embedded", "");
        return embedded_run(&embedded);
}
