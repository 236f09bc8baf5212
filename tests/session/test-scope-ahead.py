#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The scope that a launcher has made before its session comes, as test-scope.py has them."""

import os
import resource
import signal

import errand_launch
import errand_test
from errand_launch import Watch, children, descendants, wait_for
from errand_scope import Group, enter, need_root, nothing_ran, scope, start
from errand_test import case, run

LIMITS = {"memoryMax": 1 << 30, "tasksMax": 64}


def prepare(t, launcher, group, name, **more):
    """Says that the session comes; the process that waits in its scope."""
    t.equal(launcher.channel.request("prepare", session=name, scope=scope(name, **more))["type"], "ok", "prepare")
    wait_for(lambda: len(waits(group, name)) == 1)
    return waits(group, name)[0]


def waits(group, name):
    return group.processes(f"errand-session-{name}.scope")


def know_made(t, launcher, manager, name):
    """Until the launcher knows that it is made: each request that it answers lets it take another message of those that were there before."""
    manager.until(f"told errand-session-{name}.scope")
    for _ in range(8):
        t.equal(launcher.channel.request("nothing")["type"], "error", "a request of no meaning")


def words(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        return f.read().rstrip(b"\0").decode().split("\0")


def sanitized(program):
    """Whether it has an address sanitizer, which takes each process its soft core limit before main()."""
    with open(errand_test.program(program), "rb") as f:
        return b"__asan_init" in f.read()


def asked(manager):
    return [line for line in manager.lines if line.split()[0] in ("start", "stop")]


@case("D003 S187 C056: the scope that was made before has the session's process, which had nothing until then, and the session all that it is given")
def _(t):
    need_root(t)
    group = Group(t)
    soft, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))
    launcher, manager = start(t, "made", group=group, ahead=True)
    resource.setrlimit(resource.RLIMIT_CORE, (soft, hard))
    first = prepare(t, launcher, group, "comes", **LIMITS)
    t.equal([os.readlink(f"/proc/{first}/fd/{n}").split(":")[0] for n in sorted(os.listdir(f"/proc/{first}/fd"), key=int)][3:], ["socket"], "what it has")
    with open(f"/proc/{first}/comm", encoding="ascii") as f:
        t.equal(f.read(), "bailey-ahead\n", "what it is")
    t.equal(words(first)[:2], ["bailey", "--wait-fd"], "its arguments")
    with open(f"/proc/{first}/environ", "rb") as f:
        t.equal(f.read(), b"", "its environment")
    out, write = os.pipe()
    s = launcher.session("comes", "sh", "-c", "env; ls /proc/self/fd | tr '\\n' ' '; ulimit -c; read x; exit 7", stdio={"stdout": write, "stdin": os.open("/dev/null", os.O_RDONLY)},
                         environment={"MINE": "yes"}, fileMax=1 << 20, scope=scope("comes", **LIMITS))
    reply = s.try_launch()
    t.equal((reply["type"], reply.get("scope"), reply.get("notApplied")), ("launched", "errand-session-comes.scope", ["memoryMax", "tasksMax"]), reply)
    s.pid = reply["pid"]
    t.equal(s.ended()[0]["status"], 7, "its status")
    text = b""
    while data := os.read(out, 65536):
        text += data
    os.close(out)
    t.contains(text, b"MINE=yes", "its environment")
    t.contains(text, b"0 1 2 3", "its descriptors")
    limit = "0" if sanitized("errand-shim") else "unlimited" if hard == resource.RLIM_INFINITY else str(hard // 512)
    t.equal(text.split()[-1].decode(), limit, "its core limit, which the shim takes from itself alone")
    manager.until("process")
    t.equal(asked(manager), ["start errand-session-comes.scope fail"], "what was asked")
    t.equal([line for line in manager.lines if line.startswith("process")], [f"process {first}"], "which process was moved")


@case("C046: bailey is told of the group, and the session ends whole, with a terminal also")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, _ = start(t, "made", group=group, ahead=True)
    first = prepare(t, launcher, group, "tells")
    s = launcher.session("tells", "sh", "-c", "echo begin; read x", interactive=True, scope=scope("tells")).launch()
    t.equal(children(s.pid), [first], "its first process")
    terminal = s.attach()
    terminal.until("begin")
    t.check(os.path.isdir(f"{group.path}/errand-session-tells.scope/payload"), "a group that bailey made in it")
    t.equal(sorted(waits(group, "tells")), sorted(descendants(s.pid)), "what is in the scope: all but the shim")
    launcher.channel.request("stop", session="tells")
    s.ended()
    t.equal(waits(group, "tells"), [], "what is left in it")


@case("S187 C082: with other limits than it was made with it is not used, but ended, and one is made with those of now")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, manager = start(t, "made", group=group, ahead=True)
    watch = Watch(prepare(t, launcher, group, "other", **LIMITS))
    s = launcher.session("other", "sleep", "1000", scope=scope("other", **{**LIMITS, "tasksMax": 32})).launch()
    t.check(watch.ended(), "what waited in it")
    t.equal(words(s.pid)[1], "--fd", "how its shim was started")
    s.started()
    manager.until("property TasksMax=32")
    launcher.channel.request("stop", session="other")
    s.ended()


@case("C200: another session leaves it to the one that it is for; that it comes no more, or errandd goes, or the launcher, is its end")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, _ = start(t, "made", group=group, ahead=True)
    first = prepare(t, launcher, group, "mine")
    s = launcher.session("plain", "sleep", "1000", scope=scope("plain")).launch()
    t.equal((words(s.pid)[1], waits(group, "mine")), ("--fd", [first]), "its shim, and what waits")
    s.started()
    watch = Watch(first)
    t.equal(launcher.channel.request("prepare")["type"], "ok", "prepare")
    t.check(watch.ended(), "after it was said that none comes")
    watch = Watch(prepare(t, launcher, group, "second"))
    third = prepare(t, launcher, group, "third")
    t.check(watch.ended(), "after another was said to come")
    watch = Watch(third)
    launcher.channel.close()
    t.check(watch.ended(), "after errandd went")
    launcher.connect()
    watch = Watch(prepare(t, launcher, group, "fourth"))
    launcher.kill()
    t.check(watch.ended(), "after the launcher was killed")
    launcher.connect()
    launcher.start()
    t.equal(launcher.channel.request("adopt", session="plain", shimSocket=s.socket_path)["type"], "ok", "adopt")
    launcher.channel.request("stop", session="plain")
    s.ended()


@case("C205 C206: what waits in it is killed, or its shim, or it cannot be made: the session makes its own")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, manager = start(t, "made", group=group, ahead=True)
    for name, dies in (("one", lambda pid: pid), ("two", lambda pid: errand_launch.status_of(pid, "PPid")[0])):
        first = prepare(t, launcher, group, name)
        watch = Watch(first)
        errand_launch.kill(int(dies(first)))
        t.check(watch.ended(), "what waits")
        s = launcher.session(name, "sh", "-c", "exit 3", scope=scope(name)).launch()
        t.equal(s.ended()[0]["status"], 3, "its status")
    manager.stop()
    launcher, manager = start(t, "refused", group=group, ahead=True)
    launcher.channel.request("prepare", session="none", scope=scope("none"))
    wait_for(lambda: "No scope can be made ahead: the user manager refuses errand-session-none.scope" in launcher.log_text())
    nothing_ran(t, launcher, launcher.session("none", "touch", "ran", scope=scope("none")), "the user manager refuses")


def hand_over(t, launcher, s, first):
    """Sends the launch to a launcher whose shim, which waits, is stopped. The pid of that, and the launch's serial, when it is on its way to the shim."""
    shim = int(errand_launch.status_of(first, "PPid")[0])
    os.kill(shim, signal.SIGSTOP)
    launcher.channel.serial += 1
    serial = launcher.channel.serial
    launcher.channel.send({"v": 1, "type": "launch", "serial": serial, **s.members, "fds": list(s.fds)}, list(s.fds.values()))
    t.equal(launcher.channel.request("nothing")["type"], "error", "a request after it")
    return shim, serial


def hand_over_made(t, group, name, *command):
    """The same of a session whose scope its launcher knows to be made → launcher, session, its first process, shim and serial."""
    launcher, manager = start(t, "made", group=group, ahead=True)
    first = prepare(t, launcher, group, name)
    know_made(t, launcher, manager, name)
    s = launcher.session(name, *command, scope=scope(name))
    return launcher, s, first, *hand_over(t, launcher, s, first)


@case("D003: what waits in its scope is let go by the shim, without another word of the launcher's")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, s, _, shim, serial = hand_over_made(t, group, "soon", "sh", "-c", "exit 3")
    os.kill(launcher.process.pid, signal.SIGSTOP)
    t.defer(os.kill, launcher.process.pid, signal.SIGCONT)
    os.kill(shim, signal.SIGCONT)
    s.started()
    os.kill(launcher.process.pid, signal.SIGCONT)
    reply = launcher.channel.reply(serial)
    t.equal((reply["type"], reply.get("pid"), reply.get("scope")), ("launched", shim, "errand-session-soon.scope"), reply)
    s.pid = shim
    s.close()
    t.equal(s.ended()[0]["status"], 3, "its status")


@case("C205: one that was taken out of the scope that was made for it does not run, and that is told")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, s, first, shim, serial = hand_over_made(t, group, "out", "touch", "ran")
    with open(os.path.join(group.launcher, "cgroup.procs"), "w", encoding="ascii") as f:
        f.write(str(first))
    os.kill(shim, signal.SIGCONT)
    reply = launcher.channel.reply(serial)
    t.equal(reply["type"], "error", reply)
    t.contains(reply["text"], "its first process is not in the scope that was made for it", "the reply")
    t.check(not os.path.exists(os.path.join(s.project, "ran")), "it ran")
    s.close()


@case("C206: a command that is too long for what waits, and a shim that is killed with the session in its hands: another process, another scope")
def _(t):
    need_root(t)
    group = Group(t)
    launcher, _ = start(t, "made", group=group, ahead=True)
    first = prepare(t, launcher, group, "long")
    s = launcher.session("long", "sh", "-c", "sleep 1000", "x" * 60000, scope=scope("long"),
                         environment={"PATH": "/usr/bin:/bin" + ":/usr" * 2000}).launch()
    s.started()
    t.equal((words(s.pid)[1], first in children(s.pid)), ("--session", False), "its shim is the one that waited, its first process is not")
    launcher.channel.request("stop", session="long")
    s.ended()
    first = prepare(t, launcher, group, "hands")
    s = launcher.session("hands", "sh", "-c", "exit 3", scope=scope("hands"))
    shim, serial = hand_over(t, launcher, s, first)
    errand_launch.kill(shim)
    reply = launcher.channel.reply(serial)
    t.equal(reply["type"], "launched", reply)
    t.check(reply["pid"] != shim, "its shim")
    s.pid = reply["pid"]
    s.close()
    t.equal(s.ended()[0]["status"], 3, "its status")


enter(__file__)
run()
