/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errandd/bus-limits.h"
#include "errandd/bus-objects.h"
#include "errandd/bus-options.h"
#include "errandd/operation.h"
#include "errandd/session-options.h"
#include "shared/bus-message.h"

static Manager *target_manager(BusTarget *t) {
        return bus_link_manager(t->link);
}

static int method_subscribe(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        BusTarget *t = userdata;
        int r;

        r = bus_link_subscribe(t->link, error);
        return r < 0 ? r : sd_bus_reply_method_return(m, NULL);
}

static int method_unsubscribe(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        BusTarget *t = userdata;

        bus_link_unsubscribe(t->link);
        return sd_bus_reply_method_return(m, NULL);
}

static bool on_project_made(const Fault *fault, bool claimed, void *userdata);

/* A CreateSession that answers when its project has its owner, or was made, first. */
typedef struct Creation {
        Operation *operation;
        bool others;  /* the project was another account's when the gate let the call through */
        bool again;   /* by on_project_made() */
        bool claimed; /* and nobody takes care of that yet */
} Creation;

static Creation *creation_free(Creation *c) {
        operation_free(c->operation);
        free(c);
        return NULL;
}

/* Of a call that the gate let through: into whose project is decided then, and may have changed when it is made `again`. */
static int create_session(sd_bus_message *m, BusLink *l, Creation *c, sd_bus_error *error) {
        _cleanup_(session_options_done) ParsedOptions o = {.options = {.project_fd = -EBADF, .stdio = {-EBADF, -EBADF, -EBADF}}};
        Caller caller = bus_link_caller(l);
        Session *s;
        Fault f = {};
        uid_t owner;
        int r;

        r = session_options_read(m, &o, error);
        if (r < 0)
                return r;
        if (!c->again)
                c->others = o.options.project && manager_project_owner(bus_link_manager(l), o.options.project, &owner) && owner != caller.uid;
        o.options.others = c->others;
        o.options.project_made = c->again ? NULL : on_project_made;
        o.options.project_userdata = c;
        o.options.claimed = c->claimed;
        c->claimed = false; /* it gives it up */
        r = manager_create_session(bus_link_manager(l), &caller, &o.options, &s, &f);
        if (r == -EINPROGRESS)
                return r;
        if (r < 0)
                return bus_fault(error, &f, r);
        for (size_t i = 0; i < ELEMENTSOF(o.options.stdio); i++)
                o.options.stdio[i] = -EBADF;
        bus_link_foresee_start(l, s); /* before the answer: polkit is at it while the client is at that */
        return sd_bus_reply_method_return(m, "o", bus_session_path(session_record(s)->id).text);
}

static bool on_project_made(const Fault *fault, bool claimed, void *userdata) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        Creation *c = userdata;
        BusLink *l;
        int r;

        bool taken;

        sd_bus_message *call = operation_call(c->operation, &l);
        if (!call || fault) {
                operation_answer_path(c->operation, fault, NULL);
                free(c);
                return false;
        }
        c->again = true;
        c->claimed = claimed;
        r = sd_bus_message_rewind(call, true);
        if (r >= 0)
                r = create_session(call, l, c, &error);
        if (r < 0)
                (void) sd_bus_reply_method_errno(call, r, &error);
        sd_bus_error_free(&error);
        taken = !c->claimed; /* else its options could not even be read again */
        creation_free(c);
        return taken;
}

static int method_create_session(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        BusTarget *t = userdata;
        Creation *c;
        int r;

        c = calloc(1, sizeof(Creation));
        if (!c)
                return -ENOMEM;
        r = operation_new(t->link, m, "o", &c->operation, error);
        if (r < 0) {
                free(c);
                return r;
        }
        r = create_session(m, t->link, c, error);
        if (r == -EINPROGRESS)
                return 1;
        creation_free(c);
        return r;
}

static int method_get_session(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        BusTarget *t = userdata;
        const char *id;
        int r;

        r = bus_read_text(m, "the session's id", SESSION_ID_MAX, &id, error);
        if (r < 0)
                return r;
        if (!bus_link_find(t->link, id))
                return bus_not_found(error, "session");
        return sd_bus_reply_method_return(m, "o", bus_session_path(id).text);
}

static int append_session(sd_bus_message *reply, const Session *s) {
        const SessionRecord *record = session_record(s);
        int r;

        r = sd_bus_message_open_container(reply, 'r', "sosst");
        if (r >= 0)
                r = sd_bus_message_append(reply, "sos", record->id, bus_session_path(record->id).text,
                                          session_state_to_string(session_state(s)));
        if (r >= 0)
                r = bus_append_text(reply, record->project);
        if (r >= 0)
                r = sd_bus_message_append(reply, "t", (uint64_t) record->created);
        return r < 0 ? r : sd_bus_message_close_container(reply);
}

