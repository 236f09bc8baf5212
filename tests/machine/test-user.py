# SPDX-License-Identifier: LGPL-2.1-or-later
"""User mode: errandd as a service of one account, on its session bus, which the bus starts when it is called for."""

import json
import os
import pwd
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_bus import BusError  # noqa: E402
from errand_machine import good, run, wait_for  # noqa: E402
from errand_system import MANAGER, ROOT, SESSION, Client, Running  # noqa: E402
from errand_test import case, source  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

OWNER, STRANGER = "alice", "mallory"
UID = machine.account(OWNER)
machine.account(STRANGER)
BUS = f"/run/user/{UID}/bus"
HOME = pwd.getpwnam(OWNER).pw_dir
PROJECT = f"{HOME}/project"

good("loginctl", "enable-linger", OWNER)
wait_for(lambda: os.path.exists(BUS), "session bus")
good("mkdir", PROJECT, account=OWNER)


def manager(*arguments, check=True):
    """systemctl --user, of the owner."""
    return run("systemctl", "--user", "-M", f"{OWNER}@.host", "--no-pager", *arguments, check=check)


def configure(text):
    good("sh", "-c", f"mkdir -p {HOME}/.config/errand && cat >{HOME}/.config/errand/errand.json", account=OWNER, stdin=text)


def log():
    return machine.journal(f"_UID={UID}")


configure('{"sandbox": {"requireFullEnforcement": false, "gracePeriodMs": 5000}, "limits": {"brokersAhead": 0}}')


def client():
    return Client(OWNER, path=BUS)


@case("the first call starts errandd, and a session runs in the owner's checkout as the owner, in a scope, with a broker of its own")
def _(t):
    t.log("journal", log)
    t.check(manager("is-active", "errandd.service", check=False).status != 0, "errandd runs already")
    owner = client()
    t.check(owner.get(ROOT, MANAGER, "Ready"), "errandd is not ready")
    t.equal(manager("is-active", "errandd.service").out, "active\n", "errandd.service")
    owner.create("m1", ["/bin/sh", "-c", 'id -un; pwd; echo made >file; read line; echo "got $line"; exit 4'], project=PROJECT)
    stdin, stdout, _ = owner.stdio("m1")
    owner.session("m1", "Start")
    t.defer(owner.end, "m1")
    t.equal([stdout.readline(), stdout.readline()], [f"{OWNER}\n", f"{PROJECT}\n"], "what it says")
    for unit in ("errand-session-m1.scope", "errand-broker@m1.service", "errand-launch.service"):
        t.equal(manager("is-active", unit).out, "active\n", unit)
    t.contains(manager("status", "errand-session-m1.scope").out, "/bin/sh -c", "the scope")
    t.equal([owner.get(f"{ROOT}/session/m1", SESSION, p) for p in ("ScopeUnit", "BrokerUnit")], ["errand-session-m1.scope", "errand-broker@m1.service"], "units")
    stdin.write("it\n")
    stdin.flush()
    t.equal(stdout.readline(), "got it\n", "answer")
    owner.wait("m1", "stopped")
    t.equal([owner.describe("m1")[k] for k in ("ExitReason", "ExitStatus")], ["exited", 4], "its end")
    with open(f"{PROJECT}/file", encoding="ascii") as f:
        t.equal(f.read(), "made\n", "what it made")
    wait_for(lambda: not [u for u in ("errand-broker@m1.service", "errand-broker@m1.socket", "errand-broker-control@m1.socket", "errand-session-m1.scope")
                          if manager("is-active", u, check=False).status == 0], "end of its units")


@case("T: the account's own journal has what was said of a session, by its id, from errandd and its broker")
def _(t):
    good("journalctl", "--sync")
    found = good("journalctl", "-q", "--no-pager", "-o", "cat", "--output-fields=SYSLOG_IDENTIFIER", "ERRAND_SESSION=m1", f"_UID={UID}")
    for name in ("errandd", "errand-broker"):
        t.contains(found, name, "who said something")


