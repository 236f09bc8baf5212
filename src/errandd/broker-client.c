/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "errandd/broker-client.h"
#include "shared/session-id.h"

#define CLOSE_USEC USEC_PER_SEC
#define BACK_USEC (15 * USEC_PER_SEC) /* within which a broker that crashed has to do its work again: its unit restarts it at once */
#define AGAIN_FIRST_USEC (20 * USEC_PER_MSEC)
#define AGAIN_LAST_USEC (500 * USEC_PER_MSEC)

struct BrokerClient {
        sd_event *event;
        BrokerHandler handler;
        BrokerProcess *process;
        char session[SESSION_ID_MAX + 1];
        Channel *channel;    /* NULL: not connected */
        bool found;          /* not started by us, and set up by somebody else */
        bool configured;     /* it said that it is set up */
        bool closing, going; /* it was told to */
        uint64_t refused;    /* the total that its events told last */
        sd_event_source *patience, *again;
        usec_t lost, wait;   /* since when it is waited for; 0: it is not */
        ChannelReply setup_reply, close_reply;
        void *setup_userdata, *close_userdata;
        char *how;           /* why it was given up */
};

static void kill_now(BrokerClient *b) {
        b->going = true;
        b->again = sd_event_source_disable_unref(b->again);
        b->process->class->kill(b->process);
}

BrokerClient *broker_client_free(BrokerClient *b) {
        if (!b)
                return NULL;
        broker_process_free(b->process);
        sd_event_source_disable_unref(b->patience);
        sd_event_source_disable_unref(b->again);
        channel_free(b->channel);
        sd_event_unref(b->event);
        free(b->how);
        return mfree(b);
}

/* Whether it can be asked now. */
static bool can_be_asked(const BrokerClient *b) {
        return b->channel && b->lost == 0;
}

static void on_ended(const char *how, void *userdata) {
        BrokerClient *b = userdata;

        b->patience = sd_event_source_disable_unref(b->patience);
        b->again = sd_event_source_disable_unref(b->again);
        b->handler.ended(b->how ?: how, b->handler.userdata);
}

static void give_up(BrokerClient *b, const char *why) {
        if (b->going)
                return;
        b->how = strdup(why);
        kill_now(b);
}

/* The broker counts from its start. */
static uint64_t take_fresh(BrokerClient *b, uint64_t total) {
        uint64_t fresh = total > b->refused ? total - b->refused : 0;

        b->refused = MAX(total, b->refused);
        return fresh;
}

static void on_event(Message *m, void *userdata) {
        BrokerClient *b = userdata;
        JsonObject *o = message_object(m);
        const char *type = message_type(m), *text;
        uint64_t a, c, total;

        if (!b->found && !b->setup_reply)
                log_warning("an event of a broker that was not set up is ignored");
        else if (streq(type, "refused") && json_get_string(o, "host", &text) >= 0 && json_get_u64(o, "port", UINT16_MAX, &a) >= 0 &&
            json_get_u64(o, "count", INT64_MAX, &c) >= 0 && json_get_u64(o, "total", INT64_MAX, &total) >= 0)
                b->handler.refused(text, (uint16_t) a, c, take_fresh(b, total), b->handler.userdata);
        else if (streq(type, "denied-summary") && json_get_u64(o, "count", INT64_MAX, &a) >= 0 && json_get_u64(o, "hosts", INT64_MAX, &c) >= 0 &&
                 json_get_u64(o, "total", INT64_MAX, &total) >= 0)
                b->handler.denied_summary(a, c, take_fresh(b, total), b->handler.userdata);
        else if (streq(type, "grant-used") && json_get_string(o, "id", &text) >= 0 && parse_u64(text, UINT32_MAX, &a) >= 0)
                b->handler.grant_used((uint32_t) a, b->handler.userdata);
        else if (streq(type, "receipt-failed"))
                b->handler.receipt_failed(b->handler.userdata);
        else
                log_warning("an event of a broker was not understood and is ignored");
}

/* ---- one that comes back ---- */

static void try_again(BrokerClient *b);

static void on_gone(void *userdata) {
        BrokerClient *b = userdata;

        b->channel = channel_free(b->channel);
        if (b->going)
                return; /* its end is told by whoever runs it */
        if (!b->process->class->connect) {
                /* It has ended, which is told then, with how it did. One that has not cannot be told of a revocation any more. */
                kill_now(b);
                return;
        }
        if (b->closing) {
                kill_now(b); /* one that came back would know of no close */
                return;
        }
        if (!b->configured && !b->found) {
                give_up(b, "it ended before it was set up");
                return;
        }
        if (b->lost == 0) {
                b->lost = now_monotonic();
                b->wait = AGAIN_FIRST_USEC;
                b->handler.away(b->handler.userdata);
        }
        try_again(b);
}

