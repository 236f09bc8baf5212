/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "broker/broker.h"
#include "broker/grants.h"
#include "broker/handover.h"
#include "broker/keep.h"
#include "broker/keys.h"
#include "broker/service.h"
#include "broker/state-file.h"

struct Keep {
        char *text; /* of the setup, until it is handed over */
        size_t text_size;
        Stored stored; /* fds only until they are handed over */
        StateFile *state;
};

static bool is_ours(const char *name) {
        static const char *const names[] = {"setup", "keys", "spool", "state", "listener"};
        const char *id = startswith(name, "ca-");

        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                if (streq(name, names[i]))
                        return true;
        return id && provider_id_valid(id, strlen(id));
}

int stored_add(Stored *s, const char *name, int fd) {
        if (!is_ours(name) || s->n == KEEP_MAX)
                return -EINVAL;
        for (size_t i = 0; i < s->n; i++)
                if (streq(s->items[i].name, name))
                        return -EEXIST;
        (void) snprintf(s->items[s->n].name, KEEP_NAME_MAX, "%s", name);
        s->items[s->n++].fd = fd;
        return 0;
}

int stored_take(Stored *s, const char *name) {
        for (size_t i = 0; i < s->n; i++)
                if (streq(s->items[i].name, name) && s->items[i].fd >= 0)
                        return TAKE_FD(s->items[i].fd);
        return -ENOENT;
}

void stored_done(Stored *s) {
        for (size_t i = 0; i < s->n; i++)
                safe_close(s->items[i].fd);
        *s = (Stored){};
}

void stored_name(const char *name, char ret[static KEEP_NAME_MAX]) {
        const char *id = startswith(name, "ca:");
        (void) snprintf(ret, KEEP_NAME_MAX, "%s%s", id ? "ca-" : "", id ?: name);
}

static void forget_text(Keep *k) {
        if (k->text)
                explicit_bzero(k->text, k->text_size);
        k->text = mfree(k->text);
        k->text_size = 0;
}

Keep *keep_free(Keep *k) {
        if (!k)
                return NULL;
        forget_text(k);
        stored_done(&k->stored);
        state_file_free(k->state);
        return mfree(k);
}

static int add_copy(Keep *k, const Message *m, const char *name) {
        int given = message_peek_fd(m, name);
        if (given < 0)
                return 0;
        _cleanup_close_ int fd = fcntl(given, F_DUPFD_CLOEXEC, 3);
        if (fd < 0)
                return -errno;
        int r = stored_add(&k->stored, name, fd);
        if (r >= 0)
                TAKE_FD(fd);
        return r;
}

int keep_new(const Message *setup, Keep **ret) {
        _cleanup_(keep_freep) Keep *k = NULL;

        if (!service_is_managed()) {
                *ret = NULL;
                return 0;
        }
        k = calloc(1, sizeof(Keep));
        if (!k)
                return -ENOMEM;
        int r = message_format(setup, &k->text, &k->text_size);
        if (r >= 0)
                r = add_copy(k, setup, "keys");
        if (r >= 0)
                r = add_copy(k, setup, "spool");
        if (r < 0)
                return r;
        *ret = TAKE_PTR(k);
        return 0;
}

int keep_again(const Stored *s, StateFile *state, Keep **ret) {
        Keep *k = calloc(1, sizeof(Keep));
        if (!k)
                return -ENOMEM;
        for (size_t i = 0; i < s->n; i++)
                (void) stored_add(&k->stored, s->items[i].name, -EBADF);
        k->state = state;
        *ret = k;
        return 0;
}

static int write_state(Keep *k, const Broker *b) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        json_open_object(&w, NULL);
        json_add_u64(&w, "v", 1);
        json_add_bool(&w, "closed", b->closed);
        json_add_bool(&w, "handedOver", b->listen_port != 0);
        json_add_u64(&w, "wrongTokens", handover_wrong_tokens(b->handover));
        grants_save(b->grants, &w);
        json_close_object(&w);
        int r = json_writer_finish(&w, &text, &size);
        return r < 0 ? r : state_file_write(k->state, text, size);
}

/* Takes everything out again, and remembers that nothing is there. */
static void take_out(Keep *k) {
        for (size_t i = 0; i < k->stored.n; i++) {
                int r = service_forget(k->stored.items[i].name);
                if (r < 0)
                        log_warning_errno(r, "the service manager could not be told to forget \"%s\": %m", k->stored.items[i].name);
        }
        stored_done(&k->stored);
        k->state = state_file_free(k->state);
}

static void give_up(Keep *k, int error, const char *what) {
        log_error_errno(error, "%s cannot be kept outside this process: should it die, the session ends: %m", what);
        take_out(k);
}

