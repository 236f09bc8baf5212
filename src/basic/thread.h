/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <stddef.h>

/* Starts a thread that nobody joins, for what sleeps beside an event loop. It takes no signals: they are the loop's. stack_size is in bytes, 0: as
 * large as usual. What userdata points to has to outlive the thread. A negative errno: there is none. */
int thread_start(void *(*run)(void *userdata), void *userdata, size_t stack_size);
