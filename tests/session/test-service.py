# SPDX-License-Identifier: LGPL-2.1-or-later
"""errandd as a service on a message bus: what outlives it, and what it finds again."""

import contextlib
import json
import os
import signal
import socket
import sqlite3

import errand_bus
import errand_launch
import errand_world
from errand_service import ASK, BrokerUnit, MANAGER, ROOT, SESSION, Service, Sessions, answer_of, ask, begin
from errand_test import case, run

errand_world.enter()
errand_world.world()

def wait_state(sessions, name, *state):
    errand_launch.wait_for(lambda: sessions.state(name)[:len(state)] == state)


@case("D004: a session on a message bus, its broker by units, its end by Stop")
def whole(t):
    service, s = begin(t)
    t.equal(s.create("a1", "sh", "-c", "echo hello; sleep 1000"), f"{ROOT}/session/a1")
    s.call("a1", "Start")
    d = s.describe("a1")
    t.equal((d["State"], d["BrokerUnit"], d["ScopeUnit"]), ("running", "errand-broker@a1.service", ""), "description")
    errand_launch.wait_for(lambda: s.transcript("a1") == "hello\n")
    t.equal(service.manager.asked, [("StartUnit", "errand-broker@a1.socket")], "jobs")
    s.call("a1", "Stop")
    t.equal(s.state("a1"), ("stopped", "signal", 143), "state")
    t.equal(service.manager.asked[1:], [("StopUnit", "errand-broker-control@a1.socket"), ("StopUnit", "errand-broker@a1.socket"),
                                        ("StopUnit", "errand-broker@a1.service")], "jobs")
    t.equal(s.describe("a1")["BrokerUnit"], "", "unit of an ended session")
    t.equal([os.listdir(service.runtime(n)) for n in ("broker", "session", "shim")], [[], [], []], "sockets")
    s.call("a1", "Start")  # resumed
    t.equal(s.state("a1")[0], "running", "state")
    t.equal(service.terminate(), 0, "exit code")


def test_away(t, end):
    service, s = begin(t)
    s.start("a1", "/usr/bin/python3", "-c", ASK)
    t.equal(ask(service, "denied.example.org"), "403", "before")
    s.call("a1", "Grant", "ss", "one.example.org", "always")
    t.equal(ask(service, "one.example.org"), "502", "granted")
    before = s.describe("a1")
    end(service)
    t.equal(ask(service, "one.example.org"), "502", "without errandd")
    t.equal(ask(service, "denied.example.org"), "403", "without errandd")
    s.serve()
    after = s.describe("a1")
    t.equal([(n, after[n]) for n in before if n not in ("RefusedCount",)], [(n, before[n]) for n in before if n not in ("RefusedCount",)], "description")
    errand_launch.wait_for(lambda: s.describe("a1")["RefusedCount"] == 2)
    t.equal([g[1:3] for g in s.bus.call(ROOT, MANAGER, "ListGrants", "s", "a1")[0]], [("one.example.org", "always")], "grants")
    # What is granted now reaches the broker, what was is there still, and what is revoked goes.
    s.call("a1", "Grant", "ss", "two.example.org", "always")
    t.equal([ask(service, h) for h in ("two.example.org", "one.example.org", "denied.example.org")], ["502", "502", "403"], "answers")
    s.bus.call(f"{ROOT}/grant/a1/1", "org.errand1.Grant", "Revoke")
    t.equal(ask(service, "one.example.org"), "403", "revoked")
    s.call("a1", "Stop")
    t.equal(s.state("a1"), ("stopped", "signal", 143), "state")
    t.equal(s.describe("a1")["RefusedCount"], 4, "refused")
    s.call("a1", "Collect")
    t.equal([os.listdir(service.runtime(n)) for n in ("broker", "session", "shim")], [[], [], []], "sockets")


@case("S131: a host that was granted is let through from the first moment that the session runs again")
def granted_before(t):
    service, s = begin(t)
    s.create("a1", "/usr/bin/python3", "-c", ASK)
    for answer in ("403", "502"):
        with open(service.path("project", "ask-one.example.org"), "w", encoding="ascii"):
            pass
        s.call("a1", "Start")
        t.equal(answer_of(service, "one.example.org"), answer, "the answer")
        if answer == "403":
            s.call("a1", "Grant", "ss", "one.example.org", "always")
        s.call("a1", "Stop")


