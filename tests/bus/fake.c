/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "errandd/config-check.h"
#include "fake.h"

void fault_done(Fault *f) {
        f->text = mfree(f->text);
        f->code = ERROR_NONE;
}

int fault_set(Fault *f, ErrorCode code, const char *format, ...) {
        va_list ap;

        va_start(ap, format);
        if (f->code == ERROR_NONE) {
                f->code = code;
                if (vasprintf(&f->text, format, ap) < 0)
                        f->text = NULL;
        }
        va_end(ap);
        return -EINVAL;
}

static int act(Manager *m, Fault *f) {
        m->acts++;
        if (m->fail.code == ERROR_NONE)
                return 0;
        *f = m->fail;
        m->fail = (Fault){};
        return -EIO;
}

/* Of what has no effect. */
static int look(Manager *m, Fault *f) {
        return m->unreadable ? fault_set(f, ERROR_STORAGE, "the disk cannot be read") : 0;
}

Manager *fake_manager(sd_event *event) {
        Manager *m = calloc(1, sizeof(Manager));

        m->event = event;
        (void) config_new(CONFIG_EMBEDDED, &m->config);
        (void) strv_extend(&m->report, "sandbox: bailey");
        (void) strv_extend(&m->report, "a line that is not UTF-8: \xff");
        return m;
}

static void session_done(Session *s) {
        session_record_free(s->record);
        grant_list_done(&s->grants);
        free(s);
}

Manager *fake_manager_free(Manager *m) {
        for (size_t i = 0; i < m->n_sessions; i++)
                session_done(m->sessions[i]);
        for (size_t i = 0; i < m->n_receipts; i++)
                stored_receipt_done(m->receipts + i);
        config_free(m->config);
        strv_free(m->report);
        free(m->seen_project);
        free(m->seen_command);
        free(m->seen_allow);
        free(m->seen_env);
        free(m->seen_text);
        free(m);
        return NULL;
}

Session *fake_session(Manager *m, const char *id, uid_t owner) {
        Session *s = calloc(1, sizeof(Session));
        size_t at = m->n_sessions++;

        (void) session_record_new(id, owner, &s->record);
        s->record->project = strdup("/home/somebody/\xff project");
        s->record->backend = strdup("bailey");
        s->record->created = 1700000000000000;
        s->manager = m;
        for (; at > 0 && strcmp(m->sessions[at - 1]->record->id, id) > 0; at--)
                m->sessions[at] = m->sessions[at - 1];
        m->sessions[at] = s;
        if (m->observer.session_added)
                m->observer.session_added(s, m->observer.userdata);
        return s;
}

void fake_forget(Session *s) {
        Manager *m = s->manager;
        size_t i = 0;

        while (m->sessions[i] != s)
                i++;
        memmove(m->sessions + i, m->sessions + i + 1, (--m->n_sessions - i) * sizeof(Session *));
        if (m->observer.session_removed)
                m->observer.session_removed(s->record->id, m->observer.userdata);
        session_done(s);
}

void fake_receipt(Manager *m, const char *session) {
        StoredReceipt *r = m->receipts + m->n_receipts++;

        *r = (StoredReceipt){.number = m->n_receipts, .ended = 1700000000000000, .session = strdup(session), .provider = strdup("p"),
                             .credential = strdup("KEY"), .host = strdup("api.example.com"), .method = strdup("POST"),
                             .path = strdup("/v1"), .status = 200, .up = 3, .down = 4};
}

void fake_finish(Session *s, ErrorCode code, const char *text, int fd) {
        Fault f = {.code = code, .text = (char *) text};
        Done done = s->done;
        void *userdata = s->done_userdata;
        bool collecting = s->collecting;

        s->done = NULL;
        if (collecting)
                fake_forget(s);
        done(collecting ? NULL : s, code == ERROR_NONE ? NULL : &f, fd, userdata);
}

static int begin(Session *s, Done done, void *userdata, Fault *f) {
        int r = act(s->manager, f);

        if (r < 0)
                return r;
        s->done = done;
        s->done_userdata = userdata;
        if (!s->manager->wait)
                fake_finish(s, ERROR_NONE, NULL, -EBADF);
        return 0;
}

void manager_observe(Manager *m, const Observer *o) {
        m->observer = *o;
}

sd_event *manager_event(Manager *m) {
        return m->event;
}

const Config *manager_config(Manager *m) {
        return m->config;
}