static void on_stats(Message *m, const char *problem, void *userdata) {
        BrokerClient *b = userdata;
        uint64_t port = 0, refused = 0;
        bool configured = false;
        const char *session;

        if (!m)
                return; /* its connection went: on_gone() sees to it */
        JsonObject *o = message_object(m);
        (void) json_get_bool(o, "configured", &configured);
        if (problem || !configured || json_get_string(o, "session", &session) < 0 || !streq(session, b->session)) {
                give_up(b, problem ? "it does not say how it is" : "it came back without its keys");
                return;
        }
        (void) json_get_u64(o, "port", UINT16_MAX, &port);
        (void) json_get_u64(o, "refused", INT64_MAX, &refused);
        if (refused < b->refused)
                b->refused = 0; /* another process, which counts anew */
        b->configured = true;
        b->lost = 0;
        b->again = sd_event_source_disable_unref(b->again);
        b->handler.back((uint16_t) port, take_fresh(b, refused), b->handler.userdata);
}

static int attach(BrokerClient *b, int fd) {
        return channel_new(b->event, fd, &(ChannelHandler){.event = on_event, .gone = on_gone, .userdata = b}, &b->channel);
}

static int ask_how_it_is(BrokerClient *b) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        channel_open(b->channel, &w, "stats");
        return channel_send(b->channel, &w, NULL, 0, on_stats, b);
}

static int on_again(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        BrokerClient *b = userdata;

        b->again = sd_event_source_disable_unref(b->again);
        if (now_monotonic() - b->lost >= BACK_USEC) {
                give_up(b, "it did not come back in time");
                return 0;
        }
        if (!b->channel) {
                int fd = b->process->class->connect(b->process), r = fd;
                if (r >= 0)
                        r = attach(b, fd);
                if (r >= 0 && ask_how_it_is(b) < 0)
                        b->channel = channel_free(b->channel);
        }
        try_again(b); /* also while the answer is waited for */
        return 0;
}

static void try_again(BrokerClient *b) {
        if (b->again || b->going)
                return;
        if (sd_event_add_time_relative(b->event, &b->again, CLOCK_MONOTONIC, b->wait, 0, on_again, b) < 0)
                give_up(b, "there is no timer to wait for it");
        b->wait = MIN(2 * b->wait, AGAIN_LAST_USEC);
}

static void on_started(int control, void *userdata) {
        BrokerClient *b = userdata;

        int r = attach(b, control);
        if (r >= 0 && b->found) {
                b->lost = now_monotonic(); /* it is to answer in time */
                b->wait = AGAIN_FIRST_USEC;
                r = ask_how_it_is(b);
                if (r >= 0)
                        try_again(b);
        }
        if (r < 0)
                give_up(b, strerror(-r));
        else if (!b->found)
                b->handler.started(b->handler.userdata);
}

int broker_client_new(sd_event *event, const BrokerSpawn *spawn, const BrokerUnit *unit, const char *session, uint64_t refused,
                      const BrokerHandler *handler, BrokerClient **ret, Fault *f) {
        _cleanup_free_ BrokerClient *b = calloc(1, sizeof(BrokerClient));

        if (!b)
                return fault_set(f, ERROR_SETUP, "out of memory");
        *b = (BrokerClient){.event = event, .handler = *handler, .found = unit && unit->running, .refused = refused};
        (void) snprintf(b->session, sizeof(b->session), "%s", session);
        const BrokerProcessHandler mine = {.started = on_started, .ended = on_ended, .userdata = b};
        int r = unit ? broker_units_new(event, unit, &mine, &b->process, f) : broker_spawned_new(event, spawn, &mine, &b->process, f);
        if (r < 0)
                return r;
        sd_event_ref(event);
        *ret = TAKE_PTR(b);
        return 0;
}

bool broker_client_waits(const BrokerClient *b) {
        return b->channel && !b->going;
}

void broker_client_hand_over(BrokerClient *b, const BrokerHandler *handler) {
        b->handler = *handler;
}

/* ---- what is said to it ---- */

typedef struct SetupFds {
        int fds[MESSAGE_FDS_MAX];
        size_t n, n_borrowed; /* the first ones are not ours to close */
} SetupFds;

static void setup_fds_done(SetupFds *s) {
        for (size_t i = s->n_borrowed; i < s->n; i++)
                safe_close(s->fds[i]);
}

