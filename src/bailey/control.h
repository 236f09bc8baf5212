/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* What the sandbox's first process and the supervisor tell each other over a SOCK_SEQPACKET pair. Its end tells each that
 * the other is gone. The payload never has it. */

#include "bailey/failure.h"
#include "bailey/gap.h"

typedef enum ControlType {
        CONTROL_FAILED,   /* set-up failed; the sender exits */
        CONTROL_ENTER,    /* from the supervisor: the network namespace to enter, one fd */
        CONTROL_NETWORK,  /* the rules are installed, pasta may begin; a CONTROL_GO is awaited. fds as below */
        CONTROL_LISTENER, /* the listener of an audit, one fd; comes before CONTROL_PREPARED, which is awaited then, too */
        CONTROL_PREPARED, /* confined; a CONTROL_GO is awaited. fds: user and network namespace, where they were asked for */
        CONTROL_STOPPED,  /* the payload was stopped by job control */
        CONTROL_ENDED,    /* the payload and all others are gone; the sender exits */
        CONTROL_GO,       /* from the supervisor: go on; execute the payload */
} ControlType;

typedef struct ControlMessage {
        ControlType type;
        GapSet gaps;        /* PREPARED: found inside */
        int wait_status;    /* ENDED: as of waitpid() */
        int exec_error;     /* ENDED: positive errno when execve() failed, and nothing was run */
        unsigned survivors; /* ENDED */
        Failure failure;    /* FAILED */
} ControlMessage;

#define CONTROL_FDS_MAX 2U

int control_new(int ret_pair[2]);

int control_send(int fd, const ControlMessage *m, const int *fds, size_t n_fds);

/* 1 with a message, 0 when the other side is gone, or a negative errno. */
int control_receive(int fd, ControlMessage *ret, int *ret_fds, size_t *ret_n_fds);
