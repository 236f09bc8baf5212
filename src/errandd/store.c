/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <inttypes.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/json-writer.h"
#include "basic/text.h"
#include "errandd/store.h"

#define DATABASE_NAME "receipts.db"
#define SCHEMA_VERSION 2

typedef enum Statement {
        STATEMENT_BEGIN,
        STATEMENT_COMMIT,
        STATEMENT_ROLLBACK,
        STATEMENT_ADD,
        STATEMENT_QUERY,
        STATEMENT_QUERY_SESSION,
        STATEMENT_QUERY_SESSIONS,
        STATEMENT_SUM,
        STATEMENT_GET_SPOOL,
        STATEMENT_SET_SPOOL,
        STATEMENT_COLLECT_RECEIPTS,
        STATEMENT_COLLECT_SPOOL,
        _STATEMENT_MAX,
} Statement;

#define COLUMNS                                                                                                                    \
        "number, ended, session, provider, credential, host, method, path, query, status, duration, up, down, outcome, unrecorded, tokens"
#define FILTER                                                                                                                     \
        "number < ?2 AND (?3 IS NULL OR provider = ?3) AND (?4 IS NULL OR outcome = ?4) AND ended >= ?5 ORDER BY number DESC "     \
        "LIMIT ?6"

static const char *const statements[_STATEMENT_MAX] = {
        /* At once with the write lock: a transaction that began as a reader cannot wait for it. */
        [STATEMENT_BEGIN] = "BEGIN IMMEDIATE",
        [STATEMENT_COMMIT] = "COMMIT",
        [STATEMENT_ROLLBACK] = "ROLLBACK",
        [STATEMENT_ADD] =
                "INSERT INTO receipts (ended, session, provider, credential, host, method, path, query, status, duration, up, down,"
                " outcome, unrecorded, tokens) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        [STATEMENT_QUERY] = "SELECT " COLUMNS " FROM receipts WHERE ?1 IS NULL AND " FILTER,
        [STATEMENT_QUERY_SESSION] = "SELECT " COLUMNS " FROM receipts WHERE session = ?1 AND " FILTER,
        /* By the index, so that others' receipts, however many, are not even passed over. */
        [STATEMENT_QUERY_SESSIONS] =
                "SELECT " COLUMNS " FROM receipts WHERE number IN (SELECT number FROM receipts INDEXED BY receipts_of_session"
                " WHERE session IN (SELECT value FROM json_each(?1)) AND " FILTER ") ORDER BY number DESC",
        /* What was refused before it went out has a 4xx, or 501 for an upgrade; so have those that one of them counts for. */
        [STATEMENT_SUM] = "SELECT provider, SUM(CASE outcome WHEN 'refused' THEN 1 ELSE 1 + unrecorded END), SUM(up + down), SUM(tokens)"
                          " FROM receipts WHERE session = ?1 AND outcome <> 'denied'"
                          " AND (outcome <> 'refused' OR (status >= 500 AND status <> 501)) GROUP BY provider",
        [STATEMENT_GET_SPOOL] = "SELECT position, length, damaged, tampered FROM spools WHERE session = ?1",
        [STATEMENT_SET_SPOOL] =
                "INSERT OR REPLACE INTO spools (session, position, length, damaged, tampered) VALUES (?1, ?2, ?3, ?4, ?5)",
        [STATEMENT_COLLECT_RECEIPTS] = "DELETE FROM receipts WHERE session = ?1",
        [STATEMENT_COLLECT_SPOOL] = "DELETE FROM spools WHERE session = ?1",
};

/* AUTOINCREMENT: a number names an object on the bus, and must not come to mean another receipt. */
static const char schema[] =
        "BEGIN IMMEDIATE;"
        "CREATE TABLE receipts (number INTEGER PRIMARY KEY AUTOINCREMENT, ended INTEGER NOT NULL, session TEXT NOT NULL,"
        " provider TEXT NOT NULL, credential TEXT NOT NULL, host TEXT NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL,"
        " query INTEGER NOT NULL, status INTEGER NOT NULL, duration INTEGER NOT NULL, up INTEGER NOT NULL,"
        " down INTEGER NOT NULL, outcome TEXT NOT NULL, unrecorded INTEGER NOT NULL, tokens INTEGER NOT NULL DEFAULT 0) STRICT;"
        "CREATE INDEX receipts_of_session ON receipts (session, number);"
        "CREATE TABLE spools (session TEXT PRIMARY KEY, position INTEGER NOT NULL, length INTEGER NOT NULL,"
        " damaged INTEGER NOT NULL, tampered INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
        "PRAGMA user_version = 2;"
        "COMMIT;";

