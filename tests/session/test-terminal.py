#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A session's terminal: what is in it, who is attached, and what becomes of it on disk."""

import contextlib
import os
import secrets
import socket
import time

import errand_launch
from errand_launch import Launcher, foreground, status_of, wait_for
from errand_test import case, run


@case("C053 C054: a terminal: size, resize, job control, Ctrl-C")
def _(t):
    launcher = Launcher(t)
    s = launcher.session("tty", "bash", "--norc", interactive=True, rows=33, columns=111, environment={"PS1": "READY "}).launch()
    control = s.connect()
    terminal = s.attach(control)
    terminal.until("READY ")
    terminal.type("sh -c 'trap \"echo got-\\$(stty size)\" WINCH; tty; stty size; while :; do sleep 0.05; done'\n")
    t.contains(terminal.until("33 111"), "/dev/pts/0", "the terminal's name")
    t.equal(control.request("resize", rows=44, columns=99)["type"], "ok", "resize")
    terminal.until("got-44 99")
    terminal.type("\x03")
    terminal.until("READY ")
    terminal.type("sleep 1000\n")
    terminal.until("sleep 1000")
    wait_for(lambda: foreground(s) == "sleep")
    terminal.type("\x1a")  # Ctrl-Z
    terminal.until("Stopped")
    terminal.type("jobs\n")
    terminal.until("sleep 1000")
    terminal.type("fg\n")
    wait_for(lambda: foreground(s) == "sleep")
    terminal.type("\x03")  # Ctrl-C
    terminal.type("echo status-$?\n")
    t.contains(terminal.until("status-130"), "^C", "the echo")
    terminal.type("exit 5\n")
    last, _ = s.ended()
    t.equal((last["reason"], last["status"]), ("exited", 5), "the end")
    terminal.rest()


@case("C206: clients come and go; each sees the same, who comes later sees the last of it; transcripts are scrubbed, terminals are not")
def _(t):
    launcher = Launcher(t)
    secret = "errand-session-" + secrets.token_hex(32)
    s = launcher.session("clients", "sh", "-c", "stty -echo; echo begin; while read line; do echo \"said $line $KEY\"; done; echo end",
                         interactive=True, environment={"KEY": secret}, secrets=[secret]).launch()
    first = s.attach()
    first.until("begin")
    second = s.attach()
    second.until("begin")
    first.type("one\n")
    for terminal in (first, second):
        terminal.until(f"said one {secret}")
    first.close()
    second.type("two\n")
    second.until("said two")
    third = s.attach()
    t.contains(third.until("said two"), f"said one {secret}", "what a later client sees")
    third.socket.shutdown(socket.SHUT_WR)  # as a pipe's end does: it goes on reading
    second.type("three\n")
    third.until("said three")
    second.type("\x04")
    last, _ = s.ended()
    t.equal(last["status"], 0, "the status")
    for terminal in (second, third):
        t.contains(terminal.rest(), "end", "the rest")
    t.lacks(s.transcript(), secret, "the transcript")
    t.equal(s.transcript().count("[redacted]"), 3, "secrets found")


@case("C206: a terminal that comes with the launch misses nothing of a command that ends at once")
def _(t):
    launcher = Launcher(t)
    ours, theirs = socket.socketpair()
    s = launcher.session("first", "sh", "-c", "echo all of it", interactive=True, stdio={"terminal": os.dup(theirs.fileno())})
    theirs.close()
    s.launch()
    t.equal(errand_launch.Terminal(ours).rest(), "all of it\r\n", "what the terminal saw")
    t.equal(s.ended()[0]["status"], 0, "the status")


@case("C203: a client that does not read is let go, the payload goes on, the shim's memory stays small")
def _(t):
    launcher = Launcher(t)
    s = launcher.session("slow", "sh", "-c", "read x; head -c 20000000 /dev/zero | tr '\\0' x; echo; echo written; read x", interactive=True).launch()
    slow, good = s.attach(), s.attach()
    before = int(status_of(s.pid, "VmRSS")[0])  # a sanitizer's own memory is not what is looked at
    good.type("\n")
    started = time.monotonic()
    good.until("written")
    t.check(time.monotonic() - started < 20, "the payload was held up")
    # What was queued for it is all that it gets; then it is at its end.
    seen = len(slow.rest())
    t.check(seen < 2000000, f"the slow client was sent {seen} bytes")
    grown = int(status_of(s.pid, "VmRSS")[0]) - before
    t.check(grown < 8192, f"the shim has grown by {grown} KiB")  # it carried 20 MB
    good.type("\n")
    t.equal(s.ended()[0]["status"], 0, "the status")


@case("C203: what is typed ahead of a payload that does not read is bounded, and output goes on")
def _(t):
    launcher = Launcher(t)
    s = launcher.session("ahead", "sh", "-c", "stty raw -echo; echo begin; sleep 1000", interactive=True).launch()
    terminal, other = s.attach(), s.attach()
    terminal.until("begin")
    terminal.socket.settimeout(0.5)
    sent = 0
    with contextlib.suppress(TimeoutError):
        while sent < 4000000:
            sent += terminal.socket.send(b"x" * 65536)
    t.check(sent < 2000000, f"{sent} bytes were taken")
    t.equal(s.connect().request("stop", graceMs=0)["type"], "ok", "stop")
    s.ended()
    other.close()


run()
