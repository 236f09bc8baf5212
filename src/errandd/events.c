/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/text.h"
#include "errandd/events.h"
#include "shared/json-check.h"
#include "shared/message.h"

#define EVENT_DEPTH_MAX 4U
#define NUMBER_MAX UINT64_C(999999999999999999)

static int read_line(const char *line, size_t size, SessionEventHandler handler, void *userdata) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        JsonProblem problem;
        SessionEvent e = {};
        const char *kind;
        JsonObject *o;

        int r = json_read_object(line, size, EVENT_DEPTH_MAX, &parser, &o, &problem);
        if (r < 0)
                return r;
        if (json_get_string(o, "event", &kind) < 0)
                return -EBADMSG;
        (void) json_get_u64(o, "time", NUMBER_MAX, &e.time);
        if (streq(kind, "started")) {
                e.kind = SESSION_EVENT_STARTED;
                (void) json_get_u64(o, "pid", INT32_MAX, &e.pid);
        } else if (streq(kind, "exited")) {
                e.kind = SESSION_EVENT_EXITED;
                if (json_get_string(o, "reason", &e.reason) < 0 || json_get_u64(o, "status", 255, &e.status) < 0)
                        return -EBADMSG;
                (void) json_get_string(o, "text", &e.text);
        } else
                e.kind = SESSION_EVENT_OTHER;
        handler(&e, userdata);
        return 0;
}

int events_read(int fd, uint64_t *offset, SessionEventHandler handler, void *userdata, unsigned *ret_damaged) {
        _cleanup_free_ char *buffer = malloc(EVENT_LINE_MAX);
        uint64_t first = *offset;
        struct stat st;

        if (!buffer)
                return -ENOMEM;
        if (fstat(fd, &st) < 0)
                return -errno;
        if ((uint64_t) st.st_size < *offset)
                return -ESTALE;
        while (*offset - first < EVENTS_MAX) {
                ssize_t n = pread(fd, buffer, EVENT_LINE_MAX, (off_t) *offset);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        return n < 0 ? -errno : 0;
                const char *end = memrchr(buffer, '\n', (size_t) n);
                if (!end) {
                        if ((size_t) n < EVENT_LINE_MAX)
                                return 0; /* not whole yet */
                        (*ret_damaged)++;
                        *offset += (uint64_t) n;
                        continue;
                }
                for (const char *line = buffer; line <= end;) {
                        const char *next = memchr(line, '\n', (size_t) (end - line) + 1);
                        if (next > line && read_line(line, (size_t) (next - line), handler, userdata) < 0)
                                (*ret_damaged)++;
                        *offset += (uint64_t) (next - line) + 1;
                        line = next + 1;
                }
        }
        return -E2BIG;
}

int events_watch(sd_event *event, int fd, sd_event_inotify_handler_t changed, void *userdata, sd_event_source **ret) {
        return sd_event_add_inotify_fd(event, ret, fd, IN_MODIFY, changed, userdata);
}
