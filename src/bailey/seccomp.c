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

int seccomp_load(bool internet, Failure *f) {
        struct sock_fprog program = {
                .len = internet ? ELEMENTSOF(seccomp_program_internet) : ELEMENTSOF(seccomp_program_no_internet),
                .filter = (struct sock_filter *) (internet ? seccomp_program_internet : seccomp_program_no_internet),
        };

        if (syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) < 0)
                return failure_set(f, STAGE_SECCOMP, errno, "%u instructions", program.len);
        return 0;
}
