# SPDX-License-Identifier: LGPL-2.1-or-later
"""Conversations with an agent over the bus: from Prompt by errandd, shim and sandbox to the agent, and back as Update."""

import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import errand_launch  # noqa: E402
import errand_world  # noqa: E402
from errand_service import ASK, MANAGER, ROOT, SESSION  # noqa: E402
from errand_talk import ACP, Talk, until  # noqa: E402
from errand_test import case, run  # noqa: E402

errand_world.enter()
errand_world.world()


@case("D001: a prompt, what the agent does, and the end of its turn are told to who follows the session")
def whole(t):
    s = Talk(t)
    s.agent("a1")
    t.equal(s.describe("a1")["Protocol"], "acp", "protocol")
    t.equal(s.say("a1", "!status"), "Session a1 is running. Its agent waits for a prompt.", "status")
    s.prompt("a1", "think so; say hello; tool edit; plan one|two")
    ended = s.update("a1", "turn-ended")
    t.equal(ended, {"prompt": 1, "reason": "end_turn"}, "end")
    told = [m["body"] for m in s.bus.signals if m["member"] == "Update"]
    kinds = [kind for kind, _ in told if kind != "ready"]
    t.equal(kinds[:2], ["queued", "turn-started"], "kinds")
    fields = dict(told)
    t.contains(fields["message"]["text"], "hello", "message")
    t.contains(fields["thought"]["text"], "so", "thought")
    t.equal([f.get("status") for kind, f in told if kind == "tool"][-1], "completed", "tool")
    t.contains(fields["plan"]["text"], "one", "plan")
    t.contains(s.transcript("a1"), "hello", "transcript")
    s.call("a1", "Stop")
    t.equal(s.state("a1")[0], "stopped", "state")


@case("D001: sessions take turns, so many at once, and no more prompts wait than may")
def turns(t):
    s = Talk(t, {"limits": {"maxConcurrentTurns": 2, "maxQueueLength": 3}})
    for name in ("a1", "a2", "a3"):
        s.agent(name)
    for name in ("a1", "a2", "a3"):
        s.prompt(name, f"{until('go-' + name)}; say one")
    s.update("a1", "turn-started", prompt=1)
    s.update("a2", "turn-started", prompt=1)
    s.prompt("a1", "say two")
    s.prompt("a2", "say two")
    s.refused("LimitExceeded", "limits.maxQueueLength", s.prompt, "a3", "say two")
    t.contains(s.say("a3", "!status"), "Its agent waits for a turn. 1 prompt waits.", "status")
    t.equal(s.seen("a3", "queued", "turn-started"), [("queued", 1)], "told of a3")
    s.go("go-a1")
    s.update("a1", "turn-ended", prompt=1)
    s.update("a3", "turn-started", prompt=1)  # before the second one of a1, which stands behind it
    t.equal(s.seen("a1", "turn-started"), [], "turns of a1")
    s.go("go-a2")
    s.update("a1", "turn-ended", prompt=2)
    s.update("a2", "turn-ended", prompt=2)
    s.go("go-a3")
    t.equal(s.update("a3", "turn-ended", prompt=1)["reason"], "end_turn", "end of a3")


@case("D001: an interrupted turn ends as cancelled, and what is queued is dropped")
def interrupted(t):
    s = Talk(t)
    s.agent("a1")
    s.refused("WrongState", "", s.call, "a1", "Interrupt")
    s.prompt("a1", "wait")
    s.prompt("a1", "say never")
    s.update("a1", "turn-started", prompt=1)
    d = s.describe("a1")
    t.equal((d["Turn"], d["QueuedPrompts"]), (1, 1), "description")
    s.call("a1", "Interrupt")
    t.equal(s.update("a1", "turn-ended", prompt=1)["reason"], "cancelled", "first")
    t.equal(s.update("a1", "turn-ended", prompt=2)["reason"], "cancelled", "second")
    d = s.describe("a1")
    t.equal((d["Turn"], d["QueuedPrompts"]), (0, 0), "description")
    s.prompt("a1", "say again")
    t.equal(s.update("a1", "turn-ended", prompt=3)["reason"], "end_turn", "third")
    t.lacks(s.transcript("a1").replace("> say never", ""), "never", "transcript")
    s.call("a1", "Stop")


