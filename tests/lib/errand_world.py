# SPDX-License-Identifier: LGPL-2.1-or-later
"""A network of our own, without a wire to the real one, as root or as an ordinary account.

Three kinds of network namespace: the *host*, where the broker and the test run (9.9.9.1 on a veth pair, and a default route into it);
the *internet* at the other end, with upstreams on public addresses and, so that a wrong dial would be seen, on private and cloud
addresses; and any number of *sessions*, with a loopback interface and nothing else. The host has its own /etc/hosts, /etc/resolv.conf
and /etc/nsswitch.conf, and a resolver on 127.0.0.1:53 that answers as a test scripts it.
"""

import atexit
import contextlib
import ctypes
import fcntl
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading

HOST4, HOST6 = "9.9.9.1", "2606:4700::fff1"
PUBLIC4 = ("9.9.9.9", "9.9.9.10", "9.9.9.11")
PUBLIC6 = ("2606:4700::1", "2606:4700::2")
# Addresses no session may reach, answered by the internet side all the same: one of each kind.
FORBIDDEN4 = ("10.0.0.5", "10.0.0.6", "172.16.0.1", "192.168.1.1", "169.254.169.254", "169.254.170.2", "168.63.129.16", "100.64.0.1",
              "100.100.100.200", "192.0.0.8", "192.0.2.1", "198.18.0.1", "198.51.100.1", "203.0.113.1")
FORBIDDEN6 = ("fd00:ec2::254", "fc00::1", "2001:db8::1", "64:ff9b::a00:5", "2002:a00:5::1", "100::1")

HOSTS = """127.0.0.1 localhost
::1 localhost ip6-localhost
9.9.9.9 api.example.com provider.example
9.9.9.10 denied.example
"""

CLONE_NEWNET = 0x40000000
MS_BIND = 0x1000
_libc = ctypes.CDLL(None, use_errno=True)


def _check(result, what):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def _in_thread(function):
    result = []

    def call():
        try:
            result.append(function())
        except Exception as error:  # pylint: disable=broad-except
            result.append(error)
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    if isinstance(result[0], Exception):
        raise result[0]
    return result[0]


def enter():
    """Starts this script again inside namespaces of its own. Call it first."""
    if os.environ.get("ERRAND_TEST_WORLD"):
        return
    os.environ["ERRAND_TEST_WORLD"] = os.readlink("/proc/self/ns/mnt")
    command = ["unshare", "--mount", "--net", "--propagation", "private"]
    if os.geteuid() != 0:
        # The own uid inside: what runs here is an ordinary account still. The capabilities are the namespace's only.
        command += ["--user", "--map-current-user", "--keep-caps"]
    tried = subprocess.run([*command, "--", "true"], capture_output=True, text=True, check=False)
    if tried.returncode != 0:
        sys.exit(f"these tests need namespaces of their own, which are refused here: {tried.stderr.strip()}; allow unprivileged user namespaces "
                 "(kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns, the container's seccomp profile), or run as root")
    os.execvp(command[0], command + ["--", sys.executable, *sys.argv])


def own_files():
    """What this script makes from here on as temporary files is on a file system that nobody else has. After enter()."""
    directory = tempfile.mkdtemp(prefix="errand-files-")
    subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=0755", "tmpfs", directory], check=True)
    tempfile.tempdir = directory

    def leave():
        subprocess.run(["umount", "--lazy", directory], check=False)
        os.rmdir(directory)
    atexit.register(leave)


class Namespace:
    """A network namespace, as an open file."""

    def __init__(self, fd, home=None):
        self.fd = fd
        self.home = home

    @classmethod
    def current(cls):
        return cls(os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC))

    @classmethod
    def new(cls, home):
        """A new one with its loopback up. A namespace belongs to a thread, so one is made for the purpose."""
        def make():
            _check(_libc.unshare(CLONE_NEWNET), "unshare")
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
                request = struct.pack("16sh14x", b"lo", 0x1 | 0x40)  # IFF_UP | IFF_RUNNING
                fcntl.ioctl(s, 0x8914, request)  # SIOCSIFFLAGS
            return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        return cls(_in_thread(make), home)

    def close(self):
        os.close(self.fd)

    @contextlib.contextmanager
    def inside(self):
        """This thread, and the sockets and processes it makes, are in the namespace."""
        _check(_libc.setns(self.fd, CLONE_NEWNET), "setns")
        try:
            yield
        finally:
            _check(_libc.setns(self.home.fd, CLONE_NEWNET), "setns")

    def socket(self, family=socket.AF_INET, kind=socket.SOCK_STREAM):
        with self.inside():
            return socket.socket(family, kind)

    def listen(self, address, port, backlog=64):
        s = self.socket(socket.AF_INET6 if ":" in address else socket.AF_INET)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind((address, port))
        s.listen(backlog)
        return s


