# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a tunnel's TLS asks for, compared with the host that the tunnel was opened for."""

import contextlib
import ssl
import struct

import errand_world
from errand_broker import Broker
from errand_test import case, run
from errand_upstream import Peer

errand_world.enter()


def hello(name):
    """The first message of a real TLS client."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = context.wrap_bio(incoming, outgoing, server_hostname=name)
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        pass
    return outgoing.read()


def in_records(message, size):
    payload = message[5:]
    return b"".join(b"\x16\x03\x01" + struct.pack(">H", len(payload[i:i + size])) + payload[i:i + size] for i in range(0, len(payload), size))


def begin(t, mode, host="api.example.com"):
    broker = Broker(t).start({}, allow=["api.example.com", "9.9.9.9"], serverName=mode)
    peer = Peer(t, "9.9.9.9", 443)

    def tunnel():
        client, answer = broker.open_tunnel(f"{host}:443")
        t.equal(answer.status, 200, "status")
        return client, peer.accept()
    return broker, tunnel


OTHERS = {"asks for another host than the tunnel's: denied.example": hello("denied.example"), "names no host": hello(None), "is not TLS": b"GET / HTTP/1.1\r\n\r\n",
          "begins as TLS does and is malformed": b"\x16\x03\x01\x00\x04\x02\x00\x00\x00"}


@case("C124: log: what asks for another host, for none, or is not TLS passes at once and is named in the log; the right one is not")
def logged(t):
    broker, tunnel = begin(t, "log")
    for words, data in OTHERS.items():
        client, far = tunnel()
        for byte in (data[:1], data[1:7]):
            client.send(byte)
            t.equal(far.take(len(byte)), byte, "bytes, before anything can be said of them")
        client.send(data[7:] + b"more")
        t.equal(far.take(len(data) - 3), data[7:] + b"more", "the rest")
        t.contains(broker.wait_log(f"first message {words}"), "CONNECT api.example.com:443", "log")
        far.send(b"back")
        t.equal(client.take(4), b"back", "bytes back")
        client.close()
    client, far = tunnel()
    client.send(hello("api.example.com"))
    far.take(10)
    client.close()
    client, far = tunnel()
    far.send(b"SSH-2.0-server\r\n")
    t.equal(client.take(16), b"SSH-2.0-server\r\n", "a server that speaks first")
    client.send(b"SSH-2.0-client\r\n")
    t.equal(far.take(16), b"SSH-2.0-client\r\n", "bytes")
    client.close()
    far.rest()
    broker.stop()
    t.equal(broker.log().count("first message"), len(OTHERS), "number of lines")


@case("C124: enforce: nothing of a tunnel that asks for another host, for none, or is not TLS reaches the upstream, and the tunnel ends")
def enforced(t):
    broker, tunnel = begin(t, "enforce")
    for words, data in OTHERS.items():
        for pieces in ([data], [data[:3], data[3:]]):
            client, far = tunnel()
            with contextlib.suppress(ConnectionError):  # it may end before all is sent
                for piece in pieces:
                    client.send(piece)
            t.check(client.is_closed(), f"the tunnel that {words} is open")
            t.equal(far.rest(), b"", "bytes upstream")
        t.contains(broker.wait_log(f"closed: the tunnel's first message {words}"), "api.example.com", "log")
    # half a message, and then the end
    client, far = tunnel()
    client.send(hello("api.example.com")[:50])
    client.half_close()
    t.equal((client.is_closed(), far.rest()), (True, b""), "half a message")


@case("C124: enforce: the right name goes through whole, in whatever segments and records it comes, and so does SSH")
def passes(t):
    broker, tunnel = begin(t, "enforce")
    whole = hello("API.example.com")
    for data, cuts in ((whole, ()), (whole, (1, 9, 60)), (in_records(whole, 50), (3, 30, 200)), (b"SSH-2.0-x\r\n", (2,))):
        client, far = tunnel()
        at = 0
        for cut in (*cuts, len(data)):
            client.send(data[at:cut])
            at = cut
        t.equal(far.take(len(data)), data, "bytes upstream")
        client.send(b"x" * 100000)
        t.equal(far.take(100000), b"x" * 100000, "what follows")
        far.send(b"y" * 100000)
        t.equal(client.take(100000), b"y" * 100000, "what comes back")
        client.half_close()
        t.equal(far.rest(), b"", "end")
        far.close()
    # with the request's head, in one segment
    client = broker.connect()
    client.send(f"CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n{broker.auth}\r\n".encode() + whole)
    t.equal(client.head().status, 200, "status")


@case("C124: enforce: a tunnel to an address takes TLS without a name, since an address has none, and no other name")
def address(t):
    broker, tunnel = begin(t, "enforce", "9.9.9.9")
    client, far = tunnel()
    data = hello(None)
    client.send(data)
    t.equal(far.take(len(data)), data, "bytes")
    client, far = tunnel()
    client.send(hello("denied.example"))
    t.check(client.is_closed(), "the tunnel is open")
    t.equal(far.rest(), b"", "bytes upstream")


@case("C124: enforce: a tunnel by SOCKS5 is held alike")
def socks(t):
    peer = Peer(t, "9.9.9.9", 443)
    broker = Broker(t).start({}, allow=["api.example.com"], serverName="enforce")
    host = b"api.example.com"
    for name in ("api.example.com", "denied.example"):
        client = broker.connect()
        client.send(b"\x05\x01\x02")
        t.equal(client.take(2), b"\x05\x02", "method")
        client.send(b"\x01\x06errand" + bytes([len(broker.credential)]) + broker.credential.encode())
        t.equal(client.take(2), b"\x01\x00", "login")
        client.send(b"\x05\x01\x00\x03" + bytes([len(host)]) + host + struct.pack(">H", 443))
        t.equal(client.take(10)[:2], b"\x05\x00", "reply")
        far, data = peer.accept(), hello(name)
        client.send(data)
        if name == "api.example.com":
            t.equal(far.take(len(data)), data, "bytes upstream")
            continue
        t.check(client.is_closed(), "the tunnel is open")
        t.equal(far.rest(), b"", "bytes upstream")


if __name__ == "__main__":
    run()
