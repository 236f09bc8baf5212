/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "errand/verbs.h"
#include "basic/json-writer.h"
#include "basic/text.h"

#define DAEMON OPTIONS_DAEMON
#define LISTS (OPTIONS_DAEMON | OPTIONS_OUTPUT)
#define TABLES (LISTS | OPTIONS_TABLE)

const Verb verbs[] = {
        {NULL, "run", "[--] [COMMAND [ARGUMENT]…]", 0, UINT32_MAX, true, DAEMON | OPTIONS_CREATE | OPTIONS_RUN,
         "Run a command in a new session, attached to it", verb_run},
        {"session", "create", "[--] [COMMAND [ARGUMENT]…]", 0, UINT32_MAX, true, DAEMON | OPTIONS_CREATE | OPTIONS_PROTOCOL | OPTIONS_OUTPUT,
         "Make a session without starting it, and print its id", verb_session_create},
        {"session", "start", "ID", 1, 1, false, DAEMON | OPTIONS_START, "Start a session that was created, or that ended", verb_session_start},
        {"session", "stop", "ID…", 1, UINT32_MAX, false, DAEMON, "Close a session's broker and end its command", verb_session_stop},
        {"session", "kill", "ID…", 1, UINT32_MAX, false, DAEMON | OPTIONS_KILL, "Send a signal to a session's command", verb_session_kill},
        {"session", "interrupt", "ID", 1, 1, false, DAEMON, "Have the agent end its turn, and drop the prompts that wait", verb_session_interrupt},
        {"session", "attach", "ID", 1, 1, false, DAEMON, "Attach this terminal to a session", verb_session_attach},
        {"session", "logs", "ID", 1, 1, false, DAEMON | OPTIONS_FOLLOW, "Print a session's transcript", verb_session_logs},
        {"session", "list", "", 0, 0, false, TABLES | OPTIONS_ALL, "List the sessions that run or may be started", verb_session_list},
        {"session", "show", "ID", 1, 1, false, TABLES, "Show everything about a session", verb_session_show},
        {NULL, "prompt", "ID [TEXT…|-]", 1, UINT32_MAX, false, DAEMON | OPTIONS_EVENTS | OPTIONS_PROMPT,
         "Prompt a session's agent, and print what it answers", verb_prompt},
        {NULL, "say", "ID [TEXT…|-]", 1, UINT32_MAX, false, DAEMON | OPTIONS_EVENTS, "Say something in a session's thread, such as !grant HOST or !help",
         verb_say},
        {NULL, "follow", "ID", 1, 1, false, DAEMON | OPTIONS_EVENTS, "Print a session's conversation, as it goes on", verb_follow},
        {NULL, "grant", "ID HOST [once|always|DURATION]", 2, 3, false, DAEMON | OPTIONS_OUTPUT, "Let a session reach a host", verb_grant},
        {NULL, "grants", "[ID]", 0, 1, false, TABLES, "List the grants of a session, or of all", verb_grants},
        {NULL, "revoke", "ID HOST|NUMBER", 2, 2, false, DAEMON, "Take a grant back", verb_revoke},
        {NULL, "receipts", "[ID]", 0, 1, false, TABLES | OPTIONS_FOLLOW | OPTIONS_RECEIPTS, "List the provider calls that were made",
         verb_receipts},
        {"threads", "list", "", 0, 0, false, TABLES, "List the records of all sessions, ended ones too", verb_threads_list},
        {"threads", "show", "ID", 1, 1, false, TABLES, "Show a record, its grants and its newest provider calls", verb_threads_show},
        {"threads", "rm", "ID…", 1, UINT32_MAX, false, DAEMON, "Remove the record, state and receipts of sessions that ended",
         verb_threads_rm},
        {NULL, "monitor", "[ID…]", 0, UINT32_MAX, false, DAEMON | OPTIONS_EVENTS, "Print what happens to sessions, as it happens", verb_monitor},
        {NULL, "report", "", 0, 0, false, LISTS, "Print what is enforced here, and what is not", verb_report},
        {NULL, "reload", "", 0, 0, false, DAEMON, "Have errandd read its configuration again", verb_reload},
        {"config", "check", "FILE", 1, 1, false, OPTIONS_OUTPUT | OPTIONS_MODE, "Print every problem of a configuration, and what it names that is not there",
         verb_config_check},
};
const size_t n_verbs = ELEMENTSOF(verbs);

#define AT(field) offsetof(Request, field)

