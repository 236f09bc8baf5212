/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* keep.h's way back. Everything is read and judged before anything of it is in force. */

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "broker/broker.h"
#include "broker/control.h"
#include "broker/grants.h"
#include "broker/handover.h"
#include "broker/keep.h"
#include "broker/listener.h"
#include "broker/service.h"
#include "broker/state-file.h"
#include "shared/json-check.h"

#define STATE_DEPTH_MAX 3U

typedef struct Found {
        Setup *setup;
        StateFile *state;
        Grants *grants;
        GrantSpent spent;
        uint64_t wrong_tokens;
        bool closed, handed_over;
        int listener;
        uint32_t address;
        uint16_t port;
} Found;

static void found_done(Found *f) {
        setup_free(f->setup);
        state_file_free(f->state);
        grants_free(f->grants);
        safe_close(f->listener);
}

/* Not problem_set(): these sentences are for the log alone, and none is missing for want of memory. */
static int refuse(const char **ret_problem, const char *text) {
        *ret_problem = text;
        return -EBADMSG;
}

static int read_state(Found *f, Stored *s, const char **ret_problem) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        _cleanup_free_ char *text = NULL;
        JsonProblem json;
        JsonObject *o = NULL;
        uint64_t version = 0;
        size_t size = 0;

        int fd = stored_take(s, "state");
        if (fd < 0)
                return refuse(ret_problem, "the state is missing");
        int r = state_file_open(fd, &f->state, &text, &size, ret_problem);
        if (r < 0)
                return r;
        r = json_read_object(text, size, STATE_DEPTH_MAX, &parser, &o, &json);
        if (r < 0)
                return r == -EBADMSG ? refuse(ret_problem, "the state is not JSON") : r;
        if (json_get_u64(o, "v", 1, &version) < 0 || version != 1 || json_get_bool(o, "closed", &f->closed) < 0 ||
            json_get_bool(o, "handedOver", &f->handed_over) < 0 || json_get_u64(o, "wrongTokens", TOKEN_TRIES_MAX, &f->wrong_tokens) < 0)
                return refuse(ret_problem, "the state has not the members of this version");
        r = grants_new(&f->grants);
        return r < 0 ? r : grants_load(f->grants, o, grants_now(), &f->spent, ret_problem);
}

static int read_text(Stored *s, char **ret, size_t *ret_size, const char **ret_problem) {
        _cleanup_close_ int fd = stored_take(s, "setup");

        if (fd < 0)
                return refuse(ret_problem, "the setup is missing");
        int r = memfd_read_sealed(fd, MESSAGE_SIZE_MAX, ret, ret_size);
        return r == -EINVAL || r == -E2BIG ? refuse(ret_problem, "the setup is not a sealed memfd of at most 64 KiB") : r;
}

/* The descriptors that the setup's "fds" name, in their order. */
static int gather_fds(Stored *s, const char *text, size_t size, int fds[static MESSAGE_FDS_MAX], size_t *ret_n, const char **ret_problem) {
        _cleanup_json_parser_ JsonParser *parser = NULL;
        _cleanup_strv_free_ char **names = NULL;
        char name[KEEP_NAME_MAX];
        JsonProblem json;
        JsonObject *o = NULL;

        int r = json_read_object(text, size, MESSAGE_DEPTH_MAX, &parser, &o, &json);
        if (r == -ENOMEM)
                return r;
        if (r < 0 || json_get_strv(o, "fds", &names) < 0 || strv_length(names) > MESSAGE_FDS_MAX)
                return refuse(ret_problem, "the setup names no descriptors");
        for (char **i = names; i && *i; i++) {
                stored_name(*i, name);
                int fd = stored_take(s, name);
                if (fd < 0)
                        return refuse(ret_problem, "a descriptor that the setup names is missing");
                fds[(*ret_n)++] = fd;
        }
        return 0;
}

