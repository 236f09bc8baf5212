/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include <inttypes.h>
#include <stdarg.h>

#include "basic/log.h"
#include "basic/text.h"
#include "shim/acp.h"
#include "shim/conversation-private.h"
#include "shim/plan.h"

_printf_(2, 3) static void fail(Conversation *c, const char *format, ...);

/* ---- to the agent ---- */

static void disarm(sd_event_source **source) {
        *source = sd_event_source_disable_unref(*source);
}

static int arm(Conversation *c, sd_event_source **source, usec_t usec, sd_event_time_handler_t handler) {
        disarm(source);
        return sd_event_add_time_relative(c->event, source, CLOCK_MONOTONIC, usec, 1, handler, c);
}

static int on_linger(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Conversation *c = userdata;

        fail(c, "%s and goes on", c->lingering);
        return 0;
}

/* What an agent does that ends, so that its own end comes first if it is on its way. */
static void linger(Conversation *c, const char *text) {
        if (c->lingering)
                return;
        c->lingering = text;
        if (arm(c, &c->linger, AGENT_END_USEC, on_linger) < 0)
                fail(c, "%s", text);
}

void conversation_dispatch(Conversation *c, JsonWriter *w) {
        int r = c->pipe ? agent_pipe_send(c->pipe, w) : -EPIPE;

        json_writer_done(w);
        if (r == -ENOBUFS)
                fail(c, "the agent does not read what it is sent");
        else if (r == -EPIPE)
                linger(c, "the agent has closed its standard input");
        else if (r < 0)
                fail(c, "the agent cannot be written to: %s", strerror(-r));
}

/* ---- turns ---- */

/* What was said belongs to the turn that ends. */
static void flush_speech(Conversation *c) {
        int r = speech_flush(&c->message), q = speech_flush(&c->thought);

        if (r < 0 || q < 0)
                log_warning("There is no memory for what the agent said last");
}

/* The one place where a prompt that was accepted ends. */
static void end_prompt(Conversation *c, Prompt *taken, bool sent, const char *reason, const char *text) {
        _cleanup_(prompt_freep) Prompt *p = taken;

        rendering_end(&c->rendering, sent, reason, text);
        updates_turn_ended(&c->links.updates, p->number, reason, text);
}

static void end_turn(Conversation *c, const char *reason, const char *text) {
        disarm(&c->abort);
        flush_speech(c);
        conversation_close_questions(c);
        if (!c->turn)
                return;
        bool broken = c->interrupted && streq(reason, "error") && c->stage == STAGE_READY;
        c->interrupted = false;
        /* Some give up an interrupted turn with an error. */
        end_prompt(c, TAKE_PTR(c->turn), true, broken ? "cancelled" : reason, broken ? NULL : text);
}

static void end_waiting(Conversation *c, const char *reason, const char *text) {
        for (Prompt *p; (p = prompts_take(&c->prompts));)
                end_prompt(c, p, false, reason, text);
}

static void on_prompt_expired(Prompt *p, void *userdata) {
        end_prompt(userdata, p, false, "expired", NULL);
}

static void end_all(Conversation *c, const char *text) {
        disarm(&c->startup);
        disarm(&c->linger);
        c->stage = STAGE_OVER;
        c->awaited = 0;
        end_turn(c, "error", text);
        end_waiting(c, "error", text);
}

/* The text is clean. */
_printf_(2, 3) static void fail(Conversation *c, const char *format, ...) {
        if (c->failed || c->finished)
                return;
        c->failed = true;
        _cleanup_free_ char *text = string_format_own(format);
        end_all(c, text ?: "there is no memory");
        c->links.failed(text ?: "there is no memory", c->links.userdata);
}

static int on_abort(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Conversation *c = userdata;

        fail(c, "the agent did not end its turn within %" PRIu64 " ms after it was interrupted (timeouts.abortMs)", c->abort_usec / USEC_PER_MSEC);
        return 0;
}

/* ---- from the agent ---- */

static int on_startup(_unused_ sd_event_source *source, _unused_ uint64_t usec, void *userdata) {
        Conversation *c = userdata;

        fail(c, "the agent did not answer %s within %" PRIu64 " ms (timeouts.startupMs): does it speak the Agent Client Protocol?",
             conversation_awaits(c), c->startup_usec / USEC_PER_MSEC);
        return 0;
}

