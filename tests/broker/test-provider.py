# SPDX-License-Identifier: LGPL-2.1-or-later
"""A provider route: the stand-in comes in, the key goes out, to the configured host alone."""

import json
import socket
import struct

import errand_world
from errand_broker import Broker, Provider, mint
from errand_http import basic
from errand_test import case, run
from errand_upstream import Peer, Upstream

errand_world.enter()
world = errand_world.world()


def begin(t, *addresses, certificate="server", provider=None, **egress):
    up = Upstream(t, *(addresses or ("9.9.9.9:443",)), certificate=certificate)
    broker = Broker(t).start({"p": provider or Provider()}, **(egress or {"allow": ["api.example.com"]}))
    return up, broker, broker.providers["p"]


def fields_of(request):
    """[(name in lower case, value)] of a request's head."""
    head = request.split(b"\r\n\r\n")[0].decode("latin-1")
    return [(line.partition(":")[0].lower(), line.partition(":")[2].strip()) for line in head.split("\r\n")[1:]]


@case("S024 S089: the key goes out in the placed header, the stand-in stays; the route needs no allowlist entry")
def swap(t):
    for placement, header in (("bearer", "authorization"), ("x-api-key", "x-api-key")):
        up, broker, p = begin(t, provider=Provider(placement=placement))
        answer = broker.call("p", "/echo?beta=true", "POST", body=b'{"q":1}')
        t.equal(answer.status, 200, "status")
        seen = up.received(1)
        t.check(seen.startswith(b"POST /v1/echo?beta=true HTTP/1.1\r\n"), lambda s=seen: f"the request was {s!r}")
        expected = f"Bearer {p.key}" if placement == "bearer" else p.key
        t.equal([v for n, v in fields_of(seen) if n in ("authorization", "x-api-key")], [expected], f"credentials upstream, {header}")
        t.equal([v for n, v in fields_of(seen) if n == "host"], ["provider.example"], "Host upstream")
        t.check(seen.endswith(b'\r\n\r\n{"q":1}'), "the body is not what was sent")
        t.lacks(seen, p.stand_in.encode(), "request upstream")
        t.lacks(answer.head + answer.body, p.key.encode(), "answer")
        t.equal(broker.open_tunnel("provider.example:443")[1].status, 403, "status of CONNECT to the provider's host")
        up.stop()


@case("S089 S090 S095 C176: the stand-in is taken in the placed header only; 401 names the header; nothing is dialled")
def wrong_header(t):
    for placement, wrong, name in (("bearer", "x-api-key: {}\r\n", "Authorization"), ("x-api-key", "Authorization: Bearer {}\r\n", "x-api-key")):
        up, broker, p = begin(t, provider=Provider(placement=placement))
        rows = [wrong.format(p.stand_in), "", p.header_with(mint()), p.header_with(p.stand_in[:-1]), p.header_with(p.stand_in + "0"), p.header_with(""),
                p.header_with(broker.credential), p.header_with(p.key), f"Authorization: {basic('x', p.stand_in)}\r\n", f"Cookie: key={p.stand_in}\r\n",
                p.header + p.header_with(mint()), p.header_with(mint()) + p.header]

        def check(auth, broker=broker, name=name):
            answer = broker.call("p", auth=auth)
            t.equal(answer.status, 401, "status")
            t.contains(answer.text.lower(), name.lower(), "body")
            t.check(answer.get("WWW-Authenticate"), "there is no challenge")
        t.each(rows, check)
        t.equal(up.accepts(), [], "upstream connections")
        up.stop()


@case("S091 C176: exactly one credential header goes upstream, whatever else the session sent")
def one_credential(t):
    for placement, other in (("bearer", "x-api-key: {}\r\n"), ("x-api-key", "Authorization: Bearer {}\r\n")):
        up, broker, p = begin(t, provider=Provider(placement=placement))
        more = other.format(p.stand_in) + "Proxy-Authorization: " + basic("errand", broker.credential) + f"\r\nCookie: a={p.stand_in}\r\n"
        t.equal(broker.call("p", headers=more).status, 200, "status")
        fields = fields_of(up.received(1))
        t.equal(len([n for n, _ in fields if n in ("authorization", "x-api-key", "proxy-authorization")]), 1, "number of credentials")
        t.equal(str(fields).count(p.key), 1, "number of keys")
        t.lacks(str(fields), broker.credential, "request upstream")
        up.stop()


