/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/parse.h"
#include "basic/text.h"
#include "errandd/broker-client.h"
#include "errandd/paths.h"
#include "errandd/spawn.h"

#define CLOSE_USEC USEC_PER_SEC
#define END_USEC (2 * USEC_PER_SEC)
#define SESSION_BACKLOG 4 /* one is expected */

struct BrokerClient {
        sd_event *event;
        BrokerHandler handler;
        Channel *channel;
        pid_t pid; /* 0: reaped */
        uint64_t refused; /* the total that its events told last */
        sd_event_source *child, *patience;
        ChannelReply close_reply;
        void *close_userdata;
};

static void kill_now(BrokerClient *b) {
        if (b->pid > 0)
                (void) kill(b->pid, SIGKILL); /* not reaped yet, so the number is still its own */
}

BrokerClient *broker_client_free(BrokerClient *b) {
        if (!b)
                return NULL;
        b->child = sd_event_source_disable_unref(b->child);
        if (b->pid > 0) {
                kill_now(b);
                while (waitpid(b->pid, NULL, 0) < 0 && errno == EINTR)
                        ;
        }
        sd_event_source_disable_unref(b->patience);
        channel_free(b->channel);
        sd_event_unref(b->event);
        return mfree(b);
}

static int on_child(_unused_ sd_event_source *s, const siginfo_t *si, void *userdata) {
        BrokerClient *b = userdata;
        int status = si->si_code == CLD_EXITED ? W_EXITCODE(si->si_status, 0) : W_EXITCODE(0, si->si_status);

        b->pid = 0;
        b->child = sd_event_source_disable_unref(b->child);
        b->patience = sd_event_source_disable_unref(b->patience);
        b->handler.ended(status, b->handler.userdata);
        return 0;
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

        if (streq(type, "refused") && json_get_string(o, "host", &text) >= 0 && json_get_u64(o, "port", UINT16_MAX, &a) >= 0 &&
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

/* Listens as `session` in that directory, for the payload's account alone. */
static int listen_session(const BrokerStart *start) {
        struct sockaddr_un address = {.sun_family = AF_UNIX};

        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (fd < 0)
                return -errno;
        if (unlinkat(start->directory, "session", 0) < 0 && errno != ENOENT) /* of an earlier start */
                return -errno;
        (void) snprintf(address.sun_path, sizeof(address.sun_path), "/proc/self/fd/%d/session", start->directory);
        mode_t mask = umask(0177);
        int r = bind(fd, (const struct sockaddr *) &address, sizeof(address)) < 0 ? -errno : 0;
        (void) umask(mask);
        if (r >= 0 && start->payload && fchownat(start->directory, "session", start->payload->uid, start->payload->gid, AT_SYMLINK_NOFOLLOW) < 0)
                r = -errno;
        if (r >= 0 && listen(fd, SESSION_BACKLOG) < 0)
                r = -errno;
        return r < 0 ? r : TAKE_FD(fd);
}

static int start_process(BrokerClient *b, const BrokerStart *start, int control, int session) {
        char *const argv[] = {(char *) "errand-broker", NULL}, *const environment[] = {(char *) "PATH=/usr/bin:/bin", (char *) "LANG=C.UTF-8", NULL};
        const int fds[] = {control, session};

        _cleanup_close_ int program = paths_open_program("errand-broker");
        if (program < 0)
                return program;
        int r = spawn(&(SpawnRequest){
                .program = program,
                .argv = argv,
                .environment = environment,
                .fds = fds,
                .n_fds = ELEMENTSOF(fds),
                .activation = "control:session",
                .log = start->log,
                .identity = start->identity,
                .bound = true,
        }, &b->pid);
        return r < 0 ? r : sd_event_add_child(b->event, &b->child, b->pid, WEXITED, on_child, b);
}

int broker_client_new(sd_event *event, const BrokerStart *start, const BrokerHandler *handler, BrokerClient **ret, Fault *f) {
        _cleanup_(broker_client_freep) BrokerClient *b = calloc(1, sizeof(BrokerClient));
        int pair[2];

        if (!b)
                return fault_set(f, ERROR_SETUP, "out of memory");
        b->event = sd_event_ref(event);
        b->handler = *handler;
        _cleanup_close_ int session = listen_session(start);
        if (session < 0)
                return fault_set(f, ERROR_SETUP, "the broker's session socket cannot be made: %s", strerror(-session));
        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return fault_set(f, ERROR_SETUP, "no socket for the broker: %s", strerror(errno));
        _cleanup_close_ int ours = pair[0], theirs = pair[1];
        int r = start_process(b, start, theirs, session);
        if (r >= 0)
                r = channel_new(event, TAKE_FD(ours), &(ChannelHandler){.event = on_event, .userdata = b}, &b->channel);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "errand-broker cannot be started: %s", strerror(-r));
        *ret = TAKE_PTR(b);
        return 0;
}

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

int broker_client_setup(BrokerClient *b, const BrokerSetup *setup, ChannelReply reply, void *userdata, Fault *f) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_close_ int keys = -EBADF;

        int r = credentials_format_keys(setup->credentials, &keys);
        if (r < 0)
                return fault_set(f, ERROR_SETUP, "the keys cannot be passed on: %s", strerror(-r));
        _cleanup_(setup_fds_done) SetupFds fds = {.fds = {setup->spool, keys}, .n = 2, .n_borrowed = 2};
        r = format_setup(b, setup, &w, &fds, f);
        if (r < 0)
                return r;
        r = channel_send(b->channel, &w, fds.fds, fds.n, reply, userdata);
        if (r == -EMSGSIZE)
                return fault_set(f, ERROR_LIMIT, "the allowlist and the lists of capabilities are too long for a broker: its set-up holds 64 KiB");
        return r < 0 ? fault_set(f, ERROR_SETUP, "the broker cannot be set up: %s", strerror(-r)) : 0;
}

