/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/parse.h"
#include "basic/path.h"
#include "basic/text.h"
#include "errandd/config-check.h"
#include "errandd/paths.h"
#include "errandd/policy-writer.h"

#define ACCOUNT "errand"
#define CREDENTIALS POLICY_OWN_CONFIGURATION "/credentials"
#define GROUPS_MAX 64
#define ENTRY_MAX (64U * 1024U) /* of an account */
#define CERTIFICATES_MAX (1024U * 1024U)

typedef struct Finder {
        const Config *config;
        ConfigMode mode;
        const char *credentials;
        const struct passwd *account; /* whose rights errandd has, where root asks for it; else NULL */
        char ***list;
        int error;
} Finder;

_printf_(2, 3) static void found(Finder *f, const char *format, ...) {
        _cleanup_free_ char *text = string_format_own(format), *clean = text ? string_escape_control(text) : NULL;

        if (!clean || strv_extend(f->list, clean) < 0)
                f->error = -ENOMEM;
}

/* Into memory of its own: others look up accounts meanwhile, and getpwnam(3) would hand all of them the same. *ret_buffer, which the texts lie in, to free. */
static bool look_up(const char *name, struct passwd *ret, char **ret_buffer) {
        char *buffer = malloc(ENTRY_MAX);
        struct passwd *found = NULL;

        if (!buffer || getpwnam_r(name, ret, buffer, ENTRY_MAX, &found) != 0 || !found) {
                free(buffer);
                return false;
        }
        *ret_buffer = buffer;
        return true;
}

bool config_find_account(const char *name, uid_t *ret) {
        _cleanup_free_ char *buffer = NULL;
        struct passwd entry;
        uint64_t number;

        if (parse_u64(name, UINT32_MAX - 1, &number) >= 0) {
                *ret = (uid_t) number;
                return true;
        }
        if (!look_up(name, &entry, &buffer))
                return false;
        *ret = entry.pw_uid;
        return true;
}

static void check_operators(Finder *f) {
        uid_t uid;

        if (f->mode != CONFIG_SYSTEM)
                return;
        for (size_t i = 0; f->config->operators && f->config->operators[i]; i++)
                if (!config_find_account(f->config->operators[i], &uid))
                        found(f, "operators[%zu]: there is no account \"%s\" on this host; make it, or leave it out", i, f->config->operators[i]);
}

/* By its bits alone: the directories above it, and access lists, are not looked at. */
static bool account_reads(const struct passwd *account, const struct stat *st) {
        gid_t groups[GROUPS_MAX];
        int n = GROUPS_MAX;

        if (st->st_uid == account->pw_uid)
                return st->st_mode & 0400;
        if (getgrouplist(account->pw_name, account->pw_gid, groups, &n) < 0)
                n = MIN(n, GROUPS_MAX);
        for (int i = 0; i < n; i++)
                if (groups[i] == st->st_gid)
                        return st->st_mode & 0040;
        return st->st_mode & 0004;
}

static bool errandd_reads(Finder *f, const char *key, const char *what, const char *path) {
        struct stat st;

        if (!f->account || stat(path, &st) < 0 || account_reads(f->account, &st))
                return true;
        found(f, "%s: %s %s cannot be read by the account %s, which errandd has: chgrp %s %s; chmod g+r %s", key, what, path, ACCOUNT, ACCOUNT, path, path);
        return false;
}

/* Where errandd is not the one who asks, what systemd would give it is looked for: the files of the directory that its unit names. */
static void check_credential(Finder *f, const char *key, const char *name, SecretForm form) {
        const char *file = startswith(name, "keys_");
        _cleanup_free_ char *path = NULL, *what = NULL, *problem = NULL;

        if (!file || f->mode != CONFIG_SYSTEM)
                return; /* one of LoadCredential=, in whatever file */
        if (asprintf(&path, CREDENTIALS "/%s", file) < 0) {
                path = NULL;
                f->error = -ENOMEM;
        } else if (access(path, F_OK) < 0 && errno == ENOENT)
                found(f, "%s: there is no %s, which the systemd credential %s stands for; put the key there, with mode 0600", key, path, name);
        else if (asprintf(&what, "the systemd credential %s (%s)", name, path) < 0) {
                what = NULL;
                f->error = -ENOMEM;
        } else if (secret_file_check(what, path, form, &problem) == -EBADMSG)
                found(f, "%s: %s", key, problem);
}

