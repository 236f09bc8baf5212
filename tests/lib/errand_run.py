# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command errand as its user has it: a state directory and a configuration of one's own, and what is left when all has ended."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import time

import errand_test
from errand_test import Failure

PATIENCE = 20  # seconds: a bound for what hangs
LAUNCHER = "errand-launch"


def environment(**more):
    """What a caller has; nothing that would tell errand where its state is, or whose account is behind sudo."""
    kept = ("PATH", "SUDO_UID", "ERRAND_LIBEXEC", "ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")
    return {**{k: v for k, v in os.environ.items() if k in kept}, "HOME": "/nonexistent", "LC_ALL": "C.UTF-8", "TERM": "xterm", **more}


def wait_for(condition, what, seconds=PATIENCE):
    until = time.monotonic() + seconds
    while not (found := condition()):
        if time.monotonic() > until:
            raise Failure(f"waited in vain for {what}")
        time.sleep(0.01)
    return found


def stat_of(pid):
    """(name, state, parent) of a process, or None."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            name, _, rest = f.read().partition("(")[2].rpartition(") ")
    except OSError:
        return None
    fields = rest.split()
    return name, fields[0], int(fields[1])


def relatives(pid):
    """pid → (name, parent), of a process and its descendants that live; each after its parent."""
    known = {int(entry): stat for entry in os.listdir("/proc") if entry.isdigit() and (stat := stat_of(entry))}
    found, level = {}, [pid] if pid in known else []
    while level:
        found |= {p: (known[p][0], known[p][2]) for p in level}
        level = [p for p, stat in known.items() if stat[2] in level and stat[1] not in "ZX"]
    return found


def family(pid):
    """The same, pid → name."""
    return {p: name for p, (name, _) in relatives(pid).items()}


class Watched:
    """Processes that must come to an end, followed by pidfd so that no number is mistaken."""

    def __init__(self, processes):
        self.names = {}
        for pid, name in processes.items():
            with contextlib.suppress(ProcessLookupError):
                self.names[os.pidfd_open(pid)] = f"{name} ({pid})"

    def living(self):
        return {fd: name for fd, name in self.names.items() if not select.select([fd], [], [], 0)[0]}

    def await_end(self, seconds=PATIENCE):
        """Raises Failure, and ends what lives on, when they do not end in time."""
        try:
            wait_for(lambda: not self.living(), "the end of processes", seconds)
        except Failure:
            left = self.living()
            for fd in left:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(fd, signal.SIGKILL)
            raise Failure(f"left behind: {', '.join(left.values())}") from None
        finally:
            for fd in self.names:
                os.close(fd)
            self.names = {}


class Errand:
    """One state directory. t.stack ends its errandd, and complains of what does not end with it."""

    def __init__(self, t, config=None, project=None):
        self.t = t
        self.state = t.path("state")
        self.config = t.path("errand.json")
        self.project = project or t.path("project")
        if not project:
            os.mkdir(self.project)
            if os.getuid() == 0:
                os.chown(self.project, 65534, 65534)
        self.configure(config if config is not None else {"sandbox": {"gracePeriodMs": 5000, "egress": {"allow": []}}})
        t.log("errandd.log", self.log)
        t.defer(self.end)

    def configure(self, config):
        with open(self.config, "w", encoding="utf-8") as f:
            f.write(config if isinstance(config, str) else json.dumps(config, indent=2))
        os.chmod(self.config, 0o600)

    # ---- the command ----

    def command(self, verb, *arguments):
        return [errand_test.program("errand"), *verb.split(), "--state-dir", self.state, *arguments]

    def popen(self, verb, *arguments, variables=None, prefix=(), **options):
        """Text pipes, unless said otherwise; killed at the test's end; prefix: a program that runs it. An errandd that is started by any verb has this configuration."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "cwd": self.project,
                 "env": environment(**{"ERRAND_CONFIG": self.config, **(variables or {})}), **options}
        process = subprocess.Popen([*prefix, *self.command(verb, *arguments)], **pipes)
        self.t.defer(end_process, process)
        return process

    def run(self, verb, *arguments, input="", seconds=PATIENCE, **options):
        """To its end; → CompletedProcess."""
        process = self.popen(verb, *arguments, **options)
        try:
            out, err = process.communicate(input, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Failure(f"errand {verb} {' '.join(arguments)} hangs") from None
        return subprocess.CompletedProcess(process.args, process.returncode, out, err)

    def good(self, verb, *arguments, **options):
        """The same, with exit status 0; → what it printed."""
        result = self.run(verb, *arguments, **options)
        if result.returncode != 0:
            raise Failure(f"errand {verb} {' '.join(arguments)} has ended with {result.returncode}: {result.stdout}{result.stderr}")
        return result.stdout

    def json(self, verb, *arguments):
        return json.loads(self.good(verb, "--json", *arguments))

    def start(self, *command, options=(), **more):
        return self.popen("run", "--embedded", *options, "--", *command, **more)

    def started(self, name, *command, options=(), **more):
        """The same with a session of that id, and waits until its command runs; it must print a line first of all. → (process, line)."""
        process = self.start(*command, options=("--id", name, *options), **more)
        line = process.stdout.readline()
        if not line:
            raise Failure(f"{name} has not started: {process.stderr.read()}")
        return process, line

    # ---- errandd ----

    @property
    def bus(self):
        return os.path.join(self.state, ".run/bus")

    def log(self):
        with contextlib.suppress(OSError), open(os.path.join(self.state, ".run/errandd.log"), encoding="utf-8", errors="replace") as f:
            return f.read()
        return ""

    def pid(self):
        """errandd's, of its lock file; None when it does not live."""
        with contextlib.suppress(OSError, ValueError), open(os.path.join(self.state, ".lock"), encoding="ascii") as f:
            pid = int(f.read())
            stat = stat_of(pid)
            if stat and stat[0] == "errandd" and stat[1] not in "ZX":
                return pid
        return None

    def family(self):
        """errandd and all that it has started, pid → name; a session's own processes as well. Without the launcher's forks, which come and go when it
        likes: one measures the disk each time, one becomes a shim."""
        pid = self.pid()
        found = relatives(pid) if pid else {}
        return {p: name for p, (name, parent) in found.items() if name != LAUNCHER or found.get(parent, ("",))[0] != LAUNCHER}

    def find(self, name):
        """The pids of errandd and its descendants of that name, the outermost first."""
        return [pid for pid, found in self.family().items() if found == name[:15]]

    def record(self, session, *name):
        return os.path.join(self.state, ".records", session, *name)

    def sockets(self):
        """Socket files under the state directory that somebody listens on."""
        found = []
        for directory, _, names in os.walk(self.state):
            for name in names:
                path = os.path.join(directory, name)
                for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
                    with socket.socket(socket.AF_UNIX, kind) as s, contextlib.suppress(OSError):
                        s.connect(path)
                        found.append(path)
        return found

    def end(self):
        """Ends errandd; everything that it started must end with it, and no socket be served afterwards."""
        pid = self.pid()
        if not pid:
            return
        watched = Watched(family(pid))
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
        watched.await_end()
        if left := self.sockets():
            raise Failure(f"still served: {left}")


def end_process(process):
    for pipe in (process.stdin, process.stdout, process.stderr):
        with contextlib.suppress(OSError, ValueError):
            if pipe:
                pipe.close()
    if process.poll() is None:
        process.kill()
    process.wait()