@case("D001: an agent's question is answered in the thread")
def question(t):
    s = Talk(t)
    s.agent("a1")
    s.prompt("a1", "ask may I")
    asked = s.update("a1", "question")
    t.contains(asked["options"], "yes\tAllow once\tallow_once", "options")
    t.contains(s.say("a1", "!status"), f"!answer {asked['question']} OPTION", "status")
    s.refused("WrongState", "", s.say, "a1", "!answer perhaps")
    t.equal(s.say("a1", "!answer yes"), "The agent has the answer.", "reply")
    t.equal(s.update("a1", "answered")["option"], "yes", "answered")
    t.contains(s.update("a1", "message")["text"], "answer: yes", "what the agent got")
    s.refused("WrongState", "no open question", s.say, "a1", "!answer yes")
    s.call("a1", "Stop")


@case("C204: a shim that says nothing to the next errandd does not keep others from their turns for good", timeout=60)
def mute(t):
    s = Talk(t, {"limits": {"maxConcurrentTurns": 1}})
    s.agent("a1")
    s.agent("a2")
    s.prompt("a1", until("go"))
    s.update("a1", "turn-started", prompt=1)
    s.service.kill()
    (shim,) = (pid for pid in s.service.shims() if b"a1" in errand_launch.words_of(pid))
    os.kill(shim, signal.SIGSTOP)
    try:
        s.serve()
        s.prompt("a2", "say hello")
        t.equal(s.update("a2", "turn-ended")["reason"], "end_turn", "the end of the other's turn")
    finally:
        os.kill(shim, signal.SIGCONT)
    s.go("go")
    t.equal(s.update("a1", "turn-ended", prompt=1)["reason"], "end_turn", "the end of its turn")


@case("C200: a turn goes on while errandd is killed, prompts that wait are not lost, and none is given twice")
def killed(t):
    s = Talk(t, {"limits": {"maxConcurrentTurns": 1}})
    s.agent("a1", "--log", "log1")
    s.agent("a2", "--log", "log2")
    s.prompt("a1", f"{until('go')}; ask may I; say one")
    s.update("a1", "turn-started", prompt=1)
    s.prompt("a1", "say two")
    s.prompt("a2", "say other")
    s.service.kill()
    s.go("go")
    # Whose shim has said nothing yet may have a turn.
    (shim,) = (pid for pid in s.service.shims() if b"a1" in errand_launch.words_of(pid))
    os.kill(shim, signal.SIGSTOP)
    try:
        s.serve()
        s.await_agent("a2")
        t.contains(s.say("a2", "!status"), "Its agent waits for a turn. 1 prompt waits.", "status of the other, before the first one has answered")
    finally:
        os.kill(shim, signal.SIGCONT)
    # It has missed updates, which it tells behind that it is there, and is asked once more then.
    errand_launch.wait_for(lambda: "Its agent works on prompt 1. 1 prompt waits." in s.say("a1", "!status"))
    t.contains(s.say("a2", "!status"), "Its agent waits for a turn. 1 prompt waits.", "status of the other")
    s.prompt("a1", "say three")
    errand_launch.wait_for(lambda: "!answer" in s.say("a1", "!status"))
    s.say("a1", "!answer no")
    t.equal([s.update("a1", "turn-ended", prompt=n)["reason"] for n in (1, 2, 3)], ["end_turn"] * 3, "ends")
    t.equal(s.update("a2", "turn-ended", prompt=1)["reason"], "end_turn", "end of the other")
    for log, n in (("log1", 3), ("log2", 1)):
        with open(s.service.path("project", log), encoding="utf-8") as f:
            t.equal(sum('"session/prompt"' in line for line in f), n, f"prompts in {log}")
    # And once more, with nothing under way: numbers go on.
    s.service.kill()
    s.serve()
    s.prompt("a1", "say four")
    t.equal(s.update("a1", "turn-ended")["prompt"], 4, "number")
    s.service.terminate()
    s.serve()
    s.prompt("a1", "say five")
    t.equal(s.update("a1", "turn-ended")["prompt"], 5, "number")


