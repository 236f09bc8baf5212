/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The kernel itself: programs and objects in it, the whole machine, and calls that nobody has looked at. */

#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/io.h>
#include <sys/quota.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

#include "escape.h"

#define KEY "escape"
#define NOWHERE "/nonexistent/escape"

static long try_add_key(const char *a) {
        (void) a;
        return syscall(SYS_add_key, "user", KEY, "x", 1, KEY_SPEC_PROCESS_KEYRING);
}
static long try_request_key(const char *a) {
        (void) try_add_key(a);
        return syscall(SYS_request_key, "user", KEY, NULL, 0);
}
static long try_keyctl(const char *operation) {
        return syscall(SYS_keyctl, number(operation), number(operation) == KEYCTL_JOIN_SESSION_KEYRING ? 0 : KEY_SPEC_USER_KEYRING, 1, 0, 0);
}
static long try_bpf_map(const char *a) {
        union bpf_attr attr = {.map_type = BPF_MAP_TYPE_ARRAY, .key_size = 4, .value_size = 4, .max_entries = 1};

        (void) a;
        return syscall(SYS_bpf, BPF_MAP_CREATE, &attr, sizeof(attr));
}
static long try_bpf_program(const char *a) {
        static const char license[] = "GPL";
        struct bpf_insn code[] = {{.code = BPF_ALU64 | BPF_MOV | BPF_K}, {.code = BPF_JMP | BPF_EXIT}};
        union bpf_attr attr = {
                .prog_type = BPF_PROG_TYPE_SOCKET_FILTER, .insn_cnt = 2, .insns = (uintptr_t) code, .license = (uintptr_t) license,
        };

        (void) a;
        return syscall(SYS_bpf, BPF_PROG_LOAD, &attr, sizeof(attr));
}
static long try_perf(const char *a) {
        struct perf_event_attr attr = {
                .type = PERF_TYPE_SOFTWARE, .size = sizeof(attr), .config = PERF_COUNT_SW_TASK_CLOCK, .exclude_kernel = 1, .exclude_hv = 1,
        };

        (void) a;
        return syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
}
static long try_userfaultfd(const char *a) {
        (void) a;
        return syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */);
}
static long ring(void) {
        static struct io_uring_params p;
        return syscall(SYS_io_uring_setup, 4, &p);
}
static long try_ring(const char *a) {
        (void) a;
        return ring();
}
static long try_ring_enter(const char *a) {
        (void) a;
        return syscall(SYS_io_uring_enter, ring(), 0, 0, 0, NULL, 0);
}
static long try_ring_register(const char *a) {
        (void) a;
        return syscall(SYS_io_uring_register, ring(), 9 /* IORING_REGISTER_PERSONALITY */, NULL, 0);
}
static long try_fanotify(const char *a) {
        (void) a;
        return syscall(SYS_fanotify_init, 0x200 /* FAN_REPORT_FID */, O_RDONLY);
}
static long try_fanotify_mark(const char *a) {
        return syscall(SYS_fanotify_mark, try_fanotify(a), 1, (uint64_t) 2, AT_FDCWD, place("work"));
}

struct handle {
        uint32_t size;
        int32_t type;
        char bytes[128];
};
static long try_name_to_handle(const char *a) {
        struct handle h = {.size = sizeof(h.bytes)};
        int mount;

        (void) a;
        return syscall(SYS_name_to_handle_at, AT_FDCWD, place("work/file"), &h, &mount, 0);
}
static long try_open_by_handle(const char *a) {
        struct handle h = {.size = sizeof(h.bytes)};
        int mount;

        (void) a;
        (void) syscall(SYS_name_to_handle_at, AT_FDCWD, place("work/file"), &h, &mount, 0);
        return syscall(SYS_open_by_handle_at, open(place("work"), O_RDONLY | O_CLOEXEC), &h, O_RDONLY);
}

static long try_personality(const char *flags) {
        return syscall(SYS_personality, number(flags));
}

