/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <pwd.h>

#include "basic/log.h"
#include "basic/text.h"
#include "errand/describe.h"
#include "errand/grants.h"
#include "errand/json-output.h"
#include "errand/output.h"
#include "errand/receipts.h"
#include "errand/sessions.h"

#define LABEL_WIDTH 10

static TableColour state_colour(const char *state) {
        if (streq(state, "running"))
                return COLOUR_GOOD;
        if (streq(state, "failed"))
                return COLOUR_BAD;
        return streq(state, "stopped") ? COLOUR_DIM : COLOUR_NONE;
}

static int list_call(Connection *c, bool all, sd_bus_message **ret) {
        return manager_call(c, all ? "ListThreads" : "ListSessions", "Failed to list the sessions", ret, NULL);
}

static int by_age(const void *a, const void *b) {
        const SessionLine *x = a, *y = b;

        return x->created != y->created ? (x->created < y->created ? -1 : 1) : strcmp(x->id, y->id);
}

/* *ret is to free; its strings are the message's. */
static int read_lines(sd_bus_message *m, SessionLine **ret, size_t *ret_n) {
        _cleanup_free_ SessionLine *lines = NULL;
        size_t n = 0, room = 0;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "(sosst)");
        while (r >= 0) {
                SessionLine s;

                r = sd_bus_message_read(m, "(sosst)", &s.id, &s.path, &s.state, &s.project, &s.created);
                if (r <= 0)
                        break;
                if (n == room) {
                        SessionLine *more = realloc(lines, (room + 64) * sizeof(SessionLine));

                        if (!more)
                                return -ENOMEM;
                        lines = more;
                        room += 64;
                }
                lines[n++] = s;
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(lines);
        *ret_n = n;
        return 0;
}

int sessions_each(Connection *c, bool all, int (*each)(const SessionLine *s, void *userdata), void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_free_ SessionLine *lines = NULL;
        size_t n;
        int code, r;

        code = list_call(c, all, &m);
        if (code != EXIT_OK)
                return code;
        r = read_lines(m, &lines, &n);
        if (r < 0) {
                log_error_errno(r, "errandd's list of sessions cannot be read: %m");
                return EXIT_FAILED;
        }
        if (n > 0)
                qsort(lines, n, sizeof(SessionLine), by_age);
        for (size_t i = 0; i < n && code == EXIT_OK; i++)
                code = each(lines + i, userdata);
        return code;
}

static int list_json(Connection *c, bool all) {
        static const char *const names[] = {"id", "path", "state", "project", "createdUSec", NULL};
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_(json_writer_done) JsonWriter w = {};
        int r = list_call(c, all, &m);

        if (r != EXIT_OK)
                return r;
        r = json_add_structs(&w, NULL, m, names);
        if (r < 0) {
                log_error_errno(r, "errandd's list of sessions cannot be read: %m");
                return EXIT_FAILED;
        }
        return json_print(&w);
}

typedef struct List {
        Connection *connection;
        Table *table;
} List;

/* What the agent of one does that is talked to, or "". */
static const char *turn_word(const Description *d) {
        return d->turn == UINT64_MAX ? "" : d->questions > 0 ? ", asks" : d->turn > 0 ? ", works" : d->queued > 0 ? ", waits" : "";
}

static int add_line(const SessionLine *s, void *userdata) {
        _cleanup_(description_done) Description d = {.turn = UINT64_MAX};
        char created[TIME_TEXT_MAX], state[64];
        const List *l = userdata;
        int r = streq(s->state, "running") ? describe_if_there(l->connection, s->id, &d) : EXIT_OK;

        if (r != EXIT_OK && r != EXIT_NOT_THERE) /* gone meanwhile */
                return r;
        (void) snprintf(state, sizeof(state), "%s%s", s->state, turn_word(&d));
        table_add(l->table, s->id);
        table_add_coloured(l->table, state, state_colour(s->state));
        table_add(l->table, time_text(s->created, created));
        table_add(l->table, s->project);
        return EXIT_OK;
}

int sessions_list(const Request *q, bool all) {
        static const TableColumn columns[] = {{"ID"}, {"STATE"}, {"CREATED", .optional = 1}, {"PROJECT", .least = 16, .optional = 2}};
        _cleanup_(connection_freep) Connection *c = NULL;
        _cleanup_(table_freep) Table *t = NULL;
        int r;

        r = connection_open(q, CONNECT_START_STATE, &c);
        if (r != EXIT_OK)
                return r;
        if (q->json)
                return list_json(c, all);
        if (table_new(columns, ELEMENTSOF(columns), &t) < 0) {
                (void) log_oom();
                return EXIT_FAILED;
        }
        r = sessions_each(c, all, add_line, &(List){.connection = c, .table = t});
        if (r != EXIT_OK)
                return r;
        return output_table(q, t, all ? "No records." : "No sessions run; errand threads list shows those that ended.");
}

static void print_line(const char *label, const char *value) {
        _cleanup_free_ char *text = text_for_terminal(value);

        if (text && *text)
                printf("%*s  %s\n", LABEL_WIDTH, label, text);
}

static void print_time(const char *label, uint64_t usec) {
        char buffer[TIME_TEXT_MAX];
        print_line(label, time_text(usec, buffer));
}