static int add_ca(JsonWriter *w, SetupFds *s, const SessionProvider *p, Fault *f) {
        char name[64];

        if (s->n >= MESSAGE_FDS_MAX)
                return fault_set(f, ERROR_LIMIT, "too many providers bring a caFile: a broker takes %u", MESSAGE_FDS_MAX - 2);
        int fd = open(p->ca_file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
        if (fd < 0)
                return fault_set(f, ERROR_SETUP, "agent.providers.%s.caFile: %s cannot be opened: %s", p->id, p->ca_file, strerror(errno));
        s->fds[s->n++] = fd;
        (void) snprintf(name, sizeof(name), "ca:%s", p->id);
        json_add_string(w, NULL, name);
        return 0;
}

static void add_budget(JsonWriter *w, const char *kind, uint64_t limit, uint64_t spent) {
        if (limit == 0)
                return;
        json_open_object(w, kind);
        json_add_u64(w, "limit", limit);
        json_add_u64(w, "spent", spent);
        json_close_object(w);
}

static void add_budgets(JsonWriter *w, const ConfigBudgets *limits, const StoredSpending *spent) {
        json_open_object(w, "budgets");
        add_budget(w, "requests", limits->requests, spent->requests);
        add_budget(w, "bytes", limits->bytes, spent->bytes);
        add_budget(w, "tokens", limits->tokens, spent->tokens);
        json_close_object(w);
}

static void add_capabilities(JsonWriter *w, const SessionProvider *p) {
        if (p->every_call)
                json_add_string(w, "capabilities", "*");
        else if (p->n_capabilities > 0) {
                json_open_array(w, "capabilities");
                for (size_t i = 0; i < p->n_capabilities; i++) {
                        json_open_object(w, NULL);
                        json_add_string(w, "method", p->capabilities[i].method);
                        json_add_string(w, "path", p->capabilities[i].path);
                        json_close_object(w);
                }
                json_close_array(w);
        }
        if (p->strict_capabilities)
                json_add_bool(w, "strictCapabilities", true);
}

static void add_provider(JsonWriter *w, const SessionProvider *p, const SessionBudgets *budgets) {
        json_open_object(w, p->id);
        json_add_string(w, "baseUrl", p->base_url);
        json_add_string(w, "placement", placement_to_string((Placement) p->placement));
        json_add_string(w, "credentialName", p->credential_name);
        if (p->header)
                json_add_string(w, "header", p->header);
        if (p->user)
                json_add_string(w, "user", p->user);
        add_capabilities(w, p);
        add_budgets(w, &p->budgets, session_budgets_of(budgets, p->id));
        json_close_object(w);
}

static int format_setup(BrokerClient *b, const BrokerSetup *setup, JsonWriter *w, SetupFds *fds, Fault *f) {
        const Credentials *c = setup->credentials;
        int r = 0;

        channel_open(b->channel, w, "setup");
        json_add_string(w, "session", setup->session);
        json_add_string(w, "token", secret_data(c->token));
        json_open_array(w, "fds");
        json_add_string(w, NULL, "spool");
        json_add_string(w, NULL, "keys");
        for (size_t i = 0; i < c->n_providers && r >= 0; i++)
                if (c->providers[i].brokered && c->providers[i].ca_file)
                        r = add_ca(w, fds, &c->providers[i], f);
        json_close_array(w);
        json_open_object(w, "egress");
        json_add_strings(w, "allow", setup->allow);
        if (setup->allow_internal_any)
                json_add_bool(w, "allowInternal", true);
        else
                json_add_strings(w, "allowInternal", setup->allow_internal);
        json_open_array(w, "ports");
        for (size_t i = 0; i < setup->n_ports; i++)
                json_add_u64(w, NULL, setup->ports[i]);
        json_close_array(w);
        json_add_string(w, "serverName", setup->enforce_server_name ? "enforce" : "log");
        json_close_object(w);
        add_budgets(w, &setup->budgets->limits, &setup->budgets->total);
        json_open_object(w, "providers");
        for (size_t i = 0; i < c->n_providers; i++)
                if (c->providers[i].brokered)
                        add_provider(w, &c->providers[i], setup->budgets);
        json_close_object(w);
        return r;
}

static void on_set_up(Message *m, const char *problem, void *userdata) {
        BrokerClient *b = userdata;

        b->configured = m && !problem;
        b->setup_reply(m, problem, b->setup_userdata);
}

int broker_client_setup(BrokerClient *b, const BrokerSetup *setup, ChannelReply reply, void *userdata, Fault *f) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_close_ int keys = -EBADF;

        if (!b->channel)
                return fault_set(f, ERROR_SETUP, "the broker cannot be set up: it is not connected");
        int r = credentials_format_keys(setup->credentials, &keys);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "the keys cannot be passed on: %s", strerror(-r));
        _cleanup_(setup_fds_done) SetupFds fds = {.fds = {setup->spool, keys}, .n = 2, .n_borrowed = 2};
        r = format_setup(b, setup, &w, &fds, f);
        if (r < 0)
                return r;
        b->setup_reply = reply;
        b->setup_userdata = userdata;
        r = channel_send(b->channel, &w, fds.fds, fds.n, on_set_up, b);
        if (r == -EMSGSIZE)
                return fault_set(f, ERROR_LIMIT, "the allowlist and the lists of capabilities are too long for a broker: its set-up holds 64 KiB");
        return r < 0 ? fault_set(f, ERROR_SETUP, "the broker cannot be set up: %s", strerror(-r)) : 0;
}

