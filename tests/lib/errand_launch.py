# SPDX-License-Identifier: LGPL-2.1-or-later
"""Drives errand-launch and the shims that it starts, as errandd does: over a socketpair, with descriptors."""

import array
import contextlib
import fcntl
import json
import os
import select
import signal
import socket
import subprocess
import time

import errand_test
from errand_broker import sealed_memfd

# As root, what errandd does with launcher and shims: they run as the payload's account. One of no name.
PAYLOAD = 54322


class Ended(errand_test.Failure):
    pass


class Channel:
    """A SEQPACKET connection. Messages that are no reply to the request at hand are kept as events."""

    def __init__(self, sock):
        self.socket = sock
        self.serial = 0
        self.events = []

    def close(self):
        self.socket.close()

    def send(self, message, fds=()):
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([message if isinstance(message, bytes) else json.dumps(message).encode()], control)

    def receive(self):
        """The next message, its descriptors as "received": {name: fd}. Raises Ended at the end."""
        try:
            data, control, _, _ = self.socket.recvmsg(65536, socket.CMSG_SPACE(16 * 4))
        except ConnectionResetError:
            data = b""
        if not data:
            raise Ended("the other side has closed")
        fds = array.array("i")
        for level, kind, content in control:
            if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                fds.frombytes(content)
        message = json.loads(data)
        message["received"] = dict(zip(message.get("fds", []), fds))
        return message

    def request(self, kind, fds=None, **members):
        self.serial += 1
        fds = fds or {}
        self.send({"v": 1, "type": kind, "serial": self.serial, **members, **({"fds": list(fds)} if fds else {})}, list(fds.values()))
        return self.reply(self.serial)

    def reply(self, serial):
        while True:
            message = self.receive()
            if message.get("serial") == serial:
                return message
            self.events.append(message)

    def event(self, kind, **members):
        """Waits for an event of that type that has those members."""
        def wanted(m):
            return m["type"] == kind and all(m.get(k) == v for k, v in members.items())
        while True:
            for event in self.events:
                if wanted(event):
                    self.events.remove(event)
                    return event
            self.events.append(self.receive())


class Launcher:
    """A launcher with a place for its sessions. As root it and all it starts run as PAYLOAD. With listening=True it is started as by its
    socket, which anybody may reach; errandd is this process, or the uid that is given."""

    def __init__(self, t, listening=False, errandd=None, idle_ms=None, environment=None, before=None, ahead=False):
        self.t = t
        self.listening = listening
        self.errandd = os.getuid() if errandd is None else errandd
        self.idle_ms = idle_ms
        self.ahead = ahead
        self.environment = {"LC_ALL": "C", **(environment or {})}
        self.before = before or (lambda: None)  # in the child
        self.listener = None
        self.root = t.enter(errand_test.temporary_directory("errand-launch-"))
        if self.root.startswith("/tmp"):  # that is private inside
            self.root = t.enter(directory_outside_of_tmp())
        self.account = {"user": PAYLOAD, "group": PAYLOAD, "extra_groups": []} if os.getuid() == 0 else {}
        self.uid = PAYLOAD if self.account else os.getuid()
        self.gid = PAYLOAD if self.account else os.getgid()
        self.log = os.path.join(self.root, "log")
        for name in ("shim", "homes"):
            os.mkdir(os.path.join(self.root, name), 0o700)
            self.own(os.path.join(self.root, name))
        os.mkdir(os.path.join(self.root, "records"), 0o700)
        self.process = self.channel = None
        self.sessions = []
        t.log("the launcher's log", lambda: open(self.log, encoding="utf-8", errors="replace").read())
        t.defer(self.close)
        self.start()

    def own(self, path):
        if self.account:
            os.chown(path, PAYLOAD, PAYLOAD)

    def start(self, environment=None):
        if self.listening:
            self._start_listening()
            return
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        programs = [os.open(errand_test.program(name), os.O_PATH | os.O_CLOEXEC) for name in ("errand-launch", "errand-shim", "bailey")]
        # 3 is the socket; the programs are passed open, as the build may lie where that account cannot go.
        high = [_dup_above(fd, 100) for fd in (theirs.fileno(), *programs)]

        try:
            os.fstat(3)
        except OSError:
            os.dup2(os.open("/dev/null", os.O_RDONLY), 3)  # subprocess wants what it passes to be open here

        def arrange():
            self.before()
            os.dup2(high[0], 3)

        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                ["errand-launch", "--shim-fd", str(high[2]), "--bailey-fd", str(high[3])], executable=f"/proc/self/fd/{high[1]}",
                preexec_fn=arrange, pass_fds=(3, *high), cwd="/", env=environment or self.environment, stdin=subprocess.DEVNULL,
                stdout=log, stderr=log, **self.account)
        theirs.close()
        for fd in (*programs, *high):
            os.close(fd)
        self.channel = Channel(ours)

    def _start_listening(self):
        """Again, too: the socket is the service manager's, and stays."""
        if not self.listener:
            self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
            self.listener.bind(os.path.join(self.root, "launch"))
            os.chmod(os.path.join(self.root, "launch"), 0o666)
            self.listener.listen(16)
            self.t.defer(self.listener.close)
        programs = [os.open(errand_test.program(name), os.O_PATH | os.O_CLOEXEC) for name in ("errand-launch", "errand-shim", "bailey")]
        high = [_dup_above(fd, 100) for fd in programs]
        command = [errand_test.program("test-activate"), *(("--user", str(PAYLOAD)) if self.account else ()), f"launch={self.listener.fileno()}", "--",
                   str(high[0]), "errand-launch", "--errandd", str(self.errandd), "--shim-fd", str(high[1]), "--bailey-fd", str(high[2]),
                   *(("--idle-ms", str(self.idle_ms)) if self.idle_ms is not None else ()), *(("--shim-ahead",) if self.ahead else ())]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, preexec_fn=self.before, pass_fds=(self.listener.fileno(), *high), cwd="/",
                                            env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        for fd in (*programs, *high):
            os.close(fd)

    def connect(self):
        """As another errandd, which becomes the one that is asked."""
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        s.connect(os.path.join(self.root, "launch"))
        self.channel = Channel(s)
        return self.channel

    def close(self):
        if self.channel:
            self.channel.close()
        if self.process and self.listening:
            # Its end is not the end of sessions.
            for session in self.sessions:
                if session.pid:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(session.pid, signal.SIGKILL)
            self.process.kill()
            self.process.wait()
        elif self.process:
            try:
                self.process.wait(20)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise
        for session in self.sessions:
            session.close()

    def kill(self):
        """kill -9; errandd's end of the socket goes, too."""
        self.process.kill()
        self.process.wait()
        self.channel.close()

    def session(self, name, *command, **more):
        session = Session(self, name, command, **more)
        self.sessions.append(session)
        return session

    def log_text(self):
        with open(self.log, encoding="utf-8", errors="replace") as f:
            return f.read()


