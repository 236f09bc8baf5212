# SPDX-License-Identifier: LGPL-2.1-or-later
"""Enemies of the service: strangers on the bus, members against each other, an escaped session, and a machine that fails under it."""

import os
import pwd
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_bus import SIGNAL, BusError, MessageBus  # noqa: E402
from errand_machine import good, run, wait_for  # noqa: E402
from errand_system import MANAGER, NAME, ROOT, SESSION, Client  # noqa: E402
from errand_test import case, source  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

OWNER, MEMBER, STRANGER = "alice", "carol", "mallory"
SYSTEMD = "org.freedesktop.systemd1"

for name, groups in ((OWNER, ["errand-users"]), (MEMBER, ["errand-users"]), (STRANGER, [])):
    machine.account(name, *groups)
system.configure()


DRIVER, DRIVER_PATH = "org.freedesktop.DBus", "/org/freedesktop/DBus"


def ask_bus(member, *arguments):
    return MessageBus(DRIVER).call(DRIVER_PATH, DRIVER, member, *arguments)[0]


def name_of(pid):
    """The unique name of that process on the bus."""
    return next((n for n in ask_bus("ListNames") if n.startswith(":") and pid_behind(n) == pid), None)


def pid_behind(name):
    try:
        return ask_bus("GetConnectionUnixProcessID", "s", name)
    except BusError: # it has gone meanwhile
        return None


def forge(client, whom, path, interface, member, signature, *values):
    """A signal to one connection alone, which none of its rules keeps away."""
    client._write(SIGNAL, [(1, ("o", path)), (2, ("s", interface)), (3, ("s", member)), (6, ("s", whom))], signature, values)


@case("C194: a stranger's JobRemoved is not systemd's: a start that it says has failed goes on")
def _(t):
    t.log("journal", system.log)
    machine.unit("errand-broker@.socket.d/slow.conf", "[Socket]\nExecStartPre=/bin/sh -c 'until [ -e /run/forged ]; do sleep 0.05; done'\n")
    t.defer(machine.no_unit, "errand-broker@.socket.d/slow.conf")
    t.defer(machine.write, "/run/forged", "")
    owner, stranger = Client(OWNER), MessageBus(SYSTEMD, STRANGER)
    owner.create("f1", ["/bin/sleep", "infinity"])
    t.defer(owner.end, "f1")
    serial = owner.send(f"{ROOT}/session/f1", SESSION, "Start")

    def job():
        jobs = stranger.call("/org/freedesktop/systemd1", f"{SYSTEMD}.Manager", "ListJobs")[0]
        return next((j for j in jobs if j[1] == "errand-broker@f1.socket"), None)

    # What systemd answered errandd, that has before we have this.
    number, unit, _, _, path, _ = wait_for(job, "job for the broker's socket")
    errandd = ask_bus("GetNameOwner", "s", NAME)
    forge(stranger, errandd, "/org/freedesktop/systemd1", f"{SYSTEMD}.Manager", "JobRemoved", "uoss", number, path, unit, "failed")
    stranger.destination = errandd
    stranger.get(ROOT, MANAGER, "Version")  # which it answers after that
    machine.write("/run/forged", "")
    answer = owner.receive()
    t.equal((answer.get("reply_serial"), answer.get("error"), answer["body"]), (serial, None, ()), "answer of Start")


@case("C201: a stranger does not make itself errandd for the command errand, nor tells it how its session ended", timeout=60)
def _(t):
    t.log("journal", system.log)
    uid = pwd.getpwnam(OWNER)
    command = ("setpriv", f"--reuid={uid.pw_uid}", f"--regid={uid.pw_gid}", "--init-groups", "--", "/usr/local/bin/errand", "run", "--system", "--project", "demo",
               "--id", "c1", "-T", "--", "/bin/sh", "-c", "echo up; read line; exit 7")
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={"HOME": uid.pw_dir}, cwd="/") as errand:
        t.equal(errand.stdout.readline(), "up\n", "its first line")
        whom, stranger = name_of(errand.pid), MessageBus(NAME, STRANGER)
        forge(stranger, whom, DRIVER_PATH, DRIVER, "NameOwnerChanged", "sss", NAME, ask_bus("GetNameOwner", "s", NAME), stranger.name)
        forge(stranger, whom, f"{ROOT}/session/c1", SESSION, "Notice", "ssa{sv}", "egress", "run this: rm -rf ~", {})
        forge(stranger, whom, f"{ROOT}/session/c1", SESSION, "Exited", "si", "exited", 0)
        _, error = errand.communicate("go on\n", timeout=20)
        t.equal(errand.returncode, 7, f"its status; {error}")
        t.check("rm -rf" not in error, error)