@case("C200: an errandd that ends gives no turn that another session still has")
def left(t):
    s = Talk(t, {"limits": {"maxConcurrentTurns": 1}})
    names = ("a1", "a2", "a3")
    for name in names:
        s.agent(name)
    s.prompt("a2", until("go"))
    s.update("a2", "turn-started", prompt=1)
    for name in ("a1", "a3"):
        s.prompt(name, "say other")
    t.equal(s.service.terminate(), 0, "errandd's end")
    s.serve()
    for name in names:
        s.await_agent(name)
    t.contains(s.say("a2", "!status"), "Its agent works on prompt 1.", "status")
    for name in ("a1", "a3"):
        t.contains(s.say(name, "!status"), "Its agent waits for a turn. 1 prompt waits.", f"status of {name}")
    s.go("go")
    for name in names:
        t.equal(s.update(name, "turn-ended", prompt=1)["reason"], "end_turn", f"end of {name}")


@case("D001: when the agent or the session ends each prompt that was taken is told to have ended")
def ends(t):
    s = Talk(t)
    s.agent("a1")
    s.prompt("a1", "say bye; exit 3")
    s.prompt("a1", "say never")
    t.equal([s.update("a1", "turn-ended", prompt=n)["reason"] for n in (1, 2)], ["error", "error"], "ends")
    s.bus.signal("Exited", lambda m: m["path"].endswith("/a1"))
    s.agent("a2")
    s.prompt("a2", "wait")
    s.prompt("a2", "say never")
    s.update("a2", "turn-started")
    t.equal(s.say("a2", "!stop"), "The session has ended.", "reply")
    t.equal(len([1 for n in (1, 2) if s.update("a2", "turn-ended", prompt=n)["reason"] in ("error", "cancelled")]), 2, "ends")
    s.refused("WrongState", "a2 has ended; errand session start a2 starts it again", s.prompt, "a2", "say more")
    s.agent("a3")
    s.prompt("a3", "wait")
    s.update("a3", "turn-started")
    for pid in s.service.shims():
        os.kill(pid, 9)
    t.equal(s.update("a3", "turn-ended", prompt=1)["reason"], "error", "its shim was killed")
    t.equal([body for body in s.seen("a1", "turn-ended") + s.seen("a2", "turn-ended") + s.seen("a3", "turn-ended")], [], "told twice")


@case("D001: an agent that does not answer as one should ends its session, which says why")
def handshake(t):
    s = Talk(t)
    for name, options, words in (("a1", ("--version", "7"), "7"), ("a2", ("--auth",), "Authentication required"), ("a3", ("--error", "no licence"), "no licence"),
                                 ("a4", ("--mute",), ""), ("a5", ("--quit",), "")):
        mute = "--mute" in options
        s.reload({"timeouts": {"startupMs": 3000}} if mute else {})  # who answers has the time that it takes
        s.agent(name, *options, ready=False)
        if mute:
            errand_launch.wait_for(lambda: s.describe("a4")["Waiting"] == "its agent to answer for the first time")
        s.bus.signal("Exited", lambda m, name=name: m["path"].endswith(name))
        d = s.describe(name)
        t.equal((d["State"], d["ExitReason"], d["ExitStatus"]), ("failed", "setup", 125), name)
        t.check(d["ExitText"] and words in d["ExitText"], f"{name}: {d['ExitReason']}: {d['ExitText']}")
        t.note(f"{name}: {d['State']}, {d['ExitReason']} {d['ExitStatus']}: {d['ExitText']}")
        t.contains(s.say(name, "!status"), d["ExitText"].rstrip("."), "status")


