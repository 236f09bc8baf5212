# SPDX-License-Identifier: LGPL-2.1-or-later
"""The main job in system mode, everything real but the internet; and a session that was granted /run, which gets nowhere by it."""

import json
import os
import pwd
import secrets
import sys

os.environ["ERRAND_TEST_WORLD"] = "1"  # the machine's own namespaces are the world's: its services have to see it
sys.path[:0] = [os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), d) for d in ("lib", "session")]

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_bus import BusError  # noqa: E402
from errand_machine import good, run  # noqa: E402
from errand_system import Client  # noqa: E402
from errand_test import Failure, case, source  # noqa: E402
from errand_test import run as run_tests  # noqa: E402
from first_run import STEPS, _results  # noqa: E402
from run_story import RunStory  # noqa: E402

OWNER = "alice"
machine.account(OWNER, "errand-users")


class Process:
    """A session with pipes, in the place of a child process."""

    def __init__(self, owner, session):
        self.owner, self.session = owner, session
        self.stdin, self.stdout, self.stderr = owner.stdio(session)
        owner.session(session, "Start")

    def wait(self):
        self.owner.wait(self.session, "stopped", "failed")
        end = self.owner.describe(self.session)
        return end["ExitStatus"] if end["ExitReason"] == "exited" else f"{end['ExitReason']} {end['ExitStatus']}"


class SystemStory(RunStory):
    """errandd as a service, its owner on the bus, the key in the credentials of the service."""

    def __init__(self, t, session="s1", name="story"):
        super().__init__(t, session)
        self.uid = pwd.getpwnam("errand-agent").pw_uid
        self.name, self.errand = name, self
        self.owner = None

    def start_broker(self, key=None, allow=(), **sandbox):
        self.key = key or "sk-real-" + secrets.token_hex(24)
        machine.write("/etc/errand/credentials/anthropic", self.key + "\n", 0o600)
        provider = {"kind": "anthropic", "baseUrl": "https://provider.example", "caFile": source("tests/peers/ca/ca.pem"),
                    "credential": {"systemdCredential": "keys_anthropic"}, "credentialName": "ANTHROPIC_API_KEY"}
        system.configure({"agent": {"providers": {"anthropic": provider}}, "sandbox": {"egress": {"allow": list(allow)}, **sandbox}})
        self.t.log("journal", system.log)
        return self

    def prepare(self, key=None):
        # The project is made by the first session that is created in it.
        self.start_broker(key)
        self.owner = Client(OWNER)
        self.owner.create(f"{self.session}maker", ["true"], project=self.name)
        self.project = f"/srv/errand/{self.name}"
        self.start_broker, start_broker = lambda key: self, self.start_broker
        super().prepare(self.key)
        self.start_broker = start_broker
        return self

    def start(self, *steps, options=(), **more):
        self.owner.create(self.session, [self.agent, *steps], project=self.name, provider="anthropic")
        process = Process(self.owner, self.session)
        self.t.defer(self.owner.end, self.session)
        return process

    def start_story(self):
        return self.start(*STEPS)

    def grant(self, host):
        Client(OWNER).session(self.session, "Grant", "ss", host, "once")
        return f"Grant {host} once, over the bus"

    # ---- what RunStory asks of the command ----

    state = system.STATE

    def json(self, verb, *arguments):
        if verb == "receipts":
            receipts = self.owner.manager("ListReceipts", "a{sv}", {"session": ("s", arguments[0])})[0]
            return [{k[0].lower() + k[1:]: v for k, v in r.items()} for r in reversed(receipts)]
        end = self.owner.describe(arguments[0])
        return {"state": end["State"], "exitReason": end["ExitReason"], "exitStatus": end["ExitStatus"]}

    def check_no_key(self):
        super().check_no_key()
        text = machine.journal() + good("ps", "axeww") + json.dumps(str(self.owner.describe(self.session)))
        if self.key in text:
            raise Failure("the key is in the journal, a process's arguments or environment, or on the bus")


