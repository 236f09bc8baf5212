/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "basic/io.h"
#include "basic/log.h"
#include "basic/text.h"
#include "basic/utf8.h"
#include "errand/conversation.h"
#include "errand/json-output.h"
#include "errand/prompt.h"
#include "errand/verbs.h"
#include "shared/conversation-limits.h"

static char *read_input(void) {
        _cleanup_free_ char *text = NULL;
        size_t size;
        int r = read_fd_full(STDIN_FILENO, PROMPT_SIZE_MAX, &text, &size);

        if (r == -EFBIG)
                log_error("the text on standard input is too long: 128 KiB at most");
        else if (r < 0)
                log_error_errno(r, "Failed to read standard input: %m");
        else if (strlen(text) != size)
                log_error("the text on standard input has a NUL byte in it");
        else {
                while (size > 0 && text[size - 1] == '\n')
                        text[--size] = 0;
                return TAKE_PTR(text);
        }
        return NULL;
}

static int check_text(const char *text) {
        if (!*text)
                log_error("the text is empty");
        else if (strlen(text) > PROMPT_SIZE_MAX)
                log_error("the text is too long: 128 KiB at most");
        else if (!utf8_valid(text))
                log_error("the text is not in UTF-8");
        else
                return 0;
        return -EINVAL;
}

int prompt_text(const Request *q, char **ret) {
        char *const *words = q->operands + 1;
        _cleanup_free_ char *text = NULL;

        if (!*words && isatty(STDIN_FILENO)) {
                log_error("the text is missing: errand %s %s TEXT..., or - to read it from standard input", verb_words(q->verb), q->operands[0]);
                return -EINVAL;
        }
        bool input = !*words || (streq(*words, "-") && !words[1]);
        text = input ? read_input() : strv_join(words, " ");
        if (!text && !input)
                (void) log_oom();
        if (!text || check_text(text) < 0)
                return -EINVAL;
        *ret = TAKE_PTR(text);
        return 0;
}

static int send_only(const Request *q, const char *text) {
        _cleanup_(connection_freep) Connection *c = NULL;
        _cleanup_(json_writer_done) JsonWriter w = {};
        uint64_t number;
        int r;

        r = connection_open(q, CONNECT_START_STATE | CONNECT_ASKS, &c);
        if (r == EXIT_OK)
                r = conversation_send(c, q->operands[0], text, &number);
        if (r != EXIT_OK || !q->json)
                return r;
        json_open_object(&w, NULL);
        json_add_string(&w, "session", q->operands[0]);
        json_add_u64(&w, "prompt", number);
        json_close_object(&w);
        return json_print(&w);
}

int verb_prompt(const Request *q) {
        _cleanup_free_ char *text = NULL;

        if (prompt_text(q, &text) < 0)
                return EXIT_FAILED;
        return q->no_wait ? send_only(q, text) : conversation_run(q, text);
}

int verb_follow(const Request *q) {
        return conversation_run(q, NULL);
}
