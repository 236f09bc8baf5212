#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""errand-launch and errand-shim with a real bailey, driven as errandd drives them. As root they run as an account of no name."""

import contextlib
import fcntl
import json
import os
import secrets
import signal
import socket
import subprocess
import time

import errand_launch
from errand_broker import sealed_memfd
from errand_launch import Launcher, Watch, children, children_named, descendants, wait_for
from errand_test import case, run


class Outputs:
    """A session's output and errors."""

    def __init__(self, *fds):
        self.files = [os.fdopen(fd, encoding="utf-8") for fd in fds]

    def line(self):
        return self.files[0].readline()

    def __call__(self):
        """Both to their ends."""
        result = []
        for f in self.files:
            with f:
                result.append(f.read())
        return result


def pipe_stdio(text=b""):
    """stdin that holds a text, stdout, stderr → (descriptors for the launch, what reads the two)."""
    stdin_read, stdin_write = os.pipe()
    os.write(stdin_write, text)
    os.close(stdin_write)
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    return {"stdin": stdin_read, "stdout": out_write, "stderr": err_write}, Outputs(out_read, err_read)


def stopped(s):
    """Its processes that job control has stopped."""
    return [pid for pid in descendants(s.pid) if errand_launch.state_of(pid) == "T"]


def core_limit(pid):
    """Soft and hard."""
    with open(f"/proc/{pid}/limits", encoding="ascii") as f:
        return next(line.split()[4:6] for line in f if line.startswith("Max core file size"))


# ---- a command ----

@case("C056 C057 C054: a command runs in the project with the files, the environment and the descriptors that it was given, and no others")
def _(t):
    launcher = Launcher(t)
    stdio, read = pipe_stdio(b"typed\n")
    s = launcher.session("run", "sh", "-c", "pwd; cat; echo $PATH $WORD $LC_ALL; echo error >&2; ls /proc/self/fd | tr '\\n' ' '; exit 7",
                         environment={"WORD": "given"}, stdio=stdio).launch()
    last, gone = s.ended()
    out, err = read()
    t.equal(out, f"{s.project}\ntyped\n/usr/bin:/bin given C\n0 1 2 3 ", "standard output")
    t.equal(err, "error\n", "standard error")
    t.equal((last["event"], last["reason"], last["status"], last["text"]), ("exited", "exited", 7, None), "the last event")
    t.equal(gone["status"], 0, "the shim's status")
    started = s.events()[0]
    t.equal(started["event"], "started", "the first event")
    t.equal(started["enforced"], last["enforced"], "what was enforced, at the start and at the end")
    t.equal(s.transcript(), "", "the transcript of files that are the caller's own")


@case("C206: the last event says how a session ended")
def _(t):
    launcher = Launcher(t)
    rows = [
        (("sh", "-c", "exit 0"), "exited", 0, None),
        (("sh", "-c", "exit 143"), "exited", 143, None),
        (("sh", "-c", "kill -KILL $$"), "signal", 137, None),
        (("sh", "-c", "kill -TERM $$"), "signal", 143, None),
        (("no-such-program",), "setup", 127, "no such program"),
        (("./no-interpreter",), "setup", 127, "cannot be executed"),
        (("/etc/passwd",), "setup", 126, "cannot be executed"),
    ]
    for number, (command, reason, status, text) in enumerate(rows):
        s = launcher.session(f"end{number}", *command)
        if command[0].startswith("./"):
            with open(os.path.join(s.project, "no-interpreter"), "w", encoding="ascii") as f:
                f.write("#!/nonexistent\n")
            os.chmod(f.name, 0o755)
        last, gone = s.launch().ended()
        t.equal((last["event"], last["reason"], last["status"], gone["status"]), ("exited", reason, status, 0), repr(command))
        t.check(last["text"] is None if text is None else text in last["text"], f"{command}: {last}")


