#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Processes, signals, terminals and descriptors of a run."""

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import termios
import time

from sandbox import REFUSED, check, main

HANGS = 40  # seconds
TRAP = ('trap "echo got; exit 7" TERM INT HUP USR1; echo ready; i=0; '
        'while [ $i -lt 600 ]; do sleep 0.05; i=$((i + 1)); done; exit 9')


def wait_line(stream, wanted="ready"):
    line = stream.readline()
    check(line == wanted + "\n", repr(line))


def alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def children(pid):
    try:
        with open(f"/proc/{pid}/task/{pid}/children") as f:
            return [int(x) for x in f.read().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def descendants(pid):
    found = []
    for child in children(pid):
        found += [child] + descendants(child)
    return found


def until(condition, what):
    """A bound for what hangs, as a sleep of minutes would; how soon it comes is the machine's affair."""
    end = time.monotonic() + HANGS
    while not condition():
        check(time.monotonic() < end, f"not within {HANGS} s: {what}")
        time.sleep(0.005)


def each_signal(world):
    for s in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1):
        p = world.popen(["/bin/sh", "-c", TRAP])
        wait_line(p.stdout)
        p.send_signal(s)
        r = world.finish(p)
        check(r.out == "got\n" and r.status == 7, s, r)
    p = world.popen(["/bin/sh", "-c", "echo ready; exec sleep 100"])
    wait_line(p.stdout)
    p.send_signal(signal.SIGTERM)
    check(world.finish(p).status == 128 + signal.SIGTERM)


def each_signal_plain(world):
    p = world.popen(["/bin/sh", "-c", TRAP], without=["clone3:EPERM"])
    wait_line(p.stdout)
    p.send_signal(signal.SIGTERM)
    r = world.finish(p)
    check(r.out == "got\n" and r.status == 7, r)


def own_signals(world):
    """A payload's signals to PID 1 do not come back, and do not end it."""
    r = world.run(["/bin/sh", "-c", "trap 'echo got' TERM USR1; kill -TERM 1; kill -USR1 1; kill -KILL 1; sleep 0.2; echo end"])
    check(r.out == "end\n" and r.status == 0, r)


class Terminal:
    """bailey as the leader of a session on a pty, as a terminal emulator would start a shell."""

    def __init__(self, world, argv, **more):
        self.master, slave = pty.openpty()
        if os.getuid() == 0:
            os.fchown(slave, world.uid, -1)
        command, self.result = world.command(argv, **more)

        def adopt():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.process = subprocess.Popen(command, stdin=slave, stdout=slave, stderr=slave, preexec_fn=adopt, cwd=world.root,
                                        **world.account)
        os.close(slave)
        self.text = ""

    def read_until(self, wanted, seconds=HANGS):
        end = time.monotonic() + seconds
        while wanted not in self.text:
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            check(ready, f"no {wanted!r} in {self.text!r}")
            try:
                data = os.read(self.master, 4096)
            except OSError:
                data = b""
            check(data, f"end of terminal before {wanted!r}: {self.text!r}")
            self.text += data.decode()

    def drain(self):
        while True:
            ready, _, _ = select.select([self.master], [], [], 0)
            try:
                data = os.read(self.master, 4096) if ready else b""
            except OSError:
                data = b""
            if not data:
                return self.text
            self.text += data.decode()

    def close(self):
        os.close(self.master)


def control_c(world):
    # Counts what it gets for a while after the first, so that a second delivery would be seen.
    script = 'n=0; trap "n=\\$((n + 1))" INT; echo ready; while [ $n = 0 ]; do sleep 0.05; done; sleep 0.3; echo count=$n; exit 7'
    t = Terminal(world, ["/bin/sh", "-c", script])
    t.read_until("ready")
    os.write(t.master, b"\x03")
    t.read_until("count=")
    check(t.process.wait(10) == 7)
    check("count=1" in t.drain(), t.text)
    t.close()


def control_c_default(world):
    t = Terminal(world, ["/bin/sh", "-c", "echo ready; exec sleep 100"])
    t.read_until("ready")
    os.write(t.master, b"\x03")
    check(t.process.wait(10) == 128 + signal.SIGINT)
    t.close()


