# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which addresses a broker dials: judged when it connects, one lookup for one dial."""

import os
import ssl

import errand_test
import errand_world
from errand_broker import Broker
from errand_test import case, run
from errand_upstream import Peer, Upstream
from errand_world import FORBIDDEN4, FORBIDDEN6, HOST4, HOST6

errand_world.enter()
world = errand_world.world()
resolver = world.resolver


def bracket(address):
    return f"[{address}]" if ":" in address else address


def everywhere(t, port=443):
    """A listener on every address that must not be dialled: those of the internet side, and the host's own."""
    far = Upstream(t, *(f"{bracket(a)}:{port}" for a in FORBIDDEN4 + FORBIDDEN6), certificate=None)
    near = Upstream(t, f"0.0.0.0:{port}", f"[::]:{port}", certificate=None, namespace=world.host)
    return far, near


def connect(broker, authority):
    client, answer = broker.open_tunnel(authority)
    client.close()
    return answer


def assert_untouched(t, *upstreams):
    for up in upstreams:
        t.equal(up.accepts(), [], "connections to forbidden addresses")


@case("S020 S075 S076 C135 C136: a name that resolves to a forbidden address is not a public host, whatever is allowed")
def names(t):
    traps = everywhere(t)
    broker = Broker(t).start(allow=["*"])
    broker.grant("metadata.test", "always")
    addresses = (*FORBIDDEN4, *FORBIDDEN6, HOST4, HOST6, "127.0.0.1", "127.8.8.8", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1", "::ffff:10.0.0.5",
                 "::ffff:169.254.169.254", "::127.0.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "fe80::1", "fec0::1", "ff02::1",
                 "64:ff9b::7f00:1", "2002:7f00:1::1", "2001:0:909:909::f5ff:fffa")

    def check(address):
        name = "metadata.test"
        resolver.names[name] = [address]
        answer = connect(broker, f"{name}:443")
        t.equal((answer.status, answer.reason), (403, "not a public host"), "answer of CONNECT")
        t.contains(answer.text, "not a public host", "body")
        t.contains(broker.wait_log("refused with 403"), "not a public host, which no grant changes: ", "log line")
        answer = broker.ask(f"GET http://{name}:443/ HTTP/1.1\r\nHost: {name}:443\r\n{broker.auth}\r\n")
        t.equal((answer.status, answer.reason), (403, "not a public host"), "answer of GET")
    t.each(addresses, check)
    assert_untouched(t, *traps)
    broker.control.request("stats")
    t.equal([e for e in broker.control.events if e["type"] == "refused"], [], "questions that an owner is asked")


@case("S020 C128 C129 C135: the same addresses as literals")
def literals(t):
    traps = everywhere(t)
    broker = Broker(t).start(allow=["*"])
    t.each([*FORBIDDEN4, *FORBIDDEN6, HOST4, HOST6, "127.0.0.1", "::1", "0.0.0.0", "::", "::ffff:127.0.0.1", "::ffff:7f00:1",
            "::ffff:10.0.0.5", "::127.0.0.1", "::a9fe:a9fe", "169.254.169.254", "168.63.129.16", "fe80::1", "224.0.0.1", "255.255.255.255"],
           lambda a: check_literal(t, broker, a))
    assert_untouched(t, *traps)


def check_literal(t, broker, address):
    answer = connect(broker, f"{bracket(address)}:443")
    # A literal that is not in its one canonical form may be malformed already.
    t.contains((400, 403), answer.status, "status")
    if answer.status == 403:
        t.equal(answer.reason, "not a public host", "reason")


@case("C131 C132: a host that reads as a number and is no canonical dotted quad is malformed, under * and any rule")
def numbers(t):
    traps = everywhere(t)
    broker = Broker(t).start(allow=["*"])
    rows = ["0177.0.0.1", "012.0.0.1", "127.0.0.01", "0000127.0.0.1", "169.254.0251.254", "2130706433", "0x7f000001", "0x7f.1", "127.1",
            "0xa9fea9fe", "1.0x01010101", "0", "127.0.1", "1.2.3.4.5", "256.1.1.1", "127.0.0.0x1", "0X7F.0.0.1", "4294967297", "9.9.9.9.9"]
    t.each(rows, lambda a: t.equal(connect(broker, f"{a}:443").status, 400, "status"))
    resolver.asked.clear()
    t.each(["[127.0.0.1]", "[::ffff:127.0.0.1%lo]", "[fe80::1%25lo]", "[::1", "[]", "[:]", "[v1.x]"],
           lambda a: t.equal(connect(broker, f"{a}:443").status, 400, "status"))
    t.equal(resolver.asked, [], "lookups")
    assert_untouched(t, *traps)


