/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "launch/helper.h"
#include "launch/limits.h"

typedef struct Helper {
        Launcher *launcher;
        Ticket ticket;
        sd_event_source *end;
} Helper;

static int on_helper_ended(_unused_ sd_event_source *source, const siginfo_t *info, void *userdata) {
        Helper *h = userdata;
        int error = info->si_code == CLD_EXITED ? -info->si_status : -EIO;

        h->launcher->n_helpers--;
        launcher_reply(h->launcher, h->ticket, error, NULL);
        sd_event_source_disable_unref(h->end);
        free(h);
        return 0;
}

int helper_start(Launcher *l, Ticket ticket, int (*work)(int fd), int fd) {
        if (l->n_helpers >= HELPERS_MAX)
                return -EBUSY;
        Helper *h = calloc(1, sizeof(Helper));
        if (!h)
                return -ENOMEM;
        *h = (Helper){.launcher = l, .ticket = ticket};
        pid_t pid = fork();
        if (pid == 0) {
                /* Nothing else: errandd shall see it at once when the launcher goes. */
                int r = fd_close_all_except(3, &fd, 1);
                if (r >= 0)
                        r = work(fd);
                _exit(r < 0 ? MIN(-r, 255) : 0);
        }
        int r = pid < 0 ? -errno : sd_event_add_child(l->event, &h->end, pid, WEXITED, on_helper_ended, h);
        if (r < 0) {
                if (pid > 0) {
                        (void) kill(pid, SIGKILL);
                        (void) waitpid(pid, NULL, 0);
                }
                free(h);
                return r;
        }
        l->n_helpers++;
        return 0;
}
