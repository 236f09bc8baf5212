#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Starting /bin/true: bailey with everything on, beside bubblewrap with like mounts, firejail, which is set-user-id root, and the smallest program
of clone3, interleaved in one run. Prints medians and ratios, and the same of the fastest runs, which say more where others work on the machine,
too; asserts nothing. Arguments: bailey, floor. As root it runs as nobody, whom firejail does not serve: run it as a person for that."""

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

RUNS = 200
ACCOUNT = 65534  # nobody: like a person, one with an entry


def fastest(values):
    """Not the very first, which a lucky moment gives: the one that every fiftieth run beats."""
    return sorted(values)[len(values) // 50]


def main(bailey, floor):
    home = tempfile.mkdtemp(prefix="errand-bench-")
    os.chmod(home, 0o755)
    if os.geteuid() == 0:
        os.chown(home, ACCOUNT, ACCOUNT)
        os.setgroups([])
        os.setresgid(ACCOUNT, ACCOUNT, ACCOUNT)
        os.setresuid(ACCOUNT, ACCOUNT, ACCOUNT)
    os.chdir(home)
    inside = os.path.join(home, "inside")
    os.mkdir(inside)

    usr = []
    for name in ("bin", "lib", "lib64", "sbin"):
        if os.path.islink(f"/{name}"):
            usr += ["--symlink", os.readlink(f"/{name}"), f"/{name}"]
    commands = {
        "bare": ["/bin/true"],
        "floor": [floor, "/bin/true"],
        "bailey": [bailey, "run", "--quiet", "--home", inside, "/bin/true"],
    }
    bwrap = shutil.which("bwrap")
    if bwrap:
        commands["bwrap"] = [bwrap, "--unshare-all", "--die-with-parent", "--ro-bind", "/usr", "/usr", *usr, "--ro-bind", "/etc", "/etc", "--proc",
                             "/proc", "--dev", "/dev", "--tmpfs", "/tmp", "--bind", inside, inside, "/bin/true"]
    else:
        print("bwrap is not installed: no ratio to it")
    environment = {"PATH": "/usr/bin:/bin", "HOME": home}
    firejail = [shutil.which("firejail") or "firejail", "--quiet", "--noprofile", "--net=none", "--private", "--private-dev", "--private-tmp", "--ipc-namespace",
                "--seccomp", "--caps.drop=all", "/bin/true"]
    if os.path.exists(firejail[0]) and subprocess.run(firejail, check=False, stdin=subprocess.DEVNULL, capture_output=True, env=environment).returncode == 0:
        commands["firejail"] = firejail
    else:
        print("firejail is not installed, or does not serve this account: no ratio to it")

    times = {name: [] for name in commands}
    for _ in range(RUNS):
        for name, command in commands.items():
            started = time.perf_counter()
            subprocess.run(command, check=True, stdin=subprocess.DEVNULL, env=environment)
            times[name].append(time.perf_counter() - started)

    # Python's own fork and exec is in every number; the bare run says how much that is.
    bare = times.pop("bare")
    median = {name: statistics.median(values) - statistics.median(bare) for name, values in times.items()}
    best = {name: fastest(values) - fastest(bare) for name, values in times.items()}
    for name, value in median.items():
        print(f"{name:8} {value * 1000:6.2f} ms beyond a bare start of {statistics.median(bare) * 1000:.2f} ms, {best[name] * 1000:6.2f} at best")
    for name in ("bwrap", "firejail", "floor"):
        if name in median:
            print(f"bailey / {name}: {median['bailey'] / median[name]:.2f}, at best {best['bailey'] / best[name]:.2f}")
    shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main(*map(os.path.abspath, sys.argv[1:]))
