/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <poll.h>
#include <unistd.h>

#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "errand/entries.h"
#include "errand/json-output.h"
#include "errand/output.h"
#include "errand/receipts.h"
#include "errand/verbs.h"
#include "errand/waiting.h"
#include "shared/bus-object.h"
#include "shared/timespan.h"

#define DEFAULT_LIMIT 50U
#define PAGE_MAX 1000U     /* of one ListReceipts */
#define FOLLOW_MSEC 1000   /* a broker writes its receipts within a second */

typedef struct Receipt {
        uint64_t number, ended, query, status, duration, up, down, unrecorded;
        const char *session, *provider, *host, *method, *path, *outcome; /* borrowed from the message */
        char *json;
} Receipt;

/* A page, newest first as it came. */
typedef struct Page {
        sd_bus_message *message;
        Receipt *receipts;
        size_t n;
} Page;

typedef struct Filter {
        const char *session, *outcome;
        uint64_t since, before;
        uint32_t limit; /* UINT32_MAX: every one */
        bool json;
} Filter;

static void page_done(Page *p) {
        for (size_t i = 0; i < p->n; i++)
                free(p->receipts[i].json);
        free(p->receipts);
        sd_bus_message_unref(p->message);
        *p = (Page){};
}

static int append_filter(sd_bus_message *m, const Filter *f, uint32_t limit) {
        int r;

        r = sd_bus_message_open_container(m, 'a', "{sv}");
        if (r >= 0 && f->session)
                r = sd_bus_message_append(m, "{sv}", "session", "s", f->session);
        if (r >= 0 && f->outcome)
                r = sd_bus_message_append(m, "{sv}", "outcome", "s", f->outcome);
        if (r >= 0 && f->since > 0)
                r = sd_bus_message_append(m, "{sv}", "since", "t", f->since);
        if (r >= 0 && f->before > 0)
                r = sd_bus_message_append(m, "{sv}", "before", "t", f->before);
        if (r >= 0)
                r = sd_bus_message_append(m, "{sv}", "limit", "u", limit);
        return r < 0 ? r : sd_bus_message_close_container(m);
}

static int read_receipt(sd_bus_message *m, Receipt *ret) {
        Receipt receipt = {.session = "", .provider = "", .host = "", .method = "", .path = "", .outcome = ""};
        const Entry entries[] = {
                {"Number", 't', &receipt.number},        {"EndedUSec", 't', &receipt.ended},   {"QueryLength", 't', &receipt.query},
                {"Status", 't', &receipt.status},        {"DurationUSec", 't', &receipt.duration}, {"BytesUp", 't', &receipt.up},
                {"BytesDown", 't', &receipt.down},       {"Session", 's', &receipt.session},   {"Provider", 's', &receipt.provider},
                {"Host", 's', &receipt.host},            {"Method", 's', &receipt.method},     {"Path", 's', &receipt.path},
                {"Outcome", 's', &receipt.outcome},      {"Unrecorded", 't', &receipt.unrecorded},
        };

        int r = entries_read(m, entries, ELEMENTSOF(entries));
        if (r > 0)
                *ret = receipt;
        return r;
}

static int read_json(Page *p) {
        int r;

        r = sd_bus_message_rewind(p->message, true);
        if (r >= 0)
                r = sd_bus_message_enter_container(p->message, 'a', "a{sv}");
        for (size_t i = 0; r >= 0 && i < p->n; i++) {
                _cleanup_(json_writer_done) JsonWriter w = {};
                size_t size;

                r = json_add_value(&w, NULL, p->message);
                if (r >= 0)
                        r = json_writer_finish(&w, &p->receipts[i].json, &size);
        }
        return r;
}

static int read_page(Page *p, bool json) {
        Receipt receipt;
        int r;

        p->receipts = calloc(PAGE_MAX, sizeof(Receipt));
        if (!p->receipts)
                return -ENOMEM;
        r = sd_bus_message_enter_container(p->message, 'a', "a{sv}");
        while (r >= 0 && p->n < PAGE_MAX && (r = read_receipt(p->message, &receipt)) > 0)
                p->receipts[p->n++] = receipt;
        return r >= 0 && json ? read_json(p) : r;
}

static int get_page(Connection *c, const Filter *f, Page *ret) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *m = NULL;
        _cleanup_(sd_bus_error_free) sd_bus_error e = SD_BUS_ERROR_NULL;
        _cleanup_(page_done) Page p = {};
        int r;

        r = connection_new_call(c, BUS_ROOT, BUS_MANAGER_INTERFACE, "ListReceipts", &m);
        if (r >= 0)
                r = append_filter(m, f, MIN(f->limit, PAGE_MAX));
        if (r >= 0)
                r = waiting_call(c, NULL, m, &e, &p.message); /* answers a ping meanwhile: of many pages errandd wants to know whether they are read */
        if (r < 0)
                return bus_failure(&e, r, "Failed to list the receipts");
        r = read_page(&p, f->json);
        if (r < 0) {
                log_error_errno(r, "errandd's list of receipts cannot be read: %m");
                return EXIT_FAILED;
        }
        *ret = p;
        p = (Page){};
        return EXIT_OK;
}