@case("S131: a session with as many grants as there may be, of the longest hosts, starts again, and has them all, also for the next errandd")
def granted_many(t):
    service, s = begin(t)
    s.create("a1", "/usr/bin/python3", "-c", ASK)
    s.call("a1", "Start")
    s.call("a1", "Grant", "ss", "one.example.org", "always")
    s.call("a1", "Stop")
    t.equal(service.terminate(), 0, "exit code")
    path = service.path("home", "errand", ".records", "a1", "grants.json")
    with open(path, encoding="ascii") as f:
        kept = json.load(f)
    (one,) = kept["grants"]
    tail = ".".join(["x" * 63] * 3)
    hosts = ["first.example.org", *(f"{n:04}{'y' * 57}.{tail}" for n in range(2, 1024)), "last.example.org"]
    with open(path, "w", encoding="ascii") as f:
        json.dump({**kept, "last": 1024, "grants": [{**one, "number": n, "host": host} for n, host in enumerate(hosts, 1)]}, f)
    s.serve()
    s.call("a1", "Start")
    for _ in range(2):
        t.equal([ask(service, h) for h in ("first.example.org", "last.example.org", "denied.example.org")], ["502", "502", "403"], "answers")
        t.equal(len(s.bus.call(ROOT, MANAGER, "ListGrants", "s", "a1")[0]), 1024, "grants")
        service.kill()
        s.serve()
    t.lacks(service.log(), "refused a change of grants", "log")
    t.lacks(service.log(), "cannot be told", "log")
    s.call("a1", "Stop")


@case("C200 C206: Kill and Resize are answered when their shim has done it, and not before")
def asked(t):
    service, s = begin(t)
    s.start("a1", "sh", "-c", "trap 'echo size $(stty size)' USR1; echo here; while :; do sleep 0.01; done", interactive=("b", True))
    errand_launch.wait_for(lambda: "here" in s.transcript("a1"))
    (shim,) = service.shims()
    path = f"{ROOT}/session/a1"
    for member, signature, *values in (("Resize", "qq", 33, 99), ("Kill", "i", signal.SIGUSR1)):
        os.kill(shim, signal.SIGSTOP)
        try:
            serial = s.bus.send(path, SESSION, member, signature, *values)
            # Calls of one client are taken in their order: were it answered at once, that answer would be there first.
            other = s.bus.send(path, SESSION, "Describe")
            m = s.bus.await_reply(serial, other)
            t.equal(m["reply_serial"], other, f"which is answered first while the shim does nothing about {member}")
        finally:
            os.kill(shim, signal.SIGCONT)
        t.equal(s.bus.await_reply(serial)["kind"], 2, f"the answer to {member}")
    errand_launch.wait_for(lambda: "size 33 99" in s.transcript("a1"))
    s.call("a1", "Kill", "i", signal.SIGKILL)
    wait_state(s, "a1", "stopped")
    try:
        s.call("a1", "Kill", "i", signal.SIGUSR1)
        t.fail("a session that has ended took a signal")
    except errand_bus.BusError as e:
        t.equal(e.name, "org.errand1.Error.WrongState", e.text)


@case("C200: a session goes on while errandd is restarted, and is the same")
def restarted(t):
    test_away(t, Service.terminate)


@case("C200: a session goes on when errandd is killed, and is found again")
def killed(t):
    test_away(t, Service.kill)


@case("C200 C206: a terminal is attached to again after errandd was killed")
def terminal(t):
    service, s = begin(t)
    s.start("a1", "sh", "-c", "while read word; do echo \"got $word\"; done", interactive=("b", True))

    def say(word):
        fd = s.call("a1", "Attach", "a{sv}", {})[0]
        with socket.socket(fileno=fd) as end:
            end.settimeout(20)
            end.sendall(f"{word}\r".encode())
            text = b""
            while f"got {word}".encode() not in text:
                text += end.recv(4096)
    say("one")
    service.kill()
    s.serve()
    say("two")
    s.call("a1", "Resize", "qq", 30, 90)
    s.call("a1", "Kill", "i", signal.SIGKILL)
    wait_state(s, "a1", "stopped")