static void print_account(const char *label, uint32_t uid) {
        const struct passwd *account = getpwuid(uid);
        char number[16];

        if (uid == UINT32_MAX)
                return;
        (void) snprintf(number, sizeof(number), "%u", uid);
        print_line(label, account ? account->pw_name : number);
}

const char *exit_text(const char *reason, int status, bool ran, char buffer[static EXIT_TEXT_MAX]) {
        const char *signal = status > 128 ? sigabbrev_np(status - 128) ?: "?" : "?";

        if (streq(reason, "exited"))
                (void) snprintf(buffer, EXIT_TEXT_MAX, "exited with %d", status);
        else if (streq(reason, "signal") || streq(reason, "killed"))
                (void) snprintf(buffer, EXIT_TEXT_MAX, "%s by signal %d (%s)", streq(reason, "signal") ? "ended" : "killed", status - 128, signal);
        else if (streq(reason, "setup"))
                (void) snprintf(buffer, EXIT_TEXT_MAX, "%s, exit code %d", ran ? "its agent could not be talked to" : "nothing ran", status);
        else if (streq(reason, "disk"))
                (void) snprintf(buffer, EXIT_TEXT_MAX, "stopped: it took too much of the disk, exit code %d", status);
        else if (streq(reason, "idle"))
                (void) snprintf(buffer, EXIT_TEXT_MAX, "stopped: nothing happened in it, exit code %d", status);
        else if (streq(reason, "lost"))
                (void) snprintf(buffer, EXIT_TEXT_MAX, "lost: nobody can say how it ended");
        else
                (void) snprintf(buffer, EXIT_TEXT_MAX, "%.64s, exit code %d", reason, status);
        return buffer;
}

static void print_ended(const Description *d) {
        char how[EXIT_TEXT_MAX];

        if (!*d->reason)
                return;
        print_line("result", exit_text(d->reason, d->status, d->started > 0, how));
        print_line("reason", d->text);
}

/* Of one that is talked to now. */
static void print_turn(const char *id, const Description *d) {
        char text[224], waiting[48] = "";

        if (d->turn == UINT64_MAX)
                return;
        if (d->questions > 0)
                (void) snprintf(text, sizeof(text), "prompt %" PRIu64 " waits for an answer: errand session logs %s has the question, and errand say %s '!answer OPTION' answers it",
                                d->turn, id, id);
        else if (d->turn > 0)
                (void) snprintf(text, sizeof(text), "the agent works on prompt %" PRIu64, d->turn);
        else
                (void) snprintf(text, sizeof(text), "waits for %s", *d->waiting ? d->waiting : d->queued > 0 ? "a turn" : "a prompt");
        if (d->queued > 0)
                (void) snprintf(waiting, sizeof(waiting), "%" PRIu64 " more", d->queued);
        print_line("turn", text);
        print_line("queued", waiting);
}

static void print_description(const char *id, const Description *d) {
        char number[32];

        print_line("session", id);
        printf("%*s  %s%s%s\n", LABEL_WIDTH, "state", colour_begin(state_colour(d->state), output_colours()), d->state,
               colour_end(state_colour(d->state), output_colours()));
        print_ended(d);
        print_turn(id, d);
        print_line("command", d->command);
        print_line("project", d->project);
        print_line("backend", d->backend);
        print_line("provider", d->provider);
        print_line("model", d->model);
        print_line("protocol", streq(d->protocol, "none") ? "" : d->protocol);
        print_line("network", d->network);
        if (d->allow)
                print_line("allow", *d->allow ? d->allow : "no host");
        print_account("owner", d->owner);
        print_account("runs as", d->payload);
        print_time("created", d->created);
        print_time("started", d->started);
        print_time("ended", d->ended);
        (void) snprintf(number, sizeof(number), "%llu connections", (unsigned long long) d->refused);
        print_line("refused", d->refused > 0 ? number : "");
}

static int show_json(Connection *c, const char *id, Description *d, unsigned receipts) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        int r, code = EXIT_OK;

        if (receipts > 0) {
                json_open_object(&w, NULL);
                r = json_add_value(&w, "session", d->message);
                if (r >= 0)
                        code = grants_add_json(c, id, "grants", &w);
                if (r >= 0 && code == EXIT_OK)
                        code = receipts_add_json(c, id, receipts, "receipts", &w);
                json_close_object(&w);
        } else
                r = json_add_value(&w, NULL, d->message);
        if (r < 0) {
                log_error_errno(r, "errandd's description of session %s cannot be read: %m", id);
                return EXIT_FAILED;
        }
        return code == EXIT_OK ? json_print(&w) : code;
}

int session_show(const Request *q, unsigned receipts) {
        _cleanup_(connection_freep) Connection *c = NULL;
        _cleanup_(description_done) Description d = {};
        const char *id = q->operands[0];
        int r;

        r = connection_open(q, CONNECT_START_STATE, &c);
        if (r == EXIT_OK)
                r = describe(c, id, &d);
        if (r != EXIT_OK)
                return r;
        if (q->json)
                return show_json(c, id, &d, receipts);
        output_begin(q);
        print_description(id, &d);
        if (receipts > 0) {
                r = grants_print(c, id);
                if (r == EXIT_OK)
                        r = receipts_print(c, id, receipts);
        }
        output_end();
        return r;
}
