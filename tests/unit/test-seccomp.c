/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The generated filters, run by an interpreter of their language: what a kernel without x32, or an account without
 * privileges, cannot show. The numbers here are the kernel's, written down apart from the table that the filters come from. */

#include <errno.h>
#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stdint.h>

#include "bailey/seccomp-program.h"
#include "basic/macro.h"
#include "test.h"

#define ALLOWED 0
#define KILLED (-1)
#define MALFORMED (-2)
#define HIGH (UINT64_C(1) << 32)

typedef struct Case {
        const char *name;
        int x86_64, i386; /* -1 where there is no such call */
        int error;
} Case;

/* Only what the generated programs consist of. 0 = allowed, an errno, KILLED, or MALFORMED. */
static int execute(const struct sock_filter *code, size_t size, const struct seccomp_data *data) {
        uint32_t a = 0;

        for (size_t at = 0; at < size; at++) {
                const struct sock_filter *i = &code[at];

                switch (i->code) {
                case BPF_LD | BPF_W | BPF_ABS:
                        if (i->k % 4 != 0 || i->k + 4 > sizeof(*data))
                                return MALFORMED;
                        memcpy(&a, (const char *) data + i->k, 4);
                        break;
                case BPF_JMP | BPF_JA:
                        at += i->k;
                        break;
                case BPF_JMP | BPF_JEQ | BPF_K:
                        at += a == i->k ? i->jt : i->jf;
                        break;
                case BPF_JMP | BPF_JGT | BPF_K:
                        at += a > i->k ? i->jt : i->jf;
                        break;
                case BPF_JMP | BPF_JGE | BPF_K:
                        at += a >= i->k ? i->jt : i->jf;
                        break;
                case BPF_JMP | BPF_JSET | BPF_K:
                        at += a & i->k ? i->jt : i->jf;
                        break;
                case BPF_RET | BPF_K:
                        if (i->k == SECCOMP_RET_ALLOW)
                                return ALLOWED;
                        if (i->k == SECCOMP_RET_KILL_PROCESS)
                                return KILLED;
                        return (i->k & SECCOMP_RET_ACTION_FULL) == SECCOMP_RET_ERRNO ? (int) (i->k & SECCOMP_RET_DATA) : MALFORMED;
                default:
                        return MALFORMED;
                }
        }
        return MALFORMED;
}

static int ask(bool internet, uint32_t arch, uint32_t nr, uint64_t a0, uint64_t a1, uint64_t a2) {
        struct seccomp_data data = {.nr = (int) nr, .arch = arch, .args = {a0, a1, a2}};

        return internet ? execute(seccomp_program_internet, ELEMENTSOF(seccomp_program_internet), &data)
                        : execute(seccomp_program_no_internet, ELEMENTSOF(seccomp_program_no_internet), &data);
}

#ifdef __x86_64__

static int native(uint32_t nr, uint64_t a0, uint64_t a1, uint64_t a2) {
        return ask(true, AUDIT_ARCH_X86_64, nr, a0, a1, a2);
}
static int compat(uint32_t nr, uint64_t a0, uint64_t a1, uint64_t a2) {
        return ask(true, AUDIT_ARCH_I386, nr, a0, a1, a2);
}

enum { X64_SOCKET = 41, X64_SOCKETPAIR = 53, X64_CLONE = 56, X64_IOCTL = 16, X64_PERSONALITY = 135 };
enum { X64_KILL = 62, X64_SETPRIORITY = 141, X64_IOPRIO_SET = 251, X32_KILL = 37, X32_SETPRIORITY = 97, X32_IOPRIO_SET = 289 };
enum { X32_SOCKET = 359, X32_SOCKETPAIR = 360, X32_CLONE = 120, X32_IOCTL = 54, X32_PERSONALITY = 136, X32_SOCKETCALL = 102 };