@case("Q008 C010: a policy that is wrong ends the session with a sentence, and nothing runs")
def _(t):
    launcher = Launcher(t)
    s = launcher.session("policy", "sh", "-c", "touch ran", policy="[filesystem]\nreed = []\n").launch()
    last, _ = s.ended()
    t.equal((last["reason"], last["status"]), ("setup", 125), "the end")
    t.contains(last["text"], "did you mean \"read\"", "the text")
    t.check(not os.path.exists(os.path.join(s.project, "ran")), "it ran")


@case("C019: a project below a directory that is closed to the account is entered all the same")
def _(t):
    launcher = Launcher(t)
    closed = os.path.join(launcher.root, "closed")
    os.makedirs(os.path.join(closed, "project"))
    launcher.own(os.path.join(closed, "project"))
    stdio, read = pipe_stdio()
    s = launcher.session("closed", "sh", "-c", "echo made >file; cat file; pwd", project=os.path.join(closed, "project"), stdio=stdio)
    os.chmod(closed, 0o700 if os.getuid() == 0 else 0)
    t.defer(os.chmod, closed, 0o700)
    last, _ = s.launch().ended()
    t.equal((last["reason"], last["status"]), ("exited", 0), "the end")
    t.equal(read()[0], f"made\n{closed}/project\n", "what it said")


@case("C058 C063: no secret is in arguments or environments; launcher and shim cannot be read or dumped")
def _(t):
    launcher = Launcher(t)
    secret = "errand-session-" + secrets.token_hex(32)
    token = secrets.token_hex(32)
    s = launcher.session("secret", "sh", "-c", "echo run; read x", interactive=True, environment={"KEY": secret}, secrets=[secret])
    s.fds["token"] = sealed_memfd(token.encode())
    broker = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    path = os.path.join(launcher.root, "broker")
    broker.bind(path)
    os.chmod(path, 0o666)
    broker.listen(1)
    s.members.update(brokerSocket=path, listen="127.0.0.1:4321")
    s.launch()
    connection, _ = broker.accept()
    message, control, _, _ = connection.recvmsg(4096, socket.CMSG_SPACE(4))
    t.equal(json.loads(message)["token"], token, "the token that came to the broker")
    t.check(control, "no listener came with it")
    connection.send(b'{"v":1,"type":"ready"}')
    s.started()
    terminal = s.attach()
    terminal.until("run")
    own = [launcher.process.pid, s.pid, *children(s.pid)]
    t.equal(len(own), 3, "launcher, shim and bailey")
    for pid in own:
        with open(f"/proc/{pid}/cmdline", "rb") as f:
            arguments = f.read()
        t.check(secret.encode() not in arguments and token.encode() not in arguments, f"{pid} has a secret in its arguments")
        with contextlib.suppress(PermissionError), open(f"/proc/{pid}/environ", "rb") as f:
            t.check(secret.encode() not in f.read(), f"{pid} has a secret in its environment")
    for pid in own[:2]:
        t.equal(os.stat(f"/proc/{pid}/environ").st_uid, 0, f"the owner of what {pid} has in memory")
    if os.getuid() == 0:  # they cannot be looked into but by root. The launcher has descriptors from 100 on that are not closed on exec
        for pid in own[1:]:
            t.check(max(int(fd) for fd in os.listdir(f"/proc/{pid}/fd")) < 100, f"{pid} has a descriptor of the launcher's")
    t.equal(core_limit(s.pid)[0], "0", "the shim's core limit")
    t.equal(core_limit(own[2]), core_limit(launcher.process.pid), "the sandbox's core limit")
    terminal.type("\n")
    last, _ = s.ended()
    t.contains(last["enforced"], "egress broker", "what was enforced")


