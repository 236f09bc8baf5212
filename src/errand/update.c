/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/text.h"
#include "errand/entries.h"
#include "errand/update.h"

int update_read(sd_bus_message *m, Update *ret) {
        Update u = {.text = "", .reason = "", .id = "", .title = "", .status = "", .options = "", .option = "", .agent = "", .version = "", .fields = m};
        const Entry entries[] = {
                {"prompt", 't', &u.prompt}, {"question", 't', &u.question}, {"count", 't', &u.count},     {"text", 's', &u.text},
                {"reason", 's', &u.reason}, {"id", 's', &u.id},             {"title", 's', &u.title},     {"status", 's', &u.status},
                {"options", 's', &u.options}, {"option", 's', &u.option},   {"agent", 's', &u.agent},     {"version", 's', &u.version},
        };
        int r = sd_bus_message_read_basic(m, 's', &u.word);

        if (r > 0)
                r = entries_read(m, entries, ELEMENTSOF(entries));
        if (r <= 0)
                return r < 0 ? r : -EBADMSG;
        u.kind = update_kind_from_string(u.word);
        r = sd_bus_message_rewind(m, true);
        if (r >= 0)
                r = sd_bus_message_skip(m, "s");
        if (r < 0)
                return r;
        *ret = u;
        return 0;
}

static char *cut(const char **s, const char *end, char stop) {
        const char *from = *s, *at = memchr(from, stop, (size_t) (end - from));

        *s = at ? at + 1 : end;
        return strndup(from, (size_t) ((at ?: end) - from));
}

bool update_next_option(const char **options, char **ret_id, char **ret_name, char **ret_kind) {
        const char *s = *options, *end;

        if (!*s)
                return false;
        end = strchrnul(s, '\n');
        *options = *end ? end + 1 : end;
        *ret_id = cut(&s, end, '\t');
        *ret_name = cut(&s, end, '\t');
        *ret_kind = cut(&s, end, '\t');
        return true;
}

const char *turn_end_text(const Update *u) {
        static const struct {
                const char *reason, *text;
        } texts[] = {
                {"end_turn", "the agent is done"},
                {"max_tokens", "the model came to its limit of tokens"},
                {"max_turn_requests", "the agent made as many requests as one turn may"},
                {"refusal", "the agent refuses to go on"},
                {"cancelled", "it was interrupted"},
                {"expired", "the prompt waited too long for its turn, and was dropped (limits.maxQueueWaitMs)"},
                {"error", "the agent failed"},
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                if (streq(texts[i].reason, u->reason))
                        return texts[i].text;
        return u->reason;
}
