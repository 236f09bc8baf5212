#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""errand prompt, say, follow and session interrupt, with a stand-in for errandd that says what a test has it say."""

import json
import os
import queue
import signal
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from errand_fake import Bus, command  # noqa: E402
from errand_test import Failure, case, run  # noqa: E402

FAILED, NOT_THERE = 1, 3
OPTIONS = "allow\tAllow once\tallow_once\nno, never\tReject\treject_once"


class Daemon:
    """The stand-in, on a system bus of its own."""

    def __init__(self, t, bus=None, conversation="running 0 0"):
        self.t = t
        self.bus = bus or Bus(t, "system")
        self.process = self.bus.errandd(stdin=subprocess.PIPE, CONVERSATION=conversation)
        t.defer(self.process.stdin.close)

    def calls(self, *lines):
        """What was asked of it, in this order."""
        for line in lines:
            self.t.equal(self.process.stdout.readline(), line + "\n", "a call")

    def tell(self, *fields):
        self.process.stdin.write("\x1f".join(str(field) for field in fields) + "\x1e")
        self.process.stdin.flush()

    def update(self, word, **fields):
        types = {str: "s", int: "t", bool: "b"}
        self.tell("update", "a1", word, *(x for name, value in fields.items() for x in (name, types[type(value)], value if value is not True else 1)))

    def standing(self, state, turn, queued):
        self.tell("standing", state, turn, queued)
        self.calls("standing")

    def begin(self, prompt):
        """Lets the prompt that was sent have its turn."""
        self.update("queued", prompt=prompt)
        self.update("turn-started", prompt=prompt)

    def again(self, conversation):
        """Another one takes its place, and knows that much."""
        self.process.kill()
        self.process.wait()
        return Daemon(self.t, self.bus, conversation)


class Lines:
    """What a program writes, line by line."""

    def __init__(self, stream):
        self.lines = queue.Queue()
        threading.Thread(target=self._read, args=[stream], daemon=True).start()

    def _read(self, stream):
        for line in stream:
            self.lines.put(line.decode())
        self.lines.put(None)

    def until(self, part):
        """The line that has part in it, and those before."""
        seen = []
        while True:
            try:
                line = self.lines.get(timeout=20)
            except queue.Empty:
                line = None
            if line is None:
                raise Failure(f"no line has {part!r}: {seen}")
            seen.append(line)
            if part in line:
                return seen


def talk(t):
    daemon = Daemon(t)
    return daemon, command(t, daemon.bus.address)


def prompted(t, *arguments, text="hello there", **options):
    """A prompt whose turn has begun, as number 1."""
    daemon, errand = talk(t)
    process = errand.start("prompt", "a1", *arguments, text, **options)
    daemon.calls("Subscribe", f"Prompt /org/errand1/session/a1 {text}")
    daemon.begin(1)
    return daemon, errand, process


def finish(process, code, t):
    out, error = process.communicate()
    t.equal(process.returncode, code, error.decode())
    return out.decode(), error.decode()


@case("T: what the agent says comes on standard output piece by piece, what it does beside it, and the end of its turn ends it")
def _(t):
    daemon, _, process = prompted(t, bufsize=0)
    daemon.update("thought", text="Hm, ")
    daemon.update("thought", text="well.")
    daemon.update("message", text="I read ")
    daemon.update("message", text="it.\n\tAll of")
    t.equal(process.stdout.readline(), b"I read it.\n", "a line, while the turn goes on")
    daemon.update("message", text=" it")
    daemon.update("tool", id="7", title="Run make", kind="execute", status="in_progress")
    daemon.update("tool", id="7", title="Run make", kind="execute", status="completed")
    daemon.update("plan", text="[x] read\n[>] build")
    daemon.update("message", text="Done.")
    daemon.update("turn-ended", prompt=1, reason="end_turn")
    t.equal(finish(process, 0, t), ("\tAll of it\nDone.\n", "[thought] Hm, well.\n[tool] Run make: in_progress\n[tool] Run make: completed\n"
                                    "[plan]\n  [x] read\n  [>] build\n"), "standard output and error")


