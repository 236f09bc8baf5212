# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which hosts a session reaches, and how a host may be written. "Refused" is shown by the upstreams' accept logs."""

import errand_world
from errand_broker import Broker
from errand_test import case, run
from errand_upstream import Upstream

errand_world.enter()
world = errand_world.world()
resolver = world.resolver


def upstreams(t):
    """Two on the internet side, plain, so that a connection needs no TLS to be seen."""
    return Upstream(t, "9.9.9.9:443", "9.9.9.9:80", "9.9.9.10:443", "9.9.9.10:80", certificate=None)


def connect(broker, authority):
    client, answer = broker.open_tunnel(authority)
    client.close()
    return answer


def forward(broker, target, host):
    return broker.ask(f"GET {target} HTTP/1.1\r\nHost: {host}\r\n{broker.auth}\r\n")


@case("S022 S038 S127: a host that is not named is refused at once with 403, by CONNECT and by plain http alike")
def allowlist(t):
    up = upstreams(t)
    broker = Broker(t).start(allow=["api.example.com"], ports=[80, 443])
    t.equal(connect(broker, "denied.example:443").status, 403, "status of CONNECT")
    t.equal(forward(broker, "http://denied.example/", "denied.example").status, 403, "status of GET")
    t.equal(up.accepts(), [], "upstream connections")
    t.equal(connect(broker, "api.example.com:443").status, 200, "status of CONNECT")
    t.equal(forward(broker, "http://api.example.com/status/200", "api.example.com").status, 200, "status of GET")
    t.equal(up.accepts(), ["9.9.9.9:443", "9.9.9.9:80"], "upstream connections")


@case("S128: the refusal names the host and the command that grants it")
def sentence(t):
    broker = Broker(t, "s7").start(allow=["api.example.com"], ports=[80, 443])
    expected = "denied.example is not on the egress allowlist or granted; its owner can run: errand grant s7 denied.example"
    for answer in (connect(broker, "denied.example:443"), connect(broker, "DENIED.example.:443"),
                   forward(broker, "http://denied.example/", "denied.example")):
        t.equal((answer.status, answer.text.rstrip("\n")), (403, expected), "answer")
        t.matches(answer.get("Content-Type"), "^text/plain", "type")


@case("S022 C115 C120: *.name covers every name below it, not the name, nor one that only ends alike")
def below(t):
    up = upstreams(t)
    broker = Broker(t).start(allow=["*.example.com"])
    for name in ("a.example.com", "a.b.example.com"):
        resolver.names[name] = ["9.9.9.9"]
    refused = [("evilexample.com", 403), ("example.com.evil.test", 403), ("xexample.com", 403), ("example.comx", 403), ("example.com", 403),
               (".example.com", 400), ("a..example.com", 400), ("", 400), ("a.example.com..", 400), ("-", 400)]
    t.each(refused, lambda row: t.equal(connect(broker, f"{row[0]}:443").status, row[1], "status"))
    t.equal(up.accepts(), [], "upstream connections")
    for name in ("a.example.com", "a.b.example.com", "a.example.com."):
        t.equal(connect(broker, f"{name}:443").status, 200, f"status for {name}")


@case("C116: one trailing dot is nothing, two are malformed")
def dots(t):
    up = upstreams(t)
    broker = Broker(t).start(allow=["*"], ports=[80, 443])
    rows = [("localhost.:80", 403), ("LOCALHOST..:80", 400), ("169.254.169.254.:80", (400, 403)), ("127.0.0.1..:80", 400),
            ("127.0.0.1.:80", (400, 403)), ("api.example.com..:443", 400), (".:443", 400)]
    t.each(rows, lambda row: t.contains(row[1] if isinstance(row[1], tuple) else (row[1],), connect(broker, row[0]).status, "status"))
    t.equal(up.accepts(), [], "upstream connections")
    narrow = Broker(t).start(allow=["api.example.com"])
    t.equal(connect(narrow, "api.example.com.:443").status, 200, "status")


