# SPDX-License-Identifier: LGPL-2.1-or-later
"""The session socket: one listener, by the token, once, and only of the kind it must be."""

import json
import os
import select
import socket

import errand_world
from errand_broker import Broker, Channel
from errand_test import case, run

errand_world.enter()
world = errand_world.world()


def hand(broker, message, fds=()):
    channel = Channel(broker.session_path)
    try:
        channel.send_raw(message if isinstance(message, bytes) else json.dumps(message).encode(), fds)
        return channel.receive()
    except BrokenPipeError:
        return None
    finally:
        channel.close()


def listeners(broker, token=None, fds=("proxy",), **more):
    return {"v": 1, "type": "listeners", "token": token or broker.token, "fds": list(fds), **more}


def not_ready(t, reply):
    t.check(reply is None or reply["type"] == "error", lambda: f"the answer is {reply}")


@case("S042 hand-over: a listener with its token is answered with ready, and serves")
def good(t):
    broker = Broker(t)
    broker.setup(allow=["*"])
    t.equal(broker.hand_over(), {"v": 1, "type": "ready"}, "answer")
    t.equal(broker.ask("GET http://x.test/ HTTP/1.1\r\nHost: x.test\r\n\r\n").status, 407, "status")


@case("S042 hand-over: a wrong token, garbage, or no fd is refused, and the right one still gets in afterwards")
def bad_messages(t):
    broker = Broker(t)
    broker.setup(allow=["*"])
    with world.session().inside():
        s = socket.create_server(("127.0.0.1", 0))
    fd = [s.fileno()]
    rows = [("another token", listeners(broker, "0" * 64), fd), ("a prefix", listeners(broker, broker.token[:-1]), fd),
            ("upper case", listeners(broker, broker.token.upper() if broker.token.upper() != broker.token else "A" * 64), fd),
            ("a token that is a number", {**listeners(broker), "token": 1}, fd), ("no token", {"v": 1, "type": "listeners", "fds": ["proxy"]}, fd),
            ("no fd", listeners(broker, fds=()), []), ("another name", listeners(broker, fds=["other"]), fd),
            ("a name too many", listeners(broker, fds=["proxy", "more"]), fd), ("an fd too many", listeners(broker), fd * 2),
            ("another version", {**listeners(broker), "v": 2}, fd), ("another type", {**listeners(broker), "type": "setup"}, fd),
            ("no JSON", b"garbage", fd), ("nothing", b"", fd)]
    t.each(rows, lambda row: not_ready(t, hand(broker, row[1], row[2])))
    t.lacks(broker.log(), broker.token, "log")
    t.equal(broker.hand_over()["type"], "ready", "answer to the right one")


@case("S072 hand-over: what is handed over must be a listening TCP socket on loopback in another network namespace")
def bad_sockets(t):
    broker = Broker(t)
    broker.setup(allow=["*"])
    inside = world.session()

    def tcp(namespace, address, listen=True, family=socket.AF_INET):
        s = namespace.socket(family)
        s.bind((address, 0))
        if listen:
            s.listen(1)
        return s

    def udp():
        s = inside.socket(kind=socket.SOCK_DGRAM)
        s.bind(("127.0.0.1", 0))
        return s

    def unix():
        s = socket.socket(socket.AF_UNIX)
        s.bind(t.path("unix"))
        s.listen(1)
        return s

    def connected():
        server = tcp(inside, "127.0.0.1")
        s = inside.socket()
        s.connect(server.getsockname())
        t.defer(server.close)
        return s
    rows = {"a listener of the broker's own namespace": lambda: tcp(world.host, "127.0.0.1"), "not listening": lambda: tcp(inside, "127.0.0.1", False),
            "any address": lambda: tcp(inside, "0.0.0.0"), "any IPv6 address": lambda: tcp(inside, "::", family=socket.AF_INET6), "udp": udp,
            "a unix socket": unix, "a connected socket": connected, "a listener on the network": lambda: tcp(world.internet, "9.9.9.9"),
            "a file": lambda: open("/dev/null", "rb"), "a directory": None, "a pipe": lambda: os.fdopen(os.pipe()[0], "rb")}

    def check(name):
        if rows[name] is None:
            fd = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
            reply = hand(broker, listeners(broker), [fd])
            os.close(fd)
        else:
            with rows[name]() as s:
                reply = hand(broker, listeners(broker), [s.fileno()])
        not_ready(t, reply)
    t.each(list(rows), check)
    t.equal(broker.hand_over()["type"], "ready", "answer to the right one")


@case("S072 hand-over: a second one is refused, whatever it carries")
def second(t):
    broker = Broker(t).start(allow=["*"])
    try:
        reply = broker_hand_again(broker)
    except (ConnectionRefusedError, FileNotFoundError, BrokenPipeError):
        reply = None
    not_ready(t, reply)
    t.equal(broker.ask("GET http://x.test/ HTTP/1.1\r\nHost: x.test\r\n\r\n").status, 407, "status on the first listener")


def broker_hand_again(broker):
    other = world.session()
    with other.inside():
        s = socket.create_server(("127.0.0.1", broker.port))
    channel = Channel(broker.session_path)
    try:
        channel.send(listeners(broker), [s.fileno()])
        return channel.receive()
    finally:
        channel.close()
        s.close()


@case("C170 hand-over: after three tokens that are wrong the socket is closed for good, also for the right one")
def guessing(t):
    broker = Broker(t)
    broker.setup(allow=["*"])
    with world.session().inside():
        s = socket.create_server(("127.0.0.1", 0))
    for i in range(3):
        not_ready(t, hand(broker, listeners(broker, f"{i}" * 64), [s.fileno()]))
    try:
        not_ready(t, broker.hand_over())
    except (ConnectionRefusedError, ConnectionResetError):
        pass
    broker.wait_log("closed for good")


@case("S042 hand-over: before setup nothing is handed over; whoever comes first waits for it, and is judged by it")
def before_setup(t):
    broker = Broker(t)
    broker.connect_control()
    gone, wrong = broker.begin_hand_over(), broker.begin_hand_over("0" * len(broker.token))
    right = broker.begin_hand_over()
    stats = broker.control.request("stats")
    t.equal((stats["configured"], stats["listening"]), (False, False), "configured, and listening")
    for channel in (wrong, right):
        t.equal(select.select([channel.socket], [], [], 0)[0], [], "answers before the setup")
    gone.unanswered(t)
    t.equal(broker.setup(allow=["*"])["type"], "ok", "setup")
    t.equal(wrong.receive()["text"], "the token is wrong", "answer to the wrong token")
    t.equal(right.receive()["type"], "ready", "answer to the one that waited")


@case("hand-over: a listener whose holder can make accept block does not stop the loop")
def hostile_listener(t):
    broker = Broker(t)
    broker.setup(allow=["*"])
    namespace = world.session()
    kept = namespace.listen("127.0.0.1", broker.port)
    # The description is shared: the holder of a duplicate makes it blocking and takes the connections away.
    duplicate = socket.socket(fileno=os.dup(kept.fileno()))
    t.equal(broker.hand_over(kept)["type"], "ready", "answer")
    broker.namespace = namespace
    for _ in range(300):
        duplicate.setblocking(True)
        sock = namespace.socket()
        sock.connect(("127.0.0.1", broker.port))
        duplicate.setblocking(False)
        try:
            taken, _ = duplicate.accept()
            taken.close()
        except BlockingIOError:
            pass
        duplicate.setblocking(True)
        sock.close()
    t.equal(broker.control.request("stats")["type"], "stats", "type of the reply")


if __name__ == "__main__":
    run()
