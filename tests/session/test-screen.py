#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Full-screen programs in sessions, at a real terminal: tmux plays it, types, and tells what is on the screen and which modes are on."""

import contextlib
import os
import shutil
import signal
import subprocess

import errand_test
from errand_run import Errand, environment, wait_for
from errand_test import case, run

SHELL = "outer$ "


class Screen:
    """A terminal with a shell in it, which stands for the user's."""

    def __init__(self, t, errand, columns=100, rows=30):
        self.t, self.errand = t, errand
        self.socket = os.path.join(t.directory, "tmux")
        if not shutil.which("tmux"):
            t.fail("tmux is not installed; tools/packages names it")
        shell = f"env PS1='{SHELL}' ERRAND={errand_test.program('errand')} ERRAND_EMBEDDED_STATE={errand.state} ERRAND_CONFIG={errand.config} sh"
        self.tmux("new-session", "-d", "-x", str(columns), "-y", str(rows), "-c", errand.project, shell)
        t.defer(self.close)
        t.log("the screen", self.text)
        self.wait(SHELL.strip())

    def tmux(self, *arguments):
        result = subprocess.run(["tmux", "-u", "-f", "/dev/null", "-S", self.socket, *arguments], env=environment(SHELL="/bin/sh"), capture_output=True, text=True,
                                stdin=subprocess.DEVNULL, check=False)
        if result.returncode != 0:
            self.t.fail(f"tmux {arguments} has failed: {result.stderr}")
        return result.stdout

    def close(self):
        subprocess.run(["tmux", "-S", self.socket, "kill-server"], capture_output=True, check=False)

    def text(self):
        return self.tmux("capture-pane", "-p")

    def show(self, what):
        return self.tmux("display-message", "-p", f"#{{{what}}}").strip()

    def modes(self):
        """What a program must put back: the alternate screen, the cursor, mouse reports, the keypad."""
        names = ("alternate_on", "cursor_flag", "mouse_any_flag", "keypad_flag", "keypad_cursor_flag", "scroll_region_upper", "insert_flag", "wrap_flag")
        return {name: self.show(name) for name in names}

    def keys(self, *keys):
        """Names of keys: C-c, Enter."""
        self.tmux("send-keys", *keys)

    def type(self, text):
        self.tmux("send-keys", "-l", text)

    def line(self, text):
        self.type(text)
        self.keys("Enter")

    def wait(self, *parts):
        wait_for(lambda: all(part in self.text() for part in parts), f"{parts} on the screen:\n{self.text()}")

    def wait_last(self, text):
        """Waits until the last line that is not empty begins so."""
        wait_for(lambda: (self.text().strip().splitlines() or [""])[-1].startswith(text.strip()), f"{text!r} as the last line:\n{self.text()}")

    def wait_rows(self, n):
        """Waits until the editor has so many rows: one of text, one of its own, and a tilde in each of the others."""
        wait_for(lambda: [line[:1] for line in self.text().splitlines()].count("~") == n - 2, f"{n} rows")

    def resize(self, columns, rows):
        self.tmux("resize-window", "-x", str(columns), "-y", str(rows))

    def stty(self, name):
        """The terminal's settings, as the user's shell finds them."""
        path = os.path.join(self.errand.project, name)
        self.line(f"stty -a >{path}; echo saved-{name}")
        self.wait_last(SHELL)
        wait_for(lambda: os.path.exists(path) and os.path.getsize(path), f"{path}")
        with open(path, encoding="ascii") as f:
            return f.read().split(";", 3)[3]  # without speed and size


def in_foreground(errand, name):
    """Whether a process of that name in a session has its terminal: what Ctrl-C and Ctrl-Z are for."""
    for pid, found in errand.family().items():
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
            fields = f.read().rpartition(") ")[2].split()
            if found == name and fields[2] == fields[5] and fields[0] in "SR":
                return True
    return False


def sizes(errand):
    """KiB of each process of errandd's and its sessions', by pid and name."""
    found = {}
    for pid, name in errand.family().items():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError), open(f"/proc/{pid}/status", encoding="ascii", errors="replace") as f:
            found[pid, name] = next((int(line.split()[1]) for line in f if line.startswith("VmRSS:")), 0)
    return found


