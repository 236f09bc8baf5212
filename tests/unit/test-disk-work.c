/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What happens to a session while the disk takes its time: its thread is held at a pipe, and what was asked for waits behind it. */

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "errandd/disk-work.h"
#include "errandd/project.h"
#include "errandd/record.h"
#include "errandd/session-run.h"
#include "test.h"

#define LONG_USEC (10 * USEC_PER_SEC)
#define WORKS 6U

typedef struct World {
        char path[64];
        int state, gate[2];
        sd_event *event;
        Manager m;
        Run run;
        Session *session;
} World;

static World w;
static const Caller owner = {.operator = true};

static void wait_at_gate(void *data) {
        char c;
        (void) !read(*(const int *) data, &c, 1);
}

static void hold(void) {
        static const WorkClass class = {.run = wait_at_gate};
        CHECK_INT(worker_do(w.m.disk, &class, &w.gate[0], NULL), 0);
}

static void release(void) {
        CHECK(write(w.gate[1], "x", 1) == 1);
        CHECK_INT(worker_wait(w.m.disk, LONG_USEC), 0);
}

static Session *add(const char *id) {
        char name[SESSION_ID_MAX + 1];
        SessionRecord *record;
        int dir = -EBADF;
        Session *s;

        strcpy(name, id);
        CHECK_INT(record_create(w.m.records, name, &dir), 0);
        CHECK_INT(session_record_new(id, 1000, &record), 0);
        CHECK_INT(session_record_write(dir, record), 0);
        safe_close(dir);
        CHECK_INT(session_new(&w.m, record, &s), 0);
        return s;
}