@case("system mode: the whole story, with the key known to errandd and the session's broker alone", timeout=90)
def _(t):
    story = SystemStory(t).prepare()
    said = []
    results = story.run(lambda kind, text: said.append((kind, text)))
    t.equal([s for s in STEPS if not results.get(s, (False, ""))[0]], [], f"steps that failed of {results}")
    for check in ("environment", "project", "provider", "granted", "receipts", "no_key", "closing_line"):
        getattr(story, f"check_{check}")()


@case("a broker that is killed in the middle of a session serves it again, with what was granted and what was refused")
def _(t):
    story = SystemStory(t, "s2", "killed").prepare()
    process = story.start("granted", "provider", "denied")
    lines, n_events = [], 0
    for line in process.stdout:
        lines.append(line)
        message = json.loads(line)
        if "waiting" in message: # nothing of its is under way
            story.grant("denied.example")
            system.kill("errand-broker@s2.service")
            process.stdin.write("go on\n")
            process.stdin.flush()
            story.provider_host.go()
        elif "event" in message:
            n_events += 1
            if n_events < 3:
                story.provider_host.go()
    results = _results(lines)
    t.equal([results[s][0] for s in ("granted", "provider", "denied")], [True] * 3, f"results {results}")
    story.owner.wait("s2", "stopped")
    receipts = story.json("receipts", "s2")
    t.equal([(r["path"], r["status"]) for r in receipts], [("/sse/3", 200)], "receipts")


# Tries every socket below its arguments, by every kind of socket that there is one for; says which it could connect to.
SOCKETS = """
import os, socket, stat, sys
tried, reached = 0, []
for top in sys.argv[1:]:
    for directory, _, names in os.walk(top):
        for path in (os.path.join(directory, name) for name in names):
            try:
                if not stat.S_ISSOCK(os.lstat(path).st_mode):
                    continue
            except OSError:
                continue
            tried += 1
            for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
                with socket.socket(socket.AF_UNIX, kind) as s:
                    try:
                        s.connect(path)
                        reached.append(path)
                    except OSError:
                        pass
print(tried, *sorted(set(reached)))
"""

# What must not be reached, by its name, whether or not a walk finds it.
KNOWN = ["/run/dbus/system_bus_socket", "/run/systemd/private", "/run/systemd/notify", "/run/systemd/journal/socket", "/run/systemd/journal/stdout",
         "/run/systemd/userdb/io.systemd.DynamicUser", "/run/errand/launch", "/run/errand/broker/g1", "/run/errand/shim/g1", "/run/user/{uid}/bus",
         "/run/user/{uid}/systemd/private", "/run/user/{uid}/systemd/notify", "/var/lib/errand/g1/broker/session"]

CONNECT = """
import os, socket, sys
for path in sys.argv[1:]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
        with socket.socket(socket.AF_UNIX, kind) as s:
            try:
                s.connect(path)
                print(path)
                break
            except OSError:
                pass
"""


def try_sockets(t, session, places, known):
    """A session that was granted these places tries whatever it finds there; → what it could connect to, "refused" when it does not start."""
    system.configure({"sandbox": {"policyExtra": {"read": places}}})
    owner = Client(OWNER)
    owner.create(session, ["/usr/bin/python3", "-c", SOCKETS + CONNECT.replace("sys.argv[1:]", repr(known)), *places, "/run", "/tmp"], project="granted")
    stdin, stdout, stderr = owner.stdio(session)
    stdin.close()
    try:
        owner.session(session, "Start")
    except BusError as error:
        t.note(f"granted {places}: {error.text}")
        return "refused"
    t.defer(owner.end, session)
    text, errors = stdout.read(), stderr.read()
    owner.wait(session, "stopped", "failed")
    t.equal(owner.describe(session)["ExitStatus"], 0, f"{errors}; its status")
    t.note(f"granted {places}: found {text.split()[0]} sockets, reached {text.split()[1:]}")
    return text.split()[1:]