def begin(t):
    errand = Errand(t)
    screen = Screen(t, errand)
    os.chmod(errand.project, 0o777)  # the user's shell keeps its notes there
    return errand, screen, screen.stty("before"), screen.modes()


def check_restored(t, screen, settings, modes, name):
    screen.wait_last(SHELL)
    t.equal(screen.stty(name), settings, "the terminal's settings")
    t.equal(screen.modes(), modes, "the terminal's modes")


@case("C054 C206: an editor: typed into, resized, detached, attached again, saved; the terminal is as it was, each time")
def _(t):
    errand, screen, settings, modes = begin(t)
    screen.line("$ERRAND run --embedded --id ed -- vi -u NONE -N notes; echo code-$?")
    screen.wait("~")
    t.equal(screen.show("alternate_on"), "1", "the alternate screen inside")
    screen.type("ione line of text")
    screen.keys("Escape")
    screen.wait("one line of text")
    screen.resize(72, 20)
    screen.wait_rows(20)
    screen.keys("C-]", "d")
    screen.wait("code-122")
    check_restored(t, screen, settings, modes, "detached")
    t.equal([s["state"] for s in errand.json("session list")], ["running"], "the state")
    # From a terminal of another size, which the editor takes on.
    screen.resize(90, 24)
    screen.line("clear; $ERRAND session attach ed; echo code-$?")
    screen.wait("one line of text", "~")
    screen.wait_rows(24)
    screen.line(":wq")
    screen.wait("code-0")
    check_restored(t, screen, settings, modes, "after")
    with open(os.path.join(errand.project, "notes"), encoding="ascii") as f:
        t.equal(f.read(), "one line of text\n", "the file")


@case("C054: a shell: Ctrl-C, Ctrl-Z, jobs and fg are the inner shell's, and its exit code comes out")
def _(t):
    errand, screen, settings, modes = begin(t)

    def await_sleep():
        wait_for(lambda: in_foreground(errand, "sleep"), "sleep in the foreground")
    screen.line("$ERRAND run --embedded --id sh --env 'PS1=inner$ ' -- bash --norc; echo code-$?")
    screen.wait_last("inner$")
    screen.line("trap 'echo got-$(stty size)' WINCH; sleep 1000")
    await_sleep()
    screen.keys("C-c")
    screen.wait_last("inner$")
    screen.line("echo status-$?")
    screen.wait("status-130")
    screen.line("sleep 2000")
    await_sleep()
    screen.keys("C-z")
    screen.wait("Stopped")
    screen.line("jobs; echo listed")
    screen.wait("listed")
    screen.line("fg")
    await_sleep()
    screen.keys("C-c")
    screen.wait_last("inner$")
    screen.resize(61, 17)
    screen.line("stty size; echo sized")
    screen.wait("17 61")
    screen.line("exit 9")
    screen.wait("code-9")
    check_restored(t, screen, settings, modes, "after")


@case("C206: a pager and a process viewer run, redraw by themselves, and end at their key")
def _(t):
    errand, screen, settings, modes = begin(t)
    with open(os.path.join(errand.project, "long"), "w", encoding="ascii") as f:
        f.write("".join(f"line-{i}\n" for i in range(1, 1001)))
    screen.line("$ERRAND run --embedded -- less long; echo code-$?")
    screen.wait("line-1\n", "long")
    screen.keys("G")
    screen.wait("line-1000")
    screen.type("?line-500")
    screen.keys("Enter")
    screen.wait("line-500")
    screen.type("q")
    screen.wait("code-0")
    check_restored(t, screen, settings, modes, "less")
    screen.line("clear; $ERRAND run --embedded -- top -d 0.2; echo code-$?")
    screen.wait("PID", "top")
    screen.type("q")
    screen.wait("code-0")
    check_restored(t, screen, settings, modes, "top")


