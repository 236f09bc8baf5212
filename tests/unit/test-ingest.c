/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/json-writer.h"
#include "basic/text.h"
#include "errandd/ingest.h"
#include "test.h"

static char state_path[64];
static int spool = -EBADF;
static Store *store;

static unsigned n_warnings, n_uses, kill_at_use;
static int use_error;
static char last_warning[512];

static int grant_used(const char *session, uint32_t number, usec_t used, void *userdata) {
        (void) userdata;
        if (!streq(session, "s1") || number != 7 || used == 0)
                return -EINVAL;
        n_uses++;
        if (n_uses == kill_at_use)
                (void) kill(getpid(), SIGKILL);
        return use_error;
}

static void warn(const char *text, void *userdata) {
        (void) userdata;
        n_warnings++;
        (void) snprintf(last_warning, sizeof(last_warning), "%s", text);
}

static const IngestHandler handler = {.grant_used = grant_used, .warn = warn};

static void open_store(void) {
        char *problem = NULL;
        CHECK_INT(store_open(state_path, &store, &problem), 0);
}

static void setup(void) {
        char path[128];

        strcpy(state_path, "/tmp/errand-test-ingest.XXXXXX");
        CHECK(mkdtemp(state_path));
        (void) snprintf(path, sizeof(path), "%s/spool", state_path);
        spool = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        CHECK(spool >= 0);
        open_store();
        n_warnings = n_uses = kill_at_use = 0;
        use_error = 0;
}

static void teardown(void) {
        char command[160];

        store = store_close(store);
        spool = safe_close(spool);
        (void) snprintf(command, sizeof(command), "rm -rf -- '%s'", state_path);
        CHECK_INT(system(command), 0);
}

/* A receipt whose "up" is a serial number, by which it is found again. */
static size_t make_record(const char *session, uint64_t serial, uint8_t *out) {
        _cleanup_free_ char *text = NULL;
        JsonWriter w = {};
        size_t size;

        json_open_object(&w, NULL);
        json_add_u64(&w, "ended", 1000 + serial);
        json_add_string(&w, "session", session);
        json_add_string(&w, "provider", "anthropic");
        json_add_string(&w, "credential", "ANTHROPIC_API_KEY");
        json_add_string(&w, "host", "api.example.com");
        json_add_string(&w, "method", "POST");
        json_add_string(&w, "path", "/v1/messages");
        json_add_u64(&w, "query", 0);
        json_add_u64(&w, "status", 200);
        json_add_u64(&w, "duration", 5);
        json_add_u64(&w, "up", serial);
        json_add_u64(&w, "down", 1);
        json_add_string(&w, "outcome", "completed");
        json_close_object(&w);
        CHECK_INT(json_writer_finish(&w, &text, &size), 0);
        spool_encode(SPOOL_RECEIPT, text, size, out);
        return SPOOL_HEADER_SIZE + size;
}

static void append(const void *data, size_t size) {
        CHECK_INT(write_all(spool, data, size), 0);
}

static void append_receipt(uint64_t serial) {
        uint8_t record[1024];
        append(record, make_record("s1", serial, record));
}

static void append_payload(SpoolKind kind, const char *payload) {
        uint8_t record[SPOOL_HEADER_SIZE + SPOOL_PAYLOAD_MAX];
        spool_encode(kind, payload, strlen(payload), record);
        append(record, SPOOL_HEADER_SIZE + strlen(payload));
}

static void append_use(void) {
        append_payload(SPOOL_GRANT_USED, "{\"used\":1000,\"session\":\"s1\",\"grant\":\"7\",\"host\":\"a.example\"}");
}

static int ingest(bool final, IngestReport *ret) {
        return ingest_spool(store, "s1", spool, final, &handler, ret);
}

/* That the receipts in the store are those of 0…n-1, each once. */
static void check_serials(uint64_t n) {
        uint64_t before = 0, expected = n;

        for (;;) {
                ReceiptFilter f = {.session = "s1", .outcome = _RECEIPT_OUTCOME_INVALID, .before = before};
                StoredReceiptList l;
                CHECK_INT(store_query(store, &f, &l), 0);
                if (l.n_receipts == 0)
                        break;
                for (size_t i = 0; i < l.n_receipts; i++)
                        if (l.receipts[i].up != --expected)
                                test_fail(__FILE__, __LINE__, "receipt %" PRIu64 " in place of %" PRIu64, l.receipts[i].up, expected);
                before = l.receipts[l.n_receipts - 1].number;
                stored_receipt_list_done(&l);
        }
        CHECK_INT(expected, 0);
}

