# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sessions as units: errand-session@NAME, and the scopes of sessions, as an administrator has them with systemctl."""

import glob
import json
import os
import pwd
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_machine import good, run, wait_for  # noqa: E402
from errand_system import Client  # noqa: E402
from errand_test import case  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

OWNER = "alice"
FILES = "/etc/errand/sessions.d"

machine.account(OWNER, "errand-users")
machine.account("mallory")
system.configure({"sandbox": {"gracePeriodMs": 1000}})


def describe(name, command, mode=0o644, **members):
    machine.write(f"{FILES}/{name}.json", json.dumps({"project": "units", "command": command, **members}), mode)
    return f"errand-session@{name}.service"


def ended(t, unit, result, status):
    wait_for(lambda: machine.show(unit, "ActiveState") in ("inactive", "failed"), f"end of {unit}")
    t.equal((machine.show(unit, "Result"), machine.show(unit, "ExecMainStatus")), (result, str(status)), f"how {unit} ended")


def written(unit):
    return machine.journal("-u", unit, output="cat")


def lines_of(account, *match):
    """What errand said as that account. By this, and not by its process or unit: of one that has ended before the journal comes to its lines, that knows no more."""
    found = machine.journal("--all", "SYSLOG_IDENTIFIER=errand", f"_UID={pwd.getpwnam(account).pw_uid}", *match, output="json")
    return [json.loads(line) for line in found.splitlines()]


def shell(text):
    return ["/bin/sh", "-c", text]


@case("D007: a session is started, shown and stopped as a unit; what it writes is in its journal")
def _(t):
    t.log("journal", system.log)
    unit = describe("nightly", shell("echo begun; echo wrong >&2; sleep infinity & wait"), env={"COLOUR": "blue"})
    good("systemctl", "start", unit)  # which waits until it runs
    root = Client()
    t.equal(root.state("nightly"), "running", "state")
    t.equal(root.describe("nightly")["OwnerUid"], 0, "its owner")
    t.contains(good("systemctl", "--no-pager", "status", unit), "Session nightly runs")
    wait_for(lambda: "begun\n" in written(unit) and "wrong\n" in written(unit), "output in the journal")
    good("systemctl", "stop", unit)
    t.equal(machine.show(unit, "ActiveState"), "inactive", "the unit")
    end = root.describe("nightly")
    t.equal((end["State"], end["ExitStatus"]), ("stopped", 143), "the session's end")
    wait_for(lambda: system.agent_manager("is-active", "errand-session-nightly.scope").status != 0, "end of its scope, which goes when it is empty")


@case("D007: what a session writes is no graver in the journal than anything else that it writes")
def _(t):
    write = r"printf '<0>one\n'; printf '%060000d<0>two\n' 0; printf 'three\0<1>four\n'; echo last; sleep infinity"
    unit = describe("loud", shell(write))
    good("systemctl", "start", unit)
    t.defer(good, "systemctl", "stop", unit)
    wait_for(lambda: "last\n" in written(unit), "its last line")
    said = lines_of("root", f"_SYSTEMD_UNIT={unit}")
    for text in ("<0>one", "<0>two", "<1>four"):
        t.check(any(entry["MESSAGE"].endswith(text) for entry in said), f"{text} is not in {[entry['MESSAGE'][-40:] for entry in said]}")
    t.equal({entry["PRIORITY"] for entry in said}, {"6"}, "priorities")


@case("D007: nor is what comes by a unit of one's own that runs errand, whatever that unit says of priorities", timeout=60)
def _(t):
    machine.write("/usr/local/bin/grave", "#!/bin/sh\nprintf '<0>own one\\n' >&2; printf '<1>two\\n'; printf '%060000d<0>three\\n' 0; printf 'four\\0<2>five\\n'; echo own last\n",
                  0o755)
    for account in ("root", OWNER):
        unit = f"own-{account}.service"
        machine.unit(unit, f"[Service]\nType=oneshot\nUser={account}\nExecStart=errand run --system --project own{account} -- grave\n")
        t.defer(machine.no_unit, unit)
        good("systemctl", "start", unit)
        shown = [(entry["MESSAGE"][-40:], entry["PRIORITY"]) for entry in lines_of(account)]
        for text in ("<0>own one", "<1>two", "<0>three", "<2>five", "own last"):
            t.check(any(message.endswith(text) and priority == "6" for message, priority in shown), f"{account}: {text} is not in {shown}")


@case("D007: what errand wrote last as an ordinary account is its unit's, also where the journal is late", timeout=60)
def _(t):
    unit = "late.service"
    machine.unit(unit, f"[Service]\nType=exec\nUser={OWNER}\nExecStart=errand --version\n")
    t.defer(machine.no_unit, unit)
    journal = machine.pid_of("systemd-journald.service")
    os.kill(journal, signal.SIGSTOP)
    try:
        good("systemctl", "start", unit)  # it is executed now
        time.sleep(0.6)  # so late is the journal
    finally:
        os.kill(journal, signal.SIGCONT)
    wait_for(lambda: machine.show(unit, "ActiveState") == "inactive", "end of the unit")
    wait_for(lambda: any(entry["MESSAGE"].startswith("errand ") for entry in lines_of(OWNER)), "its line")
    t.equal({entry.get("_SYSTEMD_UNIT") for entry in lines_of(OWNER) if entry["MESSAGE"].startswith("errand ")}, {unit}, "whose it is")


