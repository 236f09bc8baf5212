#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A session's disk use: measured while it runs, and the session stopped beyond its budget; and sessions in which nothing happens."""

import os
import re
import time

import errand_world
from errand_bus import Connection
from errand_run import PATIENCE, Errand, wait_for
from errand_test import case, run

errand_world.enter()
errand_world.own_files()  # what others write meanwhile would count where it cannot be told from what the session writes
ROOT, MANAGER, SESSION = "/org/errand1", "org.errand1.Manager", "org.errand1.Session"
MIB = 1 << 20


def begin(t, **sandbox):
    return Errand(t, {"sandbox": {"gracePeriodMs": 1000, "egress": {"allow": []}, "disk": "8m", "diskCheckMs": 200, **sandbox}})


def subscribe(t, errand):
    bus = Connection(errand.bus, timeout=PATIENCE)
    t.defer(bus.close)
    bus.call(ROOT, MANAGER, "Subscribe")
    return bus


def notices(bus, until):
    """(kind, text) of the notices up to the session's end; until(signal) → whether that was it."""
    found = []
    while True:
        m = bus.receive()
        if m.get("member") == "Notice":
            found.append(tuple(m["body"][:2]))
        if until(m):
            return found


def transcript(errand, name):
    with open(errand.record(name, "transcript"), encoding="utf-8", errors="replace") as f:
        return f.read()


@case("S208: a session that writes more than its budget is stopped, and told why: by notice, transcript and exit reason", timeout=60)
def beyond(t):
    errand = begin(t)
    for name, where in (("home", "$HOME"), ("project", ".")):
        process, _ = errand.started(name, "/bin/sh", "-c", f'echo up; read line && head -c {24 * MIB} /dev/urandom > "{where}/big"; sleep 1000')
        bus = subscribe(t, errand)
        process.stdin.write("go\n")
        process.stdin.flush()
        told = notices(bus, lambda m: m.get("member") == "Exited")
        text = next(text for kind, text in told if kind == "disk" and "is stopped" in text)
        t.matches(text, r"the session takes \d+(\.\d)?m of the disk, more than its budget of 8m \(sandbox\.disk\), and is stopped")
        t.lacks(text, "others")
        t.equal(process.wait(PATIENCE), 143, "the exit status")
        shown = errand.json("session show", name)
        t.equal((shown["state"], shown["exitReason"], shown["exitStatus"]), ("stopped", "disk", 143), "the end")
        t.contains(transcript(errand, name), f"\n[errand: {text}]\n")
    t.contains(told_report(errand), "disk use is measured, not capped: a session that takes more than 8m is stopped")
    # What is in the project counts no more, once it is there; what is in the session's own state does.
    again = errand.run("session start", "project")
    t.equal(again.returncode, 0, again.stderr)
    errand.run("session start", "home")
    wait_for(lambda: errand.json("session show", "home")["state"] in ("failed", "stopped"), "the end of the one that holds too much")
    t.equal(errand.json("session show", "home")["exitReason"], "disk", "why it ended, whether it had started by then or not")
    errand.good("session stop", "project")


@case("S208: what a session writes at once, before or while it is looked at first, counts", timeout=60)
def at_once(t):
    errand = begin(t)
    for name, where in (("home", "$HOME"), ("project", ".")):
        done = errand.run("run", "--id", name, "--", "/bin/sh", "-c", f'head -c {24 * MIB} /dev/zero > "{where}/big"; exec sleep 1000')
        t.equal((done.returncode, errand.json("session show", name)["exitReason"]), (143, "disk"), "the end")


def told_report(errand):
    return " ".join(errand.good("report").split())


