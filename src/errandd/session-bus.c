/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <signal.h>

#include "basic/fd.h"
#include "basic/text.h"
#include "errandd/bus-limits.h"
#include "errandd/bus-objects.h"
#include "errandd/bus-options.h"
#include "errandd/operation.h"
#include "shared/bus-message.h"

int session_find(_unused_ sd_bus *bus, const char *path, _unused_ const char *interface, void *userdata, void **ret,
                 _unused_ sd_bus_error *error) {
        BusLink *l = bus_link_of(userdata);
        BusObject o;
        Session *s;

        if (!l || bus_object_parse(path, &o) < 0 || o.kind != BUS_OBJECT_SESSION)
                return 0;
        s = bus_link_find(l, o.session);
        if (!s)
                return 0;
        *ret = bus_link_set_target(l, (BusTarget){.session = s});
        return 1;
}

int session_enumerate(_unused_ sd_bus *bus, _unused_ const char *prefix, void *userdata, char ***ret, sd_bus_error *error) {
        _cleanup_strv_free_ char **paths = NULL;
        BusLink *l = bus_link_of(userdata);
        size_t n = 0;

        if (!l)
                return 0;
        for (Session *s = NULL; (s = manager_next(bus_link_manager(l), s));)
                n++;
        if (n > BUS_OBJECTS_MAX)
                return bus_error_setf(error, BUS_ERROR_LIMIT, "there are %zu sessions; list them with ListThreads", n);
        paths = calloc(n + 1, sizeof(char *));
        if (!paths)
                return -ENOMEM;
        n = 0;
        for (Session *s = NULL; (s = manager_next(bus_link_manager(l), s));)
                if (bus_link_may_see(l, s)) {
                        paths[n] = strdup(bus_session_path(session_record(s)->id).text);
                        if (!paths[n++])
                                return -ENOMEM;
                }
        bus_unread_add_objects(l, n);
        *ret = TAKE_PTR(paths);
        return 0;
}

/* For methods that begin something: answers when it is done. */
static int begin(sd_bus_message *m, BusTarget *t, const char *result, int (*function)(Session *, Done, void *, Fault *), sd_bus_error *error) {
        Operation *o;
        Fault f = {};
        int r;

        r = operation_new(t->link, m, result, &o, error);
        if (r < 0)
                return r;
        r = function(t->session, operation_done, o, &f);
        return operation_begun(o, r, &f, error);
}

static int method_start(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        BusTarget *t = userdata;
        Caller caller = bus_link_caller(t->link);
        Fault f = {};
        int r;

        r = session_check_share(t->session, &caller, &f);
        if (r < 0)
                return bus_fault(error, &f, r);
        return begin(m, userdata, "", session_start, error);
}

static int method_stop(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return begin(m, userdata, "", session_stop, error);
}

static int method_interrupt(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return begin(m, userdata, "", session_interrupt, error);
}

static int method_collect(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        return begin(m, userdata, "", session_collect, error);
}

static int method_attach(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        int r;

        r = bus_options_read(m, "Attach", NULL, 0, NULL, error); /* knows none yet */
        return r < 0 ? r : begin(m, userdata, "h", session_attach, error);
}

static int method_open_stdio(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        BusTarget *t = userdata;
        Fault f = {};
        int fds[3], r;

        r = session_open_stdio(t->session, fds, &f);
        if (r < 0)
                return bus_fault(error, &f, r);
        bus_unread_add_answer(t->link, ELEMENTSOF(fds) * BUS_UNREAD_DESCRIPTOR_BYTES);
        r = sd_bus_reply_method_return(m, "hhh", fds[0], fds[1], fds[2]); /* duplicates them */
        for (size_t i = 0; i < ELEMENTSOF(fds); i++)
                safe_close(fds[i]);
        return r;
}

static int method_kill(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        BusTarget *t = userdata;
        int32_t signal;
        Operation *o;
        Fault f = {};
        int r;

        r = sd_bus_message_read_basic(m, 'i', &signal);
        if (r < 0)
                return r;
        if (signal < 1 || signal > SIGRTMAX)
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "%i is no signal; they go from 1 to %i", signal, SIGRTMAX);
        r = operation_new(t->link, m, "", &o, error);
        if (r < 0)
                return r;
        r = session_kill(t->session, signal, operation_done, o, &f);
        return operation_begun(o, r, &f, error);
}

static int method_resize(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        uint16_t rows, columns;
        BusTarget *t = userdata;
        Operation *o;
        Fault f = {};
        int r;

        r = sd_bus_message_read(m, "qq", &rows, &columns);
        if (r < 0)
                return r;
        if (rows == 0 || columns == 0)
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "a terminal of %u rows and %u columns shows nothing", rows, columns);
        r = operation_new(t->link, m, "", &o, error);
        if (r < 0)
                return r;
        r = session_resize(t->session, rows, columns, operation_done, o, &f);
        return operation_begun(o, r, &f, error);
}

