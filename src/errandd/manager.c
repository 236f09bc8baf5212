/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/disk-work.h"
#include "errandd/open-network.h"
#include "errandd/project.h"
#include "errandd/session-run.h"
#include "errandd/spare.h"
#include "errandd/state-lock.h"

#define TICK_USEC USEC_PER_SEC
#define PROBE_TRIES 3U /* a launcher may end, with others, at the moment that it is asked; one that always does is none */
#define PROBE_USEC (25 * USEC_PER_SEC) /* more than a launcher gives a probe */
#define END_USEC (20 * USEC_PER_SEC)   /* beyond the grace period */

sd_event *manager_event(Manager *m) {
        return m->event;
}

const Config *manager_config(Manager *m) {
        return m->config;
}

char *const *manager_report(Manager *m) {
        return m->report.lines;
}

char *const *manager_gaps(Manager *m) {
        return m->report.gaps;
}

void manager_observe(Manager *m, const Observer *o) {
        m->observer = o ? *o : (Observer){};
}

/* ---- the sessions, by id ---- */

static size_t position(Manager *m, const char *id, bool *ret_found) {
        size_t low = 0, high = m->n_sessions;

        while (low < high) {
                size_t middle = low + (high - low) / 2;
                int c = strcmp(session_record(m->sessions[middle])->id, id);
                if (c == 0) {
                        *ret_found = true;
                        return middle;
                }
                if (c < 0)
                        low = middle + 1;
                else
                        high = middle;
        }
        *ret_found = false;
        return low;
}

Session *manager_find(Manager *m, const char *id) {
        bool found;
        size_t i = position(m, id, &found);
        return found ? m->sessions[i] : NULL;
}

Session *manager_next(Manager *m, Session *after) {
        bool found = false;
        size_t i = after ? position(m, session_record(after)->id, &found) : 0;

        if (found)
                i++;
        return i < m->n_sessions ? m->sessions[i] : NULL;
}

int manager_add(Manager *m, Session *s) {
        bool found;
        size_t i = position(m, session_record(s)->id, &found);

        if (found)
                return -EEXIST;
        Session **grown = reallocarray(m->sessions, m->n_sessions + 1, sizeof(Session *));
        if (!grown)
                return -ENOMEM;
        m->sessions = grown;
        memmove(&grown[i + 1], &grown[i], (m->n_sessions - i) * sizeof(Session *));
        grown[i] = s;
        m->n_sessions++;
        return 0;
}

void manager_remove(Manager *m, Session *s) {
        bool found;
        size_t i = position(m, session_record(s)->id, &found);

        if (!found)
                return;
        m->n_sessions--;
        memmove(&m->sessions[i], &m->sessions[i + 1], (m->n_sessions - i) * sizeof(Session *));
}

size_t manager_count_live(Manager *m) {
        size_t n = 0;

        for (size_t i = 0; i < m->n_sessions; i++)
                n += session_state_live(session_state(m->sessions[i]));
        return n;
}

size_t manager_broker_uids(Manager *m, uid_t *ret, size_t max) {
        size_t n = 0;

        for (size_t i = 0; i < m->n_sessions && n < max; i++)
                if (m->sessions[i]->run && m->sessions[i]->run->broker_identity.uid != 0)
                        ret[n++] = m->sessions[i]->run->broker_identity.uid;
        return n;
}

/* ---- what happens by itself ---- */

static int on_defer(_unused_ sd_event_source *source, void *userdata) {
        Manager *m = userdata;

        for (size_t i = 0; i < m->n_sessions; i++) {
                session_tell_changed(m->sessions[i]);
                m->sessions[i]->changed = false; /* nobody observes */
        }
        return 0;
}

void manager_schedule(Manager *m) {
        (void) sd_event_source_set_enabled(m->defer, SD_EVENT_ONESHOT);
}

static bool ingest_all(Manager *m) {
        bool more = false;

        for (size_t i = 0; i < m->n_sessions; i++) {
                Session *s = m->sessions[i];
                if (session_state_live(session_state(s)))
                        (void) session_ingest(s, false);
                else if (s->settle > 0)
                        (void) session_ingest(s, --s->settle == 0);
                else
                        continue;
                more = true;
        }
        return more;
}