static void test_plain(void) {
        IngestReport r;

        setup();
        CHECK_INT(ingest(false, &r), 0);
        for (unsigned i = 0; i < 2000; i++)
                append_receipt(i); /* more than one chunk */
        append_use();
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(r.receipts, 2000);
        CHECK_INT(r.grants_used, 1);
        CHECK(!r.torn && r.damaged == 0);
        CHECK_INT(ingest(true, &r), 0);
        CHECK_INT(r.receipts, 0);
        append_receipt(2000);
        store = store_close(store);
        open_store();
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(r.receipts, 1);
        check_serials(2001);
        CHECK_INT(n_warnings, 0);
        CHECK_INT(n_uses, 1);
        teardown();
}

static void test_torn(void) {
        uint8_t record[1024];
        IngestReport r;

        setup();
        append_receipt(0);
        size_t size = make_record("s1", 1, record);
        for (size_t i = 0; i < size; i++) {
                CHECK_INT(ingest(false, &r), 0);
                CHECK_INT(r.receipts, i == 0);
                CHECK_INT(r.torn, i > 0);
                append(record + i, 1);
        }
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(r.receipts, 1);
        check_serials(2);
        CHECK_INT(n_warnings, 0);
        teardown();
}

static void test_torn_for_ever(void) {
        uint8_t record[1024];
        IngestReport r;

        setup();
        /* A writer that died in a record, and one after it that goes on behind it. */
        append_receipt(0);
        size_t size = make_record("s1", 9, record);
        append(record, size - 10);
        append_receipt(1);
        append_receipt(2);
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(r.receipts, 3);
        CHECK_INT(r.damaged, 1);
        CHECK_INT(r.skipped, size - 10);
        CHECK_INT(n_warnings, 1);
        CHECK(strstr(last_warning, "session s1 is damaged in 1 place(s), the first at byte "));
        /* At the end nobody will complete it, and what hid in the length it claimed is found. */
        record[8] = 0xff;
        record[9] = 0x0f;
        append(record, 20);
        append_receipt(3);
        CHECK_INT(ingest(false, &r), 0);
        CHECK(r.receipts == 0 && r.torn);
        CHECK_INT(ingest(true, &r), 0);
        CHECK_INT(r.receipts, 1);
        CHECK_INT(r.damaged, 1);
        append(record, 3);
        CHECK_INT(ingest(true, &r), 0);
        CHECK_INT(r.damaged, 1);
        append_receipt(4); /* the session is resumed */
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(r.receipts, 1);
        check_serials(5);
        teardown();
}

static void test_damaged(void) {
        static const char *const payloads[] = {
                "", "{}", "[]", "{\"a\":1", "null", "{\"session\":\"s1\"}",
                "{\"ended\":1,\"session\":\"s2\",\"provider\":\"a\",\"credential\":\"B\",\"host\":\"c\",\"method\":\"GET\",\"path\":\"/\",\"query\":0,\"status\":200,"
                "\"duration\":1,\"up\":1,\"down\":1,\"outcome\":\"completed\"}",
                "{\"ended\":1,\"session\":\"s1\",\"provider\":\"a\",\"credential\":\"B\",\"host\":\"c\",\"method\":\"GET\",\"path\":\"/\",\"query\":0,\"status\":200,"
                "\"duration\":1,\"up\":1,\"down\":1,\"outcome\":\"lost\"}",
                "{\"ended\":-1,\"session\":\"s1\",\"provider\":\"a\",\"credential\":\"B\",\"host\":\"c\",\"method\":\"GET\",\"path\":\"/\",\"query\":0,\"status\":200,"
                "\"duration\":1,\"up\":1,\"down\":1,\"outcome\":\"completed\"}",
        };
        char junk[3000];
        IngestReport r;
        SpoolPosition p;

        setup();
        for (unsigned i = 0; i < ELEMENTSOF(payloads); i++) {
                append_receipt(i);
                append_payload(SPOOL_RECEIPT, payloads[i]);
        }
        append_payload(SPOOL_GRANT_USED, "{\"used\":1,\"session\":\"s2\",\"grant\":\"7\",\"host\":\"a\"}");
        append_payload(SPOOL_GRANT_USED, "{\"used\":1,\"session\":\"s1\",\"grant\":\"-7\",\"host\":\"a\"}");
        memset(junk, 'E', sizeof(junk)); /* the magic's first letter, again and again */
        append(junk, sizeof(junk));
        append_receipt(ELEMENTSOF(payloads));
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(r.receipts, ELEMENTSOF(payloads) + 1);
        CHECK_INT(r.damaged, ELEMENTSOF(payloads) + 3);
        CHECK_INT(n_warnings, 1);
        CHECK_INT(n_uses, 0);
        CHECK_INT(store_get_spool(store, "s1", &p), 0);
        CHECK_INT(p.damaged, ELEMENTSOF(payloads) + 3);
        check_serials(ELEMENTSOF(payloads) + 1);
        teardown();
}