@case("C136: names of the host itself")
def own_names(t):
    traps = everywhere(t)
    broker = Broker(t).start(allow=["*"])
    t.each(["localhost", "x.localhost", "localhost6", "ip6-localhost"],
           lambda name: t.contains((403, 502), connect(broker, f"{name}:443").status, "status"))
    t.equal(connect(broker, "localhost:443").reason, "not a public host", "reason")
    assert_untouched(t, *traps)


@case("S073: the host's own hosts file and resolver decide, the first where it names the host")
def host_resolver(t):
    up = Upstream(t, "9.9.9.9:443", "9.9.9.10:443", certificate=None)
    broker = Broker(t).start(allow=["*"])
    resolver.names["from-dns.test"] = ["9.9.9.10"]
    known = resolver.names["api.example.com"]
    if os.path.exists("/etc/hosts"):
        resolver.names["api.example.com"] = ["10.0.0.5"]  # the hosts file comes first
    try:
        t.equal(connect(broker, "from-dns.test:443").status, 200, "status")
        t.equal(up.accepts(), ["9.9.9.10:443"], "the first upstream connection")  # accepted before the second one is made
        t.equal(connect(broker, "api.example.com:443").status, 200, "status")
    finally:
        resolver.names["api.example.com"] = known
    t.equal(up.accepts(), ["9.9.9.10:443", "9.9.9.9:443"], "upstream connections")


@case("S079: a name that does not resolve is answered with 502, and the log has the resolver's reason")
def unresolved(t):
    broker = Broker(t).start(allow=["*"])
    resolver.names["servfail.test"] = "servfail"
    for name in ("nothing.test", "servfail.test"):
        answer = connect(broker, f"{name}:443")
        t.equal((answer.status, answer.reason), (502, "the name did not resolve"), "answer")
        t.contains(answer.text, "the name did not resolve", "body")
        line = broker.wait_log(name)
        t.contains(line, broker.session, "log line")
        t.matches(line, "(?i)(not known|temporary|failure|no address)", "log line")


@case("S077: of several addresses the forbidden ones are never dialled")
def mixed(t):
    traps = everywhere(t)
    up = Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t).start(allow=["*"])
    resolver.names["mixed.test"] = ["10.0.0.5", "127.0.0.1", "9.9.9.9", "169.254.169.254", "fd00:ec2::254", "::1"]
    for _ in range(5):
        t.equal(connect(broker, "mixed.test:443").status, 200, "status")
    t.equal(up.accepts(), ["9.9.9.9:443"] * 5, "upstream connections")
    assert_untouched(t, *traps)


@case("S074 C133: what is dialled is what was judged: an answer that changes never leads inside")
def rebinding(t):
    traps = everywhere(t)
    up = Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t).start(allow=["*"])
    resolver.names["rebind.test"] = lambda kind, before: ["9.9.9.9"] if before % 2 == 0 else ["127.0.0.1"]
    statuses = []
    for i in range(60):
        if i % 2:
            statuses.append(connect(broker, "rebind.test:443").status)
        else:
            statuses.append(broker.ask(f"GET http://rebind.test:443/status/200 HTTP/1.1\r\nHost: rebind.test:443\r\n{broker.auth}\r\n").status)
    t.equal(set(statuses), {200, 403}, "statuses")
    t.equal(len(up.accepts()), statuses.count(200), "number of upstream connections")
    assert_untouched(t, *traps)


@case("C139: a lookup that failed is not repeated before the dial")
def flaky(t):
    traps = everywhere(t)
    broker = Broker(t).start(allow=["*"])
    # The stub resolver of libc itself asks again within one lookup; the answer it ends with is the one that counts.
    resolver.names["private6.test"] = lambda kind, before: ["fd00:ec2::254"] if kind == "AAAA" else "nxdomain"
    t.contains((403, 502), connect(broker, "private6.test:443").status, "status")
    resolver.names["later.test"] = lambda kind, before: "nxdomain" if before == 0 else ["127.0.0.1"]
    asked = len(resolver.asked)
    t.equal(connect(broker, "later.test:443").status, 502, "status")
    t.check(len(resolver.asked) - asked <= 2, lambda: f"one dial asked {resolver.asked[asked:]}")
    assert_untouched(t, *traps)


