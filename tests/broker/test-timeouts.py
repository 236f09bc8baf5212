# SPDX-License-Identifier: LGPL-2.1-or-later
"""The limits of a lookup, a dial, a quiet tunnel and an idle broker. These take their seconds, so they are a file of their own."""

import threading
import time

import errand_world
from errand_broker import Broker
from errand_test import case, run
from errand_upstream import Peer, Upstream

errand_world.enter()
world = errand_world.world()


@case("S117 S118 S119 C139: a silent resolver is answered after 5 s with 504, four black holes after 10 s over all with one 502; others do not wait")
def limits(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t, environment={"RES_OPTIONS": "timeout:30 attempts:5"}).start(allow=["*"])  # without its own limit a lookup would take minutes
    world.resolver.names["silent.test"] = None
    # Routed to the internet side, which drops what is not its own.
    world.resolver.names["holes.test"] = ["8.8.8.1", "8.8.8.2", "8.8.8.3", "8.8.8.4"]
    results = {}

    def ask(name, client):
        started = time.monotonic()
        client.send(f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n{broker.auth}\r\n")
        answer = client.head()
        results[name] = (answer.status, answer.reason, time.monotonic() - started)
    threads = [threading.Thread(target=ask, args=(name, broker.connect())) for name in ("silent.test", "holes.test")]
    for thread in threads:
        thread.start()
    _, answer = broker.open_tunnel("api.example.com:443")
    t.equal(answer.status, 200, "status of another request")  # behind the silent one its lookup would have been given up, too
    for thread in threads:
        thread.join()
    t.equal(results["silent.test"][:2], (504, "the name did not resolve in time"), "answer")
    t.equal(results["holes.test"][:2], (502, "upstream unreachable"), "answer")
    # Never before its time; and long before the resolver's own, or ten seconds for each address, however slow the machine.
    t.check(4.9 <= results["silent.test"][2] < 30, lambda: f"a lookup took {results['silent.test'][2]} s")
    t.check(9.9 <= results["holes.test"][2] < 40, lambda: f"a dial took {results['holes.test'][2]} s")
    for name in ("silent.test", "holes.test"):
        t.contains(broker.wait_log(name), broker.session, "log line")


@case("C157: whoever sends a request head, or the messages of SOCKS5, slowly is ended 30 s after its first byte, however it drips", timeout=70)
def slow_senders(t):
    broker = Broker(t).start(allow=["*"])
    greeting = b"\x05\x01\x02"
    login = bytes([1, 6]) + b"errand" + bytes([len(broker.credential)]) + broker.credential.encode()
    rows = [("head", b"GET http://api.example.com/ HTTP/1.1\r\nX-Slow: ", b"HTTP/1.1 408 "), ("greeting", b"\x05\xff", b""),
            ("request", greeting + login + b"\x05\x01\x00\x03\xff", b"\x05\x02\x01\x00")]
    results = {}

    def drip(name, begin, client):
        started = time.monotonic()
        client.send(begin)
        client.socket.settimeout(5)
        got = b""
        try:
            for _ in range(12):  # until its end, which is not far
                try:
                    data = client.socket.recv(65536)
                except TimeoutError:
                    client.send(b"x")
                    continue
                if not data:
                    break
                got += data
        except ConnectionError:
            pass
        results[name] = (got, time.monotonic() - started)
    threads = [threading.Thread(target=drip, args=(name, begin, broker.connect())) for name, begin, _ in rows]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    def check(row):
        got, took = results[row[0]]
        t.check(got.startswith(row[2]) and (row[2] or not got), lambda: f"it was answered {got!r}")
        t.check(29.9 <= took < 60, lambda: f"it took {took} s")  # so long it would drip
    t.each(rows, check)
    broker.wait_log("refused: the request did not arrive in time", 2)


@case("C162: dead addresses before a live one cost a moment each, and every one is judged before it is dialled")
def dead_first(t):
    up = Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t).start(allow=["*"])
    holes = [f"8.8.8.{i}" for i in range(1, 11)]
    world.resolver.names.update({"one.test": ["8.8.8.1", "9.9.9.9"], "six.test": ["2606:4700::dead", "9.9.9.9"], "ten.test": [*holes, "9.9.9.9"],
                                 "mixed.test": ["10.0.0.5", "8.8.8.1", "127.0.0.1", "9.9.9.9"]})
    trap = Upstream(t, "10.0.0.5:443", certificate=None)
    clients = {name: broker.connect() for name in ("one.test", "six.test", "ten.test", "mixed.test")}
    for name, client in clients.items():
        client.send(f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n{broker.auth}\r\n")
    # A dial has ten seconds over all: with ten dead ones before it the live one was reached within those.
    t.equal({name: client.head().status for name, client in clients.items()}, dict.fromkeys(clients, 200), "statuses")
    t.equal(up.accepts(), ["9.9.9.9:443"] * 4, "upstream connections: a loser is closed, and none is made twice")
    t.equal(trap.accepts(), [], "connections to the forbidden address")


@case("C156: a tunnel with no traffic either way is ended, with the reason in the log; one that moves in one direction only is not")
def quiet_tunnel(t):
    peer = Peer(t, "9.9.9.9", 443)
    broker = Broker(t, arguments=["--tunnel-idle", "2"]).start(allow=["*"])

    def moving():
        """Three tunnels, of which two move for twice the limit and more, a byte every quarter of a second; None, when a busy machine did not let
        them for as long as the limit: then they were quiet, too."""
        tunnels = []
        for _ in range(3):
            client, answer = broker.open_tunnel("api.example.com:443")
            t.equal(answer.status, 200, "status")
            tunnels.append((client, peer.accept()))
        _, (down_client, down), (up, up_far) = tunnels
        started = last = time.monotonic()
        for _ in range(20):
            down.send(b"d")
            up.send(b"u")
            got = down_client.take(1), up_far.take(1)
            now = time.monotonic()
            if now - last >= 2:
                for near, far in tunnels:
                    near.close()
                    far.close()
                while broker.control.request("stats")["tunnels"] > 0:
                    pass
                return None
            t.equal(got, (b"d", b"u"), "bytes down and up")
            last = now
            time.sleep(0.25)
        return tunnels, started
    while not (moved := moving()):
        pass
    ((quiet, far), (down_client, down), _), started = moved
    t.contains(broker.wait_log("ended for want of traffic"), "CONNECT api.example.com:443", "log line")
    t.check(time.monotonic() - started > 2, "it was ended before its time")
    t.equal(quiet.rest(), b"", "what the quiet one gives")
    t.check(far.is_closed(), "its far end is still open")
    down.send(b"x")
    t.equal(down_client.take(1), b"x", "a byte down at last")
    t.equal(broker.control.request("stats")["tunnels"], 2, "tunnels")


@case("idle: without supervisor, listener and connections a broker leaves; never while it holds one of them")
def idle_exit(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    brokers = {name: Broker(t, arguments=["--idle", "1"], supervised=name != "alone") for name in ("alone", "supervised", "listening", "tunnel")}
    for name in ("listening", "tunnel"):
        brokers[name].start(allow=["*"])
    tunnel, answer = brokers["tunnel"].open_tunnel("api.example.com:443")
    t.equal(answer.status, 200, "status")
    brokers["tunnel"].control.request("close")
    for name in ("listening", "tunnel"):
        brokers[name].control.close()
        brokers[name].control = None
    t.equal(brokers["alone"].process.wait(), 0, "exit status of the one with nothing")
    brokers["alone"].wait_log("leaving")
    time.sleep(2)  # twice its time: nothing tells of what does not happen
    for name in ("supervised", "listening", "tunnel"):
        t.equal(brokers[name].process.poll(), None, f"exit status: {name}")
    other, answer = brokers["listening"].open_tunnel("api.example.com:443")
    t.equal(answer.status, 200, "status")
    other.close()
    brokers["listening"].connect_control()
    brokers["listening"].control.request("close")
    tunnel.close()
    for name in ("supervised", "listening"):
        brokers[name].control.close()
        brokers[name].control = None
    for name in ("supervised", "tunnel", "listening"):
        t.equal(brokers[name].process.wait(), 0, f"exit status: {name}")


@case("options: a time that is none is refused")
def bad_times(t):
    for option in ("--idle", "--tunnel-idle"):
        for value in ("0", "-1", "1s", "", "2592001", "x"):
            broker = Broker(t, arguments=[option, value])
            broker.killed = True
            broker.wait_log(f"{option} is not 1 to 2592000 seconds")
            t.equal(broker.process.wait(), 2, "exit status")


if __name__ == "__main__":
    run()
