# SPDX-License-Identifier: LGPL-2.1-or-later
"""Where the kernel has all controllers nothing is missing, and a session's limits hold."""

import os
import pwd
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_machine import good  # noqa: E402
from errand_system import MANAGER, ROOT, Client  # noqa: E402
from errand_test import case  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

PATIENCE = 300  # seconds: this processor is emulated
MEMORY, PIDS = 192 << 20, 64
UID = pwd.getpwnam("errand-agent").pw_uid

good("systemctl", "start", f"user@{UID}.service")
system.configure({"sandbox": {"requireFullEnforcement": True, "memory": "192m", "pids": PIDS, "cpus": 0.5}})


def scope(session):
    """The directory of its cgroup."""
    return f"/sys/fs/cgroup/user.slice/user-{UID}.slice/user@{UID}.service/errand.slice/errand-session-{session}.scope"


def value(session, name):
    with open(f"{scope(session)}/{name}", encoding="ascii") as f:
        return f.read().strip()


@case("with every controller there is no gap", timeout=PATIENCE)
def _(t):
    client = Client(timeout=PATIENCE)
    t.equal(client.get(ROOT, MANAGER, "Gaps"), [], "gaps")
    t.note("\n".join(client.get(ROOT, MANAGER, "Report")))


@case("D003: the scope has the configured limits, and bailey's payload is in it", timeout=PATIENCE)
def _(t):
    t.log("journal", system.log)
    client = Client(timeout=PATIENCE)
    client.start("l1", ["/bin/sleep", "infinity"])
    t.defer(client.end, "l1")
    t.equal([value("l1", n) for n in ("memory.max", "memory.swap.max", "pids.max")], [str(MEMORY), "0", str(PIDS)], "limits of the scope")
    quota, period = value("l1", "cpu.max").split()
    t.equal(int(quota) * 2, int(period), "cpu.max")
    shown = {p: machine.show("errand-session-l1.scope", p, "--user", "-M", "errand-agent@.host") for p in ("Delegate", "MemoryMax", "TasksMax", "CPUQuotaPerSecUSec")}
    t.equal(shown, {"Delegate": "yes", "MemoryMax": str(MEMORY), "TasksMax": str(PIDS), "CPUQuotaPerSecUSec": "500ms"}, "what systemd shows")
    pids = good("sh", "-c", f"cat $(find {scope('l1')} -name cgroup.procs)").split()
    names = [open(f"/proc/{p}/comm", encoding="utf-8").read().strip() for p in pids]  # pylint: disable=consider-using-with
    t.check("sleep" in names and "errand-shim" not in names, f"in the scope are {names}")


HOG = "x = []\nfor n in range(64):\n    x.append(bytearray(b'x' * (16 << 20)))\n    print((n + 1) * 16, flush=True)\n"


@case("T005 MemoryMax: what takes more memory than the session has is killed, the session says so, and the machine does not notice", timeout=PATIENCE)
def _(t):
    t.log("journal", system.log)
    client = Client(timeout=PATIENCE)
    client.start("l2", ["/usr/bin/python3", "-c", HOG])
    machine.wait_for(lambda: client.state("l2") in ("stopped", "failed"), "end of l2", PATIENCE)
    end, text = client.describe("l2"), client.transcript("l2").split()
    t.note(f"{end['ExitReason']} {end['ExitStatus']} after {text[-1:]} MiB")
    t.check(text and 16 <= int(text[-1]) <= 192, f"it got {text} MiB")
    t.equal((end["ExitReason"], end["ExitStatus"]), ("killed", 137), "its end")
    with open("/var/lib/errand/.records/l2/events", encoding="utf-8") as f:
        t.contains(f.read(), "out of memory", "what its events say")
    t.equal(client.get(ROOT, MANAGER, "Ready"), True, "errandd")


FORKS = """
import os, sys, time
n = 0
while n < 1000:
    try:
        if os.fork() == 0:
            time.sleep(600)
            os._exit(0)
    except OSError as error:
        print(n, error.errno, flush=True)
        break
    n += 1
else:
    print(n, 0, flush=True)
"""


