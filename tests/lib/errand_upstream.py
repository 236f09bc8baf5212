# SPDX-License-Identifier: LGPL-2.1-or-later
"""The test server of tests/peers as a process on the internet side, and plain listeners driven by the test itself."""

import contextlib
import os
import select
import subprocess
import threading

import errand_test
from errand_http import Client
from errand_world import world


class Upstream:
    def __init__(self, t, *addresses, certificate="server", namespace=None):
        """certificate: of tests/peers/ca; None = plain HTTP."""
        self.directory = t.enter(errand_test.temporary_directory("errand-upstream-"))
        self.lines = []
        self.changed = threading.Condition()
        self.n_syncs = 0
        command = [errand_test.program("test-upstream"), "--directory", self.directory]
        if certificate:
            command += ["--cert", errand_test.source("tests/peers/ca", certificate + ".pem"),
                        "--key", errand_test.source("tests/peers/ca", certificate + "-key.pem")]
        with (namespace or world().internet).inside():
            self.process = subprocess.Popen(command + list(addresses), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        t.defer(self.stop)
        t.log("test-upstream", lambda: "\n".join(self.lines))
        threading.Thread(target=self._read, daemon=True).start()
        self.wait("ready")

    def stop(self):
        with contextlib.suppress(OSError):
            self.process.stdin.close()
        self.process.wait()

    def _read(self):
        for line in self.process.stdout:
            with self.changed:
                self.lines.append(line.rstrip("\n"))
                self.changed.notify_all()
        with self.changed:
            self.lines.append("stopped")
            self.changed.notify_all()

    def _say(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def wait(self, prefix, n=1):
        """Waits until n lines begin so; → the n-th one."""
        with self.changed:
            while True:
                found = [line for line in self.lines if line.startswith(prefix)]
                if len(found) >= n:
                    return found[n - 1]
                if "stopped" in self.lines:
                    raise errand_test.Failure(f"test-upstream has stopped before {prefix!r}: {self.lines}")
                self.changed.wait()

    def go(self):
        """Lets a paced handler take one step."""
        self._say("go")

    def accepts(self):
        """Every connection there was, as "ADDRESS:PORT": what had reached the listening sockets by now is counted in."""
        self.n_syncs += 1
        self._say(f"sync {self.n_syncs}")
        self.wait(f"sync {self.n_syncs}")
        with self.changed:
            return [line.split(" ", 2)[2] for line in self.lines if line.startswith("accept ")]

    def received(self, number):
        """The bytes that connection `number` (from 1) has sent."""
        with open(os.path.join(self.directory, f"request.{number}"), "rb") as f:
            return f.read()

    def everything_received(self):
        return b"".join(self.received(i + 1) for i in range(len(self.accepts())))

    def raw(self, name, data):
        """What /raw/NAME answers: bytes, or a list of pieces for ?paced."""
        pieces = {name: data} if isinstance(data, bytes) else {f"{name}.{i}": piece for i, piece in enumerate(data)}
        for file, piece in pieces.items():
            path = os.path.join(self.directory, "raw." + file)
            with open(path + ".new", "wb") as f:
                f.write(piece)
            os.replace(path + ".new", path)  # the server may still be reading the last one, and must not go on in this one


class Peer:
    """A listening socket on the internet side. The test accepts and answers itself, so nothing happens behind its back."""

    def __init__(self, t, address, port, namespace=None):
        self.socket = (namespace or world().internet).listen(address, port)
        self.t = t
        t.defer(self.socket.close)

    def accept(self):
        sock, _ = self.socket.accept()
        self.t.defer(sock.close)
        return Client(sock)

    def accept_or(self, client):
        """Whatever is first: a connection, or something for the client (→ None)."""
        readable, _, _ = select.select([self.socket, client.socket], [], [])
        if self.socket in readable:
            return self.accept()
        client.fill()
        return None

    def accept_next(self, far):
        """The connection on which the next request comes: the same, when it was kept, or another."""
        while True:
            watched = [self.socket] + ([] if far.ended else [far.socket])
            readable, _, _ = select.select(watched, [], [])
            if far.socket in readable and far.fill():
                return far
            if self.socket in readable:
                return self.accept()

    def seen(self):
        """What every connection that waits has sent, to its end. For connections that the broker has given up."""
        everything = []
        self.socket.setblocking(False)
        try:
            while True:
                sock, _ = self.socket.accept()
                sock.setblocking(True)
                everything.append(Client(sock).rest())
                sock.close()
        except BlockingIOError:
            return everything
        finally:
            self.socket.setblocking(True)

    def untouched(self):
        """No connection waits: what was dialled before is there by now, as the dial has been answered."""
        self.socket.setblocking(False)
        try:
            sock, peer = self.socket.accept()
        except BlockingIOError:
            return True
        finally:
            self.socket.setblocking(True)
        sock.close()
        raise errand_test.Failure(f"{peer} has connected to {self.socket.getsockname()}")
