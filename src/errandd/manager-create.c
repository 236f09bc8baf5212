/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "basic/utf8.h"
#include "errandd/config-values.h"
#include "errandd/disk-work.h"
#include "errandd/session-run.h"
#include "errandd/spare.h"

/* Of one account that is no operator. */
#define CREATED_MAX 64U /* as many as may run by default (limits.maxLiveSessions) */
#define OWNED_MAX 2048U /* eight accounts have to join to fill one GetManagedObjects (BUS_OBJECTS_MAX) */

static int open_directory(const SessionOptions *o, int *ret_fd, char **ret_path, Fault *f) {
        _cleanup_close_ int fd = -EBADF;
        _cleanup_free_ char *path = NULL;

        if (o->project_fd >= 0)
                fd = openat(o->project_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        else if (!o->project || o->project[0] != '/')
                return fault_set(f, ERROR_INVALID_ARGUMENT, "the project is a directory's absolute path in this mode");
        else
                fd = open(o->project, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOCTTY);
        if (fd < 0)
                return fault_set(f, errno == ENOENT ? ERROR_NOT_FOUND : ERROR_INVALID_ARGUMENT, "the project %s cannot be opened as a directory: %s",
                                 o->project ?: "that was passed", strerror(errno));
        int r = path_of_fd(fd, &path);
        if (r < 0)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "the project %s has no path: %s", o->project ?: "that was passed", strerror(-r));
        if (!utf8_valid(path))
                return fault_set(f, ERROR_INVALID_ARGUMENT, "the project's path is not UTF-8, and a policy cannot name it; rename the directory");
        *ret_fd = TAKE_FD(fd);
        *ret_path = TAKE_PTR(path);
        return 0;
}

/* What CreateSession is about, beside the record. */
typedef struct Place {
        int fd;       /* -EBADF: it has to be made */
        char *name;   /* as the record has it: the project's name, or the directory's path without links */
        bool unowned; /* nobody has made a session in it */
} Place;

static void place_done(Place *p) {
        safe_close(p->fd);
        free(p->name);
}

static int open_named(Manager *m, const Caller *caller, const SessionOptions *o, Place *p, Fault *f) {
        Fault missing = {};

        int r = manager_check_project(m, caller, o, &p->unowned, f);
        if (r < 0)
                return r;
        p->name = strdup(o->project);
        if (!p->name)
                return fault_set(f, ERROR_STORAGE, "out of memory");
        r = manager_open_project(m, p->name, &p->fd, &missing);
        if (r == -ENOENT && o->project_made)
                r = 0;
        else if (r < 0)
                r = fault_set(f, missing.code, "%s", missing.text ?: "out of memory");
        fault_done(&missing);
        return r;
}

/* Opened once, and held: what is put in its place later is another project. */
static int open_project(Manager *m, const Caller *caller, const SessionOptions *o, Place *p, Fault *f) {
        return m->mode->project_names ? open_named(m, caller, o, p, f) : open_directory(o, &p->fd, &p->name, f);
}

static bool covered(char *const *patterns, const char *host) {
        for (; patterns && *patterns; patterns++)
                if (host_text_covers(*patterns, host))
                        return true;
        return false;
}

static int take_allow(Manager *m, const Caller *caller, const SessionOptions *o, SessionRecord *record, Fault *f) {
        record->allow_given = o->allow_given;
        for (char *const *host = o->allow_given ? o->allow : NULL; host && *host; host++) {
                char normal[HOST_TEXT_MAX + 1];
                const char *problem = NULL;

                if (host_text_normalize(*host, HOST_TEXT_WILDCARD | HOST_TEXT_ANY, normal, &problem) < 0)
                        return fault_set(f, ERROR_INVALID_ARGUMENT, "allow: \"%.256s\" %s", *host, problem);
                if (!caller->operator && !covered(m->config->sandbox.egress.allow, normal))
                        return fault_set(f, ERROR_NOT_PERMITTED, "allow: %s is not covered by sandbox.egress.allow; an operator may name it", normal);
                if (strv_extend(&record->allow, normal) < 0)
                        return fault_set(f, ERROR_STORAGE, "out of memory");
        }
        return 0;
}

