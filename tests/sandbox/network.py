# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the tests of the connected modes share: servers on the host and on an internet of their own, programs that are covered for one
run, and what a program inside finds when it tries to get out."""

import contextlib
import ctypes
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_world  # pylint: disable=wrong-import-position

PASTA, TUN = "/usr/bin/pasta", "/dev/net/tun"
MS_BIND, MNT_DETACH = 0x1000, 2
libc = ctypes.CDLL(None, use_errno=True)

# Operations are words: tcp=ADDRESS,PORT udp=… ping=ADDRESS bind=PORT listen fastopen=… local name=NAME raw packet. One line an answer:
# what came back, "ok", or the name of the error. wait=SECONDS before them: for what may never be answered. What is answered, or refused, is
# so by others, who come to it when the machine lets them.
PROBE = """
import concurrent.futures, errno, os, socket, struct, sys
wait = 30
if sys.argv[1:] and sys.argv[1].startswith("wait="):
    wait = int(sys.argv.pop(1)[5:])
def tcp(address, port, fast=False):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET) as s:
        s.settimeout(wait)
        if fast:
            s.sendto(b"x", 0x20000000, (address, int(port)))
        else:
            s.connect(socket.getaddrinfo(address, int(port), type=socket.SOCK_STREAM)[0][4])
        return s.recv(100).decode()
def udp(address, port):
    with socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(wait)
        s.sendto(b"x", socket.getaddrinfo(address, int(port), type=socket.SOCK_DGRAM)[0][4])
        return s.recv(100).decode()
def ping(address):
    six = ":" in address
    with socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM, 58 if six else 1) as s:
        s.settimeout(wait)
        s.sendto(struct.pack("BBHHH", 128 if six else 8, 0, 0, 1, 1), (address, 0))
        return "ok" if s.recv(100) else ""
def bind(port):
    with socket.socket() as s:
        s.bind(("0.0.0.0", int(port)))
        s.listen()
        return "ok"
def local():
    for family, address in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
        with socket.socket(family) as s, socket.socket(family) as c:
            s.bind((address, 0))
            s.listen()
            c.connect(s.getsockname()[:2])
    return "ok"
def name(text):
    return socket.getaddrinfo(text, None, socket.AF_INET)[0][4][0]
def made(family, kind):
    socket.socket(int(family), int(kind)).close()
    return "ok"
def abstract(text):
    with socket.socket(socket.AF_UNIX) as s:
        s.connect("\\0" + text)
        return "ok"
def signal(pid):
    os.kill(int(pid), 0)
    return "ok"
does = {"tcp": tcp, "udp": udp, "ping": ping, "bind": bind, "local": local, "name": name, "made": made, "abstract": abstract,
        "signal": signal, "fastopen": lambda a, p: tcp(a, p, True)}
def answer(word):
    what, _, arguments = word.partition("=")
    try:
        return does[what](*(arguments.split(",") if arguments else []))
    except socket.gaierror as e:
        return "EAI"
    except TimeoutError:
        return "TIMEOUT"
    except OSError as e:
        return errno.errorcode.get(e.errno, str(e))
if sys.argv[1:]:
    with concurrent.futures.ThreadPoolExecutor(len(sys.argv)) as pool:
        print(*pool.map(answer, sys.argv[1:]), sep="\\n")
else:
    for word in iter(sys.stdin.readline, ""):
        print(answer(word.strip()), flush=True)
"""


# Inside the user and network namespace of two descriptors, with the rights of who made them. Executing another program would drop those.
RULES = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
for fd in sys.argv[2:4]:
    if libc.setns(int(fd), 0) < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
nft = ctypes.CDLL("libnftables.so.1")
nft.nft_ctx_new.restype = ctypes.c_void_p
sys.exit(nft.nft_run_cmd_from_buffer(ctypes.c_void_p(nft.nft_ctx_new(0)), sys.argv[1].encode()))
"""


def rules(pid, command):
    """libnftables' command in the network namespace of a process."""
    fds = [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in ("user", "net")]
    try:
        subprocess.run(["/usr/bin/python3", "-c", RULES, command, *map(str, fds)], pass_fds=fds, check=True)
    finally:
        for fd in fds:
            os.close(fd)


