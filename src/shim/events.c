/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/clock.h"
#include "basic/fd.h"
#include "basic/json-writer.h"
#include "basic/log.h"
#include "basic/text.h"
#include "shim/events.h"

/* A last line has some hundred bytes; whole blocks are set aside anyway. */
#define RESERVE_SIZE 4096

struct Events {
        int fd;
        bool torn;  /* the last line was cut by a full disk */
        bool tight; /* the disk is full: what room was set aside is for the last line */
        bool told;
};

static const char *const reasons[_EXIT_REASON_MAX] = {
        [EXIT_REASON_EXITED] = "exited",
        [EXIT_REASON_SIGNAL] = "signal",
        [EXIT_REASON_KILLED] = "killed",
        [EXIT_REASON_SETUP] = "setup",
};

const char *exit_reason_to_string(ExitReason reason) {
        return reason >= 0 && reason < _EXIT_REASON_MAX ? reasons[reason] : NULL;
}

void exit_status_done(ExitStatus *s) {
        s->text = mfree(s->text);
        s->enforced = strv_free(s->enforced);
}

/* Beyond the end of the file: the blocks are there for what is appended, and the length stays. */
static void reserve(Events *e) {
        struct stat st;

        e->tight = fstat(e->fd, &st) >= 0 && fallocate(e->fd, FALLOC_FL_KEEP_SIZE, st.st_size, RESERVE_SIZE) < 0 && errno == ENOSPC;
}

int events_new(int fd, Events **ret) {
        Events *e = calloc(1, sizeof(Events));

        if (!e) {
                safe_close(fd);
                return -ENOMEM;
        }
        e->fd = fd;
        reserve(e);
        if (e->tight) {
                events_free(e);
                return -ENOSPC;
        }
        *ret = e;
        return 0;
}

Events *events_free(Events *e) {
        if (e)
                safe_close(e->fd);
        return mfree(e);
}

static void open_line(JsonWriter *w, const char *event) {
        json_open_object(w, NULL);
        json_add_string(w, "event", event);
        json_add_u64(w, "time", now_realtime());
}

/* One write a line: whoever reads along never sees half of one, but at a disk's end. */
static int put(Events *e, const char *text, size_t size) {
        ssize_t n;

        if (e->torn && write(e->fd, "\n", 1) != 1)
                return negative_errno();
        e->torn = false;
        while ((n = write(e->fd, text, size)) < 0)
                if (errno != EINTR)
                        return -errno;
        e->torn = (size_t) n < size;
        return e->torn ? -ENOSPC : 0;
}

static int close_line(Events *e, JsonWriter *w) {
        _cleanup_free_ char *text = NULL, *line = NULL;

        json_close_object(w);
        int r = json_writer_finish(w, &text, NULL);
        if (r >= 0)
                r = asprintf(&line, "%s\n", text) < 0 ? -ENOMEM : put(e, line, strlen(line));
        if (r < 0 && !e->told) {
                log_error_errno(r, "The events cannot be written: %m");
                e->told = true;
        }
        return r;
}

/* In bailey's words, see its closing line. */
static void add_enforced(JsonWriter *w, const Started *s) {
        bool seccomp = !s->gaps || !strv_contains(s->gaps, "seccomp");
        char landlock[48];

        json_open_array(w, "enforced");
        if (s->isolated)
                json_add_string(w, NULL, "own root");
        if (!s->gaps || !strv_contains(s->gaps, "namespaces"))
                json_add_string(w, NULL, "namespaces");
        if (s->landlock > 0) {
                (void) snprintf(landlock, sizeof(landlock), "landlock ABI %llu", (unsigned long long) s->landlock);
                json_add_string(w, NULL, landlock);
        }
        if (seccomp)
                json_add_string(w, NULL, "seccomp");
        json_add_string(w, NULL, s->brokered ? "egress broker" : "egress denied");
        json_close_array(w);
}

void events_started(Events *e, const Started *s) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        open_line(&w, "started");
        json_add_u64(&w, "pid", s->pid);
        json_add_strings(&w, "gaps", s->gaps);
        json_add_u64(&w, "landlock", s->landlock);
        json_add_bool(&w, "isolated", s->isolated);
        add_enforced(&w, s);
        (void) close_line(e, &w);
        reserve(e);
}

void events_log(Events *e, const char *text) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        if (e->tight)
                return;
        open_line(&w, "log");
        json_add_string(&w, "text", text);
        (void) close_line(e, &w);
        reserve(e);
}

int events_exited(Events *e, const ExitStatus *s) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        open_line(&w, "exited");
        json_add_string(&w, "reason", exit_reason_to_string(s->reason));
        json_add_u64(&w, "status", s->status);
        json_add_string(&w, "text", s->text);
        json_add_u64(&w, "survivors", s->survivors);
        json_add_strings(&w, "enforced", s->enforced);
        int r = close_line(e, &w);
        if (r >= 0 && fsync(e->fd) < 0)
                r = log_error_errno(errno, "The events cannot be synced: %m");
        return r;
}