/* A sentence's part for what an agent says in an error. */
static char *error_text(const Conversation *c, const RpcMessage *m, int *ret_code) {
        _cleanup_free_ char *raw = NULL, *clean = NULL;
        char *text = NULL;
        int code = 0;

        int r = acp_read_error(m->error, &raw, &code);
        if (r >= 0)
                r = speech_line(c->secrets, raw ?: "", TITLE_MAX, &clean);
        if (r < 0 || asprintf(&text, "\"%s\" (error %d)", clean, code) < 0)
                return NULL;
        *ret_code = code;
        return text;
}

static void take_initialized(Conversation *c, const RpcMessage *m) {
        _cleanup_(acp_agent_done) AcpAgent agent = {};
        _cleanup_free_ char *name = NULL, *release = NULL;
        JsonWriter w = {};

        if (acp_read_initialize(m->result, &agent) < 0) {
                fail(c, "the agent's answer to initialize has no protocolVersion");
                return;
        }
        if (agent.version != ACP_VERSION) {
                fail(c, "the agent speaks version %" PRIu64 " of the Agent Client Protocol, and here only %d is known", agent.version, ACP_VERSION);
                return;
        }
        int r = speech_line(c->secrets, agent.name ?: "", WORD_MAX, &name);
        if (r >= 0)
                r = speech_line(c->secrets, agent.release ?: "", WORD_MAX, &release);
        if (r < 0) {
                fail(c, "there is no memory");
                return;
        }
        c->stage = STAGE_OPENING;
        c->awaited = ++c->last_id;
        acp_write_new_session(&w, c->awaited, c->directory);
        /* Told when it is ready for prompts. */
        c->agent = TAKE_PTR(name);
        c->release = TAKE_PTR(release);
        conversation_dispatch(c, &w);
}

static void take_session(Conversation *c, const RpcMessage *m) {
        int r = acp_read_new_session(m->result, &c->session);

        if (r < 0) {
                fail(c, "the agent's answer to session/new has no sessionId of at most %u bytes", ACP_SESSION_MAX);
                return;
        }
        disarm(&c->startup);
        c->stage = STAGE_READY;
        c->was_ready = true;
        updates_ready(&c->links.updates, c->agent, c->release);
}

static void take_stop(Conversation *c, const RpcMessage *m) {
        AcpStop stop = acp_read_stop(m->result);

        if (stop < 0)
                end_turn(c, "error", "the agent gives no reason that is known for the end of its turn");
        else
                end_turn(c, acp_stop_to_string(stop), NULL);
}

static void take_answer(Conversation *c, const RpcMessage *m) {
        int code = 0;

        if (c->awaited == 0 || !m->has_number || m->number != c->awaited)
                return; /* to nothing that was asked, or that still waits */
        c->awaited = 0;
        if (m->kind == RPC_ERROR) {
                _cleanup_free_ char *text = error_text(c, m, &code);
                if (c->stage == STAGE_READY)
                        end_turn(c, "error", text ?: "it failed");
                else
                        fail(c, "the agent refused %s: %s%s", conversation_awaits(c), text ?: "it failed",
                             code == ACP_AUTH_REQUIRED ? "; give it its provider's key, or log it in" : "");
        } else if (c->stage == STAGE_INITIALIZING)
                take_initialized(c, m);
        else if (c->stage == STAGE_OPENING)
                take_session(c, m);
        else
                take_stop(c, m);
}

static void on_message(const char *text, size_t size, void *userdata) {
        Conversation *c = userdata;

        rendering_message(&c->rendering, text, size);
        updates_text(&c->links.updates, UPDATE_MESSAGE, text);
}

/* Told, but not kept: the transcript is what was said and done. */
static void on_thought(const char *text, _unused_ size_t size, void *userdata) {
        Conversation *c = userdata;

        updates_text(&c->links.updates, UPDATE_THOUGHT, text);
}

static int take_plan(const Conversation *c, JsonView entries) {
        _cleanup_free_ char *text = NULL;

        int r = plan_text(c->secrets, entries, &text);
        if (r >= 0)
                updates_plan(&c->links.updates, text);
        return r;
}

static void take_update(Conversation *c, const RpcMessage *m) {
        _cleanup_(acp_update_done) AcpUpdate u = {};
        int r = c->session ? acp_read_update(m->params, c->session, &u) : 0;

        if (r >= 0 && u.kind == ACP_UPDATE_MESSAGE)
                r = speech_push(&c->message, u.text);
        else if (r >= 0 && u.kind == ACP_UPDATE_THOUGHT)
                r = speech_push(&c->thought, u.text);
        else if (r >= 0 && u.kind == ACP_UPDATE_TOOL)
                r = tools_update(&c->tools, c->secrets, &u, &c->links.updates, &c->rendering);
        else if (r >= 0 && u.kind == ACP_UPDATE_PLAN)
                r = take_plan(c, u.entries);
        if (r < 0)
                log_warning("There is no memory for what the agent says");
}