@case("T005 TasksMax: a session that forks without end stops at its limit, and outside processes are made as before", timeout=PATIENCE)
def _(t):
    t.log("journal", system.log)
    client = Client(timeout=PATIENCE)
    client.start("l3", ["/usr/bin/python3", "-c", FORKS])
    t.defer(client.end, "l3")
    text = machine.wait_for(lambda: client.transcript("l3"), "what it says", PATIENCE).split()
    t.note(f"{text[0]} children, then errno {text[1]}")
    t.check(16 <= int(text[0]) < PIDS and text[1] == "11", f"{text[0]} children, errno {text[1]}")
    good("true", account="errand-agent")


@case("S186: what an administrator limits the slice of the sessions' account to holds over all of them together, whatever each may have", timeout=PATIENCE)
def _(t):
    t.log("journal", system.log)
    slice_name = f"user-{UID}.slice"
    good("systemctl", "set-property", "--runtime", slice_name, "MemoryMax=144M", "MemorySwapMax=0")
    t.defer(good, "systemctl", "set-property", "--runtime", slice_name, "MemoryMax=infinity", "MemorySwapMax=infinity")
    client = Client(timeout=PATIENCE)
    client.start("l5", ["/usr/bin/python3", "-c", HOG])
    machine.wait_for(lambda: client.state("l5") in ("stopped", "failed"), "end of l5", PATIENCE)
    end, text = client.describe("l5"), client.transcript("l5").split()
    t.note(f"{end['ExitReason']} {end['ExitStatus']} after {text[-1:]} MiB")
    t.check(text and int(text[-1]) <= 144, f"it got {text} MiB")
    t.equal((end["ExitReason"], end["ExitStatus"]), ("killed", 137), "its end")
    client.start("l6", ["/bin/echo", "here"])
    machine.wait_for(lambda: client.transcript("l6") == "here\n", "the next session", PATIENCE)


# Every process of it forks, computes and takes memory, for ever.
STORM = """
import os
print("storm", flush=True)
held = []
while True:
    try:
        os.fork()
    except OSError:
        pass
    try:
        held.append(bytearray(b"x" * (1 << 20)))
    except MemoryError:
        pass
    for _ in range(100000):
        pass
"""


@case("T005: a fork bomb that computes and takes memory in one session leaves another session and errandd answering, and is stopped", timeout=PATIENCE)
def _(t):
    t.log("journal", system.log)
    client = Client(timeout=PATIENCE)
    other = system.Running(t, "l7", lambda: Client(timeout=PATIENCE))
    other.answers("before")
    client.start("l8", ["/bin/sh", "-c", "while :; do :; done & while :; do :; done & exec /usr/bin/python3 -c \"$0\"", STORM])
    t.defer(client.end, "l8")
    machine.wait_for(lambda: client.transcript("l8") or client.state("l8") != "running", "beginning of the storm", PATIENCE)

    def throttled():
        return int(dict(line.split() for line in value("l8", "cpu.stat").splitlines())["nr_throttled"])
    machine.wait_for(lambda: client.state("l8") != "running" or throttled() > 10, "throttling", PATIENCE)
    longest = 0.0
    for n in range(10):
        begun = time.monotonic()
        other.answers(f"line {n}")
        t.equal(client.get(ROOT, MANAGER, "Ready"), True, "errandd")
        longest = max(longest, time.monotonic() - begun)
    t.note(f"l8 is {client.state('l8')}; an answer of the other session and one of errandd took {longest:.2f} s at most")
    client.start("l9", ["/bin/echo", "begun and ended"])
    machine.wait_for(lambda: client.state("l9") == "stopped", "end of a session that was started meanwhile", PATIENCE)
    client.end("l8")
    t.check(client.state("l8") in ("stopped", "failed"), "the storm goes on")
    t.equal(client.state("l7"), "running", "the other session")


@case("a session cannot raise its own limits: there is no cgroup file that it can write", timeout=PATIENCE)
def _(t):
    client = Client(timeout=PATIENCE)
    program = "for f in $(find / -name memory.max -o -name pids.max -o -name cgroup.procs 2>/dev/null); do echo max >$f 2>/dev/null && echo wrote $f; done; echo done"
    client.start("l4", ["/bin/sh", "-c", program])
    machine.wait_for(lambda: client.state("l4") in ("stopped", "failed"), "end of l4", PATIENCE)
    t.equal(client.transcript("l4"), "done\n", "what it wrote")


run_tests()
