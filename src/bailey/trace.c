/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/audit-risk.h"
#include "bailey/trace.h"
#include "basic/json-reader.h"
#include "basic/json-writer.h"
#include "basic/path.h"
#include "basic/text.h"

#define TRACE_VERSION 1U

static void print_operations(JsonWriter *w, const char *key, unsigned operations) {
        json_open_array(w, key);
        for (unsigned i = 0; i < ACCESS_OPERATIONS; i++)
                if (operations & (1U << i))
                        json_add_string(w, NULL, access_operation_to_string(i));
        json_close_array(w);
}

static int print_access(FILE *f, const Access *a, const char *home) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ char *text = NULL;
        const char *risk = access_risk(a, home, NULL);

        json_open_object(&w, NULL);
        json_add_string(&w, "kind", access_kind_to_string(a->kind));
        json_add_string(&w, "name", a->name);
        print_operations(&w, "operations", a->operations);
        print_operations(&w, "granted", a->granted);
        json_add_string(&w, "risk", risk ?: "");
        json_add_bool(&w, "lossy", a->lossy);
        json_add_bool(&w, "missing", a->missing);
        json_add_bool(&w, "directory", a->directory);
        json_add_bool(&w, "link", a->link);
        json_add_u64(&w, "count", a->count);
        json_add_u64(&w, "first_usec", a->first);
        json_add_u64(&w, "last_usec", a->last);
        json_add_u64(&w, "pid", (uint64_t) a->pid);
        json_add_string(&w, "command", a->command);
        json_close_object(&w);
        int r = json_writer_finish(&w, &text, NULL);
        if (r >= 0)
                fputs(text, f);
        return r;
}

/* All members but the accesses, without the closing brace. */
static int print_head(FILE *f, const Trace *t) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        json_open_object(&w, NULL);
        json_add_u64(&w, "bailey_trace", TRACE_VERSION);
        json_add_string(&w, "target", t->target);
        json_add_string(&w, "working_directory", t->working_directory);
        json_add_string(&w, "home", t->home);
        json_add_bool(&w, "unconfined", t->unconfined);
        json_add_u64(&w, "started_usec", t->started);
        json_add_u64(&w, "ended_usec", t->ended);
        json_add_u64(&w, "status", t->status);
        json_add_u64(&w, "signal", t->signal);
        json_add_u64(&w, "calls", t->calls);
        json_add_u64(&w, "lost_unreadable", t->unreadable);
        json_add_u64(&w, "lost_dropped", t->dropped);
        json_add_bool(&w, "truncated", trace_truncated(t));
        json_close_object(&w);
        int r = json_writer_finish(&w, &text, &size);
        if (r >= 0)
                fprintf(f, "%.*s", (int) size - 1, text);
        return r;
}

int trace_print(const Trace *t, char **ret, size_t *ret_size) {
        char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);

        if (!f)
                return -ENOMEM;
        int r = print_head(f, t);
        fputs(",\"accesses\":[", f);
        for (size_t i = 0; i < t->accesses.n && r >= 0; i++) {
                fputs(i > 0 ? ",\n" : "\n", f);
                r = print_access(f, &t->accesses.items[i], t->home);
        }
        fputs("\n]}\n", f);
        if (fclose(f) != 0 && r >= 0)
                r = -ENOMEM;
        if (r < 0) {
                free(text);
                return r;
        }
        *ret = text;
        *ret_size = size;
        return 0;
}

/* ---- reading ---- */

typedef enum MemberType {
        MEMBER_TEXT,
        MEMBER_NUMBER,
        MEMBER_BOOL,
        MEMBER_OPERATIONS,
        MEMBER_KIND,
        MEMBER_COMMAND,
        MEMBER_IGNORED_TEXT, /* told for people; computed anew */
        MEMBER_IGNORED_BOOL,
        MEMBER_VERSION,
        MEMBER_PID,
        MEMBER_SMALL, /* unsigned, at most 255 */
        MEMBER_ACCESSES,
} MemberType;

