# SPDX-License-Identifier: LGPL-2.1-or-later
"""A client of errandd's private socket: the D-Bus wire format, as far as its API needs it, without a message bus.

    bus = Connection(path)
    (session,) = bus.call("/org/errand1", "org.errand1.Manager", "CreateSession", "a{sv}", {"project": ("s", "/x")})

A variant is a pair (signature, value); a file descriptor is given by its number and comes as one that the caller closes.
"""

import array
import os
import pwd
import socket
import struct
import subprocess
import sys
import time

BASIC = {"y": "B", "b": "I", "n": "h", "q": "H", "i": "i", "u": "I", "x": "q", "t": "Q", "d": "d", "h": "I"}
ALIGN = {"y": 1, "n": 2, "q": 2, "x": 8, "t": 8, "d": 8, "(": 8, "{": 8, "g": 1, "v": 1}
METHOD, RETURN, ERROR, SIGNAL = 1, 2, 3, 4
FIELDS = {1: "path", 2: "interface", 3: "member", 4: "error", 5: "reply_serial", 6: "destination", 7: "sender", 8: "signature", 9: "fds"}


class BusError(Exception):
    def __init__(self, name, text):
        super().__init__(f"{name}: {text}")
        self.name, self.text = name, text


def split(signature):
    """The complete types of a signature."""
    types, at = [], 0
    while at < len(signature):
        end = at
        while signature[end] == "a":
            end += 1
        if signature[end] in "({":
            depth = 0
            while True:
                depth += (signature[end] in "({") - (signature[end] in ")}")
                if depth == 0:
                    break
                end += 1
        types.append(signature[at:end + 1])
        at = end + 1
    return types


class Writer:
    def __init__(self):
        self.data, self.fds = bytearray(), []

    def pad(self, n):
        self.data += b"\0" * (-len(self.data) % n)

    def put(self, kind, value):
        self.pad(ALIGN.get(kind[0], 4))
        if kind == "h":
            self.fds.append(value)
            value = len(self.fds) - 1
        if kind in BASIC:
            self.data += struct.pack("<" + BASIC[kind], value)
        elif kind in "so":
            raw = value.encode()
            self.data += struct.pack("<I", len(raw)) + raw + b"\0"
        elif kind == "g":
            self.data += bytes([len(value)]) + value.encode() + b"\0"
        elif kind == "v":
            self.put("g", value[0])
            self.put(*value)
        elif kind[0] == "a":
            at = len(self.data)
            self.data += b"\0" * 4
            self.pad(ALIGN.get(kind[1], 4))
            begin = len(self.data)
            if kind == "ay":
                self.data += value
            else:
                for item in value.items() if kind[1] == "{" else value:
                    self.put(kind[1:], item)
            self.data[at:at + 4] = struct.pack("<I", len(self.data) - begin)
        else:
            for inner, item in zip(split(kind[1:-1]), value, strict=True):
                self.put(inner, item)


