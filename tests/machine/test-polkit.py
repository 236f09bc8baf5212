# SPDX-License-Identifier: LGPL-2.1-or-later
"""The rule for account errand on the real polkitd: what errandd needs passes, everything that leads to root's power is refused, and every
attack works as soon as a rule lets the account do what it likes."""

import contextlib
import os
import pwd
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
from errand_machine import good, is_active, run  # noqa: E402
from errand_test import case  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

PERMISSIVE = """polkit.addRule(function (action, subject) {
    if (action.id == "org.freedesktop.systemd1.manage-units" && subject.user != "mallory")
        return polkit.Result.YES;
});
"""
KNOWS_UNITS = machine.VERSION != "12"  # whether polkit gives rules the unit of whoever asks
ID_MAX = "a" * 28

machine.account("mallory")
ERRANDD = machine.Remote("errandd.service", "errand")
ELSEWHERE = machine.Remote("elsewhere", "errand")
AGENT = machine.Remote("agent", "errand-agent")
STRANGER = machine.Remote("stranger", "mallory")


def refused(done):
    """By authorization, and not for another reason."""
    return done.status != 0 and any(text in done.err for text in ("Access denied", "Permission denied", "nteractive authentication required"))


@contextlib.contextmanager
def permissive():
    path = "/etc/polkit-1/rules.d/00-permissive.rules"
    machine.write(path, PERMISSIVE)
    good("systemctl", "restart", "polkit.service")
    try:
        yield
    finally:
        os.unlink(path)
        good("systemctl", "restart", "polkit.service")


def setup_session(name):
    """The directory that errandd makes before it asks for the sockets."""
    errand, agent = pwd.getpwnam("errand"), pwd.getpwnam("errand-agent")
    for path, mode in ((f"/var/lib/errand/{name}", 0o2750), (f"/var/lib/errand/{name}/broker", 0o2710)):
        os.makedirs(path, exist_ok=True)
        os.chown(path, errand.pw_uid, agent.pw_gid)
        os.chmod(path, mode)


def allowed_names(session):
    return [f"errand-broker-control@{session}.socket", f"errand-broker@{session}.socket", f"errand-broker@{session}.service"]


@case("errandd starts and stops the units of a broker, and nobody else reaches their sockets but those who should")
def _(t):
    for session in ("s1", ID_MAX):
        setup_session(session)
        names = allowed_names(session)
        for name in names[1:]:
            t.equal(ERRANDD.systemd("StartUnit", "ss", name, "replace").err, "", f"start of {name}")
        machine.wait_for(lambda n=names: is_active(n[0]) and is_active(n[1]), "both sockets")
        control, hand_over = f"/run/errand/broker/{session}", f"/var/lib/errand/{session}/broker/session"

        def reach(row, places=(control, hand_over)):
            account, *expected = row
            program = "import socket,sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\ns.connect(sys.argv[1])"
            found = [run("/usr/bin/python3", "-c", program, place, account=account).status == 0 for place in places]
            t.equal(found, expected, f"reach of {account}")

        t.each([("mallory", False, False), ("errand-agent", False, True), ("errand", True, True)], reach)
        t.equal(ERRANDD.systemd("StopUnit", "ss", names[0], "replace").err, "", "stop of the control socket")
        machine.wait_for(lambda n=names: not any(is_active(name) for name in n), "end of all units")
        t.equal([p for p in (control, hand_over) if os.path.exists(p)], [], "sockets that were left")


def allows(action, account):
    """What polkit says of a process of that account, without asking anybody: pkcheck's exit status, 0 for yes."""
    with subprocess.Popen(("setpriv", f"--reuid={account}", f"--regid={pwd.getpwnam(account).pw_gid}", "--init-groups", "sleep", "infinity")) as process:
        try:
            def begun(): # before that it is still root's
                with open(f"/proc/{process.pid}/comm", encoding="utf-8") as f:
                    return f.read() == "sleep\n"

            machine.wait_for(begun, f"process of {account}")
            return run("pkcheck", "--action-id", action, "--process", str(process.pid)).status == 0
        finally:
            process.kill()


@case("members of errand-users create sessions, others do not, and what concerns others is nobody's without a password")
def _(t):
    machine.account("carol", "errand-users")

    def check(row):
        action, member, stranger = row
        t.equal((allows(action, "carol"), allows(action, "mallory")), (member, stranger), action)

    t.each([("org.errand1.create-session", True, False), ("org.errand1.create-others", False, False), ("org.errand1.manage-daemon", False, False)] +
           [(f"org.errand1.{what}-{whose}", whose == "own", whose == "own") for what in ("control", "attach", "grant", "read", "collect")
            for whose in ("own", "others")], check)


def victim():
    """A process of root's in a unit of its own."""
    if not is_active("victim.service"):
        good("systemd-run", "--unit=victim.service", "sleep", "infinity")
    return machine.pid_of("victim.service")


