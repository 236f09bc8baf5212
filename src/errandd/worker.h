/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

/* One thread beside the event loop, for what may sleep: on a disk, on the account database, on a mount whose server does not answer. Works are done one at a
 * time, in the order in which they were asked for; the loop hears of each when it is done and waits for none. */

#include <systemd/sd-event.h>

#include "basic/clock.h"

typedef struct Worker Worker;
typedef struct Work Work;

typedef struct WorkClass {
        void (*run)(void *data);  /* in the thread: touches nothing but data, and logs nothing */
        void (*done)(void *data); /* in the loop, unless it was cancelled; may be NULL */
        void (*free)(void *data); /* after that, whatever became of it; in the thread where the worker was given up */
} WorkClass;

/* name: the thread's, at most 15 bytes, as tools show it. max: works that wait or are being done. The thread begins with the first of them. */
int worker_new(sd_event *event, const char *name, unsigned max, Worker **ret);

/* What is under way is left to end by itself, and what is not will not be done. Nothing is called back any more. */
Worker *worker_free(Worker *w);

/* data is taken on success. *ret (which may be NULL) is valid until done or free was called. -EBUSY: there are max of them already. */
int worker_do(Worker *w, const WorkClass *class, void *data, Work **ret);
/* It is not heard of any more. One that has not begun will not be done. */
Work *work_cancel(Work *work);
/* Blocks until all that was asked for, also by who heard of some of it, is done and was heard of. -ETIMEDOUT: some of it hangs. */
int worker_wait(Worker *w, usec_t patience_usec);
