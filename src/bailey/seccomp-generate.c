/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Build-time program: writes the system call filters as C arrays, so that bailey neither links libseccomp nor spends the two
 * milliseconds that it takes to compute one. `seccomp-generate x86_64 > seccomp-program.h`.
 *
 * A program is one section an architecture: its number's comparison; everything newer than the newest reviewed call → ENOSYS;
 * a search tree over the numbers of the calls that are not simply allowed; and what it leads to: the refusals of the table, and
 * checks of the calls whose arguments decide. Those look at the low 32 bits, which is what the kernel uses of these arguments: a
 * comparison of the whole would let high bits slip by. An architecture that has no section is killed.
 *
 * The kernel compiles the program at every start, and runs it once for each number of a call, to know which it need not be asked
 * about: each instruction costs every start a third of a microsecond, and each level of the tree as much. libseccomp, which has
 * its own tree, is asked for the numbers of calls only. */

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

#include "bailey/audit-calls.h"
#include "bailey/seccomp-table.h"
#include "basic/macro.h"

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
                emit(p, BPF_JMP | BPF_JEQ | BPF_K, FAMILY_INET, 2, 0); /* into the next one's section */
                s = section_begin(p, FAMILY_INET6);
                check_protocols(p, inet, ELEMENTSOF(inet));
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

typedef void (*Check)(Program *p, bool internet);

static const struct {
        const char *name;
        Check check;
} checked_calls[] = {
        {"socket", check_socket},   {"socketpair", check_socketpair}, {"socketcall", check_socketcall},
        {"sendto", check_sendto},   {"sendmsg", check_sendmsg},       {"sendmmsg", check_sendto},
        {"clone", check_clone},     {"ioctl", check_ioctl},           {"personality", check_personality},
        {"setpriority", check_setpriority}, {"ioprio_set", check_ioprio_set},
        {"sched_setscheduler", check_process}, {"sched_setparam", check_process}, {"sched_setattr", check_process},
        {"sched_setaffinity", check_process}, {"prlimit64", check_process},
};

#define CALLS_MAX (ELEMENTSOF(seccomp_rows) + ELEMENTSOF(checked_calls))
#define OUTCOMES_MAX (ELEMENTSOF(checked_calls) + 4U) /* … and an action each for: allowed, the errors of the table */
#define LEAF_RUNS 4U /* compared one after the other, where another level of the tree would cost as much */

/* Where the number of a call leads. */
typedef struct Outcome {
        Check check; /* NULL: no more is looked at */
        uint32_t action;
        unsigned at; /* of its first instruction */
} Outcome;

/* Numbers next to each other that lead to the same. */
typedef struct Run {
        uint32_t first, last;
        unsigned outcome;
} Run;

/* A jump into an outcome, whose place is not known yet. */
typedef struct Jump {
        unsigned from;
        bool when_true;
        unsigned outcome;
} Jump;

typedef struct Section {
        Program *program;
        Outcome outcomes[OUTCOMES_MAX];
        unsigned n_outcomes;
        Run runs[CALLS_MAX];
        unsigned n_runs;
        Jump jumps[4 * CALLS_MAX];
        unsigned n_jumps;
} Section;

#define OUTCOME_ALLOWED 0U /* the first */

static unsigned outcome(Section *s, Check check, uint32_t action) {
        for (unsigned i = 0; i < s->n_outcomes; i++)
                if (s->outcomes[i].check == check && s->outcomes[i].action == action)
                        return i;
        if (s->n_outcomes >= OUTCOMES_MAX)
                die("too many outcomes", "");
        s->outcomes[s->n_outcomes] = (Outcome) {.check = check, .action = action};
        return s->n_outcomes++;
}

static void add_call(Section *s, int n, unsigned to) {
        if (n >= 0)
                s->runs[s->n_runs++] = (Run) {(uint32_t) n, (uint32_t) n, to};
}