static const char upgrade_of_1[] = "BEGIN IMMEDIATE;"
                                   "ALTER TABLE receipts ADD COLUMN tokens INTEGER NOT NULL DEFAULT 0;"
                                   "PRAGMA user_version = 2;"
                                   "COMMIT;";

static const char settings[] = "PRAGMA journal_mode = WAL;"
                               "PRAGMA journal_size_limit = 16777216;"
                               "PRAGMA secure_delete = ON;"
                               "PRAGMA trusted_schema = OFF;"
                               "PRAGMA temp_store = MEMORY;";

/* A transaction waits for no disk: a loss of power may take the last ones, never half of one, and their spools are still there to be read again. What the
 * database itself takes from its journal is on disk before the journal begins anew: store_checkpoint() sees to that, and whoever closes it. */
static const char unsynced[] = "PRAGMA synchronous = OFF;", synced[] = "PRAGMA synchronous = NORMAL;";

struct Store {
        sqlite3 *db;
        int journal; /* pages of it, after the last transaction */
        sqlite3_stmt *statements[_STATEMENT_MAX];
        unsigned steps; /* thousands that the query under way has made */
        char error[256]; /* of the last failure: a rollback after it would be the last call's */
};

static int map_error(sqlite3 *db, int code) {
        int system;

        switch (code & 0xff) {
        case SQLITE_OK:
        case SQLITE_ROW:
        case SQLITE_DONE:
                return 0;
        case SQLITE_FULL:
                return -ENOSPC;
        case SQLITE_BUSY:
        case SQLITE_LOCKED:
                return -EAGAIN;
        case SQLITE_READONLY:
                return -EROFS;
        case SQLITE_CORRUPT:
        case SQLITE_NOTADB:
                return -EUCLEAN;
        case SQLITE_NOMEM:
                return -ENOMEM;
        case SQLITE_INTERRUPT: /* by count_steps() */
                return -ETIME;
        case SQLITE_CANTOPEN:
        case SQLITE_IOERR:
                system = db ? sqlite3_system_errno(db) : 0;
                return system == ENOSPC || system == EDQUOT || system == EROFS ? -system : -EIO;
        default:
                return -EIO;
        }
}

const char *store_error_text(const Store *s) {
        return s->error;
}

static int keep_error(Store *s, int code) {
        int r = map_error(s->db, code);

        if (r < 0)
                (void) snprintf(s->error, sizeof(s->error), "%.200s (SQLite %d)", sqlite3_errmsg(s->db),
                                sqlite3_extended_errcode(s->db));
        return r;
}

Store *store_close(Store *s) {
        if (!s)
                return NULL;
        for (size_t i = 0; i < ELEMENTSOF(s->statements); i++)
                sqlite3_finalize(s->statements[i]);
        (void) sqlite3_exec(s->db, synced, NULL, NULL, NULL);
        sqlite3_close(s->db);
        return mfree(s);
}

Store *store_leave(Store *s) {
        if (s)
                (void) sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
        return store_close(s);
}

static int execute(Store *s, const char *sql) {
        return map_error(s->db, sqlite3_exec(s->db, sql, NULL, NULL, NULL));
}

static int read_version(Store *s, int *ret) {
        sqlite3_stmt *statement = NULL;

        int code = sqlite3_prepare_v2(s->db, "PRAGMA user_version", -1, &statement, NULL);
        if (code == SQLITE_OK)
                code = sqlite3_step(statement);
        if (code == SQLITE_ROW)
                *ret = sqlite3_column_int(statement, 0);
        sqlite3_finalize(statement);
        return map_error(s->db, code);
}

static int prepare_all(Store *s) {
        for (size_t i = 0; i < ELEMENTSOF(statements); i++) {
                int code = sqlite3_prepare_v3(s->db, statements[i], -1, SQLITE_PREPARE_PERSISTENT, &s->statements[i], NULL);
                /* A table that is not as it must be reads as damage: nobody but us makes any. */
                if (code == SQLITE_ERROR)
                        return -EUCLEAN;
                if (code != SQLITE_OK)
                        return map_error(s->db, code);
        }
        return 0;
}

static int upgrade(Store *s) {
        int code = sqlite3_exec(s->db, upgrade_of_1, NULL, NULL, NULL);

        return code == SQLITE_ERROR ? -EUCLEAN : map_error(s->db, code);
}

