/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/io.h"
#include "basic/text.h"
#include "errandd/record.h"
#include "test.h"

/* A state directory of its own for each test; what is left of it after a failure is the failure's evidence. */
static char state_path[64];
static int state_fd = -EBADF, root = -EBADF;

static void setup(void) {
        strcpy(state_path, "/tmp/errand-test-record.XXXXXX");
        CHECK(mkdtemp(state_path));
        state_fd = open(state_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        root = record_root_open(state_fd);
        CHECK(root >= 0);
}

static void teardown(void) {
        root = safe_close(root);
        CHECK_INT(unlinkat(state_fd, ".records", AT_REMOVEDIR), 0);
        state_fd = safe_close(state_fd);
        CHECK_INT(rmdir(state_path), 0);
}

static int create(const char *id) {
        char name[SESSION_ID_MAX + 1];
        int dir = -EBADF;

        strcpy(name, id);
        CHECK_INT(record_create(root, name, &dir), 0);
        return dir;
}

static SessionRecord *full_record(const char *id) {
        SessionRecord *s;

        CHECK_INT(session_record_new(id, 4000000000U, &s), 0);
        s->project = strdup("web \xc3\xa9 \"x\"\n");
        s->backend = strdup("bailey");
        CHECK_INT(strv_extend(&s->command, "sh"), 0);
        CHECK_INT(strv_extend(&s->command, ""), 0);
        CHECK_INT(strv_extend(&s->env, "A=b"), 0);
        s->allow_given = true;
        s->interactive = true;
        s->protocol = strdup("acp");
        s->state = SESSION_RUNNING;
        s->payload = 1000;
        s->exit_status = 137;
        s->refused = 5;
        s->transcript_length = 12345678901;
        return s;
}

static void test_round_trip(void) {
        _cleanup_(session_record_freep) SessionRecord *s = NULL, *again = NULL;
        char *problem = NULL;
        size_t ahead;

        setup();
        _cleanup_close_ int dir = create("s1");
        s = full_record("s1");
        CHECK_INT(session_record_write(dir, s), 0);
        CHECK_INT(session_record_write(dir, s), 0);
        CHECK_INT(session_record_settle(root, "s1"), 1);
        CHECK_INT(session_record_settle(root, "s1"), 0);
        CHECK_INT(session_record_read(dir, "s1", &again, &ahead, &problem), 0);
        CHECK_INT(ahead, RECORD_AHEAD_MAX);
        CHECK_INT(again->owner, 4000000000U);
        CHECK_STR(again->project, s->project);
        CHECK_INT(strv_length(again->command), 2);
        CHECK_STR(again->env[0], "A=b");
        CHECK(again->allow_given && !again->allow && again->interactive && streq(again->protocol, "acp") && !again->model);
        CHECK_INT(again->state, SESSION_RUNNING);
        CHECK_INT(again->payload, 1000);
        CHECK_INT(again->transcript_length, 12345678901);
        CHECK_INT(again->created, s->created);
        CHECK_INT(record_remove(root, "s1"), 0);
        CHECK_INT(record_open(root, "s1"), -ENOENT);
        teardown();
}

static void test_ids(void) {
        static const char *const bad[] = {".", "..", ".x", "A", "a b", "a/b", "../x", "--privileged", "x;id", "$(id)", "a\n", "a-b", "a_b",
                                          "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "\xc3\xa9"};
        char seen[50][SESSION_ID_MAX + 1] = {};

        setup();
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                char id[64];
                int dir;
                strcpy(id, bad[i]);
                CHECK_INT(record_create(root, id, &dir), -EINVAL);
                CHECK_INT(record_open(root, id), -EINVAL);
        }
        CHECK(session_id_valid("aaaaaaaaaaaaaaaaaaaaaaaaaaaa"));
        CHECK(!session_id_valid(""));
        for (size_t i = 0; i < ELEMENTSOF(seen); i++) {
                int dir;
                CHECK_INT(record_create(root, seen[i], &dir), 0);
                safe_close(dir);
                CHECK(session_id_valid(seen[i]));
                for (size_t k = 0; k < i; k++)
                        CHECK(!streq(seen[i], seen[k]));
        }
        char taken[SESSION_ID_MAX + 1];
        int dir;
        strcpy(taken, seen[0]);
        CHECK_INT(record_create(root, taken, &dir), -EEXIST);
        for (size_t i = 0; i < ELEMENTSOF(seen); i++)
                CHECK_INT(record_remove(root, seen[i]), 0);
        teardown();
}

static void test_modes(void) {
        struct stat st;

        setup();
        mode_t old = umask(0);
        _cleanup_close_ int dir = create("s1");
        CHECK(fstat(dir, &st) == 0 && (st.st_mode & 07777) == 0700);
        CHECK_INT(record_replace_file(dir, "grants.json", "{}", 2), 0);
        CHECK(fstatat(dir, "grants.json", &st, 0) == 0 && (st.st_mode & 07777) == 0600);
        _cleanup_close_ int append = record_open_append(dir, "transcript");
        CHECK(append >= 0 && fstat(append, &st) == 0 && (st.st_mode & 07777) == 0600);
        CHECK(fcntl(append, F_GETFL) & O_APPEND);
        umask(old);
        CHECK_INT(fchmod(dir, 0750), 0);
        CHECK_INT(record_open(root, "s1"), -EPERM);
        CHECK_INT(fchmod(dir, 0700), 0);
        CHECK_INT(record_remove(root, "s1"), 0);
        teardown();
}

static void test_odd_files(void) {
        char *text;

        setup();
        _cleanup_close_ int dir = create("s1");
        CHECK_INT(symlinkat("/etc/passwd", dir, "session.json"), 0);
        CHECK_INT(record_read_file(dir, "session.json", &text, NULL), -EPERM);
        CHECK_INT(record_open_append(dir, "session.json"), -EPERM);
        CHECK_INT(mkfifoat(dir, "transcript", 0600), 0);
        CHECK_INT(record_open_read(dir, "transcript"), -EPERM); /* and does not wait for a writer */
        int linked = record_open_append(dir, "events");
        CHECK(linked >= 0);
        safe_close(linked);
        CHECK_INT(linkat(dir, "events", dir, "other", 0), 0);
        CHECK_INT(record_open_append(dir, "events"), -EPERM);
        CHECK_INT(record_open_read(dir, "../x"), -EINVAL);
        CHECK_INT(record_replace_file(dir, "../x", "", 0), -EINVAL);
        CHECK_INT(record_replace_file(dir, ".hidden", "", 0), -EINVAL);
        /* A link in the place of a file is replaced, never written through. */
        CHECK_INT(record_replace_file(dir, "session.json", "{}", 2), 0);
        CHECK_INT(record_read_file(dir, "session.json", &text, NULL), 0);
        CHECK_STR(text, "{}");
        free(text);
        CHECK_INT(record_remove(root, "s1"), 0);
        teardown();
}

static void check_problem(const char *text, size_t size, const char *expected) {
        SessionRecord *s = NULL;
        char *problem = NULL;

        int r = session_record_parse("s1", text, size, &s, &problem);
        if (r != (streq(expected, "of version 2") ? -EPROTONOSUPPORT : -EBADMSG) || !problem || !strstr(problem, expected))
                test_fail(__FILE__, __LINE__, "%s: %d %s", text, r, problem ?: "?");
        free(problem);
}

static void test_damaged(void) {
        _cleanup_(session_record_freep) SessionRecord *s = full_record("s1");
        _cleanup_free_ char *text = NULL;
        size_t size;
        static const char *const edits[][3] = {
                {"\"v\":1", "\"v\":2", "of version 2"},
                {"\"v\":1", "\"v\":\"1\"", "no version"},
                {"\"id\":\"s1\"", "\"id\":\"s2\"", "another session"},
                {"\"running\"", "\"collected\"", "state"},
                {"\"running\"", "\"Running\"", "state"},
                {"4000000000", "4294967295", "owner"},
                {"4000000000", "-1", "owner"},
                {"\"refused\":5", "\"refused\":\"5\"", "refused"},
                {"\"refused\":5", "\"refused\":5.5", "refused"},
                {"\"refused\":5,", "", "no member refused"},
                {"\"refused\":5", "\"refused\":5,\"secret\":1", "unknown member \"secret\""},
                {"[\"sh\",\"\"]", "[\"sh\",1]", "command"},
                {"[\"sh\",\"\"]", "\"sh\"", "command"},
                {"\"interactive\":true", "\"interactive\":1", "interactive"},
                {"\"refused\":5", "\"refused\":5,\"refused\":6", "given twice"},
        };

        CHECK_INT(session_record_format(s, &text, &size), 0);
        for (size_t n = 0; n < size; n++)
                check_problem(text, n, "line ");
        for (size_t i = 0; i < ELEMENTSOF(edits); i++) {
                char edited[2048], *at = strstr(text, edits[i][0]);
                CHECK(at);
                int n = snprintf(edited, sizeof(edited), "%.*s%s%s", (int) (at - text), text, edits[i][1], at + strlen(edits[i][0]));
                check_problem(edited, (size_t) n, edits[i][2]);
        }
}

static void test_list(void) {
        static const char *const ids[] = {"a1", "b2", "c3"};
        _cleanup_free_ char *text = NULL;
        RecordEntry *entries;
        size_t n, size;

        setup();
        for (size_t i = 0; i < 3; i++) {
                _cleanup_(session_record_freep) SessionRecord *s = full_record(ids[i]);
                _cleanup_close_ int dir = create(ids[i]);
                CHECK_INT(session_record_format(s, &text, &size), 0);
                /* The middle one is cut in half. */
                CHECK_INT(record_replace_file(dir, "session.json", text, i == 1 ? size / 2 : size), 0);
                text = mfree(text);
        }
        safe_close(create("d4")); /* without its description, as after a removal that was cut short */
        CHECK_INT(mkdirat(root, "Not-An-Id", 0700), 0);
        _cleanup_close_ int other = create("e5");
        CHECK_INT(record_replace_file(other, "session.json", "{\"v\":9}", 7), 0); /* another version's */
        CHECK_INT(record_list(root, &entries, &n), 0);
        CHECK_INT(n, 6);
        CHECK(!entries[0].damaged && !entries[1].damaged && entries[2].damaged && entries[4].damaged && !entries[5].damaged);
        CHECK(streq(entries[0].id, "Not-An-Id") && strstr(entries[0].problem, "no session's record"));
        CHECK(streq(entries[1].id, "a1") && entries[1].record && !entries[1].problem);
        CHECK(streq(entries[2].id, "b2") && !entries[2].record && strstr(entries[2].problem, ".records/b2/session.json line "));
        CHECK(streq(entries[3].id, "c3") && entries[3].record);
        CHECK(streq(entries[4].id, "d4") && strstr(entries[4].problem, "No such file"));
        record_list_free(entries, n);
        CHECK_INT(unlinkat(root, "Not-An-Id", AT_REMOVEDIR), 0);
        for (size_t i = 0; i < 3; i++)
                CHECK_INT(record_remove(root, ids[i]), 0);
        CHECK_INT(record_remove(root, "d4"), 0);
        CHECK_INT(record_remove(root, "e5"), 0);
        teardown();
}

static int write_at(int dir, const char *name, const char *text, size_t size) {
        (void) unlinkat(dir, name, 0);
        _cleanup_close_ int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        return fd < 0 ? -errno : write_all(fd, text, size);
}

/* By the count that it has refused, which is other for each. */
static char *text_of(unsigned refused, size_t *ret_size) {
        _cleanup_(session_record_freep) SessionRecord *s = full_record("s1");
        char *text;

        s->refused = refused;
        CHECK_INT(session_record_format(s, &text, ret_size), 0);
        return text;
}

/* What is there after a kill, or a loss of power, in the middle of a save. */
static void test_moments(void) {
        enum { NONE, TORN, EMPTY, WHOLE };
        static const char *const names[] = {".session.json.tmp", ".session.json.new", ".session.json.sync", "session.json"};
        /* As they are found, and which of them (4: the record is none, and goes) counts. */
        static const struct {
                int found[4];
                unsigned counts;
        } moments[] = {
                {{NONE, NONE, NONE, WHOLE}, 3},   {{EMPTY, NONE, NONE, WHOLE}, 3},  {{TORN, NONE, NONE, WHOLE}, 3},   {{WHOLE, NONE, NONE, WHOLE}, 3},
                {{NONE, WHOLE, NONE, WHOLE}, 1},  {{TORN, WHOLE, NONE, WHOLE}, 1},  {{NONE, NONE, WHOLE, WHOLE}, 2},  {{TORN, WHOLE, WHOLE, WHOLE}, 1},
                {{NONE, EMPTY, NONE, WHOLE}, 3},  {{NONE, TORN, NONE, WHOLE}, 3},   {{NONE, NONE, TORN, WHOLE}, 3},   {{NONE, EMPTY, WHOLE, WHOLE}, 2},
                {{NONE, TORN, TORN, WHOLE}, 3},   {{NONE, WHOLE, EMPTY, WHOLE}, 1}, {{NONE, WHOLE, NONE, NONE}, 1},   {{NONE, NONE, WHOLE, NONE}, 2},
                {{EMPTY, WHOLE, TORN, NONE}, 1},  {{NONE, EMPTY, NONE, NONE}, 4},   {{TORN, NONE, NONE, NONE}, 4},    {{NONE, TORN, EMPTY, NONE}, 4},
        };

        for (size_t i = 0; i < ELEMENTSOF(moments); i++) {
                setup();
                _cleanup_close_ int dir = create("s1");
                for (unsigned k = 0; k < 4; k++) {
                        size_t size;
                        _cleanup_free_ char *text = text_of(k, &size);
                        int found = moments[i].found[k];
                        if (found != NONE)
                                CHECK_INT(write_at(dir, names[k], text, found == WHOLE ? size : found == TORN ? size / 2 : 0), 0);
                }
                for (unsigned again = 0; again < 2; again++) { /* and what it found, it finds again */
                        RecordEntry *entries;
                        size_t n;

                        CHECK_INT(record_list(root, &entries, &n), 0);
                        CHECK_INT(n, 1);
                        if (moments[i].counts == 4)
                                CHECK(!entries[0].record);
                        else
                                CHECK(entries[0].record && entries[0].record->refused == moments[i].counts);
                        record_list_free(entries, n);
                        for (unsigned k = 0; k < 3 && moments[i].counts != 4; k++)
                                CHECK_INT(faccessat(dir, names[k], F_OK, AT_SYMLINK_NOFOLLOW), -1);
                }
                CHECK_INT(moments[i].counts == 4 ? record_remove_unfinished(root, "s1") : record_remove(root, "s1"), 0);
                teardown();
        }
}

/* Tells by the descriptor when it has done so once. */
static _noreturn_ void save_for_ever(int dir, bool settles, int told) {
        _cleanup_(session_record_freep) SessionRecord *s = full_record("s1");

        for (unsigned i = 0;; i++) {
                s->refused++;
                if (settles)
                        (void) session_record_settle(root, "s1");
                else
                        (void) session_record_write(dir, s);
                if (i == 0)
                        (void) !write(told, "x", 1);
        }
}

static void test_killed_ahead(void) {
        uint64_t seen = 0;

        setup();
        _cleanup_close_ int dir = create("s1");
        _cleanup_(session_record_freep) SessionRecord *s = full_record("s1");
        CHECK_INT(session_record_write(dir, s), 0);
        for (unsigned i = 0; i < 15; i++) {
                RecordEntry *entries;
                size_t n;
                pid_t pids[2];
                int told[2];
                char c;

                CHECK_INT(pipe2(told, O_CLOEXEC), 0);
                for (unsigned k = 0; k < 2; k++) {
                        pids[k] = fork();
                        CHECK(pids[k] >= 0);
                        if (pids[k] == 0)
                                save_for_ever(dir, k == 1, told[1]);
                }
                /* Both are at it before any moment counts. */
                for (unsigned k = 0; k < 2; k++)
                        CHECK_INT(read(told[0], &c, 1), 1);
                safe_close(told[0]);
                safe_close(told[1]);
                usleep(1000 + 700 * i);
                for (unsigned k = 0; k < 2; k++)
                        CHECK_INT(kill(pids[k], SIGKILL), 0);
                for (unsigned k = 0; k < 2; k++)
                        CHECK_INT(waitpid(pids[k], NULL, 0), pids[k]);
                CHECK_INT(record_list(root, &entries, &n), 0);
                CHECK(n == 1 && entries[0].record && entries[0].record->refused >= 5);
                seen = MAX(seen, entries[0].record->refused);
                record_list_free(entries, n);
        }
        CHECK(seen > 5);
        CHECK_INT(record_remove(root, "s1"), 0);
        teardown();
}

static _noreturn_ void rewrite_for_ever(int dir) {
        char text[4096];

        for (unsigned i = 0;; i++) {
                memset(text, 'a' + (char) (i % 26), sizeof(text));
                (void) record_replace_file(dir, "grants.json", text, sizeof(text));
        }
}

static void test_killed(void) {
        setup();
        _cleanup_close_ int dir = create("s1");
        CHECK_INT(record_replace_file(dir, "grants.json", "a", 1), 0);
        for (unsigned i = 0; i < 15; i++) {
                char *text;
                size_t size;
                pid_t pid = fork();
                CHECK(pid >= 0);
                if (pid == 0)
                        rewrite_for_ever(dir);
                usleep(1000 + 700 * i);
                CHECK_INT(kill(pid, SIGKILL), 0);
                CHECK_INT(waitpid(pid, NULL, 0), pid);
                CHECK_INT(record_read_file(dir, "grants.json", &text, &size), 0);
                CHECK(size == 1 || size == 4096);
                for (size_t k = 1; k < size; k++)
                        CHECK(text[k] == text[0]);
                free(text);
        }
        CHECK_INT(record_replace_file(dir, "grants.json", "b", 1), 0); /* over what the last one left */
        CHECK_INT(record_remove(root, "s1"), 0);
        teardown();
}

static void test_watch(void) {
        uint64_t length = 0;

        setup();
        _cleanup_close_ int dir = create("s1");
        _cleanup_close_ int holder = record_open_append(dir, "events"), ours = record_open_read(dir, "events");
        CHECK(holder >= 0 && ours >= 0);
        CHECK_INT(write_all(holder, "12345", 5), 0);
        CHECK_INT(record_watch_length(ours, &length), 0);
        CHECK_INT(length, 5);
        CHECK_INT(ftruncate(holder, 4), 0);
        CHECK_INT(record_watch_length(ours, &length), -ESTALE);
        CHECK_INT(length, 5);
        CHECK_INT(record_remove(root, "s1"), 0);
        teardown();
}

int main(void) {
        RUN(test_round_trip, "C195: a record is written and read back, large uids too");
        RUN(test_ids, "C199: session ids are a strict pattern; minted ones are unique");
        RUN(test_modes, "C190: records are for one account alone, whatever the umask");
        RUN(test_odd_files, "links, fifos and names that climb are refused");
        RUN(test_damaged, "C200: a record that is cut or damaged by hand is a named error");
        RUN(test_list, "C200: a damaged record does not keep the others from loading");
        RUN(test_killed, "C200: whoever dies while writing, the old file or the new one is there");
        RUN(test_moments, "C200: at each moment of a save the old record counts or the new one, and never a torn one");
        RUN(test_killed_ahead, "C200: whoever is killed while a record is written, or is being put on disk, leaves a whole one");
        RUN(test_watch, "a file that became shorter is tampering");
        return TEST_END();
}
