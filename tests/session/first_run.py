# SPDX-License-Identifier: LGPL-2.1-or-later
"""The main job with nothing else running: bailey, its broker, an agent inside, a provider and another host on an internet of our own.

FirstRun makes all of it; run() lets the agent take its steps and checks each from the outside as well. Both the test and the
demonstration use it. Every protection can be taken away, to show that the agent's check then says so.
"""

import contextlib
import ctypes
import functools
import json
import os
import pwd
import re
import secrets
import subprocess
import threading

import errand_test
from errand_broker import Broker, Provider, sealed_memfd
from errand_test import Failure
from errand_upstream import Upstream
from errand_world import world

MARKER = "errand-host-marker"  # in the command line of a process of the host
STEPS = ["environment", "project", "provider", "echo", "denied", "granted", "home", "shadow", "processes", "network", "key"]
EVENTS = ["1", "2", "3"]
STANDIN = r"^errand-session-[0-9a-f]{64}$"


def payload_uid():
    """Never 0: as root the account behind sudo, else nobody."""
    if os.getuid() != 0:
        return os.getuid()
    behind = int(os.environ.get("SUDO_UID") or 0)
    return behind or pwd.getpwnam("nobody").pw_uid


@functools.cache
def _bind_readable_shadow():
    """Once a process. A shadow file that everybody could read, in this mount namespace only: what protects it inside is the sandbox then, not its mode."""
    libc = ctypes.CDLL(None, use_errno=True)
    for name in ("shadow", "gshadow"):
        ours = os.path.join(world().directory, name)
        with open(ours, "w", encoding="ascii") as f:
            f.write("root:$y$marker-of-a-hash:19000:0:99999:7:::\n")
        os.chmod(ours, 0o644)
        if os.path.exists(f"/etc/{name}") and libc.mount(ours.encode(), f"/etc/{name}".encode(), None, 0x1000, None) != 0:
            raise OSError(ctypes.get_errno(), f"cannot bind a readable /etc/{name}")


