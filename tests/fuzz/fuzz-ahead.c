/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "bailey/ahead-message.h"
#include "basic/text.h"
#include "fuzz.h"

/* Input: how many descriptors come with it, a letter from a on, and the message. */

static void check_numbers(const AheadRun *run) {
        int numbers[AHEAD_FDS_MAX], least = -1;
        unsigned standard = 0, projects = 0;

        int r = ahead_run_numbers(run, numbers, &least);
        HOLDS(r == 0 || (r == -EBADMSG && least == -1));
        if (r < 0)
                return;
        for (size_t i = 0; i < run->n_fds; i++) {
                HOLDS(numbers[i] < least && numbers[i] >= AHEAD_PROJECT);
                for (size_t k = 0; k < i; k++)
                        HOLDS(numbers[k] != numbers[i]);
                projects += numbers[i] == AHEAD_PROJECT;
                standard += numbers[i] >= 0 && numbers[i] <= STDERR_FILENO;
        }
        HOLDS(least > STDERR_FILENO && standard == 3 && projects == 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        AheadRun run = AHEAD_RUN_NONE;
        int fds[AHEAD_FDS_MAX];

        size_t n = size > 0 && data[0] >= 'a' ? MIN((size_t) (data[0] - 'a'), (size_t) AHEAD_FDS_MAX) : 0;
        char *text = malloc(size > 1 ? size - 1 : 1); /* exactly as large, so that a sanitizer sees a read beyond it */
        HOLDS(text);
        if (size > 1)
                memcpy(text, data + 1, size - 1);
        for (size_t i = 0; i < n; i++) {
                run.fds[i] = fds[i] = open("/dev/null", O_RDONLY | O_CLOEXEC);
                HOLDS(fds[i] >= 0);
        }
        run.n_fds = n;
        int r = ahead_run_parse(text, size > 1 ? size - 1 : 0, &run);
        HOLDS(r == 0 || r == -EBADMSG);
        HOLDS(run.n_fds == n);
        if (r == 0) {
                HOLDS(strv_length(run.arguments) > 0 && strv_length(run.names) == n);
                check_numbers(&run);
        }
        ahead_run_done(&run);
        for (size_t i = 0; i < n; i++)
                HOLDS(fcntl(fds[i], F_GETFD) < 0);
        free(text);
        return 0;
}