int broker_client_grant(BrokerClient *b, const Grant *g, const GrantClock *now, ChannelReply reply, void *userdata) {
        static const char *const words[_GRANT_DURATION_MAX] = {[GRANT_ONCE] = "once", [GRANT_SPAN] = "until", [GRANT_ALWAYS] = "always"};
        _cleanup_(json_writer_done) JsonWriter w = {};
        usec_t remaining = grant_remaining(g, now);
        char id[16];

        if (remaining == 0)
                return -ETIME;
        (void) snprintf(id, sizeof(id), "%u", g->number);
        channel_open(b->channel, &w, "grant");
        json_add_string(&w, "id", id);
        json_add_string(&w, "host", g->host);
        json_add_string(&w, "duration", words[g->duration]);
        if (g->duration == GRANT_SPAN)
                json_add_u64(&w, "expires", now->realtime + remaining);
        return channel_send(b->channel, &w, NULL, 0, reply, userdata);
}

int broker_client_revoke(BrokerClient *b, uint32_t number, ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        char id[16];

        (void) snprintf(id, sizeof(id), "%u", number);
        channel_open(b->channel, &w, "revoke");
        json_add_string(&w, "id", id);
        return channel_send(b->channel, &w, NULL, 0, reply, userdata);
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
        if (b->close_reply)
                b->close_reply(m, problem, b->close_userdata);
}

int broker_client_close(BrokerClient *b, ChannelReply reply, void *userdata) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        b->close_reply = reply;
        b->close_userdata = userdata;
        channel_open(b->channel, &w, "close");
        int r = channel_send(b->channel, &w, NULL, 0, on_closed, b);
        if (r >= 0)
                arm(b, CLOSE_USEC);
        else
                kill_now(b); /* a credential that cannot be withdrawn goes with its broker */
        return r;
}

void broker_client_end(BrokerClient *b) {
        if (b->pid <= 0)
                return;
        (void) kill(b->pid, SIGTERM);
        arm(b, END_USEC);
}
