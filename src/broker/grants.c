/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <time.h>

#include "basic/text.h"
#include "broker/grants.h"
#include "broker/limits.h"
#include "shared/message.h"

#define DEADLINE_MAX INT64_C(999999999999999999) /* of what JSON may hold here: 31 000 years */

typedef struct Grant {
        char id[GRANT_ID_MAX + 1];
        HostPattern pattern;
        GrantDuration duration;
        usec_t deadline;
        bool used;
} Grant;

struct Grants {
        Grant *grants;
        size_t n, room;
        GrantSpent spending;
};

static const char *const duration_table[_GRANT_DURATION_MAX] = {
        [GRANT_ONCE] = "once",
        [GRANT_ALWAYS] = "always",
        [GRANT_UNTIL] = "until",
};

const char *grant_duration_to_string(GrantDuration d) {
        return d >= 0 && d < _GRANT_DURATION_MAX ? duration_table[d] : NULL;
}

GrantDuration grant_duration_from_string(const char *s) {
        for (GrantDuration d = 0; d < _GRANT_DURATION_MAX; d++)
                if (streq(s, duration_table[d]))
                        return d;
        return _GRANT_DURATION_INVALID;
}

int grants_new(Grants **ret) {
        Grants *g = calloc(1, sizeof(Grants));
        if (!g)
                return -ENOMEM;
        *ret = g;
        return 0;
}

Grants *grants_free(Grants *g) {
        if (!g)
                return NULL;
        free(g->grants);
        return mfree(g);
}

static void drop(Grants *g, size_t i) {
        g->n--;
        memmove(&g->grants[i], &g->grants[i + 1], (g->n - i) * sizeof(Grant));
}

static bool expired(const Grant *grant, usec_t now) {
        return grant->duration == GRANT_UNTIL && now >= grant->deadline;
}

static void drop_expired(Grants *g, usec_t now) {
        for (size_t i = g->n; i-- > 0;)
                if (expired(&g->grants[i], now))
                        drop(g, i);
}

static bool id_valid(const char *id) {
        size_t n = strlen(id);

        if (n == 0 || n > GRANT_ID_MAX)
                return false;
        for (const char *p = id; *p; p++)
                if (!ascii_alpha(*p) && !ascii_digit(*p) && !strchr("-_.", *p))
                        return false;
        return true;
}

static bool has_id(const Grants *g, const char *id) {
        for (size_t i = 0; i < g->n; i++)
                if (streq(g->grants[i].id, id))
                        return true;
        return false;
}

int grants_add(Grants *g, const char *id, const char *host, GrantDuration duration, usec_t deadline, usec_t now,
               const char **ret_problem) {
        Grant grant = {.duration = duration, .deadline = deadline};

        if (!id_valid(id)) {
                *ret_problem = "a grant's id is 1 to 64 letters, digits, '-', '_' and '.'";
                return -EBADMSG;
        }
        strcpy(grant.id, id);
        int r = host_pattern_parse(host, &grant.pattern, ret_problem);
        if (r < 0)
                return r;

        drop_expired(g, now);
        if (has_id(g, id))
                return -EEXIST;
        if (g->n >= GRANTS_MAX)
                return -ENOSPC;
        if (g->n == g->room) {
                size_t room = g->room ? g->room * 2 : 8;
                Grant *p = reallocarray(g->grants, room, sizeof(Grant));
                if (!p)
                        return -ENOMEM;
                g->grants = p;
                g->room = room;
        }
        g->grants[g->n++] = grant;
        return 0;
}

/* They share what is being spent, but nothing that is freed. */
static int copy_grants(const Grants *g, Grants *ret) {
        *ret = *g;
        ret->grants = calloc(MAX(g->n, (size_t) 1), sizeof(Grant));
        if (!ret->grants)
                return -ENOMEM;
        if (g->n > 0)
                memcpy(ret->grants, g->grants, g->n * sizeof(Grant));
        ret->room = MAX(g->n, (size_t) 1);
        return 0;
}

int grants_add_all(Grants *g, const GrantRequest *list, size_t n, usec_t now, size_t *ret_added, size_t *ret_at, const char **ret_problem) {
        size_t added = 0;
        Grants all;

        drop_expired(g, now);
        int r = copy_grants(g, &all);
        for (size_t i = 0; i < n && r >= 0; i++) {
                if (has_id(g, list[i].id))
                        continue;
                r = grants_add(&all, list[i].id, list[i].host, list[i].duration, list[i].deadline, now, ret_problem);
                if (r < 0)
                        *ret_at = i;
                else
                        added++;
        }
        if (r < 0) {
                free(all.grants);
                return r;
        }
        free(g->grants);
        *g = all;
        *ret_added = added;
        return 0;
}

int grants_revoke(Grants *g, const char *id) {
        for (size_t i = 0; i < g->n; i++)
                if (streq(g->grants[i].id, id)) {
                        drop(g, i);
                        return 0;
                }
        return -ENOENT;
}