const Option options[] = {
        {"--help", "-h", NULL, OPTION_FLAG, OPTIONS_COMMON, AT(help), "print this"},
        {"--json", NULL, NULL, OPTION_FLAG, OPTIONS_OUTPUT | OPTIONS_EVENTS, AT(json), "print JSON, for programs"},
        {"--full", "-l", NULL, OPTION_FLAG, OPTIONS_TABLE, AT(full), "cut and leave out nothing where the terminal is narrow"},
        {"--no-pager", NULL, NULL, OPTION_FLAG, OPTIONS_OUTPUT, AT(no_pager), "do not pipe long output into a pager"},
        {"--project", "-p", "DIR", OPTION_TEXT, OPTIONS_CREATE, AT(project),
         "the directory to work in (default: the current one); with --system a project's name"},
        {"--allow", "-a", "HOST", OPTION_LIST, OPTIONS_CREATE, AT(allow), "narrow what it may reach to this host, or *.NAME (repeatable)"},
        {"--network", NULL, "MODE", OPTION_TEXT, OPTIONS_CREATE, AT(network), "restricted, or none"},
        {"--provider", NULL, "ID", OPTION_TEXT, OPTIONS_CREATE, AT(provider), "the provider to use, of those configured"},
        {"--model", NULL, "NAME", OPTION_TEXT, OPTIONS_CREATE, AT(model), "the model to use"},
        {"--env", "-e", "NAME=VALUE", OPTION_LIST, OPTIONS_CREATE, AT(env), "set a variable inside; nothing secret (repeatable)"},
        {"--id", NULL, "ID", OPTION_TEXT, OPTIONS_CREATE, AT(id), "the session's id: 1 to 28 of a-z and 0-9 (default: a new one)"},
        {"--terminal", "-t", NULL, OPTION_FLAG, OPTIONS_CREATE, AT(keep_terminal), "give it a terminal of its own, even from a pipe"},
        {"--no-terminal", "-T", NULL, OPTION_FLAG, OPTIONS_CREATE, AT(no_terminal), "give it this program's input and output as they are"},
        {"--protocol", NULL, "NAME", OPTION_TEXT, OPTIONS_PROTOCOL, AT(protocol), "acp: errand prompt talks to its agent; or none"},
        {"--no-wait", NULL, NULL, OPTION_FLAG, OPTIONS_PROMPT, AT(no_wait), "send it, and do not wait for the answer"},
        {"--file", "-F", "FILE", OPTION_TEXT, OPTIONS_RUN, AT(file), "start the session that ID.json describes, again if there was one"},
        {"--rm", NULL, NULL, OPTION_FLAG, OPTIONS_RUN, AT(remove), "remove its record, state and receipts when it has ended"},
        {"--quiet", "-q", NULL, OPTION_FLAG, OPTIONS_RUN, AT(quiet), "print no notices about refused hosts and the like"},
        {"--attach", NULL, NULL, OPTION_FLAG, OPTIONS_START, AT(attach), "attach to it, as errand run does"},
        {"--signal", "-s", "SIGNAL", OPTION_TEXT, OPTIONS_KILL, AT(signal), "a name or number (default: TERM)"},
        {"--all", NULL, NULL, OPTION_FLAG, OPTIONS_ALL, AT(all), "those that ended, too"},
        {"--follow", "-f", NULL, OPTION_FLAG, OPTIONS_FOLLOW, AT(follow), "go on and print what comes"},
        {"--limit", "-n", "N", OPTION_TEXT, OPTIONS_RECEIPTS, AT(limit), "the newest N of them (default: 50; all: every one)"},
        {"--outcome", NULL, "OUTCOME", OPTION_TEXT, OPTIONS_RECEIPTS, AT(outcome),
         "those only: completed, interrupted, denied, refused, upstream-unreachable"},
        {"--since", NULL, "SPAN", OPTION_TEXT, OPTIONS_RECEIPTS, AT(since), "those of the last SPAN only, such as 2h"},
        {"--system", NULL, NULL, OPTION_FLAG, OPTIONS_DAEMON | OPTIONS_MODE, AT(system), "use the system's errandd"},
        {"--user", NULL, NULL, OPTION_FLAG, OPTIONS_DAEMON | OPTIONS_MODE, AT(user), "use the errandd on the bus of one's own session"},
        {"--embedded", NULL, NULL, OPTION_FLAG, OPTIONS_DAEMON | OPTIONS_MODE, AT(embedded), "use an errandd of one's own, and start it if need be"},
        {"--no-start", NULL, NULL, OPTION_FLAG, OPTIONS_DAEMON, AT(no_start), "do not start an errandd"},
        {"--state-dir", NULL, "DIR", OPTION_TEXT, OPTIONS_DAEMON, AT(state_dir), "embedded: where its state is (or $ERRAND_EMBEDDED_STATE)"},
        {"--config", "-c", "FILE", OPTION_TEXT, OPTIONS_DAEMON, AT(config), "embedded: its configuration (or $ERRAND_CONFIG)"},
        {"--account", NULL, "NAME", OPTION_TEXT, OPTIONS_DAEMON, AT(account), "embedded, as root: the account whose rights sessions have"},
};
const size_t n_options = ELEMENTSOF(options);

