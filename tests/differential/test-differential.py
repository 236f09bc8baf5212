#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The same hostile messages to the broker's parser and to nginx. table.txt, which is checked in, has every message on which the two differ, and why ours is right.

    test-differential.py READER           our parser still says what the table says; without nginx
    test-differential.py READER --nginx   and so does nginx; every difference has its reason
    test-differential.py READER --write   makes the table anew
"""

import collections
import fnmatch
import os
import re
import shutil
import socket
import struct
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from errand_test import case, run, source  # noqa: E402
from messages import MARKER, messages  # noqa: E402

TABLE = source("tests/differential/table.txt")
READER, MODE = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else ""
del sys.argv[1:]

# Where ours refuses and nginx goes on: its phrase → why that is right.
STRICTER = {
    "the request head is malformed": "a line that ends in LF alone, or a first byte that begins no method: another reader sees the line end elsewhere, or skips what stands before it",
    "the request line is malformed": "more than one space, or none: readers disagree on where the target ends",
    "the request method is malformed": "no token of at most 32 bytes",
    "the request target holds a byte that is not visible ASCII": "what a reader makes of such a byte, or of one it decodes to, is its own affair",
    "the request line does not end in HTTP/1.1 or HTTP/1.0": "for another version no reader has to keep to these rules",
    "a header line begins with white space": "folding: one reader joins the lines, another takes it for a header of its own",
    "a header name is malformed": "a name that is no token is skipped by one reader and trimmed to a good one by another",
    "a header name holds an underscore": "gateways that put headers into variables read it as a hyphen",
    "a header value holds a control character": "a CR or NUL within a value ends it for some readers",
    "the message has more than one Transfer-Encoding header": "readers take the first, the last or both",
    "the message has more than one Content-Length header": "the same twice is allowed to be taken, and need not be",
    "the message has both Content-Length and Transfer-Encoding": "which of them counts is the oldest way to smuggle",
    "the message is HTTP/1.0 and has a Transfer-Encoding header": "a reader of HTTP/1.0 does not know the header",
    "the transfer coding is not exactly \"chunked\"": "a list, a parameter or another spelling is read in several ways",
    "the Content-Length header is malformed": "digits alone, without zeros before them: other readers know signs, octal and lists",
    "the request has more than one Host header": "readers take the first or the last",
    "the request has no Host header": "HTTP/1.1 demands it",
    "the request expects something other than 100-continue": "nothing else is known, and what is not known cannot be passed on",
    "the Connection header is malformed": "its options name headers that are dropped: what is no name drops the wrong one",
    "the chunked body is malformed": "white space, a sign, an extension over 256 bytes or a bare LF in a chunk's frame, or a trailer that is none: another reader frames the rest differently",
}

# Where nginx refuses and ours goes on: name of the message → why that is right all the same.
NOT_A_PATH = "request.c: neither a path nor http://, so 400"
ELSEWHERE = "the scheme, user, host and port of a target are judged by request.c and hosts.h, which are stricter"
PATH = "a target goes on as it came; what decodes to something odd is refused where paths are judged, on a provider's route"
METHOD = "a method that nobody knows is the upstream's to refuse; it is never read as another case of one that is known"
TAB = "a tab beside a value is white space as a space is, and no part of it: RFC 9110, section 5.5"
LOOSER = {
    "line <GET /%*": PATH, "line <GET /[.]*": PATH, "line <GET [a?*] *": NOT_A_PATH, "line <GET ?a*": NOT_A_PATH, "line <OPTIONS [*]*": NOT_A_PATH,
    "line <GET *://*": ELSEWHERE, "line <[gG]et /a*": METHOD, "line <X!Y *": METHOD, "line <TRACE *": METHOD, "line <CONNECT *": "it is what the broker is for",
    "mutation [0-3] [+=] <0>": METHOD, "length <*\\t*": TAB, "coding <*\\t*": TAB,
    "host <Host: h\\t>": TAB, "host <*": "request.c: the Host header has to name the target's host by the grammar of hosts.h, else 400",
}


BODY = "refused: the chunked body is malformed"


def ours():
    data = b"".join(struct.pack("<I", len(text)) + text for _, text in ((name, text + MARKER) for name, text in messages()))
    result = subprocess.run([READER], input=data, capture_output=True, check=True)
    verdicts = []
    for line in result.stdout.decode("latin-1").splitlines():
        *seen, end = line.split("|")
        verdicts.append((seen, end))
    return verdicts


CONFIG = """daemon off;
master_process off;
pid {directory}/pid;
error_log {directory}/error.log crit;
events {{ worker_connections 64; }}
http {{
    access_log off;
    large_client_header_buffers 4 64k;
    client_body_temp_path {directory}/1; proxy_temp_path {directory}/2; fastcgi_temp_path {directory}/3; uwsgi_temp_path {directory}/4; scgi_temp_path {directory}/5;
    server {{
        listen unix:{directory}/socket;
        add_header X-Seen "$request_method $request_uri" always;
        return 204;
    }}
}}
"""


class Nginx:
    """A process of our own on a socket in the test's directory; it says which requests it has seen."""

    def __init__(self, t):
        program = shutil.which("nginx", path="/usr/sbin:/usr/bin")
        if not program:
            t.fail("nginx is not installed: apt-get install nginx-light")
        config = t.path("nginx.conf")
        with open(config, "w", encoding="ascii") as f:
            f.write(CONFIG.format(directory=t.directory))
        self.path = t.path("socket")
        self.process = subprocess.Popen([program, "-e", t.path("error.log"), "-c", config, "-p", t.directory], stdin=subprocess.DEVNULL)
        t.defer(self.process.wait)
        t.defer(self.process.terminate)
        while True:
            try:
                self.ask(b"GET / HTTP/1.0\r\n\r\n")
                return
            except OSError:
                if self.process.poll() is not None:
                    t.fail("nginx has ended")

    def ask(self, data):
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(self.path)
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
            except BrokenPipeError:
                pass
            answer = b""
            while True:
                try:
                    piece = s.recv(65536)
                except ConnectionResetError:
                    piece = b""
                if not piece:
                    return answer
                answer += piece

    def verdict(self, data):
        """(requests seen, the status that refused, or "")"""
        answer, seen, refused = self.ask(data).decode("latin-1"), [], ""
        while answer:
            top, _, rest = answer.partition("\r\n\r\n")
            status = re.match(r"HTTP/1\.1 (\d+)", top)
            if not status:
                return seen, refused or "closed"
            length = re.search(r"\r\nContent-Length: (\d+)", top)
            name = re.search(r"\r\nX-Seen: (.*)", top)
            if status[1] == "204":
                seen.append(name[1])
            elif not status[1].startswith("1"):
                refused = refused or status[1]
            answer = rest[int(length[1]):] if length and status[1] != "204" else rest
        return seen, refused


