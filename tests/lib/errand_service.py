# SPDX-License-Identifier: LGPL-2.1-or-later
"""errandd --user as its service, without systemd: a message bus of its own, a service manager that starts a session's broker as its units would,
and the launcher behind its socket. As root all of it but the test runs as nobody; dbus-daemon wants an account with a name."""

import contextlib
import json
import os
import select
import signal
import socket
import subprocess
import threading

import errand_bus
import errand_launch
import errand_test
import errand_world

ACCOUNT = 65534
MANAGER = "org.errand1.Manager"
SESSION = "org.errand1.Session"
ROOT = "/org/errand1"
SYSTEMD = "org.freedesktop.systemd1"


class Client(errand_bus.Connection):
    """On a message bus: of the service with that name, or, as a service itself, of whoever calls it."""

    def __init__(self, path, destination=None, timeout=30):
        super().__init__(path, timeout)
        self.name = self.call_bus("Hello")[0]
        self.destination = destination

    def call_bus(self, member, signature="", *values):
        before, self.destination = self.destination, "org.freedesktop.DBus"
        try:
            return self.call("/org/freedesktop/DBus", "org.freedesktop.DBus", member, signature, *values)
        finally:
            self.destination = before

    def request_name(self, name):
        if self.call_bus("RequestName", "su", name, 4)[0] != 1:
            raise ConnectionError(f"{name} is somebody else's")

    def name_has_owner(self, name):
        return self.call_bus("NameHasOwner", "s", name)[0]

    def add_match(self, rule):
        self.call_bus("AddMatch", "s", rule)

    def reply(self, call, signature="", *values):
        self._write(errand_bus.RETURN, [(5, ("u", call["serial"])), (6, ("s", call["sender"]))], signature, values)

    def reply_error(self, call, name, text):
        self._write(errand_bus.ERROR, [(4, ("s", name)), (5, ("u", call["serial"])), (6, ("s", call["sender"]))], "s", (text,))

    def emit(self, destination, path, interface, member, signature, *values):
        self._write(errand_bus.SIGNAL, [(1, ("o", path)), (2, ("s", interface)), (3, ("s", member)), (6, ("s", destination))], signature, values)


def activate(*fds, program, arguments):
    """The command that runs that program, which may lie where the account cannot go, and what has to be passed on to it."""
    opened = os.open(errand_test.program(program), os.O_PATH | os.O_CLOEXEC)
    command = [errand_test.program("test-activate"), *(("--user", str(ACCOUNT)) if os.getuid() == 0 else ()),
               *(f"{name}={fd}" for name, fd in fds), "--", str(opened), program, *arguments]
    return command, opened


def listen(path):
    s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC)
    s.bind(path)
    if os.getuid() == 0:
        os.chown(path, ACCOUNT, ACCOUNT)
    s.listen(16)
    return s


class BrokerUnit:
    """What systemd has of one session's broker: two sockets, and a process from the first connection on. It keeps no descriptors: a broker that
    crashed comes back as new."""

    def __init__(self, manager, name):
        self.manager, self.name = manager, name
        self.sockets, self.process, self.stopped = {}, None, False
        self.thread, self.lock = None, threading.Lock()  # which of the two is first: a start of the process, or the unit's stop

    def start_socket(self, which):
        path = self.manager.service.runtime("broker" if which == "control" else "session", self.name)
        self.sockets[which] = listen(path)
        if len(self.sockets) == 2:
            self.thread = threading.Thread(target=self._run, args=(self.sockets["control"].dup(),), daemon=True)
            self.thread.start()

    def _run(self, control):
        with control:
            while True:
                select.select([control], [], [])
                with self.lock:
                    if self.stopped:
                        return
                    self._spawn()
                self.process.wait()

    def _spawn(self):
        copies = [(name, os.dup(s.fileno())) for name, s in self.sockets.items()]
        command, opened = activate(*copies, program="errand-broker", arguments=())
        with open(self.manager.service.path("broker.log"), "ab") as log, errand_world.world().host.inside():
            self.process = subprocess.Popen(command, pass_fds=[opened, *(fd for _, fd in copies)], stdin=subprocess.DEVNULL, stderr=log, cwd="/",
                                            env={"PATH": "/usr/bin:/bin"})
        for fd in (opened, *(fd for _, fd in copies)):
            os.close(fd)

    def _stop(self):
        with self.lock:
            self.stopped = True

    def stop_socket(self, which):
        self._stop()
        s = self.sockets.pop(which, None)
        if s:
            with contextlib.suppress(OSError):
                os.unlink(s.getsockname())
            s.shutdown(socket.SHUT_RDWR)
            s.close()

    def stop_service(self):
        self._stop()
        if self.process:
            self.process.terminate()
            self.process.wait(20)

    def close(self):
        self._stop()
        for which in list(self.sockets):
            self.stop_socket(which)
        if self.process:
            self.process.kill()
            self.process.wait()
        if self.thread:
            self.thread.join()