@case("S217 C190: without files of the caller's, output goes to the transcript, scrubbed over every border")
def _(t):
    launcher = Launcher(t)
    first, second = "sk-test-" + secrets.token_hex(24), "errand-session-" + secrets.token_hex(32)
    # Each writes a secret in pieces and the other's piece comes between.
    script = ("for i in $(seq 1 ${#A}); do printf %s \"$(printf %s \"$A\" | cut -c$i)\"; printf %s \"$(printf %s \"$B\" | cut -c$i)\" >&2; done;"
              "printf '%s\\n' \"$(printf %s \"$B\" | cut -c$((${#A} + 1))-)\" >&2; echo; echo $A-$B; printf %s sk-test-")
    s = launcher.session("scrub", "sh", "-c", script, environment={"A": first, "B": second}, secrets=[first, second]).launch()
    last, _ = s.ended()
    t.equal(last["status"], 0, "the status")
    text = s.transcript()
    t.lacks(text, first, "the transcript")
    t.lacks(text, second, "the transcript")
    t.equal(text.count("[redacted]"), 4, f"secrets found in {text!r}")
    t.check(text.endswith("sk-test-"), "what only begins like a secret is kept")


# ---- the end ----

@case("S048 C046: stop sends SIGTERM, which the payload can heed")
def _(t):
    launcher = Launcher(t)
    stdio, read = pipe_stdio()
    s = launcher.session("heeds", "sh", "-c", "trap 'echo bye; exit 3' TERM; echo run; while :; do sleep 0.05; done", stdio=stdio).launch()
    t.equal(read.line(), "run\n", "what it says when it has learnt to heed")
    t.equal(launcher.channel.request("stop", session="heeds")["type"], "ok", "stop")
    last, _ = s.ended()
    t.equal((last["reason"], last["status"]), ("exited", 3), "the end")
    t.equal(read()[0], "bye\n", "what it said")


@case("S046 T004: a payload that ignores SIGTERM, and one that stopped itself, are killed after the grace period with all they started")
def _(t):
    launcher = Launcher(t)
    for name, script in (("deaf", "trap '' TERM; setsid sleep 1000 & sleep 1000; sleep 1000"), ("stopped", "trap '' TERM; kill -STOP $$; sleep 1000")):
        s = launcher.session(name, "sh", "-c", script, graceMs=300).launch()
        s.started()
        wait_for(lambda s=s, name=name: stopped(s) if name == "stopped" else children_named(s, "sleep"))
        left = [Watch(pid) for pid in descendants(s.pid)]
        begin = time.monotonic()
        t.equal(launcher.channel.request("stop", session=name)["type"], "ok", "stop")
        last, gone = s.ended()
        t.check(time.monotonic() - begin >= 0.3, "the grace period was cut short")
        t.equal((last["reason"], last["status"], gone["status"]), ("killed", 137, 0), f"the end of {name}")
        t.check(all(w.ended(0) for w in left), "something is left")


@case("C200 C052: kill -9 of the launcher: the session goes on, and the next launcher finds it by its socket")
def _(t):
    launcher = Launcher(t)
    s = launcher.session("goeson", "sh", "-c", "echo begin; while read x; do echo said $x; done", interactive=True).launch()
    terminal = s.attach()
    terminal.until("begin")
    launcher.kill()
    terminal.type("still\n")
    terminal.until("said still")
    launcher.start()
    t.equal(launcher.channel.request("stop", session="goeson")["type"], "error", "a stop that does not say where")
    t.equal(launcher.channel.request("adopt", session="goeson", shimSocket=s.socket_path)["type"], "ok", "adopt")
    t.check(launcher.channel.request("usage", session="goeson")["pids"] >= 4, "the processes that it counts")
    again = launcher.session("goeson", "true")
    t.contains(again.try_launch()["text"], "a shim already", "a second one of that name")
    t.equal(launcher.channel.request("stop", session="goeson", shimSocket=s.socket_path)["type"], "ok", "stop")
    last, gone = s.ended()
    t.equal((last["event"], last["reason"], last["status"], gone["status"]), ("exited", "signal", 143, None), "the end")
    t.equal(launcher.channel.request("kill", session="goeson", shimSocket=s.socket_path, signal=9)["text"], "there is no shim of that session", "kill")


