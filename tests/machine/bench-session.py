# SPDX-License-Identifier: LGPL-2.1-or-later
"""How long it takes from CreateSession to the first instruction of a session's command, as its owner has it, beside a container of podman's when
that is installed in the machine. Prints medians and ratios; asserts nothing:

    tests/machine/boot --build BUILD 13 /usr/bin/python3 tests/machine/bench-session.py
"""

import os
import pwd
import shutil
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_machine import good  # noqa: E402
from errand_system import Client  # noqa: E402

OWNER, RUNS, PAUSE = "alice", 30, 0.3  # seconds in which nothing is asked for, as between a person's starts
NOW = ["/bin/date", "+%s%N"]  # what it prints is when it ran


def session(owner, name):
    """With a name it starts its own broker; without one it has that which waits."""
    options = {"command": ("as", NOW), "project": ("s", "demo"), **({"id": ("s", name)} if name else {})}
    begun = time.time_ns()
    made = owner.manager("CreateSession", "a{sv}", options)[0].rsplit("/", 1)[1]
    owner.session(made, "Start")
    owner.wait(made, "stopped")
    return int(owner.transcript(made)) - begun


def environment():
    return {**os.environ, "HOME": f"/home/{OWNER}", "USER": OWNER, "LOGNAME": OWNER, "XDG_RUNTIME_DIR": f"/run/user/{pwd.getpwnam(OWNER).pw_uid}"}


def container():
    begun = time.time_ns()
    return int(good("podman", "run", "--rm", "--network=none", "--cgroups=disabled", "localhost/bench", *NOW, account=OWNER, env=environment(), cwd="/")) - begun


def prepare_podman():
    if not shutil.which("podman"):
        print("podman is not installed here: no ratio to it")
        return False
    good("loginctl", "enable-linger", OWNER)
    machine.wait_for(lambda: os.path.exists(environment()["XDG_RUNTIME_DIR"] + "/bus"), "session bus")
    with subprocess.Popen(["tar", "-C", "/", "--owner=0", "--group=0", "-c", "bin", "lib", "lib64", "usr/bin/date", "usr/lib/x86_64-linux-gnu/libc.so.6", "usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
                           "usr/lib64"], stdout=subprocess.PIPE) as tar:
        subprocess.run(["setpriv", f"--reuid={OWNER}", f"--regid={OWNER}", "--init-groups", "podman", "import", "-", "localhost/bench"], stdin=tar.stdout, check=True,
                       env=environment(), cwd="/", stdout=subprocess.DEVNULL)
    return True


def milliseconds(values):
    return f"{statistics.median(values) / 1e6:7.1f} ms (from {min(values) / 1e6:.1f} to {max(values) / 1e6:.1f})"


machine.account(OWNER, "errand-users")
system.configure({"limits": {"maxLiveSessions": 2 * RUNS, "brokersAhead": 1}})
alice = Client(OWNER)
session(alice, "first")
with_podman = prepare_podman()
ahead, alone, containers = [], [], []
for number in range(RUNS):
    time.sleep(PAUSE)
    alone.append(session(alice, f"b{number}"))
    time.sleep(PAUSE)
    ahead.append(session(alice, None))
    if with_podman:
        time.sleep(PAUSE)
        containers.append(container())
print("from the call to the command's first instruction:")
print(f"session, its broker started ahead {milliseconds(ahead)}")
print(f"session, with a broker of its own {milliseconds(alone)}")
if containers:
    podman = statistics.median(containers)
    print(f"podman run                        {milliseconds(containers)}")
    print(f"ahead / podman: {statistics.median(ahead) / podman:.2f}   own / podman: {statistics.median(alone) / podman:.2f}")
else:
    print(f"ahead / own: {statistics.median(ahead) / statistics.median(alone):.2f}")
