# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests that run bailey itself share: a tree of its own, runs, TAP. As root everything runs as an ordinary account of
no name, but where a test is about root."""

import os
import shutil
import subprocess
import sys
import tempfile
import traceback

ROOT_TESTS_AS = 54321
NOT_RUN, NOT_EXECUTABLE, NOT_FOUND = 125, 126, 127


class Run:
    def __init__(self, process):
        self.status, self.out, self.err = process.returncode, process.stdout, process.stderr

    def __str__(self):
        return f"status {self.status}\n--- stdout\n{self.out}--- stderr\n{self.err}"


class World:
    """ROOT/W is a workspace and the working directory, ROOT/real the real home, ROOT/data and ROOT/config bailey's places."""

    def __init__(self, bailey):
        # Not /tmp: that is private inside, and what is tested would be in part a tmpfs.
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="bailey-test-", dir="/var/tmp"))
        self.as_root = os.getuid() == 0
        self.uid = ROOT_TESTS_AS if self.as_root else os.getuid()
        self.gid = ROOT_TESTS_AS if self.as_root else os.getgid()
        self.own(self.root)
        os.chmod(self.root, 0o755)
        # The build may lie where an ordinary account cannot go.
        self.bailey = os.path.join(self.root, "bailey")
        self.netfilter = os.path.join(self.root, "bailey-netfilter")
        for source, place in ((bailey, self.bailey), (f"{bailey}-netfilter", self.netfilter)):
            shutil.copy(source, place)
        self.without = os.path.join(self.root, "without")
        shutil.copy(sys.argv[2], self.without)
        for name in ("W", "real", "data", "config"):
            self.mkdir(name)
        self.work = self.path("W")
        self.environment = {
            "PATH": "/usr/bin:/bin", "HOME": self.path("real"), "XDG_DATA_HOME": self.path("data"),
            "XDG_CONFIG_HOME": self.path("config"), "TERM": "vt100", "LC_ALL": "C",
        }

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def path(self, name):
        return os.path.join(self.root, name)

    def own(self, path):
        if self.as_root:
            os.chown(path, self.uid, self.gid, follow_symlinks=False)
        return path

    def mkdir(self, name, mode=0o755):
        path = self.root
        for part in name.split("/"):
            path = os.path.join(path, part)
            if not os.path.isdir(path):
                os.mkdir(path)
                self.own(path)
        os.chmod(path, mode)
        return path

    def write(self, name, text, mode=0o644):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        return self.own(path)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as f:
            return f.read()

    def link(self, text, name):
        path = self.path(name)
        if os.path.lexists(path):
            os.unlink(path)
        os.symlink(text, path)
        return self.own(path)

    def call(self, *args, cwd=None, environment=None, root=False, lacking=None, **more):
        """lacking: what the kernel does not have, as tests/sandbox/without.c takes it."""
        wrapper = [self.without, lacking, "--"] if lacking else []
        account = {} if root or not self.as_root else {"user": self.uid, "group": self.gid, "extra_groups": []}
        more.setdefault("stdin", subprocess.DEVNULL)
        if "input" in more:
            del more["stdin"]
        return Run(subprocess.run([*wrapper, self.bailey, *args], cwd=cwd or self.work, env=environment or self.environment,
                                  capture_output=True, encoding="utf-8", errors="surrogateescape", timeout=50, **account, **more))

    def policy(self, text, name="W/policy.toml"):
        return self.write(name, text)

    def run(self, policy, script, *options, **more):
        """A shell script under a policy's text; None for none."""
        config = ["--config", self.policy(policy)] if policy is not None else []
        return self.call("run", *config, *options, "sh", "-c", script, **more)


class Tap:
    def __init__(self):
        self.count = self.failed = 0

    def run(self, name, function, *args):
        self.count += 1
        try:
            skip = function(*args)
        except Exception:
            self.failed += 1
            print("\n".join("# " + line for line in traceback.format_exc().splitlines()))
            print(f"not ok {self.count} - {name}")
        else:
            print(f"ok {self.count} - {name}" + (f" # SKIP {skip}" if skip else ""))
        sys.stdout.flush()

    def end(self):
        print(f"1..{self.count}")
        return 1 if self.failed else 0


def check(condition, what):
    if not condition:
        raise AssertionError(str(what))


def main(tests):
    """tests: [(name, function(world))], each with a world of its own."""
    tap = Tap()
    for name, function in tests:
        world = World(sys.argv[1])
        try:
            tap.run(name, function, world)
        finally:
            world.close()
    sys.exit(tap.end())
