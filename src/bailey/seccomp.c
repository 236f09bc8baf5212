/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bailey/seccomp.h"
#include "bailey/seccomp-program.h"

bool seccomp_available(void) {
        uint32_t action = SECCOMP_RET_ERRNO;

        return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

static int load(const struct sock_filter *code, size_t size, Failure *f) {
        struct sock_fprog program = {.len = (unsigned short) size, .filter = (struct sock_filter *) code};

        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
                return failure_set(f, STAGE_SECCOMP, errno, "%u instructions", program.len);
        return 0;
}

int seccomp_load(bool internet, bool group_signals, Failure *f) {
        int r = group_signals ? 0 : load(seccomp_program_no_group_signals, ELEMENTSOF(seccomp_program_no_group_signals), f);
        if (r < 0)
                return r;
        return internet ? load(seccomp_program_internet, ELEMENTSOF(seccomp_program_internet), f)
                        : load(seccomp_program_no_internet, ELEMENTSOF(seccomp_program_no_internet), f);
}

int seccomp_load_own_limits(Failure *f) {
        return load(seccomp_program_own_limits, ELEMENTSOF(seccomp_program_own_limits), f);
}