static void test_flipped_bits(void) {
        uint8_t record[1024];
        IngestReport r;

        /* Whatever byte of the middle one is wrong: the first and the last are in, once. */
        size_t size = make_record("s1", 5, record);
        for (size_t i = 0; i < size; i += 7) {
                setup();
                append_receipt(0);
                record[i] ^= 0x20;
                append(record, size);
                record[i] ^= 0x20;
                append_receipt(1);
                CHECK_INT(ingest(true, &r), 0);
                CHECK_INT(r.receipts, 2);
                CHECK_INT(r.damaged, 1);
                check_serials(2);
                teardown();
        }
}

static void test_shrunk(void) {
        IngestReport r;
        struct stat st;

        setup();
        append_receipt(0);
        append_receipt(1);
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(fstat(spool, &st), 0);
        CHECK_INT(ftruncate(spool, st.st_size - 1), 0);
        CHECK_INT(ingest(false, &r), -ESTALE);
        CHECK_INT(n_warnings, 1);
        CHECK(strstr(last_warning, "session s1 became shorter"));
        /* It grows again: it stays what it is, also after a restart, and is told once. */
        for (unsigned i = 2; i < 9; i++)
                append_receipt(i);
        store = store_close(store);
        open_store();
        CHECK_INT(ingest(true, &r), -ESTALE);
        CHECK_INT(n_warnings, 1);
        check_serials(2);
        teardown();
}

static void remove_database(void) {
        static const char *const names[] = {"receipts.db", "receipts.db-wal", "receipts.db-shm"};
        char path[128];

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                (void) snprintf(path, sizeof(path), "%s/%s", state_path, names[i]);
                CHECK(unlink(path) == 0 || errno == ENOENT);
        }
}

static void damage_database(void) {
        char path[128], junk[4096];

        memset(junk, 0x5a, sizeof(junk));
        (void) snprintf(path, sizeof(path), "%s/receipts.db", state_path);
        _cleanup_close_ int fd = open(path, O_WRONLY | O_CLOEXEC);
        CHECK(fd >= 0);
        for (unsigned page = 1; page < 40; page++) /* all but the first, with which it still opens */
                CHECK_INT(pwrite(fd, junk, sizeof(junk), (off_t) page * 4096), sizeof(junk));
}

static void test_lost_database(void) {
        ReceiptFilter f = RECEIPT_FILTER_ANY;
        StoredReceiptList l;
        char *problem = NULL;
        IngestReport r;

        setup();
        for (unsigned i = 0; i < 1500; i++)
                append_receipt(i);
        CHECK_INT(ingest(false, &r), 0);
        store = store_close(store);
        remove_database();
        open_store();
        CHECK_INT(ingest(false, &r), 0);
        check_serials(1500);

        store = store_close(store);
        damage_database();
        int q = store_open(state_path, &store, &problem);
        if (q == 0) {
                CHECK_INT(store_query(store, &f, &l), -EUCLEAN);
                CHECK(strstr(store_error_text(store), "malformed"));
                store = store_close(store);
                CHECK_INT(store_set_aside(state_path, &problem), 0);
                open_store();
        } else
                CHECK_INT(q, 1);
        CHECK(strstr(problem, "was damaged and is now "));
        free(problem);
        CHECK_INT(ingest(false, &r), 0);
        check_serials(1500);
        teardown();
}

