# SPDX-License-Identifier: LGPL-2.1-or-later
"""What tests need that run as root in a machine made by tests/machine/boot: accounts, units, the system bus, other accounts' processes.

Everything here may change the machine: it is thrown away.
"""

import contextlib
import json
import os
import pwd
import socket
import subprocess
import time

import errand_test
from errand_test import Failure

VERSION = os.environ.get("ERRAND_MACHINE", "")
UNIT_DIRECTORY = "/run/systemd/system"


class Done:
    """How a program has ended."""

    def __init__(self, status, out, err):
        self.status, self.out, self.err = status, out, err

    def __str__(self):
        return f"status {self.status}, {self.out!r}, {self.err!r}"


def run(*argv, check=False, account=None, stdin="", **options):
    """Runs a program to its end, as an account with its groups when one is named."""
    if account:
        options.setdefault("env", {**os.environ, "HOME": pwd.getpwnam(account).pw_dir})
        argv = ("setpriv", f"--reuid={account}", f"--regid={pwd.getpwnam(account).pw_gid}", "--init-groups", "--", *argv)
    done = subprocess.run(argv, input=stdin, capture_output=True, text=True, check=False, **options)
    result = Done(done.returncode, done.stdout, done.stderr)
    if check and result.status != 0:
        raise Failure(f"{' '.join(argv)}: {result}")
    return result


def good(*argv, **options):
    """What a program prints that has to succeed."""
    return run(*argv, check=True, **options).out


def account(name, *groups):
    """Makes an ordinary account (once); → its uid."""
    with contextlib.suppress(KeyError):
        return pwd.getpwnam(name).pw_uid
    good("useradd", "--create-home", "--shell", "/bin/bash", *(["--groups", ",".join(groups)] if groups else []), name)
    return pwd.getpwnam(name).pw_uid


def write(path, text, mode=0o644):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, mode)


def unit(name, text):
    """Makes a unit, or with UNIT.d/x.conf a drop-in, until the next boot, and has it loaded."""
    write(os.path.join(UNIT_DIRECTORY, name), text)
    good("systemctl", "daemon-reload")


def no_unit(name):
    os.unlink(os.path.join(UNIT_DIRECTORY, name))
    good("systemctl", "daemon-reload")


def show(name, prop, *options):
    """A property of a unit; "" when there is no such unit."""
    return run("systemctl", *options, "show", "--value", "-p", prop, name).out.strip()


def wait_for(condition, what, seconds=20):
    """Until condition() is true; → what it gave. The bound is for what will never come."""
    end = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > end:
            raise Failure(f"in {seconds} s there was no {what}")
        time.sleep(0.02)


def journal(*options, output="short-monotonic"):
    """With all that was written until now: what a program that has ended said may be on its way to the journal still."""
    good("journalctl", "--sync")
    return good("journalctl", "--no-pager", "-q", "-o", output, *options)


def call(service, path, interface, member, *arguments, **options):
    """busctl call on the system bus; → Done."""
    return run("busctl", "--system", "call", "--", service, path, interface, member, *arguments, **options)


def systemd(member, *arguments, **options):
    """A call of PID 1's manager on the system bus."""
    return call("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", member, *arguments, **options)


def source(*parts):
    return errand_test.source(*parts)


class Remote:
    """Runs programs as a process of a unit and an account: errandd.service itself, with everything that confines it, or a unit of its own."""

    def __init__(self, name, account):
        self.name, self.unit = name, name if name.endswith(".service") else f"{name}.service"
        program = f"/usr/bin/python3 {source('tests/machine/remote.py')} {name}"
        if os.path.exists(f"/usr/lib/systemd/system/{self.unit}"):
            unit(f"{self.unit}.d/remote.conf", f"[Service]\nType=simple\nRestart=no\nWatchdogSec=0\nExecStart=\nExecStart={program}\n")
            good("systemctl", "start", self.unit)
        else:
            good("systemd-run", f"--unit={self.unit}", f"--property=User={account}", *program.split())
        self.pid = int(show(self.unit, "MainPID"))
        wait_for(self._connect, f"answer of {self.unit}").close()

    def _connect(self):
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.connect("\0errand-remote-" + self.name)
        except OSError:
            connection.close()
            return None
        return connection

    def run(self, *argv):
        with self._connect() as connection, connection.makefile("rw", encoding="utf-8") as f:
            print(json.dumps(argv), file=f, flush=True)
            return Done(*json.loads(f.readline()))

    def systemd(self, member, *arguments):
        return self.run("busctl", "--system", "call", "--", "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
                        "org.freedesktop.systemd1.Manager", member, *arguments)


def pid_of(name):
    return int(show(name, "MainPID"))


def is_active(name):
    return show(name, "ActiveState") == "active"
