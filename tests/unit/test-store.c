/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "errandd/state-lock.h"
#include "errandd/store.h"
#include "test.h"

static char state_path[64];

static void setup(void) {
        strcpy(state_path, "/tmp/errand-test-store.XXXXXX");
        CHECK(mkdtemp(state_path));
}

static void teardown(void) {
        char command[160];

        (void) snprintf(command, sizeof(command), "rm -rf -- '%s'", state_path);
        CHECK_INT(system(command), 0);
}

static Store *open_store(void) {
        char *problem = NULL;
        Store *s = NULL;

        CHECK_INT(store_open(state_path, &s, &problem), 0);
        return s;
}

static StoredReceipt sample(char *session, uint64_t ended) {
        return (StoredReceipt){.ended = ended, .session = session, .provider = (char *) "anthropic", .credential = (char *) "ANTHROPIC_API_KEY",
                               .host = (char *) "api.example.com", .method = (char *) "POST", .path = (char *) "/v1/messages", .query = 3, .status = 200,
                               .duration = 1500, .up = 10, .down = 20, .outcome = RECEIPT_COMPLETED};
}

static void add(Store *s, const char *session, uint64_t ended, ReceiptOutcome outcome) {
        StoredReceipt r = sample((char *) session, ended);

        r.outcome = outcome;
        CHECK_INT(store_begin(s), 0);
        CHECK_INT(store_add(s, &r), 0);
        CHECK_INT(store_commit(s), 0);
}

static StoredReceipt newest(Store *s) {
        StoredReceiptList l = {};

        CHECK_INT(store_query(s, &(ReceiptFilter){.outcome = _RECEIPT_OUTCOME_INVALID, .limit = 1}, &l), 0);
        CHECK_INT(l.n_receipts, 1);
        StoredReceipt r = l.receipts[0];
        free(l.receipts);
        return r;
}

static void test_round_trip(void) {
        struct stat st;
        char path[128];

        setup();
        mode_t old = umask(0);
        Store *s = open_store();
        add(s, "s1", 1000, RECEIPT_COMPLETED);
        umask(old);
        StoredReceipt r = newest(s);
        CHECK_INT(r.number, 1);
        CHECK(streq(r.session, "s1") && streq(r.provider, "anthropic") && streq(r.credential, "ANTHROPIC_API_KEY") && streq(r.host, "api.example.com") &&
              streq(r.method, "POST") && streq(r.path, "/v1/messages"));
        CHECK(r.ended == 1000 && r.query == 3 && r.status == 200 && r.duration == 1500 && r.up == 10 && r.down == 20 && r.unrecorded == 0);
        CHECK_INT(r.outcome, RECEIPT_COMPLETED);
        stored_receipt_done(&r);
        for (size_t i = 0; i < 3; i++) {
                (void) snprintf(path, sizeof(path), "%s/receipts.db%s", state_path, (const char *[]){"", "-wal", "-shm"}[i]);
                CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
        }
        store_close(s);
        teardown();
}

static size_t count(Store *s, ReceiptFilter f, uint64_t *ret_first) {
        StoredReceiptList l;

        CHECK_INT(store_query(s, &f, &l), 0);
        size_t n = l.n_receipts;
        for (size_t i = 1; i < n; i++)
                CHECK(l.receipts[i].number < l.receipts[i - 1].number);
        if (ret_first)
                *ret_first = n > 0 ? l.receipts[0].number : 0;
        stored_receipt_list_done(&l);
        return n;
}

static void execute(const char *sql) {
        char path[128];
        sqlite3 *db;

        (void) snprintf(path, sizeof(path), "%s/receipts.db", state_path);
        CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
        CHECK_INT(sqlite3_exec(db, sql, NULL, NULL, NULL), SQLITE_OK);
        sqlite3_close(db);
}

/* As the first version made it: what is in it stays. */
static bool has_journal(void) {
        char path[128];
        struct stat st;

        (void) snprintf(path, sizeof(path), "%s/receipts.db-wal", state_path);
        return stat(path, &st) == 0 && st.st_size > 0;
}

static void test_leave(void) {
        StoredReceiptList list = {};
        ReceiptFilter filter = RECEIPT_FILTER_ANY;

        setup();
        Store *s = open_store();
        add(s, "s1", 1, RECEIPT_COMPLETED);
        store_leave(s);
        CHECK(has_journal());
        s = open_store();
        filter.limit = 10;
        CHECK_INT(store_query(s, &filter, &list), 0);
        CHECK_INT(list.n_receipts, 1);
        stored_receipt_list_done(&list);
        store_close(s);
        CHECK(!has_journal());
        teardown();
}

/* In place of the C library's, for SQLite to call. */
static unsigned syncs;

__attribute__((visibility("default"))) int fdatasync(int fd) {
        syncs++;
        return (int) syscall(SYS_fdatasync, fd);
}

