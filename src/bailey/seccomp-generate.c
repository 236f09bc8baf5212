/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Build-time program: writes the system call filters as C arrays, so that bailey neither links libseccomp nor spends the two
 * milliseconds that it takes to compute one. `seccomp-generate x86_64 > seccomp-program.h`.
 *
 * A program is one section an architecture: its number's comparison; everything newer than the newest reviewed call → ENOSYS;
 * the calls whose arguments decide, by hand, because an allowlist of values is not expressible with a default of "allow", and
 * because the kernel uses the low 32 bits of these arguments while a comparison of the whole would let high bits slip by;
 * then libseccomp's program for the table of refused calls. An architecture that has no section is killed. */

#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bailey/audit-calls.h"
#include "bailey/seccomp-table.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "the offsets of the arguments' low words are those of little-endian machines"
#endif

#define PROGRAM_MAX 4096U /* BPF_MAXINSNS */

/* linux/sched.h, without CLONE_NEWTIME, whose bit is part of clone's exit signal. */
#define NAMESPACE_FLAGS 0x7e020000U /* NEWNS NEWCGROUP NEWUTS NEWIPC NEWUSER NEWPID NEWNET */

/* PER_LINUX32, UNAME26, ADDR_NO_RANDOMIZE, ADDR_COMPAT_LAYOUT, ADDR_LIMIT_3GB: what setarch uses. Not READ_IMPLIES_EXEC,
 * MMAP_PAGE_ZERO, and no emulation of other systems. */
#define PERSONALITY_ALLOWED 0x08260008U
#define PERSONALITY_QUERY 0xffffffffU

#define PRIORITY_PROCESS 0U    /* PRIO_PROCESS; then PRIO_PGRP, PRIO_USER */
#define IO_PRIORITY_PROCESS 1U /* IOPRIO_WHO_PROCESS; then …_PGRP, …_USER */
#define FIRST_PROCESS 1U

#define IOCTL_TIOCSTI 0x5412U
#define IOCTL_TIOCLINUX 0x541cU

/* Fixed numbers of the kernel's interface. */
enum { FAMILY_UNIX = 1, FAMILY_INET = 2, FAMILY_INET6 = 10, FAMILY_NETLINK = 16 };
enum { PROTOCOL_ICMP = 1, PROTOCOL_TCP = 6, PROTOCOL_UDP = 17, PROTOCOL_ICMPV6 = 58 };
#define MESSAGE_FASTOPEN 0x20000000U /* MSG_FASTOPEN */

typedef struct Architecture {
        const char *name; /* meson's cpu_family */
        uint32_t token;   /* libseccomp's and, by design, the kernel's AUDIT_ARCH */
        uint32_t compat;  /* 0 = none */
} Architecture;

static const Architecture architectures[] = {
        {"x86_64", SCMP_ARCH_X86_64, SCMP_ARCH_X86},
        {"aarch64", SCMP_ARCH_AARCH64, 0},
        {"riscv64", SCMP_ARCH_RISCV64, 0},
};

typedef struct Program {
        struct sock_filter code[PROGRAM_MAX];
        unsigned size;
} Program;

__attribute__((noreturn)) static void die(const char *what, const char *with) {
        fprintf(stderr, "seccomp-generate: %s: %s\n", what, with);
        exit(1);
}

static unsigned emit(Program *p, unsigned code, uint32_t k, unsigned jt, unsigned jf) {
        if (p->size >= PROGRAM_MAX)
                die("program too long", "");
        p->code[p->size] = (struct sock_filter) {(uint16_t) code, (uint8_t) jt, (uint8_t) jf, k};
        return p->size++;
}

static void emit_return(Program *p, uint32_t action) {
        emit(p, BPF_RET | BPF_K, action, 0, 0);
}

static uint32_t action_error(int error) {
        return SECCOMP_RET_ERRNO | (uint32_t) error;
}

static void load_number(Program *p) {
        emit(p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr), 0, 0);
}

static void load_argument(Program *p, unsigned n) {
        emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t) (offsetof(struct seccomp_data, args) + 8 * n), 0, 0);
}

