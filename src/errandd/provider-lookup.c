/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <netdb.h>
#include <stdatomic.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "basic/fd.h"
#include "basic/log.h"
#include "basic/text.h"
#include "basic/thread.h"
#include "errandd/config-values.h"
#include "errandd/host-text.h"
#include "errandd/provider-lookup.h"

/* What the thread works on; the last of the two that leaves it frees it. */
typedef struct Work {
        atomic_uint users;
        char **ids, **hosts;
        int *errors; /* of getaddrinfo(3) */
        int done;    /* an eventfd */
} Work;

struct ProviderLookup {
        Work *work;
        sd_event_source *io;
        ProviderLookupDone handler;
        void *userdata;
};

static void work_unref(Work *w) {
        if (atomic_fetch_sub(&w->users, 1) > 1)
                return;
        strv_free(w->ids);
        strv_free(w->hosts);
        free(w->errors);
        safe_close(w->done);
        free(w);
}

static void *run(void *userdata) {
        const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
        Work *w = userdata;

        for (size_t i = 0; w->hosts[i]; i++) {
                struct addrinfo *list = NULL;
                w->errors[i] = getaddrinfo(w->hosts[i], NULL, &hints, &list);
                if (w->errors[i] == 0)
                        freeaddrinfo(list);
        }
        (void) !write(w->done, &(uint64_t) {1}, sizeof(uint64_t));
        work_unref(w);
        return NULL;
}

static int on_done(_unused_ sd_event_source *source, _unused_ int fd, _unused_ uint32_t events, void *userdata) {
        ProviderLookup *l = userdata;
        const Work *w = l->work;
        char **warnings = NULL, *text;

        (void) sd_event_source_set_enabled(l->io, SD_EVENT_OFF);
        for (size_t i = 0; w->hosts[i]; i++) {
                if (w->errors[i] == 0)
                        continue;
                if (asprintf(&text, "agent.providers.%s: its host %s does not resolve here (%s), so that sessions cannot call it; see /etc/resolv.conf",
                             w->ids[i], w->hosts[i], gai_strerror(w->errors[i])) < 0)
                        continue;
                log_warning("%s", text);
                (void) strv_consume(&warnings, text);
        }
        l->handler(warnings, l->userdata);
        return 0;
}

/* Of every provider that a broker would look up. */
static int collect(Work *w, const Config *c) {
        for (size_t i = 0; i < c->agent.n_providers; i++) {
                const ConfigProvider *p = &c->agent.providers[i];
                const char *url = config_provider_url(p);
                char host[HOST_TEXT_MAX + 1];

                if (!config_provider_brokered(p) || !url || !startswith(url, "https://") || !base_url_host(url, host, sizeof(host)) || host_is_literal(host))
                        continue;
                if (strv_extend(&w->ids, p->id) < 0 || strv_extend(&w->hosts, host) < 0)
                        return -ENOMEM;
        }
        w->errors = calloc(strv_length(w->hosts) + 1, sizeof(int));
        return w->errors ? 0 : -ENOMEM;
}

ProviderLookup *provider_lookup_free(ProviderLookup *l) {
        if (!l)
                return NULL;
        sd_event_source_disable_unref(l->io);
        work_unref(l->work);
        return mfree(l);
}

int provider_lookup_start(sd_event *event, const Config *c, ProviderLookupDone done, void *userdata, ProviderLookup **ret) {
        ProviderLookup *l = calloc(1, sizeof(ProviderLookup));
        Work *w = calloc(1, sizeof(Work));

        if (!l || !w) {
                free(l);
                free(w);
                return -ENOMEM;
        }
        *l = (ProviderLookup){.work = w, .handler = done, .userdata = userdata};
        atomic_init(&w->users, 1);
        w->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        int r = w->done < 0 ? -errno : c->sandbox.network == NETWORK_NONE || c->sandbox.egress.mode != EGRESS_PROXY ? 0 : collect(w, c);
        bool any = r >= 0 && w->hosts;
        if (any)
                r = sd_event_add_io(event, &l->io, w->done, EPOLLIN, on_done, l);
        if (any && r >= 0) {
                atomic_fetch_add(&w->users, 1);
                r = thread_start(run, w, 0);
                if (r < 0)
                        atomic_fetch_sub(&w->users, 1);
        }
        if (r < 0 || !any) {
                provider_lookup_free(l);
                l = NULL;
        }
        if (r < 0)
                return r;
        *ret = l;
        return 0;
}
