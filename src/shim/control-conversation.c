/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "basic/fd.h"
#include "basic/text.h"
#include "basic/utf8.h"
#include "shim/control-conversation.h"
#include "shim/limits.h"

static int refuse(const char **ret_problem, const char *text) {
        *ret_problem = text;
        return -EINVAL;
}

/* *ret is to free. */
static int read_text(int fd, char **ret, const char **ret_problem) {
        _cleanup_free_ char *text = NULL;
        size_t size = 0;

        int r = memfd_read_sealed(fd, PROMPT_SIZE_MAX, &text, &size);
        if (r == -EINVAL)
                return refuse(ret_problem, "the prompt's text is not in a memfd sealed against shrinking, growing and writing");
        if (r == -E2BIG || (r >= 0 && size < 1))
                return refuse(ret_problem, "a prompt's text has 1 byte to 128 KiB");
        if (r < 0)
                return r;
        if (strlen(text) < size || !utf8_valid(text))
                return refuse(ret_problem, "a prompt's text is UTF-8 without a NUL");
        *ret = TAKE_PTR(text);
        return 0;
}

int control_prompt(Conversation *c, Message *m, const char **ret_problem) {
        _cleanup_free_ char *text = NULL;
        uint64_t number, wait = 0;

        int r = json_get_u64(message_object(m), "waitMs", CONVERSATION_MSEC_MAX, &wait);
        if ((r < 0 && r != -ENOENT) || json_get_u64(message_object(m), "number", INT64_MAX, &number) < 0 || number == 0)
                return refuse(ret_problem, "\"number\" is a number from 1, and \"waitMs\" one of milliseconds, at most 30 days");
        _cleanup_close_ int fd = message_take_fd(m, "text");
        if (fd < 0)
                return refuse(ret_problem, "the descriptor \"text\" is missing");
        r = read_text(fd, &text, ret_problem);
        return r < 0 ? r : conversation_prompt(c, number, wait * USEC_PER_MSEC, text, ret_problem);
}

int control_turn(Conversation *c, _unused_ Message *m, const char **ret_problem) {
        return conversation_turn(c, ret_problem);
}

int control_interrupt(Conversation *c, _unused_ Message *m, const char **ret_problem) {
        return conversation_interrupt(c, ret_problem);
}

int control_answer(Conversation *c, Message *m, const char **ret_problem) {
        uint64_t question;
        const char *option;

        if (json_get_u64(message_object(m), "question", INT64_MAX, &question) < 0 || json_get_string(message_object(m), "option", &option) < 0)
                return refuse(ret_problem, "\"question\" is a number and \"option\" a text");
        return conversation_answer(c, question, option, ret_problem);
}
