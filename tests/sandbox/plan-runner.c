/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Carries out a plan that a test wrote by hand: plan-runner [OPTION…] PLAN COMMAND [ARGUMENT…]
 * The plan is a file of lines of fields parted by tabs; see plan_line(). Exits as the command did, 125 when enter_run()
 * refused. With --result FILE, one line: status started isolated landlock survivors gap,gap… */

#include <arpa/inet.h>
#include <fcntl.h>
#include <grp.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bailey/enter.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"

#define LINES_MAX 512

static PlanStep steps[LINES_MAX];
static PlanAccess accesses[LINES_MAX];
static char *environment[LINES_MAX + 1];
static size_t n_environment;
static char *lines[LINES_MAX];
static size_t n_lines;

static const char *const step_names[_STEP_TYPE_MAX] = {
        [STEP_DIRECTORY] = "directory", [STEP_SYMLINK] = "symlink", [STEP_BIND] = "bind",   [STEP_DEVICE] = "device",
        [STEP_TMPFS] = "tmpfs",         [STEP_PROC] = "proc",       [STEP_SYSFS] = "sysfs", [STEP_DEVPTS] = "devpts",
        [STEP_FILE] = "file",           [STEP_COVER] = "cover",     [STEP_READ_ONLY] = "read-only",
};

_noreturn_ static void bad(const char *what, const char *with) {
        fprintf(stderr, "plan-runner: %s: %s\n", what, with);
        exit(99);
}

/* step TYPE FLAGS TARGET [SOURCE|CONTENT|SIZE [stale]]; FLAGS of w x - */
static void step_line(Plan *plan, char **field, size_t n) {
        PlanStep *s = &steps[plan->n_steps++];
        struct stat st;

        s->type = _STEP_TYPE_INVALID;
        for (StepType t = 0; t < _STEP_TYPE_MAX; t++)
                if (n >= 4 && streq(field[1], step_names[t]))
                        s->type = t;
        if (s->type < 0)
                bad("step", field[1]);
        s->flags = (strchr(field[2], 'w') ? STEP_WRITABLE : 0) | (strchr(field[2], 'x') ? STEP_EXECUTABLE : 0);
        s->target = field[3];
        s->mode = 01777;
        if (n < 5)
                return;
        if (s->type == STEP_FILE)
                s->content = field[4];
        else if (s->type == STEP_TMPFS)
                s->size_bytes = strtoull(field[4], NULL, 10);
        else
                s->source = field[4];
        if ((s->type == STEP_BIND || s->type == STEP_DEVICE) && stat(s->source, &st) == 0) {
                s->device = st.st_dev;
                s->inode = st.st_ino + (n > 5);
        }
}

/* access RIGHTS PATH [HOST_PATH]; RIGHTS of r w x l i */
static void access_line(Plan *plan, char **field, size_t n) {
        PlanAccess *a = &accesses[plan->n_accesses++];

        if (n < 3)
                bad("access", field[0]);
        a->path = field[2];
        a->host_path = n > 3 ? field[3] : NULL;
        a->rights = (strchr(field[1], 'r') ? ACCESS_READ : 0) | (strchr(field[1], 'w') ? ACCESS_WRITE : 0) |
                    (strchr(field[1], 'x') ? ACCESS_EXECUTE : 0) | (strchr(field[1], 'l') ? ACCESS_LIST : 0) |
                    (strchr(field[1], 'i') ? ACCESS_IOCTL : 0);
}

static void plan_line(Plan *plan, char *line) {
        char *field[8] = {};
        size_t n = 0;

        for (char *p = line; p && n < ELEMENTSOF(field);) {
                field[n++] = p;
                p = strchr(p, '\t');
                if (p)
                        *p++ = 0;
        }
        if (streq(field[0], "step"))
                step_line(plan, field, n);
        else if (streq(field[0], "access"))
                access_line(plan, field, n);
        else if (streq(field[0], "env") && n == 2)
                environment[n_environment++] = field[1];
        else if (streq(field[0], "cwd") && n == 2)
                plan->working_directory = field[1];
        else if (streq(field[0], "executable") && n == 2)
                plan->executable = field[1];
        else if (streq(field[0], "nested-deny"))
                plan->nested_deny = true;
        else if (streq(field[0], "nested-read-only"))
                plan->nested_read_only = true;
        else
                bad("line", line);
}