def transient(name, *properties, aux=("0",)):
    flat = [word for p in properties for word in p]
    return "StartTransientUnit", "ssa(sv)a(sa(sv))", name, "replace", str(len(properties)), *flat, *aux


def command(line):
    return "ExecStart", "a(sasb)", "1", "/bin/sh", "3", "/bin/sh", "-c", line, "false"


def attacks(target):
    """(what, arguments of the call, whether the attack has worked) for a process of target's; with a permissive rule each works."""
    yield ("adopting a process of root's", transient("errand-session-s1.scope", ("PIDs", "au", "1", str(victim()))),
           lambda: is_active("errand-session-s1.scope"))
    yield ("a scope that is named like a broker", transient("errand-broker-s1.scope", ("PIDs", "au", "1", str(victim()))),
           lambda: is_active("errand-broker-s1.scope"))
    yield ("starting a unit of root's by Wants=", transient("errand-session-s2.scope", ("PIDs", "au", "1", str(target.pid)), ("Wants", "as", "1", "rootjob.service")),
           lambda: is_active("rootjob.service"))
    yield ("stopping a unit by Conflicts=", transient("errand-session-s3.scope", ("PIDs", "au", "1", str(target.pid)), ("Conflicts", "as", "1", "bystander.service")),
           lambda: not is_active("bystander.service"))
    yield "running a program as root", transient("errand-session-s4.service", command("touch /run/got-root")), lambda: os.path.exists("/run/got-root")
    yield ("an auxiliary unit", transient("errand-session-s5.service", command("true"), ("Wants", "as", "1", "aux.service"), aux=("1", "aux.service", "1", *command("touch /run/got-aux"))),
           lambda: os.path.exists("/run/got-aux"))
    yield ("BindMountUnit", ("BindMountUnit", "sssbb", "errand-broker@mounted.service", "/root/private", "/mnt", "true", "false"),
           lambda: os.path.exists(f"/proc/{machine.pid_of('errand-broker@mounted.service')}/root/mnt/secret"))
    for verb, effect in (("RestartUnit", None), ("TryRestartUnit", None), ("ReloadOrRestartUnit", None)):
        yield verb, (verb, "ss", "errand-broker@mounted.service", "replace"), effect
    yield "MountImageUnit", ("MountImageUnit", "sssbba(ss)", "errand-broker@mounted.service", "/root/image", "/mnt", "true", "false", "0"), None
    yield ("KillUnit", ("KillUnit", "ssi", "errand-broker@mounted.service", "all", "10"), None)
    yield ("SetUnitProperties", ("SetUnitProperties", "sba(sv)", "errand-broker@mounted.service", "true", "1", "MemoryMax", "t", "1048576"), None)
    yield "RefUnit", ("RefUnit", "s", "errand-broker@mounted.service"), None
    for name in ("errandd.service", "errand-launch.service", "errand-launch.socket", "rootjob.service", "errand-broker@s1.target",
                 "errand-broker-control@s1.service", f"errand-broker@{ID_MAX}a.service", "errand-broker@S1.service", "errand-broker@s1-2.service",
                 "errand-broker@s1.service.socket", "xerrand-broker@s1.service", "errand-brokerx@s1.service", "errand-broker-control@s1@2.socket"):
        yield f"start of {name}", ("StartUnit", "ss", name, "replace"), None
    yield "stop of a unit", ("StopUnit", "ss", "other.service", "replace"), lambda: not is_active("other.service")


# systemd itself refuses these, whatever polkit says.
IMPOSSIBLE = [("StartUnit", "ss", name, "replace") for name in
              ("errand-broker@s1.service\n", "errand-broker@s1\n.service", "errand-broker@../x.service", "errand-broker@.service", "errand-broker@s1.service\nrootjob.service",
               "errand-broker@s1", "errand-broker@s1.service/../../x", "errand-broker@é.service", "")] + [
    transient(name, *properties, aux=aux) for name in allowed_names("s1") for properties, aux in
    (([command("touch /run/got-name")], ("0",)), ([], ("1", "aux.service", "1", *command("touch /run/got-name"))))] + [
    ("EnqueueUnitJob", "sss", "errand-broker@s1.service", "restart", "replace"),
    ("Reload",), ("SetEnvironment", "as", "1", "LD_PRELOAD=/x"), ("EnableUnitFiles", "asbb", "1", "/var/lib/errand/x.service", "true", "true")]


def prepare():
    for name in ("rootjob", "bystander", "other"):
        machine.unit(f"{name}.service", "[Service]\nExecStart=/bin/sleep infinity\n")
    machine.unit("errand-broker@mounted.service.d/test.conf",
                 "[Service]\nType=exec\nExecStart=\nExecStart=/bin/sleep infinity\nSystemCallFilter=\n")
    machine.write("/root/private/secret", "secret of root's\n", 0o600)
    os.chmod("/root/private", 0o700)
    for name in ("rootjob.service", "victim.service"):
        run("systemctl", "stop", name)
    good("systemctl", "start", "bystander.service", "other.service", "errand-broker-control@mounted.socket", "errand-broker@mounted.service")