static int on_tick(sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Manager *m = userdata;

        if (ingest_all(m))
                (void) sd_event_source_set_time_relative(source, TICK_USEC);
        else
                (void) sd_event_source_set_enabled(source, SD_EVENT_OFF);
        return 0;
}

void manager_tick_begin(Manager *m) {
        int enabled = SD_EVENT_OFF;

        if (sd_event_source_get_enabled(m->tick, &enabled) >= 0 && enabled != SD_EVENT_OFF)
                return;
        (void) sd_event_source_set_time_relative(m->tick, TICK_USEC);
        (void) sd_event_source_set_enabled(m->tick, SD_EVENT_ON);
}

int manager_receipts(Manager *m, const ReceiptFilter *filter, StoredReceiptList *ret, Fault *f) {
        (void) ingest_all(m);
        int r = store_query(m->store, filter, ret);
        if (r == -ETIME)
                return fault_set(f, ERROR_LIMIT, "there are too many receipts to look through at once; name a session, or leave provider, outcome and since out");
        return r < 0 ? fault_set(f, ERROR_STORAGE, "receipts.db cannot be read: %s", store_error_text(m->store) ?: strerror(-r)) : 0;
}

/* ---- launchers ---- */

static void on_shim_exited(_unused_ const char *session, _unused_ int status, _unused_ void *userdata) {
        /* A run watches its shim by pidfd, which holds whatever becomes of launchers. */
}

static void on_scope_ended(const char *session, void *userdata) {
        Session *s = manager_find(userdata, session);

        if (s && s->run)
                run_scope_ended(s->run);
}

/* Has the launcher look after the shims of live sessions, which another launcher started. */
static void adopt_shims(Manager *m, LaunchClient *l) {
        for (size_t i = 0; i < m->n_sessions; i++) {
                Session *s = m->sessions[i];
                if (s->undone && s->record->payload == launch_client_uid(l)) {
                        s->undone = false;
                        (void) launch_client_stop(l, s->record->id);
                        continue;
                }
                _cleanup_free_ char *path = NULL, *socket = NULL;
                Identity payload;
                Fault f = {};

                if (!s->run || s->run->shim_state != SHIM_RUNS || s->record->payload != launch_client_uid(l))
                        continue;
                _cleanup_close_ int directory = -EBADF;
                if (session_prepare_identity(s, &payload, &f) >= 0 && manager_shim_directory(m, &payload, &directory, &path) >= 0 &&
                    asprintf(&socket, "%s/%s", path, s->record->id) >= 0)
                        (void) launch_client_adopt(l, s->record->id, socket);
                fault_done(&f);
        }
}

static void on_launcher_again(LaunchClient *l, void *userdata) {
        adopt_shims(userdata, l);
}

int manager_identity(const Manager *m, uid_t uid, Identity *ret) {
        const Identity *known = uid == m->account.uid && uid != 0 ? &m->account : NULL;

        for (size_t i = 0; !known && i < m->n_launchers; i++)
                if (launch_client_uid(m->launchers[i]) == uid)
                        known = launch_client_identity(m->launchers[i]);
        if (!known && m->mode->changes_account)
                return identity_of(uid, ret);
        /* Whose account sessions had once, of which nothing is asked but what its number is. */
        *ret = known ? *known : (Identity){.uid = uid, .gid = (gid_t) uid, .name = "user", .home = "/"};
        return 0;
}

int manager_launcher(Manager *m, const Identity *identity, LaunchClient **ret, Fault *f) {
        static const LaunchHandler handler = {.shim_exited = on_shim_exited, .scope_ended = on_scope_ended, .started_again = on_launcher_again};
        LaunchHandler mine = handler;

        for (size_t i = 0; i < m->n_launchers; i++)
                if (launch_client_uid(m->launchers[i]) == identity->uid) {
                        *ret = m->launchers[i];
                        return 0;
                }
        if (m->n_launchers >= LAUNCHERS_MAX)
                return fault_set(f, ERROR_LIMIT, "sessions run as %u accounts already; errandd has a launcher for no more", LAUNCHERS_MAX);
        int r = m->mode->units ? 0 : account_check_change(identity, f);
        if (r < 0)
                return r;
        mine.userdata = m;
        r = launch_client_new(m->event, identity, m->mode->units ? m->paths->runtime_fd : -EBADF, m->paths->log_fd, &mine, &m->launchers[m->n_launchers], f);
        if (r < 0)
                return r;
        *ret = m->launchers[m->n_launchers++];
        return 0;
}

