/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "errandd/account.h"

#define UID_VALID_MAX (UINT32_MAX - 1U) /* the last value means "no uid" to setresuid(2) */

/* The uids that systemd gives out for as long as a service runs, and that no account has therefore. */
#define UNUSED_UID_FIRST 61184U
#define UNUSED_UID_LAST 65519U

int identity_of(uid_t uid, Identity *ret) {
        const struct passwd *pw;
        int n = IDENTITY_GROUPS_MAX;

        if (uid == 0 || uid > UID_VALID_MAX)
                return -EPERM;
        *ret = (Identity){.uid = uid, .gid = uid == geteuid() ? getegid() : (gid_t) uid};
        pw = getpwuid(uid);
        (void) snprintf(ret->name, sizeof(ret->name), "%s", pw ? pw->pw_name : "user");
        (void) snprintf(ret->home, sizeof(ret->home), "%s", pw && pw->pw_dir && pw->pw_dir[0] == '/' ? pw->pw_dir : "/");
        if (uid == geteuid())
                return 0; /* it stays as it is */
        if (!pw)
                return 0;
        ret->gid = pw->pw_gid;
        if (getgrouplist(pw->pw_name, pw->pw_gid, ret->groups, &n) < 0)
                return -E2BIG;
        ret->n_groups = (size_t) n;
        return 0;
}

int identity_by_name(const char *name, Identity *ret) {
        const struct passwd *pw = getpwnam(name);

        if (!pw)
                return -ENOENT;
        return pw->pw_uid == geteuid() ? -EPERM : identity_of(pw->pw_uid, ret);
}

int identity_become(const Identity *i) {
        uid_t ruid, euid, suid;

        if (i->uid == geteuid() && i->uid != 0)
                return 0;
        if (setgroups(i->n_groups, i->groups) < 0 || setresgid(i->gid, i->gid, i->gid) < 0 || setresuid(i->uid, i->uid, i->uid) < 0)
                return -errno;
        /* Trust what is, not what was asked for. */
        if (getresuid(&ruid, &euid, &suid) < 0 || ruid != i->uid || euid != i->uid || suid != i->uid || setuid(0) == 0)
                return -EPERM;
        return 0;
}

static int by_name(const char *user, uid_t *ret, Fault *f) {
        const struct passwd *pw = getpwnam(user);
        uint64_t number;

        if (pw)
                *ret = pw->pw_uid;
        else if (parse_u64(user, UID_VALID_MAX, &number) >= 0)
                *ret = (uid_t) number;
        else
                return fault_set(f, ERROR_INVALID_ARGUMENT, "there is no account %s", user);
        return *ret == 0 ? fault_set(f, ERROR_NOT_PERMITTED, "account %s: uid 0 never runs a session; name an ordinary account", user) : 0;
}

static uid_t nobody(void) {
        const struct passwd *pw = getpwnam("nobody");
        return pw && pw->pw_uid != 0 ? pw->pw_uid : 65534;
}

int account_decide(const char *user, int project, Identity *ret, AccountReason *ret_reason, Fault *f) {
        const char *sudo = getenv("SUDO_UID");
        AccountReason reason = ACCOUNT_OWN;
        uid_t uid = geteuid();
        uint64_t number;
        struct stat st;

        if (uid != 0) {
                uid_t asked = uid;
                int r = user ? by_name(user, &asked, f) : 0;
                if (r < 0)
                        return r;
                if (asked != uid)
                        return fault_set(f, ERROR_NOT_PERMITTED, "account %s: only root can run a session as another account", user);
        } else if (user) {
                int r = by_name(user, &uid, f);
                if (r < 0)
                        return r;
                reason = ACCOUNT_NAMED;
        } else if (sudo && parse_u64(sudo, UID_VALID_MAX, &number) >= 0 && number > 0) {
                uid = (uid_t) number;
                reason = ACCOUNT_SUDO;
        } else if (project >= 0 && fstat(project, &st) >= 0 && st.st_uid != 0) {
                uid = st.st_uid;
                reason = ACCOUNT_PROJECT;
        } else {
                uid = nobody();
                reason = ACCOUNT_NOBODY;
        }
        int r = identity_of(uid, ret);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "uid %u cannot be taken on for a session: %s", uid, strerror(-r));
        *ret_reason = reason;
        return 0;
}