/* SQLite makes its journals with the mode of the database. */
static int make_private_file(const char *path) {
        _cleanup_close_ int fd = open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
        struct stat st;

        if (fd < 0 || fstat(fd, &st) < 0)
                return -errno;
        if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
                return -EPERM;
        return fchmod(fd, 0600) < 0 ? -errno : 0;
}

static int on_journal(void *userdata, _unused_ sqlite3 *db, _unused_ const char *database, int pages) {
        ((Store *) userdata)->journal = pages;
        return SQLITE_OK;
}

bool store_grown(const Store *s) {
        return s->journal >= STORE_JOURNAL_PAGES;
}

int store_checkpoint(const char *state_dir) {
        _cleanup_free_ char *path = NULL;
        sqlite3 *db = NULL;

        if (asprintf(&path, "%s/" DATABASE_NAME, state_dir) < 0)
                return TAKE_PTR(path), -ENOMEM;
        int code = sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL);
        if (code == SQLITE_OK)
                code = sqlite3_exec(db, synced, NULL, NULL, NULL);
        if (code == SQLITE_OK)
                code = sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
        int r = map_error(db, code);
        sqlite3_close(db);
        return r;
}

static int open_at(const char *path, Store **ret) {
        _cleanup_(store_closep) Store *s = NULL;
        int version = 0;

        int r = make_private_file(path);
        if (r < 0)
                return r;
        s = calloc(1, sizeof(Store));
        if (!s)
                return -ENOMEM;
        /* One thread uses it, so SQLite's own locks are left out. */
        int code = sqlite3_open_v2(path, &s->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX, NULL);
        if (code != SQLITE_OK)
                return map_error(s->db, code);
        (void) sqlite3_busy_timeout(s->db, STORE_BUSY_MSEC);
        (void) sqlite3_db_config(s->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        r = execute(s, settings);
        if (r >= 0)
                r = read_version(s, &version);
        if (r >= 0 && version == 0)
                r = execute(s, schema);
        if (r >= 0 && version == 1)
                r = upgrade(s);
        if (r < 0)
                return r;
        if (version > SCHEMA_VERSION)
                return -EPROTONOSUPPORT;
        r = prepare_all(s);
        if (r >= 0)
                r = execute(s, unsynced);
        if (r < 0)
                return r;
        (void) sqlite3_wal_hook(s->db, on_journal, s); /* instead of checkpoints within transactions */
        *ret = TAKE_PTR(s);
        return 0;
}

static int rename_one(const char *path, const char *suffix, uint64_t seconds) {
        _cleanup_free_ char *from = NULL, *to = NULL;

        if (asprintf(&from, "%s%s", path, suffix) < 0)
                return TAKE_PTR(from), -ENOMEM;
        if (asprintf(&to, "%s.damaged-%" PRIu64 "%s", path, seconds, suffix) < 0)
                return TAKE_PTR(to), -ENOMEM;
        return rename(from, to) < 0 && errno != ENOENT ? -errno : 0;
}

int store_set_aside(const char *state_dir, char **ret_problem) {
        static const char *const suffixes[] = {"-wal", "-shm", ""};
        uint64_t seconds = now_realtime() / USEC_PER_SEC;
        _cleanup_free_ char *path = NULL;
        char *problem;

        if (asprintf(&path, "%s/" DATABASE_NAME, state_dir) < 0)
                return TAKE_PTR(path), -ENOMEM;
        for (size_t i = 0; i < ELEMENTSOF(suffixes); i++) {
                int r = rename_one(path, suffixes[i], seconds);
                if (r < 0)
                        return r;
        }
        if (asprintf(&problem,
                     "%s was damaged and is now %s.damaged-%" PRIu64
                     "; a new one is filled from the spools of the sessions that are still there",
                     path, path, seconds) < 0)
                return -ENOMEM;
        *ret_problem = problem;
        return 0;
}

int store_open(const char *state_dir, Store **ret, char **ret_problem) {
        _cleanup_free_ char *path = NULL, *problem = NULL;

        if (asprintf(&path, "%s/" DATABASE_NAME, state_dir) < 0)
                return TAKE_PTR(path), -ENOMEM;
        int r = open_at(path, ret);
        if (r != -EUCLEAN)
                return r;
        r = store_set_aside(state_dir, &problem);
        if (r >= 0)
                r = open_at(path, ret);
        if (r < 0)
                return r;
        *ret_problem = TAKE_PTR(problem);
        return 1;
}

/* Steps once; > 0 when there is a row. The statement is reset by the caller, with done(). */
static int step(Store *s, Statement which) {
        int code = sqlite3_step(s->statements[which]);

        return code == SQLITE_ROW ? 1 : keep_error(s, code);
}

static void done(Store *s, Statement which) {
        sqlite3_reset(s->statements[which]);
        sqlite3_clear_bindings(s->statements[which]);
}

static int run(Store *s, Statement which) {
        int r = step(s, which);
        done(s, which);
        return r;
}

static void bind_text(sqlite3_stmt *statement, int column, const char *text) {
        (void) sqlite3_bind_text(statement, column, text, -1, SQLITE_STATIC);
}

static void bind_number(sqlite3_stmt *statement, int column, uint64_t number) {
        (void) sqlite3_bind_int64(statement, column, (sqlite3_int64) MIN(number, (uint64_t) INT64_MAX));
}

int store_begin(Store *s) {
        return run(s, STATEMENT_BEGIN);
}

int store_commit(Store *s) {
        return run(s, STATEMENT_COMMIT);
}

/* Some failures have rolled back already; another time does no harm. */
void store_rollback(Store *s) {
        if (!sqlite3_get_autocommit(s->db))
                (void) run(s, STATEMENT_ROLLBACK);
}

int store_add(Store *s, const StoredReceipt *r) {
        sqlite3_stmt *statement = s->statements[STATEMENT_ADD];
        const char *const texts[] = {r->session, r->provider, r->credential, r->host, r->method, r->path};
        const uint64_t numbers[] = {r->query, r->status, r->duration, r->up, r->down};

        bind_number(statement, 1, r->ended);
        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                bind_text(statement, 2 + (int) i, texts[i]);
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                bind_number(statement, 8 + (int) i, numbers[i]);
        bind_text(statement, 13, receipt_outcome_to_string(r->outcome));
        bind_number(statement, 14, r->unrecorded);
        bind_number(statement, 15, r->tokens);
        return run(s, STATEMENT_ADD);
}

int store_get_spool(Store *s, const char *session, SpoolPosition *ret) {
        sqlite3_stmt *statement = s->statements[STATEMENT_GET_SPOOL];
        SpoolPosition position = {};

        bind_text(statement, 1, session);
        int r = step(s, STATEMENT_GET_SPOOL);
        if (r > 0)
                position = (SpoolPosition){
                        .offset = (uint64_t) sqlite3_column_int64(statement, 0),
                        .length = (uint64_t) sqlite3_column_int64(statement, 1),
                        .damaged = (uint64_t) sqlite3_column_int64(statement, 2),
                        .tampered = sqlite3_column_int(statement, 3) != 0,
                };
        done(s, STATEMENT_GET_SPOOL);
        if (r < 0)
                return r;
        *ret = position;
        return 0;
}

int store_set_spool(Store *s, const char *session, const SpoolPosition *position) {
        sqlite3_stmt *statement = s->statements[STATEMENT_SET_SPOOL];

        bind_text(statement, 1, session);
        bind_number(statement, 2, position->offset);
        bind_number(statement, 3, position->length);
        bind_number(statement, 4, position->damaged);
        bind_number(statement, 5, position->tampered);
        return run(s, STATEMENT_SET_SPOOL);
}

int store_collect(Store *s, const char *session) {
        int r = store_begin(s);
        if (r < 0)
                return r;
        for (Statement which = STATEMENT_COLLECT_RECEIPTS; which <= STATEMENT_COLLECT_SPOOL && r >= 0; which++) {
                bind_text(s->statements[which], 1, session);
                r = run(s, which);
        }
        if (r >= 0)
                r = store_commit(s);
        if (r < 0)
                store_rollback(s);
        return r;
}

void stored_receipt_done(StoredReceipt *r) {
        free(r->session);
        free(r->provider);
        free(r->credential);
        free(r->host);
        free(r->method);
        free(r->path);
        *r = (StoredReceipt){};
}

void stored_receipt_list_done(StoredReceiptList *l) {
        for (size_t i = 0; i < l->n_receipts; i++)
                stored_receipt_done(&l->receipts[i]);
        l->receipts = mfree(l->receipts);
        l->n_receipts = 0;
}

/* The columns in the order of COLUMNS. */
static int read_row(sqlite3_stmt *statement, StoredReceipt *ret) {
        StoredReceipt r = {.number = (uint64_t) sqlite3_column_int64(statement, 0),
                           .ended = (usec_t) sqlite3_column_int64(statement, 1)};
        char **texts[] = {&r.session, &r.provider, &r.credential, &r.host, &r.method, &r.path};
        uint64_t *numbers[] = {&r.query, &r.status, &r.duration, &r.up, &r.down};
        const char *outcome = (const char *) sqlite3_column_text(statement, 13);
        bool whole = outcome;

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                const char *text = (const char *) sqlite3_column_text(statement, 2 + (int) i);
                *texts[i] = text ? strdup(text) : NULL;
                whole = whole && *texts[i];
        }
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                *numbers[i] = (uint64_t) sqlite3_column_int64(statement, 8 + (int) i);
        r.unrecorded = (uint64_t) sqlite3_column_int64(statement, 14);
        r.tokens = (uint64_t) sqlite3_column_int64(statement, 15);
        r.outcome = outcome ? receipt_outcome_from_string(outcome) : _RECEIPT_OUTCOME_INVALID;
        if (!whole || r.outcome < 0) {
                stored_receipt_done(&r);
                return whole ? -EUCLEAN : -ENOMEM;
        }
        *ret = r;
        return 0;
}

