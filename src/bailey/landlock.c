/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bailey/landlock.h"
#include "basic/fd.h"
#include "basic/path.h"
#include "basic/text.h"

/* Own names for the kernel's interface (include/uapi/linux/landlock.h), because the headers of the oldest system that this
 * builds on stop at ABI 2. */
#define CREATE_RULESET_VERSION (1U << 0)
#define RULE_PATH_BENEATH 1
#define RULE_NET_PORT 2 /* ABI 4, Linux 6.7 */

#define FS_EXECUTE (UINT64_C(1) << 0) /* ABI 1, Linux 5.13 */
#define FS_WRITE_FILE (UINT64_C(1) << 1)
#define FS_READ_FILE (UINT64_C(1) << 2)
#define FS_READ_DIR (UINT64_C(1) << 3)
#define FS_REMOVE_DIR (UINT64_C(1) << 4)
#define FS_REMOVE_FILE (UINT64_C(1) << 5)
#define FS_MAKE_CHAR (UINT64_C(1) << 6)
#define FS_MAKE_DIR (UINT64_C(1) << 7)
#define FS_MAKE_REG (UINT64_C(1) << 8)
#define FS_MAKE_SOCK (UINT64_C(1) << 9)
#define FS_MAKE_FIFO (UINT64_C(1) << 10)
#define FS_MAKE_BLOCK (UINT64_C(1) << 11)
#define FS_MAKE_SYM (UINT64_C(1) << 12)
#define FS_REFER (UINT64_C(1) << 13)     /* ABI 2, Linux 5.19 */
#define FS_TRUNCATE (UINT64_C(1) << 14)  /* ABI 3, Linux 6.2 */
#define FS_IOCTL_DEV (UINT64_C(1) << 15) /* ABI 5, Linux 6.10 */

#define NET_BIND_TCP (UINT64_C(1) << 0) /* ABI 4 */
#define NET_CONNECT_TCP (UINT64_C(1) << 1)

#define SCOPE_ABSTRACT_UNIX_SOCKET (UINT64_C(1) << 0) /* ABI 6, Linux 6.12 */
#define SCOPE_SIGNAL (UINT64_C(1) << 1)

/* Rights that a rule on something other than a directory may have. */
#define FS_FILE_RIGHTS (FS_EXECUTE | FS_WRITE_FILE | FS_READ_FILE | FS_TRUNCATE | FS_IOCTL_DEV)

struct ruleset_attr {
        uint64_t handled_access_fs;
        uint64_t handled_access_net; /* ABI 4 */
        uint64_t scoped;             /* ABI 6 */
};

struct path_beneath_attr {
        uint64_t allowed_access;
        int32_t parent_fd;
} __attribute__((packed));

struct net_port_attr {
        uint64_t allowed_access;
        uint64_t port; /* host byte order */
};

/* All rights that an ABI knows are handled, so that what is not granted is refused. Without ABI 2 the kernel refuses to
 * move files between directories whatever is granted. */
static uint64_t handled_rights(int abi) {
        uint64_t rights = (UINT64_C(1) << 13) - 1;

        if (abi >= 2)
                rights |= FS_REFER;
        if (abi >= 3)
                rights |= FS_TRUNCATE;
        if (abi >= 5)
                rights |= FS_IOCTL_DEV;
        return rights;
}

static uint64_t granted_rights(AccessRights rights) {
        uint64_t fs = 0;

        if (rights & ACCESS_READ)
                fs |= FS_READ_FILE | FS_READ_DIR;
        if (rights & ACCESS_LIST)
                fs |= FS_READ_DIR;
        if (rights & ACCESS_WRITE)
                fs |= FS_WRITE_FILE | FS_TRUNCATE | FS_REMOVE_DIR | FS_REMOVE_FILE | FS_MAKE_DIR | FS_MAKE_REG | FS_MAKE_SOCK |
                      FS_MAKE_FIFO | FS_MAKE_SYM | FS_REFER;
        if (rights & ACCESS_EXECUTE)
                fs |= FS_EXECUTE;
        if (rights & ACCESS_IOCTL)
                fs |= FS_IOCTL_DEV;
        return fs;
}

int landlock_abi(void) {
        long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, CREATE_RULESET_VERSION);
        return abi < 0 ? 0 : (int) MIN(abi, LANDLOCK_ABI_MAX);
}

GapSet landlock_gaps(int abi, bool ports) {
        GapSet gaps = 0;

        if (abi <= 0)
                return 1U << GAP_LANDLOCK | (ports ? 1U << GAP_LANDLOCK_NETWORK : 0);
        if (abi < 2)
                gaps |= 1U << GAP_LANDLOCK_REFER;
        if (abi < 3)
                gaps |= 1U << GAP_LANDLOCK_TRUNCATE;
        if (abi < LANDLOCK_ABI_PORTS && ports)
                gaps |= 1U << GAP_LANDLOCK_NETWORK;
        if (abi < 5)
                gaps |= 1U << GAP_LANDLOCK_IOCTL;
        if (abi < 6)
                gaps |= 1U << GAP_LANDLOCK_SCOPE;
        return gaps;
}

