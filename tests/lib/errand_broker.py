# SPDX-License-Identifier: LGPL-2.1-or-later
"""Starts errand-broker as socket activation would, speaks its control and session protocols, and reaches its proxy from a session."""

import array
import contextlib
import fcntl
import json
import os
import secrets
import socket
import subprocess
import threading
import time

import errand_spool
import errand_test
from errand_http import Client, basic
from errand_world import world

BROKER_UID = 61184  # as root only: nobody's account on any system (of those systemd keeps for containers and dynamic users)
F_ADD_SEALS, F_SEALS_ALL = 1033, 0x1 | 0x2 | 0x4 | 0x8


def mint():
    return "errand-session-" + secrets.token_hex(32)


def mint_key():
    return "sk-test-" + secrets.token_hex(24)


def sealed_memfd(data, seals=F_SEALS_ALL):
    fd = os.memfd_create("keys", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    fcntl.fcntl(fd, F_ADD_SEALS, seals)
    return fd


class Channel:
    """A SEQPACKET connection that carries our messages. Events are kept apart from replies."""

    def __init__(self, path):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
        self.socket.connect(path)
        self.serial = 0
        self.events = []

    def close(self):
        self.socket.close()

    def send_raw(self, data, fds=()):
        control = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.socket.sendmsg([data], control)

    def send(self, message, fds=()):
        self.send_raw(json.dumps(message).encode(), fds)

    def receive(self):
        """The next message, or None when the other side has closed."""
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            return None
        return json.loads(data) if data else None

    def unanswered(self, t):
        """It was sent nothing so far; then it goes."""
        try:
            t.check(False, f"it was sent {self.socket.recv(65536, socket.MSG_DONTWAIT)}")
        except BlockingIOError:
            self.close()

    def request(self, kind, fds=(), /, **members):
        """Sends a request and returns its reply; events that come before are kept."""
        self.serial += 1
        self.send({"v": 1, "type": kind, "serial": self.serial, **members}, fds)
        while True:
            reply = self.receive()
            if reply is None or reply.get("serial") == self.serial or reply["type"] == "error":
                return reply
            self.events.append(reply)

    def event(self, kind):
        """Waits for an event of that type."""
        while True:
            for event in self.events:
                if event["type"] == kind:
                    self.events.remove(event)
                    return event
            message = self.receive()
            if message is None:
                raise errand_test.Failure(f"the broker has closed its control before {kind!r}; there were {self.events}")
            self.events.append(message)


class Provider:
    def __init__(self, base_url="https://provider.example/v1", placement="bearer", key=None, ca="ca", name="PROVIDER_API_KEY", **members):
        self.base_url = base_url
        self.placement = placement
        self.credential_name = name
        self.key = key or mint_key()
        self.stand_in = mint()
        self.ca = ca
        self.members = members  # of the setup: header, user, capabilities, strictCapabilities, budgets

    @property
    def header(self):
        """The header line that the session sends."""
        return self.header_with(self.stand_in)

    def header_with(self, value):
        if self.placement == "basic":
            return f"Authorization: {basic('x', value)}\r\n"
        name = {"x-api-key": "x-api-key", "header": self.members.get("header")}.get(self.placement)
        return f"{name}: {value}\r\n" if name else f"Authorization: Bearer {value}\r\n"


class Broker:
    """A broker process. Broker(t).start(allow=[…]) sets it up and hands a listener over."""

    def __init__(self, t, session="s1", environment=None, own_account=False, arguments=(), files=None, log_file=None, supervised=False):
        """supervised: its control is connected before it runs, and never finds it without."""
        self.t = t
        self.session = session
        self.directory = t.enter(errand_test.temporary_directory("errand-broker-"))
        self.control_path = os.path.join(self.directory, "control")
        self.session_path = os.path.join(self.directory, "session")
        self.spool_path = os.path.join(self.directory, "spool")
        self.token = secrets.token_hex(32)
        self.credential = mint()
        self.providers = {}
        self.budgets = None  # of the setup
        self.log_lines = []
        self.log_changed = threading.Condition()
        self.namespace = None
        self.port = 3128
        self.control = None
        self.killed = False
        self.files = files
        self.log_file = log_file  # to which the log goes instead of to log()
        self.supervised = supervised
        self._start(environment or {}, own_account, arguments)

    def _start(self, environment, own_account, arguments):
        listeners = []
        for path in (self.control_path, self.session_path):
            s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
            s.bind(path)
            os.chmod(path, 0o666)
            s.listen(16)
            listeners.append(s)
        if self.supervised:
            self.connect_control()
        command = ["prlimit", f"--nofile={self.files}:{self.files}"] if self.files else []
        command.append(errand_test.program("test-activate"))
        if os.getuid() == 0 and not own_account:
            command += ["--user", str(BROKER_UID)]
        program = os.open(errand_test.program("errand-broker"), os.O_PATH | os.O_CLOEXEC)
        command += [f"control={listeners[0].fileno()}", f"session={listeners[1].fileno()}", "--", str(program), "errand-broker", *arguments]
        keep = {k: v for k, v in os.environ.items() if k in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")}
        log = open(self.log_file, "ab") if self.log_file else contextlib.nullcontext(subprocess.PIPE)
        with world().host.inside(), log as stderr:
            self.process = subprocess.Popen(command, pass_fds=[program, *(s.fileno() for s in listeners)], stdin=subprocess.DEVNULL,
                                            stderr=stderr, cwd="/", env={"PATH": "/usr/bin:/bin", **keep, **environment})
        os.close(program)
        for s in listeners:
            s.close()
        self.t.defer(self.stop)
        self.t.log(f"log of the broker of {self.session}", self.log)
        self.reader = threading.Thread(target=self._read_log, daemon=True)
        self.reader.start()

    def _read_log(self):
        for line in self.process.stderr or ():
            with self.log_changed:
                self.log_lines.append(line.decode("utf-8", "replace").rstrip("\n"))
                self.log_changed.notify_all()
        with self.log_changed:
            self.log_lines.append(None)
            self.log_changed.notify_all()

    def log(self):
        with self.log_changed:
            return "\n".join(line for line in self.log_lines if line is not None)

    def wait_log(self, part, n=1):
        """Waits for the n-th log line that holds `part`."""
        with self.log_changed:
            while True:
                found = [line for line in self.log_lines if line is not None and part in line]
                if len(found) >= n:
                    return found[n - 1]
                if None in self.log_lines:
                    raise errand_test.Failure(f"the broker has ended, and its log has no {part!r}")
                self.log_changed.wait()

    def stop(self):
        """Ends the process as its unit would be stopped. Every broker of every test must end well: a crash or a sanitizer's finding fails the test
        that caused it."""
        if self.control:
            self.control.close()
            self.control = None
        if self.process.poll() is None:
            self.process.terminate()
        status = self.process.wait()
        self.reader.join()
        if status != 0 and not self.killed:
            self.killed = True  # said once
            raise errand_test.Failure(f"the broker has ended with {status}")

    def kill(self):
        self.killed = True
        self.process.kill()
        self.process.wait()

    # ---- control ----

    def connect_control(self):
        self.control = Channel(self.control_path)
        return self.control

    def setup_message(self, **egress):
        """(message, fds) of a setup. egress: allow, allowInternal, ports, serverName; none of them = the member is left out."""
        keys = {"credential": self.credential,
                "providers": {i: {"key": p.key, "standIn": p.stand_in} for i, p in self.providers.items()}}
        spool = os.open(self.spool_path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
        names, fds = ["keys", "spool"], [sealed_memfd(json.dumps(keys).encode()), spool]
        for i, p in self.providers.items():
            if p.ca:
                names.append(f"ca:{i}")
                fds.append(os.open(errand_test.source("tests/peers/ca", p.ca + ".pem"), os.O_RDONLY | os.O_CLOEXEC))
        message = {"session": self.session, "token": self.token, "fds": names,
                   "providers": {i: {"baseUrl": p.base_url, "placement": p.placement, "credentialName": p.credential_name, **p.members}
                                 for i, p in self.providers.items()}}
        if self.budgets:
            message["budgets"] = self.budgets
        if egress:
            message["egress"] = egress
        return message, fds

    def setup(self, providers=None, **egress):
        """Sends setup; → the reply."""
        if self.control is None:
            self.connect_control()
        self.providers = providers or {}
        message, fds = self.setup_message(**egress)
        reply = self.control.request("setup", fds, **message)
        for fd in fds:
            os.close(fd)
        return reply

    def hand_over(self, listener=None, token=None):
        """Makes the listener of a session and hands it over; → the broker's answer, None when it only closes."""
        if listener is None:
            self.namespace = world().session()
            listener = self.namespace.listen("127.0.0.1", self.port)
        channel = Channel(self.session_path)
        try:
            channel.send({"v": 1, "type": "listeners", "token": token or self.token, "fds": ["proxy"]}, [listener.fileno()])
            return channel.receive()
        except BrokenPipeError:
            return None
        finally:
            channel.close()
            listener.close()

    def begin_hand_over(self, token=None):
        """The same, without waiting for the answer; → the channel that it comes by."""
        self.namespace = world().session()
        channel = Channel(self.session_path)
        with self.namespace.listen("127.0.0.1", self.port) as listener:
            channel.send({"v": 1, "type": "listeners", "token": token or self.token, "fds": ["proxy"]}, [listener.fileno()])
        return channel

    def start(self, providers=None, **egress):
        """Set up and handed over: a session could run now."""
        reply = self.setup(providers, **egress)
        if reply is None or reply["type"] != "ok":
            raise errand_test.Failure(f"setup was answered with {reply}")
        reply = self.hand_over()
        if reply is None or reply["type"] != "ready":
            raise errand_test.Failure(f"the hand-over was answered with {reply}")
        return self

    def grant(self, host, duration="always", grant_id="g1", **more):
        return self.control.request("grant", id=grant_id, host=host, duration=duration, **more)

    # ---- the session's side ----

    def connect(self):
        sock = self.namespace.socket()
        sock.connect(("127.0.0.1", self.port))
        self.t.defer(sock.close)
        return Client(sock)

    @property
    def auth(self):
        """The header line that carries the session's credential."""
        return f"Proxy-Authorization: {basic('errand', self.credential)}\r\n"

    def check_port_closed(self):
        with self.namespace.socket() as sock:
            try:
                sock.connect(("127.0.0.1", self.port))
            except ConnectionRefusedError:
                return
        self.t.fail("the port still answers")

    def ask(self, request, bodiless=False):
        """Sends these bytes on a new connection; → the answer."""
        client = self.connect()
        client.send(request)
        return client.answer(bodiless)

    def open_tunnel(self, authority, auth=None):
        """CONNECT; → (client, answer's head or whole refusal)."""
        client = self.connect()
        client.send(f"CONNECT {authority} HTTP/1.1\r\nHost: {authority}\r\n{self.auth if auth is None else auth}\r\n")
        answer = client.head()
        if answer.status != 200:
            length = int(answer.get("Content-Length") or 0)
            answer.body = client.take(length)
        return client, answer

    def call(self, provider, path="/echo", method="GET", headers="", body=b"", auth=None):
        """A call on a provider route; → the answer."""
        client = self.connect()
        client.send(self.route_request(provider, path, method, headers, body, auth))
        return client.answer(method == "HEAD")

    def route_request(self, provider, path="/echo", method="GET", headers="", body=b"", auth=None):
        p = self.providers[provider]
        length = f"Content-Length: {len(body)}\r\n" if body or method == "POST" else ""
        return (f"{method} /provider/{provider}{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\n"
                f"{p.header if auth is None else auth}{headers}{length}\r\n").encode("latin-1") + body

    # ---- receipts ----

    def spool(self):
        with open(self.spool_path, "rb") as f:
            return f.read()

    def receipts(self, n):
        """Waits until the spool holds n receipts; → them."""
        while True:
            found = [record for kind, record in errand_spool.read(self.spool()) if kind == errand_spool.RECEIPT]
            if len(found) >= n:
                return found
            if self.process.poll() is not None:
                raise errand_test.Failure(f"the broker has ended, and its spool has {len(found)} receipts, not {n}")
            time.sleep(0.01)  # a look at a file, not an order of events