static void load_argument_high(Program *p, unsigned n) {
        emit(p, BPF_LD | BPF_W | BPF_ABS, (uint32_t) (offsetof(struct seccomp_data, args) + 8 * n + 4), 0, 0);
}

/* if A == k: return action. */
static void return_if_equal(Program *p, uint32_t k, uint32_t action) {
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, k, 0, 1);
        emit_return(p, action);
}

static void return_if_any_bit(Program *p, uint32_t k, uint32_t action) {
        emit(p, BPF_JMP | BPF_JSET | BPF_K, k, 0, 1);
        emit_return(p, action);
}

/* A section that is skipped when A != k: begin gives what end wants. Its own ways out are returns. */
static unsigned section_begin(Program *p, uint32_t k) {
        emit(p, BPF_JMP | BPF_JEQ | BPF_K, k, 1, 0);
        return emit(p, BPF_JMP | BPF_JA, 0, 0, 0);
}

static void section_end(Program *p, unsigned begin) {
        p->code[begin].k = p->size - begin - 1;
}

/* The number of a call, -1 where the architecture has none of that name. */
static int number(uint32_t arch, const char *name) {
        /* libseccomp gives pseudo numbers for these, as if there were only socketcall; Linux 4.3 gave them their own. */
        if (arch == SCMP_ARCH_X86 && strcmp(name, "socket") == 0)
                return 359;
        if (arch == SCMP_ARCH_X86 && strcmp(name, "socketpair") == 0)
                return 360;
        if (arch == SCMP_ARCH_X86 && strcmp(name, "bind") == 0)
                return 361;
        if (arch == SCMP_ARCH_X86 && strcmp(name, "connect") == 0)
                return 362;
        if (arch == SCMP_ARCH_X86 && strcmp(name, "sendto") == 0)
                return 369;
        if (arch == SCMP_ARCH_X86 && strcmp(name, "sendmsg") == 0)
                return 370;
        if (arch == SCMP_ARCH_X86 && strcmp(name, "sendmmsg") == 0)
                return 345;
        int n = seccomp_syscall_resolve_name_arch(arch, name);
        if (n == __NR_SCMP_ERROR)
                die("unknown system call", name);
        return n < 0 ? -1 : n;
}

static void check_protocols(Program *p, const uint32_t *protocols, size_t n) {
        load_argument(p, 2);
        for (size_t i = 0; i < n; i++)
                return_if_equal(p, protocols[i], SECCOMP_RET_ALLOW);
        emit_return(p, action_error(EPROTONOSUPPORT));
}

static void check_socket(Program *p, bool internet) {
        static const uint32_t inet[] = {0, PROTOCOL_TCP, PROTOCOL_UDP, PROTOCOL_ICMP, PROTOCOL_ICMPV6};
        static const uint32_t netlink[] = {0}; /* NETLINK_ROUTE, which resolvers ask for addresses */
        unsigned s;

        load_argument(p, 0);
        return_if_equal(p, FAMILY_UNIX, SECCOMP_RET_ALLOW);
        if (internet) {
                s = section_begin(p, FAMILY_INET);
                check_protocols(p, inet, sizeof(inet) / sizeof(inet[0]));
                section_end(p, s);
                s = section_begin(p, FAMILY_INET6);
                check_protocols(p, inet, sizeof(inet) / sizeof(inet[0]));
                section_end(p, s);
                s = section_begin(p, FAMILY_NETLINK);
                check_protocols(p, netlink, 1);
                section_end(p, s);
        }
        emit_return(p, action_error(EAFNOSUPPORT));
}

static void check_socketpair(Program *p, bool internet) {
        (void) internet;
        load_argument(p, 0);
        return_if_equal(p, FAMILY_UNIX, SECCOMP_RET_ALLOW);
        emit_return(p, action_error(EAFNOSUPPORT));
}

/* i386's one door to all socket calls: what it is asked for is in memory, out of sight. Programs that meet it have had calls of their
 * own since Linux 4.3. */
static void check_socketcall(Program *p, bool internet) {
        (void) internet;
        emit_return(p, action_error(EPERM));
}

