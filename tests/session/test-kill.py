#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""kill -9 of each program of a session in turn: it is reported, nothing hangs or is left, no receipt is lost, and the next run works."""

import json
import os
import signal
import socket

import errand_descriptors
import errand_spool
import errand_world
from errand_run import PATIENCE, Errand, Watched, family, wait_for
from errand_test import case, run
from run_story import RunStory

errand_world.enter()

CONTROL = 3  # a broker's descriptor of it, as by socket activation


class Running:
    """A session whose agent has made one call of its provider, and waits for its owner."""

    def __init__(self, t):
        self.t = t
        self.first = RunStory(t).prepare()
        self.errand = self.first.errand
        self.process = self.first.start("echo", "granted")
        self.process.stdout.readline()
        t.contains(self.process.stdout.readline(), "waiting", "the agent's second line")
        # The launcher looks at the disk now, in a process of its name.
        wait_for(lambda: len(self.errand.find("errand-launch")) == 1, "the end of that look")
        self.all = self.errand.family()
        # In the order of their making: bailey as it supervises, and as PID 1 of the session; the agent is what is left.
        bailey = [pid for pid, name in self.all.items() if name == "bailey"]
        self.pids = {"errandd": self.errand.pid(), "bailey": bailey[0], "init": bailey[1]}
        for name in ("errand-launch", "errand-shim", "errand-broker"):
            (self.pids[name],) = (pid for pid, found in self.all.items() if found == name)
        (self.pids["agent"],) = set(self.all) - set(self.pids.values())
        wait_for(self.receipt_kept, "the call's receipt on the disk")

    def receipt_kept(self):
        with open(self.errand.record("s1", "receipts.spool"), "rb") as f:
            return [kind for kind, _ in errand_spool.read(f.read()) if kind == errand_spool.RECEIPT]

    def kill(self, name):
        os.kill(self.pids[name], signal.SIGKILL)

    def session(self):
        """All processes but errandd and its launcher, which serve others as well."""
        return Watched({pid: name for pid, name in self.all.items() if name not in ("errandd", "errand-launch")})

    def go_on(self):
        self.process.stdin.write("go on\n")
        self.process.stdin.flush()

    def ended(self):
        """→ (exit status, standard output, standard error). Its input stays open, so that the agent does not end of itself."""
        self.process.wait(PATIENCE)
        out, err = self.process.stdout.read(), self.process.stderr.read()
        self.t.log("output", lambda: out + err)
        return self.process.returncode, out, err

    def check_after(self, watched, state, reason, status):
        """What holds whoever was killed."""
        t, errand = self.t, self.errand
        watched.await_end()
        if not errand.pid():
            t.equal(errand.sockets(), [], "sockets that are served")
        # What has ended is told to errandd by the kernel, as it is to this test: who is first is not said.
        wait_for(lambda: errand.json("session show", "s1")["state"] != "running", "the end of the session in its record")
        shown = errand.json("session show", "s1")
        t.equal((shown["state"], shown["exitReason"], shown["exitStatus"]), (state, reason, status), "the session")
        receipts = [(r["method"], r["path"], r["status"], r["outcome"]) for r in errand.json("receipts")]
        t.equal(receipts, [("POST", "/echo", 200, "completed")], "the receipts")
        t.equal([s for s in errand.sockets() if s != errand.bus], [], "sockets of sessions")
        result = errand.run("run", "--embedded", "--id", "next", "--", "/bin/sh", "-c", "echo it works; exit 7")
        t.equal((result.returncode, result.stdout, result.stderr), (7, "it works\n", ""), "the next run")
        # The same session may be started again, from its record.
        errand.good("session start", "s1")
        wait_for(lambda: errand.json("session show", "s1")["state"] == "stopped", "the end of the session's second life")


@case("C008 C200: errandd is killed: its sessions end, errand run says so, and the next errandd calls the session lost")
def _(t):
    r = Running(t)
    everything = Watched(r.all)
    r.kill("errandd")
    status, _, err = r.ended()
    t.equal((status, err), (123, "errand: errandd went away, and the session ends with it\n"), "what errand run did")
    everything.await_end()
    r.check_after(Watched({}), "failed", "lost", 128 + signal.SIGTERM)
    t.equal(r.first.other_host.accepts(), [], "connections of the orphaned agent")


@case("C200: errand-launch is killed: the session goes on to its own end, and another launcher serves the next one")
def _(t):
    r = Running(t)
    watched = r.session()
    r.kill("errand-launch")
    wait_for(lambda: [p for p in r.errand.find("errand-launch") if p != r.pids["errand-launch"]], "the next launcher")
    r.first.grant("denied.example")
    r.go_on()
    status, out, _ = r.ended()
    t.check(json.loads(out)["ok"], f"the agent after its grant: {out}")
    t.equal(status, 0, "exit status")
    t.contains(r.errand.log(), "errand-launch ended (signal 9) and is started again", "the log")
    watched.await_end()
    receipts = [(x["method"], x["path"]) for x in r.errand.json("receipts")]
    t.equal(receipts, [("POST", "/echo")], "the receipts")
    t.equal(r.errand.good("run", "--embedded", "--", "/bin/echo", "next"), "next\n", "the next run")


