# SPDX-License-Identifier: LGPL-2.1-or-later
"""CONNECT: bytes go both ways unchanged, each direction ends by itself, and a tunnel outlives what opened it."""

import os
import socket
import struct
import threading

import errand_world
from errand_broker import Broker, Provider
from errand_test import case, run
from errand_upstream import Peer

errand_world.enter()
world = errand_world.world()


def tunnel(t, broker, peer, authority="api.example.com:443"):
    client, answer = broker.open_tunnel(authority)
    t.equal(answer.status, 200, "status")
    return client, peer.accept(), answer


@case("C149: the 200 has neither length nor body, and bytes after the head go into the tunnel unchanged")
def early_data(t):
    peer = Peer(t, "9.9.9.9", 443)
    broker = Broker(t).start(allow=["api.example.com"])
    client = broker.connect()
    hello = bytes(range(256)) * 4
    client.send(f"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n{broker.auth}\r\n".encode() + hello)
    answer = client.head()
    t.equal(answer.status, 200, "status")
    t.equal((answer.get("Content-Length"), answer.get("Transfer-Encoding")), (None, None), "framing of the 200")
    far = peer.accept()
    t.equal(far.take(len(hello)), hello, "early data")
    far.send(b"back")
    t.equal(client.take(4), b"back", "answer")


@case("C149: a CONNECT that carries a length or a transfer coding is refused before anything is dialled")
def connect_with_body(t):
    peer = Peer(t, "9.9.9.9", 443)
    broker = Broker(t).start(allow=["api.example.com"])
    for line, body in (("Content-Length: 10", "0123456789"), ("Transfer-Encoding: chunked", "0\r\n\r\n")):
        answer = broker.ask(f"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n{broker.auth}{line}\r\n\r\n{body}")
        t.equal(answer.status, 400, f"status with {line}")
    t.check(peer.untouched())


@case("C149 C159: after a refused CONNECT the connection goes on, and each request is judged by itself")
def after_refusal(t):
    peer = Peer(t, "9.9.9.9", 443)
    broker = Broker(t).start(allow=["api.example.com"])
    client = broker.connect()
    good = f"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n{broker.auth}\r\n"
    bad = f"CONNECT denied.example:443 HTTP/1.1\r\nHost: denied.example:443\r\n{broker.auth}\r\n"
    unauthorized = "CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n"
    client.send(bad + unauthorized + bad)
    t.equal([client.answer().status for _ in range(3)], [403, 407, 403], "statuses")
    t.check(peer.untouched())
    client.send(good)
    t.equal(client.head().status, 200, "status")
    far = peer.accept()
    client.send(b"x")
    t.equal(far.take(1), b"x", "byte")


@case("C155: half-close is passed on by direction, and no byte is lost")
def half_close(t):
    peer = Peer(t, "9.9.9.9", 443)
    broker = Broker(t).start(allow=["api.example.com"])
    data = os.urandom(1 << 20)
    for swap in (False, True):
        near, far, _ = tunnel(t, broker, peer)
        one, two = (far, near) if swap else (near, far)
        one.send(b"0123456789")
        one.half_close()
        t.equal(two.rest(), b"0123456789", "bytes before the half-close")
        sender = threading.Thread(target=lambda to=two: (to.send(data), to.half_close()))
        sender.start()
        t.check(one.rest() == data, "the bytes after the half-close are not those that were sent")
        sender.join()


@case("C155: a reset on one side is no clean end on the other")
def reset(t):
    peer = Peer(t, "9.9.9.9", 443)
    broker = Broker(t).start(allow=["api.example.com"])
    near, far, _ = tunnel(t, broker, peer)
    far.send(b"x")
    t.equal(near.take(1), b"x", "byte")
    far.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    far.close()
    try:
        t.equal(near.socket.recv(1), None, "what came in place of a reset")
    except ConnectionResetError:
        pass


@case("S046 C155: bulk both ways at once, with back-pressure, arrives whole")
def bulk(t):
    peer = Peer(t, "9.9.9.9", 443)
    broker = Broker(t).start(allow=["api.example.com"])
    near, far, _ = tunnel(t, broker, peer)
    up, down = os.urandom(3 << 20), os.urandom(5 << 20)
    threads = [threading.Thread(target=lambda: (near.send(up), near.half_close())), threading.Thread(target=lambda: (far.send(down), far.half_close()))]
    for thread in threads:
        thread.start()
    got = {}
    readers = [threading.Thread(target=lambda: got.update(up=far.rest())), threading.Thread(target=lambda: got.update(down=near.rest()))]
    for thread in readers:
        thread.start()
    for thread in threads + readers:
        thread.join()
    t.check(got["up"] == up, "the upload is not what was sent")
    t.check(got["down"] == down, "the download is not what was sent")


@case("S049 S064: a tunnel leaves a log line with session and host, and no receipt")
def no_receipt(t):
    peer = Peer(t, "9.9.9.9", 443)
    broker = Broker(t, "s49").start({"p": Provider()}, allow=["api.example.com"])
    near, far, _ = tunnel(t, broker, peer)
    far.close()
    near.rest()
    near.close()
    broker.open_tunnel("denied.example:443")
    for host in ("api.example.com", "denied.example"):
        t.contains(broker.wait_log(host), "s49", "log line")
    broker.stop()
    t.equal(broker.spool(), b"", "spool")


@case("S138 S048: an open tunnel outlives the revoked grant and the close; a new one is refused")
def outlives(t):
    peer = Peer(t, "9.9.9.9", 443)
    broker = Broker(t).start(allow=[])
    t.equal(broker.grant("api.example.com")["type"], "ok", "reply")
    near, far, _ = tunnel(t, broker, peer)
    t.equal(broker.control.request("revoke", id="g1")["type"], "ok", "reply")
    t.equal(broker.open_tunnel("api.example.com:443")[1].status, 403, "status after the revoke")
    near.send(b"a")
    t.equal(far.take(1), b"a", "byte after the revoke")
    t.equal(broker.control.request("close")["type"], "ok", "reply")
    near.send(b"b")
    t.equal(far.take(1), b"b", "byte after the close")
    far.send(b"c")
    t.equal(near.take(1), b"c", "byte after the close")


if __name__ == "__main__":
    run()
