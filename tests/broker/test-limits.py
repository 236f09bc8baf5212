# SPDX-License-Identifier: LGPL-2.1-or-later
"""What one session can make a broker hold, and that others are served meanwhile."""

import os
import re
import resource
import select
import signal
import socket
import struct
import time

import errand_world
from errand_broker import Broker, Channel, Provider
from errand_test import case, run
from errand_upstream import Upstream

errand_world.enter()
world = errand_world.world()

# <asm-generic/socket.h>, <linux/net_tstamp.h>
SO_TIMESTAMPING, TIMESTAMPING_TX_SOFTWARE, TIMESTAMPING_SOFTWARE, TIMESTAMPING_TX_ACK = 37, 1 << 1, 1 << 4, 1 << 9


@case("C187 limits: a head over 64 KiB, or of more fields than it may have, is answered and closed; 60 KiB pass")
def large_head(t):
    up = Upstream(t, "9.9.9.9:80", certificate=None)
    broker = Broker(t).start(allow=["api.example.com"], ports=[80])
    head = f"GET http://api.example.com/status/200 HTTP/1.1\r\nHost: api.example.com\r\n{broker.auth}"
    for fields in (f"X: {'x' * 70000}\r\n", "".join(f"X{i}: 1\r\n" for i in range(200)), "X" * 70000, f"{'X' * 70000}: 1\r\n"):
        client = broker.connect()
        try:
            client.send(head + fields + "\r\n")
        except ConnectionError:
            pass  # answered and closed before all was sent
        data = client.until(b"\r\n\r\n")
        t.check(data[9:12] in (b"431", b"400", b""), lambda d=data: f"the answer is {d[:80]!r}")
    t.equal(up.accepts(), [], "upstream connections")
    t.equal(broker.ask(head + f"X: {'x' * 60000}\r\n\r\n").status, 200, "status with 60 KiB")


@case("C157 limits: idle and slow connections hold nobody else up")
def idle(t):
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]),) * 2)
    Upstream(t, "9.9.9.9:443")
    broker = Broker(t).start({"p": Provider()}, allow=["api.example.com"])
    clients = [broker.connect() for _ in range(600)]
    for i, client in enumerate(clients):
        if i % 3 == 1:
            client.send("GET http://api.exa")
        elif i % 3 == 2:
            client.send(f"GET /provider/p/echo HTTP/1.1\r\n{broker.providers['p'].header}X-Slow: ")
    for _ in range(10):
        t.equal(broker.call("p", "/length/1").status, 200, "status of a good request")
    t.equal(broker.open_tunnel("api.example.com:443")[1].status, 200, "status of a good CONNECT")
    t.equal(broker.control.request("stats")["type"], "stats", "type of the reply")
    for client in clients:
        client.close()
    while broker.control.request("stats")["connections"] > 20:
        pass


@case("C157 limits: a dial takes two descriptors at most, however many silent addresses a name has")
def many_addresses(t):
    broker = Broker(t).start(allow=["*"])
    world.resolver.names["holes.test"] = [f"8.8.8.{i}" for i in range(1, 33)]
    client = broker.connect()
    client.send(f"CONNECT holes.test:443 HTTP/1.1\r\nHost: holes.test:443\r\n{broker.auth}\r\n")

    def attempts():
        # The table is read in pieces: one that goes on meanwhile could have an attempt that ended and the one in its place in it.
        os.kill(broker.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, broker.process.pid, os.WSTOPPED)
        with open("/proc/net/tcp", encoding="ascii") as f:
            found = sum(" 02 " in line for line in f)  # SYN_SENT
        os.kill(broker.process.pid, signal.SIGCONT)
        return found

    most = 0
    while not select.select([client.socket], [], [], 0.05)[0]:  # a look at a table, not an order of events
        most = max(most, attempts())
    t.equal(client.head().status, 502, "status")
    t.equal(most, 2, "attempts at once")


