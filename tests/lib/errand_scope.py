# SPDX-License-Identifier: LGPL-2.1-or-later
"""A stand-in for the account's user manager, which makes scopes in a control group of the test's own, and a launcher that asks it."""

import contextlib
import os
import shutil
import subprocess
import sys

import errand_test
from errand_launch import PAYLOAD, Launcher, children, wait_for, words_of

ROOT = os.getuid() == 0
CGROUP = "/sys/fs/cgroup"


class Group:
    """A control group of this test's own, of the sessions' account, which the launcher starts in."""

    def __init__(self, t):
        self.path = f"{CGROUP}/errand-test-{os.getpid()}"
        self.launcher = os.path.join(self.path, "launcher")
        for path in (self.path, self.launcher):
            os.mkdir(path)
            for name in ("", "cgroup.procs", "cgroup.threads", "cgroup.subtree_control"):
                os.chown(os.path.join(path, name), PAYLOAD, PAYLOAD)
        t.defer(self.remove)

    def remove(self):
        with open(os.path.join(self.path, "cgroup.kill"), "w", encoding="ascii") as f:
            f.write("1")
        for path, _, _ in os.walk(self.path, topdown=False):
            wait_for(lambda path=path: not self.busy(path))
            os.rmdir(path)

    @staticmethod
    def busy(path):
        with open(os.path.join(path, "cgroup.events"), encoding="ascii") as f:
            return "populated 1" in f.read()

    def enter(self):
        with open(os.path.join(self.launcher, "cgroup.procs"), "w", encoding="ascii") as f:
            f.write("0")

    def processes(self, unit):
        """Those of its payload included."""
        found = []
        for path, _, _ in os.walk(os.path.join(self.path, unit)):
            with contextlib.suppress(OSError), open(os.path.join(path, "cgroup.procs"), encoding="ascii") as f:
                found += [int(line) for line in f]
        return found


class Manager:
    def __init__(self, t, mode, version="257.9-1", group=None):
        self.directory = os.path.join(t.directory, "systemd")
        os.makedirs(self.directory, exist_ok=True)
        account = {}
        if ROOT:
            os.chown(self.directory, PAYLOAD, PAYLOAD)
            account = {"user": PAYLOAD, "group": PAYLOAD, "extra_groups": []}
        program = os.open(errand_test.program("fake-manager"), os.O_PATH | os.O_CLOEXEC)
        self.process = subprocess.Popen([mode, mode, version, os.path.join(self.directory, "private"), group.path if group else ""],
                                        executable=f"/proc/self/fd/{program}", pass_fds=(program,), stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, text=True, cwd="/", **account)
        os.close(program)
        self.lines = []
        t.defer(self.stop)
        self.until("ready")

    def until(self, text):
        while not any(text in line for line in self.lines):
            line = self.process.stdout.readline()
            if not line:
                raise errand_test.Failure(f"the manager ended before {text!r}: {self.lines}")
            self.lines.append(line.rstrip("\n"))

    def stop(self):
        if self.process.returncode is None:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
            os.unlink(os.path.join(self.directory, "private"))


def start(t, mode, version="257.9-1", group=None, ahead=False):
    """A launcher, and a manager in that mode → both."""
    manager = Manager(t, mode, version, group) if mode else None
    launcher = Launcher(t, listening=True, environment={"XDG_RUNTIME_DIR": t.directory}, before=group.enter if group else None, ahead=ahead)
    launcher.connect()
    return launcher, manager


def scope(name, **more):
    members = {"unit": f"errand-session-{name}.scope", "slice": "errand.slice", "description": f"Session {name}", "delegate": True, **more}
    return {k: v for k, v in members.items() if v is not None}


def need_root(t):
    if not ROOT:
        t.skip("only root can give a test a control group")


def nothing_ran(t, launcher, session, text):
    """The launch fails with that text, after everything has gone; nothing of the command has run."""
    reply = session.try_launch()
    t.equal(reply["type"], "error", reply)
    t.contains(reply["text"], text, "the reply")
    left = children(launcher.process.pid)
    if launcher.ahead:  # a shim for the next session may have come by now
        left = [pid for pid in left if session.name.encode() in words_of(pid)]
    t.equal(left, [], "what the launcher has started and is there still")
    t.check(not os.path.exists(os.path.join(session.project, "ran")), "it ran")
    return reply


def enter(program):
    """As root: the test in a mount namespace of its own. Nobody else sees these mounts; the groups that are made are this test's own, and go with it."""
    if ROOT and len(sys.argv) > 1 and sys.argv[1] == "--inside":
        del sys.argv[1]
    elif ROOT:
        os.execv(shutil.which("unshare"), ["unshare", "--mount", "--propagation", "private", "sh", "-c",
                                           f"{{ [ $(stat -fc %T {CGROUP}) = cgroup2fs ] || mount -t cgroup2 cgroup2 {CGROUP}; }} && exec /usr/bin/python3 \"$@\"",
                                           "sh", program, "--inside", *sys.argv[1:]])