static void plan_read(Plan *plan, const char *path) {
        FILE *f = fopen(path, "re");
        char *line = NULL;
        size_t room = 0;

        if (!f)
                bad(path, strerror(errno));
        while (getline(&line, &room, f) > 0) {
                line[strcspn(line, "\n")] = 0;
                if (!*line)
                        continue;
                if (n_lines >= LINES_MAX || !(lines[n_lines] = strdup(line)))
                        bad("too long", path);
                plan_line(plan, lines[n_lines++]);
        }
        free(line);
        fclose(f);
}

static int fd_option(const char *s) {
        int fd;
        if (parse_fd(s, &fd) < 0)
                bad("descriptor", s);
        return fd;
}

static void result_write(const char *path, const RunResult *r) {
        FILE *f = fopen(path, "we");
        const char *separator = "";

        if (!f)
                bad(path, strerror(errno));
        fprintf(f, "%d %d %d %d %u ", r->status, r->started, r->isolated, r->landlock_abi, r->survivors);
        for (Gap g = 0; g < _GAP_MAX; g++)
                if (r->gaps & (1U << g)) {
                        fprintf(f, "%s%s", separator, gap_to_string(g));
                        separator = ",";
                }
        fprintf(f, "\n");
        fclose(f);
}

int main(int argc, char *argv[]) {
        /* Static: what it points to lives as long as the program. */
        static Plan plan = {.steps = steps, .accesses = accesses, .environment = environment, .working_directory = (char *) "/"};
        RunOptions options = {
                .broker_socket = -EBADF, .broker_token = -EBADF, .report = -EBADF, .console_socket = -EBADF, .error_output = -EBADF,
                .listen_address.s_addr = htonl(INADDR_LOOPBACK), .listen_port = 3128,
        };
        const char *result_path = NULL;
        RunResult result;
        int i = 1, drop = 0;

        log_setup("bailey", LOG_LEVEL_INFO);
        for (; i < argc && startswith(argv[i], "--"); i++) {
                const char *value = argv[i + 1];
                if (streq(argv[i], "--strict")) {
                        options.strict = true;
                        continue;
                }
                if (!value)
                        bad("no value", argv[i]);
                if (streq(argv[i], "--accept-gap"))
                        options.accepted_gaps |= 1U << gap_from_string(value);
                else if (streq(argv[i], "--broker"))
                        options.broker_socket = fd_option(value);
                else if (streq(argv[i], "--token"))
                        options.broker_token = fd_option(value);
                else if (streq(argv[i], "--report"))
                        options.report = fd_option(value);
                else if (streq(argv[i], "--console"))
                        options.console_socket = fd_option(value);
                else if (streq(argv[i], "--drop"))
                        drop = fd_option(value);
                else if (streq(argv[i], "--result"))
                        result_path = value;
                else
                        bad("option", argv[i]);
                i++;
        }
        if (argc - i < 2)
                bad("usage", "plan-runner [OPTION…] PLAN COMMAND [ARGUMENT…]");
        plan.network = &(const Network){.mode = options.broker_socket >= 0 ? NETWORK_BROKER : NETWORK_ISOLATED, .denied = true};
        plan_read(&plan, argv[i]);
        plan.argv = argv + i + 1;
        if (!plan.executable)
                plan.executable = plan.argv[0];

        /* The arguments are wiped inside: what the plan still needs of them must not lie there. */
        static char **copy;
        for (char **p = plan.argv; *p; p++)
                if (strv_extend(&copy, *p) < 0)
                        bad("memory", *p);
        plan.executable = strdup(plan.executable);
        plan.argv = copy;

        /* As bailey does when root calls it: this process is not dumpable afterwards. */
        if (drop > 0 && (setgroups(0, NULL) < 0 || setresgid((gid_t) drop, (gid_t) drop, (gid_t) drop) < 0 ||
                         setresuid((uid_t) drop, (uid_t) drop, (uid_t) drop) < 0))
                bad("dropping root", strerror(errno));

        int r = enter_run(&plan, &options, &result);
        if (r < 0)
                return 125;
        if (result_path)
                result_write(result_path, &result);
        return result.status;
}
