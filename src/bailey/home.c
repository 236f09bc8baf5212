/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bailey/directories.h"
#include "bailey/home.h"
#include "bailey/planner.h"
#include "basic/fd.h"
#include "basic/log.h"
#include "basic/path.h"
#include "basic/sha256.h"
#include "basic/text.h"

/* The data directory may well be reached over links of the person's own making: /home → /data/home. */
static int resolve_in_place(char **path) {
        ResolvedPath resolved = {};

        int r = path_resolve(*path, &resolved);
        if (r < 0)
                return r;
        free(*path);
        *path = TAKE_PTR(resolved.real);
        resolved_path_done(&resolved);
        return 0;
}

int home_name_program(const char *target, char **ret) {
        *ret = strdup(strrchr(target, '/') + 1);
        return *ret ? 0 : -ENOMEM;
}

/* A directory below "shell", so that no program has the name of another directory's home. */
int home_name_directory(const char *directory, char **ret) {
        const char *last = strrchr(directory, '/') + 1;
        char digits[2 * SHA256_SIZE + 1], name[64];
        uint8_t digest[SHA256_SIZE];
        size_t n = 0;

        for (; last[n] && n < sizeof(name) - 1; n++)
                name[n] = last[n];
        for (size_t i = 0; i < n; i++)
                if (!ascii_alpha(name[i]) && !ascii_digit(name[i]) && !strchr("._-", name[i]))
                        name[i] = '_';
        name[n] = 0;
        sha256(directory, strlen(directory), digest);
        sha256_to_string(digest, digits);
        /* Half of it: nobody finds two directories whose paths share that much. */
        return asprintf(ret, "shell/%s%s%.32s", name, n > 0 ? "-" : "", digits) < 0 ? -ENOMEM : 0;
}

int home_settle(Policy *p, const char *name, const char *chosen, const char *option, Findings *findings) {
        int r = directory_state(&p->account, &p->state_directory);

        if (r >= 0 && option) {
                r = path_make_absolute(option, &p->home);
                if (r < 0 && r != -ENOMEM) {
                        finding_error(findings, "--home %s: %s", option, strerror(-r));
                        p->home = strdup("/");
                        r = 0;
                }
        } else if (r >= 0 && chosen)
                p->home = strdup(chosen);
        else if (r >= 0) {
                if (asprintf(&p->home, "%s/%s/home", p->state_directory, name) < 0)
                        p->home = NULL;
                p->home_name = strdup(name);
                r = p->home_name ? 0 : -ENOMEM;
        }
        if (r >= 0 && !p->home)
                r = -ENOMEM;
        if (r >= 0)
                r = resolve_in_place(&p->state_directory);
        if (r >= 0)
                r = resolve_in_place(&p->config_directory);
        if (r >= 0) {
                p->home_real = strdup(p->home);
                r = p->home_real ? resolve_in_place(&p->home_real) : -ENOMEM;
        }
        if (r < 0 && r != -ENOMEM) {
                finding_error(findings, "The home directory cannot be placed: %s; name one with --home", strerror(-r));
                r = 0;
        }
        return r;
}

