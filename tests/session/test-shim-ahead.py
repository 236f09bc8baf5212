#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The shim that a launcher which is a service has started ahead: a session is begun with it, or without it where it is gone."""

import os
import signal
import socket
import subprocess

import errand_test
from errand_launch import Launcher, Watch, children, kill, wait_for
from errand_test import case, run


def words(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as f:
        return f.read().rstrip(b"\0").decode().split("\0")


def waiting(launcher):
    """Pids of shims that wait for a session: they have executed, and say so by their name."""
    found = []
    for pid in children(launcher.process.pid):
        try:
            with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                if f.read() == "shim-ahead\n":
                    found.append(pid)
        except OSError:
            pass
    return found


def one_waits(launcher, *, but=()):
    wait_for(lambda: [p for p in waiting(launcher) if p not in but])
    pids = waiting(launcher)
    if len(pids) != 1:
        raise errand_test.Failure(f"{len(pids)} shims wait")
    return pids[0]


def fds(pid):
    """{number: what it is}, but for the standard ones."""
    return {int(n): os.readlink(f"/proc/{pid}/fd/{n}") for n in os.listdir(f"/proc/{pid}/fd") if int(n) > 2}


def new(t, **more):
    launcher = Launcher(t, listening=True, ahead=True, **more)
    launcher.connect()
    return launcher


def stop(t, launcher, s, status=0):
    s.started()
    t.equal(launcher.channel.request("stop", session=s.name, shimSocket=s.socket_path)["type"], "ok", "stop")
    last, gone = s.ended()
    t.equal((last["reason"], last["status"], gone["status"]), ("signal", 143, status), f"the end of {s.name}")


@case("C206: a session gets the one that waits, by whose arguments it is known from then on, and the next comes after it was answered")
def _(t):
    launcher = new(t)
    first = one_waits(launcher)
    t.equal(words(first)[:2], ["errand-shim", "--wait-fd"], "its arguments")
    s = launcher.session("gets", "sh", "-c", "echo begin; while read x; do echo said $x; done", interactive=True).launch()
    t.equal(s.pid, first, "the shim")
    t.equal(words(first), ["errand-shim", "--session", "gets"], "its arguments")
    terminal = s.attach()
    terminal.until("begin")
    terminal.type("on\n")
    terminal.until("said on")
    second = one_waits(launcher)
    t.check(second != first, "the next")
    stop(t, launcher, s)
    s = launcher.session("and", "sh", "-c", "exit 3").launch()
    t.equal(s.pid, second, "the next session's shim")
    t.equal(s.ended()[0]["status"], 3, "its status")


@case("C057 C058 T004: what waits has one socket and nothing of a session's, and what a session is given does not reach the next")
def _(t):
    launcher = new(t)
    one_waits(launcher)
    out, write = os.pipe()
    s = launcher.session("one", "sh", "-c", "ls /proc/self/fd | tr '\\n' ' '; exec sleep 1000", stdio={"stdout": write}, secrets=["a-secret-of-one"]).launch()
    s.started()
    second = one_waits(launcher)
    if os.getuid() == 0:  # else it cannot be looked into
        found = fds(second)
        t.equal([what.split(":")[0] for what in found.values()], ["socket"], "what it has beside the standard ones")
        t.equal([words(second)[2]], [str(n) for n in found], "its number")
        t.equal([os.readlink(f"/proc/{second}/fd/{n}") for n in (0, 1)], ["/dev/null"] * 2, "its standard input and output")
        with open(f"/proc/{second}/environ", "rb") as f:
            t.equal(f.read(), b"", "its environment")
        t.check(all(n not in fds(s.pid) or fds(s.pid)[n] != what for n, what in found.items()), "the session's shim has the socket of the one that waits")
    t.contains(os.read(out, 4096).decode(), "0 1 2 3", "what the command has")
    other = launcher.session("two", "sleep", "1000").launch()
    other.started()
    t.equal(other.pid, second, "the shim of the second")
    if os.getuid() == 0:
        places = {os.readlink(f"/proc/{s.pid}/fd/{n}") for n in fds(s.pid)} & {os.readlink(f"/proc/{other.pid}/fd/{n}") for n in fds(other.pid)}
        t.equal({p for p in places if not p.startswith("anon_inode:")}, {os.path.dirname(s.socket_path)}, "what both have")
    stop(t, launcher, s)
    os.close(out)
    stop(t, launcher, other)


@case("C206: the one that waits is killed: the session starts its own, and the next waits after that, not before")
def _(t):
    launcher = new(t)
    first = one_waits(launcher)
    kill(first)
    wait_for(lambda: "The shim that was started ahead ended (signal 9); the next session starts its own" in launcher.log_text())
    s = launcher.session("own", "sleep", "1000").launch()
    t.equal(words(s.pid)[1], "--fd", "how its shim was started")
    s.started()
    t.check(one_waits(launcher) != first, "the next")
    stop(t, launcher, s)


def killed_with_it(t, launcher, s, pid):
    """It is asked for the session, and killed before it has looked at that."""
    os.kill(pid, signal.SIGSTOP)
    serial = launcher.channel.serial = launcher.channel.serial + 1
    launcher.channel.send({"v": 1, "type": "launch", "serial": serial, **s.members, "fds": list(s.fds)}, list(s.fds.values()))
    # Answered in turn: what came before has been handed on.
    t.equal(launcher.channel.request("nothing")["type"], "error", "a request after it")
    return serial


@case("C206: it is killed when it has the session and has not looked: another is started, with all that was given")
def _(t):
    launcher = new(t)
    first = one_waits(launcher)
    out, write = os.pipe()
    s = launcher.session("again", "sh", "-c", "echo it runs; exec sleep 1000", stdio={"stdout": write})
    serial = killed_with_it(t, launcher, s, first)
    kill(first)
    reply = launcher.channel.reply(serial)
    s.close()
    t.equal(reply["type"], "launched", "the answer")
    t.check(reply["pid"] != first, "its shim")
    s.pid = reply["pid"]
    t.equal(os.read(out, 100), b"it runs\n", "what it says")
    s.started()
    os.close(out)
    t.equal([e["event"] for e in s.events()].count("started"), 1, "its beginnings")
    t.contains(launcher.log_text(), "the shim that was started ahead has ended, and another is started", "the log")
    stop(t, launcher, s)


@case("C206: what is asked to end before it has looked is not started again")
def _(t):
    launcher = new(t)
    first = one_waits(launcher)
    s = launcher.session("ends", "sleep", "1000")
    serial = killed_with_it(t, launcher, s, first)
    t.equal(launcher.channel.request("kill", session="ends", signal=signal.SIGKILL)["type"], "ok", "kill")
    reply = launcher.channel.reply(serial)
    t.equal(reply["type"], "error", "the answer")
    t.contains(reply["text"], "the shim ended before it listened", "the reason")
    t.equal(s.events(), [], "its events")


@case("C200: the launcher is killed: what waits goes, also with a session that it has not looked at, and sessions stay")
def _(t):
    launcher = new(t)
    one_waits(launcher)
    s = launcher.session("stays", "sh", "-c", "read x", interactive=True).launch()
    second = one_waits(launcher, but=(s.pid,))
    watch = Watch(second)
    launcher.kill()
    t.check(watch.ended(), "it stays without its launcher")
    launcher.connect()
    launcher.start()
    t.equal(launcher.channel.request("adopt", session="stays", shimSocket=s.socket_path)["type"], "ok", "adopt")
    third = one_waits(launcher)
    lost = launcher.session("lost", "sleep", "1000")
    killed_with_it(t, launcher, lost, third)
    watch = Watch(third)
    launcher.kill()
    os.kill(third, signal.SIGCONT)
    t.check(watch.ended(), "it goes on with nobody to answer to")
    t.equal(lost.events(), [], "events of a session that nobody knows of")
    launcher.connect()
    launcher.start()
    t.equal(launcher.channel.request("adopt", session="stays", shimSocket=s.socket_path)["type"], "ok", "adopt")
    stop(t, launcher, s, None)


@case("C200: two are asked for at once: one has it, the other its own")
def _(t):
    launcher = new(t)
    first = one_waits(launcher)
    both = [launcher.session(name, "sleep", "1000") for name in ("a1", "a2")]
    serials = []
    for s in both:
        launcher.channel.serial += 1
        serials.append(launcher.channel.serial)
        launcher.channel.send({"v": 1, "type": "launch", "serial": serials[-1], **s.members, "fds": list(s.fds)}, list(s.fds.values()))
    replies = {}
    while len(replies) < len(both):  # in whatever order
        message = launcher.channel.receive()
        replies[message.get("serial")] = message
    for s, serial in zip(both, serials):
        reply = replies[serial]
        t.equal(reply["type"], "launched", s.name)
        s.pid = reply["pid"]
        s.close()
        s.started()
    t.equal([s.pid == first for s in both], [True, False], "who has it")
    for s in both:
        stop(t, launcher, s)
    one_waits(launcher)


@case("T004: it does not keep its launcher from leaving, and goes with it")
def _(t):
    launcher = Launcher(t, listening=True, ahead=True, idle_ms=1)
    t.equal(launcher.process.wait(20), 0, "the status of one that nobody came to")
    launcher.connect()  # first: one that nobody waits for leaves at once
    launcher.start()
    watches = Watch(one_waits(launcher)), Watch(launcher.process.pid)
    launcher.channel.close()
    t.check(all(w.ended() for w in watches), "they stay with nothing to do")
    t.equal(launcher.process.wait(20), 0, "the status")
    t.check("ended (" not in launcher.log_text(), launcher.log_text())


@case("T004: a launcher that is errandd's own has none")
def _(t):
    launcher = Launcher(t)
    s = launcher.session("plain", "sleep", "1000").launch()
    t.equal(words(s.pid)[1], "--fd", "how its shim was started")
    t.equal(children(launcher.process.pid), [s.pid], "what the launcher has")
    stop(t, launcher, s)


@case("T021: what is no start is refused by it, in a line, and nothing begins")
def _(t):
    for data, text in ((b"{}", "what it is to start is not understood"), (b'{"v":1,"type":"start","arguments":[],"fds":["launcher"]}', "not understood"),
                       (b'{"v":1,"type":"start","arguments":["--session","x"],"fds":[]}', "--fd launcher=N is missing")):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with subprocess.Popen([errand_test.program("errand-shim"), "--wait-fd", str(theirs.fileno()), "for a session"], pass_fds=[theirs.fileno()],
                              stderr=subprocess.PIPE, text=True) as p:
            theirs.close()
            ours.send(data)
            said = p.communicate(timeout=20)[1]
        t.check(p.returncode in (1, 2), f"status {p.returncode}")
        t.contains(said, text, "what it says")
        ours.close()


run()
