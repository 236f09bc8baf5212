/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <pwd.h>

#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "errand/grants.h"
#include "errand/json-output.h"
#include "errand/output.h"
#include "errand/sessions.h"
#include "errand/verbs.h"
#include "shared/bus-object.h"

static int list_call(Connection *c, const char *id, sd_bus_message **ret) {
        char doing[96];
        int r = check_id(id);

        (void) snprintf(doing, sizeof(doing), "session %s: Failed to list its grants", id);
        return r != EXIT_OK ? r : manager_call(c, "ListGrants", doing, ret, "s", id);
}

/* 1: *ret is one, borrowed from the message; 0: there is no more. */
static int next_grant(sd_bus_message *m, GrantLine *ret) {
        BusObject o;
        int r;

        r = sd_bus_message_read(m, "(osstu)", &ret->path, &ret->host, &ret->duration, &ret->expires, &ret->by);
        if (r <= 0)
                return r;
        ret->number = bus_object_parse(ret->path, &o) >= 0 ? (unsigned) o.number : 0;
        return 1;
}

static int unreadable(const char *id, int r) {
        log_error_errno(r, "errandd's list of grants of session %s cannot be read: %m", id);
        return EXIT_FAILED;
}

int verb_grant(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_(json_writer_done) JsonWriter w = {};
        const char *id = q->operands[0], *host = q->operands[1], *duration = q->n_operands > 2 ? q->operands[2] : "once", *path;
        BusObject o;
        int r;

        r = connection_open(q, CONNECT_START_STATE | CONNECT_ASKS, &c);
        if (r == EXIT_OK)
                r = session_call(c, id, "Grant", "Failed to grant the host", &m, "ss", host, duration);
        if (r != EXIT_OK)
                return r;
        r = sd_bus_message_read_basic(m, 'o', &path);
        if (r < 0 || bus_object_parse(path, &o) < 0)
                return unreadable(id, r < 0 ? r : -EBADMSG);
        if (q->json) {
                json_open_object(&w, NULL);
                json_add_u64(&w, "number", o.number);
                json_add_string(&w, "path", path);
                json_close_object(&w);
                return json_print(&w);
        }
        if (streq(duration, "once"))
                printf("session %s may reach %s with its next connection (grant %u)\n", id, host, (unsigned) o.number);
        else
                printf("session %s may reach %s %s%s (grant %u)\n", id, host, streq(duration, "always") ? "" : "for ", duration,
                       (unsigned) o.number);
        return EXIT_OK;
}

static const TableColumn columns[] = {
        {"SESSION"}, {"N", .right = true}, {"HOST", .least = 20}, {"DURATION", .optional = 2}, {"EXPIRES", .optional = 3}, {"BY", .optional = 1},
};

static void add_grant(Table *t, const char *id, const GrantLine *g) {
        const struct passwd *account = getpwuid(g->by);
        char expires[TIME_TEXT_MAX];

        table_add(t, id);
        table_addf(t, "%u", g->number);
        table_add(t, g->host);
        table_add(t, g->duration);
        table_add(t, time_text(g->expires, expires));
        if (account)
                table_add(t, account->pw_name);
        else
                table_addf(t, "%u", g->by);
}

int grants_each(Connection *c, const char *id, int (*each)(const char *id, const GrantLine *g, void *userdata), void *userdata) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int code = EXIT_OK, r;
        GrantLine g;

        r = list_call(c, id, &m);
        if (r != EXIT_OK)
                return r;
        r = sd_bus_message_enter_container(m, 'a', "(osstu)");
        while (r >= 0 && code == EXIT_OK && (r = next_grant(m, &g)) > 0)
                code = each(id, &g, userdata);
        return r < 0 ? unreadable(id, r) : code;
}

static int add_one(const char *id, const GrantLine *g, void *userdata) {
        add_grant(userdata, id, g);
        return EXIT_OK;
}

static int add_grants(Connection *c, const char *id, Table *t) {
        return grants_each(c, id, add_one, t);
}