static int compare_runs(const void *a, const void *b) {
        const Run *x = a, *y = b;
        return (x->first > y->first) - (x->first < y->first);
}

static void collect_runs(Section *s, uint32_t arch) {
        unsigned n = 0;

        (void) outcome(s, NULL, SECCOMP_RET_ALLOW);
        for (size_t i = 0; i < ELEMENTSOF(seccomp_rows); i++)
                add_call(s, number(arch, seccomp_rows[i].name), outcome(s, NULL, action_error(seccomp_rows[i].error)));
        for (size_t i = 0; i < ELEMENTSOF(checked_calls); i++)
                add_call(s, number(arch, checked_calls[i].name), outcome(s, checked_calls[i].check, 0));

        qsort(s->runs, s->n_runs, sizeof(Run), compare_runs);
        for (unsigned i = 0; i < s->n_runs; i++) {
                const Run *next = &s->runs[i];
                if (i > 0 && next->first <= s->runs[n - 1].last)
                        die("two rules for one call", "");
                if (i > 0 && next->first == s->runs[n - 1].last + 1 && next->outcome == s->runs[n - 1].outcome)
                        s->runs[n - 1].last = next->last;
                else
                        s->runs[n++] = *next;
        }
        s->n_runs = n;
}

static void jump_to(Section *s, unsigned from, bool when_true, unsigned to) {
        s->jumps[s->n_jumps++] = (Jump) {from, when_true, to};
}

/* A number of the run goes where it leads; any other goes on, or is allowed when there is nothing more to compare it with. */
static void emit_run(Section *s, const Run *run, bool last) {
        bool one = run->first == run->last;
        unsigned from;

        if (!one) {
                from = emit(s->program, BPF_JMP | BPF_JGE | BPF_K, run->first, 0, 1);
                if (last)
                        jump_to(s, from, false, OUTCOME_ALLOWED);
        }
        from = emit(s->program, BPF_JMP | (one ? BPF_JEQ : BPF_JGT) | BPF_K, run->last, 0, 0);
        jump_to(s, from, one, run->outcome);
        if (last)
                jump_to(s, from, !one, OUTCOME_ALLOWED);
}

static void set_jump(Program *p, unsigned from, bool when_true, unsigned to) {
        unsigned distance = to - from - 1;

        if (distance > UINT8_MAX)
                die("program too long", "a jump");
        *(when_true ? &p->code[from].jt : &p->code[from].jf) = (uint8_t) distance;
}

static void emit_tree(Section *s, unsigned begin, unsigned end) {
        unsigned middle = begin + (end - begin) / 2;

        if (end - begin <= LEAF_RUNS) {
                for (unsigned i = begin; i < end; i++)
                        emit_run(s, &s->runs[i], i + 1 == end);
                return;
        }
        unsigned from = emit(s->program, BPF_JMP | BPF_JGE | BPF_K, s->runs[middle].first, 0, 0);
        emit_tree(s, begin, middle);
        set_jump(s->program, from, true, s->program->size);
        emit_tree(s, middle, end);
}

static void emit_architecture(Program *p, uint32_t arch, bool internet) {
        unsigned section = section_begin(p, arch);
        Section s = {.program = p};

        load_number(p);
        emit(p, BPF_JMP | BPF_JGT | BPF_K, SECCOMP_NEWEST_REVIEWED, 0, 1);
        emit_return(p, action_error(ENOSYS));
        collect_runs(&s, arch);
        emit_tree(&s, 0, s.n_runs);
        for (unsigned i = 0; i < s.n_outcomes; i++) {
                s.outcomes[i].at = p->size;
                if (s.outcomes[i].check)
                        s.outcomes[i].check(p, internet);
                else
                        emit_return(p, s.outcomes[i].action);
        }
        for (unsigned i = 0; i < s.n_jumps; i++)
                set_jump(p, s.jumps[i].from, s.jumps[i].when_true, s.outcomes[s.jumps[i].outcome].at);
        section_end(p, section);
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
