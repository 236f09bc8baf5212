/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "basic/fd.h"
#include "launch/programs.h"

int program_check(int fd) {
        struct stat st;

        if (fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode))
                return -EACCES;
        /* EINVAL, ENOSYS: the kernel's call for it (Linux 5.8) is not let through, as in some containers; executing will tell. */
        if (faccessat(fd, "", X_OK, AT_EMPTY_PATH | AT_EACCESS) < 0 && errno != EINVAL && errno != ENOSYS)
                return -errno;
        return 0;
}

_printf_(1, 2) static int open_program(const char *format, ...) {
        char path[PATH_MAX];
        va_list ap;

        va_start(ap, format);
        int n = vsnprintf(path, sizeof(path), format, ap);
        va_end(ap);
        if (n < 0 || n >= (int) sizeof(path))
                return -ENAMETOOLONG;
        /* O_PATH: to execute needs no right to read. */
        _cleanup_close_ int fd = open(path, O_PATH | O_CLOEXEC);
        if (fd < 0)
                return -errno;
        int r = program_check(fd);
        return r < 0 ? r : TAKE_FD(fd);
}

int program_open(const char *name, const char *folder) {
        const char *libexec = getenv("ERRAND_LIBEXEC");
        char own[PATH_MAX];

        if (libexec && *libexec)
                return open_program("%s/%s", libexec, name);
        ssize_t n = readlink("/proc/self/exe", own, sizeof(own) - 1);
        if (n > 0) {
                own[n] = 0;
                char *slash = strrchr(own, '/');
                if (slash) {
                        *slash = 0;
                        int fd = open_program("%s/%s", own, name);
                        if (fd < 0)
                                fd = open_program("%s/../%s/%s", own, folder, name);
                        if (fd >= 0)
                                return fd;
                }
        }
        int fd = open_program("%s/%s", ERRAND_LIBEXEC_DIR, name);
        return fd == -ENOENT ? open_program("%s/%s", ERRAND_BIN_DIR, name) : fd;
}

void program_execute(int program, char *const *argv, const int standard[3], const int *keep, size_t n_keep) {
        static const char failed[] = "errand-launch: a program cannot be executed\n";
        static char *const environment[] = {NULL};
        const struct sigaction action = {.sa_handler = SIG_DFL};
        sigset_t none;
        bool good = true;

        for (int i = 1; i < NSIG; i++)
                if (i != SIGKILL && i != SIGSTOP)
                        (void) sigaction(i, &action, NULL);
        (void) sigemptyset(&none);
        (void) sigprocmask(SIG_SETMASK, &none, NULL);
        (void) setsid();
        for (int i = 0; i <= STDERR_FILENO && good; i++)
                good = standard[i] == i || dup2(standard[i], i) >= 0;
        good = good && fd_close_all_except(3, keep, n_keep) >= 0;
        for (size_t i = 0; i < n_keep && good; i++)
                good = keep[i] == program || fd_cloexec(keep[i], false) >= 0;
        if (good)
                (void) syscall(SYS_execveat, program, "", argv, environment, AT_EMPTY_PATH);
        (void) !write(STDERR_FILENO, failed, sizeof(failed) - 1);
        _exit(125);
}
