/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <grp.h>
#include <linux/capability.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bailey/account.h"
#include "basic/io.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/program.h"
#include "basic/text.h"

void account_done(Account *a) {
        free(a->name);
        free(a->home);
        free(a->group_name);
        *a = (Account){};
}

#define ACCOUNTS_SIZE_MAX (1024U * 1024U) /* more accounts than that come from a directory service */

/* uid_t's last value means "no uid" to setresuid(2). */
#define UID_VALID_MAX (UINT32_MAX - 1U)

#define GETENT "/usr/bin/getent"
#define GETENT_SIZE_MAX (256U * 1024U) /* a group's line names all its members */

/* What account and group files say of a name or number. Strings are the text's. */
typedef struct Entry {
        char *text;
        const char *name, *home;
        uint32_t number, group;
} Entry;

static void entry_done(Entry *e) {
        free(e->text);
        *e = (Entry){};
}

/* The line of e->text about `name`, or without one about `number`. False, and nothing kept, for what is not in it in the usual form. */
static bool entry_find(Entry *e, const char *name, uint32_t number, bool account) {
        for (char *line = e->text, *next; line && *line; line = next) {
                char *field[7] = {line};
                size_t n = 1;
                uint64_t id, group = 0;

                next = strchr(line, '\n');
                if (next)
                        *next++ = 0;
                for (char *p = line; n < ELEMENTSOF(field) && (p = strchr(p, ':'));) {
                        *p++ = 0;
                        field[n++] = p;
                }
                if (n < (account ? 7U : 4U) || !*line || parse_u64(field[2], UINT32_MAX, &id) < 0 ||
                    (name ? !streq(line, name) : id != number) || (account && parse_u64(field[3], UINT32_MAX, &group) < 0))
                        continue;
                e->name = line;
                e->home = account ? field[5] : NULL;
                e->number = (uint32_t) id;
                e->group = (uint32_t) group;
                return true;
        }
        entry_done(e);
        return false;
}

/* Nearly every account stands in the file, and one read finds it. */
static bool entry_read(const char *path, const char *name, uint32_t number, bool account, Entry *e) {
        return read_file_full(path, ACCOUNTS_SIZE_MAX, &e->text, NULL) >= 0 && entry_find(e, name, number, account);
}

#define EXIT_NOT_FOUND 2 /* getent(1) */

/* What getent says, which asks in all ways that this system has. -ENOENT: it knows of none; -ENOPKG: there is no such program. */
static int ask(const char *database, const char *key, char **ret) {
        const char *const arguments[] = {GETENT, "--", database, key, NULL};
        _cleanup_free_ char *text = malloc(GETENT_SIZE_MAX);

        if (!text)
                return log_oom();
        int r = program_run(-EBADF, arguments, "", -1, text, GETENT_SIZE_MAX);
        if (r != 0)
                return r < 0 ? r : r == EXIT_NO_PROGRAM ? -ENOPKG : r == EXIT_NOT_FOUND ? -ENOENT : -EIO;
        *ret = TAKE_PTR(text);
        return 0;
}

/* 1, 0 when there is none as far as this system can tell, or a negative errno: whether there is one is not known. */
static int entry_ask(const char *name, uint32_t number, bool account, Entry *e) {
        char key[16];

        (void) snprintf(key, sizeof(key), "%u", number);
        int r = ask(account ? "passwd" : "group", name ?: key, &e->text);
        if (r < 0)
                return r == -ENOENT || r == -ENOPKG ? 0 : r;
        return entry_find(e, name, number, account);
}

static int find_account(const char *name, uid_t uid, Entry *e) {
        return entry_read("/etc/passwd", name, uid, true, e) ? 1 : entry_ask(name, uid, true, e);
}

/* A number that is no account's is no group's either, as far as anybody needs to know. */
static bool find_group(gid_t gid, bool known, Entry *e) {
        return entry_read("/etc/group", NULL, gid, false, e) || (known && entry_ask(NULL, gid, false, e) > 0);
}