/* Calls on the whole machine get arguments that the kernel refuses after it has asked for the privilege. */
static long try_init_module(const char *a) {
        (void) a;
        return syscall(SYS_init_module, "", 0, "");
}
static long try_finit_module(const char *a) {
        (void) a;
        return syscall(SYS_finit_module, -1, "", 0);
}
static long try_delete_module(const char *a) {
        (void) a;
        return syscall(SYS_delete_module, "escape_no_such_module", O_NONBLOCK);
}
static long try_kexec(const char *a) {
        (void) a;
        return syscall(SYS_kexec_load, 0, 17, NULL, 0);
}
static long try_kexec_file(const char *a) {
        (void) a;
        return syscall(SYS_kexec_file_load, -1, -1, 0, NULL, ~0UL);
}
static long try_reboot(const char *a) {
        (void) a;
        /* Of a PID namespace, which is all that it may ask for that is no root of the machine. */
        return syscall(SYS_reboot, 0xfee1deadUL, 0x28121969UL, RB_AUTOBOOT, NULL);
}
static long try_swapon(const char *a) {
        (void) a;
        return syscall(SYS_swapon, NOWHERE, 0);
}
static long try_swapoff(const char *a) {
        (void) a;
        return syscall(SYS_swapoff, NOWHERE);
}
static long try_acct(const char *a) {
        (void) a;
        return syscall(SYS_acct, NOWHERE);
}
static long try_quotactl(const char *a) {
        (void) a;
        return syscall(SYS_quotactl, QCMD(Q_SYNC, USRQUOTA), NULL, 0, NULL);
}
static long try_syslog(const char *action) {
        return syscall(SYS_syslog, number(action), NULL, 0);
}
static long try_settimeofday(const char *a) {
        struct timeval t = {0, -1};

        (void) a;
        return syscall(SYS_settimeofday, &t, NULL);
}
static long try_clock_settime(const char *a) {
        struct timespec t = {0, -1};

        (void) a;
        return syscall(SYS_clock_settime, CLOCK_REALTIME, &t);
}
static long try_adjtimex(const char *a) {
        struct timex t = {};

        (void) a;
        return syscall(SYS_adjtimex, &t);
}
static long try_clock_adjtime(const char *a) {
        struct timex t = {};

        (void) a;
        return syscall(SYS_clock_adjtime, CLOCK_REALTIME, &t);
}
static long try_sethostname(const char *a) {
        (void) a;
        return sethostname("escape", 6);
}
static long try_setdomainname(const char *a) {
        (void) a;
        return setdomainname("escape", 6);
}
static long try_vhangup(const char *a) {
        (void) a;
        /* Without a terminal there is nothing to hang up. */
        (void) setsid();
        return syscall(SYS_vhangup);
}
static long try_real_time(const char *a) {
        struct sched_param p = {.sched_priority = 1};

        (void) a;
        return sched_setscheduler(0, SCHED_FIFO, &p);
}

#ifdef __x86_64__
static long try_ldt(const char *a) {
        char buffer[64];

        (void) a;
        return syscall(SYS_modify_ldt, 0, buffer, sizeof(buffer));
}
static long try_iopl(const char *a) {
        (void) a;
        return syscall(SYS_iopl, 0);
}
static long try_ioperm(const char *a) {
        (void) a;
        return syscall(SYS_ioperm, 0x80, 1, 0);
}
static long try_ustat(const char *a) {
        char buffer[64];
        struct stat st;

        (void) a;
        if (stat(place("work"), &st) < 0)
                broken("stat");
        return syscall(SYS_ustat, st.st_dev, buffer);
}
static long try_sysfs(const char *a) {
        (void) a;
        return syscall(SYS_sysfs, 3);
}
#endif

static long try_call(const char *nr) {
        return syscall((long) number(nr), -1, 0, 0, 0, 0, 0);
}

#define ROW(n, w, f, a, i) {.name = n, .what = w, .try = f, .argument = a, .error = EPERM, .stops = STOP_SECCOMP, .ids = i}
#define MACHINE(n, w, f, a, e, i) \
        {.name = n, .what = w, .try = f, .argument = a, .error = EPERM, .stops = STOP_SECCOMP | STOP_PRIVILEGE, .off = OFF_ROOT, .off_error = e, \
         .optional = true, .ids = i}
#define OPTIONAL(n, w, f, a, i) \
        {.name = n, .what = w, .try = f, .argument = a, .error = EPERM, .stops = STOP_SECCOMP, .optional = true, .ids = i}
#define RING(n, w, f) {.name = n, .what = w, .try = f, .error = ENOSYS, .stops = STOP_SECCOMP, .optional = true, .ids = "C037"}
#define NEWER(n, nr, version, e) \
        {.name = "newer-" n, .what = n ", a call that is newer than the filter", .try = try_call, .argument = nr, .error = ENOSYS, \
         .stops = STOP_SECCOMP, .off_error = e, .since = version, .ids = "C041"}
#define UNKNOWN(n, nr) \
        {.name = "unknown-" n, .what = "a call that no kernel has yet", .try = try_call, .argument = nr, .error = ENOSYS, \
         .stops = STOP_SECCOMP | STOP_PRIVILEGE, .off = OFF_NEVER, .ids = "C035 C041"}