@case("C200 C206: how a session ended while there was no errandd is read from its record")
def ended_away(t):
    service, s = begin(t)
    s.start("a1", "sh", "-c", "while [ ! -e go ]; do sleep 0.01; done; echo last; exit 7")
    s.start("a2", "sleep", "1000", network=("s", "none"))
    service.kill()
    with open(service.path("project", "go"), "w", encoding="ascii"):
        pass
    errand_launch.wait_for(lambda: '"exited"' in service.record("a1", "events"))
    errand_launch.wait_for(lambda: len(service.shims()) == 1)
    s.serve()
    wait_state(s, "a1", "stopped", "exited", 7)
    t.equal(s.transcript("a1"), "last\n", "transcript")
    t.check(s.describe("a1")["EndedUSec"] <= json.loads(service.record("a1", "events").splitlines()[-1])["time"] + 1)
    t.equal(s.state("a2")[0], "running", "the other one")
    service.manager.wait_asked("StopUnit", "errand-broker@a1.service")


@case("C200: a session whose shim was killed while there was no errandd is lost, and its broker goes")
def lost(t):
    service, s = begin(t)
    s.start("a1", "sleep", "1000")
    service.kill()
    for pid in service.shims():
        os.kill(pid, signal.SIGKILL)
    errand_launch.wait_for(lambda: not service.shims())
    s.serve()
    wait_state(s, "a1", "failed", "lost", 137)
    service.manager.wait_asked("StopUnit", "errand-broker@a1.service")
    errand_launch.wait_for(lambda: not os.listdir(service.runtime("session")))
    s.call("a1", "Start")
    t.equal(s.state("a1")[0], "running", "started again")


@case("C200: a process of its own in the place of a shim's socket is no shim")
def stand_in(t):
    service, s = begin(t)
    s.start("a1", "sleep", "1000")
    service.kill()
    for pid in service.shims():
        os.kill(pid, signal.SIGKILL)
    errand_launch.wait_for(lambda: not service.shims())
    if os.getuid() != 0:
        t.skip("only root can give a test a second account")
    os.unlink(service.runtime("shim", "a1"))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.bind(service.runtime("shim", "a1"))
        os.chmod(service.runtime("shim", "a1"), 0o666)
        other.listen(4)
        s.serve()
        wait_state(s, "a1", "failed", "lost", 137)
    t.contains(service.log(), "another account's process listens")


@case("C200: a session that was being stopped is stopped by the next errandd")
def stopping(t):
    service, s = begin(t, config={"sandbox": {"requireFullEnforcement": False, "gracePeriodMs": 60000}})
    s.start("a1", "sh", "-c", "trap 'while [ ! -e go ]; do sleep 0.01; done; exit 5' TERM; echo ready; while :; do sleep 0.01; done")
    errand_launch.wait_for(lambda: s.transcript("a1") == "ready\n")
    s.bus.send(f"{ROOT}/session/a1", "org.errand1.Session", "Stop")
    other = service.client()
    errand_launch.wait_for(lambda: other.get(f"{ROOT}/session/a1", "org.errand1.Session", "State") == "stopping")
    service.kill()
    s.serve()
    t.equal(s.state("a1")[0], "stopping", "state")
    with open(service.path("project", "go"), "w", encoding="ascii"):
        pass
    wait_state(s, "a1", "stopped", "exited", 5)


@case("C200: a session that was being started is undone by the next errandd")
def half_made(t):
    service, s = begin(t)
    service.manager.hold = "errand-broker@a1.socket"
    s.create("a1", "touch", "ran")
    s.bus.send(f"{ROOT}/session/a1", "org.errand1.Session", "Start")
    errand_launch.wait_for(lambda: service.manager.held)
    service.kill()
    service.manager.hold = None
    s.serve()
    wait_state(s, "a1", "failed", "setup", 125)
    service.manager.wait_asked("StopUnit", "errand-broker-control@a1.socket")
    service.manager.wait_asked("StopUnit", "errand-broker@a1.socket")
    errand_launch.wait_for(lambda: not os.listdir(service.runtime("broker")))
    t.equal(os.listdir(service.path("project")), [], "what ran")
    s.call("a1", "Start")
    wait_state(s, "a1", "stopped", "exited", 0)


@case("C200: a launch that was on its way when errandd was killed runs nothing that nobody knows of")
def launch_on_its_way(t):
    service, s = begin(t)
    s.create("a1", "sh", "-c", "echo ran; sleep 1000")
    os.kill(service.launcher.pid, signal.SIGSTOP)
    s.bus.send(f"{ROOT}/session/a1", "org.errand1.Session", "Start")
    errand_launch.wait_for(lambda: "set up with" in service._read("broker.log"))
    errand_launch.wait_for(lambda: os.path.exists(service.path("home", "errand", ".records", "a1", "events")))
    service.kill()
    os.kill(service.launcher.pid, signal.SIGCONT)
    s.serve()
    # Undone by its launcher, or by errandd if there was a shim already; what had begun by then is no start any more, and is found running.
    errand_launch.wait_for(lambda: s.state("a1")[0] in ("failed", "running"))
    if s.state("a1")[0] == "running":
        t.equal(len(service.shims()), 1, "shims")
        s.call("a1", "Stop")
        wait_state(s, "a1", "stopped")
    errand_launch.wait_for(lambda: not service.shims())


