/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "basic/text.h"
#include "errandd/mode.h"
#include "errandd/paths.h"

static const Mode system_mode = {
        .config = CONFIG_SYSTEM, .name = "system", .units = true, .project_names = true, .payload = "errand-agent",
        .described = "/etc/errand/sessions.d", .shims = "shim",
        .own = 02750, .broker = 02750, .state = 02770,
};

static const Mode user_mode = {
        .config = CONFIG_USER, .name = "user", .units = true, .session_sockets = true, .shims = "shim", .top = 0700, .own = 0700, .broker = 0700, .state = 0700,
};

/* An ordinary account's are nobody else's business. */
static const Mode embedded_mode = {
        .config = CONFIG_EMBEDDED, .name = "embedded", .shims = "embedded-shim", .top = 0700, .own = 0700, .broker = 0700, .state = 0700,
};

/* Root's are gone through by the accounts of payloads. */
static const Mode embedded_root_mode = {
        .config = CONFIG_EMBEDDED, .name = "embedded", .changes_account = true, .shims = "embedded-shim", .top = 0711, .own = 0711, .broker = 0711, .state = 0700,
};

const Mode *mode_of(ConfigMode config, uid_t uid) {
        switch (config) {
        case CONFIG_SYSTEM:
                return &system_mode;
        case CONFIG_USER:
                return &user_mode;
        case CONFIG_EMBEDDED:
                break;
        }
        return uid == 0 ? &embedded_root_mode : &embedded_mode;
}

int mode_decide_account(const Mode *m, const char *user, int project, Identity *ret, AccountReason *ret_reason, Fault *f) {
        if (!m->payload)
                return account_decide(user, project, ret, ret_reason, f);
        if (user && !streq(user, m->payload))
                return fault_set(f, ERROR_NOT_PERMITTED, "user: every session runs as %s here", m->payload);
        int r = identity_by_name(m->payload, ret);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "the account %s, which sessions run as, %s; systemd-sysusers makes it", m->payload,
                                 r == -ENOENT ? "is not there" : r == -EPERM ? "must not be root or errandd's own" : "cannot be looked up");
        *ret_reason = ACCOUNT_NAMED;
        return 0;
}

/* By its bits: it is another account's to try. One with an access list is let go on, and bailey has the last word. */
static int check_bits(const Identity *i, int project, Fault *f) {
        _cleanup_free_ char *path = NULL;
        struct stat st;

        int r = fstat(project, &st) < 0 ? -errno : path_of_fd(project, &path);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "the project cannot be looked at: %s", strerror(-r));
        unsigned shift = st.st_uid == i->uid ? 6 : st.st_gid == i->gid ? 3 : 0;
        if (((st.st_mode >> shift) & 07) == 07 || fgetxattr(project, "system.posix_acl_access", NULL, 0) > 0)
                return 0;
        return fault_set(f, ERROR_SETUP,
                         "account %s (uid %u), which sessions run as, cannot read and write the project %s, which belongs to uid %u; let root "
                         "run: chown -R %s: %s", i->name, i->uid, path, st.st_uid, i->name, path);
}

int mode_check_project(const Mode *m, const Identity *i, int project, const char *path, Fault *f) {
        return m->payload ? check_bits(i, project, f) : account_check_project(i, project, path, f);
}

static int make(const char *name, int at, mode_t mode, const Identity *payload) {
        return paths_make_dir(at, name, mode, geteuid(), mode & S_ISGID ? payload->gid : getegid());
}

int mode_open_own(const Mode *m, int state_fd, const char *id, const Identity *payload) {
        return make(id, state_fd, m->own, payload);
}

int mode_open_broker(const Mode *m, int own, const Identity *payload) {
        return make("broker", own, m->broker, payload);
}

int mode_open_state(const Mode *m, int own, const Identity *payload) {
        return m->state & S_ISGID ? make("state", own, m->state, payload) : paths_make_dir(own, "state", m->state, payload->uid, payload->gid);
}