@case("C118: ASCII case does not matter on either side, and nothing else is folded")
def case_folding(t):
    up = upstreams(t)
    broker = Broker(t).start(allow=["API.Example.COM", "*.Example.org"])
    resolver.names["a.example.org"] = ["9.9.9.9"]
    for name in ("api.example.com", "Api.EXAMPLE.com", "A.EXAMPLE.ORG"):
        t.equal(connect(broker, f"{name}:443").status, 200, f"status for {name}")
    before = up.accepts()
    # U+212A, the Kelvin sign, and U+017F, the long s, fold to k and s elsewhere.
    for name in ("api.example.\u212aom", "api.example.\u017fom"):
        client = broker.connect()
        client.send(f"CONNECT {name}:443 HTTP/1.1\r\nHost: x\r\n{broker.auth}\r\n".encode())
        t.equal(client.answer().status, 400, f"status for {name}")
    t.equal(up.accepts(), before, "upstream connections")


@case("S140: a wildcard asked for by a session is refused without a command to paste")
def asked_wildcard(t):
    broker = Broker(t).start(allow=["api.example.com"])
    for host in ("*.com", "*", "*.example.com", "a\x01b.com", "a b.com", "'x'.com", "$(x).com", "`x`.com"):
        client = broker.connect()
        client.send(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}\r\n{broker.auth}\r\n")
        answer = client.answer()
        t.equal(answer.status, 400, f"status for {host!r}")
        t.lacks(answer.text, "errand grant", "answer")
        t.lacks(answer.text, "\x01", "answer")


@case("C121 C122: userinfo, backslash, percent, tab and fragment in an authority are malformed")
def authority(t):
    up = upstreams(t)
    broker = Broker(t).start(allow=["*"], ports=[80, 443, 8000])
    targets = ["http://api.example.com@9.9.9.9:80/", "http://api.example.com:80@denied.example/", "http://denied.example\\@api.example.com/",
               "http://api.example.com\\@denied.example/", "http://api.example.com%2f@denied.example/", "http://api.example.com\tdenied.example/",
               "http://api.example.com#@denied.example/", "http://api%2eexample.com/", "http:///denied.example/", "http:/api.example.com/",
               "http://api.example.com:/@denied.example/", "http://api.example.com:80:80/", "http://[::1/", "http://[fe80::1%25lo]/",
               "http://api.example.com:80#@denied.example/", "http://api.example.com?@denied.example/..", "ftp://api.example.com/",
               "https://api.example.com/", "http//api.example.com/", "://api.example.com/", "api.example.com/"]

    def check(target):
        answer = forward(broker, target, "api.example.com")
        t.equal(answer.status, 400, "status")
    # A "?" right after the host is grammar: an empty path and a query. It must lead to that host or nowhere.
    t.each([x for x in targets if "?" not in x], check)
    t.equal(up.accepts(), [], "upstream connections")
    answer = forward(broker, "http://api.example.com?@denied.example/..", "api.example.com")
    t.lacks(up.accepts(), "9.9.9.10:80", "upstream connections")
    t.note(f"an empty path before a query: {answer.status}")
    for target in ("api.example.com@denied.example:443", "api.example.com:443@denied.example:443", "api.example.com\\:443",
                   "api.example.com%00:443", "http://api.example.com:443", "api.example.com/:443", "api.example.com:443/"):
        t.equal(connect(broker, target).status, 400, f"status for CONNECT {target}")


@case("C121: an @ in a path is only path")
def at_sign(t):
    up = upstreams(t)
    broker = Broker(t).start(allow=["api.example.com"], ports=[80])
    t.equal(forward(broker, "http://denied.example/@api.example.com", "denied.example").status, 403, "status")
    t.equal(up.accepts(), [], "upstream connections")
    t.equal(forward(broker, "http://api.example.com/@denied.example", "api.example.com").status, 404, "status")
    t.contains(up.received(1), b"GET /@denied.example HTTP/1.1\r\n", "request")


