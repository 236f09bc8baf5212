/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* The 32-bit entry of x86-64, which has numbers of its own, and socketcall. */

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "escape.h"

#ifdef __x86_64__

enum {
        I386_MOUNT = 21, I386_PTRACE = 26, I386_CHROOT = 61, I386_SOCKETCALL = 102, I386_PERSONALITY = 136, I386_ADD_KEY = 286,
        I386_UNSHARE = 310, I386_SOCKET = 359, I386_IO_URING = 425, I386_CLONE3 = 435, I386_CLONE = 120, I386_ADJTIMEX = 124,
        I386_SETHOSTNAME = 74, I386_PROCESS_READ = 347, I386_IOPL = 110, I386_QUOTACTL = 131, I386_KCMP = 349, I386_USERFAULTFD = 374,
        I386_OPEN = 5, I386_FSOPEN = 430,
};

static long entry(long nr, unsigned long a, unsigned long b, unsigned long c, unsigned long d, unsigned long e) {
        int r;

        /* The sixth argument is 0, past what lies below the stack pointer. */
        __asm__ volatile("lea -128(%%rsp), %%rsp; push %%rbp; xor %%ebp, %%ebp; int $0x80; pop %%rbp; lea 128(%%rsp), %%rsp"
                         : "=a"(r) : "a"(nr), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e) : "memory", "cc", "r8", "r9", "r10", "r11");
        if (r < 0) {
                errno = -r;
                return -1;
        }
        return r;
}

/* What it can point to lies in the low 4 GB. */
static unsigned long low(const void *from, size_t size) {
        char *p = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
        if (p == MAP_FAILED)
                broken("mmap");
        if (from)
                memcpy(p, from, size);
        return (unsigned long) (uintptr_t) p;
}
static unsigned long low_text(const char *text) {
        return low(text, strlen(text) + 1);
}

static long try_unshare(const char *flags) {
        return entry(I386_UNSHARE, number(flags), 0, 0, 0, 0);
}
static long try_clone(const char *flags) {
        long pid = entry(I386_CLONE, number(flags) | 17 /* SIGCHLD */, 0, 0, 0, 0);
        if (pid == 0)
                _exit(0);
        return child_result(pid);
}
static long try_clone3(const char *flags) {
        uint64_t arguments[8] = {number(flags), 0, 0, 0, 17};

        long pid = entry(I386_CLONE3, low(arguments, sizeof(arguments)), sizeof(arguments), 0, 0, 0);
        if (pid == 0)
                _exit(0);
        return child_result(pid);
}
static long try_mount(const char *type) {
        return entry(I386_MOUNT, low_text("none"), low_text(place("work/mount")), low_text(type), 0, 0);
}
static long try_chroot(const char *a) {
        (void) a;
        return entry(I386_CHROOT, low_text(place("work")), 0, 0, 0, 0);
}
static long try_fsopen(const char *a) {
        (void) a;
        return entry(I386_FSOPEN, low_text("tmpfs"), 0, 0, 0, 0);
}
static long try_traceme(const char *a) {
        (void) a;
        return entry(I386_PTRACE, 0, 0, 0, 0, 0);
}
static long try_process_read(const char *a) {
        uint32_t target = (uint32_t) low_text("x"), vectors[4] = {target, 1, target + 1, 1};
        unsigned long v = low(vectors, sizeof(vectors));

        (void) a;
        return entry(I386_PROCESS_READ, (unsigned long) getpid(), v, 1, v + 8, 1);
}
static long try_kcmp(const char *a) {
        (void) a;
        return entry(I386_KCMP, (unsigned long) getpid(), (unsigned long) getpid(), 1, 0, 0);
}
static long try_add_key(const char *a) {
        (void) a;
        return entry(I386_ADD_KEY, low_text("user"), low_text("escape"), low_text("x"), 1, (unsigned long) -2);
}
static long try_personality(const char *flags) {
        return entry(I386_PERSONALITY, number(flags), 0, 0, 0, 0);
}
static long try_ring(const char *a) {
        (void) a;
        return entry(I386_IO_URING, 4, low(NULL, 0), 0, 0, 0);
}
static long try_socket(const char *family) {
        return entry(I386_SOCKET, number(family), number(family) == 38 ? 5 : 1, 0, 0, 0);
}
static long try_socketcall(const char *family) {
        uint32_t arguments[3] = {(uint32_t) number(family), 1, 0};
        return entry(I386_SOCKETCALL, 1, low(arguments, sizeof(arguments)), 0, 0, 0);
}
static long try_adjtimex(const char *a) {
        (void) a;
        return entry(I386_ADJTIMEX, low(NULL, 0), 0, 0, 0, 0);
}
static long try_sethostname(const char *a) {
        (void) a;
        return entry(I386_SETHOSTNAME, low_text("escape"), 6, 0, 0, 0);
}
static long try_open(const char *path) {
        return entry(I386_OPEN, low_text(place(path)), 0, 0, 0, 0);
}