/* A JSON array, as SQLite takes a list; NULL when out of memory. */
static char *list_sessions(char *const *sessions) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        char *text;
        size_t size;

        json_add_strings(&w, NULL, sessions);
        return json_writer_finish(&w, &text, &size) < 0 ? NULL : text;
}

static int count_steps(void *userdata) {
        Store *s = userdata;

        return ++s->steps > STORE_STEPS_MAX / 1000U;
}

int store_query(Store *s, const ReceiptFilter *f, StoredReceiptList *ret) {
        size_t limit = f->limit == 0 || f->limit > STORE_QUERY_MAX ? STORE_QUERY_MAX : f->limit;
        Statement which = f->session ? STATEMENT_QUERY_SESSION : f->sessions ? STATEMENT_QUERY_SESSIONS : STATEMENT_QUERY;
        _cleanup_free_ char *sessions = which == STATEMENT_QUERY_SESSIONS ? list_sessions(f->sessions) : NULL;
        sqlite3_stmt *statement = s->statements[which];
        StoredReceiptList list = {.receipts = calloc(limit, sizeof(StoredReceipt))};
        int r;

        if (!list.receipts || (which == STATEMENT_QUERY_SESSIONS && !sessions)) {
                free(list.receipts);
                return -ENOMEM;
        }
        s->steps = 0;
        sqlite3_progress_handler(s->db, 1000, count_steps, s);
        bind_text(statement, 1, sessions ?: f->session);
        bind_number(statement, 2, f->before == 0 ? INT64_MAX : f->before);
        bind_text(statement, 3, f->provider);
        bind_text(statement, 4, f->outcome >= 0 ? receipt_outcome_to_string(f->outcome) : NULL);
        bind_number(statement, 5, f->since);
        bind_number(statement, 6, limit);
        while ((r = step(s, which)) > 0 && list.n_receipts < limit) {
                r = read_row(statement, &list.receipts[list.n_receipts]);
                if (r < 0)
                        break;
                list.n_receipts++;
        }
        done(s, which);
        sqlite3_progress_handler(s->db, 0, NULL, NULL);
        if (r < 0) {
                stored_receipt_list_done(&list);
                return r;
        }
        if (list.n_receipts == 0)
                list.receipts = mfree(list.receipts);
        *ret = list;
        return 0;
}

