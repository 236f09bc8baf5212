/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Tries things and says what the kernel answered: probe OPERATION[=ARGUMENT]… prints "OPERATION ok" or "OPERATION ENAME", one
 * line each. Static, so that it runs where nothing but itself is granted. Each operation is one that an ordinary account can
 * do on an ordinary machine, so that a refusal is the sandbox's. */

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <linux/keyctl.h>
#include <linux/sched.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define HIGH (UINT64_C(1) << 32)

/* Every operation returns like a system call: negative and errno, or anything else. */
typedef long (*Operation)(char *argument);

static unsigned long number_argument(const char *s) {
        return s ? strtoul(s, NULL, 0) : 0;
}

/* Ends the child of a call that made one, and says that it did. */
static long child_end(long pid) {
        if (pid == 0)
                _exit(0);
        if (pid > 0)
                (void) waitpid((pid_t) pid, NULL, __WALL);
        return pid;
}

static long in_child(long (*what)(unsigned long), unsigned long argument) {
        int status;
        pid_t pid = fork();

        if (pid < 0)
                return -1;
        if (pid == 0)
                _exit(what(argument) < 0 ? errno : 0);
        if (waitpid(pid, &status, 0) < 0)
                return -1;
        if (!WIFEXITED(status)) {
                errno = EINTR;
                return -1;
        }
        errno = WEXITSTATUS(status);
        return errno ? -1 : 0;
}

static long raw_unshare(unsigned long flags) {
        return syscall(SYS_unshare, flags);
}
static long op_unshare(char *a) {
        return in_child(raw_unshare, number_argument(a));
}
static long op_clone(char *a) {
        return child_end(syscall(SYS_clone, number_argument(a) | SIGCHLD, 0, 0, 0, 0));
}
static long op_clone3(char *a) {
        struct clone_args args = {.flags = number_argument(a), .exit_signal = SIGCHLD};
        return child_end(syscall(SYS_clone3, &args, sizeof(args)));
}
static long raw_setns(unsigned long unused) {
        (void) unused;
        /* The namespace that this is in already: allowed by the kernel to whoever may join it; EPERM from the kernel itself
         * for others, so this is only told apart by the descriptor, which is none. */
        return (long) syscall(SYS_setns, -1, 0);
}
static long op_setns(char *a) {
        (void) a;
        return in_child(raw_setns, 0);
}
static long raw_traceme(unsigned long unused) {
        (void) unused;
        return ptrace(PTRACE_TRACEME, 0, NULL, NULL);
}
static long op_ptrace(char *a) {
        (void) a;
        return in_child(raw_traceme, 0);
}
static long op_process_vm_readv(char *a) {
        char from = 1, to = 0;
        struct iovec local = {&to, 1}, remote = {&from, 1};

        (void) a;
        return process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
}
static long op_pidfd_getfd(char *a) {
        (void) a;
        int pidfd = (int) syscall(SYS_pidfd_open, getpid(), 0);
        return pidfd < 0 ? -1 : syscall(SYS_pidfd_getfd, pidfd, 0, 0);
}
static long op_kcmp(char *a) {
        (void) a;
        return syscall(SYS_kcmp, getpid(), getpid(), 1, 0, 0);
}
static long op_userfaultfd(char *a) {
        (void) a;
        return syscall(SYS_userfaultfd, 1 /* UFFD_USER_MODE_ONLY */);
}
static long op_add_key(char *a) {
        (void) a;
        return syscall(SYS_add_key, "user", "bailey-probe", "x", 1, KEY_SPEC_PROCESS_KEYRING);
}
static long op_keyctl(char *a) {
        (void) a;
        return syscall(SYS_keyctl, KEYCTL_GET_KEYRING_ID, KEY_SPEC_PROCESS_KEYRING, 1);
}
static long op_request_key(char *a) {
        (void) a;
        return syscall(SYS_request_key, "user", "bailey-no-such-key", NULL, 0);
}
static long op_io_uring(char *a) {
        struct io_uring_params p = {};

        (void) a;
        return syscall(SYS_io_uring_setup, 8, &p);
}
static long op_name_to_handle(char *a) {
        struct {
                struct file_handle h;
                char room[128];
        } handle = {.h = {.handle_bytes = 128}};
        int mount;

        (void) a;
        return syscall(SYS_name_to_handle_at, AT_FDCWD, "/", &handle, &mount, 0);
}
static long op_fanotify(char *a) {
        (void) a;
        return syscall(SYS_fanotify_init, 0x200 /* FAN_REPORT_FID */, O_RDONLY);
}
static long op_modify_ldt(char *a) {
        char buffer[64];

        (void) a;
#ifdef SYS_modify_ldt
        return syscall(SYS_modify_ldt, 0, buffer, sizeof(buffer));
#else
        (void) buffer;
        errno = EPERM;
        return -1;
#endif
}
static long op_personality(char *a) {
        return syscall(SYS_personality, number_argument(a));
}
static long op_syscall(char *a) {
        return syscall((long) number_argument(a), -1, 0, 0, 0, 0, 0);
}