int manager_shim_directory(Manager *m, const Identity *identity, int *ret_fd, char **ret_path) {
        bool own = !m->mode->changes_account;
        char name[16];

        (void) snprintf(name, sizeof(name), "%u", identity->uid);
        _cleanup_close_ int fd = own ? fcntl(m->sockets, F_DUPFD_CLOEXEC, 3) : paths_make_dir(m->sockets, name, 0700, identity->uid, identity->gid);
        if (fd < 0)
                return own ? -errno : fd;
        if (asprintf(ret_path, "%s/%s%s%s", m->paths->runtime, m->mode->shims, own ? "" : "/", own ? "" : name) < 0) {
                *ret_path = NULL;
                return -ENOMEM;
        }
        *ret_fd = TAKE_FD(fd);
        return 0;
}

static void on_probed(Message *m, const char *problem, void *userdata) {
        Manager *manager = userdata;

        manager->probing = false;
        manager->probed = m;
        manager->probe_problem = mfree(manager->probe_problem);
        if (!problem && json_get_strv(message_object(m), "gaps", &manager->probed_gaps) < 0)
                problem = "the launcher's answer was not understood";
        if (!problem && manager->mode->units) {
                (void) json_get_bool(message_object(m), "scopes", &manager->scopes);
                (void) json_get_strv(message_object(m), "controllers", &manager->controllers);
        }
        if (problem)
                manager->probe_problem = strdup(problem);
}

/* Waits: nothing is served before it is known what is enforced here. */
static int probe(Manager *m, Fault *f) {
        static const char unanswered[] = "the launcher did not answer a probe in time";
        usec_t until = now_monotonic() + PROBE_USEC;
        LaunchClient *launcher;

        int r = manager_launcher(m, &m->account, &launcher, f);
        if (r < 0)
                return r;
        m->probe_problem = strdup(unanswered);
        for (unsigned tries = 0; r >= 0 && !m->probed && now_monotonic() < until;) {
                if (!m->probing && tries == PROBE_TRIES)
                        break;
                if (!m->probing && launch_client_probe(launcher, on_probed, m) >= 0) {
                        m->probing = true;
                        tries++;
                }
                r = sd_event_run(m->event, until - MIN(now_monotonic(), until));
        }
        return r < 0 ? fault_set(f, ERROR_SETUP, "the backend cannot be probed: %s", strerror(-r)) : 0;
}

static int make_report(Manager *m) {
        _cleanup_strv_free_ char **network = NULL, **gaps = NULL;
        Report report;

        int r = open_network_add_gaps(&m->config->sandbox, &network);
        if (r >= 0)
                r = strv_extend_list(&gaps, m->probed_gaps);
        if (r >= 0)
                r = strv_extend_list(&gaps, network);
        if (r < 0)
                return r;
        r = report_build(&(ReportInput){
                .config = m->config,
                .mode = m->mode->config,
                .probe_problem = m->probe_problem,
                .warnings = m->lookup_warnings,
                .gaps = gaps,
                .scopes = m->scopes,
                .controllers = m->controllers,
                .shared_account = !m->mode->changes_account && !m->mode->payload && m->config->sandbox.egress.mode != EGRESS_OPEN,
                .account = m->mode->changes_account || m->mode->payload ? m->account.name : NULL,
                .one_account = m->mode->payload != NULL,
        }, &report);
        if (r < 0)
                return r;
        report_done(&m->report);
        m->report = report;
        strv_free(m->network_gaps);
        m->network_gaps = TAKE_PTR(network);
        return 0;
}

static void on_looked_up(char **warnings, void *userdata) {
        Manager *m = userdata;

        m->lookup = provider_lookup_free(m->lookup);
        strv_free(m->lookup_warnings);
        m->lookup_warnings = warnings;
        if (make_report(m) < 0)
                log_error("out of memory for the report; it stays as it was");
}