static int take_env(const Caller *caller, const SessionOptions *o, SessionRecord *record, Fault *f) {
        if (o->env && *o->env && !caller->operator)
                return fault_set(f, ERROR_NOT_PERMITTED, "env: only an operator sets variables beyond those configured");
        for (char *const *e = o->env; e && *e; e++) {
                _cleanup_free_ char *name = strndup(*e, strcspn(*e, "="));
                const char *problem = !name ? "out of memory" : !strchr(*e, '=') ? "has no '='" : check_session_variable(name);
                if (!problem && startswith(name, "BAILEY_SANDBOX"))
                        problem = "is set by the sandbox itself";
                if (problem)
                        return fault_set(f, ERROR_INVALID_ARGUMENT, "env: %.128s %s", name ?: "", problem);
        }
        return strv_extend_list(&record->env, o->env) < 0 ? fault_set(f, ERROR_STORAGE, "out of memory") : 0;
}

static int take_network(Manager *m, const Caller *caller, const SessionOptions *o, SessionRecord *record, Fault *f) {
        if (!o->network)
                return 0;
        if (!streq(o->network, "none") && !streq(o->network, "restricted"))
                return fault_set(f, ERROR_INVALID_ARGUMENT, "network: \"%.64s\" is neither \"restricted\" nor \"none\"", o->network);
        bool narrows = streq(o->network, "none") || m->config->sandbox.network == NETWORK_RESTRICTED;
        if (!caller->operator && !narrows)
                return fault_set(f, ERROR_NOT_PERMITTED, "network: only an operator gives more than the configuration does");
        return string_copy(o->network, &record->network) < 0 ? fault_set(f, ERROR_STORAGE, "out of memory") : 0;
}

static int take_command(Manager *m, const SessionOptions *o, SessionRecord *record, Fault *f) {
        char *const *command = o->command && *o->command ? o->command : m->config->agent.command;

        if (!command || !*command || !**command)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "no command is given, and the configuration has no agent.command; give one behind --: errand run -- COMMAND, errand session create -- COMMAND");
        return strv_extend_list(&record->command, command) < 0 ? fault_set(f, ERROR_STORAGE, "out of memory") : 0;
}

/* errandd's own, or the one that all sessions have: it was looked up when errandd began, and no other can be named. */
static int take_only_account(const Manager *m, const char *user, SessionRecord *record, Fault *f) {
        uint64_t number;
        bool digits = parse_u64(user, UINT32_MAX - 1, &number) >= 0;

        if (!streq(user, m->account.name) && !(digits && number == m->account.uid))
                return fault_set(f, ERROR_NOT_PERMITTED, "user: every session runs as %s (uid %u) here, and not as \"%.64s\"", m->account.name, m->account.uid, user);
        record->payload = m->account.uid;
        return 0;
}

/* Decided once and recorded; without a name it is decided when the session starts. */
static int take_user(const Manager *m, const Caller *caller, const SessionOptions *o, SessionRecord *record, Fault *f) {
        AccountReason reason;
        Identity payload;

        if (!o->user)
                return 0;
        if (!caller->operator)
                return fault_set(f, ERROR_NOT_PERMITTED, "user: only an operator names the account that a session runs as");
        if (!m->mode->changes_account)
                return take_only_account(m, o->user, record, f);
        int r = mode_decide_account(m->mode, o->user, -EBADF, &payload, &reason, f);
        if (r >= 0)
                record->payload = payload.uid;
        return r;
}

/* Who wants the streams for themselves has them: that is no conversation, unless it was asked for by name. */
static int take_protocol(Manager *m, const SessionOptions *o, SessionRecord *record, Fault *f) {
        bool streams = o->interactive || o->stdio[0] >= 0 || o->stdio[1] >= 0 || o->stdio[2] >= 0, configured = !(o->command && *o->command);
        const char *protocol = o->protocol ?: configured && !streams && m->config->agent.protocol == PROTOCOL_ACP ? "acp" : "none";

        if (!streq(protocol, "none") && !streq(protocol, "acp"))
                return fault_set(f, ERROR_INVALID_ARGUMENT, "protocol: \"%.64s\" is neither \"none\" nor \"acp\"", protocol);
        if (streq(protocol, "none"))
                return 0;
        if (streams)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "protocol \"acp\" is spoken on the command's standard input and output: leave %s out",
                                 o->interactive ? "interactive" : "stdin, stdout and stderr");
        return string_copy(protocol, &record->protocol) < 0 ? fault_set(f, ERROR_STORAGE, "out of memory") : 0;
}

