#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The attempts of escape.c, and those of real tools, to get out of a run of bailey. Each has to fail inside, with its errno, and to
succeed without a sandbox. Then the same with mechanisms missing: what succeeds is exactly what the run's own summary does not claim.

test-escape.py BAILEY WITHOUT ESCAPE ESCAPE-ABI [PART OF A NAME]"""

import contextlib
import fcntl
import functools
import glob
import os
import platform
import pty
import re
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import termios
import threading

from bailey import ROOT_TESTS_AS, Tap, check
from escape_tools import TOOLS

BAILEY, WITHOUT, ESCAPE, ABI = sys.argv[1:5]
AS_ROOT = os.getuid() == 0
UID = ROOT_TESTS_AS if AS_ROOT else os.getuid()
GID = ROOT_TESTS_AS if AS_ROOT else os.getgid()
ACCOUNT = {"user": UID, "group": GID, "extra_groups": []} if AS_ROOT else {}

# By which of the summary's names each mechanism is absent. Privileges and the start have none: nothing runs without.
ABSENT = {
    "namespaces": {"namespaces", "isolation"}, "network": {"namespaces"}, "landlock": {"landlock"}, "truncate": {"landlock", "landlock-truncate"},
    "scope": {"landlock", "landlock-scope"}, "ioctl": {"landlock", "landlock-ioctl"}, "seccomp": {"seccomp"}, "cover": {"nested-deny"}, "island": {"read-only"},
    "tmp": {"private-tmp"}, "privilege": set(), "start": set(),
}
# What a kernel says to what it, or a file system, was built or set up without.
NOT_BUILT = {"ENOSYS", "EAFNOSUPPORT", "EPROTONOSUPPORT", "ESOCKTNOSUPPORT", "EPERM", "EACCES", "ENOENT", "ESRCH", "EIO", "ENODEV", "ENXIO", "EBUSY",
             "ENETUNREACH", "EOPNOTSUPP", "ESTALE"}


class Row:
    def __init__(self, line):
        self.name, self.error, self.off, self.off_error, since, optional, stops, self.ids, self.what = line.split("\t")
        self.since = (int(since) >> 8, int(since) & 255)
        self.optional = optional == "1"
        self.stops = set(stops.split(","))

    def open_with(self, gaps):
        return all(ABSENT[s] & gaps for s in self.stops)


def table():
    text = subprocess.run([ESCAPE, "list"], capture_output=True, text=True, check=True).stdout
    return [Row(line) for line in text.splitlines()]


ROWS = table()


class World(contextlib.ExitStack):
    """What is attacked, by its own names in each run: nothing of it is shared with another test."""

    def __init__(self):
        super().__init__()
        self.root = os.path.realpath(tempfile.mkdtemp(prefix="bailey-escape-", dir="/var/tmp"))
        self.callback(shutil.rmtree, self.root, ignore_errors=True)
        os.chmod(self.root, 0o755)
        self.fixtures = {"root": self.root, "uid": UID}
        for name in ("", "bin", "real", "data-home", "private", "data", "work", "work/denied", "work/island", "work/mount", "work/other",
                     "work/sub", "work/moving"):
            self.make(name)
        for source, name in ((BAILEY, "bailey"), (WITHOUT, "without"), (ESCAPE, "escape"), (ABI, "escape-abi")):
            shutil.copy(source, self.path("bin/" + name))
        for place in ("private", "data", "work/denied", "work/island"):
            self.fill(place)
        self.write("work/file")
        self.policy = self.write("policy.toml", (
            '[filesystem]\nread = ["data", "work"]\nwrite = ["work"]\nexecute = ["work", "bin"]\ndeny = ["work/denied"]\n'
            'read_only = ["work/island"]\n'))
        self.write("all.toml", '[filesystem]\nread = ["private"]\nexecute = ["/usr", "bin"]\n')
        if AS_ROOT:
            self.privileged_programs()
        self.outside_files()
        self.listeners()
        self.terminals()
        self.victim()

    def path(self, name):
        return os.path.join(self.root, name) if name else self.root

    def own(self, path):
        os.chown(path, UID, GID, follow_symlinks=False)
        return path

    def make(self, name, mode=0o755):
        path = self.path(name)
        os.makedirs(path, exist_ok=True)
        os.chmod(path, mode)
        return self.own(path)

    def write(self, name, text="text\n", mode=0o644):
        path = self.path(name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        return self.own(path)

    def fill(self, place):
        for name in ("secret", "attribute", "write", "truncate", "unlink", "rename", "replace", "exchange", "link", "mode", "times",
                     "unlink-2", "rename-2", "link-2"):
            self.write(f"{place}/{name}")
        self.make(f"{place}/directory")
        os.symlink("secret", self.path(f"{place}/symlink"))
        with contextlib.suppress(OSError):
            os.setxattr(self.path(f"{place}/attribute"), "user.escape", b"x")
        for source, name in ((ESCAPE, "program"), ("/usr/bin/true", "true")):
            self.own(shutil.copy(source, self.path(f"{place}/{name}")))

    def privileged_programs(self):
        for name, mode in (("suid", 0o4755), ("sgid", 0o2755), ("fscap", 0o755)):
            path = shutil.copy(ESCAPE, self.path("bin/" + name))
            os.chmod(path, mode)
            self.fixtures[name] = path
        # VFS_CAP_REVISION_2, effective, CAP_CHOWN.
        os.setxattr(self.fixtures["fscap"], "security.capability", struct.pack("<5I", 0x02000001, 1, 0, 0, 0))

    def outside_files(self):
        for name, place in (("shmfile", "/dev/shm"), ("tmpfile", "/tmp")):
            fd, path = tempfile.mkstemp(prefix="bailey-escape-", dir=place)
            os.close(fd)
            self.callback(os.unlink, path)
            with open(path, "w", encoding="utf-8") as f:
                f.write("text\n")
            self.fixtures[name] = self.own(path)
        self.fixtures["homefile"] = self.write("real/.profile")
        groups = [g for pattern in ("/sys/fs/cgroup/cgroup.procs", "/sys/fs/cgroup/*/cgroup.procs") for g in sorted(glob.glob(pattern))]
        if groups:
            self.fixtures["cgroup"] = groups[0]
        loaders = sorted(glob.glob("/lib64/ld-linux-*.so.*") + glob.glob("/lib/ld-linux-*.so.*"))
        if loaders:
            self.fixtures["loader"] = loaders[0]
        self.directory = os.open(self.path("private"), os.O_RDONLY)
        self.callback(os.close, self.directory)
        self.fixtures["inherited"] = self.directory

    def listen(self, family, kind, address, name=None):
        s = self.enter_context(socket.socket(family, kind))
        s.bind(address)
        if isinstance(address, str) and address[0] == "/":
            os.chmod(address, 0o777)
        if kind != socket.SOCK_DGRAM:
            s.listen(64)
        if name:
            self.fixtures[name] = s.getsockname()[1] if isinstance(address, tuple) else address[1:]
        return s

    def listeners(self):
        unique = os.path.basename(self.root)
        self.listen(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + unique, "abstract")
        self.listen(socket.AF_UNIX, socket.SOCK_DGRAM, "\0" + unique + "-datagram", "datagram")
        self.listen(socket.AF_UNIX, socket.SOCK_STREAM, self.path("private/socket"))
        self.listen(socket.AF_UNIX, socket.SOCK_DGRAM, self.path("private/datagram"))
        self.listen(socket.AF_UNIX, socket.SOCK_STREAM, self.path("work/denied/socket"))
        self.listen(socket.AF_INET, socket.SOCK_STREAM, ("0.0.0.0", 0), "tcp")
        self.listen(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 0), "udp")
        with contextlib.suppress(OSError):
            self.listen(socket.AF_INET6, socket.SOCK_STREAM, ("::1", 0), "tcp6")
        service = self.listen(socket.AF_UNIX, socket.SOCK_SEQPACKET, self.path("work/service"))
        thread = threading.Thread(target=self.serve, args=(service,))
        thread.start()
        self.callback(thread.join)
        self.callback(service.shutdown, socket.SHUT_RDWR)

    def serve(self, service):
        with contextlib.suppress(OSError):
            while True:
                with service.accept()[0] as c:
                    what = c.recv(16)
                    if what == b"move":
                        os.rename(self.path("work/moving"), self.path("moved"))
                        c.send(b"done")
                    elif what in (b"directory", b"file"):
                        fd = os.open(self.path("private" + ("/secret" if what == b"file" else "")), os.O_PATH)
                        socket.send_fds(c, [b"done"], [fd])
                        os.close(fd)

    def terminals(self):
        for name in ("stdin", "terminal"):
            master, slave = pty.openpty()
            self.callback(os.close, master)
            self.callback(os.close, slave)
            self.own(os.ttyname(slave))
            if name == "stdin":
                self.stdin = slave
                # What is pushed is not to come back, nor to end anybody.
                mode = termios.tcgetattr(slave)
                mode[3] &= ~(termios.ECHO | termios.ISIG)
                termios.tcsetattr(slave, termios.TCSANOW, mode)
            else:
                self.fixtures[name] = os.ttyname(slave)

    def victim(self):
        process = subprocess.Popen([self.path("bin/escape"), "victim"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                   start_new_session=True, **ACCOUNT)
        self.callback(process.wait)
        self.callback(process.stdout.close)
        self.callback(process.stdin.close)
        line = process.stdout.readline()
        check(line.endswith("\n"), "no victim")
        self.fixtures.update(field.split("=", 1) for field in line.split())

    def arguments(self):
        return [f"{name}={value}" for name, value in self.fixtures.items()]

    def environment(self):
        return {"PATH": "/usr/bin:/bin", "HOME": self.path("real"), "XDG_DATA_HOME": self.path("data-home"), "LC_ALL": "C", "TERM": "vt100",
                "XDG_CONFIG_HOME": self.path("real"), "ESCAPE_SECRET": "1"}

    def call(self, command, account=True):
        def adopt():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)
        return subprocess.run(command, cwd=self.path("work"), env=self.environment(), stdin=self.stdin, capture_output=True, text=True,
                              errors="replace", timeout=50, pass_fds=[self.directory], preexec_fn=adopt, **(ACCOUNT if account else {}))

    def bailey(self, command, *options, wrapper=()):
        return self.call([*wrapper, self.path("bin/bailey"), "run", "--only-config", "--config", self.policy, *options, "--", *command])

    def inside(self, *options, wrapper=()):
        """All attempts in one run: {name: result}, the names of what its summary says is not enforced."""
        r = self.bailey([self.path("bin/escape"), "run", *self.arguments()], *options, wrapper=wrapper)
        return results(r), set(re.findall(r"^(?:bailey: )?(?:warning: )?not enforced: ([a-z-]+):", r.stderr, re.M))


def results(r):
    lines = r.stdout.splitlines()
    check(lines and lines[-1] == "done", f"cut short: status {r.returncode}\n{r.stdout[-2000:]}\n{r.stderr[-2000:]}")
    return dict(line.split(" ", 1) for line in lines[:-1])


def release():
    return tuple(int(x) for x in platform.release().split(".")[:2])


def expect(wrong, text):
    check(not wrong, text + ":\n" + "\n".join(wrong))


def rows_are_whole():
    names = [r.name for r in ROWS]
    check(len(set(names)) == len(names), "two of one name")
    check(all(r.ids and r.what and r.stops for r in ROWS), "a row without ids, words or mechanisms")
    biting = [r for r in ROWS if r.off != "never"]
    check(len(biting) >= 120, f"{len(biting)} attempts")


def inside():
    with World() as w:
        got, gaps = w.inside()
        # What a kernel was built without is not there for anybody. An older kernel may say another errno, but for what it lacks itself.
        wrong = [f"{r.name} ({r.what}): {got.get(r.name)}, not {r.error}" for r in ROWS
                 if got.get(r.name) not in (r.error, "absent") and not (r.optional and got.get(r.name) == "ENOENT")
                 and not any(ABSENT[s] & gaps for s in r.stops)]
        expect(wrong, "inside")
        print(f"# {len(ROWS)} attempts inside, {sum(1 for v in got.values() if v == 'absent')} without what they would attack here; missing: {', '.join(sorted(gaps)) or 'nothing'}")


def tool_results(w, run):
    """{name: (status, standard error)}: all of them by one shell."""
    names = {**w.fixtures, "work": w.path("work"), "python": "/usr/bin/python3", "keyctl": {"x86_64": 250, "aarch64": 219, "riscv64": 219}.get(platform.machine(), -1)}
    lines = []
    for name, program, command, *_ in TOOLS:
        if shutil.which(program, path="/usr/bin:/bin"):
            lines.append(f"said=$({{ {command.format(**names)}; }} 2>&1 >/dev/null </dev/null)\nprintf '%s\\t%d\\t%s\\n' {name} $? "
                         '"$(printf %s "$said" | tr "\\n" " ")"')
    script = w.write("tools.sh", "\n".join(lines) + "\necho done\n")
    with open(script, encoding="utf-8") as f:
        r = run(["sh", "-c", f.read()])
    out = r.stdout.splitlines()
    check(out and out[-1] == "done", f"cut short: status {r.returncode}\n{r.stdout[-2000:]}\n{r.stderr[-2000:]}")
    return {name: (int(status), said) for name, status, said in (line.split("\t", 2) for line in out[:-1])}


def tools():
    with World() as w:
        inside = tool_results(w, w.bailey)
    with World() as w:
        outside = tool_results(w, w.call)
    wrong = []
    for name, program, command, refusal, _ in TOOLS:
        if name not in inside:
            continue
        status, said = inside[name]
        if status == 0 or not re.search(refusal, said):
            wrong.append(f"{name} ({command}) inside: {status} {said}")
        if outside[name][0] != 0:
            wrong.append(f"{name} ({command}) without a sandbox: {outside[name]}")
    expect(wrong, "real tools")
    print(f"# {len(inside)} tools; not installed: {', '.join(t[0] for t in TOOLS if t[0] not in inside) or 'none'}")


def judge(got, rows):
    """Whoever does not succeed without a sandbox shows nothing inside."""
    wrong, apart = [], []
    for r in rows:
        result = got.get(r.name)
        if result == r.off_error:
            continue
        if result == "absent" or release() < r.since or r.optional and result in NOT_BUILT:
            apart.append(f"{r.name} {result}")
        else:
            wrong.append(f"{r.name} ({r.what}): {result}, not {r.off_error}")
    expect(wrong, "without a sandbox")
    print(f"# {len(rows) - len(apart)} bite; not here: {', '.join(apart) or 'none'}")


def outside():
    with World() as w:
        got = results(w.call([w.path("bin/escape"), "off", *w.arguments()]))
        judge(got, [r for r in ROWS if r.off in ("plain", "private")])
    print(f"# never: {', '.join(r.name for r in ROWS if r.off == 'never')}")


def outside_as_root():
    if not AS_ROOT:
        return "only root can show what only root can do"
    with World() as w:
        got = results(w.call([w.path("bin/escape"), "root", *w.arguments()], account=False))
        judge(got, [r for r in ROWS if r.off == "root"])
    return None


def variant(expected, *options, wrapper=()):
    with World() as w:
        programs = ("escape-abi", "without")
        got, gaps = w.inside(*options, wrapper=[w.path("bin/" + part) if part in programs else part for part in wrapper])
        check(expected <= gaps, f"the summary says {sorted(gaps)}")
        wrong = []
        for r in ROWS:
            result = got.get(r.name)
            if result in ("broken", "late", None) or result.startswith("signal"):
                wrong.append(f"{r.name}: {result}")
            elif result == "ok" and not r.open_with(gaps):
                wrong.append(f"{r.name} ({r.what}): succeeds, although {', '.join(sorted(s for s in r.stops if not ABSENT[s] & gaps))} holds")
            elif result not in ("ok", "absent", r.off_error) and r.open_with(gaps) and not (
                    r.off != "plain" or release() < r.since or r.optional and result in NOT_BUILT
                    # What that gap costs is the right to move and link between directories at all.
                    or result == "EXDEV" and "landlock-refer" in gaps):
                wrong.append(f"{r.name} ({r.what}): {result}, although the summary says that nothing holds it")
        expect(wrong, f"with {', '.join(sorted(gaps)) or 'nothing'} missing")
        print(f"# missing: {', '.join(sorted(gaps)) or 'nothing'}; succeed: {', '.join(n for n in got if got[n] == 'ok') or 'none'}")


OLDEST = {"landlock-refer", "landlock-truncate", "landlock-ioctl", "landlock-scope"}
ALONE = {"namespaces", "nested-deny", "read-only", "private-tmp"}
NOT_ISOLATED = {"isolation", "nested-deny", "read-only", "private-tmp", "private-home"}
NO_NAMESPACES = ("without", "clone3:EPERM", "--")
# What is missing, what the summary has to name at least, options, what the run is wrapped in.
VARIANTS = [
    ("Landlock ABI 1", OLDEST, (), ("escape-abi", "1")),
    ("Landlock ABI 3", {"landlock-ioctl", "landlock-scope"}, (), ("escape-abi", "3")),
    ("Landlock ABI 4", {"landlock-ioctl", "landlock-scope"}, (), ("escape-abi", "4")),
    ("Landlock ABI 6", set(), (), ("escape-abi", "6")),
    ("no Landlock", {"landlock"}, (), ("without", "landlock_create_ruleset:ENOSYS", "--")),
    ("no seccomp", {"seccomp"}, (), ("without", "seccomp:ENOSYS", "--")),
    ("no user namespaces", ALONE, (), NO_NAMESPACES),
    ("no user namespaces, Landlock ABI 1", ALONE | OLDEST, (), ("escape-abi", "1", *NO_NAMESPACES)),
    ("no user namespaces, Landlock ABI 4", ALONE | {"landlock-ioctl", "landlock-scope"}, (), ("escape-abi", "4", *NO_NAMESPACES)),
    ("no user namespaces, Landlock ABI 6", ALONE, (), ("escape-abi", "6", *NO_NAMESPACES)),
    ("Q022 Q023: --no-isolate", NOT_ISOLATED, ("--no-isolate",), ()),
    ("Q022 N006: --no-isolate, Landlock ABI 1", NOT_ISOLATED | OLDEST, ("--no-isolate",), ("escape-abi", "1")),
    ("N006: --no-isolate, no user namespaces", ALONE, ("--no-isolate",), NO_NAMESPACES),
]


TESTS = [
    ("the table holds what the suite promises", rows_are_whole),
    ("T004 T009 T010 T016 C056: every attempt fails inside, with its errno", inside),
    ("every attempt succeeds without a sandbox", outside),
    ("every attempt of root's succeeds without a sandbox", outside_as_root),
    ("T004 T009 T010 T017: real tools get no further", tools),
    *[("T026 Q024 " + (name if ": " in name else "C003: " + name) + ": what succeeds is what the summary says", functools.partial(variant, gaps, *options, wrapper=wrapper))
      for name, gaps, options, wrapper in VARIANTS],
]


def main():
    tap = Tap()
    for name, function in TESTS:
        if len(sys.argv) < 6 or sys.argv[5] in name:
            tap.run(name, function)
    sys.exit(tap.end())


main()
