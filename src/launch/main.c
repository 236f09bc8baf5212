/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <getopt.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "launch/launcher.h"
#include "launch/programs.h"

#define ERRANDD_FD 3

static const char help[] =
        "errand-launch [--shim-fd N] [--bailey-fd N]\n\n"
        "Starts sessions for errandd, which talks to it over descriptor 3, a SOCK_SEQPACKET socket.\n\n"
        "  --shim-fd N, --bailey-fd N   the programs, open; else they are looked for in $ERRAND_LIBEXEC,\n"
        "                               beside this program, and where they are installed\n"
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

static bool is_seqpacket(int fd) {
        int value;
        socklen_t size = sizeof(value);

        return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &value, &size) == 0 && value == AF_UNIX &&
               getsockopt(fd, SOL_SOCKET, SO_TYPE, &value, &size) == 0 && value == SOCK_SEQPACKET;
}

/* 0, 1, 2 are open from here on, so that no descriptor that is passed on gets one of their numbers. */
static int fill_standard_fds(void) {
        for (int fd = 0; fd <= STDERR_FILENO; fd++)
                if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR | O_NOCTTY) != fd)
                        return -EBADF;
        return 0;
}

int main(int argc, char *argv[]) {
        static const struct option options[] = {
                {"shim-fd", required_argument, NULL, 's'}, {"bailey-fd", required_argument, NULL, 'b'},
                {"help", no_argument, NULL, 'h'},          {"version", no_argument, NULL, 'v'},         {},
        };
        int shim = -EBADF, bailey = -EBADF, c;

        if (fill_standard_fds() < 0)
                return EXIT_FAILURE;
        log_setup("errand-launch", LOG_LEVEL_INFO);
        /* Secrets pass through it; this makes no core file either. What a sandbox would inherit is left alone. */
        (void) prctl(PR_SET_DUMPABLE, 0);
        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                if (c == 'h' || c == 'v') {
                        fputs(c == 'h' ? help : "errand-launch " ERRAND_VERSION "\n", stdout);
                        return fflush(stdout) == 0 ? 0 : EXIT_FAILURE;
                }
                if ((c != 's' && c != 'b') || read_program(c == 's' ? "--shim-fd" : "--bailey-fd", optarg, c == 's' ? &shim : &bailey) < 0)
                        return 2;
        }
        if (optind < argc) {
                log_error("unexpected argument: %s; see --help", argv[optind]);
                return 2;
        }
        if (!is_seqpacket(ERRANDD_FD) || fd_cloexec(ERRANDD_FD, true) < 0) {
                log_error("descriptor 3 is not a SOCK_SEQPACKET socket: errandd starts this program");
                return 2;
        }
        if (find_program("errand-shim", "shim", &shim) < 0 || find_program("bailey", "bailey", &bailey) < 0)
                return EXIT_FAILURE;
        /* A terminal's signals are not for sessions. */
        (void) setsid();
        return launcher_run(ERRANDD_FD, shim, bailey) < 0 ? EXIT_FAILURE : 0;
}