@case("D007: its exit status is the unit's; a set-up that fails fails the start", timeout=60)
def _(t):
    unit = describe("ends", shell("echo last words; exit 7"))
    good("systemctl", "start", unit)
    ended(t, unit, "exit-code", 7)
    t.contains(written(unit), "last words\n")
    unit = describe("short", ["/bin/true"])
    good("systemctl", "start", unit)
    ended(t, unit, "success", 0)
    unit = describe("missing", ["/no/such/command"])
    t.check(run("systemctl", "start", unit).status != 0, "a command that is not there has been started")
    ended(t, unit, "exit-code", 127)


@case("D007: started again it is the same session, with its record; after a change of its file another one", timeout=60)
def _(t):
    t.log("journal", system.log)
    unit = describe("again", shell("echo run >>$HOME/count; wc -l <$HOME/count"))
    root = Client()
    for n in (1, 2):
        good("systemctl", "start", unit)
        ended(t, unit, "success", 0)
        t.equal(root.transcript("again"), "".join(f"{i + 1}\n" for i in range(n)), "transcript")
    t.equal(written(unit).count("\n1\n"), 1, "times that the first line is in the journal")
    created = root.describe("again")["CreatedUSec"]
    describe("again", shell("test ! -e $HOME/count && echo changed"))
    good("systemctl", "start", unit)
    ended(t, unit, "success", 0)
    t.check(root.describe("again")["CreatedUSec"] > created, "it is the session of before")
    t.equal(root.transcript("again"), "changed\n", "transcript")


@case("D007: User= makes it that account's, when that may create sessions")
def _(t):
    for account, may in ((OWNER, True), ("mallory", False)):
        unit = describe(f"of{account}", ["/bin/sleep", "infinity"], project=account)
        os.chown(f"{FILES}/of{account}.json", pwd.getpwnam(account).pw_uid, 0)
        machine.unit(f"{unit}.d/user.conf", f"[Service]\nUser={account}\n")
        done = run("systemctl", "start", unit)
        t.equal(done.status == 0, may, f"start as {account}: {done}, {lines_of(account)}")
    t.equal(Client(OWNER).describe(f"of{OWNER}")["OwnerUid"], pwd.getpwnam(OWNER).pw_uid, "owner")
    t.contains("".join(entry["MESSAGE"] for entry in lines_of("mallory")), "not")
    good("systemctl", "stop", f"errand-session@of{OWNER}.service")


@case("D007: a member takes no id that a file of root's is about, whatever is in the file; root and the file's owner do")
def _(t):
    member = Client(OWNER)
    create = (system.ROOT, system.MANAGER, "CreateSession", "a{sv}")

    def wanted(session):
        return {"id": ("s", session), "project": ("s", "mine"), "command": ("as", ["/bin/true"])}
    machine.write(f"{FILES}/broken.json", "{")
    os.symlink("/nonexistent", f"{FILES}/dangling.json")
    os.mkdir(f"{FILES}/directory.json")
    describe("given", ["/bin/true"])
    os.chown(f"{FILES}/given.json", pwd.getpwnam("mallory").pw_uid, 0)
    for session in ("broken", "dangling", "directory", "given"):
        t.equal(member.fails(*create, wanted(session)), "org.errand1.Error.NotPermitted", session)
    try:
        member.call(*create, wanted("broken"))
    except system.BusError as error:
        t.contains(str(error), f"id: broken is kept for errand-session@broken.service, which {FILES}/broken.json describes; choose another id")
    member.call(*create, wanted("free"))
    Client().create("broken", ["/bin/true"], project="roots")
    os.chown(f"{FILES}/given.json", pwd.getpwnam(OWNER).pw_uid, 0)
    member.call(*create, wanted("given"))


@case("a session of that name that is somebody else's is neither started nor stopped by the unit")
def _(t):
    owner = Client(OWNER)
    owner.start("taken", ["/bin/sleep", "infinity"], project="demo")
    t.defer(owner.end, "taken")
    unit = describe("taken", ["/bin/sleep", "infinity"])
    t.check(run("systemctl", "start", unit).status != 0, "it was started")
    ended(t, unit, "exit-code", 125)
    t.contains(written(unit), "belongs to uid")
    t.equal(owner.state("taken"), "running", "state")


