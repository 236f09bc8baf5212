/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bailey/pasta.h"
#include "basic/clock.h"
#include "basic/fd.h"
#include "basic/parse.h"
#include "basic/program.h"
#include "basic/text.h"

/* What the namespace looks like from inside: nothing of it is the host's. Locally administered MAC addresses. */
#define INTERFACE "eth0"
#define INSIDE_MAC "02:62:61:69:6c:79"
#define GATEWAY_MAC "02:62:61:69:6c:01"
#define INSIDE_IPV6 "fd62:6169:6c65:79::f" /* unique local (RFC 4193) */

#define START_TIMEOUT_USEC (10 * USEC_PER_SEC) /* it takes a tenth of one */

const char *pasta_find(void) {
        static const char *const places[] = {"/usr/bin/pasta", "/usr/local/bin/pasta"};

        for (size_t i = 0; i < ELEMENTSOF(places); i++)
                if (access(places[i], X_OK) == 0)
                        return places[i];
        return NULL;
}

/* ---- what it is told ---- */

static int add_ports(const Network *n, char ***arguments) {
        _cleanup_free_ char *list = NULL;

        int r = strv_extend(arguments, "--tcp-ports");
        for (size_t i = 0; n->mode == NETWORK_PROXY && i < n->n_bind_ports && r >= 0; i++)
                r = string_append(&list, "%s%u", list ? "," : "", n->bind_ports[i]);
        return r < 0 ? r : strv_extend(arguments, list ?: "none");
}

int pasta_arguments(const Network *n, const char *program, char ***ret) {
        char address[INET_ADDRSTRLEN], gateway[INET_ADDRSTRLEN], resolver[INET_ADDRSTRLEN], prefix[8];
        bool proxy = n->mode == NETWORK_PROXY;

        (void) inet_ntop(AF_INET, &n->address, address, sizeof(address));
        (void) inet_ntop(AF_INET, &n->gateway, gateway, sizeof(gateway));
        (void) inet_ntop(AF_INET, &n->resolver, resolver, sizeof(resolver));
        (void) snprintf(prefix, sizeof(prefix), "%u", n->prefix);
        /* The names of options that passt had in March 2023 and still has. Its defaults are the host's addresses and interface name,
         * and to forward whatever listens on either side. */
        const char *const always[] = {
                program, "--quiet", "--config-net", "--no-dhcp", "--no-dhcpv6", "--no-ra", "--no-netns-quit",
                "--netns", "/proc/self/fd/0", "--userns", "/proc/self/fd/1",
                "--ns-ifname", INTERFACE, "--ns-mac-addr", INSIDE_MAC, "--mac-addr", GATEWAY_MAC,
                "--address", address, "--netmask", prefix, "--gateway", gateway,
                "--udp-ports", "none", "--tcp-ns", "none", "--udp-ns", "none",
        };
        static const char *const ipv6[] = {"--address", INSIDE_IPV6, "--gateway", NETWORK_GATEWAY_IPV6};
        const char *const names[] = {"--no-map-gw", "--dns-forward", resolver};
        char **list = NULL;
        int r = 0;

        for (size_t i = 0; i < ELEMENTSOF(always) && r >= 0; i++)
                r = strv_extend(&list, always[i]);
        for (size_t i = 0; n->ipv6 && i < ELEMENTSOF(ipv6) && r >= 0; i++)
                r = strv_extend(&list, ipv6[i]);
        if (!n->ipv6 && r >= 0)
                r = strv_extend(&list, "--ipv4-only");
        for (size_t i = 0; proxy && i < ELEMENTSOF(names) && r >= 0; i++)
                r = strv_extend(&list, names[i]);
        if (r >= 0)
                r = add_ports(n, &list);
        if (r < 0) {
                strv_free(list);
                return r;
        }
        *ret = list;
        return 0;
}

/* ---- the keeper ---- */

static void kill_children(void) {
        char path[64], list[512];

        (void) snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int) getpid());
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t n = fd < 0 ? -1 : pread(fd, list, sizeof(list) - 1, 0);
        if (n <= 0)
                return;
        list[n] = 0;
        for (char *save = NULL, *p = strtok_r(list, " \n", &save); p; p = strtok_r(NULL, " \n", &save)) {
                uint64_t pid;
                if (parse_u64(p, INT32_MAX, &pid) >= 0 && pid > 1)
                        (void) kill((pid_t) pid, SIGKILL);
        }
}

