#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""bailey shell: the directory's policy for whatever is started, a home for each directory, a terminal with job control."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from bailey import NOT_RUN, check, main


# Without an editor of lines: what it writes depends on what was typed when.
INTERACTIVE = ["--norc", "--noprofile", "--noediting", "-i"]
OWN_SPAN = str(10000000 + os.getpid())  # seconds: by which a sleep of another of these tests is not taken for ours


def policy(w, text, name="W/bailey.toml"):
    w.write(name, text)
    r = w.call("trust", "--yes", w.path(name))
    check(r.status == 0, r)


def shell(w, script, *options, **more):
    more.setdefault("environment", dict(w.environment, SHELL="/bin/sh"))
    return w.call("shell", *options, "--", "-c", script, **more)


class Terminal:
    """bailey shell as the first program of a terminal, or a command of a shell that is."""

    def __init__(self, w, *args, shell="/bin/bash", command=None, cwd=None, size=(30, 100)):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", *size, 0, 0))
        if w.as_root:
            os.fchown(slave, w.uid, -1)
        account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}

        def adopt():
            os.setsid()
            fcntl.ioctl(0, termios.TIOCSCTTY, 0)

        self.slave = slave
        self.before = termios.tcgetattr(slave)
        self.process = subprocess.Popen(command or [w.bailey, "shell", *args, "--", *INTERACTIVE], stdin=slave, stdout=slave,
                                        stderr=slave, preexec_fn=adopt, cwd=cwd or w.work, env=dict(w.environment, SHELL=shell), **account)
        self.text = ""

    def until(self, wanted, seconds=20):
        end = time.monotonic() + seconds
        while not re.search(wanted, self.text):
            ready, _, _ = select.select([self.master], [], [], max(0, end - time.monotonic()))
            check(ready, f"no {wanted!r} in {self.text!r}")
            self.text += os.read(self.master, 65536).decode(errors="replace")
        match = re.search(wanted, self.text)
        self.text = self.text[match.end():]
        return match

    def type(self, text):
        os.write(self.master, text.encode())

    def say(self, line, wanted):
        self.type(line + "\n")
        return self.until(wanted)

    def resize(self, rows, columns):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def end(self, seconds=20):
        end = time.monotonic() + seconds
        while self.process.poll() is None:
            check(time.monotonic() < end, f"it does not end: {self.text!r}")
            if select.select([self.master], [], [], 0.05)[0]:
                self.text += os.read(self.master, 65536).decode(errors="replace")
        while select.select([self.master], [], [], 0)[0]:
            self.text += os.read(self.master, 65536).decode(errors="replace")
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def directory_policy(w):
    """Of the directory, not of the shell's: what lies beside /bin/sh does not count, what lies above the directory does."""
    w.write("secret", "SECRET\n")
    w.mkdir("W/sub")
    policy(w, '[filesystem]\nwrite = ["."]\n[env]\nset = { A = "here" }\n')
    for cwd in (w.work, w.path("W/sub")):
        r = shell(w, "echo $A; pwd; touch made; cat ../secret ../../secret", cwd=cwd)
        check(r.out == f"here\n{cwd}\n" and "SECRET" not in r.out and os.path.exists(f"{cwd}/made"), r)
    # A policy beside the shell itself would be a program's, and this is not about the program.
    w.mkdir("shells")
    own = w.write("shells/sh", "#!/bin/sh\necho $A; exec /bin/sh \"$@\"\n", 0o755)
    policy(w, '[env]\nset = { A = "beside" }\n', "shells/bailey.toml")
    r = shell(w, "true", environment=dict(w.environment, SHELL=own))
    check(r.out == "here\n", r)