__attribute__((visibility("default"))) int fsync(int fd) {
        syncs++;
        return (int) syscall(SYS_fsync, fd);
}

static void test_checkpoint(void) {
        setup();
        Store *s = open_store();
        CHECK(syncs > 0); /* they are counted */
        syncs = 0;
        for (uint64_t i = 1; i <= STORE_JOURNAL_PAGES && !store_grown(s); i++)
                add(s, "s1", i, RECEIPT_COMPLETED);
        CHECK(store_grown(s));
        CHECK_INT(store_collect(s, "s2"), 0);
        CHECK_INT(syncs, 0);
        CHECK_INT(store_checkpoint(state_path), 0);
        CHECK(syncs >= 2); /* the journal, then the database */
        syncs = 0;
        add(s, "s2", 1, RECEIPT_COMPLETED);
        CHECK(!store_grown(s)); /* the journal has begun anew */
        CHECK_INT(syncs, 0);
        add(s, "s2", 2, RECEIPT_COMPLETED);
        store_close(s);
        CHECK(syncs >= 2);
        s = open_store();
        CHECK_INT(count(s, (ReceiptFilter){.session = "s2", .outcome = _RECEIPT_OUTCOME_INVALID}, NULL), 2);
        CHECK(count(s, (ReceiptFilter){.session = "s1", .outcome = _RECEIPT_OUTCOME_INVALID}, NULL) > 100);
        store_close(s);
        CHECK_INT(store_checkpoint("/nonexistent"), -EIO);
        teardown();
}

static void test_upgrade(void) {
        char *problem = NULL;

        setup();
        Store *s = open_store();
        add(s, "s1", 1000, RECEIPT_COMPLETED);
        store_close(s);
        execute("ALTER TABLE receipts DROP COLUMN tokens; PRAGMA user_version = 1");
        s = open_store();
        StoredReceipt r = newest(s);
        CHECK(r.ended == 1000 && r.down == 20 && r.tokens == 0);
        stored_receipt_done(&r);
        add(s, "s1", 1001, RECEIPT_COMPLETED);
        store_close(s);
        store_close(open_store());
        execute("DROP TABLE receipts; PRAGMA user_version = 1");
        CHECK_INT(store_open(state_path, &s, &problem), 1);
        free(problem);
        store_close(s);
        teardown();
}

static void test_spending(void) {
        static const struct {
                const char *session, *provider;
                unsigned status;
                ReceiptOutcome outcome;
        } rows[] = {
                {"s1", "a", 200, RECEIPT_COMPLETED}, {"s1", "a", 200, RECEIPT_INTERRUPTED}, {"s1", "a", 502, RECEIPT_UPSTREAM_UNREACHABLE},
                {"s1", "a", 502, RECEIPT_REFUSED}, /* its answer was too large: it was passed on */
                {"s1", "a", 403, RECEIPT_REFUSED}, {"s1", "a", 400, RECEIPT_REFUSED}, {"s1", "a", 501, RECEIPT_REFUSED}, {"s1", "a", 401, RECEIPT_DENIED},
                {"s1", "b", 500, RECEIPT_COMPLETED}, {"s2", "a", 200, RECEIPT_COMPLETED},
        };
        StoredSpending *list;
        size_t n;

        setup();
        Store *s = open_store();
        CHECK_INT(store_sum_spending(s, "s1", &list, &n), 0);
        CHECK_INT(n, 0);
        CHECK_INT(store_begin(s), 0);
        for (size_t i = 0; i < ELEMENTSOF(rows); i++) {
                StoredReceipt r = sample((char *) rows[i].session, i + 1);
                r.provider = (char *) rows[i].provider;
                r.status = rows[i].status;
                r.outcome = rows[i].outcome;
                r.tokens = 100;
                /* Without receipts of their own: 10 that found no upstream, and so many that were turned away. */
                r.unrecorded = r.outcome == RECEIPT_UPSTREAM_UNREACHABLE ? 10 : r.outcome == RECEIPT_REFUSED || r.outcome == RECEIPT_DENIED ? 1000 : 0;
                CHECK_INT(store_add(s, &r), 0);
        }
        CHECK_INT(store_commit(s), 0);
        CHECK_INT(store_sum_spending(s, "s1", &list, &n), 0);
        CHECK_INT(n, 2);
        CHECK(streq(list[0].provider, "a") && list[0].requests == 14 && list[0].bytes == 120 && list[0].tokens == 400);
        CHECK(streq(list[1].provider, "b") && list[1].requests == 1 && list[1].bytes == 30 && list[1].tokens == 100);
        stored_spending_free(list, n);
        store_close(s);
        teardown();
}