int manager_reload(Manager *m, ReloadDone done, void *userdata, Fault *f) {
        int r = act(m, f);

        if (r >= 0)
                done(NULL, userdata);
        return r;
}

int manager_check_file(Manager *m, const char *path, CheckDone done, void *userdata, Fault *f) {
        _cleanup_(config_check_done) ConfigCheck check = {};
        _cleanup_free_ char *problem = NULL;
        int r = look(m, f);

        if (r < 0)
                return r;
        _cleanup_close_ int fd = config_check_open(path, &problem);
        if (fd < 0)
                return fault_set(f, fd == -ENOENT ? ERROR_NOT_FOUND : ERROR_INVALID_ARGUMENT, "%s", problem);
        r = config_check(path, fd, CONFIG_SYSTEM, &check);
        if (r < 0)
                return fault_set(f, ERROR_CONFIGURATION, "out of memory");
        done(check.problems ?: check.findings, NULL, userdata);
        return 0;
}

char *const *manager_report(Manager *m) {
        return m->report;
}

char *const *manager_gaps(_unused_ Manager *m) {
        return NULL;
}

Session *manager_find(Manager *m, const char *id) {
        for (size_t i = 0; i < m->n_sessions; i++)
                if (streq(m->sessions[i]->record->id, id))
                        return m->sessions[i];
        return NULL;
}

Session *manager_next(Manager *m, Session *after) {
        static size_t hint; /* a loop over all stays linear */
        size_t i = 0;

        if (after) {
                i = hint < m->n_sessions && m->sessions[hint] == after ? hint : 0;
                while (m->sessions[i] != after)
                        i++;
                i++;
        }
        hint = i;
        return i < m->n_sessions ? m->sessions[i] : NULL;
}

int manager_receipts(Manager *m, const ReceiptFilter *filter, StoredReceiptList *ret, Fault *f) {
        StoredReceiptList l = {};

        m->queries++;
        if (look(m, f) < 0)
                return -EIO;
        l.receipts = calloc(m->n_receipts + 1, sizeof(StoredReceipt));
        for (size_t i = m->n_receipts; i > 0 && l.n_receipts < (filter->limit ?: STORE_QUERY_MAX); i--) {
                StoredReceipt *r = m->receipts + i - 1;

                if ((filter->before > 0 && r->number >= filter->before) || (filter->session && !streq(filter->session, r->session)) ||
                    (!filter->session && filter->sessions && !strv_contains(filter->sessions, r->session)))
                        continue;
                l.receipts[l.n_receipts] = *r;
                l.receipts[l.n_receipts].session = strdup(r->session);
                l.receipts[l.n_receipts].provider = strdup(r->provider);
                l.receipts[l.n_receipts].credential = strdup(r->credential);
                l.receipts[l.n_receipts].host = strdup(r->host);
                l.receipts[l.n_receipts].method = strdup(r->method);
                l.receipts[l.n_receipts++].path = strdup(r->path);
        }
        *ret = l;
        return 0;
}

static char *join(char *const *list) {
        char *joined = strdup("");

        for (; list && *list; list++) {
                char *longer;

                if (asprintf(&longer, "%s%s|", joined, *list) < 0)
                        abort();
                free(joined);
                joined = longer;
        }
        return joined;
}

int manager_create_session(Manager *m, const Caller *caller, SessionOptions *options, Session **ret, Fault *f) {
        int r = act(m, f);

        if (r < 0)
                return r;
        if (m->projects_wait && options->project_made) {
                m->project_made = options->project_made;
                m->project_userdata = options->project_userdata;
                return -EINPROGRESS;
        }
        free(m->seen_command);
        free(m->seen_allow);
        free(m->seen_env);
        m->seen = *options;
        free(m->seen_project);
        m->seen_project = options->project ? strdup(options->project) : NULL;
        m->seen_command = join(options->command);
        m->seen_allow = join(options->allow);
        m->seen_env = join(options->env);
        for (size_t i = 0; i < 3; i++)
                if (options->stdio[i] >= 0)
                        close(options->stdio[i]);
        *ret = fake_session(m, options->id ?: "minted", caller->uid);
        return 0;
}

const SessionRecord *session_record(const Session *s) {
        return s->record;
}

const char *session_waiting(_unused_ const Session *s) {
        return NULL;
}

SessionState session_state(const Session *s) {
        return s->state;
}

const GrantList *session_grants(const Session *s) {
        return &s->grants;
}

bool session_may_see(const Session *s, const Caller *c) {
        return c->operator || c->uid == s->record->owner;
}