static int fill_record(Manager *m, const Caller *caller, const SessionOptions *o, SessionRecord *record, Fault *f) {
        if (o->provider && !config_find_provider(m->config, o->provider))
                return fault_set(f, ERROR_INVALID_ARGUMENT, "provider: \"%.64s\" is not defined under agent.providers", o->provider);
        int r = take_command(m, o, record, f);
        if (r >= 0)
                r = take_network(m, caller, o, record, f);
        if (r >= 0)
                r = take_allow(m, caller, o, record, f);
        if (r >= 0)
                r = take_env(caller, o, record, f);
        if (r >= 0)
                r = take_user(m, caller, o, record, f);
        if (r >= 0)
                r = take_protocol(m, o, record, f);
        if (r < 0)
                return r;
        record->interactive = o->interactive;
        if (string_copy(o->provider, &record->provider) < 0 || string_copy(o->model, &record->model) < 0 ||
            string_copy(m->paths->config, &record->configuration) < 0 ||
            string_copy(backend_to_string((SandboxBackend) m->config->sandbox.backend), &record->backend) < 0)
                return fault_set(f, ERROR_STORAGE, "out of memory");
        return 0;
}

/* Who took a unit's id first would keep it from starting. Whatever is there counts, read by nobody here; its own account is whom root gave it to. */
static int check_described(const Mode *mode, const Caller *caller, const char *id, Fault *f) {
        _cleanup_free_ char *path = NULL;
        struct stat st;

        if (!mode->described || caller->operator || caller->uid == 0)
                return 0;
        if (asprintf(&path, "%s/%s.json", mode->described, id) < 0) {
                path = NULL;
                return fault_set(f, ERROR_STORAGE, "out of memory");
        }
        int r = fstatat(AT_FDCWD, path, &st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
        if (r == -ENOENT || (r >= 0 && S_ISREG(st.st_mode) && st.st_uid == caller->uid))
                return 0;
        return fault_set(f, ERROR_NOT_PERMITTED, "id: %s is kept for errand-session@%s.service, which %s describes; choose another id, or have root start that unit, "
                         "with that file the account's where it has User=", id, id, path);
}

static int check_id(const Manager *m, const Caller *caller, const char *asked, Fault *f) {
        if (asked && !session_id_valid(asked))
                return fault_set(f, ERROR_INVALID_ARGUMENT, "id: \"%.64s\" is not 1 to %u characters a-z and 0-9", asked, SESSION_ID_MAX);
        int r = asked ? check_described(m->mode, caller, asked, f) : 0;
        const Session *there = r >= 0 && asked ? manager_find((Manager *) m, asked) : NULL;

        if (there && !caller->operator && caller->uid != 0 && session_record(there)->owner != caller->uid)
                return fault_set(f, ERROR_EXISTS, "id: %s is taken; choose another id", asked);
        if (there)
                return fault_set(f, ERROR_EXISTS, "there is a session %s already; remove it (errand threads rm %s), or choose another id", asked, asked);
        return r;
}

static int make_record(Manager *m, const char *asked, char id[static SESSION_ID_MAX + 1], int *ret_dir, Fault *f) {
        (void) snprintf(id, SESSION_ID_MAX + 1, "%s", asked ?: "");
        bool spare = !asked && spare_take_id(m, id);
        int r = record_create(m->records, id, ret_dir);
        if (r == -EEXIST)
                return fault_set(f, ERROR_EXISTS, "there is a record of a session %s already; choose another id", id);
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, "the record cannot be made: %s", strerror(-r));
        /* Of a session whose record was lost: what is in its home is not for another one. */
        if (!spare && (faccessat(m->paths->state_fd, id, F_OK, AT_SYMLINK_NOFOLLOW) >= 0 || errno != ENOENT)) {
                *ret_dir = safe_close(*ret_dir);
                (void) record_remove(m->records, id);
                return fault_set(f, ERROR_EXISTS, "there is a directory of a session %s in errandd's state, without a record; choose another id, or have it moved away", id);
        }
        return 0;
}

