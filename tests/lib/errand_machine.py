# SPDX-License-Identifier: LGPL-2.1-or-later
"""What tests need that run as root in a machine made by tests/machine/boot: accounts, units, the system bus, other accounts' processes.

Everything here may change the machine: it is thrown away.
"""

import contextlib
import os
import pwd
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
    return good("systemctl", *options, "show", "--value", "-p", prop, name).strip()


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


def journal(*options):
    return good("journalctl", "--no-pager", "-q", "-o", "short-monotonic", *options)


def call(service, path, interface, member, *arguments, **options):
    """busctl call on the system bus; → Done."""
    return run("busctl", "--system", "call", service, path, interface, member, *arguments, **options)


def systemd(member, *arguments, **options):
    """A call of PID 1's manager on the system bus."""
    return call("org.freedesktop.systemd1", "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", member, *arguments, **options)


def source(*parts):
    return errand_test.source(*parts)