static void on_granted(Session *s, const Grant *g, const Fault *fault, void *userdata) {
        operation_answer_path(userdata, fault, g ? bus_grant_path(session_record(s)->id, g->number).text : NULL);
}

static int method_grant(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        const char *host, *duration, *problem;
        char normalized[HOST_TEXT_MAX + 1];
        BusTarget *t = userdata;
        Caller caller = bus_link_caller(t->link);
        GrantDuration kind;
        Operation *o;
        Fault f = {};
        usec_t span;
        int r;

        r = bus_read_text(m, "the host", HOST_TEXT_MAX + 1, &host, error); /* a final dot is not kept */
        if (r >= 0)
                r = bus_read_text(m, "the duration", TIMESPAN_TEXT_MAX, &duration, error);
        if (r < 0)
                return r;
        if (host_text_normalize(host, HOST_TEXT_WILDCARD, normalized, &problem) < 0)
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "the host \"%s\" %s", host, problem);
        if (grant_duration_parse(duration, &kind, &span, &problem) < 0)
                return bus_error_setf(error, BUS_ERROR_INVALID_ARGUMENT, "\"%s\": %s", duration, problem);
        r = operation_new(t->link, m, "o", &o, error);
        if (r < 0)
                return r;
        r = session_grant(t->session, &caller, host, duration, on_granted, o, &f);
        return operation_begun(o, r, &f, error);
}

static int method_read_transcript(sd_bus_message *m, void *userdata, sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        _cleanup_free_ char *data = NULL;
        BusTarget *t = userdata;
        uint64_t offset, next;
        Fault f = {};
        uint32_t max;
        size_t size;
        int r;

        r = sd_bus_message_read(m, "tu", &offset, &max);
        if (r < 0)
                return r;
        if (max == 0)
                return bus_error_set(error, BUS_ERROR_INVALID_ARGUMENT, "max is 0; ask for at least one byte");
        r = session_read_transcript(t->session, offset, MIN(max, BUS_TRANSCRIPT_MAX), &data, &size, &next, &f);
        if (r < 0)
                return bus_fault(error, &f, r);
        r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = sd_bus_message_append(reply, "t", next);
        if (r >= 0)
                r = sd_bus_message_append_array(reply, 'y', data, size);
        return r < 0 ? r : bus_link_answer(t->link, reply);
}

/* An agent that is talked to is part of a start, though its command runs. */
static const char *waiting(const Session *s) {
        const char *start = session_waiting(s);
        ConversationState c;

        return start || !session_conversation(s, &c) || !c.known || c.ready ? start : "its agent to answer for the first time";
}

static int append_identity(sd_bus_message *reply, const Session *s) {
        const SessionRecord *record = session_record(s);
        int r;

        r = bus_append_entry_text(reply, "Id", record->id);
        if (r >= 0)
                r = bus_append_entry_text(reply, "State", session_state_to_string(session_state(s)));
        if (r >= 0)
                r = bus_append_entry_u32(reply, "OwnerUid", record->owner);
        if (r >= 0)
                r = bus_append_entry_u32(reply, "PayloadUid", record->payload);
        if (r >= 0)
                r = bus_append_entry_u64(reply, "CreatedUSec", record->created);
        if (r >= 0)
                r = bus_append_entry_u64(reply, "StartedUSec", record->started);
        if (r >= 0)
                r = bus_append_entry_u64(reply, "EndedUSec", record->ended);
        if (r >= 0)
                r = bus_append_entry_text(reply, "ExitReason", record->exit_reason);
        if (r >= 0)
                r = bus_append_entry_text(reply, "ExitText", record->exit_text);
        if (r >= 0)
                r = bus_append_entry_i32(reply, "ExitStatus", (int32_t) MIN(record->exit_status, (uint64_t) INT32_MAX));
        if (r >= 0)
                r = bus_append_entry_text(reply, "Waiting", waiting(s));
        return r < 0 ? r : bus_append_entry_u64(reply, "RefusedCount", record->refused);
}

/* Of one that is talked to now. */
static int append_conversation(sd_bus_message *reply, const Session *s) {
        ConversationState c;
        int r;

        if (!session_conversation(s, &c) || !c.known)
                return 0;
        r = bus_append_entry_u64(reply, "Turn", c.prompt);
        if (r >= 0)
                r = bus_append_entry_u64(reply, "QueuedPrompts", c.queued);
        return r < 0 ? r : bus_append_entry_u64(reply, "OpenQuestions", c.n_questions);
}

static int append_request(sd_bus_message *reply, const SessionRecord *record) {
        const struct {
                const char *name, *value;
        } texts[] = {
                {"Project", record->project},
                {"Backend", record->backend},
                {"Network", record->network},
                {"Protocol", record->protocol ?: "none"},
                {"Provider", record->provider},
                {"Model", record->model},
                {"ScopeUnit", record->scope_unit},
                {"BrokerUnit", record->broker_unit},
        };
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(texts); i++)
                r = bus_append_entry_text(reply, texts[i].name, texts[i].value);
        if (r >= 0)
                r = bus_append_entry_texts(reply, "Command", record->command);
        if (r >= 0)
                r = bus_append_entry_texts(reply, "Environment", record->env);
        if (r >= 0 && record->allow_given) /* absent: as configured */
                r = bus_append_entry_texts(reply, "Allow", record->allow);
        return r < 0 ? r : bus_append_entry_bool(reply, "Interactive", record->interactive);
}