@case("D001: what is no conversation, and what is no prompt")
def refused(t):
    s = Talk(t)
    s.start("a1", "sleep", "1000", network=("s", "none"))
    t.equal(s.describe("a1")["Protocol"], "none", "protocol")
    for call in (("Prompt", "s", "hello"), ("Say", "s", "hello"), ("Say", "s", "!answer yes"), ("Say", "s", "!interrupt"), ("Interrupt",)):
        s.refused("WrongState", "protocol acp", s.call, "a1", *call)
    t.equal(s.say("a1", "!status"), "Session a1 is running.", "status")
    t.contains(s.say("a1", "!help"), "!grant HOST", "help")
    s.refused("InvalidArgument", "!nothing is no command", s.say, "a1", "!nothing")
    t.equal(s.say("a1", "!stop"), "The session has ended.", "stop")
    s.create("a2", "./acp-agent", **ACP)
    s.refused("WrongState", "a2 was not started yet: errand session start a2", s.prompt, "a2", "hello")
    s.refused("WrongState", "talked to", s.call, "a2", "OpenStdio")
    s.refused("InvalidArgument", "leave interactive out", s.create, "a3", "true", interactive=("b", True), **ACP)
    s.refused("InvalidArgument", "neither", s.create, "a3", "true", protocol=("s", "mcp"))
    s.agent("a4")
    s.refused("InvalidArgument", "empty", s.prompt, "a4", "")
    s.refused("InvalidArgument", "more than 131072", s.prompt, "a4", "x" * (128 * 1024 + 1))
    s.prompt("a4", "say " + "x" * (128 * 1024 - 4))
    t.equal(s.update("a4", "turn-ended")["reason"], "end_turn", "the longest one")


@case("D001: agent.protocol counts for agent.command, and for nobody who wants the streams")
def configured(t):
    s = Talk(t, {"agent": {"command": ["./acp-agent"], "protocol": "acp"}})
    made = {"network": ("s", "none")}

    def protocol(name, **options):
        values = {"id": ("s", name), "project": ("s", s.service.path("project")), **made, **options}
        s.bus.call(ROOT, MANAGER, "CreateSession", "a{sv}", values)
        return s.describe(name)["Protocol"]
    t.equal(protocol("a1"), "acp", "of the configured command")
    t.equal(protocol("a2", command=("as", ["true"])), "none", "of another one")
    t.equal(protocol("a3", interactive=("b", True)), "none", "with a terminal")
    t.equal(protocol("a4", protocol=("s", "none")), "none", "not wanted")
    s.call("a1", "Start")
    s.prompt("a1", "say hello")  # before the agent is ready: it waits
    t.equal(s.update("a1", "turn-ended")["reason"], "end_turn", "end")


@case("D001: a session whose agent works, or has something to do, is not idle")
def idle(t):
    s = Talk(t, {"timeouts": {"idleMs": 1500}, "limits": {"maxConcurrentTurns": 1}})
    s.agent("a1", ready=False)
    s.prompt("a1", f"{until('go')}; sleep 4000")  # at once: it may take longer than the limit until an agent is there
    s.update("a1", "turn-started")
    s.agent("a2", ready=False)
    s.prompt("a2", "say two")
    s.await_agent("a2")
    s.go("go")
    t.equal(s.update("a1", "turn-ended")["reason"], "end_turn", "a turn that is longer than the limit")
    t.equal(s.update("a2", "turn-ended")["reason"], "end_turn", "a prompt that waited for longer")
    t.equal(s.bus.signal("Exited")["body"][0], "idle", "reason")


