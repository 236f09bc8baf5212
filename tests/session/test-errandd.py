#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""errandd in embedded mode as a whole: its private socket, its children, its end."""

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import errand_test  # noqa: E402
from errand_bus import BusError, Connection  # noqa: E402
from errand_command import Errand  # noqa: E402
from errand_test import case, run  # noqa: E402

MANAGER, SESSION, ROOT = "org.errand1.Manager", "org.errand1.Session", "/org/errand1"
PROVIDERS = {"anthropic": {"baseUrl": "https://192.0.2.1", "credential": "sk-real-0123456789abcdef"}}
PATIENCE = 30  # seconds: a bound for what hangs


def wait_for(t, condition, what):
    until = time.monotonic() + PATIENCE
    while not (found := condition()):
        t.check(time.monotonic() < until, f"waited in vain for {what}")
        time.sleep(0.01)
    return found


class Errandd:
    def __init__(self, t, sandbox=None, config=None):
        self.t = t
        self.state, self.project, self.config = t.path("state"), t.path("project"), t.path("errand.json")
        os.mkdir(self.project)
        if os.getuid() == 0:
            os.chown(self.project, 65534, 65534)
        if config is None:
            config = {"agent": {"providers": PROVIDERS}, "sandbox": {"gracePeriodMs": 500, "egress": {"allow": ["a.example"]}, **(sandbox or {})}}
        with open(self.config, "w", encoding="ascii") as f:
            json.dump(config, f)
        os.chmod(self.config, 0o600)
        self.process = None
        t.log("errandd.log", self.log)

    def start(self):
        environment = {k: v for k, v in os.environ.items() if k not in ("SUDO_UID", "ERRAND_LIBEXEC")}
        self.process = subprocess.Popen([errand_test.program("errandd"), "--embedded", "--state-dir", self.state, "--config", self.config],
                                        stderr=subprocess.PIPE, text=True, env=environment)
        self.t.defer(self.stop)
        self.said = self.process.stderr.read()  # it is closed when the socket listens, or with the process
        if os.path.exists(self.bus_path) and self.process.poll() is None:
            return self
        self.t.fail(f"errandd has not started: {self.said}")

    @property
    def bus_path(self):
        return os.path.join(self.state, ".run/bus")

    def log(self):
        try:
            with open(os.path.join(self.state, ".run/errandd.log"), encoding="utf-8") as f:
                return f.read()
        except OSError:
            return ""

    def stop(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def connect(self):
        bus = Connection(self.bus_path)
        self.t.defer(bus.close)
        bus.call(ROOT, MANAGER, "Subscribe")
        return bus

    def create(self, bus, script, **options):
        values = {"project": ("s", self.project), "command": ("as", ["/bin/sh", "-c", script]), **options}
        return bus.call(ROOT, MANAGER, "CreateSession", "a{sv}", values)[0]

    def children(self):
        """pid → name, of errandd's own children and theirs."""
        parents, names = {}, {}
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    with open(f"/proc/{entry}/stat", encoding="utf-8", errors="replace") as f:
                        text = f.read()
                except OSError:
                    continue
                parents[int(entry)] = int(text.rsplit(")", 1)[1].split()[1])
                names[int(entry)] = text.split("(", 1)[1].rsplit(")", 1)[0]
        found, level = {}, [self.process.pid]
        while level:
            level = [pid for pid, parent in parents.items() if parent in level]
            found |= {pid: names[pid] for pid in level}
        return found


def transcript(bus, session):
    return bus.call(session, SESSION, "ReadTranscript", "tu", 0, 1 << 20)[1].decode()


@case("S042 S043: a session by the bus: created, started, told when it ends, read, collected")
def _(t):
    d = Errandd(t).start()
    bus = d.connect()
    session = d.create(bus, "echo $https_proxy; id -u; exit 5", id=("s", "abc"))
    t.equal(session, ROOT + "/session/abc")
    t.equal(bus.get(session, SESSION, "State"), "created")
    bus.call(session, SESSION, "Start")
    exited = bus.signal("Exited")
    t.equal(exited["body"], ("exited", 5))
    t.equal(bus.get(session, SESSION, "State"), "stopped")
    text = transcript(bus, session)
    t.matches(text, r"^http://errand:\[redacted\]@127\.0\.0\.1:[23]\d{4}\n")
    t.equal(text.splitlines()[1], str(65534 if os.getuid() == 0 else os.getuid()))
    bus.call(session, SESSION, "Collect")
    t.equal(bus.call(ROOT, MANAGER, "ListThreads"), ([],))
    t.equal([n for n in os.listdir(d.state) if not n.startswith((".", "receipts.db"))], [])


@case("S184: the report is there in words, and embedded mode's gaps with it")
def _(t):
    bus = Errandd(t).start().connect()
    report = bus.get(ROOT, MANAGER, "Report")
    t.equal(report[0], "sandbox backend: bailey")
    t.check(any("requireFullEnforcement is false" in line for line in report), report)
    gaps = bus.get(ROOT, MANAGER, "Gaps")
    t.contains(gaps[0], "reports no cgroup delegation")
    t.equal(any("under one account" in g for g in gaps), os.getuid() != 0)


@case("C008 C200: errandd is killed: its session ends, is lost for the next one, which takes over at once")
def _(t):
    d = Errandd(t).start()
    bus = d.connect()
    session = d.create(bus, "echo up; sleep 1000", id=("s", "k"))
    bus.call(session, SESSION, "Start")
    family = d.children()
    t.equal(sorted(set(family.values()) & {"errand-launch", "errand-broker", "errand-shim", "bailey"}),
            ["bailey", "errand-broker", "errand-launch", "errand-shim"])
    d.process.kill()
    d.process.wait()
    d.start()
    bus = d.connect()
    t.equal(bus.get(session, SESSION, "State"), "failed")
    t.equal(bus.call(session, SESSION, "Describe")[0]["ExitReason"], "lost")
    wait_for(t, lambda: not any(os.path.exists(f"/proc/{pid}") for pid in family), "the end of what it had started")
    bus.call(session, SESSION, "Start")
    bus.call(session, SESSION, "Stop")
    t.equal(bus.get(session, SESSION, "State"), "stopped")


@case("C081: launcher, broker, shim and agent are killed in turn; nothing hangs, all is told, the next run works")
def _(t):
    d = Errandd(t).start()
    bus = d.connect()
    session = d.create(bus, "sleep 1000", id=("s", "k"))

    def pid_of(name, old=()):
        return next((pid for pid, n in d.children().items() if n == name and pid not in old), None)

    def start():
        """→ what was there before: of a run that is over something may be left for a moment."""
        before = set(d.children())
        bus.call(session, SESSION, "Start")
        return before

    start()
    launcher = pid_of("errand-launch")
    os.kill(launcher, signal.SIGKILL)
    wait_for(t, lambda: pid_of("errand-launch", {launcher}), "a new launcher")
    t.equal(bus.get(session, SESSION, "State"), "running")
    bus.call(session, SESSION, "Stop")

    before = start()
    os.kill(pid_of("errand-broker", before), signal.SIGKILL)
    notice = bus.signal("Notice", lambda m: m["body"][0] == "broker")
    t.contains(notice["body"][1], "no way out any more")
    bus.call(session, SESSION, "Stop")

    bus.signals.clear()
    before = start()
    os.kill(pid_of("errand-shim", before), signal.SIGKILL)
    t.equal(bus.signal("Exited")["body"][0], "lost")
    t.equal(bus.get(session, SESSION, "State"), "failed")

    before = start()
    # "running" is said when all is made and the command about to be executed.
    os.kill(wait_for(t, lambda: pid_of("sleep", before), "the command"), signal.SIGKILL)
    t.equal(bus.signal("Exited")["body"][1], 137)
    t.equal(bus.get(session, SESSION, "State"), "stopped")


@case("S183: a second errandd on one state directory leaves with 4; three mistakes are three messages and 2; a gap not accepted is 3")
def _(t):
    d = Errandd(t).start()

    def errandd(config, state):
        with open(t.path("other.json"), "w", encoding="ascii") as f:
            json.dump(config, f)
        os.chmod(t.path("other.json"), 0o600)
        return subprocess.run([errand_test.program("errandd"), "--embedded", "--state-dir", state, "--config", t.path("other.json")],
                              stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False)

    second = errandd({}, d.state)
    t.equal(second.returncode, 4)
    t.contains(second.stderr, f"another errandd (pid {d.process.pid}) serves")
    wrong = errandd({"sandbx": 1, "sandbox": {"memory": "much"}, "operators": 5}, t.path("elsewhere"))
    t.equal(wrong.returncode, 2)
    t.equal(len(wrong.stderr.splitlines()), 3, wrong.stderr)
    full = errandd({"sandbox": {"requireFullEnforcement": True}}, t.path("elsewhere"))
    t.equal(full.returncode, 3)
    t.contains(full.stderr, "1 guarantee(s) cannot" if os.getuid() == 0 else "2 guarantee(s) cannot")


@case("T: an errandd that leaves at the moment that it is called is no error: another one is started")
def _(t):
    errand = Errand(t)
    errand.good("run", "--embedded", "-q", "true")
    errand.end_daemon()
    bus = os.path.join(errand.state, ".run", "bus")
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as leaves:
        leaves.bind(bus)
        os.chmod(bus, 0o600)
        leaves.listen()

        def leave():
            connection, _ = leaves.accept()
            os.unlink(bus)
            connection.close()
        thread = threading.Thread(target=leave)
        thread.start()
        t.equal(errand.run("run", "--embedded", "-q", "echo", "it runs"), (0, "it runs\n", ""), "what is run")
        thread.join()


@case("what cannot be set up says why, and the session is failed")
def _(t):
    d = Errandd(t, {"policyExtra": {"write": ["/proc"]}}).start()
    bus = d.connect()
    session = d.create(bus, "true")
    try:
        bus.call(session, SESSION, "Start")
        t.fail("it has started")
    except BusError as e:
        t.equal(e.name, "org.errand1.Error.SetupFailed")
        t.contains(e.text, "/proc is made by bailey itself")
    t.equal(bus.get(session, SESSION, "State"), "failed")


@case("a project that the payload's account cannot write is refused with a sentence")
def _(t):
    d = Errandd(t).start()
    bus = d.connect()
    os.chmod(d.project, 0o555)
    if os.getuid() == 0:
        os.chown(d.project, 0, 0)
    session = d.create(bus, "true")
    try:
        bus.call(session, SESSION, "Start")
        t.fail("it has started")
    except BusError as e:
        t.contains(e.text, "cannot read and write the project")
    t.equal(bus.get(session, SESSION, "State"), "created")


@case("C063: as root, launcher, shim and payload have one account, each broker one of its own, and none is root's", timeout=60)
def _(t):
    if os.getuid() != 0:
        t.check(True)
        t.note("an ordinary account has one account for all of them, and its report says so")
        return
    d = Errandd(t).start()
    bus = d.connect()
    for name in ("a", "b"):
        bus.call(d.create(bus, "sleep 1000", id=("s", name)), SESSION, "Start")
    wait_for(t, lambda: list(d.children().values()).count("sleep") == 2, "both commands")
    uids = {}
    for pid, name in d.children().items():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # the launcher's forks come and go
            uids.setdefault(name, []).append(_uid(pid))
    for name in ("errand-launch", "errand-shim", "bailey", "sleep"):
        t.equal(set(uids[name]), {65534}, name)
    t.equal(len(set(uids["errand-broker"])), 2)
    t.check(not set(uids["errand-broker"]) & {0, 65534}, uids)


def _uid(pid):
    with open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("Uid:"))


