/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "shared/cgroup.h"
#include "shim/group.h"

struct Group {
        int directory;
        int memory_events;
        sd_event_source *io;
        uint64_t oom_kills;
};

Group *group_free(Group *g) {
        if (!g)
                return NULL;
        sd_event_source_disable_unref(g->io);
        safe_close(g->memory_events);
        safe_close(g->directory);
        return mfree(g);
}

/* The group goes with its last process, and what it counted with it: so it is read whenever it changes. */
static int on_memory_events(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t revents, void *userdata) {
        Group *g = userdata;

        if (cgroup_read_oom_kills(g->memory_events, &g->oom_kills) < 0)
                g->io = sd_event_source_disable_unref(g->io);
        return 0;
}

static void watch_memory(Group *g, sd_event *event) {
        g->memory_events = openat(g->directory, "memory.events", O_RDONLY | O_CLOEXEC);
        if (g->memory_events < 0)
                return; /* no controller for memory, no limit */
        int r = cgroup_read_oom_kills(g->memory_events, &g->oom_kills);
        if (r >= 0)
                r = sd_event_add_io(event, &g->io, g->memory_events, EPOLLPRI, on_memory_events, g);
        if (r < 0)
                log_warning_errno(r, "That a session runs out of memory will not be told: %m");
}

int group_new(sd_event *event, pid_t pid, const char *unit, Group **ret, char **ret_directory) {
        _cleanup_(group_freep) Group *g = calloc(1, sizeof(Group));
        _cleanup_free_ char *path = NULL, *directory = NULL;

        if (!g)
                return -ENOMEM;
        *g = (Group){.directory = -EBADF, .memory_events = -EBADF};
        int r = cgroup_of_process(pid, &path);
        if (r >= 0 && !cgroup_is_unit(path, unit))
                r = -EXDEV;
        if (r >= 0)
                r = cgroup_directory(path, &directory);
        if (r < 0)
                return r;
        g->directory = cgroup_open(path);
        if (g->directory < 0)
                log_warning_errno(g->directory, "The group of %s cannot be reached at %s: %m", unit, directory);
        else
                watch_memory(g, event);
        *ret = TAKE_PTR(g);
        *ret_directory = TAKE_PTR(directory);
        return 0;
}

int group_kill(const Group *g, const char *child) {
        return g ? cgroup_kill(g->directory, child) : -ENOENT;
}

uint64_t group_oom_kills(Group *g) {
        if (!g)
                return 0;
        if (g->memory_events >= 0)
                (void) cgroup_read_oom_kills(g->memory_events, &g->oom_kills);
        return g->oom_kills;
}
