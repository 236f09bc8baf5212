/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <unistd.h>

#include "bailey/directories.h"
#include "bailey/discovery.h"
#include "bailey/policy-source.h"
#include "bailey/resolve.h"
#include "bailey/trust-store.h"
#include "basic/path.h"
#include "basic/text.h"

/* A run in which there is nothing to be found costs one open() a directory, and no more. */

typedef struct Found {
        PolicySource source;
        unsigned depth;
        bool here; /* on the way up from the working directory */
} Found;

typedef struct Discovery {
        const DiscoveryRequest *request;
        Findings *findings;
        Found *found;
        size_t n;
        TrustStore *store;
        char *config_real;
        char **skipped;
} Discovery;

static void discovery_done(Discovery *d) {
        for (size_t i = 0; i < d->n; i++)
                policy_source_done(&d->found[i].source);
        free(d->found);
        trust_store_free(d->store);
        free(d->config_real);
        strv_free(d->skipped);
}

static int skip(Discovery *d, const char *path, const char *why, bool can_accept) {
        _cleanup_free_ char *quoted = can_accept ? string_quote_shell(path) : NULL;

        if (can_accept && !quoted)
                return -ENOMEM;
        finding_warning(d->findings, "skipped %s: %s%s%s", path, why, can_accept ? "; to accept it: bailey trust " : "", quoted ?: "");
        return strv_extend(&d->skipped, path);
}

/* One directory on a way up. What cannot be looked into is as if there were nothing. */
static int look(Discovery *d, const char *directory, bool here) {
        PolicySource source = POLICY_SOURCE_NONE;
        bool itself = here && streq(directory, d->request->working_directory);

        int r = policy_source_open_found(directory, itself, DISCOVERY_NAME, &source);
        if (r == -ENOENT || r == -ENOTDIR || r == -ENAMETOOLONG)
                return 0;
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                _cleanup_free_ char *path = NULL;
                struct stat st;

                if (asprintf(&path, "%s/%s", streq(directory, "/") ? "" : directory, DISCOVERY_NAME) < 0)
                        return -ENOMEM;
                return lstat(itself ? DISCOVERY_NAME : path, &st) < 0 ? 0 : skip(d, path, strerror(-r), false);
        }
        Found *grown = reallocarray(d->found, d->n + 1, sizeof(Found));
        if (!grown) {
                policy_source_done(&source);
                return -ENOMEM;
        }
        d->found = grown;
        grown[d->n++] = (Found){.source = source, .depth = path_depth(directory), .here = here};
        return 0;
}

/* Upwards from `start`, but not through what is, or is above, `other`: those are looked at from there. */
static int walk(Discovery *d, const char *start, const char *other, bool here) {
        _cleanup_free_ char *at = strdup(start);

        if (!at)
                return -ENOMEM;
        for (;;) {
                if (other && path_beneath(other, at))
                        return 0;
                int r = look(d, at, here);
                if (r < 0 || streq(at, "/"))
                        return r;
                char *slash = strrchr(at, '/');
                slash[slash == at] = 0;
        }
}

static int walk_both(Discovery *d) {
        const DiscoveryRequest *q = d->request;
        _cleanup_(resolved_path_done) ResolvedPath from = {};
        _cleanup_free_ char *parent = NULL;

        if (q->working_directory) {
                int r = walk(d, q->working_directory, NULL, true);
                if (r < 0)
                        return r;
        }
        if (!q->target)
                return 0;
        parent = path_parent(q->target);
        if (!parent)
                return -ENOMEM;
        int r = path_resolve(parent, &from);
        if (r < 0)
                return r == -ENOMEM ? r : 0; /* the target itself will be told of */
        return walk(d, from.real, q->working_directory, false);
}

static int compare_found(const void *a, const void *b) {
        const Found *x = a, *y = b;

        if (x->depth != y->depth)
                return x->depth < y->depth ? -1 : 1;
        return (int) x->here - (int) y->here;
}

