/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <systemd/sd-event.h>

/* Has a timer fire once, that many microseconds from now, whether it has fired already or not. */
static inline int timer_again(sd_event_source *timer, uint64_t usec) {
        int r = sd_event_source_set_time_relative(timer, usec), q = sd_event_source_set_enabled(timer, SD_EVENT_ONESHOT);

        return r < 0 ? r : q;
}
