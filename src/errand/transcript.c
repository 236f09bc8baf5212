/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "basic/clock.h"
#include "basic/io.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errand/transcript.h"
#include "shared/bus-object.h"
#include "shared/event-timer.h"

#define CHUNK (256U * 1024U)
#define LOOK_USEC (250 * USEC_PER_MSEC)

struct Transcript {
        Connection *connection;
        char *id;
        uint64_t offset;
        sd_event_source *timer;
        sd_bus_slot *asked;
};

static int take_piece(sd_bus_message *m, const char *id, uint64_t *offset, bool *ret_more, bool print) {
        const void *data;
        uint64_t next;
        size_t size;

        int r = sd_bus_message_read_basic(m, 't', &next);
        if (r >= 0)
                r = sd_bus_message_read_array(m, 'y', &data, &size);
        if (r < 0) {
                log_error_errno(r, "session %s: its transcript cannot be read: %m", id);
                return EXIT_FAILED;
        }
        *ret_more = next > *offset;
        *offset = next;
        r = print ? write_all(STDOUT_FILENO, data, size) : 0;
        if (r == -EPIPE)
                return EXIT_FAILED;
        if (r < 0) {
                log_error_errno(r, "Failed to write to standard output: %m");
                return EXIT_FAILED;
        }
        return EXIT_OK;
}

static int read_piece(Connection *c, const char *id, uint64_t *offset, bool *ret_more, bool print) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;

        int r = session_call(c, id, "ReadTranscript", "Failed to read its transcript", &m, "tu", *offset, CHUNK);
        return r == EXIT_OK ? take_piece(m, id, offset, ret_more, print) : r;
}

int transcript_print(Connection *c, const char *id, uint64_t *offset, bool *ret_more) {
        return read_piece(c, id, offset, ret_more, true);
}

/* An error is an errandd that is not there at the moment. */
static int on_piece(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        Transcript *t = userdata;
        bool more = false;

        t->asked = sd_bus_slot_unref(t->asked);
        /* Whoever does not take it does not keep the session from its work. */
        if (!sd_bus_message_get_error(m))
                (void) take_piece(m, t->id, &t->offset, &more, true);
        (void) timer_again(t->timer, more ? 0 : LOOK_USEC);
        return 0;
}

static int on_timer(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        Transcript *t = userdata;

        int r = connection_new_call(t->connection, bus_session_path(t->id).text, BUS_SESSION_INTERFACE, "ReadTranscript", &m);
        if (r >= 0)
                r = sd_bus_message_append(m, "tu", t->offset, CHUNK);
        if (r >= 0)
                r = sd_bus_call_async(t->connection->bus, &t->asked, m, on_piece, t, 0);
        if (r < 0)
                (void) timer_again(t->timer, LOOK_USEC);
        return 0;
}

Transcript *transcript_free(Transcript *t) {
        if (!t)
                return NULL;
        sd_bus_slot_unref(t->asked);
        sd_event_source_disable_unref(t->timer);
        free(t->id);
        return mfree(t);
}

DEFINE_CLEANUP(Transcript *, transcript_free);

int transcript_new(Connection *c, const char *id, sd_event *event, Transcript **ret) {
        _cleanup_(transcript_freep) Transcript *t = calloc(1, sizeof(Transcript));
        int code = EXIT_OK;

        if (!t || !(t->id = strdup(id))) {
                (void) log_oom();
                return EXIT_FAILED;
        }
        t->connection = c;
        for (bool more = true; code == EXIT_OK && more;)
                code = read_piece(c, id, &t->offset, &more, false);
        if (code != EXIT_OK)
                return code;
        int r = sd_event_add_time_relative(event, &t->timer, CLOCK_MONOTONIC, LOOK_USEC, 0, on_timer, t);
        if (r < 0) {
                log_error_errno(r, "Failed to follow session %s: %m", id);
                return EXIT_FAILED;
        }
        *ret = TAKE_PTR(t);
        return EXIT_OK;
}

void transcript_finish(Transcript *t) {
        t->asked = sd_bus_slot_unref(t->asked);
        (void) sd_event_source_set_enabled(t->timer, SD_EVENT_OFF);
        for (bool more = true; more;)
                if (read_piece(t->connection, t->id, &t->offset, &more, true) != EXIT_OK)
                        return;
}