def inherited(w):
    """Whatever the shell starts is under it: children, jobs in the background, what left the session and the process group."""
    w.write("secret", "SECRET\n")
    policy(w, '[filesystem]\nwrite = ["."]\n')
    probe = f"cat {w.path('secret')}; cat ../secret; ls {w.root}; touch /usr/x; head -c1 /proc/1/environ"
    w.write("W/probe", f"#!/bin/sh\n({probe}) >>$1 2>/dev/null; echo done >>$1\n", 0o755)
    r = shell(w, "sh ./probe a; sh -c 'sh -c \"sh ./probe b\"'; sh ./probe c & setsid sh ./probe d & nohup sh ./probe e >/dev/null 2>&1 & wait; "
              "for f in a b c d e; do echo $f $(cat $f); done")
    for line in r.out.splitlines():
        # Of the tree there are only the directory and the home.
        check(line.split()[1:] == ["W", "data", "done"], r)
    check(len(r.out.splitlines()) == 5, r)


def places(w):
    """A home for each directory, kept; not that of a program called alike."""
    homes = []
    for name in ("W", "V/W", "V/W"):
        w.mkdir(name)
        r = shell(w, "echo $HOME; echo $BAILEY_SANDBOX $BAILEY_SANDBOX_DIR; ls ~; touch ~/mark; cd; pwd", cwd=w.path(name))
        lines = r.out.splitlines()
        check(lines[1] == f"1 {w.path(name)}" and lines[-1] == lines[0], r)
        check(re.fullmatch(re.escape(w.path("data/bailey/shell/W-")) + "[0-9a-f]{32}/home", lines[0]), r)
        homes.append((lines[0], "mark" in lines))
    check(homes[0][0] != homes[1][0] == homes[2][0] and [kept for _, kept in homes] == [False, False, True], homes)
    check(sorted(os.listdir(homes[0][0])) == ["mark"] and os.stat(homes[0][0]).st_mode & 0o777 == 0o700, homes)
    w.mkdir("apps")
    program = w.write("apps/shell", "#!/bin/sh\necho $HOME; ls $HOME/..; ls $HOME/../" + os.path.basename(os.path.dirname(homes[0][0])) + "\n", 0o755)
    r = w.call("run", program)
    check(r.out.splitlines() == [w.path("data/bailey/shell/home"), "home"], r)
    r = w.call("show", "sh")
    check("BAILEY_SANDBOX_DIR" not in r.out, r)


def home_warning(w):
    for cwd, piece in (("real", "is your home directory"), (".", "holds your home directory"), ("W", None)):
        r = shell(w, "true", cwd=w.path(cwd) if cwd != "." else w.root)
        check(r.status == 0 and (piece in r.err if piece else "home directory" not in r.err), r)


def which_shell(w):
    own = w.write("real/mysh", "#!/bin/sh\necho mine $SHELL\n", 0o755)
    r = w.call("shell", environment=dict(w.environment, SHELL=own))
    check(r.out == f"mine {own}\n", r)
    for said in ("./sh", "sh", "/nowhere/sh", ""):
        r = w.call("shell", "--", "-c", "echo $SHELL $0", environment=dict(w.environment, SHELL=said))
        check(r.status == 0 and r.out == "/bin/sh /bin/sh\n", r)
        check((f"SHELL={said} is not an absolute path" in r.err) == bool(said), r)
    check(shell(w, "exit 7").status == 7 and shell(w, "kill -9 $$").status == 137, "status")
    r = w.call("shell", "--config", w.path("none.toml"))
    check(r.status == NOT_RUN, r)


