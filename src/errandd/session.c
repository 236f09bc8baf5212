/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/disk-work.h"
#include "errandd/ingest.h"
#include "errandd/session-run.h"
#include "shared/event-id.h"

#define TRANSCRIPT_READ_MAX (1024U * 1024U)
#define SPOOL_AGAIN 2U /* looks */

int session_new(Manager *m, SessionRecord *record, Session **ret) {
        _cleanup_free_ Session *s = calloc(1, sizeof(Session));

        if (!s)
                return -ENOMEM;
        *s = (Session){.manager = m, .record = record, .project = -EBADF, .stdio = {-EBADF, -EBADF, -EBADF}};
        int r = manager_add(m, s);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(s);
        return 0;
}

Session *session_free(Session *s) {
        if (!s)
                return NULL;
        sd_event_source_disable_unref(s->expiry);
        session_forget_grant_waits(s, false);
        session_record_free(s->record);
        grant_list_done(&s->grants);
        safe_close(s->project);
        for (size_t i = 0; i < ELEMENTSOF(s->stdio); i++)
                safe_close(s->stdio[i]);
        return mfree(s);
}

const SessionRecord *session_record(const Session *s) {
        return s->record;
}

SessionState session_state(const Session *s) {
        return (SessionState) s->record->state;
}

const char *session_waiting(const Session *s) {
        const Run *run = s->run;

        if (!run || !session_state_live(session_state(s)) || session_state(s) == SESSION_RUNNING)
                return NULL;
        if (run->broker_state == BROKER_BEGINS)
                return "its broker to start";
        if (run->shim_state == SHIM_ASKED)
                return "errand-launch to start its sandbox";
        if (session_state(s) == SESSION_STARTING && run->phase == RUN_GOES)
                return "its sandbox to be set up";
        return run->shim_state == SHIM_RUNS ? "its command to end" : "its broker to end";
}

const GrantList *session_grants(const Session *s) {
        return &s->grants;
}

bool session_may_see(const Session *s, const Caller *c) {
        return c->operator || c->uid == s->record->owner;
}

int session_open_dir(const Session *s) {
        return record_open(s->manager->records, s->record->id);
}

int session_save(Session *s) {
        _cleanup_close_ int dir = session_open_dir(s);
        int r = dir < 0 ? dir : session_record_write(dir, s->record);
        if (r < 0)
                return log_session_error_errno(r, s->record->id, "its record cannot be written: %m");
        disk_settle_record(s);
        return 0;
}

void session_keep_limits(Session *s, const Config *c) {
        SessionRecord *record = s->record;

        if (record->disk_max > 0)
                return;
        record->disk_max = c->sandbox.disk;
        record->disk_check = c->sandbox.disk_check;
        record->idle_limit = c->timeouts.idle;
        record->grace_period = c->sandbox.grace_period;
}

void session_touch(Session *s) {
        s->changed = true;
        manager_schedule(s->manager);
}

/* The last line of a run says how it ended: the record knows it by then. */
static void log_state(const Session *s, SessionState state) {
        static const char *const events[_SESSION_STATE_MAX] = {
                [SESSION_RUNNING] = EVENT_SESSION_STARTED, [SESSION_STOPPED] = EVENT_SESSION_ENDED, [SESSION_FAILED] = EVENT_SESSION_FAILED};
        const SessionRecord *record = s->record;
        bool over = state == SESSION_STOPPED || state == SESSION_FAILED;
        const char *word = session_state_to_string(state), *reason = over ? record->exit_reason : NULL;
        const LogContext about = {.session = record->id, .message_id = events[state], .project = record->project, .reason = reason};

        if (reason)
                log_with(LOG_LEVEL_INFO, &about, "%s: %s, exit code %llu", word, reason, (unsigned long long) record->exit_status);
        else
                log_with(LOG_LEVEL_INFO, &about, "%s", word);
}

int session_set_state(Session *s, SessionState state) {
        SessionState before = session_state(s);

        if (!session_state_may_move(before, state)) {
                log_session_error(s->record->id, "may not go from %s to %s", session_state_to_string(before), session_state_to_string(state));
                return -EINVAL;
        }
        s->record->state = (int) state;
        int r = session_save(s);
        if (r < 0 && state == SESSION_STARTING) {
                s->record->state = (int) before; /* nothing was begun that the disk does not know of */
                return r;
        }
        log_state(s, state);
        session_touch(s);
        return 0;
}

void session_tell_changed(Session *s) {
        const Observer *o = &s->manager->observer;

        if (s->changed && o->session_changed) {
                s->changed = false;
                o->session_changed(s, o->userdata);
        }
}

