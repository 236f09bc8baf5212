# SPDX-License-Identifier: LGPL-2.1-or-later
"""A broker that was killed comes back through its service manager with the same session, and with nothing that was taken from it."""

import contextlib
import fcntl
import json
import os
import struct
import time

import errand_spool
import errand_world
from errand_broker import Broker, Channel, Provider, sealed_memfd
from errand_test import case, run
from errand_unit import Unit
from errand_upstream import Upstream

errand_world.enter()
world = errand_world.world()
ALL = ("setup", "keys", "spool", "state", "ca-p")
F_SEAL_RESIZE = 0x1 | 0x2 | 0x4  # against sealing, shrinking and growing


def status(broker, authority):
    client, answer = broker.open_tunnel(authority)
    client.close()
    return answer.status


def stats(broker):
    if broker.control is None:
        broker.connect_control()
    return broker.control.request("stats")


def fresh(t, broker):
    """Nothing of a session is there: not to be talked to, not to be handed over to, and not with the service manager."""
    reply = stats(broker)
    t.equal((reply["session"], reply["configured"], reply["listening"], reply["handedOver"], reply["grants"]), (None, False, False, False, 0), "stats")
    broker.wait_stored()


@case("S042 restart: killed before its setup it is as new")
def before_setup(t):
    broker = Unit(t)
    broker.wait_said("READY=1")
    broker.wait_said("STATUS=waiting to be set up")
    broker.start_again()
    broker.wait_said("READY=1", 2)
    fresh(t, broker)
    broker.start(allow=["*"])
    t.equal(broker.ask("GET http://x.test/ HTTP/1.1\r\nHost: x.test\r\n\r\n").status, 407, "status")


@case("S042 restart: killed between setup and hand-over it takes the listener with the same token, and no other")
def before_hand_over(t):
    Upstream(t, "9.9.9.9:443")
    broker = Unit(t)
    broker.setup({"p": Provider()}, allow=["api.example.com"])
    broker.wait_stored(*ALL)
    broker.wait_said("STATUS=session s1: waiting for its listener")
    broker.start_again()
    t.equal(stats(broker)["handedOver"], False, "handed over")
    t.equal(broker.hand_over(token="0" * 64)["type"], "error", "answer to another token")
    t.equal(broker.hand_over()["type"], "ready", "answer")
    t.equal(broker.call("p", "/status/200").status, 200, "status of a provider call")
    t.equal(status(broker, "api.example.com:443"), 200, "status of a tunnel")
    broker.wait_stored(*ALL, "listener")


@case("S042 C160 restart: killed while it serves, it serves on: same listener, credential, stand-in, key and allowlist")
def serving(t):
    up = Upstream(t, "9.9.9.9:443")
    broker = Unit(t).start({"p": Provider()}, allow=["api.example.com"])
    broker.wait_stored(*ALL, "listener")
    client, _ = broker.open_tunnel("api.example.com:443")
    for _ in range(3):
        broker.start_again()
        t.equal(client.rest(), b"", "what an open tunnel still gives")
        answer = broker.call("p", "/echo")
        t.equal(answer.status, 200, "status of a provider call")
        t.equal(status(broker, "denied.example:443"), 403, "status of another host")
        t.equal(broker.open_tunnel("api.example.com:443", auth="")[1].status, 407, "status without the credential")
        t.equal(broker.call("p", auth="Authorization: Bearer wrong\r\n").status, 401, "status without the stand-in")
        client, answer = broker.open_tunnel("api.example.com:443")
        t.equal(answer.status, 200, "status of a tunnel")
        reply = stats(broker)
        t.equal((reply["session"], reply["configured"], reply["handedOver"], reply["port"], reply["closed"]), ("s1", True, True, broker.port, False),
                "stats")
        broker.wait_stored(*ALL, "listener")
    t.contains(up.everything_received(), broker.providers["p"].key.encode(), "what the provider got")
    for secret in (broker.token, broker.credential, broker.providers["p"].key, broker.providers["p"].stand_in):
        t.lacks(broker.log() + "".join(broker.said), secret, "log and status")


