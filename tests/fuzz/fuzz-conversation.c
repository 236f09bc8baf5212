/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "basic/macro.h" /* before GLib, which defines MIN and MAX anew */
#include "basic/fd.h"
#include "basic/text.h"
#include "fuzz.h"
#include "shared/json-check.h"
#include "shared/message.h"
#include "shim/conversation.h"

/* Input: all that an agent writes in a session, while errandd lets a turn begin whenever it can. Whatever that is: each prompt ends once, every update is a
 * message, and the secret is in none of them and not in the transcript. */

#define SECRET "sk-fuzz-0123456789"
#define PROMPTS 4U

typedef struct Watch {
        unsigned ended[PROMPTS + 1], started, failed, over;
        char *speech; /* of the turn */
        size_t size;
} Watch;

static void take_text(Watch *w, JsonObject *fields) {
        const char *text;

        HOLDS(json_get_string(fields, "text", &text) == 0 && strlen(text) <= 16384);
        w->speech = realloc(w->speech, w->size + strlen(text) + 1);
        HOLDS(w->speech);
        memcpy(w->speech + w->size, text, strlen(text) + 1);
        w->size += strlen(text);
        HOLDS(!strstr(w->speech, SECRET));
}

static void on_update(JsonWriter *writer, _unused_ bool keep, void *userdata) {
        _cleanup_free_ char *text = NULL;
        _cleanup_json_parser_ JsonParser *parser = NULL;
        JsonObject *object, *fields;
        Watch *w = userdata;
        const char *kind;
        uint64_t prompt;
        size_t size;

        HOLDS(message_close(writer, &text, &size) == 0);
        HOLDS(!strstr(text, SECRET));
        HOLDS(json_read_object(text, size, MESSAGE_DEPTH_MAX, &parser, &object, NULL) == 0);
        HOLDS(json_get_string(object, "kind", &kind) == 0 && json_get_object(object, "fields", &fields) == 0);
        if (streq(kind, "message"))
                take_text(w, fields);
        else if (streq(kind, "turn-started"))
                w->started++;
        else if (streq(kind, "turn-ended")) {
                HOLDS(json_get_u64(fields, "prompt", PROMPTS, &prompt) == 0);
                w->ended[prompt]++;
                w->size = 0;
        }
}

static void on_failed(const char *text, void *userdata) {
        Watch *w = userdata;

        HOLDS(!strstr(text, SECRET) && w->failed++ == 0);
}

static void on_ended(void *userdata) {
        Watch *w = userdata;

        HOLDS(w->over++ == 0);
}

static const SecretList *secrets(void) {
        static SecretList *list;

        if (!list) {
                _cleanup_close_ int fd = memfd_new_sealed("secrets", SECRET, sizeof(SECRET));
                HOLDS(fd >= 0 && secret_list_read(fd, &list) == 0);
        }
        return list;
}

static void check_transcript(int fd) {
        off_t size = lseek(fd, 0, SEEK_END);
        char *text = malloc((size_t) size + 1);

        HOLDS(text && pread(fd, text, (size_t) size, 0) == size);
        HOLDS(!memmem(text, (size_t) size, SECRET, strlen(SECRET)));
        for (off_t i = 0; i < size; i++)
                HOLDS((unsigned char) text[i] >= 0x20 || text[i] == '\n' || text[i] == '\t');
        free(text);
}

static void drive(sd_event *event, Conversation *c, Watch *w, int output, const uint8_t *data, size_t size) {
        const char *problem;

        HOLDS(conversation_prompt(c, 1, 0, "one", &problem) == 0 && conversation_prompt(c, 2, 0, "two", &problem) == 0);
        conversation_begin(c);
        for (size_t at = 0; at < size;) {
                const uint8_t *end = memchr(data + at, '\n', size - at);
                size_t n = MIN(end ? (size_t) (end - (data + at)) + 1 : size - at, (size_t) 4096);
                HOLDS(write(output, data + at, n) == (ssize_t) n);
                at += n;
                HOLDS(sd_event_run(event, 0) >= 0);
                (void) conversation_turn(c, &problem);
                if (n % 5 == 0)
                        (void) conversation_interrupt(c, &problem);
                if (n % 3 == 0)
                        (void) conversation_answer(c, 1, "yes", &problem);
        }
        (void) conversation_prompt(c, 3, 0, "three", &problem);
        HOLDS(conversation_prompt(c, 3, 0, "three", &problem) < 0);
        close(output);
        while (conversation_is_open(c))
                HOLDS(sd_event_run(event, UINT64_MAX) >= 0);
        HOLDS(w->over == 1 && conversation_prompt(c, PROMPTS, 0, "four", &problem) < 0);
        conversation_finish(c);
        for (unsigned i = 1; i <= 3; i++)
                HOLDS(w->ended[i] <= 1);
        HOLDS(w->ended[1] == 1 && w->ended[2] == 1 && w->started <= 3);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
        const ConversationOptions options = {.startup_usec = USEC_PER_MINUTE, .question_usec = USEC_PER_MINUTE, .abort_usec = USEC_PER_MINUTE, .directory = "/p"};
        int input[2], output[2], log = memfd_create("transcript", MFD_CLOEXEC);
        Conversation *c = NULL;
        Transcript *t = NULL;
        sd_event *event = NULL;
        Watch w = {};
        const ConversationLinks links = {.updates = {on_update, &w}, .failed = on_failed, .ended = on_ended, .userdata = &w};

        HOLDS(log >= 0 && fcntl(log, F_SETFL, O_APPEND) == 0 && sd_event_new(&event) >= 0);
        HOLDS(pipe2(input, O_CLOEXEC | O_NONBLOCK) == 0 && pipe2(output, O_CLOEXEC) == 0 && fd_nonblock(output[0], true) == 0);
        HOLDS(transcript_new(dup(log), 1U << 20, &t) == 0);
        HOLDS(conversation_new(event, secrets(), t, &options, &links, &c) == 0 && conversation_open(c, input[1], output[0]) == 0);
        drive(event, c, &w, output[1], data, size);
        conversation_free(c);
        transcript_free(t);
        check_transcript(log);
        sd_event_unref(event);
        close(input[0]);
        close(log);
        free(w.speech);
        return 0;
}