@case("C206: an editor whose session is killed, stopped, or loses its errandd: the terminal is as it was, and the code says which")
def _(t):
    errand, screen, settings, modes = begin(t)

    def check(row):
        name, end, code = row
        screen.line(f"clear; $ERRAND run --embedded --id {name} -- vi -u NONE -N +'set mouse=a' {name}; echo code-$?")
        screen.wait("~")
        wait_for(lambda: screen.show("alternate_on") == "1", "the alternate screen")
        end(name)
        screen.wait(f"code-{code}")
        check_restored(t, screen, settings, modes, name)
    t.each([("stopped", lambda name: errand.good("session stop", name), 143),
            ("killed", lambda name: errand.good("session kill", "--signal", "KILL", name), 137),
            ("lost", lambda name: os.kill(errand.pid(), signal.SIGKILL), 123)], check)


@case("C206: a terminal that disappears leaves its session running; another one attaches to it")
def _(t):
    errand, screen, _, _ = begin(t)
    # It gets two SIGHUPs, of the terminal and of its shell. A leak sanitizer's helper dies of the second, and is waited for in a busy loop without end.
    screen.line("ASAN_OPTIONS=$ASAN_OPTIONS:detect_leaks=0 $ERRAND run --embedded --id alone -- vi -u NONE -N kept; echo code-$?")
    screen.wait("~")
    screen.type("istill here")
    screen.wait("still here")
    screen.close()
    t.equal([s["state"] for s in errand.json("session list")], ["running"], "the state")
    second = Screen(t, errand, 80, 22)
    second.line("$ERRAND session attach alone; echo code-$?")
    second.wait("still here", "~")
    second.keys("Escape")
    second.line(":wq")
    second.wait("code-0")
    with open(os.path.join(errand.project, "kept"), encoding="ascii") as f:
        t.equal(f.read(), "still here\n", "the file")


@case("C203 C206: as many redraws as an hour has seconds: no program of the session grows, and keys still arrive")
def _(t):
    errand, screen, settings, modes = begin(t)
    screen.line("clear; $ERRAND run --embedded --id hour -- sh -c 'echo ready; read x; i=0 frame=$(seq 1 400); while [ $i -lt 3600 ]; do printf \"\\033[H\\033[2J%s\\n\" \"$frame\"; i=$((i+1)); done;"
                " echo frames-$i; read x; exit 6'; echo code-$?")
    screen.wait_last("ready")
    before = sizes(errand)
    screen.keys("Enter")
    screen.wait("frames-3600")
    for (pid, name), size in sizes(errand).items():
        grown = size - before.get((pid, name), size)  # a sanitizer's own memory is not what is looked at
        t.check(grown < 32 * 1024, f"{name} has grown by {grown} KiB")
    screen.keys("Enter")
    screen.wait("code-6")
    check_restored(t, screen, settings, modes, "after")


LONG = "anidoftwentyeightletters0123"  # as long as one may be


@case("T: in a narrow terminal each row of a table is one line, with its id whole; with --full nothing is cut, and may wrap")
def _(t):
    errand = Errand(t)
    screen = Screen(t, errand, columns=40)
    for name in ("short", LONG):
        errand.started(name, "sh", "-c", "echo on; exec sleep 1000")
        errand.good("grant", name, "a-name-of-many-letters.of.the-host.example.com", "always")
    for columns in (40, 60, 80, 120):
        screen.resize(columns, 30)
        for words in ("session list", "threads list", "grants"):
            shown = [line.split()[0] for line in shown_by(screen, words, columns)]
            t.equal(sorted(shown[1:]), sorted(("short", LONG)), f"rows of {words} at {columns}")
        t.contains("".join(shown_by(screen, "grants -l", columns)), "a-name-of-many-letters.of.the-host.example.com", "with -l")


def shown_by(screen, words, columns):
    """The lines on the screen, alone."""
    mark = f"{words}-{columns}"
    screen.line(f"clear; $ERRAND {words} --embedded --no-pager; echo 'of' '{mark}'")
    screen.wait(f"\nof {mark}")
    return screen.text().partition(f"\nof {mark}")[0].splitlines()


if __name__ == "__main__":
    run()
