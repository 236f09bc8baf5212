#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The scope that errand-launch has made around a session, by a stand-in for the account's user manager. As root this runs in a mount namespace
of its own with the unified hierarchy where systemd has it, and the processes are really moved."""

import contextlib
import os
import signal
import socket
import subprocess

import errand_launch
from errand_launch import PAYLOAD, Watch, children, children_named, descendants, wait_for
from errand_scope import CGROUP, ROOT, Group, Manager, enter, need_root, nothing_ran, scope, start
from errand_test import case, run


# ---- made ----

@case("D003 S187: a session runs in a scope of its own, with its limits; the shim does not; it goes with its last process")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, manager = start(t, "made", group=group)
    launcher.channel.request("probe")  # by then the manager has said what it is
    out, write = os.pipe()
    s = launcher.session("made", "sh", "-c", "env; echo --; cat /proc/self/cgroup; sleep 1000", stdio={"stdout": write},
                         scope=scope("made", memoryMax=4 << 30, memorySwapMax=0, tasksMax=512, cpuQuotaPerSecUSec=2000000))
    reply = s.try_launch()
    t.equal((reply["type"], reply.get("scope")), ("launched", "errand-session-made.scope"), reply)
    s.pid = reply["pid"]
    s.started()
    manager.until("process")
    t.check("start errand-session-made.scope fail" in manager.lines, "the request")
    t.equal({line for line in manager.lines if line.startswith("property")}, {
        "property Description=Session made", "property Delegate=yes", "property OOMPolicy=continue", "property CollectMode=inactive-or-failed",
        "property Slice=errand.slice", "property MemoryMax=4294967296", "property MemorySwapMax=0", "property TasksMax=512",
        "property CPUQuotaPerSecUSec=2000000", "property PIDFDs"}, "its properties")
    bailey = children(s.pid)[0]
    t.equal(manager.lines[-1], f"process {bailey}", "the process that was moved")
    wait_for(lambda: children_named(s, "sleep"))
    t.equal(sorted(group.processes("errand-session-made.scope")), sorted(descendants(s.pid)), "what is in the scope: all but the shim")
    with open(f"/proc/{bailey}/environ", "rb") as f:
        t.contains(f.read().split(b"\0"), f"BAILEY_CGROUP_ROOT={group.path}/errand-session-made.scope".encode(), "bailey's environment")
    text = ""
    while "0::" not in text:
        text += os.read(out, 65536).decode()
    t.lacks(text, "BAILEY_CGROUP_ROOT", "the session's environment")
    t.equal(launcher.channel.request("stop", session="made")["type"], "ok", "stop")
    last, gone = s.ended()
    t.equal((last["reason"], last["status"], gone["status"]), ("signal", 143, 0), "the end")
    t.equal(group.processes("errand-session-made.scope"), [], "what is left in it")
    t.check("scope-ended" not in [m["type"] for m in launcher.channel.events], "an end that nobody else made")


@case("C205: a manager before systemd 255 is given the number of the process, which stays its own")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, manager = start(t, "early", "252.39-1~deb12u2", group)
    s = launcher.session("older", "true", scope=scope("older", slice=None, delegate=False)).launch()
    manager.until("process")
    t.check("property PIDs" in manager.lines and "property PIDFDs" not in manager.lines, manager.lines)
    t.check("property Delegate=no" in manager.lines and not any("Slice" in line for line in manager.lines), manager.lines)
    t.equal(s.ended()[0]["status"], 0, "the status")


@case("C046 C200: all that is left in the scope ends with the session, and with a shim that is killed")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, manager = start(t, "made", group=group)
    for name, kill_shim in (("sweeps", False), ("shimless", True)):
        unit = f"errand-session-{name}.scope"
        s = launcher.session(name, "sleep", "1000", scope=scope(name), graceMs=300).launch()
        s.started()
        # What got out of the sandbox's namespaces, and what its account moved there.
        stray = subprocess.Popen(["sleep", "1000"], preexec_fn=lambda unit=unit: (group.enter(), join(group, unit)), start_new_session=True)
        t.check(stray.pid in group.processes(unit), "it is not in the scope")
        if kill_shim:
            errand_launch.kill(s.pid)
            launcher.channel.event("shim-exited", session=name)
            manager.until(f"stop {unit}")
            stray.kill()
        else:
            launcher.channel.request("stop", session=name)
            s.ended()
            t.check(Watch(stray.pid).ended(), "what was left runs on")
        stray.wait()


def join(group, unit):
    with open(os.path.join(group.path, unit, "cgroup.procs"), "w", encoding="ascii") as f:
        f.write("0")


@case("C046: what does not heed a stop is ended, and it is said who did it")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, _ = start(t, "made", group=group)
    s = launcher.session("deaf", "sh", "-c", "trap '' TERM; sleep 1000; sleep 1000", scope=scope("deaf"), graceMs=300).launch()
    wait_for(lambda: children_named(s, "sleep"))
    launcher.channel.request("stop", session="deaf")
    last, _ = s.ended()
    t.equal((last["reason"], last["status"]), ("killed", 137), "the end")
    t.contains(last["text"], "did not end in time", "the text")


@case("C205: the scope of an earlier run that is there still is ended first")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, manager = start(t, "exists", group=group)
    s = launcher.session("again", "true", scope=scope("again")).launch()
    manager.until("process")
    t.equal([line.split()[0] for line in manager.lines if line.split()[0] in ("start", "stop")], ["start", "stop", "start"], "what was asked")
    t.equal(s.ended()[0]["status"], 0, "the status")


@case("D003: a stop of the scope by somebody else is told at once, and once; another job is not")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, manager = start(t, "made", group=group)
    s = launcher.session("stopped", "sleep", "1000", scope=scope("stopped")).launch()
    manager.process.send_signal(signal.SIGUSR2)
    launcher.channel.request("usage", session="stopped")
    manager.process.send_signal(signal.SIGUSR1)
    launcher.channel.event("scope-ended", session="stopped")
    manager.process.send_signal(signal.SIGUSR1)
    launcher.channel.request("stop", session="stopped")
    s.ended()
    t.equal([m["type"] for m in launcher.channel.events], [], "what else was told")
    # The next launcher has not made it and hears of it all the same.
    s = launcher.session("stopped", "sleep", "1000", scope=scope("stopped")).launch()
    s.started()
    launcher.kill()
    launcher.start()
    launcher.connect()
    t.equal(launcher.channel.request("adopt", session="stopped", shimSocket=s.socket_path, scope="errand-session-stopped.scope")["type"], "ok", "adopt")
    launcher.channel.request("probe")  # by then it is connected
    manager.process.send_signal(signal.SIGUSR1)
    launcher.channel.event("scope-ended", session="stopped")


@case("D003: a manager that went and came back is heard again; of a job that is over already the unit is asked")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, manager = start(t, "made", group=group)
    s = launcher.session("back", "sleep", "1000", scope=scope("back")).launch()
    manager.stop()
    manager = Manager(t, "forgetful", group=group)
    manager.until("subscribed")
    manager.process.send_signal(signal.SIGUSR1)
    launcher.channel.event("scope-ended", session="back")
    launcher.channel.request("stop", session="back")
    s.ended()


@case("C085: what the memory's limit has ended is told as that")
def _(t):
    need_root(t)
    with open(os.path.join(CGROUP, "cgroup.subtree_control"), encoding="ascii") as f:
        if "memory" not in f.read().split():
            t.skip("the kernel's controller of memory is not in the unified hierarchy here")
    group = Group(t)
    for path in (group.path,):
        with open(os.path.join(path, "cgroup.subtree_control"), "w", encoding="ascii") as f:
            f.write("+memory")
    unit = os.path.join(group.path, "errand-session-hog.scope")
    os.mkdir(unit)
    os.chown(unit, PAYLOAD, PAYLOAD)
    os.chown(os.path.join(unit, "cgroup.procs"), PAYLOAD, PAYLOAD)
    for name, value in (("memory.max", str(64 << 20)), ("memory.swap.max", "0")):
        with contextlib.suppress(FileNotFoundError), open(os.path.join(unit, name), "w", encoding="ascii") as f:
            f.write(value)
    launcher, _ = start(t, "made", group=group)
    s = launcher.session("hog", "/usr/bin/python3", "-c", "x = b'x' * (1 << 30)", scope=scope("hog"), strict=False, acceptGaps=None).launch()
    last, _ = s.ended()
    t.equal((last["reason"], last["status"]), ("killed", 137), "the end")
    t.contains(last["text"], "out of memory", "the text")


@case("C082: a limit that the kernel does not hold is told, and where it is required nothing runs")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, _ = start(t, "made", group=group)  # which sets none
    limits = {"memoryMax": 1 << 30, "tasksMax": 64}
    s = launcher.session("limits", "true", scope=scope("limits", **limits))
    reply = s.try_launch()
    t.equal((reply["type"], reply["notApplied"]), ("launched", ["memoryMax", "tasksMax"]), reply)
    t.equal(s.ended()[0]["status"], 0, "the status")
    s = launcher.session("required", "touch", "ran", scope=scope("required", **limits, required=["tasksMax"]))
    nothing_ran(t, launcher, s, "TasksMax of errand-session-required.scope is not held by the kernel")
    s = launcher.session("none", "true", scope=scope("none"))
    t.equal(s.try_launch()["notApplied"], [], "without a limit")


# ---- not made: nothing runs ----

def add_not_made(mode, text, stopped):
    @case(f"C205: a scope that cannot be made ({mode}): nothing runs, and the answer says why")
    def _(t):
        launcher, manager = start(t, mode)
        s = launcher.session("none", "touch", "ran", scope=scope("none"))
        nothing_ran(t, launcher, s, text)
        t.equal([(e["event"], e["reason"], e["status"]) for e in s.events()], [("exited", "setup", 125)], "the events")
        if stopped:
            manager.until("stop errand-session-none.scope")
        s = launcher.session("none", "true").launch()  # the launcher goes on; without a scope nobody is asked
        t.equal(s.ended()[0]["status"], 0, "a session without a scope")


for row in (("refused", "errand-session-none.scope: Not today,\\nsays the manager", False), ("failed", "its job ended with \"failed\"", True),
            ("unmoved", "but the process is in /", True)):
    add_not_made(*row)


@case("C205: no user manager, or another account's: nothing is started")
def _(t):
    launcher, _ = start(t, None)
    s = launcher.session("nobody", "touch", "ran", scope=scope("nobody"))
    nothing_ran(t, launcher, s, "loginctl enable-linger")
    t.check(not os.path.exists(s.events_path) or not s.events(), "events")
    if ROOT:
        os.mkdir(os.path.join(t.directory, "systemd"))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(os.path.join(t.directory, "systemd", "private"))
        os.chmod(os.path.join(t.directory, "systemd", "private"), 0o666)
        listener.listen(1)
        s = launcher.session("nobody", "touch", "ran", scope=scope("nobody"))
        nothing_ran(t, launcher, s, "Operation not permitted")
    probe = launcher.channel.request("probe")
    t.equal((probe["scopes"], probe["controllers"]), (False, []), "the probe")
    t.contains(probe["scopesProblem"], "is not reached", "the probe")


@case("C205: a manager that does not answer, or whose job does not end, is not waited for without bound", timeout=60)
def _(t):
    launcher, manager = start(t, "silent")
    s = launcher.session("silent", "touch", "ran", scope=scope("silent"))
    # The end of it, and one that goes on meanwhile.
    launcher.channel.serial += 1
    serial = launcher.channel.serial
    launcher.channel.send({"v": 1, "type": "launch", "serial": serial, **s.members, "fds": list(s.fds)}, list(s.fds.values()))
    s.close()
    other = launcher.session("other", "true").launch()
    t.equal(other.ended()[0]["status"], 0, "another session meanwhile")
    waiting = s.connect()
    t.equal(waiting.request("status")["state"], "starting", "the state")
    reply = launcher.channel.reply(serial)
    t.contains(reply["text"], "within 10 seconds", "the reply")
    t.check(not os.path.exists(os.path.join(s.project, "ran")), "it ran")
    t.equal(children(launcher.process.pid), [], "what is there still")
    manager.until("stop errand-session-silent.scope")


def begin(t, mode, name):
    """A session whose scope is not made yet → launcher, session, the serial of the launch."""
    launcher, manager = start(t, mode)
    s = launcher.session(name, "touch", "ran", scope=scope(name))
    launcher.channel.serial += 1
    launcher.channel.send({"v": 1, "type": "launch", "serial": launcher.channel.serial, **s.members, "fds": list(s.fds)}, list(s.fds.values()))
    s.close()
    manager.until("process")
    return launcher, s, launcher.channel.serial


@case("C205 C200: a stop, or a death, while the scope is being made: nothing runs")
def _(t):
    launcher, s, serial = begin(t, "hanging", "early")
    t.equal(s.connect().request("stop")["type"], "ok", "stop")
    reply = launcher.channel.reply(serial)
    t.contains(reply["text"], "stopped before it ran", "the reply")
    t.equal((s.exited()["reason"], s.exited()["status"]), ("killed", 143), "the last event")
    t.check(not os.path.exists(os.path.join(s.project, "ran")), "it ran")


@case("C200: what one errandd asked is not answered to the next")
def _(t):
    launcher, s, serial = begin(t, "hanging", "late")
    first = launcher.channel
    second = launcher.connect()
    t.equal(second.request("usage", session="nobody")["type"], "error", "the second's own request")
    shim = Watch(children(launcher.process.pid)[0])
    t.equal(s.connect().request("stop")["type"], "ok", "stop")
    t.check(shim.ended(), "the shim goes on")
    wait_for(lambda: not children(launcher.process.pid))
    second.serial = 1000
    t.equal(second.request("usage", session="nobody")["type"], "error", "the second's own request")
    t.equal([m for m in second.events if m.get("serial") == serial], [], "answers to what the first asked")
    try:
        t.fail(f"the first is answered: {first.receive()}")
    except errand_launch.Ended:
        pass


@case("C205 C200: kill -9 of the launcher while the scope is being made: the shim says that nothing ran")
def _(t):
    launcher, s, _ = begin(t, "hanging", "orphan")
    shim = children(launcher.process.pid)[0]
    watch = [Watch(shim), *(Watch(pid) for pid in children(shim))]
    launcher.kill()
    t.check(all(w.ended() for w in watch), "something is left")
    last = s.exited()
    t.equal((last["reason"], last["status"]), ("setup", 125), "the last event")
    t.contains(last["text"], "errand-launch went", "the text")
    t.check(not os.path.exists(os.path.join(s.project, "ran")), "it ran")


@case("C205 C200: kill -9 of the shim while the scope is being made: what waits goes with it")
def _(t):
    launcher, s, serial = begin(t, "hanging", "shimless")
    shim = children(launcher.process.pid)[0]
    waiting = [Watch(pid) for pid in children(shim)]
    errand_launch.kill(shim)
    t.equal(launcher.channel.reply(serial)["type"], "error", "the reply")
    t.check(all(w.ended() for w in waiting), "something is left")
    t.check(not os.path.exists(os.path.join(s.project, "ran")), "it ran")


# ---- requests ----

@case("C199: a scope that is wrong is refused whole")
def _(t):
    launcher, manager = start(t, "made")
    rows = [({"unit": "errand-session-other.scope"}, "\"unit\""), ({"unit": "sshd.service"}, "\"unit\""), ({"unit": None}, "\"unit\""),
            ({"slice": "errand.scope"}, "\"slice\""), ({"slice": ".slice"}, "\"slice\""), ({"slice": "-.slice"}, "\"slice\""), ({"slice": "a/b.slice"}, "\"slice\""),
            ({"description": "a\nb"}, "\"description\""), ({"description": "x" * 300}, "\"description\""), ({"memoryMax": 0}, "\"memoryMax\""),
            ({"memoryMax": "4g"}, "\"memoryMax\""), ({"memorySwapMax": -1}, "\"memorySwapMax\""), ({"tasksMax": 0}, "\"tasksMax\""),
            ({"cpuQuotaPerSecUSec": 0.5}, "\"cpuQuotaPerSecUSec\""), ({"delegate": 1}, "\"delegate\""), ({"Wants": "x.service"}, "\"Wants\" is no member")]

    def refuse(row):
        s = launcher.session("wrong", "touch", "ran", scope=scope("wrong", **row[0]))
        nothing_ran(t, launcher, s, row[1])
    t.each(rows, refuse)
    t.contains(launcher.session("wrong", "touch", "ran", scope=[1]).try_launch()["text"], "\"scope\" is not an object", "the reply")
    t.equal(manager.lines, ["ready"], "what the manager was asked")


@case("T019: probe tells that scopes can be made, and with which controllers")
def _(t):
    group = Group(t) if ROOT else None
    launcher, _ = start(t, "made", group=group)
    probe = launcher.channel.request("probe")
    t.equal((probe["scopes"], probe["scopesProblem"]), (True, None), "the probe")
    if ROOT:
        with open(os.path.join(group.path, "cgroup.controllers"), encoding="ascii") as f:
            t.equal(probe["controllers"], f.read().split(), "the controllers")


enter(__file__)
run()