def try_all(t, target):
    """→ what was not refused, or has worked in spite of that."""
    through = []
    for what, arguments, worked in attacks(target):
        done = target.systemd(*arguments)
        if not refused(done) or (worked and worked()):
            through.append(what)
            t.note(f"{what}: {done}")
    return through


@case("errandd itself is refused everything else: scopes, dependencies, foreign processes, other verbs, other units")
def _(t):
    prepare()
    t.equal(try_all(t, ERRANDD), [], "attacks that were not refused")


@case("names that systemd does not take stay refused, and a broker's name is no cover for a unit of one's own making")
def _(t):
    def check(arguments):
        done = ERRANDD.systemd(*arguments)
        t.check(done.status != 0, str(done))
        t.matches(done.err, "Invalid argument|not valid|missing the instance|Access denied|authentication required|already loaded or has a fragment", "reason")
        t.check(not os.path.exists("/run/got-name"), "it ran")

    t.each(IMPOSSIBLE, check)


@case("account errand elsewhere than in errandd.service gets nothing where polkit knows units, and no more than errandd where it does not")
def _(t):
    prepare()
    t.equal(try_all(t, ELSEWHERE), [], "attacks that were not refused")
    setup_session("s2")
    for name in allowed_names("s2")[:2]:
        done = ELSEWHERE.systemd("StartUnit", "ss", name, "replace")
        t.equal(refused(done), KNOWS_UNITS, f"whether {name} is refused: {done}")
        run("systemctl", "stop", name)


@case("account errand-agent and a stranger may not do what errandd may, and nothing else")
def _(t):
    prepare()
    for target in (AGENT, STRANGER):
        t.equal(try_all(t, target), [], f"attacks of {target.name} that were not refused")
        for name in allowed_names("s3"):
            for verb in ("StartUnit", "StopUnit"):
                done = target.systemd(verb, "ss", name, "replace")
                t.check(refused(done), f"{target.name}: {verb} {name}: {done}")


@case("each of these attacks works when a rule permits it, so that it is our rule that refuses it", timeout=90)
def _(t):
    prepare()
    with permissive():
        for what, arguments, worked in attacks(ERRANDD):
            done = ERRANDD.systemd(*arguments)
            t.check(not refused(done), f"{what}: {done}")
            if worked:
                machine.wait_for(worked, f"effect of {what}: {done}")


@case("PIDs of root's processes: with a permissive rule the victim dies, without it lives")
def _(t):
    def adopt():
        ERRANDD.systemd(*transient("errand-session-s9.scope", ("PIDs", "au", "1", str(victim()))))

    def stop():
        ERRANDD.systemd("StopUnit", "ss", "errand-session-s9.scope", "replace")

    pid = victim()
    adopt()
    stop()
    t.equal((is_active("victim.service"), machine.pid_of("victim.service")), (True, pid), "victim")
    with permissive():
        adopt()
        # A stop that comes before the start was carried out only takes its place.
        machine.wait_for(lambda: is_active("errand-session-s9.scope"), "scope around the victim")
        stop()
        machine.wait_for(lambda: not is_active("victim.service"), "death of the victim")


LINK = """import os, sys
session, victim = sys.argv[1:]
os.symlink(victim, "link")
print("ready", flush=True)
while not os.path.lexists(session):
    pass
os.rename("link", session)
"""


def give_away(session):
    """As account errand, puts a link to a file of root's where PID 1 has just made the session's socket; → whose the file is then."""
    victim_file = f"/etc/victim-{session}"
    machine.write(victim_file, "of root's\n")
    setup_session(session)
    place = f"/var/lib/errand/{session}/broker"
    with subprocess.Popen(("setpriv", "--reuid=errand", "--regid=errand", "--init-groups", "/usr/bin/python3", "-c", LINK, "session", victim_file),
                          cwd=place, stdout=subprocess.PIPE, text=True) as process:
        process.stdout.readline()
        run("systemctl", "start", f"errand-broker@{session}.socket")
        run("systemctl", "stop", f"errand-broker-control@{session}.socket")
        process.kill()
    return pwd.getpwuid(os.stat(victim_file).st_uid).pw_name


@case("PID 1 gives no file away that account errand puts in the place of a session's socket")
def _(t):
    for n in range(20):
        t.equal(give_away(f"safe{n}"), "root", "owner of a file of root's")
    # The same race with the unit as one would write it at first: won at once, but it is a race.
    machine.unit("errand-broker@.socket.d/test.conf", "[Socket]\nSocketUser=errand-agent\n")
    t.defer(machine.no_unit, "errand-broker@.socket.d/test.conf")
    t.check(any(give_away(f"race{n}") == "errand-agent" for n in range(50)), "the race was never won: nothing was shown")


run_tests()