@case("S208: what the project had before does not count, nor do links, holes, and what was removed again", timeout=60)
def within(t):
    errand = begin(t)
    with open(os.path.join(errand.project, "before"), "wb") as f:
        f.write(os.urandom(24 * MIB))
    work = (f"cd $HOME; head -c {5 * MIB} /dev/urandom > one; for i in 1 2 3 4; do ln one link$i; ln -s one soft$i; done; truncate -s 1T hole; "
            f"for i in $(seq 24); do head -c {MIB // 2} /dev/urandom > some; rm some; done; echo done; read line")  # a look may meet more than one of these
    process, line = errand.started("s1", "/bin/sh", "-c", work)
    t.equal(line, "done\n", "what the session says")
    look_closer(t, errand)
    log = wait_log(errand, lambda looks: len(looks) >= 6)
    t.check(all(n <= 8 * MIB for n, _ in log), log)
    process.stdin.write("end\n")
    process.stdin.flush()
    t.equal(process.wait(PATIENCE), 0, "the exit status")


def nest(directory, depth):
    """That many directories, each in the one before; rmtree() takes them away again."""
    fd = os.open(directory, os.O_PATH)
    for _ in range(depth):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_PATH, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)


@case("S208: a project that cannot be measured, as a session before left it, is no way around the budget", timeout=60)
def deep(t):
    errand = begin(t, disk="64m")
    nest(errand.project, 600)
    process, _ = errand.started("s1", "/bin/sh", "-c", f"echo up; read line; head -c {256 * MIB} /dev/urandom > big; sleep 1000")
    bus = subscribe(t, errand)
    process.stdin.write("go\n")
    process.stdin.flush()
    told = [text for kind, text in notices(bus, lambda m: m.get("member") == "Exited") if kind == "disk"]
    t.matches(told[-1], r"the session takes \d+(\.\d)?m of the disk, more than its budget of 64m \(sandbox\.disk\), and is stopped; its project cannot be measured, "
                         "so that this is what the whole file system has grown by, and others may have written of it")
    t.contains(transcript(errand, "s1"), "others may have written of it]")
    t.equal(errand.json("session show", "s1")["exitReason"], "disk", "why it ended")


def look_closer(t, errand):
    bus = subscribe(t, errand)
    bus.call("/org/freedesktop/LogControl1", "org.freedesktop.DBus.Properties", "Set", "ssv", "org.freedesktop.LogControl1", "LogLevel", ("s", "debug"))


def wait_log(errand, enough):
    def found():
        looks = [(int(a), int(b)) for a, b in re.findall(r"(\d+) bytes of the disk, looked at again in (\d+) ms", errand.log())]
        return looks if enough(looks) else None
    return wait_for(found, "measurements")


@case("S209: one that writes is looked at sooner than one that does not", timeout=60)
def pace(t):
    errand = begin(t, disk="512m", diskCheckMs=8000)
    idle, _ = errand.started("idle", "/bin/sh", "-c", "echo up; read line")
    look_closer(t, errand)
    looks = wait_log(errand, lambda looks: len(looks) >= 3)
    t.check(all(b[1] >= min(2 * a[1], 8000) for a, b in zip(looks, looks[1:])), looks)
    seen = len(looks)
    busy, _ = errand.started("busy", "/bin/sh", "-c", f'echo up; while head -c {4 * MIB} /dev/zero >> "$HOME/big"; do sleep 0.02; done')
    started = time.monotonic()
    wait_for(lambda: "session busy: disk: the session takes" in errand.log() and "is stopped" in errand.log(), "the end of the one that writes", 40)
    t.note(f"after {time.monotonic() - started:.1f} s")
    looks = wait_log(errand, lambda looks: len(looks) > seen)[seen:]
    t.check(min(b for _, b in looks) <= 2000, looks)
    t.equal(idle.poll(), None, "the one that is idle")
    for process in (idle, busy):
        process.stdin.close()
        process.wait(PATIENCE)


@case("a look at the disk keeps nobody waiting, however much there is to look at", timeout=60)
def waiting(t):
    errand = begin(t, disk="512m", diskCheckMs=100)
    make = "mkdir d; cd d; for i in $(seq 30); do mkdir $i; (cd $i; seq -f f%g 300 | xargs touch); done; echo up; read line"
    process, _ = errand.started("s1", "/bin/sh", "-c", make)
    bus = subscribe(t, errand)
    slowest = 0
    for _ in range(200):
        before = time.monotonic()
        bus.call(ROOT, MANAGER, "ListSessions")
        slowest = max(slowest, time.monotonic() - before)
    t.note(f"slowest answer {slowest * 1000:.1f} ms")
    t.check(slowest < 5, "an answer took as long")
    process.communicate("end\n")