@case("the unit of one's own that errand(1) shows works as written, and what the session writes is informational")
def _(t):
    t.log("journal", log)
    with open(source("man/errand.1"), encoding="utf-8") as f:
        example = re.search(r"^\[Service\]\n.*?(?=^\.Ed)", f.read(), re.M | re.S).group(0)
    units = f"{HOME}/.config/systemd/user"
    good("sh", "-c", f"mkdir -p {units} && cat >{units}/review.service", account=OWNER, stdin=example)
    good("sh", "-c", f"cat >{PROJECT}/review && chmod +x {PROJECT}/review", account=OWNER,
         stdin="#!/bin/sh\necho 'out of it'\necho '<0>no emergency' >&2\nexit 7\n")
    manager("daemon-reload")
    manager("start", "review.service")
    wait_for(lambda: manager("show", "--value", "-p", "ActiveState", "review.service").out == "failed\n", "its end")
    t.equal(manager("show", "--value", "-p", "ExecMainStatus", "review.service").out, "7\n", "its exit code")
    good("journalctl", "--sync")
    lines = [json.loads(line) for line in good("journalctl", "-q", "-o", "json", "--no-pager", "_SYSTEMD_USER_UNIT=review.service").splitlines()]
    t.equal(sorted((line["MESSAGE"], line["PRIORITY"]) for line in lines), [("<0>no emergency", "6"), ("out of it", "6")], "its lines")
    # errand's own are graded: that the project is not there, here.
    good("sh", "-c", f"sed -i 's/errand run/errand run --project nosuch/' {units}/review.service", account=OWNER)
    manager("daemon-reload")
    manager("start", "review.service")
    wait_for(lambda: manager("show", "--value", "-p", "ExecMainStatus", "review.service").out == "125\n", "its end")
    good("journalctl", "--sync")
    # By who said it: of what has ended the journal may not know the unit any more.
    lines = [json.loads(line)["MESSAGE"] for line in
             good("journalctl", "-q", "-o", "json", "--no-pager", "SYSLOG_IDENTIFIER=errand", f"_UID={UID}", "PRIORITY=3").splitlines()]
    t.equal(lines, ["the project nosuch cannot be opened: No such file or directory"], "errand's own lines")


@case("C200: errandd restarted, and killed, finds its session again")
def _(t):
    t.log("journal", log)
    for session, again in (("n1", ("restart",)), ("n2", ("kill", "--signal=KILL", "--kill-whom=main"))):
        s = Running(t, session, client, PROJECT)
        s.answers("before")
        before = manager("show", "--value", "-p", "MainPID", "errandd.service").out
        manager(*again, "errandd.service")
        wait_for(lambda b=before: manager("show", "--value", "-p", "MainPID", "errandd.service").out not in (b, "0\n"), "another errandd")
        owner = wait_for(lambda: client(), "answer")
        t.equal(owner.state(session), "running", "state after it")
        s.answers("after")
        owner.session(session, "Grant", "ss", "host.example", "10m")
        s.pipe.close()
        owner.wait(session, "stopped")
        t.equal([owner.describe(session)[k] for k in ("ExitReason", "ExitStatus")], ["exited", 3], "its end")


@case("the report names what is missing where one account is everything, and no other account has a way in")
def _(t):
    owner = client()
    gaps = " ".join(owner.get(ROOT, MANAGER, "Gaps"))
    t.note(gaps)
    t.contains(gaps, "account", "the gaps")
    try:
        Client(STRANGER, path=BUS)
        t.fail("a stranger is on the session bus")
    except (ConnectionError, OSError, BusError):
        pass
    for place in (f"/run/user/{UID}/errand", f"{HOME}/.local/state/errand"):
        t.equal(oct(os.stat(place).st_mode & 0o777), "0o700", place)


@case("a session gets at none of the sockets of its account, though they are its own")
def _(t):
    t.log("journal", log)
    program = """
import os, socket
for directory, _, names in os.walk("/run"):
    for name in names:
        for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
            try:
                with socket.socket(socket.AF_UNIX, kind) as s:
                    s.connect(os.path.join(directory, name))
                    print(os.path.join(directory, name))
            except OSError:
                pass
for path in PATHS:
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        try:
            with socket.socket(socket.AF_UNIX, kind) as s:
                s.connect(path)
                print(path)
        except OSError:
            pass
"""
    runtime = f"/run/user/{UID}"
    known = [BUS, f"{runtime}/systemd/private", f"{runtime}/errand/launch", f"{runtime}/errand/broker/o1", f"{runtime}/errand/session/o1", f"{runtime}/errand/shim/o1",
             "/run/dbus/system_bus_socket"]
    owner = client()
    owner.create("o1", ["/usr/bin/python3", "-c", program.replace("PATHS", repr(known))], project=PROJECT)
    stdin, stdout, stderr = owner.stdio("o1")
    owner.session("o1", "Start")
    stdin.close()
    t.equal((stdout.read(), stderr.read()), ("", ""), "sockets that it could connect to")
    owner.wait("o1", "stopped")
    outside = run("/usr/bin/python3", "-c", program.replace("PATHS", repr(known)), account=OWNER).out
    for path in (BUS, f"{runtime}/systemd/private", f"{runtime}/errand/launch"):
        t.contains(outside, path, "what the account reaches outside")


