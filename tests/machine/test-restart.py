# SPDX-License-Identifier: LGPL-2.1-or-later
"""A hundred sessions while errandd is killed, restarted and replaced: none lost, none doubled, every terminal, transcript, grant and receipt there."""

import concurrent.futures
import os
import pwd
import re
import secrets
import shutil
import sys
import time

os.environ["ERRAND_TEST_WORLD"] = "1"  # the machine's own namespaces are the world's: its services have to see it
sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_machine import good, run  # noqa: E402
from errand_system import Client  # noqa: E402
from errand_test import Failure, case, source  # noqa: E402
from errand_test import run as run_tests  # noqa: E402
from errand_upstream import Upstream  # noqa: E402
from errand_world import world  # noqa: E402

OWNER, N, AT_ONCE = "alice", 100, 16
ANSWER = 404  # the provider's own: it has no such paths
UNITS = ("errand-broker@*.service", "errand-broker@*.socket", "errand-broker-control@*.socket")

# Answers each line of its terminal with one; "call" is answered by the provider.
COMMAND = r"""
stty -echo
echo up
url=${ERRAND_PROVIDER_ANTHROPIC_URL#http://} port=${ERRAND_PROVIDER_ANTHROPIC_URL#http://127.0.0.1:}
while read -r word rest; do
    if [ "$word" = call ]; then
        exec 3<>"/dev/tcp/127.0.0.1/${port%%/*}"
        printf 'GET /%s/%s HTTP/1.1\r\nHost: %s\r\nx-api-key: %s\r\nConnection: close\r\n\r\n' "${url#*/}" "$rest" "${url%%/*}" "$ANTHROPIC_API_KEY" >&3
        read -r _ status _ <&3
        exec 3>&-
        echo "$rest $status"
    else
        echo "$word $rest"
    fi
done
"""


class Session:
    """One of them, with what was said in its terminal so far."""

    def __init__(self, number):
        self.id, self.stays = f"r{number}", number % 2 == 0
        self.terminal, self.seen, self.unread = -1, "", ""

    def attach(self, owner):
        """A terminal that is attached begins with what was in it."""
        (self.terminal,) = owner.session(self.id, "Attach", "a{sv}", {})
        os.set_blocking(self.terminal, True)
        self.unread = ""
        before, self.seen = self.seen.splitlines(), ""
        for line in before:
            self.hears(line)

    def detach(self):
        os.close(self.terminal)
        self.terminal = -1

    def say(self, line):
        os.write(self.terminal, f"{line}\n".encode())

    def hears(self, line):
        while "\n" not in self.unread:
            data = os.read(self.terminal, 4096).decode()
            if not data:
                raise Failure(f"the terminal of {self.id} has ended, after {self.seen!r}")
            self.unread += data.replace("\r", "")
        found, self.unread = self.unread.split("\n", 1)
        if found != line:
            raise Failure(f"{self.id} says {found!r}, not {line!r}")
        self.seen += f"{line}\n"


class Sessions:
    def __init__(self):
        self.all = [Session(i) for i in range(N)]
        self.workers = concurrent.futures.ThreadPoolExecutor(AT_ONCE)
        self.owners = []

    def reconnect(self):
        for owner in self.owners:
            owner.close()
        self.owners = [Client(OWNER) for _ in range(AT_ONCE)]

    def each(self, function):
        """function(owner, session) for all, by several clients at once; → what they gave."""
        def one_client(n):
            return [function(self.owners[n], s) for s in self.all[n::AT_ONCE]]
        return [found for part in self.workers.map(one_client, range(AT_ONCE)) for found in part]

    def start(self):
        self.reconnect()
        Client(OWNER).create("maker", ["true"])  # their project

        def start(owner, s):
            owner.create(s.id, ["/bin/bash", "-c", COMMAND], interactive=True, provider="anthropic")
            owner.session(s.id, "Start")
            s.attach(owner)
            s.hears("up")
        self.each(start)

    def answer(self, line, *, call=False):
        """Those that have been attached all the time, and those that are attached anew."""
        def attach(owner, s):
            if s.terminal < 0:
                s.attach(owner)
        self.each(attach)
        self.exchange(self.all, line, call=call)

    def exchange(self, sessions, line, *, call=False):
        for s in sessions:
            s.say(f"call {line}" if call else f"{line} {s.id}")
        for s in sessions:
            s.hears(f"{line} {ANSWER}" if call else f"{line} {s.id}")

    def leave(self):
        for s in self.all:
            if not s.stays:
                s.detach()


def listed(pattern):
    return good("systemctl", "list-units", "--all", "--plain", "--no-legend", pattern).count("\n")


