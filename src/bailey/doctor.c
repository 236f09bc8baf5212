/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "bailey/account.h"
#include "bailey/doctor.h"
#include "bailey/mechanism.h"
#include "bailey/namespaces.h"
#include "bailey/run.h"
#include "basic/json-writer.h"
#include "basic/log.h"
#include "basic/text.h"

static void json_writer_donep(JsonWriter *w) {
        json_writer_done(w);
}

/* One that the table has. */
static const Outcome *outcome_of(const Outcome *all, const char *name) {
        size_t i = n_mechanisms - 1;

        while (i > 0 && !streq(mechanisms[i].name, name))
                i--;
        return &all[i];
}

static void try_all(Outcome *all) {
        for (size_t i = 0; i < n_mechanisms; i++) {
                const char *built_on = mechanisms[i].built_on;

                if (!built_on || outcome_of(all, built_on)->works)
                        mechanism_try(&mechanisms[i], &all[i]);
                else {
                        all[i] = (Outcome){.failure.stage = _STAGE_INVALID};
                        (void) snprintf(all[i].text, sizeof(all[i].text), "it needs %s", built_on);
                }
        }
}

/* As a run decides it: see enter.c. */
static int judge(const Outcome *all) {
        const Outcome *namespaces = outcome_of(all, MECHANISM_NAMESPACES);
        bool stops = false, lacks = false;

        if (!namespaces->works && namespaces->failure.stage == STAGE_NAMESPACES && namespaces_unavailable(-namespaces->failure.error))
                return outcome_of(all, MECHANISM_LANDLOCK)->works && outcome_of(all, MECHANISM_SECCOMP)->works ? DOCTOR_WEAKER : DOCTOR_NOTHING;
        for (size_t i = 0; i < n_mechanisms; i++) {
                stops |= mechanism_stops_runs(&mechanisms[i], &all[i]);
                lacks |= !all[i].works && mechanisms[i].need == NEED_DEFAULT;
        }
        return stops ? DOCTOR_NOTHING : lacks ? DOCTOR_WEAKER : DOCTOR_WHOLE;
}

/* The names of those that were tried and do not work: all but those that only options need, or these alone. */
static int missing(const Outcome *all, bool options, char **ret) {
        _cleanup_free_ char *text = strdup("");
        int r = text ? 0 : -ENOMEM;

        for (size_t i = 0; i < n_mechanisms && r >= 0; i++)
                if (!all[i].works && all[i].tried && (mechanisms[i].need == NEED_OPTION) == options)
                        r = string_append(&text, "%s%s", *text ? ", " : "", mechanisms[i].name);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(text);
        return 0;
}

static int summarize(const Outcome *all, int status, char **ret) {
        _cleanup_free_ char *run = NULL, *options = NULL;
        char *text = NULL;

        int r = missing(all, false, &run);
        if (r >= 0)
                r = missing(all, true, &options);
        if (r < 0)
                return r;
        const char *also = *options ? " Some options lack what they need: " : "", *stop = *options ? "." : "";
        if (status == DOCTOR_WHOLE)
                r = asprintf(&text, "Runs are confined by everything that bailey has.%s%s%s", also, options, stop);
        else if (status == DOCTOR_WEAKER)
                r = asprintf(&text, "Runs are confined, but not by everything: %s. Each run says so, and --strict refuses it.%s%s%s", run, also,
                             options, stop);
        else
                r = asprintf(&text, "Nothing can be confined on this host, and bailey runs nothing here: %s.", run);
        if (r < 0)
                return -ENOMEM;
        *ret = text;
        return 0;
}

static int print_text(const Outcome *all, const char *summary, FILE *f) {
        for (size_t i = 0; i < n_mechanisms; i++) {
                const Mechanism *m = &mechanisms[i];
                _cleanup_free_ char *text = string_escape_control(all[i].text);
                char remedy[512];

                if (!text)
                        return -ENOMEM;
                fprintf(f, "%-22s %-*s%s\n", m->name, *text ? 9 : 0, all[i].works ? "works" : all[i].tried ? "missing" : "untried", text);
                if (all[i].works || !all[i].tried)
                        continue;
                mechanism_remedy(m, &all[i], remedy);
                fprintf(f, "%22s cost:    %s\n%22s remedy:  %s\n", "", mechanism_cost(m, &all[i]), "", remedy);
        }
        fprintf(f, "\n%s\n", summary);
        return fflush(f) != 0 || ferror(f) ? -EIO : 0;
}

static int print_json(const Outcome *all, int status, const char *summary, FILE *f) {
        static const char *const needs[] = {[NEED_RUN] = "run", [NEED_DEFAULT] = "default", [NEED_OPTION] = "option"};
        _cleanup_(json_writer_donep) JsonWriter w = {};

        json_open_object(&w, NULL);
        json_add_u64(&w, "status", (uint64_t) status);
        json_add_string(&w, "summary", summary);
        json_open_array(&w, "mechanisms");
        for (size_t i = 0; i < n_mechanisms; i++) {
                const Mechanism *m = &mechanisms[i];
                bool lacks = !all[i].works && all[i].tried;
                char remedy[512];

                json_open_object(&w, NULL);
                json_add_string(&w, "name", m->name);
                json_add_bool(&w, "works", all[i].works);
                json_add_bool(&w, "tried", all[i].tried);
                json_add_string(&w, "needed_by", needs[m->need]);
                json_add_string(&w, "gap", gap_to_string(m->gap));
                json_add_string(&w, "text", all[i].text);
                if (lacks)
                        mechanism_remedy(m, &all[i], remedy);
                json_add_string(&w, "cost", lacks ? mechanism_cost(m, &all[i]) : NULL);
                json_add_string(&w, "remedy", lacks ? remedy : NULL);
                json_close_object(&w);
        }
        json_close_array(&w);
        json_close_object(&w);
        int r = json_writer_print(&w, f);
        return r < 0 ? r : fflush(f) != 0 ? -EIO : 0;
}

int doctor_verb(const Options *o) {
        _cleanup_(account_done) Account account = {};
        _cleanup_free_ Outcome *all = calloc(n_mechanisms, sizeof(Outcome));
        _cleanup_free_ char *summary = NULL;

        if (!all) {
                log_oom();
                return EXIT_NOT_RUN;
        }
        if (account_settle(o->user, &account) < 0)
                return EXIT_NOT_RUN;
        try_all(all);
        int status = judge(all);
        int r = summarize(all, status, &summary);
        if (r >= 0)
                r = o->json ? print_json(all, status, summary, stdout) : print_text(all, summary, stdout);
        if (r < 0)
                log_error_errno(r, "Failed to print what was found: %m");
        return r < 0 ? EXIT_NOT_RUN : status;
}