@case("T: a question comes with the commands that answer it, which are exact, and its answer is told")
def _(t):
    daemon, errand, process = prompted(t, "--system")
    daemon.update("question", question=3, title="Remove build?", options=OPTIONS)
    daemon.update("answered", question=3, option="allow")
    daemon.update("answered", question=4, option="", reason="timeout")
    daemon.update("turn-ended", prompt=1, reason="end_turn")
    _, error = finish(process, 0, t)
    lines = error.splitlines()
    t.equal(lines[0], "[question 3] Remove build?", "the question")
    t.equal(lines[1:3], ["  errand say --system a1 '!answer 3 allow'       Allow once (allow_once)",
                         "  errand say --system a1 '!answer 3 no, never'   Reject (reject_once)"], "the commands")
    t.equal(lines[3:], ["[question 3] answered: allow", "[question 4] not answered: nobody did in time (timeouts.questionMs)"], "the answers")
    t.equal(errand.good("say", "--system", "a1", "!answer 3 no, never"), "you said:\n!answer 3 no, never\n", "the reply")
    daemon.calls("Say /org/errand1/session/a1 !answer 3 no, never")


@case("T: nothing that the agent says moves the cursor or looks like a line of errand's")
def _(t):
    daemon, errand = talk(t)
    lines = Lines(errand.start("follow", "a1").stdout)
    daemon.calls("Subscribe")
    daemon.update("message", text="a\x1b[2Jb\u202ec\n[question 1] x\n")
    daemon.update("tool", id="\x1b]0;t\x07", title="", kind="x", status="\n[tool] y")
    daemon.update("question", question=1, title="\x1b[31mred\nline", options="a\x1bb\tna\x07me\tk")
    t.equal([line.rstrip("\n") for line in lines.until("answer 1 ")], [
        "a\\x1b[2Jb\\u{202e}c", " [question 1] x", "[tool] \\x1b]0;t\\x07: \\n[tool] y", "[question 1] \\x1b[31mred\\nline",
        "  errand say a1 '!answer 1 a\\x1bb'   na\\x07me (k)"], "what is shown")


@case("T: a turn that ends otherwise is a failure that says why")
def _(t):
    daemon, errand = talk(t)
    for number, (reason, text, words) in enumerate((
            ("max_tokens", "", "came to its limit of tokens"), ("refusal", "", "refuses to go on"), ("cancelled", "", "it was interrupted"),
            ("expired", "", "waited too long"), ("error", "it exited with 3\x1b", "the agent failed: it exited with 3\\x1b"),
            ("new_reason", "", "new_reason")), 1):
        process = errand.start("prompt", "a1", "go")
        daemon.calls("Subscribe", "Prompt /org/errand1/session/a1 go")
        daemon.update("turn-ended", prompt=number, reason=reason, text=text)
        out, error = finish(process, FAILED, t)
        t.equal(out, "", "standard output")
        t.contains(error, "session a1: the turn is over: ")
        t.contains(error, words)


@case("T: of a prompt whose agent has not answered yet that is told, and no other turn")
def _(t):
    daemon, errand = talk(t)
    process = errand.start("prompt", "b3", "early")
    daemon.calls("Subscribe", "Prompt /org/errand1/session/b3 early")
    t.equal(len(Lines(process.stderr).until("the prompt waits for its agent to answer for the first time (timeouts.startupMs)")), 1, "lines")
    t.contains(errand.good("session", "show", "b3"), "turn  waits for its agent to answer for the first time\n")


@case("T: what belongs to another's turn is not printed, and the wait for one's own is told")
def _(t):
    daemon, errand = talk(t)
    process = errand.start("prompt", "a1", "mine")
    daemon.calls("Subscribe", "Prompt /org/errand1/session/a1 mine")
    lines = Lines(process.stderr)
    lines.until("the prompt waits for its turn; another one runs")
    daemon.update("turn-started", prompt=0)
    daemon.update("message", text="another's")
    daemon.update("turn-ended", prompt=0, reason="end_turn")
    daemon.update("turn-started", prompt=1)
    daemon.update("message", text="mine")
    daemon.update("turn-ended", prompt=1, reason="end_turn")
    t.equal((process.stdout.read(), process.wait()), (b"mine\n", 0), "what it prints")