static const char *notice_event(const char *kind) {
        static const struct {
                const char *kind, *event;
        } events[] = {
                {"egress", EVENT_HOST_REFUSED},   {"denied-summary", EVENT_HOST_REFUSED}, {"broker", EVENT_BROKER_LOST}, {"tampering", EVENT_TAMPERING},
                {"scope", EVENT_SCOPE_STOPPED},   {"receipts", EVENT_RECEIPTS_MISSING},   {"disk", EVENT_DISK_BUDGET},
                {"idle", EVENT_SESSION_IDLE},
        };

        for (size_t i = 0; i < ELEMENTSOF(events); i++)
                if (streq(events[i].kind, kind))
                        return events[i].event;
        return NULL;
}

_printf_(4, 0) static void session_notice_valist(Session *s, const char *kind, const char *host, const char *format, va_list ap) {
        const LogContext about = {.session = s->record->id, .message_id = notice_event(kind), .project = s->record->project, .host = host, .reason = kind};
        const Observer *o = &s->manager->observer;
        _cleanup_free_ char *text = string_format_list(format, ap);

        if (!text)
                return;
        log_with(LOG_LEVEL_INFO, &about, "%s: %s", kind, text);
        if (o->session_notice)
                o->session_notice(s, kind, text, o->userdata);
}

void session_notice(Session *s, const char *kind, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        session_notice_valist(s, kind, NULL, format, ap);
        va_end(ap);
}

void session_notice_host(Session *s, const char *kind, const char *host, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        session_notice_valist(s, kind, host, format, ap);
        va_end(ap);
}

static int on_grant_used(const char *session, uint32_t number, usec_t used, void *userdata) {
        Session *s = manager_find(userdata, session);
        return s ? session_grant_was_used(s, number, used) : 0;
}

static void on_warning(const char *text, _unused_ void *userdata) {
        log_warning("%s", text);
}

int session_ingest(Session *s, bool final) {
        const IngestHandler handler = {.grant_used = on_grant_used, .warn = on_warning, .userdata = s->manager};
        IngestReport report = {};

        _cleanup_close_ int dir = session_open_dir(s), spool = dir < 0 ? dir : record_open_read(dir, "receipts.spool");
        if (spool == -ENOENT)
                return 0;
        if (spool < 0)
                return log_session_warning_errno(spool, s->record->id, "its spool cannot be read: %m");
        int r = ingest_spool(s->manager->store, s->record->id, spool, final, &handler, &report);
        disk_checkpoint_store(s->manager);
        if (r == -EINPROGRESS) { /* a use of a grant is being written down first */
                s->settle = MAX(s->settle, SPOOL_AGAIN);
                manager_tick_begin(s->manager);
                return 0;
        }
        if (r == -ESTALE)
                session_notice(s, "tampering", "the spool of receipts was made shorter; nothing more is taken from it");
        else if (r < 0)
                log_session_warning_errno(r, s->record->id, "receipts are not in the database yet (%s): %m",
                                  store_error_text(s->manager->store) ?: "");
        return r;
}

/* What needs a shim that answers. */
static int check_shim(Session *s, const char *what, Fault *f) {
        SessionState state = session_state(s);

        if (state != SESSION_RUNNING && state != SESSION_STOPPING)
                return fault_set(f, ERROR_WRONG_STATE, "session %s is %s; %s needs one that runs", s->record->id, session_state_to_string(state), what);
        if (!s->run || s->run->shim_state != SHIM_RUNS || s->run->exited)
                return fault_set(f, ERROR_WRONG_STATE, "session %s is ending", s->record->id);
        if (!s->run->shim)
                return fault_set(f, ERROR_WRONG_STATE, "the shim of session %s cannot be reached at the moment, and errandd goes on trying; ask again in a while",
                                 s->record->id);
        return 0;
}

/* Who waits for an answer of its shim's, which may come when the session has gone. */
typedef struct Asked {
        char id[SESSION_ID_MAX + 1];
        Manager *manager;
        Done done;
        void *userdata;
} Asked;

static Asked *asked_new(const Session *s, Done done, void *userdata) {
        Asked *a = calloc(1, sizeof(Asked));

        if (!a)
                return NULL;
        *a = (Asked){.manager = s->manager, .done = done, .userdata = userdata};
        (void) snprintf(a->id, sizeof(a->id), "%s", s->record->id);
        return a;
}

