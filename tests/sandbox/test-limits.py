#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The control group of a run: where it is made, who is in it, and what is said where it, or a controller, is not to be had. In a
mount of the unified hierarchy of the test's own, which may have no controllers; that limits hold, tests/vm shows."""

import json
import os
import resource
import subprocess
import sys
import time

from bailey import NOT_RUN, Run, check, main

LIMITS = '[resources]\nmemory = "64m"\npids_max = 20\ncpu_percent = 50\n'
NO_ROOT = "only root can give a test a control group"

if os.getuid() == 0 and "BAILEY_TEST_MOUNTS" not in os.environ:
    os.environ["BAILEY_TEST_MOUNTS"] = "private"
    os.execv("/usr/bin/unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


class Groups:
    """TOP is a group that belongs to the account, in a mount at `place`."""

    def __init__(self, w, place=None, delegate=True):
        self.world, self.place = w, place or w.mkdir("groups")
        subprocess.run(["mount", "-t", "cgroup2", "none", self.place], check=True)
        self.top = os.path.join(self.place, f"bailey-test-{os.getpid()}-{time.monotonic_ns()}")
        os.mkdir(self.top)
        for name in ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads") if delegate else ():
            os.chown(os.path.join(self.top, name), w.uid, w.gid)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for path, _, _ in os.walk(self.top, topdown=False):
            os.rmdir(path)
        subprocess.run(["umount", self.place], check=True)

    def start(self, args, inside=True, root=True, policy=None, **more):
        """bailey run, begun in TOP when `inside`, told of it when `root`."""
        w = self.world
        script = f'[ -z "$1" ] || echo 0 > "$1/cgroup.procs"; shift; exec setpriv --reuid {w.uid} --regid {w.gid} --clear-groups "$@"'
        if policy is not None:
            args = ["--config", w.policy(policy), *args]
        environment = {**w.environment, **({"BAILEY_CGROUP_ROOT": self.top if root is True else root} if root else {})}
        more.setdefault("stdin", subprocess.DEVNULL)
        return subprocess.Popen(["sh", "-c", script, "sh", self.top if inside else "", w.bailey, "run", *args], cwd=w.work, env=environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8", **more)

    def run(self, *args, **more):
        p = self.start(args, **more)
        p.stdout_text, p.stderr_text = p.communicate(timeout=50)
        r = Run(p)
        r.out, r.err = p.stdout_text, p.stderr_text
        return r

    def pids(self, name):
        with open(os.path.join(self.top, name, "cgroup.procs"), encoding="ascii") as f:
            return [int(pid) for pid in f.read().split()]

    def left(self):
        return sorted(e.name for e in os.scandir(self.top) if e.is_dir())

    def controllers(self):
        with open(os.path.join(self.top, "cgroup.controllers"), encoding="ascii") as f:
            return f.read().split()


def root_only(function):
    return lambda w: function(w) if w.as_root else NO_ROOT


@root_only
def payload(w):
    with Groups(w) as g:
        p = g.start(["sh", "-c", "sleep 300 & echo ready; read go; exec cat /proc/self/cgroup"], stdin=subprocess.PIPE)
        check(p.stdout.readline() == "ready\n", "it did not start")
        check(g.left() == ["payload"], g.left())
        out, err = p.communicate("go\n", timeout=50)
        # Inside, the group is the root of what there is.
        check(p.returncode == 0 and "0::/\n" in out and g.top not in out, (out, err))
        check("limits" not in err and "warning" not in err, err)
        check(g.left() == [], g.left())
        # Without the variable, and without limits, nothing is made.
        p = g.start(["sh", "-c", "echo ready; exec sleep 300"], root=False)
        check(p.stdout.readline() == "ready\n", "it did not start")
        check(g.left() == [] and len(g.pids("")) == 3, g.left())
        p.terminate()
        p.communicate(timeout=50)


@root_only
def members(w):
    with Groups(w) as g:
        p = g.start(["sh", "-c", "sleep 300 & echo ready; wait"])
        check(p.stdout.readline() == "ready\n", "it did not start")
        inside = g.pids("payload")
        # The sandbox's first process, the shell, its child; and bailey itself is not among them.
        check(len(inside) == 3 and p.pid not in inside and g.pids("") == [p.pid], (inside, g.pids("")))
        with open(f"{g.top}/payload/cgroup.kill", "w", encoding="ascii") as f:
            f.write("1")
        err = p.communicate(timeout=50)[1]
        check(p.returncode == 137 and "killed by signal 9" in err, err)
        check(g.left() == [], g.left())


@root_only
def plain(w):
    """Without namespaces the group is joined, and what is left in it is ended with it."""
    with Groups(w) as g:
        lacking = [w.without, "clone3:EPERM", "--"]
        script = f'echo 0 > "$1/cgroup.procs"; shift; exec setpriv --reuid {w.uid} --regid {w.gid} --clear-groups "$@"'
        p = subprocess.Popen(["sh", "-c", script, "sh", g.top, *lacking, w.bailey, "run", "sh", "-c", "echo ready; exec sleep 300"],
                             cwd=w.work, env={**w.environment, "BAILEY_CGROUP_ROOT": g.top}, stdin=subprocess.DEVNULL,
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8")
        check(p.stdout.readline() == "ready\n", "it did not start")
        check(len(g.pids("payload")) == 2, g.pids("payload"))
        p.terminate()
        p.communicate(timeout=50)
        check(g.left() == [], g.left())


@root_only
def several(w):
    with Groups(w) as g:
        os.mkdir(f"{g.top}/payload")  # left behind by one that was killed
        os.chown(f"{g.top}/payload", w.uid, w.gid)
        runs = []
        for i in range(3):
            p = g.start(["sh", "-c", "echo ready; exec sleep 300"])
            check(p.stdout.readline() == "ready\n", "it did not start")
            runs.append(p)
            check(len(g.left()) == i + 1, g.left())
        check(g.left() == ["payload", "payload-2", "payload-3"], g.left())
        check(all(len(g.pids(name)) == 2 for name in g.left()), "each has its own")
        for p in runs:
            p.terminate()
            p.communicate(timeout=50)
        check(g.left() == [], g.left())


@root_only
def killed_before(w):
    """A group in which something was killed once is as good as another."""
    with Groups(w) as g:
        for _ in range(3):
            with open(f"{g.top}/cgroup.kill", "w", encoding="ascii") as f:
                f.write("1")
        for policy in (None, LIMITS):
            r = g.run("sh", "-c", "echo ran", policy=policy)
            check(r.status == 0 and r.out == "ran\n" and "no process can be started" not in r.err, r)
        check("payload" not in g.left(), g.left())


@root_only
def told(w):
    """C082: no limit is passed over, and one that is there is not lost with another."""
    with Groups(w) as g:
        lacking = [c for c in ("memory", "pids", "cpu") if c not in g.controllers()]
        if not lacking:
            return "the unified hierarchy has every controller"
        r = g.run("sh", "-c", "echo ran", policy=LIMITS)
        check(r.status == 0 and r.out == "ran\n" and "not enforced: resources" in r.err, r)
        for name, controller in (("memory", "memory"), ("pids_max", "pids"), ("cpu_percent", "cpu")):
            check((f"{name}: {g.top} has no controller for it" in r.err) == (controller in lacking), r)
        check(", limits" not in r.err, r)
        r = g.run("--strict", "sh", "-c", "echo ran", policy=LIMITS)
        check(r.status == NOT_RUN and r.out == "" and "--accept-gap resources" in r.err, r)
        r = g.run("--strict", "--accept-gap", "resources", "--json", "sh", "-c", "echo ran", policy=LIMITS)
        check(r.status == 0 and [x["name"] for x in json.loads(r.err.splitlines()[-1])["not_enforced"]] == ["resources"], r)
        check("payload" not in g.left(), g.left())


@root_only
def found(w):
    """C084: without the variable it is below the group that bailey is in, and only one that was delegated."""
    for delegate in (True, False):
        with Groups(w, "/sys/fs/cgroup", delegate) as g:
            p = g.start(["sh", "-c", "echo ready; exec sleep 300"], root=False, policy=LIMITS)
            check(p.stdout.readline() == "ready\n", "it did not start")
            check(("payload" in g.left()) == delegate, g.left())
            if delegate:
                check(len(g.pids("payload")) == 2, g.pids("payload"))
            p.terminate()
            err = p.communicate(timeout=50)[1]
            check(("is not delegated to this account" in err) != delegate, err)
            check("payload" not in g.left(), g.left())


@root_only
def elsewhere(w):
    """A root that the account may not move a process to: said, and under --strict refused."""
    with Groups(w) as g:
        r = g.run("sh", "-c", "echo ran", inside=False, policy=LIMITS)
        check(r.status == 0 and r.out == "ran\n" and "not enforced: resources" in r.err and "may not move processes" in r.err, r)
        r = g.run("--strict", "sh", "-c", "echo ran", inside=False, policy=LIMITS)
        check(r.status == NOT_RUN and r.out == "" and "--accept-gap resources" in r.err, r)
        check(g.left() == [], g.left())


@root_only
def examined(w):
    """Doctor says which controllers there are, by a group that it makes and removes."""
    with Groups(w) as g:
        for said in (g.top, ""):
            r = w.call("doctor", "--json", environment={**w.environment, **({"BAILEY_CGROUP_ROOT": said} if said else {})})
            m = next(m for m in json.loads(r.out)["mechanisms"] if m["name"] == "control-group")
            for controller in ("memory", "pids", "cpu"):
                lacking = f"{g.top} has no controller for {controller}" in m["text"]
                check(not said or lacking == (controller not in g.controllers()), m)
            check(said or m["works"] or any(reason in m["text"] for reason in ("is not delegated", "no controller", "no cgroup v2")), m)
            check(m["works"] or (m["gap"] == "resources" and "Delegate=yes" in m["remedy"]), m)
        check(g.left() == [], g.left())


def process_limits(w):
    limits = '[resources]\nfile_size = "64k"\ncore_size = 0\nfiles_max = 32\n'
    script = "ulimit -c; ulimit -Hc; ulimit -n; ulimit -Hn; head -c 70000 /dev/zero >/tmp/x; echo $?; wc -c </tmp/x"
    r = w.run(limits, script)
    # The kernel's signal, SIGXFSZ, ends what writes more.
    check(r.status == 0 and r.out.split() == ["0", "0", "32", "32", "153", "65536"] and "not enforced: resources" not in r.err, r)
    check(w.run(None, script).out.split()[-2:] == ["0", "70000"], "without a limit")
    # Less than that, where the caller has less; and bailey itself is not held by it.
    r = w.run(limits, "ulimit -n", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24)))
    check(r.out == "24\n", r)
    r = w.run("[resources]\nfiles_max = 3\nfile_size = 1\n", "echo ran")
    check(r.status in (0, 127), r)


def no_group(w):
    for said, words in (("relative", "no absolute path"), (w.work, "no group of the unified hierarchy"), (w.path("none"), "No such file")):
        environment = {**w.environment, "BAILEY_CGROUP_ROOT": said}
        r = w.call("run", "sh", "-c", "echo ran", environment=environment)
        check(r.status == 0 and r.out == "ran\n" and f"BAILEY_CGROUP_ROOT is {said}: " in r.err and words in r.err, r)
        check("not enforced: resources" not in r.err, r)
        r = w.call("run", "--config", w.policy(LIMITS), "sh", "-c", "echo $BAILEY_CGROUP_ROOT ran", environment=environment)
        check(r.status == 0 and r.out == "ran\n" and "not enforced: resources" in r.err and words in r.err, r)
        r = w.call("run", "--config", w.policy(LIMITS), "--strict", "sh", "-c", "echo ran", environment=environment)
        check(r.status == NOT_RUN and r.out == "" and "--accept-gap resources" in r.err, r)


main([
    ("S185: a run told of a group has one of its own in it, which is the root of what it sees, and removes it", payload),
    ("S185: all of a session is in payload, bailey is not, and cgroup.kill there ends it", members),
    ("without namespaces the group is joined before anything runs", plain),
    ("runs at one time have a group each, and one that was left behind is taken away", several),
    ("a run after a kill in its group goes on", killed_before),
    ("C082 T019: each limit without a controller is named, and refused under --strict", told),
    ("C084 T019: a delegated group is found, another is not used", found),
    ("C082: a group that no process can be moved to", elsewhere),
    ("file_size, core_size and files_max hold each process", process_limits),
    ("C082: doctor lists what limits there can be", examined),
    ("C082 T019: what is no group is said, and limits are then a gap", no_group),
])
