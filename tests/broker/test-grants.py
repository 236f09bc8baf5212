# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the owner grants while the session runs."""

import threading
import time

import errand_spool
import errand_world
from errand_broker import Broker
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


if __name__ == "__main__":
    run()
