# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of this folder share: a scratch world, plans, runs, TAP.

A test file is called with the folders of plan-runner, probe and without. As root everything runs as an ordinary account of
no name, so that the tests mean the same for everybody."""

import os
import shutil
import subprocess
import sys
import tempfile
import traceback

ROOT_TESTS_AS = 54321
REFUSED = 125


class Result:
    def __init__(self, status, out, err, line):
        self.status, self.out, self.err = status, out, err
        fields = line.split()
        self.code, self.started, self.isolated, self.landlock, self.survivors = map(int, fields[:5]) if fields else [None] * 5
        self.gaps = set(fields[5].split(",")) if len(fields) > 5 else set()

    def __str__(self):
        return f"status {self.status}\n{self.out}{self.err}"

    def answers(self):
        """Of the probe: {operation: answer}."""
        return dict(line.rsplit(" ", 1) for line in self.out.splitlines() if " " in line)


class World:
    def __init__(self, build):
        self.root = tempfile.mkdtemp(prefix="bailey-test-", dir="/var/tmp")  # not /tmp, which is private inside
        os.chmod(self.root, 0o755)
        self.bin = self.make("bin")
        for name in ("plan-runner", "probe", "without"):
            shutil.copy(os.path.join(build, name), self.bin)
        self.runner, self.probe, self.without = (f"{self.bin}/{n}" for n in ("plan-runner", "probe", "without"))
        self.account = {"user": ROOT_TESTS_AS, "group": ROOT_TESTS_AS, "extra_groups": []} if os.getuid() == 0 else {}
        self.uid = self.account.get("user", os.getuid())
        self.work = self.make("work")
        self.secret = self.write("secret", "SECRET\n")
        self.count = 0

    def close(self):
        shutil.rmtree(self.root, ignore_errors=True)

    def own(self, path):
        if os.getuid() == 0:
            os.chown(path, self.uid, self.uid)
        return path

    def make(self, name):
        path = os.path.join(self.root, name)
        os.mkdir(path, 0o755)
        if hasattr(self, "uid"):
            self.own(path)
        return path

    def write(self, name, text):
        path = os.path.join(self.root, name)
        with open(path, "w") as f:
            f.write(text)
        return self.own(path)

    def plan(self, *more, work=True, cwd=None):
        """The lines of an ordinary plan, with `more` of them at the end of the steps."""
        lines = []
        for name in ("/bin", "/lib", "/lib64", "/lib32", "/sbin"):
            if os.path.islink(name):
                lines.append(f"step\tsymlink\t-\t{name}\t{os.readlink(name)}")
            elif os.path.isdir(name):
                lines.append(f"step\tbind\tx\t{name}\t{name}")
                lines.append(f"access\trx\t{name}\t{name}")
        lines += ["step\tbind\tx\t/usr\t/usr", "access\trx\t/usr\t/usr",
                  "step\tbind\t-\t/etc\t/etc", "access\tr\t/etc\t/etc",
                  "step\tdirectory\t-\t/dev"]
        for name in ("null", "zero", "urandom", "tty"):
            lines += [f"step\tdevice\tw\t/dev/{name}\t/dev/{name}", f"access\trwi\t/dev/{name}\t/dev/{name}"]
        lines += ["step\tdevpts\tw\t/dev/pts", "step\tsymlink\t-\t/dev/ptmx\tpts/ptmx", "access\trwi\t/dev/pts\t-",
                  "step\ttmpfs\twx\t/tmp", "access\trwx\t/tmp", "step\tproc\t-\t/proc", "access\trw\t/proc\t/proc",
                  "step\tsysfs\t-\t/sys", "access\tr\t/sys", "access\tl\t/", "env\tPATH=/usr/bin:/bin", "env\tLC_ALL=C",
                  f"step\tbind\tx\t{self.bin}\t{self.bin}", f"access\trx\t{self.bin}\t{self.bin}"]
        # For a sanitized runner in a sandbox: looking for leaks is tracing, which no sandbox allows.
        lines.append("env\tASAN_OPTIONS=detect_leaks=0")
        if work:
            lines += [f"step\tbind\twx\t{self.work}\t{self.work}", f"access\trwx\t{self.work}\t{self.work}"]
        lines.append(f"cwd\t{cwd or (self.work if work else '/tmp')}")
        lines += more
        return lines

    def command(self, argv, plan=None, options=(), without=()):
        self.count += 1
        path = self.write(f"plan-{self.count}", "\n".join(plan if plan is not None else self.plan()) + "\n")
        result = self.write(f"result-{self.count}", "")
        wrapper = [self.without, *without, "--"] if without else []
        return [*wrapper, self.runner, "--result", result, *options, path, *argv], result

    def popen(self, argv, plan=None, options=(), without=(), **more):
        command, result = self.command(argv, plan, options, without)
        arguments = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True,
                     "cwd": self.root, **self.account, **more}
        process = subprocess.Popen(command, **arguments)
        process.result_path = result
        return process

    def finish(self, process, timeout=20):
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        with open(process.result_path) as f:
            return Result(process.returncode, out or "", err or "", f.read())

    def run(self, argv, plan=None, options=(), without=(), **more):
        return self.finish(self.popen(argv, plan, options, without, **more))

    def bare(self, argv, **more):
        """The same without a sandbox: what a protection's test compares with."""
        r = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, cwd=self.root, timeout=20,
                           **self.account, **more)
        return Result(r.returncode, r.stdout, r.stderr, "")


def check(condition, *what):
    if not condition:
        raise AssertionError("\n".join(str(w) for w in what))


class Skip(Exception):
    pass


def main(tests):
    """tests: [(name, function(world))]. Prints TAP. A second argument chooses those whose names have it."""
    tests = [t for t in tests if len(sys.argv) < 3 or sys.argv[2] in t[0]]
    world = World(sys.argv[1])
    failed = 0
    try:
        for number, (name, function) in enumerate(tests, 1):
            try:
                function(world)
                print(f"ok {number} - {name}", flush=True)
            except Skip as e:
                print(f"ok {number} - {name} # SKIP {e}", flush=True)
            except Exception:
                failed += 1
                for line in traceback.format_exc().splitlines():
                    print(f"# {line}")
                print(f"not ok {number} - {name}", flush=True)
    finally:
        world.close()
    print(f"1..{len(tests)}")
    sys.exit(failed > 0)
