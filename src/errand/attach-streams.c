/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "errand/attach-private.h"
#include "errand/journal-stream.h"
#include "errand/terminal.h"

static size_t on_output(char *data, size_t size, void *userdata) {
        Attachment *a = userdata;

        modes_watch(&a->modes, data, size);
        terminal_undo(modes_undo(&a->modes, a->undo));
        return size;
}

static void on_output_end(_unused_ Relay *r, int error, void *userdata) {
        Attachment *a = userdata;

        a->open--;
        if (error < 0 && error != -EIO && error != -ECONNRESET && !a->exited && (a->flags & ATTACH_TERMINAL)) {
                /* Our own side is gone. The session is not. */
                if (error != -EPIPE)
                        (void) attachment_notice(a, "what the session writes cannot be shown any more");
                attachment_leave(a, EXIT_DETACHED);
                return;
        }
        if (a->exited && a->open == 0)
                attachment_leave(a, a->code);
}

static size_t on_input(char *data, size_t size, void *userdata) {
        Attachment *a = userdata;
        char copy[RELAY_BUFFER];
        bool detach;
        size_t n;

        if (!a->typing)
                return size;
        memcpy(copy, data, size);
        n = keys_filter(&a->keys, copy, size, data, &detach);
        if (detach)
                attachment_leave(a, EXIT_DETACHED);
        return n;
}

static void on_input_end(Relay *r, int error, void *userdata) {
        Attachment *a = userdata;
        static const char end_of_file = 0x04; /* Ctrl-D */

        if (error < 0 || a->exited || a->leaving)
                return;
        if (a->typing)
                attachment_leave(a, EXIT_DETACHED); /* it was hung up */
        else if (a->terminal_input >= 0)
                (void) !write(a->terminal_input, &end_of_file, 1);
        else if (a->pipes) {
                a->in = relay_free(r);
                a->pipes->in = safe_close(a->pipes->in);
        }
}

static int add_relay(Attachment *a, int from, int to, RelayFilter filter, RelayEnd end, Relay **ret) {
        RelayOptions o = {.from = from, .to = to, .filter = filter, .end = end, .userdata = a};
        int r = relay_new(a->event, &o, ret);

        if (r >= 0 && end == on_output_end)
                a->open++;
        return r;
}

int attachment_show_terminal(Attachment *a) {
        int r = 0;

        connection_leave_terminal(a->connection);
        if (a->typing) {
                r = terminal_raw(STDIN_FILENO);
                if (r < 0)
                        return r;
        }
        a->shown = true;
        a->terminal_input = fcntl(a->terminal, F_DUPFD_CLOEXEC, 3);
        r = a->terminal_input < 0 ? negative_errno() : fd_nonblock(a->terminal, true);
        if (r >= 0)
                r = add_relay(a, a->terminal, STDOUT_FILENO, on_output, on_output_end, &a->out);
        if (r >= 0)
                r = add_relay(a, STDIN_FILENO, a->terminal_input, on_input, on_input_end, &a->in);
        return r;
}

int attachment_join_pipes(Attachment *a) {
        int r = 0;

        if (!a->pipes)
                return 0;
        if (a->pipes->in >= 0) {
                r = fd_nonblock(a->pipes->in, true);
                if (r >= 0)
                        r = add_relay(a, STDIN_FILENO, a->pipes->in, NULL, on_input_end, &a->in);
        }
        if (r >= 0 && a->pipes->out >= 0)
                r = add_relay(a, a->pipes->out, STDOUT_FILENO, NULL, on_output_end, &a->out);
        if (r >= 0 && a->pipes->error >= 0)
                r = add_relay(a, a->pipes->error, journal_stream(STDERR_FILENO), NULL, on_output_end, &a->error);
        return r;
}

void attachment_close_streams(Attachment *a) {
        relay_free(a->in);
        relay_free(a->out);
        relay_free(a->error);
        a->terminal = safe_close(a->terminal);
        a->terminal_input = safe_close(a->terminal_input);
        if (a->pipes) {
                a->pipes->in = safe_close(a->pipes->in);
                a->pipes->out = safe_close(a->pipes->out);
                a->pipes->error = safe_close(a->pipes->error);
        }
}
