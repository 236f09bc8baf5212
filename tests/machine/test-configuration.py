# SPDX-License-Identifier: LGPL-2.1-or-later
"""The configuration of the system's errandd: what it names, how it is read again, who its operators are, and where its state is."""

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
from errand_system import CONFIG, MANAGER, ROOT, SESSION, Client  # noqa: E402
from errand_test import case  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

OWNER, OPERATOR, MEMBER, STRANGER = "alice", "oscar", "carol", "mallory"
SANDBOX = {"requireFullEnforcement": False, "gracePeriodMs": 5000}

for name, groups in ((OWNER, ["errand-users"]), (OPERATOR, []), (MEMBER, ["errand-users"]), (STRANGER, [])):
    machine.account(name, *groups)
system.configure()


def write(config):
    machine.write(CONFIG, config if isinstance(config, str) else json.dumps(config, indent=1), 0o640)
    os.chown(CONFIG, 0, pwd.getpwnam("errand").pw_gid)


def report():
    return " ".join(" ".join(Client().get(ROOT, MANAGER, "Report")).split())


def status():
    return machine.show("errandd.service", "StatusText")


@case("S141: the owner and operators may grant, and stop; others may not")
def _(t):
    t.log("journal", system.log)
    system.configure({"operators": [OPERATOR], "sandbox": {"egress": {"allow": []}}})
    owner = Client(OWNER)
    owner.start("g1", ["/bin/sleep", "infinity"])
    t.defer(owner.end, "g1")
    path = f"{ROOT}/session/g1"
    for account in (OWNER, OPERATOR, "root"):
        Client(account).call(path, SESSION, "Grant", "ss", f"{account}.example.com", "10m")
        (said,) = Client(account).call(path, SESSION, "Say", "s", f"!grant {account}.example.net 10m")
        t.equal(said, f"{account}.example.net is granted for 10m.", f"what {account} is told in the thread")
    for account in (MEMBER, STRANGER):
        t.equal(Client(account).fails(path, SESSION, "Grant", "ss", f"{account}.example.com", "10m"), "org.errand1.Error.NotFound", account)
        t.equal(Client(account).fails(path, SESSION, "Stop"), "org.errand1.Error.NotFound", account)
        for said in (f"!grant {account}.example.net", "!stop", "!revoke root.example.net"):
            t.equal(Client(account).fails(path, SESSION, "Say", "s", said), "org.errand1.Error.NotFound", f"{account}: {said}")
    grants = {g[1]: g[4] for g in owner.manager("ListGrants", "s", "g1")[0]}
    t.equal(grants, {f"{a}.example.{domain}": pwd.getpwnam(a).pw_uid for a in (OWNER, OPERATOR, "root") for domain in ("com", "net")},
            "grants, and by whom")
    Client(OPERATOR).call(path, SESSION, "Say", "s", "!revoke root.example.net")
    Client(OPERATOR).call(path, SESSION, "Say", "s", "!stop")
    owner.wait("g1", "stopped")
    owner.session("g1", "Start")
    Client(OPERATOR).call(path, SESSION, "Stop")
    owner.wait("g1", "stopped")