static int add_rule(int ruleset, const char *path, uint64_t rights) {
        struct stat st;

        _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0)
                /* What is not there needs no rule; what cannot be reached gets none. */
                return errno == ENOENT || errno == ENOTDIR || errno == EACCES ? 0 : -errno;
        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISDIR(st.st_mode))
                rights &= FS_FILE_RIGHTS;
        if (rights == 0)
                return 0;

        struct path_beneath_attr rule = {.allowed_access = rights, .parent_fd = fd};
        if (syscall(SYS_landlock_add_rule, ruleset, RULE_PATH_BENEATH, &rule, 0) < 0)
                return -errno;
        return 0;
}

/* Landlock grants the sum of what the rules of a path and of all directories above it say, so that one that repeats what another above it
 * says only costs each start. Not so where files may be written: each open looks upward until the right to truncate is found, too, and
 * ends there. Nor by host paths, where a directory can be reached by another mount. */
static bool repeats(const Plan *plan, const PlanAccess *a) {
        if (a->rights & ACCESS_WRITE)
                return false;
        for (size_t i = 0; i < plan->n_accesses; i++) {
                const PlanAccess *above = &plan->accesses[i];
                if (above->path && (a->rights & ~above->rights) == 0 && !streq(a->path, above->path) && path_beneath(a->path, above->path))
                        return true;
        }
        return false;
}

static int add_ports(int ruleset, const uint16_t *ports, size_t n, uint64_t right) {
        for (size_t i = 0; i < n; i++) {
                struct net_port_attr rule = {.allowed_access = right, .port = ports[i]};
                if (syscall(SYS_landlock_add_rule, ruleset, RULE_NET_PORT, &rule, 0) < 0)
                        return -errno;
        }
        return 0;
}

static uint64_t handled_ports(const Network *n, int abi) {
        if (abi < LANDLOCK_ABI_PORTS || !network_has_ports(n))
                return 0;
        return NET_BIND_TCP | (n->connect_any ? 0 : NET_CONNECT_TCP);
}

int landlock_restrict(const Plan *plan, int abi, bool isolated, Failure *f) {
        if (abi <= 0)
                return 0;

        uint64_t handled = handled_rights(abi), ports = handled_ports(plan->network, abi);
        struct ruleset_attr attr = {
                .handled_access_fs = handled,
                .handled_access_net = ports,
                .scoped = abi >= 6 ? SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL : 0,
        };
        /* An older kernel takes a larger structure as long as the rest is zero. */
        _cleanup_close_ int ruleset = (int) syscall(SYS_landlock_create_ruleset, &attr, sizeof(attr), 0);
        if (ruleset < 0)
                return failure_set(f, STAGE_LANDLOCK, errno, "creating the ruleset");

        for (size_t i = 0; i < plan->n_accesses; i++) {
                const PlanAccess *a = &plan->accesses[i];
                const char *path = isolated ? a->path : a->host_path;

                if (!path || (isolated && repeats(plan, a)))
                        continue;
                int k = add_rule(ruleset, isolated ? path : path_from_working_directory(path), granted_rights(a->rights) & handled);
                if (k < 0)
                        return failure_set(f, STAGE_LANDLOCK, k, "%s", path);
        }
        int r = ports & NET_CONNECT_TCP ? add_ports(ruleset, plan->network->connect_ports, plan->network->n_connect_ports,
                                                    NET_CONNECT_TCP) : 0;
        if (r >= 0 && ports)
                r = add_ports(ruleset, plan->network->bind_ports, plan->network->n_bind_ports, NET_BIND_TCP);
        if (r < 0)
                return failure_set(f, STAGE_LANDLOCK, r, "the network's ports");
        if (syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
                return failure_set(f, STAGE_LANDLOCK, errno, "applying the ruleset");
        return 0;
}

int landlock_signals_new(int abi, int *ret) {
        /* A domain that does not handle it refuses it everywhere. */
        const struct ruleset_attr attributes = {.handled_access_fs = FS_REFER, .scoped = SCOPE_SIGNAL};

        if (abi < 6) {
                *ret = -EBADF;
                return 0;
        }
        _cleanup_close_ int ruleset = (int) syscall(SYS_landlock_create_ruleset, &attributes, sizeof(attributes), 0);
        if (ruleset < 0)
                return -errno;
        int r = add_rule(ruleset, "/", FS_REFER);
        if (r < 0)
                return r;
        *ret = TAKE_FD(ruleset);
        return 0;
}

int landlock_signals_restrict(int ruleset) {
        return ruleset >= 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}

int landlock_restrict_right(LandlockRight right) {
        static const struct ruleset_attr attributes[_LANDLOCK_RIGHT_MAX] = {
                [LANDLOCK_RIGHT_READ] = {.handled_access_fs = FS_READ_FILE | FS_READ_DIR},
                [LANDLOCK_RIGHT_REFER] = {.handled_access_fs = FS_REFER},
                [LANDLOCK_RIGHT_TRUNCATE] = {.handled_access_fs = FS_TRUNCATE},
                [LANDLOCK_RIGHT_CONNECT] = {.handled_access_net = NET_CONNECT_TCP},
                [LANDLOCK_RIGHT_IOCTL] = {.handled_access_fs = FS_IOCTL_DEV},
                [LANDLOCK_RIGHT_SCOPE] = {.scoped = SCOPE_ABSTRACT_UNIX_SOCKET | SCOPE_SIGNAL},
        };

        _cleanup_close_ int ruleset = (int) syscall(SYS_landlock_create_ruleset, &attributes[right], sizeof(attributes[right]), 0);
        if (ruleset < 0)
                return -errno;
        return syscall(SYS_landlock_restrict_self, ruleset, 0) < 0 ? -errno : 0;
}
