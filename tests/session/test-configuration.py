#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the configuration grants a session beyond its own: paths, variables, directories on its PATH; and what the report says of it."""

import ctypes
import os
import stat
import subprocess

import errand_test
import errand_world
from errand_run import Errand
from errand_test import case, run

errand_world.enter()

TOOL = "errand-configured-tool"


def directory(t, name, mode=0o755):
    """One that sessions of any account can go to."""
    path = t.path(name)
    os.mkdir(path)
    os.chmod(path, mode)
    return path


def script(path, says):
    with open(path, "w", encoding="ascii") as f:
        f.write(f"#!/bin/sh\necho {says}\n")
    os.chmod(path, 0o755)


def told(errand):
    """The report, its lines joined again."""
    return " ".join(errand.good("report").split())


def check(errand, *options):
    return subprocess.run([errand_test.program("errand"), "config", "check", errand.config, "--embedded", *options], capture_output=True, text=True)


def sandbox(**keys):
    return {"sandbox": {"gracePeriodMs": 2000, "egress": {"allow": []}, **keys}}


def policy(errand):
    """Of the only session."""
    name, = [n for n in os.listdir(errand.state) if os.path.exists(os.path.join(errand.state, n, "policy.toml"))]
    with open(os.path.join(errand.state, name, "policy.toml"), encoding="utf-8") as f:
        return f.read()


@case("S197 S198: a variable is there, and widens nothing: what it names is reached only when it is granted too")
def variable(t):
    cache = directory(t, "cache", 0o777)
    with open(os.path.join(cache, "warm"), "w", encoding="ascii") as f:
        f.write("warm\n")
    look = 'echo "$CARGO_HOME"; cat "$CARGO_HOME/warm" 2>&1; touch "$CARGO_HOME/new" 2>/dev/null && echo written; true'
    errand = Errand(t, sandbox(env={"CARGO_HOME": cache}))
    out = errand.good("run", "--embedded", "--", "/bin/sh", "-c", look).splitlines()
    t.equal(out[0], cache, "the variable")
    t.check(len(out) == 2 and out[1].endswith("No such file or directory"), out)
    errand.end()
    errand.configure(sandbox(env={"CARGO_HOME": cache}, policyExtra={"read": [cache], "write": [cache], "execute": []}))
    t.equal(errand.good("run", "--embedded", "--", "/bin/sh", "-c", look).splitlines(), [cache, "warm", "written"], "with the grant")
    t.check(os.path.exists(os.path.join(cache, "new")), "what was written is not there")


@case("S200 S201 S202: what is granted is not on PATH, what is on PATH is not granted; one that is both comes ahead of /usr/bin")
def on_path(t):
    tools = directory(t, "tools")
    script(os.path.join(tools, TOOL), "ours")
    script(os.path.join(tools, "id"), "ours too")
    look = f'echo "$PATH"; {TOOL}; id; {tools}/{TOOL}; true'
    grant = {"read": [tools], "execute": [tools], "write": []}
    rows = [("granted alone", {"policyExtra": grant}, False, True), ("named alone", {"pathExtra": [tools]}, True, False),
            ("both", {"pathExtra": [tools], "policyExtra": grant}, True, True)]

    errand = Errand(t)
    for what, keys, on, granted in rows:
        errand.configure(sandbox(**keys))
        result = errand.run("run", "--embedded", "--", "/bin/sh", "-c", look)
        path, *said = result.stdout.splitlines()
        t.equal(path.split(":"), ([tools] if on else []) + ["/usr/local/bin", "/usr/bin", "/bin"] + path.split(":")[len([tools] if on else []) + 3:], f"{what}: PATH")
        t.equal(said.count("ours"), on and granted and 2 or int(granted), f"{what}: how often the program ran")
        t.equal("ours too" in said, on and granted, f"{what}: whether it is found before the host's own")
        errand.end()


