#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Conversations with an agent: errand-launch, errand-shim and a real bailey, with tests/session/acp-agent in the sandbox. Every fault of an agent is a case."""

import json
import os
import re
import secrets

from errand_conversation import TIMES, Conversation, texts, wait_for
from errand_launch import Launcher
from errand_test import case, run


def start(t, *options, name="talk", **more):
    return Conversation(Launcher(t), name, *options, **more)


def fields(updates, kind):
    return [f for k, f in updates if k == kind]


def sent(c):
    """The messages that the agent was sent, as it noted them."""
    with open(os.path.join(c.session.project, "log"), encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.endswith("\n")]


# ---- what a conversation is ----

@case("an agent is greeted and given the project as its directory, and says who it is")
def _(t):
    c = start(t, "--log", "log")
    t.equal(c.ready, {"agent": "acp-agent", "version": "1.2.3"}, "what it says it is")
    t.equal(c.state(), {"ready": True, "turn": 0, "queued": [], "last": 0}, "the state")
    first, second = sent(c)
    t.equal((first["method"], first["params"]["protocolVersion"], first["params"]["clientCapabilities"]),
            ("initialize", 1, {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}), "the greeting")
    t.equal((second["method"], second["params"]), ("session/new", {"cwd": c.session.project, "mcpServers": []}), "the session")


@case("each kind of update is told with its fields, and unknown ones, half ones and another session's are passed over")
def _(t):
    c = start(t)
    seen = c.turn("say hello; split one two; think hm; tool ls -l; failtool rm; plan read|write|test; odd; foreign")
    t.equal([k for k, _ in seen[:2]], ["queued", "turn-started"], "the beginning")
    t.equal(seen[-1], ("turn-ended", {"prompt": 1, "reason": "end_turn"}), "the end")
    t.equal(texts(seen), "hello\none two\nfs/read_text_file: -32601\nfs/write_text_file: -32601\nterminal/create: -32601\n"
                         "session/request_permission: -32602\nsession/request_permission: -32602\n", "what it said")
    t.equal(texts(seen, "thought"), "hm\n", "what it thought")
    calls = [("call-1", "ls -l", "execute", s) for s in ("pending", "in_progress", "completed")]
    calls += [("call-2", "rm", "execute", s) for s in ("pending", "in_progress", "failed")]
    t.equal([(f["id"], f["title"], f["kind"], f["status"]) for f in fields(seen, "tool")], calls, "tool calls")
    t.equal([f["text"] for f in fields(seen, "plan")], ["[x] read\n[>] write\n[ ] test", ""], "plans")
    t.check(not fields(seen, "question") and not fields(seen, "missed"), "questions that were none")


@case("the transcript is text for people")
def _(t):
    c = start(t)
    c.turn("say first\nsay second; part no end; tool ls; err from its standard error; think hidden")
    c.begin("part x; ask delete all?")
    c.request("answer", question=c.update("question")["question"], option="no")
    c.update("turn-ended")
    c.begin("wait")
    c.request("interrupt")
    c.update("turn-ended")
    c.turn("exit 0")
    c.ended()
    text = c.session.transcript()
    t.equal(text.replace("from its standard error\n", "", 1),
            "> say first\n> say second; part no end; tool ls; err from its standard error; think hidden\n"
            "first\nsecond\nno end\n[tool] ls: pending\n[tool] ls: in_progress\n[tool] ls: completed\n[turn ended: end_turn]\n"
            "> part x; ask delete all?\nx\n[question] delete all? (yes, always, no)\n[answer] no\nanswer: no\n[turn ended: end_turn]\n"
            "> wait\n[turn ended: cancelled]\n> exit 0\n[turn ended: error: the agent has ended]\n", "the transcript")
    t.contains(text, "from its standard error\n", "the transcript")


@case("prompts wait in their order until errandd lets each begin, and each ends once with the agent's reason")
def _(t):
    c = start(t)
    for text in ("say one", "stop max_tokens", "refuse", "stop max_turn_requests", "stop nonsense", "fail it broke"):
        c.prompt(text)
    t.equal(c.state(), {"ready": True, "turn": 0, "queued": [1, 2, 3, 4, 5, 6], "last": 6}, "the state")
    ends = []
    for number in range(1, 7):
        t.equal(c.request("turn")["type"], "ok", f"turn {number}")
        ends.append(c.update("turn-ended"))
    t.equal([(e["prompt"], e["reason"]) for e in ends],
            [(1, "end_turn"), (2, "max_tokens"), (3, "refusal"), (4, "max_turn_requests"), (5, "error"), (6, "error")], "the ends")
    t.contains(ends[4]["text"], "no reason that is known", "an unknown reason")
    t.equal(ends[5]["text"], '"it broke" (error -32603)', "an error")
    t.contains(c.request("turn")["text"], "no prompt waits", "one too many")