@case("C200 S208: a start whose command had begun when errandd was killed is found running, and watched as every other")
def start_come_through(t):
    service, s = begin(t, config={"sandbox": {"requireFullEnforcement": False, "gracePeriodMs": 1000, "disk": "8m", "diskCheckMs": 200}})
    s.start("a1", "sh", "-c", "while ! test -e go; do sleep 0.05; done; head -c 24M /dev/urandom >~/big; sleep 1000")
    service.settled("a1")
    service.kill()
    path = service.path("home", "errand", ".records", "a1", "session.json")
    with open(path, "r+", encoding="utf-8") as f:  # as it was before the shim's line was read
        record = json.load(f)
        record.update(state="starting", started=0, eventsLength=0)
        f.seek(0)
        f.truncate()
        json.dump(record, f, separators=(",", ":"))
    s.serve()
    t.equal(s.state("a1")[0], "running", "state")
    with open(service.path("project", "go"), "w", encoding="ascii"):
        pass
    wait_state(s, "a1", "stopped", "disk", 143)


@case("C200 S208: a session keeps the limits that it was started with, whatever is configured when errandd finds it again", timeout=60)
def kept_limits(t):
    sandbox = {"requireFullEnforcement": False, "gracePeriodMs": 1000, "disk": "8m", "diskCheckMs": 200}
    service, s = begin(t, config={"sandbox": sandbox})
    s.start("a1", "sh", "-c", f"mkfifo go; read line <go; head -c {24 << 20} /dev/urandom >big; sleep 1000")
    service.configure({"sandbox": {**sandbox, "disk": "4g"}, "timeouts": {"idleMs": 1000}})
    service.kill()
    s.serve()
    s.start("a2", "sleep", "1000")
    errand_launch.wait_for(lambda: s.state("a2")[:2] == ("stopped", "idle"))
    t.equal(s.state("a1")[0], "running", "the one without a limit to idling")
    with open(service.path("project", "go"), "w", encoding="ascii") as f:
        f.write("go\n")
    errand_launch.wait_for(lambda: s.state("a1")[:2] == ("stopped", "disk"))


@case("C200: a broker that comes back without its keys is told, and the session has no way out")
def broker_lost(t):
    service, s = begin(t)
    s.start("a1", "/usr/bin/python3", "-c", ASK)
    s.bus.call(ROOT, MANAGER, "Subscribe")
    unit = service.manager.units["a1"]
    unit.process.kill()
    notice = s.bus.signal("Notice")
    t.equal(notice["body"][0], "broker", "kind")
    t.contains(notice["body"][1], "it came back without its keys")
    with contextlib.suppress(errand_bus.BusError):
        s.call("a1", "Grant", "ss", "one.example.org", "once")
        t.fail("a host was granted to a session without a broker")
    t.equal(s.state("a1")[0], "running", "state")
    service.manager.wait_asked("StopUnit", "errand-broker@a1.service")
    s.call("a1", "Stop")


@case("C200: a broker that was stopped while there was no errandd is told by the next one")
def broker_away(t):
    service, s = begin(t)
    s.start("a1", "/usr/bin/python3", "-c", ASK)
    service.kill()
    service.manager.units["a1"].close()
    s.serve()
    errand_launch.wait_for(lambda: "cannot be brought back" in service.log())
    t.equal(s.state("a1")[0], "running", "state")
    s.call("a1", "Stop")
    t.equal(s.state("a1")[0], "stopped", "state")


@case("S120: without its broker's units nothing runs, and why is said")
def unit_refused(t):
    service, s = begin(t)

    def fails(name, words):
        s.create(name, "touch", "ran")
        try:
            s.call(name, "Start")
            t.fail("it was started")
        except errand_bus.BusError as error:
            t.contains(error.text, words)
        t.equal(s.state(name), ("failed", "setup", 125), "state")
    service.manager.refuse = "errand-broker@a1"
    fails("a1", "errand.rules")
    service.manager.refuse, service.manager.fail = None, "errand-broker-control@a2"
    fails("a2", "errand-broker@a2.socket cannot be started: a unit that it needs failed")
    t.equal(os.listdir(service.path("project")), [], "what ran")
    errand_launch.wait_for(lambda: [os.listdir(service.runtime(n)) for n in ("broker", "session", "shim")] == [[], [], []])


