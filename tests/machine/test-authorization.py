# SPDX-License-Identifier: LGPL-2.1-or-later
"""Every method of the bus, by busctl and by gdbus, as root, as the owner and as accounts that are neither, with the system's own polkit."""

import os
import pwd
import re
import shutil
import sys
import xml.etree.ElementTree as tree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_machine import good, run  # noqa: E402
from errand_system import CONFIG, MANAGER, NAME, ROOT, SESSION, Client  # noqa: E402
from errand_test import case  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

OWNER = "alice"
OTHERS = ("carol", "mallory", "nobody")  # a member of errand-users, an account that is none, and who has no account of their own
GRANT, LOG_CONTROL, PROPERTIES = "org.errand1.Grant", "org.freedesktop.LogControl1", "org.freedesktop.DBus.Properties"
AGENT = "/usr/local/bin/acp-agent"
HIDDEN, REFUSED = "there is no such", "you may not"

for name, groups in ((OWNER, ["errand-users"]), ("carol", ["errand-users"]), ("mallory", [])):
    machine.account(name, *groups)
shutil.copyfile(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "session", "acp-agent"), AGENT)
os.chmod(AGENT, 0o755)
system.configure()


# (interface, member) → signature; arguments for busctl; for gdbus; what others are told, "" when it is theirs to call. In an argument @ is an id and # a
# project of the caller's own. $t has a terminal and runs, $p has none and was not started, $a runs an agent that is talked to.
METHODS = {
    (MANAGER, "Subscribe"): ("", [], [], ""),
    (MANAGER, "Unsubscribe"): ("", [], [], ""),
    (MANAGER, "CreateSession"): ("a{sv}", ["3", "id", "s", "@", "project", "s", "#", "command", "as", "1", "true"],
                                 ["{'id': <'@'>, 'project': <'#'>, 'command': <['true']>}"], REFUSED),
    (MANAGER, "GetSession"): ("s", ["$t"], ["$t"], HIDDEN),
    (MANAGER, "ListSessions"): ("", [], [], ""),
    (MANAGER, "ListThreads"): ("", [], [], ""),
    (MANAGER, "ListGrants"): ("s", ["$t"], ["$t"], HIDDEN),
    (MANAGER, "ListReceipts"): ("a{sv}", ["1", "limit", "u", "3"], ["{'limit': <uint32 3>}"], ""),
    (MANAGER, "Reload"): ("", [], [], REFUSED),
    (MANAGER, "CheckConfiguration"): ("s", [CONFIG], [CONFIG], REFUSED),
    (SESSION, "OpenStdio"): ("", [], [], HIDDEN),
    (SESSION, "Start"): ("", [], [], HIDDEN),
    (SESSION, "Describe"): ("", [], [], HIDDEN),
    (SESSION, "Attach"): ("a{sv}", ["0"], ["{}"], HIDDEN),
    (SESSION, "Resize"): ("qq", ["30", "90"], ["30", "90"], HIDDEN),
    (SESSION, "Say"): ("s", ["!grant said.example.com 10m"], ["!grant said.example.com 10m"], HIDDEN),
    (SESSION, "Prompt"): ("s", ["wait"], ["wait"], HIDDEN),
    (SESSION, "Interrupt"): ("", [], [], HIDDEN),
    (SESSION, "Grant"): ("ss", ["one.example.com", "10m"], ["one.example.com", "10m"], HIDDEN),
    (SESSION, "ReadTranscript"): ("tu", ["0", "10"], ["0", "10"], HIDDEN),
    (SESSION, "Kill"): ("i", ["28"], ["28"], HIDDEN),
    (GRANT, "Revoke"): ("", [], [], HIDDEN),
    (SESSION, "Stop"): ("", [], [], HIDDEN),
    (SESSION, "Collect"): ("", [], [], HIDDEN),
}
# Done to a session that was not started; all others to one that runs.
CREATED = ("OpenStdio", "Start", "Collect")
TALKED = ("Prompt", "Interrupt")
# Nobody but root and who has the administrator's password.
DAEMON = ("Reload", "CheckConfiguration")


def sessions(label):
    """Names of sessions of the owner's, made for those who are to try on them."""
    return {"t": f"{label}t", "p": f"{label}p", "a": f"{label}a"}


def make(label):
    owner = Client(OWNER)
    names = sessions(label)
    owner.start(names["t"], ["/bin/sleep", "infinity"], interactive=True)
    owner.session(names["t"], "Grant", "ss", "first.example.com", "always")
    owner.create(names["p"], ["/bin/sleep", "infinity"])
    owner.start(names["a"], [AGENT], protocol="acp")
    machine.wait_for(lambda: "Turn" in owner.describe(names["a"]), "word of its conversation, which is in what is told from then on")