/* The mount family, with arguments that the kernel looks at before it asks for privileges, or that need none. */
static long op_mount(char *a) {
        (void) a;
        return mount("none", "/", "no-such-type", 0, NULL);
}
static long op_umount(char *a) {
        (void) a;
        return umount2("/", 0x1000);
}
static long op_open_tree(char *a) {
        (void) a;
        return syscall(SYS_open_tree, AT_FDCWD, "/", O_CLOEXEC);
}
static long op_move_mount(char *a) {
        (void) a;
        return syscall(SYS_move_mount, -1, "", -1, "", 0x1000);
}
static long op_fsopen(char *a) {
        (void) a;
        return syscall(SYS_fsopen, "tmpfs", 0x1000);
}
static long op_fsconfig(char *a) {
        (void) a;
        return syscall(SYS_fsconfig, -1, 6, NULL, NULL, 0);
}
static long op_fsmount(char *a) {
        (void) a;
        return syscall(SYS_fsmount, -1, 0, 0);
}
static long op_mount_setattr(char *a) {
        (void) a;
        return syscall(SYS_mount_setattr, -1, "", 0x80000000U, NULL, 0);
}
static long op_pivot_root(char *a) {
        (void) a;
        return syscall(SYS_pivot_root, "/", "/");
}
static long op_chroot(char *a) {
        (void) a;
        return chroot("/no-such-directory");
}

/* FAMILY,TYPE,PROTOCOL */
static long op_socket(char *a) {
        unsigned long domain = strtoul(a, &a, 0), type = strtoul(a + 1, &a, 0), protocol = strtoul(a + 1, NULL, 0);
        return syscall(SYS_socket, domain, type, protocol);
}
static long op_socketpair(char *a) {
        int pair[2];
        return syscall(SYS_socketpair, number_argument(a), SOCK_STREAM, 0, pair);
}
static long op_tiocsti(char *a) {
        char c = 'x';
        return syscall(SYS_ioctl, 0, number_argument(a) ? HIGH | TIOCSTI : TIOCSTI, &c);
}
static long op_tioclinux(char *a) {
        char c = 6;
        return syscall(SYS_ioctl, 0, number_argument(a) ? HIGH | TIOCLINUX : TIOCLINUX, &c);
}
static long op_winsize(char *a) {
        struct winsize w;

        (void) a;
        return ioctl(0, TIOCGWINSZ, &w);
}

/* NUMBER,ARGUMENT,ARGUMENT,ARGUMENT by the 32-bit entry. */
static long op_i386(char *a) {
#ifdef __x86_64__
        long nr = strtol(a, &a, 0), x = *a ? strtol(a + 1, &a, 0) : 0, y = *a ? strtol(a + 1, &a, 0) : 0,
             z = *a ? strtol(a + 1, &a, 0) : 0;
        int r;
        __asm__ volatile("int $0x80" : "=a"(r) : "a"(nr), "b"(x), "c"(y), "d"(z) : "memory", "r8", "r9", "r10", "r11");
        if (r < 0) {
                errno = -r;
                return -1;
        }
        return r;
#else
        (void) a;
        errno = ENOSYS;
        return -1;
#endif
}

