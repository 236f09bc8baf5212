/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/json-writer.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/record.h"
#include "shared/json-check.h"
#include "shared/message.h"

#define RECORD_VERSION 1U
#define RECORD_DEPTH_MAX 4U
#define COUNTER_MAX UINT64_C(999999999999999999) /* json_check() takes no longer integer */

typedef enum FieldType {
        FIELD_TEXT,
        FIELD_TEXTS,
        FIELD_COUNT,
        FIELD_UID,
        FIELD_BOOL,
        FIELD_STATE,
} FieldType;

/* The members of session.json. All are written, but for texts and uids that are not there. */
static const struct Field {
        const char *name;
        FieldType type;
        size_t offset;
        bool required;
} fields[] = {
        {"id", FIELD_TEXT, offsetof(SessionRecord, id), true},
        {"state", FIELD_STATE, offsetof(SessionRecord, state), true},
        {"owner", FIELD_UID, offsetof(SessionRecord, owner), true},
        {"payload", FIELD_UID, offsetof(SessionRecord, payload), false},
        {"project", FIELD_TEXT, offsetof(SessionRecord, project), false},
        {"backend", FIELD_TEXT, offsetof(SessionRecord, backend), false},
        {"command", FIELD_TEXTS, offsetof(SessionRecord, command), true},
        {"network", FIELD_TEXT, offsetof(SessionRecord, network), false},
        {"allowGiven", FIELD_BOOL, offsetof(SessionRecord, allow_given), true},
        {"allow", FIELD_TEXTS, offsetof(SessionRecord, allow), true},
        {"env", FIELD_TEXTS, offsetof(SessionRecord, env), true},
        {"interactive", FIELD_BOOL, offsetof(SessionRecord, interactive), true},
        {"protocol", FIELD_TEXT, offsetof(SessionRecord, protocol), false},
        {"provider", FIELD_TEXT, offsetof(SessionRecord, provider), false},
        {"model", FIELD_TEXT, offsetof(SessionRecord, model), false},
        {"configuration", FIELD_TEXT, offsetof(SessionRecord, configuration), false},
        {"created", FIELD_COUNT, offsetof(SessionRecord, created), true},
        {"started", FIELD_COUNT, offsetof(SessionRecord, started), true},
        {"ended", FIELD_COUNT, offsetof(SessionRecord, ended), true},
        {"exitReason", FIELD_TEXT, offsetof(SessionRecord, exit_reason), false},
        {"exitText", FIELD_TEXT, offsetof(SessionRecord, exit_text), false},
        {"exitStatus", FIELD_COUNT, offsetof(SessionRecord, exit_status), true},
        {"refused", FIELD_COUNT, offsetof(SessionRecord, refused), true},
        {"brokerRefused", FIELD_COUNT, offsetof(SessionRecord, broker_refused), false},
        {"scopeUnit", FIELD_TEXT, offsetof(SessionRecord, scope_unit), false},
        {"brokerUnit", FIELD_TEXT, offsetof(SessionRecord, broker_unit), false},
        {"turn", FIELD_BOOL, offsetof(SessionRecord, turn), false},
        {"ownStdio", FIELD_BOOL, offsetof(SessionRecord, own_stdio), false},
        {"diskMax", FIELD_COUNT, offsetof(SessionRecord, disk_max), false},
        {"diskCheckUsec", FIELD_COUNT, offsetof(SessionRecord, disk_check), false},
        {"idleUsec", FIELD_COUNT, offsetof(SessionRecord, idle_limit), false},
        {"gracePeriodUsec", FIELD_COUNT, offsetof(SessionRecord, grace_period), false},
        {"systemBytes", FIELD_COUNT, offsetof(SessionRecord, system_bytes), false},
        {"projectBytes", FIELD_COUNT, offsetof(SessionRecord, project_bytes), false},
        {"eventsLength", FIELD_COUNT, offsetof(SessionRecord, events_length), true},
        {"transcriptLength", FIELD_COUNT, offsetof(SessionRecord, transcript_length), true},
};