/* Opens or makes one directory in another, never over a link. */
static int enter_directory(int *fd, const char *name, const char *whole, bool strict_owner) {
        struct stat st;

        if (mkdirat(*fd, name, 0700) < 0 && errno != EEXIST)
                return log_error_errno(errno, "Failed to make %s for the home %s: %m", name, whole);
        int next = openat(*fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (next < 0) {
                if (errno == ELOOP || errno == ENOTDIR) {
                        log_error("%s of the home %s is not a directory; bailey follows no link there: remove it", name,
                                  whole);
                        return -ELOOP;
                }
                return log_error_errno(errno, "Failed to open %s of the home %s: %m", name, whole);
        }
        safe_close(*fd);
        *fd = next;
        if (!strict_owner)
                return 0;
        if (fstat(next, &st) < 0)
                return log_error_errno(errno, "Failed to look at %s of the home %s: %m", name, whole);
        if (st.st_uid != geteuid()) {
                log_error("%s of the home %s belongs to uid %u, not to this account; remove it or name another with --home",
                          name, whole, st.st_uid);
                return -EPERM;
        }
        if ((st.st_mode & 077) && fchmod(next, 0700) < 0)
                return log_error_errno(errno, "Failed to close %s of the home %s to others: %m", name, whole);
        return 0;
}

/* mkdir -p of an ancestor that no session reaches; links are the person's own. */
static int make_ancestors(const char *path, const char *hint) {
        _cleanup_free_ char *copy = strdup(path);

        if (!copy)
                return log_oom();
        for (char *p = copy + 1; *p; p++)
                if (*p == '/') {
                        *p = 0;
                        /* What is there may answer anything to mkdir(2); what is not, is found out below. */
                        if (mkdir(copy, 0700) < 0 && access(copy, F_OK) < 0)
                                return log_error_errno(errno, "Failed to make %s: %m%s", copy, hint);
                        *p = '/';
                }
        return 0;
}

int home_make(const Policy *p) {
        _cleanup_free_ char *names = NULL, *top = NULL;
        _cleanup_close_ int fd = -EBADF;

        if (!p->home_name) {
                struct stat st;
                if (mkdir(p->home, 0700) < 0 && errno != EEXIST)
                        return log_error_errno(errno, "Failed to make the home %s: %m; make its parent, or name another", p->home);
                if (stat(p->home, &st) < 0 || !S_ISDIR(st.st_mode))
                        return log_error_errno(ENOTDIR, "The home %s is not a directory", p->home);
                return 0;
        }

        int r = make_ancestors(p->state_directory, "; name another home with --home");
        if (r < 0)
                return r;
        top = path_parent(p->state_directory);
        names = strdup(p->home_name);
        if (!top || !names)
                return log_oom();
        fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
                return log_error_errno(errno, "Failed to open %s for the home: %m; name another home with --home", top);
        r = enter_directory(&fd, strrchr(p->state_directory, '/') + 1, p->home, true);
        for (char *save = NULL, *name = strtok_r(names, "/", &save); name && r >= 0; name = strtok_r(NULL, "/", &save))
                r = enter_directory(&fd, name, p->home, true);
        return r < 0 ? r : enter_directory(&fd, "home", p->home, true);
}

int home_make_configuration(const Policy *p) {
        struct stat st;

        if (lstat(p->config_directory, &st) >= 0 || !(policy_rights_at(p, p->config_directory) & RIGHT_WRITE))
                return 0;
        int r = make_ancestors(p->config_directory, "; bailey keeps its configuration there, and this policy would let a session make it");
        if (r < 0)
                return r;
        if (mkdir(p->config_directory, 0700) < 0 && errno != EEXIST)
                return log_error_errno(errno, "Failed to make %s, which this policy would let a session make: %m", p->config_directory);
        return 0;
}

/* Makes rel ("a/b/c") in the home; the last part as a file when wanted. */
static int make_in_home(const char *home, const char *rel, bool directory) {
        _cleanup_close_ int fd = open(home, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        _cleanup_free_ char *copy = strdup(rel);
        char *save = NULL;
        int r = 0;

        if (fd < 0)
                return log_error_errno(errno, "Failed to open the home %s: %m", home);
        if (!copy)
                return log_oom();
        for (char *name = strtok_r(copy, "/", &save); name && r >= 0;) {
                char *next = strtok_r(NULL, "/", &save);
                if (next || directory)
                        r = enter_directory(&fd, name, home, false);
                else {
                        _cleanup_close_ int file = openat(fd, name, O_WRONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK, 0600);
                        if (file < 0 && errno != EACCES)
                                return log_error_errno(errno, "Failed to make %s in the home %s: %m", name, home);
                }
                name = next;
        }
        return r;
}

int home_make_mount_points(const Policy *p, const Plan *plan) {
        _cleanup_free_ char *inside = NULL;

        int r = planner_home_inside(p, &inside);
        if (r < 0)
                return log_error_errno(r, "Failed to place the home: %m");
        if (streq(inside, p->home_real))
                return 0;
        for (size_t i = 0; i < plan->n_steps; i++) {
                const PlanStep *s = &plan->steps[i];
                bool mounts = s->type == STEP_BIND || s->type == STEP_DEVICE || s->type == STEP_FILE;
                struct stat st;

                if (!mounts || streq(s->target, inside) || !path_beneath(s->target, inside))
                        continue;
                bool directory = s->source && stat(path_from_working_directory(s->source), &st) >= 0 && S_ISDIR(st.st_mode);
                r = make_in_home(p->home_real, s->target + strlen(inside) + 1, directory);
                if (r < 0)
                        return r;
        }
        if (!streq(plan->working_directory, inside) && path_beneath(plan->working_directory, inside))
                return make_in_home(p->home_real, plan->working_directory + strlen(inside) + 1, true);
        return 0;
}