static long op_read(char *a) {
        char c;
        int fd = open(a, O_RDONLY | O_NONBLOCK | O_NOCTTY);
        return fd < 0 ? -1 : read(fd, &c, 1);
}
static long op_list(char *a) {
        DIR *d = opendir(a);
        if (!d)
                return -1;
        errno = 0;
        (void) readdir(d);
        return errno ? -1 : 0;
}
static long op_write(char *a) {
        return open(a, O_WRONLY | O_NOCTTY);
}
static long op_create(char *a) {
        return open(a, O_WRONLY | O_CREAT | O_EXCL, 0644);
}
static long op_truncate(char *a) {
        return truncate(a, 0);
}
static long op_mkdir(char *a) {
        return mkdir(a, 0755);
}
static long op_unlink(char *a) {
        return unlink(a);
}
static long op_stat(char *a) {
        struct stat st;
        return lstat(a, &st);
}
static long op_chmod(char *a) {
        return chmod(a, 0777);
}
static long op_mkfifo(char *a) {
        return mkfifo(a, 0644);
}
static long op_rename(char *a) {
        char *comma = strchr(a, ',');
        *comma = 0;
        return rename(a, comma + 1);
}
static long op_link(char *a) {
        char *comma = strchr(a, ',');
        *comma = 0;
        return link(a, comma + 1);
}
static long op_kill(char *a) {
        return kill((pid_t) number_argument(a), 0);
}
static long op_abstract(char *a) {
        struct sockaddr_un u = {.sun_family = AF_UNIX};
        int fd = socket(AF_UNIX, SOCK_STREAM, 0);

        if (fd < 0)
                return -1;
        strncpy(u.sun_path + 1, a, sizeof(u.sun_path) - 2);
        return connect(fd, (struct sockaddr *) &u, (socklen_t) (offsetof(struct sockaddr_un, sun_path) + 1 + strlen(a)));
}
/* PORT on 127.0.0.1 */
static long op_tcp(char *a) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons((uint16_t) number_argument(a))};
        int fd = socket(AF_INET, SOCK_STREAM, 0);

        if (fd < 0)
                return -1;
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        return connect(fd, (struct sockaddr *) &in, sizeof(in));
}
static long op_udp_out(char *a) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(53)};
        int fd = socket(AF_INET, SOCK_DGRAM, 0);

        (void) a;
        if (fd < 0)
                return -1;
        in.sin_addr.s_addr = htonl(0x09090909);
        return sendto(fd, "x", 1, 0, (struct sockaddr *) &in, sizeof(in));
}
/* Listens and connects to itself: loopback works. */
static long op_loopback(char *a) {
        struct sockaddr_in in = {.sin_family = AF_INET};
        socklen_t size = sizeof(in);
        int l = socket(AF_INET, SOCK_STREAM, 0), c = socket(AF_INET, SOCK_STREAM, 0);

        (void) a;
        in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (l < 0 || c < 0 || bind(l, (struct sockaddr *) &in, size) < 0 || listen(l, 1) < 0 ||
            getsockname(l, (struct sockaddr *) &in, &size) < 0)
                return -1;
        return connect(c, (struct sockaddr *) &in, size);
}
/* "ok" when no descriptor above 2 is open. */
static long op_descriptors(char *a) {
        (void) a;
        for (int fd = 3; fd < 1024; fd++)
                if (fcntl(fd, F_GETFD) >= 0) {
                        errno = EMFILE;
                        return -1;
                }
        return 0;
}

static const struct {
        const char *name;
        Operation operation;
} operations[] = {
        {"unshare", op_unshare}, {"clone", op_clone}, {"clone3", op_clone3}, {"setns", op_setns}, {"ptrace", op_ptrace},
        {"process_vm_readv", op_process_vm_readv}, {"pidfd_getfd", op_pidfd_getfd}, {"kcmp", op_kcmp},
        {"userfaultfd", op_userfaultfd}, {"add_key", op_add_key}, {"keyctl", op_keyctl}, {"request_key", op_request_key},
        {"io_uring", op_io_uring}, {"name_to_handle", op_name_to_handle}, {"fanotify", op_fanotify},
        {"modify_ldt", op_modify_ldt}, {"personality", op_personality}, {"syscall", op_syscall}, {"mount", op_mount},
        {"umount", op_umount}, {"open_tree", op_open_tree}, {"move_mount", op_move_mount}, {"fsopen", op_fsopen},
        {"fsconfig", op_fsconfig}, {"fsmount", op_fsmount}, {"mount_setattr", op_mount_setattr},
        {"pivot_root", op_pivot_root}, {"chroot", op_chroot}, {"socket", op_socket}, {"socketpair", op_socketpair},
        {"tiocsti", op_tiocsti}, {"tioclinux", op_tioclinux}, {"winsize", op_winsize}, {"i386", op_i386}, {"read", op_read},
        {"list", op_list}, {"write", op_write}, {"create", op_create}, {"truncate", op_truncate}, {"mkdir", op_mkdir},
        {"unlink", op_unlink}, {"stat", op_stat}, {"chmod", op_chmod}, {"mkfifo", op_mkfifo}, {"rename", op_rename},
        {"link", op_link}, {"kill", op_kill}, {"abstract", op_abstract}, {"tcp", op_tcp}, {"udp-out", op_udp_out},
        {"loopback", op_loopback}, {"descriptors", op_descriptors},
};

static const char *try(char *what) {
        char *argument = strchr(what, '=');

        if (argument)
                *argument++ = 0;
        for (size_t i = 0; i < sizeof(operations) / sizeof(operations[0]); i++)
                if (strcmp(operations[i].name, what) == 0) {
                        errno = 0;
                        if (operations[i].operation(argument) >= 0)
                                return "ok";
                        return strerrorname_np(errno);
                }
        return "UNKNOWN";
}

int main(int argc, char *argv[]) {
        setvbuf(stdout, NULL, _IOLBF, 0);
        for (int i = 1; i < argc; i++) {
                char name[512];
                snprintf(name, sizeof(name), "%s", argv[i]);
                const char *result = try(argv[i]);
                printf("%s %s\n", name, result ? result : "?");
        }
        return 0;
}