@case("S043 C190: no secret is on disk, in an argv, or in an environment but the session's own")
def _(t):
    d = Errandd(t).start()
    bus = d.connect()
    session = d.create(bus, "env > seen; echo up; sleep 1000", id=("s", "a"))
    bus.call(session, SESSION, "Start")
    wait_for(t, lambda: "up" in transcript(bus, session), "its first word")
    with open(os.path.join(d.project, "seen"), encoding="utf-8") as f:
        seen = f.read()
    t.contains(seen, "ANTHROPIC_API_KEY=errand-session-")
    t.lacks(seen, "sk-real-")
    minted = {word for word in seen.replace("@", ":").replace("=", ":").replace("\n", ":").split(":") if word.startswith("errand-session-")}
    t.equal(len(minted), 2)
    bus.call(session, SESSION, "Grant", "ss", "b.example", "10m")
    for pid in [d.process.pid, *d.children()]:
        for name in ("cmdline", "environ"):
            try:
                with open(f"/proc/{pid}/{name}", "rb") as f:
                    data = f.read()
            except OSError:
                continue
            t.check(b"sk-real-" not in data, f"{name} of {pid}")
            if name == "cmdline":
                t.check(b"errand-session-" not in data, f"{name} of {pid}")
    for directory, _, names in os.walk(d.state):
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path):
                with contextlib.suppress(FileNotFoundError), open(path, "rb") as f:  # one that is put in another's place
                    data = f.read()
                    t.check(b"sk-real-" not in data and b"errand-session-" not in data, path)


