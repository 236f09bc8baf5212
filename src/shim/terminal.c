/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <termios.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "shim/limits.h"
#include "shim/terminal.h"

#ifndef TIOCGPTPEER
#define TIOCGPTPEER _IO('T', 0x41) /* Linux 4.13 */
#endif

typedef struct Client {
        Terminal *terminal;
        struct Client *next;
        int fd;
        sd_event_source *io;
        char *queue;       /* CLIENT_BUFFER_SIZE bytes, there while something is queued */
        size_t start, end; /* queued: queue[start…end) */
        bool input_ended;
} Client;

struct Terminal {
        sd_event *event;
        TranscriptStream *stream;
        TerminalEnd end;
        void *userdata;

        int master;
        int keeper; /* the other side, so that a payload that closes its terminal for a while does not end it */
        sd_event_source *io;
        uint16_t rows, columns;
        bool ended;

        Client *clients;
        size_t n_clients, n_seen;
        bool paused; /* a client's queue is full, and the time runs in which it has to make room */
        sd_event_source *patience;

        char input[INPUT_BUFFER_SIZE]; /* typed, and not yet taken */
        size_t input_size;

        char replay[REPLAY_SIZE]; /* a ring */
        size_t replay_size, replay_next;
};

static size_t client_queued(const Client *c) {
        return c->end - c->start;
}

static bool client_is_full(const Client *c) {
        return client_queued(c) + CHUNK_SIZE > CLIENT_BUFFER_SIZE;
}

/* Each descriptor is asked for what could be done with it, no more: a level that nobody acts on would spin. */
static void update_sources(Terminal *t) {
        bool input_room = t->input_size < INPUT_BUFFER_SIZE;

        if (t->io) {
                uint32_t events = (t->paused ? 0U : (uint32_t) EPOLLIN) | (t->input_size > 0 ? EPOLLOUT : 0U);
                (void) sd_event_source_set_io_events(t->io, events);
                /* A hang-up is told whatever was asked for. */
                (void) sd_event_source_set_enabled(t->io, events ? SD_EVENT_ON : SD_EVENT_OFF);
        }
        for (Client *c = t->clients; c; c = c->next)
                (void) sd_event_source_set_io_events(c->io, (input_room && !c->input_ended ? (uint32_t) EPOLLIN : 0U) |
                                                                    (client_queued(c) > 0 ? EPOLLOUT : 0U));
}

static Client *client_free(Client *c) {
        sd_event_source_disable_unref(c->io);
        safe_close(c->fd);
        free(c->queue);
        return mfree(c);
}

static void client_drop(Client *c) {
        Terminal *t = c->terminal;

        for (Client **p = &t->clients; *p; p = &(*p)->next)
                if (*p == c) {
                        *p = c->next;
                        break;
                }
        t->n_clients--;
        client_free(c);
}

/* 0, or negative when the client is gone. */
static int client_flush(Client *c) {
        while (client_queued(c) > 0) {
                ssize_t n = send(c->fd, c->queue + c->start, client_queued(c), MSG_NOSIGNAL | MSG_DONTWAIT);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return errno == EAGAIN ? 0 : -errno;
                c->start += (size_t) n;
        }
        c->queue = mfree(c->queue);
        c->start = c->end = 0;
        return 0;
}

static int client_send(Client *c, const char *data, size_t size) {
        if (client_queued(c) == 0) {
                ssize_t n = send(c->fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT);
                if (n < 0 && errno != EAGAIN && errno != EINTR)
                        return -errno;
                data += MAX(n, 0);
                size -= (size_t) MAX(n, 0);
        }
        if (size == 0)
                return 0;
        if (!c->queue) {
                c->queue = malloc(CLIENT_BUFFER_SIZE);
                if (!c->queue)
                        return -ENOMEM;
        }
        if (c->end + size > CLIENT_BUFFER_SIZE) {
                memmove(c->queue, c->queue + c->start, client_queued(c));
                c->end -= c->start;
                c->start = 0;
        }
        if (c->end + size > CLIENT_BUFFER_SIZE)
                return -ENOBUFS;
        memcpy(c->queue + c->end, data, size);
        c->end += size;
        return 0;
}