def nested(w):
    """Inside there are no namespaces: a run there narrows, and says what is not enforced."""
    # A sanitized bailey looks for leaks by tracing itself, which no sandbox allows.
    policy(w, f'[filesystem]\nwrite = ["."]\nexecute = ["{w.bailey}"]\n[env]\nset = {{ ASAN_OPTIONS = "detect_leaks=0" }}\n')
    w.write("W/readable", "readable\n")
    r = shell(w, f"cat readable; {w.bailey} run sh -c 'cat readable; echo in >~/x && cat ~/x; cat /etc/hostname >/dev/null && echo etc'; echo $?")
    check(r.out == "readable\nin\netc\n0\n", r)
    for piece in ("nested sandboxing is not permitted here", "enforced: landlock ABI", "not enforced: namespaces:", "not enforced: private-tmp:"):
        check(piece in r.err, (piece, r))
    # What the outer one denies no inner policy gives back.
    w.write("secret", "SECRET\n")
    w.write("W/wide.toml", '[filesystem]\nread = ["/"]\nwrite = ["/etc", "/usr"]\n')
    r = shell(w, f"{w.bailey} run --config wide.toml sh -c 'cat {w.path('secret')}; touch /usr/x /etc/x; cat /proc/1/environ'")
    check("SECRET" not in r.out and r.out == "" and not os.path.exists("/usr/x"), r)
    r = shell(w, f"{w.bailey} run --strict true")
    check(r.status == NOT_RUN and "nested sandboxing is not permitted here" in r.err, r)


def job_control(w):
    policy(w, '[filesystem]\nwrite = ["."]\n')
    # Says when it runs and when it was continued; what is computed is not what was typed. No shell: one that waits in vfork(2) for a
    # child that was stopped cannot be stopped itself.
    w.write("W/job", "import os, signal\nsignal.signal(signal.SIGCONT, lambda *_: os.write(1, b'cont-%d\\n' % (1 + 2)))\n"
            "os.write(1, b'job-%d\\n' % (1 + 1))\nwhile True: signal.pause()\n")
    t = Terminal(w)
    try:
        t.until(r"\$ $")
        t.say("PS1='<$?> '", r"<0> $")
        check("no job control" not in t.text, t.text)
        t.say("echo state: $-", r"state: \w*m")
        for command in ("fg", "bg"):
            t.say("python3 ./job", "job-2")
            t.type("\x1a")
            t.until(r"Stopped +python3 ./job")
            t.say(command, "cont-3")
            if command == "fg":
                t.type("\x03")
                t.until("KeyboardInterrupt")
            else:
                t.say("jobs", "Running +python3 ./job")
                t.say("kill %1; wait; echo killed-$((1 + 1))", "killed-2")
        # The size is the outer terminal's, and follows it.
        t.say("stty size", r"30 100\r")
        t.say("trap 'echo winch $(stty size)' WINCH; echo trap-$((1 + 1))", r"trap-2")
        t.resize(41, 132)
        t.say("until [ $(stty size | cut -d ' ' -f 1) = 41 ]; do sleep 0.05; done", r"winch 41 132")
        # Its own terminal, not the caller's, and no other.
        t.say("tty; ls /dev/pts", r"/dev/pts/0\r\n0 +ptmx|/dev/pts/0\r\n0  ?ptmx")
        # A program that changes the terminal and is killed does not change the caller's.
        t.say("stty raw -echo; kill -9 $$", "")
        check(t.end() == 137, t.text)
        check(termios.tcgetattr(t.slave) == t.before, "the terminal is as it was")
        check("bailey: enforced: own root" in t.text and t.text.endswith("egress denied\r\n"), t.text)
    finally:
        t.close()


def whole_output(w):
    """Nothing is lost at the end, and what is typed while much is written gets through."""
    policy(w, '[filesystem]\nwrite = ["."]\n')
    t = Terminal(w)
    try:
        t.until(r"\$ $")
        t.say("PS1=; stty -echo", r"\n")
        t.say("seq 200000; echo last-$((1+1)); exit 3", "last-2")
        check(t.end() == 3, t.text)
    finally:
        t.close()
    # A paste of more than a terminal holds.
    t = Terminal(w)
    try:
        t.until(r"\$ $")
        t.say("PS1=; stty -echo -icanon; echo ready", r"\nready")
        t.say("sh -c 'echo go-$((1 + 1)); exec head -c 100000 >pasted'; echo got-$(wc -c <pasted); exit", "go-2")
        sent = 0
        deadline = time.monotonic() + 20
        os.set_blocking(t.master, False)
        while sent < 100000:
            check(time.monotonic() < deadline, sent)
            _, writable, _ = select.select([], [t.master], [], 1)
            if writable:
                sent += os.write(t.master, b"x" * min(2048, 100000 - sent))
        os.set_blocking(t.master, True)
        t.until("got-100000")
        check(t.end() == 0, t.text)
    finally:
        t.close()


