/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errand/entries.h"

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

static int read_value(sd_bus_message *m, const Entry *e) {
        int b, r;

        if (e->type == 'a')
                return read_words(m, e->place);
        if (e->type != 'b')
                return sd_bus_message_read_basic(m, e->type, e->place);
        r = sd_bus_message_read_basic(m, 'b', &b);
        if (r >= 0)
                *(bool *) e->place = b;
        return r;
}

static int read_entry(sd_bus_message *m, const char *name, const Entry *entries, size_t n) {
        const char *contents;
        int r;

        r = sd_bus_message_peek_type(m, NULL, &contents);
        if (r < 0)
                return r;
        for (size_t i = 0; i < n; i++) {
                if (!streq(entries[i].name, name) || !streq(contents, entries[i].type == 'a' ? "as" : (const char[]){entries[i].type, 0}))
                        continue;
                r = sd_bus_message_enter_container(m, 'v', contents);
                if (r >= 0)
                        r = read_value(m, entries + i);
                return r < 0 ? r : sd_bus_message_exit_container(m);
        }
        return sd_bus_message_skip(m, "v");
}

int entries_read(sd_bus_message *m, const Entry *entries, size_t n) {
        const char *name;
        int r;

        r = sd_bus_message_enter_container(m, 'a', "{sv}");
        if (r <= 0)
                return r;
        while ((r = sd_bus_message_enter_container(m, 'e', "sv")) > 0) {
                r = sd_bus_message_read_basic(m, 's', &name);
                if (r >= 0)
                        r = read_entry(m, name, entries, n);
                if (r >= 0)
                        r = sd_bus_message_exit_container(m);
                if (r < 0)
                        return r;
        }
        if (r >= 0)
                r = sd_bus_message_exit_container(m);
        return r < 0 ? r : 1;
}