@case("C157 limits: a supervisor that no descriptor is left for does not keep the loop from what would free one")
def no_descriptor(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t, own_account=True).start(allow=["*"])  # whose limits may be set from here
    client = broker.open_tunnel("api.example.com:443")[0]
    most = resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, (8, most[1]))
    waiting = Channel(broker.control_path)
    client.close()
    broker.wait_log("ended after")
    resource.prlimit(broker.process.pid, resource.RLIMIT_NOFILE, most)
    t.contains(broker.control.receive()["text"], "another supervisor", "what the older supervisor is told at last")
    t.equal(waiting.request("stats")["type"], "stats", "what the newer one gets")
    waiting.close()


@case("C157 limits: a session that has its listener linger does not stop the loop at close(2)")
def linger(t):
    Upstream(t, "9.9.9.9:443")
    broker = Broker(t)
    broker.setup({"p": Provider()}, allow=["api.example.com"])
    broker.namespace = world.session()
    listener = broker.namespace.listen("127.0.0.1", broker.port)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 60))
    t.equal(broker.hand_over(listener)["type"], "ready", "type of the answer")
    client = broker.connect()
    client.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.send(broker.route_request("p", f"/length/{32 << 20}"))
    t.equal(client.head().status, 200, "status")
    while broker.control.request("close")["type"] != "ok":  # with bytes unsent that nobody takes
        pass
    t.equal(broker.control.request("stats")["connections"], 0, "connections")


@case("C157 limits: connections over what its descriptors allow are closed, with one line in the log, and their places come back")
def connections(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t, files=256 + 3 * 40).start(allow=["api.example.com"])
    tunnels = [broker.open_tunnel("api.example.com:443")[0] for _ in range(20)]
    clients = [broker.connect() for _ in range(50)]
    t.equal([c.is_closed() for c in clients[20:]], [True] * 30, "connections over the limit")
    t.contains(broker.wait_log("connections at once"), "more than 40 connections at once; new ones are closed", "log line")
    reply = broker.control.request("stats")
    t.equal((reply["connections"], reply["tunnels"]), (40, 20), "connections and tunnels")
    t.equal(broker.log().count("connections at once"), 1, "lines in the log")
    for client in clients:
        client.close()
    while broker.control.request("stats")["connections"] > 20:
        pass
    t.equal(broker.open_tunnel("api.example.com:443")[1].status, 200, "status once there is room")
    for client in tunnels:
        client.close()


@case("C157 limits: dials into a black hole and silent lookups hold nobody else up")
def black_holes(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t).start(allow=["*"])
    world.resolver.names["hole.test"] = ["8.8.8.1"]
    held = []
    for i in range(200):
        client = broker.connect()
        # Names of which every one is a lookup of its own that nobody answers, and dials that nobody answers.
        host = "hole.test" if i % 4 else f"silent{i}.test"
        world.resolver.names[host] = world.resolver.names.get(host)
        client.send(f"CONNECT {host}:443 HTTP/1.1\r\nHost: {host}:443\r\n{broker.auth}\r\n")
        held.append(client)
    t.equal(broker.open_tunnel("9.9.9.9:443")[1].status, 200, "status of a good CONNECT")
    other = Broker(t, "other").start(allow=["*"])
    t.equal(other.open_tunnel("api.example.com:443")[1].status, 200, "status in another session")
    for client in held:
        client.close()


@case("C152 C184 limits: memory does not grow with the size of an answer nor with a reader that does not read")
def memory(t):
    Upstream(t, "9.9.9.9:443")
    # A sanitizer keeps what was freed, which is not what is measured here.
    options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "quarantine_size_mb=1", "thread_local_quarantine_size_kb=64"]))
    broker = Broker(t, environment={"ASAN_OPTIONS": options}).start({"p": Provider()}, allow=["api.example.com"])

    def resident():
        with open(f"/proc/{broker.process.pid}/statm", encoding="ascii") as f:
            return int(f.read().split()[1]) * 4096
    t.equal(broker.call("p", "/length/1").status, 200, "status")
    before = resident()
    stuck = []
    for _ in range(20):
        client = broker.connect()
        client.send(broker.route_request("p", f"/length/{32 << 20}"))
        t.equal(client.head().status, 200, "status")
        stuck.append(client)
    grown = resident() - before
    # A read unit each way and a TLS session are some 200 KiB a stream; whole answers would be 640 MiB.
    t.check(grown < 20 * (1 << 20), lambda: f"twenty stalled answers of 32 MiB took {grown >> 20} MiB")
    for client in stuck:
        client.close()