/* To connect by sending is not what Landlock judges as a connection. Programs that are refused it connect first. */
static void check_send(Program *p, unsigned flags) {
        load_argument(p, flags);
        return_if_any_bit(p, MESSAGE_FASTOPEN, action_error(EOPNOTSUPP));
        emit_return(p, SECCOMP_RET_ALLOW);
}

static void check_sendmsg(Program *p, bool internet) {
        (void) internet;
        check_send(p, 2);
}

static void check_sendto(Program *p, bool internet) {
        (void) internet;
        check_send(p, 3);
}

static void check_clone(Program *p, bool internet) {
        (void) internet;
        load_argument(p, 0);
        return_if_any_bit(p, NAMESPACE_FLAGS, action_error(EPERM));
        emit_return(p, SECCOMP_RET_ALLOW);
}

static void check_ioctl(Program *p, bool internet) {
        (void) internet;
        load_argument(p, 1);
        return_if_equal(p, IOCTL_TIOCSTI, action_error(EPERM));
        return_if_equal(p, IOCTL_TIOCLINUX, action_error(EPERM));
        emit_return(p, SECCOMP_RET_ALLOW);
}

static void check_personality(Program *p, bool internet) {
        (void) internet;
        load_argument(p, 0);
        return_if_equal(p, PERSONALITY_QUERY, SECCOMP_RET_ALLOW);
        return_if_any_bit(p, ~PERSONALITY_ALLOWED, action_error(EPERM));
        emit_return(p, SECCOMP_RET_ALLOW);
}

/* Who may be slowed down: neither the first process, which would be too late to end the others, nor the caller's process group,
 * which the payload is in for the sake of job control and which 0 names beyond the PID namespace. All processes of the account are
 * the first process, too. Priorities of single processes and of groups made inside are free. */
static void check_priority(Program *p, uint32_t process) {
        const uint32_t group = process + 1, user = process + 2;
        unsigned s;

        load_argument(p, 0);
        return_if_equal(p, user, action_error(EPERM));
        s = section_begin(p, process);
        load_argument(p, 1);
        return_if_equal(p, FIRST_PROCESS, action_error(EPERM));
        emit_return(p, SECCOMP_RET_ALLOW);
        section_end(p, s);
        s = section_begin(p, group);
        load_argument(p, 1);
        return_if_equal(p, 0, action_error(EPERM));
        section_end(p, s);
        emit_return(p, SECCOMP_RET_ALLOW);
}

static void check_setpriority(Program *p, bool internet) {
        (void) internet;
        check_priority(p, PRIORITY_PROCESS);
}

static void check_ioprio_set(Program *p, bool internet) {
        (void) internet;
        check_priority(p, IO_PRIORITY_PROCESS);
}

/* The same for the calls that name a process by their first argument. */
static void check_process(Program *p, bool internet) {
        (void) internet;
        load_argument(p, 0);
        return_if_equal(p, FIRST_PROCESS, action_error(EPERM));
        emit_return(p, SECCOMP_RET_ALLOW);
}

static void emit_checks(Program *p, uint32_t arch, bool internet) {
        static const struct {
                const char *name;
                void (*emit)(Program *p, bool internet);
        } checks[] = {
                {"socket", check_socket},   {"socketpair", check_socketpair}, {"socketcall", check_socketcall},
                {"sendto", check_sendto},   {"sendmsg", check_sendmsg},       {"sendmmsg", check_sendto},
                {"clone", check_clone},     {"ioctl", check_ioctl},           {"personality", check_personality},
                {"setpriority", check_setpriority}, {"ioprio_set", check_ioprio_set},
                {"sched_setscheduler", check_process}, {"sched_setparam", check_process}, {"sched_setattr", check_process},
                {"sched_setaffinity", check_process}, {"prlimit64", check_process},
        };

        for (size_t i = 0; i < sizeof(checks) / sizeof(checks[0]); i++) {
                int n = number(arch, checks[i].name);
                if (n < 0)
                        continue;
                unsigned s = section_begin(p, (uint32_t) n);
                checks[i].emit(p, internet);
                section_end(p, s);
        }
}

