# SPDX-License-Identifier: LGPL-2.1-or-later
"""Where the key travels: either of two headers, the password of Basic, and a header that the configuration names."""

import base64

import errand_world
from errand_broker import Broker, Provider, mint
from errand_http import basic
from errand_test import case, run
from errand_upstream import Upstream

errand_world.enter()

CREDENTIALS = ("authorization", "x-api-key", "private-token", "proxy-authorization")


def begin(t, provider):
    up = Upstream(t, "9.9.9.9:443")
    broker = Broker(t).start({"p": provider}, allow=["api.example.com"])
    return up, broker, broker.providers["p"]


def credentials_of(request):
    head = request.split(b"\r\n\r\n")[0].decode("latin-1").split("\r\n")[1:]
    fields = [(line.partition(":")[0].lower(), line.partition(":")[2].strip()) for line in head]
    return sorted((n, v) for n, v in fields if n in CREDENTIALS)


@case("S093: with neither placement nor kind the stand-in is taken in either header; the key goes as bearer, and in x-api-key when that came")
def either(t):
    up, broker, p = begin(t, Provider(placement="either"))
    bearer, header = ("authorization", f"Bearer {p.key}"), ("x-api-key", p.key)
    rows = [(f"Authorization: Bearer {p.stand_in}\r\n", [bearer]), (f"x-api-key: {p.stand_in}\r\n", [bearer, header]),
            (f"Authorization: Bearer {p.stand_in}\r\nx-api-key: {p.stand_in}\r\n", [bearer, header]),
            (f"Authorization: Bearer {p.stand_in}\r\nX-Api-Key: dummy\r\n", [bearer, header])]
    for i, (auth, expected) in enumerate(rows):
        client = broker.connect()
        client.send(broker.route_request("p", "/echo", headers="Connection: close\r\n", auth=auth))
        t.equal(client.answer().status, 200, "status")
    seen = up.everything_received()
    t.equal([credentials_of(part) for part in seen.split(b"GET ")[1:]], [e for _, e in rows], "credentials upstream")
    t.lacks(seen, p.stand_in.encode(), "requests upstream")
    for auth in ("", f"x-api-key: {mint()}\r\n", f"Authorization: Bearer {mint()}\r\n", f"Authorization: {basic('x', p.stand_in)}\r\n"):
        answer = broker.call("p", auth=auth)
        t.equal(answer.status, 401, "status")
        t.check("Authorization" in answer.text and "x-api-key" in answer.text, lambda a=answer: f"the headers are not named in {a.text!r}")


@case("C185: Basic carries the key as its password, and takes the stand-in there; a client that asks first without gets a Basic challenge")
def basic_placement(t):
    up, broker, p = begin(t, Provider(placement="basic", user="oauth2"))
    answer = broker.call("p", "/echo", auth="")
    t.equal((answer.status, answer.get("WWW-Authenticate")), (401, 'Basic realm="errand"'), "answer without")
    t.contains(answer.text, "Authorization: Basic", "body")
    for user in ("", "git", "x-access-token"):
        t.equal(broker.call("p", "/echo", auth=f"Authorization: {basic(user, p.stand_in)}\r\n").status, 200, f"status as {user!r}")
    sent = basic("oauth2", p.key)
    for part in up.everything_received().split(b"GET ")[1:]:
        t.equal(credentials_of(part), [("authorization", sent)], "credentials upstream")
    for auth in (f"Authorization: Bearer {p.stand_in}\r\n", f"Authorization: {basic('x', p.key)}\r\n", f"Authorization: {basic(p.stand_in, 'x')}\r\n",
                 f"Authorization: Basic {base64.b64encode(p.stand_in.encode()).decode()}\r\n", f"x-api-key: {p.stand_in}\r\n"):
        t.equal(broker.call("p", "/echo", auth=auth).status, 401, "status")


@case("C178 C179 C185: a key that travelled as Basic is cut out of body and headers in both of its forms, however it is split")
def basic_scrubbed(t):
    up, broker, p = begin(t, Provider(placement="basic", user="x"))
    coded = base64.b64encode(f"x:{p.key}".encode())
    bare = coded.rstrip(b"=")
    padding = coded[len(bare):]
    body = b"a " + coded + b" b " + p.key.encode() + b" c " + bare[:-1]
    up.raw("quoted", b"HTTP/1.1 200 OK\r\nX-Echo: Basic " + coded + b"\r\nContent-Length: " + str(len(body)).encode() + b"\r\n\r\n" + body)
    answer = broker.call("p", "/raw/quoted")
    t.equal((answer.get("X-Echo"), answer.body), ("Basic [redacted]" + padding.decode(),
                                                   b"a [redacted]" + padding + b" b [redacted] c " + bare[:-1]), "answer")
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    for cut in (1, 7, len(coded) // 2, len(bare) - 1):
        up.raw(f"split{cut}", [head, b"data: " + coded[:cut], coded[cut:] + b"\n\n"])
        client = broker.connect()
        client.send(broker.route_request("p", f"/raw/split{cut}?paced"))
        up.go()
        t.equal(client.head().status, 200, "status")
        up.go()
        up.go()
        body = b""
        while piece := client.chunk():
            body += piece
        t.equal(body, b"data: [redacted]" + padding + b"\n\n", f"body cut at {cut}")


@case("C178: a key that travelled as Basic is found without the padding at its end as well, which who quotes it may leave out")
def basic_unpadded(t):
    for user in ("x", "xy", "xyz"):
        up, broker, p = begin(t, Provider(placement="basic", user=user))
        coded = base64.b64encode(f"{user}:{p.key}".encode())
        t.equal(broker.call("p", "/echo").status, 200, "status")
        t.equal(credentials_of(up.received(1)), [("authorization", "Basic " + coded.decode())], "credentials upstream")
        bare = coded.rstrip(b"=")
        up.raw("bare", b"HTTP/1.1 200 OK\r\nX-Echo: " + bare + b"\r\nContent-Length: %d\r\n\r\n" % len(bare) + bare)
        answer = broker.call("p", "/raw/bare")
        t.equal((answer.get("X-Echo"), answer.body), ("[redacted]", b"[redacted]"), f"answer with {len(coded) - len(bare)} bytes of padding")
        up.stop()


@case("C176 C185: a named header carries the key, and no other credential goes upstream")
def named(t):
    up, broker, p = begin(t, Provider(placement="header", header="PRIVATE-TOKEN"))
    more = f"Authorization: Bearer {p.stand_in}\r\nx-api-key: {p.stand_in}\r\n"
    t.equal(broker.call("p", "/echo", headers=more).status, 200, "status")
    t.equal(credentials_of(up.received(1)), [("private-token", p.key)], "credentials upstream")
    answer = broker.call("p", "/echo", auth=more)
    t.equal(answer.status, 401, "status in another header")
    t.contains(answer.text, "PRIVATE-TOKEN", "body")
    t.check(answer.get("WWW-Authenticate"), "there is no challenge")


if __name__ == "__main__":
    run()