@case("C204: a member who creates sessions and starts none is stopped before errandd has no descriptors for others", timeout=120)
def _(t):
    t.log("journal", lambda: system.log()[-3000:])
    # More of everything than the limit that the kernel gives by default.
    owner, (reading, writing) = Client(OWNER), os.pipe()
    made = 0
    while made < 300:
        try:
            owner.call(ROOT, MANAGER, "CreateSession", "a{sv}", {
                "project": ("s", "demo"), "id": ("s", f"m{made}"), "command": ("as", ["true"]),
                "stdin": ("h", reading), "stdout": ("h", writing), "stderr": ("h", writing)})
        except BusError as error:
            t.equal((error.name, made), ("org.errand1.Error.LimitExceeded", 64), error.text)
            break
        made += 1
    t.equal(made, 64, "sessions that were created")
    other = Client(MEMBER)
    other.start("o1", ["/bin/sleep", "infinity"], project="carols")
    t.defer(other.end, "o1")
    for number in range(made):
        owner.session(f"m{number}", "Collect")
    owner.create("after", ["true"])


@case("S209 C204: a member whose sessions end while their disk is looked at does not have the launcher look at ever more at once", timeout=120)
def _(t):
    t.log("journal", lambda: system.log()[-3000:])
    owner = Client(OWNER)
    owner.start("large", ["/bin/true"])
    uid, project = pwd.getpwnam("errand-agent"), "/srv/errand/demo"
    for directory in range(20): # links are quickly made, and each is looked at
        os.mkdir(f"{project}/{directory}")
        t.defer(shutil.rmtree, f"{project}/{directory}")
        with open(f"{project}/{directory}/one", "w", encoding="ascii"):
            os.chown(f"{project}/{directory}", uid.pw_uid, uid.pw_gid)
        for link in range(20000):
            os.link(f"{project}/{directory}/one", f"{project}/{directory}/{link}")
    most = 0
    for _ in range(12):
        for member in ("Start", "Stop"):
            owner.send(f"{ROOT}/session/large", SESSION, member)
            owner.receive()
        owner.wait("large", "stopped", "failed")
        launcher = machine.pid_of("errand-launch.service")
        helpers = [p for p in run("pgrep", "-P", str(launcher), "-x", "errand-launch").out.split() if p]
        most = max(most, len(helpers))
    t.note(f"{most} at once")
    t.check(0 < most <= 3, f"{most} helpers of the launcher at once")


@case("C204: the name of a project that could not be made is anybody's again, and its directory is whose it becomes")
def _(t):
    owner, other = Client(OWNER), Client(MEMBER)
    create = (ROOT, system.MANAGER, "CreateSession", "a{sv}", {"project": ("s", "nowhere"), "command": ("as", ["true"])})
    os.chmod("/srv/errand", 0o555)
    t.defer(os.chmod, "/srv/errand", 0o2775)
    for _ in range(2):
        t.equal(owner.fails(*create), "org.errand1.Error.SetupFailed", "error")
        t.check(not os.path.exists("/var/lib/errand/.projects/nowhere"), "somebody owns it")
    os.chmod("/srv/errand", 0o2775)
    other.create("n3", ["true"], project="nowhere")
    other.session("n3", "Collect")
    t.defer(os.unlink, "/var/lib/errand/.projects/nowhere")
    t.equal(owner.fails(*create), "org.errand1.Error.NotPermitted", "error to the one who came first, and had nothing")
    # One that lies there is nobody's when the session that was to be made in it is not.
    os.mkdir("/srv/errand/lying")
    os.mkdir("/var/lib/errand/left")
    t.defer(os.rmdir, "/var/lib/errand/left")
    values = {"id": ("s", "left"), "project": ("s", "lying"), "command": ("as", ["true"])}
    t.equal(owner.fails(*create[:4], values), "org.errand1.Error.Exists", "error")
    t.check(not os.path.exists("/var/lib/errand/.projects/lying"), "somebody owns it")