typedef struct Member {
        const char *name;
        MemberType type;
        size_t offset;
} Member;

static int read_members(JsonReader *r, const Member *members, size_t n, void *into);

static const Member access_members[] = {
        {"kind", MEMBER_KIND, offsetof(Access, kind)},
        {"name", MEMBER_TEXT, offsetof(Access, name)},
        {"operations", MEMBER_OPERATIONS, offsetof(Access, operations)},
        {"granted", MEMBER_OPERATIONS, offsetof(Access, granted)},
        {"risk", MEMBER_IGNORED_TEXT, 0},
        {"lossy", MEMBER_BOOL, offsetof(Access, lossy)},
        {"missing", MEMBER_BOOL, offsetof(Access, missing)},
        {"directory", MEMBER_BOOL, offsetof(Access, directory)},
        {"link", MEMBER_BOOL, offsetof(Access, link)},
        {"count", MEMBER_NUMBER, offsetof(Access, count)},
        {"first_usec", MEMBER_NUMBER, offsetof(Access, first)},
        {"last_usec", MEMBER_NUMBER, offsetof(Access, last)},
        {"pid", MEMBER_PID, offsetof(Access, pid)},
        {"command", MEMBER_COMMAND, offsetof(Access, command)},
};

static const Member trace_members[] = {
        {"bailey_trace", MEMBER_VERSION, 0},
        {"target", MEMBER_TEXT, offsetof(Trace, target)},
        {"working_directory", MEMBER_TEXT, offsetof(Trace, working_directory)},
        {"home", MEMBER_TEXT, offsetof(Trace, home)},
        {"unconfined", MEMBER_BOOL, offsetof(Trace, unconfined)},
        {"started_usec", MEMBER_NUMBER, offsetof(Trace, started)},
        {"ended_usec", MEMBER_NUMBER, offsetof(Trace, ended)},
        {"status", MEMBER_SMALL, offsetof(Trace, status)},
        {"signal", MEMBER_SMALL, offsetof(Trace, signal)},
        {"calls", MEMBER_NUMBER, offsetof(Trace, calls)},
        {"lost_unreadable", MEMBER_NUMBER, offsetof(Trace, unreadable)},
        {"lost_dropped", MEMBER_NUMBER, offsetof(Trace, dropped)},
        {"truncated", MEMBER_IGNORED_BOOL, 0},
        {"accesses", MEMBER_ACCESSES, offsetof(Trace, accesses)},
};

static int read_operations(JsonReader *r, unsigned *ret) {
        unsigned operations = 0;
        int n = json_enter_array(r);

        while (n >= 0 && (n = json_next_element(r)) > 0) {
                _cleanup_free_ char *word = NULL;
                n = json_take_string(r, &word);
                unsigned bit = n < 0 ? 0 : access_operation_from_string(word);
                if (n >= 0 && bit == 0)
                        return -EBADMSG;
                operations |= bit;
        }
        *ret = operations;
        return n;
}

static bool name_valid(const Access *a) {
        _cleanup_free_ char *collapsed = NULL;

        if (a->kind != ACCESS_PATH)
                return *a->name;
        return path_collapse(a->name, &collapsed) >= 0 && streq(collapsed, a->name);
}

static int read_access(JsonReader *r, AccessList *list) {
        Access a = {};
        int e = read_members(r, access_members, ELEMENTSOF(access_members), &a);

        if (e >= 0 && (!a.operations || !name_valid(&a)))
                e = -EBADMSG;
        if (e >= 0) {
                Access *kept = access_list_get(list, a.kind, a.name);
                if (!kept)
                        e = list->n >= ACCESSES_MAX || strlen(a.name) > ACCESS_NAMES_MAX - list->names_size ? -EBADMSG : -ENOMEM;
                else if (kept->operations) {
                        /* Of two names that are not UTF-8 the file may hold one text. */
                        e = a.lossy && kept->lossy ? 0 : -EBADMSG;
                } else {
                        free(kept->name);
                        *kept = a;
                        a.name = NULL;
                }
        }
        free(a.name);
        return e;
}