static void take_bad_line(Conversation *c, const char *line, size_t size, const char *phrase) {
        _cleanup_free_ char *text = NULL, *shown = NULL;

        if (++c->n_bad_lines > AGENT_BAD_LINES_MAX) {
                fail(c, "the agent wrote more than %u lines in a turn that are no messages, the last: %s", AGENT_BAD_LINES_MAX, phrase);
                return;
        }
        if (line && !c->was_ready) /* what an agent that is none writes says best what it is */
                (void) speech_excerpt(c->secrets, line, size, WORD_MAX, &shown);
        (void) problem_set(&text, "a line of the agent's was ignored: %s%s%s", phrase, shown ? ": " : "", shown ?: "");
        transcript_note(c->transcript, text ?: phrase);
}

static void on_line(char *line, size_t size, void *userdata) {
        Conversation *c = userdata;
        const char *phrase = "it cannot be kept in memory";
        JsonWriter w = {};
        RpcMessage m;

        if (c->stage == STAGE_OVER)
                return;
        if (line)
                rpc_mend(line, size);
        int r = line ? rpc_parse(line, size, &m, &phrase) : -EFBIG;
        if (r < 0)
                take_bad_line(c, line, size, r == -EFBIG ? "it is too long" : phrase);
        else if (m.kind == RPC_RESULT || m.kind == RPC_ERROR)
                take_answer(c, &m);
        else if (m.kind == RPC_NOTIFICATION && streq(m.method, "session/update"))
                take_update(c, &m);
        else if (m.kind == RPC_REQUEST && streq(m.method, "session/request_permission"))
                conversation_take_question(c, &m);
        else if (m.kind == RPC_REQUEST && c->stage == STAGE_INITIALIZING && streq(m.method, "initialize"))
                fail(c, "the agent writes back what it is sent, so it does not speak the Agent Client Protocol");
        else if (m.kind == RPC_REQUEST) {
                rpc_write_error(&w, m.id.at, m.id.size, RPC_METHOD_NOT_FOUND, "the client has no such method");
                conversation_dispatch(c, &w);
        }
}

static void on_output_ended(void *userdata) {
        Conversation *c = userdata;

        if (c->stage != STAGE_OVER) {
                end_all(c, c->was_ready ? "the agent has ended" : "the agent has ended before it could be talked to");
                c->lingering = NULL;
                linger(c, "the agent has closed its standard output");
        }
        c->links.ended(c->links.userdata);
}

/* ---- its life ---- */

int conversation_new(sd_event *event, const SecretList *secrets, Transcript *transcript, const ConversationOptions *options,
                     const ConversationLinks *links, Conversation **ret) {
        _cleanup_(conversation_freep) Conversation *c = calloc(1, sizeof(Conversation));

        if (!c)
                return -ENOMEM;
        *c = (Conversation){.event = sd_event_ref(event), .secrets = secrets, .transcript = transcript, .startup_usec = options->startup_usec,
                            .abort_usec = options->abort_usec, .directory = strdup(options->directory), .links = *links};
        c->prompts = (Prompts){.event = event, .expired = on_prompt_expired, .userdata = c};
        c->questions = (Questions){.event = event, .secrets = secrets, .patience_usec = options->question_usec, .expired = conversation_question_expired,
                                   .userdata = c};
        int r = c->directory ? speech_init(&c->message, secrets, on_message, c) : -ENOMEM;
        if (r >= 0)
                r = speech_init(&c->thought, secrets, on_thought, c);
        if (r >= 0)
                r = rendering_init(&c->rendering, transcript, secrets);
        if (r < 0)
                return r;
        *ret = TAKE_PTR(c);
        return 0;
}

Conversation *conversation_free(Conversation *c) {
        if (!c)
                return NULL;
        agent_pipe_free(c->pipe);
        prompts_done(&c->prompts);
        prompt_free(c->turn);
        questions_done(&c->questions);
        tools_done(&c->tools);
        speech_done(&c->message);
        speech_done(&c->thought);
        rendering_done(&c->rendering);
        disarm(&c->startup);
        disarm(&c->abort);
        disarm(&c->linger);
        sd_event_unref(c->event);
        free(c->directory);
        free(c->session);
        free(c->agent);
        free(c->release);
        return mfree(c);
}

