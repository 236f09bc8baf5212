/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* A system call's number on one architecture, as the generated filter tells it. */
typedef struct AuditNumber {
        uint32_t architecture; /* AUDIT_ARCH_… */
        int number;
        size_t row; /* in audit_calls[] */
} AuditNumber;
