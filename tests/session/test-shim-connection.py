# SPDX-License-Identifier: LGPL-2.1-or-later
"""errandd's connection to a shim breaks, while both live: it is made anew, and nothing that was going on is lost, doubled or told wrongly."""

import os
import signal
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import errand_descriptors  # noqa: E402
import errand_launch  # noqa: E402
import errand_world  # noqa: E402
from errand_service import ACCOUNT, ROOT, SESSION  # noqa: E402
from errand_talk import ACP, Talk, until  # noqa: E402
from errand_test import case, run  # noqa: E402

errand_world.enter()
errand_world.world()


def break_off(s, name, **options):
    errand_descriptors.break_connection(s.service.errandd.pid, f"/{name}", **options)


def shim_stopped(s):
    """The shim, of the only session, does not get to anything before it is let."""
    pid, = s.service.shims()
    os.kill(pid, signal.SIGSTOP)
    return lambda: os.kill(pid, signal.SIGCONT)


def answers(s, *calls):
    """What each of them is answered, as a body."""
    found = {}
    while len(found) < len(calls):
        m = s.bus.await_reply(*calls)
        found[m["reply_serial"]] = m["body"]
    return [found[call] for call in calls]


def given(s, log):
    """How many prompts the agent got."""
    with open(s.service.path("project", log), encoding="utf-8") as f:
        return sum('"session/prompt"' in line for line in f)


@case("C200: a turn goes on while the connection breaks; its end is told once, and the next prompt begins")
def turn(t):
    s = Talk(t)
    s.agent("a1", "--log", "log1")
    s.prompt("a1", f"{until('go')}; ask may I; say one")
    s.prompt("a1", "say two")
    s.update("a1", "turn-started", prompt=1)
    break_off(s, "a1")
    errand_launch.wait_for(lambda: s.say("a1", "!status") == "Session a1 is running. Its agent works on prompt 1. 1 prompt waits.")
    s.go("go")
    asked = s.update("a1", "question")
    s.say("a1", f"!answer {asked['question']} yes")
    t.equal(s.update("a1", "turn-ended", prompt=1), {"prompt": 1, "reason": "end_turn"}, "first")
    t.equal(s.update("a1", "turn-ended", prompt=2), {"prompt": 2, "reason": "end_turn"}, "second")
    s.prompt("a1", "say three")
    t.equal(s.update("a1", "turn-ended"), {"prompt": 3, "reason": "end_turn"}, "third")
    t.equal(s.seen("a1", "turn-ended"), [], "told twice")
    t.equal(given(s, "log1"), 3, "prompts that the agent got")
    s.call("a1", "Stop")


@case("C200: what happens between the break and the next connection is told then, once and in order", timeout=60)
def meanwhile(t):
    s = Talk(t)
    s.agent("a1", "--log", "log1")
    s.prompt("a1", f"{until('go')}; say of the gap; ask may I")
    s.update("a1", "turn-started", prompt=1)
    os.kill(s.service.errandd.pid, signal.SIGSTOP)
    try:
        break_off(s, "a1", notices=False)
        s.go("go")
        errand_launch.wait_for(lambda: "may I" in s.service.record("a1", "transcript"))
    finally:
        os.kill(s.service.errandd.pid, signal.SIGCONT)
    question = s.update("a1", "question")["question"]
    told = [kind for kind, _ in s.seen("a1")]
    t.check(told.count("message") + told.count("missed") >= 1, f"what was said in between is neither told nor counted: {told}")
    s.say("a1", f"!answer {question} yes")
    t.equal(s.update("a1", "turn-ended"), {"prompt": 1, "reason": "end_turn"}, "end")
    t.equal(s.seen("a1", "question", "turn-ended", "turn-started"), [], "told twice")
    t.equal(given(s, "log1"), 1, "prompts")


def underway(t, broken_first):
    s = Talk(t)
    s.agent("a1", "--log", "log1")
    go_on = shim_stopped(s)
    try:
        if broken_first:
            break_off(s, "a1")
        calls = [s.bus.send(f"{ROOT}/session/a1", SESSION, "Prompt", "s", f"say {n}") for n in range(3)]
        s.bus.get(ROOT, "org.errand1.Manager", "Version")
        if not broken_first:
            break_off(s, "a1")
    finally:
        go_on()
    t.equal(answers(s, *calls), [(1,), (2,), (3,)], "numbers")
    t.equal([s.update("a1", "turn-ended", prompt=n)["reason"] for n in (1, 2, 3)], ["end_turn"] * 3, "ends")
    t.equal(given(s, "log1"), 3, "prompts that the agent got")
    t.equal(sorted(s.seen("a1", "queued", "turn-started")), [(kind, n) for kind in ("queued", "turn-started") for n in (1, 2, 3)], "told")


