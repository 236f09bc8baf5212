# SPDX-License-Identifier: LGPL-2.1-or-later
"""Where the kernel has all controllers, a policy's limits hold what bailey runs, with nothing else of errand around."""

import json
import os
import pwd
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
from errand_machine import good  # noqa: E402
from errand_test import case  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

PATIENCE = 300  # seconds: this processor is emulated
ACCOUNT = pwd.getpwnam("dev")
LIMITS = '[resources]\nmemory = "64m"\npids_max = 20\ncpu_percent = 50\n'
DELEGATED = ("systemd-run", "--user", "--scope", "--quiet", "-p", "Delegate=yes")

good("systemctl", "start", f"user@{ACCOUNT.pw_uid}.service")


def environment(**more):
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": ACCOUNT.pw_dir, "XDG_RUNTIME_DIR": f"/run/user/{ACCOUNT.pw_uid}", "LC_ALL": "C.UTF-8", **more}


def policy(text):
    path = f"{ACCOUNT.pw_dir}/policy.toml"
    machine.write(path, text)
    return path


def bailey(text, *argv, scope=DELEGATED, options=(), **more):
    """bailey run under a policy, in a scope of the account's."""
    return machine.run(*scope, "bailey", "run", "--config", policy(text), *options, *argv, account="dev", env=environment(**more),
                       cwd=ACCOUNT.pw_dir)