def suspended_outside(w):
    """As a job of a shell it waits in the background until it has the terminal, and is killed with what is in it."""
    policy(w, '[filesystem]\nwrite = ["."]\n')
    command = " ".join([w.bailey, "shell", "--", *INTERACTIVE])
    t = Terminal(w, command=["/bin/bash", *INTERACTIVE])
    try:
        t.until(r"\$ $")
        t.say("PS1='outer> '", r"outer> $")
        t.say(f"{command} &", r"outer> $")
        t.say("while [ \"$(jobs -s)\" = '' ]; do sleep 0.05; done; echo it-waits", r"\nit-waits")
        t.say("fg", r"bash[^ ]*\$ $")
        t.say("echo inner-$BAILEY_SANDBOX", r"inner-1")
        t.say("exit", r"outer> $")
        t.say("echo status-$?", r"status-0")
        t.say(command, r"bash[^ ]*\$ $")
        t.say(f"sleep {OWN_SPAN} & echo started", r"\nstarted")
        os.close(t.master)
        t.master = os.open("/dev/null", os.O_RDONLY)
        end = time.monotonic() + 20
        while processes(w, OWN_SPAN):
            check(time.monotonic() < end, "it outlived its terminal")
            time.sleep(0.05)
    finally:
        t.close()


def processes(w, word):
    found, word = [], word.encode()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as f:
                arguments = f.read().split(b"\0")
            if word in arguments and os.stat(f"/proc/{pid}").st_uid == w.uid:
                found.append(pid)
        except OSError:
            pass
    return found


def killed(w):
    """bailey killed: everything inside goes, and the process that copied gives the terminal back."""
    policy(w, '[filesystem]\nwrite = ["."]\n')
    t = Terminal(w)
    try:
        t.until(r"\$ $")
        t.say("PS1='<> '", r"<> $")
        t.say(f"sleep {OWN_SPAN} & echo started", r"\nstarted")
        t.process.send_signal(signal.SIGKILL)
        t.process.wait()
        end = time.monotonic() + 20
        while processes(w, OWN_SPAN) or termios.tcgetattr(t.slave) != t.before:
            check(time.monotonic() < end, "something is left")
            time.sleep(0.05)
    finally:
        t.close()


def no_terminal(w):
    """With a pipe on either side it is an ordinary command: no terminal is made, and the bytes are the bytes."""
    r = w.call("shell", "--", "-c", "tty; od -An -c", input="a\tb\n", environment=dict(w.environment, SHELL="/bin/sh"))
    check(r.out.splitlines() == ["not a tty", r"   a  \t   b  \n"], r)


main([
    ("Q028: the policy of the directory is in force, found above it and not beside the shell", directory_policy),
    ("Q029: every process that the shell starts is under it", inherited),
    ("Q028: a home for each directory; BAILEY_SANDBOX and BAILEY_SANDBOX_DIR", places),
    ("a home directory is warned of", home_warning),
    ("SHELL, or /bin/sh; the shell's own status", which_shell),
    ("a nested run only narrows, and says so", nested),
    ("C054: job control, sizes and modes in a terminal of its own", job_control),
    ("C054: nothing is lost between the terminals", whole_output),
    ("C046 C054: in the background it waits; with its terminal gone it ends", suspended_outside),
    ("C052: killed, it leaves nothing, and the terminal as it was", killed),
    ("without a terminal none is made", no_terminal),
])