@case("C200 C052: kill -9 of the shim: bailey and payload end, nothing is left, and the launcher tells a session without a last line")
def _(t):
    launcher = Launcher(t)
    s = launcher.session("shim", "sh", "-c", "setsid sleep 1000 & sleep 1000; true").launch()
    s.started()
    wait_for(lambda: len(children_named(s, "sleep")) == 2)
    left = [Watch(pid) for pid in descendants(s.pid)]
    errand_launch.kill(s.pid)
    gone = launcher.channel.event("shim-exited", session="shim")
    t.equal(gone["status"], 137, "the shim's status")
    t.check(all(w.ended() for w in left), "something is left")
    t.equal([e["event"] for e in s.events()], ["started"], "the events")
    # Its socket is there still; the next start of the session is not held up by it.
    t.check(os.path.exists(s.socket_path), "the socket went with it")
    again = launcher.session("shim", "true").launch()
    t.equal(again.ended()[0]["status"], 0, "the next start")
    t.check(not os.path.exists(s.socket_path), "the socket is left")


@case("C200 C052: kill -9 of bailey, and of the sandbox's first process: reported as killed, nothing is left")
def _(t):
    launcher = Launcher(t)
    for name, victim in (("bailey", lambda s: children(s.pid)[0]), ("first", lambda s: s.started()["pid"])):
        s = launcher.session(name, "sh", "-c", "setsid sleep 1000 & sleep 1000; true", interactive=name == "first").launch()
        s.started()
        wait_for(lambda s=s: len(children_named(s, "sleep")) == 2)
        left = [Watch(pid) for pid in descendants(s.pid)]
        errand_launch.kill(victim(s))
        last, gone = s.ended()
        t.equal((last["event"], last["reason"], last["status"], gone["status"]), ("exited", "killed", 137, 0), f"kill -9 of {name}")
        t.check(all(w.ended(0) for w in left), "something is left")


@case("C200: kill -9 of bailey before the sandbox is made")
def _(t):
    launcher = Launcher(t)
    s = launcher.session("early", "true")
    # A broker that never answers: bailey waits in the middle of its work.
    broker = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    path = os.path.join(launcher.root, "broker")
    broker.bind(path)
    os.chmod(path, 0o666)
    broker.listen(1)
    s.fds["token"] = sealed_memfd(secrets.token_hex(32).encode())
    s.members.update(brokerSocket=path, listen="127.0.0.1:4321")
    s.launch()
    connection, _ = broker.accept()
    connection.recv(4096)
    left = [Watch(pid) for pid in descendants(s.pid)]
    t.equal(s.connect().request("status")["state"], "starting", "the state")
    errand_launch.kill(children(s.pid)[0])
    last, _ = s.ended()
    t.equal((last["reason"], last["status"]), ("killed", 137), "the end")
    t.check(all(w.ended() for w in left), "something is left")
    t.equal([e["event"] for e in s.events()], ["exited"], "the events")


@case("C200: errandd's end is the end of everything, in embedded mode")
def _(t):
    launcher = Launcher(t)
    sessions = [launcher.session("deaf", "sh", "-c", "trap '' TERM; echo deaf; sleep 1000; sleep 1000", graceMs=300),
                launcher.session("heeds", "sleep", "1000"), launcher.session("tty", "sh", interactive=True, graceMs=300)]
    left = []
    for s in sessions:
        s.launch().started()
        wait_for(lambda s=s: s.name == "heeds" or s.transcript())  # by then the others have learnt to ignore SIGTERM
        left += [Watch(s.pid), *(Watch(pid) for pid in descendants(s.pid))]
    launcher.channel.close()
    t.equal(launcher.process.wait(20), 0, "the launcher's status")
    t.check(all(w.ended(0) for w in left), "something is left")
    t.equal([s.events()[-1]["reason"] for s in sessions], ["killed", "signal", "killed"], "the ends")


