# SPDX-License-Identifier: LGPL-2.1-or-later
"""The test peers themselves: a test that says "no upstream saw a connection" is worth what they are worth."""

import select
import socket
import ssl
import struct
import sys

import errand_spool
import errand_test
import errand_world
from errand_http import Client
from errand_test import case
from errand_upstream import Peer, Upstream

errand_world.enter()
world = errand_world.world()


def tls(sock, name="api.example.com"):
    context = ssl.create_default_context(cafile=errand_test.source("tests/peers/ca/ca.pem"))
    return context.wrap_socket(sock, server_hostname=name)


@case("peers: the server echoes, records byte for byte and logs each accept")
def echo(t):
    up = Upstream(t, "9.9.9.9:443", "[2606:4700::1]:443")
    t.equal(up.accepts(), [], "accepts")
    request = b"POST /v1/echo?x=1 HTTP/1.1\r\nHost: api.example.com\r\nContent-Length: 3\r\n\r\nabc"
    client = Client(tls(socket.create_connection(("9.9.9.9", 443))))
    for _ in range(2):
        client.send(request)
        t.equal(client.answer().body, request, "echo")
    t.equal(up.received(1), request * 2, "record")
    chunked = b"POST /echo HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
    client.send(chunked)
    t.equal(client.answer().body, chunked, "echo")
    Client(tls(socket.create_connection(("2606:4700::1", 443))))
    t.equal(up.accepts(), ["9.9.9.9:443", "[2606:4700::1]:443"], "accepts")


@case("peers: an accept is counted before anything is sent on it")
def bare_accept(t):
    up = Upstream(t, "9.9.9.9:443")
    socket.create_connection(("9.9.9.9", 443))
    t.equal(up.accepts(), ["9.9.9.9:443"], "accepts")
    peer = Peer(t, "9.9.9.10", 443)
    t.check(peer.untouched())
    socket.create_connection(("9.9.9.10", 443))
    select.select([peer.socket], [], [])  # its handshake has ended on this side, too
    try:
        peer.untouched()
    except errand_test.Failure:
        return
    t.fail("the connection was not noticed")


@case("peers: pieces and events leave at the test's word")
def paced(t):
    up = Upstream(t, "9.9.9.9:80", certificate=None)
    up.raw("x", [b"HTTP/1.1 200 OK\r\n\r\n", b"ab", b"cd"])
    client = Client(socket.create_connection(("9.9.9.9", 80)))
    client.send("GET /raw/x?paced HTTP/1.1\r\n\r\n")
    up.wait("request 1")
    up.go()
    t.equal(client.head().status, 200, "status")
    up.go()
    t.equal(client.take(2), b"ab", "piece")
    up.go()
    t.equal(client.rest(), b"cd", "piece")
    client = Client(socket.create_connection(("9.9.9.9", 80)))
    client.send("GET /sse/2?paced HTTP/1.1\r\n\r\n")
    t.equal(client.head().status, 200, "status")
    for expected in (b"data: 1\n\n", b"data: 2\n\n"):
        up.go()
        t.equal(client.chunk(), expected, "event")
    t.equal(client.chunk(), b"", "last chunk")
    client.send("GET /wait HTTP/1.1\r\n\r\n")
    up.wait("request 2 GET /wait")
    client.close()
    up.wait("gone 2")


@case("peers: large answers, answers that end early, bad certificates")
def sizes(t):
    up = Upstream(t, "9.9.9.9:80", certificate=None)
    client = Client(socket.create_connection(("9.9.9.9", 80)))
    client.send("GET /length/1000000 HTTP/1.1\r\n\r\n")
    t.equal(len(client.answer().body), 1000000, "size")
    client.send("GET /chunked/1000000 HTTP/1.1\r\n\r\n")
    t.equal(len(client.answer().body), 1000000, "size")
    client.send("GET /length/1000/500 HTTP/1.1\r\n\r\n")
    answer = client.answer()
    t.equal((len(answer.body), answer.complete), (500, False), "early end")
    t.equal(up.accepts(), ["9.9.9.9:80"], "accepts")
    for certificate, at in (("wrong-name", 441), ("self-signed", 442), ("expired", 443)):
        Upstream(t, f"9.9.9.9:{at}", certificate=certificate)
        try:
            tls(socket.create_connection(("9.9.9.9", at)))
        except ssl.SSLCertVerificationError:
            continue
        t.fail(f"{certificate} was accepted")


@case("peers: a session's namespace holds a loopback interface and nothing else")
def session(t):
    namespace = world.session()
    with namespace.inside():
        t.equal([name for _, name in socket.if_nameindex()], ["lo"], "interfaces")
    listener = namespace.listen("127.0.0.1", 443)
    try:
        socket.create_connection(("127.0.0.1", 443))
    except ConnectionRefusedError:
        pass
    else:
        t.fail("the host reaches a session's loopback")
    s = namespace.socket()
    s.connect(("127.0.0.1", 443))
    listener.accept()


@case("peers: the resolver answers as it is told")
def resolver(t):
    world.resolver.names.update({"a.test": ["9.9.9.10", "2606:4700::2"], "fail.test": "servfail"})
    t.equal({a[4][0] for a in socket.getaddrinfo("a.test", 1)}, {"9.9.9.10", "2606:4700::2"}, "addresses")
    t.equal({a[4][0] for a in socket.getaddrinfo("api.example.com", 1)}, {"9.9.9.9"}, "addresses")
    for name in ("fail.test", "nothing.test"):
        try:
            socket.getaddrinfo(name, 1)
        except socket.gaierror:
            continue
        t.fail(f"{name} has an address")


@case("peers: the spool reader leaves out a torn record and refuses a damaged one")
def spool(t):
    payload = b'{"a":1}'
    record = struct.pack("<4sHHII", b"ERRS", 1, 1, len(payload), errand_spool.crc32c(payload)) + payload
    t.equal(errand_spool.read(record + record[:-1]), [(1, {"a": 1})], "records")
    try:
        errand_spool.read(record[:-1] + b"]")
    except ValueError:
        return
    t.fail("a damaged record was read")


if __name__ == "__main__":
    sys.dont_write_bytecode = True
    errand_test.run()