class Resolver(threading.Thread):
    """Answers A and AAAA questions as `names` says: name → list of addresses, "nxdomain", "servfail", None (no answer at all), or a
    function (type "A" or "AAAA", how often this was asked before) → one of those. Unknown names are nxdomain."""

    def __init__(self):
        super().__init__(daemon=True)
        # What the hosts file says as well, for a minimal system that has none to be covered by ours.
        self.names = {}
        for line in HOSTS.splitlines():
            for name in line.split()[1:]:
                self.names.setdefault(name, []).append(line.split()[0])
        self.asked = []  # (name, type), in order
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 53))
        self.start()

    def run(self):
        while True:
            query, peer = self.socket.recvfrom(4096)
            with contextlib.suppress(IndexError, struct.error):
                answer = self.answer(query)
                if answer:
                    self.socket.sendto(answer, peer)

    def answer(self, query):
        labels, at = [], 12
        while query[at]:
            labels.append(query[at + 1:at + 1 + query[at]])
            at += 1 + query[at]
        question = query[12:at + 5]
        kind = {1: "A", 28: "AAAA"}.get(struct.unpack(">H", query[at + 1:at + 3])[0], "other")
        name = b".".join(labels).decode("latin-1").lower()
        before = self.asked.count((name, kind))
        self.asked.append((name, kind))
        result = self.names.get(name, "nxdomain")
        if callable(result):
            result = result(kind, before)
        if result is None:
            return None
        code = {"nxdomain": 3, "servfail": 2}.get(result, 0) if isinstance(result, str) else 0
        records = [] if code else [a for a in result if (":" in a) == (kind == "AAAA") and kind != "other"]
        head = query[:2] + struct.pack(">HHHHH", 0x8180 | code, 1, len(records), 0, 0)
        body = b""
        for address in records:
            data = socket.inet_pton(socket.AF_INET6 if ":" in address else socket.AF_INET, address)
            body += b"\xc0\x0c" + struct.pack(">HHIH", 28 if ":" in address else 1, 1, 0, len(data)) + data
        return head + question + body


class World:
    def __init__(self, directory):
        self.directory = directory
        self.host = Namespace.current()
        self.host.home = self.host
        self.internet = Namespace.new(self.host)
        self._bind_files()
        self._lay_wires()
        self.resolver = Resolver()

    def _bind_files(self):
        for path, text in (("/etc/hosts", HOSTS), ("/etc/resolv.conf", "nameserver 127.0.0.1\noptions timeout:10 attempts:1\n"),
                           ("/etc/nsswitch.conf", "passwd: files\ngroup: files\nhosts: files dns\n")):
            if not os.path.exists(path):
                continue  # without resolv.conf the resolver asks 127.0.0.1 by itself
            ours = os.path.join(self.directory, os.path.basename(path))
            with open(ours, "w", encoding="ascii") as f:
                f.write(text)
            os.chmod(ours, 0o644)
            _check(_libc.mount(ours.encode(), os.path.realpath(path).encode(), None, MS_BIND, None), f"binding {path}")

    def _ip(self, lines):
        result = subprocess.run(["ip", "-batch", "-"], input="\n".join(lines) + "\n", text=True, capture_output=True, check=False)
        if result.returncode != 0:
            raise OSError(f"ip: {result.stderr}")

    def _lay_wires(self):
        ipv6 = os.path.exists("/proc/net/if_inet6")
        far = [f"link add down0 type veth peer name up0 netns {os.getpid()}",
                *(f"address add {a}/24 dev down0" for a in PUBLIC4),
                *(f"address add {a}/64 dev down0 nodad" for a in PUBLIC6 if ipv6),
                *(f"address add {a}/32 dev lo" for a in FORBIDDEN4),
                *(f"address add {a}/128 dev lo nodad" for a in FORBIDDEN6 if ipv6),
                "link set down0 up"]
        near = ["link set lo up", f"address add {HOST4}/24 dev up0", *([f"address add {HOST6}/64 dev up0 nodad"] if ipv6 else []),
                "link set up0 up", f"route add default via {PUBLIC4[0]}", *([f"route add ::/0 via {PUBLIC6[0]}"] if ipv6 else [])]

        def internet():
            with self.internet.inside():
                self._ip(far)
        _in_thread(internet)  # in a thread, as the other end goes to where this process's main thread is
        self._ip(near)

    def session(self):
        return Namespace.new(self.host)


_world = None


def world():
    """The one of this process, made at the first call; its files go with the process's own temporary directory."""
    global _world  # pylint: disable=global-statement
    if not os.environ.get("ERRAND_TEST_WORLD"):
        raise RuntimeError("errand_world.enter() comes first: the files of this host's /etc would be covered")
    if _world is None:
        if os.environ.get("ERRAND_TEST_WORLD", "") in ("", os.readlink("/proc/self/ns/mnt")):
            sys.exit("errand_world: this is the machine's own world, where nothing is bound over its files: call enter() first")
        directory = tempfile.mkdtemp(prefix="errand-world-")
        os.chmod(directory, 0o755)
        atexit.register(shutil.rmtree, directory, True)
        _world = World(directory)
    return _world
