#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""errand-launch as its socket starts it, and scopes by the real user manager of errand-agent, which lingers. This program is errandd."""

import contextlib
import os
import pwd
import socket
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_launch  # noqa: E402
import errand_machine as machine  # noqa: E402
from errand_launch import Watch, children, children_named, descendants, wait_for  # noqa: E402
from errand_machine import good, show  # noqa: E402
from errand_test import case  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

AGENT = pwd.getpwnam("errand-agent")
ERRANDD = pwd.getpwnam("errand")
USER = ("--user", "-M", "errand-agent@.host")
SERVICE = f"user@{AGENT.pw_uid}.service"


class Installed(errand_launch.Launcher):
    """The one that is installed."""

    def __init__(self, t):
        errand_launch.PAYLOAD = AGENT.pw_uid
        super().__init__(t, listening=True)

    def start(self, environment=None):
        self.process = None

    def connect(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        os.seteuid(ERRANDD.pw_uid)
        try:
            s.connect("/run/errand/launch")
        finally:
            os.seteuid(0)
        self.channel = errand_launch.Channel(s)
        return self.channel

    def close(self):
        if self.channel:
            self.channel.close()
        for session in self.sessions:
            if session.pid:
                with contextlib.suppress(ProcessLookupError):
                    errand_launch.kill(session.pid)
            session.close()

    def log_text(self):
        return machine.journal("-u", "errand-launch.service")


def start(t):
    good("systemctl", "start", "errand-launch.socket", SERVICE)
    launcher = Installed(t)
    launcher.connect()
    t.log("the launcher's journal", launcher.log_text)
    return launcher


def scope(name, **more):
    return {"unit": f"errand-session-{name}.scope", "slice": "errand.slice", "description": f"Session {name}", "delegate": True, **more}


def cgroup(pid):
    with open(f"/proc/{pid}/cgroup", encoding="ascii") as f:
        return f.read().strip().partition("::")[2]


def main_pid():
    return int(show("errand-launch.service", "MainPID"))


def gone(unit):
    return show(unit, "LoadState", *USER) == "not-found"


@case("T019: the installed launcher is started by its socket, and finds the user manager with its controllers")
def _(t):
    launcher = start(t)
    probe = launcher.channel.request("probe")
    t.equal((probe["type"], probe["scopes"], probe["scopesProblem"]), ("probe", True, None), probe)
    group = f"/user.slice/user-{AGENT.pw_uid}.slice/{SERVICE}"
    with open(f"/sys/fs/cgroup{group}/cgroup.controllers", encoding="ascii") as f:
        t.equal(probe["controllers"], f.read().split(), "the controllers")
    t.equal(os.stat(f"/proc/{main_pid()}/environ").st_uid, 0, "whose what it has in memory is")
    t.equal(errand_launch.status_of(main_pid(), "Uid")[0], str(AGENT.pw_uid), "its account")


@case("D003 S187: a session is in a scope of errand-agent's manager with its limits, and its shim is not")
def _(t):
    launcher = start(t)
    name, unit = "made", "errand-session-made.scope"
    begin = time.monotonic()
    s = launcher.session(name, "sleep", "1000", scope=scope(name, memoryMax=1 << 30, memorySwapMax=0, tasksMax=64, cpuQuotaPerSecUSec=500000))
    reply = s.try_launch()
    t.note(f"launched after {(time.monotonic() - begin) * 1000:.1f} ms")
    t.equal((reply["type"], reply.get("scope")), ("launched", unit), reply)
    s.pid = reply["pid"]
    s.started()
    place = f"/user.slice/user-{AGENT.pw_uid}.slice/{SERVICE}/errand.slice/{unit}"
    wait_for(lambda: children_named(s, "sleep"))
    # Within it bailey makes leaves: its own, and that of what it confines.
    t.equal({cgroup(pid) for pid in descendants(s.pid)} - {place, place + "/init"}, {place + "/payload"}, "the groups of the session")
    t.equal(cgroup(children_named(s, "sleep")[0]), place + "/payload", "the group of the command")
    t.contains(cgroup(s.pid), "/errand-launch.service", "the shim's group")
    bailey = children(s.pid)[0]
    with open(f"/proc/{bailey}/environ", "rb") as f:
        t.contains(f.read().split(b"\0"), f"BAILEY_CGROUP_ROOT=/sys/fs/cgroup{place}".encode(), "bailey's environment")
    t.equal(os.stat(f"/sys/fs/cgroup{place}").st_uid, AGENT.pw_uid, "whose the group is")
    for prop, value in (("Description", "Session made"), ("Delegate", "yes"), ("CollectMode", "inactive-or-failed"), ("OOMPolicy", "continue"),
                        ("MemoryMax", str(1 << 30)), ("MemorySwapMax", "0"), ("TasksMax", "64"), ("CPUQuotaPerSecUSec", "500ms")):
        t.equal(show(unit, prop, *USER), value, prop)
    t.contains(good("systemctl", *USER, "--no-pager", "status", unit), "Session made", "systemctl status")
    t.equal(launcher.channel.request("stop", session=name)["type"], "ok", "stop")
    last, told = s.ended()
    t.equal((last["reason"], last["status"], told["status"]), ("signal", 143, 0), "the end")
    wait_for(lambda: gone(unit))
    t.check("scope-ended" not in [m["type"] for m in launcher.channel.events], "its end was nobody else's doing")


@case("C205 C200: a session is started again as soon as it has ended, although its scope may be going still")
def _(t):
    launcher = start(t)
    for _ in range(20):
        s = launcher.session("again", "true", scope=scope("again")).launch()
        last, _ = s.ended()
        t.equal((last["reason"], last["status"]), ("exited", 0), "the end")


@case("C205: a hundred at once, each in its own scope before it runs, and none is left", timeout=120)
def _(t):
    launcher = start(t)
    for group in range(5):
        sessions = [launcher.session(f"many{group}x{i}", "true", scope=scope(f"many{group}x{i}")) for i in range(20)]
        serials = {}
        for s in sessions:
            launcher.channel.serial += 1
            serials[launcher.channel.serial] = s
            launcher.channel.send({"v": 1, "type": "launch", "serial": launcher.channel.serial, **s.members, "fds": list(s.fds)}, list(s.fds.values()))
            s.close()
        while serials:  # in whatever order they come
            message = launcher.channel.receive()
            s = serials.pop(message.get("serial"), None)
            if s:
                t.equal((message["type"], message.get("scope")), ("launched", f"errand-session-{s.name}.scope"), message)
            else:
                launcher.channel.events.append(message)
        for s in sessions:
            last, told = s.ended()
            t.equal((last["reason"], last["status"], told["status"]), ("exited", 0, 0), s.name)
    wait_for(lambda: not good("systemctl", *USER, "list-units", "--all", "--plain", "--no-legend", "errand-session-many*").strip())


@case("C082: limits are read back from the kernel: those that its manager has no controller for are told")
def _(t):
    launcher = start(t)
    controllers = launcher.channel.request("probe")["controllers"]
    s = launcher.session("limits", "true", scope=scope("limits", memoryMax=1 << 30, tasksMax=64, cpuQuotaPerSecUSec=500000))
    reply = s.try_launch()
    t.equal(reply["notApplied"], [limit for limit, controller in (("memoryMax", "memory"), ("tasksMax", "pids"), ("cpuQuotaPerSecUSec", "cpu"))
                                  if controller not in controllers], "what is not held")
    s.ended()


@case("D003: an administrator's systemctl stop of the scope is told, and ends the session")
def _(t):
    launcher = start(t)
    # One that a stop does not end at once: the end of another may be told before it is known that there is a stop.
    s = launcher.session("stopped", "sh", "-c", "trap '' TERM; exec sleep 1000", scope=scope("stopped"), graceMs=100).launch()
    s.started()
    wait_for(lambda: children_named(s, "sleep"))
    good("systemctl", *USER, "--no-block", "stop", "errand-session-stopped.scope")
    launcher.channel.event("scope-ended", session="stopped")
    t.equal(launcher.channel.request("stop", session="stopped")["type"], "ok", "stop")
    last, told = s.ended()
    t.equal(told["status"], 0, "the shim's status")
    t.check(last["event"] == "exited", last)
    wait_for(lambda: gone("errand-session-stopped.scope"))


@case("C200 T004: errandd, and the launcher too, go and come back: the session goes on and is stopped")
def _(t):
    launcher = start(t)
    s = launcher.session("stays", "sleep", "1000", scope=scope("stays")).launch()
    s.started()
    launcher.channel.close()
    launcher.connect()
    t.equal(launcher.channel.request("adopt", session="stays", shimSocket=s.socket_path, scope="errand-session-stays.scope")["type"], "ok", "adopt")
    before = main_pid()
    good("systemctl", "stop", "errand-launch.service")
    t.check(not Watch(s.pid).ended(0), "the shim went with the launcher")
    launcher.connect()
    t.equal(launcher.channel.request("adopt", session="stays", shimSocket=s.socket_path, scope="errand-session-stays.scope")["type"], "ok", "adopt")
    t.check(main_pid() not in (0, before), "no other launcher")
    t.equal(launcher.channel.request("stop", session="stays", shimSocket=s.socket_path)["type"], "ok", "stop")
    last, told = s.ended()
    t.equal((last["reason"], last["status"], told["status"]), ("signal", 143, None), "the end")


@case("T004: from inside a session neither the user manager nor the launcher is reached")
def _(t):
    launcher = start(t)
    policy = '[filesystem]\nread = ["/run"]\n'
    script = ("import socket,sys\nfor path, kind in ((sys.argv[1], socket.SOCK_STREAM), ('/run/errand/launch', socket.SOCK_SEQPACKET)):\n"
              "    s = socket.socket(socket.AF_UNIX, kind)\n    try:\n        s.connect(path)\n        sys.exit('reached ' + path)\n"
              "    except OSError:\n        pass\n")
    s = launcher.session("inside", "/usr/bin/python3", "-c", script, f"/run/user/{AGENT.pw_uid}/systemd/private", policy=policy, scope=scope("inside")).launch()
    last, _ = s.ended()
    t.equal((last["reason"], last["status"]), ("exited", 0), f"{last['text']} {s.transcript()}")


@case("C205: without the user manager nothing runs, and the answer says what to do; once it is back all is well")
def _(t):
    launcher = start(t)
    good("systemctl", "stop", SERVICE)
    try:
        s = launcher.session("none", "touch", "ran", scope=scope("none"))
        reply = s.try_launch()
        t.equal(reply["type"], "error", reply)
        t.contains(reply["text"], "loginctl enable-linger", "the reply")
        t.check(not os.path.exists(os.path.join(s.project, "ran")), "it ran")
        t.equal(launcher.channel.request("probe")["scopes"], False, "the probe")
    finally:
        good("systemctl", "start", SERVICE)
    s = launcher.session("none", "true", scope=scope("none")).launch()
    t.equal(s.ended()[0]["status"], 0, "the status")


run_tests()
