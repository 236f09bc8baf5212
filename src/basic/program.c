/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/program.h"
#include "basic/fd.h"
#include "basic/io.h"

/* An account that is not root loses its capabilities by execve(2), but for the ambient ones. */
static bool keep_capability(int capability) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {};

        if (capability < 0)
                return true;
        if (syscall(SYS_capget, &header, data) < 0)
                return false;
        data[CAP_TO_INDEX(capability)].inheritable |= CAP_TO_MASK(capability);
        return syscall(SYS_capset, &header, data) >= 0 && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) >= 0;
}

_noreturn_ void program_execute(int program, char *const *arguments, const ProgramStreams *streams, int capability) {
        static char *const none[] = {NULL};
        sigset_t empty;

        (void) sigemptyset(&empty);
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) >= 0 && keep_capability(capability) && chdir("/") >= 0 && dup2(streams->input, STDIN_FILENO) >= 0 &&
            dup2(streams->output, STDOUT_FILENO) >= 0 && dup2(streams->errors, STDERR_FILENO) >= 0 &&
            fd_close_all_except(3, &program, program >= 0) >= 0 && sigprocmask(SIG_SETMASK, &empty, NULL) >= 0) {
                if (program >= 0)
                        (void) syscall(SYS_execveat, program, "", arguments, none, AT_EMPTY_PATH);
                else
                        (void) execve(arguments[0], arguments, none);
        }
        _exit(EXIT_NO_PROGRAM);
}

/* A pipe that holds `text` and ends after it. */
static int open_text(const char *text) {
        size_t size = strlen(text);
        int pair[2];

        if (size > PROGRAM_INPUT_MAX)
                return -E2BIG;
        if (pipe2(pair, O_CLOEXEC) < 0)
                return -errno;
        int r = write_all(pair[1], text, size);
        safe_close(pair[1]);
        if (r >= 0)
                return pair[0];
        safe_close(pair[0]);
        return r;
}

static int run(int program, const char *const *arguments, int input, int capability, char *ret_output, size_t size) {
        int pair[2], status;

        if (pipe2(pair, O_CLOEXEC) < 0)
                return -errno;
        _cleanup_close_ int ours = pair[0], theirs = pair[1];
        pid_t pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0)
                program_execute(program, (char *const *) arguments, &(ProgramStreams){.input = input, .output = theirs, .errors = theirs}, capability);
        theirs = safe_close(theirs);
        ssize_t n = read_all(ours, ret_output, size - 1);
        ret_output[MAX(n, 0)] = 0;
        ours = safe_close(ours);
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        if (n < 0)
                return (int) n;
        return WIFEXITED(status) ? WEXITSTATUS(status) : -EPIPE;
}

int program_run(int program, const char *const *arguments, const char *input, int capability, char *ret_output, size_t size) {
        const struct sigaction usual = {.sa_handler = SIG_DFL};
        struct sigaction before;

        _cleanup_close_ int in = open_text(input);
        if (in < 0)
                return in;
        /* Where it is ignored, as some callers leave it, the kernel keeps no status. */
        if (sigaction(SIGCHLD, &usual, &before) < 0)
                return -errno;
        int r = run(program, arguments, in, capability, ret_output, size);
        (void) sigaction(SIGCHLD, &before, NULL);
        return r;
}