/* All signals are blocked. Ends when told to, or when nothing is left to keep. */
_noreturn_ static void keep(void) {
        sigset_t set;

        (void) sigemptyset(&set);
        (void) sigaddset(&set, SIGTERM);
        (void) sigaddset(&set, SIGCHLD);
        for (;;) {
                while (waitpid(-1, NULL, WNOHANG) > 0)
                        ;
                if (waitpid(-1, NULL, WNOHANG) < 0)
                        _exit(EXIT_FAILURE);
                if (sigwaitinfo(&set, NULL) == SIGTERM)
                        break;
        }
        while (waitpid(-1, NULL, WNOHANG) >= 0) {
                kill_children();
                (void) waitpid(-1, NULL, 0);
        }
        _exit(EXIT_SUCCESS);
}

_noreturn_ static void keeper(char *const *arguments, pid_t parent, int user_namespace, int network_namespace, int answer) {
        int status = 0;

        /* A session of its own, so that what the terminal sends to the caller's processes does not end it first. */
        if (setsid() < 0 || prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != parent ||
            fd_close_all_except(3, (const int[]){user_namespace, network_namespace, answer}, 3) < 0)
                _exit(EXIT_FAILURE);
        pid_t pid = fork();
        if (pid == 0) /* The namespaces take the place of the standard streams, because newer versions close all else that they inherit. */
                program_execute(-EBADF, arguments, &(ProgramStreams){.input = network_namespace, .output = user_namespace, .errors = answer}, -1);
        safe_close(user_namespace);
        safe_close(network_namespace);
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int fd = 0; fd <= 2 && null >= 0; fd++)
                (void) dup2(null, fd);
        while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
                ;
        if (pid < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0 || write(answer, "", 1) != 1)
                _exit(EXIT_FAILURE);
        safe_close(answer);
        safe_close(null);
        keep();
}

/* ---- this side of it ---- */

/* The last line that is about something; without a system log it complains of that for each. */
static void last_line(char *text, char *ret, size_t size) {
        (void) snprintf(ret, size, "%s", "it could not be started");
        for (char *save = NULL, *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
                if (!startswith(line, "Failed to send "))
                        (void) snprintf(ret, size, "%s", line);
}

/* Its words, up to the keeper's NUL. */
static int await(int fd, Failure *f) {
        char text[1024], line[256];
        size_t size = 0;
        usec_t deadline = now_monotonic() + START_TIMEOUT_USEC;

        for (;;) {
                usec_t now = now_monotonic();
                struct pollfd p = {.fd = fd, .events = POLLIN};
                int ready = now < deadline ? poll(&p, 1, (int) ((deadline - now) / USEC_PER_MSEC + 1)) : 0;
                if (ready < 0 && errno == EINTR)
                        continue;
                if (ready <= 0)
                        return failure_set(f, STAGE_PASTA, 0, "it did not configure the network within 10 seconds");
                ssize_t n = read(fd, text + size, sizeof(text) - 1 - size);
                if (n <= 0)
                        break;
                size += (size_t) n;
                if (text[size - 1] == 0)
                        return 0;
                if (size > sizeof(text) / 2) { /* keep the end */
                        size_t half = size / 2;
                        memmove(text, text + half, size - half);
                        size -= half;
                }
        }
        text[size] = 0;
        last_line(text, line, sizeof(line));
        return failure_set(f, STAGE_PASTA, 0, "%s", line);
}

int pasta_start(const Network *n, int user_namespace, int network_namespace, pid_t *ret_keeper, Failure *f) {
        _cleanup_strv_free_ char **arguments = NULL;
        const char *program = pasta_find();
        int pair[2];

        if (!program)
                return failure_set(f, STAGE_PASTA, 0, "it is not in " PASTA_PLACES);
        if (pasta_arguments(n, program, &arguments) < 0)
                return failure_set(f, STAGE_PASTA, ENOMEM, "%s", "");
        if (pipe2(pair, O_CLOEXEC) < 0)
                return failure_set(f, STAGE_PASTA, errno, "pipe");
        _cleanup_close_ int answer = pair[0];
        pid_t parent = getpid(), pid = fork();
        if (pid == 0)
                keeper(arguments, parent, user_namespace, network_namespace, pair[1]);
        safe_close(pair[1]);
        if (pid < 0)
                return failure_set(f, STAGE_PASTA, errno, "fork");
        int r = await(answer, f);
        if (r < 0) {
                pasta_stop(&pid);
                return r;
        }
        *ret_keeper = pid;
        return 0;
}

bool pasta_ended(pid_t *keeper) {
        if (*keeper <= 0 || waitpid(*keeper, NULL, WNOHANG) != *keeper)
                return false;
        *keeper = 0;
        return true;
}

void pasta_stop(pid_t *keeper) {
        if (*keeper <= 0)
                return;
        (void) kill(*keeper, SIGTERM);
        while (waitpid(*keeper, NULL, 0) < 0 && errno == EINTR)
                ;
        *keeper = 0;
}
