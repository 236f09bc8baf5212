#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""errandd, all of it, under calls by chance: test-bus-fuzz.py [SECONDS [SEED]]. First of an account that polkit refuses everything: nothing changes.
Then of one that may do everything: everything is answered, and nothing is left behind."""

import contextlib
import hashlib
import os
import re
import shutil
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
import errand_bus  # noqa: E402
import errand_launch  # noqa: E402
import errand_service  # noqa: E402
import errand_test  # noqa: E402
import errand_world  # noqa: E402
from errand_service import MANAGER, ROOT, SESSION, Service  # noqa: E402
from errand_test import case  # noqa: E402

SECONDS = int(sys.argv[1]) if len(sys.argv) > 1 else 0
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else 20260101
CALLS = 0 if SECONDS else 3000
UID = errand_service.ACCOUNT if os.getuid() == 0 else os.getuid()
GROWTH_MAX = 24 * 1024  # KiB; a sanitizer keeps what was freed for a while, and where it was allocated for good
LATE = 5  # seconds in which another client is answered, on a machine that is busy with other tests

errand_world.enter()
errand_world.world()


class Polkit(threading.Thread):
    def __init__(self, service):
        super().__init__(daemon=True)
        self.allow, self.asked = True, 0
        self.bus = errand_service.Client(service.address, timeout=None)
        self.bus.request_name("org.freedesktop.PolicyKit1")
        self.start()

    def run(self):
        with contextlib.suppress(ConnectionError, OSError, ValueError):
            while True:
                m = self.bus.receive()
                if m["kind"] == errand_bus.METHOD and m["member"] == "CheckAuthorization":
                    self.asked += 1
                    self.bus.reply(m, "(bba{ss})", (self.allow, False, {}))


class Errandd(Service):
    program = ("test-polkit-errandd",)

    def __init__(self, t):
        # A start that comes to nothing is told before its caller has waited for too long.
        super().__init__(t, {"sandbox": {"requireFullEnforcement": False, "gracePeriodMs": 1000}, "timeouts": {"startupMs": 8000}})
        self.polkit = Polkit(self)
        self.serve()
        self.owner = errand_bus.MessageBus("org.errand1", "nobody", self.address) if os.getuid() == 0 else self.client()
        t.defer(self.owner.close)

    def start(self, *arguments, environment=None):
        super().start(*arguments, environment={"ASAN_OPTIONS": "quarantine_size_mb=4", **(environment or {})})

    def memory(self):
        with open(f"/proc/{self.errandd.pid}/status", encoding="ascii") as f:
            return int(re.search(r"RssAnon:\s+(\d+) kB", f.read()).group(1))

    def descriptors(self):
        try:
            return len(os.listdir(f"/proc/{self.errandd.pid}/fd"))
        except PermissionError:  # it is not dumpable, and this is no root
            with open(f"/proc/{self.errandd.pid}/status", encoding="ascii") as f:
                return int(re.search(r"FDSize:\s+(\d+)", f.read()).group(1))

    def files(self):
        found = {}
        for top, names, files in os.walk(self.path("home", "errand")):
            for name in names + files:
                path = os.path.join(top, name)
                st = os.lstat(path)
                text = b""
                if name in files and not os.path.islink(path) and os.path.isfile(path):
                    with open(path, "rb") as f:
                        text = f.read()
                found[path] = (oct(st.st_mode), st.st_uid, hashlib.sha256(text).hexdigest())
        return found

    def sessions(self):
        """Everything that is told of each."""
        bus = self.client()
        ids = [s[0] for s in bus.call(ROOT, MANAGER, "ListThreads")[0]]
        return {i: (bus.call(f"{ROOT}/session/{i}", SESSION, "Describe")[0], bus.call(ROOT, MANAGER, "ListGrants", "s", i)[0]) for i in ids}

    def create(self, bus, name, *command, **options):
        values = {"id": ("s", name), "project": ("s", self.path("project")), "command": ("as", list(command)), **options}
        bus.call(ROOT, MANAGER, "CreateSession", "a{sv}", values)

    def fuzz(self, what, calls, seconds, seed):
        """Meanwhile another client is answered."""
        argv = [errand_test.program("test-fuzz-bus"), self.address, str(UID), str(seed), str(seconds or 600), str(calls), what]
        other, slowest = self.client(), 0
        names = self.names(other)
        with subprocess.Popen(argv, stdout=subprocess.PIPE, text=True) as process:
            while process.poll() is None:
                start = time.monotonic()
                other.call(ROOT, "org.freedesktop.DBus.Peer", "Ping")
                slowest = max(slowest, time.monotonic() - start)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(0.1)
            said = process.stdout.read()
        print(f"# seed {seed}, {what}: {said.strip()}; another client waited {slowest * 1000:.0f} ms at most", flush=True)
        self.t.equal(process.returncode, 0, f"the caller's word: {said}")
        self.t.check(slowest < LATE, f"another client waited {slowest} s")
        # That its connections have gone has come to errandd by then, and what it kept for them has gone as well.
        errand_launch.wait_for(lambda: self.names(other) <= names)
        other.call(ROOT, "org.freedesktop.DBus.Peer", "Ping")

    @staticmethod
    def names(client):
        """Of all connections to the bus."""
        return set(client.call_bus("ListNames")[0])

    def leave(self):
        """A sanitizer tells by the exit code what it found, and writes it to the log."""
        self.t.equal(self.terminate(), 0, "errandd's exit code")
        self.t.equal([line for line in self.log().split("\n") if "Sanitizer" in line or "runtime error" in line], [], "what a sanitizer found")


def begin(t):
    service = Errandd(t)
    service.create(service.owner, "a1", "/bin/sleep", "infinity", interactive=("b", True))
    service.create(service.client(), "b2", "/bin/sleep", "infinity")
    agent = service.path("project", "acp-agent")
    shutil.copyfile(errand_test.source("tests", "session", "acp-agent"), agent)
    os.chmod(agent, 0o755)
    service.create(service.owner, "c3", "./acp-agent", protocol=("s", "acp"))
    for name in ("a1", "c3"):
        service.owner.call(f"{ROOT}/session/{name}", SESSION, "Start")
    errand_launch.wait_for(lambda: "waits for a prompt" in service.owner.call(f"{ROOT}/session/c3", SESSION, "Say", "s", "!status")[0])
    service.owner.call(f"{ROOT}/session/a1", SESSION, "Grant", "ss", "one.example.org", "always")
    t.equal(service.owner.call(f"{ROOT}/session/a1", SESSION, "Describe")[0]["State"], "running", "state of a1")
    for name in ("a1", "b2", "c3"):
        service.settled(name)
    return service


@case("C194 C195 C197 C204 D001: calls by chance of an account that may do nothing change nothing", timeout=SECONDS + 120)
def _(t):
    service = begin(t)
    sessions = service.sessions()
    service.polkit.allow = False
    service.fuzz("deny", 300, 0, SEED + 1)  # what is made once, is made
    before = service.memory(), service.descriptors()
    files, units = service.files(), list(service.manager.asked)
    asked = service.polkit.asked
    service.fuzz("deny", CALLS, SECONDS, SEED)
    t.check(service.polkit.asked > asked, "polkit was never asked")
    service.polkit.allow = True
    after = service.memory(), service.descriptors()
    t.equal(service.files(), files, "the state directory")
    t.equal(service.manager.asked, units, "what the service manager was asked")
    t.equal(service.sessions(), sessions, "sessions and grants")
    t.check(after[0] - before[0] < GROWTH_MAX, f"errandd grew by {after[0] - before[0]} KiB to {after[0]} KiB")
    t.equal(after[1], before[1], "its descriptors")
    print(f"# errandd has {after[0]} KiB, {after[0] - before[0]} more than before, and {after[1]} descriptors", flush=True)
    for name in ("a1", "c3"):
        service.owner.call(f"{ROOT}/session/{name}", SESSION, "Stop")
    service.leave()


@case("C194 C195 C204: calls by chance of an account that may do everything are answered, each one", timeout=SECONDS + 120)
def _(t):
    service = begin(t)
    service.fuzz("allow", CALLS, SECONDS, SEED)
    for session, (description, _) in service.sessions().items():
        if description["State"] in ("starting", "running", "stopping"):
            service.client().call(f"{ROOT}/session/{session}", SESSION, "Stop")
        service.client().call(f"{ROOT}/session/{session}", SESSION, "Collect")
    t.equal(service.sessions(), {}, "sessions")
    service.leave()


del sys.argv[1:]  # which are no names of cases
errand_test.run()
