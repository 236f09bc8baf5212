/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <linux/seccomp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bailey/seccomp.h"
#include "bailey/seccomp-program.h"

#define FLAG_WAIT_KILLABLE (1U << 5) /* SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, Linux 5.19 */

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

int seccomp_listen(int *ret_listener, Failure *f) {
        /* A call that waits is not interrupted by signals that do not kill, or a program with a timer would never get it done. */
        static const unsigned flags[] = {SECCOMP_FILTER_FLAG_NEW_LISTENER | FLAG_WAIT_KILLABLE, SECCOMP_FILTER_FLAG_NEW_LISTENER};
        struct sock_fprog program = {
                .len = ELEMENTSOF(seccomp_program_audit), .filter = (struct sock_filter *) seccomp_program_audit};
        long fd = -1;

        for (size_t i = 0; i < ELEMENTSOF(flags) && fd < 0; i++)
                fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags[i], &program);
        if (fd < 0)
                return failure_set(f, STAGE_SECCOMP, errno, "%s", errno == EBUSY ? "this process is audited already" : "the audit's listener");
        *ret_listener = (int) fd;
        return 0;
}

const AuditCall *seccomp_audit_call(uint32_t architecture, int number) {
        for (size_t i = 0; i < ELEMENTSOF(seccomp_audit_numbers); i++)
                if (seccomp_audit_numbers[i].architecture == architecture && seccomp_audit_numbers[i].number == number)
                        return &audit_calls[seccomp_audit_numbers[i].row];
        return NULL;
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
