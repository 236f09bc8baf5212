/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "shim/acp.h"
#include "shim/plan.h"
#include "shim/speech.h"

static int write_entries(FILE *f, const SecretList *secrets, JsonView entries) {
        size_t state = 0;
        AcpEntry entry;
        int r = 0;

        for (size_t n = 0; n < PLAN_ENTRIES_MAX && (r = acp_next_entry(entries, &state, &entry)) > 0; n++) {
                _cleanup_free_ char *raw = entry.text, *line = NULL;

                r = speech_line(secrets, raw, PLAN_ENTRY_MAX, &line);
                if (r < 0)
                        break;
                fprintf(f, "%s[%c] %s", n > 0 ? "\n" : "", entry.mark, line);
        }
        return MIN(r, 0);
}

int plan_text(const SecretList *secrets, JsonView entries, char **ret) {
        _cleanup_free_ char *text = NULL;
        size_t size;

        FILE *f = open_memstream(&text, &size);
        if (!f)
                return -ENOMEM;
        int r = write_entries(f, secrets, entries);
        if (fclose(f) != 0)
                return -ENOMEM;
        if (r < 0)
                return r;
        *ret = TAKE_PTR(text);
        return 0;
}