class ServiceManager(threading.Thread):
    """org.freedesktop.systemd1 on the bus. refuse, fail: parts of the names of units that are not started; hold: those whose jobs, of starts or
    as hold_verb says, do not end before release()."""

    def __init__(self, service):
        super().__init__(daemon=True)
        self.service, self.units, self.jobs = service, {}, 0
        self.replaced = []  # units that were stopped before another start
        self.refuse = self.fail = self.hold = None
        self.hold_verb = "StartUnit"
        self.asked, self.held, self.changed = [], [], threading.Condition()
        self.bus = Client(service.address, timeout=None)
        self.bus.request_name(SYSTEMD)
        self.start()

    def run(self):
        with contextlib.suppress(ConnectionError, OSError, ValueError):
            while True:
                m = self.bus.receive()
                if m["kind"] == errand_bus.METHOD:
                    self._serve(m)

    def _serve(self, m):
        name, verb = m["body"][0], m["member"]
        with self.changed:
            self.asked.append((verb, name))
            self.changed.notify_all()
        if self.refuse and self.refuse in name and verb == "StartUnit":
            self.bus.reply_error(m, "org.freedesktop.DBus.Error.AccessDenied", "Access denied")
            return
        self.jobs += 1
        job = f"/org/freedesktop/systemd1/job/{self.jobs}"
        self.bus.reply(m, "o", job)
        done = (m["sender"], "/org/freedesktop/systemd1", f"{SYSTEMD}.Manager", "JobRemoved", "uoss", self.jobs, job, name)
        with self.changed:
            if self.hold and self.hold in name and verb == self.hold_verb:
                self.held.append((verb, name, done))
                return
        self._carry_out(verb, name, done)

    def _carry_out(self, verb, name, done):
        result = "done"
        base, suffix = name.rsplit(".", 1)
        kind, session = base.split("@")
        if self.fail and verb == "StartUnit" and self.fail in name:
            result = "failed"
        elif self.fail and verb == "StartUnit" and self.fail in f"errand-broker-control@{session}.socket":
            result = "dependency"
        else:
            unit = self.units.setdefault(session, BrokerUnit(self, session))
            if suffix == "service":
                unit.stop_service()
            elif verb == "StartUnit":
                if unit.stopped:
                    self.replaced.append(unit)
                    unit = self.units[session] = BrokerUnit(self, session)
                for which in ("control", "session"):  # the second has Requires= and After= the first
                    unit.start_socket(which)
            else:
                unit.stop_socket("control" if kind.endswith("control") else "session")
        self.bus.emit(*done, result)

    def release(self):
        """hold is to be none by then."""
        with self.changed:
            held, self.held = self.held, []
        for item in held:
            self._carry_out(*item)

    def wait_asked(self, verb, name):
        with self.changed:
            while (verb, name) not in self.asked:
                if not self.changed.wait(30):
                    raise errand_test.Failure(f"{verb} {name} was not asked for, but {self.asked}")

    def close(self):
        with contextlib.suppress(OSError):
            self.bus.sock.shutdown(socket.SHUT_RDWR)
        self.join()
        for unit in (*self.units.values(), *self.replaced):
            unit.close()
        self.bus.close()