static void test_use_fails(void) {
        IngestReport r;

        setup();
        append_receipt(0);
        append_use();
        use_error = -EIO;
        CHECK_INT(ingest(false, &r), -EIO);
        CHECK_INT(r.receipts, 0);
        use_error = -EBADMSG; /* the handler's error is not taken for a damaged record */
        CHECK_INT(ingest(false, &r), -EIO);
        use_error = 0;
        CHECK_INT(ingest(false, &r), 0);
        CHECK_INT(r.receipts, 1);
        CHECK_INT(r.grants_used, 1);
        CHECK_INT(n_warnings, 0);
        check_serials(1);
        teardown();
}

/* Never returns normally: ingests until somebody kills it, or, when told so, until it kills itself in a transaction. */
static _noreturn_ void ingest_for_ever(unsigned at_use) {
        char *problem = NULL;
        IngestReport r;

        kill_at_use = at_use;
        if (store_open(state_path, &store, &problem) != 0)
                _exit(2);
        for (;;)
                if (ingest(false, &r) < 0)
                        _exit(3);
}

static void run_and_kill(unsigned at_use, unsigned usec, uint64_t *serial) {
        int status;

        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
                ingest_for_ever(at_use);
        /* More arrives while it reads. */
        for (unsigned i = 0; i < 100; i++) {
                append_receipt((*serial)++);
                if (i % 10 == 0)
                        append_use();
        }
        if (usec > 0) {
                usleep(usec);
                (void) kill(pid, SIGKILL);
        }
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

static void test_killed(void) {
        uint64_t serial = 0;
        unsigned seed = 1;
        IngestReport r;

        setup();
        store = store_close(store);
        for (unsigned i = 0; i < 300; i++)
                append_receipt(serial++);
        /* In a transaction, after its n-th use of a grant… */
        for (unsigned i = 1; i <= 12; i++)
                run_and_kill(i % 4 + 1, 0, &serial);
        /* … and at any time at all, commits among them. */
        for (unsigned i = 0; i < 25; i++)
                run_and_kill(0, (unsigned) rand_r(&seed) % 15000 + 1, &serial);
        open_store();
        CHECK_INT(ingest(true, &r), 0);
        CHECK_INT(r.damaged, 0);
        check_serials(serial);
        teardown();
}

/* Reads three receipts, and when three more have come, those, while its parent counts what it writes. */
static _noreturn_ void ingest_traced(void) {
        char *problem = NULL;
        IngestReport r;

        if (ptrace(PTRACE_TRACEME, 0, 0, 0) < 0)
                _exit(77);
        (void) raise(SIGSTOP);
        if (store_open(state_path, &store, &problem) != 0 || ingest(false, &r) < 0)
                _exit(1);
        for (unsigned i = 3; i < 6; i++)
                append_receipt(i);
        if (ingest(false, &r) < 0)
                _exit(1);
        store = store_close(store); /* which merges the journal */
        _exit(0);
}

static bool at_write(pid_t pid) {
        struct __ptrace_syscall_info info;

        if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(info), &info) <= 0 || info.op != PTRACE_SYSCALL_INFO_ENTRY)
                return false;
        return info.entry.nr == SYS_pwrite64 || info.entry.nr == SYS_fdatasync || info.entry.nr == SYS_fsync || info.entry.nr == SYS_ftruncate ||
               info.entry.nr == SYS_unlink;
}

/* Kills a reader before it writes or syncs for the n-th time. True: there was an n-th time; *ret is how it ended. */
static bool kill_at_write(unsigned n, int *ret) {
        pid_t pid = fork();

        CHECK(pid >= 0);
        if (pid == 0)
                ingest_traced();
        CHECK_INT(waitpid(pid, ret, 0), pid);
        if (!WIFSTOPPED(*ret))
                return false;
        CHECK_INT(ptrace(PTRACE_SETOPTIONS, pid, 0, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL), 0);
        for (unsigned seen = 0; seen < n;) {
                CHECK_INT(ptrace(PTRACE_SYSCALL, pid, 0, 0), 0);
                CHECK_INT(waitpid(pid, ret, 0), pid);
                if (!WIFSTOPPED(*ret))
                        return false;
                seen += at_write(pid);
        }
        CHECK_INT(kill(pid, SIGKILL), 0);
        CHECK_INT(waitpid(pid, ret, 0), pid);
        return true;
}