static const Case refused[] = {
        {"mount", 165, 21, EPERM}, {"umount", -1, 22, EPERM}, {"umount2", 166, 52, EPERM}, {"pivot_root", 155, 217, EPERM},
        {"chroot", 161, 61, EPERM}, {"open_tree", 428, 428, EPERM}, {"move_mount", 429, 429, EPERM},
        {"mount_setattr", 442, 442, EPERM}, {"fsopen", 430, 430, EPERM}, {"fsconfig", 431, 431, EPERM},
        {"fsmount", 432, 432, EPERM}, {"fspick", 433, 433, EPERM}, {"unshare", 272, 310, EPERM}, {"setns", 308, 346, EPERM},
        {"clone3", 435, 435, ENOSYS}, {"ptrace", 101, 26, EPERM}, {"process_vm_readv", 310, 347, EPERM},
        {"process_vm_writev", 311, 348, EPERM}, {"process_madvise", 440, 440, EPERM}, {"pidfd_getfd", 438, 438, EPERM},
        {"kcmp", 312, 349, EPERM}, {"move_pages", 279, 317, EPERM}, {"migrate_pages", 256, 294, EPERM},
        {"bpf", 321, 357, EPERM}, {"perf_event_open", 298, 336, EPERM}, {"userfaultfd", 323, 374, EPERM},
        {"lookup_dcookie", 212, 253, EPERM}, {"io_uring_setup", 425, 425, ENOSYS}, {"io_uring_enter", 426, 426, ENOSYS},
        {"io_uring_register", 427, 427, ENOSYS}, {"add_key", 248, 286, EPERM}, {"request_key", 249, 287, EPERM},
        {"keyctl", 250, 288, EPERM}, {"init_module", 175, 128, EPERM}, {"finit_module", 313, 350, EPERM},
        {"delete_module", 176, 129, EPERM}, {"create_module", 174, 127, EPERM}, {"query_module", 178, 167, EPERM},
        {"get_kernel_syms", 177, 130, EPERM}, {"kexec_load", 246, 283, EPERM}, {"kexec_file_load", 320, -1, EPERM},
        {"reboot", 169, 88, EPERM}, {"swapon", 167, 87, EPERM}, {"swapoff", 168, 115, EPERM}, {"acct", 163, 51, EPERM},
        {"quotactl", 179, 131, EPERM}, {"quotactl_fd", 443, 443, EPERM}, {"nfsservctl", 180, 169, EPERM},
        {"syslog", 103, 103, EPERM}, {"vhangup", 153, 111, EPERM}, {"uselib", 134, 86, EPERM}, {"sysfs", 139, 135, EPERM},
        {"_sysctl", 156, 149, EPERM}, {"ustat", 136, 62, EPERM}, {"settimeofday", 164, 79, EPERM},
        {"clock_settime", 227, 264, EPERM}, {"clock_settime64", -1, 404, EPERM}, {"clock_adjtime", 305, 343, EPERM},
        {"clock_adjtime64", -1, 405, EPERM}, {"adjtimex", 159, 124, EPERM}, {"stime", -1, 25, EPERM},
        {"sethostname", 170, 74, EPERM}, {"setdomainname", 171, 121, EPERM}, {"ioperm", 173, 101, EPERM},
        {"iopl", 172, 110, EPERM}, {"pciconfig_read", -1, -1, EPERM}, {"pciconfig_write", -1, -1, EPERM},
        {"pciconfig_iobase", -1, -1, EPERM}, {"modify_ldt", 154, 123, EPERM}, {"vm86", -1, 166, EPERM},
        {"vm86old", -1, 113, EPERM}, {"open_by_handle_at", 304, 342, EPERM}, {"name_to_handle_at", 303, 341, EPERM},
        {"fanotify_init", 300, 338, EPERM}, {"fanotify_mark", 301, 339, EPERM},
};

static const Case conditional[] = {
        {"socket", X64_SOCKET, X32_SOCKET, 0},   {"socketpair", X64_SOCKETPAIR, X32_SOCKETPAIR, 0},
        {"clone", X64_CLONE, X32_CLONE, 0},      {"ioctl", X64_IOCTL, X32_IOCTL, 0},
        {"socketcall", -1, X32_SOCKETCALL, 0},   {"personality", X64_PERSONALITY, X32_PERSONALITY, 0},
        {"setpriority", X64_SETPRIORITY, X32_SETPRIORITY, 0}, {"ioprio_set", X64_IOPRIO_SET, X32_IOPRIO_SET, 0},
};