@case("T: the text is of the arguments, or of standard input; one that cannot be sent is not")
def _(t):
    daemon, errand = talk(t)
    for arguments, text, sent in ((["fix", "the", "bug"], b"", "fix the bug"), ([], b"from a pipe\n\n", "from a pipe"), (["-"], b"and so", "and so"),
                                  (["--", "-x", "-"], b"", "-x -")):
        t.equal(errand.run("prompt", "--no-wait", "a1", *arguments, input=text), (0, "", ""), "its end")
        daemon.calls(f"Prompt /org/errand1/session/a1 {sent}")
    for arguments, text, words in ((["-"], b"", "the text is empty"), ([""], b"", "the text is empty"), (["-"], b"a\0b", "has a NUL byte"),
                                   ([b"\xff"], b"", "is not in UTF-8"), (["-"], b"x" * 131073, "is too long: 128 KiB")):
        code, _, error = errand.run("prompt", "--no-wait", "a1", *arguments, input=text)
        t.equal(code, FAILED, error)
        t.contains(error, words)
    t.equal(json.loads(errand.good("prompt", "--no-wait", "--json", "a1", "x" * 1000)), {"session": "a1", "prompt": 5}, "as JSON")
    code, _, error = errand.run("prompt", "a1", "refuse this")
    t.equal((code, error), (FAILED, "errand: session a1: the prompt was not taken: refuse this\n"), "a refusal")
    t.equal(errand.run("prompt", "Not-An-Id", "x")[0], NOT_THERE, "no id")
    with errand.terminal("prompt", "a1") as terminal:
        terminal.until("the text is missing: errand prompt a1 TEXT..., or - to read it from standard input")
        t.equal(terminal.end(), FAILED, "its end")


@case("T: Ctrl-C interrupts the turn, a second one leaves it", timeout=60)
def _(t):
    daemon, _, process = prompted(t)
    daemon.update("message", text="begun")
    os.read(process.stdout.fileno(), 5)
    process.send_signal(signal.SIGINT)
    daemon.calls("Interrupt /org/errand1/session/a1")
    daemon.update("turn-ended", prompt=1, reason="cancelled")
    _, error = finish(process, FAILED, t)
    t.contains(error, "interrupting the turn; a second Ctrl-C leaves")
    t.contains(error, "the turn is over: it was interrupted")


@case("T: a second Ctrl-C leaves a turn that does not end")
def _(t):
    daemon, _, process = prompted(t)
    lines = Lines(process.stderr)
    daemon.update("message", text="begun")
    os.read(process.stdout.fileno(), 5)
    process.send_signal(signal.SIGINT)
    lines.until("a second Ctrl-C leaves")
    daemon.calls("Interrupt /org/errand1/session/a1")
    process.send_signal(signal.SIGINT)
    lines.until("what the agent does goes on until it ends, and errand follow a1 shows it")
    t.equal(process.wait(), FAILED, "its end")


@case("T: for programs each update is an object in a line, and a question's options are objects too")
def _(t):
    daemon, _, process = prompted(t, "--json")
    daemon.update("message", text="a\x1b\n")
    daemon.update("question", question=3, title="Remove?", options=OPTIONS)
    daemon.update("kind-to-come", so=True)
    daemon.update("turn-ended", prompt=1, reason="end_turn")
    out, error = finish(process, 0, t)
    events = [json.loads(line) for line in out.splitlines()]
    for event in events:
        t.check(event.pop("timeUSec") > 1e15, "a time")
        t.equal(event.pop("session"), "a1", "whose")
    t.equal(events, [
        {"event": "queued", "prompt": 1}, {"event": "turn-started", "prompt": 1}, {"event": "message", "text": "a\x1b\n"},
        {"event": "question", "question": 3, "title": "Remove?", "options": [{"id": "allow", "name": "Allow once", "kind": "allow_once"},
                                                                            {"id": "no, never", "name": "Reject", "kind": "reject_once"}]},
        {"event": "kind-to-come", "so": True}, {"event": "turn-ended", "prompt": 1, "reason": "end_turn"}], "the objects")
    t.equal(error, "", "standard error")


