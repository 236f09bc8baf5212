/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <getopt.h>
#include <pwd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "broker/broker.h"
#include "broker/keep.h"

#define SECONDS_MAX (30U * 24U * 3600U) /* of an option's */

static const char help[] = "errand-broker [OPTIONS]\n\n"
                           "One session's way out. Started as by socket activation, with two\n"
                           "SOCK_SEQPACKET sockets:\n"
                           "  control   listening or connected: the supervisor's requests\n"
                           "  session   listening: where the session hands its listener over\n"
                           "A service manager that keeps descriptors for it (FileDescriptorStoreMax=) has\n"
                           "it go on with its session after it was killed.\n\n"
                           "  --control-user USER  account, by name or number, that control accepts\n"
                           "                       beside root (default: its own)\n"
                           "  --control-uid UID    the same, by number only\n"
                           "  --idle SECONDS       leave after so long without supervisor, listener and\n"
                           "                       connections (default: 30)\n"
                           "  --tunnel-idle SECONDS\n"
                           "                       end a tunnel that moved nothing for so long\n"
                           "                       (default: 7200)\n"
                           "  --debug              say more\n"
                           "  --help, --version\n";

static int usage_error(const char *what, const char *which) {
        log_error("%s%s; see --help", what, which);
        return 2;
}

/* It holds keys: no core file, no other process of its account reads its memory, no program it might start gains anything. */
static void harden(void) {
        struct rlimit limit = {};

        (void) prctl(PR_SET_DUMPABLE, 0);
        (void) prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
        (void) setrlimit(RLIMIT_CORE, &limit);
        if (getrlimit(RLIMIT_NOFILE, &limit) >= 0) {
                limit.rlim_cur = limit.rlim_max;
                (void) setrlimit(RLIMIT_NOFILE, &limit);
        }
}

/* 0, or the exit code after an error was said. */
static int take_sockets(int *ret_control, int *ret_session, Stored *stored) {
        _cleanup_strv_free_ char **names = NULL;
        int control = -1, session = -1;

        int n = sd_listen_fds_with_names(1, &names);
        for (int i = 0; i < n; i++) {
                int fd = SD_LISTEN_FDS_START + i, *slot = streq(names[i], "control")   ? &control
                                                          : streq(names[i], "session") ? &session
                                                                                       : NULL;
                int r = !slot ? stored_add(stored, names[i], fd) : *slot >= 0 ? -EEXIST : 0;
                if (r < 0)
                        return usage_error(r == -EEXIST ? "this socket was passed twice: " : "an unknown socket was passed: ", names[i]);
                if (slot)
                        *slot = fd;
        }
        if (control < 0 || session < 0)
                return usage_error("socket activation passed no socket of the name ", control < 0 ? "\"control\"" : "\"session\"");
        if (sd_is_socket(control, AF_UNIX, SOCK_SEQPACKET, -1) <= 0)
                return usage_error("this is not an AF_UNIX SOCK_SEQPACKET socket: ", "control");
        if (sd_is_socket(session, AF_UNIX, SOCK_SEQPACKET, 1) <= 0)
                return usage_error("this is not a listening AF_UNIX SOCK_SEQPACKET socket: ", "session");
        *ret_control = control;
        *ret_session = session;
        return 0;
}

/* A number is a uid, whether or not an account has it. */
static int parse_user(const char *text, uid_t *ret) {
        uint64_t number;

        if (parse_u64(text, UINT32_MAX - 1, &number) >= 0) {
                *ret = (uid_t) number;
                return 0;
        }
        errno = 0;
        const struct passwd *user = getpwnam(text);
        if (!user)
                return errno > 0 ? -errno : -ENOENT;
        *ret = user->pw_uid;
        return 0;
}

typedef struct Options {
        uid_t uid;
        usec_t idle_usec, tunnel_idle_usec; /* 0: as limits.h has it */
} Options;

static int parse_seconds(const char *text, usec_t *ret) {
        uint64_t n;

        if (parse_u64(text, SECONDS_MAX, &n) < 0 || n == 0)
                return -EINVAL;
        *ret = n * USEC_PER_SEC;
        return 0;
}

/* 0, or the exit code after an error was said; -1: help or version was asked for, and given. */
static int parse_options(int argc, char *argv[], Options *o) {
        static const struct option options[] = {
                {"control-user", required_argument, NULL, 'U'},
                {"control-uid", required_argument, NULL, 'u'},
                {"idle", required_argument, NULL, 'i'},
                {"tunnel-idle", required_argument, NULL, 't'},
                {"debug", no_argument, NULL, 'd'},
                {"help", no_argument, NULL, 'h'},
                {"version", no_argument, NULL, 'v'},
                {},
        };
        uint64_t uid;
        int c;

        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0)
                switch (c) {
                case 'h':
                case 'v':
                        fputs(c == 'h' ? help : "errand-broker " ERRAND_VERSION "\n", stdout);
                        return -1;
                case 'd':
                        log_set_max_level(LOG_LEVEL_DEBUG);
                        break;
                case 'u':
                        if (parse_u64(optarg, UINT32_MAX - 1, &uid) < 0)
                                return usage_error("--control-uid is not a user id: ", optarg);
                        o->uid = (uid_t) uid;
                        break;
                case 'U':
                        if (parse_user(optarg, &o->uid) < 0)
                                return usage_error("--control-user names no account of this host: ", optarg);
                        break;
                case 'i':
                case 't':
                        if (parse_seconds(optarg, c == 'i' ? &o->idle_usec : &o->tunnel_idle_usec) < 0)
                                return usage_error(c == 'i' ? "--idle is not 1 to 2592000 seconds: " : "--tunnel-idle is not 1 to 2592000 seconds: ",
                                                   optarg);
                        break;
                default:
                        return 2;
                }
        return optind < argc ? usage_error("unexpected argument: ", argv[optind]) : 0;
}

int main(int argc, char *argv[]) {
        _cleanup_(broker_freep) Broker *b = NULL;
        Options o = {.uid = getuid()};
        Stored stored = {};
        int control, session;

        log_setup("errand-broker", LOG_LEVEL_INFO);
        log_use_fields();
        harden();
        int r = parse_options(argc, argv, &o);
        if (r != 0)
                return MAX(r, 0);
        r = take_sockets(&control, &session, &stored);
        if (r != 0)
                return r;
        r = broker_new(control, session, o.uid, &b);
        if (r >= 0) {
                b->idle_usec = o.idle_usec;
                b->tunnel_idle_usec = o.tunnel_idle_usec;
                r = keep_restore(b, &stored);
        }
        if (r >= 0)
                r = broker_run(b);
        if (r < 0)
                log_error_errno(r, "the broker failed: %m");
        return r < 0 ? 1 : 0;
}