/* Refused when the first argument is the first process. */
static const Case of_process[] = {
        {"sched_setscheduler", 144, 156, 0}, {"sched_setparam", 142, 154, 0}, {"sched_setattr", 314, 351, 0},
        {"sched_setaffinity", 203, 241, 0}, {"prlimit64", 302, 340, 0},
};

static void test_refused(void) {
        for (size_t i = 0; i < ELEMENTSOF(refused); i++)
                for (int internet = 0; internet < 2; internet++) {
                        const Case *c = &refused[i];
                        if (c->x86_64 >= 0 && ask(internet, AUDIT_ARCH_X86_64, (uint32_t) c->x86_64, 0, 0, 0) != c->error)
                                test_fail(__FILE__, __LINE__, "%s is not refused", c->name);
                        if (c->i386 >= 0 && ask(internet, AUDIT_ARCH_I386, (uint32_t) c->i386, 0, 0, 0) != c->error)
                                test_fail(__FILE__, __LINE__, "32-bit %s is not refused", c->name);
                }
}

/* Whatever is not in the lists above is allowed: a rule that hits another call than it names shows here. */
static void test_others(void) {
        for (uint32_t nr = 0; nr <= 450; nr++) {
                bool listed = false, listed_compat = false;
                for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
                        listed |= refused[i].x86_64 == (int) nr;
                        listed_compat |= refused[i].i386 == (int) nr;
                }
                for (size_t i = 0; i < ELEMENTSOF(conditional); i++) {
                        listed |= conditional[i].x86_64 == (int) nr;
                        listed_compat |= conditional[i].i386 == (int) nr;
                }
                if (!listed && native(nr, 0, 0, 0) != ALLOWED)
                        test_fail(__FILE__, __LINE__, "call %u is refused", nr);
                if (!listed_compat && compat(nr, 0, 0, 0) != ALLOWED)
                        test_fail(__FILE__, __LINE__, "32-bit call %u is refused", nr);
        }
}

static void test_newest(void) {
        static const uint32_t numbers[] = {451, 452, 467, 511, 512, 547, 600, 0x3fffffff, 0x80000000, 0xffffffff};

        for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
                CHECK_INT(native(numbers[i], 0, 0, 0), ENOSYS);
                CHECK_INT(compat(numbers[i], 0, 0, 0), ENOSYS);
                CHECK_INT(ask(false, AUDIT_ARCH_X86_64, numbers[i], 0, 0, 0), ENOSYS);
        }
}

static void test_x32(void) {
        for (uint32_t nr = 0; nr < 600; nr++) {
                CHECK_INT(native(0x40000000 | nr, 0, 0, 0), ENOSYS);
                CHECK_INT(ask(false, AUDIT_ARCH_X86_64, 0x40000000 | nr, 0, 0, 0), ENOSYS);
        }
        /* The test of the bit is in the program itself, not only in its effect. */
        bool found = false;
        for (size_t i = 0; i < ELEMENTSOF(seccomp_program_internet); i++)
                found |= seccomp_program_internet[i].code == (BPF_JMP | BPF_JGT | BPF_K) && seccomp_program_internet[i].k == 450;
        CHECK(found);
}

static void test_architectures(void) {
        static const uint32_t others[] = {AUDIT_ARCH_ARM, AUDIT_ARCH_AARCH64, AUDIT_ARCH_PPC64LE, 0, 0xffffffff};

        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                for (uint32_t nr = 0; nr < 460; nr++)
                        CHECK_INT(ask(nr & 1, others[i], nr, 0, 0, 0), KILLED);
}