static void *field_at(const SessionRecord *s, const struct Field *f) {
        return (char *) s + f->offset;
}

SessionRecord *session_record_free(SessionRecord *s) {
        for (size_t i = 0; s && i < ELEMENTSOF(fields); i++)
                if (fields[i].type == FIELD_TEXT)
                        free(*(char **) field_at(s, &fields[i]));
                else if (fields[i].type == FIELD_TEXTS)
                        strv_free(*(char ***) field_at(s, &fields[i]));
        return mfree(s);
}

int session_record_new(const char *id, uid_t owner, SessionRecord **ret) {
        _cleanup_(session_record_freep) SessionRecord *s = NULL;

        if (!session_id_valid(id) || owner == UID_NONE)
                return -EINVAL;
        s = calloc(1, sizeof(SessionRecord));
        if (!s)
                return -ENOMEM;
        s->state = SESSION_CREATED;
        s->owner = owner;
        s->payload = UID_NONE;
        s->created = now_realtime();
        s->id = strdup(id);
        if (!s->id)
                return -ENOMEM;
        *ret = TAKE_PTR(s);
        return 0;
}

static void write_field(JsonWriter *w, const SessionRecord *s, const struct Field *f) {
        const void *at = field_at(s, f);

        switch (f->type) {
        case FIELD_TEXT:
                if (*(char *const *) at)
                        json_add_string(w, f->name, *(char *const *) at);
                break;
        case FIELD_TEXTS:
                json_add_strings(w, f->name, *(char **const *) at);
                break;
        case FIELD_COUNT:
                json_add_u64(w, f->name, MIN(*(const uint64_t *) at, COUNTER_MAX));
                break;
        case FIELD_UID:
                if (*(const uid_t *) at != UID_NONE)
                        json_add_u64(w, f->name, *(const uid_t *) at);
                break;
        case FIELD_BOOL:
                json_add_bool(w, f->name, *(const bool *) at);
                break;
        case FIELD_STATE:
                json_add_string(w, f->name, session_state_to_string((SessionState) * (const int *) at));
                break;
        }
}

int session_record_format(const SessionRecord *s, char **ret, size_t *ret_size) {
        JsonWriter w = {};

        json_open_object(&w, NULL);
        json_add_u64(&w, "v", RECORD_VERSION);
        for (size_t i = 0; i < ELEMENTSOF(fields); i++)
                write_field(&w, s, &fields[i]);
        json_close_object(&w);
        return json_writer_finish(&w, ret, ret_size);
}

/* -ENOENT: not there, -EINVAL: of another type or outside its range. */
static int read_field(JsonObject *o, const struct Field *f, SessionRecord *s) {
        void *at = field_at(s, f);
        const char *text;
        uint64_t value;
        int r;

        switch (f->type) {
        case FIELD_TEXT:
                r = json_get_string(o, f->name, &text);
                if (r < 0)
                        return r;
                *(char **) at = strdup(text);
                return *(char **) at ? 0 : -ENOMEM;
        case FIELD_TEXTS:
                return json_get_strv(o, f->name, at);
        case FIELD_COUNT:
                return json_get_u64(o, f->name, COUNTER_MAX, at);
        case FIELD_UID:
                r = json_get_u64(o, f->name, UID_NONE - 1, &value);
                if (r >= 0)
                        *(uid_t *) at = (uid_t) value;
                return r;
        case FIELD_BOOL:
                return json_get_bool(o, f->name, at);
        case FIELD_STATE:
                r = json_get_string(o, f->name, &text);
                if (r < 0)
                        return r;
                *(int *) at = session_state_from_string(text);
                return *(int *) at < 0 || *(int *) at == SESSION_COLLECTED ? -EINVAL : 0;
        }
        return -EINVAL;
}

static bool known_member(const char *name) {
        for (size_t i = 0; i < ELEMENTSOF(fields); i++)
                if (streq(fields[i].name, name))
                        return true;
        return streq(name, "v");
}