def memory(pid):
    """Private bytes."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return sum(int(n) for n in re.findall(r"^Private_\w+: +(\d+)", f.read(), re.M)) << 10


def processes():
    """Shims of sessions: one that waits for a session is none."""
    lines = [line.split() for line in good("pgrep", "-a", "-u", "errand-agent", "-x", "errand-shim").splitlines()]
    return sorted(words[0] for words in lines if "--wait-fd" not in words)


def replace():
    """As a package manager does: another file under the same name, of every program."""
    for name in ("errandd", "errand-launch", "errand-shim", "errand-broker"):
        path = f"/usr/local/libexec/errand/{name}"
        shutil.copy2(path, f"{path}.new")
        with open(f"{path}.new", "ab") as f:
            f.write(b"another build")
        os.rename(f"{path}.new", path)
    good("systemctl", "daemon-reload")
    good("systemctl", "restart", "errandd.service")


sessions = Sessions()
EVENTS = {"killed": lambda: system.kill("errandd.service"), "restarted": lambda: good("systemctl", "restart", "errandd.service"), "replaced": replace}


@case(f"C200: {N} sessions, and errandd killed, restarted and replaced: none lost, none doubled, terminals, transcripts, grants and receipts whole", timeout=300)
def _(t):
    machine.account(OWNER, "errand-users")
    world()
    Upstream(t, "9.9.9.9:443")
    machine.write("/etc/errand/credentials/anthropic", "sk-real-" + secrets.token_hex(24) + "\n", 0o600)
    provider = {"kind": "anthropic", "baseUrl": "https://provider.example", "caFile": source("tests/peers/ca/ca.pem"),
                "credential": {"systemdCredential": "keys_anthropic"}, "credentialName": "ANTHROPIC_API_KEY"}
    system.configure({"agent": {"providers": {"anthropic": provider}}, "limits": {"maxLiveSessions": 2 * N}})
    t.log("journal", lambda: system.log()[-4000:])

    begun = time.monotonic()
    sessions.start()
    t.note(f"{N} sessions started in {time.monotonic() - begun:.2f} s, {AT_ONCE} at once")
    shims, agent = processes(), pwd.getpwnam("errand-agent").pw_uid
    t.equal(len(shims), N, "shims")
    sessions.exchange(sessions.all, "call0", call=True)
    sessions.each(lambda owner, s: owner.session(s.id, "Grant", "ss", f"{s.id}.example", "1h"))
    sessions.leave()

    for round_, (name, happens) in enumerate(EVENTS.items(), 1):
        begun = time.monotonic()
        happens()
        ready = time.monotonic() - begun
        attached = [s for s in sessions.all if s.stays]
        sessions.exchange(attached, f"while-{name}")
        sessions.reconnect()
        t.equal(sorted(s[0] for s in sessions.owners[0].manager("ListSessions")[0]), sorted(["maker", *(s.id for s in sessions.all)]), f"{name}: sessions")
        t.equal({s for s in sessions.each(lambda owner, s: owner.state(s.id))}, {"running"}, f"{name}: states")
        t.equal(processes(), shims, f"{name}: shims")
        sessions.answer(f"call{round_}", call=True)
        t.equal(sessions.each(lambda owner, s: [g[1] for g in owner.manager("ListGrants", "s", s.id)[0]]),
                sessions.each(lambda owner, s: [f"{s.id}.example"]), f"{name}: grants")
        sessions.answer(f"after-{name}")
        pid = machine.pid_of("errandd.service")
        t.note(f"{name}: serves after {ready:.2f} s, {time.monotonic() - begun:.2f} s until each had answered; errandd has {memory(pid) >> 10} KiB of its own")
        t.equal([listed(u) for u in UNITS], [N] * 3, f"{name}: units of brokers")
        sessions.leave()

    t.equal([s.id for s in sessions.all if sessions.owners[0].transcript(s.id).replace("\r", "") != s.seen], [], "transcripts that are not whole")

    def receipts(owner, s):
        # The broker writes one within a second, off the way of the call.
        found = machine.wait_for(lambda: [r for r in owner.manager("ListReceipts", "a{sv}", {"session": ("s", s.id)}) if len(r) > len(EVENTS)], f"receipts of {s.id}")[0]
        return sorted((r["Path"][1], r["Status"][1]) if isinstance(r["Path"], tuple) else (r["Path"], r["Status"]) for r in found)
    t.equal([r for r in sessions.each(receipts) if r != [(f"/call{i}", ANSWER) for i in range(len(EVENTS) + 1)]], [], "receipts that are not as they must be")

    brokers = [machine.pid_of(f"errand-broker@{s.id}.service") for s in sessions.all[:5]]
    t.note(f"a broker has {sum(map(memory, brokers)) // len(brokers) >> 10} KiB, a shim {sum(map(memory, shims[:5])) // 5 >> 10} KiB of its own")
    begun = time.monotonic()
    sessions.each(lambda owner, s: owner.session(s.id, "Stop"))
    t.note(f"stopped in {time.monotonic() - begun:.2f} s")
    t.equal(set(sessions.each(lambda owner, s: owner.state(s.id))), {"stopped"}, "states at the end")
    t.equal([os.listdir(f"/run/errand/{n}") for n in ("shim", "broker")], [[], []], "sockets that are left")
    # The managers have scopes and units until they have seen that nobody is in them.
    machine.wait_for(lambda: [listed(u) for u in UNITS] == [0] * 3, "end of the units of brokers")
    machine.wait_for(lambda: not system.agent_manager("list-units", "--all", "--plain", "--no-legend", "errand-session-*").out, "end of the scopes")
    machine.wait_for(lambda: not run("pgrep", "-u", str(agent), "-x", "errand-shim|bailey").out, "end of the processes of sessions")


run_tests()