def compare(our, their):
    """"same", "stricter": ours stops where nginx goes on, "looser": the other way round, or "different"."""
    (seen, end), (theirs, _) = our, their
    if end == BODY:
        seen = seen[:-1]  # nginx has read the body before it says what it saw
    seen = [re.sub("^([^ ]+) [A-Za-z]+://[^/]*", r"\1 ", request) for request in seen]  # nor does it tell the scheme and host of a target
    if seen == theirs:
        return "same"
    if theirs[:len(seen)] == seen and (end.startswith("refused") or end == "incomplete"):
        return "stricter"
    return "looser" if seen[:len(theirs)] == theirs else "different"


def reason_of(kind, name, our):
    if kind == "stricter":
        return STRICTER.get(our[1].removeprefix("refused: "))
    for pattern, reason in LOOSER.items():
        if kind == "looser" and fnmatch.fnmatchcase(name, pattern):
            return reason
    return None


def shown(text):
    """As far as it is told in a line: request lines without what is the same for all."""
    return " | ".join(text).encode("unicode_escape").decode() or "nothing"


def table(our, their, version):
    kinds = [compare(o, n) for o, n in zip(our, their)]
    counts = collections.Counter(kinds)
    lines = [f"# The broker's parser and {version}, {len(kinds)} messages: the same for {counts['same']}, ours stricter for {counts['stricter']}, looser for {counts['looser']},",
             f"# different for {counts['different']}. A line each: KIND, message, what ours saw and how it ended; where they differ, what nginx saw. Made by test-differential.py --write.", ""]
    for kind, (name, _), o, n in zip(kinds, messages(), our, their):
        lines.append(f"{kind:9} {name} -- {shown(o[0])}; {o[1]}" + ("" if kind == "same" else f" -- nginx: {shown(n[0])}{'; ' + n[1] if n[1] else ''}"))
    lines.append("")
    lines.append("# Why ours is right where it refuses, by its phrase")
    used = {o[1].removeprefix("refused: ") for kind, o in zip(kinds, our) if kind == "stricter"}
    lines += [f"{phrase}: {reason}" for phrase, reason in STRICTER.items() if phrase in used]
    lines.append("")
    lines.append("# Why ours is right where nginx refuses, by message")
    lines += sorted({f"{name}: {reason_of(kind, name, o)}" for kind, (name, _), o in zip(kinds, messages(), our) if kind == "looser"})
    return "\n".join(lines) + "\n"


def recorded():
    """name → (kind, what ours saw and how it ended)"""
    found = {}
    with open(TABLE, encoding="ascii") as f:
        for line in f:
            if match := re.match(r"(same|stricter|looser|different) +(.*?) -- (.*?)(?: -- nginx: .*)?$", line):
                found[match[2]] = match[1], match[3]
    return found


def parser(t):
    rows = recorded()
    t.equal(len(rows), len(messages()), "messages in the table")

    def check(row):
        (name, _), o = row
        kind, said = rows[name]
        t.equal(f"{shown(o[0])}; {o[1]}", said, "verdict")
        t.check(kind != "different", "the table says that the two read it differently")
    t.each(list(zip(messages(), ours())), check)


def nginx(t):
    rows = recorded()
    server = Nginx(t)

    def check(row):
        (name, text), o = row
        n = server.verdict(text + MARKER)
        kind = compare(o, n)
        t.check(kind != "different", f"ours: {o}, nginx: {n}")
        t.check(kind == "same" or reason_of(kind, name, o), f"{kind} without a reason: ours: {o}, nginx: {n}")
        if kind != rows[name][0]:
            t.note(f"{name}: {kind}, in the table {rows[name][0]}; another version of nginx")
    t.each(list(zip(messages(), ours())), check)


def write(t):
    server = Nginx(t)
    version = subprocess.run(["/usr/sbin/nginx", "-v"], capture_output=True, text=True, check=True).stderr.strip().rpartition(": ")[2]
    text = table(ours(), [server.verdict(text + MARKER) for _, text in messages()], version)
    with open(TABLE, "w", encoding="ascii") as f:
        f.write(text)


if not MODE:
    case("C140 C142 C143 C144 C145: the parser reads every hostile message as the table says, and none in another way than nginx")(parser)
elif MODE == "--nginx":
    case("C140 C142 C143 C144 C145: of no message do the broker's parser and nginx make two different ones; each other difference has its reason")(nginx)
elif MODE == "--write":
    case("the table is written")(write)

if __name__ == "__main__":
    run()