@case("S078 C138: allowInternal lifts the judgement for that literal only, never for a name nor another address")
def allow_internal(t):
    far, near = everywhere(t)
    broker = Broker(t).start(allow=["*"], allowInternal=["10.0.0.5"])
    resolver.names["inside.test"] = ["10.0.0.5"]
    t.equal(connect(broker, "inside.test:443").status, 403, "status for a name")
    t.equal(connect(broker, "10.0.0.6:443").status, 403, "status for another address")
    t.equal(connect(broker, "10.0.0.5:22").status, 403, "status for another port")
    assert_untouched(t, far, near)
    t.equal(connect(broker, "10.0.0.5:443").status, 200, "status for the literal")
    t.equal(far.accepts(), ["10.0.0.5:443"], "connections")


@case("S078: allowInternal is no grant: the literal must be on the allowlist too")
def allow_internal_narrow(t):
    far, _ = everywhere(t)
    broker = Broker(t).start(allow=["api.example.com"], allowInternal=["10.0.0.5"])
    answer = connect(broker, "10.0.0.5:443")
    t.equal(answer.status, 403, "status")
    t.contains(answer.text, "not on the egress allowlist", "body")
    t.equal(far.accepts(), [], "connections")


@case("C137: a broker cannot be made to dial itself, another session's broker, or anything of this host")
def itself(t):
    other = Broker(t, "other").start(allow=["*"])
    broker = Broker(t).start(allow=["*"], ports=[443, other.port])
    near = Upstream(t, f"{HOST4}:{broker.port}", f"127.0.0.1:{broker.port}", certificate=None, namespace=world.host)
    resolver.names["self.test"] = [HOST4, "127.0.0.1"]
    for host in ("127.0.0.1", HOST4, "localhost", "self.test"):
        t.equal(connect(broker, f"{host}:{broker.port}").status, 403, f"status for {host}")
    t.equal(near.accepts(), [], "connections to the host")


@case("S073: IPv6 upstreams are reached, by name and by literal")
def ipv6(t):
    up = Upstream(t, "[2606:4700::1]:443", certificate=None)
    broker = Broker(t).start(allow=["*"])
    resolver.names["six.test"] = ["2606:4700::1"]
    t.equal(connect(broker, "six.test:443").status, 200, "status")
    t.equal(connect(broker, "[2606:4700::1]:443").status, 200, "status")
    t.equal(up.accepts(), ["[2606:4700::1]:443"] * 2, "upstream connections")


@case("S118: an address that refuses is passed over for the next; none left is 502 upstream unreachable, with host and phase in the log")
def refused_address(t):
    up = Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t).start(allow=["*"])
    resolver.names["second.test"] = ["9.9.9.10", "9.9.9.9"]
    t.equal(connect(broker, "second.test:443").status, 200, "status")
    t.equal(up.accepts(), ["9.9.9.9:443"], "upstream connections")
    answer = connect(broker, "denied.example:443")
    t.equal((answer.status, answer.reason), (502, "upstream unreachable"), "answer")
    t.contains(broker.wait_log("denied.example"), broker.session, "log line")


@case("S073 C124: TLS through the tunnel is the session's own, to the name it asked for")
def tls_inside(t):
    Upstream(t, "9.9.9.9:443")
    broker = Broker(t).start(allow=["api.example.com"])
    client, answer = broker.open_tunnel("api.example.com:443")
    t.equal(answer.status, 200, "status")
    context = ssl.create_default_context(cafile=errand_test.source("tests/peers/ca/ca.pem"))
    with context.wrap_socket(client.socket, server_hostname="api.example.com") as tls:
        tls.sendall(b"GET /status/204 HTTP/1.1\r\n\r\n")
        t.contains(tls.recv(1000), b"204", "answer")
    t.check(Peer(t, "9.9.9.10", 443).untouched())


if __name__ == "__main__":
    run()
