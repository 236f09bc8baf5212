/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/socket.h>

#include "bailey/report.h"
#include "basic/fd.h"
#include "basic/io.h"
#include "basic/json-writer.h"

bool report_takes_fds(int fd) {
        int domain;
        socklen_t size = sizeof(domain);

        return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_UNIX;
}

static void json_writer_donep(JsonWriter *w) {
        json_writer_done(w);
}

int report_write(int fd, const Report *report) {
        _cleanup_(json_writer_donep) JsonWriter w = {};
        _cleanup_free_ char *text = NULL;
        bool takes_fds = report_takes_fds(fd);
        const struct {
                const char *name;
                int fd;
        } all[] = {{"pidfd", report->pidfd}, {"user", report->user_namespace}, {"net", report->network_namespace}};
        int fds[ELEMENTSOF(all)];
        size_t size, n_fds = 0;

        json_open_object(&w, NULL);
        json_add_u64(&w, "v", 1);
        json_add_string(&w, "type", "report");
        json_add_u64(&w, "pid", (uint64_t) report->pid);
        json_add_u64(&w, "landlock", (uint64_t) report->landlock_abi);
        json_add_bool(&w, "isolated", report->isolated);
        json_open_array(&w, "gaps");
        for (Gap g = 0; g < _GAP_MAX; g++)
                if (report->gaps & (1U << g))
                        json_add_string(&w, NULL, gap_to_string(g));
        json_close_array(&w);
        if (takes_fds) {
                json_open_array(&w, "fds");
                for (size_t i = 0; i < ELEMENTSOF(all); i++)
                        if (all[i].fd >= 0) {
                                json_add_string(&w, NULL, all[i].name);
                                fds[n_fds++] = all[i].fd;
                        }
                json_close_array(&w);
        }
        json_close_object(&w);
        int r = json_writer_finish(&w, &text, &size);
        if (r < 0)
                return r;

        /* The line's end takes the place of the terminating NUL. */
        text[size++] = '\n';
        if (!takes_fds)
                return write_all(fd, text, size);
        ssize_t n = send_fds(fd, text, size, fds, n_fds);
        if (n < 0)
                return (int) n;
        return (size_t) n == size ? 0 : write_all(fd, text + n, size - (size_t) n);
}
