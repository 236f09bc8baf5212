/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "launch/helper.h"
#include "launch/limits.h"

typedef struct Helper {
        Launcher *launcher;
        Ticket ticket;
        const HelperWork *work;
        void *result; /* shared with the child */
        sd_event_source *end;
} Helper;

static void helper_free(Helper *h) {
        sd_event_source_disable_unref(h->end);
        if (h->result != MAP_FAILED)
                (void) munmap(h->result, HELPER_RESULT_MAX);
        free(h);
}

static void reply(const Helper *h, int error) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        if (error < 0 || !h->work->type) {
                launcher_reply(h->launcher, h->ticket, error, NULL);
                return;
        }
        launcher_open_reply(&w, h->work->type, h->ticket);
        h->work->add(&w, h->result);
        launcher_send_reply(h->launcher, h->ticket, &w);
}

static int on_helper_ended(_unused_ sd_event_source *source, const siginfo_t *info, void *userdata) {
        Helper *h = userdata;
        int error = info->si_code == CLD_EXITED ? -info->si_status : -EIO;

        h->launcher->n_helpers--;
        reply(h, error);
        helper_free(h);
        return 0;
}

int helper_start(Launcher *l, Ticket ticket, const HelperWork *work, const int *fds, size_t n_fds) {
        if (l->n_helpers >= HELPERS_MAX)
                return -EBUSY;
        Helper *h = calloc(1, sizeof(Helper));
        if (!h)
                return -ENOMEM;
        *h = (Helper){.launcher = l, .ticket = ticket, .work = work};
        h->result = mmap(NULL, HELPER_RESULT_MAX, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        pid_t pid = h->result == MAP_FAILED ? -1 : fork();
        if (pid == 0) {
                /* Nothing else: errandd shall see it at once when the launcher goes. */
                int r = fd_close_all_except(3, fds, n_fds);
                if (r >= 0)
                        r = work->run(fds, h->result);
                _exit(r < 0 ? MIN(-r, 255) : 0);
        }
        int r = pid < 0 ? -errno : sd_event_add_child(l->event, &h->end, pid, WEXITED, on_helper_ended, h);
        if (r < 0) {
                if (pid > 0) {
                        (void) kill(pid, SIGKILL);
                        (void) waitpid(pid, NULL, 0);
                }
                helper_free(h);
                return r;
        }
        l->n_helpers++;
        return 0;
}