static void look_up_providers(Manager *m) {
        m->lookup = provider_lookup_free(m->lookup);
        if (m->lookup_warnings) { /* of what was configured before */
                m->lookup_warnings = strv_free(m->lookup_warnings);
                (void) make_report(m);
        }
        int r = provider_lookup_start(m->event, m->config, on_looked_up, m, &m->lookup);
        if (r < 0)
                log_warning_errno(r, "nobody can look whether the providers resolve, ignoring: %m");
}

int manager_take_config(Manager *m, Config *c, Fault *f) {
        Config *before = m->config;

        m->config = c;
        int r = make_report(m);
        if (r < 0) {
                m->config = before;
                return fault_set(f, ERROR_CONFIGURATION, "out of memory");
        }
        config_free(before);
        log_info("the configuration was read again");
        turns_limit(&m->turns, c->limits.concurrent_turns, c->limits.queue_length);
        spare_renew(m);
        look_up_providers(m);
        return 0;
}

/* ---- begin and end ---- */

static int open_store(Manager *m, Fault *f) {
        _cleanup_free_ char *problem = NULL;

        int r = store_open(m->paths->state, &m->store, &problem);
        if (r > 0)
                log_warning("%s", problem ?: "receipts.db was damaged and begun anew");
        return r < 0 ? fault_set(f, ERROR_STORAGE, "receipts.db in %s cannot be opened: %s", m->paths->state, strerror(-r)) : 0;
}

static int open_runtime(Manager *m, const char *name, int *ret, Fault *f) {
        int fd = paths_open_runtime_dir(m->paths, name);
        if (fd < 0)
                return fault_set(f, ERROR_STORAGE, "the directory %s in %s cannot be %s: %s", name, m->paths->runtime, m->mode->top ? "made" : "opened", strerror(-fd));
        *ret = fd;
        return 0;
}

/* Checked when it starts, so that nobody's session is the first to meet it. */
static int open_projects(Manager *m, Fault *f) {
        _cleanup_close_ int root = project_root_open(m->config->project_root, m->paths->state, f);
        if (root < 0)
                return root;
        m->owners = project_owners_open(m->paths->state_fd);
        return m->owners < 0 ? fault_set(f, ERROR_STORAGE, "whose projects are whose cannot be kept in %s: %s", m->paths->state, strerror(-m->owners)) : 0;
}

static int open_places(Manager *m, Fault *f) {
        _cleanup_close_ int sessions = -EBADF;

        m->lock = state_lock(m->paths->state_fd);
        if (m->lock == -EBUSY)
                return fault_set(f, ERROR_WRONG_STATE, "another errandd (pid %d) serves %s", (int) state_lock_holder(m->paths->state_fd), m->paths->state);
        if (m->lock < 0)
                return fault_set(f, ERROR_STORAGE, "%s cannot be locked: %s", m->paths->state, strerror(-m->lock));
        m->records = record_root_open(m->paths->state_fd);
        if (m->records < 0)
                return fault_set(f, ERROR_STORAGE, "the records in %s cannot be opened: %s", m->paths->state, strerror(-m->records));
        int r = open_runtime(m, m->mode->shims, &m->sockets, f);
        if (r >= 0 && m->mode->units)
                r = open_runtime(m, "broker", &m->broker_sockets, f);
        if (r >= 0 && m->mode->session_sockets)
                r = open_runtime(m, "session", &sessions, f);
        return r >= 0 && m->mode->project_names ? open_projects(m, f) : r;
}

/* What an earlier errandd left is found before anybody can ask for it. */
static int begin(Manager *m, Fault *f) {
        LaunchClient *launcher;
        AccountReason reason;

        int r = open_places(m, f);
        if (r >= 0)
                r = mode_decide_account(m->mode, m->paths->user, -EBADF, &m->account, &reason, f);
        if (r >= 0)
                r = open_store(m, f);
        if (r >= 0)
                r = manager_load(m, f);
        if (r >= 0)
                r = probe(m, f);
        if (r >= 0 && m->mode->units) {
                r = manager_launcher(m, &m->account, &launcher, f);
                if (r >= 0)
                        adopt_shims(m, launcher);
        }
        return r;
}

