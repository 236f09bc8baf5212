# SPDX-License-Identifier: LGPL-2.1-or-later
"""What limits.h promises of a broker's memory, measured: at rest, and under a session that makes it hold all it can."""

import os
import re
import resource
import select

import errand_test
import errand_world
from errand_broker import Broker, Provider
from errand_test import case, run
from errand_upstream import Peer, Upstream

errand_world.enter()
world = errand_world.world()
IDLE_MAX = 2 << 20  # before a first call over TLS
SANITIZED = "-fsanitize" in open(os.path.join(os.environ["ERRAND_BUILD"], "compile_commands.json"), encoding="utf-8").read()


def limit(name):
    """A byte count of limits.h."""
    with open(errand_test.source("src/broker/limits.h"), encoding="utf-8") as f:
        text = re.search(rf"#define {name} \(([^)]+)\)", f.read())[1]
    return eval(re.sub(r"(\d+)U", r"\1", text))  # of our own file: "256U << 20"


def status(broker, field):
    with open(f"/proc/{broker.process.pid}/status", encoding="ascii") as f:
        return int(re.search(rf"^{field}:\s+(\d+) kB", f.read(), re.M)[1]) << 10


def private_dirty(broker):
    """Needs root, as the broker is not dumpable; None without."""
    try:
        with open(f"/proc/{broker.process.pid}/smaps_rollup", encoding="ascii") as f:
            return int(re.search(r"^Private_Dirty:\s+(\d+) kB", f.read(), re.M)[1]) << 10
    except PermissionError:
        return None


@case("C184 memory: a broker that serves and has called no provider yet has at most 2 MiB of its own")
def idle(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t).start({f"p{i}": Provider() for i in range(12)}, allow=[f"h{i}.example" for i in range(100)] + ["api.example.com"])
    t.equal(broker.open_tunnel("api.example.com:443")[1].status, 200, "status")
    dirty = private_dirty(broker)
    if dirty is None or SANITIZED:
        t.note("only root can look, and a sanitizer's own memory is not the broker's")
        return
    t.note(f"{dirty >> 10} KiB")
    t.check(dirty <= IDLE_MAX, lambda: f"{dirty >> 10} KiB")


def send_some(client, data):
    """As much as goes without waiting."""
    client.socket.setblocking(False)
    try:
        while data:
            data = data[client.socket.send(data):]
    except (BlockingIOError, ConnectionError):
        pass
    client.socket.setblocking(True)


def refused(clients):
    """How many of them have an answer, and what it is."""
    ready = select.poll()
    by_fd = {c.socket.fileno(): c for c in clients}
    for fd in by_fd:
        ready.register(fd, select.POLLIN)
    statuses = []
    for fd, _ in ready.poll(0):
        statuses.append(by_fd[fd].socket.recv(12, 0x2)[9:12])  # MSG_PEEK
    return statuses


@case("C152 C157 C184 memory: whatever a session does, a broker holds no more than it is said to", timeout=150)
def hostile(t):
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(16384, most), most))
    if most < 16384:
        t.skip("this account may not have descriptors enough to fill a broker's buffers")
    Upstream(t, "9.9.9.9:443")
    deaf = Peer(t, "9.9.9.9", 8443)  # nobody accepts: its bytes stay here
    t.defer(deaf.socket.close)
    broker = Broker(t).start({"p": Provider()}, allow=["*"], ports=[443, 8443])
    filler = "".join(f"X-{i}: {'x' * 600}\r\n" for i in range(90))
    held = []

    def more(n, make):
        clients = []
        for _ in range(n):
            client = broker.connect()
            send_some(client, make())
            clients.append(client)
        held.extend(clients)
        broker.control.request("stats")
        return clients
    def drop():
        for client in held:
            client.close()
        held.clear()
        while broker.control.request("stats")["connections"] > 0:
            pass

    def full(clients):
        """The broker has said that it holds enough."""
        while (n := refused(clients).count(b"503")) == 0:
            broker.control.request("stats")
        return n
    # Calls with all they can have: a head of 55 KiB, a body that goes on, an answer of megabytes that nobody reads.
    calls = more(360, lambda: broker.route_request("p", f"/length/{8 << 20}", method="POST", headers=filler + "Transfer-Encoding: chunked\r\n")
                 .replace(b"Content-Length: 0\r\n", b"") + b"8000\r\n" + b"y" * 32768 + b"\r\n")
    counts = [full(calls)]
    drop()
    # Heads that do not end, and tunnels that bring bytes along; more calls, for which little room is left.
    heads = more(2600, lambda: (f"GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n{broker.auth}{filler}").encode())
    counts.append(refused(heads).count(b"503"))
    tunnels = more(300, lambda: f"CONNECT 9.9.9.9:8443 HTTP/1.1\r\nHost: 9.9.9.9:8443\r\n{broker.auth}\r\n".encode() + b"z" * 60000)
    calls = more(100, lambda: broker.route_request("p", f"/length/{8 << 20}"))
    counts.append(full(tunnels + calls))
    peak, dirty = status(broker, "VmHWM"), private_dirty(broker)
    t.note(f"peak {peak >> 20} MiB, private dirty {(dirty or 0) >> 20} MiB, refused {counts}")
    if not SANITIZED:
        t.check(peak <= limit("MEMORY_MAX"), lambda: f"the peak is {peak >> 20} MiB, not {limit('MEMORY_MAX') >> 20}")
        t.check(peak >= limit("HELD_MAX") // 2, lambda: f"only {peak >> 20} MiB: this is no load")
    drop()
    t.equal(broker.call("p", "/status/200").status, 200, "status of a good call afterwards")
    broker.control.request("stats")
    after = status(broker, "VmRSS")
    t.note(f"resident afterwards {after >> 20} MiB")
    if not SANITIZED:
        t.check(after <= 48 << 20, lambda: f"{after >> 20} MiB stay resident")


if __name__ == "__main__":
    run()
