# SPDX-License-Identifier: LGPL-2.1-or-later
"""The launcher is killed, or errandd's connection to it or to a broker breaks, in the middle of something: each call is answered, nothing hangs, nothing runs
that nobody knows of, and what was revoked is so."""

import os
import signal
import socket
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import errand_bus  # noqa: E402
import errand_descriptors  # noqa: E402
import errand_launch  # noqa: E402
import errand_world  # noqa: E402
from errand_service import ASK, MANAGER, ROOT, SESSION, ask, begin  # noqa: E402
from errand_test import case, run  # noqa: E402

errand_world.enter()
errand_world.world()


def answered(s, call):
    """The error that it is answered with; None: it worked."""
    m = s.bus.await_reply(call)
    return m["body"][0] if m["kind"] == errand_bus.ERROR else None


def waiting_shim(service):
    """The one that the launcher has started ahead, stopped: it has the plan of the next session, and does nothing with it yet."""
    found = []

    def look():
        found[:] = [pid for pid, (parent, name) in errand_launch.living().items() if parent == service.launcher.pid and name == "shim-ahead"]
        return found
    errand_launch.wait_for(look)
    os.kill(found[0], signal.SIGSTOP)
    return found[0]


def kill_launcher(service, *options):
    """And the next one, as by its socket."""
    service.launcher.kill()
    service.launcher.wait()
    service.start_launcher(options=options)


def start_with(t, break_it):
    """A start in whose middle the launcher is lost, when its shim is on its way."""
    service, s = begin(t)
    kill_launcher(service, "--shim-ahead")
    s.create("a1", "sleep", "1000", network=("s", "none"))  # one that could run without its broker, which has gone by then
    shim = waiting_shim(service)
    watch = errand_launch.Watch(shim)
    call = s.bus.send(f"{ROOT}/session/a1", SESSION, "Start")
    errand_launch.wait_for(lambda: os.path.exists(service.path("home", "errand", ".records", "a1", "events")))
    s.bus.get(ROOT, MANAGER, "Version")  # the launch was sent
    break_it(service)
    t.contains(answered(s, call), "errand-launch", "what Start is answered")
    t.equal(s.state("a1"), ("failed", "setup", 125), "state")
    os.kill(shim, signal.SIGCONT)
    watch.ended()
    t.equal(service.shims(), [], "shims")
    t.equal(os.listdir(service.runtime("shim")), [], "sockets of shims")
    s.call("a1", "Start")
    t.equal(s.state("a1")[0], "running", "once more")
    s.call("a1", "Stop")


@case("C200 C008: the launcher is killed in the middle of a launch: Start is answered, and the shim that comes up then ends by itself")
def launch_killed(t):
    start_with(t, kill_launcher)


@case("C200 C008: the connection to the launcher breaks in the middle of a launch: Start is answered, and what the launcher starts then is stopped")
def launch_broken(t):
    start_with(t, lambda service: errand_descriptors.break_connection(service.errandd.pid, "/launch"))


@case("C200: the launcher is killed in the middle of a removal: the call is answered, and the next one works")
def collect_killed(t):
    service, s = begin(t)
    s.start("a1", "true")
    errand_launch.wait_for(lambda: s.state("a1")[0] == "stopped")
    os.kill(service.launcher.pid, signal.SIGSTOP)
    call = s.bus.send(f"{ROOT}/session/a1", SESSION, "Collect")
    s.bus.get(ROOT, MANAGER, "Version")
    kill_launcher(service)
    t.contains(answered(s, call), "cannot be removed", "what Collect is answered")
    s.call("a1", "Collect")
    t.equal(s.bus.call(ROOT, MANAGER, "ListThreads")[0], [], "sessions")


@case("C200: the launcher is killed in the middle of a look at the disk: the next one finds what there is")
def disk_killed(t):
    service, s = begin(t, config={"sandbox": {"requireFullEnforcement": False, "gracePeriodMs": 1000, "disk": "8m", "diskCheckMs": 200}})
    s.start("a1", "sh", "-c", "while ! test -e go; do sleep 0.02; done; head -c 24M /dev/urandom >~/big; sleep 1000")
    os.kill(service.launcher.pid, signal.SIGSTOP)
    with open(service.path("project", "go"), "w", encoding="ascii"):
        pass
    errand_launch.wait_for(lambda: os.path.exists(service.path("home", "errand", "a1", "state", "home", "big")))
    kill_launcher(service)
    errand_launch.wait_for(lambda: s.state("a1")[:2] == ("stopped", "disk"))


def steal(pid, place):
    """What waits in that process's connection at its socket there, before it is read; and then the connection breaks."""
    _, copy = errand_descriptors.wait_connection(pid, place, own=True)
    with copy:
        copy.settimeout(20)
        text = copy.recv(65536)
        copy.shutdown(socket.SHUT_RDWR)
    return text


@case("C200 S131: a revocation that a broker did not get, since its connection broke, is told again by the next one")
def revocation(t):
    service, s = begin(t)
    s.start("a1", "/usr/bin/python3", "-c", ASK)
    s.call("a1", "Grant", "ss", "one.example.org", "always")
    s.call("a1", "Grant", "ss", "two.example.org", "always")
    t.equal(ask(service, "one.example.org"), "502", "granted")
    broker = service.manager.units["a1"].process.pid
    os.kill(broker, signal.SIGSTOP)
    s.bus.call(f"{ROOT}/grant/a1/1", "org.errand1.Grant", "Revoke")
    t.contains(steal(broker, "/broker/a1").decode(), "revoke", "what was lost")
    os.kill(broker, signal.SIGCONT)
    errand_launch.wait_for(lambda: "does its work" in service.log())
    t.equal([ask(service, f"{n}.example.org") for n in ("one", "two")], ["403", "502"], "afterwards")
    s.call("a1", "Stop")
    t.equal(s.state("a1")[0], "stopped", "state")


@case("C200: the connection to a broker breaks while its session is being stopped: the broker goes, and Stop is answered")
def stop_broken(t):
    # Long enough for a signal to end it on any machine: it is not what is looked at.
    service, s = begin(t, config={"sandbox": {"requireFullEnforcement": False, "gracePeriodMs": 20000, "egress": {"allow": ["api.example.com"]}}})
    s.start("a1", "sleep", "1000")
    broker = service.manager.units["a1"].process.pid
    watch = errand_launch.Watch(broker)
    os.kill(broker, signal.SIGSTOP)
    call = s.bus.send(f"{ROOT}/session/a1", SESSION, "Stop")
    s.bus.get(ROOT, MANAGER, "Version")
    t.contains(steal(broker, "/broker/a1").decode(), "close", "what was lost")
    os.kill(broker, signal.SIGCONT)
    t.equal(answered(s, call), None, "what Stop is answered")
    t.equal(s.state("a1"), ("stopped", "signal", 143), "state")
    watch.ended()


run()
