# SPDX-License-Identifier: LGPL-2.1-or-later
"""A raw HTTP/1.1 client: it sends the bytes it is told and reads an answer without being clever about it."""

import base64
import socket


def basic(user, password):
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class Answer:
    def __init__(self, head, body, complete):
        self.head = head  # bytes, the empty line included
        lines = head[:-4].decode("latin-1").split("\r\n")
        version, _, rest = lines[0].partition(" ")
        self.version = version
        self.status = int(rest[:3])
        self.reason = rest[4:]
        self.fields = [tuple(part.strip() for part in line.partition(":")[::2]) for line in lines[1:]]
        self.body = body
        self.complete = complete  # its framing says so; False: the connection ended before

    def all(self, name):
        return [value for field, value in self.fields if field.lower() == name.lower()]

    def get(self, name):
        values = self.all(name)
        return values[0] if values else None

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")

    def __repr__(self):
        return f"<{self.status} {self.reason!r} {self.fields} {self.body[:300]!r} complete={self.complete}>"


class Client:
    """One connection. `buffer` holds what has come and was not asked for yet."""

    def __init__(self, sock):
        self.socket = sock
        self.buffer = b""
        self.ended = False

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data.encode("latin-1") if isinstance(data, str) else data)

    def half_close(self):
        self.socket.shutdown(socket.SHUT_WR)

    def fill(self):
        """Waits for some more. False at the end; a reset counts as one."""
        try:
            data = self.socket.recv(65536)
        except ConnectionError:
            data = b""
        self.buffer += data
        self.ended = not data
        return bool(data)

    def take(self, size):
        while len(self.buffer) < size and self.fill():
            pass
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def until(self, mark):
        """All up to and with the mark; at the end of the connection what there is."""
        while mark not in self.buffer:
            if not self.fill():
                data, self.buffer = self.buffer, b""
                return data
        at = self.buffer.index(mark) + len(mark)
        data, self.buffer = self.buffer[:at], self.buffer[at:]
        return data

    def rest(self):
        while self.fill():
            pass
        data, self.buffer = self.buffer, b""
        return data

    def head(self):
        """An answer's head alone, for a streamed answer or an opened tunnel."""
        head = self.until(b"\r\n\r\n")
        if not head.endswith(b"\r\n\r\n"):
            raise ConnectionError(f"the connection ended in place of an answer: {head!r}")
        return Answer(head, b"", True)

    def chunk(self):
        """One chunk's data; b"" for the last one (its trailers are read away); None when the connection ended."""
        line = self.until(b"\r\n")
        if not line.endswith(b"\r\n"):
            return None
        size = int(line.split(b";")[0], 16)
        if size == 0:
            while True:
                trailer = self.until(b"\r\n")
                if trailer == b"\r\n":
                    return b""
                if not trailer.endswith(b"\r\n"):
                    return None
        data = self.take(size)
        return data if self.take(2) == b"\r\n" else None

    def answer(self, bodiless=False):
        """A whole answer. bodiless: it answers a HEAD, or opens a tunnel."""
        a = self.head()
        if bodiless or a.status < 200 or a.status in (204, 304):
            return a
        if (a.get("Transfer-Encoding") or "").lower() == "chunked":
            while True:
                data = self.chunk()
                if not data:
                    a.complete = data is not None
                    return a
                a.body += data
        length = a.get("Content-Length")
        if length is not None:
            a.body = self.take(int(length))
            a.complete = len(a.body) == int(length)
        else:
            a.body = self.rest()
        return a

    def is_closed(self):
        """True when nothing more comes: waits for the end of the connection, and takes any byte for a no."""
        return not self.buffer and not self.fill()