static int read_accesses(JsonReader *r, AccessList *list) {
        int n = json_enter_array(r);

        while (n >= 0 && (n = json_next_element(r)) > 0)
                n = read_access(r, list);
        return n;
}

static int read_word(JsonReader *r, MemberType type, void *at) {
        _cleanup_free_ char *text = NULL;

        int e = json_take_string(r, &text);
        if (e < 0)
                return e;
        switch (type) {
        case MEMBER_TEXT:
                *(char **) at = TAKE_PTR(text);
                return 0;
        case MEMBER_KIND:
                *(AccessKind *) at = access_kind_from_string(text);
                return *(AccessKind *) at < 0 ? -EBADMSG : 0;
        case MEMBER_COMMAND:
                /* Replacement characters are longer than what they stand for. */
                (void) snprintf(at, sizeof(((Access *) NULL)->command), "%s", text);
                return 0;
        default:
                return 0;
        }
}

static int read_number(JsonReader *r, MemberType type, void *at) {
        uint64_t value = 0;

        int e = json_take_u64(r, &value);
        if (e < 0)
                return e;
        switch (type) {
        case MEMBER_VERSION:
                return value == TRACE_VERSION ? 0 : -EBADMSG;
        case MEMBER_PID:
                *(pid_t *) at = (pid_t) MIN(value, (uint64_t) INT32_MAX);
                return value > INT32_MAX ? -EBADMSG : 0;
        case MEMBER_SMALL:
                *(unsigned *) at = (unsigned) MIN(value, 255U);
                return value > 255 ? -EBADMSG : 0;
        default:
                *(uint64_t *) at = value;
                return 0;
        }
}

static int read_member(JsonReader *r, MemberType type, void *at) {
        bool ignored;

        switch (type) {
        case MEMBER_BOOL:
                return json_take_bool(r, at);
        case MEMBER_IGNORED_BOOL:
                return json_take_bool(r, &ignored);
        case MEMBER_OPERATIONS:
                return read_operations(r, at);
        case MEMBER_ACCESSES:
                return read_accesses(r, at);
        case MEMBER_NUMBER:
        case MEMBER_VERSION:
        case MEMBER_PID:
        case MEMBER_SMALL:
                return read_number(r, type, at);
        default:
                return read_word(r, type, at);
        }
}

/* Every member once, in any order, and no other. */
static int read_members(JsonReader *r, const Member *members, size_t n, void *into) {
        unsigned seen = 0;
        int e = json_enter_object(r);

        for (;;) {
                _cleanup_free_ char *name = NULL;
                size_t i = 0;

                if (e >= 0)
                        e = json_next_member(r, &name);
                if (e <= 0)
                        break;
                while (i < n && !streq(members[i].name, name))
                        i++;
                if (i == n || (seen & (1U << i)))
                        return -EBADMSG;
                seen |= 1U << i;
                e = read_member(r, members[i].type, (char *) into + members[i].offset);
        }
        return e < 0 ? e : seen == (1U << n) - 1 ? 0 : -EBADMSG;
}

int trace_parse(const char *text, size_t size, Trace *ret) {
        _cleanup_(trace_done) Trace t = {};
        JsonReader r;

        int e = json_reader_init(&r, text, size);
        if (e >= 0)
                e = read_members(&r, trace_members, ELEMENTSOF(trace_members), &t);
        if (e >= 0)
                e = json_reader_finish(&r);
        if (e >= 0 && (t.target[0] != '/' || t.working_directory[0] != '/' || t.home[0] != '/'))
                e = -EBADMSG;
        if (e < 0)
                return e;
        *ret = t;
        t = (Trace) {};
        return 0;
}