def start(text, *argv, scope=DELEGATED):
    return subprocess.Popen(["setpriv", f"--reuid={ACCOUNT.pw_uid}", f"--regid={ACCOUNT.pw_gid}", "--init-groups", "--", *scope, "bailey", "run",
                             "--config", policy(text), *argv], cwd=ACCOUNT.pw_dir, env=environment(), stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def group_of(pid):
    with open(f"/proc/{pid}/cgroup", encoding="ascii") as f:
        return "/sys/fs/cgroup" + f.read().strip().split("::")[1]


def value(group, name):
    with open(f"{group}/{name}", encoding="ascii") as f:
        return f.read().strip()


@case("S185 T019 C082: in a delegated scope every limit is set, on a group that bailey is not in, and --strict is content", timeout=PATIENCE)
def _(t):
    p = start(LIMITS, "--strict", "sh", "-c", "echo ready; read x")
    t.equal(p.stdout.readline(), "ready\n", "it started")
    own = group_of(p.pid)
    t.check(own.endswith("/init"), f"bailey is in {own}")
    payload = own.removesuffix("init") + "payload"
    got = {n: value(payload, n) for n in ("memory.max", "memory.swap.max", "memory.oom.group", "pids.max", "cpu.max")}
    t.note(got)
    t.equal(got, {"memory.max": str(64 << 20), "memory.swap.max": "0", "memory.oom.group": "1", "pids.max": "20", "cpu.max": "50000 100000"},
            "what the kernel holds")
    t.equal(len(value(payload, "cgroup.procs").split()), 2, "processes in it")
    err = p.communicate("x\n", timeout=PATIENCE)[1]
    t.note(err)
    t.check(p.returncode == 0 and ", limits" in err and "not enforced" not in err, err)
    t.check(not os.path.exists(payload), "the group is gone")


HOG = "import sys\nx = []\nfor n in range(20):\n    x.append(bytearray(b'x' * (16 << 20)))\n    print((n + 1) * 16, flush=True)\n"


@case("T005 C085: what takes more memory than the policy allows is ended, with 137 and the reason", timeout=PATIENCE)
def _(t):
    r = bailey(LIMITS, "python3", "-c", HOG)
    t.note(r)
    t.check(r.out.split() and int(r.out.split()[-1]) <= 64, f"it got {r.out.split()} MiB")
    t.equal(r.status, 137, "status")
    t.contains(r.err, "out of memory: the limit of memory ended the command", "what is said")


@case("C085: what lies in the private /tmp counts", timeout=PATIENCE)
def _(t):
    r = bailey(LIMITS, "dd", "if=/dev/zero", "of=/tmp/x", "bs=1M", "count=200")
    t.note(r)
    t.check(r.status == 137 and "out of memory" in r.err, r)


FORKS = """
import os, time
n = 0
try:
    while n < 100:
        if os.fork() == 0:
            time.sleep(600)
        n += 1
except OSError as error:
    print(n, error.errno)
else:
    print(n, 0)
"""


@case("T005: what forks without end stops at its limit", timeout=PATIENCE)
def _(t):
    r = bailey(LIMITS, "python3", "-c", FORKS)
    t.note(r)
    n, error = map(int, r.out.split())
    # The sandbox's first process and the program itself are among the twenty.
    t.check(r.status == 0 and n == 18 and error == 11, r)


@case("T005: a processor is had in part", timeout=PATIENCE)
def _(t):
    p = start(LIMITS, "sh", "-c", "echo ready; while :; do :; done")
    t.equal(p.stdout.readline(), "ready\n", "it started")
    payload = group_of(p.pid).removesuffix("init") + "payload"

    def throttled():
        return int(dict(line.split() for line in value(payload, "cpu.stat").splitlines())["nr_throttled"]) > 5
    machine.wait_for(throttled, "throttling", PATIENCE)
    t.note(value(payload, "cpu.stat"))
    p.terminate()
    p.communicate(timeout=PATIENCE)


@case("C084: a limit around bailey holds, whatever the policy says", timeout=PATIENCE)
def _(t):
    r = bailey('[resources]\nmemory = "6g"\n', "python3", "-c", HOG, scope=(*DELEGATED, "-p", "MemoryMax=120M", "-p", "MemorySwapMax=0"))
    t.note(r)
    t.check(r.status == 137 and int(r.out.split()[-1]) <= 120, r)


@case("C082: where only pids is delegated, the others are named and that one holds", timeout=PATIENCE)
def _(t):
    top = "/sys/fs/cgroup/part"
    os.makedirs(f"{top}/own")
    machine.write(f"{top}/cgroup.subtree_control", "+pids")
    for name in ("", "cgroup.procs", "cgroup.subtree_control", "cgroup.threads"):
        os.chown(f"{top}/own/{name}", ACCOUNT.pw_uid, ACCOUNT.pw_gid)
    enter = f'echo $$ > {top}/own/cgroup.procs; exec setpriv --reuid={ACCOUNT.pw_uid} --regid={ACCOUNT.pw_gid} --init-groups "$@"'
    r = machine.run("sh", "-c", enter, "sh", "bailey", "run", "--config", policy(LIMITS), "--json", "python3", "-c", FORKS,
                    env=environment(BAILEY_CGROUP_ROOT=f"{top}/own"), cwd=ACCOUNT.pw_dir)
    t.note(r)
    t.equal(r.out.split(), ["18", "11"], "forks")
    t.check(f"memory: {top}/own has no controller for it; cpu_percent: {top}/own has no controller for it" in r.err, r)
    t.equal([g["name"] for g in json.loads(r.err.splitlines()[-1])["not_enforced"]], ["resources"], "gaps")


@case("C082: a group that was not delegated is not used", timeout=PATIENCE)
def _(t):
    r = bailey(LIMITS, "true", scope=())
    t.note(r)
    t.check(r.status == 0 and "is not delegated to this account" in r.err and "not enforced: resources" in r.err, r)
    r = bailey(LIMITS, "true", scope=(), options=("--strict",))
    t.check(r.status == 125 and "--accept-gap resources" in r.err, r)


@case("C082: doctor names the controllers that were delegated", timeout=PATIENCE)
def _(t):
    r = machine.run(*DELEGATED, "bailey", "doctor", account="dev", env=environment(), cwd=ACCOUNT.pw_dir)
    t.note(r.out)
    t.check("control-group          works    memory, pids, cpu; below /sys/fs/cgroup/" in r.out, r)
    t.check(r.status == 0, r)


run_tests()