static int method_describe(sd_bus_message *m, void *userdata, _unused_ sd_bus_error *error) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;
        BusTarget *t = userdata;
        int r;

        r = sd_bus_message_new_method_return(m, &reply);
        if (r >= 0)
                r = sd_bus_message_open_container(reply, 'a', "{sv}");
        if (r >= 0)
                r = append_identity(reply, t->session);
        if (r >= 0)
                r = append_request(reply, session_record(t->session));
        if (r >= 0)
                r = append_conversation(reply, t->session);
        if (r >= 0)
                r = sd_bus_message_close_container(reply);
        return r < 0 ? r : bus_link_answer(t->link, reply);
}

static int get_text(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, const char *property,
                    sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error) {
        BusTarget *t = userdata;
        const SessionRecord *record = session_record(t->session);

        return bus_append_text(reply, streq(property, "Id") ? record->id :
                                      streq(property, "State") ? session_state_to_string(session_state(t->session)) :
                                      streq(property, "Backend") ? record->backend :
                                      streq(property, "ScopeUnit") ? record->scope_unit : record->broker_unit);
}

static int get_owner(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, _unused_ const char *property,
                     sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error) {
        BusTarget *t = userdata;

        return sd_bus_message_append(reply, "u", (uint32_t) session_record(t->session)->owner);
}

static int get_number(_unused_ sd_bus *bus, _unused_ const char *path, _unused_ const char *interface, const char *property,
                      sd_bus_message *reply, void *userdata, _unused_ sd_bus_error *error) {
        BusTarget *t = userdata;
        const SessionRecord *record = session_record(t->session);

        return sd_bus_message_append(reply, "t", streq(property, "CreatedUSec") ? (uint64_t) record->created :
                                                 streq(property, "StartedUSec") ? (uint64_t) record->started : record->refused);
}

#define PARAM SD_BUS_PARAM
#define METHOD(member, in, in_names, out, out_names, handler) \
        SD_BUS_METHOD_WITH_NAMES(member, in, in_names, out, out_names, handler, SD_BUS_VTABLE_UNPRIVILEGED)

const sd_bus_vtable session_vtable[] = {
        SD_BUS_VTABLE_START(0),
        METHOD("Start", "", "", "", "", method_start),
        METHOD("Stop", "", "", "", "", method_stop),
        METHOD("Kill", "i", PARAM(signal), "", "", method_kill),
        METHOD("Describe", "", "", "a{sv}", PARAM(description), method_describe),
        METHOD("Attach", "a{sv}", PARAM(options), "h", PARAM(terminal), method_attach),
        METHOD("OpenStdio", "", "", "hhh", PARAM(stdin) PARAM(stdout) PARAM(stderr), method_open_stdio),
        METHOD("Resize", "qq", PARAM(rows) PARAM(columns), "", "", method_resize),
        METHOD("Grant", "ss", PARAM(host) PARAM(duration), "o", PARAM(grant), method_grant),
        METHOD("Collect", "", "", "", "", method_collect),
        METHOD("ReadTranscript", "tu", PARAM(offset) PARAM(max), "tay", PARAM(next) PARAM(data), method_read_transcript),
        METHOD("Say", "s", PARAM(text), "s", PARAM(reply), session_method_say),
        METHOD("Prompt", "s", PARAM(text), "t", PARAM(number), session_method_prompt),
        METHOD("Interrupt", "", "", "", "", method_interrupt),
        SD_BUS_SIGNAL_WITH_NAMES("EgressRefused", "squ", PARAM(host) PARAM(port) PARAM(count), 0),
        SD_BUS_SIGNAL_WITH_NAMES("Notice", "ssa{sv}", PARAM(kind) PARAM(text) PARAM(details), 0),
        SD_BUS_SIGNAL_WITH_NAMES("Update", "sa{sv}", PARAM(kind) PARAM(fields), 0),
        SD_BUS_SIGNAL_WITH_NAMES("Exited", "si", PARAM(reason) PARAM(status), 0),
        SD_BUS_PROPERTY("Id", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("State", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("Backend", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("ScopeUnit", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("BrokerUnit", "s", get_text, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("OwnerUid", "u", get_owner, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("CreatedUSec", "t", get_number, 0, SD_BUS_VTABLE_PROPERTY_CONST),
        SD_BUS_PROPERTY("StartedUSec", "t", get_number, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_PROPERTY("RefusedCount", "t", get_number, 0, SD_BUS_VTABLE_PROPERTY_EMITS_CHANGE),
        SD_BUS_VTABLE_END,
};
