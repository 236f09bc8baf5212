/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/path.h"
#include "basic/text.h"
#include "errandd/paths.h"

Paths *paths_free(Paths *p) {
        if (!p)
                return NULL;
        free(p->state);
        free(p->state_named);
        free(p->runtime);
        free(p->bus);
        free(p->config);
        free(p->user);
        safe_close(p->state_fd);
        safe_close(p->runtime_fd);
        safe_close(p->log_fd);
        return mfree(p);
}

static const char *absolute_variable(const char *name) {
        const char *s = getenv(name);
        return s && s[0] == '/' ? s : NULL;
}

/* A directory of ours that nobody else can write: what is in it was put there by us. */
static bool is_ours(const char *path, uid_t uid) {
        struct stat st;
        return lstat(path, &st) >= 0 && S_ISDIR(st.st_mode) && st.st_uid == uid && !(st.st_mode & 0022);
}

static int personal_state(const char *name, char **ret) {
        const char *base = absolute_variable("XDG_STATE_HOME"), *home = absolute_variable("HOME");

        if (!base && !home)
                return -ENXIO;
        int r = base ? asprintf(ret, "%s/%s", base, name) : asprintf(ret, "%s/.local/state/%s", home, name);
        return r < 0 ? -ENOMEM : 0;
}

static int embedded_state(uid_t uid, char **ret) {
        if (uid != 0)
                return personal_state("errand-embedded", ret);
        *ret = strdup("/var/lib/errand-embedded");
        return *ret ? 0 : -ENOMEM;
}

static int embedded_runtime(uid_t uid, char **ret) {
        const char *base = absolute_variable("XDG_RUNTIME_DIR"), *tmp = absolute_variable("TMPDIR");
        int r;

        if (uid == 0)
                r = asprintf(ret, "/run/errand-embedded");
        else if (base && is_ours(base, uid))
                r = asprintf(ret, "%s/errand", base);
        else
                r = asprintf(ret, "%s/errand-%u", tmp ?: "/tmp", uid);
        return r < 0 ? -ENOMEM : 0;
}

static int settle_config(const char *config, bool machine_wide, char **ret) {
        const char *said = config ?: getenv("ERRAND_CONFIG"), *base = absolute_variable("XDG_CONFIG_HOME"), *home = absolute_variable("HOME");
        _cleanup_free_ char *path = NULL;
        int r;

        if (said && *said)
                return path_make_absolute(said, ret);
        if (machine_wide)
                r = asprintf(&path, PATHS_CONFIG_SYSTEM);
        else if (base)
                r = asprintf(&path, "%s/errand/errand.json", base);
        else if (home)
                r = asprintf(&path, "%s/.config/errand/errand.json", home);
        else
                return 0;
        if (r < 0)
                return -ENOMEM;
        /* Only what is not there counts as none: one that cannot be read is told when it is read. */
        if (access(path, F_OK) >= 0 || (errno != ENOENT && errno != ENOTDIR))
                *ret = TAKE_PTR(path);
        return 0;
}

static Paths *paths_new(ConfigMode mode) {
        Paths *p = calloc(1, sizeof(Paths));

        if (!p)
                return NULL;
        p->state_fd = p->runtime_fd = p->log_fd = -EBADF;
        p->uid = geteuid();
        p->mode = mode_of(mode, p->uid);
        return p;
}

static const char no_home[] = "neither HOME nor XDG_STATE_HOME names a directory for errand's state; set one";

int paths_embedded(const char *state_dir, const char *config, Paths **ret, Fault *f) {
        _cleanup_(paths_freep) Paths *p = paths_new(CONFIG_EMBEDDED);
        const char *said = state_dir ?: getenv("ERRAND_EMBEDDED_STATE");

        if (!p)
                return fault_set(f, ERROR_STORAGE, "out of memory");
        bool named = said && *said;
        int r = named ? path_make_absolute(said, &p->state) : embedded_state(p->uid, &p->state);
        if (r == -ENXIO)
                return fault_set(f, ERROR_STORAGE, "%s, or give --state-dir", no_home);
        if (r >= 0 && named)
                r = asprintf(&p->runtime, "%s/.run", p->state) < 0 ? -ENOMEM : 0;
        else if (r >= 0)
                r = embedded_runtime(p->uid, &p->runtime);
        if (r >= 0)
                r = asprintf(&p->bus, "%s/bus", p->runtime) < 0 ? -ENOMEM : 0;
        if (r >= 0)
                r = settle_config(config, p->uid == 0, &p->config);
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, "the state directory %s cannot be placed: %s", said ?: "", strerror(-r));
        *ret = TAKE_PTR(p);
        return 0;
}