def refuses(action):
    try:
        action()
    except Failure:
        return True
    return False


@case("T002 C064: a session that is to have /run does not start, and one that has parts of it reaches no bus, service manager, launcher or broker", timeout=90)
def _(t):
    t.log("journal", system.log)
    uid = pwd.getpwnam("errand-agent").pw_uid
    for place in ("/", "/var", "/var/lib/errand"):
        t.check(refuses(lambda p=place: system.configure({"sandbox": {"policyExtra": {"read": [p]}}})), f"errandd takes a configuration that grants {place}")
    known = [path.format(uid=uid) for path in KNOWN]
    for number, place in enumerate(("/run", "/run/errand", "/run/errand/launch", "/run/errand/shim", "/run/errand/broker", "/run/user", "/run/dbus", "/run/systemd")):
        t.equal(try_sockets(t, f"d{number}", [place], known), "refused", f"a session with {place}")
    places = ["/run/dbus/system_bus_socket", f"/run/user/{uid}", f"/run/user/{uid}/bus", "/run/systemd/private", "/run/systemd/userdb", "/run/systemd/journal",
              "/run/log", "/run/lock", "/var/lib/systemd", "/proc/1/root/run", "/proc/self/root/run"]
    for number, place in enumerate(places):
        t.check(try_sockets(t, f"g{number}", [place], known) in ("refused", []), f"a session with {place} reaches sockets")

    # The same account outside reaches those that its rights let it, which shows that there was something to reach.
    outside = run("/usr/bin/python3", "-c", CONNECT, *known, account="errand-agent").out.split()
    for path in ("/run/dbus/system_bus_socket", f"/run/user/{uid}/systemd/private", f"/run/user/{uid}/bus"):
        t.check(path in outside, f"outside {path} could not be reached either: {outside}")
    for path in ("/run/errand/launch", "/run/errand/broker/g1"):
        t.check(path not in outside, f"account errand-agent reaches {path}")


ASK_SHIM = """
import socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as s:
    s.connect(sys.argv[1])
    try:
        s.send(b'{"v":1,"type":"status","serial":1}')
        print(s.recv(4096))
    except OSError as error:
        print(error)
"""


@case("T002 C064: account errand-agent's own bailey, with all of /run and the state granted, reaches none of them either")
def _(t):
    uid = pwd.getpwnam("errand-agent").pw_uid
    system.configure()
    owner = Client(OWNER)
    owner.create("b1", ["/bin/sleep", "infinity"], project="granted")
    owner.session("b1", "Start")
    t.defer(owner.end, "b1")
    owner.wait("b1", "running")
    known = [path.format(uid=uid).replace("g1", "b1") for path in KNOWN]
    policy, home = t.path("policy.toml"), t.path("home")
    os.mkdir(home, 0o700)
    os.chown(home, uid, uid)
    machine.write(policy, f'home = "{home}"\n[filesystem]\nread = ["/run", "/var/lib"]\n')
    done = run("/usr/local/bin/bailey", "run", "--config", policy, "--", "/usr/bin/python3", "-c", CONNECT, *known, account="errand-agent", cwd="/")
    t.equal(done.status, 0, done.err)
    # What the session has in the state directory is the account's own: who connects there is judged by its token.
    own = ["/var/lib/errand/b1/broker/session"]
    t.equal([path for path in done.out.split() if path not in own], [], f"what it reached; {done.err}")
    for account, answered in (("errand", True), ("errand-agent", False), (OWNER, False)):
        done = run("/usr/bin/python3", "-c", ASK_SHIM, "/run/errand/shim/b1", account=account)
        t.equal('"v":1' in done.out and '"error"' not in done.out, answered, f"whether the shim answers {account}: {done}")


run_tests()