@case("C126: bytes beyond ASCII and controls in an authority are malformed")
def beyond_ascii(t):
    up = upstreams(t)
    broker = Broker(t).start(allow=["*"], ports=[80, 443])

    def check(host):
        client = broker.connect()
        client.send(b"CONNECT " + host + b":443 HTTP/1.1\r\nHost: x\r\n" + broker.auth.encode() + b"\r\n")
        t.equal(client.answer().status, 400, "status of CONNECT")
        client = broker.connect()
        client.send(b"GET http://" + host + b"/ HTTP/1.1\r\nHost: x\r\n" + broker.auth.encode() + b"\r\n")
        t.equal(client.answer().status, 400, "status of GET")
    hosts = ["１２７.0.0.1", "api。example。com", "ex℀mple.com", "api\u00adexample.com", "\u200fapi.example.com", "api.example.com\u200b"]
    t.each([h.encode() for h in hosts] + [b"api.example.com\0", b"api\x7f.example.com", b"\xff.example.com", b"api.example.com\x0b"], check)
    t.equal(up.accepts(), [], "upstream connections")


@case("C123: the target decides, and a Host that disagrees is refused")
def host_header(t):
    up = upstreams(t)
    broker = Broker(t).start(allow=["api.example.com"], ports=[80])
    auth = broker.auth
    rows = [("another host", f"GET http://api.example.com/ HTTP/1.1\r\nHost: denied.example\r\n{auth}\r\n", {400, 200, 404}),
            ("two", f"GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nHost: api.example.com\r\n{auth}\r\n", {400}),
            ("two that differ", f"GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\nHost: denied.example\r\n{auth}\r\n", {400}),
            ("another port", f"GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com:81\r\n{auth}\r\n", {400, 404}),
            ("none", f"GET http://api.example.com/ HTTP/1.1\r\n{auth}\r\n", {400}),
            ("a path alone", f"GET / HTTP/1.1\r\nHost: api.example.com\r\n{auth}\r\n", {400, 404}),
            ("a denied target", f"GET http://denied.example/ HTTP/1.1\r\nHost: api.example.com\r\n{auth}\r\n", {400, 403}),
            ("another host in CONNECT", f"CONNECT api.example.com:80 HTTP/1.1\r\nHost: denied.example:80\r\n{auth}\r\n", {400}),
            ("two in CONNECT", f"CONNECT api.example.com:80 HTTP/1.1\r\nHost: api.example.com:80\r\nHost: x\r\n{auth}\r\n", {400}),
            ("an asterisk", f"OPTIONS * HTTP/1.1\r\nHost: api.example.com\r\n{auth}\r\n", {400, 404})]
    t.each(rows, lambda row: t.contains(row[2], broker.ask(row[1]).status, f"status for {row[0]}"))
    t.lacks(up.accepts(), "9.9.9.10:80", "upstream connections")
    t.lacks(up.everything_received(), b"denied.example", "requests")


@case("S135: the lone * refuses nothing for want of a grant; an egress block without allow names no host; no block at all means *")
def defaults(t):
    up = upstreams(t)
    resolver.names["anything.test"] = ["9.9.9.9"]
    t.equal(connect(Broker(t).start(allow=["*"]), "anything.test:443").status, 200, "status with *")
    t.equal(connect(Broker(t).start(), "anything.test:443").status, 200, "status without an egress block")
    before = up.accepts()
    t.equal(connect(Broker(t).start(ports=[443]), "anything.test:443").status, 403, "status without allow")
    t.equal(connect(Broker(t).start(allow=[]), "anything.test:443").status, 403, "status with an empty list")
    t.equal(up.accepts(), before, "upstream connections")


if __name__ == "__main__":
    run()