static void test_killed_at_each_write(void) {
        unsigned n = 0;
        bool killed;

        do {
                IngestReport r;
                struct stat st;
                uint8_t record[1024];
                int status;

                setup();
                store = store_close(store);
                for (unsigned i = 0; i < 3; i++)
                        append_receipt(i);
                killed = kill_at_write(++n, &status);
                CHECK(killed || (WIFEXITED(status) && WEXITSTATUS(status) == 0));
                open_store();
                CHECK_INT(ingest(true, &r), 0);
                CHECK_INT(fstat(spool, &st), 0);
                check_serials((uint64_t) st.st_size / make_record("s1", 0, record));
                teardown();
        } while (killed);
        CHECK(n > 10); /* so that the counting counts */
        printf("# killed at %u writes\n", n - 1);
}

static bool may_trace(void) {
        int status = 1;

        pid_t pid = fork();
        if (pid == 0)
                _exit(ptrace(PTRACE_TRACEME, 0, 0, 0) < 0 ? 1 : 0);
        return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

/* A mount namespace, for an ordinary account in a user namespace in which it keeps its uid. */
static int enter_namespace(void) {
        char uids[64], gids[64];

        if (geteuid() == 0)
                return unshare(CLONE_NEWNS);
        (void) snprintf(uids, sizeof(uids), "%u %u 1", geteuid(), geteuid());
        (void) snprintf(gids, sizeof(gids), "%u %u 1", getegid(), getegid());
        if (unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0 || write_file_once("/proc/self/setgroups", "deny") < 0 ||
            write_file_once("/proc/self/gid_map", gids) < 0)
                return -1;
        return write_file_once("/proc/self/uid_map", uids);
}

/* In namespaces of its own, on a file system of 512 KiB. 0 when all is as it should be. */
static int full_disk(void) {
        char path[128], *problem = NULL;
        IngestReport r;
        uint64_t serial = 0;

        if (enter_namespace() < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return 7;
        (void) snprintf(path, sizeof(path), "%s/small", state_path);
        if (mkdir(path, 0700) < 0 || mount("tmpfs", path, "tmpfs", 0, "size=512k,mode=700") < 0)
                return 8;
        if (store_open(path, &store, &problem) != 0)
                return 1;
        for (; serial < 9000; serial++)
                append_receipt(serial);
        /* The disk fills up before the receipts are in. */
        if (ingest(false, &r) != -ENOSPC || !strstr(store_error_text(store), "full"))
                return 2;
        uint64_t got = r.receipts;
        if (got >= serial || ingest(false, &r) != -ENOSPC)
                return 3;
        /* Nothing of what was told is lost, nothing is in twice, and it goes on by itself when there is room. */
        if (mount(NULL, path, NULL, MS_REMOUNT, "size=8m") < 0)
                return 4;
        if (ingest(false, &r) < 0 || got + r.receipts < serial)
                return 5;
        check_serials(serial);
        store_close(store);
        return n_warnings == 0 ? 0 : 6;
}

static bool namespace_possible(void) {
        int status = 1;

        pid_t pid = fork();
        if (pid == 0)
                _exit(enter_namespace() < 0 ? 1 : 0);
        return pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
}

static void test_full_disk(void) {
        int status;

        setup();
        store = store_close(store);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
                _exit(setjmp(test_jump) == 0 ? full_disk() : 9);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status));
        CHECK_INT(WEXITSTATUS(status), 0);
        teardown();
}

int main(void) {
        RUN(test_plain, "receipts and uses of grants are read by offset, also after a restart");
        RUN(test_torn, "a torn tail is waited for");
        RUN(test_torn_for_ever, "a record whose writer died is skipped, and what follows it is found");
        RUN(test_damaged, "S052: damaged and falsified records are skipped, counted and told once; another session's is not taken");
        RUN(test_flipped_bits, "any flipped bit costs that record alone");
        RUN(test_shrunk, "a spool that became shorter is tampering: told, remembered, and read no further");
        RUN(test_lost_database, "C189: a database that was lost or damaged is filled again from the spools");
        RUN(test_use_fails, "a use of a grant that could not be kept comes again");
        RUN(test_killed, "C200 S052: killed at any time, each receipt is in exactly once");
        if (may_trace())
                RUN(test_killed_at_each_write, "C200 S052: killed before any of its writes, each receipt is in exactly once");
        else
                printf("ok %u - C200 S052: killed before any write # SKIP this account may trace no process\n", ++test_count);
        if (namespace_possible())
                RUN(test_full_disk, "C189 S067: a full disk loses nothing, and goes on when there is room");
        else
                printf("ok %u - C189 S067: a full disk # SKIP this account may make no mount namespace\n", ++test_count);
        return TEST_END();
}