/* Appends libseccomp's program for the table; its jumps are relative. */
static void emit_table(Program *p, uint32_t arch) {
        scmp_filter_ctx context = seccomp_init(SCMP_ACT_ALLOW);
        if (!context || (arch != seccomp_arch_native() &&
                         (seccomp_arch_add(context, arch) < 0 || seccomp_arch_remove(context, seccomp_arch_native()) < 0)))
                die("seccomp_init", "failed");
        if (seccomp_attr_set(context, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS) < 0 ||
            seccomp_attr_set(context, SCMP_FLTATR_CTL_OPTIMIZE, 2) < 0)
                die("seccomp_attr_set", "failed");

        for (size_t i = 0; i < sizeof(seccomp_rows) / sizeof(seccomp_rows[0]); i++) {
                if (number(arch, seccomp_rows[i].name) < 0)
                        continue;
                /* Rules are given by the native number (a negative pseudo number where there is none) and translated. */
                int n = seccomp_syscall_resolve_name(seccomp_rows[i].name);
                if (seccomp_rule_add_exact(context, SCMP_ACT_ERRNO((uint32_t) seccomp_rows[i].error), n, 0) < 0)
                        die("seccomp_rule_add_exact", seccomp_rows[i].name);
        }

        int fd = memfd_create("filter", MFD_CLOEXEC);
        struct stat st;
        if (fd < 0 || seccomp_export_bpf(context, fd) < 0 || fstat(fd, &st) < 0)
                die("seccomp_export_bpf", "failed");
        size_t size = (size_t) st.st_size / sizeof(struct sock_filter);
        if (size == 0 || size > PROGRAM_MAX - p->size)
                die("program too long", "");
        if (pread(fd, p->code + p->size, size * sizeof(struct sock_filter), 0) != (ssize_t) (size * sizeof(struct sock_filter)))
                die("pread", strerror(errno));
        p->size += (unsigned) size;
        close(fd);
        seccomp_release(context);
}

static void emit_architecture(Program *p, uint32_t arch, bool internet) {
        unsigned s = section_begin(p, arch);
        load_number(p);
        emit(p, BPF_JMP | BPF_JGT | BPF_K, SECCOMP_NEWEST_REVIEWED, 0, 1);
        emit_return(p, action_error(ENOSYS));
        emit_checks(p, arch, internet);
        emit_table(p, arch);
        section_end(p, s);
}

static void print_code(const Program *p, const char *name) {
        printf("static const struct sock_filter %s[] = {\n", name);
        for (unsigned i = 0; i < p->size; i++)
                printf("        {0x%02x, %u, %u, 0x%08x},\n", p->code[i].code, p->code[i].jt, p->code[i].jf, p->code[i].k);
        printf("};\n");
}

/* A filter beside the other, about one call. All else is the other filter's business. */
static void print_side_program(const Architecture *a, const char *name, const char *call, void (*check)(Program *p)) {
        const uint32_t tokens[] = {a->token, a->compat};
        static Program p;

        p.size = 0;
        emit(&p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
        for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]) && tokens[i]; i++) {
                unsigned s = section_begin(&p, tokens[i]);
                load_number(&p);
                unsigned c = section_begin(&p, (uint32_t) number(tokens[i], call));
                check(&p);
                section_end(&p, c);
                emit_return(&p, SECCOMP_RET_ALLOW);
                section_end(&p, s);
        }
        emit_return(&p, SECCOMP_RET_ALLOW);
        print_code(&p, name);
}

/* For kernels whose Landlock does not scope signals: kill(0, …) would reach the caller's own process group. */
static void check_group_signal(Program *p) {
        load_argument(p, 0);
        return_if_equal(p, 0, action_error(EPERM));
}

/* Without a PID namespace processes outside can be named, and a limit on its CPU time ends one: only the own limits are set, which 0
 * names. A pointer to new ones is judged by both of its words. */
static void check_limits(Program *p) {
        load_argument(p, 0);
        return_if_equal(p, 0, SECCOMP_RET_ALLOW);
        load_argument(p, 2);
        return_if_any_bit(p, UINT32_MAX, action_error(EPERM));
        load_argument_high(p, 2);
        return_if_any_bit(p, UINT32_MAX, action_error(EPERM));
}