/* Sessions are the threads that run or may run at once: created ones too, so that what CreateSession made is there to be seen. */
static int list_sessions(sd_bus_message *m, BusTarget *t, bool ended) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        int r;

        r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(sosst)");
        for (Session *s = NULL; r >= 0 && (s = manager_next(target_manager(t), s));)
                if (bus_link_may_see(t->link, s) &&
                    (ended || session_state(s) == SESSION_CREATED || session_state_live(session_state(s))))
                        r = append_session(reply, s);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : bus_link_answer(t->link, reply);
}

static int method_list_sessions(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        return list_sessions(m, userdata, false);
}

static int method_list_threads(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        return list_sessions(m, userdata, true);
}

static int append_grant(sd_bus_message *reply, const char *id, const Grant *g) {
        char span[TIMESPAN_TEXT_MAX];

        return sd_bus_message_append(reply, "(osstu)", bus_grant_path(id, g->number).text, g->host, grant_duration_text(g, span),
                                     (uint64_t) grant_expires(g), (uint32_t) g->granted_by);
}

static int method_list_grants(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        BusTarget *t = userdata;
        const GrantList *grants;
        GrantClock now;
        const char *id;
        Session *s;
        int r;

        r = bus_read_text(m, "the session's id", SESSION_ID_MAX, &id, error);
        if (r < 0)
                return r;
        s = bus_link_find(t->link, id);
        if (!s)
                return bus_not_found(error, "session");
        r = grant_clock_now(&now);
        if (r >= 0)
                r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "(osstu)");
        grants = session_grants(s);
        for (size_t i = 0; r >= 0 && i < grants->n_grants; i++)
                if (!grants->grants[i].pending && grant_in_force(grants->grants + i, &now))
                        r = append_grant(reply, id, grants->grants + i);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : bus_link_answer(t->link, reply);
}

static int read_outcome(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error) {
        ReceiptFilter *filter = userdata;
        const char *s;
        int r;

        r = bus_read_text(m, option->name, BUS_TEXT_MAX, &s, error);
        if (r < 0)
                return r;
        filter->outcome = receipt_outcome_from_string(s);
        if (filter->outcome < 0)
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "outcome \"%.64s\" is none that a receipt has; they are "
                                       "completed, interrupted, denied, refused and upstream-unreachable", s);
        return 0;
}

static int read_limit(sd_bus_message *m, const BusOption *option, void *userdata, sd_bus_error *error) {
        ReceiptFilter *filter = userdata;
        uint32_t n;
        int r;

        r = sd_bus_message_read_basic(m, 'u', &n);
        if (r < 0)
                return r;
        if (n == 0 || n > STORE_QUERY_MAX)
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "%s is %u; it goes from 1 to %u", option->name, n, STORE_QUERY_MAX);
        filter->limit = n;
        return 0;
}

static const BusOption receipt_options[] = {
        {"session", "s", bus_option_text, offsetof(ReceiptFilter, session)},
        {"provider", "s", bus_option_text, offsetof(ReceiptFilter, provider)},
        {"outcome", "s", read_outcome, 0},
        {"since", "t", bus_option_u64, offsetof(ReceiptFilter, since)},
        {"before", "t", bus_option_u64, offsetof(ReceiptFilter, before)},
        {"limit", "u", read_limit, 0},
};

const BusOption *receipt_options_table(size_t *ret_n) {
        *ret_n = ELEMENTSOF(receipt_options);
        return receipt_options;
}

static int append_receipts(sd_bus_message *reply, const StoredReceiptList *list) {
        int r = 0;

        for (size_t i = 0; r >= 0 && i < list->n_receipts; i++) {
                const StoredReceipt *receipt = list->receipts + i;

                r = sd_bus_message_open_container(reply, 'a', "{sv}");
                if (r >= 0)
                        r = bus_append_entry_path(reply, "Object", bus_receipt_path(receipt->number).text);
                if (r >= 0)
                        r = bus_append_entry_u64(reply, "Number", receipt->number);
                if (r >= 0)
                        r = receipt_append_entries(reply, receipt);
                if (r >= 0)
                        r = sd_bus_message_close_container(reply);
        }
        return r;
}

static int find_sessions(BusTarget *t, char ***ret) {
        _cleanup_strv_free_ char **ids = calloc(1, sizeof(char *));

        if (!ids)
                return -ENOMEM;
        for (Session *s = NULL; (s = manager_next(target_manager(t), s));)
                if (bus_link_may_see(t->link, s)) {
                        int r = strv_extend(&ids, session_record(s)->id);
                        if (r < 0)
                                return r;
                }
        *ret = TAKE_PTR(ids);
        return 0;
}

/* Of what the caller may see: what it filters by else tells nothing of others'. */
static int query_receipts(BusTarget *t, ReceiptFilter *filter, StoredReceiptList *ret, sd_bus_error *error) {
        _cleanup_strv_free_ char **ids = NULL;
        Fault f = {};
        int r;

        if (filter->session && !bus_link_find(t->link, filter->session))
                return 0;
        if (!filter->session && !bus_link_caller(t->link).operator) {
                r = find_sessions(t, &ids);
                if (r < 0 || !*ids)
                        return r;
                filter->sessions = ids;
        }
        r = manager_receipts(target_manager(t), filter, ret, &f);
        filter->sessions = NULL;
        return r < 0 ? bus_fault(error, &f, r) : 0;
}