@case("T007: a unit of root's does not run in a project whose name another account took first")
def _(t):
    member = Client(OWNER)
    member.start("first", ["/bin/true"], project="early")
    wait_for(lambda: member.state("first") == "stopped", "end of the member's")
    unit = describe("late", ["/bin/sh", "-c", "echo $SECRET"], project="early", env={"SECRET": "s3cret"})
    t.check(run("systemctl", "start", unit).status != 0, "it was started")
    ended(t, unit, "exit-code", 125)
    t.contains(written(unit), "the project early is another account's")
    t.lacks(written(unit), "s3cret")
    unit = describe("late", ["/bin/sh", "-c", "echo $SECRET"], project="later", env={"SECRET": "s3cret"})
    good("systemctl", "start", unit)
    wait_for(lambda: "s3cret" in written(unit), "its output, in a project of root's own")


@case("the unit's program killed: the session goes on, and is found again; errandd restarted meanwhile as well", timeout=60)
def _(t):
    t.log("journal", system.log)
    unit = describe("kept", shell("mkfifo in-kept; echo up; exec <in-kept; while read line; do echo got $line; done; exit 3"))
    good("systemctl", "start", unit)
    wait_for(lambda: "up\n" in written(unit), "its first line")
    with open("/srv/errand/units/in-kept", "w", encoding="utf-8") as pipe:
        system.kill(unit)
        wait_for(lambda: "kept runs already, and is followed" in written(unit), "word of it")
        good("systemctl", "restart", "errandd.service")
        print("there", file=pipe, flush=True)
        wait_for(lambda: "got there\n" in written(unit), "what it writes then")
        t.equal(Client().state("kept"), "running", "state")
        t.equal(written(unit).count("up\n"), 1, "times that its first line is there")
    ended(t, unit, "exit-code", 3)


@case("T007: a file that somebody else could have written, or put there, starts nothing", timeout=60)
def _(t):
    command = shell("touch started")

    def refused(name, word):
        unit = f"errand-session@{name}.service"
        done = run("systemctl", "start", unit)
        t.check(done.status != 0, f"{name} was started: {done}")
        t.equal(machine.show(unit, "ExecMainStatus"), "125", f"status of {name}")
        t.contains(written(unit), word, f"what is said of {name}")
        t.check(not glob.glob(f"/var/lib/errand/.records/{name}"), f"there is a session {name}")

    for mode in (0o666, 0o664, 0o646):
        describe(f"mode{mode:o}", command, mode)
        refused(f"mode{mode:o}", "may be written by other accounts")
    describe("foreign", command)
    os.chown(f"{FILES}/foreign.json", pwd.getpwnam("errand").pw_uid, 0)
    refused("foreign", "belongs to uid")
    describe("real", command)
    os.symlink("real.json", f"{FILES}/link.json")
    refused("link", "symbolic link")
    os.mkfifo(f"{FILES}/fifo.json", 0o644)
    refused("fifo", "no regular file")
    machine.write(f"{FILES}/half.json", '{"project": "units", "comm')
    refused("half", "line 1")
    describe("unknown", command, user="root")
    refused("unknown", '"user" is nothing')
    describe("typed", "true")
    refused("typed", "list of strings")
    refused("nothere", "cannot be opened")
    refused("no-id", "named after it")
    os.chmod(FILES, 0o777)
    t.defer(os.chmod, FILES, 0o755)
    refused("real", "put another file there")


@case("D007: systemctl shows, limits and stops the scope of a session, and what it limits is in the kernel's files where there are any")
def _(t):
    t.log("journal", system.log)
    owner = Client(OWNER)
    owner.start("scoped", ["/bin/sleep", "infinity"])
    t.defer(owner.end, "scoped")
    scope = "errand-session-scoped.scope"
    t.equal(system.agent_manager("set-property", "--runtime", scope, "MemoryMax=128M", "TasksMax=77").status, 0, "set-property")
    shown = [machine.show(scope, p, "--user", "-M", "errand-agent@.host") for p in ("MemoryMax", "TasksMax")]
    t.equal(shown, [str(128 << 20), "77"], "limits that are shown")
    directory = "/sys/fs/cgroup" + machine.show(scope, "ControlGroup", "--user", "-M", "errand-agent@.host")
    found = {}
    for name in ("memory.max", "pids.max"):
        if os.path.exists(f"{directory}/{name}"):
            with open(f"{directory}/{name}", encoding="ascii") as f:
                found[name] = f.read().strip()
    t.note(f"the kernel's files: {found or 'none, it has no such controllers here'}")
    t.equal(found, {n: v for n, v in (("memory.max", str(128 << 20)), ("pids.max", "77")) if n in found}, "limits in the kernel")
    t.equal(system.agent_manager("stop", scope).status, 0, "stop")
    owner.wait("scoped", "stopped", "failed")
    t.equal(owner.describe("scoped")["ExitStatus"] in (137, 143), True, f"its end: {owner.describe('scoped')}")
    for other in (OWNER, "mallory"):
        done = run("systemctl", "--user", "-M", "errand-agent@.host", "stop", "errand.slice", account=other)
        t.check(done.status != 0, f"{other} may command the manager of errand-agent: {done}")


run_tests()