static void check_secret(Finder *f, const char *key, const SecretSource *s, SecretForm form) {
        _cleanup_(secret_freep) Secret *secret = NULL;
        _cleanup_free_ char *problem = NULL;

        if (s->kind == SECRET_SOURCE_NONE)
                return;
        if (s->kind == SECRET_SOURCE_SYSTEMD_CREDENTIAL && !f->credentials) {
                check_credential(f, key, s->name, form);
                return;
        }
        if (secret_source_resolve(s, form, f->credentials, &secret, &problem) < 0)
                found(f, "%s: %s", key, problem ?: "it cannot be had");
        else if (s->kind == SECRET_SOURCE_FILE)
                (void) errandd_reads(f, key, "the secret file", s->name);
}

static void check_certificates(Finder *f, const char *key, const char *path) {
        _cleanup_free_ char *text = NULL;
        size_t size;

        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        int r = fd < 0 ? -errno : read_fd_full(fd, CERTIFICATES_MAX, &text, &size);
        if (r < 0)
                found(f, "%s: %s cannot be read: %s", key, path, strerror(-r));
        else if (!strstr(text, "-----BEGIN CERTIFICATE-----"))
                found(f, "%s: %s has no certificate in PEM in it", key, path);
        else
                (void) errandd_reads(f, key, "the file", path);
}

static void check_providers(Finder *f) {
        for (size_t i = 0; i < f->config->agent.n_providers; i++) {
                const ConfigProvider *p = &f->config->agent.providers[i];
                char key[128];

                (void) snprintf(key, sizeof(key), "agent.providers.%s.credential", p->id);
                check_secret(f, key, &p->credential, SECRET_ONE_LINE);
                (void) snprintf(key, sizeof(key), "agent.providers.%s.caFile", p->id);
                if (p->ca_file)
                        check_certificates(f, key, p->ca_file);
                if (config_provider_brokered(p) && !config_provider_url(p))
                        found(f, "agent.providers.%s: it has no baseUrl, and none is known for it; give one, or \"broker\": false", p->id);
        }
}

static void check_paths(Finder *f, const char *key, char *const *paths, bool directories) {
        struct stat st;

        for (size_t i = 0; paths && paths[i]; i++)
                if (stat(paths[i], &st) < 0)
                        found(f, "%s[%zu]: %s cannot be reached: %s", key, i, paths[i], strerror(errno));
                else if (directories && !S_ISDIR(st.st_mode))
                        found(f, "%s[%zu]: %s is no directory", key, i, paths[i]);
}

/* What a session's start refuses (session-places.c), told before there is one. */
static bool check_own(Finder *f, const char *key, size_t i, const char *path, const char *own, const char *what) {
        if (!own || !path_beneath(own, path))
                return false;
        found(f, "%s[%zu]: no session starts with it: %s holds %s, %s", key, i, path, what, own);
        return true;
}

static bool check_sources(Finder *f, const char *key, size_t i, const char *path) {
        const SecretSource *s;
        bool told = false;

        for (size_t k = 0; !told && (s = config_secret_source(f->config, k)); k++)
                told = s->kind == SECRET_SOURCE_FILE && check_own(f, key, i, path, s->name, "a key's file");
        return told;
}

static void check_extra(Finder *f, const char *key, char *const *paths) {
        check_paths(f, key, paths, false);
        for (size_t i = 0; paths && paths[i]; i++) {
                bool system = f->mode == CONFIG_SYSTEM;
                if (path_beneath(paths[i], POLICY_OWN_CONFIGURATION) || (system && path_beneath(paths[i], PATHS_RUNTIME_SYSTEM)))
                        found(f, "%s[%zu]: no session starts with it: %s is errand's own", key, i, paths[i]);
                else if (!system || (!check_own(f, key, i, paths[i], PATHS_CONFIG_SYSTEM, "errand's configuration") &&
                                     !check_own(f, key, i, paths[i], PATHS_RUNTIME_SYSTEM, "errand's sockets")))
                        (void) check_sources(f, key, i, paths[i]);
        }
}

static bool within(char *const *list, const char *path) {
        for (; list && *list; list++)
                if (path_beneath(path, *list))
                        return true;
        return false;
}