@case("S042 restart: a session that connects while no broker is there is served by the next one")
def meanwhile(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Unit(t).start(allow=["api.example.com"])
    broker.kill()
    client = broker.connect()
    client.send(f"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n{broker.auth}\r\n")
    broker.start_again()
    t.equal(client.head().status, 200, "status")


@case("S131 S046 restart: killed at any moment, what was answered is kept, and what is kept is what was asked for so far")
def any_moment(t):
    steps = [("grant", f"g{i}") for i in range(4)] + [("revoke", "g1"), ("grant", "g4"), ("revoke", "g0"), ("revoke", "g3"), ("grant", "g1"), ("close", None)]

    def after(n):
        """The grants once n steps are done; None when it is closed."""
        there = set()
        for kind, grant in steps[:n]:
            if kind == "close":
                return None
            (there.add if kind == "grant" else there.discard)(grant)
        return frozenset(there)

    def found(broker):
        reply = stats(broker)
        if not reply["configured"]:
            return None
        # An id that is taken cannot be given again.
        return frozenset(g for g in ("g0", "g1", "g2", "g3", "g4") if broker.grant("x.test", "always", g)["type"] == "error")

    def check(answered):
        broker = Unit(t)
        broker.setup(allow=[])
        for i, (kind, grant) in enumerate(steps):
            members = {"grant": {"id": grant, "host": f"{grant}.test", "duration": "always"}, "revoke": {"id": grant}, "close": {}}[kind]
            broker.control.send({"v": 1, "type": kind, "serial": 100 + i, **members})
        for _ in range(answered):
            t.equal(broker.control.receive()["type"], "ok", "reply")
        broker.start_again()
        t.contains([after(n) for n in range(answered, len(steps) + 1)], found(broker), f"what is there after {answered} answers")
        broker.stop()
    t.each(range(len(steps) + 1), check)


@case("S131 S163 C163 restart: grants come back as they were: used ones stay used, revoked ones revoked, times run on")
def grants(t):
    Upstream(t, "9.9.9.9:443", "9.9.9.10:443", certificate=None)
    broker = Unit(t).start(allow=[])
    for i in range(40):
        world.resolver.names[f"n{i}.test"] = ["9.9.9.9"]
        broker.grant(f"n{i}.test", "always", f"a{i}")
    broker.grant("api.example.com", "once", "o1")
    broker.grant("denied.example", "once", "o2")
    t.equal(broker.grant("*.example.org", "until", "u1", expires=int((time.time() + 3600) * 1_000_000))["type"], "ok", "reply")
    world.resolver.names["a.example.org"] = ["9.9.9.9"]
    t.equal(status(broker, "api.example.com:443"), 200, "status of the grant for once")
    t.equal(status(broker, "n1.test:443"), 200, "status of a grant")
    t.equal(broker.control.request("revoke", id="a7")["type"], "ok", "reply")
    broker.start_again()
    t.equal(stats(broker)["grants"], 41, "grants")
    t.equal(status(broker, "a.example.org:443"), 200, "status before the time")
    t.equal(status(broker, "api.example.com:443"), 403, "status of what was used")
    t.equal(status(broker, "n7.test:443"), 403, "status of what was revoked")
    t.equal(status(broker, "n1.test:443"), 200, "status of what was granted")
    t.equal(broker.control.event("grant-used")["id"], "u1", "first use that is told")
    t.equal(status(broker, "denied.example:443"), 200, "status of the other grant for once")
    t.equal([broker.control.event("grant-used")["id"] for _ in range(1)], ["o2"], "next use that is told, a1 having been told before")
    ends = time.time() + 1.5
    t.equal(broker.grant("*.example.net", "until", "u2", expires=int(ends * 1_000_000))["type"], "ok", "reply")
    world.resolver.names["a.example.net"] = ["9.9.9.9"]
    broker.start_again()
    t.equal(status(broker, "denied.example:443"), 403, "status of what was used by the second process")
    t.equal([record["grant"] for kind, record in errand_spool.read(broker.spool()) if kind == errand_spool.GRANT_USED], ["o1", "o2"], "uses in the spool")
    while status(broker, "a.example.net:443") == 200:
        time.sleep(0.1)
    t.check(time.time() >= ends, "the grant ended before its time")
    t.equal(status(broker, "a.example.org:443"), 200, "status of the one whose time is not over")
    t.check(stats(broker)["refused"] >= 4, "the refusals of the processes before are not counted")


@case("S042 restart: a unit that is restarted in good order goes on in the same way")
def good_order(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Unit(t).start(allow=["api.example.com"])
    broker.wait_stored("setup", "keys", "spool", "state", "listener")
    broker.process.terminate()
    t.equal(broker.process.wait(), 0, "exit status")
    client = broker.connect()  # while nobody is there
    client.send(f"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n{broker.auth}\r\n")
    broker.start_again()
    t.equal(client.head().status, 200, "status")
    t.equal(stats(broker)["listening"], True, "listening")


@case("C163 restart: killed between the note of a use and the dial, a grant for once was used, and the spool says so")
def being_used(t):
    broker = Unit(t).start(allow=[])
    broker.grant("api.example.com", "once", "o1")
    broker.grant("other.example", "once", "o2")
    broker.grant("denied.example", "always", "a1")
    t.equal(status(broker, "other.example:443"), 502, "status of a name that does not resolve")
    # What was kept before the use went to the spool, as the older of the two texts still has it.
    fd = broker.fd("state")
    at, _, size = min(slots(fd), key=lambda s: s[1])
    before = json.loads(os.pread(fd, size, at + 16))
    t.equal(([g["id"] for g in before["grants"]], before["spending"]), (["o1", "a1"], {"id": "o2", "host": "other.example"}), "what was kept before the use")
    edit_state(broker, lambda state: state.update(grants=state["grants"][1:], spending={"id": "o1", "host": "api.example.com"}))
    broker.start_again()
    t.equal(stats(broker)["grants"], 1, "grants")
    t.equal(status(broker, "api.example.com:443"), 403, "status")
    t.equal([r["grant"] for _, r in errand_spool.read(broker.spool())], ["o2", "o1"], "uses in the spool")


@case("S046 S047 restart: closed stays closed, whatever is killed when, and nothing of it is kept")
def closed(t):
    Upstream(t, "9.9.9.9:443")
    broker = Unit(t).start({"p": Provider()}, allow=["api.example.com"])
    broker.grant("denied.example")
    broker.wait_stored(*ALL, "listener")
    t.equal(broker.control.request("close")["type"], "ok", "reply")
    t.equal(broker.stored, [], "what is kept once the close is answered")
    broker.start_again()
    fresh(t, broker)
    broker.check_port_closed()
    answer = broker.hand_over()
    t.check(answer is None or answer["type"] == "error", lambda: f"a hand-over was answered with {answer}")


@case("S046 restart: a service manager that forgets too late gives a closed session back as a closed one")
def closed_late(t):
    broker = Unit(t).start({"p": Provider()}, allow=["api.example.com"])
    broker.wait_stored(*ALL, "listener")
    kept = [(name, os.dup(fd)) for name, fd in broker.stored]
    t.equal(broker.control.request("close")["type"], "ok", "reply")
    broker.start_again(stored=kept)
    reply = stats(broker)
    t.equal((reply["closed"], reply["configured"], reply["listening"]), (True, False, False), "stats")
    t.equal(broker.setup({"p": Provider()}, allow=["*"])["type"], "error", "reply to another setup")
    answer = broker.hand_over()
    t.check(answer is None or answer["type"] == "error", lambda: f"a hand-over was answered with {answer}")
    for name, _ in kept:
        broker.wait_said(f"FDNAME={name}", 3)  # stored, forgotten at the close, and again
    for _, fd in kept:
        os.close(fd)


@case("C170 restart: wrong tokens are counted over a restart")
def guessing(t):
    broker = Unit(t)
    broker.setup(allow=["*"])
    for i in range(3):
        if i == 2:
            broker.start_again()
        t.equal(broker.hand_over(token=f"{i}" * 64)["type"], "error", "answer to a wrong token")
    broker.wait_log("closed for good")


def slots(fd):
    """(offset, generation, size) of the texts of a state."""
    found = []
    for slot in range(2):
        at = 4096 + slot * (4096 + 512 * 1024)
        generation, size, _ = struct.unpack("=QII", os.pread(fd, 16, at))
        found.append((at, generation, size))
    return found


def read_state(broker):
    fd = broker.fd("state")
    at, _, size = max(slots(fd), key=lambda s: s[1])
    return json.loads(os.pread(fd, size, at + 16))


def write_slot(fd, at, generation, text):
    crc = errand_spool.crc32c(struct.pack("=QII", generation, len(text), errand_spool.crc32c(text)))
    os.pwrite(fd, struct.pack("=QII", generation, len(text), crc) + text, at)


def edit_state(broker, change):
    """Writes a text in place of the newest, as a broker would have."""
    fd = broker.fd("state")
    state = read_state(broker)
    result = change(state)
    text = result if isinstance(result, bytes) else json.dumps(state).encode()
    at, generation, _ = max(slots(fd), key=lambda s: s[1])
    write_slot(fd, at, generation, text)


@case("restart: of a state that was being written when the process was killed the one before is used")
def torn(t):
    Upstream(t, "9.9.9.9:443", "9.9.9.10:443", certificate=None)
    broker = Unit(t).start(allow=[])
    broker.grant("api.example.com", "always", "g1")
    broker.grant("denied.example", "always", "g2")
    fd = broker.fd("state")
    at, _, size = max(slots(fd), key=lambda s: s[1])
    os.pwrite(fd, b"x", at + 16 + size // 2)
    broker.start_again()
    t.equal(stats(broker)["grants"], 1, "grants")
    t.equal(status(broker, "api.example.com:443"), 200, "status of the first")


def replaced(name, make):
    """What is kept, with another descriptor under that name."""
    def change(t, broker):
        return [(n, make(t, broker) if n == name else os.dup(fd)) for n, fd in broker.stored]
    return change


def edited(change):
    def send(t, broker):
        edit_state(broker, change)
        return [(n, os.dup(fd)) for n, fd in broker.stored]
    return send


def without(name):
    return lambda t, broker: [(n, os.dup(fd)) for n, fd in broker.stored if n != name]


def setup_with(change):
    def make(t, broker):
        fd = broker.fd("setup")
        message = json.loads(os.pread(fd, 65536, 0))
        change(message)
        return sealed_memfd(json.dumps(message).encode())
    return replaced("setup", make)


def listener_of(where, address, listen=True):
    def make(t, broker):
        s = where().socket()
        s.bind((address, 0))
        if listen:
            s.listen(1)
        return os.dup(s.fileno())
    return replaced("listener", make)


def plain(name, data=b"x"):
    def make(t, broker):
        path = t.path(name)
        with open(path, "wb") as f:
            f.write(data)
        return os.open(path, os.O_RDONLY)
    return replaced(name, make)


def put(o, *path_and_value):
    *path, last, value = path_and_value
    for step in path:
        o = o[step]
    o[last] = value


def memfd(size):
    def make(t, broker):
        fd = os.memfd_create("state", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.truncate(fd, size)
        fcntl.fcntl(fd, 1033, F_SEAL_RESIZE)
        return fd
    return make


def nothing_used(t, rows):
    def check(name):
        broker = Unit(t).start({"p": Provider()}, allow=["api.example.com"])
        broker.wait_stored(*ALL, "listener")
        broker.grant("denied.example", "always", "g9")
        broker.kill()
        broker.reader.join()
        broker.settle()
        with broker.heard:
            old = broker.stored
            broker.stored = rows[name](t, broker)
            for _, fd in old:
                os.close(fd)
        broker.start_again()
        broker.wait_log("is not used")
        fresh(t, broker)
        for secret in (broker.token, broker.credential, broker.providers["p"].key, broker.providers["p"].stand_in):
            t.lacks(broker.log(), secret, "log")
        # It is as good as new.
        broker.start({"p": Provider()}, allow=["api.example.com"])
        broker.wait_stored(*ALL, "listener")
        broker.stop()
    t.each(list(rows), check)


@case("S042 S072 restart: what is kept is judged as strictly as what came first; if anything is wrong, nothing of it is used")
def judged(t):
    nothing_used(t, {
        "no setup": without("setup"), "no keys": without("keys"), "no spool": without("spool"), "no state": without("state"), "no CA": without("ca-p"),
        "no listener": without("listener"), "a CA that nobody names": lambda t, b: [(n, os.dup(fd)) for n, fd in b.stored] + [("ca-q", os.dup(b.fd("ca-p")))],
        "setup in a file": plain("setup"), "setup unsealed": replaced("setup", lambda t, b: sealed_memfd(os.pread(b.fd("setup"), 65536, 0), 0)),
        "setup of another version": setup_with(lambda m: put(m, "v", 2)), "setup with an unknown member": setup_with(lambda m: put(m, "alow", [])),
        "setup with a bad pattern": setup_with(lambda m: put(m, "egress", "allow", ["*com"])), "setup of another session's name": setup_with(lambda m: put(m, "session", "../x")),
        "setup that names less": setup_with(lambda m: put(m, "fds", ["keys", "spool"])), "setup that names a socket": setup_with(lambda m: put(m, "fds", ["keys", "spool", "listener"])),
        "setup without a list": setup_with(lambda m: put(m, "fds", "keys")), "setup not JSON": replaced("setup", lambda t, b: sealed_memfd(b"{")),
        "setup empty": replaced("setup", lambda t, b: sealed_memfd(b"")),
    })


@case("S042 S072 restart: so it is with a key, a spool, a certificate, a state or a listener that is not what was handed over")
def judged_descriptors(t):
    nothing_used(t, {
        "keys in a file": plain("keys"), "keys unsealed": replaced("keys", lambda t, b: sealed_memfd(os.pread(b.fd("keys"), 65536, 0), 0)),
        "keys without the provider": replaced("keys", lambda t, b: sealed_memfd(json.dumps({"credential": b.credential, "providers": {}}).encode())),
        "spool not for appending": replaced("spool", lambda t, b: os.open(b.spool_path, os.O_WRONLY)), "spool read only": plain("spool"),
        "spool a device": replaced("spool", lambda t, b: os.open("/dev/null", os.O_WRONLY | os.O_APPEND)), "CA without one": plain("ca-p"),
        "state in a file": plain("state", b"\0" * (4096 + 2 * (4096 + 512 * 1024))), "state of another size": replaced("state", memfd(4096)),
        "state empty": replaced("state", memfd(4096 + 2 * (4096 + 512 * 1024))),
        "listener of the host": listener_of(lambda: world.host, "127.0.0.1"), "listener that does not listen": listener_of(world.session, "127.0.0.1", False),
        "listener on any address": listener_of(world.session, "0.0.0.0"), "listener a file": plain("listener"),
    })


@case("S042 S131 restart: and with a state that no broker can have written")
def judged_state(t):
    grant = {"id": "g1", "host": "x.test", "duration": "always", "deadline": 0, "used": False}
    nothing_used(t, {
        "state not JSON": edited(lambda s: b"{"), "state a list": edited(lambda s: b"[]"), "state of another version": edited(lambda s: put(s, "v", 2)),
        "state without closed": edited(lambda s: s.pop("closed") and None), "closed a number": edited(lambda s: put(s, "closed", 0)),
        "too many wrong tokens": edited(lambda s: put(s, "wrongTokens", 4)), "no grants": edited(lambda s: s.pop("grants") and None),
        "a grant of no host": edited(lambda s: put(s, "grants", [{**grant, "host": "http://x"}])),
        "a grant of no id": edited(lambda s: put(s, "grants", [{**grant, "id": ""}])), "a grant twice": edited(lambda s: put(s, "grants", [grant, grant])),
        "a grant for ever": edited(lambda s: put(s, "grants", [{**grant, "duration": "forever"}])),
        "a grant for once that was used": edited(lambda s: put(s, "grants", [{**grant, "duration": "once", "used": True}])),
        "a grant without a word on its use": edited(lambda s: put(s, "grants", [{k: v for k, v in grant.items() if k != "used"}])),
        "a grant being used of no host": edited(lambda s: put(s, "spending", {"id": "g1", "host": "*"})),
        "too many grants": edited(lambda s: put(s, "grants", [{**grant, "id": f"g{i}"} for i in range(1025)])),
    })


@case("S066 restart: half a receipt that the killed process left is taken back before the next one is written")
def torn_receipt(t):
    Upstream(t, "9.9.9.9:443")
    broker = Unit(t).start({"p": Provider()}, allow=["api.example.com"])
    broker.call("p", "/status/200")
    broker.receipts(1)
    whole = broker.spool()
    with open(broker.spool_path, "ab") as f:
        f.write(whole[:len(whole) // 2])
    broker.start_again()
    broker.call("p", "/status/204")
    t.equal([r["status"] for r in broker.receipts(2)], [200, 204], "statuses in the spool")


@case("restart: a descriptor of no known name, or two of one name, are refused before anything is served")
def unknown(t):
    broker = Unit(t).start(allow=["*"])
    broker.wait_stored("setup", "keys", "spool", "state", "listener")
    for extra, part in (([("other", broker.fd("keys"))], "an unknown socket was passed: other"), ([("keys", broker.fd("keys"))], "passed twice: keys"),
                        ([("ca-A", broker.fd("keys"))], "an unknown socket was passed: ca-A"), ([("ca-", broker.fd("keys"))], "an unknown socket was passed: ca-")):
        broker.start_again(stored=broker.stored + extra)
        broker.killed = True
        broker.wait_log(part)
        t.equal(broker.process.wait(), 2, "exit status")
    broker.start_again()
    t.equal(stats(broker)["configured"], True, "configured, once the right ones come again")


@case("restart: nothing is stored without a service manager, and a manager that keeps nothing changes nothing")
def nobody_keeps(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Unit(t, keeps=False).start(allow=["api.example.com"])
    t.equal(status(broker, "api.example.com:443"), 200, "status")
    broker.start_again()
    fresh(t, broker)
    alone = Broker(t, "other").start(allow=["api.example.com"])
    t.equal(status(alone, "api.example.com:443"), 200, "status without a service manager")
    names = []
    for fd in os.listdir(f"/proc/{alone.process.pid}/fd") if os.getuid() == 0 else []:
        with contextlib.suppress(FileNotFoundError):  # a tunnel's, closed meanwhile
            names.append(os.readlink(f"/proc/{alone.process.pid}/fd/{fd}"))
    t.equal([n for n in names if "memfd" in n], [], "memfds of a broker without a service manager")


@case("service: it says when it is ready, what it does, and that it stops")
def says(t):
    broker = Unit(t)
    broker.wait_said("READY=1")
    broker.start(allow=["*"])
    broker.wait_said(f"STATUS=session s1: serving port {broker.port}")
    broker.control.request("close")
    broker.wait_said("STATUS=closed; 0 tunnels are open")
    broker.stop()
    broker.wait_said("STOPPING=1")


@case("restart: a supervisor adopts a session, grants, closes, and the unit's next process knows")
def adopted(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Unit(t).start(allow=[])
    for _ in range(3):
        status(broker, "api.example.com:443")
    broker.start_again()
    t.equal(stats(broker)["refused"], 3, "refusals")
    broker.grant("api.example.com", "always", "g1")
    broker.control.close()
    newer = Channel(broker.control_path)
    t.equal(newer.request("stats")["grants"], 1, "grants")
    t.equal(status(broker, "api.example.com:443"), 200, "status")
    t.equal(newer.request("close")["type"], "ok", "reply")
    newer.close()


@case("budgets restart: what was spent before the broker was killed is spent afterwards")
def budgets(t):
    Upstream(t, "9.9.9.9:443")
    broker = Unit(t)
    broker.budgets = {"bytes": {"limit": 1000, "spent": 100}}
    broker.start({"p": Provider(budgets={"requests": {"limit": 3}}), "q": Provider(name="OTHER_KEY")}, allow=["api.example.com"])
    broker.wait_stored(*ALL, "ca-q", "listener")
    t.equal([broker.call("p", "/length/10").status for _ in range(2)], [200, 200], "statuses")
    broker.start_again()
    t.equal([broker.call("p", "/length/10").status for _ in range(2)], [200, 403], "statuses afterwards")
    t.equal(len(broker.call("q", "/length/900").body), 900, "bytes")
    broker.wait_log("GET /length/900: 200, completed")  # the client may have had its last byte before
    broker.start_again()
    answer = broker.call("q", "/length/1")
    t.equal(answer.status, 403, "status")
    t.contains(answer.text, "1000 bytes", "body")


if __name__ == "__main__":
    run()
