# SPDX-License-Identifier: LGPL-2.1-or-later
"""errand-broker as the service of a unit: a small service manager that holds its sockets, hears what it says (sd_notify), keeps the descriptors
that it stores, and starts it again."""

import array
import contextlib
import os
import socket
import subprocess
import threading

import errand_test
from errand_broker import BROKER_UID, Broker
from errand_world import world

FDS_MAX = 64


class Unit(Broker):
    """start_again() after kill() or terminate() is what Restart= does; stop_unit() forgets what was stored, as stopping does."""

    def __init__(self, t, *, keeps=True, **options):
        self.keeps = keeps
        self.stored = []  # (name, fd), as the service manager has them
        self.said = []
        self.heard = threading.Condition()
        self.listeners = {}
        super().__init__(t, **options)

    def _start(self, environment, own_account, arguments):
        os.chmod(self.directory, 0o711)
        self.options = (environment, own_account, arguments)
        for name, path in (("control", self.control_path), ("session", self.session_path)):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
            s.bind(path)
            os.chmod(path, 0o666)
            s.listen(16)
            self.listeners[name] = s
        self.notify_path = os.path.join(self.directory, "notify")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.notify.bind(self.notify_path)
        os.chmod(self.notify_path, 0o666)
        self.t.defer(self._forget_all)
        self.t.defer(self.stop)
        self.t.log(f"log of the broker of {self.session}", self.log)
        self.hearer = threading.Thread(target=self._hear, daemon=True)
        self.hearer.start()
        self.spawn()

    def spawn(self, stored=None):
        """Starts the process with what is stored, or with other descriptors in its place."""
        environment, own_account, arguments = self.options
        command = [errand_test.program("test-activate")]
        if os.getuid() == 0 and not own_account:
            command += ["--user", str(BROKER_UID)]
        program = os.open(errand_test.program("errand-broker"), os.O_PATH | os.O_CLOEXEC)
        with self.heard:
            given = list(self.stored if stored is None else stored)
        passed = [(name, s.fileno()) for name, s in self.listeners.items()] + given
        # The child closes what it moves: each is passed by a number of its own.
        copies = [(name, os.dup(fd)) for name, fd in passed]
        command += [*(f"{name}={fd}" for name, fd in copies), "--", str(program), "errand-broker", *arguments]
        keep = {k: v for k, v in os.environ.items() if k in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")}
        with world().host.inside():
            self.process = subprocess.Popen(command, pass_fds=[program, *(fd for _, fd in copies)], stdin=subprocess.DEVNULL,
                                            stderr=subprocess.PIPE, cwd="/",
                                            env={"PATH": "/usr/bin:/bin", "NOTIFY_SOCKET": self.notify_path, **keep, **environment})
        os.close(program)
        for _, fd in copies:
            os.close(fd)
        with self.log_changed:
            self.log_lines = [line for line in self.log_lines if line is not None]
        self.reader = threading.Thread(target=self._read_log, daemon=True)
        self.reader.start()

    # ---- what the manager hears ----

    def _hear(self):
        while True:
            with contextlib.suppress(OSError):
                data, control, _, _ = self.notify.recvmsg(4096, socket.CMSG_SPACE(FDS_MAX * 4), socket.MSG_CMSG_CLOEXEC)
                if not data:  # nothing more comes
                    return
                fds = array.array("i")
                for level, kind, value in control:
                    if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
                        fds.frombytes(value[:len(value) - len(value) % fds.itemsize])
                with self.heard:
                    self._take(data.decode(), list(fds))
                    self.heard.notify_all()
                continue
            return

    def _take(self, text, fds):
        lines = text.splitlines()
        fields = dict(line.split("=", 1) for line in lines)
        self.said += lines
        if fields.get("FDSTORE") == "1" and self.keeps:
            self.stored += [(fields.get("FDNAME", "stored"), fd) for fd in fds]
            fds = []
        if fields.get("FDSTOREREMOVE") == "1":
            for name, fd in [item for item in self.stored if item[0] == fields["FDNAME"]]:
                os.close(fd)
                self.stored.remove((name, fd))
        for fd in fds:  # of a barrier too: it is answered by the close
            os.close(fd)

    def wait_said(self, line, n=1):
        with self.heard:
            while self.said.count(line) < n:
                if not self.heard.wait(30):
                    raise errand_test.Failure(f"the broker has not said {line!r}, but {self.said}")

    def wait_stored(self, *names):
        """Waits until exactly these are kept."""
        with self.heard:
            while sorted(name for name, _ in self.stored) != sorted(names):
                if not self.heard.wait(30):
                    raise errand_test.Failure(f"kept are {[name for name, _ in self.stored]}, not {names}")

    def fd(self, name):
        """Waits until it is kept."""
        with self.heard:
            while name not in dict(self.stored):
                if not self.heard.wait(30):
                    raise errand_test.Failure(f"{name} is not kept, only {[n for n, _ in self.stored]}")
            return dict(self.stored)[name]

    # ---- what the manager does ----

    def settle(self):
        """What a process said before it died has been heard."""
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as s:
            ours, theirs = os.pipe()
            s.connect(self.notify_path)
            s.sendmsg([b"BARRIER=1"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [theirs]))])
            os.close(theirs)
            os.read(ours, 1)
            os.close(ours)

    def start_again(self, **options):
        """SIGKILL, and the unit's Restart=."""
        self.kill()
        self.reader.join()
        self.settle()
        if self.control:
            self.control.close()
            self.control = None
        self.spawn(**options)
        self.killed = False  # the next end has to be a good one again

    def _forget_all(self):
        self.notify.shutdown(socket.SHUT_RDWR)
        self.hearer.join()
        self.notify.close()
        for s in self.listeners.values():
            s.close()
        with self.heard:
            for _, fd in self.stored:
                os.close(fd)
            self.stored = []
