/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Projects where they are names: found, owned, and made by the launcher, since they are the payload's. */

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/disk-work.h"
#include "errandd/project.h"
#include "errandd/manager-private.h"
#include "errandd/session.h"

#define PROJECTS_MAX 256U /* names of one account that is no operator: each stays taken when the project is over */

static int open_root(Manager *m, Fault *f) {
        return project_root_open(m->config->project_root, m->paths->state, f);
}

bool manager_project_owner(Manager *m, const char *project, uid_t *ret) {
        Fault f = {};
        uid_t owner;

        if (!m->mode->project_names || project_name_problem(project))
                return false;
        int r = project_owner(m->owners, project, &owner, &f);
        if (r < 0 && r != -ENOENT)
                log_error("%s", f.text ?: "out of memory");
        fault_done(&f);
        *ret = r < 0 ? UID_NONE : owner;
        return r != -ENOENT;
}

/* Whether it has the form that the mode wants; what to do when not. */
static int check_form(const Manager *m, const SessionOptions *o, Fault *f) {
        const char *problem = o->project ? project_name_problem(o->project) : NULL;

        if (o->project_fd >= 0 || (o->project && strchr(o->project, '/')))
                return fault_set(f, ERROR_INVALID_ARGUMENT,
                                 "a project is a name here, of a directory in %s, and no path: name one that is there, or a new one. A checkout in "
                                 "somebody's home is worked on by that account's own errandd: systemctl --user start errandd",
                                 m->config->project_root);
        if (!o->project)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "no project is named; it is a directory in %s, by its name", m->config->project_root);
        if (problem)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "the project \"%.80s\" %s", o->project, problem);
        return 0;
}

int manager_check_project(Manager *m, const Caller *caller, const SessionOptions *o, bool *ret_new, Fault *f) {
        uid_t owner;

        int r = check_form(m, o, f);
        if (r < 0)
                return r;
        r = project_owner(m->owners, o->project, &owner, f);
        if (r == -ENOENT) {
                *ret_new = true;
                return 0;
        }
        if (r < 0)
                return r;
        *ret_new = false;
        if (owner != caller->uid && o->own_project)
                return fault_set(f, ERROR_NOT_PERMITTED, "the project %s is another account's, whose files would run with what this session may do; "
                                 "name another one, or have its owner make the session", o->project);
        if (owner != caller->uid && !caller->operator && !o->others)
                return fault_set(f, ERROR_NOT_PERMITTED, "the project %s is another account's; choose another name, or have its owner make the session",
                                 o->project);
        return 0;
}

static bool has_session(Manager *m, const char *name) {
        for (size_t i = 0; i < m->n_sessions; i++)
                if (streq_ptr(session_record(m->sessions[i])->project, name))
                        return true;
        return false;
}

void manager_give_project_up(Manager *m, const char *name, uid_t owner) {
        if (has_session(m, name)) /* by another call */
                return;
        project_give_up(m->owners, name, owner);
        project_tally_done(&m->tally); /* counted anew the next time */
}

typedef struct Preparation {
        Manager *manager;
        char *name;
        uid_t owner;
        bool claimed;
        ProjectDone done;
        void *userdata;
} Preparation;

/* One that is there after all, by another call or somebody's hand, is kept: it is open to whom it was made for. */
static void give_up(const Preparation *p) {
        int fd = -EBADF;
        Fault f = {};

        if (p->claimed && manager_open_project(p->manager, p->name, &fd, &f) == -ENOENT)
                manager_give_project_up(p->manager, p->name, p->owner);
        safe_close(fd);
        fault_done(&f);
}

static void on_made(Message *m, const char *problem, void *userdata) {
        Preparation *p = userdata;
        Fault f = {};

        if (problem) {
                if (m) {
                        give_up(p);
                        (void) fault_set(&f, ERROR_SETUP, "%s", problem); /* it names the project */
                } else /* the launcher may have made it, or be about to */
                        (void) fault_set(&f, ERROR_SETUP, "the project %s cannot be made: %s", p->name, problem);
        } else
                log_info("project %s was made in %s", p->name, p->manager->config->project_root);
        (void) p->done(problem ? &f : NULL, false, p->userdata);
        fault_done(&f);
        free(p->name);
        free(p);
}

static void on_unmade(void *userdata) {
        on_made(NULL, "errandd is ending", userdata);
}