static int fill(Account *a, uid_t uid, gid_t fallback_gid, bool *ret_known) {
        _cleanup_(entry_done) Entry entry = {}, group = {};

        int r = find_account(NULL, uid, &entry);
        /* Only root takes groups by it. */
        if (r < 0 && getuid() == 0)
                return log_error_errno(r, "Failed to ask " GETENT " for uid %u: %m; nothing was run", uid);
        bool known = r > 0;
        a->uid = uid;
        a->gid = known ? entry.group : fallback_gid;
        a->name = strdup(known ? entry.name : "user");
        a->home = strdup(known && entry.home && entry.home[0] == '/' ? entry.home : "/");
        a->group_name = strdup(find_group(a->gid, known, &group) ? group.name : "user");
        *ret_known = known;
        return a->name && a->home && a->group_name ? 0 : log_oom();
}

static int find_user(const char *user, uid_t *ret) {
        _cleanup_(entry_done) Entry entry = {};
        uint64_t number;

        if (entry_read("/etc/passwd", user, 0, true, &entry))
                *ret = entry.number;
        else if (parse_u64(user, UID_VALID_MAX, &number) >= 0)
                *ret = (uid_t) number;
        else {
                int r = entry_ask(user, 0, true, &entry);
                if (r < 0)
                        return log_error_errno(r, "--user %s: Failed to ask " GETENT " for it: %m", user);
                if (r == 0) {
                        log_error("--user %s: there is no such account", user);
                        return -ENOENT;
                }
                *ret = entry.number;
        }
        return 0;
}

bool account_is_meant(const char *user) {
        struct stat st;

        return geteuid() != 0 || user || getenv("SUDO_UID") || (stat(".", &st) >= 0 && st.st_uid != 0);
}

/* Which account root stands for. */
static int choose(const char *user, uid_t *ret_uid, gid_t *ret_gid) {
        const char *sudo = getenv("SUDO_UID");
        uint64_t number;
        struct stat st;

        if (user) {
                int r = find_user(user, ret_uid);
                *ret_gid = (gid_t) *ret_uid;
                if (r >= 0 && *ret_uid == 0) {
                        log_error("--user %s: uid 0 never runs a command; name an ordinary account", user);
                        return -EPERM;
                }
                return r;
        }
        if (sudo && parse_u64(sudo, UID_VALID_MAX, &number) >= 0 && number > 0) {
                *ret_uid = (uid_t) number;
                *ret_gid = (gid_t) number;
                return 0;
        }
        if (stat(".", &st) < 0)
                return log_error_errno(errno, "Failed to look at the working directory: %m");
        if (st.st_uid == 0) {
                log_error("uid 0 never runs a command: name an account with --user NAME, use sudo from one, "
                          "or start in a directory that belongs to one");
                return -EPERM;
        }
        *ret_uid = st.st_uid;
        /* Not a privileged group that merely owns the directory. */
        *ret_gid = st.st_gid ? st.st_gid : (gid_t) st.st_uid;
        return 0;
}

static int drop_capabilities(void) {
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2] = {};

        (void) prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
        return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

static int cannot_become(const Account *a, int error) {
        return log_error_errno(error, "uid 0 never runs a command, and it cannot become uid %u (%s) here: %m. It lacks CAP_SETUID and "
                               "CAP_SETGID, or this user namespace does not map that account; start bailey as an ordinary account",
                               a->uid, a->name);
}

