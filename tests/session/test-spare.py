# SPDX-License-Identifier: LGPL-2.1-or-later
"""The broker that waits for a session to come, of errandd as a service."""

import os
import re
import signal

import errand_launch
import errand_world
from errand_service import ASK, MANAGER, ROOT, ask, begin
from errand_test import case, run

errand_world.enter()
errand_world.world()

AHEAD = {"sandbox": {"requireFullEnforcement": False, "gracePeriodMs": 1000, "egress": {"allow": ["api.example.com"]}}, "limits": {"brokersAhead": 1}}


def brokers(service):
    return sorted(os.listdir(service.runtime("broker")))


def has_accepted(path):
    """Whether a connection to that socket was accepted: it has a number then."""
    with open("/proc/net/unix", encoding="ascii") as f:
        return any(words[-1] == path and words[5] == "03" and words[6] != "0" for words in (line.split() for line in f))


def await_spare(service, *others):
    """Its id: of the one broker that is no session's."""
    errand_launch.wait_for(lambda: len(brokers(service)) == len(others) + 1 and set(others) <= set(brokers(service)))
    spare = (set(brokers(service)) - set(others)).pop()
    errand_launch.wait_for(lambda: has_accepted(service.runtime("broker", spare)))
    return spare


@case("D004: a broker waits for a session to come, which has its id and no other broker; then the next one waits")
def ahead(t):
    service, s = begin(t, config=AHEAD)
    spare = await_spare(service)
    path = s.bus.call(ROOT, MANAGER, "CreateSession", "a{sv}", {"project": ("s", service.path("project")), "command": ("as", ["/usr/bin/python3", "-c", ASK])})[0]
    t.equal(path, f"{ROOT}/session/{spare}", "the session")
    asked = len(service.manager.asked)
    s.call(spare, "Start")
    t.equal([a for a in service.manager.asked[asked:] if spare in a[1]], [], "jobs for its start")
    t.equal(ask(service, "denied.example.org"), "403", "its broker's answer")
    second = await_spare(service, spare)
    # An id that was chosen has a broker of its own, and the one that waits goes on to.
    s.start("a1", "sleep", "1000")
    t.equal(brokers(service), sorted([spare, second, "a1"]), "brokers")
    s.call(spare, "Stop")
    s.call(spare, "Collect")
    t.equal(brokers(service), sorted([second, "a1"]), "brokers")
    # One that nobody has used is not found again by another errandd, and leaves nothing.
    service.kill()
    s.serve()
    errand_launch.wait_for(lambda: second not in brokers(service))  # its units are stopped while errandd serves
    third = await_spare(service, "a1")
    errand_launch.wait_for(lambda: not os.path.exists(service.path("home", "errand", second)))
    t.equal(sorted(n for n in os.listdir(service.path("home", "errand")) if n.isalnum()), sorted(["a1", third]), "directories of sessions")


@case("D004: a session that was made with the waiting broker and not started has it no longer when it is collected, or errandd reads its configuration again")
def ahead_unused(t):
    service, s = begin(t, config=AHEAD)
    for ends in ("Collect", "Reload"):
        spare = await_spare(service)
        s.bus.call(ROOT, MANAGER, "CreateSession", "a{sv}", {"project": ("s", service.path("project")), "command": ("as", ["sleep", "1000"])})
        if ends == "Collect":
            s.call(spare, "Collect")
        else:
            s.bus.call(ROOT, MANAGER, "Reload")
        service.manager.wait_asked("StopUnit", f"errand-broker@{spare}.service")
        await_spare(service)
    t.check(spare not in brokers(service), "its broker is there")
    s.call(spare, "Start")
    t.equal(s.state(spare)[0], "running", "one that lost it before its start")
    service.configure({**AHEAD, "limits": {"brokersAhead": 0}})
    s.bus.call(ROOT, MANAGER, "Reload")
    errand_launch.wait_for(lambda: brokers(service) == [spare])


@case("D004: after a waiting broker that crashed another one waits, later each time that none can be started, and at once after a reload")
def ahead_crashed(t):
    service, s = begin(t, config=AHEAD)
    spare = await_spare(service)
    service.manager.fail = "errand-broker"
    service.manager.units[spare].stop_service()  # as with one that comes back no more
    errand_launch.wait_for(lambda: "tried again in 2s" in service.log())
    errand_launch.wait_for(lambda: "tried again in 4s" in service.log())
    os.kill(service.errandd.pid, signal.SIGSTOP)  # it goes on at times of its own
    try:
        started = {name.split("@")[1].split(".")[0] for verb, name in service.manager.asked if verb == "StartUnit"}
        waits = re.findall(r"tried again in (\S+)", service.log())
    finally:
        os.kill(service.errandd.pid, signal.SIGCONT)
    t.equal(waits, ["2s", "4s", "8s", "16s", "32s"][:len(waits)], "waits")
    t.check(len(waits) <= len(started) <= len(waits) + 1, f"{len(started)} brokers were asked for, in {len(waits)} waits")
    errand_launch.wait_for(lambda: sorted(n for n in os.listdir(service.path("home", "errand")) if n.isalnum()) == [])
    service.manager.fail = None
    s.start("a1", "sleep", "1000")  # sessions start their own meanwhile
    s.bus.call(ROOT, MANAGER, "Reload")
    second = await_spare(service, "a1")
    service.manager.units[second].stop_service()
    errand_launch.wait_for(lambda: second not in brokers(service))
    await_spare(service, "a1")
    t.equal(service.log().count("tried again in 2s"), 2, "waits")


@case("C200 D004: a session that is stopped at once and started again has a broker of its own; errandd goes on")
def ahead_again(t):
    service, s = begin(t, config=AHEAD)
    spare, at = await_spare(service), f"{ROOT}/session/"
    s.bus.call(ROOT, MANAGER, "CreateSession", "a{sv}", {"project": ("s", service.path("project")), "command": ("as", ["sleep", "1000"])})
    for _ in range(3):
        serials = {s.bus.send(f"{at}{spare}", "org.errand1.Session", member) for member in ("Start", "Stop")}
        while serials:
            serials.discard(s.bus.await_reply(*serials)["reply_serial"])
    s.call(spare, "Start")
    t.equal(s.state(spare)[0], "running", "state")


@case("D004: a waiting broker that dies is no session's harm")
def ahead_dies(t):
    service, s = begin(t, config=AHEAD)
    spare = await_spare(service)
    # Nor of the one that has its id, and starts while its units are still being stopped.
    s.bus.call(ROOT, MANAGER, "CreateSession", "a{sv}", {"project": ("s", service.path("project")), "command": ("as", ["sleep", "1000"])})
    unit, service.manager.hold, service.manager.hold_verb = service.manager.units[spare], f"errand-broker@{spare}.service", "StopUnit"
    unit.process.kill()
    errand_launch.wait_for(lambda: service.manager.held)
    s.call(spare, "Start")
    t.equal(s.state(spare)[0], "running", "one that was given its id")
    for _, _, done in service.manager.held:  # of the process that was killed
        service.manager.bus.emit(*done, "done")
    errand_launch.wait_for(lambda: "that was started ahead ended" in service.log())
    t.equal(s.state(spare)[0], "running", "one that was given its id")
    s.start("a1", "sleep", "1000")
    t.equal(s.state("a1")[0], "running", "state")


run()