@case("C200 C008: an errand-launch that does not answer a launch: the start fails; a late answer meets nothing, and what was started ends")
def _(t):
    patient = {"sandbox": {"gracePeriodMs": 5000, "egress": {"allow": []}}}
    errand = Errand(t, patient)
    process, _ = errand.started("keeps", "/bin/sh", "-c", "echo here; read line")
    launcher = errand.find("errand-launch")[0]
    errand.configure({**patient, "timeouts": {"startupMs": 1000}})
    errand.good("reload")
    os.kill(launcher, signal.SIGSTOP)
    late = errand.start("/bin/sh", "-c", "read line; touch was-here", options=("--id", "late"))
    wait_for(lambda: "session late: failed" in errand.log(), "the end of the start")
    before = set(errand.family())
    os.kill(launcher, signal.SIGCONT)
    errand.configure(patient)
    errand.good("reload")
    # What was on its way to the launcher were the other ends of its pipes, too.
    t.contains(late.communicate("go on\n", timeout=PATIENCE)[1], "did not start within", "what errand run says")
    # The launcher takes one request after the other: when this one is served, the late one was.
    t.equal(errand.good("run", "--embedded", "--", "/bin/echo", "next"), "next\n", "the next run")
    wait_for(lambda: not set(errand.family()) - before, "the end of what was started late")
    t.check(not os.path.exists(os.path.join(errand.project, "was-here")), "the late command has run")
    t.equal(errand.json("session show", "late")["state"], "failed", "the late session")
    process.communicate("go on\n")
    t.equal(process.returncode, 0, "exit status of the other session")


@case("C206: errand-shim is killed: its whole session ends with it and is lost, which errand run says")
def _(t):
    r = Running(t)
    watched = r.session()
    r.kill("errand-shim")
    status, _, err = r.ended()
    t.equal((status, err), (123, "errand: the session was lost: nobody can say how its command ended\n"), "what errand run did")
    r.check_after(watched, "failed", "lost", 128 + signal.SIGKILL)


@case("C161: errand-broker is killed: the agent's calls fail, nothing else becomes reachable, and errand run says that there is no way out any more")
def _(t):
    r = Running(t)
    watched = r.session()
    r.kill("errand-broker")
    # It is told when it happens, and not when the session ends.
    line = r.process.stderr.readline()
    t.equal(line, "errand: the session's broker ended (signal 9) and cannot be brought back: it has no way out any more\n", "what errand run says")
    result = r.errand.run("grant", "s1", "denied.example")
    t.check(result.returncode == 1 and result.stderr, f"a grant to it: {result}")
    r.go_on()
    status, out, _ = r.ended()
    t.check(not json.loads(out)["ok"], f"the agent: {out}")
    t.equal(status, 1, "exit status")
    t.equal(r.first.other_host.accepts(), [], "connections")
    r.check_after(watched, "stopped", "exited", 1)


@case("C161 S131: errandd's connection to a broker of its own breaks: it could not be told of a revocation, and so it is ended, which errand run says")
def _(t):
    r = Running(t)
    watched = r.session()
    r.first.grant("denied.example")
    with errand_descriptors.opened(r.pids["errand-broker"]) as pidfd, socket.socket(fileno=errand_descriptors.duplicate(pidfd, CONTROL)) as control:
        control.shutdown(socket.SHUT_RDWR)
    line = r.process.stderr.readline()
    t.equal(line, "errand: the session's broker ended (signal 9) and cannot be brought back: it has no way out any more\n", "what errand run says")
    r.go_on()
    status, out, _ = r.ended()
    t.check(not json.loads(out)["ok"], f"the agent: {out}")
    t.equal(status, 1, "exit status")
    t.equal(r.first.other_host.accepts(), [], "connections")
    r.check_after(watched, "stopped", "exited", 1)


@case("C206: bailey, or its PID 1, is killed: everything of the session ends, and errand run says that it was killed")
def _(t):
    def check(name):
        import errand_test
        inner = errand_test.Test(name)
        with inner.stack:
            r = Running(inner)
            watched = r.session()
            r.kill(name)
            status, _, err = r.ended()
            t.equal((status, err), (137, "errand: the session's sandbox was killed, and its command with it\n"), "what errand run did")
            r.check_after(watched, "stopped", "killed", 137)
    t.each(["bailey", "init"], check)


@case("C206: the agent is killed: errand run ends with 128 and the signal, as for any command")
def _(t):
    r = Running(t)
    watched = r.session()
    r.kill("agent")
    t.equal(r.ended(), (137, "", ""), "what errand run did")
    r.check_after(watched, "stopped", "signal", 137)


@case("C206: errand run itself is killed: the session goes on, is found by errand session list, and ends when its input does")
def _(t):
    r = Running(t)
    watched = r.session()
    r.process.kill()
    r.process.wait()
    t.equal([s["state"] for s in r.errand.json("session list")], ["running"], "the state")
    r.process.stdin.close()
    r.check_after(watched, "stopped", "exited", 1)


@case("C200 S052: errandd, launcher, shim and broker are killed in one go: what is left of the session ends, and no receipt is lost")
def _(t):
    r = Running(t)
    everything = Watched(r.all)
    programs = ("errandd", "errand-launch", "errand-shim", "errand-broker")
    for name in programs:  # so that none does anything about the end of another
        os.kill(r.pids[name], signal.SIGSTOP)
    for name in reversed(programs):
        r.kill(name)
    t.equal(r.ended()[0], 123, "exit status")
    everything.await_end()
    r.check_after(Watched({}), "failed", "lost", 128 + signal.SIGKILL)


@case("C200 bite: an orphan of a session would be found, and a socket that is served, too")
def _(t):
    r = Running(t)
    t.equal(sorted({name for name in r.all.values()} - {"agent", "python3"}), ["bailey", "errand-broker", "errand-launch", "errand-shim", "errandd"], "the family")
    t.check(len(r.errand.sockets()) >= 2, f"sockets that are served: {r.errand.sockets()}")
    t.check(set(family(r.pids["errand-shim"])) <= set(r.all), "the shim's family")
    watched = r.session()
    t.check(watched.living(), "none is seen to live")
    r.errand.good("session stop", "s1")
    watched.await_end()


if __name__ == "__main__":
    run()