@case("C200: sessions go on without their launcher, and it is there again when it is needed")
def launcher_killed(t):
    service, s = begin(t)
    s.start("a1", "sleep", "1000")
    service.launcher.kill()
    service.launcher.wait()
    s.bus.send(f"{ROOT}/session/a1", "org.errand1.Session", "Describe")
    service.start_launcher()
    s.start("a2", "sleep", "1000")
    t.equal([s.state(n)[0] for n in ("a1", "a2")], ["running", "running"], "states")
    s.call("a1", "Stop")
    s.call("a2", "Stop")
    t.equal([s.state(n)[0] for n in ("a1", "a2")], ["stopped", "stopped"], "states")


@case("S014: the configuration is read again on SIGHUP, and a bad one changes nothing")
def reloaded(t):
    service, s = begin(t)
    t.equal(s.bus.get(ROOT, MANAGER, "Ready"), True, "ready")
    service.configure({"sandbox": {"requireFullEnforcement": False, "egress": {"allow": []}}})
    service.errandd.send_signal(signal.SIGHUP)
    t.matches(service.said(), "^RELOADING=1\nMONOTONIC_USEC=[0-9]+\n")
    t.contains(service.said(), "READY=1")
    report = s.bus.get(ROOT, MANAGER, "Report")
    t.check(any("0 named hosts" in line for line in report), lambda: report)
    service.configure({"sandbox": {"nonsense": 1}})
    service.errandd.send_signal(signal.SIGHUP)
    t.contains(service.said(), "RELOADING=1")
    t.contains(service.said(), "READY=1")
    t.equal(s.bus.get(ROOT, MANAGER, "Report"), report, "report")
    t.contains(service.log(), "sandbox.nonsense")


@case("S183 S184: it does not get ready where it must not, and its exit code says why")
def refuses(t):
    service = Service(t, config={})

    def code(*arguments, **environment):
        service.start(*arguments, environment=environment)
        return service.errandd.wait(30)
    t.equal(code(), 3, "requireFullEnforcement")
    t.contains(service.log(), "one account")
    service.configure({"sandbox": {"backend": "nothing"}})
    t.equal(code(), 2, "configuration")
    service.configure({"sandbox": {"requireFullEnforcement": False}})
    t.equal(code(DBUS_SESSION_BUS_ADDRESS="unix:path=/nowhere"), 1, "no bus")
    t.contains(service.log(), "session bus cannot be reached")
    first = Sessions(service)
    first.serve()
    running = service.errandd
    t.equal(code(), 4, "another one")
    t.equal(running.poll(), None, "the first one")
    service.errandd = running
    t.equal(first.bus.name_has_owner("org.errand1"), True, "name")
    # Without its bus it leaves, for its unit to start it again; the sessions stay.
    first.start("a1", "sleep", "1000")
    service.daemon.kill()
    t.equal(service.errandd.wait(30), 1, "exit code without a bus")
    t.equal(len(service.shims()), 1, "shims")


