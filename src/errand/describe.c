/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/log.h"
#include "basic/text.h"
#include "errand/describe.h"

void description_done(Description *d) {
        char **texts[] = {&d->state, &d->reason, &d->project, &d->provider, &d->model, &d->network, &d->backend, &d->command, &d->allow};

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                free(*texts[i]);
                *texts[i] = NULL;
        }
        d->message = sd_bus_message_unref(d->message);
}

bool description_ended(const Description *d) {
        return streq(d->state, "stopped") || streq(d->state, "failed");
}

/* A list as one text: the words of a command as a shell would take them, near enough to be read. */
static int read_words(sd_bus_message *m, char **ret) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;
        FILE *f = open_memstream(&text, &size);
        const char *s;
        int r, n = 0;

        if (!f)
                return -ENOMEM;
        r = sd_bus_message_enter_container(m, 'a', "s");
        while (r >= 0 && (r = sd_bus_message_read_basic(m, 's', &s)) > 0) {
                bool plain = *s && !s[strcspn(s, " \t\n'\"\\$`&|;<>()*?#~")];
                fprintf(f, plain ? "%s%s" : "%s'%s'", n++ > 0 ? " " : "", s);
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        if (fclose(f) != 0)
                return -ENOMEM;
        if (r < 0)
                return r;
        free(*ret);
        *ret = TAKE_PTR(text);
        return 0;
}

static int read_text(sd_bus_message *m, char **ret) {
        const char *s;
        int r = sd_bus_message_read_basic(m, 's', &s);

        if (r < 0)
                return r;
        free(*ret);
        *ret = strdup(s);
        return *ret ? 0 : -ENOMEM;
}

static int read_entry(sd_bus_message *m, const char *name, Description *d) {
        const struct {
                const char *name;
                char type;
                void *place;
        } fields[] = {
                {"State", 's', &d->state},       {"ExitReason", 's', &d->reason},    {"Project", 's', &d->project},
                {"Provider", 's', &d->provider}, {"Model", 's', &d->model},          {"Network", 's', &d->network},
                {"Backend", 's', &d->backend},   {"Command", 'a', &d->command},      {"Allow", 'a', &d->allow},
                {"ExitStatus", 'i', &d->status}, {"OwnerUid", 'u', &d->owner},       {"PayloadUid", 'u', &d->payload},
                {"CreatedUSec", 't', &d->created}, {"StartedUSec", 't', &d->started}, {"EndedUSec", 't', &d->ended},
                {"RefusedCount", 't', &d->refused}, {"Interactive", 'b', &d->interactive},
        };
        const char *contents;
        int b, r;

        r = sd_bus_message_peek_type(m, NULL, &contents);
        if (r < 0)
                return r;
        for (size_t i = 0; i < ELEMENTSOF(fields); i++) {
                if (!streq(fields[i].name, name) || contents[0] != fields[i].type)
                        continue;
                r = sd_bus_message_enter_container(m, 'v', contents);
                if (r < 0)
                        return r;
                if (fields[i].type == 's')
                        r = read_text(m, fields[i].place);
                else if (fields[i].type == 'a')
                        r = read_words(m, fields[i].place);
                else if (fields[i].type == 'b') {
                        r = sd_bus_message_read_basic(m, 'b', &b);
                        *(bool *) fields[i].place = r >= 0 && b;
                } else
                        r = sd_bus_message_read_basic(m, fields[i].type, fields[i].place);
                return r < 0 ? r : sd_bus_message_exit_container(m);
        }
        return sd_bus_message_skip(m, "v");
}

static int fill_missing(Description *d) {
        char **texts[] = {&d->state, &d->reason, &d->project, &d->provider, &d->model, &d->network, &d->backend, &d->command};

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (!*texts[i] && !(*texts[i] = strdup("")))
                        return -ENOMEM;
        return 0;
}

static int read_description(sd_bus_message *m, Description *d) {
        const char *name;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        while (r >= 0 && (r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = sd_bus_message_read_basic(m, 's', &name);
                if (r >= 0)
                        r = read_entry(m, name, d);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
        }
        if (r >= 0)
                r = fill_missing(d);
        return r < 0 ? r : sd_bus_message_rewind(m, true);
}

int describe(Connection *c, const char *id, Description *ret) {
        _cleanup_(description_done) Description d = {};
        int r;

        r = session_call(c, id, "Describe", "Failed to look at it", &d.message, NULL);
        if (r != EXIT_OK)
                return r;
        r = read_description(d.message, &d);
        if (r < 0) {
                log_error_errno(r, "errandd's description of session %s cannot be read: %m", id);
                return EXIT_FAILED;
        }
        *ret = d;
        d = (Description){};
        return EXIT_OK;
}
