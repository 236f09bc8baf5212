# SPDX-License-Identifier: LGPL-2.1-or-later
"""The life of an exchange: kept upstream connections, uploads, clients that leave. The upstream is the test itself."""

import errand_world
errand_world.enter()

# pylint: disable=wrong-import-position
import os
import ssl
import threading
import time

from errand_broker import Broker, Provider
from errand_test import case, run, source
from errand_upstream import Peer
from errand_world import world

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
EVENTS = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"


def begin(t):
    """A provider in clear text, so that the test can read and write what goes over the wire."""
    peer = Peer(t, "127.0.0.1", 8099, world().host)
    broker = Broker(t).start({"p": Provider(base_url="http://127.0.0.1:8099")}, allow=["api.example.com"], allowInternal=["127.0.0.1"])
    return peer, broker


def take_head(far, path):
    head = far.until(b"\r\n\r\n")
    if f" {path} HTTP/1.1\r\n".encode() not in head:
        raise AssertionError(f"the upstream got {head!r}, not {path}")
    return head


def serve(far, path, answer=OK):
    take_head(far, path)
    far.send(answer)


@case("kept connections: one is used again, and one that is dead, or spoke unasked, is not")
def kept(t):
    peer, broker = begin(t)
    client = broker.connect()

    def ask(path, far, new):
        client.send(broker.route_request("p", path))
        far = peer.accept_next(far) if far else peer.accept()
        serve(far, path)
        t.equal(client.answer().body, b"ok", f"answer to {path}")
        t.equal(far is not last, new, f"a new connection for {path}")
        return far
    last = None
    last = ask("/1", None, True)
    last = ask("/2", last, False)
    last.socket.close()
    last = ask("/3", None, True)
    # More than one answer to a request: the rest belongs to nobody.
    client.send(broker.route_request("p", "/4"))
    serve(last, "/4", OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
    t.equal(client.answer().body, b"ok", "answer to /4")
    t.check(last.is_closed(), "a connection that said too much is kept")
    last = ask("/5", None, True)
    last.send(b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil")
    t.check(last.is_closed(), "a connection that spoke unasked is kept")
    last = ask("/6", None, True)
    client.send(broker.route_request("p", "/7"))
    serve(last, "/7", b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=1\r\nContent-Length: 2\r\n\r\nok")
    t.equal(client.answer().body, b"ok", "answer to /7")
    t.check(last.is_closed(), "a connection is kept longer than its server keeps it")


@case("kept connections: one that dies under a request is replaced once, unless the call could be run twice")
def dies_in_use(t):
    peer, broker = begin(t)
    client = broker.connect()
    client.send(broker.route_request("p", "/1"))
    far = peer.accept()
    serve(far, "/1")
    t.equal(client.answer().status, 200, "status of /1")
    client.send(broker.route_request("p", "/2"))
    take_head(far, "/2")
    far.socket.close()
    far = peer.accept()
    serve(far, "/2")
    t.equal(client.answer().status, 200, "status of /2")
    client.send(broker.route_request("p", "/3", "POST", body=b"x"))
    take_head(far, "/3")
    far.take(1)
    far.socket.close()
    t.equal(client.answer().status, 502, "status of a POST whose connection died")
    t.check(peer.untouched(), "a POST was sent twice")
    # A new connection that dies is no kept one: no second try.
    client.send(broker.route_request("p", "/4"))
    far = peer.accept()
    take_head(far, "/4")
    far.socket.close()
    t.equal(client.answer().status, 502, "status of /4")
    t.check(peer.untouched(), "a request was sent twice")
    t.equal([r["outcome"] for r in broker.receipts(4)], ["completed", "completed", "interrupted", "interrupted"], "outcomes")


@case("C140 C159: a body where none belongs: what a server reads out of it as a request never meets the next call's head, nor its key")
def unread_body(t):
    peer = Peer(t, "127.0.0.1", 8099, world().host)
    provider = Provider(base_url="http://127.0.0.1:8099", capabilities=[{"method": "*", "path": "/models"}], strictCapabilities=True)
    broker = Broker(t).start({"p": provider}, allow=["api.example.com"], allowInternal=["127.0.0.1"])
    client = broker.connect()
    smuggled = b"POST /forbidden HTTP/1.1\r\nHost: x\r\nX-Swallow: "
    bodies = [("", smuggled), ("Transfer-Encoding: chunked\r\n", b"%x\r\n%s\r\n0\r\n\r\n" % (len(smuggled), smuggled))]
    for method in ("GET", "DELETE", "OPTIONS", "HEAD", "BREW"):
        for framing, body in bodies:
            length = f"Content-Length: {len(body)}\r\n" if not framing else framing
            client.send(f"{method} /provider/p/models HTTP/1.1\r\nHost: 127.0.0.1:{broker.port}\r\n{provider.header}{length}\r\n".encode() + body)
            far = peer.accept()
            t.contains(take_head(far, "/models"), b"\r\nConnection: close\r\n", f"{method} upstream")
            far.until(b"X-Swallow: ")
            far.send(OK if method != "HEAD" else OK[:-2])
            t.equal(client.answer(method == "HEAD").status, 200, f"status of {method}")
            t.check(far.rest() in (b"", b"\r\n0\r\n\r\n"), f"the connection of a {method} with a body is used again")
    # Where a body belongs, the connection is worth keeping.
    client.send(broker.route_request("p", "/models", "POST", body=b"{}"))
    far = peer.accept()
    take_head(far, "/models")
    far.take(2)
    far.send(OK)
    t.equal(client.answer().status, 200, "status of a POST")
    client.send(broker.route_request("p", "/models"))
    t.check(peer.accept_next(far) is far, "the connection of a POST is not kept")


@case("C153 C150: 100 Continue comes from here, each piece of an upload leaves when it comes, framed anew")
def upload(t):
    peer, broker = begin(t)
    client = broker.connect()
    client.send(f"POST /provider/p/up HTTP/1.1\r\nHost: 127.0.0.1:{broker.port}\r\n{broker.providers['p'].header}"
                "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n\r\n")
    far = peer.accept()
    t.lacks(take_head(far, "/up").lower(), b"expect", "request upstream")
    t.equal(client.head().status, 100, "interim status")
    for _ in range(3):
        client.send(b"5;extension=1\r\nhello\r\n")
        t.equal(far.until(b"hello\r\n"), b"5\r\nhello\r\n", "piece upstream")
    client.send(b"0\r\nTrailer: x\r\n\r\n")
    t.equal(far.until(b"0\r\n\r\n"), b"0\r\n\r\n", "end upstream")
    far.send(OK)
    t.equal(client.answer().body, b"ok", "answer")
    t.equal(broker.receipts(1)[0]["up"], 15, "bytes up")


@case("C153: a final answer in the middle of an upload reaches a client that goes on sending")
def early_answer(t):
    peer, broker = begin(t)
    size = 8 << 20
    client = broker.connect()
    client.send(f"POST /provider/p/up HTTP/1.1\r\nHost: 127.0.0.1:{broker.port}\r\n{broker.providers['p'].header}"
                f"Content-Length: {size}\r\n\r\n")

    errors = []

    def pour():
        try:
            client.send(b"z" * size)
        except ConnectionError as error:
            errors.append(error)
    thread = threading.Thread(target=pour)
    thread.start()
    far = peer.accept()
    take_head(far, "/up")
    far.take(100000)
    far.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\nConnection: close\r\n\r\nbig")
    answer = client.answer()
    t.equal((answer.status, answer.body), (413, b"big"), "answer")
    thread.join()
    # Linux still gives a reset reader what has come; others lose the answer with the reset.
    t.equal(errors, [], "what the sender met")
    t.check(client.is_closed(), "the connection goes on after an unread body")


@case("C161 S055: a client that leaves ends the call upstream, before, in and after its answer's beginning")
def leaves(t):
    peer, broker = begin(t)
    client = broker.connect()
    client.send(broker.route_request("p", "/events"))
    far = peer.accept()
    take_head(far, "/events")
    far.send(EVENTS + b"\r\ndata: 1\n\n")
    client.until(b"data: 1\n\n")
    time.sleep(0.2)  # else its leaving could not be told from a half-close that was sent before the answer
    client.close()
    t.check(far.is_closed(), "the stream goes on for a client that left")
    client = broker.connect()
    client.send(f"POST /provider/p/up HTTP/1.1\r\nHost: 127.0.0.1:{broker.port}\r\n{broker.providers['p'].header}Content-Length: 100\r\n\r\nhalf")
    far = peer.accept()
    take_head(far, "/up")
    far.take(4)
    client.close()
    t.check(far.is_closed(), "the call goes on for a client that left in its body")
    receipts = broker.receipts(2)
    t.equal([(r["outcome"], r["status"], r["up"], r["down"]) for r in receipts], [("interrupted", 200, 0, 9), ("interrupted", 0, 4, 0)], "receipts")


@case("C161: a client that half-closes gets the whole of a slow stream")
def half_close(t):
    peer, broker = begin(t)
    client = broker.connect()
    client.send(broker.route_request("p", "/events"))
    client.half_close()
    far = peer.accept()
    take_head(far, "/events")
    far.send(EVENTS + b"Content-Length: 18\r\n\r\ndata: 1\n\n")
    client.until(b"data: 1\n\n")
    time.sleep(0.8)
    far.send(b"data: 2\n\n")
    t.contains(client.rest(), b"data: 2\n\n", "rest of the stream")
    t.equal(broker.receipts(1)[0]["outcome"], "completed", "outcome")


@case("C150 C158: an HTTP/1.0 client gets an answer until the close, and a reset when it was cut")
def old_client(t):
    peer, broker = begin(t)
    request = broker.route_request("p", "/old").replace(b"HTTP/1.1", b"HTTP/1.0")
    client = broker.connect()
    client.send(request)
    far = peer.accept()
    serve(far, "/old", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n")
    t.check(client.rest().endswith(b"\r\n\r\nabc"), "the body is not there")
    client = broker.connect()
    client.send(request)
    serve(far, "/old", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n")
    far.socket.close()
    try:
        while client.socket.recv(1000):
            pass
        t.fail("a cut answer ends as a whole one does")
    except ConnectionResetError:
        pass


@case("C159: requests that come at once are answered in order, each judged by itself")
def pipelined(t):
    peer, broker = begin(t)
    client = broker.connect()
    client.send(broker.route_request("p", "/1", "POST", body=b"a" * 1000) + broker.route_request("p", "/2") + broker.route_request("p", "/x//y") +
                broker.route_request("p", "/3"))
    far = peer.accept()
    take_head(far, "/1")
    far.take(1000)
    far.send(OK)
    serve(far, "/2")
    serve(far, "/3")
    t.equal([client.answer().status for _ in range(4)], [200, 200, 400, 200], "statuses")


@case("C159 C161: what a client sends, and that it goes, is seen whenever it comes: between calls, with a call, in a call, in pieces")
def client_events(t):
    peer, broker = begin(t)
    p = broker.providers["p"]

    def head(path, size=0):
        return f"POST /provider/p{path} HTTP/1.1\r\nHost: 127.0.0.1:{broker.port}\r\n{p.header}Content-Length: {size}\r\n\r\n".encode()

    client = broker.connect()
    client.send(head("/first"))
    far = peer.accept()
    take_head(far, "/first")
    client.send(head("/during")[:20])  # the next one begins before there is an answer
    far.send(OK)
    t.equal(client.answer().status, 200, "the first")
    client.send(head("/during")[20:])
    serve(far, "/during")
    t.equal(client.answer().status, 200, "one that began during another")
    for piece in (head("/pieces")[:1], head("/pieces")[1:40], head("/pieces")[40:]):
        client.send(piece)
        time.sleep(0.02)
    serve(far, "/pieces")
    t.equal(client.answer().status, 200, "one in pieces")

    # Exactly what the broker reads at a time, and the next one behind it.
    body = b"x" * (65536 - len(head("/full", 60000)))
    client.send(head("/full", len(body)) + body + head("/behind"))
    take_head(far, "/full")
    t.equal(len(far.take(len(body))), len(body), "bytes of the body")
    far.send(OK)
    serve(far, "/behind")
    t.equal([client.answer().status for _ in range(2)], [200, 200], "a full buffer and what is behind it")

    client.half_close()
    t.check(not client.fill(), "a client that goes between calls is not seen")
    for last in ("/with", "/kept"):
        client = broker.connect()
        if last == "/kept":
            client.send(head("/before"))
            serve(far, "/before")
            t.equal(client.answer().status, 200, "the call before")
        client.send(head(last))
        client.half_close()
        serve(far, last)
        t.equal(client.answer().status, 200, f"the answer to {last}")
        t.check(not client.fill(), "a client that goes with its call is not seen")


@case("provider: a caFile without a certificate is said so, and nothing is dialled")
def bad_ca(t):
    peer = Peer(t, "127.0.0.1", 8099, world().host)
    del peer
    broker = Broker(t)
    broker.connect_control()
    broker.providers = {"p": Provider()}
    message, fds = broker.setup_message(allow=["api.example.com"])
    at = message["fds"].index("ca:p")
    os.close(fds[at])
    fds[at] = os.memfd_create("ca")
    os.write(fds[at], b"no certificate\n")
    os.lseek(fds[at], 0, os.SEEK_SET)
    reply = broker.control.request("setup", fds, **message)
    if reply["type"] != "ok":
        return  # refused at once: better still
    broker.hand_over()
    answer = broker.call("p")
    t.equal(answer.status, 502, "status")
    t.contains(answer.body, b"caFile", "body")


class Tls:
    """The server's side of TLS, whose bytes are sent when the test says so."""

    def __init__(self, far):
        self.far, self.incoming, self.outgoing = far, ssl.MemoryBIO(), ssl.MemoryBIO()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(source("tests/peers/ca/server.pem"), source("tests/peers/ca/server-key.pem"))
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_side=True)

    def flush(self):
        self.far.send(self.outgoing.read())

    def step(self, function, *arguments):
        """Its result, once there is enough to read."""
        while True:
            try:
                return function(*arguments)
            except ssl.SSLWantReadError:
                if self.outgoing.pending:
                    self.flush()
                self.incoming.write(self.far.socket.recv(65536))


@case("an answer that comes in one piece with the tickets of its connection is passed on at once", timeout=20)
def with_tickets(t):
    peer = Peer(t, "9.9.9.9", 443)
    broker = Broker(t).start({"p": Provider(base_url="https://provider.example")})
    client = broker.connect()
    client.send(broker.route_request("p", "/1"))
    server = Tls(peer.accept())
    server.step(server.tls.do_handshake)
    t.check(server.outgoing.pending > 0, "the server has no ticket to send")
    held = server.outgoing.read()
    server.step(server.tls.read, 65536)
    server.tls.write(OK)
    server.far.send(held + server.outgoing.read())
    t.equal(client.answer().body, b"ok", "the answer")


if __name__ == "__main__":
    run()