int grants_print(Connection *c, const char *id) {
        _cleanup_(table_freep) Table *t = NULL;
        int r;

        if (table_new(columns, ELEMENTSOF(columns), &t) < 0) {
                (void) log_oom();
                return EXIT_FAILED;
        }
        r = add_grants(c, id, t);
        if (r != EXIT_OK || table_rows(t) == 0)
                return r;
        printf("\ngrants\n");
        return table_print(t, stdout, output_width(), output_colours()) < 0 ? EXIT_FAILED : EXIT_OK;
}

int grants_add_json(Connection *c, const char *id, const char *key, JsonWriter *w) {
        static const char *const names[] = {"path", "host", "duration", "expiresUSec", "grantedByUid", NULL};
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        int r;

        r = list_call(c, id, &m);
        if (r != EXIT_OK)
                return r;
        r = json_add_structs(w, key, m, names);
        return r < 0 ? unreadable(id, r) : EXIT_OK;
}

typedef struct Every {
        Connection *connection;
        Table *table;
        JsonWriter *writer;
} Every;

static int of_session(const SessionLine *s, void *userdata) {
        Every *e = userdata;

        return e->writer ? grants_add_json(e->connection, s->id, s->id, e->writer) : add_grants(e->connection, s->id, e->table);
}

static int grants_json(Connection *c, const char *id) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        Every every = {.connection = c, .writer = &w};
        int r;

        if (id)
                r = grants_add_json(c, id, NULL, &w);
        else {
                json_open_object(&w, NULL);
                r = sessions_each(c, true, of_session, &every);
                json_close_object(&w);
        }
        return r == EXIT_OK ? json_print(&w) : r;
}

int verb_grants(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        _cleanup_(table_freep) Table *t = NULL;
        const char *id = q->n_operands > 0 ? q->operands[0] : NULL;
        Every every;
        int r;

        r = connection_open(q, CONNECT_START_STATE, &c);
        if (r != EXIT_OK)
                return r;
        if (q->json)
                return grants_json(c, id);
        if (table_new(columns, ELEMENTSOF(columns), &t) < 0) {
                (void) log_oom();
                return EXIT_FAILED;
        }
        every = (Every){.connection = c, .table = t};
        r = id ? add_grants(c, id, t) : sessions_each(c, true, of_session, &every);
        return r == EXIT_OK ? output_table(q, t, "No grants.") : r;
}

/* A number that is no host's name: errandd refuses hosts that look like one. */
static bool matches(const GrantLine *g, const char *word) {
        uint64_t n;
        size_t size = strlen(word);

        if (parse_u64(word, UINT32_MAX, &n) >= 0)
                return g->number == n;
        if (size > 0 && word[size - 1] == '.')
                size--;
        return ascii_case_equal(word, size, g->host);
}

int verb_revoke(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        const char *id = q->operands[0], *word = q->operands[1];
        unsigned revoked = 0;
        GrantLine g;
        int code, r;

        code = connection_open(q, CONNECT_START_STATE | CONNECT_ASKS, &c);
        if (code == EXIT_OK)
                code = list_call(c, id, &m);
        if (code != EXIT_OK)
                return code;
        r = sd_bus_message_enter_container(m, 'a', "(osstu)");
        while (r >= 0 && (r = next_grant(m, &g)) > 0) {
                if (!matches(&g, word))
                        continue;
                code = bus_call(c, g.path, BUS_GRANT_INTERFACE, "Revoke", "Failed to revoke the grant", NULL, NULL);
                if (code != EXIT_OK)
                        return code;
                printf("revoked: session %s, grant %u, %s\n", id, g.number, g.host);
                revoked++;
        }
        if (r < 0)
                return unreadable(id, r);
        if (revoked == 0) {
                log_error("session %s has no grant \"%.255s\"; errand grants %s lists them", id, word, id);
                return EXIT_NOT_THERE;
        }
        return EXIT_OK;
}