@case("S205: the names of variables are in the report, and their values in no report, log or description")
def values(t):
    errand = Errand(t, sandbox(env={"A_NAME": "marker-of-a-value", "OTHER": "second-marker"}))
    process, line = errand.started("s1", "/bin/sh", "-c", 'echo "$A_NAME"; read line')
    t.equal(line, "marker-of-a-value\n", "what the session has")
    t.contains(told(errand), "sessions have the variables: A_NAME, OTHER")
    for text in (errand.good("report"), errand.good("report", "--json"), errand.log(), errand.good("session show", "s1"),
                 errand.good("session show", "s1", "--json"), policy(errand)):
        t.lacks(text, "marker", "what is told")
    process.communicate("end\n")


@case("S192: grants only add: project and state are placed, the environment is built, and the backend's own profile is cleared first")
def additive(t):
    extra = directory(t, "extra")
    errand = Errand(t, sandbox())
    look = 'touch here "$HOME/there" && echo placed; env'
    plain_out = errand.good("run", "--embedded", "--", "/bin/sh", "-c", look, variables={"STRAY": "stray-value"})
    plain = policy(errand)
    errand.good("threads rm", *[s["id"] for s in errand.json("threads list")])
    errand.end()
    errand.configure(sandbox(policyExtra={"read": [extra], "write": [extra], "execute": [extra]}))
    out = errand.good("run", "--embedded", "--", "/bin/sh", "-c", look, variables={"STRAY": "stray-value"})
    t.equal(out.splitlines()[0], "placed", "project and state")
    t.lacks(out, "stray-value", "the environment")
    t.equal({line.split("=")[0] for line in out.splitlines()}, {line.split("=")[0] for line in plain_out.splitlines()}, "the variables")
    lines = policy(errand).splitlines()
    t.equal([line.replace(f', "{extra}"', "") for line in lines][1:], plain.splitlines()[1:], "the policy but for what is granted")
    t.equal(sum(f'"{extra}"' in line for line in lines), 3, "lines that grant it")
    granted = [i for i, line in enumerate(lines) if line.startswith(("read =", "write =", "execute ="))]
    t.check(lines.index("reset = true") < min(granted), lines)


@case("S189: a session can neither write, replace nor move the policy that it was given, nor the directories above it")
def rewritten(t):
    errand = Errand(t, sandbox())
    # Each also by way of other processes' view of the files; what is made inside, in a session's own /tmp, is nobody's concern.
    attack = 'echo ready; read line; for root in "" /proc/self/root /proc/1/root /proc/$PPID/root; do d=$root{0}/s1; for c in "echo x >> $d/policy.toml" ' \
             '"rm -f $d/policy.toml" "mv $d/state/home/x $d/policy.toml" "ln -f /etc/hostname $d/policy.toml" "ln -sf /x $d/policy.toml" "mv $d $d.old" ' \
             '"mv {0} {0}.old" "chmod 777 $d" "touch $d/new" "rm -rf $d/broker"; do sh -c "$c" 2>/dev/null; done; done; echo up; read line'
    process, _ = errand.started("s1", "/bin/sh", "-c", attack.format(errand.state))
    path = os.path.join(errand.state, "s1", "policy.toml")
    before, text = os.lstat(path), policy(errand)
    process.stdin.write("go on\n")
    process.stdin.flush()
    t.equal(process.stdout.readline(), "up\n", "the attack's end")
    status = os.lstat(path)
    t.equal((status.st_ino, status.st_mtime_ns, status.st_size), (before.st_ino, before.st_mtime_ns, before.st_size), "the file")
    t.equal(policy(errand), text, "the policy")
    t.check(stat.S_ISREG(status.st_mode) and status.st_uid == os.geteuid() and not status.st_mode & 0o022, oct(status.st_mode))
    t.equal(sorted(os.listdir(os.path.dirname(path))), ["broker", "policy.toml", "state"], "the session's directory")
    process.communicate("end\n")