@case("requests that are out of place or malformed are refused with a sentence, and change nothing")
def _(t):
    c = start(t)
    c.prompt("say x", number=7)
    data = b"say y"
    rows = [
        (lambda: c.try_prompt(data, 7), "of that number"),
        (lambda: c.try_prompt(data, 3), "of that number"),
        (lambda: c.try_prompt(data, 0), "\"number\""),
        (lambda: c.try_prompt(data, "8"), "\"number\""),
        (lambda: c.try_prompt(data, 8, waitMs=-1), "\"waitMs\""),
        (lambda: c.try_prompt(b"", 8), "1 byte to 128 KiB"),
        (lambda: c.try_prompt(b"x" * (128 * 1024 + 1), 8), "1 byte to 128 KiB"),
        (lambda: c.try_prompt(b"\xff\xfe", 8), "UTF-8"),
        (lambda: c.try_prompt(b"a\0b", 8), "UTF-8"),
        (lambda: c.request("prompt", number=8), "descriptor \"text\" is missing"),
        (lambda: c.channel.request("prompt", {"other": unsealed}, number=8), "descriptor \"text\" is missing"),
        (lambda: c.channel.request("prompt", {"text": unsealed}, number=8), "sealed"),
        (lambda: c.request("answer", question=1, option="yes"), "no such question"),
        (lambda: c.request("answer", question=0, option="yes"), "no such question"),
        (lambda: c.request("answer", question="1", option="yes"), "\"question\" is a number"),
        (lambda: c.request("answer", question=1), "\"option\" a text"),
    ]
    unsealed = os.memfd_create("text")
    os.write(unsealed, b"say z")

    def refused(row):
        reply = row[0]()
        t.equal(reply["type"], "error", "the reply")
        t.contains(reply["text"], row[1], "the reply")
    t.each(rows, refused)
    os.close(unsealed)
    t.equal(c.state()["queued"], [7], "what waits")
    for kind in ("turn", "interrupt", "prompt", "answer"):
        other = c.session.connect()
        t.equal(other.request(kind, unknown=1)["type"], "error", "an unknown member")
        other.close()


@case("a queue is bounded, one that waited too long expires, and a text of 128 KiB arrives whole")
def _(t):
    c = start(t, "--log", "log")
    c.begin("wait")
    c.prompt("say late", waitMs=1)
    t.equal(c.update("turn-ended"), {"prompt": 2, "reason": "expired"}, "the one that waited")
    for number in range(3, 67):
        c.prompt("say x", number=number)
    t.contains(c.try_prompt(b"say y", 67)["text"], "too many prompts", "the 65th")
    c.request("interrupt")
    t.equal([(f["prompt"], f["reason"]) for f in fields(c.until("turn-ended", prompt=1), "turn-ended")],
            [(n, "cancelled") for n in range(3, 67)] + [(1, "cancelled")], "what was dropped")
    t.contains(c.session.transcript(), "[prompt not sent: expired]\n", "the transcript")
    text = "say " + "\"\\\n" * 43689
    c.turn(text)
    t.equal(sent(c)[-1]["params"]["prompt"], [{"type": "text", "text": text}], "what the agent got")


@case("a session without a conversation refuses its requests")
def _(t):
    s = Launcher(t).session("plain", "sleep", "1000").launch()
    s.started()
    channel = s.connect()
    t.contains(channel.request("turn")["text"], "no conversation", "a turn")
    t.check("conversation" not in channel.request("status"), "the status has a conversation")
    channel.request("stop", graceMs=1)


