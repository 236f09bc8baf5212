#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""bailey doctor says of a host what a run then finds, in the same words, because it tries the same things."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys

from bailey import NOT_RUN, Run, check, main

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
WHOLE, WEAKER, NOTHING = 0, 1, 2

if os.getuid() == 0 and "BAILEY_TEST_MOUNTS" not in os.environ:
    os.environ["BAILEY_TEST_MOUNTS"] = "private"
    os.execv("/usr/bin/unshare", ["unshare", "--mount", "--propagation", "private", sys.executable, *sys.argv])


class Doctor:
    def __init__(self, run):
        self.run = run
        check(run.err == "", run)
        self.said = json.loads(run.out)
        self.status, self.summary = self.said["status"], self.said["summary"]
        check(run.status == self.status, run)
        self.all = {m["name"]: m for m in self.said["mechanisms"]}

    def missing(self, *needs):
        return {n for n, m in self.all.items() if not m["works"] and m["tried"] and m["needed_by"] in needs}

    def untried(self):
        return {n for n, m in self.all.items() if not m["tried"]}

    def gaps(self):
        """Those of any run."""
        return {self.all[n]["gap"] for n in self.missing("default")}

    def __str__(self):
        return json.dumps(self.said, indent=1)


def doctor(w, **more):
    return Doctor(w.call("doctor", "--json", **more))


def ran(w, **more):
    """What a run finds: its status, and the gaps that it tells."""
    r = w.call("run", "--json", "true", **more)
    return r.status, {g["name"]: g["text"] for g in json.loads(r.err.splitlines()[-1])["not_enforced"]} if r.status == 0 else {}


def same_as_run(w, **more):
    d = doctor(w, **more)
    status, gaps = ran(w, **more)
    check((status == NOT_RUN) == (d.status == NOTHING), (d, status))
    check(status != 0 or set(gaps) - {"private-tmp", "private-home"} == d.gaps(), (d, gaps))
    for name in d.missing("default"):
        check(status != 0 or d.all[name]["cost"] == gaps[d.all[name]["gap"]], d.all[name])
    check(bool(d.gaps()) == (d.status == WEAKER) or d.status == NOTHING, d)
    return d


def host(w):
    d = same_as_run(w)
    for m in d.all.values():
        check(set(m) == {"name", "works", "tried", "needed_by", "gap", "text", "cost", "remedy"}, m)
        lacks = m["tried"] and not m["works"]
        check(bool(m["cost"]) == bool(m["remedy"]) == lacks and (m["text"] or not lacks), m)
    names = set(re.findall(r'\{"([a-z-]+)",', open(os.path.join(TOP, "src", "bailey", "gap.c"), encoding="utf-8").read()))
    check({m["gap"] for m in d.all.values()} - {None} <= names, d)
    check(all(name in d.summary for name in d.missing("run", "default", "option")), d)


def lines(w):
    d, r = doctor(w), w.call("doctor")
    check(r.status == d.status and r.err == "", r)
    body, summary = r.out.rstrip("\n").rsplit("\n\n", 1)
    check(summary == d.summary, r)
    rows = [line for line in body.split("\n") if line[0] != " "]
    check([row.split()[0] for row in rows] == list(d.all), r)
    check(all(re.match(r".{23}(works|missing|untried)( |$)", row) and row == row.rstrip() for row in rows), r)
    for name in d.missing("run", "default", "option"):
        check(f"cost:    {d.all[name]['cost']}\n" in r.out and f"remedy:  {d.all[name]['remedy']}\n" in r.out, r)
    check(len(body.split("\n")) == len(rows) + 2 * len(d.missing("run", "default", "option")), r)


def loopback(w):
    d = same_as_run(w, lacking="ioctl,1=0x8914:EPERM")
    m = d.all["namespaces"]
    check(d.status == NOTHING and not m["works"] and "bringing up loopback in the new network namespace" in m["text"], m)
    check("AppArmor" in m["remedy"] or "max_user_namespaces" in m["remedy"], m)
    check("namespaces" in d.summary and "Nothing can be confined" in d.summary, d)


def mounts(w):
    d = same_as_run(w, lacking="mount_setattr:EACCES")
    check(d.status == NOTHING and d.missing("run") == {"mount-api"}, d)
    check("mounting the new root" in d.all["mount-api"]["text"] and "container" in d.all["mount-api"]["remedy"], d.all["mount-api"])
    check({"proc", "pivot-root"} <= d.untried(), d)
    d = same_as_run(w, lacking="pivot_root:EPERM")
    check(d.status == NOTHING and d.missing("run") == {"pivot-root"} and d.all["mount-api"]["works"], d)