static int read_fields(JsonObject *o, SessionRecord *s, char **ret_problem) {
        uint64_t version;
        int r = 0;

        if (json_get_u64(o, "v", UINT32_MAX, &version) < 0)
                return problem_set(ret_problem, "says no version");
        if (version != RECORD_VERSION) {
                r = problem_set(ret_problem, "is of version %llu, and this errandd reads version %u alone; another one wrote it, and reads it",
                                (unsigned long long) version, RECORD_VERSION);
                return r == -EBADMSG ? -EPROTONOSUPPORT : r;
        }
        for (size_t i = 0; i < ELEMENTSOF(fields); i++) {
                r = read_field(o, &fields[i], s);
                if (r == -ENOMEM)
                        return r;
                if (r == -ENOENT && fields[i].required)
                        return problem_set(ret_problem, "has no member %s", fields[i].name);
                if (r == -EINVAL)
                        return problem_set(ret_problem, "has a member %s that is not what it must be", fields[i].name);
        }
        GList *members = json_object_get_members(o);
        r = 0;
        for (GList *m = members; m && r >= 0; m = m->next)
                if (!known_member(m->data)) {
                        _cleanup_free_ char *shown = string_escape_control(m->data);
                        r = problem_set(ret_problem, "has an unknown member \"%.80s\"", shown ?: "");
                }
        g_list_free(members);
        return r;
}

int session_record_parse(const char *id, const char *text, size_t size, SessionRecord **ret, char **ret_problem) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        _cleanup_(session_record_freep) SessionRecord *s = calloc(1, sizeof(SessionRecord));
        JsonProblem problem;
        JsonObject *object;

        if (!s)
                return -ENOMEM;
        s->payload = UID_NONE;
        int r = json_read_object(text, size, RECORD_DEPTH_MAX, &parser, &object, &problem);
        if (r == -EBADMSG)
                return problem_set(ret_problem, "line %u, column %u: %s", problem.line, problem.column, problem.text);
        if (r >= 0)
                r = read_fields(object, s, ret_problem);
        if (r < 0)
                return r;
        if (!streq(s->id, id))
                return problem_set(ret_problem, "is the record of another session");
        *ret = TAKE_PTR(s);
        return 0;
}

int session_record_write(int dir, const SessionRecord *s) {
        _cleanup_free_ char *text = NULL;
        size_t size;

        int r = session_record_format(s, &text, &size);
        if (r < 0)
                return r;
        return record_write_ahead(dir, RECORD_DESCRIPTION_NAME, text, size);
}

int session_record_settle(int root, const char *id) {
        _cleanup_close_ int dir = record_open(root, id);
        if (dir < 0)
                return dir;
        int r = record_settle(dir, RECORD_DESCRIPTION_NAME);
        return r > 0 && fsync(root) < 0 ? -errno : r;
}

/* What is ahead of it and whole: else which is RECORD_AHEAD_MAX. */
static int read_ahead(int dir, const char *id, SessionRecord **ret, size_t *ret_which, char **ret_problem) {
        for (size_t i = 0; i < RECORD_AHEAD_MAX; i++) {
                _cleanup_free_ char *text = NULL, *reason = NULL;
                size_t size;

                int r = record_read_ahead(dir, RECORD_DESCRIPTION_NAME, i, &text, &size);
                if (r >= 0)
                        r = session_record_parse(id, text, size, ret, &reason);
                if (r == -EPROTONOSUPPORT) /* a newer errandd's: what is behind it is not the truth */
                        (void) problem_set(ret_problem, ".records/%s/" RECORD_DESCRIPTION_NAME " %s", id, reason);
                if (r == -ENOMEM || r == -EPROTONOSUPPORT)
                        return r;
                if (r >= 0) {
                        *ret_which = i;
                        return 0;
                }
        }
        *ret_which = RECORD_AHEAD_MAX;
        return 0;
}