DAMAGE = {"empty": lambda text: "", "half": lambda text: text[:len(text) // 2], "garbage": lambda text: "\0\1\2" * 99, "foreign": lambda text: text.replace('"d', '"e', 1),
          "no file": None}


def database(service):
    return contextlib.closing(sqlite3.connect(service.path("home", "errand", "receipts.db")))


def receipts(service, session):
    with database(service) as db:
        return db.execute("SELECT count(*) FROM receipts WHERE session = ?", (session,)).fetchone()[0]


def add_receipts(service, *sessions):
    """One each, while there is no errandd."""
    with database(service) as db, db:
        for session in sessions:
            db.execute("INSERT INTO receipts (ended, session, provider, credential, host, method, path, query, status, duration, up, down, outcome, unrecorded) "
                       "VALUES (1, ?, 'p', 'P_KEY', 'api.example.com', 'GET', '/', 0, 200, 1, 1, 1, 'completed', 0)", (session,))


@case("C200: a record that is damaged is set aside with all of its session, which ends if it runs; others go on, and the id is free")
def damaged(t):
    service, s = begin(t)
    s.start("a1", "sleep", "1000")
    for number, (kind, damage) in enumerate(DAMAGE.items()):
        name = f"d{number}"
        s.start(name, "sh", "-c", f"echo kept >~/file; echo {kind}; sleep 1000")
        errand_launch.wait_for(lambda n=name: s.transcript(n))
    shims = set(service.shims())
    for number in range(len(DAMAGE)):
        service.settled(f"d{number}")
    service.kill()
    add_receipts(service, "a1", "d1")
    for number, damage in enumerate(DAMAGE.values()):
        path = service.path("home", "errand", ".records", f"d{number}", "session.json")
        if not damage:
            os.unlink(path)
            continue
        with open(path, "r+", encoding="utf-8") as f:
            text = damage(f.read())
            f.seek(0)
            f.truncate()
            f.write(text)
    s.serve()
    t.equal([x[0] for x in s.bus.call(ROOT, MANAGER, "ListSessions")[0]], ["a1"], "sessions")
    errand_launch.wait_for(lambda: len(service.shims()) == 1)
    t.check(set(service.shims()) < shims, "another shim")
    errand_launch.wait_for(lambda: [os.listdir(service.runtime(n)) for n in ("broker", "session", "shim")] == [["a1"]] * 3)
    for number, kind in enumerate(DAMAGE):
        aside = service.path("home", "errand", ".damaged", f"d{number}-1")
        with open(f"{aside}/record/transcript", encoding="utf-8") as f:
            t.equal(f.read(), f"{kind}\n\n[errand: errandd has no record of this session that can be read, so it was stopped]\n", "transcript")
        with open(f"{aside}/session/state/home/file", encoding="utf-8") as f:
            t.equal(f.read(), "kept\n", "home")
        t.contains(service.log(), f"the record of session d{number} is damaged")
    s.start("d1", "sh", "-c", "ls ~; echo looked; sleep 1000")
    errand_launch.wait_for(lambda: "looked\n" in s.transcript("d1"))
    t.equal(s.transcript("d1"), "looked\n", "what another session finds")
    t.equal([receipts(service, session) for session in ("a1", "d1")], [1, 0], "receipts")
    t.equal(s.state("a1")[0], "running", "state")


@case("C200: a record of another version is left as it is, and told; its session does not run on unseen")
def version(t):
    service, s = begin(t)
    s.start("v1", "sleep", "1000")
    service.settled("v1")
    service.kill()
    path = service.path("home", "errand", ".records", "v1", "session.json")
    with open(path, "r+", encoding="utf-8") as f:
        text = f.read().replace('"v":1', '"v":2')
        f.seek(0)
        f.write(text)
    s.serve()
    t.equal(s.bus.call(ROOT, MANAGER, "ListSessions")[0], [], "sessions")
    t.contains(service.log(), "is of version 2, and this errandd reads version 1 alone")
    errand_launch.wait_for(lambda: not service.shims())
    with open(path, encoding="utf-8") as f:
        t.equal(f.read(), text, "the record")


@case("C200: a broker's units without a session are stopped; what a session kept without a record is left, and its id given to nobody")
def orphans(t):
    service, s = begin(t)
    s.start("a1", "sleep", "1000")
    service.kill()
    broker = service.manager.units["o1"] = BrokerUnit(service.manager, "o1")
    for which in ("control", "session"):
        broker.start_socket(which)
    os.makedirs(service.path("home", "errand", "home1", "state"))
    s.serve()
    for unit in ("errand-broker-control@o1.socket", "errand-broker@o1.socket", "errand-broker@o1.service"):
        service.manager.wait_asked("StopUnit", unit)
    t.equal([a for a in service.manager.asked if a[0] == "StopUnit" and "a1" in a[1]], [], "units of a1 that were stopped")
    errand_launch.wait_for(lambda: "session home1 kept, of which there is no record" in service.log())
    try:
        s.create("home1", "true")
        t.fail("a session got another one's directory")
    except errand_bus.BusError as error:
        t.equal(error.name, "org.errand1.Error.Exists", "error")
    t.equal(os.listdir(service.path("home", "errand", ".records")), ["a1"], "records")


@case("C200: what listens in an embedded errandd's directory is not of this one's sessions, and is left alone")
def embedded_beside(t):
    service, s = begin(t)
    os.mkdir(service.runtime("embedded-shim"), 0o700)
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as other:
        other.bind(service.runtime("embedded-shim", "e1"))
        other.listen()
        other.settimeout(0)
        service.kill()
        s.serve()
        s.start("a1", "true")
        try:
            other.accept()
            t.fail("errandd has connected")
        except BlockingIOError:
            pass


run()
