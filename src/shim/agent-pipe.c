/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/epoll.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "shim/agent-pipe.h"
#include "shim/limits.h"

struct AgentPipe {
        int input, output; /* the agent's: what we write to, and read from */
        sd_event_source *input_io, *output_io;
        RpcLines lines;
        char *queue; /* not yet taken: queue[start…end) */
        size_t start, end, room;
        RpcLineHandler line;
        AgentEnd ended;
        void *userdata;
};

static void close_input(AgentPipe *p) {
        p->input_io = sd_event_source_disable_unref(p->input_io);
        p->input = safe_close(p->input);
        p->queue = mfree(p->queue);
        p->start = p->end = p->room = 0;
}

/* What the pipe takes of it; -EPIPE when nobody reads any more. */
static ssize_t put(AgentPipe *p, const char *data, size_t size) {
        size_t done = 0;

        while (done < size) {
                ssize_t n = write(p->input, data + done, size - done);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0 && errno == EAGAIN)
                        break;
                if (n < 0)
                        return -errno;
                done += (size_t) n;
        }
        return (ssize_t) done;
}

static int on_input(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        AgentPipe *p = userdata;

        ssize_t n = put(p, p->queue + p->start, p->end - p->start);
        if (n < 0) {
                close_input(p);
                return 0;
        }
        p->start += (size_t) n;
        if (p->start < p->end)
                return 0;
        p->queue = mfree(p->queue);
        p->start = p->end = p->room = 0;
        (void) sd_event_source_set_enabled(p->input_io, SD_EVENT_OFF);
        return 0;
}

static int on_output(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        char chunk[AGENT_CHUNK_SIZE];
        AgentPipe *p = userdata;

        ssize_t n = read(p->output, chunk, sizeof(chunk));
        if (n > 0) {
                if (rpc_lines_push(&p->lines, chunk, (size_t) n, p->line, p->userdata) < 0)
                        log_warning("There is no memory for a message of the agent's, it is left out");
                explicit_bzero(chunk, (size_t) n);
                return 0;
        }
        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        p->output_io = sd_event_source_disable_unref(p->output_io);
        p->output = safe_close(p->output);
        close_input(p);
        p->ended(p->userdata);
        return 0;
}

int agent_pipe_new(sd_event *event, int input, int output, RpcLineHandler line, AgentEnd end, void *userdata, AgentPipe **ret) {
        _cleanup_close_ int in = input, out = output;
        AgentPipe *p = calloc(1, sizeof(AgentPipe));

        if (!p)
                return -ENOMEM;
        *p = (AgentPipe){.input = TAKE_FD(in), .output = TAKE_FD(out), .line = line, .ended = end, .userdata = userdata};
        int r = sd_event_add_io(event, &p->output_io, p->output, EPOLLIN, on_output, p);
        if (r >= 0)
                r = sd_event_add_io(event, &p->input_io, p->input, EPOLLOUT, on_input, p);
        if (r >= 0)
                r = sd_event_source_set_enabled(p->input_io, SD_EVENT_OFF);
        if (r < 0) {
                agent_pipe_free(p);
                return r;
        }
        *ret = p;
        return 0;
}

AgentPipe *agent_pipe_free(AgentPipe *p) {
        if (!p)
                return NULL;
        close_input(p);
        sd_event_source_disable_unref(p->output_io);
        safe_close(p->output);
        rpc_lines_done(&p->lines);
        return mfree(p);
}

static int enqueue(AgentPipe *p, const char *data, size_t size) {
        size_t held = p->end - p->start;

        if (size > AGENT_QUEUE_MAX - MIN(held, AGENT_QUEUE_MAX))
                return -ENOBUFS;
        if (p->end + size > p->room) {
                /* By as much again: an agent that reads nothing has each of its questions answered. */
                size_t room = MIN(MAX(2 * held, held + size), AGENT_QUEUE_MAX);
                char *grown = malloc(room);
                if (!grown)
                        return -ENOMEM;
                if (held > 0)
                        memcpy(grown, p->queue + p->start, held);
                free(p->queue);
                p->queue = grown;
                p->start = 0;
                p->end = held;
                p->room = room;
        }
        memcpy(p->queue + p->end, data, size);
        p->end += size;
        return sd_event_source_set_enabled(p->input_io, SD_EVENT_ON);
}

int agent_pipe_send(AgentPipe *p, JsonWriter *w) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        ssize_t n = 0;

        int r = json_writer_finish(w, &text, &size);
        if (r < 0)
                return r;
        if (p->input < 0)
                return -EPIPE;
        if (p->start == p->end) {
                n = put(p, text, size);
                if (n < 0) {
                        close_input(p);
                        return (int) n;
                }
        }
        return (size_t) n == size ? 0 : enqueue(p, text + n, size - (size_t) n);
}

bool agent_pipe_open(const AgentPipe *p) {
        return p->output >= 0;
}