def directory_outside_of_tmp():
    return errand_test.temporary_directory(where="/var/tmp")


def _dup_above(fd, least):
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, least)


class Session:
    """What errandd prepares for a session, and what becomes of it."""

    def __init__(self, launcher, name, command, interactive=False, environment=None, secrets=(), policy=None, stdio=None, project=None, **members):
        self.launcher = launcher
        self.name = name
        self.fds = {}
        self.pid = None
        self.project = project or os.path.join(launcher.root, "project-" + name)
        if not os.path.isdir(self.project):
            os.mkdir(self.project)
            launcher.own(self.project)
        self.home = os.path.join(launcher.root, "homes", name)
        if not os.path.isdir(self.home):
            os.mkdir(self.home, 0o700)
            launcher.own(self.home)
        record = os.path.join(launcher.root, "records", name)
        os.makedirs(record, exist_ok=True)
        self.transcript_path = os.path.join(record, "transcript")
        self.events_path = os.path.join(record, "events")
        self.policy_path = os.path.join(record, "policy.toml")
        self.socket_path = os.path.join(launcher.root, "shim", name)
        with open(self.policy_path, "w", encoding="utf-8") as f:
            f.write(policy if policy is not None else f'[filesystem]\nread = ["{self.project}"]\nwrite = ["{self.project}"]\nexecute = ["{self.project}"]\n')
        environment = {"PATH": "/usr/bin:/bin", "TERM": "xterm", "LC_ALL": "C", **(environment or {})}
        append = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self.fds = {
            "project": os.open(self.project, os.O_PATH | os.O_DIRECTORY),
            "policy": os.open(self.policy_path, os.O_RDONLY),
            "transcript": os.open(self.transcript_path, append, 0o600),
            "events": os.open(self.events_path, append, 0o600),
            "environment": sealed_memfd(b"".join(f"{k}={v}\0".encode() for k, v in environment.items())),
            "scrub": sealed_memfd(b"".join(s.encode() + b"\0" for s in secrets)),
            **(stdio or {}),
        }
        self.members = {"session": name, "backend": "bailey", "command": list(command), "interactive": interactive, "home": self.home,
                        "strict": True, "acceptGaps": ["sysfs"], "graceMs": 5000, "shimSocket": self.socket_path, **members}
        self.members = {k: v for k, v in self.members.items() if v is not None}

    def close(self):
        for fd in self.fds.values():
            with contextlib.suppress(OSError):
                os.close(fd)
        self.fds = {}

    def launch(self):
        reply = self.try_launch()
        if reply["type"] != "launched":
            raise errand_test.Failure(f"{self.name} was not launched: {reply}")
        self.pid = reply["pid"]
        return self

    def try_launch(self):
        reply = self.launcher.channel.request("launch", self.fds, **self.members)
        self.close()
        return reply

    def connect(self):
        s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        s.connect(self.socket_path)
        return Channel(s)

    def attach(self, channel=None):
        reply = (channel or self.connect()).request("attach")
        if reply["type"] != "attached":
            raise errand_test.Failure(f"not attached: {reply}")
        return Terminal(socket.socket(fileno=reply["received"]["terminal"]))

    def events(self):
        with open(self.events_path, encoding="utf-8") as f:
            return [json.loads(line) for line in f if line.endswith("\n")]

    def started(self):
        """Waits for the command to run; its event."""
        return self.wait_event("started")

    def exited(self):
        return self.wait_event("exited")

    def wait_event(self, name):
        while True:
            for event in self.events():
                if event["event"] == name:
                    return event
            time.sleep(0.01)

    def ended(self):
        """Waits until the shim has gone; its last event, and the launcher's."""
        gone = self.launcher.channel.event("shim-exited", session=self.name)
        return self.events()[-1], gone

    def transcript(self):
        with open(self.transcript_path, encoding="utf-8", errors="replace") as f:
            return f.read()


