# SPDX-License-Identifier: LGPL-2.1-or-later
"""Plain http:// in absolute form, byte for byte: what two readers could read differently is refused, all else is framed anew."""

import threading

import errand_world
from errand_broker import Broker
from errand_http import basic
from errand_test import case, run
from errand_upstream import Peer

errand_world.enter()
world = errand_world.world()

HEAD = "Host: api.example.com\r\n"


def begin(t):
    return Peer(t, "9.9.9.9", 80), Broker(t).start(allow=["api.example.com"], ports=[80])


def request(broker, fields="", method="GET", path="/a", body="", version="1.1"):
    return f"{method} http://api.example.com{path} HTTP/{version}\r\n{HEAD}{broker.auth}{fields}\r\n{body}"


def exchange(t, broker, peer, sent, reply=b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", bodiless=False, size=0):
    """Sends a request through, answers it; → (head the upstream saw, body bytes it saw, the client's answer)."""
    client = broker.connect()
    client.send(sent)
    far = peer.accept()
    head = far.until(b"\r\n\r\n")
    body = far.take(size)
    far.send(reply)
    answer = client.answer(bodiless)
    t.check(peer.untouched())
    return head, body, answer


def refused(t, broker, peer, sent, statuses=(400,), closes=True):
    """Answered by the broker, and the upstream sees no connection."""
    client = broker.connect()
    client.send(sent)
    answer = client.answer()
    t.contains(statuses, answer.status, "status")
    t.check(peer.untouched())
    if closes:
        t.check(client.is_closed(), "the connection goes on after what could not be framed")
    t.lacks(answer.head + answer.body, b"\0", "answer")
    t.lacks(answer.head.replace(b"\r\n", b""), b"\n", "answer's head")


@case("S038: a request is forwarded in origin form with the target's Host, and the answer comes back")
def plain(t):
    peer, broker = begin(t)
    head, _, answer = exchange(t, broker, peer, request(broker, "User-Agent: x\r\nX-Order: 1\r\nX-Order: 2\r\n", path="/a/b?c=d"),
                               b"HTTP/1.1 203 Fine\r\nX-A: 1\r\nX-A: 2\r\nContent-Length: 5\r\n\r\nhello")
    t.check(head.startswith(b"GET /a/b?c=d HTTP/1.1\r\n"), lambda: f"request line: {head!r}")
    t.equal(head.count(b"Host: api.example.com\r\n"), 1, "number of Host fields")
    t.check(head.index(b"X-Order: 1") < head.index(b"X-Order: 2"), "the order of fields is not kept")
    t.equal((answer.status, answer.reason, answer.all("X-A"), answer.body), (203, "Fine", ["1", "2"], b"hello"), "answer")


@case("C146 S068: hop-by-hop fields and the proxy credential stay here; nothing of the session's side is added")
def hop_by_hop(t):
    peer, broker = begin(t)
    fields = ("Connection: Connection, close, X-A, keep-alive\r\nConnection: X-B\r\nConnection: Connection\r\nX-A: 1\r\nx-b: 2\r\nX-C: 3\r\n"
              "Proxy-Connection: keep-alive\r\nKeep-Alive: timeout=5\r\nTE: trailers\r\nTrailer: X-T\r\nProxy-Foo: 1\r\n"
              f"PROXY-authorization: {basic('errand', 'x')}\r\n")
    client = broker.connect()
    client.send(request(broker, fields.replace(f"PROXY-authorization: {basic('errand', 'x')}\r\n", "")))
    far = peer.accept()
    head = far.until(b"\r\n\r\n").decode().lower()
    for name in ("proxy-", "keep-alive", "te:", "trailer:", "x-a:", "x-b:", "upgrade", broker.credential.lower(), "127.0.0.1", "9.9.9.1"):
        t.lacks(head, name, "request upstream")
    t.contains(head, "x-c: 3\r\n", "request upstream")
    far.send(b"HTTP/1.1 200 OK\r\nConnection: X-D\r\nX-D: 1\r\nX-E: 2\r\nProxy-Authenticate: Basic\r\nKeep-Alive: timeout=1\r\nContent-Length: 0\r\n\r\n")
    answer = client.answer()
    t.equal((answer.get("X-D"), answer.get("X-E"), answer.get("Proxy-Authenticate"), answer.get("Keep-Alive")), (None, "2", None, None), "fields")
    # Two credentials, in whatever case: never upstream.
    client = broker.connect()
    client.send(request(broker, fields))
    answer = client.answer() if peer.untouched() else None
    t.check(answer is None or answer.status in (400, 407), lambda: f"two credentials: {answer}")


@case("C140: both length headers, or a transfer coding in HTTP/1.0, are refused and closed")
def both_lengths(t):
    peer, broker = begin(t)
    hidden = "0\r\n\r\nGET http://denied.example/denied HTTP/1.1\r\nHost: x\r\n\r\n"
    t.each(["Content-Length: 6\r\nTransfer-Encoding: chunked\r\n", "Transfer-Encoding: chunked\r\nContent-Length: 6\r\n",
            "Content-Length: 0\r\nTransfer-Encoding: identity\r\n"],
           lambda fields: refused(t, broker, peer, request(broker, fields, "POST", body=hidden)))
    refused(t, broker, peer, request(broker, "Transfer-Encoding: chunked\r\n", "POST", body=hidden, version="1.0"))


@case("C142: repeated and odd lengths are refused")
def odd_lengths(t):
    peer, broker = begin(t)
    values = ["5\r\nContent-Length: 50", "5, 6", "+5", "-1", "0x5", "5 5", "99999999999999999999", "", "5;", "5.0", "\x0b5", "1_0", "５".encode().decode("latin-1")]
    t.each(values, lambda value: refused(t, broker, peer, request(broker, f"Content-Length: {value}\r\n", "POST", body="hello")))


@case("C142: the same length twice is refused or sent once")
def same_length(t):
    peer, broker = begin(t)

    def check(value):
        client = broker.connect()
        client.send(request(broker, f"Content-Length: {value}\r\n", "POST", body="hello"))
        far = peer.accept_or(client)
        if far is None:
            t.equal(client.answer().status, 400, "status")
            return
        head = far.until(b"\r\n\r\n").lower()
        t.equal(head.count(b"content-length"), 1, "number of lengths upstream")
        far.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        client.answer()
    t.each(["5\r\nContent-Length: 5", "5, 5", "005"], check)


@case("C142 C144: an upstream's malformed answer is 502, and none of its bytes are passed on")
def bad_answers(t):
    peer, broker = begin(t)
    replies = [b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nmarker", b"HTTP/1.1 200 OK\r\nContent-Length: +5\r\n\r\nmarker",
               b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\nmarker", b"HTTP/1.1 200 OK\r\nX: marker\nY: 1\r\n\r\n",
               b"HTTP/1.1 200 OK\r\nX: a\rmarker\r\n\r\n", b"HTTP/1.1 200 OK\r\nX: a\0marker\r\n\r\n", b"HTTP/1.1 200 O\nK marker\r\n\r\n",
               b"HTTP/1.1 200 OK\r\n X: marker\r\n\r\n", b"HTTP/1.1 200 OK\r\nX : marker\r\n\r\n", b"HTTP/1.1 2000 marker\r\n\r\n",
               b"HTTP/1.1 20 marker\r\n\r\n", b"HTTP/2.0 200 marker\r\n\r\n", b"marker\r\n\r\n", b"HTTP/1.1 200 OK\nContent-Length: 6\n\nmarker",
               b"HTTP/1.1 200 OK\r\nmarker\r\n\r\n", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\nmarker",
               b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\nmarker", b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nmarker", b""]

    def check(reply):
        client = broker.connect()
        client.send(request(broker))
        far = peer.accept()
        far.until(b"\r\n\r\n")
        far.send(reply)
        far.half_close()
        answer = client.answer()
        t.equal(answer.status, 502, "status")
        t.lacks(answer.head + answer.body, b"marker", "answer")
    t.each(replies, check)


@case("C143 C144: odd bytes in and around field names, folded lines, bare CR, LF and NUL are refused")
def odd_fields(t):
    peer, broker = begin(t)
    lines = ["Content-Length : 5", "Content-Length\t: 5", "Content-Length\xa0: 5", "Content-Length\x85: 5", "Content-Length\x0b: 5", ": 5", "X", "X-A 1",
             " X: 1", "\tX: 1", "X: 1\r\n folded", "X: 1\r\n\tContent-Length: 5", "X: a\rb", "X: a\0b", "X: x\nContent-Length: 39", "X\r: 1", "X(: 1",
             "\"X\": 1", "X,Y: 1", "X\x00Y: 1", "X: \x01", "X: \x7f"]

    def check(line):
        client = broker.connect()
        # Also as the first field: right after the request line.
        for fields in (f"{HEAD}{broker.auth}{line}\r\n", f"{line}\r\n{HEAD}{broker.auth}"):
            client = broker.connect()
            client.send(f"GET http://api.example.com/a HTTP/1.1\r\n{fields}\r\n")
            answer = client.answer()
            t.equal(answer.status, 400, "status")
            t.check(client.is_closed(), "the connection goes on")
        t.check(peer.untouched())
    t.each(lines, check)
    raw = request(broker)
    t.each([raw.replace("\r\n", "\n"), raw.replace("\r\n", "\r"), raw.replace("/a", "/a\rb"), raw.replace("/a", "/a\0"), raw.replace("/a", "/a b"),
            raw.replace("GET ", "GET  "), raw.replace("GET ", " GET "), raw.replace("GET ", "G(T "), raw.replace("HTTP/1.1", "HTTP/1.1 "),
            raw.replace("HTTP/1.1", "HTTP/1.2"), raw.replace("HTTP/1.1", "HTTP/2.0"), raw.replace("HTTP/1.1", "http/1.1"), raw.replace(" HTTP/1.1", ""),
            raw.replace("HTTP/1.1", "HTTP/1.1\n"), "\0" + raw, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "G" * 40 + raw[3:]],
           lambda bad: refused_or_closed(t, broker, peer, bad))


def refused_or_closed(t, broker, peer, sent):
    client = broker.connect()
    client.send(sent)
    client.half_close()
    data = client.rest()
    t.check(data[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 505", b""), lambda: f"answer {data[:80]!r}")
    t.check(peer.untouched())


@case("C145: malformed chunks of a request end it: no second request can hide in them")
def bad_chunks(t):
    peer, broker = begin(t)
    bodies = ["FFFFFFFFFFFFFFFF\r\n", "10000000000000000\r\nx", "-1\r\n", "0x5\r\nhello\r\n0\r\n\r\n", " 5\r\nhello\r\n0\r\n\r\n", "5 ;\nhello",
              "5\nhello\n0\n\n", "5\r\nhelloX\r\n0\r\n\r\n", "5\r\nhello0\r\n\r\n", "5;" + "x" * 5000 + "\r\nhello\r\n0\r\n\r\n", "\r\nhello", "g\r\n",
              "5\r\nhello\r\n0\r\nX y\r\n\r\n", "5\r\nhello\r\n0\r\n" + "X: y\r\n" * 3000 + "\r\n"]

    def check(body):
        client = broker.connect()
        client.send(request(broker, "Transfer-Encoding: chunked\r\n", "POST", body=body + "GET http://api.example.com/hidden HTTP/1.1\r\n\r\n"))
        client.half_close()
        # 400, or only the close: the request may have begun upstream by then. It never ends there.
        t.lacks(client.rest(), b"HTTP/1.1 200", "answer")
        for seen in peer.seen():
            t.lacks(seen, b"hidden", "what the upstream saw")
            t.lacks(seen, b"0\r\n\r\n", "what the upstream saw")
    t.each(bodies, check)


@case("C145 C150: a chunked body is framed anew: extensions and trailers are dropped, each piece leaves when it comes")
def reframed(t):
    peer, broker = begin(t)
    client = broker.connect()
    client.send(request(broker, "Transfer-Encoding: chunked\r\nTrailer: Authorization\r\n", "POST"))
    client.send("5;ext=secret\r\nhello\r\n")
    far = peer.accept()
    head = far.until(b"\r\n\r\n")
    t.contains(head.lower(), b"transfer-encoding: chunked\r\n", "request upstream")
    t.equal(far.chunk(), b"hello", "first piece, before the second was sent")
    client.send("6\r\n world\r\n")
    t.equal(far.chunk(), b" world", "second piece")
    client.send("0\r\nContent-Length: 5\r\nTransfer-Encoding: x\r\nHost: y\r\nAuthorization: z\r\n\r\n")
    t.equal(far.until(b"\r\n\r\n"), b"0\r\n\r\n", "end upstream")
    far.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n4;x=y\r\nabcd\r\n")
    answer = client.head()
    t.equal(answer.get("Transfer-Encoding"), "chunked", "answer's framing")
    t.equal(client.chunk(), b"abcd", "first piece of the answer")
    far.send(b"0\r\nX-T: 1\r\nContent-Length: 3\r\n\r\n")
    t.equal(client.until(b"\r\n\r\n"), b"0\r\n\r\n", "end of the answer")


@case("C150: an HTTP/1.0 client gets a chunked answer until the close")
def old_client(t):
    peer, broker = begin(t)
    client = broker.connect()
    client.send(request(broker, version="1.0"))
    far = peer.accept()
    far.until(b"\r\n\r\n")
    far.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nabcd\r\n3\r\nefg\r\n0\r\n\r\n")
    answer = client.answer()
    t.equal((answer.get("Transfer-Encoding"), answer.body), (None, b"abcdefg"), "answer")
    t.check(client.is_closed(), "the connection goes on")


@case("C148: an upgrade is not asked for upstream, and a 101 that nobody asked for is 502 and the end")
def upgrade(t):
    peer, broker = begin(t)

    def check(fields):
        client = broker.connect()
        client.send(request(broker, fields))
        far = peer.accept_or(client)
        if far is None:
            t.contains((400, 501), client.answer().status, "status")
            return
        head = far.until(b"\r\n\r\n").lower()
        t.lacks(head, b"upgrade", "request upstream")
        t.lacks(head, b"http2-settings", "request upstream")
        far.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nraw bytes")
        answer = client.answer()
        t.equal(answer.status, 502, "status")
        # The upstream connection is the one that has left HTTP; what its peer sent goes nowhere.
        t.check(far.is_closed(), "the upstream connection goes on")
        t.lacks(answer.head + answer.body + client.buffer, b"raw bytes", "answer")
    t.each(["Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n", "Connection: Upgrade\r\nUpgrade: websocket\r\n",
            "Upgrade: TLS/1.0\r\nConnection: Upgrade\r\n", ""], check)


@case("C153: interim answers do not confuse the framing; a refusal does not wait for the body")
def interim(t):
    peer, broker = begin(t)
    client = broker.connect()
    client.send(request(broker, "Expect: 100-continue\r\nContent-Length: 5\r\n", "POST"))
    far = peer.accept()
    far.until(b"\r\n\r\n")
    far.send(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
    # The broker may answer 100 itself or relay it; either way the client sees one before it sends.
    answer = client.head()
    while answer.status == 103:
        answer = client.head()
    t.equal(answer.status, 100, "interim status")
    client.send("hello")
    t.equal(far.take(5), b"hello", "body upstream")
    far.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    answer = client.answer()
    while answer.status < 200:
        answer = client.answer()
    t.equal((answer.status, answer.body), (200, b"ok"), "answer")
    client = broker.connect()
    client.send(f"POST http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n{broker.auth}Expect: 100-continue\r\nContent-Length: 5\r\n\r\n")
    t.equal(client.answer().status, 403, "status of a refusal")


@case("C154: answers without a body, each followed by another on the same connection")
def without_body(t):
    peer, broker = begin(t)
    rows = [("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 1192\r\n\r\n"), ("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
            ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"), ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 50\r\n\r\n"),
            ("GET", b"HTTP/1.1 205 Reset Content\r\nContent-Length: 0\r\n\r\n"), ("GET", b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n")]

    def check(row):
        client = broker.connect()
        client.send(request(broker, method=row[0]))
        far = peer.accept()
        far.until(b"\r\n\r\n")
        far.send(row[1])
        answer = client.answer(row[0] == "HEAD")
        if answer.status == 100:
            answer = client.answer()
        client.send(request(broker, path="/second"))
        second = peer.accept_next(far)
        t.contains(second.until(b"\r\n\r\n"), b"/second", "second request")
        second.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecond")
        t.equal(client.answer().body, b"second", "second answer")
        far.close()
    t.each(rows, check)


@case("C158: an answer that ends early is not presented as whole")
def early_end(t):
    peer, broker = begin(t)
    for reply in (b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"x" * 500, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"):
        client = broker.connect()
        client.send(request(broker))
        far = peer.accept()
        far.until(b"\r\n\r\n")
        far.send(reply)
        far.close()
        answer = client.answer()
        t.equal((answer.status, answer.complete), (200, False), "answer")
        t.check(len(answer.body) in (500, 5), lambda: f"{len(answer.body)} bytes came of what was sent")
        t.check(client.is_closed(), "the connection goes on")


@case("C159: each request on a kept connection is judged by itself, also when several come at once")
def pipelined(t):
    peer, broker = begin(t)
    other = Peer(t, "9.9.9.10", 80)
    client = broker.connect()
    denied = f"GET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n{broker.auth}\r\n"
    unauthorized = f"GET http://api.example.com/ HTTP/1.1\r\n{HEAD}\r\n"
    client.send(request(broker, path="/1") + denied + unauthorized + f"CONNECT denied.example:80 HTTP/1.1\r\nHost: denied.example:80\r\n{broker.auth}\r\n"
                + request(broker, path="/2"))
    far = peer.accept()
    t.contains(far.until(b"\r\n\r\n"), b"GET /1 ", "first request")
    far.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none")
    t.equal(client.answer().body, b"one", "first answer")
    t.equal([client.answer().status for _ in range(3)], [403, 407, 403], "statuses")
    second = peer.accept_next(far)
    t.contains(second.until(b"\r\n\r\n"), b"GET /2 ", "last request")
    second.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo")
    t.equal(client.answer().body, b"two", "last answer")
    t.check(other.untouched())


@case("C161 C155: a client that only half-closes after its request still gets its answer")
def half_closed_client(t):
    peer, broker = begin(t)
    client = broker.connect()
    client.send(request(broker))
    client.half_close()
    far = peer.accept()
    far.until(b"\r\n\r\n")
    far.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    t.equal(client.answer().body, b"ok", "answer")


@case("C151: an event leaves when it comes, whatever frames the answer")
def events(t):
    peer, broker = begin(t)
    for head, wrap in ((b"Transfer-Encoding: chunked\r\n", lambda e: b"%x\r\n%s\r\n" % (len(e), e)), (b"Connection: close\r\n", lambda e: e),
                       (b"Content-Length: 18\r\n", lambda e: e)):
        client = broker.connect()
        client.send(request(broker))
        far = peer.accept()
        far.until(b"\r\n\r\n")
        far.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n" + head + b"\r\n")
        answer = client.head()
        for i in (1, 2):
            event = b"data: %d\n\n" % i
            far.send(wrap(event))
            got = client.chunk() if answer.get("Transfer-Encoding") else client.take(len(event))
            t.equal(got, event, "event")
        far.close()


@case("S021: every request has a log line with session, host and port, let through or not")
def logged(t):
    peer, broker = begin(t)
    exchange(t, broker, peer, request(broker))
    broker.ask(f"GET http://denied.example/ HTTP/1.1\r\nHost: denied.example\r\n{broker.auth}\r\n")
    for host in ("api.example.com", "denied.example"):
        line = broker.wait_log(host)
        t.contains(line, broker.session, "log line")
        t.contains(line, "80", "log line")


@case("C145 C150: a large upload and a large answer, at once")
def bulk(t):
    peer, broker = begin(t)
    size = 3 << 20
    client = broker.connect()
    client.send(request(broker, f"Content-Length: {size}\r\n", "POST"))
    sender = threading.Thread(target=lambda: client.send(b"u" * size))
    sender.start()
    far = peer.accept()
    far.until(b"\r\n\r\n")
    t.check(far.take(size) == b"u" * size, "the upload is not what was sent")
    sender.join()
    back = threading.Thread(target=lambda: far.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + b"d" * size))
    back.start()
    answer = client.answer()
    back.join()
    t.check(answer.complete and answer.body == b"d" * size, "the answer is not what was sent")


if __name__ == "__main__":
    run()
