/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "errandd/bus-link.h"
#include "errandd/operation.h"
#include "shared/bus-message.h"

/* Lives until its Done comes, its client or not. */
struct Operation {
        BusLink *link; /* NULL: the client has gone */
        sd_bus_message *call;
        const char *result;
        char *text; /* of "s" */
        Operation *previous, *next;
};

/* Bytes of its answer beyond what any has. */
static size_t reserved(const Operation *o) {
        return streq(o->result, "h") ? BUS_UNREAD_DESCRIPTOR_BYTES : 0;
}

int operation_new(BusLink *l, sd_bus_message *call, const char *result, Operation **ret, sd_bus_error *error) {
        Operation *o;
        int r;

        r = bus_link_may_keep(l, ACCOUNT_OPERATION, error);
        if (r < 0)
                return r;
        if (l->n_operations >= BUS_OPERATIONS_MAX)
                return bus_error_setf(error, BUS_ERROR_LIMIT, "%u calls of this connection are still waiting for their sessions",
                                      BUS_OPERATIONS_MAX);
        o = calloc(1, sizeof(Operation));
        if (!o)
                return -ENOMEM;
        *o = (Operation){.link = l, .call = sd_bus_message_ref(call), .result = result, .next = l->operations};
        if (o->next)
                o->next->previous = o;
        l->operations = o;
        l->n_operations++;
        bus_unread_reserve(l, reserved(o));
        *ret = o;
        return 0;
}

static void operation_unlink(Operation *o) {
        if (!o->link)
                return;
        if (o->previous)
                o->previous->next = o->next;
        else
                o->link->operations = o->next;
        if (o->next)
                o->next->previous = o->previous;
        o->link->n_operations--;
        bus_unread_release(o->link, reserved(o));
        o->link = NULL;
}

Operation *operation_free(Operation *o) {
        operation_unlink(o);
        sd_bus_message_unref(o->call);
        free(o->text);
        free(o);
        return NULL;
}

int operation_begun(Operation *o, int r, Fault *f, sd_bus_error *error) {
        if (r >= 0)
                return 1;
        operation_free(o);
        return bus_fault(error, f, r);
}

void operation_set_text(Operation *o, char *text) {
        free(o->text);
        o->text = text;
}

sd_bus_message *operation_call(Operation *o, BusLink **ret_link) {
        if (!o->link)
                return NULL;
        *ret_link = o->link;
        return o->call;
}

/* What it is answered with: of these, what its result says. */
typedef struct Answer {
        int fd;
        const char *path;
        uint64_t number;
        char *const *texts;
} Answer;

static int reply_texts(Operation *o, char *const *texts) {
        _cleanup_(sd_bus_message_unrefp) sd_bus_message *reply = NULL;

        int r = sd_bus_message_new_method_return(o->call, &reply);
        if (r >= 0)
                r = bus_append_texts(reply, texts);
        return r < 0 ? r : bus_link_answer(o->link, reply);
}

static int reply_terminal(Operation *o, int fd) {
        bus_unread_add_answer(o->link, BUS_UNREAD_DESCRIPTOR_BYTES);
        return sd_bus_reply_method_return(o->call, "h", fd); /* duplicates it */
}

static int answer(Operation *o, const Fault *fault, const Answer *a) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        int r;

        if (fault) {
                bus_unread_add_answer(o->link, fault->text ? strlen(fault->text) : 0);
                bus_error_set(&error, (BusError) fault->code, fault->text);
                r = sd_bus_reply_method_error(o->call, &error);
                sd_bus_error_free(&error);
                return r;
        }
        if (streq(o->result, "s"))
                return sd_bus_reply_method_return(o->call, "s", o->text);
        if (streq(o->result, "t"))
                return sd_bus_reply_method_return(o->call, "t", a->number);
        if (streq(o->result, "o"))
                return sd_bus_reply_method_return(o->call, "o", a->path);
        if (streq(o->result, "as"))
                return reply_texts(o, a->texts);
        if (streq(o->result, "h"))
                return reply_terminal(o, a->fd);
        return sd_bus_reply_method_return(o->call, NULL);
}

static void finish(Operation *o, const Fault *fault, const Answer *a) {
        int r;

        if (o->link) {
                r = answer(o, fault, a);
                if (r < 0) /* no descriptor left for the terminal, say: who waits is told at least that */
                        (void) sd_bus_reply_method_errno(o->call, r, NULL);
                if (r < 0 && r != -ENOTCONN && r != -ECONNRESET && r != -EPIPE)
                        log_warning_errno(r, "Failed to answer a client, ignoring: %m");
                bus_connection_watch_queue(o->link->connection);
        }
        operation_free(o);
}

void operation_done(_unused_ Session *s, const Fault *fault, int fd, void *userdata) {
        _cleanup_close_ int owned = fd;

        finish(userdata, fault, &(Answer){.fd = owned});
}

void operation_answer_path(Operation *o, const Fault *fault, const char *path) {
        finish(o, fault, &(Answer){.fd = -EBADF, .path = path});
}

void operation_answer_number(Operation *o, const Fault *fault, uint64_t number) {
        finish(o, fault, &(Answer){.fd = -EBADF, .number = number});
}

void operation_answer_texts(Operation *o, const Fault *fault, char *const *texts) {
        finish(o, fault, &(Answer){.fd = -EBADF, .texts = texts});
}

void operation_forget(BusLink *l) {
        while (l->operations) {
                Operation *o = l->operations;

                operation_unlink(o);
                /* The message keeps the connection alive, and with it the socket. */
                o->call = sd_bus_message_unref(o->call);
        }
}