static void remember(Terminal *t, const char *data, size_t size) {
        for (size_t i = 0; i < size; i++) {
                t->replay[t->replay_next] = data[i];
                t->replay_next = (t->replay_next + 1) % REPLAY_SIZE;
        }
        t->replay_size = MIN(t->replay_size + size, (size_t) REPLAY_SIZE);
}

/* From the first whole line on, where older output was forgotten. */
static int replay(const Terminal *t, Client *c) {
        size_t at = (t->replay_next + REPLAY_SIZE - t->replay_size) % REPLAY_SIZE, left = t->replay_size;

        if (left == REPLAY_SIZE)
                while (left > 0) {
                        char byte = t->replay[at];
                        at = (at + 1) % REPLAY_SIZE;
                        left--;
                        if (byte == '\n')
                                break;
                }
        size_t first = MIN(left, REPLAY_SIZE - at);
        int r = client_send(c, t->replay + at, first);
        return r < 0 ? r : client_send(c, t->replay, left - first);
}

static int on_patience(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        Terminal *t = userdata;

        for (Client *c = t->clients, *next; c; c = next) {
                next = c->next;
                if (client_queued(c) > CLIENT_BUFFER_SIZE / 2) {
                        log_info("A terminal's client does not keep up and is let go");
                        client_drop(c);
                }
        }
        t->paused = false;
        update_sources(t);
        return 0;
}

static void pause_if_full(Terminal *t) {
        for (Client *c = t->clients; c && !t->paused; c = c->next)
                t->paused = client_is_full(c);
        if (!t->paused)
                return;
        int r = t->patience ? sd_event_source_set_time_relative(t->patience, CLIENT_PATIENCE_USEC)
                            : sd_event_add_time_relative(t->event, &t->patience, CLOCK_MONOTONIC, CLIENT_PATIENCE_USEC, 1, on_patience, t);
        if (r >= 0)
                r = sd_event_source_set_enabled(t->patience, SD_EVENT_ONESHOT);
        if (r < 0) /* no timer, no waiting */
                (void) on_patience(NULL, 0, t);
}

static void resume_if_drained(Terminal *t) {
        for (Client *c = t->clients; c; c = c->next)
                if (client_queued(c) > CLIENT_BUFFER_SIZE / 2)
                        return;
        t->paused = false;
        if (t->patience)
                (void) sd_event_source_set_enabled(t->patience, SD_EVENT_OFF);
}

static void broadcast(Terminal *t, const char *data, size_t size) {
        for (Client *c = t->clients, *next; c; c = next) {
                next = c->next;
                if (client_send(c, data, size) < 0)
                        client_drop(c);
        }
}

static void end(Terminal *t) {
        t->io = sd_event_source_disable_unref(t->io);
        t->master = safe_close(t->master);
        t->keeper = safe_close(t->keeper);
        if (!t->ended) {
                t->ended = true;
                t->end(t->userdata);
        }
}

static void write_input(Terminal *t) {
        size_t done = 0;

        while (done < t->input_size) {
                ssize_t n = write(t->master, t->input + done, t->input_size - done);
                if (n < 0 && errno == EINTR)
                        continue;
                if (n <= 0)
                        break;
                done += (size_t) n;
        }
        memmove(t->input, t->input + done, t->input_size - done);
        t->input_size -= done;
}

static int on_master(_unused_ sd_event_source *s, _unused_ int fd, uint32_t revents, void *userdata) {
        char chunk[CHUNK_SIZE];
        Terminal *t = userdata;

        if (revents & EPOLLOUT)
                write_input(t);
        if (!t->paused && (revents & (EPOLLIN | EPOLLHUP | EPOLLERR))) {
                ssize_t n = read(t->master, chunk, sizeof(chunk));
                if (n > 0) {
                        transcript_write(t->stream, chunk, (size_t) n);
                        remember(t, chunk, (size_t) n);
                        broadcast(t, chunk, (size_t) n);
                        pause_if_full(t);
                } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
                        /* EIO: nobody has the other side any more. */
                        end(t);
                        return 0;
                }
        }
        update_sources(t);
        return 0;
}