bool grants_find(Grants *g, const Host *host, usec_t now, GrantUse *ret) {
        size_t found = SIZE_MAX;

        drop_expired(g, now);
        for (size_t i = 0; i < g->n; i++) {
                if (!host_pattern_matches(&g->grants[i].pattern, host))
                        continue;
                if (g->grants[i].duration != GRANT_ONCE) {
                        found = i;
                        break;
                }
                if (found == SIZE_MAX)
                        found = i;
        }
        if (found == SIZE_MAX)
                return false;

        const Grant *grant = &g->grants[found];
        *ret = (GrantUse){.duration = grant->duration, .first = !grant->used};
        strcpy(ret->id, grant->id);
        return true;
}

void grants_spend(Grants *g, const GrantUse *use, const char *host) {
        strcpy(g->spending.id, use->id);
        (void) snprintf(g->spending.host, sizeof(g->spending.host), "%s", host);
}

void grants_spare(Grants *g) {
        g->spending = (GrantSpent){};
}

void grants_use(Grants *g, const GrantUse *use) {
        grants_spare(g);
        for (size_t i = 0; i < g->n; i++) {
                if (!streq(g->grants[i].id, use->id))
                        continue;
                g->grants[i].used = true;
                if (g->grants[i].duration == GRANT_ONCE)
                        drop(g, i);
                return;
        }
}

void grants_save(const Grants *g, JsonWriter *w) {
        char pattern[HOST_NAME_MAX_BYTES + 3];

        json_open_array(w, "grants");
        for (size_t i = 0; i < g->n; i++) {
                const Grant *grant = &g->grants[i];
                if (streq(grant->id, g->spending.id))
                        continue;
                json_open_object(w, NULL);
                json_add_string(w, "id", grant->id);
                json_add_string(w, "host", host_pattern_format(&grant->pattern, pattern));
                json_add_string(w, "duration", grant_duration_to_string(grant->duration));
                json_add_u64(w, "deadline", MIN(grant->deadline, (usec_t) DEADLINE_MAX));
                json_add_bool(w, "used", grant->used);
                json_close_object(w);
        }
        json_close_array(w);
        if (!*g->spending.id)
                return;
        json_open_object(w, "spending");
        json_add_string(w, "id", g->spending.id);
        json_add_string(w, "host", g->spending.host);
        json_close_object(w);
}

static int load_one(Grants *g, JsonNode *node, usec_t now, const char **ret_problem) {
        JsonObject *o = JSON_NODE_HOLDS_OBJECT(node) ? json_node_get_object(node) : NULL;
        const char *id = NULL, *host = NULL, *word = NULL;
        GrantDuration duration = _GRANT_DURATION_INVALID;
        usec_t deadline = 0;
        bool used = false;

        *ret_problem = "a grant is not whole";
        if (!o || json_get_string(o, "id", &id) < 0 || json_get_string(o, "host", &host) < 0 || json_get_string(o, "duration", &word) < 0 ||
            json_get_u64(o, "deadline", DEADLINE_MAX, &deadline) < 0 || json_get_bool(o, "used", &used) < 0 ||
            (duration = grant_duration_from_string(word)) < 0 || (duration == GRANT_ONCE && used))
                return -EBADMSG;
        int r = grants_add(g, id, host, duration, deadline, now, ret_problem);
        if (r == -EEXIST || r == -ENOSPC) {
                *ret_problem = "a grant is there twice, or there are too many";
                return -EBADMSG;
        }
        /* grants_add() drops what has expired, then appends. */
        if (r >= 0)
                g->grants[g->n - 1].used = used;
        return r;
}

static int load_spent(JsonObject *saved, GrantSpent *ret, const char **ret_problem) {
        const char *id = NULL, *host = NULL;
        JsonObject *o = NULL;
        Host h = {};

        *ret = (GrantSpent){};
        int r = json_get_object(saved, "spending", &o);
        if (r == -ENOENT)
                return 0;
        *ret_problem = "the grant that was being used is not whole";
        if (r < 0 || json_get_string(o, "id", &id) < 0 || !id_valid(id) || json_get_string(o, "host", &host) < 0 ||
            host_parse(host, &h, ret_problem) < 0)
                return -EBADMSG;
        strcpy(ret->id, id);
        strcpy(ret->host, h.name);
        return 0;
}

int grants_load(Grants *g, JsonObject *saved, usec_t now, GrantSpent *ret_spent, const char **ret_problem) {
        JsonArray *list;

        if (json_get_array(saved, "grants", &list) < 0) {
                *ret_problem = "there is no list of grants";
                return -EBADMSG;
        }
        for (guint i = 0; i < json_array_get_length(list); i++) {
                int r = load_one(g, json_array_get_element(list, i), now, ret_problem);
                if (r < 0)
                        return r;
        }
        return load_spent(saved, ret_spent, ret_problem);
}

size_t grants_count(const Grants *g) {
        return g->n;
}

usec_t grants_now(void) {
        struct timespec ts;
        (void) clock_gettime(CLOCK_BOOTTIME, &ts); /* cannot fail for this clock */
        return (usec_t) ts.tv_sec * USEC_PER_SEC + (usec_t) ts.tv_nsec / 1000;
}

usec_t grants_deadline(usec_t realtime) {
        usec_t now = grants_now(), wall = now_realtime();
        if (realtime <= wall)
                return now;
        return realtime - wall > USEC_INFINITY - now ? USEC_INFINITY : now + (realtime - wall);
}
