# SPDX-License-Identifier: LGPL-2.1-or-later
"""The proxy port in SOCKS5: the same credential, the same judgement, the same tunnel."""

import socket
import struct
import subprocess

import errand_world
from errand_broker import Broker, mint
from errand_spool import GRANT_USED, read
from errand_test import SOURCE, case, run
from errand_upstream import Peer, Upstream

errand_world.enter()
world = errand_world.world()

GREETING = b"\x05\x01\x02"


def credential(user, password):
    return bytes([1, len(user)]) + user.encode() + bytes([len(password)]) + password.encode()


def named(host, port, command=1):
    return bytes([5, command, 0, 3, len(host)]) + host.encode() + struct.pack(">H", port)


def literal(address, port):
    family, kind = (socket.AF_INET6, 4) if ":" in address else (socket.AF_INET, 1)
    return bytes([5, 1, 0, kind]) + socket.inet_pton(family, address) + struct.pack(">H", port)


def login(broker):
    """A connection that has shown the session's credential."""
    client = broker.connect()
    client.send(GREETING)
    if client.take(2) != b"\x05\x02":
        raise ConnectionError("the password was not chosen")
    client.send(credential("errand", broker.credential))
    if client.take(2) != b"\x01\x00":
        raise ConnectionError("the credential was refused")
    return client


def ask(broker, request):
    """→ (client, reply code); None when it was closed without one."""
    client = login(broker)
    client.send(request)
    reply = client.take(10)
    if reply == b"":
        return client, None
    if len(reply) != 10 or reply[0] != 5 or reply[2:] != b"\0\1\0\0\0\0\0\0":
        raise ConnectionError(f"no reply of SOCKS5: {reply!r}")
    return client, reply[1]


@case("S070: a tunnel to a name, an IPv4 and an IPv6 address; bytes both ways, half-close kept")
def tunnel(t):
    peers = [Peer(t, "9.9.9.9", 443), Peer(t, "2606:4700::2", 443)]
    broker = Broker(t).start(allow=["api.example.com", "9.9.9.9", "2606:4700::2"])

    def check(row):
        request, peer = row
        client, reply = ask(broker, request)
        t.equal(reply, 0, "reply")
        far = peer.accept()
        client.send(b"ping")
        t.equal(far.take(4), b"ping", "up")
        client.half_close()
        t.check(far.is_closed(), "the half-close does not arrive")
        far.send(b"pong")
        far.close()
        t.equal(client.rest(), b"pong", "down")
    t.each([(named("api.example.com", 443), peers[0]), (named("API.Example.com.", 443), peers[0]), (literal("9.9.9.9", 443), peers[0]),
            (named("9.9.9.9", 443), peers[0]), (literal("2606:4700::2", 443), peers[1])], check)
    t.contains(broker.wait_log("4 bytes down"), "SOCKS5 api.example.com:443: ended after", "log line")


@case("all of it in one piece, and byte by byte; bytes behind the request are the tunnel's first")
def pieces(t):
    peer = Peer(t, "9.9.9.9", 443)
    broker = Broker(t).start(allow=["api.example.com"])
    whole = GREETING + credential("errand", broker.credential) + named("api.example.com", 443)

    def check(pieces):
        client = broker.connect()
        for piece in pieces:
            client.send(piece)
        t.equal(client.take(14), b"\x05\x02\x01\x00\x05\0\0\1\0\0\0\0\0\0", "replies")
        t.equal(peer.accept().take(5), b"early", "the tunnel's first bytes")
    check([whole + b"early"])
    check([bytes([b]) for b in whole] + [b"early"])


@case("S068 S069 C168: without the session's credential nothing is looked up or connected, and the connection is closed")
def credentials(t):
    up = Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t).start(allow=["*"])
    other = mint()
    world.resolver.asked.clear()
    right = broker.credential
    behind = named("never-asked.test", 443) + literal("9.9.9.9", 443)

    def check(row):
        message, answer = row
        client = broker.connect()
        client.send(message + behind)
        t.equal(client.rest(), answer, "answer")
    t.each([(b"\x05\x01\x00", b"\x05\xff"), (b"\x05\x02\x00\x01", b"\x05\xff"), (b"\x05\x00", b""),
            (GREETING + credential("errand", other), b"\x05\x02\x01\x01"), (GREETING + credential("root", right), b"\x05\x02\x01\x01"),
            (GREETING + credential("errand", right[:-1]), b"\x05\x02\x01\x01"), (GREETING + credential("errand", right + "0"), b"\x05\x02\x01\x01"),
            (GREETING + credential("errand", right + "\0"), b"\x05\x02\x01\x01"), (GREETING + credential("errand:" + right, "x"), b"\x05\x02\x01\x01"),
            (GREETING + b"\x01\x06errand\x00", b"\x05\x02\x01\x01"), (GREETING + b"\x01\x00\x00", b"\x05\x02\x01\x01"),
            (GREETING + b"\x05" + credential("errand", right)[1:], b"\x05\x02\x01\x01"), (GREETING + behind, b"\x05\x02\x01\x01")], check)
    t.equal(world.resolver.asked, [], "lookups")
    t.equal(up.accepts(), [], "upstream connections")
    for secret in (right, other):
        t.lacks(broker.log(), secret, "log")


