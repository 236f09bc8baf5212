/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include "bailey/gap.h"

typedef struct Report {
        GapSet gaps;
        pid_t pid;        /* of the sandbox's first process, as seen outside */
        int landlock_abi; /* 0 = none */
        bool isolated;
        int pidfd, user_namespace, network_namespace; /* borrowed; -EBADF where there is none */
} Report;

/* Whether fds can go with the report: fd is a unix socket. */
bool report_takes_fds(int fd);

/* Writes one line: {"v":1,"type":"report","pid":1234,"landlock":7,"isolated":true,"gaps":["sysfs"]}, on a unix socket with
 * "fds":["pidfd","user","net"] and those that there are. 0 or a negative errno. */
int report_write(int fd, const Report *report);
