#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command line in a terminal, and in what is none, against a real errandd --embedded."""

import os
import shutil
import signal
import subprocess

from errand_command import Errand
from errand_test import case, program, run

DETACHED = 122


@case("C054 T: a terminal: size, resize, Ctrl-C and Ctrl-Z for the program, the exit code, and the terminal as it was")
def _(t):
    errand = Errand(t)
    terminal = errand.terminal("run", "--embedded", "bash", "--norc", rows=33, columns=111)
    terminal.until("Ctrl-] d leaves it running")
    terminal.until("$ ")
    t.check(terminal.is_raw(), "the terminal is not raw")
    terminal.type("stty size; tty\r")
    t.contains(terminal.until("/dev/pts/0"), "33 111")
    terminal.resize(44, 99)
    terminal.type("until [ \"$(stty size)\" = '44 99' ]; do sleep 0.05; done; echo resi''zed\r")
    terminal.until("resized")
    terminal.type("sh -c 'echo be\"\"gun; exec cat'\r")
    terminal.until("begun")
    terminal.type("\x1a")
    terminal.until("Stopped")
    terminal.until("$ ")
    terminal.type("fg\r")
    terminal.until("exec cat'\r\n")
    terminal.type("for cat\r")
    terminal.until("for cat\r\nfor cat\r\n")
    terminal.type("\x03")
    terminal.until("$ ")
    terminal.type("echo status-$?\r")
    terminal.until("status-130")
    terminal.type("exit 9\r")
    t.equal(terminal.end(), 9, "the exit code")
    t.check(terminal.is_restored(), "the terminal is not as it was")


@case("C206 T: Ctrl-] d detaches with a code of its own; attach returns to the session, and gives its status, also after the end")
def _(t):
    errand = Errand(t)
    terminal = errand.terminal("run", "--embedded", "--id", "long", "sh", "-c", "stty -echo; echo begin; read a; echo \"said $a\"; read b; exit 42")
    terminal.until("begin")
    terminal.type("\x1dd")
    t.equal(terminal.end(), DETACHED, "the code")
    t.contains(terminal.text, "errand session attach long")
    t.check(terminal.is_restored(), "the terminal is not as it was")
    t.equal(errand.state_of("long"), "running", "the state")

    again = errand.terminal("session", "attach", "long")
    other = errand.terminal("session", "attach", "long")
    again.until("begin")
    other.until("begin")
    again.type("hello\r")
    again.until("said hello")
    other.until("said hello")
    again.type("\x1d\x1d")  # one Ctrl-] for the program
    again.type("\r")
    t.equal((again.end(), other.end()), (42, 42), "the codes")
    t.equal(errand.run("session", "attach", "long")[0], 42, "the code after the end")
    t.equal(errand.json("session", "show", "long")["exitStatus"], 42, "the status")


@case("C206 T: a client that is killed, hung up or ended by a signal leaves the session running and the terminal as it was")
def _(t):
    errand = Errand(t)
    for name, number, code in (("KILL", signal.SIGKILL, -9), ("HUP", signal.SIGHUP, DETACHED), ("TERM", signal.SIGTERM, DETACHED)):
        session = "left" + name.lower()
        starter = errand.terminal("run", "--embedded", "--id", session, "sh", "-c", "printf '\\033[?1049h\\033[?25l'; echo begin; read a; exit 3")
        starter.until("begin")
        starter.type("\x1dd")
        t.equal(starter.end(), DETACHED, "the code")
        t.contains(starter.text, "\x1b[?25h\x1b[?1049l", "what is undone")

        client = errand.terminal("session", "attach", session)
        client.until("begin")
        client.process.send_signal(number)
        t.equal(client.end(), code, f"the code after SIG{name}")
        if number != signal.SIGKILL:  # which nobody can catch
            t.check(client.is_restored(), f"the terminal is not as it was after SIG{name}")
        t.equal(errand.state_of(session), "running", f"the state after SIG{name}")
    gone = errand.terminal("session", "attach", "leftkill")
    gone.until("begin")
    gone.hang_up()
    gone.process.wait(20)
    t.equal(errand.state_of("leftkill"), "running", "the state after the terminal went away")
    t.equal(errand.run("session", "stop", "leftkill", "lefthup", "leftterm")[0], 0, "the code of stop")


