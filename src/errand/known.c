/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errand/known.h"

struct KnownSession {
        char id[SESSION_ID_MAX + 1], state[16];
        bool marked;
};

struct KnownGrant {
        char session[SESSION_ID_MAX + 1];
        uint32_t number;
        char *host;
};

void known_done(Known *k) {
        for (size_t i = 0; i < k->n_grants; i++)
                free(k->grants[i].host);
        free(k->grants);
        free(k->sessions);
        *k = (Known){};
}

static struct KnownSession *find(const Known *k, const char *id) {
        for (size_t i = 0; i < k->n_sessions; i++)
                if (streq(k->sessions[i].id, id))
                        return k->sessions + i;
        return NULL;
}

static struct KnownGrant *find_grant(const Known *k, const char *id, uint32_t number) {
        for (size_t i = 0; i < k->n_grants; i++)
                if (k->grants[i].number == number && streq(k->grants[i].session, id))
                        return k->grants + i;
        return NULL;
}

KnownChange known_set_state(Known *k, const char *id, const char *state) {
        struct KnownSession *s = find(k, id), *grown;
        bool same = s && streq(s->state, state);

        if (s) {
                s->marked = false;
                (void) snprintf(s->state, sizeof(s->state), "%s", state);
                return same ? KNOWN_SAME : KNOWN_CHANGED;
        }
        grown = reallocarray(k->sessions, k->n_sessions + 1, sizeof(*grown));
        if (grown) {
                k->sessions = grown;
                s = grown + k->n_sessions++;
                *s = (struct KnownSession){};
                (void) snprintf(s->id, sizeof(s->id), "%s", id);
                (void) snprintf(s->state, sizeof(s->state), "%s", state);
        }
        return KNOWN_NEW;
}

int known_add_grant(Known *k, const char *id, uint32_t number, const char *host) {
        struct KnownGrant *grown;

        if (find_grant(k, id, number))
                return 0;
        grown = reallocarray(k->grants, k->n_grants + 1, sizeof(*grown));
        if (grown) {
                k->grants = grown;
                grown += k->n_grants++;
                *grown = (struct KnownGrant){.number = number, .host = strdup(host)};
                (void) snprintf(grown->session, sizeof(grown->session), "%s", id);
        }
        return 1;
}

static void remove_grant(Known *k, size_t i) {
        free(k->grants[i].host);
        k->grants[i] = k->grants[--k->n_grants];
}

bool known_remove(Known *k, const char *id) {
        struct KnownSession *s = find(k, id);

        for (size_t i = k->n_grants; i-- > 0;)
                if (streq(k->grants[i].session, id))
                        remove_grant(k, i);
        if (!s)
                return false;
        *s = k->sessions[--k->n_sessions];
        return true;
}

void known_remove_grant(Known *k, const char *id, uint32_t number) {
        struct KnownGrant *g = find_grant(k, id, number);

        if (g)
                remove_grant(k, (size_t) (g - k->grants));
}

const char *known_host(const Known *k, const char *id, uint32_t number) {
        const struct KnownGrant *g = find_grant(k, id, number);

        return g ? g->host : NULL;
}

unsigned known_count_live(const Known *k) {
        unsigned n = 0;

        for (size_t i = 0; i < k->n_sessions; i++)
                n += streq(k->sessions[i].state, "starting") || streq(k->sessions[i].state, "running") || streq(k->sessions[i].state, "stopping");
        return n;
}

void known_mark(Known *k) {
        for (size_t i = 0; i < k->n_sessions; i++)
                k->sessions[i].marked = true;
}

void known_forget_marked(Known *k, void (*gone)(const char *id, void *userdata), void *userdata) {
        for (size_t i = k->n_sessions; i-- > 0;) {
                char id[SESSION_ID_MAX + 1];

                if (!k->sessions[i].marked)
                        continue;
                memcpy(id, k->sessions[i].id, sizeof(id));
                (void) known_remove(k, id);
                gone(id, userdata);
        }
}