@case("D007: a session as a unit of the account's own manager")
def _(t):
    t.log("journal", log)
    text = json.dumps({"project": PROJECT, "command": ["/bin/sh", "-c", "id -un; sleep infinity & wait"]})
    good("sh", "-c", f"mkdir -p {HOME}/.config/errand/sessions.d && cat >{HOME}/.config/errand/sessions.d/mine.json", account=OWNER, stdin=text)
    manager("start", "errand-session@mine.service")
    owner = client()
    t.equal(owner.state("mine"), "running", "state")
    t.contains(manager("status", "errand-session@mine.service").out, "Session mine runs")
    wait_for(lambda: owner.transcript("mine") == f"{OWNER}\n", "what it says")
    manager("stop", "errand-session@mine.service")
    t.equal((owner.state("mine"), owner.describe("mine")["ExitStatus"]), ("stopped", 143), "its end")


def errand(*arguments, **options):
    return run("env", f"XDG_RUNTIME_DIR=/run/user/{UID}", f"HOME={HOME}", "errand", *arguments, account=OWNER, **options)


@case("T: a configuration that is mended counts at the next call, also when a start has just failed and the bus still waits for it")
def _(t):
    t.log("journal", log)
    manager("stop", "errandd.service")
    configure('{"sandbox": {"memroy": "1g"}}')
    done = errand("threads", "list", "--user")
    t.equal(done.status, 5, f"exit code of errand, which said {done.err}")
    t.contains(done.err, "its configuration is refused", "what errand says")
    manager("reset-failed", "errandd.service")
    configure('{"sandbox": {"requireFullEnforcement": false, "gracePeriodMs": 5000}, "limits": {"brokersAhead": 0}}')
    done = errand("threads", "list", "--user")
    t.equal(done.status, 0, f"exit code of errand, which said {done.err}")


@case("T: systemctl --user reload returns when the new configuration counts, and fails where it is refused or nobody answers", timeout=90)
def _(t):
    t.log("journal", log)
    good_text = {"sandbox": {"requireFullEnforcement": False, "gracePeriodMs": 5000}, "limits": {"brokersAhead": 0}}
    t.defer(configure, json.dumps(good_text))
    for n in range(5):
        configure(json.dumps({**good_text, "sandbox": {**good_text["sandbox"], "env": {f"NEW{n}": "value"}}}))
        manager("reload", "errandd.service")
        t.contains(" ".join(client().get(ROOT, MANAGER, "Report")), f"NEW{n}", "the report")
    configure("{")
    t.check(manager("reload", "errandd.service", check=False).status != 0, "a reload of a file that is cut has succeeded")
    t.contains(" ".join(client().get(ROOT, MANAGER, "Report")), "NEW4", "the report after a refused one")
    t.equal(manager("is-active", "errandd.service").out.strip(), "active", "errandd's state")


@case("C200: an errandd of the account, one of the system and an embedded one, each with a session of the same id: none takes another's, whoever ends or comes back",
      timeout=90)
def _(t):
    t.log("journal", log)
    good("gpasswd", "--add", OWNER, "errand-users")
    system.configure()
    ways = {"--user": PROJECT, "--embedded": PROJECT, "--system": "beside"}
    for way, project in ways.items():
        good("env", f"XDG_RUNTIME_DIR=/run/user/{UID}", f"HOME={HOME}", "errand", "session", "create", way, "--id", "same", "--project", project, "--",
             "/bin/sh", "-c", f"echo {way}; sleep infinity", account=OWNER)
        good("env", f"XDG_RUNTIME_DIR=/run/user/{UID}", f"HOME={HOME}", "errand", "session", "start", way, "same", account=OWNER)

    def seen():
        return {way: errand("session", "logs", way, "same").out for way in ways}

    def states():
        return {way: json.loads(errand("session", "show", way, "--json", "same").out)["state"] for way in ways}
    t.equal(states(), dict.fromkeys(ways, "running"), "states")
    wait_for(lambda: seen() == {way: f"{way}\n" for way in ways}, "what each says")
    t.equal(sorted(n for n in os.listdir(f"/run/user/{UID}/errand") if "shim" in n), ["embedded-shim", "shim"], "where shims listen")
    manager("restart", "errandd.service")
    good("systemctl", "restart", "errandd.service")
    t.equal(states(), dict.fromkeys(ways, "running"), "states after both were restarted")
    # The end of the embedded one is that of its own session.
    good("pkill", "-KILL", "-u", OWNER, "-f", "errandd --embedded")
    wait_for(lambda: not os.listdir(f"/run/user/{UID}/errand/embedded-shim"), "end of the embedded session")
    t.equal(states(), {"--user": "running", "--embedded": "failed", "--system": "running"}, "states after the embedded one was killed")
    errand("session", "start", "--embedded", "same")
    errand("session", "stop", "--user", "same")
    t.equal(states(), {"--user": "stopped", "--embedded": "running", "--system": "running"}, "states after a stop")
    for way in ("--embedded", "--system"):
        errand("session", "stop", way, "same")


run_tests()