/* One account does not take what all need: descriptors, of which a session that was not started holds four, and the places of a listing. */
static int check_count(const Manager *m, const Caller *caller, Fault *f) {
        size_t all = 0, created = 0;

        for (size_t i = 0; !caller->operator && i < m->n_sessions; i++)
                if (m->sessions[i]->record->owner == caller->uid) {
                        all++;
                        created += session_state(m->sessions[i]) == SESSION_CREATED;
                }
        if (created >= CREATED_MAX)
                return fault_set(f, ERROR_LIMIT, "%u sessions of yours were never started; start or collect some", CREATED_MAX);
        if (all >= OWNED_MAX)
                return fault_set(f, ERROR_LIMIT, "%u sessions of yours are kept; collect some that are over", OWNED_MAX);
        return 0;
}

/* Everything of the call is found good, and nothing is on disk: 0, or -EINPROGRESS when the project gets its owner, or is made, first. */
static int check_create(Manager *m, const Caller *caller, const SessionOptions *o, Place *place, SessionRecord **ret, Fault *f) {
        _cleanup_(session_record_freep) SessionRecord *record = NULL;

        if (o->interactive && (o->stdio[0] >= 0 || o->stdio[1] >= 0 || o->stdio[2] >= 0))
                return fault_set(f, ERROR_INVALID_ARGUMENT, "an interactive session has a terminal; it takes no stdin, stdout or stderr");
        int r = check_id(m, caller, o->id, f);
        if (r >= 0)
                r = check_count(m, caller, f);
        if (r >= 0)
                r = open_project(m, caller, o, place, f);
        if (r < 0)
                return r;
        r = session_record_new(o->id ?: "x", caller->uid, &record);
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, "out of memory");
        r = fill_record(m, caller, o, record, f);
        if (r >= 0 && place->unowned) { /* before it is made: two that make it at once do not both own it */
                if (!o->project_made)
                        return fault_set(f, ERROR_NOT_FOUND, "the project %s has been given up meanwhile; try again", place->name);
                r = manager_claim_project(m, caller, place->name, o->project_made, o->project_userdata, f);
                return r < 0 ? r : -EINPROGRESS;
        }
        if (r >= 0 && place->fd < 0) {
                r = manager_make_project(m, place->name, caller->uid, false, o->project_made, o->project_userdata, f);
                return r < 0 ? r : -EINPROGRESS;
        }
        if (r >= 0)
                *ret = TAKE_PTR(record);
        return r;
}

/* *record is taken on success. */
static int make_session(Manager *m, const SessionOptions *o, const char *project, SessionRecord **record, Session **ret, Fault *f) {
        _cleanup_close_ int dir = -EBADF;
        char id[SESSION_ID_MAX + 1];
        SessionRecord *mine = *record;

        int r = make_record(m, o->id, id, &dir, f);
        if (r < 0)
                return r;
        free(mine->id);
        mine->id = strdup(id);
        mine->project = strdup(project);
        r = mine->id && mine->project ? session_record_write(dir, mine) : -ENOMEM;
        if (r >= 0)
                r = session_new(m, mine, ret);
        if (r < 0) {
                (void) record_remove(m->records, id);
                return fault_set(f, ERROR_STORAGE, "the record of session %s cannot be written: %s", id, strerror(-r));
        }
        *record = NULL;
        disk_settle_record(*ret); /* not waited for: what has not run has nothing to lose by a loss of power */
        return 0;
}

int manager_create_session(Manager *m, const Caller *caller, SessionOptions *o, Session **ret, Fault *f) {
        _cleanup_(session_record_freep) SessionRecord *record = NULL;
        _cleanup_(place_done) Place place = {.fd = -EBADF};
        Session *s;

        int r = check_create(m, caller, o, &place, &record, f);
        if (r >= 0)
                r = make_session(m, o, place.name, &record, &s, f);
        if (r < 0 && o->claimed)
                manager_give_project_up(m, o->project, caller->uid);
        if (r < 0)
                return r;
        s->project = TAKE_FD(place.fd);
        s->rows = o->rows;
        s->columns = o->columns;
        for (size_t i = 0; i < ELEMENTSOF(s->stdio); i++)
                s->stdio[i] = TAKE_FD(o->stdio[i]);
        log_session_info(s->record->id, "created by uid %u in %s", caller->uid, s->record->project);
        if (m->observer.session_added)
                m->observer.session_added(s, m->observer.userdata);
        *ret = s;
        return 0;
}