@case("C157 limits: a listener whose sockets report each byte that was sent does not keep the broker busy with what nobody reads")
def error_queue(t):
    broker = Broker(t)
    broker.setup(allow=["api.example.com"])
    broker.namespace = world.session()
    listener = broker.namespace.listen("127.0.0.1", broker.port)
    listener.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPING, TIMESTAMPING_TX_SOFTWARE | TIMESTAMPING_SOFTWARE | TIMESTAMPING_TX_ACK)
    t.equal(broker.hand_over(listener)["type"], "ready", "type of the answer")

    def ran():
        """Of the loop's thread: nanoseconds, and how often."""
        with open(f"/proc/{broker.process.pid}/schedstat", encoding="ascii") as f:
            return [int(word) for word in f.read().split()][::2]

    def sleeps():
        with open(f"/proc/{broker.process.pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] == "S"
    clients = [broker.connect() for _ in range(8)]
    for client in clients:
        client.send("GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
        t.equal(client.answer().status, 407, "status")
    # Nothing is asked of it any more. A busy loop runs or wants to, on a busy machine as well, and never sleeps without having run.
    began, before = ran(), None
    while before != ran() or not sleeps():
        before = ran()
        t.check(before[0] - began[0] < 1e9, "idle connections kept the loop busy for a second of processor time")
        time.sleep(0.3)


@case("C157 limits: what is refused by the thousand does not fill the log: a minute has its lines, the rest are a number, and what was let through is told")
def log_flood(t):
    Upstream(t, "9.9.9.9:443")
    broker = Broker(t).start({"p": Provider()}, allow=["api.example.com"])
    p = broker.providers["p"]
    host = f"Host: 127.0.0.1:{broker.port}\r\n"
    kinds = ["CONNECT api.example.com:443 HTTP/1.1\r\nHost: api.example.com:443\r\n\r\n",
             f"CONNECT denied.example:443 HTTP/1.1\r\nHost: denied.example:443\r\n{broker.auth}\r\n",
             f"GET /provider/nobody HTTP/1.1\r\n{host}\r\n", f"GET /provider/p//x HTTP/1.1\r\n{host}{p.header}\r\n"]
    client = broker.connect()
    for i in range(400):
        for kind in kinds:
            client.send(kind)
            t.contains((403, 407, 404, 400), client.answer().status, f"status of request {i}")
    for _ in range(50):
        socks = broker.connect()
        socks.send(b"\x04\x01")
        t.equal(socks.rest(), b"", "answer to SOCKS4")
    t.equal(broker.open_tunnel("api.example.com:443")[1].status, 200, "status of a tunnel")
    broker.wait_log("CONNECT api.example.com:443: connected to")
    t.equal(broker.control.request("close")["type"], "ok", "type of the reply")
    broker.wait_log(": closed; ")
    lines = [line for line in broker.log().split("\n") if "refused" in line or "does not serve" in line]
    unsaid = [int(n) for n in re.findall(r"(\d+) more refusals, without a line of their own", broker.log())]
    # One number a minute, however slow this machine is.
    t.check(len(lines) <= 250 * len(unsaid), lambda: f"{len(lines)} lines and {unsaid}")
    t.equal(len(lines) + sum(unsaid), 1650, "refusals that are told or counted")


@case("C161 limits: when the session's sockets are gone, so are the broker's connections")
def all_gone(t):
    up = Upstream(t, "9.9.9.9:443")
    broker = Broker(t).start({"p": Provider()}, allow=["api.example.com"])
    client = broker.connect()
    client.send(broker.route_request("p", "/endless"))
    client.take(1000)
    tunnel, _ = broker.open_tunnel("api.example.com:443")
    client.close()
    tunnel.close()
    up.wait("end", 2)
    while broker.control.request("stats")["connections"] > 0:
        pass


if __name__ == "__main__":
    run()