SHELL = r'''
import os, signal, sys, termios
# A shell with job control, at its smallest: runs its arguments as a job in the foreground, says what becomes of it, continues it.
signal.signal(signal.SIGTTOU, signal.SIG_IGN)
pid = os.fork()
if pid == 0:
    os.setpgid(0, 0)
    os.tcsetpgrp(0, os.getpid())
    signal.signal(signal.SIGTTOU, signal.SIG_DFL)
    os.execv(sys.argv[1], sys.argv[1:])
_, status = os.waitpid(pid, os.WUNTRACED)
os.tcsetpgrp(0, os.getpgrp())
print("stopped" if os.WIFSTOPPED(status) else "ended", flush=True)
os.tcsetpgrp(0, pid)
os.killpg(pid, signal.SIGCONT)
_, status = os.waitpid(pid, os.WUNTRACED)
os.tcsetpgrp(0, os.getpgrp())
print("exit", os.waitstatus_to_exitcode(status), flush=True)
'''


def control_z(world):
    command, _ = world.command(["/bin/sh", "-c", "echo ready; read line; echo line=$line; exit 5"])
    master, slave = pty.openpty()
    if os.getuid() == 0:
        os.fchown(slave, world.uid, -1)

    def adopt():
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)

    p = subprocess.Popen(["/usr/bin/python3", "-c", SHELL, *command], stdin=slave, stdout=slave, stderr=slave, preexec_fn=adopt,
                         cwd=world.root, **world.account)
    os.close(slave)
    t = Terminal.__new__(Terminal)
    t.master, t.text = master, ""
    t.read_until("ready")
    os.write(master, b"\x1a")
    t.read_until("stopped")
    os.write(master, b"hello\n")
    t.read_until("line=hello")
    t.read_until("exit 5")
    check(p.wait(10) == 0)
    t.close()


def injected_input(world):
    with open("/proc/sys/dev/tty/legacy_tiocsti") as f:
        print(f"# dev.tty.legacy_tiocsti is {f.read().strip()}")
    probes = ["tiocsti=0", "tiocsti=1", "tioclinux=0", "tioclinux=1", "winsize"]
    t = Terminal(world, [world.probe, *probes])
    t.process.wait(10)
    got = dict(line.rsplit(" ", 1) for line in t.drain().replace("\r", "").splitlines())
    check([got[p] for p in probes] == ["EPERM"] * 4 + ["ok"], got)
    t.close()
    # Without the filter the terminal itself answers: a character is put in, and TIOCLINUX is none of a pty's.
    t = Terminal(world, [world.probe, "tiocsti=1", "tioclinux=0"], without=["seccomp:ENOSYS"])
    t.process.wait(10)
    check("tioclinux=0 ENOTTY" in t.drain() and "tiocsti=1 EPERM" not in t.text, t.text)
    t.close()


def ignored_child_signal(world):
    def ignore():
        signal.signal(signal.SIGCHLD, signal.SIG_IGN)
        for s in (signal.SIGPIPE, signal.SIGUSR2, signal.SIGINT, signal.SIGHUP):
            signal.signal(s, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])

    for without in ([], ["clone3:EPERM"]):
        r = world.run(["/bin/sh", "-c", "grep -E '^Sig(Blk|Ign)' /proc/self/status; exit 3"], preexec_fn=ignore, without=without)
        check(r.status == 3, r)
        masks = [line.split()[1] for line in r.out.splitlines()]
        check(masks == ["0" * 16] * 2, r)


def unexpected_child(world):
    command, _ = world.command(["/bin/sh", "-c", "sleep 0.6; exit 5"])
    start = time.monotonic()
    p = subprocess.Popen(["/bin/sh", "-c", 'sleep 0.1 & exec "$@"', "sh", *command], cwd=world.root, **world.account)
    check(p.wait(20) == 5 and time.monotonic() - start >= 0.6)