@case("a launch that asks for a conversation in a wrong form is refused whole")
def _(t):
    launcher = Launcher(t)
    good = {"protocol": "acp", "startupMs": 1, "questionMs": 1, "abortMs": 1}
    null = os.open("/dev/null", os.O_RDWR)
    rows = [({"conversation": {**good, "protocol": "mcp"}}, "\"acp\""), ({"conversation": {**good, "abortMs": 0}}, "a time of 0"),
            ({"conversation": {**good, "startupMs": "1"}}, "startupMs"), ({"conversation": {**good, "more": 1}}, "is not an object of"),
            ({"conversation": {**good, "questionMs": 30 * 24 * 3600 * 1000 + 1}}, "questionMs"), ({"conversation": []}, "is not an object of"),
            ({"conversation": good, "interactive": True}, "\"interactive\""),
            ({"conversation": good, "stdio": {"stdin": os.dup(null)}}, "\"stdin\" has no place")]
    os.close(null)
    for number, (members, text) in enumerate(rows):
        reply = launcher.session(f"wrong{number}", "true", **members).try_launch()
        t.equal(reply["type"], "error", f"the reply to {members}")
        t.contains(reply["text"], text, f"the reply to {members}")


# ---- secrets ----

@case("S217 S218: a secret is in no update and not in the transcript, whatever it is split over and whichever member it is in")
def _(t):
    key, stand_in = "sk-test-" + secrets.token_hex(24), "errand-session-" + secrets.token_hex(32)
    c = start(t, "--name", key, secrets=[key, stand_in], environment={"KEY": key, "STAND_IN": stand_in})
    t.equal(c.ready["agent"], "[redacted]", "the name")
    c.begin(f"say {key}; split {key}; letters {stand_in}; think {key}; splitthink {stand_in}; splitenv KEY; env STAND_IN; aroundenv KEY;"
            f"tool {key}; tool a {stand_in} b; plan {key}|x {stand_in}; ask {key}; err {key}; fail {stand_in}")
    seen = c.until("question")
    c.request("answer", question=1, option="yes")
    seen += c.until("turn-ended")
    c.begin(f"refuse {key}")
    seen += c.until("turn-ended")
    told = json.dumps(seen)
    for secret in (key, stand_in):
        t.lacks(told, secret, "the updates")
        t.lacks(told, secret[-16:], "the updates")
    t.equal(texts(seen).count("[redacted]"), 6, f"secrets in {texts(seen)!r}")
    t.equal(texts(seen, "thought").count("[redacted]"), 2, "secrets in thoughts")
    t.equal(fields(seen, "turn-ended")[0]["text"], '"[redacted]" (error -32603)', "the error")
    t.equal(fields(seen, "question")[0]["title"], "[redacted]", "the question")
    t.equal(fields(seen, "plan")[0]["text"], "[x] [redacted]\n[>] x [redacted]", "the plan")
    c.turn("exit 0")
    c.ended()
    for secret in (key, stand_in):
        t.lacks(c.session.transcript(), secret, "the transcript")
        t.lacks(c.session.transcript(), secret[-16:], "the transcript")
        t.lacks(open(c.session.events_path, encoding="utf-8").read(), secret, "the events")
        t.lacks(c.session.launcher.log_text(), secret, "the log")


@case("S217: the end of a turn lets out what was held back, and the next turn begins another text")
def _(t):
    key = "sk-test-" + secrets.token_hex(24)
    c = start(t, secrets=[key])
    t.equal(texts(c.turn(f"part {key[:20]}")), key[:20], "what only begins like a secret")
    t.equal(texts(c.turn(f"part {key[20:]}")), key[20:], "what only ends like one")
    t.contains(c.session.transcript(), key[:20] + "\n[turn ended", "the transcript")


@case("S217 C190: secrets are taken out of the sentence that says why an agent was not started, and of an error of its")
def _(t):
    key = "sk-test-" + secrets.token_hex(24)
    c = start(t, "--error", f"no {key}!", secrets=[key], ready=False)
    last, _ = c.ended()
    t.equal(last["text"], 'the agent refused initialize: "no [redacted]!" (error -32603)', "the sentence")


@case("S217: with nobody there to be told the transcript is written all the same, scrubbed")
def _(t):
    key = "sk-test-" + secrets.token_hex(24)
    c = start(t, secrets=[key])
    c.begin(f"split {key}; say done; wait")
    c.close()
    wait_for(lambda: "\ndone\n" in c.session.transcript())
    t.lacks(c.session.transcript(), key, "the transcript")
    t.contains(c.session.transcript(), "[redacted]\ndone\n", "the transcript")


