/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/resource.h>

#include "bailey/plan.h"
#include "basic/secret.h"
#include "basic/text.h"

Plan *plan_free(Plan *p) {
        if (!p)
                return NULL;
        for (size_t i = 0; i < p->n_steps; i++) {
                free(p->steps[i].source);
                free(p->steps[i].target);
                free(p->steps[i].content);
        }
        for (size_t i = 0; i < p->n_accesses; i++) {
                free(p->accesses[i].path);
                free(p->accesses[i].host_path);
        }
        for (char **s = p->environment; s && *s; s++)
                secret_wipe(*s, strlen(*s));
        free(p->steps);
        free(p->accesses);
        free(p->executable);
        strv_free(p->argv);
        strv_free(p->environment);
        free(p->working_directory);
        return mfree(p);
}

static void add_process_limit(Plan *p, int resource, uint64_t said) {
        if (said != LIMIT_NONE)
                p->process_limits[p->n_process_limits++] = (PlanProcessLimit){resource, said};
}

static uint64_t group_limit(uint64_t said) {
        return said == LIMIT_NONE ? 0 : said;
}

void plan_set_limits(Plan *p, const Limits *limits) {
        p->limits = (PlanLimits){
                .memory_bytes = group_limit(limits->memory_bytes),
                .pids = group_limit(limits->pids_max),
                .cpu_percent = group_limit(limits->cpu_percent),
        };
        p->n_process_limits = 0;
        add_process_limit(p, RLIMIT_FSIZE, limits->file_bytes);
        add_process_limit(p, RLIMIT_CORE, limits->core_bytes);
        add_process_limit(p, RLIMIT_NOFILE, limits->files_max);
}

static const char *step_type_to_string(StepType t) {
        static const char *const names[_STEP_TYPE_MAX] = {
                [STEP_DIRECTORY] = "directory", [STEP_SYMLINK] = "symlink", [STEP_BIND] = "bind",
                [STEP_DEVICE] = "device",       [STEP_TMPFS] = "tmpfs",     [STEP_PROC] = "proc",
                [STEP_SYSFS] = "sysfs",         [STEP_DEVPTS] = "devpts",   [STEP_FILE] = "file",
                [STEP_COVER] = "cover",         [STEP_READ_ONLY] = "read-only",
        };
        return t >= 0 && t < _STEP_TYPE_MAX ? names[t] : NULL;
}

static int print_step(const PlanStep *s, FILE *f) {
        _cleanup_free_ char *target = string_escape_control(s->target), *source = NULL;
        char flags[] = "r--";

        if (!target)
                return -ENOMEM;
        flags[1] = s->flags & STEP_WRITABLE ? 'w' : '-';
        flags[2] = s->flags & STEP_EXECUTABLE ? 'x' : '-';
        bool mount = s->type == STEP_BIND || s->type == STEP_DEVICE || s->type == STEP_TMPFS;
        fprintf(f, "%-9s %s %s", step_type_to_string(s->type), mount ? flags : "   ", target);
        if (s->source && (s->type == STEP_SYMLINK || !streq(s->source, s->target))) {
                source = string_escape_control(s->source);
                if (!source)
                        return -ENOMEM;
                fprintf(f, " %s %s", s->type == STEP_SYMLINK ? "->" : "from", source);
        }
        if (s->type == STEP_TMPFS) {
                fprintf(f, " mode %04o", s->mode);
                if (s->size_bytes)
                        fprintf(f, " size %llu", (unsigned long long) s->size_bytes);
        }
        fputc('\n', f);
        return 0;
}

static int print_access(const PlanAccess *a, FILE *f) {
        _cleanup_free_ char *path = string_escape_control(a->path);

        if (!path)
                return -ENOMEM;
        fprintf(f, "access    %c%c%c%c%c %s\n", a->rights & ACCESS_READ ? 'r' : '-', a->rights & ACCESS_WRITE ? 'w' : '-',
                a->rights & ACCESS_EXECUTE ? 'x' : '-', a->rights & ACCESS_LIST ? 'l' : '-',
                a->rights & ACCESS_IOCTL ? 'i' : '-', path);
        return 0;
}

int plan_print(const Plan *p, FILE *f) {
        _cleanup_free_ char *executable = string_escape_control(p->executable), *cwd = string_escape_control(p->working_directory);
        int r = executable && cwd ? 0 : -ENOMEM;

        for (size_t i = 0; i < p->n_steps && r >= 0; i++)
                r = print_step(&p->steps[i], f);
        for (size_t i = 0; i < p->n_accesses && r >= 0; i++)
                r = print_access(&p->accesses[i], f);
        if (r < 0)
                return r;
        if (p->limits.memory_bytes > 0)
                fprintf(f, "memory    %llu\n", (unsigned long long) p->limits.memory_bytes);
        if (p->limits.pids > 0)
                fprintf(f, "pids      %llu\n", (unsigned long long) p->limits.pids);
        if (p->limits.cpu_percent > 0)
                fprintf(f, "cpu       %llu%%\n", (unsigned long long) p->limits.cpu_percent);
        for (size_t i = 0; i < p->n_process_limits; i++)
                fprintf(f, "rlimit    %s %llu\n", p->process_limits[i].resource == RLIMIT_FSIZE ? "fsize" :
                        p->process_limits[i].resource == RLIMIT_CORE ? "core" : "nofile", (unsigned long long) p->process_limits[i].value);
        fprintf(f, "network   %s\n", network_mode_to_string(p->network->mode));
        if (network_has_ports(p->network)) {
                if (p->network->connect_any)
                        fputs("connect   any\n", f);
                for (size_t i = 0; i < p->network->n_connect_ports; i++)
                        fprintf(f, "connect   %u\n", p->network->connect_ports[i]);
                for (size_t i = 0; i < p->network->n_bind_ports; i++)
                        fprintf(f, "bind      %u\n", p->network->bind_ports[i]);
        }
        fprintf(f, "chdir     %s\n", cwd);
        fprintf(f, "execute   %s\n", executable);
        return ferror(f) ? -EIO : 0;
}