static int add_timers(Manager *m) {
        int r = sd_event_add_defer(m->event, &m->defer, on_defer, m);
        if (r >= 0)
                r = sd_event_source_set_enabled(m->defer, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_add_time_relative(m->event, &m->tick, CLOCK_MONOTONIC, TICK_USEC, 100 * USEC_PER_MSEC, on_tick, m);
        return r < 0 ? r : sd_event_source_set_enabled(m->tick, SD_EVENT_OFF);
}

int manager_new(sd_event *event, const Paths *paths, Units *units, Config *config, Manager **ret, Fault *f) {
        _cleanup_(manager_freep) Manager *m = calloc(1, sizeof(Manager));

        if (!m)
                return fault_set(f, ERROR_SETUP, "out of memory");
        m->event = sd_event_ref(event);
        m->paths = paths;
        m->mode = paths->mode;
        m->units = units;
        m->lock = m->records = m->sockets = m->broker_sockets = m->owners = -EBADF;
        m->config = config;
        turns_limit(&m->turns, config->limits.concurrent_turns, config->limits.queue_length);
        int r = add_timers(m);
        if (r >= 0)
                r = worker_new(event, "errandd-disk", DISK_WORKS_MAX, &m->disk);
        if (r >= 0)
                r = worker_new(event, "errandd-look", LOOKUPS_MAX, &m->lookups);
        if (r < 0)
                (void) fault_set(f, ERROR_SETUP, "no timers: %s", strerror(-r));
        else
                r = begin(m, f);
        if (r >= 0) {
                r = make_report(m);
                if (r < 0)
                        (void) fault_set(f, ERROR_SETUP, "out of memory");
        }
        if (r < 0) {
                m->failed = true;
                m->config = NULL; /* the caller's still */
                return r;
        }
        look_up_providers(m);
        *ret = TAKE_PTR(m);
        return 0;
}

void manager_end(Manager *m) {
        m->ending = true;
        for (Session *s = NULL; (s = manager_next(m, s));) {
                Fault f = {};
                if (s->run)
                        (void) session_stop(s, NULL, NULL, &f);
                fault_done(&f);
        }
}

static void end_sessions(Manager *m) {
        if (manager_count_live(m) == 0)
                return;
        usec_t until = now_monotonic() + m->config->sandbox.grace_period + END_USEC;
        manager_end(m);
        for (usec_t now; manager_count_live(m) > 0 && (now = now_monotonic()) < until;)
                if (sd_event_run(m->event, until - now) < 0)
                        break;
        if (manager_count_live(m) > 0)
                log_error("%zu sessions did not end in time and are left to their launcher", manager_count_live(m));
}

Manager *manager_free(Manager *m) {
        if (!m)
                return NULL;
        turns_limit(&m->turns, 0, 0); /* what a session leaves that is let go below, it still has */
        if (!m->mode->units && !m->failed)
                end_sessions(m);
        m->observer = (Observer){};
        bool hangs = m->disk && worker_wait(m->disk, DISK_PATIENCE_USEC) < 0;
        if (hangs)
                log_error("the disk of %s does not take what is written to it; errandd leaves without waiting for it any longer", m->paths->state);
        m->disk = worker_free(m->disk);
        m->lookups = worker_free(m->lookups);
        manager_end_lookups(m);
        /* Whoever waits is told while the sessions are there. */
        for (size_t i = 0; i < m->n_sessions; i++)
                run_leave(m->sessions[i]);
        while (m->n_launchers > 0)
                launch_client_free(m->launchers[--m->n_launchers]);
        for (size_t i = 0; i < m->n_sessions; i++)
                session_free(m->sessions[i]);
        free(m->sessions);
        spare_free(m->spare);
        sd_event_source_disable_unref(m->defer);
        sd_event_source_disable_unref(m->tick);
        provider_lookup_free(m->lookup);
        strv_free(m->lookup_warnings);
        report_done(&m->report);
        strv_free(m->probed_gaps);
        strv_free(m->network_gaps);
        strv_free(m->controllers);
        free(m->probe_problem);
        config_free(m->config);
        (void) (hangs ? store_leave : store_close)(m->store);
        safe_close(m->sockets);
        safe_close(m->broker_sockets);
        safe_close(m->owners);
        project_tally_done(&m->tally);
        safe_close(m->records);
        safe_close(m->lock);
        sd_event_unref(m->event);
        return mfree(m);
}