class Service:
    program = ("errandd", "--user")

    def __init__(self, t, config=None):
        self.t = t
        self.root = t.enter(errand_launch.directory_outside_of_tmp())
        self.errandd = self.launcher = self.daemon = None
        for name in ("home", "run", "run/errand", "run/errand/broker", "run/errand/session", "project", "records"):
            os.makedirs(self.path(name), mode=0o700)
            self._own(self.path(name))
        os.chmod(self.root, 0o755)
        self.configure({"sandbox": {"requireFullEnforcement": False, "gracePeriodMs": 1000, "egress": {"allow": ["api.example.com"]}}} if config is None else config)
        self.log_path = self.path("log")
        t.log("errandd's log", self.log)
        t.log("the brokers' log", lambda: self._read("broker.log"))
        t.defer(self.close)
        self._start_bus()
        self.manager = ServiceManager(self)
        self.notify_path = self.path("notify")
        self.notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)
        self.notify.bind(self.notify_path)
        os.chmod(self.notify_path, 0o666)
        self.notify.settimeout(30)
        self.launch_socket = listen(self.runtime("launch"))
        self.start_launcher()

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def runtime(self, *parts):
        return self.path("run", "errand", *parts)

    def _own(self, path):
        if os.getuid() == 0:
            os.chown(path, ACCOUNT, ACCOUNT)

    def _read(self, *parts):
        with contextlib.suppress(FileNotFoundError), open(self.path(*parts), encoding="utf-8", errors="replace") as f:
            return f.read()
        return ""

    def log(self):
        return self._read("log")

    def configure(self, config):
        if isinstance(config, dict): # what runs is what a test has started
            config["limits"] = {"brokersAhead": 0, **config.get("limits", {})}
        with open(self.path("errand.json"), "w", encoding="utf-8") as f:
            f.write(config if isinstance(config, str) else json.dumps(config))
        os.chmod(self.path("errand.json"), 0o644)

    def _start_bus(self):
        self.address = self.path("bus")
        with open(self.path("bus.conf"), "w", encoding="utf-8") as f:
            f.write(f"<busconfig><type>session</type><listen>unix:path={self.address}</listen><auth>EXTERNAL</auth><policy context='default'>"
                    "<allow user='*'/><allow own='*'/><allow send_destination='*' eavesdrop='false'/><allow receive_sender='*'/></policy></busconfig>")
        self.daemon = subprocess.Popen(["dbus-daemon", "--nofork", "--nopidfile", "--print-address=1", f"--config-file={self.path('bus.conf')}"],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        if not self.daemon.stdout.readline():
            raise errand_test.Failure("dbus-daemon does not start")
        os.chmod(self.address, 0o666)

    def _environment(self):
        return {"PATH": "/usr/local/bin:/usr/bin:/bin", "LC_ALL": "C.UTF-8", "HOME": self.path("home"), "XDG_RUNTIME_DIR": self.path("run"),
                "XDG_STATE_HOME": self.path("home"), "ERRAND_CONFIG": self.path("errand.json")}

    def start_launcher(self, bailey=None, options=()):
        fd = os.dup(self.launch_socket.fileno())
        programs = [os.open(path, os.O_PATH | os.O_CLOEXEC) for path in (errand_test.program("errand-shim"), bailey or errand_test.program("bailey"))]
        command, opened = activate(("launch", fd), program="errand-launch", arguments=("--shim-fd", str(programs[0]), "--bailey-fd", str(programs[1]), *options))
        with open(self.log_path, "ab") as log:
            self.launcher = subprocess.Popen(command, pass_fds=[fd, opened, *programs], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/",
                                             env=self._environment())
        for number in (fd, opened, *programs):
            os.close(number)

    def start(self, *arguments, environment=None):
        """errandd, which may not get ready."""
        command, opened = activate(program=self.program[0], arguments=(*self.program[1:], *arguments))
        with open(self.log_path, "ab") as log:
            self.errandd = subprocess.Popen(command, pass_fds=[opened], stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd="/", env={
                **self._environment(), "DBUS_SESSION_BUS_ADDRESS": f"unix:path={self.address}", "NOTIFY_SOCKET": self.notify_path, **(environment or {})})
        os.close(opened)

    def said(self):
        return self.notify.recv(4096).decode()

    def serve(self):
        """errandd, ready; a client of it."""
        self.start()
        text = self.said()
        if not text.startswith("READY=1"):
            raise errand_test.Failure(f"errandd says {text!r}")
        return self.client()

    def watch_names(self, name):
        """→ what says which owners the name has had since."""
        watcher = Client(self.address)
        self.t.defer(watcher.close)
        watcher.add_match(f"type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='{name}'")

        def owners():
            watcher.name_has_owner(name)  # what came before is there then
            return [m["body"] for m in watcher.signals if m["member"] == "NameOwnerChanged" and m["body"][0] == name]
        return owners

    def client(self):
        client = Client(self.address, "org.errand1")
        self.t.defer(client.close)
        return client

    def settled(self, session):
        """Its record is on disk, under its own name: to be edited there."""
        errand_launch.wait_for(lambda: not [n for n in os.listdir(self.path("home", "errand", ".records", session)) if n.startswith(".session.json")])

    def kill(self):
        self.errandd.kill()
        self.errandd.wait()

    def terminate(self):
        self.errandd.terminate()
        text = self.said()
        if not text.startswith("STOPPING=1"):
            raise errand_test.Failure(f"errandd says {text!r}")
        return self.errandd.wait(30)

    def record(self, session, name="session.json"):
        return self._read("home", "errand", ".records", session, name)

    def close(self):
        for process in (self.errandd, self.launcher):
            if process and process.poll() is None:
                process.kill()
                process.wait()
        for pid in self.shims():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        if hasattr(self, "manager"):
            self.manager.close()
            self.notify.close()
            self.launch_socket.close()
        if self.daemon:
            self.daemon.kill()
            self.daemon.wait()
            self.daemon.stdout.close()

    def shims(self):
        """Their processes, by the place of their sockets."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", "rb") as f:
                words = f.read().split(b"\0")
                if words[0] == b"errand-shim" and any(word.startswith(self.root.encode()) for word in words):
                    found.append(int(pid))
        return found


class Sessions:
    """Calls of one client about sessions in the service's project."""

    def __init__(self, service):
        self.service, self.bus = service, None

    def serve(self):
        self.bus = self.service.serve()

    def create(self, name, *command, **options):
        values = {"id": ("s", name), "project": ("s", self.service.path("project")), "command": ("as", list(command)), **options}
        return self.bus.call(ROOT, MANAGER, "CreateSession", "a{sv}", values)[0]

    def call(self, name, member, signature="", *values):
        return self.bus.call(f"{ROOT}/session/{name}", SESSION, member, signature, *values)

    def start(self, name, *command, **options):
        self.create(name, *command, **options)
        self.call(name, "Start")

    def describe(self, name):
        return self.call(name, "Describe")[0]

    def state(self, name):
        d = self.describe(name)
        return d["State"], d["ExitReason"], d["ExitStatus"]

    def transcript(self, name):
        return self.call(name, "ReadTranscript", "tu", 0, 65536)[1].decode()


# Asks its way out for what it finds in the project, and answers beside it: the status line for each host.
ASK = """
import base64, os, re, socket, time
user, address, port = re.fullmatch(r"http://(.*)@(.*):([0-9]+)", os.environ["https_proxy"]).groups()
credential = base64.b64encode(user.encode()).decode()
while True:
    for name in os.listdir("."):
        if not name.startswith("ask-"):
            continue
        host = name[4:]
        with socket.create_connection((address, int(port))) as s:
            s.sendall(f"CONNECT {host}:443 HTTP/1.1\\r\\nHost: {host}:443\\r\\nProxy-Authorization: Basic {credential}\\r\\n\\r\\n".encode())
            answer = s.recv(4096).decode()
        os.unlink(name)
        with open("." + name, "w") as f:
            f.write(answer.split()[1])
        os.rename("." + name, "answer-" + host)
    time.sleep(0.01)
"""


def begin(t, **options):
    service = Service(t, **options)
    sessions = Sessions(service)
    sessions.serve()
    return service, sessions


def ask(service, host):
    """403: the broker lets nobody there; 502: it would, and there is no such host."""
    with open(service.path("project", f"ask-{host}"), "w", encoding="ascii"):
        pass
    return answer_of(service, host)


def answer_of(service, host):
    """Of what was asked before."""
    answer = service.path("project", f"answer-{host}")
    errand_launch.wait_for(lambda: os.path.exists(answer))
    with open(answer, encoding="ascii") as f:
        text = f.read()
    os.unlink(answer)
    return text