/* Oldest first, as a log reads. *ret_pages is to free. */
static int get_pages(Connection *c, Filter f, Page **ret_pages, size_t *ret_n) {
        Page *pages = NULL;
        size_t n = 0;
        int r;

        do {
                Page *longer = realloc(pages, (n + 1) * sizeof(Page));

                if (!longer) {
                        (void) log_oom();
                        r = EXIT_FAILED;
                        break;
                }
                pages = longer;
                r = get_page(c, &f, pages + n);
                if (r != EXIT_OK)
                        break;
                if (pages[n].n == 0) {
                        page_done(pages + n);
                        break;
                }
                f.before = pages[n].receipts[pages[n].n - 1].number;
                if (f.limit != UINT32_MAX)
                        f.limit -= MIN(f.limit, (uint32_t) pages[n].n);
                n++;
        } while (f.limit > 0);
        *ret_pages = pages;
        *ret_n = n;
        return r;
}

static void free_pages(Page *pages, size_t n) {
        for (size_t i = 0; i < n; i++)
                page_done(pages + i);
        free(pages);
}

static const TableColumn columns[] = {
        {"ENDED", .optional = 5},
        {"SESSION"},
        {"PROVIDER", .least = 8},
        {"HOST", .least = 9, .optional = 4},
        {"CALL", .least = 12},
        {"STATUS", .right = true},
        {"TIME", .right = true, .optional = 3},
        {"UP", .right = true, .optional = 2},
        {"DOWN", .right = true, .optional = 1},
        {"OUTCOME", .optional = 6},
};

static TableColour outcome_colour(const char *outcome) {
        return streq(outcome, "completed") ? COLOUR_NONE : COLOUR_BAD;
}

static void add_receipt(Table *t, const Receipt *r) {
        char ended[TIME_TEXT_MAX], bytes[BYTES_TEXT_MAX];

        table_add(t, time_text(r->ended, ended));
        table_add(t, r->session);
        table_add(t, r->provider);
        table_add(t, r->host);
        if (r->query > 0)
                table_addf(t, "%s %s?(%llu)", r->method, r->path, (unsigned long long) r->query);
        else
                table_addf(t, "%s %s", r->method, r->path);
        if (r->status > 0)
                table_addf(t, "%llu", (unsigned long long) r->status);
        else
                table_add(t, NULL);
        table_addf(t, "%llu.%03llus", (unsigned long long) (r->duration / USEC_PER_SEC),
                   (unsigned long long) (r->duration % USEC_PER_SEC / USEC_PER_MSEC));
        table_add(t, bytes_text(r->up, bytes));
        table_add(t, bytes_text(r->down, bytes));
        if (r->unrecorded > 0) {
                char text[96];

                (void) snprintf(text, sizeof(text), "%.48s (+%llu)", r->outcome, (unsigned long long) r->unrecorded);
                table_add_coloured(t, text, outcome_colour(r->outcome));
        } else
                table_add_coloured(t, r->outcome, outcome_colour(r->outcome));
}

static int fill_table(const Page *pages, size_t n, Table **ret) {
        if (table_new(columns, ELEMENTSOF(columns), ret) < 0) {
                (void) log_oom();
                return EXIT_FAILED;
        }
        for (size_t i = n; i-- > 0;)
                for (size_t k = pages[i].n; k-- > 0;)
                        add_receipt(*ret, pages[i].receipts + k);
        return EXIT_OK;
}

static void print_json_array(const Page *pages, size_t n) {
        bool first = true;

        putchar('[');
        for (size_t i = n; i-- > 0;)
                for (size_t k = pages[i].n; k-- > 0;) {
                        printf("%s%s", first ? "" : ",", pages[i].receipts[k].json);
                        first = false;
                }
        puts("]");
}

int receipts_print(Connection *c, const char *id, unsigned limit) {
        Filter f = {.session = id, .limit = limit};
        _cleanup_(table_freep) Table *t = NULL;
        Page *pages;
        size_t n;
        int r;

        r = get_pages(c, f, &pages, &n);
        if (r == EXIT_OK)
                r = fill_table(pages, n, &t);
        free_pages(pages, n);
        if (r != EXIT_OK || table_rows(t) == 0)
                return r;
        printf("\nprovider calls\n");
        return table_print(t, stdout, output_width(), output_colours()) < 0 ? EXIT_FAILED : EXIT_OK;
}