@case("S042 C175: a provider that is not served is 404, and no other path leads anywhere")
def unknown(t):
    up, broker, p = begin(t)
    for path in ("/provider/q/echo", "/provider/", "/provider", "/provider//echo", "/provider/P/echo", "/", "/echo", "/provider/p%2fecho"):
        client = broker.connect()
        client.send(f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{broker.port}\r\n{p.header}\r\n")
        t.contains((404, 400), client.answer().status, f"status of {path}")
    t.equal(up.accepts(), [], "upstream connections")
    broker.stop()
    t.equal(broker.spool(), b"", "spool")


@case("S109 S110 S111 S112 C173 C175: a path that could be read in two ways is 400, and never leaves the base URL")
def dirty_paths(t):
    up, broker, p = begin(t)
    dirty = ["//echo", "/a//b", "/a/", "/./echo", "/../echo", "/a/../../x", "/a/.", "/a/..", "/%2e/echo", "/%2E%2e/admin", "/.%2e/x", "/a%2fb", "/a%2Fb",
             "/%2f..", "/..%5cadmin", "/a%5Cb", "/a\\b", "/..\\admin", "/v1;a=b/models", "/a;b", "/%00", "/a%0d%0aX:1", "/%252e%252e/x", "/a%25252fb", "/a%25%32%66b", "/a%zz", "/a%2",
             "/a b", "/a#b", "@denied.example/x", ".denied.example/", ":9/x", "//denied.example/x", "/a\x7f"]

    def check(path):
        client = broker.connect()
        client.send(f"GET /provider/p{path} HTTP/1.1\r\nHost: 127.0.0.1:{broker.port}\r\n{p.header}\r\n".encode("latin-1"))
        t.contains((400, 404), client.answer().status, "status")
    t.each(dirty, check)
    t.equal(up.accepts(), [], "upstream connections")
    t.equal(broker.call("p", "/echo").status, 200, "status of a clean path")


@case("S113: headers that ask for another method, path or host are not forwarded, nor is Accept-Encoding")
def overriding_headers(t):
    up, broker, _ = begin(t)
    names = ["X-HTTP-Method-Override", "x-http-method", "X-METHOD-OVERRIDE", "X-Original-URL", "x-rewrite-url", "Forwarded",
             "X-Forwarded-Host", "x-original-host"]
    t.equal(broker.call("p", headers="".join(f"{n}: marker\r\n" for n in names) + "Accept-Encoding: gzip, br\r\n").status, 200, "status")
    seen = up.received(1)
    t.lacks(seen, b"marker", "request upstream")
    # Some servers read "_" as "-", so a name with it never passes as another (C143).
    t.equal(broker.call("p", headers="X_HTTP_Method_Override: marker\r\n").status, 400, "status with an underscore")
    t.lacks(up.everything_received(), b"marker", "request upstream")
    encodings = [v for n, v in fields_of(seen) if n == "accept-encoding"]
    t.check(encodings in ([], ["identity"]), lambda: f"Accept-Encoding upstream is {encodings}")
    t.note(f"S229: Accept-Encoding upstream is {encodings}")


@case("C187: every end-to-end header passes unchanged and in order, both ways; so do the query and odd statuses")
def headers_pass(t):
    up, broker, _ = begin(t)
    sent = [("anthropic-version", "2023-06-01"), ("anthropic-beta", "a"), ("anthropic-beta", "b"), ("openai-organization", "o"), ("idempotency-key", "k"),
            ("x-stainless-lang", "js"), ("accept", "text/event-stream"), ("user-agent", "test/1.0 (x; y)"), ("x-new-thing", "1"), ("x-long", "l" * 16384)]
    t.equal(broker.call("p", headers="".join(f"{n}: {v}\r\n" for n, v in sent)).status, 200, "status")
    seen = fields_of(up.received(1))
    t.equal([f for f in seen if f[0] in dict(sent)], sent, "headers upstream")
    for name in ("via", "x-forwarded-for", "forwarded", "x-real-ip"):
        t.check(name not in dict(seen), f"{name} was added")
    for status in (429, 529, 418):
        up.raw("limits", f"HTTP/1.1 {status} Slow Down\r\nretry-after: 7\r\nx-ratelimit-a: 1\r\nrequest-id: r\r\nContent-Length: 2\r\n\r\nno".encode())
        answer = broker.call("p", "/raw/limits")
        t.equal((answer.status, answer.reason, answer.get("retry-after"), answer.get("x-ratelimit-a"), answer.get("request-id"), answer.body),
                (status, "Slow Down", "7", "1", "r", b"no"), "answer")


@case("S083 S084 S086: a base URL must be https; http only to a loopback literal that allowInternal names; calls are 502 with the reason")
def base_urls(t):
    near = Upstream(t, "127.0.0.1:8080", "9.9.9.1:8080", certificate=None, namespace=world.host)
    far = Upstream(t, "9.9.9.9:80", "9.9.9.9:8080", certificate=None)
    for url, internal in (("http://provider.example/v1", []), ("http://9.9.9.9:8080", ["9.9.9.9"]), ("http://localhost:8080", ["127.0.0.1"]),
                          ("http://127.0.0.1:8080", []), ("http://9.9.9.1:8080", ["127.0.0.1"])):
        broker = Broker(t).start({"p": Provider(url, ca=None)}, allow=["*"], allowInternal=internal, ports=[443])
        answer = broker.call("p")
        t.equal(answer.status, 502, f"status with {url}")
        t.check(len(answer.text.strip()) > 10, lambda a=answer: f"there is no reason in {a.text!r}")
    t.equal(near.accepts() + far.accepts(), [], "connections")
    broker = Broker(t).start({"p": Provider("http://127.0.0.1:8080", ca=None)}, allow=["*"], allowInternal=["127.0.0.1"], ports=[443])
    t.equal(broker.call("p").status, 200, "status of the loopback literal")
    t.contains(near.received(1), broker.providers["p"].key.encode(), "request")


@case("S081: a provider is held to the address rule when it is dialled")
def judged_when_dialled(t):
    traps = [Upstream(t, "10.0.0.5:443"), Upstream(t, "127.0.0.1:443", namespace=world.host)]
    for address in ("127.0.0.1", "10.0.0.5"):
        world.resolver.names["moving.test"] = [address]
        broker = Broker(t).start({"p": Provider("https://moving.test")}, allow=["*"], allowInternal=["127.0.0.1", "10.0.0.5"])
        answer = broker.call("p")
        t.equal((answer.status, answer.reason), (403, "not a public host"), "answer")
    for up in traps:
        t.equal(up.accepts(), [], "connections")


@case("provider TLS: another name, an unknown issuer, an expired certificate and plain HTTP are 502, and the key is not sent")
def bad_certificates(t):
    for certificate in ("wrong-name", "self-signed", "expired", None):
        up, broker, p = begin(t, certificate=certificate)
        answer = broker.call("p")
        t.equal(answer.status, 502, f"status with {certificate}")
        t.lacks(up.everything_received(), p.key.encode(), "what the upstream saw")
        t.lacks(answer.head + answer.body, p.key.encode(), "answer")
        up.stop()
    up, broker, p = begin(t, provider=Provider(ca=None))
    t.equal(broker.call("p").status, 502, "status without the test authority: the system's trust alone does not take it")
    t.lacks(up.everything_received(), p.key.encode(), "what the upstream saw")


@case("S058: a provider that cannot be reached is 502, and nothing waits")
def unreachable(t):
    broker = Broker(t).start({"p": Provider()}, allow=["*"])
    answer = broker.call("p")
    t.equal((answer.status, answer.reason), (502, "upstream unreachable"), "answer")


@case("S087 C172: redirects reach the session as they came, and nobody follows them")
def redirects(t):
    up, broker, p = begin(t)
    other = Peer(t, "9.9.9.10", 443)
    for status in (301, 302, 303, 307, 308):
        up.raw("redirect", f"HTTP/1.1 {status} Moved\r\nLocation: https://denied.example/?k={p.key}\r\nContent-Length: {len(p.key)}\r\n\r\n{p.key}".encode())
        answer = broker.call("p", "/raw/redirect")
        t.equal((answer.status, answer.get("Location"), answer.body), (status, "https://denied.example/?k=[redacted]", b"[redacted]"), "answer")
    t.check(other.untouched())


@case("S088: a session that follows a redirect with its stand-in shows the other host a stand-in, and no key")
def redirect_followed(t):
    up, broker, p = begin(t, allow=["api.example.com", "denied.example"], ports=[443, 80])
    other = Upstream(t, "9.9.9.10:80", certificate=None)
    up.raw("redirect", b"HTTP/1.1 307 Moved\r\nLocation: http://denied.example/echo\r\nContent-Length: 0\r\n\r\n")
    location = broker.call("p", "/raw/redirect").get("Location")
    answer = broker.ask(f"GET {location} HTTP/1.1\r\nHost: denied.example\r\n{broker.auth}{p.header}\r\n")
    t.equal(answer.status, 200, "status of an ordinary host")
    t.lacks(other.received(1), p.key.encode(), "request to the other host")


@case("S114: a _method in query and body is the provider's to read: it passes as it is")
def method_field(t):
    up, broker, p = begin(t)
    t.equal(broker.call("p", "/echo?_method=DELETE", "POST", body=b"_method=DELETE").status, 200, "status")
    seen = up.received(1)
    t.check(seen.startswith(b"POST /v1/echo?_method=DELETE ") and seen.endswith(b"\r\n\r\n_method=DELETE"), lambda: f"the request was {seen!r}")


@case("C186: a token that a provider hands out is no key of the broker's, and passes; a strict list that leaves the call out keeps it away")
def handed_out(t):
    for strict in (False, True):
        up, broker, p = begin(t, provider=Provider(**({"capabilities": [{"method": "GET", "path": "/models"}], "strictCapabilities": True} if strict else {})))
        up.raw("token", b'HTTP/1.1 200 OK\r\nContent-Length: 30\r\n\r\n{"access_token":"tok-NEVERSEEN"')
        answer = broker.call("p", "/raw/token", "POST")
        t.equal((answer.status, "tok-NEVERSEEN" in answer.text), (403, False) if strict else (200, True), "answer")
        up.stop()


@case("S233: a key that an answer quotes in another form, or in part, is not caught")
def other_forms(t):
    up, broker, p = begin(t, provider=Provider(key='sk-"quoted"/0123456789'))
    body = json.dumps(p.key).replace("/", "\\/").encode() + b" " + p.key[:-1].encode()
    up.raw("forms", b"HTTP/1.1 200 OK\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
    t.equal(broker.call("p", "/raw/forms").body, body, "body")


@case("S082: proxy variables in the broker's own environment play no part")
def proxy_variables(t):
    trap = Upstream(t, "9.9.9.10:3128", certificate=None)
    Upstream(t, "9.9.9.9:443")
    environment = {name: "http://9.9.9.10:3128" for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")}
    broker = Broker(t, environment=environment).start({"p": Provider()}, allow=["api.example.com"])
    t.equal(broker.call("p").status, 200, "status")
    t.equal(broker.open_tunnel("api.example.com:443")[1].status, 200, "status")
    t.equal(trap.accepts(), [], "connections to the proxy")


@case("C148: an upgrade on a provider route is refused with a sentence; a 101 that nobody asked for is 502")
def upgrade(t):
    up, broker, p = begin(t)
    answer = broker.call("p", headers="Connection: Upgrade\r\nUpgrade: websocket\r\n")
    t.contains((501, 502, 400), answer.status, "status")
    t.check(len(answer.text.strip()) > 20, lambda: f"there is no sentence in {answer.text!r}")
    t.equal(up.accepts(), [], "upstream connections")
    up.raw("switch", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n" + p.key.encode())
    answer = broker.call("p", "/raw/switch?keep")
    t.equal(answer.status, 502, "status")
    t.lacks(answer.head + answer.body, p.key.encode(), "answer")


@case("C151 S227: an event stream's events leave in the order and at the time they come")
def events(t):
    for path in ("/sse/3?paced", "/sse-close/3?paced"):
        up, broker, _ = begin(t)
        client = broker.connect()
        client.send(broker.route_request("p", path))
        answer = client.head()
        t.equal((answer.status, answer.get("Content-Type")), (200, "text/event-stream"), "answer")
        for i in (1, 2, 3):
            up.go()
            event = b"data: %d\n\n" % i
            t.equal(client.chunk() if answer.get("Transfer-Encoding") else client.take(len(event)), event, "event")
        if answer.get("Transfer-Encoding"):
            t.equal(client.chunk(), b"", "end")
        else:
            t.check(client.is_closed(), "the stream does not end")
        up.stop()


@case("C159 C188: calls on one kept connection are judged each by itself, and a refused one does not end it")
def kept(t):
    up, broker, p = begin(t)
    client = broker.connect()
    for _ in range(3):
        client.send(broker.route_request("p", "/length/5"))
        t.equal(client.answer().body, b"xxxxx", "body")
        client.send(broker.route_request("p", auth=p.header_with(mint())))
        t.equal(client.answer().status, 401, "status")
        client.send(broker.route_request("p", "/a/../b"))
        t.equal(client.answer().status, 400, "status")
        client.send(broker.route_request("p", "/length/7", "HEAD"))
        answer = client.answer(bodiless=True)
        t.equal((answer.status, answer.body), (200, b""), "answer to HEAD")
    t.note(f"upstream connections of 6 calls: {len(up.accepts())}")


@case("C161: a client that resets ends the upstream connection at once; one that half-closes gets its answer")
def gives_up(t):
    up, broker, _ = begin(t)
    client = broker.connect()
    client.send(broker.route_request("p", "/wait"))
    client.half_close()
    up.wait("request 1")
    up.go()
    t.equal(client.answer().body, b"waited\n", "body after a half-close")
    client = broker.connect()
    client.send(broker.route_request("p", "/sse/1000?paced"))
    t.equal(client.head().status, 200, "status")
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    client.close()
    up.wait("gone")


@case("S234 S235 C184: 64 MiB pass; one byte more is refused when announced, cut when streamed")
def sizes(t):
    _, broker, _ = begin(t)
    limit = 64 << 20

    def call(path):
        client = broker.connect()
        client.send(broker.route_request("p", path))
        answer = client.head()
        size = 0
        if answer.get("Content-Length"):
            left = int(answer.get("Content-Length"))
            while left > 0:
                piece = client.take(min(left, 1 << 20))
                if not piece:
                    break
                left -= len(piece)
                size += len(piece)
            return answer, size, left == 0
        while True:
            piece = client.chunk()
            if not piece:
                return answer, size, piece is not None
            size += len(piece)
    answer, size, whole = call(f"/length/{limit}")
    t.equal((answer.status, size, whole), (200, limit, True), "announced, at the limit")
    answer, size, whole = call(f"/length/{limit + 1}")
    t.check(answer.status == 502 and size < 1000, lambda: f"announced, over the limit: {answer} and {size} bytes")
    answer, size, whole = call(f"/chunked/{limit}")
    t.equal((answer.status, size, whole), (200, limit, True), "streamed, at the limit")
    answer, size, whole = call(f"/chunked/{limit + 1}")
    t.equal((answer.status, size <= limit, whole), (200, True, False), "streamed, over the limit")
    records = broker.receipts(4)
    t.equal([r["outcome"] for r in records], ["completed", "refused", "completed", "interrupted"], "outcomes")


if __name__ == "__main__":
    run()
