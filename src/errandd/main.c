/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <getopt.h>

#include "basic/log.h"
#include "errandd/daemon.h"
#include "errandd/embedded.h"
#include "errandd/paths.h"
#include "errandd/service.h"

static const char help[] =
        "errandd --system|--user [--config FILE] [--check]\n"
        "errandd --embedded [--state-dir DIR] [--config FILE] [--account NAME]\n\n"
        "Starts and watches confined sessions, for clients on D-Bus such as errand(1).\n\n"
        "  --system              on the system bus, for every account that polkit lets;\n"
        "                        errandd.service runs it\n"
        "  --user                on the session bus, for its own account; the user's\n"
        "                        errandd.service runs it\n"
        "  --embedded            on a private socket for one account, without systemd and\n"
        "                        a message bus; ends when neither a client nor a session\n"
        "                        is left\n"
        "  --state-dir DIR       embedded: keep state (and socket) there; default:\n"
        "                        $ERRAND_EMBEDDED_STATE, else\n"
        "                        $XDG_STATE_HOME/errand-embedded, as root\n"
        "                        /var/lib/errand-embedded\n"
        "  --config FILE         read that configuration; default: $ERRAND_CONFIG, else\n"
        "                        " PATHS_CONFIG_SYSTEM " for --system and root, else\n"
        "                        " PATHS_CONFIG_OWN_SHOWN "\n"
        "  --check               read the configuration as that errandd would, say what\n"
        "                        is wrong with it, and end; errand config check says more\n"
        "  --account NAME        embedded, as root: whose rights sessions have\n"
        "  --bus-introspect[=I]  print the bus API (of interface I) as XML\n"
        "  --debug               say more\n"
        "  --help, --version\n\n"
        "Exit codes: 0 stopped; 1 failed; 2 the configuration is refused; 3 a guarantee\n"
        "cannot be enforced here; 4 another errandd serves this state directory.\n";

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

typedef struct Arguments {
        bool system, user, embedded, check;
        const char *config, *state_dir, *account;
} Arguments;

static int run(const Arguments *a) {
        if (a->system + a->embedded + a->user != 1)
                return usage_error("it runs with one of --system, --user and --embedded", "");
        if (a->embedded && a->check)
                return usage_error("only with --system or --user: --check", "");
        if (a->embedded)
                return embedded_run(&(EmbeddedOptions){.state_dir = a->state_dir, .config = a->config, .user = a->account});
        if (a->account)
                return usage_error("only with --embedded: --account ", a->account);
        if (a->state_dir)
                return usage_error("only with --embedded: --state-dir ", a->state_dir);
        const ServiceOptions options = {.mode = a->system ? CONFIG_SYSTEM : CONFIG_USER, .config = a->config, .polkit = a->system};
        return a->check ? service_check(&options) : service_run(&options);
}

int main(int argc, char *argv[]) {
        static const struct option options[] = {
                {"system", no_argument, NULL, 'y'},             {"user", no_argument, NULL, 'u'},
                {"embedded", no_argument, NULL, 'e'},           {"state-dir", required_argument, NULL, 's'},
                {"config", required_argument, NULL, 'c'},       {"bus-introspect", optional_argument, NULL, 'i'},
                {"account", required_argument, NULL, 'a'},      {"debug", no_argument, NULL, 'd'},
                {"check", no_argument, NULL, 'k'},             {"help", no_argument, NULL, 'h'},               {"version", no_argument, NULL, 'v'},            {},
        };
        Arguments a = {};
        int c;

        log_setup("errandd", LOG_LEVEL_INFO);
        log_use_fields();
        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (c) {
                case 'y':
                        a.system = true;
                        break;
                case 'u':
                        a.user = true;
                        break;
                case 'a':
                        a.account = optarg;
                        break;
                case 'e':
                        a.embedded = true;
                        break;
                case 's':
                        a.state_dir = optarg;
                        break;
                case 'c':
                        a.config = optarg;
                        break;
                case 'k':
                        a.check = true;
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
        return run(&a);
}
