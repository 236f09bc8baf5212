/* SPDX-License-Identifier: LGPL-2.1-or-later */

/* Whoever dies, and whatever is full or lost: each receipt is in exactly once. */

#include <sched.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "ingest-fixture.h"

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

/* The same; a file system that is read-only for a time. */
static int read_only(void) {
        char path[128], *problem = NULL;
        IngestReport r;

        if (enter_namespace() < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
                return 7;
        (void) snprintf(path, sizeof(path), "%s/small", state_path);
        if (mkdir(path, 0700) < 0 || mount("tmpfs", path, "tmpfs", 0, "size=4m,mode=700") < 0)
                return 8;
        append_receipt(0);
        if (store_open(path, &store, &problem) != 0 || ingest(false, &r) < 0)
                return 1;
        store = store_close(store);
        append_receipt(1);
        if (mount(NULL, path, NULL, MS_REMOUNT | MS_RDONLY, NULL) < 0)
                return 2;
        if (store_open(path, &store, &problem) != -EROFS || store || problem)
                return 3;
        if (mount(NULL, path, NULL, MS_REMOUNT, NULL) < 0 || store_open(path, &store, &problem) != 0)
                return 4;
        if (ingest(false, &r) < 0 || r.receipts != 1)
                return 5;
        check_serials(2);
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

static void in_namespace(int (*function)(void)) {
        int status;

        setup();
        store = store_close(store);
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0)
                _exit(setjmp(test_jump) == 0 ? function() : 9);
        CHECK_INT(waitpid(pid, &status, 0), pid);
        CHECK(WIFEXITED(status));
        CHECK_INT(WEXITSTATUS(status), 0);
        teardown();
}

static void test_full_disk(void) {
        in_namespace(full_disk);
}

static void test_read_only(void) {
        in_namespace(read_only);
}

int main(void) {
        RUN(test_lost_database, "C189: a database that was lost or damaged is filled again from the spools");
        RUN(test_killed, "C200 S052: killed at any time, each receipt is in exactly once");
        if (may_trace())
                RUN(test_killed_at_each_write, "C200 S052: killed before any of its writes, each receipt is in exactly once");
        else
                printf("ok %u - C200 S052: killed before any write # SKIP this account may trace no process\n", ++test_count);
        if (namespace_possible()) {
                RUN(test_full_disk, "C189 S067: a full disk loses nothing, and goes on when there is room");
                RUN(test_read_only, "C189 S067: a database on a read-only file system is refused, and whole afterwards");
        } else {
                printf("ok %u - C189 S067: a full disk # SKIP this account may make no mount namespace\n", ++test_count);
                printf("ok %u - C189 S067: a read-only file system # SKIP this account may make no mount namespace\n", ++test_count);
        }
        return TEST_END();
}