/* r: whether the shim could be asked. */
static int asked_begun(Asked *a, int r, Fault *f) {
        if (r >= 0)
                return 0;
        (void) fault_set(f, ERROR_SETUP, "session %s cannot be reached: %s", a->id, strerror(-r));
        free(a);
        return r;
}

/* fd: taken. */
static void asked_answer(Asked *a, const char *problem, int fd) {
        Session *s = manager_find(a->manager, a->id);
        Fault f = {};

        if (problem)
                (void) fault_set(&f, ERROR_WRONG_STATE, "session %s: %s", a->id, problem);
        if (s)
                a->done(s, problem ? &f : NULL, fd, a->userdata);
        else
                safe_close(fd);
        fault_done(&f);
        free(a);
}

static void on_unasked(void *userdata) {
        asked_answer(userdata, "it is ending", -EBADF);
}

#define BROKEN "errandd's connection to its shim broke, and whether that was done is not known; see how the session is, and ask again"

static void on_asked(Message *m, const char *problem, void *userdata) {
        asked_answer(userdata, m ? problem : BROKEN, -EBADF);
}

static void on_attached(Message *m, const char *problem, void *userdata) {
        int fd = m && !problem ? message_take_fd(m, "terminal") : -EBADF;

        asked_answer(userdata, fd >= 0 ? NULL : !m ? BROKEN : problem ?: "its terminal was not passed on", fd < 0 ? -EBADF : fd);
}

int session_kill(Session *s, int signal, Done done, void *userdata, Fault *f) {
        if (signal < 1 || signal > SIGRTMAX)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "%d is not the number of a signal", signal);
        int r = check_shim(s, "a signal", f);
        if (r < 0)
                return r;
        Asked *a = asked_new(s, done, userdata);
        if (!a)
                return fault_set(f, ERROR_SETUP, "out of memory");
        return asked_begun(a, shim_client_signal(s->run->shim, signal, on_asked, on_unasked, a), f);
}

int session_attach(Session *s, Done done, void *userdata, Fault *f) {
        if (!s->record->interactive)
                return fault_set(f, ERROR_WRONG_STATE, "session %s has no terminal: it was not created as an interactive one", s->record->id);
        int r = check_shim(s, "attaching", f);
        if (r < 0)
                return r;
        Asked *a = asked_new(s, done, userdata);
        if (!a)
                return fault_set(f, ERROR_SETUP, "out of memory");
        return asked_begun(a, shim_client_attach(s->run->shim, on_attached, on_unasked, a), f);
}

int session_resize(Session *s, unsigned rows, unsigned columns, Done done, void *userdata, Fault *f) {
        if (rows < 1 || rows > UINT16_MAX || columns < 1 || columns > UINT16_MAX)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "%u rows and %u columns are no size of a terminal", rows, columns);
        if (!s->record->interactive)
                return fault_set(f, ERROR_WRONG_STATE, "session %s has no terminal", s->record->id);
        int r = check_shim(s, "resizing", f);
        if (r < 0)
                return r;
        Asked *a = asked_new(s, done, userdata);
        if (!a)
                return fault_set(f, ERROR_SETUP, "out of memory");
        return asked_begun(a, shim_client_resize(s->run->shim, rows, columns, on_asked, on_unasked, a), f);
}

int session_read_transcript(Session *s, uint64_t offset, size_t max, char **ret, size_t *ret_size, uint64_t *ret_next, Fault *f) {
        size_t room = MIN(max, (size_t) TRANSCRIPT_READ_MAX), size = 0;

        if (offset > INT64_MAX - room)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "no transcript is that long");
        _cleanup_free_ char *text = malloc(room + 1);
        if (!text)
                return fault_set(f, ERROR_STORAGE, "out of memory");
        _cleanup_close_ int dir = session_open_dir(s), fd = dir < 0 ? dir : record_open_read(dir, "transcript");
        if (fd < 0 && (dir < 0 || fd != -ENOENT))
                return fault_set(f, ERROR_STORAGE, "the transcript of session %s cannot be read: %s", s->record->id, strerror(-fd));
        while (fd >= 0 && size < room) {
                ssize_t n = pread(fd, text + size, room - size, (off_t) (offset + size));
                if (n < 0 && errno == EINTR)
                        continue;
                if (n < 0)
                        return fault_set(f, ERROR_STORAGE, "the transcript of session %s cannot be read: %s", s->record->id, strerror(errno));
                if (n == 0)
                        break;
                size += (size_t) n;
        }
        text[size] = 0;
        *ret = TAKE_PTR(text);
        *ret_size = size;
        *ret_next = offset + size;
        return 0;
}