@case("C206: a signal goes to the payload; status and watch tell how it is")
def _(t):
    launcher = Launcher(t)
    stdio, read = pipe_stdio()
    s = launcher.session("signals", "sh", "-c", "trap 'echo usr1' USR1; echo run; while :; do sleep 0.05; done", stdio=stdio).launch()
    control = s.connect()
    s.started()
    t.equal(control.request("status", watch=True)["state"], "running", "the state")
    t.equal(read.line(), "run\n", "what it says first")
    t.equal(control.request("signal", signal=int(signal.SIGUSR1))["type"], "ok", "signal")
    t.equal(control.request("attach")["text"], "the session has no terminal", "attach")
    t.equal(read.line(), "usr1\n", "what it says to the first signal")  # two at one time are one
    t.equal(launcher.channel.request("kill", session="signals", signal=int(signal.SIGUSR1))["type"], "ok", "kill")
    t.equal(read.line(), "usr1\n", "what it says to the second one")
    t.equal(control.request("signal", signal=9)["type"], "ok", "signal 9")
    told = control.event("state")
    t.equal((told["state"], told["reason"], told["status"]), ("exited", "killed", 137), "what a watcher is told")
    t.equal(read()[0], "", "what it said after that")
    s.ended()


@case("C195: ten sessions at once, each with its own files, terminal and end")
def _(t):
    launcher = Launcher(t)
    sessions = [launcher.session(f"ten{i}", "sh", "-c", f"read x; echo {i}-$x; exit {i}", interactive=True) for i in range(10)]
    for s in sessions:  # all requests before the first reply
        launcher.channel.serial += 1
        launcher.channel.send({"v": 1, "type": "launch", "serial": launcher.channel.serial, **s.members, "fds": list(s.fds)}, list(s.fds.values()))
    serials = range(launcher.channel.serial - 9, launcher.channel.serial + 1)
    replies = {}
    while len(replies) < 10:
        m = launcher.channel.receive()
        replies[m["serial"]] = m
    for s, serial in zip(sessions, serials):
        t.equal(replies[serial]["type"], "launched", f"the reply for {s.name}")
        s.pid = replies[serial]["pid"]
        s.close()
    terminals = [s.attach() for s in sessions]
    for terminal in terminals:
        terminal.type("word\n")
    for i, s in enumerate(sessions):
        last, gone = s.ended()
        t.equal((last["reason"], last["status"], gone["status"]), ("exited", i, 0), s.name)
        t.contains(terminals[i].rest(), f"{i}-word", s.name)
        t.contains(s.transcript(), f"{i}-word", s.name)


@case("C189: a disk that takes nothing does not stop a session; it is said once, and the shim's status tells that the last line is missing")
def _(t):
    launcher = Launcher(t)

    def full():
        fd = os.memfd_create("full", os.MFD_ALLOW_SEALING | os.MFD_CLOEXEC)
        fcntl.fcntl(fd, 1033, 0x4)  # F_ADD_SEALS, F_SEAL_GROW: every write fails
        return os.open(f"/proc/self/fd/{fd}", os.O_WRONLY | os.O_APPEND)
    s = launcher.session("full", "sh", "-c", "for i in $(seq 100); do echo line; done; touch done; exit 3")
    os.close(s.fds["transcript"])
    s.fds["transcript"] = full()
    last, gone = s.launch().ended()
    t.equal((last["reason"], last["status"], gone["status"]), ("exited", 3, 0), "the end")
    t.equal(launcher.log_text().count("The transcript cannot be written"), 1, "lines in the log")
    s = launcher.session("full2", "sh", "-c", "touch done; exit 3")
    os.close(s.fds["events"])
    s.fds["events"] = full()
    s.launch()
    t.equal(launcher.channel.event("shim-exited", session="full2")["status"], 1, "the shim's status")
    t.check(os.path.exists(os.path.join(s.project, "done")), "it did not run")
    t.equal(launcher.log_text().count("The events cannot be written"), 1, "lines in the log")


# ---- requests ----

def descriptors(launcher):
    """How many it holds; it cannot be looked into but by root."""
    launcher.channel.request("mkproject")  # what it did before is done
    return len(os.listdir(f"/proc/{launcher.process.pid}/fd")) if os.getuid() == 0 else None