def orphans(world):
    # Until none is there: the last ones may be ending.
    script = ("i=0; while [ $i -lt 200 ]; do sh -c 'sh -c \"exit 0\" & exit 0'; i=$((i + 1)); done; "
              "while cat /proc/[0-9]*/stat | grep -q ') Z'; do sleep 0.05; done; echo reaped; exit 4")
    r = world.run(["/bin/sh", "-c", script])
    check(r.out == "reaped\n" and r.status == 4, r)


def survivors(world):
    script = "setsid sleep 300 & setsid sleep 300 & (trap '' TERM HUP; sleep 300) & echo started; exit 6"
    for without in ([], ["clone3:EPERM"]):
        start = time.monotonic()
        r = world.run(["/bin/sh", "-c", script], without=without)
        # communicate() has read to the end of the file: nobody holds the pipe any more.
        check(r.status == 6 and r.out == "started\n" and time.monotonic() - start < 10, r)
        check(r.survivors in (3, 4), r.survivors)
    check(world.run(["/bin/sh", "-c", "sleep 0.01 & wait"]).survivors == 0)


def killed(world):
    # The supervisor, PID 1, the payload in turn.
    for victim in range(3):
        p = world.popen(["/bin/sh", "-c", "sleep 300 & echo ready; sleep 300; true"])
        wait_line(p.stdout)
        until(lambda: len(descendants(p.pid)) == 4, "four processes inside")
        everybody = [p.pid] + descendants(p.pid)
        os.kill(everybody[victim], signal.SIGKILL)
        # A second is the promise; on a busy machine it may be told late. Without the protection they would live for minutes.
        until(lambda: p.poll() is not None and not any(alive(pid) for pid in everybody), "all gone")
        check(p.returncode == (-9 if victim == 0 else 137), victim, p.returncode)
        check(p.stdout.read() == "")
        check(victim != 1 or "killed" in p.stderr.read())
        p.stdout.close()
        p.stderr.close()


@contextlib.contextmanager
def handing_over(world):
    """A run whose listener was handed over, and which waits for the answer: its process, and our end of the socket."""
    token = os.memfd_create("token")
    os.write(token, b"0" * 64)
    os.lseek(token, 0, os.SEEK_SET)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with ours, theirs:
        p = world.popen(["/usr/bin/touch", f"{world.work}/proof"], options=["--broker", str(theirs.fileno()), "--token", str(token)],
                        pass_fds=(theirs.fileno(), token))
        _, fds, *_ = socket.recv_fds(ours, 4096, 4)
        yield p, ours
    for fd in [*fds, token]:
        os.close(fd)


def only_child(pid):
    """The first process inside: whoever made the network namespace may not have been reaped yet."""
    until(lambda: len(children(pid)) == 1, "one process inside")
    return children(pid)[0]


def killed_early(world):
    """The supervisor dies while the world is still being built: the child's first look finds it gone."""
    with handing_over(world) as (p, _):
        inside = only_child(p.pid)
        p.kill()
        until(lambda: not alive(inside), "the child is gone")
        p.communicate()
        check(not os.path.exists(f"{world.work}/proof"))


def interrupted(world):
    """A signal during set-up: nothing runs."""
    with handing_over(world) as (p, ours):
        inside = only_child(p.pid)
        p.terminate()

        def pending():
            with open(f"/proc/{inside}/status") as f:
                return any(int(line.split()[1], 16) & 1 << (signal.SIGTERM - 1) for line in f if line.startswith("ShdPnd"))

        until(pending, "the signal at PID 1")
        ours.send(b'{"v":1,"type":"ready"}')
        r = world.finish(p)
        check(r.status == 125 and "signal 15" in r.err and not os.path.exists(f"{world.work}/proof"), r)


def descriptors(world):
    secret = os.open(world.secret, os.O_RDONLY)
    directory = os.open(world.root, os.O_RDONLY | os.O_DIRECTORY)
    listener = socket.create_server(("127.0.0.1", 0))
    high = fcntl.fcntl(secret, fcntl.F_DUPFD, 250)
    fds = (secret, directory, listener.fileno(), high)
    for without in ([], ["clone3:EPERM"]):
        r = world.run([world.probe, "descriptors"], pass_fds=fds, without=without)
        check(r.answers() == {"descriptors": "ok"}, r)
    check(world.bare([world.probe, "descriptors"], pass_fds=fds).answers() == {"descriptors": "EMFILE"})
    r = world.run(["/bin/sh", "-c", "ls /proc/self/fd | wc -l; cat <&250"], pass_fds=fds)
    check(r.out == "4\n" and "SECRET" not in r.out, r)
    for fd in (secret, directory, high):
        os.close(fd)
    listener.close()