# Is refused a host, calls the provider without its stand-in, says so, and stays.
CALLER = """
import os, socket, sys, time, urllib.error, urllib.parse, urllib.request
proxy = urllib.parse.urlsplit(os.environ["https_proxy"])
import base64
user = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
s = socket.create_connection((proxy.hostname, proxy.port))
s.sendall(f"CONNECT b.example:443 HTTP/1.1\\r\\nHost: b.example:443\\r\\nProxy-Authorization: Basic {user}\\r\\n\\r\\n".encode())
print(s.recv(4096).split(b" ")[1].decode())
try:
    urllib.request.urlopen(urllib.request.Request(os.environ["ERRAND_PROVIDER_ANTHROPIC_URL"] + "/v1/x", b"{}", {"x-api-key": "wrong"}))
except urllib.error.HTTPError as e:
    print(e.code, flush=True)
time.sleep(1000)
"""


@case("S052 S056 C192 C200: refusals are told and counted; a receipt a second old outlives errandd and broker, once")
def _(t):
    d = Errandd(t).start()
    bus = d.connect()
    values = {"id": ("s", "r"), "project": ("s", d.project), "command": ("as", ["/usr/bin/python3", "-c", CALLER])}
    (session,) = bus.call(ROOT, MANAGER, "CreateSession", "a{sv}", values)
    bus.call(session, SESSION, "Start")
    t.equal(bus.signal("EgressRefused")["body"], ("b.example", 443, 1))
    wait_for(t, lambda: "401" in transcript(bus, session), "the provider's answer")
    t.equal(transcript(bus, session).split(), ["403", "401"])
    t.equal(bus.get(session, SESSION, "RefusedCount"), 1)

    def receipts():
        return bus.call(ROOT, MANAGER, "ListReceipts", "a{sv}", {})[0]

    first = wait_for(t, receipts, "its receipt")  # the broker puts it on disk within a second
    t.equal([(r["Session"], r["Provider"], r["Outcome"], r["Status"]) for r in first], [("r", "anthropic", "denied", 401)])
    d.process.kill()
    d.process.wait()
    os.unlink(os.path.join(d.state, "receipts.db"))
    d.start()
    bus = d.connect()
    t.equal([(r["Session"], r["Outcome"]) for r in receipts()], [("r", "denied")])
    t.equal(bus.get(session, SESSION, "RefusedCount"), 1)
    bus.call(session, SESSION, "Collect")
    t.equal(receipts(), [])


