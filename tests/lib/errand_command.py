# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command errand as a user has it: with a state directory, a project, pipes or a terminal. Its errandd --embedded ends with the test."""

import contextlib
import fcntl
import json
import os
import pwd
import select
import signal
import struct
import subprocess
import termios
import time

from errand_test import Failure, program


def wait_for(condition, seconds=20):
    """Its first true value."""
    deadline = time.monotonic() + seconds
    while not (value := condition()):
        if time.monotonic() > deadline:
            raise Failure("what was waited for did not come")
        time.sleep(0.01)
    return value


class Errand:
    def __init__(self, t):
        self.t = t
        self.state = t.path("state")
        self.project = t.path("project")
        os.mkdir(self.project)
        if os.getuid() == 0:  # its owner is whom sessions run as
            nobody = pwd.getpwnam("nobody")
            os.chown(self.project, nobody.pw_uid, nobody.pw_gid)
        self.environment = {name: value for name, value in os.environ.items()
                            if not name.startswith(("ERRAND_EMBEDDED", "ERRAND_CONFIG", "SUDO_", "XDG_", "PAGER", "LESS"))}
        self.environment |= {"ERRAND_EMBEDDED_STATE": self.state, "TERM": "xterm", "HOME": t.directory, "PAGER": "cat"}
        t.defer(self.end_daemon)
        t.log("errandd", self.daemon_log)

    # ---- its daemon ----

    def daemon_pid(self):
        """0 when there is none."""
        try:
            with open(os.path.join(self.state, ".lock"), encoding="ascii") as f:
                pid = int(f.read() or 0)
            with open(f"/proc/{pid}/comm", encoding="ascii") as f:
                return pid if f.read().strip() == "errandd" else 0
        except (OSError, ValueError):
            return 0

    def end_daemon(self):
        if pid := self.daemon_pid():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
            wait_for(lambda: not os.path.exists(f"/proc/{pid}") or self._is_zombie(pid))

    @staticmethod
    def _is_zombie(pid):
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii") as f:
                return f.read().rsplit(")", 1)[1].split()[0] == "Z"
        except OSError:
            return True

    def daemon_log(self):
        try:
            with open(os.path.join(self.state, ".run", "errandd.log"), encoding="utf-8") as f:
                return f.read()
        except OSError as error:
            return str(error)

    # ---- without a terminal ----

    def start(self, *arguments, environment=None, **options):
        """A running errand; its streams are pipes unless said otherwise."""
        for stream in ("stdin", "stdout", "stderr"):
            options.setdefault(stream, subprocess.PIPE)
        options.setdefault("cwd", self.project)
        with open(program("errand"), "rb") as file:
            if "user" in options:  # by descriptor: another account may have no way to a checkout in somebody's home
                options |= {"executable": f"/proc/self/fd/{file.fileno()}", "pass_fds": [file.fileno()]}
            process = subprocess.Popen([program("errand"), *arguments], env=self.environment | (environment or {}), **options)
        self.t.defer(self._end, process)
        return process

    @staticmethod
    def _end(process):
        if process.poll() is None:
            process.kill()
        process.wait()
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                with contextlib.suppress(OSError):
                    stream.close()

    def run(self, *arguments, input=b"", **options):
        """(exit code, stdout, stderr); bytes go in, text comes out."""
        process = self.start(*arguments, **options)
        out, error = process.communicate(input)
        return process.returncode, (out or b"").decode("utf-8", "replace"), (error or b"").decode("utf-8", "replace")

    def good(self, *arguments, **options):
        """Its output."""
        code, out, error = self.run(*arguments, **options)
        if code != 0:
            raise Failure(f"errand {' '.join(arguments)} ended with {code}: {error}")
        return out

    def json(self, *arguments):
        return json.loads(self.good(*arguments, "--json"))

    def state_of(self, session):
        code, out, _ = self.run("session", "show", session, "--json")
        return json.loads(out)["state"] if code == 0 else None

    def await_state(self, session, state):
        wait_for(lambda: self.state_of(session) == state)

    # ---- with one ----

    def terminal(self, *arguments, rows=24, columns=80):
        return self.t.enter(Terminal(self, arguments, rows, columns))


class Terminal:
    """errand in a terminal of its own, as a person has it."""

    def __init__(self, errand, arguments, rows, columns):
        self.master, self.slave = os.openpty()
        self.resize(rows, columns)
        self.before = termios.tcgetattr(self.slave)
        self.text = ""
        self.seen = 0
        self.process = subprocess.Popen([program("errand"), *arguments], cwd=errand.project, env=errand.environment, stdin=self.slave,
                                        stdout=self.slave, stderr=self.slave, start_new_session=True,
                                        preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.hang_up()
        with contextlib.suppress(OSError):
            os.close(self.slave)

    def resize(self, rows, columns):
        """The kernel tells the foreground process group, which errand is."""
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text):
        os.write(self.master, text.encode())

    def _read(self, seconds):
        if not select.select([self.master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self.master, 65536)
        except OSError:
            return False
        self.text += data.decode("utf-8", "replace")
        return bool(data)

    def until(self, part, seconds=20):
        """What was shown since the last time, up to and with part."""
        deadline = time.monotonic() + seconds
        while (at := self.text.find(part, self.seen)) < 0:
            if not self._read(max(deadline - time.monotonic(), 0)) and (time.monotonic() >= deadline or self.process.poll() is not None):
                if not self._read(0):
                    raise Failure(f"the terminal did not show {part!r}, but {self.text[self.seen:]!r}")
        shown = self.text[self.seen:at + len(part)]
        self.seen = at + len(part)
        return shown

    def end(self):
        """errand's exit code, once it has ended; what was left to be shown is in text."""
        while self.process.poll() is None:
            self._read(0.05)
        while self._read(0):
            pass
        return self.process.returncode

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & termios.ECHO

    def is_restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def hang_up(self):
        with contextlib.suppress(OSError):
            os.close(self.master)