bool option_belongs(const Option *o, const Verb *v) {
        return o->groups & (v->options | OPTIONS_COMMON);
}

bool verb_is_group(const char *word) {
        for (size_t i = 0; i < n_verbs; i++)
                if (verbs[i].group && streq(verbs[i].group, word))
                        return true;
        return false;
}

const char *verb_words(const Verb *v) {
        static char buffer[32];

        (void) snprintf(buffer, sizeof(buffer), "%s%s%s", v->group ?: "", v->group ? " " : "", v->name);
        return buffer;
}

unsigned verb_ids(const Verb *v) {
        const char *id = startswith(v->operands[0] == '[' ? v->operands + 1 : v->operands, "ID");

        return !id ? 0 : startswith(id, "…") ? UINT32_MAX : 1;
}

/* The columns of a text: one for each byte that begins a character. All of our own texts are single-width. */
static int columns(const char *s) {
        int n = 0;

        for (; *s; s++)
                n += ((unsigned char) *s & 0xc0) != 0x80;
        return n;
}

#define HELP_WIDTH 80

/* Goes on behind column indent; further lines begin there, too. */
static void print_wrapped(FILE *f, const char *s, int indent) {
        int at = indent;

        while (*s) {
                int bytes = (int) strcspn(s, " "), width = 0;

                for (int i = 0; i < bytes; i++)
                        width += ((unsigned char) s[i] & 0xc0) != 0x80;
                if (at > indent && at + 1 + width > HELP_WIDTH) {
                        fprintf(f, "\n%*s", indent, "");
                        at = indent;
                }
                if (at > indent) {
                        fputc(' ', f);
                        at++;
                }
                fprintf(f, "%.*s", bytes, s);
                at += width;
                s += bytes;
                s += *s == ' ';
        }
        fputc('\n', f);
}

/* What is too long for its column has a line of its own. */
static void print_row(FILE *f, const char *left, int width, const char *right) {
        fprintf(f, "  %s%*s", left, MAX(width - columns(left), 0), "");
        if (columns(left) > width)
                fprintf(f, "\n%*s", width + 2, "");
        fputs("  ", f);
        print_wrapped(f, right, width + 4);
}

void verbs_print_help(FILE *f) {
        char left[128];

        fputs("errand VERB [OPTION]… [OPERAND]…\n\nRuns agents and other commands in sessions that it does not trust.\n\nVerbs:\n", f);
        for (size_t i = 0; i < n_verbs; i++) {
                (void) snprintf(left, sizeof(left), "%s %s", verb_words(verbs + i), verbs[i].operands);
                print_row(f, left, 22, verbs[i].summary);
        }
        fputs("\n  errand VERB --help      The options of a verb\n"
              "  errand --help | --version\n"
              "\nrun and attach give the command's exit code; see errand(1) for the others.\n", f);
}

static void option_left(const Option *o, char *buffer, size_t size) {
        (void) snprintf(buffer, size, "%s%s%s%s%s", o->brief ?: "    ", o->brief ? ", " : "", o->name, o->value ? " " : "", o->value ?: "");
}

void verb_print_help(const Verb *v, FILE *f) {
        char left[64];

        fprintf(f, "errand %s [OPTION]…%s%s\n\n%s.\n\n", verb_words(v), *v->operands ? " " : "", v->operands, v->summary);
        if (v->command)
                fputs("Without a command it is the configured agent's. Options end at the command.\n"
                      "Ctrl-] d detaches a terminal, Ctrl-] Ctrl-] sends one Ctrl-].\n\n", f);
        for (size_t i = 0; i < n_options; i++)
                if (option_belongs(options + i, v)) {
                        option_left(options + i, left, sizeof(left));
                        print_row(f, left, 24, options[i].help);
                }
}

int verbs_print_json(FILE *f) {
        _cleanup_(json_writer_done) JsonWriter w = {};

        json_open_array(&w, NULL);
        for (size_t i = 0; i < n_verbs; i++) {
                json_open_object(&w, NULL);
                json_add_string(&w, "verb", verb_words(verbs + i));
                json_add_string(&w, "operands", verbs[i].operands);
                json_add_string(&w, "summary", verbs[i].summary);
                json_open_array(&w, "options");
                for (size_t k = 0; k < n_options; k++) {
                        if (!option_belongs(options + k, verbs + i))
                                continue;
                        json_open_object(&w, NULL);
                        json_add_string(&w, "name", options[k].name);
                        json_add_string(&w, "brief", options[k].brief);
                        json_add_string(&w, "value", options[k].value);
                        json_add_string(&w, "help", options[k].help);
                        json_close_object(&w);
                }
                json_close_array(&w);
                json_close_object(&w);
        }
        json_close_array(&w);
        return json_writer_print(&w, f);
}