@case("S180: no single file may exceed fileMax")
def _(t):
    d = Errandd(t, {"fileMax": "64k"}).start()
    bus = d.connect()
    script = ("import os; f = open('big', 'wb', buffering=0); print(f.write(b'x' * 65536))\n"
              "try: f.write(b'y'); print('written')\nexcept OSError as e: print(e.strerror)")
    values = {"project": ("s", d.project), "command": ("as", ["/usr/bin/python3", "-c", script])}
    (session,) = bus.call(ROOT, MANAGER, "CreateSession", "a{sv}", values)
    bus.call(session, SESSION, "Start")
    bus.signal("Exited")
    t.equal(transcript(bus, session).split("\n")[:2], ["65536", "File too large"])
    t.check(any("exceed 64k" in line for line in bus.get(ROOT, MANAGER, "Report")))


@case("errandd leaves when neither client nor session is left, and its socket with it", timeout=60)
def _(t):
    d = Errandd(t).start()
    d.connect().close()
    t.equal(d.process.wait(PATIENCE), 0)
    t.check(not os.path.exists(d.bus_path))


@case("SIGTERM: every session is stopped before errandd leaves")
def _(t):
    d = Errandd(t).start()
    bus = d.connect()
    session = d.create(bus, "trap '' TERM; echo deaf; while :; do sleep 0.1; done", id=("s", "a"))
    bus.call(session, SESSION, "Start")
    wait_for(t, lambda: "deaf" in transcript(bus, session), "the command to ignore the signal")
    d.process.terminate()
    t.equal(d.process.wait(PATIENCE), 0)
    with open(os.path.join(d.state, ".records/a/session.json"), encoding="utf-8") as f:
        record = json.load(f)
    t.equal((record["state"], record["exitReason"]), ("stopped", "killed"))


run()