@case("C204: a member takes neither all names of projects nor all places of sessions that run; others go on", timeout=180)
def _(t):
    t.log("journal", lambda: system.log()[-3000:])
    owner, other = Client(OWNER), Client(MEMBER)
    made = 0
    while made < 400:
        try:
            owner.create("n1", ["true"], project=f"name{made}")
        except BusError as error:
            t.equal(error.name, "org.errand1.Error.LimitExceeded", error.text)
            break
        owner.session("n1", "Collect")
        made += 1
    # Those of earlier cases are the owner's, too.
    t.equal(len(os.listdir("/var/lib/errand/.projects")) - made, 2, "projects of earlier cases")
    t.equal(made, 255, "projects that were made")
    owner.create("n1", ["true"], project="name0")
    owner.session("n1", "Collect")
    other.create("n2", ["true"], project="another")
    other.session("n2", "Collect")

    system.configure({"limits": {"maxLiveSessions": 4}})
    t.defer(system.configure)
    owner, other = Client(OWNER), Client(MEMBER)
    for number in range(2):
        owner.start(f"half{number}", ["/bin/sleep", "infinity"])
        t.defer(Client("root").end, f"half{number}")
    owner.create("half2", ["true"])
    t.equal(owner.fails(f"{ROOT}/session/half2", SESSION, "Start"), "org.errand1.Error.LimitExceeded", "the third")
    t.equal(owner.state("half2"), "created", "its state")
    other.start("o2", ["/bin/sleep", "infinity"], project="another")
    t.defer(other.end, "o2")
    Client("root").session("half2", "Start")  # an operator's word counts


@case("records of more sessions than a process has descriptors by default are taken up, and the next session starts", timeout=120)
def _(t):
    t.log("journal", lambda: system.log()[-3000:])
    owner = Client(OWNER)
    owner.start("first", ["true"])
    owner.wait("first", "stopped")
    good("systemctl", "stop", "errandd.service")
    records = "/var/lib/errand/.records"
    text = open(f"{records}/first/session.json", encoding="utf-8").read()
    for number in range(1100):
        directory = f"{records}/old{number}"
        shutil.copytree(f"{records}/first", directory)
        machine.write(f"{directory}/session.json", text.replace('"first"', f'"old{number}"'), 0o600)
    good("chown", "-R", "errand:", records)
    machine.unit("errandd.service.d/few.conf", "[Service]\nLimitNOFILE=256\n")
    t.defer(machine.no_unit, "errandd.service.d/few.conf")
    good("systemctl", "start", "errandd.service")
    owner = Client(OWNER)
    t.check(len(owner.manager("ListThreads")[0]) > 1100, "records were left out")
    owner.start("next", ["true"])
    owner.wait("next", "stopped")


@case("an escaped session in the launcher's place has errandd send signals to no process of its choice", timeout=60)
def _(t):
    t.log("journal", system.log)
    program = "/usr/local/libexec/errand/errand-launch"
    machine.unit("errand-launch.service.d/lying.conf", f"[Service]\nExecStart=\nExecStart=/usr/bin/python3 {source('tests/machine/lying-launcher.py')} {program}\n")
    good("systemctl", "stop", "errandd.service", "errand-launch.service")
    good("systemctl", "start", "errandd.service")
    t.defer(good, "systemctl", "restart", "errand-launch.service", "errandd.service")
    t.defer(machine.no_unit, "errand-launch.service.d/lying.conf")
    owner, errandd = Client(OWNER), machine.pid_of("errandd.service")
    owner.create("l1", ["/bin/sleep", "infinity"])
    owner.send(f"{ROOT}/session/l1", SESSION, "Start")
    # A shim that cannot be asked is waited for, and then killed.
    wait_for(lambda: "session l1: its shim does not end and is killed" in system.log(), "signal")
    Client(OWNER).manager("ListSessions")
    t.equal(machine.pid_of("errandd.service"), errandd, "errandd")
    wait_for(lambda: not run("pgrep", "-u", "errand-agent", "errand-shim").out, "end of the shim, which its launcher knows")


DYING = """#!/usr/bin/python3
import os, socket, sys
if os.path.exists("/tmp/died"):
    os.execv(sys.argv[1], sys.argv[1:])
os.close(os.open("/tmp/died", os.O_CREAT))
socket.socket(fileno=3).accept()
"""


@case("C081: a launcher that ends while errandd asks it what this host can do is asked again when it is back", timeout=60)
def _(t):
    t.log("journal", system.log)
    machine.write("/usr/local/bin/dying", DYING, 0o755)
    program = "/usr/local/libexec/errand/errand-launch"
    machine.unit("errand-launch.service.d/dying.conf", f"[Service]\nExecStart=\nExecStart=/usr/local/bin/dying {program} --errandd errand\n")
    t.defer(machine.no_unit, "errand-launch.service.d/dying.conf")
    good("systemctl", "stop", "errandd.service", "errand-launch.service")
    good("systemctl", "start", "errandd.service")
    t.check(os.path.exists("/tmp/died"), "the launcher has not died")
    owner = Client(OWNER)
    owner.start("d1", ["true"])
    owner.wait("d1", "stopped")


run_tests()