def call(w, wrapper, *args):
    """bailey, started by a shell that makes a surrounding: wrapper has "$@" where it goes."""
    account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}
    return Run(subprocess.run(["unshare", "-Urmpf", "--mount-proc", "sh", "-c", wrapper, "sh", "unshare", "-U", f"--map-user={w.uid}",
                               f"--map-group={w.gid}", w.bailey, *args], cwd=w.work, env=w.environment, stdin=subprocess.DEVNULL,
                              capture_output=True, encoding="utf-8", timeout=50, **account))


def masked_proc(w):
    hide = 'mount --bind /dev/null /proc/kallsyms; exec "$@"'
    d = Doctor(call(w, hide, "doctor", "--json"))
    check(d.status == NOTHING and "proc" in d.missing("run") and "unmask" in d.all["proc"]["remedy"], d)
    check(call(w, hide, "run", "true").status == NOT_RUN, "a run")
    check(Doctor(call(w, 'exec "$@"', "doctor", "--json")).all["proc"]["works"], "without the mask")


def hidden_sysfs(w):
    d = Doctor(call(w, 'mount -t tmpfs none /sys; exec "$@"', "doctor", "--json"))
    check(d.status == WEAKER and d.all["sysfs"]["gap"] == "sysfs" and "sysfs" in d.gaps() and "sysfs" in d.summary, d)


def weaker(w):
    for lacking, gap in (("landlock_create_ruleset:ENOSYS", "landlock"), ("seccomp:ENOSYS", "seccomp")):
        d = doctor(w, lacking=lacking)
        status, gaps = ran(w, lacking=lacking)
        check(status == 0 and d.status == WEAKER and gap in d.gaps() and d.all[gap]["cost"] == gaps[gap], (d, gaps))
        check("--strict refuses" in d.summary and gap in d.summary, d)
    # What is there and cannot be used stops a run.
    for lacking, name in (("landlock_restrict_self:EPERM", "landlock"), ("seccomp,0=1:EPERM", "seccomp")):
        d = doctor(w, lacking=lacking)
        check(ran(w, lacking=lacking)[0] == NOT_RUN and d.status == NOTHING and "nothing runs" in d.all[name]["cost"], d)


def no_network_namespace(w):
    d = doctor(w, lacking="unshare,0=0x40000000:ENOSPC")
    status, gaps = ran(w, lacking="unshare,0=0x40000000:ENOSPC")
    check(status == 0 and "namespaces" in gaps and "namespaces" in d.gaps() and d.status == WEAKER, (d, gaps))


def no_namespaces(w):
    lacking = "clone3:EPERM unshare:EPERM"
    wrapper = lambda *more: [w.without, *lacking.split(), *more, "--", w.bailey]
    account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}

    def start(*more):
        return Doctor(Run(subprocess.run([*wrapper(*more), "doctor", "--json"], cwd=w.work, env=w.environment, capture_output=True,
                                         stdin=subprocess.DEVNULL, encoding="utf-8", timeout=50, **account)))

    d = start()
    check(d.status == WEAKER and {"user-namespaces", "namespaces"} <= d.missing("run", "default"), d)
    check({"mount-namespaces", "proc", "nftables", "pasta"} <= d.untried(), d)
    check(d.all["namespaces"]["gap"] == "namespaces" and d.all["namespaces"]["remedy"], d)
    for more in ("landlock_create_ruleset:ENOSYS", "seccomp:ENOSYS"):
        check(start(more).status == NOTHING, more)


def nested(w):
    r = w.call("run", "--config", w.policy(f'[filesystem]\nexecute = ["{w.bailey}"]\n'), w.bailey, "doctor", "--json")
    found = json.loads(r.out)
    all_found = {m["name"]: m for m in found["mechanisms"]}
    check(r.status == WEAKER and "outside the sandbox around it" in all_found["namespaces"]["remedy"], r)
    check(all_found["landlock"]["works"] and all_found["seccomp"]["works"], r)


def no_root(w):
    if not w.as_root:
        return "only root can show what uid 0 is refused"
    r = w.call("doctor", root=True, cwd="/")
    check(r.status == NOT_RUN and r.out == "", r)
    r = w.call("doctor", "--user", str(w.uid), "--json", root=True, cwd="/")
    check(Doctor(r).status == doctor(w).status, r)
    return None


def stub(w, name, text="#!/bin/sh\ntouch {}\nexit 0\n"):
    return w.write(f"stubs/{name}", text.format(w.path("W/proof")), 0o755)


def strange_path(w):
    """Nothing that the caller's PATH or directory names is run."""
    w.mkdir("stubs")
    for name in ("pasta", "nft", "cat", "unshare"):
        stub(w, name)
        w.write(f"W/{name}", "#!/bin/sh\ntouch proof\n", 0o755)
    w.write("W/.env", "PATH=.\nBAILEY_CGROUP_ROOT=/nowhere\n")
    plain = doctor(w)
    d = doctor(w, environment={**w.environment, "PATH": f"{w.path('stubs')}:.:", "LD_LIBRARY_PATH": w.path("stubs")})
    check(not os.path.exists(w.path("W/proof")), "a stub was run")
    check({n: m["works"] for n, m in d.all.items()} == {n: m["works"] for n, m in plain.all.items()}, d)