static void test_clone(void) {
        static const uint64_t flags[] = {CLONE_NEWNS, CLONE_NEWCGROUP, CLONE_NEWUTS, CLONE_NEWIPC,
                                         CLONE_NEWUSER, CLONE_NEWPID, CLONE_NEWNET};
        uint64_t thread = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_SETTLS |
                          CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;

        for (size_t i = 0; i < ELEMENTSOF(flags); i++) {
                CHECK_INT(native(X64_CLONE, flags[i], 0, 0), EPERM);
                CHECK_INT(native(X64_CLONE, flags[i] | thread, 0, 0), EPERM);
                CHECK_INT(native(X64_CLONE, HIGH | flags[i] | 17, 0, 0), EPERM);
                CHECK_INT(compat(X32_CLONE, flags[i], 0, 0), EPERM);
        }
        CHECK_INT(native(X64_CLONE, thread, 0, 0), ALLOWED);
        CHECK_INT(native(X64_CLONE, CLONE_VM | CLONE_VFORK | 17, 0, 0), ALLOWED);
        CHECK_INT(native(X64_CLONE, CLONE_CHILD_CLEARTID | CLONE_CHILD_SETTID | 17, 0, 0), ALLOWED);
        CHECK_INT(compat(X32_CLONE, 17, 0, 0), ALLOWED);
}

static int ask_group(uint32_t arch, uint32_t nr, uint64_t a0) {
        struct seccomp_data data = {.nr = (int) nr, .arch = arch, .args = {a0, 9}};
        return execute(seccomp_program_no_group_signals, ELEMENTSOF(seccomp_program_no_group_signals), &data);
}

/* 0 names the caller's process group, which is no other than that of bailey's own caller. */
static void test_group(void) {
        static const uint64_t zeros[] = {0, HIGH};

        for (size_t i = 0; i < ELEMENTSOF(zeros); i++) {
                CHECK_INT(native(X64_SETPRIORITY, 1, zeros[i], 19), EPERM);
                CHECK_INT(compat(X32_SETPRIORITY, 1, zeros[i], 19), EPERM);
                CHECK_INT(native(X64_IOPRIO_SET, 2, zeros[i], 0), EPERM);
                CHECK_INT(compat(X32_IOPRIO_SET, 2, zeros[i], 0), EPERM);
                CHECK_INT(ask_group(AUDIT_ARCH_X86_64, X64_KILL, zeros[i]), EPERM);
                CHECK_INT(ask_group(AUDIT_ARCH_I386, X32_KILL, zeros[i]), EPERM);
        }
        CHECK_INT(native(X64_SETPRIORITY, HIGH | 1, 0, 19), EPERM);
        CHECK_INT(native(X64_SETPRIORITY, 0, 0, 19), ALLOWED);
        CHECK_INT(native(X64_SETPRIORITY, 1, 7, 19), ALLOWED);
        CHECK_INT(native(X64_IOPRIO_SET, 1, 0, 0), ALLOWED);
        CHECK_INT(native(X64_KILL, 0, 9, 0), ALLOWED);
        CHECK_INT(ask_group(AUDIT_ARCH_X86_64, X64_KILL, 7), ALLOWED);
        CHECK_INT(ask_group(AUDIT_ARCH_X86_64, X64_KILL, (uint64_t) -1), ALLOWED);
        CHECK_INT(ask_group(AUDIT_ARCH_X86_64, X32_KILL, 0), ALLOWED);
        CHECK_INT(ask_group(AUDIT_ARCH_AARCH64, X64_KILL, 0), ALLOWED); /* the other filter kills it */
}