@case("C199 C047: requests that are wrong are refused whole, with a sentence, and the launcher goes on")
def _(t):
    launcher = Launcher(t)
    launcher.session("before", "true").launch().ended()
    before = descriptors(launcher)
    pipe = os.pipe()
    sock = socket.socket()
    rows = [
        ({"session": "../x"}, {}, "\"session\" is not an id"), ({"session": "--privileged"}, {}, "\"session\""), ({"session": ""}, {}, "\"session\""),
        ({"session": "x" * 5000}, {}, "\"session\""), ({"session": 7}, {}, "\"session\""), ({"session": "a\nb"}, {}, "\"session\""),
        ({"backend": "podman"}, {}, "\"backend\""), ({"command": []}, {}, "\"command\""), ({"command": [""]}, {}, "\"command\""),
        ({"command": "sh"}, {}, "\"command\""), ({"command": ["sh", 1]}, {}, "\"command\""), ({"interactive": "yes"}, {}, "\"interactive\""),
        ({"rows": -1}, {}, "\"rows\""), ({"columns": 70000}, {}, "\"columns\""), ({"home": "relative"}, {}, "\"home\""),
        ({"home": None}, {}, "\"home\""), ({"brokerSocket": "/x"}, {}, "together"), ({"listen": "127.0.0.1:1"}, {}, "together"),
        ({"brokerSocket": "/x", "listen": "0.0.0.0:80"}, {}, "\"listen\""), ({"brokerSocket": "/x", "listen": "127.0.0.1:80"}, {}, "\"token\" is missing"),
        ({"strict": 1}, {}, "\"strict\""), ({"acceptGaps": ["--user"]}, {}, "\"acceptGaps\""), ({"acceptGaps": ["x"], "strict": False}, {}, "\"acceptGaps\""),
        ({"graceMs": 99999999}, {}, "\"graceMs\""), ({"graceMs": None}, {}, "\"graceMs\""), ({"shimSocket": "x"}, {}, "\"shimSocket\""),
        ({"unknown": 1}, {}, "\"unknown\" is no member"), ({}, {"project": None}, "\"project\" is missing"), ({}, {"events": None}, "\"events\" is missing"),
        ({}, {"project": pipe[0]}, "\"project\" is not a directory"), ({}, {"transcript": sock.fileno()}, "\"transcript\" is not a regular file"),
        ({}, {"events": os.open("/dev/null", os.O_WRONLY | os.O_APPEND)}, "\"events\" is not a regular file"),
        ({}, {"events": os.memfd_create("x")}, "\"events\" is not a regular file that is open for appending"),
        ({}, {"policy": os.open("/", os.O_RDONLY)}, "\"policy\""), ({}, {"environment": os.memfd_create("x")}, "\"environment\" is not a memfd sealed"),
        ({}, {"scrub": os.open("/etc/passwd", os.O_RDONLY)}, "\"scrub\""), ({}, {"token": sealed_memfd(b"x")}, "\"token\" has no place"),
        ({"interactive": True}, {"stdin": pipe[0]}, "\"stdin\" has no place"), ({}, {"terminal": pipe[0]}, "\"terminal\" has no place"),
        ({"interactive": True}, {"terminal": pipe[0]}, "\"terminal\" is not a unix stream"), ({}, {"other": pipe[0]}, "does not know"),
    ]

    def try_one(row):
        members, fds, text = row
        s = launcher.session("wrong", "touch", "ran")
        wanted = {k: v for k, v in {**s.members, **members}.items() if v is not None}
        given = {k: v for k, v in {**s.fds, **fds}.items() if v is not None}
        reply = launcher.channel.request("launch", given, **wanted)
        s.close()
        t.equal(reply["type"], "error", "the reply")
        t.contains(reply["text"], text, "the reply")
    t.each(rows, try_one)
    for kind, members in (("nothing", {}), ("stop", {"session": "nobody"}), ("stop", {}), ("kill", {"session": "nobody", "signal": 9}),
                          ("kill", {"session": "x", "signal": 0}), ("stop", {"session": "x", "more": 1}), ("collect", {"session": "x"}), ("mkproject", {"name": "x"}),
                          ("usage", {"session": "nobody", "shimSocket": "/etc/passwd"}), ("adopt", {"session": "nobody", "shimSocket": "/run"})):
        t.equal(launcher.channel.request(kind, **members)["type"], "error", f"{kind} {members}")
    for raw in (b"x", b"{}", b'{"v":2,"type":"stop"}', b'{"v":1,"type":"stop","fds":["a"]}', b"[" * 1000):
        launcher.channel.send(raw)
        t.equal(launcher.channel.receive()["type"], "error", repr(raw[:40]))
    t.check(not os.path.exists(os.path.join(launcher.root, "project-wrong", "ran")), "something ran")
    s = launcher.session("after", "true").launch()
    t.equal(s.ended()[0]["status"], 0, "the launcher afterwards")
    t.equal(descriptors(launcher), before, "the launcher's descriptors")