void stored_spending_free(StoredSpending *list, size_t n) {
        for (size_t i = 0; i < n; i++)
                free(list[i].provider);
        free(list);
}

static int add_spending(sqlite3_stmt *statement, StoredSpending **list, size_t *n) {
        const char *provider = (const char *) sqlite3_column_text(statement, 0);
        StoredSpending *longer = reallocarray(*list, *n + 1, sizeof(StoredSpending));

        if (!longer)
                return -ENOMEM;
        *list = longer;
        longer[*n] = (StoredSpending){
                .provider = provider ? strdup(provider) : NULL,
                .requests = (uint64_t) sqlite3_column_int64(statement, 1),
                .bytes = (uint64_t) sqlite3_column_int64(statement, 2),
                .tokens = (uint64_t) sqlite3_column_int64(statement, 3),
        };
        return longer[(*n)++].provider ? 0 : -ENOMEM;
}

int store_sum_spending(Store *s, const char *session, StoredSpending **ret, size_t *ret_n) {
        StoredSpending *list = NULL;
        size_t n = 0;
        int r;

        bind_text(s->statements[STATEMENT_SUM], 1, session);
        while ((r = step(s, STATEMENT_SUM)) > 0) {
                r = add_spending(s->statements[STATEMENT_SUM], &list, &n);
                if (r < 0)
                        break;
        }
        done(s, STATEMENT_SUM);
        if (r < 0) {
                stored_spending_free(list, n);
                return r;
        }
        *ret = list;
        *ret_n = n;
        return 0;
}
