# SPDX-License-Identifier: LGPL-2.1-or-later
"""A disk that does not come back, and a configuration that cannot be read: errandd's thread that waits for them is held, and everything else goes on."""

import concurrent.futures
import contextlib
import ctypes
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_bus import BusError  # noqa: E402
from errand_machine import wait_for  # noqa: E402
from errand_system import MANAGER, ROOT, SESSION, Client  # noqa: E402
from errand_test import case  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

OWNER, ERRANDD = "alice", "errandd.service"
PATIENCE = 5  # seconds that errandd waits for the disk at its end
LOOKUP = 20  # seconds after which a configuration that is not read is given up
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_SYSCALL, PTRACE_DETACH, WALL = 0x4206, 0x4207, 24, 17, 0x40000000
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
others = concurrent.futures.ThreadPoolExecutor(8)


def trace(request, thread):
    if libc.ptrace(request, thread, None, None) < 0:
        raise OSError(ctypes.get_errno(), f"ptrace({request:#x})")


def thread_of(name):
    """Of errandd's; it begins with the first thing that it has to do."""
    pid = machine.pid_of(ERRANDD)
    for thread in os.listdir(f"/proc/{pid}/task"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{thread}/comm", encoding="ascii") as f:  # it may have ended meanwhile
            if f.read().strip() == name:
                return int(thread)
    return 0


class Held:
    """That thread does nothing, as if the kernel let it wait; by whoever made it, in the same thread of this program, until it is released."""

    def __init__(self, t, name):
        self.thread = wait_for(lambda: thread_of(name), f"thread {name}")
        trace(PTRACE_SEIZE, self.thread)
        trace(PTRACE_INTERRUPT, self.thread)
        os.waitpid(self.thread, WALL)
        t.defer(self.release)

    def end(self):
        """Its process was killed, which is over when whoever holds it has seen that."""
        os.waitpid(self.thread, WALL)
        self.thread = 0

    def release(self):
        if self.thread:
            trace(PTRACE_DETACH, self.thread)
            self.thread = 0


def begin(client, session, *arguments):
    """A call that errandd has, and has not answered; → its answer, when that is called. One that was only about to be sent could reach the next errandd."""
    serial = client.send(f"{ROOT}/session/{session}", system.SESSION, *arguments)
    client.get(ROOT, MANAGER, "Version")
    return lambda: client.await_reply(serial)


UNLINKAT = {"x86_64": 263, "aarch64": 35}[os.uname().machine]


class HeldAtWrite(Held):
    """errandd's loop, in the first call that changes a record, as if its file system let it wait there."""

    def __init__(self, t):
        super().__init__(t, "errandd")

    def go_on(self):
        """Until it is there."""
        while True:
            trace(PTRACE_SYSCALL, self.thread)
            os.waitpid(self.thread, WALL)
            with open(f"/proc/{self.thread}/syscall", encoding="ascii") as f:
                if f.read().split()[0] == str(UNLINKAT):  # what an earlier write may have left goes first
                    return


def records(session):
    return set(os.listdir(f"{system.STATE}/.records/{session}"))


machine.account(OWNER, "errand-users")
system.configure({"limits": {"maxLiveSessions": 100}})
Client(OWNER).start("first", ["/bin/true"])  # the project has its owner by then


@case("T020: while the disk takes nothing, sessions are made, started and stopped, and everything is answered that need not be on it")
def _(t):
    t.log("journal", system.log)
    owner = Client(OWNER)
    owner.start("runs", ["/bin/sleep", "infinity"])
    owner.session("runs", "Grant", "ss", "before.example", "always")
    held = Held(t, "errandd-disk")
    giving = others.submit(Client(OWNER).session, "runs", "Grant", "ss", "given.example", "always")
    collecting = others.submit(Client(OWNER).session, "first", "Collect")
    claiming = others.submit(Client(OWNER).create, "claims", ["/bin/true"], project="another")
    begun = time.monotonic()
    for name in ("s1", "s2"):
        owner.create(name, ["/bin/sh", "-c", "echo ran; sleep infinity"])
        owner.session(name, "Start")
        wait_for(lambda n=name: owner.transcript(n) == "ran\n", "transcript")
        t.equal(owner.state(name), "running", "state")
    owner.session("s2", "Stop")
    t.equal(owner.state("s2"), "stopped", "state of the one that was stopped")
    owner.session("runs", "Stop")
    t.equal([g[1] for g in owner.manager("ListGrants", "s", "runs")[0]], ["before.example"], "grants in force")
    t.note(f"{time.monotonic() - begun:.2f} s for two sessions meanwhile")
    t.equal([c.done() for c in (giving, collecting, claiming)], [False] * 3, "what waits for the disk")
    t.check({".session.json.new"} <= records("s1"), f"the record of the session: {records('s1')}")
    held.release()
    for c in (giving, collecting, claiming):
        c.result(20)
    t.equal([g[1] for g in owner.manager("ListGrants", "s", "runs")[0]], ["before.example", "given.example"], "grants afterwards")
    wait_for(lambda: not [n for n in records("s1") if n.startswith(".session.json")], "record of the session on disk")
    owner.end("s1")


@case("C200: errandd killed while the disk takes nothing: what was answered is there for the next one, and what was not is undone or done")
def _(t):
    t.log("journal", system.log)
    owner = Client(OWNER)
    held = Held(t, "errandd-disk")
    owner.create("made", ["/bin/echo", "made"])
    owner.create("going", ["/bin/sh", "-c", "echo ran; sleep infinity"])
    owner.session("going", "Start")
    giving = begin(Client(OWNER), "going", "Grant", "ss", "lost.example", "always")
    wait_for(lambda: owner.transcript("going") == "ran\n", "transcript")
    killing = others.submit(system.kill, ERRANDD)
    held.end()
    killing.result()
    owner = Client(OWNER)
    t.equal({n: owner.state(n) for n in ("made", "going")}, {"made": "created", "going": "running"}, "sessions")
    t.equal([g[1] for g in owner.manager("ListGrants", "s", "going")[0]], [], "grants, of which none was answered")
    t.equal(giving().get("error"), "org.freedesktop.DBus.Error.NoReply", "what the caller of a grant was told that is not there")
    owner.session("made", "Start")
    owner.wait("made", "stopped")
    t.equal(owner.transcript("made"), "made\n", "transcript of the one that was made")
    owner.end("going")


@case(f"T020: an errandd that is stopped while the disk takes nothing waits {PATIENCE} s for it, and the next one has what was answered")
def _(t):
    t.log("journal", system.log)
    owner = Client(OWNER)
    owner.start("stays", ["/bin/sleep", "infinity"])
    held = Held(t, "errandd-disk")
    owner.create("late", ["/bin/echo", "late"])
    giving = begin(Client(OWNER), "stays", "Grant", "ss", "lost.example", "always")
    begun = time.monotonic()
    stopping = others.submit(machine.good, "systemctl", "stop", ERRANDD)
    held.end()  # the thread ends with its process
    stopping.result(20)
    took = time.monotonic() - begun
    # By itself, and not by systemd, whose patience is six times as long. A busy machine adds to what is waited.
    t.check(PATIENCE <= took < 4 * PATIENCE and machine.show(ERRANDD, "Result") == "success", f"stopped after {took:.2f} s, with {machine.show(ERRANDD, 'Result')}")
    t.contains(system.log(), "errandd leaves without waiting for it any longer", "why it ended")
    t.check(giving().get("error"), "a grant that is not on disk was answered")
    machine.good("systemctl", "start", ERRANDD)
    owner = Client(OWNER)
    t.equal({n: owner.state(n) for n in ("stays", "late")}, {"stays": "running", "late": "created"}, "sessions")
    t.equal(owner.manager("ListGrants", "s", "stays")[0], [], "grants")
    owner.end("stays")


@case("T020: where not even a record can be begun, and the loop waits, a session that is stopped has no way out any more")
def _(t):
    t.log("journal", system.log)
    owner = Client(OWNER)
    owner.start("shut", ["/bin/sleep", "infinity"])
    wait_for(lambda: not [n for n in records("shut") if n.startswith(".session.json")], "its record on disk")
    held = HeldAtWrite(t)
    owner.send(f"{ROOT}/session/shut", SESSION, "Stop")
    held.go_on()
    wait_for(lambda: "session shut: closed" in system.log(), "end of what its broker carries")
    held.release()
    owner.wait("shut", "stopped")


@case(f"T020: a configuration that cannot be read keeps nobody waiting, and is given up after {LOOKUP} s with what it hangs on")
def _(t):
    root, begun = Client(), time.monotonic()
    t.equal(root.manager("CheckConfiguration", "s", system.CONFIG)[0], [], "problems")
    held = Held(t, "errandd-look")
    asked = [others.submit(Client(timeout=60).manager, *call) for call in (("CheckConfiguration", "s", system.CONFIG), ("Reload",))]
    owner = Client(OWNER)
    owner.start("meanwhile", ["/bin/true"])
    for call in asked:
        try:
            call.result(2 * LOOKUP)
            t.check(False, "a configuration that cannot be read was")
        except BusError as error:
            t.equal(error.name, "org.errand1.Error.Configuration", "error")
            t.contains(error.text, system.CONFIG)
    took = time.monotonic() - begun
    t.check(took >= LOOKUP, f"given up after {took:.2f} s")
    t.equal(root.fails(ROOT, MANAGER, "CheckConfiguration", "s", "errand.json"), "org.errand1.Error.InvalidArgument", "another call")
    held.release()
    t.equal(root.manager("Reload"), (), "a reload afterwards")


run_tests()