def path_of(interface, member, label):
    names = sessions(label)
    if interface == MANAGER:
        return ROOT
    if interface == GRANT:
        return f"{ROOT}/grant/{names['t']}/1"
    return f"{ROOT}/session/{names['p' if member in CREATED else 'a' if member in TALKED else 't']}"


def invoke(tool, account, interface, member, label):
    """Calls it; → Done."""
    signature, for_busctl, for_gdbus, _ = METHODS[interface, member]
    names = sessions(label)

    def fill(arguments):
        return [a.replace("@", f"{label}new").replace("#", f"of{account}").replace("$t", names["t"]) for a in arguments]
    path = path_of(interface, member, label)
    if tool == "busctl":
        argv = ["busctl", "--system", "call", "--", NAME, path, interface, member, *([signature] if signature else []), *fill(for_busctl)]
    else:
        argv = ["gdbus", "call", "--system", "--dest", NAME, "--object-path", path, "--method", f"{interface}.{member}", *fill(for_gdbus)]
    return run(*argv, account=None if account == "root" else account, cwd="/")


def state(label):
    owner = Client(OWNER)
    names = sessions(label)
    return ([owner.describe(n) for n in names.values()], owner.manager("ListGrants", "s", names["t"]),
            sorted(s[0] for s in Client("root").manager("ListThreads")[0]))


@case("C197: the table has every method that is installed, and no other")
def _(t):
    found = set()
    for interface in (MANAGER, SESSION, GRANT, "org.errand1.Receipt"):
        node = tree.parse(f"/usr/local/share/dbus-1/interfaces/{interface}.xml").getroot().find("interface")
        found |= {(interface, m.get("name")) for m in node.iter("method")}
    t.equal(sorted(found), sorted(METHODS), "methods")


@case("who may not create a session in a project is told whether that is for the project or for all")
def _(t):
    machine.account("member", "errand-users")
    make("p")
    name = next(iter(sessions("p").values()))
    project = Client(OWNER).describe(name)["Project"]
    done = run("errand", "session", "create", "--project", project, "true", account="member", cwd="/")
    t.equal(done.status, 4, "exit code")
    t.contains(done.err, "org.errand1.create-others, since the project is another account's", "what a member is told")
    machine.account("nomember")
    done = run("errand", "session", "create", "--project", "newone", "true", account="nomember", cwd="/")
    t.equal(done.status, 4, "exit code")
    t.contains(done.err, "org.errand1.create-session, which members of group errand-users have", "what another is told")
    for n in sessions("p").values():
        Client(OWNER).end(n)


@case("C197 D001 D005: whoever it does not belong to changes nothing and learns nothing, by busctl and by gdbus", timeout=120)
def _(t):
    t.log("journal", system.log)
    make("x")
    for n in sessions("x").values():
        t.defer(Client(OWNER).end, n)
    before = state("x")
    for account in OTHERS:
        for tool in ("busctl", "gdbus"):
            for (interface, member), (_, _, _, told) in METHODS.items():
                if (account, member) == ("carol", "CreateSession"):
                    continue  # hers to call
                done = invoke(tool, account, interface, member, "x")
                if told:
                    t.check(done.status != 0 and told in done.err, f"{account}, {tool}: {member}: {done}")
                else:
                    t.check(done.status == 0 and not re.search("x[tpa]", done.out), f"{account}, {tool}: {member}: {done}")
        for interface, path, prop in ((SESSION, f"{ROOT}/session/xt", "State"), (GRANT, f"{ROOT}/grant/xt/1", "Host")):
            done = run("busctl", "--system", "get-property", NAME, path, interface, prop, account=account)
            t.check(done.status != 0 and HIDDEN in done.err, f"{account}: {prop}: {done}")
        for said in ("go on", "!grant a.example.com", "!revoke first.example.com", "!grants", "!answer 1 yes", "!interrupt", "!stop", "!status", "!help"):
            done = run("busctl", "--system", "call", "--", NAME, f"{ROOT}/session/xa", SESSION, "Say", "s", said, account=account)
            t.check(done.status != 0 and HIDDEN in done.err, f"{account}: {said}: {done}")
    t.equal(state("x"), before, "sessions, grants")