static int method_list_receipts(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_(stored_receipt_list_done) StoredReceiptList list = {};
        ReceiptFilter filter = RECEIPT_FILTER_ANY;
        BusTarget *t = userdata;
        int r;

        filter.limit = STORE_QUERY_MAX;
        r = bus_options_read(m, "ListReceipts", receipt_options, ELEMENTSOF(receipt_options), &filter, error);
        if (r >= 0)
                r = query_receipts(t, &filter, &list, error);
        if (r >= 0)
                r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "a{sv}");
        if (r >= 0)
                r = append_receipts(reply, &list);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : bus_link_answer(t->link, reply);
}

static void on_reloaded(const Fault *fault, void *userdata) {
        operation_done(NULL, fault, -EBADF, userdata);
}

static int method_reload(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        BusTarget *t = userdata;
        Operation *o;
        Fault f = {};
        int r;

        r = operation_new(t->link, m, "", &o, error);
        if (r < 0)
                return r;
        r = bus_link_reload(t->link, on_reloaded, o, &f);
        return operation_begun(o, r, &f, error);
}

static void on_checked(char *const *sentences, const Fault *fault, void *userdata) {
        operation_answer_texts(userdata, fault, sentences);
}

static int method_check_configuration(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        BusTarget *t = userdata;
        const char *path;
        Operation *o;
        Fault f = {};
        int r;

        r = bus_read_text(m, "the path", BUS_TEXT_MAX, &path, error);
        if (r < 0)
                return r;
        if (path[0] != '/')
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "\"%.256s\" is no absolute path", path);
        r = operation_new(t->link, m, "as", &o, error);
        if (r < 0)
                return r;
        r = manager_check_file(target_manager(t), path, on_checked, o, &f);
        return operation_begun(o, r, &f, error);
}

static int get_version(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                       sd_bus_message *reply, _unused_ void *userdata, _unused_ sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", ERRAND_VERSION);
}

static int get_backend(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                       sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error) {
        return sd_bus_message_append(reply, "s", backend_to_string((SandboxBackend) manager_config(target_manager(userdata))->sandbox.backend));
}

static int append_lines(sd_bus_message *reply, BusTarget *t, char *const *lines) {
        for (char *const *line = lines; line && *line; line++)
                bus_unread_add_answer(t->link, strlen(*line));
        return bus_append_texts(reply, lines);
}

static int get_report(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                      sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error) {
        return append_lines(reply, userdata, manager_report(target_manager(userdata)));
}

static int get_gaps(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                    sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error) {
        return append_lines(reply, userdata, manager_gaps(target_manager(userdata)));
}

static int get_ready(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                     sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error) {
        BusTarget *t = userdata;

        return sd_bus_message_append(reply, "b", (int) bus_link_is_ready(t->link));
}

#define PARAM SD_BUS_PARAM
#define METHOD(member, in, in_names, out, out_names, handler) \
        SD_BUS_METHOD_WITH_NAMES(member, in, in_names, out, out_names, handler, SD_BUS_VTABLE_UNPRIVILEGED)

const sd_bus_vtable manager_vtable[] = {
        SD_BUS_VTABLE_START(0),
        METHOD("Subscribe", "", "", "", "", method_subscribe),
        METHOD("Unsubscribe", "", "", "", "", method_unsubscribe),
        METHOD("CreateSession", "a{sv}", PARAM(options), "o", PARAM(session), method_create_session),
        METHOD("GetSession", "s", PARAM(id), "o", PARAM(session), method_get_session),
        METHOD("ListSessions", "", "", "a(sosst)", PARAM(sessions), method_list_sessions),
        METHOD("ListThreads", "", "", "a(sosst)", PARAM(threads), method_list_threads),
        METHOD("ListGrants", "s", PARAM(id), "a(osstu)", PARAM(grants), method_list_grants),
        METHOD("ListReceipts", "a{sv}", PARAM(filter), "aa{sv}", PARAM(receipts), method_list_receipts),
        METHOD("Reload", "", "", "", "", method_reload),
        METHOD("CheckConfiguration", "s", PARAM(path), "as", PARAM(problems), method_check_configuration),
        SD_BUS_SIGNAL_WITH_NAMES("Unsubscribed", "s", PARAM(reason), 0),
        SD_BUS_PROPERTY("Version", "s", get_version, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("Backend", "s", get_backend, 0, 0),
        SD_BUS_PROPERTY("Report", "as", get_report, 0, 0),
        SD_BUS_PROPERTY("Gaps", "as", get_gaps, 0, 0),
        SD_BUS_PROPERTY("Ready", "b", get_ready, 0, 0),
        SD_BUS_VTABLE_END,
};