int conversation_open(Conversation *c, int input, int output) {
        return agent_pipe_new(c->event, input, output, on_line, on_output_ended, c, &c->pipe);
}

void conversation_begin(Conversation *c) {
        JsonWriter w = {};

        if (c->stage != STAGE_WAITING)
                return;
        c->stage = STAGE_INITIALIZING;
        int r = arm(c, &c->startup, c->startup_usec, on_startup);
        if (r < 0) {
                fail(c, "there is no timer: %s", strerror(-r));
                return;
        }
        c->awaited = ++c->last_id;
        acp_write_initialize(&w, c->awaited, ERRAND_VERSION);
        conversation_dispatch(c, &w);
}

void conversation_finish(Conversation *c) {
        end_all(c, "the agent has ended");
        rendering_done(&c->rendering); /* so that the transcript is whole before the session's last line */
        c->finished = true;
}

bool conversation_is_open(const Conversation *c) {
        return c->pipe && agent_pipe_open(c->pipe);
}

const char *conversation_awaits(const Conversation *c) {
        return c->was_ready ? NULL : c->agent ? "session/new" : "initialize";
}

/* ---- what errandd asks ---- */

int conversation_prompt(Conversation *c, uint64_t number, usec_t wait_usec, const char *text, const char **ret_problem) {
        if (c->stage == STAGE_OVER)
                return conversation_refuse(ret_problem, "the conversation is over");
        _cleanup_free_ char *copy = strdup(text);
        if (!copy)
                return -ENOMEM;
        int r = prompts_add(&c->prompts, number, wait_usec, copy);
        if (r == -EEXIST)
                return conversation_refuse(ret_problem, "a prompt of that number, or of a higher one, was there already");
        if (r == -ENOBUFS)
                return conversation_refuse(ret_problem, "too many prompts wait in this session already; let it take its turns, or interrupt it");
        if (r < 0)
                return r;
        copy = NULL;
        updates_prompt(&c->links.updates, UPDATE_QUEUED, number);
        return 0;
}

static void render_prompt(Conversation *c, const char *text) {
        _cleanup_free_ char *clean_text = NULL, *shown = NULL;

        if (scrub_chain_text(c->secrets, text, &clean_text) >= 0)
                shown = string_escape_control_text(clean_text, strlen(clean_text));
        rendering_prompt(&c->rendering, shown ?: "");
}

int conversation_turn(Conversation *c, const char **ret_problem) {
        JsonWriter w = {};

        if (c->stage == STAGE_OVER)
                return conversation_refuse(ret_problem, "the conversation is over");
        if (c->stage != STAGE_READY)
                return conversation_refuse(ret_problem, "the agent is not ready yet");
        if (c->turn)
                return conversation_refuse(ret_problem, "a turn is running");
        c->turn = prompts_take(&c->prompts);
        if (!c->turn)
                return conversation_refuse(ret_problem, "no prompt waits");
        c->interrupted = false;
        c->n_bad_lines = 0; /* what comes now and then is no reason to end a long session */
        render_prompt(c, c->turn->text);
        updates_prompt(&c->links.updates, UPDATE_TURN_STARTED, c->turn->number);
        c->awaited = ++c->last_id;
        acp_write_prompt(&w, c->awaited, c->session, c->turn->text);
        c->turn->text = mfree(c->turn->text);
        conversation_dispatch(c, &w);
        return 0;
}

int conversation_interrupt(Conversation *c, const char **ret_problem) {
        JsonWriter w = {};

        if (c->stage == STAGE_OVER)
                return conversation_refuse(ret_problem, "the conversation is over");
        if (!c->turn && c->prompts.n == 0)
                return conversation_refuse(ret_problem, "there is no turn to interrupt");
        end_waiting(c, "cancelled", NULL);
        if (!c->turn || c->interrupted)
                return 0;
        c->interrupted = true;
        int r = arm(c, &c->abort, c->abort_usec, on_abort);
        if (r < 0)
                return r;
        acp_write_cancel(&w, c->session);
        conversation_dispatch(c, &w);
        conversation_close_questions(c);
        return 0;
}

void conversation_add_state(const Conversation *c, JsonWriter *w) {
        json_open_object(w, "conversation");
        json_add_bool(w, "ready", c->stage == STAGE_READY);
        json_add_u64(w, "turn", c->turn ? c->turn->number : 0);
        json_open_array(w, "queued");
        for (const Prompt *p = c->prompts.first; p; p = p->next)
                json_add_u64(w, NULL, p->number);
        json_close_array(w);
        json_add_u64(w, "last", c->prompts.last);
        json_close_object(w);
}