static bool same_file(const struct stat *a, const struct stat *b) {
        return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* A file that is found twice, by a link or a mount, counts where it stands highest. */
static bool counts_later(const Discovery *d, size_t at) {
        for (size_t i = at + 1; i < d->n; i++)
                if (same_file(&d->found[i].source.status, &d->found[at].source.status))
                        return true;
        return d->request->config && same_file(d->request->config, &d->found[at].source.status);
}

/* The store is asked for once, and only when there is something to ask. */
static int load_store(Discovery *d) {
        _cleanup_(resolved_path_done) ResolvedPath config = {};
        _cleanup_free_ char *text = NULL;

        if (d->store)
                return 0;
        int r = trust_store_load(d->request->config_directory, d->request->account->uid, &d->store, &text);
        if (r == -ENOMEM)
                return r;
        if (r < 0) {
                if (text)
                        finding_warning(d->findings, "%s", text);
                else
                        finding_warning(d->findings, "%s/" TRUST_STORE_NAME " cannot be read, so nothing is trusted: %s",
                                        d->request->config_directory, strerror(-r));
                d->store = calloc(1, sizeof(TrustStore));
                if (!d->store)
                        return -ENOMEM;
        }
        r = path_resolve(d->request->config_directory, &config);
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        d->config_real = TAKE_PTR(config.real);
        return 0;
}

/* Where the variables of a project's own tool say that configuration lies in the project, the project holds the store. */
static bool holds_store(const Discovery *d, const char *directory) {
        return d->config_real && path_beneath(d->config_real, directory) &&
               !path_beneath(directory_home(d->request->account), directory);
}

static int take(Discovery *d, PolicySource *source, LayerList *layers) {
        uint8_t digest[SHA256_SIZE];
        const char *reason;
        Layer *layer = NULL;

        if (!S_ISREG(source->status.st_mode))
                return skip(d, source->path, "it is not a regular file", false);
        if (!policy_source_is_own(&source->status, d->request->account, &reason))
                return skip(d, source->path, reason, false);
        int r = load_store(d);
        if (r < 0)
                return r;
        if (holds_store(d, source->base))
                return skip(d, source->path, "bailey's own configuration lies beside or below it", false);
        r = policy_source_read(source);
        if (r < 0)
                return r == -ENOMEM ? r : skip(d, source->path, strerror(-r), false);
        const TrustEntry *entry = trust_store_find(d->store, source->path);
        if (!entry)
                return skip(d, source->path, "it is not accepted", true);
        sha256(source->text, source->size, digest);
        if (memcmp(entry->digest, digest, SHA256_SIZE) != 0)
                return skip(d, source->path, "it was changed since it was accepted", true);
        r = policy_source_parse(source, NULL, POLICY_FILE, d->request->places, d->findings, &layer);
        return r < 0 || !layer ? r : layer_list_add(layers, layer);
}

/* The person's own; nothing of it has to be accepted, so nobody else may have written it. */
static int load_own(Discovery *d, LayerList *layers) {
        _cleanup_(policy_source_done) PolicySource source = POLICY_SOURCE_NONE;
        _cleanup_free_ char *path = NULL;
        const char *reason = NULL;
        Layer *layer = NULL;

        if (asprintf(&path, "%s/config.toml", d->request->config_directory) < 0)
                return -ENOMEM;
        int r = policy_source_open(path, &source);
        if (r == -ENOENT || r == -ENOTDIR || r == -ENOMEM)
                return r == -ENOMEM ? r : 0;
        if (r >= 0 && d->request->config && same_file(d->request->config, &source.status))
                return 0;
        if (r >= 0 && !policy_source_is_own(&source.status, d->request->account, &reason)) {
                finding_error(d->findings, "%s: the policy is not taken: %s", path, reason);
                return 0;
        }
        if (r >= 0)
                r = policy_source_read(&source);
        if (r < 0 && r != -ENOMEM)
                finding_error(d->findings, "%s: the policy cannot be read: %s", path,
                              r == -EINVAL ? "not a regular file" : strerror(-r));
        if (r < 0)
                return r == -ENOMEM ? r : 0;
        r = policy_source_parse(&source, NULL, POLICY_FILE, d->request->places, d->findings, &layer);
        return r < 0 || !layer ? r : layer_list_add(layers, layer);
}

int discovery_load(const DiscoveryRequest *request, Findings *findings, LayerList *layers, char ***ret_skipped) {
        _cleanup_(discovery_done) Discovery d = {.request = request, .findings = findings};

        int r = load_own(&d, layers);
        if (r >= 0)
                r = walk_both(&d);
        if (r >= 0 && d.n > 1)
                qsort(d.found, d.n, sizeof(Found), compare_found);
        for (size_t i = 0; i < d.n && r >= 0; i++)
                if (!counts_later(&d, i))
                        r = take(&d, &d.found[i].source, layers);
        if (r < 0)
                return r;
        *ret_skipped = TAKE_PTR(d.skipped);
        return 0;
}