static int ask_for(Manager *m, int root, Preparation *p, Fault *f) {
        LaunchClient *launcher;

        int r = p->name ? manager_launcher(m, &m->account, &launcher, f) : fault_set(f, ERROR_SETUP, "out of memory");
        if (r < 0)
                return r;
        r = launch_client_make_project(launcher, root, p->name, p->owner, on_made, on_unmade, p);
        return r < 0 ? fault_set(f, ERROR_SETUP, "errand-launch cannot be asked for the project %s: %s", p->name, strerror(-r)) : 0;
}

int manager_make_project(Manager *m, const char *name, uid_t owner, bool claimed, ProjectDone done, void *userdata, Fault *f) {
        _cleanup_close_ int root = open_root(m, f);
        if (root < 0)
                return root;
        Preparation *p = calloc(1, sizeof(Preparation));
        if (!p)
                return fault_set(f, ERROR_SETUP, "out of memory");
        *p = (Preparation){.manager = m, .name = strdup(name), .owner = owner, .claimed = claimed, .done = done, .userdata = userdata};
        int r = ask_for(m, root, p, f);
        if (r < 0) {
                free(p->name);
                free(p);
        }
        return r;
}

int manager_open_project(Manager *m, const char *name, int *ret, Fault *f) {
        _cleanup_close_ int root = open_root(m, f);
        if (root < 0)
                return root;
        int fd = project_open(root, name, f);
        if (fd < 0)
                return fd;
        *ret = fd;
        return 0;
}

typedef struct Claim {
        struct Claim *next;
        uid_t owner;
        ProjectDone done;
        void *userdata;
} Claim;

/* It is there, or is made for its owner. */
static void complete(Manager *m, const char *name, const Claim *c) {
        _cleanup_close_ int fd = -EBADF;
        Fault f = {};

        int r = manager_open_project(m, name, &fd, &f);
        if (r == -ENOENT) {
                fault_done(&f);
                f = (Fault){};
                r = manager_make_project(m, name, c->owner, true, c->done, c->userdata, &f);
                if (r >= 0)
                        return;
        }
        if (r < 0)
                manager_give_project_up(m, name, c->owner);
        if (!c->done(r < 0 ? &f : NULL, r >= 0, c->userdata) && r >= 0) /* its client has gone, say */
                manager_give_project_up(m, name, c->owner);
        fault_done(&f);
}

static size_t count_claims(const Manager *m, uid_t owner) {
        size_t n = 0;

        for (const Claim *c = m->claims; c; c = c->next)
                n += c->owner == owner;
        return n;
}

static void remove_claim(Manager *m, const Claim *c) {
        for (Claim **at = &m->claims; *at; at = &(*at)->next)
                if (*at == c) {
                        *at = c->next;
                        return;
                }
}

static void on_claimed(Manager *m, const char *name, int error, void *userdata) {
        _cleanup_free_ Claim *c = userdata;
        Fault f = {};

        remove_claim(m, c);
        if (error == -EEXIST)
                (void) fault_set(&f, ERROR_NOT_PERMITTED, "the project %s has become another account's just now; choose another name, or have its owner make the session", name);
        else if (error < 0)
                (void) fault_set(&f, ERROR_STORAGE, "whose project %s is cannot be recorded: %s", name, strerror(-error));
        else if (project_tally_add(&m->tally, m->owners, c->owner) < 0)
                project_tally_done(&m->tally); /* counted anew the next time */
        if (error < 0)
                (void) c->done(&f, false, c->userdata);
        else
                complete(m, name, c);
        fault_done(&f);
}

int manager_claim_project(Manager *m, const Caller *caller, const char *name, ProjectDone done, void *userdata, Fault *f) {
        size_t n = 0;

        /* Together with those that are being written down. */
        int r = caller->operator ? 0 : project_tally_count(&m->tally, m->owners, caller->uid, &n);
        if (r < 0)
                return fault_set(f, ERROR_STORAGE, "how many projects are yours cannot be counted: %s", strerror(-r));
        if (!caller->operator && n + count_claims(m, caller->uid) >= PROJECTS_MAX)
                return fault_set(f, ERROR_LIMIT, "%u projects are yours already, and the names are for all; name one of them, or have root give up one that is over: "
                                 "remove it from %s, and its name from %s/.projects", PROJECTS_MAX, m->config->project_root, m->paths->state);
        Claim *c = malloc(sizeof(Claim));
        if (!c)
                return fault_set(f, ERROR_STORAGE, "out of memory");
        *c = (Claim){.owner = caller->uid, .done = done, .userdata = userdata};
        r = disk_claim_project(m, name, caller->uid, on_claimed, c);
        if (r < 0) {
                free(c);
                return fault_set(f, ERROR_STORAGE, "whose project %s is cannot be recorded: %s", name, strerror(-r));
        }
        c->next = m->claims;
        m->claims = c;
        return 0;
}
