#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""C218: errand-broker beside squid, tinyproxy and nginx, in one run on one machine: prints numbers and ratios, asserts nothing. A peer that is not installed is left out with a word.

    bench-broker.py [--quick] [--idle N] [tunnel|idle|call|bulk|memory …]

What is compared: bytes through a CONNECT tunnel; memory and time with many idle tunnels; what a provider call on a kept connection takes beyond the same call without anything
between, beside nginx as a reverse proxy to the same TLS upstream; a large answer of a provider, scrubbed, beside the same nginx; the broker's private memory before its first call.
Clients, servers and proxies are processes of their own; rounds are interleaved, medians are told.
"""

import argparse
import os
import resource
import shutil
import socket
import ssl
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))
import errand_test  # noqa: E402
import errand_world  # noqa: E402
from errand_broker import Broker, Provider  # noqa: E402
from errand_upstream import Upstream  # noqa: E402

UPSTREAM = ("9.9.9.9", 443)
PIECE = 1 << 20


def program(name):
    return shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")


def fork(function, *arguments):
    """Runs it in a child; → its pid."""
    pid = os.fork()
    if pid == 0:
        try:
            function(*arguments)
        except BaseException as error:  # pylint: disable=broad-except
            print(f"bench-broker: {error}", file=sys.stderr)
            os._exit(1)
        os._exit(0)
    return pid


def timed(function, *arguments):
    """The same, to its end; → what it wrote into its pipe, a number."""
    read, write = os.pipe()
    pid = fork(lambda: os.write(write, repr(function(*arguments)).encode()))
    os.close(write)
    text = os.read(read, 1 << 20)
    os.close(read)
    os.waitpid(pid, 0)
    return eval(text)  # pylint: disable=eval-used


def tell(name, values, unit, scale=1.0):
    median = statistics.median(values)
    print(f"  {name:12} {median * scale:10.3f} {unit}")
    return median


def busy(pid):
    """Seconds that a process has been on a processor, all of its threads."""
    total = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/schedstat", encoding="ascii") as f:
            total += int(f.read().split()[0])
    return total / 1e9


def ratios(ours, others, what):
    for name, value in others.items():
        print(f"  errand-broker / {name}: {ours / value:.2f} {what}")


class Process:
    """A peer: started with its own files, ended with the bench."""

    def __init__(self, t, name, command, port, namespace, **options):
        with namespace.inside():
            self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **options)
        t.defer(self.process.wait)
        t.defer(self.process.terminate)
        self.namespace, self.port = namespace, port
        until = time.monotonic() + 20
        while True:
            try:
                self.connect().close()
                return
            except OSError as error:
                if self.process.poll() is not None or time.monotonic() > until:
                    raise errand_test.Failure(f"{name} does not listen") from error
                time.sleep(0.02)

    def connect(self):
        s = self.namespace.socket()
        s.connect(("127.0.0.1", self.port))
        return s


def write(path, text):
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    os.chmod(path, 0o644)
    return path


def start_peer(t, name, world):
    found = program(name)
    if not found:
        print(f"  {name} is not installed: left out")
        return None
    directory = t.path(name)
    os.mkdir(directory)
    os.chmod(directory, 0o777)
    if name == "squid":
        text = (f"http_port 127.0.0.1:4128\nhttp_access allow all\ncache deny all\naccess_log none\ncache_log /dev/null\npid_filename none\n"
                f"coredump_dir {directory}\npinger_enable off\nshutdown_lifetime 0 seconds\nhosts_file none\nmax_filedescriptors 65536\n")
        return Process(t, name, [found, "-N", "-f", write(f"{directory}/conf", text)], 4128, world.host, cwd=directory)
    if name == "tinyproxy":
        text = "Port 4129\nListen 127.0.0.1\nTimeout 600\nMaxClients 20000\nLogLevel Critical\nDisableViaHeader Yes\n"
        return Process(t, name, [found, "-d", "-c", write(f"{directory}/conf", text)], 4129, world.host, cwd=directory)
    ca = errand_test.source("tests/peers/ca/ca.pem")
    text = f"""daemon off; master_process off; pid {directory}/pid; error_log {directory}/log crit; worker_rlimit_nofile 60000;
