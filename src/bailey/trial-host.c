/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dlfcn.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "bailey/group.h"
#include "bailey/trial.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"

void trial_control_group(_unused_ const Mechanism *m, Outcome *ret) {
        char text[512] = "";

        if (group_probe(text) < 0)
                outcome_fails(ret, 0, "%s", text);
        else
                outcome_works(ret, "%s", text);
}

/* ---- in a network namespace of its own ---- */

static void make_tun(_unused_ const Mechanism *m, _unused_ int limits, Outcome *ret) {
        struct ifreq request = {.ifr_name = "bailey0", .ifr_flags = IFF_TUN | IFF_NO_PI};

        _cleanup_close_ int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
        if (fd < 0)
                outcome_fails(ret, errno, "/dev/net/tun");
        else if (ioctl(fd, TUNSETIFF, &request) < 0)
                outcome_fails(ret, errno, "an interface cannot be made by /dev/net/tun");
        else
                outcome_works(ret, "%s", "");
}

void trial_tun(const Mechanism *m, Outcome *ret) {
        trial_inside(make_tun, m, ret);
}

/* Fixed places, whatever the environment says. */
static void *load_nftables(void) {
        static const char *const places[] = {
#if defined(__x86_64__)
                "/usr/lib/x86_64-linux-gnu/libnftables.so.1",
#elif defined(__aarch64__)
                "/usr/lib/aarch64-linux-gnu/libnftables.so.1",
#elif defined(__riscv)
                "/usr/lib/riscv64-linux-gnu/libnftables.so.1",
#endif
                "/usr/lib64/libnftables.so.1",
                "/usr/lib/libnftables.so.1",
        };
        void *handle = NULL;

        for (size_t i = 0; i < ELEMENTSOF(places) && !handle; i++)
                handle = dlopen(places[i], RTLD_NOW | RTLD_LOCAL);
        return handle;
}

static bool find_symbol(void *handle, const char *name, void *ret) {
        void *symbol = dlsym(handle, name);
        memcpy(ret, &symbol, sizeof(symbol));
        return symbol;
}

/* 0 when a datagram to loopback was sent, else the positive errno. */
static int send_datagram(void) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};

        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return errno;
        return sendto(fd, "x", 1, 0, (struct sockaddr *) &address, sizeof(address)) < 0 ? errno : 0;
}

static void filter_packets(_unused_ const Mechanism *m, _unused_ int limits, Outcome *ret) {
        void *(*make)(uint32_t flags);
        int (*run)(void *context, const char *commands), (*buffer_error)(void *context);
        const char *(*error)(void *context);

        void *handle = load_nftables();
        if (!handle || !find_symbol(handle, "nft_ctx_new", &make) || !find_symbol(handle, "nft_run_cmd_from_buffer", &run) ||
            !find_symbol(handle, "nft_ctx_buffer_error", &buffer_error) || !find_symbol(handle, "nft_ctx_get_error_buffer", &error)) {
                outcome_fails(ret, 0, "libnftables is not there");
                return;
        }
        int before = send_datagram();
        void *context = make(0);
        if (!context || buffer_error(context) < 0)
                outcome_fails(ret, 0, "libnftables cannot be used");
        else if (before != 0)
                outcome_fails(ret, before, "nothing can be sent over loopback to try it by");
        else if (run(context, "add table inet bailey\n"
                              "add chain inet bailey out { type filter hook output priority 0; policy drop; }\n") != 0) {
                const char *said = error(context);
                outcome_fails(ret, 0, "the kernel refuses rules: %.*s", (int) strcspn(said, "\n"), said);
        } else if (send_datagram() != EPERM)
                outcome_fails(ret, 0, "what the rules shall stop is not stopped");
        else
                outcome_works(ret, "%s", "");
}

void trial_nftables(const Mechanism *m, Outcome *ret) {
        trial_inside(filter_packets, m, ret);
}

/* ---- pasta ---- */

static const char *find_pasta(void) {
        static const char *const places[] = {"/usr/bin/pasta", "/usr/local/bin/pasta"};

        for (size_t i = 0; i < ELEMENTSOF(places); i++)
                if (access(places[i], X_OK) == 0)
                        return places[i];
        return NULL;
}

/* What the program inside says, or pasta when it fails, is read from one pipe each. */
static pid_t start_pasta(const char *program, int output, int errors) {
        char *const arguments[] = {(char *) program, (char *) "--config-net", (char *) "-q", (char *) "-t", (char *) "none", (char *) "-u",
                                   (char *) "none", (char *) "-T", (char *) "none", (char *) "-U", (char *) "none", (char *) "--",
                                   (char *) "/bin/cat", (char *) "/proc/net/route", NULL};
        char *const none[] = {NULL};

        pid_t pid = fork();
        if (pid != 0)
                return pid;
        _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        if (null >= 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) >= 0 && chdir("/") >= 0 && dup2(null, STDIN_FILENO) >= 0 &&
            dup2(output, STDOUT_FILENO) >= 0 && dup2(errors, STDERR_FILENO) >= 0 && fd_close_all_except(3, NULL, 0) >= 0)
                (void) execve(program, arguments, none);
        _exit(127);
}

/* The lines of proc_net_route: name, destination; a default route's is 00000000. */
static bool has_default_route(const char *text) {
        for (const char *line = text; *line; line += strspn(line, "\n")) {
                const char *tab = strchr(line, '\t');
                if (tab && startswith(tab + 1, "00000000\t"))
                        return true;
                line += strcspn(line, "\n");
        }
        return false;
}

void trial_pasta(_unused_ const Mechanism *m, Outcome *ret) {
        const char *program = find_pasta();
        char text[4096] = "", said[512] = "";
        int output[2], errors[2], status = 0;

        if (!program) {
                outcome_fails(ret, 0, "it is neither in /usr/bin nor in /usr/local/bin");
                return;
        }
        if (pipe2(output, O_CLOEXEC) < 0 || pipe2(errors, O_CLOEXEC) < 0) {
                outcome_fails(ret, errno, "pipe");
                return;
        }
        pid_t pid = start_pasta(program, output[1], errors[1]);
        safe_close(output[1]);
        safe_close(errors[1]);
        ssize_t n = read_all(output[0], text, sizeof(text) - 1);
        text[MAX(n, 0)] = 0;
        n = read_all(errors[0], said, sizeof(said) - 1);
        said[MAX(n, 0)] = 0;
        if (pid < 0 || waitpid(pid, &status, 0) < 0)
                outcome_fails(ret, errno, "%s cannot be run", program);
        else if (status != 0)
                outcome_fails(ret, 0, "%s failed%s%.*s", program, *said ? ": " : "", (int) strcspn(said, "\n"), said);
        else if (!has_default_route(text))
                outcome_fails(ret, 0, "%s ran, and connected nothing", program);
        else
                outcome_works(ret, "%s", program);
        safe_close(output[0]);
        safe_close(errors[0]);
}