/* A kernel may be built or started without the entry. */
#define ROW(n, w, f, a, e, s, o, i) \
        {.name = "i386-" n, .what = w ", 32-bit", .try = f, .argument = a, .error = e, .stops = s, .off = o, .optional = true, .ids = "C035 " i}

static const Attempt rows[] = {
        ROW("unshare-user", "a namespace", try_unshare, "0x10000000", EPERM, STOP_SECCOMP | STOP_NETWORK, OFF_PLAIN, "T017"),
        ROW("unshare-mount", "a namespace", try_unshare, "0x20000", EPERM, STOP_SECCOMP | STOP_PRIVILEGE, OFF_PRIVATE, "T017"),
        ROW("clone-user", "a namespace", try_clone, "0x10000000", EPERM, STOP_SECCOMP | STOP_NETWORK, OFF_PLAIN, "T017"),
        ROW("clone3", "a process", try_clone3, "0", ENOSYS, STOP_SECCOMP, OFF_PLAIN, "T018"),
        ROW("clone3-user", "a namespace", try_clone3, "0x10000000", ENOSYS, STOP_SECCOMP | STOP_NETWORK, OFF_PLAIN, "T018"),
        ROW("mount", "a mount", try_mount, "tmpfs", EPERM, STOP_SECCOMP | STOP_PRIVILEGE, OFF_PRIVATE, "C041"),
        ROW("chroot", "a root to climb out of", try_chroot, NULL, EPERM, STOP_SECCOMP | STOP_PRIVILEGE, OFF_PRIVATE, "C041"),
        ROW("fsopen", "a new file system", try_fsopen, NULL, EPERM, STOP_SECCOMP | STOP_PRIVILEGE, OFF_PRIVATE, "C041"),
        ROW("ptrace", "tracing", try_traceme, NULL, EPERM, STOP_SECCOMP, OFF_PLAIN, "T016"),
        ROW("process-vm-readv", "other memory", try_process_read, NULL, EPERM, STOP_SECCOMP, OFF_PLAIN, "T004"),
        ROW("kcmp", "whether processes share what", try_kcmp, NULL, EPERM, STOP_SECCOMP, OFF_PLAIN, "T004"),
        ROW("add-key", "a key", try_add_key, NULL, EPERM, STOP_SECCOMP, OFF_PLAIN, "C044"),
        ROW("personality", "data that can be executed", try_personality, "0x400000", EPERM, STOP_SECCOMP, OFF_PLAIN, "C038"),
        ROW("io-uring", "other calls' work", try_ring, NULL, ENOSYS, STOP_SECCOMP, OFF_PLAIN, "C037"),
        ROW("socket-alg", "the kernel's ciphers", try_socket, "38", EAFNOSUPPORT, STOP_SECCOMP, OFF_PLAIN, "T015"),
        ROW("socket-vsock", "the machine below", try_socket, "40", EAFNOSUPPORT, STOP_SECCOMP, OFF_PLAIN, "T015"),
        ROW("socketcall-inet", "a socket whose family no filter sees", try_socketcall, "2", EPERM, STOP_SECCOMP, OFF_PLAIN, "T015"),
        ROW("socketcall-vsock", "the machine below, the same way", try_socketcall, "40", EPERM, STOP_SECCOMP, OFF_PLAIN, "T015"),
        ROW("adjtimex", "the machine's clock", try_adjtimex, NULL, EPERM, STOP_SECCOMP, OFF_PLAIN, "T016"),
        ROW("sethostname", "the host's name", try_sethostname, NULL, EPERM, STOP_SECCOMP | STOP_PRIVILEGE, OFF_PRIVATE, "T016"),
        ROW("open", "a file that is not granted", try_open, "private/secret", ENOENT, STOP_NAMESPACES | STOP_LANDLOCK, OFF_PLAIN, "T009"),
};

const AttemptTable escape_compat = {rows, sizeof(rows) / sizeof(rows[0])};

#else
const AttemptTable escape_compat = {NULL, 0};
#endif
