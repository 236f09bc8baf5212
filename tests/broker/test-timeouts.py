# SPDX-License-Identifier: LGPL-2.1-or-later
"""The promised limits of a lookup and of a dial. These take their five and ten seconds, so they are a file of their own."""

import threading
import time

import errand_world
from errand_broker import Broker
from errand_test import case, run
from errand_upstream import Upstream

errand_world.enter()
world = errand_world.world()


@case("S117 S118 S119 C139: a silent resolver is answered after 5 s with 504, four black holes after 10 s over all with one 502; others do not wait")
def limits(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t).start(allow=["*"])
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
    t.equal(answer.status, 200, "status of another request")
    t.equal(results, {}, "answers before the limits")
    for thread in threads:
        thread.join()
    t.equal(results["silent.test"][:2], (504, "the name did not resolve in time"), "answer")
    t.equal(results["holes.test"][:2], (502, "upstream unreachable"), "answer")
    # Never before its time; after it there is only a bound for a busy machine.
    t.check(4.9 <= results["silent.test"][2] <= 9.5, lambda: f"a lookup took {results['silent.test'][2]} s")
    t.check(9.9 <= results["holes.test"][2] <= 19, lambda: f"a dial took {results['holes.test'][2]} s")
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
        t.check(29.9 <= took <= 45, lambda: f"it took {took} s")
    t.each(rows, check)
    broker.wait_log("refused: the request did not arrive in time", 2)


if __name__ == "__main__":
    run()