@case("T C200: errandd is restarted while an agent answers: it is said, and what comes then is printed")
def _(t):
    daemon, _, process = prompted(t)
    lines = Lines(process.stderr)
    daemon.update("message", text="one ")
    os.read(process.stdout.fileno(), 4)
    daemon = daemon.again("running 1 0")
    lines.until("errandd went away; the session goes on, and errandd is waited for")
    daemon.calls("Subscribe")
    lines.until("errandd is back")
    daemon.update("missed", count=2)
    daemon.update("message", text="two")
    daemon.update("turn-ended", prompt=1, reason="end_turn")
    t.contains(lines.until("[missed]")[-1], "2 updates came while errandd did not listen")
    t.equal((process.stdout.read(), process.wait()), (b"\ntwo\n", 0), "what it prints, and its end")


@case("T C200: a turn whose end was told while errandd was away is not waited for")
def _(t):
    daemon, _, process = prompted(t)
    lines = Lines(process.stderr)
    daemon = daemon.again("running -1 0")  # it does not know yet
    daemon.calls("Subscribe")
    lines.until("errandd is back")
    daemon.standing("running", 0, 0)
    lines.until("the turn has ended while errandd did not listen")
    t.equal(process.wait(), FAILED, "its end")


@case("T: a session that ends ends its prompt, and its being followed")
def _(t):
    daemon, errand = talk(t)
    follow = errand.start("follow", "a1")
    daemon.calls("Subscribe")
    daemon.update("ready", agent="an agent", version="1.0")
    daemon.update("queued", prompt=7)
    daemon.update("turn-started", prompt=7)
    daemon.update("message", text="hello")
    daemon.update("turn-ended", prompt=7, reason="error", text="why")
    daemon.tell("exited", "a1", "exited", 3)
    t.equal(finish(follow, 0, t), ("[ready] an agent 1.0\n[prompt 7 waits for its turn]\n[turn of prompt 7]\nhello\n[end of turn] the agent failed: why\n",
                                   "errand: session a1: it has ended: exited with 3\n"), "what is followed")
    prompt = errand.start("prompt", "a1", "x")
    daemon.calls("Subscribe", "Prompt /org/errand1/session/a1 x")
    daemon.tell("exited", "a1", "killed", 9)
    t.contains(finish(prompt, FAILED, t)[1], "session a1: it has ended before the turn did: ")
    daemon.standing("stopped", 0, 0)
    code, _, error = errand.run("follow", "a1")
    t.equal(code, FAILED, error)
    t.contains(error, "session a1 has ended; errand session logs a1 prints what was said")


@case("T: who follows what has no conversation is told what shows it")
def _(t):
    _, errand = talk(t)
    code, _, error = errand.run("follow", "b2")
    t.equal(code, FAILED, error)
    t.contains(error, "session b2 has no conversation (it was made without --protocol acp); errand session logs --follow b2 shows what it writes")


@case("T: say prints the reply, session interrupt asks for no more than that")
def _(t):
    daemon, errand = talk(t)
    t.equal(errand.good("say", "a1", "!grant", "x.example", "10m\x1b"), "you said:\n!grant x.example 10m\\x1b\n", "the reply")
    t.equal(json.loads(errand.good("say", "--json", "a1", "!help")), {"reply": "you said:\n!help"}, "as JSON")
    t.equal(errand.good("session", "interrupt", "a1"), "", "its output")
    daemon.calls("Say /org/errand1/session/a1 !grant x.example 10m\x1b", "Say /org/errand1/session/a1 !help", "Interrupt /org/errand1/session/a1")


@case("T: --protocol is for sessions that are created, and not for those with a terminal")
def _(t):
    errand = command(t)
    for arguments, words in ((["session", "create", "--protocol", "acp", "--terminal", "x"], "--terminal and --protocol acp contradict each other"),
                             (["session", "create", "--protocol", "lsp", "x"], "--protocol lsp: there are acp and none"),
                             (["run", "--protocol", "acp", "x"], "errand run has no such option"),
                             (["run", "--json", "x"], "--json: errand run has no such option; errand run --help lists them"),
                             (["run", "--projcet", "p", "x"], "--projcet: errand run has no such option; did you mean --project?")):
        code, _, error = errand.run(*arguments)
        t.check(code != 0, "its end")
        t.contains(error, words)


run()