int paths_system(const char *config, Paths **ret, Fault *f) {
        _cleanup_(paths_freep) Paths *p = paths_new(CONFIG_SYSTEM);

        if (!p)
                return fault_set(f, ERROR_STORAGE, "out of memory");
        if (p->uid == 0)
                return fault_set(f, ERROR_SETUP, "--system runs as the account errand, which errandd.service has: systemctl start errandd");
        p->state = strdup(PATHS_STATE_SYSTEM);
        p->runtime = strdup(PATHS_RUNTIME_SYSTEM);
        int r = p->state && p->runtime ? settle_config(config, true, &p->config) : -ENOMEM;
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, "the configuration cannot be placed: %s", strerror(-r));
        *ret = TAKE_PTR(p);
        return 0;
}

int paths_user(const char *config, Paths **ret, Fault *f) {
        _cleanup_(paths_freep) Paths *p = paths_new(CONFIG_USER);
        const char *base = absolute_variable("XDG_RUNTIME_DIR");

        if (!p)
                return fault_set(f, ERROR_STORAGE, "out of memory");
        if (p->uid == 0)
                return fault_set(f, ERROR_SETUP, "--user is for ordinary accounts: uid 0 never runs a session");
        if (!base || !is_ours(base, p->uid))
                return fault_set(f, ERROR_SETUP, "XDG_RUNTIME_DIR names no directory of uid %u; errandd.service of the user's manager has one: "
                                 "systemctl --user start errandd", p->uid);
        int r = personal_state("errand", &p->state);
        if (r == -ENXIO)
                return fault_set(f, ERROR_STORAGE, "%s", no_home);
        if (r >= 0)
                r = asprintf(&p->runtime, "%s/errand", base) < 0 ? -ENOMEM : 0;
        if (r >= 0)
                r = settle_config(config, false, &p->config);
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, "errand's directories cannot be placed: %s", strerror(-r));
        *ret = TAKE_PTR(p);
        return 0;
}

static int make_ancestors(const char *path) {
        _cleanup_free_ char *copy = strdup(path);

        if (!copy)
                return -ENOMEM;
        for (char *p = copy + 1; *p; p++)
                if (*p == '/') {
                        *p = 0;
                        if (mkdir(copy, 0755) < 0 && errno != EEXIST && access(copy, F_OK) < 0)
                                return -errno;
                        *p = '/';
                }
        return 0;
}

int path_of_fd(int fd, char **ret) {
        char link[64], path[PATH_MAX];

        (void) snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(link, path, sizeof(path) - 1);
        if (n < 0)
                return -errno;
        path[n] = 0;
        if (path[0] != '/' || endswith(path, " (deleted)"))
                return -ENOENT;
        *ret = strdup(path);
        return *ret ? 0 : -ENOMEM;
}