class Terminal:
    """A client that is attached."""

    def __init__(self, sock):
        self.socket = sock
        self.seen = bytearray()

    def type(self, text):
        self.socket.sendall(text.encode())

    def until(self, text):
        """Reads until text was seen; what came up to its end."""
        wanted, looked = text.encode(), 0
        # What was looked through once is not looked through again: a test may print megabytes.
        while (at := self.seen.find(wanted, max(0, looked - len(wanted)))) < 0:
            looked = len(self.seen)
            data = self.socket.recv(65536)
            if not data:
                raise errand_test.Failure(f"the terminal ended before {text!r}: {self.rest()!r}")
            self.seen += data
        before = self.seen[:at + len(wanted)]
        del self.seen[:at + len(wanted)]
        return before.decode("utf-8", "replace")

    def rest(self):
        while data := self.socket.recv(65536):
            self.seen += data
        rest, self.seen = self.seen, bytearray()
        return rest.decode("utf-8", "replace")

    def close(self):
        self.socket.close()


def processes(word):
    """Pids of living processes with that word in their arguments."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{name}/cmdline", "rb") as f:
                if word.encode() in f.read().split(b"\0"):
                    found.append(int(name))
    return found


def living():
    """{pid: (parent, name)} of all that live, each looked at once: what is short-lived has gone at a second look."""
    found = {}
    for number in os.listdir("/proc"):
        if number.isdigit():
            with contextlib.suppress(OSError), open(f"/proc/{number}/stat", encoding="utf-8", errors="replace") as f:
                name, _, rest = f.read().partition("(")[2].rpartition(") ")
                fields = rest.split()
                if fields[0] not in "ZX":
                    found[int(number)] = int(fields[1]), name
    return found


def children(pid):
    return [child for child, (parent, _) in living().items() if parent == pid]


def words_of(pid):
    """Its arguments."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
        return f.read().split(b"\0")
    return []


def state_of(pid):
    """Its letter in /proc; None when it is not there any more."""
    with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
        return f.read().rpartition(")")[2].split()[0]
    return None


class Watch:
    """Follows a process to its end by pidfd."""

    def __init__(self, pid):
        self.fd = os.pidfd_open(pid)

    def ended(self, seconds=20):
        return bool(select.select([self.fd], [], [], seconds)[0])

    def close(self):
        os.close(self.fd)


def kill(pid):
    os.kill(pid, signal.SIGKILL)


def foreground(s):
    """The name of the program in the foreground of the session's terminal, as /proc tells it."""
    todo, names = [s.pid], []
    while todo:
        for pid in children(todo.pop()):
            todo.append(pid)
            with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8") as f:
                name, _, rest = f.read().partition("(")[2].rpartition(") ")
                fields = rest.split()
                if fields[2] == fields[5] and fields[0] in "SR":
                    names.append(name)
    return names[0] if len(names) == 1 else None


def wait_for(condition):
    while not condition():
        time.sleep(0.01)


def descendants(pid, known=None):
    known = known or living()
    found = []
    for child in [child for child, (parent, _) in known.items() if parent == pid]:
        found += [child, *descendants(child, known)]
    return found


def children_named(s, name):
    known = living()
    return [pid for pid in descendants(s.pid, known) if known[pid][1] == name]


def status_of(pid, name):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return next(line.split(":", 1)[1].split() for line in f if line.startswith(name + ":"))