int session_start(Session *s, Done done, void *userdata, Fault *f) {
        return begin(s, done, userdata, f);
}

int session_check_share(const Session *s, const Caller *caller, Fault *f) {
        return s->manager->full && !caller->operator ? fault_set(f, ERROR_LIMIT, "half of them are yours") : 0;
}

int session_stop(Session *s, Done done, void *userdata, Fault *f) {
        return begin(s, done, userdata, f);
}

int session_attach(Session *s, Done done, void *userdata, Fault *f) {
        return begin(s, done, userdata, f);
}

int session_open_stdio(Session *s, int ret[static 3], Fault *f) {
        int r = act(s->manager, f);

        for (size_t i = 0; r >= 0 && i < 3; i++)
                ret[i] = open("/dev/null", O_RDWR | O_CLOEXEC);
        return r;
}

int session_collect(Session *s, Done done, void *userdata, Fault *f) {
        s->collecting = true;
        return begin(s, done, userdata, f);
}

static int answer_at_once(Session *s, Done done, void *userdata, Fault *f) {
        int r = act(s->manager, f);

        if (r >= 0)
                done(s, NULL, -EBADF, userdata);
        return r;
}

int session_kill(Session *s, int signal, Done done, void *userdata, Fault *f) {
        s->signal = signal;
        return answer_at_once(s, done, userdata, f);
}

int session_resize(Session *s, unsigned rows, unsigned columns, Done done, void *userdata, Fault *f) {
        s->rows = rows;
        s->columns = columns;
        return answer_at_once(s, done, userdata, f);
}

int session_grant(Session *s, const Caller *caller, const char *host, const char *duration, GrantDone done, void *userdata, Fault *f) {
        const char *problem;
        const Grant *g;
        GrantClock now;
        int r = act(s->manager, f);

        if (r < 0)
                return r;
        (void) grant_clock_now(&now);
        if (grant_list_add(&s->grants, host, duration, caller->uid, &now, &g, &problem) < 0)
                return fault_set(f, ERROR_INVALID_ARGUMENT, "%s", problem);
        if (s->manager->observer.grant_added)
                s->manager->observer.grant_added(s, g, s->manager->observer.userdata);
        done(s, g, NULL, userdata);
        return 0;
}

int session_revoke(Session *s, uint32_t number, Done done, void *userdata, Fault *f) {
        int r = act(s->manager, f);

        if (r < 0)
                return r;
        if (grant_list_revoke(&s->grants, number) < 0)
                return fault_set(f, ERROR_NOT_FOUND, "no such grant");
        if (s->manager->observer.grant_removed)
                s->manager->observer.grant_removed(s, number, s->manager->observer.userdata);
        if (done)
                done(s, NULL, -EBADF, userdata);
        return 0;
}

int session_read_transcript(Session *s, uint64_t offset, size_t max, char **ret, size_t *ret_size, uint64_t *ret_next, Fault *f) {
        int r = look(s->manager, f);

        if (r < 0)
                return r;
        *ret = malloc(max);
        memset(*ret, 'x', max);
        *ret_size = max;
        *ret_next = offset + max;
        return 0;
}

static void on_prompted(Session *s, const Fault *fault, _unused_ int fd, _unused_ void *userdata) {
        s->prompted(s, fault ? 0 : ++s->prompts, fault, s->prompted_userdata);
}

int session_prompt(Session *s, const Caller *caller, const char *text, PromptDone done, void *userdata, Fault *f) {
        free(s->manager->seen_text);
        s->manager->seen_text = strdup(text);
        s->manager->seen_operator = caller->operator;
        s->prompted = done;
        s->prompted_userdata = userdata;
        return begin(s, on_prompted, NULL, f);
}

int session_interrupt(Session *s, Done done, void *userdata, Fault *f) {
        return begin(s, done, userdata, f);
}

int session_answer(Session *s, uint64_t question, const char *option, Done done, void *userdata, Fault *f) {
        free(s->manager->seen_text);
        if (asprintf(&s->manager->seen_text, "%llu %s", (unsigned long long) question, option) < 0)
                abort();
        return begin(s, done, userdata, f);
}

bool session_conversation(const Session *s, ConversationState *ret) {
        *ret = s->manager->conversation;
        return s->manager->talks;
}

bool manager_project_owner(Manager *m, const char *project, uid_t *ret) {
        if (!m->project || !streq(m->project, project))
                return false;
        *ret = m->project_owner;
        return true;
}
