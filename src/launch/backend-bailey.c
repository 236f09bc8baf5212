/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "launch/backend-bailey.h"
#include "launch/limits.h"
#include "launch/manager-probe.h"
#include "launch/programs.h"
#include "launch/tree.h"

#define SAID_MAX 4096U

typedef struct Probe {
        Launcher *launcher;
        Ticket ticket;
        pid_t pid;
        int report, said; /* its report, and what it writes to standard error */
        char home[64];    /* a temporary one, "" before it is made */
        sd_event_source *end, *timeout;
        Message *told;    /* the report */
        ManagerProbe *manager;
} Probe;

static void remove_home(Probe *p) {
        if (!p->home[0])
                return;
        _cleanup_close_ int fd = open(p->home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd >= 0)
                (void) tree_empty(fd);
        (void) rmdir(p->home);
        p->home[0] = 0;
}

static Probe *probe_free(Probe *p) {
        if (!p)
                return NULL;
        sd_event_source_disable_unref(p->end);
        sd_event_source_disable_unref(p->timeout);
        message_free(p->told);
        manager_probe_free(p->manager);
        safe_close(p->report);
        safe_close(p->said);
        remove_home(p);
        return mfree(p);
}
DEFINE_CLEANUP(Probe *, probe_free);

/* The last line it wrote, for people. */
static char *last_line(int fd) {
        char text[SAID_MAX + 1];

        ssize_t n = read(fd, text, SAID_MAX);
        if (n <= 0)
                return NULL;
        while (n > 0 && text[n - 1] == '\n')
                n--;
        text[n] = 0;
        char *line = strrchr(text, '\n');
        line = line ? line + 1 : text;
        return string_escape_control(startswith(line, "bailey: ") ?: line);
}

static void reply_report(Probe *p, const char *problem, char *const *controllers) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_strv_free_ char **gaps = NULL;
        JsonObject *o = message_object(p->told);
        uint64_t landlock;
        bool isolated;

        if (json_get_strv(o, "gaps", &gaps) < 0 || json_get_u64(o, "landlock", UINT16_MAX, &landlock) < 0 ||
            json_get_bool(o, "isolated", &isolated) < 0) {
                launcher_reply(p->launcher, p->ticket, -EBADMSG, "bailey's report is not understood");
                return;
        }
        launcher_open_reply(&w, "probe", p->ticket);
        json_add_string(&w, "backend", "bailey");
        json_add_strings(&w, "gaps", gaps);
        json_add_u64(&w, "landlock", landlock);
        json_add_bool(&w, "isolated", isolated);
        json_add_bool(&w, "scopes", !problem);
        json_add_string(&w, "scopesProblem", problem);
        json_add_strings(&w, "controllers", controllers);
        launcher_send_reply(p->launcher, p->ticket, &w);
}

static void end_probe(Probe *p) {
        p->launcher->n_helpers--;
        probe_free(p);
}

static void on_manager_probed(const char *problem, char *const *controllers, void *userdata) {
        Probe *p = userdata;

        reply_report(p, problem, controllers);
        end_probe(p);
}

static int on_ended(_unused_ sd_event_source *source, const siginfo_t *info, void *userdata) {
        _cleanup_free_ char *problem = NULL;
        Probe *p = userdata;
        bool good = info->si_code == CLD_EXITED && info->si_status == 0;

        p->timeout = sd_event_source_disable_unref(p->timeout);
        remove_home(p); /* when the reply comes all is as before */
        if (!good || message_receive(p->report, &p->told, NULL) < 0) {
                _cleanup_free_ char *said = last_line(p->said);
                launcher_reply(p->launcher, p->ticket, -EIO, said ?: "bailey did not run /bin/true, and said nothing");
        } else if (manager_probe_new(p->launcher->manager, on_manager_probed, p, &p->manager, &problem) >= 0)
                return 0;
        else
                reply_report(p, problem ?: "the account's user manager is not reached", NULL);
        end_probe(p);
        return 0;
}

static int on_timeout(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Probe *p = userdata;

        (void) kill(p->pid, SIGKILL); /* not reaped before on_ended() */
        return 0;
}

static int make_home(Probe *p) {
        const char *tmp = getenv("TMPDIR");

        if (!tmp || tmp[0] != '/' || strlen(tmp) > 32)
                tmp = "/tmp";
        (void) snprintf(p->home, sizeof(p->home), "%s/errand-probe-XXXXXX", tmp);
        if (!mkdtemp(p->home)) {
                int r = -errno;
                p->home[0] = 0;
                return r;
        }
        return 0;
}

static int start(Probe *p) {
        _cleanup_close_ int null = open("/dev/null", O_RDWR | O_CLOEXEC | O_NOCTTY), report = -EBADF, said = -EBADF;
        int pair[2], bailey = p->launcher->bailey;
        char number[16];

        if (null < 0 || socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
                return -errno;
        p->report = pair[0];
        report = pair[1];
        /* Nobody reads along, and what does not fit is not needed. */
        if (pipe2(pair, O_CLOEXEC | O_NONBLOCK) < 0)
                return -errno;
        p->said = pair[0];
        said = pair[1];
        int r = make_home(p);
        if (r < 0)
                return r;
        (void) snprintf(number, sizeof(number), "%d", report);
        /* What this host can do, not what a policy of the account makes of it. */
        char *const argv[] = {(char *) "bailey", (char *) "run", (char *) "--json", (char *) "--only-config", (char *) "--home", p->home,
                              (char *) "--report-fd", number, (char *) "--", (char *) "/bin/true", NULL};

        p->pid = fork();
        if (p->pid < 0)
                return -errno;
        if (p->pid == 0) {
                if (chdir("/") < 0)
                        _exit(125);
                program_execute(bailey, argv, (const int[]){null, null, said}, (const int[]){report, bailey}, 2);
        }
        return 0;
}

int backend_bailey_probe(Launcher *l, Ticket ticket) {
        _cleanup_(probe_freep) Probe *p = calloc(1, sizeof(Probe));

        if (!p)
                return -ENOMEM;
        *p = (Probe){.launcher = l, .ticket = ticket, .report = -EBADF, .said = -EBADF};
        if (l->n_helpers >= HELPERS_MAX)
                return -EBUSY;
        int r = start(p);
        if (r < 0)
                return r;
        r = sd_event_add_child(l->event, &p->end, p->pid, WEXITED, on_ended, p);
        if (r >= 0)
                r = sd_event_add_time_relative(l->event, &p->timeout, CLOCK_MONOTONIC, PROBE_USEC, 1, on_timeout, p);
        if (r < 0) {
                p->end = sd_event_source_disable_unref(p->end);
                (void) kill(p->pid, SIGKILL);
                (void) waitpid(p->pid, NULL, 0);
                return r;
        }
        l->n_helpers++;
        TAKE_PTR(p);
        return 0;
}
