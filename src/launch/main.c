/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <getopt.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "launch/launcher.h"
#include "launch/limits.h"
#include "launch/programs.h"

#define ERRANDD_FD SD_LISTEN_FDS_START

static const char help[] =
        "errand-launch [--errandd USER] [--idle-ms N] [--shim-ahead]\n"
        "                     [--shim-fd N] [--bailey-fd N]\n"
        "\n"
        "Starts sessions for errandd, which talks to it over descriptor 3, a\n"
        "SOCK_SEQPACKET socket. Where that listens, as socket activation passes it,\n"
        "errandd connects; sessions go on when it leaves.\n"
        "\n"
        "  --errandd USER         the account that may connect, by name or number; else\n"
        "                         this program's own\n"
        "  --idle-ms N            how long to stay without errandd and without a session:\n"
        "                         30000\n"
        "  --shim-ahead           as a service: one errand-shim is started ahead,\n"
        "                         and waits for the session to come\n"
        "  --shim-fd N, --bailey-fd N\n"
        "                         the programs, open; else they are looked for in\n"
        "                         $ERRAND_LIBEXEC, beside this program, and where they\n"
        "                         are installed\n"
        "  --help, --version\n";

static int read_program(const char *option, const char *value, int *ret) {
        int fd;

        if (parse_fd(value, &fd) < 0 || fd <= ERRANDD_FD || fd_cloexec(fd, true) < 0 || program_check(fd) < 0) {
                log_error("%s %s: wants the number of a descriptor above 3 of a program", option, value);
                return -EINVAL;
        }
        *ret = fd;
        return 0;
}

static int find_program(const char *name, const char *folder, int *fd) {
        if (*fd >= 0)
                return 0;
        *fd = program_open(name, folder);
        if (*fd < 0)
                return log_error_errno(*fd, "%s is not found or cannot be executed: %m; set ERRAND_LIBEXEC to its directory", name);
        return 0;
}

static int read_user(const char *value, uid_t *ret) {
        uint64_t number;

        if (parse_u64(value, UINT32_MAX - 1, &number) >= 0) {
                *ret = (uid_t) number;
                return 0;
        }
        errno = 0;
        const struct passwd *p = getpwnam(value);
        if (!p) {
                log_error("--errandd %s: there is no such account", value);
                return -ESRCH;
        }
        *ret = p->pw_uid;
        return 0;
}

static int read_option(LauncherOptions *o, int c) {
        uint64_t number;

        switch (c) {
        case 's':
                return read_program("--shim-fd", optarg, &o->shim);
        case 'b':
                return read_program("--bailey-fd", optarg, &o->bailey);
        case 'e':
                return read_user(optarg, &o->errandd_uid);
        case 'i':
                if (parse_u64(optarg, IDLE_MS_MAX, &number) < 0) {
                        log_error("--idle-ms %s: wants a number of milliseconds, at most %u", optarg, IDLE_MS_MAX);
                        return -EINVAL;
                }
                o->idle_usec = number * USEC_PER_MSEC;
                return 0;
        case 'a':
                o->keeps_ahead = true;
                return 0;
        default:
                return -EINVAL;
        }
}

/* What errandd, or the service manager, has passed. Its variables end here. */
static int read_socket(LauncherOptions *o) {
        int n = sd_listen_fds(1);

        if (n > 1) {
                log_error("%d sockets were passed, where one is served: a socket unit of its own starts this program", n);
                return -EINVAL;
        }
        o->fd = ERRANDD_FD;
        o->listening = n == 1;
        if (sd_is_socket(o->fd, AF_UNIX, SOCK_SEQPACKET, o->listening) <= 0 || fd_cloexec(o->fd, true) < 0) {
                log_error(o->listening ? "the socket that was passed is not a SOCK_SEQPACKET socket that listens; see errand-launch.socket"
                                       : "descriptor 3 is not a SOCK_SEQPACKET socket: errandd starts this program");
                return -EINVAL;
        }
        return 0;
}

int main(int argc, char *argv[]) {
        static const struct option options[] = {
                {"shim-fd", required_argument, NULL, 's'}, {"bailey-fd", required_argument, NULL, 'b'},
                {"errandd", required_argument, NULL, 'e'}, {"idle-ms", required_argument, NULL, 'i'},
                {"shim-ahead", no_argument, NULL, 'a'},
                {"help", no_argument, NULL, 'h'},          {"version", no_argument, NULL, 'v'},         {},
        };
        LauncherOptions o = {.fd = -EBADF, .errandd_uid = getuid(), .idle_usec = IDLE_USEC, .shim = -EBADF, .bailey = -EBADF};
        int c;

        if (fd_fill_standard() < 0) /* no descriptor that is passed on gets one of their numbers */
                return EXIT_FAILURE;
        log_setup("errand-launch", LOG_LEVEL_INFO);
        log_use_fields();
        /* Secrets pass through it; this makes no core file either. What a sandbox would inherit is left alone. */
        (void) prctl(PR_SET_DUMPABLE, 0);
        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                if (c == 'h' || c == 'v') {
                        fputs(c == 'h' ? help : "errand-launch " ERRAND_VERSION "\n", stdout);
                        return fflush(stdout) == 0 ? 0 : EXIT_FAILURE;
                }
                if (read_option(&o, c) < 0)
                        return 2;
        }
        if (optind < argc) {
                log_error("unexpected argument: %s; see --help", argv[optind]);
                return 2;
        }
        if (read_socket(&o) < 0)
                return 2;
        if (find_program("errand-shim", "shim", &o.shim) < 0 || find_program("bailey", "bailey", &o.bailey) < 0)
                return EXIT_FAILURE;
        /* A terminal's signals are not for sessions. */
        (void) setsid();
        return launcher_run(&o) < 0 ? EXIT_FAILURE : 0;
}