static int store(Keep *k, const char *name, int fd) {
        if (stored_take(&k->stored, name) == -ENOENT)
                (void) stored_add(&k->stored, name, -EBADF);
        return service_store(name, fd);
}

/* As they were read: what becomes of the file meanwhile is for another session. */
static int store_authorities(Keep *k, const Setup *s) {
        int r = 0;

        for (size_t i = 0; i < s->n_providers && r >= 0; i++) {
                const Provider *p = &s->providers[i];
                char name[KEEP_NAME_MAX];
                if (!p->ca_pem)
                        continue;
                (void) snprintf(name, sizeof(name), "ca-%s", p->id);
                _cleanup_close_ int fd = memfd_new_sealed("errand-broker-ca", p->ca_pem, p->ca_pem_size);
                r = fd < 0 ? fd : store(k, name, fd);
        }
        return r;
}

static int store_all(Keep *k, const Broker *b) {
        int r = state_file_new(&k->state);
        if (r >= 0)
                r = write_state(k, b);
        if (r >= 0)
                r = store(k, "state", state_file_fd(k->state));
        for (size_t i = 0; r >= 0 && i < k->stored.n; i++)
                if (k->stored.items[i].fd >= 0) {
                        r = service_store(k->stored.items[i].name, k->stored.items[i].fd);
                        k->stored.items[i].fd = safe_close(k->stored.items[i].fd);
                }
        if (r >= 0)
                r = store_authorities(k, b->setup);
        if (r < 0)
                return r;
        _cleanup_close_ int setup = k->text_size <= MESSAGE_SIZE_MAX ? memfd_new_sealed("errand-broker-setup", k->text, k->text_size) : -E2BIG;
        return setup < 0 ? setup : store(k, "setup", setup);
}

void keep_begin(Keep *k, const Broker *b) {
        if (!k)
                return;
        int r = store_all(k, b);
        forget_text(k);
        if (r < 0)
                give_up(k, r, "the setup");
}

void keep_listener(Keep *k, int fd) {
        if (!k || !k->state)
                return;
        int r = store(k, "listener", fd);
        if (r < 0)
                give_up(k, r, "the listener");
}

void keep_no_listener(Keep *k) {
        if (!k || !k->state)
                return;
        int r = service_forget("listener");
        if (r < 0)
                give_up(k, r, "the listener");
}

void keep_save(Keep *k, const Broker *b) {
        if (!k || !k->state)
                return;
        int r = write_state(k, b);
        if (r < 0)
                give_up(k, r, "what has changed");
}

void keep_count(Keep *k, uint64_t refused) {
        if (k && k->state)
                (void) state_file_set_count(k->state, COUNT_REFUSED, refused); /* a number for people, nothing rests on it */
}

/* The session's is the first, a provider's the one at its place behind it; NULL where there is none. */
static Budget *budget_at(const Setup *s, size_t i) {
        return i == 0 ? s->budget : i <= s->n_providers ? s->providers[i - 1].budget : NULL;
}

void keep_budgets(Keep *k, const Setup *s) {
        if (!k || !k->state)
                return;
        for (size_t i = 0; i <= s->n_providers; i++) {
                const Budget *b = budget_at(s, i);
                for (size_t kind = 0; b && kind < _BUDGET_KIND_MAX; kind++) {
                        size_t at = COUNT_BUDGETS + i * _BUDGET_KIND_MAX + kind;
                        if (b->limit[kind] > 0 && state_file_count(k->state, at) != b->spent[kind])
                                (void) state_file_set_count(k->state, at, b->spent[kind]); /* memory of ours, of its whole size */
                }
        }
}

void keep_load_budgets(const Keep *k, const Setup *s) {
        for (size_t i = 0; k && k->state && i <= s->n_providers; i++) {
                Budget *b = budget_at(s, i);
                for (size_t kind = 0; b && kind < _BUDGET_KIND_MAX; kind++)
                        b->spent[kind] = MAX(b->spent[kind], state_file_count(k->state, COUNT_BUDGETS + i * _BUDGET_KIND_MAX + kind));
        }
}

bool keep_is_whole(const Keep *k) {
        return k && k->state;
}

void keep_end(Keep *k, const Broker *b) {
        if (!k || !k->state)
                return;
        int r = write_state(k, b); /* what the manager forgets too late says by itself that it is over */
        if (r < 0)
                log_warning_errno(r, "the end of the session could not be written down: %m");
        take_out(k);
        r = service_settle(SERVICE_SETTLE_USEC);
        if (r < 0)
                log_warning_errno(r, "the service manager has not said that it forgot the session: %m");
}