static void test_query(void) {
        ReceiptFilter any = RECEIPT_FILTER_ANY, f;
        uint64_t first;

        setup();
        Store *s = open_store();
        CHECK_INT(store_begin(s), 0);
        for (unsigned i = 1; i <= 2500; i++) {
                StoredReceipt r = sample((char *) (i % 5 == 0 ? "s2" : "s1"), i);
                r.outcome = i % 100 == 0 ? RECEIPT_DENIED : RECEIPT_COMPLETED;
                r.provider = (char *) (i % 2 == 0 ? "openai" : "anthropic");
                CHECK_INT(store_add(s, &r), 0);
        }
        CHECK_INT(store_commit(s), 0);

        CHECK_INT(count(s, any, &first), 1000);
        CHECK_INT(first, 2500);
        f = any;
        f.limit = 5000;
        CHECK_INT(count(s, f, NULL), 1000);
        f.limit = 7;
        f.before = 2494;
        CHECK_INT(count(s, f, &first), 7);
        CHECK_INT(first, 2493);
        f = (ReceiptFilter){.session = "s2", .outcome = _RECEIPT_OUTCOME_INVALID};
        CHECK_INT(count(s, f, &first), 500);
        f.before = 11;
        CHECK_INT(count(s, f, &first), 2);
        CHECK_INT(first, 10);
        f = (ReceiptFilter){.session = "s2", .provider = "openai", .outcome = RECEIPT_DENIED, .since = 1001};
        CHECK_INT(count(s, f, &first), 15);
        f = (ReceiptFilter){.session = "' OR 1=1 --", .outcome = _RECEIPT_OUTCOME_INVALID};
        CHECK_INT(count(s, f, NULL), 0);
        f = (ReceiptFilter){.provider = "nobody", .outcome = _RECEIPT_OUTCOME_INVALID};
        CHECK_INT(count(s, f, NULL), 0);
        f = (ReceiptFilter){.sessions = (char *[]) {(char *) "s2", (char *) "s3", (char *) "\"]", NULL}, .outcome = _RECEIPT_OUTCOME_INVALID};
        CHECK_INT(count(s, f, &first), 500);
        CHECK_INT(first, 2500);
        f.before = 11;
        CHECK_INT(count(s, f, &first), 2);
        f = (ReceiptFilter){.sessions = (char *[]) {(char *) "s2", NULL}, .provider = "openai", .outcome = RECEIPT_DENIED, .since = 1001};
        CHECK_INT(count(s, f, NULL), 15);
        f = (ReceiptFilter){.sessions = (char *[]) {NULL}, .outcome = _RECEIPT_OUTCOME_INVALID};
        CHECK_INT(count(s, f, NULL), 0);
        store_close(s);
        teardown();
}

/* What it would have to look through for too long, while nobody else is answered. */
static void test_endless(void) {
        ReceiptFilter f = {.session = "s1", .provider = "nobody", .outcome = _RECEIPT_OUTCOME_INVALID};
        StoredReceiptList l = {};

        setup();
        Store *s = open_store();
        add(s, "s1", 1000, RECEIPT_COMPLETED);
        execute("PRAGMA synchronous = OFF; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 180000) INSERT INTO receipts (ended, session, provider,"
                " credential, host, method, path, query, status, duration, up, down, outcome, unrecorded) SELECT 1000, 's1', 'p', 'c', 'h', 'm', '/', 0,"
                " 200, 1, 1, 1, 'completed', 0 FROM n");
        CHECK_INT(store_query(s, &f, &l), -ETIME);
        CHECK_INT(store_query(s, &(ReceiptFilter){.sessions = (char *[]) {(char *) "s1", NULL}, .provider = "nobody", .outcome = _RECEIPT_OUTCOME_INVALID}, &l),
                  -ETIME);
        f.provider = "p";
        CHECK_INT(count(s, f, NULL), 1000);
        CHECK_INT(store_collect(s, "s1"), 0); /* is not a query */
        store_close(s);
        teardown();
}

static void test_collect(void) {
        SpoolPosition p = {.offset = 5, .length = 6};
        char command[256];

        setup();
        Store *s = open_store();
        add(s, "s1", 1, RECEIPT_COMPLETED);
        add(s, "goingaway", 2, RECEIPT_COMPLETED);
        CHECK_INT(store_set_spool(s, "goingaway", &p), 0);
        CHECK_INT(store_collect(s, "goingaway"), 0);
        CHECK_INT(count(s, RECEIPT_FILTER_ANY, NULL), 1);
        CHECK_INT(store_get_spool(s, "goingaway", &p), 0);
        CHECK(p.offset == 0 && p.length == 0);
        add(s, "s1", 3, RECEIPT_COMPLETED);
        StoredReceipt r = newest(s);
        CHECK_INT(r.number, 3); /* that of the one that went is not given again */
        stored_receipt_done(&r);
        store_close(s);
        /* Gone from the file as well: the last one to close has merged the journal. */
        (void) snprintf(command, sizeof(command), "! grep -q goingaway '%s/receipts.db'", state_path);
        CHECK_INT(system(command), 0);
        teardown();
}