@case("C200: prompts that are on their way when it breaks are neither lost nor doubled")
def before_break(t):
    underway(t, False)


@case("C200: prompts that come before the shim has said where it is are given in their order, once")
def after_break(t):
    underway(t, True)


@case("C200: an answer and an interruption whose fate is not known say so, and the turn is as it is")
def unknown(t):
    s = Talk(t)
    s.agent("a1")
    s.prompt("a1", "ask may I; say more; wait")
    s.update("a1", "question")
    go_on = shim_stopped(s)
    try:
        call = s.bus.send(f"{ROOT}/session/a1", SESSION, "Say", "s", "!answer yes")
        s.bus.get(ROOT, "org.errand1.Manager", "Version")
        break_off(s, "a1")
        answer, = answers(s, call)
    finally:
        go_on()
    t.contains(answer[0], "whether that got to its agent is not known", "what is told")
    t.equal(s.update("a1", "answered"), {"question": 1, "option": "yes"}, "it got there")
    s.call("a1", "Interrupt")
    t.equal(s.update("a1", "turn-ended")["reason"], "cancelled", "end")


@case("C200: one that is broken on and on is made anew after pauses that grow, and at the end nothing is lost or told twice", timeout=60)
def loop(t):
    s = Talk(t)
    s.agent("a1", "--log", "log1")
    s.prompt("a1", f"flood 2000; {until('go')}; say done")
    s.update("a1", "turn-started")
    for pause in (0, 0.1, 0.2, 0.4, 0.8):
        begun = time.monotonic()
        break_off(s, "a1")
        errand_descriptors.wait_connection(s.service.errandd.pid, "/a1")[1].close()
        took = time.monotonic() - begun
        t.check(took >= pause, f"made anew after {took} s, not {pause}")
    s.go("go")
    t.equal(s.update("a1", "turn-ended"), {"prompt": 1, "reason": "end_turn"}, "end")
    texts = [m["body"][1]["text"] for m in s.bus.signals if m["member"] == "Update" and m["body"][0] == "message"]
    missed = sum(m["body"][1]["count"] for m in s.bus.signals if m["member"] == "Update" and m["body"][0] == "missed")
    lines = "".join(texts).split("\n")
    numbers = [line[:8] for line in lines if len(line) > 100]
    t.equal(len(numbers), len(set(numbers)), "lines that were told twice")
    t.equal(numbers, sorted(numbers), "order")
    t.check("done" in "".join(texts)[-20:] or missed > 0, "the last words are neither told nor counted")
    t.check(s.service.log().count("connection to its shim broke") <= 4, "each break is logged")
    t.equal(s.seen("a1", "turn-ended", "turn-started"), [], "told twice")
    s.prompt("a1", "say more")
    t.equal(s.update("a1", "turn-ended"), {"prompt": 2, "reason": "end_turn"}, "end of another")
    t.equal(given(s, "log1"), 2, "prompts that the agent got")


@case("C200: while it cannot be made, nothing is told to have worked, and each call is answered", timeout=60)
def away(t):
    s = Talk(t)
    s.agent("a1")
    s.prompt("a1", until("go"))
    s.update("a1", "turn-started")
    place = s.service.runtime("shim", "a1")
    os.rename(place, place + "-away")
    break_off(s, "a1")
    errand_launch.wait_for(lambda: "cannot be reached" in s.say("a1", "!status"))
    for member in (("Prompt", "s", "say more"), ("Interrupt",), ("Say", "s", "!answer yes"), ("Kill", "i", 10)):
        s.refused("WrongState", "cannot be reached at the moment", s.call, "a1", *member)
    t.equal(s.state("a1")[0], "running", "state")
    t.equal(s.seen("a1", "turn-ended"), [], "the turn goes on")
    os.rename(place + "-away", place)
    errand_launch.wait_for(lambda: "works on prompt 1" in s.say("a1", "!status"))
    s.go("go")
    t.equal(s.update("a1", "turn-ended"), {"prompt": 1, "reason": "end_turn"}, "end")
    os.rename(place, place + "-away")
    break_off(s, "a1")
    s.call("a1", "Stop")
    t.equal(s.state("a1"), ("stopped", "signal", 143), "it is stopped all the same")


