#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""errandd as a whole, and what it is given that it should not be: by clients of its bus, and by the disk."""

import contextlib
import ctypes
import os
import socket
import subprocess

import errand_test
import errand_world
from errand_bus import BusError, Connection
from errand_run import PATIENCE, Errand, end_process, environment, wait_for
from errand_test import Failure, case, run
from run_story import RunStory

errand_world.enter()

ROOT, MANAGER, SESSION = "/org/errand1", "org.errand1.Manager", "org.errand1.Session"
INVALID, NOT_FOUND = "org.errand1.Error.InvalidArgument", "org.errand1.Error.NotFound"
GROWTH_MAX_KIB = 48 * 1024
FLOOD_MAX = 20000  # calls; errandd takes some hundred


class Served:
    """An errandd with a session that waits for a line, and one that has ended."""

    def __init__(self, t, config=None):
        self.t = t
        self.errand = Errand(t, config)
        self.process, _ = self.errand.started("live", "/bin/sh", "-c", "echo up; read line; exit 4")
        self.errand.good("run", "--embedded", "--id", "ended", "--", "/bin/true")
        self.pid = self.errand.pid()
        self.bus = self.connect()
        self.before, self.size_before = self.descriptors(), self.size()

    def size(self):
        """KiB. A sanitizer's own memory is not what is looked at: what it grows by is."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:"))

    def connect(self):
        bus = Connection(self.errand.bus, timeout=PATIENCE)
        self.t.defer(bus.close)
        return bus

    def create(self, bus=None, **options):
        values = {"project": ("s", self.errand.project), "command": ("as", ["/bin/true"])}
        values |= options
        return (bus or self.bus).call(ROOT, MANAGER, "CreateSession", "a{sv}", {k: v for k, v in values.items() if v})[0]

    def descriptors(self):
        """How many errandd has. Its account cannot see them, as it is not to see what errandd holds: 0 then."""
        try:
            return len(os.listdir(f"/proc/{self.pid}/fd"))
        except PermissionError:
            if os.getuid() == 0:
                raise
            return 0

    def check_well(self, threads=("ended", "live")):
        """The same errandd, with those sessions, no descriptor more, and memory within its bounds; the session that ran still does."""
        t = self.t
        t.equal(self.errand.pid(), self.pid, "errandd's pid")
        t.equal(sorted(s["id"] for s in self.errand.json("threads list")), sorted(threads), "the threads")
        wait_for(lambda: self.descriptors() <= self.before, f"descriptors to be closed: {self.descriptors()} of {self.before}")
        grown = self.size() - self.size_before
        t.check(grown < GROWTH_MAX_KIB, f"errandd has grown by {grown} KiB")
        self.process.stdin.write("go on\n")
        self.process.stdin.flush()
        t.equal(self.process.wait(PATIENCE), 4, "the session's exit status")

    def refused(self, names, call):
        """call() must fail with one of those errors and say something."""
        try:
            result = call()
        except BusError as error:
            if error.name not in names or len(error.text) < 8:
                raise Failure(f"the error is {error.name}: {error.text!r}") from error
        else:
            raise Failure(f"the answer is {result!r}")


# ---- arguments ----

@case("C199: CreateSession: unknown options, wrong types, ids, projects, hosts, variables: each an error that says what, and no session")
def _(t):
    s = Served(t)
    file = t.path("file")
    with open(file, "w", encoding="ascii") as f:
        f.write("no directory\n")
    os.symlink("/nonexistent", t.path("dangling"))
    rows = [
        {"nonsense": ("s", "x")}, {"Project": ("s", "/tmp")}, {"command": ("s", "/bin/true")}, {"id": ("u", 7)}, {"interactive": ("s", "yes")},
        {"command": ("as", [])}, {"command": ("as", [""])}, {"command": ("as", ["x"] * 1025)}, {"command": ("as", ["/bin/echo", "x" * 40000])},
        {"id": ("s", "UPPER")}, {"id": ("s", "../x")}, {"id": ("s", "a" * 29)}, {"id": ("s", "a b")}, {"id": ("s", "ä")}, {"id": ("s", "a/b")},
        {"project": ("s", "relative")}, {"project": ("s", "")}, {"project": ("s", "/nonexistent/x")}, {"project": ("s", file)},
        {"project": ("s", t.path("dangling"))}, {"project": ("s", "/" + "x" * 5000)},
        {"allow": ("as", ["not a host"])}, {"allow": ("as", ["-x.example"])}, {"allow": ("as", ["a..b"])}, {"allow": ("as", ["*.*.example"])},
        {"allow": ("as", ["https://x.example"])}, {"allow": ("as", ["x.example:443"])}, {"allow": ("as", ["x" * 300])}, {"allow": ("as", ["a.example"] * 300)},
        {"env": ("a{ss}", {"A=B": "x"})}, {"env": ("a{ss}", {"": "x"})}, {"env": ("a{ss}", {"1A": "x"})}, {"env": ("a{ss}", {"PATH": "/x"})},
        {"env": ("a{ss}", {"LD_PRELOAD": "x" * 70000})}, {"network": ("s", "open")}, {"network": ("s", "sideways")},
        {"provider": ("s", "nobody")}, {"provider": ("s", "../x")}, {"rows": ("q", 0), "interactive": ("b", True), "columns": ("q", 0)},
    ]
    names = (INVALID, NOT_FOUND, "org.errand1.Error.NotPermitted", "org.errand1.Error.LimitExceeded", "org.freedesktop.DBus.Error.InvalidArgs")
    t.each(rows, lambda row: s.refused(names, lambda: s.create(**row)))
    s.refused(("org.errand1.Error.Exists", "org.errand1.Error.AlreadyExists"), lambda: s.create(id=("s", "live")))
    s.check_well()


@case("C199: grants, signals, sizes, offsets and objects that are none: refused, and nothing is granted")
def _(t):
    s = Served(t)
    live, ended = ROOT + "/session/live", ROOT + "/session/ended"
    hosts = ["", " ", "a b", "-a.example", "a..b", ".", "https://a.example/", "a.example:443", "x" * 300, "*.*.a", "a\nb", "a\x7f.example", "ä.example", "1.2.3", "0x7f.1",
             "[::1", "user@a.example"]
    durations = ["", "never", "-1", "-1h", "0", "0s", "10", "31d", "99999999999999999999h", "1h 1", "once ", "ALWAYS", "1h\n", "1h;rm", "1e3s"]
    t.each(hosts, lambda host: s.refused((INVALID,), lambda: s.bus.call(live, SESSION, "Grant", "ss", host, "once")))
    t.each(durations, lambda duration: s.refused((INVALID,), lambda: s.bus.call(live, SESSION, "Grant", "ss", "a.example", duration)))
    t.equal(s.errand.json("grants", "live"), [], "the grants")
    t.each([-1, 0, 65, 2**31 - 1], lambda n: s.refused((INVALID,), lambda: s.bus.call(live, SESSION, "Kill", "i", n)))
    wrong = ("org.errand1.Error.WrongState", "org.errand1.Error.InvalidState")
    t.each([("Resize", "qq", 24, 80), ("Kill", "i", 15), ("Grant", "ss", "a.example", "once"), ("Attach", "a{sv}", {})],
           lambda row: s.refused((INVALID, NOT_FOUND, *wrong), lambda: s.bus.call(ended, SESSION, row[0], *row[1:])))
    nowhere = (NOT_FOUND, "org.freedesktop.DBus.Error.UnknownObject", "org.freedesktop.DBus.Error.AccessDenied",
               "org.freedesktop.DBus.Error.UnknownMethod", "org.freedesktop.DBus.Error.UnknownInterface", "org.errand1.Error.NotPermitted", INVALID)
    t.each([("session/nobody", SESSION, "Start"), ("session/UPPER", SESSION, "Start"), ("session", SESSION, "Start"), ("grant/live/1", "org.errand1.Grant", "Revoke"),
            ("grant/live/4294967296", "org.errand1.Grant", "Revoke"), ("session/live", SESSION, "Nonsense"), ("session/live", "org.errand1.Nonsense", "Start"),
            ("session/live", MANAGER, "Reload"), ("receipt/1", "org.errand1.Grant", "Revoke")],
           lambda row: s.refused(nowhere, lambda: s.bus.call(f"{ROOT}/{row[0]}", row[1], row[2])))
    t.each([("CreateSession", "s", "x"), ("GetSession", "u", 1), ("ListGrants", ""), ("ListReceipts", "a{sv}", {"limit": ("u", 100000)}),
            ("ListReceipts", "a{sv}", {"nonsense": ("s", "x")}), ("CheckConfiguration", "s", "relative")],
           lambda row: s.refused((*nowhere, "org.freedesktop.DBus.Error.InvalidArgs", "org.errand1.Error.LimitExceeded"), lambda: s.bus.call(ROOT, MANAGER, *row)))
    s.refused((INVALID,), lambda: s.bus.call(live, SESSION, "ReadTranscript", "tu", 2**63, 10))
    t.equal(s.bus.call(live, SESSION, "ReadTranscript", "tu", 2**31, 2**32 - 1)[1], b"", "what lies behind the transcript's end")
    s.check_well()


@case("C056: a socket, a directory or a device where a file is expected, a file where a directory is: refused; none is kept")
def _(t):
    s = Served(t)
    ours, theirs = socket.socketpair()
    t.defer(ours.close)
    t.defer(theirs.close)
    fds = {"socket": theirs.fileno(), "directory": os.open("/tmp", os.O_RDONLY), "path": os.open("/etc/passwd", os.O_PATH), "file": os.open("/etc/passwd", os.O_RDONLY)}
    for name in ("directory", "path", "file"):
        t.defer(os.close, fds[name])
    null = os.open("/dev/null", os.O_RDWR)
    t.defer(os.close, null)
    rows = [{"stdin": "socket"}, {"stdout": "socket"}, {"stderr": "socket"}, {"stdin": "directory"}, {"stdout": "directory"}, {"stdin": "path"}, {"stdout": "path"},
            {"projectFd": "socket"}, {"projectFd": "file"}]

    def check(row):
        (name, kind), = row.items()
        stdio = {n: ("h", null) for n in ("stdin", "stdout", "stderr")} if name != "projectFd" else {}
        s.refused((INVALID,), lambda: s.create(**stdio | {name: ("h", fds[kind])}))
    t.each(rows, check)
    # The bite: with a null device in all three places the same call is answered.
    object_path = s.create(id=("s", "null"), **{n: ("h", null) for n in ("stdin", "stdout", "stderr")})
    s.bus.call(object_path, SESSION, "Collect")
    s.check_well()


# ---- clients ----

@case("C204: clients that vanish: while they log in, in the middle of a message, before an answer, as a session's terminal")
def _(t):
    s = Served(t)
    for data in (b"", b"\0", b"\0AUTH EXTERNAL 30\r\n", b"\0AUTH ANONYMOUS\r\n", b"GET / HTTP/1.1\r\n\r\n", b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\nBEGIN\r\nl\1\0\1"):
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(s.errand.bus)
            sock.sendall(data)
    for _ in range(20):
        bus = Connection(s.errand.bus)
        bus.send(ROOT, MANAGER, "ListThreads")
        bus.close()
    bus = Connection(s.errand.bus)
    session = s.create(bus, id=("s", "gone"), command=("as", ["/bin/sh", "-c", "read line; exit 0"]), interactive=("b", True))
    bus.call(session, SESSION, "Start")
    (terminal,) = bus.call(session, SESSION, "Attach", "a{sv}", {})
    bus.send(session, SESSION, "Attach", "a{sv}", {})
    bus.close()
    os.close(terminal)
    t.equal(s.bus.get(session, SESSION, "State"), "running", "the state of a session whose client has gone")
    s.bus.call(session, SESSION, "Kill", "i", 9)
    wait_for(lambda: s.bus.get(session, SESSION, "State") == "stopped", "its end")
    s.bus.call(session, SESSION, "Collect")
    s.check_well()


@case("C204: a client that floods and never reads is held up or let go; another one is answered meanwhile, within memory", timeout=90)
def _(t):
    s = Served(t)
    flood = Connection(s.errand.bus)
    flood.sock.settimeout(0.2)
    n_sent = held = 0
    with contextlib.suppress(ConnectionError):  # let go
        while n_sent < FLOOD_MAX and held < 2:  # held up, whatever errandd does for others meanwhile
            try:
                flood.send(ROOT, MANAGER, "ListThreads")
                n_sent, held = n_sent + 1, 0
            except TimeoutError:
                held += 1
            if held > 0 or n_sent % 100 == 0:
                s.bus.call(ROOT, MANAGER, "ListThreads")
    t.note(f"{n_sent} calls were taken")
    t.check(n_sent > 200, "the flood was none")
    s.bus.call(ROOT, MANAGER, "ListThreads")
    flood.close()
    s.check_well()


@case("C204: connections without end: those beyond the bound are closed, who is connected is answered, and room comes back")
def _(t):
    s = Served(t)
    held = []
    for _ in range(300):
        sock = socket.socket(socket.AF_UNIX)
        sock.settimeout(0.2)
        held.append(sock)
        try:
            sock.connect(s.errand.bus)
        except OSError:
            break
    s.bus.call(ROOT, MANAGER, "ListThreads")
    t.check(s.descriptors() < s.before + 200, f"errandd holds {s.descriptors()} descriptors")
    for sock in held:
        sock.close()

    def room():
        try:
            Connection(s.errand.bus, timeout=2).close()
            return True
        except OSError:
            return False
    wait_for(room, "room for a connection")
    s.check_well()


# ---- what is on the disk ----

@case("C200: a record that is cut in half is named and set aside; the others load, and the next run works")
def _(t):
    s = Served(t)
    s.errand.good("session stop", "live")
    errand = s.errand
    result = errand.run("run", "--embedded", "--id", "third", "--", "/bin/true")
    t.equal(result.returncode, 0, f"exit status: {result.stderr}")
    errand.end()
    path = errand.record("ended", "session.json")
    with open(path, "r+b") as f:
        half = os.fstat(f.fileno()).st_size // 2
        f.truncate(half)
    result = errand.run("report", "--embedded")
    t.equal(result.returncode, 0, "exit status")
    said = result.stderr + errand.log()
    t.matches(said, r"ended.*session\.json|session\.json.*ended", "the log")
    t.equal(sorted(x["id"] for x in errand.json("threads list") if x["id"] != "ended"), ["live", "third"], "the threads")
    aside = os.path.join(os.path.dirname(errand.record("ended")), "..", ".damaged", "ended-1")
    t.equal(os.path.getsize(os.path.join(aside, "record", "session.json")), half, "the size of what was found damaged")
    t.check(os.path.isdir(os.path.join(aside, "session", "state")), "its home is not there")
    t.check(errand.run("session start", "ended").returncode != 0, "a session was started from half a record")
    t.equal(errand.good("run", "--embedded", "--id", "ended", "--", "/bin/ls", "-A"), "", "a new session under its id, which has nothing of the old one")
    t.equal(errand.good("run", "--embedded", "--", "/bin/echo", "next"), "next\n", "the next run")


@case("C189 C200: a spool that is cut in the middle of a record gives the records before it, once")
def _(t):
    first = RunStory(t).prepare()
    errand = first.errand
    results, status, err = first.inside("echo", "echo")
    t.equal((status, len(errand.json("receipts"))), (0, 2), f"the calls: {results} {err}")
    errand.end()
    record = errand.record("s1")
    spools = [name for name in os.listdir(record) if "spool" in name]
    t.equal(len(spools), 1, f"spools among {os.listdir(record)}")
    path = os.path.join(record, spools[0])
    with open(path, "ab") as f:
        f.write(b"half of a record")
    t.equal([r["path"] for r in errand.json("receipts")], ["/echo", "/echo"], "the receipts")
    # Without its database they come from the spool again, up to the cut: it goes through the second record now.
    errand.end()
    for name in os.listdir(errand.state):
        if name.startswith("receipts.db"):
            os.unlink(os.path.join(errand.state, name))
    os.truncate(path, os.path.getsize(path) - len(b"half of a record") - 5)
    t.equal([r["path"] for r in errand.json("receipts")], ["/echo"], "the receipts, read again")
    t.equal(errand.good("run", "--embedded", "--", "/bin/echo", "next"), "next\n", "the next run")


def small_disk(t, path, size):
    """A file system of its own for a state directory, in this process's mount namespace."""
    os.mkdir(path)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", path.encode(), b"tmpfs", 0, f"size={size},mode=711".encode()) != 0:
        raise OSError(ctypes.get_errno(), "mounting a tmpfs")
    t.defer(libc.umount2, path.encode(), 2)