@case("systemctl reload fails where the file is refused, and what was in force stays so; what is good counts for the next session, and for operators at once")
def _(t):
    t.log("journal", system.log)
    system.configure({"sandbox": {"egress": {"allow": ["one.example.com"]}}})
    owner = Client(OWNER)
    owner.start("r1", ["/bin/sleep", "infinity"])
    t.defer(owner.end, "r1")
    before, pid = report(), machine.pid_of("errandd.service")
    for bad in ("{", {"sandbox": {"memory": "lots"}}, {"sandbox": SANDBOX, "operatrs": [OPERATOR]}, {"sandbox": {"backend": "incus", "incus": {"image": "x"}}}):
        write(bad)
        done = run("systemctl", "reload", "errandd.service")
        t.check(done.status != 0, f"a reload of {bad!r}: {done}")
        t.equal(report(), before, "the report")
        t.contains(status(), "is refused, the one before stays in force", "the status")
    t.contains(machine.journal("-u", "errandd.service"), "sandbox.memory")
    write({"sandbox": {"memroy": "4g"}, "limits": {"maxLiveSessions": "many"}})
    run("systemctl", "reload", "errandd.service")
    for problem in ("sandbox.memroy: unknown key; did you mean sandbox.memory?", "limits.maxLiveSessions: must be a whole number, not a text"):
        t.matches(machine.journal("-u", "errandd.service"), rf"(?m) errandd\[\d+\]: {CONFIG}: {re.escape(problem)}$", "a line of the log")
    t.equal(machine.pid_of("errandd.service"), pid, "errandd's pid")
    write({"sandbox": {**SANDBOX, "env": {"NEW": "value"}, "egress": {"mode": "open"}}, "operators": [OPERATOR]})
    for n in range(20):  # at once, whatever the machine is busy with
        write({"sandbox": {**SANDBOX, "env": {f"NEW{n}": "value"}}})
        good("systemctl", "reload", "errandd.service")
        t.contains(report(), f"sessions have the variables: NEW{n}", "the report when a reload has returned")
    write({"sandbox": {**SANDBOX, "env": {"NEW": "value"}, "egress": {"mode": "open"}}, "operators": [OPERATOR]})
    good("systemctl", "reload", "errandd.service")
    t.contains(report(), "sessions have the variables: NEW", "the new configuration")
    t.equal(machine.show("errandd.service", "ActiveState"), "active", "errandd's state")
    wait_for(lambda: status() == "Serving org.errand1", "the status")
    run("systemctl", "kill", "--signal=HUP", "errandd.service")
    wait_for(lambda: machine.journal("-u", "errandd.service").count("the configuration was read again") == 22, "a reload by signal")
    wait_for(lambda: machine.show("errandd.service", "ActiveState") == "active", "errandd's state after it")
    t.equal(Client(OPERATOR).state("r1"), "running", "what an operator sees")
    owner.start("r2", ["/bin/sh", "-c", "echo $NEW; sleep 1000"])
    t.defer(owner.end, "r2")
    wait_for(lambda: owner.transcript("r2") == "value\n", "the variable in the next session")
    t.equal(owner.describe("r1")["BrokerUnit"], "errand-broker@r1.service", "the broker of the one that ran")


@case("errand config check and CheckConfiguration say what errandd's own account cannot have: keys, accounts, credentials")
def _(t):
    t.log("journal", system.log)
    machine.write("/etc/errand/roots.key", "sk-0123456789", 0o600)
    machine.write("/etc/errand/ours.key", "sk-0123456789", 0o640)
    os.chown("/etc/errand/ours.key", 0, pwd.getpwnam("errand").pw_gid)

    def provider(credential):
        return {"baseUrl": "https://p.example", "credential": credential}
    path = "/etc/errand/other.json"
    machine.write(path, json.dumps({"operators": ["root", "nosuch"], "agent": {"providers": {
        "roots": provider({"file": "/etc/errand/roots.key"}), "ours": provider({"file": "/etc/errand/ours.key"}),
        "gone": provider({"systemdCredential": "keys_gone"}), "empty": provider({"systemdCredential": "keys_empty"}),
        "spaced": provider({"systemdCredential": "keys_spaced"}), "there": provider({"systemdCredential": "keys_there"})}}}, indent=1), 0o644)
    for name, key in (("empty", "\n"), ("spaced", "sk-0123456789 x\n"), ("there", "sk-0123456789\n")):
        machine.write(f"/etc/errand/credentials/{name}", key, 0o600)
        t.defer(os.unlink, f"/etc/errand/credentials/{name}")
    done = run("errand", "config", "check", path)
    (sent,) = Client().manager("CheckConfiguration", "s", path)
    t.equal(done.status, 1, "the exit code")
    for told in (done.err, "\n".join(sent)):
        t.matches(told, rf'{path}:4: operators\[1\]: there is no account "nosuch"')
        t.matches(told, rf"{path}:\d+: agent\.providers\.roots\.credential: .*(cannot be read by the account errand|Permission denied)")
        t.matches(told, rf"{path}:\d+: agent\.providers\.gone\.credential: ")
        t.lacks(told, "providers.ours")
        t.lacks(told, "sk-0123456789")
    seen = json.loads(run("errand", "config", "check", "--json", path).out)
    t.equal((seen["accepted"], len(seen["findings"])), (True, 5), "the JSON")
    # Of root's files root alone can say what is in them.
    for name, problem in (("empty", "is empty"), ("spaced", "holds a character other than printable ASCII")):
        t.contains(done.err, f"agent.providers.{name}.credential: the systemd credential keys_{name} (/etc/errand/credentials/{name}) {problem}")
    t.lacks(done.err, "providers.there")