/* S202: what is named there alone leads nowhere. */
static void check_path_extra(Finder *f) {
        const ConfigSandbox *s = &f->config->sandbox;

        check_paths(f, "sandbox.pathExtra", s->path_extra, true);
        for (size_t i = 0; s->path_extra && s->path_extra[i]; i++)
                if (!within(s->policy_extra.execute, s->path_extra[i]) && !path_beneath(s->path_extra[i], "/usr"))
                        found(f, "sandbox.pathExtra[%zu]: %s is on the PATH and not granted; name it under sandbox.policyExtra.execute too", i,
                              s->path_extra[i]);
}

/* A name alone, which a session looks for on its PATH, where nothing is but what the host has. Of a path only the session can say. */
static void check_command(Finder *f) {
        static char *const usual[] = {(char *) "/usr/local/bin", (char *) "/usr/bin", (char *) "/bin", NULL};
        char *const *const lists[] = {f->config->sandbox.path_extra, usual};
        const char *name = f->config->agent.command ? f->config->agent.command[0] : NULL;

        if (!name || strchr(name, '/'))
                return;
        for (size_t i = 0; i < ELEMENTSOF(lists); i++)
                for (char *const *s = lists[i]; s && *s; s++) {
                        _cleanup_free_ char *path = NULL;

                        if (asprintf(&path, "%s/%s", *s, name) < 0) {
                                path = NULL;
                                f->error = -ENOMEM;
                        } else if (access(path, F_OK) >= 0 || (errno != ENOENT && errno != ENOTDIR)) /* what may not be looked at may be there */
                                return;
                }
        found(f, "agent.command[0]: there is no \"%s\" in /usr/local/bin, /usr/bin and the directories of sandbox.pathExtra, where sessions look for it; "
                 "install it there, or give its path", name);
}

static void check_places(Finder *f) {
        const Config *c = f->config;
        struct stat st;

        if (f->mode != CONFIG_SYSTEM)
                return;
        if (stat(c->project_root, &st) < 0)
                found(f, "projectRoot: %s cannot be reached: %s; systemd-tmpfiles --create makes the usual one", c->project_root, strerror(errno));
        else if (!S_ISDIR(st.st_mode))
                found(f, "projectRoot: %s is no directory", c->project_root);
        else if (st.st_mode & 0002)
                found(f, "projectRoot: every account can make directories in %s; remove that: chmod o-w %s", c->project_root, c->project_root);
        if (!streq(c->state_dir, PATHS_STATE_SYSTEM) && access("/etc/systemd/system/errand-broker@.socket.d", F_OK) < 0)
                found(f, "stateDir: the units keep the sockets of brokers in %s; move them with drop-ins, as errand.json(5) says, or mount another file system "
                      "there", PATHS_STATE_SYSTEM);
}

int config_add_refusals(const Config *c, char ***list) {
        Finder f = {.list = list};

        if (c->sandbox.backend != BACKEND_BAILEY)
                found(&f, "sandbox.backend: \"%s\" is not supported by this version; leave it out", backend_to_string((SandboxBackend) c->sandbox.backend));
        if (c->github.app.given)
                found(&f, "github.app: tokens of a GitHub App are not supported by this version; leave it out, and give a github.token");
        return f.error;
}

int config_add_findings(const Config *c, ConfigMode mode, const char *credentials_directory, char ***list) {
        Finder f = {.config = c, .mode = mode, .credentials = credentials_directory, .list = list};
        _cleanup_free_ char *buffer = NULL;
        struct passwd account;

        check_operators(&f);
        if (mode == CONFIG_SYSTEM && geteuid() == 0 && look_up(ACCOUNT, &account, &buffer))
                f.account = &account;
        check_places(&f);
        check_providers(&f);
        check_secret(&f, "github.token", &c->github.token, SECRET_ONE_LINE);
        check_secret(&f, "github.app.privateKey", &c->github.app.private_key, SECRET_TEXT);
        check_extra(&f, "sandbox.policyExtra.read", c->sandbox.policy_extra.read);
        check_extra(&f, "sandbox.policyExtra.write", c->sandbox.policy_extra.write);
        check_extra(&f, "sandbox.policyExtra.execute", c->sandbox.policy_extra.execute);
        check_path_extra(&f);
        check_command(&f);
        return f.error;
}