@case("S022 S074 S118: every refusal is the one that CONNECT gets, with its reply code and its log line")
def refusals(t):
    broker = Broker(t).start(allow=["api.example.com", "10.0.0.5", "inside.test", "nowhere.test", "169.254.169.254", "9.9.9.10", "::ffff:127.0.0.1"], ports=[443, 80])
    world.resolver.names["inside.test"] = ["10.0.0.5", "127.0.0.1"]
    rows = [(named("denied.example", 443), 2, "refused with 403: denied.example is not on the egress allowlist or granted; its owner can run: errand grant s1 denied.example"),
            (named("api.example.com", 25), 2, "refused with 403: this port is not one"),
            (literal("10.0.0.5", 443), 2, "refused with 403: not a public host"), (literal("169.254.169.254", 80), 2, "refused with 403: not a public host"),
            (literal("::ffff:127.0.0.1", 443), 2, "refused with 403: not a public host"), (named("inside.test", 443), 2, "refused with 403: not a public host"),
            (named("nowhere.test", 443), 4, "refused with 502: the name did not resolve"), (literal("9.9.9.10", 443), 5, "refused with 502: upstream unreachable"),
            (named("api.example.com", 443, command=2), 7, "refused: only CONNECT"), (named("api.example.com", 443, command=3), 7, "refused: only CONNECT"),
            (b"\x05\x01\x00\x02\x09\x09\x09\x09\x01\xbb", 8, "refused: the type of address"),
            (b"\x05\x01\x01\x01\x09\x09\x09\x09\x01\xbb", 1, "refused: the reserved byte"),
            (named("2130706433", 443), 1, "refused: the host reads as a number"), (named("api.example.com", 0), 1, "refused: the port is not one of"),
            (named("api.example.com:443", 443), 1, "refused: the host has to stand alone")]

    def check(row):
        request, reply, line = row
        before = broker.log().count(line)
        client, got = ask(broker, request)
        t.equal(got, reply, "reply")
        t.check(client.is_closed(), "the connection stays open")
        broker.wait_log(line, before + 1)
    t.each(rows, check)
    reply = broker.control.request("stats")
    t.equal(reply["turnedAway"], len(rows), "refusals counted")


@case("S039: a refused host is told to the supervisor; a grant opens it, and one for once to one connection of either protocol")
def grants(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t).start(allow=[])
    t.equal(ask(broker, named("api.example.com", 443))[1], 2, "reply before")
    event = broker.control.event("refused")
    t.equal((event["host"], event["port"]), ("api.example.com", 443), "event")
    broker.grant("api.example.com", "once")
    t.equal(ask(broker, named("api.example.com", 443))[1], 0, "reply with a grant")
    t.equal(broker.control.event("grant-used")["id"], "g1", "event")
    t.equal(ask(broker, named("api.example.com", 443))[1], 2, "reply after it")
    t.equal(broker.open_tunnel("api.example.com:443")[1].status, 403, "status of CONNECT after it")
    t.check(any(kind == GRANT_USED for kind, _ in read(broker.spool())), "the use is not in the spool")


@case("SOCKS4 and other first bytes are answered with one log line and the end of the connection; HTTP after HTTP stays HTTP")
def garbage(t):
    broker = Broker(t).start(allow=["*"])
    client = broker.connect()
    client.send(b"\x04\x01\x01\xbb\x09\x09\x09\x09\x00")
    t.check(client.is_closed(), "SOCKS4 is answered")
    broker.wait_log("a request: refused: SOCKS4 has no place for the session's credential; use socks5h")
    for first in (b"\x16\x03\x01\x02\x00", b"\x00", b"\x06\x01\x02", b"\xff"):
        client = broker.connect()
        client.send(first)
        answer = client.answer()
        t.equal(answer.status, 400, f"status for {first!r}")
        t.check(client.is_closed(), "the connection stays open")
    client = broker.connect()
    client.send("GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
    t.equal(client.answer().status, 407, "status")
    client.send(GREETING)
    t.equal(client.answer().status, 400, "status of SOCKS5 behind HTTP")
    t.check(client.is_closed(), "the connection stays open")
    broker.wait_log("refused", 7)
    broker.stop()
    t.equal(broker.log().count(": refused"), 7, "log lines")


@case("S046: after close a connection that has shown the credential is gone; an open tunnel stays")
def closing(t):
    peer = Peer(t, "9.9.9.9", 443)
    broker = Broker(t).start(allow=["*"])
    ready, greeted = login(broker), broker.connect()
    greeted.send(GREETING)
    t.equal(greeted.take(2), b"\x05\x02", "choice")
    client, reply = ask(broker, literal("9.9.9.9", 443))
    t.equal(reply, 0, "reply")
    far = peer.accept()
    broker.control.request("close")
    t.check(ready.is_closed() and greeted.is_closed(), "a handshake outlives close")
    client.send(b"still")
    t.equal(far.take(5), b"still", "bytes through the tunnel")


@case("C171: curl goes out over socks5h with the same credential, and says why a refused host is refused")
def curl(t):
    Upstream(t, "9.9.9.9:443")
    broker = Broker(t).start(allow=["api.example.com"])
    command = ["curl", "-sS", "--max-time", "30", "--cacert", "tests/peers/ca/ca.pem", "-o", "/dev/null", "-w", "%{http_code}",
               "-x", f"socks5h://errand:{broker.credential}@127.0.0.1:{broker.port}"]
    with broker.namespace.inside():
        good = subprocess.run([*command, "https://api.example.com/status/204"], cwd=SOURCE, capture_output=True, text=True, check=False)
        bad = subprocess.run([*command, "https://denied.example/"], cwd=SOURCE, capture_output=True, text=True, check=False)
    t.equal((good.stdout, good.stderr), ("204", ""), "curl")
    t.equal(bad.returncode, 97, "exit status")
    t.contains(bad.stderr, "(2)", "what curl says")


if __name__ == "__main__":
    run()