events {{ worker_connections 20000; }}
http {{
    access_log {directory}/access; client_body_temp_path {directory}/1; proxy_temp_path {directory}/2; fastcgi_temp_path {directory}/3; uwsgi_temp_path {directory}/4; scgi_temp_path {directory}/5;
    keepalive_requests 1000000;
    upstream provider {{ server {UPSTREAM[0]}:{UPSTREAM[1]}; keepalive 8; }}
    server {{
        listen 127.0.0.1:4130;
        location / {{
            proxy_pass https://provider; proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host provider.example;
            proxy_ssl_trusted_certificate {ca}; proxy_ssl_verify on; proxy_ssl_name provider.example; proxy_ssl_server_name on;
            proxy_set_header Authorization "Bearer something"; proxy_buffering off;
        }}
    }}
}}
"""
    return Process(t, name, [found, "-e", f"{directory}/log", "-c", write(f"{directory}/conf", text), "-p", directory], 4130, world.host)


# ---- a tunnel's bytes ----

def serve_bytes(listener, size):
    data = os.memfd_create("bytes")
    os.ftruncate(data, PIECE)
    while True:
        sock, _ = listener.accept()
        pid = os.fork()
        if pid:
            sock.close()
            continue
        left = size
        while left > 0:
            left -= os.sendfile(sock.fileno(), data, 0, min(left, PIECE))
        os._exit(0)


def receive_all(connect, request):
    sock, early = connect(), b""
    if request:
        sock.sendall(request)
        answer = sock.recv(4096)
        if not answer.startswith(b"HTTP/1."):
            raise OSError("the proxy does not answer")
        early = answer.partition(b"\r\n\r\n")[2]  # some send it together with the first bytes
    buffer, size, started = bytearray(PIECE), len(early), time.perf_counter()
    while n := sock.recv_into(buffer):
        size += n
    return size, time.perf_counter() - started


def connect_direct(world):
    s = world.host.socket()
    s.connect(("9.9.9.9", 443))
    return s


def congestion(namespace, name=None):
    """The congestion control of connections to come, or sets it."""
    with namespace.inside(), open("/proc/sys/net/ipv4/tcp_congestion_control", "w" if name else "r", encoding="ascii") as f:
        return f.write(name) if name else f.read().strip()


def bench_tunnel(t, world, options):
    print("bytes through a CONNECT tunnel (target: at least 2 x squid, 0.7 x direct)")
    size = (256 << 20) if options.quick else (2 << 30)
    listener = world.internet.listen(*UPSTREAM)
    server = fork(serve_bytes, listener, size)
    listener.close()
    t.defer(os.waitpid, server, 0)
    t.defer(os.kill, server, 15)
    broker = Broker(t).start(allow=["*"])
    target = b"CONNECT 9.9.9.9:443 HTTP/1.1\r\nHost: 9.9.9.9:443\r\n"
    ways = {"direct": (lambda: connect_direct(world), b""), "errand": (lambda: connect_broker(broker), target + broker.auth.encode() + b"\r\n")}
    pids = {"errand": broker.process.pid}
    for name in ("squid", "tinyproxy"):
        if peer := start_peer(t, name, world):
            ways[name] = (peer.connect, target + b"\r\n")
            if name == "squid":  # tinyproxy's work goes with the thread that did it
                pids[name] = peer.process.pid
    usual = congestion(world.host)
    # A host's may pace what is sent by timers, which then is most of what is measured; Reno does not.
    for name in dict.fromkeys((usual, "reno")):
        for namespace in (world.host, world.internet, broker.namespace):
            congestion(namespace, name)
            t.defer(congestion, namespace, usual)
        print(f" the host's congestion control, {name}" if name == usual else f" {name}")
        tunnel_rounds(ways, pids, size)


def tunnel_rounds(ways, pids, size):
    rates = {name: [] for name in ways}
    work = {name: [] for name in pids}
    for _ in range(5):
        for name, (connect, request) in ways.items():
            before = busy(pids[name]) if name in pids else 0
            got, taken = timed(receive_all, connect, request)
            if name in pids:
                work[name].append((busy(pids[name]) - before) / got * 1e9)
            if got < size:
                raise errand_test.Failure(f"{name} gave {got} bytes")
            rates[name].append(got / taken / 1e9)
    medians = {name: tell(name, values, "GB/s") for name, values in rates.items()}
    ratios(medians.pop("errand"), medians, "of its rate")
    # The rate is that of client, server and proxy on the processors that there are; this is the proxy's part alone.
    medians = {name: tell(name, values, "s of processor time a GB") for name, values in work.items()}
    ratios(medians.pop("errand"), medians, "of its time")


def connect_broker(broker):
    s = broker.namespace.socket()
    s.connect(("127.0.0.1", broker.port))
    return s


# ---- idle tunnels ----

def private_memory(pid):
    """KiB that nobody else could have: pages of libraries that are as in their files are shared with the next who maps them."""
    with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
        return sum(int(line.split()[1]) for line in f if line.startswith("Private_Dirty:"))


def accept_all(listener):
    kept = []
    while True:
        kept.append(listener.accept()[0])


def open_tunnel(connect, request):
    started = time.perf_counter()
    sock = connect()
    sock.sendall(request)
    if b" 200 " not in sock.recv(4096):
        raise OSError("no tunnel")
    return sock, time.perf_counter() - started


def bench_idle(t, world, options):
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    number = min(200 if options.quick else options.idle, (hard - 600) // 3)
    print(f"{number} idle tunnels (target: at most 20 KiB each in user space, and no slower for the next one)")
    if os.getuid() != 0:
        print("  only root can read a broker's memory: left out")
        return
    listener = world.internet.listen(*UPSTREAM, backlog=4096)
    server = fork(accept_all, listener)
    listener.close()
    t.defer(os.waitpid, server, 0)
    t.defer(os.kill, server, 15)
    broker = Broker(t).start(allow=["*"])
    target = b"CONNECT 9.9.9.9:443 HTTP/1.1\r\nHost: 9.9.9.9:443\r\n"
    ways = {"errand": (broker.process.pid, lambda: connect_broker(broker), target + broker.auth.encode() + b"\r\n")}
    for name in ("squid", "tinyproxy"):
        if peer := start_peer(t, name, world):
            ways[name] = (peer.process.pid, peer.connect, target + b"\r\n")
    for name, (pid, connect, request) in ways.items():
        sockets = [open_tunnel(connect, request)[0] for _ in range(10)]
        before = private_memory(pid)
        first = statistics.median(open_tunnel(connect, request)[1] for _ in range(50))
        sockets += [open_tunnel(connect, request)[0] for _ in range(number)]
        last = statistics.median(open_tunnel(connect, request)[1] for _ in range(50))
        print(f"  {name:12} {(private_memory(pid) - before) / number:8.2f} KiB each; the next one takes {last * 1e6:.0f} µs, {last / first:.2f} of what the first took")
        for sock in sockets:
            sock.close()


# ---- provider calls ----

def call_many(connect, head, count, context=None):
    sock = connect()
    if context:
        sock = context.wrap_socket(sock, server_hostname="provider.example")
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    body = b'{"model":"m","messages":[{"role":"user","content":"' + b"x" * 900 + b'"}]}'
    request = head + f"Content-Length: {len(body)}\r\n\r\n".encode() + body
    times = []
    for _ in range(count):
        started = time.perf_counter()
        sock.sendall(request)
        answer = b""
        while not (answer.endswith(b"\r\n0\r\n\r\n") or len(answer.partition(b"\r\n\r\n")[2]) == 1000):
            piece = sock.recv(65536)
            if not piece:
                raise OSError(f"the connection ended: {answer[:200]!r}")
            answer += piece
        times.append(time.perf_counter() - started)
    return times


def provider_ways(t, world):
    context = ssl.create_default_context(cafile=errand_test.source("tests/peers/ca/ca.pem"))
    # As nginx: a line for each call, into a file.
    provider = Provider("https://provider.example", capabilities="*")
    broker = Broker(t, log_file=t.path("broker.log")).start({"p": provider}, allow=[])
    ways = {"direct": (lambda: connect_direct(world), "", "Host: provider.example\r\n", context),
            "errand": (lambda: connect_broker(broker), "/provider/p", f"Host: 127.0.0.1:{broker.port}\r\n{provider.header}", None)}
    if peer := start_peer(t, "nginx", world):
        ways["nginx"] = (peer.connect, "", "Host: provider.example\r\n", None)
    return ways


def bench_call(t, world, options):
    print("a provider call of 1 KiB each way on a kept connection (target: adds no more than nginx does)")
    # All on one processor: what is compared is work, not how far apart the scheduler has put two processes.
    everywhere = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(everywhere)})
    t.defer(os.sched_setaffinity, 0, everywhere)
    Upstream(t, "9.9.9.9:443")
    ways = provider_ways(t, world)
    times = {name: [] for name in ways}
    for _ in range(2 if options.quick else 8):
        for name, (connect, prefix, headers, context) in ways.items():
            times[name] += timed(call_many, connect, f"POST {prefix}/length/1000 HTTP/1.1\r\n{headers}".encode(), 300, context)[20:]
    at = {name: (statistics.median(values), statistics.quantiles(values, n=100)[98]) for name, values in times.items()}
    for name, (half, most) in at.items():
        print(f"  {name:12} p50 {half * 1e6:7.1f} µs, p99 {most * 1e6:7.1f} µs" +
              ("" if name == "direct" else f"; added {(half - at['direct'][0]) * 1e6:7.1f} and {(most - at['direct'][1]) * 1e6:7.1f} µs"))
    if "nginx" in at:
        print(f"  errand-broker / nginx, whole call: p50 {at['errand'][0] / at['nginx'][0]:.2f}, p99 {at['errand'][1] / at['nginx'][1]:.2f}")


def receive_answer(connect, head, context, wanted):
    sock = connect()
    if context:
        sock = context.wrap_socket(sock, server_hostname="provider.example")
    buffer, size, started = bytearray(PIECE), 0, time.perf_counter()
    sock.sendall(head + b"\r\n")
    while n := sock.recv_into(buffer):
        size += n
        # Its length, or as chunks their last; the head is the few bytes more.
        if size >= wanted and (buffer[:n].endswith(b"0\r\n\r\n") or buffer[n - 1:n] == b"x"):
            break
    return size, time.perf_counter() - started


def bench_bulk(t, world, options):
    size = 60 << 20
    print("an answer of 60 MiB from a provider over TLS, scrubbed by the broker (bench-scrub has the scrubber alone)")
    Upstream(t, "9.9.9.9:443")
    rates = {}
    ways = provider_ways(t, world)
    for _ in range(2 if options.quick else 5):
        for name, (connect, prefix, headers, context) in ways.items():
            got, taken = timed(receive_answer, connect, f"GET {prefix}/length/{size} HTTP/1.1\r\n{headers}".encode(), context, size)
            if got < size:
                raise errand_test.Failure(f"{name} gave {got} bytes")
            rates.setdefault(name, []).append(got / taken / 1e9)
    medians = {name: tell(name, values, "GB/s") for name, values in rates.items()}
    ratios(medians.pop("errand"), medians, "of its rate")


def bench_memory(t, _world, _options):
    print("private memory of a broker before its first provider call (target: at most 2 MiB)")
    if os.getuid() != 0:
        print("  only root can read a broker's memory: left out")
        return
    broker = Broker(t).start({"p": Provider()}, allow=["*"])
    broker.ask("GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n")
    print(f"  errand       {private_memory(broker.process.pid):8d} KiB")


BENCHES = {"tunnel": bench_tunnel, "idle": bench_idle, "call": bench_call, "bulk": bench_bulk, "memory": bench_memory}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small numbers: to see that it runs, not how fast")
    parser.add_argument("--idle", type=int, default=10000, help="how many idle tunnels (10000)")
    parser.add_argument("benches", nargs="*", default=list(BENCHES), metavar="|".join(BENCHES))
    options = parser.parse_args()
    errand_world.enter()
    world = errand_world.world()
    for name in options.benches:
        if name not in BENCHES:
            parser.error(f"there is no {name}")
        test = errand_test.Test(name)
        with test.stack:
            BENCHES[name](test, world, options)
        sys.stdout.flush()


if __name__ == "__main__":
    main()