@case("C197 D001 D005: a member of errand-users makes sessions of its own, and root and the owner do everything", timeout=180)
def _(t):
    t.log("journal", system.log)
    for account in ("root", OWNER):
        for tool in ("busctl", "gdbus"):
            label = f"{account[0]}{tool[0]}"
            make(label)
            for n in (*sessions(label).values(), f"{label}new"):
                t.defer(Client("root").end, n)
            for interface, member in METHODS:
                if member == "Collect":
                    Client("root").end(sessions(label)["p"])
                done = invoke(tool, account, interface, member, label)
                if account != "root" and member in DAEMON:
                    t.check(done.status != 0 and REFUSED in done.err, f"{account}, {tool}: {member}: {done}")
                elif tool == "gdbus" and member in ("Attach", "OpenStdio"):
                    # Its answer has descriptors, which the older one does not print.
                    t.check(not re.search(f"{HIDDEN}|{REFUSED}", done.err), f"{account}, {tool}: {member}: {done}")
                else:
                    t.equal(done.status, 0, f"{account}, {tool}: {member}: {done}")
    for tool in ("busctl", "gdbus"):
        t.equal(invoke(tool, "carol", MANAGER, "CreateSession", f"c{tool[0]}").status, 0, f"carol, {tool}")
    t.equal([s[0] for s in Client("carol").manager("ListThreads")[0]], ["cbnew", "cgnew"], "carol's sessions")


@case("C193 C197: the log's level and target are read by everybody and set by root alone")
def _(t):
    def prop(account, verb, *arguments):
        return run("busctl", "--system", verb, NAME, "/org/freedesktop/LogControl1", LOG_CONTROL, *arguments, account=account)
    t.equal([prop(a, "get-property", "LogLevel").out for a in (OWNER, *OTHERS, None)], ['s "info"\n'] * 5, "level")
    for account in (OWNER, *OTHERS):
        for name, value in (("LogLevel", "debug"), ("LogTarget", "console")):
            done = prop(account, "set-property", name, "s", value)
            t.check(done.status != 0 and "only root may" in done.err, f"{account}: {name}: {done}")
    t.equal(run("systemctl", "service-log-level", "errandd.service", "debug").status, 0, "as root")
    t.equal(prop(None, "get-property", "LogLevel").out, 's "debug"\n', "level")
    t.equal(run("systemctl", "service-log-level", "errandd.service", "info").status, 0, "back")
    t.equal(prop(None, "get-property", "SyslogIdentifier").out, 's "errandd"\n', "identifier")


RULE = "/etc/polkit-1/rules.d/10-test.rules"
# It notes what polkitd is asked about (that of polkit.log goes where it logs, which is nowhere by default), and denies it then or not.
NOTING = """
polkit.addRule(function (action, subject) {
    if (action.id == "org.errand1.control-own") {
        polkit.spawn(["/usr/bin/logger", "-t", "rule", "asked " + action.lookup("member") + " of " + action.lookup("session") + " in " + action.lookup("project")]);
        return "%s" == "deny" ? polkit.Result.NO : polkit.Result.NOT_HANDLED;
    }
});
"""


def notes(session):
    """How often polkitd was asked about Start of that session."""
    return machine.journal("-t", "rule").count(f"asked Start of {session} in demo")


def judge(verdict, status):
    """Has polkitd go by that, and waits until it does; which it may tell of once more later."""
    machine.write(RULE, NOTING % verdict, 0o644)
    polkit = "org.freedesktop.PolicyKit1"
    question = [polkit, "/org/freedesktop/PolicyKit1/Authority", f"{polkit}.Authority", "CheckAuthorization", "(sa{sv})sa{ss}us",
                "unix-process", "3", "pid", "u", str(os.getpid()), "start-time", "t", "0", "uid", "i", str(pwd.getpwnam(OWNER).pw_uid),
                "org.errand1.control-own", "2", "member", verdict, "session", "probe", "0", ""]
    machine.wait_for(lambda: machine.call(*question).out.startswith(f"(bba{{ss}}) {status}"), f"{verdict} from polkitd")


@case("D001: Start is asked about once, before it is called, and not allowed by what polkit has changed its mind about meanwhile")
def _(t):
    t.log("journal", system.log)
    t.defer(os.unlink, RULE)
    judge("log", "true")
    # One that has told of no change, and will of none: whatever was asked ahead of a change counts for nothing.
    good("systemctl", "restart", "polkit.service")
    owner = Client(OWNER)
    owner.start("early", ["/bin/true"])
    machine.wait_for(lambda: notes("early"), "polkitd's note")
    owner.create("refused", ["/bin/true"])
    judge("deny", "false")
    t.equal(owner.fails(f"{ROOT}/session/refused", SESSION, "Start"), "org.errand1.Error.NotPermitted", "Start")
    machine.wait_for(lambda: notes("refused") == 2, "polkitd's second note")
    t.equal(notes("early"), 1, "questions about what was started at once")


assert pwd.getpwnam("nobody").pw_uid == 65534
run_tests()