/* All groups that an account with an entry is in. Logs. */
static int take_groups(const Account *a) {
        _cleanup_free_ gid_t *groups = NULL;
        _cleanup_free_ char *text = NULL;
        char *save = NULL;
        size_t n = 1;

        int r = ask("initgroups", a->name, &text);
        if (r < 0)
                return log_error_errno(r, "Failed to ask " GETENT " for the groups of %s: %m; nothing was run", a->name);
        groups = calloc(strlen(text) / 2 + 2, sizeof(gid_t));
        if (!groups)
                return log_oom();
        groups[0] = a->gid;
        /* Its name, in which there may be spaces and what looks like a group, then numbers. */
        const char *end = startswith(text, a->name);
        char *numbers = end && strchr(" \t\n", *end) ? text + strlen(a->name) : text;
        for (const char *word = strtok_r(numbers, " \t\n", &save); word; word = strtok_r(NULL, " \t\n", &save), n++) {
                uint64_t number;
                if (numbers == text || parse_u64(word, UID_VALID_MAX, &number) < 0)
                        return log_error_errno(-EBADMSG, "Failed to read the groups of %s that " GETENT " gave; nothing was run", a->name);
                groups[n] = (gid_t) number;
        }
        return setgroups(n, groups) < 0 ? cannot_become(a, errno) : 0;
}

static int become(const Account *a, bool has_entry) {
        uid_t ruid, euid, suid;
        gid_t rgid, egid, sgid;

        int r = has_entry ? take_groups(a) : setgroups(0, NULL) < 0 ? cannot_become(a, errno) : 0;
        if (r < 0)
                return r;
        if (setresgid(a->gid, a->gid, a->gid) < 0 || setresuid(a->uid, a->uid, a->uid) < 0)
                return cannot_become(a, errno);
        r = drop_capabilities();
        if (r < 0)
                return log_error_errno(r, "Failed to drop capabilities: %m");
        /* Trust what is, not what was asked for. */
        if (getresuid(&ruid, &euid, &suid) < 0 || getresgid(&rgid, &egid, &sgid) < 0 || ruid != a->uid || euid != a->uid ||
            suid != a->uid || rgid != a->gid || egid != a->gid || sgid != a->gid || setuid(0) == 0) {
                log_error("Becoming uid %u did not hold; nothing was run", a->uid);
                return -EPERM;
        }
        /* The change of uid gave /proc/self to root, and the id maps of the sandbox are written there. */
        if (prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) < 0)
                return log_error_errno(errno, "Failed to take back /proc/self: %m");
        return 0;
}

int account_settle(const char *user, Account *ret) {
        Account a = {};
        uid_t uid = getuid();
        gid_t gid = getgid();
        bool known = false;
        int r;

        if (uid != geteuid() || gid != getegid()) {
                log_error("bailey must not be installed set-user-ID or set-group-ID");
                return -EPERM;
        }
        if (uid != 0) {
                uid_t asked = uid;
                r = user ? find_user(user, &asked) : 0;
                if (r >= 0 && asked != uid) {
                        log_error("--user %s: only root can run a command as another account", user);
                        r = -EPERM;
                }
                if (r >= 0)
                        r = fill(&a, uid, gid, &known);
                a.gid = gid;
        } else {
                r = choose(user, &uid, &gid);
                if (r >= 0)
                        r = fill(&a, uid, gid, &known);
                if (r >= 0)
                        r = become(&a, known);
                a.changed = true;
        }
        if (r < 0) {
                account_done(&a);
                return r;
        }
        *ret = a;
        return 0;
}

int account_files(const Account *a, const char *home, char **ret_passwd, char **ret_group) {
        _cleanup_free_ char *passwd = NULL;

        if (strpbrk(home, ":\n"))
                home = "/nonexistent"; /* the format has no way to say it */
        bool nobody = a->uid != 65534 && !streq(a->name, "nobody"), nogroup = a->gid != 65534 && !streq(a->group_name, "nogroup");
        if (asprintf(&passwd, "root:x:0:0:root:/root:/usr/sbin/nologin\n%s:x:%u:%u::%s:/bin/sh\n%s", a->name, a->uid, a->gid, home,
                     nobody ? "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" : "") < 0) {
                passwd = NULL;
                return -ENOMEM;
        }
        if (asprintf(ret_group, "%s%s:x:%u:\n%s", a->gid ? "root:x:0:\n" : "", a->group_name, a->gid,
                     nogroup ? "nogroup:x:65534:\n" : "") < 0)
                return -ENOMEM;
        *ret_passwd = TAKE_PTR(passwd);
        return 0;
}