int receipts_add_json(Connection *c, const char *id, unsigned limit, const char *key, JsonWriter *w) {
        Filter f = {.session = id, .limit = MIN(limit, PAGE_MAX)};
        _cleanup_(page_done) Page p = {};
        int r;

        r = get_page(c, &f, &p);
        if (r != EXIT_OK)
                return r;
        r = sd_bus_message_rewind(p.message, true);
        if (r >= 0)
                r = json_add_value(w, key, p.message);
        return r < 0 ? EXIT_FAILED : EXIT_OK;
}

/* ---- the verb ---- */

static int read_filter(const Request *q, Filter *ret) {
        Filter f = {.json = q->json, .limit = DEFAULT_LIMIT};
        uint64_t n;
        usec_t span;

        if (q->n_operands > 0) {
                f.session = q->operands[0];
                if (check_id(f.session) != EXIT_OK)
                        return EXIT_NOT_THERE;
        }
        f.outcome = q->outcome;
        if (q->limit && streq(q->limit, "all"))
                f.limit = UINT32_MAX;
        else if (q->limit) {
                if (parse_u64(q->limit, 1000000, &n) < 0 || n == 0) {
                        log_error("--limit %.32s wants a number from 1 to 1000000, or all", q->limit);
                        return EXIT_FAILED;
                }
                f.limit = (uint32_t) n;
        }
        if (q->since) {
                if (timespan_parse(q->since, 10000 * USEC_PER_DAY, &span) < 0) {
                        log_error("--since %.32s wants a time span, such as 30m or 2h", q->since);
                        return EXIT_FAILED;
                }
                f.since = now_realtime() - span;
        }
        *ret = f;
        return EXIT_OK;
}

static int print_page(const Page *p) {
        _cleanup_(table_freep) Table *t = NULL;
        int r;

        if (p->receipts[0].json) {
                for (size_t k = p->n; k-- > 0;)
                        puts(p->receipts[k].json);
                return output_flush();
        }
        r = fill_table(p, 1, &t);
        if (r != EXIT_OK)
                return r;
        (void) table_print_rows(t, stdout, output_width(), output_colours());
        return output_flush();
}

/* Those with a number above the last one that was printed. */
static int follow(Connection *c, Filter f, uint64_t last) {
        struct pollfd gone = {.fd = STDOUT_FILENO}; /* POLLERR: nobody reads any more */

        f.before = 0;
        f.limit = PAGE_MAX;
        for (;;) {
                _cleanup_(page_done) Page p = {};
                int r;

                if (poll(&gone, 1, FOLLOW_MSEC) > 0)
                        return EXIT_OK;
                r = get_page(c, &f, &p);
                if (r != EXIT_OK)
                        return r;
                while (p.n > 0 && p.receipts[p.n - 1].number <= last)
                        free(p.receipts[--p.n].json);
                if (p.n == 0)
                        continue;
                last = p.receipts[0].number;
                r = print_page(&p);
                if (r != EXIT_OK)
                        return r;
        }
}

static int print_all(const Request *q, const Page *pages, size_t n) {
        _cleanup_(table_freep) Table *t = NULL;
        int r;

        if (q->json && !q->follow) {
                print_json_array(pages, n);
                return EXIT_OK;
        }
        if (q->json) {
                for (size_t i = n; i-- > 0;)
                        if (print_page(pages + i) != EXIT_OK)
                                return EXIT_FAILED;
                return EXIT_OK;
        }
        r = fill_table(pages, n, &t);
        if (r != EXIT_OK)
                return r;
        if (!q->follow)
                return output_table(q, t, "No receipts.");
        (void) table_print(t, stdout, output_width(), output_colours());
        return output_flush();
}

int verb_receipts(const Request *q) {
        _cleanup_(connection_freep) Connection *c = NULL;
        uint64_t last = 0;
        Page *pages = NULL;
        size_t n = 0;
        Filter f;
        int r;

        r = read_filter(q, &f);
        if (r == EXIT_OK)
                r = connection_open(q, CONNECT_START_STATE, &c);
        if (r == EXIT_OK)
                r = get_pages(c, f, &pages, &n);
        if (r == EXIT_OK && n == 0 && f.session) { /* a slip in the id is not taken for one that called nobody */
                char doing[128];

                (void) snprintf(doing, sizeof(doing), "session %s: Failed to list its receipts", f.session);
                r = manager_call(c, "GetSession", doing, NULL, "s", f.session);
        }
        if (r == EXIT_OK) {
                last = n > 0 ? pages[0].receipts[0].number : 0;
                r = print_all(q, pages, n);
        }
        free_pages(pages, n);
        return r == EXIT_OK && q->follow ? follow(c, f, last) : r;
}
