/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <getopt.h>
#include <netdb.h>
#include <signal.h>
#include <sys/socket.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/log.h"
#include "basic/text.h"
#include "connect/dialogue.h"
#include "connect/relay.h"

static const char help[] =
        "errand-connect HOST PORT\n"
        "\n"
        "Connects standard input and output with a port of a host, through the session's\n"
        "proxy. It is made for ssh:\n"
        "\n"
        "  ssh -o ProxyCommand='errand-connect %h %p' HOST\n"
        "\n"
        "The proxy and its credential are taken from https_proxy, or all_proxy.\n"
        "\n"
        "  --help, --version\n"
        "\n"
        "Exit codes: 0 the connection ended; 1 there was none, or it broke off; 2 wrong\n"
        "arguments, or no proxy; 3 the session may not reach this host or port.\n";

enum {
        EXIT_ENDED = 0,
        EXIT_NO_CONNECTION = 1,
        EXIT_USAGE = 2,
        EXIT_NOT_ALLOWED = 3,
};

/* The proxy is this session's own, on loopback; its name, if it is one, is in the hosts file. */
static int reach_proxy(const ProxyUrl *proxy, int *ret) {
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *list;
        char port[8];
        int r = -EHOSTUNREACH;

        (void) snprintf(port, sizeof(port), "%u", proxy->port);
        int error = getaddrinfo(proxy->host, port, &hints, &list);
        if (error != 0) {
                log_error("the proxy %s cannot be looked up: %s", proxy->host, gai_strerror(error));
                return -EHOSTUNREACH;
        }
        for (struct addrinfo *a = list; a && r < 0; a = a->ai_next) {
                _cleanup_close_ int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
                r = fd < 0 || connect(fd, a->ai_addr, a->ai_addrlen) < 0 ? -errno : 0;
                if (r >= 0)
                        *ret = TAKE_FD(fd);
        }
        freeaddrinfo(list);
        if (r < 0)
                log_error_errno(r, "the session's proxy %s port %u cannot be reached: %m; its session may have ended", proxy->host, proxy->port);
        return r;
}

static int find_proxy(ProxyUrl **ret) {
        const char *name = NULL, *problem = NULL;

        int r = proxy_url_from_environment(ret, &name, &problem);
        if (r == -ENOENT)
                log_error("neither https_proxy nor all_proxy is set: there is no proxy to go through; run it in a session");
        else if (r < 0)
                log_error("%s cannot be used: %s", name, problem ?: strerror(-r));
        return r;
}

static int refused(const char *host, const char *port, const ProxyAnswer *answer) {
        if (answer->status == 407)
                log_error("the proxy does not take the credential of the proxy variables: they are another session's, or were changed");
        else
                log_error("%s port %s: %s", host, port, answer->text);
        return answer->status == 403 ? EXIT_NOT_ALLOWED : EXIT_NO_CONNECTION;
}

static int run(const char *host, const char *port) {
        _cleanup_(proxy_url_freep) ProxyUrl *proxy = NULL;
        _cleanup_(proxy_answer_done) ProxyAnswer answer = {};
        _cleanup_close_ int fd = -EBADF;
        char authority[AUTHORITY_MAX + 1];

        if (authority_format(host, port, authority) < 0) {
                log_error("%s %s is no host and port", host, port);
                return EXIT_USAGE;
        }
        if (find_proxy(&proxy) < 0)
                return EXIT_USAGE;
        if (reach_proxy(proxy, &fd) < 0)
                return EXIT_NO_CONNECTION;
        int r = dialogue_hold(fd, proxy, authority, &answer);
        if (r < 0) {
                log_error("%s port %s: the proxy gave no answer: %s", host, port,
                          r == -ENODATA ? "it ended the connection" : r == -EBADMSG || r == -EMSGSIZE ? "it is no HTTP proxy" : strerror(-r));
                return EXIT_NO_CONNECTION;
        }
        if (answer.text)
                return refused(host, port, &answer);
        r = write_all(STDOUT_FILENO, answer.early, answer.early_size);
        if (r >= 0)
                r = relay(fd);
        if (r < 0) {
                log_error_errno(r, "%s port %s: the connection broke off: %m", host, port);
                return EXIT_NO_CONNECTION;
        }
        return EXIT_ENDED;
}

int main(int argc, char *argv[]) {
        static const struct option options[] = {{"help", no_argument, NULL, 'h'}, {"version", no_argument, NULL, 'v'}, {}};
        int c;

        log_setup("errand-connect", LOG_LEVEL_INFO);
        while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
                if (c != 'h' && c != 'v')
                        return EXIT_USAGE; /* getopt has said it */
                fputs(c == 'h' ? help : "errand-connect " ERRAND_VERSION "\n", stdout);
                return fflush(stdout) == 0 ? EXIT_ENDED : EXIT_NO_CONNECTION;
        }
        if (argc - optind != 2) {
                log_error("a host and a port are needed; see --help");
                return EXIT_USAGE;
        }
        (void) signal(SIGPIPE, SIG_IGN);
        return run(argv[optind], argv[optind + 1]);
}