/* Who slows the first process down lives on after the command's end. */
static void test_first_process(void) {
        for (size_t i = 0; i < ELEMENTSOF(of_process); i++) {
                uint32_t nr = (uint32_t) of_process[i].x86_64, nr32 = (uint32_t) of_process[i].i386;
                CHECK_INT(native(nr, 1, 0, 0), EPERM);
                CHECK_INT(native(nr, HIGH | 1, 0, 0), EPERM);
                CHECK_INT(compat(nr32, 1, 0, 0), EPERM);
                CHECK_INT(native(nr, 2, 0, 0), ALLOWED);
                CHECK_INT(native(nr, 0, 1, 1), ALLOWED);
                CHECK_INT(compat(nr32, 2, 0, 0), ALLOWED);
        }
        CHECK_INT(native(X64_SETPRIORITY, 0, 1, 19), EPERM);
        CHECK_INT(native(X64_SETPRIORITY, 2, 0, 19), EPERM);
        CHECK_INT(native(X64_SETPRIORITY, 2, 1000, 19), EPERM);
        CHECK_INT(compat(X32_SETPRIORITY, 0, 1, 19), EPERM);
        CHECK_INT(native(X64_SETPRIORITY, 0, 2, 19), ALLOWED);
        CHECK_INT(native(X64_IOPRIO_SET, 1, 1, 0), EPERM);
        CHECK_INT(native(X64_IOPRIO_SET, 3, 0, 0), EPERM);
        CHECK_INT(native(X64_IOPRIO_SET, 1, 2, 0), ALLOWED);
}

static int ask_limits(uint32_t arch, uint32_t nr, uint64_t pid, uint64_t limits) {
        struct seccomp_data data = {.nr = (int) nr, .arch = arch, .args = {pid, 7, limits}};
        return execute(seccomp_program_own_limits, ELEMENTSOF(seccomp_program_own_limits), &data);
}

/* Of a process outside, where it can be named, limits are looked at and not set. */
static void test_limits(void) {
        static const uint64_t pointers[] = {0x1000, HIGH, HIGH | 0x1000};

        for (size_t i = 0; i < ELEMENTSOF(pointers); i++) {
                CHECK_INT(ask_limits(AUDIT_ARCH_X86_64, 302, 7, pointers[i]), EPERM);
                CHECK_INT(ask_limits(AUDIT_ARCH_X86_64, 302, HIGH, pointers[i]), ALLOWED);
                CHECK_INT(ask_limits(AUDIT_ARCH_X86_64, 302, 0, pointers[i]), ALLOWED);
        }
        CHECK_INT(ask_limits(AUDIT_ARCH_I386, 340, 7, 0x1000), EPERM);
        CHECK_INT(ask_limits(AUDIT_ARCH_X86_64, 302, 7, 0), ALLOWED);
        CHECK_INT(ask_limits(AUDIT_ARCH_X86_64, 340, 7, 0x1000), ALLOWED);
}

static void test_ioctl(void) {
        static const uint64_t bad[] = {0x5412, 0x541c}, good[] = {0x5401, 0x5413, 0x5411, 0x541d, 0x80045430};

        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                CHECK_INT(native(X64_IOCTL, 0, bad[i], 0), EPERM);
                CHECK_INT(native(X64_IOCTL, 0, HIGH | bad[i], 0), EPERM);
                CHECK_INT(native(X64_IOCTL, 0, 0xdeadbeef00000000 | bad[i], 0), EPERM);
                CHECK_INT(compat(X32_IOCTL, 0, bad[i], 0), EPERM);
        }
        for (size_t i = 0; i < ELEMENTSOF(good); i++)
                CHECK_INT(native(X64_IOCTL, 0x5412, good[i], 0x5412), ALLOWED);
}

static void test_personality(void) {
        static const uint64_t good[] = {0, 8, 0x20000, 0x40000, 0x40008, 0x200000, 0x8000000, 0xffffffff, UINT64_MAX};
        static const uint64_t bad[] = {1, 4, 6, 0x10, 0x80, 0x100000, 0x400000, 0x440000, 0x1000000, 0x4000000, 0xfffffffe};

        for (size_t i = 0; i < ELEMENTSOF(good); i++) {
                CHECK_INT(native(X64_PERSONALITY, good[i], 0, 0), ALLOWED);
                CHECK_INT(compat(X32_PERSONALITY, good[i], 0, 0), ALLOWED);
        }
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                CHECK_INT(native(X64_PERSONALITY, bad[i], 0, 0), EPERM);
                CHECK_INT(native(X64_PERSONALITY, HIGH | bad[i], 0, 0), EPERM);
                CHECK_INT(compat(X32_PERSONALITY, bad[i], 0, 0), EPERM);
        }
}

