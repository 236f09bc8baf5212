/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "bailey/group.h"
#include "bailey/netfilter.h"
#include "bailey/pasta.h"
#include "bailey/trial.h"
#include "basic/fd.h"
#include "basic/program.h"
#include "basic/text.h"

void trial_control_group(_unused_ const Mechanism *m, Outcome *ret) {
        char text[512] = "";

        if (group_probe(text) < 0)
                outcome_fails(ret, 0, "%s", text);
        else
                outcome_works(ret, "%s", text);
}

/* ---- in a network namespace of its own ---- */

/* -1 with errno. It lasts as long as the descriptor. */
static int open_tun(const char **ret_at) {
        struct ifreq request = {.ifr_name = "bailey0", .ifr_flags = IFF_TUN | IFF_NO_PI};

        *ret_at = "/dev/net/tun";
        _cleanup_close_ int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
        if (fd < 0)
                return -1;
        *ret_at = "an interface cannot be made by /dev/net/tun";
        return ioctl(fd, TUNSETIFF, &request) < 0 ? -1 : TAKE_FD(fd);
}

static void make_tun(_unused_ const Mechanism *m, _unused_ int limits, Outcome *ret) {
        const char *at;

        _cleanup_close_ int fd = open_tun(&at);
        if (fd < 0)
                outcome_fails(ret, errno, "%s", at);
        else
                outcome_works(ret, "%s", "");
}

void trial_tun(const Mechanism *m, Outcome *ret) {
        trial_inside(make_tun, m, ret);
}

#define TRIAL_ADDRESS 0xc0000202 /* for documentation (RFC 5737), so that nobody has them */
#define TRIAL_PEER 0xc0000201

static int set_address(int fd, unsigned long call, uint32_t host_order) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(host_order)};
        struct ifreq request = {.ifr_name = "bailey0"};

        memcpy(&request.ifr_addr, &address, sizeof(address));
        return ioctl(fd, call, &request);
}

/* 0 or the positive errno, as below. */
static int raise_interface(void) {
        struct ifreq request = {.ifr_name = "bailey0"};

        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0 || set_address(fd, SIOCSIFADDR, TRIAL_ADDRESS) < 0 || set_address(fd, SIOCSIFDSTADDR, TRIAL_PEER) < 0)
                return errno;
        request.ifr_flags = IFF_UP | IFF_RUNNING;
        return ioctl(fd, SIOCSIFFLAGS, &request) < 0 ? errno : 0;
}

static int send_datagram(void) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(TRIAL_PEER)};

        _cleanup_close_ int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return errno;
        return sendto(fd, "x", 1, 0, (struct sockaddr *) &address, sizeof(address)) < 0 ? errno : 0;
}

/* The rules of --egress-proxy, by the code of a run. Whether they hold can be tried where there is an interface that they close. */
static void filter_packets(_unused_ const Mechanism *m, _unused_ int limits, Outcome *ret) {
        const Network network = {.mode = NETWORK_EGRESS_PROXY, .gateway = {htonl(0xa9fea901)}, .proxy_port = 8443};
        const char *at;
        Failure f = {};

        _cleanup_close_ int fd = open_tun(&at);
        int before = fd < 0 ? 0 : raise_interface();
        if (fd >= 0 && before == 0)
                before = send_datagram();
        if (before != 0)
                outcome_fails(ret, before, "nothing can be sent to try it by");
        else if (netfilter_install(&network, &f) < 0)
                outcome_fails_at(ret, &f);
        else if (fd >= 0 && send_datagram() != EPERM)
                outcome_fails(ret, 0, "what the rules shall stop is not stopped");
        else
                outcome_works(ret, "%s", "");
}

void trial_nftables(const Mechanism *m, Outcome *ret) {
        trial_inside(filter_packets, m, ret);
}

/* ---- pasta ---- */

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
        const char *program = pasta_find();
        char said[4096] = "";

        if (!program) {
                outcome_fails(ret, 0, "it is not in " PASTA_PLACES);
                return;
        }
        const char *const arguments[] = {program, "--config-net", "-q", "-t", "none", "-u", "none", "-T", "none", "-U", "none", "--",
                                         "/bin/cat", "/proc/net/route", NULL};
        int r = program_run(-EBADF, arguments, "", -1, said, sizeof(said));
        if (r < 0 && r != -EPIPE)
                outcome_fails(ret, -r, "%s cannot be run", program);
        else if (r != 0)
                outcome_fails(ret, 0, "%s failed%s%.*s", program, *said ? ": " : "", (int) strcspn(said, "\n"), said);
        else if (!has_default_route(said))
                outcome_fails(ret, 0, "%s ran, and connected nothing", program);
        else
                outcome_works(ret, "%s", program);
}