@case("S207: no program of a session listens on TCP on the host, so there is no address to check")
def listeners(t):
    before = tcp()
    errand = Errand(t, sandbox())
    process, _ = errand.started("s1", "/bin/sh", "-c", "echo up; read line")
    t.check(errand.find("errandd") and errand.find("errand-broker"), "no daemon and no broker to look at")
    t.equal(tcp() - before, set(), "sockets that listen")
    for keys in ({"web": {"bind": "0.0.0.0:8080"}}, {"listen": "0.0.0.0:80"}):
        errand.configure(keys)
        t.equal(check(errand).returncode, 2, "a key for one")
    process.communicate("end\n")


def tcp():
    """Sockets of this network namespace that listen."""
    found = set()
    for name in ("tcp", "tcp6"):
        with open(f"/proc/self/net/{name}", encoding="ascii") as f:
            found |= {(name, line.split()[1]) for line in f.readlines()[1:] if line.split()[3] == "0A"}
    return found


@case("S181: where no limits can be had the report ends with that gap, in these words")
def gap(t):
    errand = Errand(t, sandbox())
    lines = errand.json("report", "--embedded")["report"]
    at = next(i for i, line in enumerate(lines) if line.endswith("guarantee(s) cannot be enforced on this host:"))
    gaps = [line for line in lines[at + 1:] if line.startswith("    - ")]
    t.equal(lines[0], "sandbox backend: bailey", "the first line")
    t.equal(lines[at], f"  {len(gaps)} guarantee(s) cannot be enforced on this host:", "the line before the gaps")
    t.contains("\n".join(lines), "\n    - per-session memory, cpu, and process limits are not applied: this host\n      reports no cgroup delegation")


@case("a key that does nothing is told, in the report and without a daemon")
def inert(t):
    errand = Errand(t, {"operators": ["root"], **sandbox(network="none", egressPorts=[80], image="x")})
    for text in (told(errand) if errand.run("report", "--embedded").returncode == 0 else "",
                 " ".join(check(errand).stdout.split())):
        t.contains(text, 'sandbox.egressPorts does nothing: sandbox.network is "none"')
        t.contains(text, "operators does nothing: errandd serves its own account alone")
        t.contains(text, "sandbox.image does nothing: it is a setting of the podman backend")


@case("S210: no session reads a key's file or the configuration in /etc, which every one sees, though its account could")
def hidden(t):
    def own(path):
        """The session's account could read it."""
        os.chmod(path, 0o600)
        if os.getuid() == 0:
            os.chown(path, 65534, 65534)
    libc = ctypes.CDLL(None, use_errno=True)
    # In this program's own mount namespace. The link leads to where the second key is.
    for place in (b"/etc/opt", b"/usr/local/share"):
        t.equal(libc.mount(b"keys", place, b"tmpfs", 0, b"mode=755"), 0, f"mount (errno {ctypes.get_errno()})")
        t.defer(libc.umount, place)
    keys = ["/etc/opt/key", "/usr/local/share/key", "/etc/opt/link"]
    for path in keys[:2]:
        with open(path, "w", encoding="ascii") as f:
            f.write("sk-real-0123456789\n")
        own(path)
    os.symlink(keys[1], keys[2])
    with open("/etc/opt/other", "w", encoding="ascii") as f:
        f.write("other\n")
    url = "https://192.0.2.1"
    providers = {"a": {"baseUrl": url, "credential": {"file": keys[0]}}, "b": {"baseUrl": url, "credential": {"file": keys[2]}},
                 "c": {"baseUrl": url, "credential": "sk-real-9876543210"}}
    errand = Errand(t)
    errand.config = "/etc/opt/errand.json"
    errand.configure({**sandbox(), "agent": {"providers": providers}})
    own(errand.config)
    result = errand.run("run", "--embedded", "--", "/bin/cat", "/etc/opt/other", *keys, errand.config)
    t.equal((result.returncode, result.stdout), (1, "other\n"), f"code and output; it said {result.stderr}")


if __name__ == "__main__":
    run()