def stubs_in_place(w):
    """A pasta that does nothing, at its very place."""
    if not w.as_root:
        return "only root can put another program in pasta's place"
    if not os.path.exists("/usr/bin/pasta"):
        return "pasta is not installed"
    w.mkdir("stubs")
    before = doctor(w).all["nftables"]["works"]
    net = w.mkdir("net")
    subprocess.run(["mount", "-t", "tmpfs", "none", net], check=True)
    subprocess.run(["mknod", "-m", "666", f"{net}/tun", "c", "10", "200"], check=True)
    subprocess.run(["mount", "--bind", net, "/dev/net"], check=True)
    try:
        d = doctor(w)
        # With an interface the rules are seen to close it.
        check(d.all["tun"]["works"] and d.all["nftables"]["works"] == before, d)
        subprocess.run(["mount", "--bind", stub(w, "pasta"), "/usr/bin/pasta"], check=True)
        try:
            d = doctor(w)
        finally:
            subprocess.run(["umount", "/usr/bin/pasta"], check=True)
        m = d.all["pasta"]
        check(not m["works"] and "connected nothing" in m["text"] and "--egress-proxy is refused" in m["cost"] and "passt" in m["remedy"], m)
        os.chmod(f"{net}/tun", 0o600)
        d = doctor(w)
        check(not d.all["tun"]["works"] and "Permission denied" in d.all["tun"]["text"] and not d.all["pasta"]["tried"], d)
    finally:
        subprocess.run(["umount", "/dev/net"], check=True)
        subprocess.run(["umount", net], check=True)
    return None


def no_filter(w):
    """The program that sets up packet filters, or what it loads."""
    if not doctor(w).all["nftables"]["works"]:
        return "no packet filter here"
    os.rename(w.netfilter, f"{w.netfilter}-away")
    m = doctor(w).all["nftables"]
    check(not m["works"] and "bailey-netfilter is neither beside bailey nor in /" in m["text"] and "libnftables1" in m["remedy"], m)
    shutil.copy("/bin/false", w.netfilter)
    m = doctor(w).all["nftables"]
    check(not m["works"] and "bailey-netfilter ended with status 1: it says nothing" in m["text"], m)
    os.replace(f"{w.netfilter}-away", w.netfilter)
    check(doctor(w).all["nftables"]["works"], "it works again")
    if w.as_root:
        library = glob.glob("/usr/lib/*/libnftables.so.1")[0]
        shown = subprocess.run(["unshare", "--mount", "/bin/sh", "-c", f'mount --bind /dev/null {os.path.realpath(library)} && exec setpriv --reuid '
                                f'{w.uid} --regid {w.gid} --clear-groups {w.bailey} doctor --json'], cwd=w.work, env=w.environment, capture_output=True,
                               encoding="utf-8", check=False)
        m = Doctor(Run(shown)).all["nftables"]
        check(not m["works"] and "libnftables.so.1" in m["text"] and "127" in m["text"], m)
    return None


def nothing_left(w):
    def state():
        with open("/proc/self/mountinfo", encoding="utf-8") as f:
            mounts_now = f.read()
        done = subprocess.run(["ps", "-o", "args=", "-u", str(w.uid)], capture_output=True, encoding="utf-8")
        return mounts_now, [p for p in done.stdout.splitlines() if w.root in p], sorted(os.listdir(w.work)), sorted(os.listdir(w.path("real")))

    before = state()
    doctor(w)
    check(state() == before, (before, state()))


main([
    ("C003 C004: what doctor finds is what a run then finds, in the same words", host),
    ("C004: one line a mechanism, what each gap costs, how to close it, and a summary", lines),
    ("C001: namespaces without capabilities are found by trying", loopback),
    ("C002: mounts that are refused are found, for programs, too", mounts),
    ("C009: a /proc that a container masks is found, with the option that lifts it", masked_proc),
    ("a /sys that a container hides weakens a run", hidden_sysfs),
    ("C003: without Landlock, without seccomp", weaker),
    ("without namespaces a run falls back, without more nothing runs", no_namespaces),
    ("C003: no network namespace alone", no_network_namespace),
    ("C007: in a sandbox", nested),
    ("uid 0 tries nothing for itself", no_root),
    ("C004 C103: no program of PATH or of the working directory is run", strange_path),
    ("C004: a pasta that does nothing is found out", stubs_in_place),
    ("D009: without bailey-netfilter or libnftables no packet filter, and which of the two is told", no_filter),
    ("trying leaves nothing behind", nothing_left),
])