static int open_own(const Paths *p, const char *what, char **path, int *ret, Fault *f) {
        mode_t mode = p->mode->top;
        struct stat st;

        int r = mode ? make_ancestors(*path) : 0;
        if (r >= 0 && mode && mkdir(*path, mode) < 0 && errno != EEXIST)
                r = -errno;
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, "%s %s cannot be made: %s", what, *path, strerror(-r));
        _cleanup_close_ int fd = open(*path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return fault_set(f, ERROR_STORAGE, "%s %s is no directory that can be used: %s; %s", what, *path, strerror(errno),
                                 mode ? "links are not followed there" : "systemd-tmpfiles makes it");
        if (st.st_uid != p->uid && (mode || st.st_uid != 0))
                return fault_set(f, ERROR_STORAGE, "%s %s belongs to uid %u, not to uid %u; remove it or name another", what, *path, st.st_uid, p->uid);
        if (mode && (st.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
                return fault_set(f, ERROR_STORAGE, "%s %s cannot be closed to others: %s", what, *path, strerror(errno));
        if (!mode && (st.st_mode & 0022))
                return fault_set(f, ERROR_STORAGE, "%s %s can be written by others; remove that: chmod go-w %s", what, *path, *path);
        _cleanup_free_ char *real = NULL;
        r = path_of_fd(fd, &real);
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, "%s %s cannot be looked up: %s", what, *path, strerror(-r));
        free(*path);
        *path = TAKE_PTR(real);
        *ret = TAKE_FD(fd);
        return 0;
}

int paths_name_state(Paths *p, const char *directory, Fault *f) {
        if (!directory || p->mode->config == CONFIG_EMBEDDED)
                return 0;
        free(p->state);
        p->state = strdup(directory);
        p->state_named = strdup(directory);
        return p->state && p->state_named ? 0 : fault_set(f, ERROR_STORAGE, "out of memory");
}

int paths_open(Paths *p, Fault *f) {
        int r = open_own(p, "the state directory", &p->state, &p->state_fd, f);
        if (r >= 0)
                r = open_own(p, "the runtime directory", &p->runtime, &p->runtime_fd, f);
        if (r < 0 || !p->bus)
                return r;
        free(p->bus);
        if (asprintf(&p->bus, "%s/bus", p->runtime) < 0) {
                p->bus = NULL;
                return fault_set(f, ERROR_STORAGE, "out of memory");
        }
        return 0;
}

int paths_session_socket(const Paths *p, const char *id, char **ret) {
        int r = p->mode->session_sockets ? asprintf(ret, "%s/session/%s", p->runtime, id) :
                                           asprintf(ret, "%s/%s/broker/session", p->state, id);
        if (r < 0)
                *ret = NULL;
        return r < 0 ? -ENOMEM : 0;
}

int paths_open_runtime_dir(const Paths *p, const char *name) {
        if (p->mode->top)
                return paths_make_dir(p->runtime_fd, name, p->mode->top, p->uid, getegid());
        int fd = openat(p->runtime_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        return fd < 0 ? -errno : fd;
}

/* Empty, and with the mode from the first moment on: a service may be kept from setting the setgid bit, which the parent hands down. */
static int make_empty(int at, const char *name, mode_t mode) {
        mode_t mask = umask(0);
        int r = mkdirat(at, name, mode & 0777) < 0 ? -errno : 0;
        (void) umask(mask);
        return r == -EEXIST ? 0 : r;
}

int paths_make_dir(int at, const char *name, mode_t mode, uid_t uid, gid_t gid) {
        struct stat st;

        int r = make_empty(at, name, mode);
        if (r < 0)
                return r;
        _cleanup_close_ int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (st.st_uid != uid) {
                /* Only what was made just now, or is root's still, is given away. */
                if (st.st_uid != geteuid())
                        return -EPERM;
                if (fchown(fd, uid, gid) < 0)
                        return -errno;
        }
        if ((mode & S_ISGID) && st.st_gid != gid && fchown(fd, (uid_t) -1, gid) < 0)
                return -errno;
        if ((st.st_mode & 07777) != mode && fchmod(fd, mode) < 0)
                return -errno;
        return TAKE_FD(fd);
}

static int open_executable(const char *directory, const char *between, const char *name) {
        char path[PATH_MAX];

        if ((size_t) snprintf(path, sizeof(path), "%s/%s%s", directory, between, name) >= sizeof(path))
                return -ENAMETOOLONG;
        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
                return -errno;
        struct stat st;
        if (fstat(fd, &st) < 0)
                return -errno;
        return S_ISREG(st.st_mode) && (st.st_mode & 0111) ? TAKE_FD(fd) : -EACCES;
}

/* Where the build puts them, seen from the directory of another program. */
static const struct {
        const char *name, *folder;
} in_build_tree[] = {
        {"bailey", "../bailey/"}, {"errand-broker", "../broker/"}, {"errand-launch", "../launch/"}, {"errand-shim", "../shim/"},
        {"errandd", "../errandd/"},     {"errand-connect", "../connect/"},
};

static int open_beside(const char *directory, const char *name) {
        int fd = open_executable(directory, "", name);

        for (size_t i = 0; fd < 0 && i < ELEMENTSOF(in_build_tree); i++)
                if (streq(in_build_tree[i].name, name))
                        fd = open_executable(directory, in_build_tree[i].folder, name);
        return fd;
}

int paths_open_program(const char *name) {
        const char *said = absolute_variable("ERRAND_LIBEXEC");
        char self[PATH_MAX];
        int fd = -ENOENT;

        if (said) /* what was named is meant, and nothing else */
                return open_beside(said, name);
        ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
        if (n > 0) {
                self[n] = 0;
                char *slash = strrchr(self, '/');
                if (slash && slash > self) {
                        *slash = 0;
                        fd = open_beside(self, name);
                }
        }
        if (fd < 0)
                fd = open_executable(ERRAND_LIBEXEC_DIR, "", name);
        if (fd < 0)
                fd = open_executable(ERRAND_BIN_DIR, "", name);
        return fd;
}