class FirstRun:
    def __init__(self, t, session="s1"):
        self.t = t
        self.uid = payload_uid()
        self.session = session
        self.base = t.enter(errand_test.temporary_directory("errand-first-"))
        self._own(self.base)
        # A session sees a /tmp of its own: what it writes there is not written here.
        self.elsewhere = [os.path.join(self.base, "beside"), os.path.join(self.base, "owner-home", "planted"), "/etc/errand-test-planted"]
        self.project = self._directory("project")
        self.home = self._directory("private-home", 0o700)
        self.owner_home = self._directory("owner-home", 0o700)
        _bind_readable_shadow()
        self.provider_host = Upstream(t, "9.9.9.9:443")
        self.other_host = Upstream(t, "9.9.9.10:443")
        self.broker = None
        self.results = {}
        self.environment = None
        self.lines = []

    # ---- what is on the host ----

    def _own(self, path):
        if os.getuid() == 0:
            os.chown(path, self.uid, self.uid)

    def _directory(self, name, mode=0o755):
        path = os.path.join(self.base, name)
        os.mkdir(path, mode)
        self._own(path)
        return path

    def _file(self, path, text, mode=0o644):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        self._own(path)
        return path

    def prepare(self, key=None):
        """The owner's home, the project, a process of the host, and the broker, which alone has the key."""
        ssh = os.path.join(self.owner_home, ".ssh")
        os.mkdir(ssh, 0o700)
        self._own(ssh)
        files = [self._file(os.path.join(ssh, "id_ed25519"), "owner's ssh key\n", 0o600),
                 self._file(os.path.join(self.owner_home, "diary.txt"), "owner's diary\n")]
        self._file(os.path.join(self.project, "README.md"), "# A small project\n")
        with open(errand_test.source("tests/session/agent"), encoding="utf-8") as f:
            self.agent = self._file(os.path.join(self.project, "agent"), f.read(), 0o755)
        with open(errand_test.source("tests/peers/ca/ca.pem"), encoding="ascii") as f:
            self._file(os.path.join(self.project, "ca.pem"), f.read())
        self._file(os.path.join(self.project, "task.json"), json.dumps({
            "stream": f"/sse/{len(EVENTS)}?paced", "events": EVENTS, "echo": "/echo", "denied": "denied.example", "owner_files": files,
            "elsewhere": self.elsewhere, "host_services": ["127.0.0.1", "9.9.9.1", "::1", "2606:4700::fff1"], "host_processes": [MARKER, "errand-broker"], "outside": "9.9.9.9"}))
        marker = subprocess.Popen(["/bin/sh", "-c", "read line", MARKER], stdin=subprocess.PIPE)
        self.t.defer(marker.wait)
        self.t.defer(marker.stdin.close)
        return self.start_broker(key)

    def start_broker(self, key=None, allow=()):
        self.broker = Broker(self.t, self.session)
        self.provider = Provider(placement="x-api-key", key=key or "sk-real-" + secrets.token_hex(24), name="ANTHROPIC_API_KEY")
        reply = self.broker.setup({"anthropic": self.provider}, allow=list(allow))
        if reply is None or reply["type"] != "ok":
            raise Failure(f"the broker has answered its setup with {reply}")
        return self

    # ---- bailey ----

    def session_environment(self, **more):
        port, credential = self.broker.port, self.broker.credential
        proxy = f"http://errand:{credential}@127.0.0.1:{port}"
        route = f"http://127.0.0.1:{port}/provider/anthropic"
        values = {"ANTHROPIC_API_KEY": self.provider.stand_in, "ERRAND_PROVIDER_ANTHROPIC_URL": route, "ANTHROPIC_BASE_URL": route,
                  "no_proxy": "127.0.0.1,localhost,::1", "NO_PROXY": "127.0.0.1,localhost,::1"}
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            values[name] = values[name.upper()] = proxy
        return {**values, **more}

    def policy(self, write=None, read=()):
        path = os.path.join(self.base, "policy.toml")
        lines = [f"home = {json.dumps(self.home)}", "[filesystem]",
                 f"read = {json.dumps([self.project, *read])}", f"write = {json.dumps([self.project] if write is None else write)}"]
        with open(path, "w", encoding="ascii") as f:
            f.write("\n".join(lines) + "\n")
        os.chmod(path, 0o644)
        return path

    def bailey(self, *steps, policy=None, environment=None, options=(), socket_path=None, prefix=(), token=None):
        """Starts bailey with the agent; → Popen with pipes."""
        command = [errand_test.program("test-activate")]
        program = os.open(errand_test.program("bailey"), os.O_PATH | os.O_CLOEXEC)
        records = "".join(f"{k}={v}\0" for k, v in (environment or self.session_environment()).items())
        env_fd, token_fd = sealed_memfd(records.encode()), sealed_memfd((self.broker.token if token is None else token).encode())
        command += ["--", str(program), "bailey", "run", "--config", policy or self.policy(), *options]
        if os.getuid() == 0:
            command += ["--user", str(self.uid)]
        command += ["--broker-socket", socket_path or self.broker.session_path, "--broker-token-fd", str(token_fd),
                    "--listen", f"127.0.0.1:{self.broker.port}", "--env-fd", str(env_fd), self.agent, *steps]
        keep = {k: v for k, v in os.environ.items() if k in ("ASAN_OPTIONS", "UBSAN_OPTIONS", "LSAN_OPTIONS")}
        process = subprocess.Popen([*prefix, *command], pass_fds=[program, env_fd, token_fd], cwd=self.project, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={"PATH": "/usr/bin:/bin", "HOME": self.owner_home, "OWNER_SECRET": "not for the agent", **keep})
        for fd in (program, env_fd, token_fd):
            os.close(fd)
        self.t.defer(_end, process)
        return process

    def outside(self, *steps, environment=None):
        """Runs the agent's steps without bailey, as the owner would run them; → {step: (ok, saw)}."""
        command = [self.agent, *steps]
        if os.getuid() == 0:
            command = ["setpriv", f"--reuid={self.uid}", f"--regid={self.uid}", "--clear-groups", *command]
        else:
            command = ["setpriv", "--ambient-caps=-all", "--inh-caps=-all", *command]
        result = subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL, cwd=self.project, check=False,
                                env={"PATH": "/usr/bin:/bin", "HOME": self.owner_home, **(environment or {})})
        return _results(result.stdout.splitlines())

    def inside(self, *steps, grant=False, go=None, **options):
        """Runs the agent's steps in bailey to the end; → ({step: (ok, saw)}, exit status, stderr)."""
        process = self.bailey(*steps, **options)
        lines = []
        for line in process.stdout:
            lines.append(line)
            message = json.loads(line)
            if "waiting" in message:
                if grant:
                    self.broker.grant("denied.example")
                process.stdin.write("go on\n")
                process.stdin.flush()
            if go:
                go(message)
        errors = process.stderr.read()
        return _results(lines), process.wait(), errors

    # ---- the story ----

    def run(self, say):
        """All steps in one session. say(kind, text): "step", "agent", "owner", "checked" for a reader. → {step: (ok, saw)}; raises
        Failure where the outside does not agree."""
        process = self.start_story()
        errors = []
        reader = threading.Thread(target=lambda: errors.extend(process.stderr.readlines()), daemon=True)
        reader.start()
        n_events = 0
        said = set()
        self._expect(say, said, "environment")
        for line in process.stdout:
            self.lines.append(line)
            message = json.loads(line)
            if "environment" in message:
                self.environment = message["environment"]
            elif "event" in message:
                # The next event is sent only now: the agent has this one while the answer goes on.
                n_events += 1
                say("agent", f"event {message['event']} has come")
                if n_events < len(EVENTS):
                    self.provider_host.go()
            elif "waiting" in message:
                untouched = self.other_host.accepts()
                if untouched:
                    raise Failure(f"{message['waiting']} was connected to before the grant: {untouched}")
                say("owner", self.grant(message["waiting"]))
                process.stdin.write("go on\n")
                process.stdin.flush()
            else:
                self.results[message["step"]] = (message["ok"], message["saw"])
                say("agent", message["saw"])
                if not message["ok"]:
                    say("failed", f"step {message['step']}")
                following = STEPS[STEPS.index(message["step"]) + 1:][:1]
                if following:
                    self._expect(say, said, following[0])
                if following == ["provider"]:
                    self.provider_host.go()
        status = process.wait()
        reader.join()
        self.stderr = "".join(errors)
        self.status = status
        return self.results

    def start_story(self):
        return self.bailey(*STEPS, options=("--strict",))

    def grant(self, host):
        """→ what its owner did, for a reader."""
        reply = self.broker.grant(host)
        if reply["type"] != "ok":
            raise Failure(f"the grant was answered with {reply}")
        return f"grants {host} over the broker's control socket"

    def _expect(self, say, said, step):
        if step not in said:
            said.add(step)
            say("step", step)

    def log(self):
        """Of what decides on the session's way out."""
        return self.broker.log()

    # ---- the outside's view ----

    def check_environment(self):
        e = self.environment or {}
        for name, value in self.session_environment().items():
            if e.get(name) != value:
                raise Failure(f"{name} inside is {e.get(name)!r}")
        if not re.match(STANDIN, e["ANTHROPIC_API_KEY"]) or not re.match(STANDIN, self.broker.credential):
            raise Failure("a stand-in or the credential is not errand-session- and 64 hex digits")
        if "OWNER_SECRET" in e:
            raise Failure("a variable of the caller has crossed")
        if e.get("BAILEY_SANDBOX_NET") != "broker":
            raise Failure(f"BAILEY_SANDBOX_NET is {e.get('BAILEY_SANDBOX_NET')!r}")

    def check_project(self):
        path = os.path.join(self.project, "written-by-the-agent.txt")
        if not os.path.exists(path):
            raise Failure("the agent's file is not in the project")
        if os.stat(path).st_uid != self.uid:
            raise Failure(f"the agent's file belongs to {os.stat(path).st_uid}, not {self.uid}")
        planted = [path for path in self.elsewhere if os.path.exists(path)]
        if planted:
            raise Failure(f"the agent has written {planted}")

    def check_provider(self):
        """The provider saw the key and never the stand-in, and nothing but the agent's calls."""
        seen = self.provider_host.everything_received()
        if self.provider.key.encode() not in seen:
            raise Failure("the provider did not see the key")
        for secret in (self.provider.stand_in, self.broker.credential):
            if secret.encode() in seen:
                raise Failure("the provider saw a stand-in or the session's credential")

    def check_granted(self):
        """With the grant one connection was made to the other host; that there was none before is looked at when the grant is given."""
        accepts = self.other_host.accepts()
        if accepts != ["9.9.9.10:443"]:
            raise Failure(f"the other host saw the connections {accepts}")

    def check_receipts(self, expected=(("POST", "/sse/3", 200, "completed"), ("POST", "/echo", 200, "completed"))):
        """The spool lists exactly the provider calls; → the receipts. The broker is stopped for it."""
        self.broker.stop()
        receipts = self.broker.receipts(0)
        found = tuple((r["method"], r["path"], r["status"], r["outcome"]) for r in receipts)
        if found != tuple(expected):
            raise Failure(f"the receipts are {found}, not {tuple(expected)}")
        return receipts

    def check_no_key(self):
        """The key is in nothing that came out of the session, nor in a log or the spool."""
        for name, text in (("the agent's output", "".join(self.lines)), ("bailey's output", self.stderr), ("the broker's log", self.broker.log()),
                           ("the spool", self.broker.spool().decode("utf-8", "replace"))):
            if self.provider.key in text:
                raise Failure(f"the key is in {name}")

    def check_closing_line(self):
        if "bailey: enforced:" not in self.stderr:
            raise Failure(f"bailey has not said what it enforced: {self.stderr!r}")
        if self.status != 0:
            raise Failure(f"bailey has ended with {self.status}: {self.stderr!r}")


def _results(lines):
    messages = [json.loads(line) for line in lines]
    return {m["step"]: (m["ok"], m["saw"]) for m in messages if "step" in m}


def _end(process):
    for pipe in (process.stdin, process.stdout, process.stderr):
        with contextlib.suppress(OSError, ValueError):
            pipe.close()
    if process.poll() is None:
        process.kill()
    process.wait()