def fill(path):
    """Writes until no byte fits any more."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for size in (65536, 4096, 1):
            with contextlib.suppress(OSError):
                while True:
                    os.write(fd, b"x" * size)
    finally:
        os.close(fd)


@case("S067 C189: the disk under receipts.db is full: the provider's call succeeds, the session ends, it is said; with room again all works", timeout=90)
def _(t):
    small_disk(t, t.path("state"), "4m")
    first = RunStory(t).prepare()
    errand = first.errand
    process = first.start("granted", "echo")
    process.stdout.readline()
    filler = os.path.join(errand.state, "filler")
    fill(filler)
    result = errand.run("grant", "s1", "denied.example")
    t.check(result.returncode == 1 and "No space left" in result.stderr, f"a grant that cannot be recorded: {result}")
    process.stdin.write("go on\n")
    process.stdin.flush()
    process.wait(PATIENCE)
    out, err = process.stdout.read(), process.stderr.read()
    t.contains(out, '"step": "echo", "ok": true', f"the call ({err})")
    t.contains(out, '"step": "granted", "ok": false', "what was not granted")
    t.equal(process.returncode, 1, f"exit status ({err})")
    t.equal(first.other_host.accepts(), [], "connections by a grant that was not recorded")
    said = err + errand.log()
    t.note(said)
    t.matches(said, r"(?i)No space left|receipt", "what is said of it")
    result = errand.run("run", "--embedded", "--", "/bin/true")
    t.equal(result.returncode, 125, f"a session whose record cannot be written: {result}")
    os.unlink(filler)
    t.equal(errand.good("run", "--embedded", "--", "/bin/echo", "next"), "next\n", "the next run")
    first.session = "s2"
    results, status, _ = first.inside("echo")
    t.equal((status, results["echo"][0]), (0, True), "a call with room again")
    t.check(any(r["session"] == "s2" for r in errand.json("receipts")), "its receipt is not listed")


# ---- errandd's place ----

@case("S183: of errandds that are started together on one state directory one serves, and the others leave with 4")
def _(t):
    errand = Errand(t)
    command = [errand_test.program("errandd"), "--embedded", "--state-dir", errand.state, "--config", errand.config]
    all_of_them = []
    for _ in range(5):
        process = subprocess.Popen(command, env=environment(), stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, text=True)
        t.defer(end_process, process)
        all_of_them.append(process)

    def connection():
        with contextlib.suppress(OSError):
            return Connection(errand.bus, timeout=PATIENCE)
        return None
    t.defer(wait_for(connection, "the one that serves").close)  # which does not leave before the last of them has come
    words = [process.stderr.read() for process in all_of_them]
    wait_for(lambda: [p.poll() for p in all_of_them].count(4) == 4, f"four to leave with 4: {[p.poll() for p in all_of_them]} {words}")
    (serving,) = (p for p in all_of_them if p.poll() is None)
    t.equal(errand.pid(), serving.pid, "who holds the lock")
    for process, said in zip(all_of_them, words):
        if process is not serving:
            t.matches(said, f"(?i){errand.state}|errandd", "what the others say")
    t.check(errand.good("report"), "nobody answers")


if __name__ == "__main__":
    run()