@case("C057: control characters of an agent's neither reach a line of an update nor a terminal by way of the transcript")
def _(t):
    c = start(t)
    raw = {"jsonrpc": "2.0", "method": "session/update", "params": {"sessionId": "acp-session-1", "update": {
        "sessionUpdate": "tool_call", "toolCallId": "a\nb", "title": "one\n[turn ended: end_turn]\x1b[2J\u009b1m", "kind": "\t", "status": "\r"}}}
    seen = c.turn("raw " + json.dumps(raw).replace(";", "\\u003b") + "; say \x1b]0;title\x07\tx\x7f")
    tool = fields(seen, "tool")[0]
    t.equal(tool, {"id": "a\\nb", "title": "one\\n[turn ended: end_turn]\\x1b[2J\\xc2\\x9b1m", "kind": "\\t", "status": "\\x0d"}, "the tool call")
    t.equal(texts(seen), "\\x1b]0\ntitle\\x07\tx\\x7f\n", "the message")
    text = c.session.transcript()
    t.check(not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", text), lambda: f"the transcript holds control characters: {text!r}")
    t.equal(text.count("\n[turn ended"), 1, "lines that end a turn")


# ---- questions ----

@case("a question is told with its options, answered by an id, and the answer is the agent's")
def _(t):
    c = start(t)
    c.begin("ask may I?; ask again?")
    q = c.update("question")
    t.equal(q, {"question": 1, "title": "may I?", "options": "yes\tAllow once\tallow_once\nalways\tAllow always\tallow_always\nno\tReject\treject_once"}, "the question")
    t.contains(c.request("answer", question=1, option="maybe")["text"], "no such option", "another option")
    t.equal(c.request("answer", question=1, option="always")["type"], "ok", "an answer")
    t.contains(c.request("answer", question=1, option="no")["text"], "has been answered", "a second answer")
    seen = c.until("question", question=2)
    t.equal(fields(seen, "answered"), [{"question": 1, "option": "always"}], "what was told")
    c.request("answer", question=2, option="no")
    t.equal(texts(seen + c.until("turn-ended")), "answer: always\nanswer: no\n", "what the agent heard")


@case("a question that nobody answers in time is answered as cancelled; one more than eight at once, too")
def _(t):
    c = start(t, questionMs=200)
    seen = c.turn("ask alone?; asks 9")
    t.equal(sorted((f["question"], f["option"], f["reason"]) for f in fields(seen, "answered")), [(n, "", "timeout") for n in range(1, 10)], "the answers")
    t.equal(texts(seen), "answer: cancelled\nanswers: " + " ".join(["cancelled"] * 9) + "\n", "what the agent heard")
    t.contains(c.session.transcript(), "[question] alone? (yes, always, no)\n[answer] none: timeout\n", "the transcript")


@case("options that no person could type have ids of ours, and the agent gets its own back; two that are one are refused")
def _(t):
    c = start(t, "--log", "log")

    def ask(number, options):
        return "raw " + json.dumps({"jsonrpc": "2.0", "id": number, "method": "session/request_permission", "params": {
            "sessionId": "acp-session-1", "toolCall": {"toolCallId": "1", "title": "q"}, "options": options}})
    odd = [{"optionId": "a\tb\n", "name": "tab", "kind": "allow_once"}, {"optionId": "-x", "name": "n\nl"}, {"optionId": "ok", "name": "good"}]
    same = [{"optionId": "ok", "name": "one"}, {"optionId": "ok", "name": "two"}]
    many = [{"optionId": f"o{i}", "name": "x"} for i in range(17)]
    c.begin("\n".join([ask(1, odd), ask(2, same), ask(3, many), ask(4, []), "say asked", "wait"]))
    q = c.update("question")
    c.update("message")
    t.equal(q["options"], "option1\ttab\tallow_once\noption2\tn\\nl\t\nok\tgood\t", "the options")
    c.request("answer", question=q["question"], option="option1")
    c.request("interrupt")
    c.update("turn-ended")
    answers = {m["id"]: m for m in sent(c) if "method" not in m}
    t.equal(answers[1]["result"]["outcome"], {"outcome": "selected", "optionId": "a\tb\n"}, "what it got")
    t.equal([answers[i]["error"]["code"] for i in (2, 3, 4)], [-32602] * 3, "the others")


# ---- the end of turns ----

@case("an interrupt cancels the turn, its questions and what waits; without a turn it is an error")
def _(t):
    c = start(t)
    c.begin("ask one; wait")
    c.prompt("say never")
    c.update("question")
    t.equal(c.request("interrupt")["type"], "ok", "an interrupt")
    seen = c.until("turn-ended", prompt=1)
    t.equal([(f["prompt"], f["reason"]) for f in fields(seen, "turn-ended")], [(2, "cancelled"), (1, "cancelled")], "the ends")
    t.equal(fields(seen, "answered"), [{"question": 1, "option": "", "reason": "cancelled"}], "the question")
    t.contains(c.request("interrupt")["text"], "no turn to interrupt", "another")
    t.equal(c.turn("say next")[-1][1]["reason"], "end_turn", "the next turn")
    c.begin("latecancel last words")
    c.request("interrupt")
    c.request("interrupt")
    seen = c.until("turn-ended")
    t.equal((texts(seen), seen[-1][1]["reason"]), ("last words\n", "cancelled"), "what it said after the interrupt")


@case("S046: an agent that does not heed an interrupt within abortMs is stopped, and that is said")
def _(t):
    c = start(t, abortMs=200)
    c.begin("say x; stubborn")
    c.update("message")
    c.request("interrupt")
    end = c.update("turn-ended")
    last, _ = c.ended()
    t.equal((end["reason"], end["text"]), ("error", "the agent did not end its turn within 200 ms after it was interrupted (timeouts.abortMs)"), "the end")
    t.equal((last["reason"], last["text"]), ("killed", end["text"]), "the session's end")
    t.check(last["status"] > 0, "the status is that of a good end")


@case("C206: an agent that ends in the middle of a turn ends it and all that waits with an error, and its status is kept")
def _(t):
    for name, text, reason, status in (("exits", "exit 3", "exited", 3), ("dies", "kill", "signal", 137), ("parts", "partline", "exited", 0)):
        c = start(t, name=name)
        c.prompt("say x; " + text)
        c.prompt("say never")
        c.request("turn")
        seen = c.until("turn-ended", prompt=2)
        t.equal([(f["prompt"], f["reason"], f["text"]) for f in fields(seen, "turn-ended")],
                [(1, "error", "the agent has ended"), (2, "error", "the agent has ended")], "the ends")
        last, _ = c.ended()
        t.equal((last["reason"], last["status"], last["text"]), (reason, status, None), f"the end of {name}")


@case("S048: a stop ends a turn with an error and the session as any other")
def _(t):
    c = start(t)
    c.begin("say x; wait")
    c.update("message")
    c.request("stop", graceMs=5000)
    t.equal(c.update("turn-ended")["reason"], "error", "the turn")
    last, _ = c.ended()
    t.equal((last["reason"], last["status"], last["text"]), ("signal", 143, None), "the session")


@case("an agent that answers a turn twice, or late, or what was not asked, ends no other turn")
def _(t):
    c = start(t)
    c.turn("twice; say x")
    seen = c.turn("say y")
    t.equal([(f["prompt"], f["reason"]) for f in fields(seen, "turn-ended")], [(2, "end_turn")], "the ends")


# ---- agents that do not do what they should ----

@case("an agent that is none ends its session with a sentence: no answer, another version, an error, no session, an end")
def _(t):
    rows = [
        (("--mute",), r"did not answer initialize within 1500 ms \(timeouts.startupMs\)"),
        (("--deaf",), r"did not answer initialize within 1500 ms"),
        (("--version", "99"), r"^the agent speaks version 99 of the Agent Client Protocol, and here only 1 is known$"),
        (("--auth",), r'^the agent refused session/new: "Authentication required" \(error -32000\); give it its provider\'s key, or log it in$'),
        (("--error", "x" * 5000), r'^the agent refused initialize: "x{512}" \(error -32603\)$'),
        (("--no-session",), r"has no sessionId"),
        (("--quit",), r"^the agent ended with status 7 before it had answered initialize$"),
    ]

    def fails(row):
        # The interpreter has to be up within the time where the agent answers.
        more = {"startupMs": 1500} if row[0][0] in ("--mute", "--deaf") else {}
        c = start(t, *row[0], name="bad" + row[0][0].replace("-", ""), ready=False, **more)
        number = c.prompt("say x") if row[0][0] in ("--mute", "--deaf") else None
        last, _ = c.ended()
        t.equal((last["reason"], last["status"]), ("setup", 125), f"the end of {row[0]}")
        t.matches(last["text"], row[1], f"the sentence for {row[0]}")
        if number:
            t.equal(c.update("turn-ended"), {"prompt": 1, "reason": "error", "text": last["text"]}, "the prompt that waited")
    t.each(rows, fails)


@case("what a command says that speaks no ACP is in the transcript, without secrets; one that echoes is told from one that refuses")
def _(t):
    launcher = Launcher(t)

    def last(name, *command):
        session = launcher.session(name, *command, conversation=TIMES, secrets=["sk-secret-0123456789"])
        session.launch()
        return session, session.ended()[0]["text"]
    session, text = last("usage", "sh", "-c", r"printf 'Usage: agent\r\nkey sk-secret-0123456789\033[2J\n'; exit 3")
    t.equal(text, "the agent ended with status 3 before it had answered initialize", "the sentence")
    notes = re.findall(r"\[errand: a line of the agent's was ignored: it is not JSON, or nested too deep: (.*)\]", session.transcript())
    t.equal(len(notes), 2, session.transcript())
    t.equal(notes[0], "Usage: agent", "the first line")
    t.matches(notes[1], r"^key .*\\x1b\[2J$", "the second")
    t.lacks(notes[1], "sk-secret", "the second")
    t.equal(last("echo", "cat")[1], "the agent writes back what it is sent, so it does not speak the Agent Client Protocol", "an echo")


@case("an agent without a name is ready as well, and errandd cannot begin a turn before")
def _(t):
    c = start(t, "--nameless", ready=False)
    c.prompt("say x")
    reply = c.request("turn")
    if reply["type"] == "error":
        t.contains(reply["text"], "not ready yet", "a turn too early")
    t.equal(c.update("ready"), {"agent": "", "version": ""}, "what it says it is")


@case("T022: lines that are no messages are noted and passed over: no JSON, too long, too deep, not UTF-8, with a NUL")
def _(t):
    c = start(t)
    seen = c.turn(f"garbage 2; huge {(4 << 20) + 1}; deep 64; deep 65; deep 100000; binary; raw {{}}; raw []; raw 1; "
                  'raw {"jsonrpc":"1.0","method":"x"}; raw {"jsonrpc":"2.0","id":[],"method":"x"}; raw {"jsonrpc":"2.0","method":1}; '
                  'raw {"jsonrpc":"2.0","method":"x","result":1}; raw {"jsonrpc":"2.0","id":1}; raw {"jsonrpc":"2.0","a":1,"a":2}; say after')
    t.equal((texts(seen), seen[-1][1]["reason"]), ("after\n", "end_turn"), "the turn")
    notes = re.findall(r"\[errand: a line of the agent's was ignored: (.*)\]", c.session.transcript())
    counts = {phrase: notes.count(phrase) for phrase in set(notes)}
    t.equal(counts, {"it is not JSON, or nested too deep": 8, "it is too long": 1, "it is not of JSON-RPC 2.0": 2, "it is not an object": 2,
                     "its id is not a short text or number": 1, "its method is no text": 1, "it is call and answer in one": 1,
                     "it is neither a call nor an answer": 1}, "what was noted")


@case("T022: the longest line that is taken is 4 MiB, and a message of a megabyte comes in updates of at most 16 KiB")
def _(t):
    c = start(t)
    seen = c.turn(f"huge {4 << 20}; hugesay 1000000; say x")
    t.equal(texts(seen), "y" * 1000000 + "x\n", "the message")
    t.check(max(len(f["text"].encode()) for f in fields(seen, "message")) <= 16384, "an update is too long")
    t.lacks(c.session.transcript(), "was ignored", "the transcript")


@case("what JSON can write and UTF-8 cannot hold is not a reason to lose a message: a NUL, half of a surrogate pair")
def _(t):
    c = start(t)
    line = ('raw {"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"acp-session-1","update":{"sessionUpdate":"agent_message_chunk",'
            '"content":{"type":"text","text":"%s"}}}}')
    seen = c.turn("\n".join([line % r"a\u0000b \ud83d \ude00 \ud83d\ude00 \\\u0000 \\u0000 \ud83d\u0041 \ud83d", "say x"]))
    t.equal(texts(seen), "a\ufffdb \ufffd \ufffd \U0001f600 \\\ufffd \\u0000 \ufffdA \ufffdx\n", "the message")


@case("T022: after a hundred such lines in a turn the conversation has failed")
def _(t):
    c = start(t)
    for _ in range(2):
        t.equal(c.turn("garbage 100; say x")[-1][1]["reason"], "end_turn", "a hundred")
    c.begin("garbage 101; wait")
    text = "the agent wrote more than 100 lines in a turn that are no messages, the last: it is not JSON, or nested too deep"
    t.equal(c.update("turn-ended"), {"prompt": 3, "reason": "error", "text": text}, "the turn")
    last, _ = c.ended()
    t.equal((last["reason"], last["text"]), ("killed", text), "the session")


@case("an agent that closes its output and goes on has a turn that does not end, and is stopped by an interrupt")
def _(t):
    c = start(t, abortMs=100)
    c.begin("say x; hangup")
    c.update("message")
    c.request("interrupt")
    t.equal(c.update("turn-ended")["reason"], "error", "the turn")
    t.equal(c.ended()[0]["reason"], "killed", "the session")


@case("C190: an agent that does not read what it is sent holds nobody up, and is stopped when too much waits for it")
def _(t):
    c = start(t)
    c.begin("say x; stopreading")
    c.update("message")
    t.equal(c.request("interrupt")["type"], "ok", "an interrupt")
    t.equal(c.state()["turn"], 1, "the turn")
    c.request("stop", graceMs=1)
    c.ended()
    # Its questions are answered, which nobody reads: each answer has a hundred bytes.
    c = start(t, name="asker")
    line = json.dumps({"jsonrpc": "2.0", "id": "x" * 100, "method": "no/such"})
    with open(os.path.join(c.session.project, "flood"), "w", encoding="ascii") as f:
        f.write((line + "\n") * 20000)
    os.chmod(f.name, 0o644)
    c.begin("cat flood")
    t.equal(c.update("turn-ended"), {"prompt": 1, "reason": "error", "text": "the agent does not read what it is sent"}, "the turn")
    last, _ = c.ended()
    t.equal((last["reason"], last["text"]), ("killed", "the agent does not read what it is sent"), "the session")


# ---- errandd ----

@case("C200: updates are missed and counted while nobody watches; who comes then is told the state and what is still asked")
def _(t):
    c = start(t)
    c.begin("say one; ask two; say three; ask four")
    c.until("question", question=1)
    c.close()
    other = c.session.connect()
    t.equal(other.request("answer", question=1, option="yes")["type"], "ok", "an answer of who does not watch")
    wait_for(lambda: "[question] four" in c.session.transcript())
    t.equal(c.watch()["conversation"], {"ready": True, "turn": 1, "queued": [], "last": 1}, "the state")
    # answered, message, message, question
    t.equal(c.next(), ("missed", {"count": 4}), "the first")
    kind, question = c.next()
    t.equal((kind, question["question"], question["title"]), ("question", 2, "four"), "the second")
    c.request("answer", question=2, option="no")
    t.equal(texts(c.until("turn-ended")), "answer: no\n", "the rest")
    other.close()


@case("C200: an errandd that does not read misses text, in its place is told how much, and is told every end")
def _(t):
    c = start(t)
    c.prompt("flood 20000; say last")
    c.channel.send({"v": 1, "type": "turn"})  # and from here on nothing is read, this answer neither
    wait_for(lambda: "[turn ended" in c.session.transcript())
    c.channel.send({"v": 1, "type": "status"})
    seen = c.until("turn-ended")
    t.check(all(e["type"] != "status" for e in c.channel.events), "what was asked last is answered first")
    t.equal(c.channel.event("status")["conversation"]["turn"], 0, "the turn that has ended")
    got, missed = len(fields(seen, "message")), sum(f["count"] for f in fields(seen, "missed"))
    t.equal(got + missed, 20001, "messages, told and missed")
    t.check(missed > 0 and got > 0, f"{missed} were missed")
    kinds = [k for k, _ in seen]
    t.equal((kinds.count("missed"), kinds[-1]), (1, "turn-ended"), "where it is told")
    t.check(all(len(f["text"]) < 100 for k, f in seen[kinds.index("missed"):] if k == "message"), "text of the flood behind what was missed")
    t.equal(texts(c.turn("say again")), "again\n", "afterwards")


@case("C190: a flood of updates keeps neither an interrupt nor a stop from being heard")
def _(t):
    c = start(t)
    c.begin("floodtools 1000000")
    c.update("tool")
    other = c.session.connect()
    t.equal(other.request("status")["conversation"]["turn"], 1, "the status")
    t.equal(other.request("interrupt")["type"], "ok", "the interrupt")
    t.equal(other.request("stop", graceMs=1000)["type"], "ok", "the stop")
    other.close()
    last, _ = c.ended()
    t.check(last["status"] > 0, "the end")


run()
