/* SPDX-License-Identifier: LGPL-2.1-or-later */
#pragma once

#include <sys/wait.h>
#include <systemd/sd-event.h>

/* Watches for a child's end, and tells of it after everything else that has come: what it said before its end is heard before its end. The handler
 * begins with event_child_ended(source), and is called once.
 *
 * Not one-shot, as a child is by itself: libsystemd then has the kernel forget the pidfd with the first word of it (EPOLLONESHOT), and passes that word
 * over when it comes while something of a higher priority is about to be handled (sd_event_wait() of systemd 248 and later): nobody would hear of the end.
 * Off in between, since from one-shot to on alone nothing is registered anew. */
static inline int event_add_child_last(sd_event *event, sd_event_source **ret, pid_t pid, sd_event_child_handler_t handler, void *userdata) {
        int r = sd_event_add_child(event, ret, pid, WEXITED, handler, userdata);

        if (r >= 0)
                r = sd_event_source_set_priority(*ret, SD_EVENT_PRIORITY_IDLE);
        if (r >= 0)
                r = sd_event_source_set_enabled(*ret, SD_EVENT_OFF);
        return r < 0 ? r : sd_event_source_set_enabled(*ret, SD_EVENT_ON);
}

static inline void event_child_ended(sd_event_source *source) {
        (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
}
