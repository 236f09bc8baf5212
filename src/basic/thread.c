/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <pthread.h>
#include <signal.h>

#include "basic/macro.h"
#include "basic/thread.h"

int thread_start(void *(*run)(void *userdata), void *userdata, size_t stack_size) {
        pthread_attr_t attributes;
        sigset_t all, before;
        pthread_t thread;

        int r = pthread_attr_init(&attributes);
        if (r != 0)
                return -r;
        (void) pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        if (stack_size > 0)
                (void) pthread_attr_setstacksize(&attributes, stack_size);
        (void) sigfillset(&all);
        /* It inherits the mask, so that it has it from its first instruction. */
        (void) pthread_sigmask(SIG_SETMASK, &all, &before);
        r = pthread_create(&thread, &attributes, run, userdata);
        (void) pthread_sigmask(SIG_SETMASK, &before, NULL);
        (void) pthread_attr_destroy(&attributes);
        return -r;
}