@case("C206 T: an output that nobody reads any more detaches")
def _(t):
    errand = Errand(t)
    starter = errand.terminal("run", "--embedded", "--id", "endless", "sh", "-c", "while :; do echo line; sleep 0.05; done")
    starter.until("line")
    starter.type("\x1dd")
    t.equal(starter.end(), DETACHED, "the code")
    client = errand.start("session", "attach", "endless", stdin=subprocess.DEVNULL)
    t.contains(client.stdout.readline().decode(), "line")
    client.stdout.close()
    t.equal(client.wait(), DETACHED, "the code")
    t.equal(errand.state_of("endless"), "running", "the state")
    errand.good("session", "kill", "-s", "KILL", "endless")
    errand.await_state("endless", "stopped")


@case("T: a terminal gets colours and words for an empty list, a pipe neither; NO_COLOR is heeded")
def _(t):
    errand = Errand(t)
    errand.good("run", "--embedded", "-q", "true")
    terminal = errand.terminal("threads", "list", "--no-pager")
    t.equal(terminal.end(), 0, "the code")
    t.contains(terminal.text, "\x1b[2mstopped\x1b[0m")
    errand.environment["NO_COLOR"] = "1"
    terminal = errand.terminal("threads", "list", "--no-pager")
    t.equal(terminal.end(), 0, "the code")
    t.lacks(terminal.text, "\x1b[2m", "the table")
    terminal = errand.terminal("grants", "--no-pager")
    t.equal(terminal.end(), 0, "the code")
    t.contains(terminal.text, "No grants.")
    t.equal(errand.good("grants"), "", "the output into a pipe")


@case("T: a pager that would break a colour in two gets none: more, also where there is no less")
def _(t):
    errand = Errand(t)
    errand.good("run", "--embedded", "-q", "true")
    os.mkdir(t.path("bin"))
    for name, program in (("sh", shutil.which("sh")), ("more", shutil.which("cat")), ("less", shutil.which("cat"))):
        os.symlink(program, t.path("bin", name))
    errand.environment.pop("PAGER", None)
    errand.environment["PATH"] = t.path("bin")

    def colours(pager):
        errand.environment.pop("ERRAND_PAGER", None)
        if pager:
            errand.environment["ERRAND_PAGER"] = pager
        terminal = errand.terminal("threads", "list")
        t.equal(terminal.end(), 0, "the code")
        t.contains(terminal.text, "stopped", "the list")
        return "\x1b[2mstopped" in terminal.text

    t.equal([colours(pager) for pager in (None, "less", "more", t.path("bin", "more") + " -u")], [True, True, False, False], "colours, by pager")
    os.unlink(t.path("bin", "less"))
    t.equal(colours(None), False, "colours without less")


@case("T: a pager that is not there takes no output away, and a host without less and more gets no word about it")
def _(t):
    errand = Errand(t)
    errand.good("run", "--embedded", "-q", "--id", "s1", "true")
    os.mkdir(t.path("bin"))
    for name in ("sh", "cat"):
        os.symlink(shutil.which(name), t.path("bin", name))

    def check(pager, said):
        errand.environment["ERRAND_PAGER"] = pager
        if not pager:
            del errand.environment["ERRAND_PAGER"]
            errand.environment["PATH"] = t.path("bin")
        terminal = errand.terminal("threads", "list")
        t.equal(terminal.end(), 0, "the code")
        t.contains(terminal.text, "project", f"the list with {pager!r}")
        t.equal("not found" in terminal.text, said, f"what is said of {pager!r}: {terminal.text!r}")
    errand.environment.pop("PAGER", None)
    t.each([("no-such-pager", True), ("cat; cat", False), ("", False)], lambda row: check(*row))


@case("T: a terminal of a desktop's service is no journal; a journal gets the priority in the place of the name")
def _(t):
    # What systemd made stderr has its device and inode in the variable, and the shells of a terminal inherit that.
    with open(t.path("stderr"), "w+", encoding="utf-8") as f:
        st = os.fstat(f.fileno())
        for stream, start in (("1:2", "errand: "), (f"{st.st_dev}:{st.st_ino}", "<3>")):
            f.truncate(0)
            f.seek(0)
            subprocess.run([program("errand"), "nothing"], stderr=f, check=False, env={**os.environ, "JOURNAL_STREAM": stream})
            f.seek(0)
            t.check(f.read().startswith(start), f"{stream}: does not begin with {start}")


if __name__ == "__main__":
    run()