/* As that account, in a process of its own that holds nothing of ours. 0, or the errno that `test` found. */
static int try_as(const Identity *i, int (*test)(int fd), int fd) {
        int status;

        pid_t pid = fork();
        if (pid < 0)
                return -errno;
        if (pid == 0) {
                (void) fd_close_all_except(3, &fd, fd >= 0 ? 1 : 0);
                int r = identity_become(i);
                _exit(r < 0 ? 200 : MIN(-test(fd), 199));
        }
        while (waitpid(pid, &status, 0) < 0)
                if (errno != EINTR)
                        return -errno;
        if (!WIFEXITED(status))
                return -EIO;
        return WEXITSTATUS(status) == 200 ? -EPERM : -WEXITSTATUS(status);
}

static int test_nothing(_unused_ int fd) {
        return 0;
}

static int test_directory(int fd) {
        return faccessat(fd, ".", R_OK | W_OK | X_OK, 0) < 0 ? -errno : 0;
}

int account_check_change(const Identity *i, Fault *f) {
        if (i->uid == geteuid() || try_as(i, test_nothing, -EBADF) >= 0)
                return 0;
        return fault_set(f, ERROR_SETUP,
                         "uid 0 never runs a session, and it cannot become uid %u (%s) here: it lacks CAP_SETUID and CAP_SETGID, or this user "
                         "namespace does not map that account; start errand as an ordinary account", i->uid, i->name);
}

int account_check_project(const Identity *i, int project, const char *path, Fault *f) {
        int r = account_check_change(i, f);
        if (r < 0)
                return r;
        r = try_as(i, test_directory, project);
        if (r >= 0)
                return 0;
        return fault_set(f, ERROR_SETUP,
                         "account %s (uid %u), which the session would run as, cannot read and write the project %s: %s; %s", i->name,
                         i->uid, path, strerror(-r),
                         geteuid() == 0 ? "give it the directory (chown), or name its owner with --account" : "choose a directory that it can change");
}

/* Lines of /proc/self/uid_map: INSIDE OUTSIDE COUNT. */
static bool is_mapped(const char *map, uid_t uid) {
        for (const char *line = map; line && *line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL) {
                unsigned inside, outside, count;
                if (sscanf(line, "%u %u %u", &inside, &outside, &count) == 3 && uid >= inside && uid - inside < count)
                        return true;
        }
        return false;
}

static bool has_process(uid_t uid) {
        DIR *d = opendir("/proc");
        bool found = false;
        struct stat st;

        if (!d)
                return true;
        for (struct dirent *e; !found && (e = readdir(d));)
                found = ascii_digit(e->d_name[0]) && fstatat(dirfd(d), e->d_name, &st, 0) >= 0 && st.st_uid == uid;
        closedir(d);
        return found;
}

static bool is_free(uid_t uid, const char *map, const uid_t *taken, size_t n_taken) {
        for (size_t i = 0; i < n_taken; i++)
                if (taken[i] == uid)
                        return false;
        return is_mapped(map, uid) && !getpwuid(uid) && !getgrgid((gid_t) uid) && !has_process(uid);
}

int account_unused(const uid_t *taken, size_t n_taken, Identity *ret) {
        _cleanup_free_ char *map = NULL;
        size_t size;

        int r = read_file_full("/proc/self/uid_map", 65536, &map, &size);
        if (r < 0)
                return r;
        /* Below that range only where a user namespace maps no more. */
        for (uid_t uid = UNUSED_UID_LAST; uid >= 1000; uid--) {
                if (uid == UNUSED_UID_FIRST - 1)
                        uid = 59999;
                if (is_free(uid, map, taken, n_taken)) {
                        *ret = (Identity){.uid = uid, .gid = (gid_t) uid, .name = "errand-broker", .home = "/"};
                        return 0;
                }
        }
        return -EUSERS;
}