class Reader:
    def __init__(self, data, fds=()):
        self.data, self.at, self.fds = data, 0, list(fds)

    def pad(self, n):
        self.at += -self.at % n

    def take(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def get(self, kind):
        self.pad(ALIGN.get(kind[0], 4))
        if kind in BASIC:
            (value,) = struct.unpack("<" + BASIC[kind], self.take(struct.calcsize(BASIC[kind])))
            return bool(value) if kind == "b" else self.fds[value] if kind == "h" else value
        if kind in "sog":
            n = self.take(1)[0] if kind == "g" else struct.unpack("<I", self.take(4))[0]
            return bytes(self.take(n + 1)[:-1]).decode()
        if kind == "v":
            return self.get(self.get("g"))
        if kind[0] == "a":
            (n,) = struct.unpack("<I", self.take(4))
            self.pad(ALIGN.get(kind[1], 4))
            end, items = self.at + n, []
            if kind == "ay":
                return bytes(self.take(n))
            while self.at < end:
                items.append(self.get(kind[1:]))
            return dict(items) if kind[1] == "{" else items
        return tuple(self.get(inner) for inner in split(kind[1:-1]))


class Connection:
    destination = None  # whom calls go to, on a message bus
    uid = os.getuid()

    def __init__(self, path, timeout=30):
        self.sock = self._connect(path)
        self.sock.settimeout(timeout)
        self.timeout, self.serial, self.buffer, self.fds, self.signals = timeout, 0, b"", [], []
        self.sock.sendall(b"\0AUTH EXTERNAL " + str(self.uid).encode().hex().encode() + b"\r\n")
        self._line(b"OK ")
        # As libsystemd's clients do: no message goes out before the other side has seen BEGIN, with which it might read it.
        self.sock.sendall(b"NEGOTIATE_UNIX_FD\r\nBEGIN\r\n")
        self._line(b"AGREE_UNIX_FD")

    def _connect(self, path):
        sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        sock.connect(path)
        return sock

    def close(self):
        self.sock.close()

    def _line(self, wanted):
        line = b""
        while not line.endswith(b"\r\n"):
            byte = self.sock.recv(1)
            if not byte:
                raise ConnectionError(f"closed after {line!r}")
            line += byte
        if not line.startswith(wanted):
            raise ConnectionError(f"answered {line!r}")

    def _fill(self, n):
        while len(self.buffer) < n:
            data, control, _, _ = self.sock.recvmsg(65536, socket.CMSG_SPACE(64 * 4))
            if not data:
                raise ConnectionError("the daemon has closed the connection")
            for _, kind, raw in control:
                if kind == socket.SCM_RIGHTS:
                    self.fds += list(array.array("i", raw[:len(raw) // 4 * 4]))
            self.buffer += data

    def receive(self):
        self._fill(16)
        kind, size = self.buffer[1], struct.unpack_from("<I", self.buffer, 4)[0]
        serial, head = struct.unpack_from("<II", self.buffer, 8)
        head += 16
        head += -head % 8
        self._fill(head + size)
        raw, self.buffer = self.buffer[:head + size], self.buffer[head + size:]
        reader = Reader(raw)
        reader.at = 12
        fields = {FIELDS.get(code, code): value for code, value in reader.get("a(yv)")}
        n = fields.get("fds", 0)
        fds, self.fds = self.fds[:n], self.fds[n:]
        body = Reader(raw[head:], fds)
        fields["serial"] = serial
        fields["kind"], fields["body"] = kind, tuple(body.get(t) for t in split(fields.get("signature", "")))
        return fields

    def _write(self, kind, fields, signature, values):
        self.serial += 1
        body, head = Writer(), Writer()
        for one, value in zip(split(signature), values, strict=True):
            body.put(one, value)
        if signature:
            fields = [*fields, (8, ("g", signature))]
        if body.fds:
            fields = [*fields, (9, ("u", len(body.fds)))]
        head.data += struct.pack("<cBBBII", b"l", kind, 0, 1, len(body.data), self.serial)
        head.put("a(yv)", fields)
        head.pad(8)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", body.fds))] if body.fds else []
        data = bytes(head.data + body.data)
        sent = self.sock.sendmsg([data], ancillary)
        self.sock.sendall(data[sent:])
        return self.serial

    def send(self, path, interface, member, signature="", *values):
        fields = [(1, ("o", path)), (2, ("s", interface)), (3, ("s", member))]
        if self.destination:
            fields.append((6, ("s", self.destination)))
        return self._write(METHOD, fields, signature, values)

    def await_reply(self, *serials):
        """The first answer to one of what was sent, an error or not."""
        while True:
            m = self.receive()
            if m["kind"] == SIGNAL:
                self.signals.append(m)
            elif m["kind"] == METHOD:
                self.answer_ping(m)
            elif m.get("reply_serial") in serials:
                return m

    def call(self, path, interface, member, signature="", *values):
        m = self.await_reply(self.send(path, interface, member, signature, *values))
        if m["kind"] == ERROR:
            raise BusError(m["error"], m["body"][0] if m["body"] else "")
        return m["body"]

    def answer_ping(self, m):
        """As libraries do: whoever sent it learns that what came before was taken."""
        if (m["interface"], m["member"]) == ("org.freedesktop.DBus.Peer", "Ping"):
            self._write(RETURN, [(5, ("u", m["serial"])), (6, ("s", m["sender"]))], "", ())

    def get(self, path, interface, name):
        return self.call(path, "org.freedesktop.DBus.Properties", "Get", "ss", interface, name)[0]

    def signal(self, member, check=lambda m: True):
        """Waits for a signal; those that came before count, too."""
        until = time.monotonic() + self.timeout
        while True:
            for i, m in enumerate(self.signals):
                if m["member"] == member and check(m):
                    return self.signals.pop(i)
            self.sock.settimeout(max(until - time.monotonic(), 0.001))
            try:
                m = self.receive()
            finally:
                self.sock.settimeout(self.timeout)
            if m["kind"] == SIGNAL:
                self.signals.append(m)
            elif m["kind"] == METHOD:
                self.answer_ping(m)


CONNECT = """import socket, sys
ours, bus = socket.socket(fileno=0), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
try:
    bus.connect(sys.argv[1])
except OSError:
    sys.exit(1)
socket.send_fds(ours, [b"x"], [bus.fileno()])
bus.close()
ours.recv(1)
"""


class MessageBus(Connection):
    """A client of a message bus, which calls the owner of one name; as another account when one is given (root may). The bus and polkit look
    at the process that has connected, so that is one of that account, which is there as long as the connection."""

    def __init__(self, destination, account=None, path="/run/dbus/system_bus_socket", timeout=30):
        self.account, self.process = account, None
        if account:
            self.uid = pwd.getpwnam(account).pw_uid
        super().__init__(path, timeout)
        self.destination = "org.freedesktop.DBus"
        (self.name,) = self.call("/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")
        self.destination = destination

    def _connect(self, path):
        if self.uid == os.getuid():
            return super()._connect(path)
        self.ours, theirs = socket.socketpair()
        group = pwd.getpwnam(self.account).pw_gid
        self.process = subprocess.Popen(("setpriv", f"--reuid={self.uid}", f"--regid={group}", "--init-groups", sys.executable, "-c", CONNECT, path), stdin=theirs)
        theirs.close()
        _, fds, _, _ = socket.recv_fds(self.ours, 1, 1)
        if not fds:
            self._end_process()
            raise ConnectionError(f"{self.account} cannot connect to {path}")
        return socket.socket(fileno=fds[0])

    def close(self):
        super().close()
        self._end_process()

    def _end_process(self):
        if self.process:
            self.ours.close()
            self.process.wait()
            self.process = None

    def __del__(self):
        if self.process:
            self.close()
