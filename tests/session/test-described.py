#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""errand run --file: a session that a file describes, with an identity, as a unit has it."""

import json
import os
import shutil
import signal
import socket

from errand_command import Errand
from errand_test import case, run, source

NOT_SET_UP = 125


class Described:
    def __init__(self, t):
        self.errand, self.path = Errand(t), t.path("described.json")
        self.project = t.path("work")
        os.mkdir(self.project)
        os.chmod(self.project, 0o777)
        os.chmod(os.path.dirname(self.path), 0o755)

    def write(self, text, mode=0o600):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(self.path, mode)

    def says(self, command, **members):
        self.write(json.dumps({"project": self.project, "command": command, **members}))

    def run(self, *options):
        return self.errand.run("run", "--embedded", "--file", self.path, *options)


@case("D007: its output and exit code come, and started again it goes on with its record; changed it begins anew")
def _(t):
    d = Described(t)
    d.says(["sh", "-c", "echo $COLOUR; echo run >>~/count; wc -l <~/count; exit 5"], env={"COLOUR": "blue"})
    t.equal(d.run()[:2], (5, "blue\n1\n"), "the first run")
    t.equal(d.run()[:2], (5, "blue\n2\n"), "the second")
    d.says(["sh", "-c", "test ! -e ~/count && echo new"])
    code, out, error = d.run()
    t.equal((code, out), (0, "new\n"), "after a change")
    t.contains(error, "was changed since", "what is said")


@case("D007: an agent that is talked to may be described, and is told to be ready by its command alone")
def _(t):
    d = Described(t)
    shutil.copyfile(source("tests", "session", "acp-agent"), os.path.join(d.project, "acp-agent"))
    os.chmod(os.path.join(d.project, "acp-agent"), 0o755)
    d.says(["./acp-agent"], protocol="mcp")
    t.contains(d.run()[2], '"mcp"', "another protocol")
    d.says(["./acp-agent"], protocol="acp")
    unit = d.errand.start("run", "--embedded", "--file", d.path)
    d.errand.await_state("described", "running")
    t.equal(d.errand.good("prompt", "described", "say hello"), "hello\n", "its answer")
    d.errand.good("session", "stop", "described")
    t.equal(unit.wait(), 143, "exit code")
    t.contains(unit.stdout.read().decode(), "> say hello\nhello\n", "what it writes")


@case("D007: what it runs is told to a service manager, SIGTERM stops the session, and a second one follows it")
def _(t):
    d = Described(t)
    d.says(["sh", "-c", "echo up; sleep 1000 & wait"])
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
        s.bind(t.path("notify"))
        os.chmod(t.path("notify"), 0o666)
        s.settimeout(20)
        first = d.errand.start("run", "--embedded", "--file", d.path, environment={"NOTIFY_SOCKET": t.path("notify")})
        t.equal(s.recv(4096).decode(), "READY=1\nSTATUS=Session described runs", "what it tells")
    said = first.stdout.readline()  # it is in the transcript, and the second has what comes from then on
    second = d.errand.start("run", "--embedded", "--file", d.path)
    t.contains(second.stderr.readline().decode(), "runs already, and is followed")
    first.send_signal(signal.SIGTERM)
    t.equal([first.wait(20), second.wait(20)], [143, 143], "exit codes")
    t.equal((said + first.stdout.read(), second.stdout.read()), (b"up\n", b""), "output")
    t.equal(d.errand.state_of("described"), "stopped", "state")


@case("T007: a file that others may write, or that does not say what a session is, starts nothing")
def _(t):
    d = Described(t)
    good = {"project": d.project, "command": ["true"]}
    rows = [("{", "line 1"), (json.dumps([good]), "line 1"), (json.dumps({**good, "user": "root"}), '"user" is nothing'), (json.dumps({**good, "id": "x"}), '"id"'),
            (json.dumps({**good, "command": "true"}), "list of strings"), (json.dumps({**good, "env": ["A=1"]}), "object of strings"),
            (json.dumps({"command": ["true"]}), "which project"), (json.dumps({**good, "project": None}), "a string"), ("", "line 1")]
    for text, word in rows:
        d.write(text)
        code, _, error = d.run()
        t.equal(code, NOT_SET_UP, text)
        t.contains(error, word, text)
    for mode in (0o620, 0o602):
        d.write(json.dumps(good), mode)
        t.contains(d.run()[2], "may be written by other accounts", f"mode {mode:o}")
    d.says(["true"])
    t.contains(d.run("--allow", "x.example")[2], "--file says all")
    t.contains(d.run("true")[2], "--file says all")
    os.chmod(os.path.dirname(d.path), 0o777)
    t.contains(d.run()[2], f"put another file there: chmod go-w {os.path.dirname(d.path)}\n")
    os.chmod(os.path.dirname(d.path), 0o1777)
    t.equal(d.run()[0], 0, "in a directory as /tmp")
    for name in ("No-Id.json", "described"):
        os.rename(d.path, t.path(name))
        d.path = t.path(name)
        t.contains(d.run()[2], "named after it", name)


run()
