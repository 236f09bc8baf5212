# SPDX-License-Identifier: LGPL-2.1-or-later
"""A session on the system bus: made by what every Debian has, seen and denied as it should be, and found again."""

import json
import os
import pwd
import re
import signal
import socket
import subprocess
import sys
import xml.etree.ElementTree as tree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_machine import good, run, wait_for  # noqa: E402
from errand_system import MANAGER, NAME, ROOT, SESSION, Client  # noqa: E402
from errand_test import case, source  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

OWNER, MEMBER, STRANGER = "alice", "carol", "mallory"
DENIED = "org.errand1.Error.NotPermitted"

for name, groups in ((OWNER, ["errand-users"]), (MEMBER, ["errand-users"]), (STRANGER, [])):
    machine.account(name, *groups)
system.configure()


def busctl(account, *arguments):
    return good("busctl", "--system", *arguments, account=account)


@case("D002 D003 D005: busctl makes, starts and looks at a session; its signals go to who subscribed, and the system's tools show its units")
def _(t):
    t.log("journal", system.log)
    path = f"{ROOT}/session/b1"
    watcher = Client(OWNER)
    watcher.manager("Subscribe")
    with subprocess.Popen(("busctl", "--system", "monitor", NAME), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as monitor:
        monitor.stderr.readline()  # "Monitoring bus message stream."
        made = busctl(OWNER, "call", "--", NAME, ROOT, MANAGER, "CreateSession", "a{sv}", "3", "id", "s", "b1", "project", "s", "busctl",
                      "command", "as", "3", "/bin/sh", "-c", "echo started; read line; echo $line; exit 7")
        t.equal(made, f'o "{path}"\n', "answer of CreateSession")
        stdin, stdout, _ = watcher.stdio("b1")
        t.equal(busctl(OWNER, "call", NAME, path, SESSION, "Start"), "", "answer of Start")
        watcher.wait("b1", "running")
        t.equal(stdout.readline(), "started\n", "first line")

        for prop, expected in (("State", 's "running"'), ("Id", 's "b1"'), ("OwnerUid", f"u {pwd.getpwnam(OWNER).pw_uid}"),
                               ("ScopeUnit", 's "errand-session-b1.scope"'), ("BrokerUnit", 's "errand-broker@b1.service"')):
            t.equal(busctl(OWNER, "get-property", NAME, path, SESSION, prop), f"{expected}\n", prop)
        seen = system.agent_manager("status", "errand-session-b1.scope")
        t.equal(seen.status, 0, f"status of the scope: {seen}")
        t.contains(seen.out, "errand.slice/errand-session-b1.scope")
        t.contains(seen.out, "/bin/sh -c")
        t.contains(good("systemctl", "--no-pager", "status", "errand-broker@b1.service"), "errand-broker")

        stdin.write("and ended\n")
        stdin.flush()
        exited = watcher.signal("Exited")
        t.equal((exited["path"], exited["body"]), (path, ("exited", 7)), "signal Exited")
        watcher.wait("b1", "stopped")
        wait_for(lambda: not machine.show("errand-session-b1.scope", "LoadState", "--user", "-M", "errand-agent@.host") == "loaded", "end of the scope")
        wait_for(lambda: not any(machine.is_active(u) for u in ("errand-broker@b1.service", "errand-broker@b1.socket", "errand-broker-control@b1.socket")),
                 "end of the broker's units")
        stream = ""
        while "Member=Exited" not in stream: # it prints when it comes to it
            stream += monitor.stdout.readline()
        monitor.send_signal(signal.SIGINT)
        stream += monitor.stdout.read()
    for member in ("InterfacesAdded", "PropertiesChanged", "Exited"):
        t.contains(stream, f"Member={member}", "what busctl monitor saw")
    # By unicast, each one: a broadcast would have no destination.
    signals = [block for block in stream.split("\n\n") if "Type=signal" in block and "Path=/org/errand1" in block]
    t.check(len(signals) >= 4, f"only {len(signals)} signals")
    t.equal([s for s in signals if f"Destination={watcher.name}" not in s], [], "signals that went elsewhere")
    t.equal(stdout.read(), "and ended\n", "the rest")


def listeners():
    """Whatever takes connections or datagrams from this machine's network, by the kernel's tables."""
    found = []
    for table, waiting in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        with open(f"/proc/net/{table}", encoding="ascii") as f:
            found += [(table, line.split()[1]) for line in f.readlines()[1:] if line.split()[3] == waiting]
    return found


@case("no program of errand listens on the network, whatever runs: daemon, launcher, shim, broker, and a session's own proxy address")
def _(t):
    t.log("journal", system.log)
    before = listeners()
    client = Client(OWNER)
    client.start("nolisten", ["/bin/sh", "-c", "echo $HTTPS_PROXY; exec sleep infinity"], project="nolisten")
    t.defer(client.end, "nolisten")
    wait_for(lambda: "127.0.0.1" in client.transcript("nolisten"), "the session's proxy")
    t.equal(listeners(), before, "what listens")
    with socket.create_server(("127.0.0.1", 0)):
        t.equal(len(listeners()), len(before) + 1, "a listener that is there")


@case("D001 D005: gdbus introspects what dbus/*.xml says, of the objects that the caller may see")
def _(t):
    def introspect(account, path):
        text = good("gdbus", "introspect", "--system", "--xml", "--dest", NAME, "--object-path", path, account=account)
        return tree.fromstring(text[text.index("<node"):])

    def members(interface):
        return sorted((m.tag, m.get("name"), tuple((a.get("type"), a.get("direction")) for a in m.iter("arg"))) for m in interface if m.tag != "annotation")

    Client(OWNER).create("i1", ["true"])
    for path, name in ((ROOT, MANAGER), (f"{ROOT}/session/i1", SESSION)):
        installed = tree.parse(f"/usr/local/share/dbus-1/interfaces/{name}.xml").getroot().find("interface")
        live = introspect(OWNER, path).find(f"interface[@name='{name}']")
        t.equal(members(live), members(installed), name)
    t.equal([n.get("name") for n in introspect(STRANGER, f"{ROOT}/session").iter("node")][1:], [], "sessions in a stranger's sight")
    t.check("i1" in [n.get("name") for n in introspect(OWNER, f"{ROOT}/session").iter("node")], "the owner does not see its own")


@case("D001 C197: root, owner, member and stranger: each is let do what is theirs, and what is another's is as if it were not there")
def _(t):
    t.log("journal", system.log)
    owner = Client(OWNER)
    owner.start("p1", ["/bin/sleep", "infinity"])
    t.defer(owner.end, "p1")
    path = f"{ROOT}/session/p1"
    nothing = Client(OWNER).fails(f"{ROOT}/session/nosuch", SESSION, "Describe")
    calls = [(path, SESSION, "Describe"), (path, SESSION, "ReadTranscript", "tu", 0, 10), (path, "org.freedesktop.DBus.Properties", "GetAll", "s", SESSION),
             (ROOT, MANAGER, "GetSession", "s", "p1"), (ROOT, MANAGER, "ListGrants", "s", "p1"), (path, SESSION, "Grant", "ss", "host.example", "10m")]
    harmful = [(path, SESSION, "Stop"), (path, SESSION, "Kill", "i", 9), (path, SESSION, "Start"), (path, SESSION, "OpenStdio"), (path, SESSION, "Collect")]
    for account in (OWNER, "root"):
        client = Client(account)
        t.each(calls, lambda c, client=client: client.call(*c))
    for account in (MEMBER, STRANGER):
        client = Client(account)
        t.each(calls + harmful, lambda c, client=client: t.equal(client.fails(*c), nothing, f"{client.account}: {c[2]}"))
        t.equal(client.manager("ListSessions"), ([],), f"sessions in {account}'s sight")
        t.equal(client.call(ROOT, "org.freedesktop.DBus.ObjectManager", "GetManagedObjects"), ({},), f"objects in {account}'s sight")
        t.equal(client.fails(ROOT, MANAGER, "Reload"), DENIED, f"{account}: Reload")
    # Nobody is told to remove what is not theirs.
    taken = ("errand", "session", "create", "--project", "theirs", "--id", "p1", "--", "true")
    t.contains(run(*taken, account=MEMBER).err, "id: p1 is taken; choose another id", "what a member is told of the id")
    t.contains(run(*taken, account=OWNER).err, "errand threads rm p1", "what its owner is told of the id")
    t.check("p1" in [s[0] for s in owner.manager("ListSessions")[0]], "the owner does not see its own")
    t.equal(owner.state("p1"), "running", "the session")

    t.equal(Client(STRANGER).fails(ROOT, MANAGER, "CreateSession", "a{sv}", {"project": ("s", "mine"), "command": ("as", ["true"])}), DENIED, "a stranger's CreateSession")
    t.check(not os.path.exists("/srv/errand/mine"), "its project was made in spite of that")
    Client(MEMBER).create("p2", ["true"], project="carols")
    t.check(Client(MEMBER).fails(ROOT, MANAGER, "CreateSession", "a{sv}", {"project": ("s", "demo"), "command": ("as", ["true"])}), "another's project")
    Client("root").manager("Reload")


@case("D004: a broker has a uid of its own, which is not the next one's, and the session's account owns project and home alone")
def _(t):
    owner = Client(OWNER)
    uids = []
    for session in ("u1", "u2"):
        owner.start(session, ["/bin/sleep", "infinity"])
        t.defer(owner.end, session)
        uids.append(os.stat(f"/proc/{machine.pid_of(f'errand-broker@{session}.service')}").st_uid)
    agent, errand = pwd.getpwnam("errand-agent").pw_uid, pwd.getpwnam("errand").pw_uid
    t.equal(len({*uids, agent, errand, 0}), 5, f"number of accounts of {uids}, {agent}, {errand}, root")
    # Nothing but its broker reads a broker's memory, and the session's account has no way to what errandd keeps.
    for account in ("errand-agent", "errand", OWNER):
        t.check(run("cat", f"/proc/{machine.pid_of('errand-broker@u1.service')}/environ", account=account).status != 0, f"{account} reads the broker's environment")
    for place in ("/var/lib/errand/.records/u1/session.json", "/var/lib/errand/receipts.db", "/etc/errand/errand.json", "/run/errand/launch", "/run/errand/broker/u1"):
        t.check(run("cat", place, account="errand-agent").status != 0 and run("sh", "-c", f"echo x >>{place}", account="errand-agent").status != 0,
                f"errand-agent reaches {place}")
    t.check(run("sh", "-c", "echo x >>/var/lib/errand/u1/policy.toml", account="errand-agent").status != 0, "errand-agent writes its policy")


def running(t, session):
    return system.Running(t, session, lambda: Client(OWNER))


@case("C200: errandd restarted, and killed, finds its session again: output goes on, it is ruled again, its end is recorded", timeout=90)
def _(t):
    t.log("journal", system.log)
    for session, again in (("r1", lambda: good("systemctl", "restart", "errandd.service")), ("r2", lambda: system.kill("errandd.service"))):
        s = running(t, session)
        s.answers("before")
        processes, broker = s.processes(), machine.pid_of(f"errand-broker@{session}.service")
        again()
        owner = Client(OWNER)
        t.equal(owner.state(session), "running", "state after it")
        t.equal(s.processes(), processes, "processes of the session")
        t.equal(machine.pid_of(f"errand-broker@{session}.service"), broker, "broker")
        s.answers("after")
        owner.session(session, "Grant", "ss", "host.example", "10m")
        t.equal([g[1] for g in owner.manager("ListGrants", "s", session)[0]], ["host.example"], "grants")
        s.pipe.close()
        owner.wait(session, "stopped")
        t.equal([owner.describe(session)[k] for k in ("ExitReason", "ExitStatus")], ["exited", 3], "its end")


@case("C200: a session that ended while errandd was away is recorded as it ended, and one whose shim was killed as lost")
def _(t):
    t.log("journal", system.log)
    ends, dies = running(t, "e1"), running(t, "e2")
    # One that is just being started, to wait for the next session, has no children.
    shims = {p for p in good("pgrep", "-u", "errand-agent", "-x", "errand-shim").split() if "in-e2" in run("pgrep", "-a", "-P", p).out}
    t.equal(len(shims), 1, "shims of e2")
    good("systemctl", "stop", "errandd.service")
    ends.pipe.close()
    os.kill(int(shims.pop()), signal.SIGKILL)
    wait_for(lambda: system.agent_manager("is-active", "errand-session-e1.scope").status != 0, "end of e1")
    good("systemctl", "start", "errandd.service")
    owner = Client(OWNER)
    owner.wait("e1", "stopped")
    owner.wait("e2", "failed")
    t.equal([owner.describe("e1")[k] for k in ("ExitReason", "ExitStatus")], ["exited", 3], "end of e1")
    t.equal(owner.describe("e2")["ExitReason"], "lost", "end of e2")
    for unit in ("errand-broker@e1.service", "errand-broker@e2.service", "errand-broker@e2.socket"):
        wait_for(lambda u=unit: not machine.is_active(u), f"end of {unit}")
    wait_for(lambda: system.agent_manager("is-active", "errand-session-e2.scope").out in ("inactive\n", "failed\n"), "end of the scope of e2")
    t.equal(dies.processes(), [], "processes of e2")


@case("the launcher killed: the session goes on and the next one starts; a scope stopped by an administrator ends its session alone")
def _(t):
    t.log("journal", system.log)
    first = running(t, "k1")
    good("systemctl", "kill", "--kill-whom=main", "--signal=KILL", "errand-launch.service")
    first.answers("without a launcher")
    running(t, "k2")
    owner = Client(OWNER)
    t.equal(system.agent_manager("stop", "errand-session-k2.scope").status, 0, "stop of the scope")
    owner.wait("k2", "stopped", "failed")
    first.answers("alone")
    wait_for(lambda: not machine.is_active("errand-broker@k2.service"), "end of its broker")


def one_of(found):
    """The only one; None while there is none yet, or one that goes beside the one that comes."""
    return found[0] if len(found) == 1 else None


def shim_ahead():
    """The shim that waits for a session: a service keeps one."""
    return int(wait_for(lambda: one_of(run("pgrep", "-u", "errand-agent", "-x", "shim-ahead").out.split()), "one shim that waits"))


@case("C206: the shim that was started ahead is used, and sessions start where it is killed; it goes with its launcher")
def _(t):
    t.log("journal", system.log)
    waits = shim_ahead()
    first = running(t, "h1")
    with open(f"/proc/{waits}/cmdline", "rb") as f:
        t.equal(f.read().rstrip(b"\0"), b"errand-shim\0--session\0h1", "what it became")
    os.kill(shim_ahead(), signal.SIGKILL)
    second = running(t, "h2")
    second.answers("with a shim of its own")
    shim_ahead()
    good("systemctl", "stop", "errand-launch.service")
    wait_for(lambda: not run("pgrep", "-u", "errand-agent", "-x", "shim-ahead").out or machine.is_active("errand-launch.service"), "end of the one that waits")
    first.answers("without its launcher")
    running(t, "h3").answers("with the next launcher")
    for name in ("h1", "h2", "h3"):
        Client(OWNER).session(name, "Stop")


def session_scopes():
    return [line.split()[0] for line in system.agent_manager("list-units", "--plain", "--no-legend", "--state=active", "errand-session-*").out.splitlines()]


def scope_ahead():
    return wait_for(lambda: one_of(session_scopes()), "one scope, which is made ahead").removeprefix("errand-session-").removesuffix(".scope")


def reload_with(sandbox, **limits):
    config = {"sandbox": {"requireFullEnforcement": False, "gracePeriodMs": 5000, **sandbox}, "limits": limits}
    with open(system.CONFIG, "w", encoding="utf-8") as f:
        json.dump(config, f)
    good("systemctl", "reload", "errandd.service")


@case("S187 C200: the scope of the session to come is made ahead, and is that session's; it goes with errandd, a reload, its launcher and a kill, and never its limits")
def _(t):
    t.log("journal", system.log)
    t.defer(system.configure)
    system.configure({"limits": {"brokersAhead": 1}, "sandbox": {"pids": 100}})
    owner, number = Client(OWNER), scope_ahead()
    wait_for(lambda: machine.is_active(f"errand-broker@{number}.service"), "its broker")

    def session(wanted=None):
        made = owner.manager("CreateSession", "a{sv}", {"command": ("as", ["/bin/sleep", "infinity"]), "project": ("s", "demo")})[0].rsplit("/", 1)[1]
        owner.session(made, "Start")
        owner.wait(made, "running")
        t.check(wanted in (None, made), f"session {made} was not {wanted}")
        return made

    def limit(made):
        return machine.show(f"errand-session-{made}.scope", "TasksMax", "--user", "-M", "errand-agent@.host")

    def ends(made):
        owner.session(made, "Stop")
        owner.wait(made, "stopped")
        wait_for(lambda: f"errand-session-{made}.scope" not in session_scopes(), "end of its scope, which goes when it is empty")

    first = good("pgrep", "-u", "errand-agent", "-x", "bailey-ahead").split()
    t.equal(session(number), number, "its session")
    t.equal([limit(number), run("ps", "-o", "comm=", "-p", first[0]).out.strip()], ["100", "bailey"], "its limit, and what waited")
    ends(number)
    before = scope_ahead()
    reload_with({"pids": 200}, brokersAhead=1)
    wait_for(lambda: scope_ahead() != before, "another one after a reload")
    made = session()
    t.equal(limit(made), "200", "the limit after a reload")
    ends(made)
    before = scope_ahead()
    os.kill(int(wait_for(lambda: one_of(run("pgrep", "-u", "errand-agent", "-x", "bailey-ahead").out.split()), "what waits in it")), signal.SIGKILL)
    wait_for(lambda: before not in "".join(session_scopes()), "end of the scope")
    ends(session(before))
    before = scope_ahead()
    good("systemctl", "stop", "errand-launch.service")
    wait_for(lambda: before not in "".join(session_scopes()), "end of the scope with its launcher")
    ends(session())
    before = scope_ahead()
    system.kill("errandd.service")
    wait_for(lambda: scope_ahead() != before, "another one for another errandd")
    reload_with({}, brokersAhead=0)
    wait_for(lambda: not session_scopes(), "end of the last")
    wait_for(lambda: not run("pgrep", "-u", "errand-agent", "-x", "bailey-ahead").out, "end of what waits")


@case("a broker that is killed comes back with what was set up, and its session goes on")
def _(t):
    t.log("journal", system.log)
    s = running(t, "v1")
    owner = Client(OWNER)
    system.kill("errand-broker@v1.service")
    owner.session("v1", "Grant", "ss", "host.example", "10m")
    s.answers("with another broker")
    t.equal(owner.state("v1"), "running", "state")


@case("a broker that an administrator stops does not come back without its keys: the session goes on without a way out, and nothing serves it")
def _(t):
    t.log("journal", system.log)
    s = running(t, "x1")
    good("systemctl", "stop", "errand-broker@x1.service")
    wait_for(lambda: "session x1: broker: the session's broker ended" in system.log(), "word of it")
    wait_for(lambda: not any(machine.is_active(u) for u in ("errand-broker@x1.service", "errand-broker@x1.socket", "errand-broker-control@x1.socket")),
             "end of the broker's units")
    s.answers("without a way out")
    t.equal(Client(OWNER).state("x1"), "running", "state")


@case("D001: the bus starts errandd when it is called for")
def _(t):
    good("systemctl", "stop", "errandd.service")
    t.equal(busctl(OWNER, "get-property", NAME, ROOT, MANAGER, "Ready"), "b true\n", "its answer")
    t.check(machine.is_active("errandd.service"), "errandd is not a service")


@case("two sessions at once, stopped, killed and collected: no unit, socket or process of theirs is left, and the project is")
def _(t):
    t.log("journal", system.log)
    for session in ("c1", "c2"):
        running(t, session)
    owner = Client(OWNER)
    owner.session("c1", "Stop")
    owner.session("c2", "Kill", "i", 9)
    for session in ("c1", "c2"):
        owner.wait(session, "stopped", "failed")
        owner.session(session, "Collect")
        t.check(not os.path.exists(f"/var/lib/errand/{session}") and not os.path.exists(f"/var/lib/errand/.records/{session}"), f"{session} is left on the disk")
        wait_for(lambda s=session: not re.search(f"errand-[a-z-]*[@-]{s}[.]", good("systemctl", "list-units", "--all", "--plain", "--no-legend") +
                                                 system.agent_manager("list-units", "--all", "--plain", "--no-legend").out), f"end of the units of {session}")
        t.equal([p for p in ("broker", "shim") if os.path.exists(f"/run/errand/{p}/{session}")], [], "sockets")
    t.check(os.path.isdir("/srv/errand/demo"), "the project is gone")


@case("a project belongs to errand-agent, and its owner may work in it; it is a name and never a path")
def _(t):
    owner = Client(OWNER)
    owner.start("w1", ["/bin/sh", "-c", "echo from the session >inside; mkdir made; echo x >made/file"], project="work")
    owner.wait("w1", "stopped")
    st = os.stat("/srv/errand/work")
    t.equal((pwd.getpwuid(st.st_uid).pw_name, oct(st.st_mode & 0o7777)), ("errand-agent", "0o2770"), "the project")
    good("sh", "-c", "cat /srv/errand/work/inside && echo more >>/srv/errand/work/made/file && echo y >/srv/errand/work/mine", account=OWNER)
    t.check(run("ls", "/srv/errand/work", account=STRANGER).status != 0, "a stranger sees into it")
    os.symlink("/etc", "/srv/errand/link")
    for name in ("/etc", "../etc", "link", ".", "", "a/b", "work/../work", "-x" * 40):
        t.check(owner.fails(ROOT, MANAGER, "CreateSession", "a{sv}", {"project": ("s", name), "command": ("as", ["true"])}), name)


run_tests()