@case("C204 C205: the shim's socket answers errandd alone, and refuses what it does not know")
def _(t):
    launcher = Launcher(t)
    s = launcher.session("socket", "sleep", "1000").launch()
    s.started()
    t.equal(os.stat(s.socket_path).st_mode & 0o777, 0o600, "the socket's mode")
    control = s.connect()
    for kind, members in (("resize", {"rows": 0, "columns": 1}), ("resize", {"rows": 1, "columns": 70000}), ("signal", {"signal": 0}), ("signal", {"signal": "TERM"}),
                          ("stop", {"graceMs": -1}), ("status", {"watch": 1}), ("resize", {"rows": 1, "columns": 1})):
        t.equal(control.request(kind, **members)["type"], "error", f"{kind} {members}")
    for raw in (b"x", b'{"v":1,"type":"unknown"}', b'{"v":1,"type":"stop","more":1}', b'{"v":1,"type":"stop","serial":"x"}'):
        wrong = s.connect()
        wrong.send(raw)
        t.equal(wrong.receive()["type"], "error", repr(raw))
        try:
            wrong.receive()
            t.fail("the connection goes on")
        except errand_launch.Ended:
            pass
    if os.getuid() == 0:
        # The payload's own account, that the shim runs as, is not errandd's.
        done = subprocess.run(["/usr/bin/python3", "-c", "import socket,sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\ns.connect(sys.argv[1])\n"
                               "try:\n    s.send(b'{\"v\":1,\"type\":\"stop\"}')\n    print(s.recv(100))\nexcept OSError as e:\n    print(e)", s.socket_path],
                              capture_output=True, text=True, check=False, cwd="/", **launcher.account)
        t.check("type" not in done.stdout and done.returncode == 0, done)
    t.equal(control.request("status")["state"], "running", "the session")
    control.request("stop")
    s.ended()


@case("S187 T004: a long path is no obstacle: the shim's socket and the broker's are reached over their directories")
def _(t):
    launcher = Launcher(t)
    deep = os.path.join(launcher.root, "shim", "d" * 100)
    os.mkdir(deep, 0o700)
    launcher.own(deep)
    path = os.path.join(deep, "long")
    s = launcher.session("long", "sleep", "1000", shimSocket=path).launch()
    t.check(os.path.exists(path), "no socket is there")
    launcher.kill()
    launcher.start()
    t.equal(launcher.channel.request("kill", session="long", shimSocket=path, signal=15)["type"], "ok", "kill")
    t.equal(s.ended()[0]["status"], 143, "the status")