@case("C200: a first connection that comes late is not told as one that broke", timeout=60)
def late(t):
    s = Talk(t)
    s.agent("a0")
    s.create("a1", "./acp-agent", **ACP, network=("s", "none"))
    daemon, launcher = s.service.errandd.pid, s.service.launcher.pid
    os.kill(launcher, signal.SIGSTOP)
    s.bus.send(f"{ROOT}/session/a1", SESSION, "Start")
    errand_launch.wait_for(lambda: os.path.exists(s.service.path("home", "errand", ".records", "a1", "events")))
    place = s.service.runtime("shim", "a1")
    s.say("a0", "!status")  # by now the launch has been sent
    os.kill(daemon, signal.SIGSTOP)
    os.kill(launcher, signal.SIGCONT)
    try:
        errand_launch.wait_for(lambda: errand_descriptors.listens("/a1"))
        os.rename(place, place + "-away")
    finally:
        os.kill(daemon, signal.SIGCONT)
    errand_launch.wait_for(lambda: "its shim cannot be reached, and is tried again" in s.service.log())
    os.rename(place + "-away", place)
    errand_launch.wait_for(lambda: "waits for a prompt" in s.say("a1", "!status"))
    t.lacks(s.service.log(), "broke,", "the log")
    break_off(s, "a1")
    errand_launch.wait_for(lambda: "broke, 1 times so far" in s.service.log())


@case("C204: another process in the shim's place is told and not asked", timeout=60)
def impostor(t):
    s = Talk(t)
    s.agent("a1")
    place = s.service.runtime("shim", "a1")
    os.rename(place, place + "-away")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        # In this process of the same account: as root, it takes that for the moment in which it listens.
        try:
            os.seteuid(ACCOUNT if os.getuid() == 0 else os.getuid())
            other.bind(place)
            other.listen(16)
        finally:
            os.seteuid(os.getuid())
        break_off(s, "a1")
        t.equal(s.bus.signal("Notice")["body"][:2], ("tampering", "another process listens in place of the session's shim, and is not asked"), "notice")
        other.settimeout(20)
        asked, _ = other.accept()
        t.equal(asked.recv(4096), b"", "what it was asked")
        asked.close()
    os.rename(place + "-away", place)
    errand_launch.wait_for(lambda: "waits for a prompt" in s.say("a1", "!status"))
    s.prompt("a1", "say hello")
    t.equal(s.update("a1", "turn-ended")["reason"], "end_turn", "end")


@case("C200: terminal and signals are there again after a break")
def terminal(t):
    s = Talk(t)
    script = "trap 'echo got it' USR1; trap 'stty size' WINCH; echo ready; while :; do sleep 0.02; done"
    s.start("a1", "sh", "-c", script, interactive=("b", True), network=("s", "none"))
    errand_launch.wait_for(lambda: "ready" in s.transcript("a1"))
    break_off(s, "a1")
    errand_launch.wait_for(lambda: errand_descriptors.connection(s.service.errandd.pid, "/a1"))
    s.call("a1", "Resize", "qq", 33, 77)
    errand_launch.wait_for(lambda: "33 77" in s.transcript("a1"))
    s.call("a1", "Kill", "i", int(signal.SIGUSR1))
    errand_launch.wait_for(lambda: "got it" in s.transcript("a1"))
    s.call("a1", "Attach", "a{sv}", {})
    s.call("a1", "Stop")
    t.equal(s.state("a1")[0], "stopped", "state")


@case("C200: a session that is being stopped ends in time though the connection breaks")
def stopping(t):
    s = Talk(t)
    s.start("a1", "sleep", "1000", network=("s", "none"))
    go_on = shim_stopped(s)
    try:
        call = s.bus.send(f"{ROOT}/session/a1", SESSION, "Stop")
        errand_launch.wait_for(lambda: s.state("a1")[0] == "stopping")
        for _ in range(2):
            break_off(s, "a1")
    finally:
        go_on()
    answers(s, call)
    t.equal(s.state("a1"), ("stopped", "signal", 143), "state")


run()
