/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <time.h>

#include "basic/io.h"
#include "basic/text.h"
#include "errandd/grant-list.h"

#define BOOT_ID_PATH "/proc/sys/kernel/random/boot_id"

void grant_list_done(GrantList *l) {
        l->grants = mfree(l->grants);
        l->n_grants = 0;
        l->last = 0;
}

int grant_clock_now(GrantClock *ret) {
        _cleanup_free_ char *text = NULL;
        GrantClock now = {.realtime = now_realtime()};
        struct timespec ts;
        size_t size;

        if (clock_gettime(CLOCK_BOOTTIME, &ts) < 0)
                return -errno;
        now.boottime = (usec_t) ts.tv_sec * USEC_PER_SEC + (usec_t) ts.tv_nsec / 1000;
        int r = read_file_full(BOOT_ID_PATH, 4096, &text, &size);
        if (r < 0)
                return r;
        if (size < BOOT_ID_SIZE)
                return -EIO;
        memcpy(now.boot_id, text, BOOT_ID_SIZE);
        *ret = now;
        return 0;
}

int grant_duration_parse(const char *s, GrantDuration *ret, usec_t *ret_span, const char **ret_problem) {
        usec_t span = 0;

        if (streq(s, "once") || streq(s, "always")) {
                *ret = streq(s, "once") ? GRANT_ONCE : GRANT_ALWAYS;
                *ret_span = 0;
                return 0;
        }
        int r = timespan_parse(s, GRANT_SPAN_MAX, &span);
        if (r >= 0 && span >= GRANT_SPAN_MIN) {
                *ret = GRANT_SPAN;
                *ret_span = span;
                return 0;
        }
        *ret_problem = r == -ERANGE ? "the duration is longer than 30 days"
                       : r >= 0     ? "the duration is shorter than a second"
                                    : "the duration is not once, always or a time span such as 10m or 1h 30m";
        return -EBADMSG;
}

const char *grant_duration_text(const Grant *g, char buffer[static TIMESPAN_TEXT_MAX]) {
        return g->duration == GRANT_ONCE ? "once" : g->duration == GRANT_ALWAYS ? "always" : timespan_format(g->span, buffer);
}

static const char *host_problem(const char *phrase) {
        static _Thread_local char text[160];

        (void) snprintf(text, sizeof(text), "the host %s", phrase);
        return text;
}

int grant_list_add(GrantList *l, const char *host, const char *duration, uid_t by, const GrantClock *now, const Grant **ret,
                   const char **ret_problem) {
        Grant grant = {.granted = *now, .granted_by = by};
        const char *phrase;

        /* "*" alone is the list's business, not a grant's: a grant is one decision about one name. */
        if (host_text_normalize(host, HOST_TEXT_WILDCARD, grant.host, &phrase) < 0) {
                *ret_problem = host_problem(phrase);
                return -EBADMSG;
        }
        int r = grant_duration_parse(duration, &grant.duration, &grant.span, ret_problem);
        if (r < 0)
                return r;
        if (by == (uid_t) -1)
                return -EINVAL;
        if (l->n_grants >= GRANTS_MAX)
                (void) grant_list_prune(l, now);
        if (l->n_grants >= GRANTS_MAX || l->last >= GRANT_NUMBER_MAX)
                return -ENOSPC;

        Grant *grown = reallocarray(l->grants, l->n_grants + 1, sizeof(Grant));
        if (!grown)
                return -ENOMEM;
        l->grants = grown;
        grant.number = ++l->last;
        grown[l->n_grants] = grant;
        *ret = &grown[l->n_grants++];
        return 0;
}

static Grant *find(const GrantList *l, uint32_t number) {
        for (size_t i = 0; i < l->n_grants; i++)
                if (l->grants[i].number == number)
                        return &l->grants[i];
        return NULL;
}

const Grant *grant_list_find(const GrantList *l, uint32_t number) {
        return find(l, number);
}

int grant_list_revoke(GrantList *l, uint32_t number) {
        Grant *g = find(l, number);

        if (!g)
                return -ENOENT;
        size_t after = (size_t) (l->grants + l->n_grants - (g + 1));
        memmove(g, g + 1, after * sizeof(Grant));
        l->n_grants--;
        return 0;
}

int grant_list_mark_used(GrantList *l, uint32_t number, usec_t realtime) {
        Grant *g = find(l, number);

        if (!g || g->duration != GRANT_ONCE)
                return -ENOENT;
        if (g->used > 0)
                return 0;
        g->used = MAX(realtime, (usec_t) 1);
        return 1;
}

size_t grant_list_prune(GrantList *l, const GrantClock *now) {
        size_t kept = 0, n = l->n_grants;

        for (size_t i = 0; i < n; i++)
                if (grant_in_force(&l->grants[i], now) || l->grants[i].use_pending)
                        l->grants[kept++] = l->grants[i];
        l->n_grants = kept;
        return n - kept;
}

usec_t grant_remaining(const Grant *g, const GrantClock *now) {
        bool same_boot = streq(g->granted.boot_id, now->boot_id);
        usec_t from = same_boot ? g->granted.boottime : g->granted.realtime, at = same_boot ? now->boottime : now->realtime;

        if (g->duration == GRANT_ONCE && g->used > 0)
                return 0;
        if (g->duration != GRANT_SPAN)
                return USEC_INFINITY;
        /* A clock from before the grant tells nothing, so the grant ends. */
        return at < from || at - from >= g->span ? 0 : g->span - (at - from);
}

bool grant_in_force(const Grant *g, const GrantClock *now) {
        return grant_remaining(g, now) > 0;
}

usec_t grant_expires(const Grant *g) {
        return g->duration == GRANT_SPAN ? g->granted.realtime + g->span : 0;
}