@case("a project that cannot be made is told once, with what to do")
def _(t):
    root = "/srv/errand"
    before = os.stat(root)
    t.defer(os.chown, root, before.st_uid, before.st_gid)
    os.chown(root, 0, 0)
    os.chmod(root, 0o755)
    t.defer(os.chmod, root, before.st_mode & 0o7777)
    done = run("errand", "run", "--project", "unmade", "--", "true", account=OWNER)
    t.equal(done.err, "errand: Failed to make a session: the project unmade cannot be made: the account that sessions run as cannot write "
            "to the place of projects; systemd-tmpfiles --create sets the usual one right\n", "what errand says")


@case("another stateDir is refused until drop-ins have moved the brokers' sockets, and then sessions are there", timeout=90)
def _(t):
    t.log("journal", system.log)
    state = "/srv/sessions"

    def restore():
        for drop_in in ("errand-broker@.socket", "errandd.service"):
            run("rm", "-rf", f"/etc/systemd/system/{drop_in}.d")
        run("systemctl", "daemon-reload")
        system.configure()
    t.defer(restore)
    errand, agent = pwd.getpwnam("errand"), pwd.getpwnam("errand-agent")
    os.mkdir(state, 0o750)
    os.chown(state, errand.pw_uid, agent.pw_gid)
    os.chmod(state, 0o2751)
    for drop_in in ("errand-broker@.socket", "errandd.service"):
        os.makedirs(f"/etc/systemd/system/{drop_in}.d", exist_ok=True)
    machine.write("/etc/systemd/system/errandd.service.d/state.conf", f"[Service]\nReadWritePaths={state}\n")
    good("systemctl", "daemon-reload")
    run("rmdir", "/etc/systemd/system/errand-broker@.socket.d")
    write({"stateDir": state, "sandbox": SANDBOX})
    t.matches(run("errand", "config", "check", CONFIG).err, rf"{CONFIG}:2: stateDir: the units keep the sockets of brokers in /var/lib/errand")
    run("systemctl", "restart", "errandd.service")
    wait_for(lambda: machine.show("errandd.service", "ExecMainStatus") == "2", "exit code 2")
    t.contains(machine.journal("-u", "errandd.service"), f"stateDir: the units have the sockets of brokers elsewhere than in {state}")
    os.makedirs("/etc/systemd/system/errand-broker@.socket.d")
    machine.write("/etc/systemd/system/errand-broker@.socket.d/state.conf",
                  f"[Socket]\nListenSequentialPacket=\nListenSequentialPacket={state}/%i/broker/session\n")
    good("systemctl", "daemon-reload")
    run("systemctl", "reset-failed", "errandd.service")
    good("systemctl", "restart", "errandd.service")
    owner = Client(OWNER)
    owner.start("m1", ["/bin/sh", "-c", "echo up; sleep 1000"])
    t.equal(owner.state("m1"), "running", "the session")
    wait_for(lambda: owner.transcript("m1") == "up\n", "its output")
    t.check(os.path.exists(f"{state}/m1/policy.toml") and not os.path.exists(f"{system.STATE}/m1"), "its files are elsewhere")
    owner.end("m1")
    owner.session("m1", "Collect")


@case("S208: a session of the system's that takes more of the disk than it may is stopped, also when it hides that from others", timeout=60)
def _(t):
    t.log("journal", system.log)
    system.configure({"sandbox": {"disk": "8m", "diskCheckMs": 200, "egress": {"allow": []}}})
    owner = Client(OWNER)
    owner.manager("Subscribe")
    for session, command in (("d1", "mkdir $HOME/x; head -c 16777216 /dev/urandom > $HOME/x/y; chmod 0 $HOME/x; sleep 1000"),
                             ("d2", "head -c 16777216 /dev/urandom > here; sleep 1000")):
        owner.start(session, ["/bin/sh", "-c", command])
        t.defer(owner.end, session)
        owner.wait(session, "stopped", "failed")
        t.equal(owner.get(f"{ROOT}/session/{session}", SESSION, "State"), "stopped", session)
        t.equal(owner.describe(session)["ExitReason"], "disk", session)
        t.contains(owner.transcript(session), "more than its budget of 8m (sandbox.disk), and is stopped]")
        try:
            owner.session(session, "Collect")
        except BusError as error:
            t.fail(f"{session} cannot be collected: {error}")


run_tests()
