# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the owner grants while the session runs."""

import json
import os
import threading
import time

import errand_spool
import errand_world
from errand_broker import F_SEALS_ALL, Broker, sealed_memfd
from errand_test import case, run
from errand_upstream import Peer, Upstream

errand_world.enter()
world = errand_world.world()
resolver = world.resolver


def status(broker, authority):
    client, answer = broker.open_tunnel(authority)
    client.close()
    return answer.status


@case("S132: after the grant the next attempt goes through, on the same kept connection, nothing restarted")
def retry(t):
    up = Upstream(t, "9.9.9.10:80", certificate=None)
    broker = Broker(t).start(allow=["api.example.com"], ports=[80])
    client = broker.connect()
    request = f"GET http://denied.example/status/200 HTTP/1.1\r\nHost: denied.example\r\n{broker.auth}\r\n"
    client.send(request)
    t.equal(client.answer().status, 403, "status")
    t.equal(up.accepts(), [], "upstream connections")
    t.equal(broker.grant("denied.example")["type"], "ok", "reply")
    client.send(request)
    t.equal(client.answer().status, 200, "status")
    t.equal(broker.process.poll(), None, "exit status")


@case("S131 C163: once lets exactly one of many connections through, and its use is in the spool before the dial")
def once(t):
    up = Upstream(t, "9.9.9.10:443", certificate=None)
    broker = Broker(t).start(allow=[])
    t.equal(broker.grant("denied.example", "once", "g-once")["type"], "ok", "reply")
    statuses = []
    clients = [broker.connect() for _ in range(20)]

    def ask(client):
        client.send(f"CONNECT denied.example:443 HTTP/1.1\r\nHost: denied.example:443\r\n{broker.auth}\r\n")
        statuses.append(client.head().status)
    threads = [threading.Thread(target=ask, args=(c,)) for c in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    t.equal(sorted(statuses), [200] + [403] * 19, "statuses")
    t.equal(up.accepts(), ["9.9.9.10:443"], "upstream connections")
    records = errand_spool.read(broker.spool())
    t.equal([kind for kind, _ in records], [errand_spool.GRANT_USED], "records")
    t.contains(str(records[0][1]), "g-once", "record")
    t.contains(str(records[0][1]), "denied.example", "record")
    t.contains(str(broker.control.event("grant-used")), "g-once", "event")
    t.equal(status(broker, "denied.example:443"), 403, "status afterwards")


@case("C163: a grant for once that met a port or an address the broker refuses anyway is not used up")
def once_kept(t):
    Upstream(t, "9.9.9.10:443", certificate=None)
    broker = Broker(t).start(allow=[])
    broker.grant("denied.example", "once")
    t.equal(status(broker, "denied.example:22"), 403, "status on another port")
    t.equal(broker.open_tunnel("denied.example:443", auth="")[1].status, 407, "status without the credential")
    t.equal(status(broker, "denied.example:443"), 200, "status")
    broker.grant("10.0.0.5", "once", "g-inside")
    t.equal(status(broker, "10.0.0.5:443"), 403, "status of a literal that is refused")
    t.equal([record["grant"] for _, record in errand_spool.read(broker.spool())], ["g1"], "grants that were used")


@case("S131: a grant until a time ends then; always stays; revoke ends it")
def durations(t):
    Upstream(t, "9.9.9.10:443", "9.9.9.9:443", certificate=None)
    broker = Broker(t).start(allow=[])
    broker.grant("api.example.com", "always", "g1")
    ends = time.time() + 1.5
    reply = broker.grant("denied.example", "until", "g2", expires=int(ends * 1_000_000))
    t.equal(reply["type"], "ok", "reply")
    t.equal(status(broker, "api.example.com:443"), 200, "status for always")
    while status(broker, "denied.example:443") == 200:
        t.check(time.time() < ends + 20, "the grant does not end")
        time.sleep(0.1)
    t.check(time.time() >= ends, "the grant has ended before its time, or never began")
    t.equal(status(broker, "api.example.com:443"), 200, "status for always")
    t.equal(broker.control.request("revoke", id="g1")["type"], "ok", "reply")
    t.equal(status(broker, "api.example.com:443"), 403, "status after revoke")
    t.equal(broker.control.request("revoke", id="g1")["type"], "error", "reply to a second revoke")


@case("S133 C120: *.name covers what is below it")
def below(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t).start(allow=[])
    for name in ("a.example.com", "a.b.example.com"):
        resolver.names[name] = ["9.9.9.9"]
    broker.grant("*.example.com")
    t.equal(status(broker, "a.example.com:443"), 200, "status")
    t.equal(status(broker, "a.b.example.com:443"), 200, "status")
    t.equal(status(broker, "example.com:443"), 403, "status")
    t.equal(status(broker, "xexample.com:443"), 403, "status")


@case("S134 C165 C135: a grant opens neither another port, nor another name, nor an address the broker refuses")
def narrow(t):
    trap = Upstream(t, "10.0.0.5:443", "9.9.9.9:22", "9.9.9.9:80", certificate=None)
    broker = Broker(t).start(allow=[])
    resolver.names.update({"inside.test": ["10.0.0.5"], "sub.api.example.com": ["9.9.9.9"]})
    for i, host in enumerate(("api.example.com", "inside.test", "10.0.0.5")):
        broker.grant(host, "always", f"g{i}")
    for authority in ("api.example.com:22", "api.example.com:80", "sub.api.example.com:443", "9.9.9.9:443", "inside.test:443", "10.0.0.5:443"):
        t.equal(status(broker, authority), 403, f"status of {authority}")
    other = Broker(t, "other").start(allow=[])
    t.equal(status(other, "api.example.com:443"), 403, "status in another session")
    t.equal(trap.accepts(), [], "upstream connections")


@case("S134: a grant of a path, a URL, a port or of no host at all is refused")
def malformed(t):
    broker = Broker(t).start(allow=[])
    rows = ["api.example.com/path", "https://api.example.com", "api.example.com:443", "", "*com", "a..b", "ü.example", "a b", "x\n", "user@x.com", "127.1"]
    t.each(rows, lambda host: t.equal(broker.grant(host)["type"], "error", "type of the reply"))
    for members in ({"duration": "forever"}, {"duration": "until"}, {"duration": "always", "expires": 1}, {"duration": 1}, {"path": "/x"}):
        broker.control.close()
        broker.connect_control()
        t.equal(broker.grant("api.example.com", **members)["type"], "error", f"type of the reply to {members}")
    t.equal(status(broker, "api.example.com:443"), 403, "status")


@case("S129: a refused host is told at once, once a minute for each host and three hosts a minute; the rest is counted")
def told(t):
    broker = Broker(t).start(allow=[])
    for _ in range(5):
        for i in range(6):
            t.equal(status(broker, f"h{i}.test:443"), 403, "status")
    t.equal(status(broker, "*.com:443"), 400, "status of a wildcard")
    broker.control.request("stats")  # every event that was sent before its reply has come by then
    hosts = [e["host"] for e in broker.control.events if e["type"] == "refused"]
    t.equal(hosts, ["h0.test", "h1.test", "h2.test"], "hosts that were told")
    event = next(e for e in broker.control.events if e["type"] == "refused")
    t.equal(event.get("port"), 443, "port in the event")
    t.equal(broker.control.request("close")["type"], "ok", "reply to close")
    rest = [(e["count"], e["total"]) for e in broker.control.events if e["type"] == "denied-summary"]
    t.equal(rest, [(27, 30)], "what the close tells of the refusals that waited for their minute")


@case("S132: what an agent asks for while nobody decides does not wait")
def never_held(t):
    peer = Peer(t, "9.9.9.10", 443)
    broker = Broker(t).start(allow=[])
    broker.control.close()  # there is not even anybody who could decide
    broker.control = None
    t.equal(status(broker, "denied.example:443"), 403, "status")
    t.check(peer.untouched())


def told(broker, grants, seals=F_SEALS_ALL, **members):
    """The answer to a list of grants, or to what stands in its place."""
    text = grants if isinstance(grants, bytes) else json.dumps({"grants": grants}).encode()
    fd = sealed_memfd(text, seals)
    try:
        return broker.control.request("grants", [fd], **{"fds": ["grants"], **members})
    finally:
        os.close(fd)


def named(number, host, **members):
    return {"id": str(number), "host": host, "duration": "always", **members}


@case("S131: as many grants as there may be, of the longest hosts, are told in one message, and told again change nothing")
def many(t):
    Upstream(t, "9.9.9.10:443", certificate=None)
    broker = Broker(t).start(allow=[])
    label = "x" * 63
    longest = [named(n, f"{n:04}{'y' * 57}.{label}.{label}.{label}") for n in range(1, 1024)]
    t.equal(len(longest[0]["host"]), 253, "bytes of a host")
    broker.grant("denied.example", "once", "kept")
    t.equal(told(broker, [named("kept", "other.example"), *longest])["type"], "ok", "the answer")
    t.equal(broker.control.request("stats")["grants"], 1024, "grants")
    t.equal(told(broker, longest)["type"], "ok", "the answer to the same again")
    t.equal(broker.control.request("stats")["grants"], 1024, "grants")
    t.equal([status(broker, f"{h}:443") for h in ("other.example", "denied.example", "denied.example")], [403, 200, 403], "the one that was there")
    t.contains(told(broker, [named("a", "a.example"), named("b", "b.example")])["text"], "too many", "one too many")
    t.equal(broker.control.request("stats")["grants"], 1023, "grants after one too many")


@case("S131 S134: of grants that are told together none is given where one cannot be")
def none(t):
    broker = Broker(t).start(allow=[])
    good = named(1, "denied.example")
    rows = [([good, named(2, "https://x.example")], "grant \"2\": "), ([good, named("a b", "x.example")], "id"), ([good, good], "already"),
            ([good, named(2, "x.example", port=443)], "\"grants[1].port\" is not known"), ([good, {"id": "2"}], "has the strings"), ([good, 7], "not an object"),
            ([good, named(2, "x.example", duration="until")], "duration"), ([good, named(2, "x.example", expires=1)], "duration"),
            (b'{"grants":{}}', "not a list"), (b'{"grants":[],"x":1}', "not known"), (b"", "no JSON"), (b'{"grants":[]', "no JSON"),
            (b'{"grants":[' + b" " * (512 * 1024) + b"]}", "larger than"), ([named(n, "x.example") for n in range(1025)], "more than 1024")]

    def check(row):
        grants, part = row
        broker.connect_control()
        reply = told(broker, grants)
        t.equal(reply["type"], "error", "the answer")
        t.contains(reply["text"], part, "the answer")
        broker.connect_control()
        t.equal((broker.control.request("stats")["grants"], status(broker, "denied.example:443")), (0, 403), "grants, and the host's status")
    t.each(rows, check)


@case("S131: grants that are told together come in a memfd that nobody can change any more, with no other descriptor, and after the setup")
def sealed(t):
    broker = Broker(t)
    broker.connect_control()
    t.contains(told(broker, [])["text"], "not set up yet", "before the setup")
    broker.start(allow=[])
    for seals in (0, F_SEALS_ALL & ~0x8, F_SEALS_ALL & ~0x2, F_SEALS_ALL & ~0x4):
        t.contains(told(broker, [named(1, "denied.example")], seals)["text"], "sealed", "the answer")
        broker.connect_control()
    for members in ({}, {"fds": []}):
        t.contains(broker.control.request("grants", **members)["text"], "one descriptor", "without one")
        broker.connect_control()
    other = os.open("/dev/null", os.O_RDONLY)
    fd = sealed_memfd(b'{"grants":[]}')
    t.contains(broker.control.request("grants", [fd, other], fds=["grants", "other"])["text"], "one descriptor", "with another")
    broker.connect_control()
    t.contains(broker.control.request("grants", [other], fds=["grants"])["text"], "sealed", "no memfd")
    os.close(other)
    os.close(fd)
    broker.connect_control()
    t.contains(told(broker, [], host="x.example")["text"], "has no \"host\"", "a member that it has not")
    broker.connect_control()
    t.equal(broker.control.request("stats")["grants"], 0, "grants")
    broker.control.request("close")
    t.contains(told(broker, [])["text"], "closed", "after the close")


if __name__ == "__main__":
    run()
