# SPDX-License-Identifier: LGPL-2.1-or-later
"""Clients of the system bus that ask and do not read. What the bus daemon keeps for them counts against errandd, and above a limit it hears errandd no more."""

import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_bus import ERROR, METHOD, RETURN  # noqa: E402
from errand_system import MANAGER, ROOT, SESSION, Client  # noqa: E402
from errand_test import case  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

OWNER, MEMBER = "alice", "carol"
STRANGERS = [f"mallory{n}" for n in range(8)]
MIB = 1024 * 1024
LIMIT = "org.errand1.Error.LimitExceeded"
BATCH = 100  # above 128 calls that are not answered the bus daemon itself refuses

for name in (OWNER, MEMBER):
    machine.account(name, "errand-users")
for name in STRANGERS:
    machine.account(name)
system.configure()


def memory():
    """Of the bus daemon, in MiB."""
    with open(f"/proc/{machine.pid_of('dbus.service')}/status", encoding="ascii") as f:
        return next(int(line.split()[1]) for line in f if line.startswith("VmRSS:")) // 1024


def flood(t, clients, calls, *arguments, batch=BATCH):
    """So many calls of each of these, who read nothing, while somebody else is answered; → by how much the bus daemon has grown, in MiB."""
    other, before = Client(MEMBER, timeout=10), memory()
    for _ in range(calls // batch):
        for client in clients:
            for _ in range(batch):
                client.send(*arguments)
        other.get(ROOT, MANAGER, "Version")
    grown = memory() - before
    t.note(f"the bus daemon has grown by {grown} MiB")
    return grown


def take(client, serial):
    """Reads what was kept for it, until that call is answered; → how often what came."""
    seen = {}
    while True:
        m = client.receive()
        if m["kind"] == METHOD:
            client.answer_ping(m)
        if m["kind"] in (RETURN, ERROR):
            what = m.get("error", "answer")
            seen[what] = seen.get(what, 0) + 1
        if m.get("reply_serial") == serial:
            return seen


def is_served_again(t, client, *arguments):
    """Once it has read what there was, and said so."""
    last = client.serial
    t.note(f"it was sent {take(client, last)}")
    machine.wait_for(lambda: client.fails(*arguments) != LIMIT, "an answer for who has read")


@case("C204: a member who asks for transcripts and reads none keeps nobody from being answered, and little of the bus daemon's memory", timeout=120)
def _(t):
    t.log("journal", lambda: system.log()[-3000:])
    owner, asking = Client(OWNER), Client(OWNER)
    owner.start("large", ["/bin/sh", "-c", f"head -c {2 * MIB} /dev/zero | tr '\\0' x"])
    owner.wait("large", "stopped")
    # polkit is asked about each, and about sixteen of an account at once.
    grown = flood(t, [asking], 1600, f"{ROOT}/session/large", SESSION, "ReadTranscript", "tu", 0, MIB, batch=8)
    t.check(grown < 48, "more than errandd lets a client of an account leave")
    t.equal(owner.fails(ROOT, MANAGER, "GetSession", "s", "large"), LIMIT, "answer to the account's other connections")
    said = machine.run("runuser", "-u", OWNER, "--", "errand", "session", "list").err
    t.check("wait to be read by connections of your account, most by :" in said, said)
    asking.close()
    machine.wait_for(lambda: Client(OWNER).state("large") == "stopped", "an answer when that connection is closed")


@case("C204: a reader of a transcript of 64 MiB, a piece after the other, is refused none", timeout=120)
def _(t):
    t.log("journal", lambda: system.log()[-3000:])
    owner = Client(OWNER)
    for _ in range(64):
        t.equal(len(owner.session("large", "ReadTranscript", "tu", 0, MIB)[1]), MIB, "bytes")


class Raw(Client):
    """Dispatches nothing between its calls."""
    def answer_ping(self, m):
        pass


@case("C204: nor is one that answers no ping, the command, or an account with thirty terminals at once and thirty more that read nothing else", timeout=120)
def _(t):
    t.log("journal", lambda: system.log()[-3000:])
    reader = Raw(OWNER)
    for _ in range(64):
        t.equal(len(reader.session("large", "ReadTranscript", "tu", 0, MIB)[1]), MIB, "bytes")
    t.equal(machine.good("runuser", "-u", OWNER, "--", "errand", "session", "logs", "large").count("x"), 2 * MIB, "bytes of the command")
    owner = Client(OWNER)
    for number in range(6):
        owner.start(f"u{number}", ["/bin/sleep", "infinity"], interactive=True)
        t.defer(Client("root").end, f"u{number}")
    attach = [(f"{ROOT}/session/u{n % 6}", SESSION, "Attach", "a{sv}", {}) for n in range(30)]
    alone = []
    for arguments in attach:
        alone.append(Raw(OWNER))
        os.close(alone[-1].call(*arguments)[0])
    at_once = Client(OWNER)
    serials = [at_once.send(*arguments) for arguments in attach]
    t.equal([at_once.await_reply(*serials).get("error") for _ in serials], [None] * len(serials), "errors of terminals that are asked for at once")


@case("C204: a stranger who asks what is public, or for what there is not, and reads nothing, keeps nobody from being answered", timeout=120)
def _(t):
    t.log("journal", lambda: system.log()[-3000:])
    asking = Client(STRANGERS[0])
    grown = flood(t, [asking], 40000, ROOT, "org.freedesktop.DBus.Introspectable", "Introspect")
    t.check(grown < 80, "what errandd lets it leave, and what the bus daemon adds itself")
    is_served_again(t, asking, ROOT, MANAGER, "NoSuch")
    flood(t, [asking], 40000, ROOT, MANAGER, "NoSuch")


@case("C204: nor one whose calls are wrong in thirty MiB, of which an error would repeat all", timeout=120)
def _(t):
    t.log("journal", lambda: system.log()[-3000:])
    asking = Client(STRANGERS[1])
    asking.get(ROOT, MANAGER, "Version")
    for arguments in ((ROOT, "org.freedesktop.DBus.Properties", "Get", "ss", "x" * (30 * MIB), "Version"),
                      ("/" + "x" * (30 * MIB), "org.freedesktop.DBus.Introspectable", "Introspect")):
        flood(t, [asking], 8, *arguments, batch=2)


@case("C204: nor one that answers nothing on 140 connections, so that errandd could not ask polkit about others", timeout=120)
def _(t):
    t.log("journal", lambda: system.log()[-3000:])
    asking = [Client(STRANGERS[2]) for _ in range(140)]
    flood(t, asking, 9, ROOT, "org.freedesktop.DBus.Introspectable", "Introspect", batch=9)
    Client(MEMBER).create("asked", ["/bin/true"], project="another")


class Blind(Client):
    def answer(self, sender, serial):
        self._write(RETURN, [(5, ("u", serial)), (6, ("s", sender))], "", ())


@case("C204: nor one that reads nothing and answers what it may have been asked, by the numbers that errandd's other messages have", timeout=120)
def _(t):
    t.log("journal", lambda: system.log()[-3000:])
    asking, reading = Blind(STRANGERS[3]), Client(STRANGERS[3])
    get = (ROOT, "org.freedesktop.DBus.Properties", "Get", "ss", MANAGER, "Version")
    last = reading.await_reply(reading.send(*get))
    for _ in range(200):
        for _ in range(40):
            asking.send(ROOT, "org.freedesktop.DBus.Introspectable", "Introspect")
        m = reading.await_reply(reading.send(*get))
        for serial in range(last["serial"], m["serial"] + 1):
            asking.answer(m["sender"], serial)
        if "error" in m:
            break
        last = m
    t.equal(m.get("error"), LIMIT, "answer to its account after 64 MiB that it has not read")


@case("C204: eight strangers who read nothing keep nobody from being answered", timeout=120)
def _(t):
    t.log("journal", lambda: system.log()[-3000:])
    asking = [Client(name) for name in STRANGERS]
    flood(t, asking, 10000, ROOT, "org.freedesktop.DBus.Introspectable", "Introspect")


@case("C204: a member who takes none of the terminals that are sent to it keeps nobody else from theirs", timeout=120)
def _(t):
    t.log("journal", lambda: system.log()[-3000:])
    owner, other, asking = Client(OWNER), Client(MEMBER), Client(OWNER)
    other.start("theirs", ["/bin/sleep", "infinity"], project="another", interactive=True)
    t.defer(other.end, "theirs")
    for number in range(6): # sixteen terminals each, and the bus daemon keeps 64 descriptors of one sender
        owner.start(f"t{number}", ["/bin/sleep", "infinity"], interactive=True)
        t.defer(Client("root").end, f"t{number}")
    for number in range(6):
        flood(t, [asking], 16, f"{ROOT}/session/t{number}", SESSION, "Attach", "a{sv}", {}, batch=8)
    (terminal,) = other.session("theirs", "Attach", "a{sv}", {})
    os.close(terminal)


run_tests()