@case("C200 Q007: collect removes what a session left, whatever it made of it, and nothing else")
def _(t):
    launcher = Launcher(t)
    state = os.path.join(launcher.root, "state")
    os.mkdir(state, 0o755)
    launcher.own(state)
    outside = os.path.join(launcher.root, "outside")
    os.mkdir(outside)
    launcher.own(outside)
    with open(os.path.join(outside, "file"), "w", encoding="ascii") as f:
        f.write("kept")
    script = ("import os,sys\nos.chdir(sys.argv[1])\nos.symlink(sys.argv[2], 'link')\nos.mkdir('shut')\nopen('shut/file', 'w').close()\nos.mkdir('shut/in')\n"
              "os.chmod('shut/in', 0)\nos.chmod('shut', 0)\nos.mkfifo('fifo')\nfor n in range(3):\n    os.mkdir(f'd{n}')\n    open(f'd{n}/f', 'w').close()\n"
              "os.mkdir('.errand-collect-0')\nfor _ in range(3000):\n    os.mkdir('deep')\n    os.chdir('deep')\n    os.symlink(sys.argv[2], 'link')\n")
    subprocess.run(["/usr/bin/python3", "-c", script, state, outside], check=True, cwd="/", **launcher.account)
    fd = os.open(state, os.O_RDONLY | os.O_DIRECTORY)
    s = launcher.session("live", "sleep", "1000").launch()
    t.contains(launcher.channel.request("collect", {"state": fd}, session="live")["text"], "stop it first", "a session that lives")
    t.equal(launcher.channel.request("collect", {"state": fd}, session="gone")["type"], "ok", "collect")
    t.equal(os.listdir(state), [], "what is left")
    t.equal(os.listdir(outside), ["file"], "what was not its own")
    t.equal(launcher.channel.request("collect", {"state": s.launcher.process.stdin or os.open("/dev/null", os.O_RDONLY)}, session="gone")["type"], "error", "no directory")
    launcher.channel.request("stop", session="live")
    s.ended()
    os.close(fd)


@case("C200: what is asked once a shim has ended is not refused because the launcher has not come to its end yet")
def _(t):
    launcher = Launcher(t)
    state = os.path.join(launcher.root, "state")
    os.mkdir(state, 0o755)
    launcher.own(state)
    fd = os.open(state, os.O_RDONLY | os.O_DIRECTORY)
    for kind in ("collect", "stop"):
        s = launcher.session("dead", "sleep", "1000").launch()
        s.started()
        shim = Watch(s.pid)
        # Both wait for it when it wakes: the end of the shim, and the request of one who knows of it.
        os.kill(launcher.process.pid, signal.SIGSTOP)
        os.waitid(os.P_PID, launcher.process.pid, os.WSTOPPED | os.WNOWAIT)
        errand_launch.kill(s.pid)
        t.check(shim.ended(), "the shim lives")
        launcher.channel.send({"v": 1, "type": "collect", "serial": 4711, "session": "dead", "fds": ["state"]} if kind == "collect" else
                              {"v": 1, "type": "stop", "serial": 4711, "session": "dead", "shimSocket": s.socket_path}, [fd] if kind == "collect" else [])
        os.kill(launcher.process.pid, signal.SIGCONT)
        reply = launcher.channel.reply(4711)
        t.equal(reply["type"] if kind == "collect" else reply.get("text"), "ok" if kind == "collect" else "there is no shim of that session", kind)
        t.equal(launcher.channel.event("shim-exited", session="dead")["status"], 137, "its end is told all the same")
    os.close(fd)


@case("T019: probe really runs a sandbox and tells its gaps; what cannot run is told in bailey's words")
def _(t):
    homes = t.path("homes")  # of probes: other tests make theirs in /tmp
    os.mkdir(homes)
    os.chmod(homes, 0o777)
    launcher = Launcher(t, environment={"TMPDIR": homes})
    probe = launcher.channel.request("probe")
    t.equal((probe["type"], probe["backend"], probe["isolated"]), ("probe", "bailey", True), "the probe")
    t.check(probe["landlock"] > 0 and isinstance(probe["gaps"], list), probe)
    t.equal(os.listdir(homes), [], "what is left of its home")
    if os.getuid() == 0:
        other = Launcher.__new__(Launcher)
        other.__dict__.update(launcher.__dict__, account={}, process=None, channel=None)
        other.start()  # as root, what errandd never does
        t.contains(other.channel.request("probe")["text"], "uid 0", "the probe of root")
        other.channel.close()
        other.process.wait(20)


run()