int session_record_read(int dir, const char *id, SessionRecord **ret, size_t *ret_ahead, char **ret_problem) {
        _cleanup_free_ char *text = NULL, *reason = NULL;
        SessionRecord *found = NULL;
        size_t size, which = RECORD_AHEAD_MAX;

        int r = read_ahead(dir, id, &found, &which, ret_problem);
        if (r < 0)
                return r;
        *ret_ahead = which;
        if (found) {
                *ret = found;
                return 0;
        }
        r = record_read_file(dir, RECORD_DESCRIPTION_NAME, &text, &size);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                bool final = r == -EPERM || r == -ENOENT || r == -EFBIG;
                int set = problem_set(ret_problem, ".records/%s/" RECORD_DESCRIPTION_NAME " cannot be read: %s", id,
                                      r == -EPERM ? "it is not a regular file of this account" : strerror(-r));
                return set != -EBADMSG || final ? set : -EIO;
        }
        r = session_record_parse(id, text, size, ret, &reason);
        if (r != -EBADMSG && r != -EPROTONOSUPPORT)
                return r;
        int set = problem_set(ret_problem, ".records/%s/" RECORD_DESCRIPTION_NAME " %s", id, reason);
        return set == -EBADMSG ? r : set;
}

static int compare_entries(const void *a, const void *b) {
        return strcmp(((const RecordEntry *) a)->id, ((const RecordEntry *) b)->id);
}

static int load_entry(int root, RecordEntry *e) {
        size_t ahead = RECORD_AHEAD_MAX;

        if (!session_id_valid(e->id)) {
                _cleanup_free_ char *shown = string_escape_control(e->id);
                int r = problem_set(&e->problem, ".records/%.200s is no session's record", shown ?: "");
                return r == -EBADMSG ? 0 : r;
        }
        _cleanup_close_ int dir = record_open(root, e->id);
        int r = dir >= 0 ? session_record_read(dir, e->id, &e->record, &ahead, &e->problem)
                         : problem_set(&e->problem, ".records/%s cannot be opened: %s", e->id,
                                       dir == -EPERM ? "it is not a directory of this account alone" : strerror(-dir));
        e->damaged = dir >= 0 && r == -EBADMSG;
        if (e->record) {
                r = record_settle_found(dir, RECORD_DESCRIPTION_NAME, ahead);
                if (r < 0)
                        log_session_warning_errno(r, e->id, "its record cannot be put in its place, ignoring: it is read from beside it: %m");
                r = 0;
        }
        return e->problem ? 0 : r;
}

static int add_entry(int root, const char *name, RecordEntry **entries, size_t *n) {
        RecordEntry *grown = reallocarray(*entries, *n + 1, sizeof(RecordEntry));

        if (!grown)
                return -ENOMEM;
        *entries = grown;
        grown[*n] = (RecordEntry){.id = strdup(name)};
        if (!grown[*n].id)
                return -ENOMEM;
        return load_entry(root, &grown[(*n)++]);
}

int record_list(int root, RecordEntry **ret, size_t *ret_n) {
        DIR *d = fd_opendir(openat(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        RecordEntry *entries = NULL;
        size_t n = 0;
        int r = 0;

        if (!d)
                return negative_errno();
        while (r >= 0) {
                errno = 0;
                struct dirent *e = readdir(d);
                if (!e) {
                        r = -errno;
                        break;
                }
                if (!streq(e->d_name, ".") && !streq(e->d_name, ".."))
                        r = add_entry(root, e->d_name, &entries, &n);
        }
        closedir(d);
        if (r < 0) {
                record_list_free(entries, n);
                return r;
        }
        if (n > 0)
                qsort(entries, n, sizeof(RecordEntry), compare_entries);
        *ret = entries;
        *ret_n = n;
        return 0;
}

void record_list_free(RecordEntry *entries, size_t n) {
        for (size_t i = 0; i < n; i++) {
                free(entries[i].id);
                session_record_free(entries[i].record);
                free(entries[i].problem);
        }
        free(entries);
}
