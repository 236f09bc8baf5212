#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""errand monitor: what happens to sessions, a line each, for people and for programs."""

import json
import os
import pwd
import queue
import signal
import threading

import errand_world
from errand_command import Errand, wait_for
from errand_service import Service, Sessions
from errand_test import Failure, case, run

errand_world.enter()
errand_world.world()


class Monitor:
    """A running errand monitor."""

    def __init__(self, t, errand, *arguments, **options):
        self.t = t
        self.process = errand.start("monitor", *arguments, **options)
        self.lines = queue.Queue()
        self.seen = []
        t.log("the monitor's lines", lambda: "".join(self.seen))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.seen.append(line.decode())
            self.lines.put(line.decode())
        self.lines.put(None)

    def line(self):
        """The next one."""
        try:
            line = self.lines.get(timeout=20)
        except queue.Empty:
            line = None
        if line is None:
            raise Failure("no line came")
        return line

    def texts(self, n):
        """What the next lines tell, without their time."""
        return [self.line()[21:].rstrip("\n") for _ in range(n)]

    def events(self, n):
        """The same as objects, without their time."""
        found = [json.loads(self.line()) for _ in range(n)]
        for event in found:
            self.t.check(event.pop("timeUSec") > 1e15, "a time")
        return found


REFUSED = ["python3", "-c", "import sys, urllib.request\n"
           "try: urllib.request.urlopen('https://blocked.example/')\n"
           "except OSError as e: sys.exit(3 if '403' in str(e) else 4)"]


@case("T D008: a session's life, its grants and refusals are told as they happen, and to programs as JSON, and only of those asked for")
def _(t):
    errand = Errand(t)
    errand.good("run", "--embedded", "-q", "true")
    text, objects, other = Monitor(t, errand), Monitor(t, errand, "--json"), Monitor(t, errand, "--json", "m2")
    t.contains(text.line(), "live sessions: 0")
    t.equal([monitor.events(1)[0]["event"] for monitor in (objects, other)], ["listening"] * 2, "the first line")
    me = pwd.getpwuid(os.getuid()).pw_name
    errand.good("session", "create", "--id", "m1", "--allow", "api.example.com", "--", "sh", "-c", "until [ -e go ]; do sleep 0.01; done; exec \"$@\"", "sh", *REFUSED)
    errand.good("session", "start", "m1")
    errand.good("grant", "m1", "api.example.com", "10m")
    errand.good("revoke", "m1", "1")
    with open(os.path.join(errand.project, "go"), "wb"):
        pass
    errand.await_state("m1", "stopped")
    errand.good("threads", "rm", "m1")
    t.equal(text.texts(9), [f"m1        {line}" for line in (
        f"new session of {me}, created", "starting", "running", f"granted by {me}: api.example.com, 10m (grant 1)", "grant 1 to api.example.com is over",
        "refused: blocked.example, port 443", "stopped", "exited with 3", "its record was removed")], "the lines")
    found = objects.events(9)
    t.equal([e["event"] for e in found], ["new", "state", "state", "granted", "grant-over", "refused", "state", "exited", "removed"], "the events")
    t.equal({e["session"] for e in found}, {"m1"}, "whose they are")
    t.equal([found[i]["state"] for i in (0, 1, 2, 6)], ["created", "starting", "running", "stopped"], "the states")
    t.equal({k: found[3][k] for k in ("number", "host", "duration", "grantedByUid")},
            {"number": 1, "host": "api.example.com", "duration": "10m", "grantedByUid": os.getuid()}, "the grant")
    t.equal((found[5]["host"], found[5]["port"], found[5]["count"]), ("blocked.example", 443, 1), "what was refused")
    t.equal((found[7]["reason"], found[7]["status"]), ("exited", 3), "how it ended")
    errand.run("run", "--id", "m2", "no-such-program")
    ended = [e for e in other.events(4) if e["event"] == "exited"][0]
    t.equal((ended["session"], ended["reason"], ended["status"]), ("m2", "setup", 127), "the one that was asked for")
    t.contains(ended["text"], "no-such-program", "why")
    text.process.send_signal(signal.SIGINT)
    t.equal(text.process.wait(), -signal.SIGINT, "Ctrl-C")


@case("T D008: a monitor of an errandd of one's own waits for the next one, and says so")
def _(t):
    errand = Errand(t)
    errand.good("session", "create", "--embedded", "--id", "m1", "--", "sleep", "100")
    errand.good("session", "start", "m1")
    monitor = Monitor(t, errand, "--json")
    t.equal((first := monitor.events(1)[0])["event"], "listening", "the first line")
    t.equal(first["live"], 1, "sessions")
    os.kill(errand.daemon_pid(), signal.SIGKILL)
    t.equal(monitor.events(1), [{"event": "errandd-gone"}], "what is told")
    wait_for(lambda: not errand.daemon_pid())
    errand.good("threads", "list", "--embedded")
    t.equal(monitor.events(2), [{"event": "errandd-back"}, {"event": "state", "session": "m1", "state": "failed"}], "what is told")
    errand.good("threads", "rm", "m1")
    t.equal(monitor.events(1), [{"event": "removed", "session": "m1"}], "what is told")
    t.equal(errand.run("monitor", "Not-An-Id")[0], 3, "the exit code")


@case("T D008 C200: a monitor on a message bus goes on over a restart of errandd, tells of it, and of what happened meanwhile")
def _(t):
    service = Service(t)
    sessions = Sessions(service)
    sessions.serve()
    sessions.start("m1", "sleep", "100")
    sessions.create("m2", "true")
    errand = Errand(t)
    errand.environment |= {"DBUS_SESSION_BUS_ADDRESS": f"unix:path={service.address}"}
    monitor = Monitor(t, errand, "--user", "--json")
    t.equal(monitor.events(1)[0]["event"], "listening", "the first line")
    service.kill()
    t.equal(monitor.events(1), [{"event": "errandd-gone"}], "what is told")
    for shim in service.shims():
        os.kill(shim, signal.SIGKILL)
    sessions.serve()
    t.equal(monitor.events(2), [{"event": "errandd-back"}, {"event": "state", "session": "m1", "state": "failed"}], "what is told")
    sessions.call("m2", "Start")
    t.equal([e["event"] for e in monitor.events(4)], ["state", "state", "state", "exited"], "what is told")
    service.terminate()
    t.equal(monitor.events(1), [{"event": "errandd-gone"}], "what is told")
    sessions.serve()
    process = errand.start("monitor", "--user")
    t.contains(process.stdout.readline().decode(), "errandd", "the first line")
    process.stdout.close()
    t.equal(process.wait(20), 0, "the code when the reader went away")


run()