static void add_grant(JsonWriter *w, const Grant *g, const GrantClock *now) {
        static const char *const words[_GRANT_DURATION_MAX] = {[GRANT_ONCE] = "once", [GRANT_SPAN] = "until", [GRANT_ALWAYS] = "always"};
        char id[16];

        (void) snprintf(id, sizeof(id), "%u", g->number);
        json_add_string(w, "id", id);
        json_add_string(w, "host", g->host);
        json_add_string(w, "duration", words[g->duration]);
        if (g->duration == GRANT_SPAN)
                json_add_u64(w, "expires", now->realtime + grant_remaining(g, now));
}

int broker_client_grant(BrokerClient *b, const Grant *g, const GrantClock *now, ChannelReply reply, ChannelDrop drop, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        if (grant_remaining(g, now) == 0)
                return -ETIME;
        if (!can_be_asked(b))
                return -ENOTCONN;
        channel_open(b->channel, &w, "grant");
        add_grant(&w, g, now);
        return channel_send_owned(b->channel, &w, NULL, 0, reply, drop, userdata);
}

/* A memfd: they may be more than a message holds, and as messages of their own more than a socket holds. */
static int format_grants(const GrantList *l, const GrantClock *now) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ char *text = NULL;
        size_t size, n = 0;

        json_open_object(&w, NULL);
        json_open_array(&w, "grants");
        for (size_t i = 0; i < l->n_grants; i++) {
                const Grant *g = &l->grants[i];
                if (g->pending || !grant_in_force(g, now))
                        continue;
                json_open_object(&w, NULL);
                add_grant(&w, g, now);
                json_close_object(&w);
                n++;
        }
        json_close_array(&w);
        json_close_object(&w);
        if (n == 0)
                return -ETIME;
        int r = json_writer_finish(&w, &text, &size);
        return r < 0 ? r : memfd_new_sealed("errand-grants", text, size);
}

int broker_client_grants(BrokerClient *b, const GrantList *l, const GrantClock *now, ChannelReply reply, ChannelDrop drop, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        _cleanup_close_ int fd = format_grants(l, now);
        if (fd < 0)
                return fd;
        if (!can_be_asked(b))
                return -ENOTCONN;
        channel_open(b->channel, &w, "grants");
        message_add_fd(&w, "grants");
        return channel_send_owned(b->channel, &w, &fd, 1, reply, drop, userdata);
}

int broker_client_revoke(BrokerClient *b, uint32_t number, ChannelReply reply, ChannelDrop drop, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        char id[16];

        if (!can_be_asked(b))
                return -ENOTCONN;
        (void) snprintf(id, sizeof(id), "%u", number);
        channel_open(b->channel, &w, "revoke");
        json_add_string(&w, "id", id);
        return channel_send_owned(b->channel, &w, NULL, 0, reply, drop, userdata);
}

static int on_patience(_unused_ sd_event_source *s, _unused_ uint64_t usec, void *userdata) {
        BrokerClient *b = userdata;

        log_warning("a broker did not answer in time and is killed");
        kill_now(b);
        return 0;
}

static void arm(BrokerClient *b, usec_t usec) {
        b->patience = sd_event_source_disable_unref(b->patience);
        if (sd_event_add_time_relative(b->event, &b->patience, CLOCK_MONOTONIC, usec, 0, on_patience, b) < 0)
                kill_now(b);
}

static void on_closed(Message *m, const char *problem, void *userdata) {
        BrokerClient *b = userdata;

        b->patience = sd_event_source_disable_unref(b->patience);
        if (problem)
                kill_now(b); /* one that crashed would come back with its keys */
        b->close_reply(m, problem, b->close_userdata);
}

int broker_client_close(BrokerClient *b, ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        b->closing = true;
        b->close_reply = reply;
        b->close_userdata = userdata;
        int r = -ENOTCONN;
        if (b->channel) {
                channel_open(b->channel, &w, "close");
                r = channel_send(b->channel, &w, NULL, 0, on_closed, b);
        }
        if (r >= 0)
                arm(b, CLOSE_USEC);
        else
                kill_now(b); /* a credential that cannot be withdrawn goes with its broker */
        return r;
}

void broker_client_end(BrokerClient *b) {
        b->going = true;
        b->again = sd_event_source_disable_unref(b->again);
        b->process->class->end(b->process);
}