def closed_standard(world):
    command, _ = world.command(["/bin/sh", "-c", f"readlink /proc/self/fd/0 /proc/self/fd/1 /proc/self/fd/2 > {world.work}/fds"])
    p = subprocess.Popen(["/bin/sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", *command], cwd=world.root, **world.account)
    check(p.wait(20) == 0)
    with open(f"{world.work}/fds") as f:
        # The shell's own redirection is descriptor 1.
        check(f.read().split() == ["/dev/null", f"{world.work}/fds", "/dev/null"])
    os.unlink(f"{world.work}/fds")


def directory_standard(world):
    """A directory of the old root is a way back to it: past covers, and to sockets that Landlock does not hold."""
    for flags, number in ((os.O_RDONLY, 0), (os.O_RDONLY, 2), (os.O_PATH, 0), (os.O_PATH, 1)):
        fd = os.open("/", flags | os.O_DIRECTORY)
        more = {("stdin", "stdout", "stderr")[number]: fd}
        p = world.popen(["/bin/sh", "-c", f"touch {world.work}/ran"], **more)
        r = world.finish(p)
        os.close(fd)
        check(r.status == REFUSED and not os.path.exists(f"{world.work}/ran"), r)
        # Where that is standard error nothing can be told.
        check(number == 2 or f"descriptor {number} is a " in r.err, r)


