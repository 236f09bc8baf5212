#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which errandd the command errand asks: on a system bus, on a session's, its own; on private dbus-daemons, with a stand-in for errandd."""

import os
import pwd
import socket
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from errand_command import Errand  # noqa: E402
from errand_fake import Bus, command, test_errandd  # noqa: E402
from errand_test import case, run  # noqa: E402

NOT_PERMITTED, NO_DAEMON, NOT_THERE, FAILED = 4, 5, 3, 1


@case("the system's errandd is asked first, and what it shows is the caller's")
def _(t):
    system, user = Bus(t, "system"), Bus(t, "session")
    system.errandd()
    user.errandd("deny")
    errand = command(t, system.address, user.address)
    out = errand.good("session", "list")
    t.contains(out, "a1")
    t.lacks(out, "b2")
    t.contains(errand.good("session", "list", "--system"), "a1")
    t.equal(errand.run("session", "show", "a1", "--user")[0], NOT_PERMITTED, "the other one, which permits nothing")
    t.equal(errand.run("session", "show", "b2")[0], NOT_THERE, "another's session")


@case("without it that of one's own session is asked")
def _(t):
    system, user = Bus(t, "system"), Bus(t, "session")
    user.errandd()
    t.contains(command(t, system.address, user.address).good("session", "list"), "a1")
    code, _, error = command_of(t, system, user).run("session", "list", "--system")
    t.equal(code, NO_DAEMON, "--system")
    t.contains(error, "no errandd is on the system bus: nobody has the name org.errand1")


def command_of(t, system, user):
    errand = Errand.__new__(Errand)
    errand.t, errand.project = t, t.path("project")
    errand.environment = {**os.environ, "DBUS_SYSTEM_BUS_ADDRESS": system.address, "DBUS_SESSION_BUS_ADDRESS": user.address,
                          "XDG_STATE_HOME": t.path("state-home"), "XDG_RUNTIME_DIR": t.path("run")}
    errand.environment.pop("ERRAND_EMBEDDED_STATE", None)
    return errand


@case("an errandd that the bus can start is started, but not with --no-start")
def _(t):
    system = Bus(t, "system", test_errandd())
    errand = command(t, system.address)
    code, _, error = errand.run("session", "list", "--system", "--no-start")
    t.equal(code, NO_DAEMON, error)
    t.contains(errand.good("session", "list"), "a1")


@case("an errandd that does not come up is an error, and not one that is not there")
def _(t):
    system, user = Bus(t, "system", "/bin/false"), Bus(t, "session")
    user.errandd()
    code, _, error = command(t, system.address, user.address).run("session", "list")
    t.equal(code, NO_DAEMON, error)
    t.contains(error, "errandd did not start")
    t.contains(error, "journalctl -xu errandd" + (", which an administrator may read" if os.getuid() else ""))


@case("no bus at all: --system and --user say so, and else it is embedded")
def _(t):
    errand = command(t)
    for option, name in (("--system", "the system bus"), ("--user", "the bus of your session")):
        code, _, error = errand.run("session", "list", option)
        t.equal(code, NO_DAEMON, error)
        t.contains(error, f"{name} is not there")
    # What this account's own errandd once kept would have one started that shows it.
    code, _, error = errand.run("session", "list", "--no-start")
    t.equal(code, NO_DAEMON, error)
    t.contains(error, "no errandd answers here")


@case("C201: a bus that may not be used is not taken for one without errandd, and nothing is started")
def _(t):
    account = pwd.getpwnam("nobody").pw_uid if os.getuid() == 0 else os.getuid()
    directory = t.path("closed")
    os.mkdir(directory)
    listener = socket.socket(socket.AF_UNIX)
    t.defer(listener.close)
    listener.bind(os.path.join(directory, "bus"))
    listener.listen()
    os.chmod(directory, 0)
    t.defer(os.chmod, directory, 0o700)
    errand = command(t, "unix:path=" + os.path.join(directory, "bus"))
    for path in (t.path("run"), t.path("project")):
        if os.getuid() == 0:
            os.chown(path, account, account)
    options = {"user": account, "group": pwd.getpwuid(account).pw_gid, "extra_groups": []} if os.getuid() == 0 else {}
    code, _, error = errand.run("session", "list", **options)
    t.equal(code, NOT_PERMITTED, error)
    t.contains(error, "you may not use the system bus: Permission denied; nothing was started or changed")
    t.check(not os.path.exists(t.path("state-home")), "an embedded errandd was started")


@case("C201: a bus that says nothing is told, soon", timeout=60)
def _(t):
    listener = socket.socket(socket.AF_UNIX)
    t.defer(listener.close)
    listener.bind(t.path("silent"))
    listener.listen()
    code, _, error = command(t, "unix:path=" + t.path("silent")).run("session", "list")
    t.equal(code, NO_DAEMON, error)
    t.contains(error, "the system bus does not answer")


@case("C203: what is not permitted has a code of its own, and names the action")
def _(t):
    system = Bus(t, "system")
    system.errandd("deny")
    code, _, error = command(t, system.address).run("session", "create", "--project", "web", "true")
    t.equal(code, NOT_PERMITTED, error)
    t.contains(error, "you may not use CreateSession: it needs org.errand1.create-session")


@case("the system's errandd is told a project by name, one's own by path and descriptor")
def _(t):
    system, user = Bus(t, "system"), Bus(t, "session")
    a, b = system.errandd(), user.errandd()
    errand = command(t, system.address, user.address)
    errand.good("session", "create", "--project", "web", "true")
    t.equal(a.stdout.readline(), "project web fd no command true|\n", "by name")
    errand.good("session", "create", "--user", "true")
    t.equal(b.stdout.readline(), f"project {os.path.realpath(errand.project)} fd yes command true|\n", "by path")

    def refused(project, text):
        code, _, error = errand.run("session", "create", *(["--project", project] if project else []), "true")
        t.equal(code, FAILED, error)
        t.contains(error, text)
    refused(None, "name the project: --project NAME")
    for path in ("/srv/errand/web", "./web", "..", "."):
        refused(path, "knows projects by their names")


@case("T: errandd restarted: who is attached listens to the new one, and to nobody who only says that a session ended")
def _(t):
    system = Bus(t, "system")
    first = system.errandd()
    process = command(t, system.address).start("session", "start", "--attach", "a1")
    t.contains(first.stdout.readline(), "project", "Start")
    subprocess.run(["dbus-send", "--bus=" + system.address, "--type=signal", "/org/errand1/session/a1", "org.errand1.Session.Exited",
                    "string:exited", "int32:0"], check=True)
    first.kill()
    first.wait()
    system.errandd(ENDED="7")
    _, error = process.communicate()
    t.equal(process.returncode, 7, error)
    t.contains(error.decode(), "errandd went away; the session goes on")


@case("options of one errandd are not for another")
def _(t):
    errand = command(t)
    for options, text in ((("--system", "--user"), "contradict each other"), (("--system", "--embedded"), "contradict each other"),
                          (("--system", "--state-dir", "/x"), "an embedded errandd's"), (("--user", "--config", "/x"), "an embedded errandd's")):
        code, _, error = errand.run("session", "list", *options)
        t.equal(code, FAILED, error)
        t.contains(error, text)


run()
