/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "bailey/account.h"
#include "bailey/directories.h"
#include "bailey/profile-verbs.h"
#include "bailey/profiles.h"
#include "basic/json-writer.h"
#include "basic/log.h"
#include "basic/text.h"

typedef struct Context {
        Account account;
        char *config, *cwd;
        PolicyPlaces places;
        Findings findings;
        Profile *own;
        size_t n_own;
} Context;

static void context_done(Context *c) {
        for (size_t i = 0; i < c->n_own; i++)
                profile_done(&c->own[i]);
        free(c->own);
        findings_done(&c->findings);
        account_done(&c->account);
        free(c->config);
        free(c->cwd);
}

static int begin(const Options *o, Context *c) {
        int r = account_settle(o->user, &c->account);
        if (r < 0)
                return r;
        r = directory_config(&c->account, &c->config);
        if (r < 0)
                return log_error_errno(r, "The directory of the configuration cannot be named: %m");
        c->cwd = getcwd(NULL, 0);
        c->places = (PolicyPlaces){
                .home = directory_home(&c->account), .working_directory = c->cwd, .environment = !c->account.changed};
        r = profile_own(&(ProfileRequest){.account = &c->account, .config_directory = c->config, .places = &c->places}, &c->findings,
                        &c->own, &c->n_own);
        if (r < 0)
                return log_error_errno(r, "Failed to read the profiles: %m");
        return 0;
}

static void add(JsonWriter *w, const char *name, const char *path, const char *description, char *const *applies_to) {
        json_open_object(w, NULL);
        json_add_string(w, "name", name);
        json_add_string(w, "path", path);
        json_add_string(w, "description", description);
        json_add_strings(w, "applies_to", applies_to);
        json_close_object(w);
}

static int print_json(const Context *c) {
        _cleanup_(json_writer_done) JsonWriter w = {};
        const char *name, *description = NULL;

        json_open_array(&w, NULL);
        for (size_t i = 0; (name = profile_bundled_name(i)) && profile_bundled(name, &description); i++)
                add(&w, name, NULL, description, NULL);
        for (size_t i = 0; i < c->n_own; i++)
                if (c->own[i].layer)
                        add(&w, c->own[i].name, c->own[i].path, c->own[i].layer->description, c->own[i].layer->applies_to);
        json_close_array(&w);
        return json_writer_print(&w, stdout);
}

static int print(const Context *c) {
        const char *name, *description = NULL;

        for (size_t i = 0; (name = profile_bundled_name(i)) && profile_bundled(name, &description); i++)
                printf("%-16s  %s\n", name, description);
        for (size_t i = 0; i < c->n_own; i++) {
                const Layer *l = c->own[i].layer;
                _cleanup_free_ char *clean = string_escape_control(l && l->description ? l->description : c->own[i].path);

                if (!clean)
                        return -ENOMEM;
                if (l)
                        printf("%-16s  %s\n", c->own[i].name, clean);
        }
        return 0;
}

int profile_list_verb(const Options *o) {
        _cleanup_(context_done) Context c = {};

        /* Root for nobody has no profiles of its own: those that are built in are listed all the same. */
        if (account_is_meant(o->user) && begin(o, &c) < 0)
                return EXIT_FAILURE;
        int r = o->json ? print_json(&c) : print(&c);
        if (r < 0 || fflush(stdout) != 0)
                return log_error("Failed to print the list"), EXIT_FAILURE;
        findings_print(&c.findings);
        return findings_failed(&c.findings) ? EXIT_FAILURE : EXIT_SUCCESS;
}

int profile_show_verb(const Options *o) {
        _cleanup_(context_done) Context c = {};
        const char *name = o->argv[0], *text = profile_bundled(name, NULL);

        if (!text && begin(o, &c) < 0)
                return EXIT_FAILURE;
        for (size_t i = 0; i < c.n_own && !text; i++)
                text = streq(c.own[i].name, name) ? c.own[i].text : NULL;
        if (!text) {
                findings_print(&c.findings);
                log_error("there is no profile \"%s\"; see bailey profile list", name);
                return EXIT_FAILURE;
        }
        fputs(text, stdout);
        if (fflush(stdout) != 0)
                return log_error_errno(errno, "Failed to print the profile: %m"), EXIT_FAILURE;
        return EXIT_SUCCESS;
}
