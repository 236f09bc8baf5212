/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "errandd/session-run.h"

int session_open_stdio(Session *s, int ret[static 3], Fault *f) {
        int pipes[3][2] = {{-EBADF, -EBADF}, {-EBADF, -EBADF}, {-EBADF, -EBADF}};

        if (s->record->interactive)
                return fault_set(f, ERROR_WRONG_STATE, "session %s has a terminal; attach to it instead", s->record->id);
        if (s->record->protocol)
                return fault_set(f, ERROR_WRONG_STATE, "session %s is talked to, which takes its standard input and output: errand prompt %s", s->record->id,
                                 s->record->id);
        if (session_state_live(session_state(s)))
                return fault_set(f, ERROR_WRONG_STATE, "session %s runs already: its standard input and output were settled at its start",
                                 s->record->id);
        for (size_t i = 0; i < ELEMENTSOF(pipes); i++)
                if (pipe2(pipes[i], O_CLOEXEC) < 0) {
                        int r = negative_errno();

                        while (i-- > 0) {
                                safe_close(pipes[i][0]);
                                safe_close(pipes[i][1]);
                        }
                        return fault_set(f, ERROR_LIMIT, "no pipes for session %s: %s", s->record->id, strerror(-r));
                }
        for (size_t i = 0; i < ELEMENTSOF(pipes); i++) {
                safe_close(s->stdio[i]); /* those of an earlier call, whose other ends find an end of file */
                s->stdio[i] = pipes[i][i == 0 ? 0 : 1];
                ret[i] = pipes[i][i == 0 ? 1 : 0];
        }
        return 0;
}