static void write_file(const char *name, const char *text) {
        char path[128];

        (void) snprintf(path, sizeof(path), "%s/%s", state_path, name);
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
        CHECK(fd >= 0);
        CHECK_INT(write_all(fd, text, strlen(text)), 0);
}

static void test_damaged(void) {
        char *problem = NULL;
        struct stat st;
        char path[128];
        Store *s;

        setup();
        write_file("receipts.db", "this is no database at all, and longer than the header of one would be: …………………………………………………………");
        CHECK_INT(store_open(state_path, &s, &problem), 1);
        CHECK(strstr(problem, "receipts.db was damaged and is now "));
        free(problem);
        add(s, "s1", 1, RECEIPT_COMPLETED);
        (void) snprintf(path, sizeof(path), "%s/receipts.db", state_path);
        CHECK(stat(path, &st) == 0 && (st.st_mode & 07777) == 0600);
        store_close(s);
        teardown();
}

static void test_versions(void) {
        char *problem = NULL;
        Store *s = NULL;

        setup();
        store_close(open_store());
        store_close(open_store()); /* again, with what is there */
        execute("PRAGMA user_version = 3");
        CHECK_INT(store_open(state_path, &s, &problem), -EPROTONOSUPPORT);
        execute("PRAGMA user_version = 2; DROP TABLE spools");
        CHECK_INT(store_open(state_path, &s, &problem), 1);
        free(problem);
        store_close(s);
        teardown();
}

static void test_locked(void) {
        char path[128];
        sqlite3 *other;

        setup();
        Store *s = open_store();
        (void) snprintf(path, sizeof(path), "%s/receipts.db", state_path);
        CHECK_INT(sqlite3_open(path, &other), SQLITE_OK);
        CHECK_INT(sqlite3_exec(other, "BEGIN EXCLUSIVE", NULL, NULL, NULL), SQLITE_OK);
        CHECK_INT(store_begin(s), -EAGAIN);
        CHECK(strstr(store_error_text(s), "locked"));
        CHECK_INT(sqlite3_exec(other, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
        add(s, "s1", 1, RECEIPT_COMPLETED);
        sqlite3_close(other);
        store_close(s);
        teardown();
}

static void test_link(void) {
        char path[128], *problem = NULL;
        Store *s = NULL;

        setup();
        (void) snprintf(path, sizeof(path), "%s/receipts.db", state_path);
        CHECK_INT(symlink("/etc/passwd", path), 0);
        CHECK_INT(store_open(state_path, &s, &problem), -ELOOP);
        CHECK_INT(unlink(path), 0);
        CHECK_INT(mkfifo(path, 0600), 0);
        CHECK_INT(store_open(state_path, &s, &problem), -EPERM);
        teardown();
}

static void test_lock(void) {
        int status;

        setup();
        _cleanup_close_ int dir = open(state_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK_INT(state_lock_holder(dir), 0);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
                _exit(state_lock(dir) >= 0 ? 0 : 1);
        CHECK(waitpid(pid, &status, 0) == pid && status == 0); /* and its end has freed the lock */
        int fd = state_lock(dir);
        CHECK(fd >= 0);
        CHECK_INT(state_lock_holder(dir), getpid());
        CHECK_INT(state_lock(dir), -EBUSY);
        safe_close(fd);
        fd = state_lock(dir);
        CHECK(fd >= 0);
        safe_close(fd);
        teardown();
}

int main(void) {
        RUN(test_round_trip, "C190 S053: a receipt keeps the promised fields, in files of mode 0600");
        RUN(test_query, "receipts come newest first, at most a thousand, filtered and paged");
        RUN(test_endless, "C204: a query that would take too long is given up");
        RUN(test_collect, "S066: a session's receipts go with it, from the file too; the others stay");
        RUN(test_damaged, "C189: a database that is none is set aside by name, and a new one begun");
        RUN(test_leave, "a database that is left while the disk does not answer is whole for the next one");
        RUN(test_checkpoint, "T020: no receipt waits for a disk; its journal is put into the database beside, and is on disk then");
        RUN(test_upgrade, "a database of the first version is brought up to date with what is in it");
        RUN(test_spending, "budgets: what a session's calls have come to");
        RUN(test_versions, "C189: a newer database is refused, one without its tables is set aside");
        RUN(test_locked, "C189: a database locked by somebody else is an error that passes");
        RUN(test_link, "a link or a fifo in the database's place is refused");
        RUN(test_lock, "C200: one errandd a state directory; a dead one's lock is free");
        return TEST_END();
}