static void check_family(uint64_t family, bool internet, int expected) {
        CHECK_INT(ask(internet, AUDIT_ARCH_X86_64, X64_SOCKET, family, 1, 0), expected);
        CHECK_INT(ask(internet, AUDIT_ARCH_X86_64, X64_SOCKET, HIGH | family, 1, 0), expected);
        CHECK_INT(ask(internet, AUDIT_ARCH_I386, X32_SOCKET, family, 1, 0), expected);
}

static void test_families(void) {
        for (uint64_t family = 0; family < 300; family++) {
                bool internet = family == 2 || family == 10 || family == 16;
                check_family(family, true, family == 1 || internet ? ALLOWED : EAFNOSUPPORT);
                check_family(family, false, family == 1 ? ALLOWED : EAFNOSUPPORT);
                CHECK_INT(native(X64_SOCKETPAIR, family, 1, 0), family == 1 ? ALLOWED : EAFNOSUPPORT);
                CHECK_INT(compat(X32_SOCKETPAIR, family, 1, 0), family == 1 ? ALLOWED : EAFNOSUPPORT);
        }
}

static void test_protocols(void) {
        for (uint64_t protocol = 0; protocol < 300; protocol++) {
                bool known = protocol == 0 || protocol == 1 || protocol == 6 || protocol == 17 || protocol == 58;
                CHECK_INT(native(X64_SOCKET, 2, 1, protocol), known ? ALLOWED : EPROTONOSUPPORT);
                CHECK_INT(native(X64_SOCKET, 10, 2, HIGH | protocol), known ? ALLOWED : EPROTONOSUPPORT);
                CHECK_INT(compat(X32_SOCKET, 2, 1, protocol), known ? ALLOWED : EPROTONOSUPPORT);
                CHECK_INT(native(X64_SOCKET, 16, 3, protocol), protocol == 0 ? ALLOWED : EPROTONOSUPPORT);
                CHECK_INT(native(X64_SOCKET, 1, 1, protocol), ALLOWED);
        }
}

/* The family is in memory there, so making sockets that way is refused; the other calls by it go on existing sockets. */
static void test_socketcall(void) {
        for (uint64_t call = 0; call < 30; call++)
                CHECK_INT(compat(X32_SOCKETCALL, call, 0, 0), call == 1 || call == 8 ? EPERM : ALLOWED);
}

#else

/* The tables of numbers above are those of x86: elsewhere only the shape is looked at. */
static void test_shape(void) {
        CHECK_INT(ask(true, AUDIT_ARCH_I386, 1, 0, 0, 0), KILLED);
        CHECK_INT(ask(false, 0, 1, 0, 0, 0), KILLED);
}

#endif

int main(void) {
#ifdef __x86_64__
        RUN(test_refused, "C041 T016 T017: each refused call, native and 32-bit");
        RUN(test_others, "no other call is refused");
        RUN(test_newest, "C041: what is newer than the newest reviewed call does not exist");
        RUN(test_x32, "C035: x32's numbers do not exist");
        RUN(test_architectures, "C035: a foreign architecture is killed");
        RUN(test_clone, "C038 T017: clone with any namespace flag, high bits or not");
        RUN(test_first_process, "C050: the first process cannot be slowed down");
        RUN(test_limits, "T004: without namespaces limits are set for the own process only");
        RUN(test_group, "T014: the caller's process group is out of reach");
        RUN(test_ioctl, "C038 C039: TIOCSTI and TIOCLINUX, high bits or not");
        RUN(test_personality, "C038: personality by an allowlist");
        RUN(test_families, "C038 T015: socket families, with and without internet");
        RUN(test_protocols, "C038: socket protocols");
        RUN(test_socketcall, "C035: sockets made through socketcall");
#else
        RUN(test_shape, "C035: a foreign architecture is killed");
#endif
        return TEST_END();
}
