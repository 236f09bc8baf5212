#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What grows with a tree, with its rules and with what runs in it: nothing of bailey's that a run would be slowed by."""

import contextlib
import ctypes
import os
import re
import select
import subprocess
import time

from bailey import NOT_RUN, check, main

FILES, WORKTREES, RULES_MAX = 2000, 300, 4096
IN_ACCESS, IN_OPEN = 0x1, 0x20
PATIENCE = 30


def fill(w, name, count):
    path = w.mkdir(name)
    for number in range(count):
        os.close(os.open(f"{path}/{number}", os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))


def mounts(r):
    return int(re.search(r"^mounts (\d+)$", r.out, re.M)[1])


def large_tree(w):
    fill(w, "W/secret", FILES)
    for number in range(WORKTREES):
        w.mkdir(f"W/.git/worktrees/{number}")
        w.mkdir(f"W/trees/{number}")
        w.write(f"W/trees/{number}/.git", f"gitdir: {w.work}/.git/worktrees/{number}\n")
        w.write(f"W/trees/{number}/.env", "SECRET\n")
    script = ('echo mounts $(wc -l </proc/self/mountinfo); ls secret >/dev/null 2>&1 || echo denied; cat trees/*/.env 2>/dev/null || echo none;'
              'echo length ${#LARGE}; ls trees | wc -l')
    granted = f'[filesystem]\nwrite = ["{w.work}"]\n[env]\npass = ["LARGE"]\n'
    environment = {**w.environment, "LARGE": "x" * (100 * 1024)}
    plain = w.run(granted, script, environment=environment)
    check(plain.status == 0 and "SECRET" in plain.out and "denied" not in plain.out, plain)
    r = w.run(granted.replace("\n[env]", f'\ndeny = ["{w.work}/secret"]\n[env]'), script, environment=environment)
    check("denied" in r.out and "length 102400\n" in r.out and r.out.endswith(f"{WORKTREES}\n"), r)
    check(mounts(r) == mounts(plain) + 1, (mounts(plain), mounts(r)))  # a denied directory is one mount, whatever it holds
    hidden = ", ".join(f'"{w.work}/trees/{number}/.env"' for number in range(WORKTREES))
    r = w.run(granted.replace("\n[env]", f'\ndeny = ["{w.work}/secret", {hidden}]\n[env]'), script, environment=environment)
    check("none" in r.out and "SECRET" not in r.out and "length 102400\n" in r.out, r)
    check(mounts(r) <= mounts(plain) + 2 + 2 * WORKTREES, (mounts(plain), mounts(r)))  # a file, and its directories, whose names stay so


def many_rules(w):
    def policy(count):
        return '[filesystem]\nread = ["' + '", "'.join(f"{w.work}/{number}" for number in range(count)) + '"]\n'
    r = w.run(policy(RULES_MAX + 1), "true")
    check(r.status == NOT_RUN and f"more than {RULES_MAX} paths" in r.err, r)
    for number in range(1000):
        w.write(f"W/{number}", f"{number}\n")
    r = w.run(policy(1000), "cat 0 500 999")
    check((r.status, r.out) == (0, "0\n500\n999\n"), r)


class Watch:
    """Whether these directories are opened or read."""

    def __init__(self, *paths):
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.fd = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        for path in paths:
            check(self.libc.inotify_add_watch(self.fd, path.encode(), IN_OPEN | IN_ACCESS) >= 0, path)

    def saw(self):
        with contextlib.suppress(BlockingIOError):
            return bool(os.read(self.fd, 4096))
        return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)


def no_walk(w):
    paths = [w.mkdir(f"W/{a}/{b}/{c}") for a in ("one", "two", "secret") for b in range(4) for c in range(4)]
    w.mkdir("W/one/.git")
    policy = (f'[filesystem]\nwrite = ["{w.work}"]\nread_only = ["{w.work}/one", "{w.work}/two/0"]\ndeny = ["{w.work}/secret", "{w.work}/two/1"]\n'
              f'read = ["{w.work}/two"]\n')
    with Watch(*paths) as watch:
        r = w.run(policy, "true")
        check(r.status == 0 and not watch.saw(), f"bailey has looked through the tree; {r}")
        r = w.run(policy, "find . >/dev/null 2>&1; true")
        check(r.status == 0 and watch.saw(), "the test sees nothing")


def switches(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as f:
        return sum(int(n) for n in re.findall(r"ctxt_switches:\s+(\d+)", f.read()))


def below(pid):
    """The process and what it started, by the kernel's lists."""
    found, new = [], [str(pid)]
    while new:
        found += new
        new = [child for parent in new for child in children(parent)]
    return found


def children(pid):
    with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return f.read().split()
    return []


def asleep(pid):
    with contextlib.suppress(FileNotFoundError), open(f"/proc/{pid}/stat", encoding="ascii") as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "S"
    return False


def at_rest(pid):
    """The process and all that it started but the command, once nothing of the start is left that would wake them: whoever made the network
    namespace has been reaped, and all of them sleep."""
    end = time.monotonic() + PATIENCE
    while True:
        everybody = below(pid)
        ours = [one for one in everybody if children(one)]
        if len(everybody) == len(ours) + 1 and all(asleep(one) for one in ours):
            return ours
        check(time.monotonic() < end, f"bailey does not come to rest: {everybody}")
        time.sleep(0.01)


WORK = ("import os, subprocess, sys\nprint('up', flush=True)\nsys.stdin.readline()\nfor n in range(20000):\n    os.close(os.open('/etc/passwd', os.O_RDONLY))\n"
        "for n in range(100):\n    subprocess.run(['/bin/true'])\nprint('done', flush=True)\nsys.stdin.readline()\n")


def next_line(process):
    check(select.select([process.stdout], [], [], PATIENCE)[0], "nothing is said")
    return process.stdout.readline()


def no_mediation(w):
    account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}
    command = [w.bailey, "run", "--quiet", "--config", w.policy('[filesystem]\nread = ["/etc/passwd"]\n'), "/usr/bin/python3", "-c", WORK]
    with subprocess.Popen(command, cwd=w.work, env=w.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **account) as process:
        check(next_line(process) == "up\n", "the command has not begun")
        ours = at_rest(process.pid)
        before = {pid: switches(pid) for pid in ours}
        process.stdin.write("go\n")
        process.stdin.flush()
        check(next_line(process) == "done\n", "the command has not worked")
        after = {pid: switches(pid) for pid in ours}
        process.stdin.write("end\n")
        process.stdin.flush()
        process.wait(PATIENCE)
    check(len(ours) >= 2, ours)
    check(after == before, f"bailey's processes ran while the command did: {before} {after}")


main([
    ("C215: a denied directory is one mount whatever it holds, a run with 300 worktrees and 100 KiB of environment starts", large_tree),
    ("C215: a thousand rules hold, and too many are refused in words", many_rules),
    ("C216: no tree is walked at a start, whatever rules are about it", no_walk),
    ("C218: files are opened and programs started without a process of bailey's between", no_mediation),
])