class Server:
    """Answers a connection, and a datagram, with a text; `seen` has the peers' addresses."""

    def __init__(self, namespace, address, port, text):
        self.text, self.seen = text.encode(), []
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self.stream = namespace.listen(address, port)
        self.datagrams = namespace.socket(family, socket.SOCK_DGRAM)
        self.datagrams.bind((address, port))
        self.threads = [threading.Thread(target=loop, daemon=True) for loop in (self.accept, self.receive)]
        for thread in self.threads:
            thread.start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                peer, address = self.stream.accept()
                self.seen.append(address[0])
                with peer, contextlib.suppress(ConnectionError):  # of a client that has gone
                    peer.sendall(self.text)

    def receive(self):
        with contextlib.suppress(OSError):
            while True:
                _, address = self.datagrams.recvfrom(100)
                if not address:
                    return  # closed
                self.seen.append(address[0])
                self.datagrams.sendto(self.text, address)

    def close(self):
        for s in (self.stream, self.datagrams):
            with contextlib.suppress(OSError):
                s.shutdown(socket.SHUT_RDWR)
        # An address is free when nobody waits in a call on its socket any more, whether that is closed or not.
        for thread in self.threads:
            thread.join()
        self.stream.close()
        self.datagrams.close()


@contextlib.contextmanager
def servers(*wanted):
    """(namespace, address, port, text)…"""
    made = []
    try:
        for one in wanted:
            made.append(Server(*one))
        yield made
    finally:
        for server in made:
            server.close()


@contextlib.contextmanager
def bound(source, target):
    """Another file in the place of one, for as long as it lasts, in this test's own mount namespace."""
    if libc.mount(source.encode(), os.path.realpath(target).encode(), None, MS_BIND, None) < 0:
        raise OSError(ctypes.get_errno(), f"binding {source} at {target}")
    try:
        yield
    finally:
        libc.umount2(os.path.realpath(target).encode(), MNT_DETACH)


@contextlib.contextmanager
def pasta_as(world, script):
    """A script in the place of pasta; $REAL is the real one, and what it is started with are its arguments."""
    directory = world.mkdir("pasta")
    real = os.path.join(directory, "pasta")
    shutil.copy(PASTA, real)
    os.chmod(real, 0o755)
    path = world.write("pasta.sh", f"#!/bin/bash\nREAL={real}\nPATH=/usr/sbin:/usr/bin:/sbin:/bin\n{script}\n", 0o755)
    with bound(path, PASTA):
        yield


def usable_tun():
    """True when an ordinary account has /dev/net/tun here; root makes that so in its own mount namespace."""
    if os.getuid() != 0:
        return os.access(TUN, os.R_OK | os.W_OK)
    place = "/mnt"
    if libc.mount(b"tun", place.encode(), b"tmpfs", 0, None) < 0:
        return False
    node = os.path.join(place, "tun")
    try:
        os.mknod(node, 0o020666, os.makedev(10, 200))
        os.chmod(node, 0o666)
        if not os.path.exists(TUN):
            os.makedirs(os.path.dirname(TUN), exist_ok=True)
            with open(TUN, "w", encoding="ascii"):
                pass
        return libc.mount(node.encode(), TUN.encode(), None, MS_BIND, None) == 0
    except OSError:
        return False


def settle():
    """Waits until the host's link-local address may be used, without which pasta takes it for a host without IPv6, and lets everybody
    send echo requests."""
    with contextlib.suppress(FileNotFoundError):
        with open("/proc/sys/net/ipv4/ping_group_range", "w", encoding="ascii") as f:
            f.write("0 65534" if os.getuid() == 0 else f"{os.getgid()} {os.getgid()}")
    tentative = os.path.exists("/proc/net/if_inet6")
    while tentative:
        time.sleep(0.05)
        with open("/proc/net/if_inet6", encoding="ascii") as f:
            local = [line.split() for line in f if line.startswith("fe80") and line.split()[-1] == "up0"]
        tentative = not local or int(local[0][4], 16) & 0x40


def hidden():
    """What of the host's network nobody inside may see: addresses, MACs, names of interfaces."""
    links = subprocess.run(["ip", "-oneline", "address"], capture_output=True, text=True, check=True).stdout
    words = [errand_world.HOST4, "up0"]
    with open("/sys/class/net/up0/address", encoding="ascii") if os.path.exists("/sys/class/net/up0/address") else os.popen(
            "ip -o link show up0 | sed 's/.*ether \\([0-9a-f:]*\\).*/\\1/'") as f:
        words.append(f.read().strip())
    assert all(w in links or ":" in w for w in words), (words, links)
    words += [errand_world.HOST6] if errand_world.HOST6 in links else []
    return words


def probes(run):
    """The answers of a run of the probe."""
    return run.out.splitlines()