# ---- sessions in which nothing happens ----

def idle(t, seconds=1):
    return Errand(t, {"sandbox": {"gracePeriodMs": 1000, "egress": {"allow": []}}, "timeouts": {"idleMs": seconds * 1000}})


@case("a session in which nothing happens is warned about and stopped, and says why", timeout=60)
def forgotten(t):
    errand = idle(t, 4)  # its shim's answers to the looks are work of its own, which in a sanitized build is more than a hundredth of a second's
    errand.good("session create", "--id", "s1", "--", "/bin/sh", "-c", "echo up; sleep 1000")
    bus = subscribe(t, errand)
    bus.call(f"{ROOT}/session/s1", SESSION, "Start")
    told = [text for kind, text in notices(bus, lambda m: m.get("member") == "Exited") if kind == "idle"]
    t.equal(len(told), 2, told)
    t.matches(told[0], r"^nothing has happened in the session for (3s( \d00ms)?|[4-9]s.*|\d\ds), and nobody is attached: it will be stopped in 1s \(timeouts\.idleMs\)$")
    t.matches(told[1], r"^nothing has happened in the session for ([4-9]s( \d00ms)?|\d\ds), and nobody is attached: it is stopped \(timeouts\.idleMs\)$")
    shown = errand.json("session show", "s1")
    t.equal((shown["state"], shown["exitReason"], shown["exitStatus"]), ("stopped", "idle", 143), "the end")
    t.contains(transcript(errand, "s1"), f"\n[errand: {told[1]}]\n")


# Tells when it last had 0.1 s of a processor before it. What is used after the last look that saw it work is less: 20 ms, a hundredth of the time, and ticks.
COMPUTES = """
import signal, sys, time
marks = [(-1, 0)]
def end(*_):
    used = time.process_time()
    print([wall for cpu, wall in marks if cpu <= used - 0.1][-1], flush=True)
    sys.exit()
signal.signal(signal.SIGTERM, end)
until = time.monotonic() + 4
while time.monotonic() < until:
    if time.process_time() >= marks[-1][0] + 0.005:
        marks.append((time.process_time(), time.time_ns()))
while True:
    signal.pause()
"""


@case("one that computes, one that speaks, and one that somebody is attached to or waits for go on, until they do no more", timeout=90)
def not_idle(t):
    errand = idle(t)
    # Both tell when they did so last, which on a busy machine may be before they are through.
    sessions = {"speaks": (["/bin/sh", "-c", "for i in $(seq 12); do sleep 0.2; date +%s%N; done; sleep 1000"],),
                "computes": (["/usr/bin/python3", "-c", COMPUTES],),
                "attached": (["sleep", "1000"], "--terminal")}
    waits, _ = errand.started("waits", "/bin/sh", "-c", "echo up; sleep 4; exit 7")
    for name, (command, *options) in sessions.items():
        errand.good("session create", "--id", name, *options, "--", *command)
    bus = subscribe(t, errand)
    for name in sessions:
        bus.call(f"{ROOT}/session/{name}", SESSION, "Start")
    terminal = bus.call(f"{ROOT}/session/attached", SESSION, "Attach", "a{sv}", {})[0]
    t.equal(waits.wait(PATIENCE), 7, "the exit status of the one that is waited for")
    for name in ("speaks", "computes"):
        wait_for(lambda: errand.json("session show", name)["exitReason"] == "idle", f"the end of {name}")
        shown, last = errand.json("session show", name), [int(line) for line in transcript(errand, name).splitlines() if line.isdigit()][-1]
        t.check(shown["endedUSec"] - last // 1000 >= 1_000_000, f"{name} was stopped too soon: {shown}, last {last}")
    t.equal(errand.json("session show", "attached")["state"], "running", "the one that is attached to")
    os.close(terminal)
    wait_for(lambda: errand.json("session show", "attached")["exitReason"] == "idle", "the end of the one that was attached to")


if __name__ == "__main__":
    run()