def caller_group(world):
    """For job control the command is in its caller's process group, and 0 names that across the PID namespace."""
    for without in ([], ["landlock_create_ruleset:ENOSYS"]):
        command, _ = world.command(["/bin/sh", "-c", "renice -n 19 -g 0; kill -KILL 0; echo after"], without=without)
        script = 'sleep 100 & "$@"; kill -0 $! && nice && echo alive; kill $!'
        p = subprocess.Popen(["/bin/sh", "-c", script, "sh", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             cwd=world.root, start_new_session=True, **world.account)
        out, err = p.communicate(timeout=20)
        own = str(os.nice(0))
        expected = [own, "alive"] if not without else ["after", own, "alive"]  # where Landlock scopes it, it ends its own
        check(out.splitlines() == expected, without, out, err)


def first_process_slowed(world):
    """It ends what outlives the command, and is the same account's: starved it would let the rest live on."""
    script = ("import os\n"
              "def attempt(f, *a):\n"
              "    try: f(*a); print('yes')\n"
              "    except PermissionError: print('no')\n"
              "import resource\n"
              "attempt(os.sched_setscheduler, 1, os.SCHED_IDLE, os.sched_param(0))\n"
              "attempt(os.setpriority, os.PRIO_PROCESS, 1, 19)\n"
              "attempt(os.setpriority, os.PRIO_USER, 0, 19)\n"
              "attempt(os.sched_setaffinity, 1, os.sched_getaffinity(0))\n"
              "attempt(resource.prlimit, 1, resource.RLIMIT_CPU, (0, 0))\n"
              "attempt(os.setpriority, os.PRIO_PROCESS, 0, 19)\n"
              "attempt(os.sched_setscheduler, 0, os.SCHED_IDLE, os.sched_param(0))\n"
              "attempt(resource.prlimit, 0, resource.RLIMIT_NOFILE, (64, 64))\n"
              "print(open('/proc/1/stat').read().rpartition(')')[2].split()[16])\n")
    r = world.run(["/usr/bin/python3", "-c", script])
    check(r.out.split() == ["no"] * 5 + ["yes"] * 3 + [str(os.nice(0))], r)


def first_process(world):
    """PID 1 shows nothing of the caller, to whom it may be the same account."""
    environment = dict(os.environ, BAILEY_TEST_MARKER="marker-in-environment")
    script = ("cat /proc/1/environ /proc/1/cmdline | tr '\\0' '\\n'; ls -l /proc/1/fd /proc/1/root /proc/1/cwd; head -c1 /proc/1/mem; "
              "ls -ld /proc/1; cat /proc/1/maps")
    for without in ([], ["landlock_create_ruleset:ENOSYS"], ["seccomp:ENOSYS"]):
        r = world.run(["/bin/sh", "-c", script], env=environment, without=without)
        check("marker-in" not in r.out and "plan-runner" not in r.out and world.root not in r.out, r)
        check(all(any(f"/proc/1/{n}" in line and "Permission denied" in line for line in r.err.splitlines())
                  for n in ("environ", "fd", "root", "cwd", "mem", "maps")), r)
    check("marker-in" in world.bare(["/bin/sh", "-c", "tr '\\0' '\\n' < /proc/$$/environ"], env=environment).out)


def wiped_memory(world):
    """Root outside reads what nobody inside can: even so nothing is there."""
    if os.getuid() != 0:
        print("# only root can look into a process that is not dumpable: looked from outside by the kernel's own rules")
    environment = dict(os.environ, BAILEY_TEST_MARKER="marker-in-environment")
    p = world.popen(["/bin/sh", "-c", "echo ready; exec sleep 100", "argument-marker"], env=environment)
    wait_line(p.stdout)
    inside = children(p.pid)[0]
    try:
        with open(f"/proc/{inside}/environ", "rb") as f:
            seen = f.read()
        with open(f"/proc/{inside}/cmdline", "rb") as f:
            seen += f.read()
        check(os.getuid() == 0 and not seen.strip(b"\0"), seen)
        with open(f"/proc/{p.pid}/environ", "rb") as f:
            check(b"marker-in-environment" in f.read())
        # Standard descriptors and the way to the supervisor.
        check(len(os.listdir(f"/proc/{inside}/fd")) == 4, os.listdir(f"/proc/{inside}/fd"))
    except PermissionError:
        check(os.getuid() != 0)
    p.terminate()
    world.finish(p)


def proc_inside(world):
    script = ("ls /proc | grep -c '^[0-9]'; cat /proc/self/cgroup; for f in kallsyms keys timer_list sched_debug kcore kmsg; do "
              "[ ! -e /proc/$f ] || cat /proc/$f; done")
    r = world.run(["/bin/sh", "-c", script])
    lines = r.out.splitlines()
    # PID 1, the shell, ls, grep.
    check(int(lines[0]) <= 4, r)
    check(all(line.endswith(":/") for line in lines[1:]), r)
    writes = [f"write=/proc/{n}" for n in ("sys/kernel/core_pattern", "sys/vm/swappiness", "sysrq-trigger", "sys/kernel/hostname")]
    r = world.run([world.probe, *writes], without=["landlock_create_ruleset:ENOSYS"])
    check(set(r.answers().values()) <= {"EROFS", "EACCES", "ENOENT"}, r)
    r = world.run([world.probe, f"kill={os.getpid()}", "kill=1"])
    check(r.answers() == {f"kill={os.getpid()}": "ESRCH", "kill=1": "ok"}, r)


def pseudo_terminals(world):
    code = ("import os, pty; m, s = pty.openpty(); print(os.ttyname(s)); print(pty.spawn(['/bin/true'])); "
            "print(sorted(os.listdir('/dev/pts')))")
    r = world.run(["/usr/bin/python3", "-c", code])
    check(r.out == "/dev/pts/0\n0\n['0', 'ptmx']\n", r)


def console(world):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    p = world.popen(["/bin/sh", "-c", "tty; ps -o sid= -p $$ >/dev/null; stty size; trap 'stty size' WINCH; echo ready; read x; "
                                      "echo line=$x; read y; echo line=$y; exit 8"],
                    options=["--console", str(theirs.fileno())], pass_fds=(theirs.fileno(),))
    theirs.close()
    ours.settimeout(10)
    data, fds, *_ = socket.recv_fds(ours, 4096, 4)
    check(json.loads(data) == {"v": 1, "type": "console", "fds": ["terminal"]} and len(fds) == 1, data)
    t = Terminal.__new__(Terminal)
    t.master, t.text = fds[0], ""
    t.read_until("/dev/pts/0")
    t.read_until("ready")
    fcntl.ioctl(t.master, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    os.write(t.master, b"hello\n")
    t.read_until("33 101")
    t.read_until("line=")
    os.write(t.master, b"again\n")
    r = world.finish(p)
    check(r.status == 8 and r.out == "" and r.err == "", r)
    t.close()
    ours.close()


def console_plain(world):
    """Without namespaces it is a terminal of the host."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    p = world.popen(["/bin/sh", "-c", "test -t 0 && test -t 1 && read x </dev/tty && echo line=$x; exit 8"],
                    options=["--console", str(theirs.fileno())], pass_fds=(theirs.fileno(),), without=["clone3:EPERM"])
    theirs.close()
    ours.settimeout(10)
    _, fds, *_ = socket.recv_fds(ours, 4096, 4)
    t = Terminal.__new__(Terminal)
    t.master, t.text = fds[0], ""
    os.write(t.master, b"hello\n")
    t.read_until("line=hello")
    check(world.finish(p).status == 8)
    t.close()
    ours.close()


def console_job_control(world):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    p = world.popen(["/bin/bash", "--norc", "-i"], options=["--console", str(theirs.fileno())], pass_fds=(theirs.fileno(),),
                    plan=world.plan("env\tPS1=prompt> "))
    theirs.close()
    ours.settimeout(10)
    _, fds, *_ = socket.recv_fds(ours, 4096, 4)
    t = Terminal.__new__(Terminal)
    t.master, t.text = fds[0], ""
    t.read_until("prompt>")
    shell = os.tcgetpgrp(t.master)
    os.write(t.master, b"sh -c 'echo run\"\"ning; exec sleep 100'\n")
    t.read_until("running\r\n")
    os.write(t.master, b"\x1a")
    t.read_until("Stopped")
    until(lambda: os.tcgetpgrp(t.master) == shell, "the shell in the foreground")
    os.write(t.master, b"fg\n")
    until(lambda: os.tcgetpgrp(t.master) != shell, "the job in the foreground")
    os.write(t.master, b"\x03")
    until(lambda: os.tcgetpgrp(t.master) == shell, "the shell in the foreground again")
    os.write(t.master, b"exit 3\n")
    check(world.finish(p).status == 3 and "no job control" not in t.text, t.text)
    t.close()
    ours.close()


main([
    ("C046: each signal arrives, once", each_signal),
    ("C046: without namespaces too", each_signal_plain),
    ("C046: signals from inside stay inside", own_signals),
    ("C046: Ctrl-C arrives once", control_c),
    ("C046: Ctrl-C ends a command that does not care", control_c_default),
    ("C046: a signal during set-up", interrupted),
    ("C054: Ctrl-Z stops, fg continues", control_z),
    ("C039: no input is put into the caller's terminal", injected_input),
    ("C047: a caller that ignores SIGCHLD and blocks SIGTERM", ignored_child_signal),
    ("C048: a child that came with exec", unexpected_child),
    ("C049: orphans are reaped", orphans),
    ("C050 C051: what outlives the command is ended and counted", survivors),
    ("C052: whoever is killed, all end", killed),
    ("C052: the supervisor killed during set-up", killed_early),
    ("C053: pseudo-terminals, of its own", pseudo_terminals),
    ("C054: a terminal for a supervisor", console),
    ("C054: a terminal without namespaces", console_plain),
    ("C054: job control in it", console_job_control),
    ("C056: no descriptor but 0, 1, 2", descriptors),
    ("C056: standard descriptors that are closed", closed_standard),
    ("C050 C052: the first process cannot be slowed down", first_process_slowed),
    ("T014: the caller's process group can be neither killed nor slowed down", caller_group),
    ("C019 C056: a directory as a standard descriptor is refused", directory_standard),
    ("C060 T011: only its own processes, nothing of the machine", proc_inside),
    ("T020 C060 C063: PID 1 cannot be looked into", first_process),
    ("T020 C058: the caller's arguments and environment are wiped", wiped_memory),
])