static void print_program(const Architecture *a, const char *name, bool internet) {
        static Program p;

        p.size = 0;
        emit(&p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
        emit_architecture(&p, a->token, internet);
        if (a->compat)
                emit_architecture(&p, a->compat, internet);
        emit_return(&p, SECCOMP_RET_KILL_PROCESS);
        print_code(&p, name);
}

/* What the kernel asks about when a run is audited. The rest is not this filter's business: what the others refuse stays refused. */
static void emit_audit_call(Program *p, const AuditCall *call, uint32_t n) {
        unsigned s = section_begin(p, n);

        if (call->action == AUDIT_MAP) {
                load_argument(p, 2);
                emit(p, BPF_JMP | BPF_JSET | BPF_K, PROT_EXEC, 1, 0);
                emit_return(p, SECCOMP_RET_ALLOW);
                load_argument(p, 4); /* anonymous memory has no file */
                return_if_equal(p, UINT32_MAX, SECCOMP_RET_ALLOW);
        } else if (call->action == AUDIT_SEND) {
                load_argument(p, 5); /* no address: the socket is connected */
                return_if_equal(p, 0, SECCOMP_RET_ALLOW);
        } else if (call->action == AUDIT_LOOK && call->flags >= 0) {
                load_argument(p, (unsigned) call->flags); /* of an open descriptor */
                return_if_any_bit(p, 0x1000 /* AT_EMPTY_PATH */, SECCOMP_RET_ALLOW);
        }
        emit_return(p, SECCOMP_RET_USER_NOTIF);
        section_end(p, s);
}

static void print_audit_program(const Architecture *a) {
        const uint32_t tokens[] = {a->token, a->compat};
        static Program p;

        p.size = 0;
        printf("static const AuditNumber seccomp_audit_numbers[] = {\n");
        emit(&p, BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch), 0, 0);
        for (size_t i = 0; i < sizeof(tokens) / sizeof(tokens[0]) && tokens[i]; i++) {
                unsigned s = section_begin(&p, tokens[i]);
                load_number(&p);
                /* x32 runs as the same architecture with numbers of its own: that it is used is all that is told. */
                if (tokens[i] == SCMP_ARCH_X86_64) {
                        emit(&p, BPF_JMP | BPF_JGE | BPF_K, 0x40000000, 0, 1);
                        emit_return(&p, SECCOMP_RET_USER_NOTIF);
                }
                for (size_t k = 0; k < sizeof(audit_calls) / sizeof(audit_calls[0]); k++) {
                        int n = number(tokens[i], audit_calls[k].name);
                        /* i386's mmap takes its arguments in memory; what is built since 1999 calls mmap2. */
                        if (n < 0 || (tokens[i] == SCMP_ARCH_X86 && strcmp(audit_calls[k].name, "mmap") == 0))
                                continue;
                        emit_audit_call(&p, &audit_calls[k], (uint32_t) n);
                        printf("        {0x%08x, %d, %zu},\n", tokens[i], n, k);
                }
                emit_return(&p, SECCOMP_RET_ALLOW);
                section_end(&p, s);
        }
        emit_return(&p, SECCOMP_RET_ALLOW);
        printf("};\n");
        print_code(&p, "seccomp_program_audit");
}

int main(int argc, char *argv[]) {
        for (size_t i = 0; argc == 2 && i < sizeof(architectures) / sizeof(architectures[0]); i++)
                if (strcmp(architectures[i].name, argv[1]) == 0) {
                        printf("/* Generated by seccomp-generate for %s. */\n#include <linux/filter.h>\n"
                               "#include \"bailey/audit-number.h\"\n", argv[1]);
                        print_program(&architectures[i], "seccomp_program_internet", true);
                        print_program(&architectures[i], "seccomp_program_no_internet", false);
                        print_side_program(&architectures[i], "seccomp_program_no_group_signals", "kill", check_group_signal);
                        print_side_program(&architectures[i], "seccomp_program_own_limits", "prlimit64", check_limits);
                        print_audit_program(&architectures[i]);
                        return fflush(stdout) == 0 && !ferror(stdout) ? 0 : 1;
                }
        die("unknown architecture", argc == 2 ? argv[1] : "none given");
}