@case("D001: a prompt that waited for too long is given up")
def expired(t):
    s = Talk(t, {"limits": {"maxConcurrentTurns": 1}})
    s.agent("a1")
    s.agent("a2")
    s.prompt("a1", until("go"))
    s.update("a1", "turn-started")
    s.reload({"limits": {"maxConcurrentTurns": 1, "maxQueueWaitMs": 300}})
    s.prompt("a2", "say two")
    t.equal(s.update("a2", "turn-ended"), {"prompt": 1, "reason": "expired"}, "end")
    s.reload({"limits": {"maxConcurrentTurns": 1}})
    s.go("go")
    s.update("a1", "turn-ended")
    s.prompt("a2", "say three")
    t.equal(s.update("a2", "turn-ended")["reason"], "end_turn", "end")


@case("C204: an agent that floods does not keep errandd from its work")
def flood(t):
    s = Talk(t)
    s.agent("a1")
    s.prompt("a1", "flood 3000; say done")
    for _ in range(20):
        t.equal(s.call("a1", "Describe")[0]["State"], "running", "state")
    t.equal(s.update("a1", "turn-ended")["reason"], "end_turn", "end")
    s.call("a1", "Stop")


@case("C204: what is asked of a shim that has more to tell than errandd took is answered behind that", timeout=60)
def behind(t):
    s = Talk(t)
    s.agent("a1")
    s.prompt("a1", f"{until('go')}; flood 4000; say all of it; wait")
    s.update("a1", "turn-started")
    os.kill(s.service.errandd.pid, signal.SIGSTOP)
    try:
        s.go("go")
        errand_launch.wait_for(lambda: "all of it" in s.service.record("a1", "transcript")[-100:])
        s.bus.send(f"{ROOT}/session/a1", SESSION, "Interrupt")
    finally:
        os.kill(s.service.errandd.pid, signal.SIGCONT)
    t.equal(s.update("a1", "turn-ended"), {"prompt": 1, "reason": "cancelled"}, "end")
    s.prompt("a1", "say again")
    t.equal(s.update("a1", "turn-ended"), {"prompt": 2, "reason": "end_turn"}, "end of another")
    s.call("a1", "Stop")


@case("S131: !grant in the thread lets the next connection through, or those of a time, or all", timeout=60)
def granted(t):
    s = Talk(t, {"sandbox": {"requireFullEnforcement": False, "gracePeriodMs": 1000, "egress": {"allow": []}}})
    s.start("a1", "/usr/bin/python3", "-c", ASK)
    t.equal(s.ask("denied.example.org"), "403", "before")
    t.equal(s.bus.signal("Notice")["body"][1], "this session tried to reach `denied.example.org`, which is not on the egress allowlist or granted. "
            "`!grant denied.example.org` lets its next connection through, and `!grant denied.example.org 10m` or `!grant denied.example.org always` lets it "
            "through for longer", "notice")
    t.equal(s.say("a1", "!grant denied.example.org"), "denied.example.org is granted for the session's next connection to it.", "reply")
    # 502: it is let through, and there is no such host.
    t.equal([s.ask("denied.example.org") for _ in range(2)], ["502", "403"], "once")
    s.say("a1", "!grant one.example.org 10m")
    t.equal([s.ask("one.example.org") for _ in range(3)], ["502"] * 3, "for a time")
    s.say("a1", "!grant *.example.net always")
    t.equal([s.ask("two.example.net"), s.ask("three.example.net")], ["502", "502"], "always")
    s.say("a1", "!grant short.example.org 1s")
    errand_launch.wait_for(lambda: s.ask("short.example.org") == "403")
    t.equal(s.say("a1", "!grants"), "Granted: one.example.org (10m), *.example.net (always).", "grants")
    t.contains(s.say("a1", "!revoke one.example.org"), "not granted any more", "reply")
    t.equal([s.ask("one.example.org"), s.ask("two.example.net")], ["403", "502"], "after !revoke")
    s.service.kill()
    s.serve()
    t.equal(s.say("a1", "!grants"), "Granted: *.example.net (always).", "grants after a restart")
    s.say("a1", "!stop")
    s.refused("WrongState", "a host is granted to one that runs", s.say, "a1", "!grant one.example.org")


run()