static const Attempt rows[] = {
        ROW("add-key", "a key in a keyring of the host", try_add_key, NULL, "C044"),
        ROW("request-key", "a key of the host", try_request_key, NULL, "C044"),
        ROW("keyctl-keyring", "the account's keyring", try_keyctl, "0", "C044"),
        ROW("keyctl-join", "another session's keyring", try_keyctl, "1", "C044"),
        MACHINE("bpf-map", "memory that the kernel's programs share", try_bpf_map, NULL, 0, "T016"),
        MACHINE("bpf-program", "a program in the kernel", try_bpf_program, NULL, 0, "T016"),
        OPTIONAL("perf-event", "what the kernel and others do", try_perf, NULL, "T016"),
        OPTIONAL("userfaultfd", "the kernel held in the middle of a copy", try_userfaultfd, NULL, "T016"),
        RING("io-uring-setup", "other calls' work, past the filter", try_ring),
        RING("io-uring-enter", "the same, with a ring from elsewhere", try_ring_enter),
        RING("io-uring-register", "the same, with credentials kept", try_ring_register),
        ROW("fanotify-init", "what happens on a whole file system", try_fanotify, NULL, "T016"),
        ROW("fanotify-mark", "the same", try_fanotify_mark, NULL, "T016"),
        OPTIONAL("name-to-handle", "a file's number, which no path rule knows", try_name_to_handle, NULL, "T016"),
        MACHINE("open-by-handle", "a file by its number", try_open_by_handle, NULL, 0, "T016"),
        ROW("personality-execute", "data that can be executed", try_personality, "0x400000", "C038"),
        ROW("personality-high-bits", "the same, with bits that a filter might compare", try_personality, "0x100400000", "C038"),
        ROW("personality-zero-page", "memory at address 0", try_personality, "0x100000", "C038"),
        ROW("personality-other", "another system's emulation", try_personality, "6", "C038"),
        MACHINE("init-module", "a kernel module", try_init_module, NULL, ENOEXEC, "T016"),
        MACHINE("finit-module", "a kernel module from a file", try_finit_module, NULL, EBADF, "T016"),
        MACHINE("delete-module", "a protection's module away", try_delete_module, NULL, ENOENT, "T016"),
        MACHINE("kexec", "another kernel", try_kexec, NULL, EINVAL, "T016"),
        MACHINE("kexec-file", "another kernel from a file", try_kexec_file, NULL, EINVAL, "T016"),
        {.name = "reboot", .what = "the machine down", .try = try_reboot, .error = EPERM, .stops = STOP_SECCOMP | STOP_PRIVILEGE,
         .off = OFF_PRIVATE, .ids = "T016"},
        MACHINE("swapon", "memory read from a file", try_swapon, NULL, ENOENT, "T016"),
        MACHINE("swapoff", "memory taken from all", try_swapoff, NULL, ENOENT, "T016"),
        MACHINE("acct", "a file that the kernel writes to", try_acct, NULL, ENOENT, "T016"),
        OPTIONAL("quotactl", "quotas", try_quotactl, NULL, "T016"),
        MACHINE("syslog", "the kernel's log", try_syslog, "10", 0, "T016"),
        MACHINE("syslog-clear", "the kernel's log quiet", try_syslog, "7", 0, "T016"),
        MACHINE("settimeofday", "the machine's clock", try_settimeofday, NULL, EINVAL, "T016"),
        MACHINE("clock-settime", "the machine's clock", try_clock_settime, NULL, EINVAL, "T016"),
        ROW("adjtimex", "how the machine's clock runs", try_adjtimex, NULL, "T016"),
        ROW("clock-adjtime", "how the machine's clock runs, newer call", try_clock_adjtime, NULL, "T016"),
        MACHINE("vhangup", "the caller's terminal", try_vhangup, NULL, 0, "C039"),
        {.name = "real-time", .what = "a CPU for itself", .try = try_real_time, .error = EPERM, .stops = STOP_PRIVILEGE, .off = OFF_ROOT,
         .ids = "T004"},
        {.name = "sethostname", .what = "the host's name", .try = try_sethostname, .error = EPERM, .stops = STOP_SECCOMP | STOP_PRIVILEGE,
         .off = OFF_PRIVATE, .ids = "T016"},
        {.name = "setdomainname", .what = "the host's domain", .try = try_setdomainname, .error = EPERM,
         .stops = STOP_SECCOMP | STOP_PRIVILEGE, .off = OFF_PRIVATE, .ids = "T016"},
#ifdef __x86_64__
        OPTIONAL("modify-ldt", "16-bit segments", try_ldt, NULL, "T016"),
        OPTIONAL("iopl", "hardware ports", try_iopl, NULL, "T016"),
        OPTIONAL("ioperm", "hardware ports", try_ioperm, NULL, "T016"),
        OPTIONAL("ustat", "an obsolete call", try_ustat, NULL, "T016"),
        OPTIONAL("sysfs", "an obsolete call", try_sysfs, NULL, "T016"),
#endif
        NEWER("cachestat", "451", 0x0605, EBADF), NEWER("fchmodat2", "452", 0x0606, EFAULT), NEWER("statmount", "457", 0x0608, EFAULT),
        NEWER("listmount", "458", 0x0608, EFAULT), NEWER("lsm-list-modules", "461", 0x0608, EFAULT),
        NEWER("mseal", "462", 0x060a, EINVAL), NEWER("file-getattr", "468", 0x0611, EINVAL),
        UNKNOWN("600", "600"), UNKNOWN("5000", "5000"), UNKNOWN("negative", "-1"), UNKNOWN("x32-getpid", "0x40000027"),
        UNKNOWN("x32-mount", "0x400000a5"), UNKNOWN("x32-ptrace", "0x40000209"), UNKNOWN("x32-io-uring", "0x400001a9"),
};

const AttemptTable escape_kernel = {rows, sizeof(rows) / sizeof(rows[0])};