static int read_setup(Found *f, Stored *s, char **ret_text_problem, const char **ret_problem) {
        _cleanup_(message_freep) Message *m = NULL;
        int fds[MESSAGE_FDS_MAX];
        char *text = NULL;
        size_t size = 0, n = 0;

        int r = read_text(s, &text, &size, ret_problem);
        if (r < 0)
                return r;
        r = gather_fds(s, text, size, fds, &n, ret_problem);
        if (r >= 0)
                r = message_parse(text, size, fds, n, &m, ret_text_problem);
        else
                while (n > 0)
                        safe_close(fds[--n]);
        explicit_bzero(text, size);
        free(text);
        return r < 0 ? r : setup_parse(m, &f->setup, ret_text_problem);
}

static int read_listener(const Broker *b, Found *f, Stored *s, const char **ret_problem) {
        f->listener = stored_take(s, "listener");
        if (f->listener < 0)
                return f->handed_over ? refuse(ret_problem, "the listener is missing") : 0;
        f->handed_over = true;
        return listener_check(f->listener, b->own_netns, &f->address, &f->port, ret_problem);
}

static int read_all(const Broker *b, Found *f, Stored *s, char **ret_text_problem, const char **ret_problem) {
        int r = read_state(f, s, ret_problem);
        if (r < 0 || f->closed)
                return r;
        r = read_setup(f, s, ret_text_problem, ret_problem);
        if (r >= 0)
                r = read_listener(b, f, s, ret_problem);
        if (r < 0)
                return r;
        for (size_t i = 0; i < s->n; i++)
                if (s->items[i].fd >= 0)
                        return refuse(ret_problem, "there is a descriptor that the setup does not name");
        return 0;
}

static int apply(Broker *b, Found *f, const Stored *s) {
        GrantSpent spent = f->spent;
        Keep *keep;

        int r = keep_again(s, f->state, &keep);
        if (r < 0)
                return r;
        b->keep = keep;
        f->state = NULL; /* keep's */
        r = broker_configure(b, f->setup);
        if (r < 0)
                return r;
        f->setup = NULL; /* the broker's */
        keep_load_budgets(b->keep, b->setup);
        grants_free(b->grants);
        b->grants = TAKE_PTR(f->grants);
        handover_resume(b->handover, (unsigned) f->wrong_tokens, f->handed_over);
        if (f->listener >= 0) {
                r = broker_listen(b, f->listener, f->address, f->port);
                if (r < 0)
                        return r;
                TAKE_FD(f->listener);
        }
        if (*spent.id) {
                /* It may be in the spool already; twice is once there. */
                r = receipts_grant_used(b->receipts, spent.id, spent.host);
                control_note_grant_used(b->control, spent.id, spent.host, r >= 0);
        }
        keep_save(b->keep, b);
        return 0;
}

static void forget(Stored *s) {
        for (size_t i = 0; i < s->n; i++)
                (void) service_forget(s->items[i].name);
        stored_done(s);
}

int keep_restore(Broker *b, Stored *s) {
        _cleanup_(found_done) Found f = {.listener = -EBADF};
        _cleanup_free_ char *text_problem = NULL;
        const char *problem = NULL;

        if (s->n == 0)
                return 0;
        int r = read_all(b, &f, s, &text_problem, &problem);
        if (r < 0) {
                log_error("what was kept of a session is not used, and the session is over: %s", text_problem ?: problem ?: strerrordesc_np(-r));
                forget(s);
                return 0;
        }
        if (f.closed) {
                log_info("the session that was kept is closed: nothing of it is used");
                forget(s);
                broker_close(b);
                return 0;
        }
        uint64_t refused = state_file_count(f.state, COUNT_REFUSED);
        r = apply(b, &f, s);
        if (r < 0) {
                stored_done(s);
                return r;
        }
        stored_done(s);
        control_set_refused_total(b->control, refused);
        log_info("session %s: goes on after its broker was started again%s", b->setup->session,
                 f.handed_over ? "" : "; its listener is not handed over yet");
        return 0;
}
