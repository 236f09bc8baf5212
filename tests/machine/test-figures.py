# SPDX-License-Identifier: LGPL-2.1-or-later
"""What errandd costs as a service: memory, and the time of its largest answer. Times are printed, since a busy machine has others."""

import os
import re
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_system import MANAGER, ROOT, Client  # noqa: E402
from errand_test import case  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

IDLE_MAX = 6 * 1024  # KiB
SESSIONS, ROUNDS = 500, 20

system.configure()


def private_memory():
    with open(f"/proc/{machine.pid_of('errandd.service')}/smaps_rollup", encoding="ascii") as f:
        return sum(int(n) for n in re.findall(r"^Private_\w+:\s+(\d+) kB", f.read(), re.MULTILINE))


def cpu_time():
    """Milliseconds that it was at work."""
    with open(f"/proc/{machine.pid_of('errandd.service')}/schedstat", encoding="ascii") as f:
        return int(f.read().split()[0]) / 1e6


@case("an idle errandd has at most 6 MiB of its own")
def _(t):
    t.equal(Client().manager("ListThreads"), ([],), "sessions")
    found = private_memory()
    print(f"# {found} KiB")
    t.check(found <= IDLE_MAX, f"it has {found} KiB")


@case("five hundred sessions are told in one answer", timeout=120)
def _(t):
    root = Client()
    for i in range(SESSIONS):
        root.create(f"s{i}", ["true"])
    start, before = time.monotonic(), cpu_time()
    for _ in range(ROUNDS):
        (objects,) = root.call(ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects")
    taken, at_work = time.monotonic() - start, cpu_time() - before
    t.equal(len(objects), SESSIONS, "objects")
    print(f"# GetManagedObjects: {at_work / ROUNDS:.2f} ms of errandd (at most 10), {taken / ROUNDS * 1000:.1f} ms for a client in Python; "
          f"{private_memory()} KiB with {SESSIONS} sessions")
    t.equal(root.call(ROOT, MANAGER, "ListSessions")[0][0][0], "s0", "first")


run_tests()
