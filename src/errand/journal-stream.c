/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errand/journal-stream.h"
#include "shared/cgroup.h"

/* A journal on a busy machine may come to it late. */
#define DRAIN_ROUNDS 1000U
#define DRAIN_NAMED_ROUNDS 100U /* where it was told the unit: it looks up no more than the process's name and the like */
#define DRAIN_ROUND_MSEC 2

static int streams[2] = {-EBADF, -EBADF};
static size_t n_streams;
static bool named; /* all of them have been told the unit */

/* By the address of its other end, which says too which journal it is: /run/systemd/journal.NAME/stdout for a unit with LogNamespace=NAME. JOURNAL_STREAM names one
 * descriptor, where output and errors may be two. */
static bool is_journal(int fd, struct sockaddr_un *ret) {
        socklen_t size = sizeof(*ret);

        *ret = (struct sockaddr_un){};
        return getpeername(fd, (struct sockaddr *) ret, &size) >= 0 && ret->sun_family == AF_UNIX && size < sizeof(*ret) &&
               startswith(ret->sun_path, "/run/systemd/journal") && endswith(ret->sun_path, "/stdout");
}

/* So that lines are the unit's also when this process is gone before they are read. The journal believes it of root alone. */
static char *own_unit(void) {
        _cleanup_free_ char *group = NULL;

        if (geteuid() != 0 || cgroup_of_process(getpid(), &group) < 0)
                return NULL;
        const char *name = strrchr(group, '/') + 1;
        return endswith(name, ".service") || endswith(name, ".scope") ? strdup(name) : NULL;
}

/* The head of a connection, a line each, as sd_journal_stream_fd(3) writes it: who, unit, facility and priority (of a daemon, informational, as a unit's), whether a
 * number before a line is one, and three times whether it goes elsewhere too. */
static int write_head(int fd) {
        _cleanup_free_ char *unit = own_unit(), *head = NULL;
        int n = asprintf(&head, "%s\n%s\n30\n0\n0\n0\n0\n", log_program(), unit ?: "");

        if (n < 0) {
                head = NULL;
                return -ENOMEM;
        }
        named = unit;
        return write_all(fd, head, (size_t) n);
}

static int open_stream(const struct sockaddr_un *address) {
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        if (fd < 0 || connect(fd, (const struct sockaddr *) address, sizeof(*address)) < 0 || shutdown(fd, SHUT_RD) < 0)
                return -errno;
        int r = write_head(fd);
        return r < 0 ? r : TAKE_FD(fd);
}

int journal_stream(int fd) {
        struct sockaddr_un address;

        if (n_streams >= ELEMENTSOF(streams) || !is_journal(fd, &address))
                return fd;
        int own = open_stream(&address);
        if (own < 0) {
                log_warning_errno(own, "the journal cannot be connected to (%m): what a session writes there may look graver than it is; SyslogLevelPrefix=no in the "
                                  "unit helps");
                return fd;
        }
        streams[n_streams++] = own;
        return own;
}

void journal_stream_stdout(void) {
        int own = journal_stream(STDOUT_FILENO);

        if (own != STDOUT_FILENO)
                (void) dup2(own, STDOUT_FILENO);
}

void journal_stream_drain(void) {
        bool waited = false;

        for (unsigned round = 0; round < (named ? DRAIN_NAMED_ROUNDS : DRAIN_ROUNDS); round++) {
                bool waits = false;

                for (size_t i = 0; i < n_streams; i++) {
                        int bytes = 0;
                        waits |= ioctl(streams[i], SIOCOUTQ, &bytes) >= 0 && bytes > 0;
                }
                if (!waits && !waited)
                        return;
                (void) poll(NULL, 0, DRAIN_ROUND_MSEC); /* also when it was just read, and is about to be looked into */
                if (!waits)
                        return;
                waited = true;
        }
}
