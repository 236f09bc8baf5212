/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <unistd.h>

#include "basic/clock.h"
#include "basic/text.h"
#include "errand/exit.h"
#include "errand/json-output.h"
#include "errand/output.h"
#include "errand/update-printer.h"

static FILE *aside(const UpdatePrinter *p) {
        return p->answer ? stderr : stdout;
}

static bool colours_of(FILE *f) {
        return output_colours() && isatty(fileno(f));
}

static void flush(UpdatePrinter *p, FILE *f) {
        if (f != stdout)
                (void) fflush(f);
        else if (p->error == 0)
                p->error = output_error();
}

void update_printer_end_line(UpdatePrinter *p) {
        FILE *f = p->open == UPDATE_OPEN_MESSAGE ? stdout : aside(p);

        if (p->open == UPDATE_OPEN_NONE)
                return;
        fputc('\n', f);
        flush(p, f);
        p->open = UPDATE_OPEN_NONE;
}

/* As it may stand on a terminal, but with its lines and tabs. Where lines of ours come between, one that looks like them is moved by a column. */
static void put_text(FILE *f, const char *s, bool begins, bool mixed) {
        while (*s) {
                size_t n = strcspn(s, "\n\t");
                _cleanup_free_ char *piece = strndup(s, n), *shown = piece ? text_for_terminal(piece) : NULL;

                if (begins && mixed && *s == '[')
                        fputc(' ', f);
                fputs(shown ?: "", f);
                begins = s[n] == '\n';
                if (s[n])
                        fputc(s[n++], f);
                s += n;
        }
}

static void put_line(FILE *f, TableColour colour, const char *format, ...) _printf_(3, 4);
static void put_line(FILE *f, TableColour colour, const char *format, ...) {
        _cleanup_free_ char *text = string_format_own(format), *shown = text ? text_for_terminal(text) : NULL;

        fprintf(f, "%s%s%s\n", colour_begin(colour, colours_of(f)), shown ?: "out of memory", colour_end(colour, colours_of(f)));
}

/* Text that comes in pieces. */
static void show_piece(UpdatePrinter *p, UpdateOpen what, const char *text) {
        FILE *f = what == UPDATE_OPEN_MESSAGE ? stdout : aside(p);
        TableColour colour = what == UPDATE_OPEN_THOUGHT ? COLOUR_DIM : COLOUR_NONE;

        if (!*text)
                return;
        if (p->open != what)
                update_printer_end_line(p);
        fputs(colour_begin(colour, colours_of(f)), f);
        if (p->open != what && what == UPDATE_OPEN_THOUGHT)
                fputs("[thought] ", f);
        put_text(f, text, p->open != what && what == UPDATE_OPEN_MESSAGE, !p->answer || what == UPDATE_OPEN_THOUGHT || isatty(STDOUT_FILENO));
        fputs(colour_end(colour, colours_of(f)), f);
        p->open = endswith(text, "\n") ? UPDATE_OPEN_NONE : what;
        flush(p, f);
}

static void show_plan(FILE *f, const char *text) {
        put_line(f, COLOUR_DIM, "[plan]");
        while (*text) {
                size_t n = strcspn(text, "\n");

                put_line(f, COLOUR_DIM, "  %.*s", (int) n, text);
                text += n + (text[n] == '\n');
        }
}

/* "errand say --user ID '!answer 1 allow'": asks the same errandd that told. NULL when out of memory. */
static char *answer_command(const Request *q, uint64_t question, const char *option) {
        _cleanup_free_ char *text = NULL, *word = NULL, *directory = q->state_dir ? string_quote_shell(q->state_dir) : NULL;
        char *command;

        if (asprintf(&text, "!answer %llu %s", (unsigned long long) question, option) < 0)
                return NULL;
        word = string_quote_shell(text);
        if (!word || asprintf(&command, "errand say%s%s%s %s %s", q->system ? " --system" : q->user ? " --user" : q->embedded ? " --embedded" : "",
                              directory ? " --state-dir " : "", directory ?: "", q->operands[0], word) < 0)
                return NULL;
        return command;
}

static void show_option(FILE *f, const char *command, int width, const char *name, const char *kind) {
        _cleanup_free_ char *shown = text_for_terminal(command);

        put_line(f, COLOUR_NONE, "  %s%*s   %s%s%s%s", command, shown ? MAX(width - (int) text_width(shown), 0) : 0, "", name, *kind ? " (" : "", kind,
                 *kind ? ")" : "");
}