/* A session whose broker is on its way. */
static void begin(void) {
        w = (World){.run = {.port = 1, .broker_state = BROKER_BEGINS}};
        strcpy(w.path, "/tmp/errand-test-disk-work.XXXXXX");
        CHECK(mkdtemp(w.path));
        w.state = open(w.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        CHECK(pipe2(w.gate, O_CLOEXEC) == 0);
        CHECK(sd_event_new(&w.event) >= 0);
        w.m = (Manager){.event = w.event, .owners = -EBADF, .records = record_root_open(w.state)};
        CHECK(w.m.records >= 0);
        CHECK_INT(worker_new(w.event, "test", WORKS, &w.m.disk), 0);
        w.session = add("one");
        w.session->record->state = SESSION_STARTING;
        w.session->run = &w.run;
        w.run.session = w.session;
}

static void end(void) {
        worker_free(w.m.disk);
        while (w.m.n_sessions > 0) {
                Session *s = w.m.sessions[0];
                manager_remove(&w.m, s);
                (void) record_remove(w.m.records, s->record->id);
                session_free(s);
        }
        free(w.m.sessions);
        safe_close(w.m.records);
        CHECK_INT(unlinkat(w.state, ".records", AT_REMOVEDIR), 0);
        safe_close(w.state);
        CHECK_INT(rmdir(w.path), 0);
        safe_close(w.gate[0]);
        safe_close(w.gate[1]);
        sd_event_unref(w.event);
}

typedef struct Answer {
        unsigned n;
        int code; /* ERROR_NONE: it was done */
} Answer;

static void on_given(_unused_ Session *s, const Grant *g, const Fault *fault, void *userdata) {
        Answer *a = userdata;

        a->n++;
        a->code = g ? ERROR_NONE : fault->code;
}

static void on_done(_unused_ Session *s, const Fault *fault, _unused_ int fd, void *userdata) {
        Answer *a = userdata;

        a->n++;
        a->code = fault ? fault->code : ERROR_NONE;
}

static void on_removed(_unused_ Manager *m, _unused_ const char *id, int error, void *userdata) {
        *(Answer *) userdata = (Answer){.n = 1, .code = error};
}

static bool on_claimed(_unused_ const Fault *fault, _unused_ bool made, void *userdata) {
        ((Answer *) userdata)->n++;
        return true;
}

static size_t grants_on_disk(const char *id) {
        _cleanup_close_ int dir = record_open(w.m.records, id);
        _cleanup_free_ char *problem = NULL;
        GrantList l;

        CHECK(dir >= 0);
        CHECK_INT(grant_list_read(dir, &l, &problem), 0);
        size_t n = l.n_grants;
        grant_list_done(&l);
        return n;
}

static void give(const char *duration, Answer *a) {
        Fault f = {};
        CHECK_INT(session_grant(w.session, &owner, "a.example", duration, on_given, a, &f), 0);
}

static void test_again(void) {
        Answer given = {}, removed = {}, revoked = {};
        Fault f = {};

        begin();
        give("always", &given);
        give("always", &given);
        CHECK_INT(worker_wait(w.m.disk, LONG_USEC), 0);
        CHECK(given.n == 2 && given.code == ERROR_NONE);
        w.session->run = NULL;
        w.session->record->state = SESSION_STOPPED;
        hold(); /* it is there still when what is to be written into it is asked for */
        CHECK_INT(disk_remove_record(&w.m, "one", on_removed, &removed), 0);
        hold();
        CHECK_INT(session_revoke(w.session, 1, on_done, &revoked, &f), 0);
        CHECK(write(w.gate[1], "x", 1) == 1);
        while (removed.n == 0)
                CHECK(sd_event_run(w.event, LONG_USEC) > 0);
        CHECK_INT(removed.code, 0);
        manager_remove(&w.m, w.session);
        session_forget_grant_waits(w.session, true);
        session_free(w.session);
        w.session = add("one");
        release();
        CHECK_INT(revoked.n, 1);
        CHECK_INT(grants_on_disk("one"), 0);
        end();
}

/* As for each second in which its spool is read. */
static void test_use(void) {
        Answer given = {}, more = {};

        begin();
        give("once", &given);
        CHECK_INT(worker_wait(w.m.disk, LONG_USEC), 0);
        hold();
        for (unsigned i = 0; i < 2 * WORKS; i++)
                CHECK_INT(session_grant_was_used(w.session, 1, 1), -EINPROGRESS);
        give("always", &more);
        release();
        CHECK(more.n == 1 && more.code == ERROR_NONE);
        CHECK_INT(session_grant_was_used(w.session, 1, 1), 0);
        end();
}

static void test_ends(void) {
        Answer given = {}, more = {};

        begin();
        for (unsigned i = 0; i < 2 * WORKS; i++) {
                give("10m", &given);
                CHECK_INT(worker_wait(w.m.disk, LONG_USEC), 0);
        }
        CHECK_INT(given.n, 2 * WORKS);
        hold();
        for (unsigned i = 0; i < 2 * WORKS; i++) {
                w.session->grants.grants[0].span = 1;
                CHECK_INT(session_grants_to_broker(w.session), 0);
                CHECK_INT(w.session->grants.n_grants, 2 * WORKS - 1 - i);
        }
        give("always", &more);
        release();
        CHECK(more.n == 1 && more.code == ERROR_NONE);
        CHECK_INT(grants_on_disk("one"), 1);
        end();
}

/* Nothing can be put beside a grants.json then: each write of one fails. */
static void block(bool yes) {
        _cleanup_close_ int dir = record_open(w.m.records, "one");

        CHECK_INT(yes ? mkdirat(dir, ".grants.json.tmp", 0700) : unlinkat(dir, ".grants.json.tmp", AT_REMOVEDIR), 0);
}

/* As a process that was killed at this moment leaves it. */
static size_t refused_on_disk(const char *host) {
        _cleanup_close_ int dir = record_open(w.m.records, "one");
        _cleanup_free_ char *problem = NULL;
        size_t n = 0;
        GrantList l;

        CHECK_INT(grant_list_read(dir, &l, &problem), 0);
        for (size_t i = 0; i < l.n_grants; i++)
                n += streq(l.grants[i].host, host);
        grant_list_done(&l);
        return n;
}

static void on_given_look(_unused_ Session *s, const Grant *g, const Fault *fault, void *userdata) {
        on_given(s, g, fault, userdata);
        CHECK_INT(refused_on_disk("refused.example"), 0);
}

static void wait_answer(const Answer *a) {
        while (a->n == 0)
                CHECK(sd_event_run(w.event, LONG_USEC) > 0);
}

static void test_refused(void) {
        Answer refused = {}, given = {}, revoked = {};
        Fault f = {};

        begin();
        hold();
        CHECK_INT(session_grant(w.session, &owner, "refused.example", "always", on_given, &refused, &f), 0);
        hold();
        CHECK_INT(session_grant(w.session, &owner, "given.example", "always", on_given_look, &given, &f), 0);
        block(true);
        CHECK(write(w.gate[1], "x", 1) == 1);
        wait_answer(&refused);
        CHECK_INT(refused.code, ERROR_STORAGE);
        CHECK_INT(refused_on_disk("refused.example"), 0);
        block(false);
        CHECK(write(w.gate[1], "x", 1) == 1);
        wait_answer(&given);
        CHECK_INT(given.code, ERROR_NONE);
        CHECK_INT(w.session->grants.n_grants, 1);
        CHECK_INT(worker_wait(w.m.disk, LONG_USEC), 0);
        CHECK_INT(grants_on_disk("one"), 1);

        /* Both are refused that were to go in one text, and a revocation counts, is told not to be on disk, and gets there when it can. */
        refused = given = (Answer){};
        block(true);
        hold();
        CHECK_INT(session_revoke(w.session, 2, on_done, &revoked, &f), 0);
        CHECK_INT(session_grant(w.session, &owner, "refused.example", "always", on_given, &refused, &f), 0);
        CHECK_INT(session_grant(w.session, &owner, "refused.example", "always", on_given, &refused, &f), 0);
        CHECK(write(w.gate[1], "x", 1) == 1);
        while (refused.n < 2)
                CHECK(sd_event_run(w.event, LONG_USEC) > 0);
        CHECK(revoked.n == 1 && revoked.code == ERROR_STORAGE && refused.code == ERROR_STORAGE);
        CHECK(w.session->grants.n_grants == 0 && grants_on_disk("one") == 1);
        block(false);
        while (grants_on_disk("one") > 0)
                CHECK(sd_event_run(w.event, LONG_USEC) > 0);
        CHECK_INT(worker_wait(w.m.disk, LONG_USEC), 0);
        end();
}

static void test_claims(void) {
        const Caller one = {.uid = 1001}, other = {.uid = 1002};
        char root[] = "/nowhere/of/test-disk-work", name[16];
        Answer a = {};
        Config c = {.project_root = root};
        Paths paths = {.state = w.path};

        begin();
        worker_free(w.m.disk);
        CHECK_INT(worker_new(w.event, "test", 1024, &w.m.disk), 0);
        w.m.config = &c;
        w.m.paths = &paths;
        w.m.owners = project_owners_open(w.state);
        CHECK(w.m.owners >= 0);
        hold();
        for (unsigned i = 0; i < 256; i++) {
                Fault f = {};

                (void) snprintf(name, sizeof(name), "p%u", i);
                CHECK_INT(manager_claim_project(&w.m, &one, name, on_claimed, &a, &f), 0);
        }
        Fault f = {};
        CHECK(manager_claim_project(&w.m, &one, "more", on_claimed, &a, &f) < 0 && f.code == ERROR_LIMIT);
        fault_done(&f);
        CHECK_INT(manager_claim_project(&w.m, &other, "other", on_claimed, &a, &f), 0);
        release();
        CHECK_INT(a.n, 257);
        CHECK(!w.m.claims);
        project_tally_done(&w.m.tally);
        safe_close(w.m.owners);
        CHECK_INT(unlinkat(w.state, ".projects", AT_REMOVEDIR), 0);
        end();
}

static void test_removed(void) {
        Answer a = {};

        begin();
        for (unsigned i = 0; i < 2; i++) {
                CHECK_INT(disk_remove_record(&w.m, "one", on_removed, &a), 0);
                CHECK_INT(worker_wait(w.m.disk, LONG_USEC), 0);
                CHECK(a.n == 1 && a.code == 0);
        }
        end();
}

static void add_receipt(void) {
        const StoredReceipt r = {.session = (char *) "one", .provider = (char *) "p", .credential = (char *) "C", .host = (char *) "h", .method = (char *) "GET",
                                 .path = (char *) "/", .outcome = RECEIPT_COMPLETED};

        CHECK_INT(store_begin(w.m.store), 0);
        CHECK_INT(store_add(w.m.store, &r), 0);
        CHECK_INT(store_commit(w.m.store), 0);
}

static void test_checkpoint(void) {
        char *problem = NULL;
        Paths paths = {};

        begin();
        paths.state = w.path;
        paths.state_fd = w.state;
        w.m.paths = &paths;
        CHECK_INT(store_open(w.path, &w.m.store, &problem), 0);
        disk_checkpoint_store(&w.m);
        CHECK(!w.m.checkpoints); /* nothing to do yet */
        while (!store_grown(w.m.store))
                add_receipt();
        hold();
        for (unsigned i = 0; i < 2 * WORKS; i++) {
                disk_checkpoint_store(&w.m);
                add_receipt();
        }
        CHECK(w.m.checkpoints);
        release();
        CHECK(!w.m.checkpoints);
        add_receipt();
        CHECK(!store_grown(w.m.store));
        store_close(w.m.store);
        CHECK(unlinkat(w.state, "receipts.db", 0) == 0);
        end();
}

int main(void) {
        RUN(test_again, "what was to be written into a record that has gone does not come into the next one of its id");
        RUN(test_use, "T020: the use of a grant waits for the disk once, however often it is told");
        RUN(test_ends, "T020: however many grants end meanwhile, that waits for the disk once");
        RUN(test_checkpoint, "T020: the receipts' journal waits for the disk once, and receipts not at all");
        RUN(test_refused, "C200: a grant that was refused is on disk at no later moment; a revocation gets there when the disk takes it");
        RUN(test_claims, "C204: projects that are being claimed count for the account that claims them");
        RUN(test_removed, "a record that has gone can be removed again");
        return TEST_END();
}