/* What a client types; it can be gone afterwards. */
static void client_read(Client *c) {
        Terminal *t = c->terminal;
        size_t room = INPUT_BUFFER_SIZE - t->input_size;

        if (room == 0)
                return;
        ssize_t n = recv(c->fd, t->input + t->input_size, room, MSG_DONTWAIT);
        if (n > 0) {
                t->input_size += (size_t) n;
                if (t->master >= 0)
                        write_input(t);
        } else if (n == 0)
                c->input_ended = true; /* it may go on reading */
        else if (errno != EAGAIN && errno != EINTR)
                client_drop(c);
}

static int on_client(_unused_ sd_event_source *s, _unused_ int fd, uint32_t revents, void *userdata) {
        Client *c = userdata;
        Terminal *t = c->terminal;

        /* Both directions are closed: it has detached. What it typed last is still there to read. */
        if ((revents & (EPOLLHUP | EPOLLERR)) && !(revents & EPOLLIN))
                client_drop(c);
        else if ((revents & EPOLLOUT) && client_flush(c) < 0)
                client_drop(c);
        else if (revents & EPOLLIN)
                client_read(c);
        if (t->paused)
                resume_if_drained(t);
        if (t->ended)
                t->input_size = 0; /* to nobody */
        update_sources(t);
        return 0;
}

int terminal_new(sd_event *event, TranscriptStream *stream, TerminalEnd on_end, void *userdata, Terminal **ret) {
        Terminal *t = calloc(1, sizeof(Terminal));

        if (!t)
                return -ENOMEM;
        t->event = sd_event_ref(event);
        t->stream = stream;
        t->end = on_end;
        t->userdata = userdata;
        t->master = t->keeper = -EBADF;
        *ret = t;
        return 0;
}

Terminal *terminal_free(Terminal *t) {
        if (!t)
                return NULL;
        while (t->clients)
                client_drop(t->clients);
        sd_event_source_disable_unref(t->patience);
        sd_event_source_disable_unref(t->io);
        safe_close(t->keeper);
        safe_close(t->master);
        sd_event_unref(t->event);
        return mfree(t);
}

static int set_size(const Terminal *t) {
        const struct winsize size = {.ws_row = t->rows, .ws_col = t->columns};

        if (t->master < 0 || t->rows == 0 || t->columns == 0)
                return 0;
        return ioctl(t->master, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

int terminal_open(Terminal *t, int master) {
        _cleanup_close_ int fd = master;

        if (t->master >= 0 || t->ended)
                return -EALREADY;
        int r = fd_nonblock(fd, true);
        if (r < 0)
                return r;
        r = sd_event_add_io(t->event, &t->io, fd, EPOLLIN, on_master, t);
        if (r < 0)
                return r;
        t->keeper = ioctl(fd, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
        t->master = TAKE_FD(fd);
        if (t->input_size > 0)
                write_input(t);
        update_sources(t);
        return set_size(t);
}

int terminal_resize(Terminal *t, uint16_t rows, uint16_t columns) {
        t->rows = rows;
        t->columns = columns;
        return set_size(t);
}

int terminal_add_client(Terminal *t, int fd) {
        _cleanup_close_ int owned = fd;

        if (t->n_clients >= CLIENTS_MAX)
                return -EMFILE;
        Client *c = calloc(1, sizeof(Client));
        if (!c)
                return -ENOMEM;
        *c = (Client){.terminal = t, .fd = TAKE_FD(owned)};
        int r = sd_event_add_io(t->event, &c->io, c->fd, EPOLLIN, on_client, c);
        if (r >= 0)
                r = replay(t, c);
        if (r < 0) {
                client_free(c);
                return r;
        }
        c->next = t->clients;
        t->clients = c;
        t->n_clients++;
        t->n_seen++;
        update_sources(t);
        return 0;
}

int terminal_attach(Terminal *t, int *ret_fd) {
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        _cleanup_close_ int theirs = pair[1];
        int r = terminal_add_client(t, pair[0]);
        if (r < 0)
                return r;
        *ret_fd = TAKE_FD(theirs);
        return 0;
}

void terminal_finish(Terminal *t) {
        t->keeper = safe_close(t->keeper);
        if (t->master < 0)
                end(t);
}

bool terminal_has_pending(const Terminal *t) {
        for (const Client *c = t->clients; c; c = c->next)
                if (client_queued(c) > 0)
                        return true;
        return false;
}

size_t terminal_clients_seen(const Terminal *t) {
        return t->n_seen;
}

size_t terminal_clients(const Terminal *t) {
        return t->n_clients;
}