/* Once to measure the commands, once to print them. */
static int each_option(const UpdatePrinter *p, const Update *u, FILE *f, int width) {
        const char *options = u->options;
        char *id, *name, *kind;
        int widest = 0;

        while (update_next_option(&options, &id, &name, &kind)) {
                _cleanup_free_ char *i = id, *n = name, *k = kind, *command = i ? answer_command(p->request, u->question, i) : NULL;
                _cleanup_free_ char *shown = command ? text_for_terminal(command) : NULL;

                widest = MAX(widest, shown ? (int) text_width(shown) : 0);
                if (f && command && n && k)
                        show_option(f, command, width, n, k);
        }
        return widest;
}

static void show_question(const UpdatePrinter *p, FILE *f, const Update *u) {
        put_line(f, COLOUR_NONE, "[question %llu] %s", (unsigned long long) u->question, u->title);
        (void) each_option(p, u, f, each_option(p, u, NULL, 0));
}

static void show_line(const UpdatePrinter *p, FILE *f, const Update *u) {
        switch (u->kind) {
        case UPDATE_READY:
                put_line(f, COLOUR_DIM, "[ready] %s%s%s", u->agent, *u->version ? " " : "", u->version);
                break;
        case UPDATE_QUEUED:
                put_line(f, COLOUR_DIM, "[prompt %llu waits for its turn]", (unsigned long long) u->prompt);
                break;
        case UPDATE_TURN_STARTED:
                put_line(f, COLOUR_DIM, "[turn of prompt %llu]", (unsigned long long) u->prompt);
                break;
        case UPDATE_TOOL:
                put_line(f, streq(u->status, "completed") ? COLOUR_GOOD : streq(u->status, "failed") ? COLOUR_BAD : COLOUR_DIM, "[tool] %s: %s",
                         *u->title ? u->title : u->id, u->status);
                break;
        case UPDATE_PLAN:
                show_plan(f, u->text);
                break;
        case UPDATE_QUESTION:
                show_question(p, f, u);
                break;
        case UPDATE_ANSWERED:
                put_line(f, COLOUR_DIM, "[question %llu] %s%s", (unsigned long long) u->question, *u->option ? "answered: " : "not answered: ",
                         *u->option ? u->option : streq(u->reason, "timeout") ? "nobody did in time (timeouts.questionMs)" : "the turn was interrupted");
                break;
        case UPDATE_TURN_ENDED:
                put_line(f, streq(u->reason, "end_turn") ? COLOUR_DIM : COLOUR_BAD, "[end of turn] %s%s%s", turn_end_text(u), *u->text ? ": " : "", u->text);
                break;
        case UPDATE_MISSED:
                put_line(f, COLOUR_BAD, "[missed] %llu updates came while errandd did not listen, and are left out", (unsigned long long) u->count);
                break;
        default:
                break;
        }
}

static void show_text(UpdatePrinter *p, const Update *u) {
        if (u->kind == UPDATE_MESSAGE || u->kind == UPDATE_THOUGHT) {
                show_piece(p, u->kind == UPDATE_MESSAGE ? UPDATE_OPEN_MESSAGE : UPDATE_OPEN_THOUGHT, u->text);
                return;
        }
        update_printer_end_line(p);
        show_line(p, aside(p), u);
        flush(p, aside(p));
}

/* ---- for programs ---- */

void update_printer_begin(const UpdatePrinter *p, JsonWriter *w, const char *event) {
        json_open_object(w, NULL);
        json_add_u64(w, "timeUSec", now_realtime());
        json_add_string(w, "event", event);
        json_add_string(w, "session", p->request->operands[0]);
}

void update_printer_end(UpdatePrinter *p, JsonWriter *w) {
        json_close_object(w);
        if (json_print(w) != EXIT_OK && p->error == 0)
                p->error = EIO; /* of memory: standard output's is found next */
        json_writer_done(w);
        flush(p, stdout);
}

static void add_question(JsonWriter *w, const Update *u) {
        const char *options = u->options;
        char *id, *name, *kind;

        json_add_u64(w, "question", u->question);
        json_add_string(w, "title", u->title);
        json_open_array(w, "options");
        while (update_next_option(&options, &id, &name, &kind)) {
                json_open_object(w, NULL);
                json_add_string(w, "id", id);
                json_add_string(w, "name", name);
                json_add_string(w, "kind", kind);
                json_close_object(w);
                free(id);
                free(name);
                free(kind);
        }
        json_close_array(w);
}

static void show_json(UpdatePrinter *p, const Update *u) {
        JsonWriter w = {};

        update_printer_begin(p, &w, u->word);
        if (u->kind == UPDATE_QUESTION)
                add_question(&w, u);
        else
                (void) json_add_members(&w, u->fields);
        update_printer_end(p, &w);
}

void update_printer_show(UpdatePrinter *p, const Update *u) {
        if (p->request->json)
                show_json(p, u);
        else
                show_text(p, u);
}
