#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command line against a real errandd --embedded: pipes, exit codes, grants, lists."""

import http.server
import json
import os
import shutil
import signal
import socket
import subprocess
import threading

from errand_command import Errand
from errand_test import case, program, run, source

LOST, NOT_SET_UP = 123, 125


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
        return [int(word) for word in f.read().split()]


def command_of(pid):
    """"" when it has ended meanwhile."""
    try:
        with open(f"/proc/{pid}/comm", encoding="ascii") as f:
            return f.read().strip()
    except (FileNotFoundError, ProcessLookupError):
        return ""


@case("C206 T: run gives the command's exit code, 128 + signal, and 125 to 127 as env(1) does")
def _(t):
    errand = Errand(t)
    rows = [(["true"], 0), (["sh", "-c", "exit 13"], 13), (["sh", "-c", "kill -9 $$"], 137), (["sh", "-c", "kill -TERM $$"], 143),
            (["no-such-program"], 127), (["/etc/passwd"], 126)]
    t.each(rows, lambda row: t.equal(errand.run("run", "--", *row[0])[0], row[1], "the exit code"))
    code, _, error = errand.run("run", "--", "no-such-program")
    t.contains(error, "no-such-program", "what is said")
    t.each([("--no-such-option",), ("--project", "/nonexistent", "true"), ("--id", "Not-An-Id", "true"), ("--allow", "a b", "true"),
            ("--env", "novalue", "true"), ("--provider", "nosuch", "true"), ("-t", "-T", "true")],
           lambda row: t.equal(errand.run("run", *row)[0], NOT_SET_UP, "the exit code"))


@case("T: without a daemon run says in one line that it has its own, with --embedded nothing, and then uses the one there is")
def _(t):
    errand = Errand(t)
    code, out, error = errand.run("run", "echo", "hello")
    t.equal((code, out), (0, "hello\n"), "code and output")
    t.equal(error.count("\n"), 1, "lines")
    t.contains(error, "embedded mode")
    pid = errand.daemon_pid()
    t.check(pid, "errandd has gone at once")
    t.equal(errand.run("run", "true"), (0, "", ""), "the second run")
    t.equal(errand.daemon_pid(), pid, "errandd")
    errand.end_daemon()
    t.equal(errand.run("run", "--embedded", "true"), (0, "", ""), "--embedded")


@case("T: pipes pass every byte, both ways and apart, and end when the command does")
def _(t):
    errand = Errand(t)
    data = os.urandom(3 << 20)
    process = errand.start("run", "sh", "-c", "cat; echo done >&2")
    out, error = process.communicate(data)
    t.check(out == data, f"{len(out)} bytes came back of {len(data)}, or others")
    t.contains(error.decode(), "done\n")
    t.lacks(errand.good("run", "sh", "-c", "echo out; echo err >&2"), "err", "stdout")
    t.equal(errand.good("run", "wc", "-c", input=b""), "0\n", "an empty input")
    t.equal(errand.run("run", "cat", stdin=subprocess.DEVNULL)[:2], (0, ""), "no input")
    with open(t.path("file"), "wb") as f:
        t.equal(errand.run("run", "echo", "into a file", stdout=f)[0], 0)
    with open(t.path("file"), "rb") as f:
        t.equal(f.read(), b"into a file\n", "the file")


@case("C206 T: a reader that goes away is the command's business: a broken pipe there, not a broken session")
def _(t):
    errand = Errand(t)
    process = errand.start("run", "--id", "head", "sh", "-c", "trap '' PIPE; echo first; read x; echo second; echo third >&2; exit 21")
    t.equal(process.stdout.readline(), b"first\n", "the first line")
    process.stdout.close()
    process.stdin.write(b"\n")
    process.stdin.close()
    t.equal(process.wait(), 21, "the exit code")
    t.contains(process.stderr.read().decode(), "third", "standard error")


@case("T: sockets as input and output are joined by pipes, since a session is given none")
def _(t):
    errand = Errand(t)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        process = errand.start("run", "sh", "-c", "ls -l /proc/self/fd/ >&2; tr a-z A-Z", stdin=theirs, stdout=theirs)
        theirs.close()
        ours.sendall(b"through a socket")
        ours.shutdown(socket.SHUT_WR)
        received = b""
        while data := ours.recv(4096):
            received += data
        t.equal(received, b"THROUGH A SOCKET", "what came back")
        t.equal(process.wait(), 0, "the exit code")
        t.lacks(process.stderr.read().decode(), "socket:", "the session's descriptors")


@case("C046 T: signals to a run without a terminal are the command's")
def _(t):
    errand = Errand(t)

    def check(name):
        process = errand.start("run", "sh", "-c", f"trap 'echo got; exit 7' {name}; echo ready; while :; do sleep 0.05; done")
        t.equal(process.stdout.readline(), b"ready\n", "the first line")
        process.send_signal(getattr(signal, "SIG" + name))
        t.equal((process.wait(), process.stdout.read()), (7, b"got\n"), name)
    t.each(["TERM", "INT", "HUP", "USR1", "QUIT"], check)
    # Not those of what it started, as a shell waits for that: whoever goes on pressing Ctrl-C is told what ends it.
    process = errand.start("run", "--embedded", "--id", "busy", "sh", "-c", "trap 'echo got' INT; echo ready; while :; do sleep 0.05; done")
    for line in (b"ready\n", b"got\n"):
        t.equal(process.stdout.readline(), line, "a line")
        process.send_signal(signal.SIGINT)
    t.equal(process.stderr.readline().decode(), "errand: session busy: its command got SIGINT and runs on; to end it: errand session stop busy\n", "what is said")
    errand.good("session", "stop", "busy")
    t.equal(process.wait(), 128 + signal.SIGTERM, "the exit code")


@case("C200 C206 T: with errandd its sessions end, and the client says that they are lost")
def _(t):
    errand = Errand(t)
    process = errand.start("run", "--embedded", "sh", "-c", "echo ready; sleep 1000")
    t.equal(process.stdout.readline(), b"ready\n", "the first line")
    os.kill(errand.daemon_pid(), signal.SIGKILL)
    t.equal(process.wait(), LOST, "the code")
    t.contains(process.stderr.read().decode(), "errandd went away")
    t.equal(process.stdout.read(), b"", "the rest")
    t.equal(errand.run("run", "--embedded", "-q", "true")[0], 0, "the next run")


@case("T: create, start, logs, stop, kill, threads: a session's life from separate commands")
def _(t):
    errand = Errand(t)
    name = errand.good("session", "create", "--embedded", "--", "sh", "-c", "echo begin; sleep 1000").strip()
    t.matches(name, "^[a-z0-9]{1,28}$", "the id")
    t.equal(errand.state_of(name), "created", "the state")
    t.equal(errand.run("session", "attach", name)[0], NOT_SET_UP, "attach before the start")
    errand.good("session", "start", name)
    follow = errand.start("session", "logs", "-f", name)
    t.equal(follow.stdout.readline(), b"begin\n", "the transcript")
    t.equal([s["id"] for s in errand.json("session", "list")], [name], "the list")
    code, _, error = errand.run("session", "attach", name)
    t.equal(code, NOT_SET_UP, "attach without a terminal")
    t.contains(error, "logs --follow")
    t.equal(errand.run("session", "start", name)[0], 1, "a second start")
    t.equal(errand.run("threads", "rm", name)[0], 1, "rm of what runs")
    errand.good("session", "stop", name)
    t.equal(follow.wait(), 0, "the code of logs")
    t.equal(errand.json("session", "list"), [], "the list")
    t.equal([s["state"] for s in errand.json("session", "list", "--all")], ["stopped"], "all states")
    shown = errand.json("threads", "show", name)
    t.equal((shown["session"]["exitStatus"], shown["grants"], shown["receipts"]), (143, [], []), "the record")
    errand.good("threads", "rm", name)
    t.equal(errand.run("session", "show", name)[0], 3, "the code for what is gone")
    t.equal(errand.good("run", "--rm", "--id", "brief", "echo", "x"), "x\n", "a run with --rm")
    t.equal(errand.json("threads", "list"), [], "the records")


@case("S129 T: a refused host is told once, with the command that grants it; a name that is none without one; --quiet tells nothing")
def _(t):
    errand = Errand(t)
    script = 'for i in 1 2 3; do curl -s -o /dev/null "https://$1/"; done; exit 4'
    code, _, error = errand.run("run", "--embedded", "--id", "s1", "--allow", "a.example", "sh", "-c", script, "sh", "b.example")
    t.equal(code, 4, "the code")
    t.equal(error.count("errand grant s1 b.example"), 1, "how often it is told")
    t.contains(error, "refused: b.example, port 443")
    code, _, error = errand.run("run", "-q", "--allow", "a.example", "sh", "-c", script, "sh", "b.example")
    t.equal((code, error), (4, ""), "with --quiet")


@case("T: grant, grants and revoke, from a second process while the session runs")
def _(t):
    errand = Errand(t)
    errand.start("run", "--embedded", "--id", "s1", "--allow", "a.example", "sleep", "1000")
    errand.await_state("s1", "running")
    t.contains(errand.good("grant", "s1", "API.Example.com"), "grant 1")
    t.contains(errand.good("grant", "s1", "*.example.net", "10m"), "for 10m")
    t.equal(errand.json("grant", "s1", "b.example", "always")["number"], 3, "the number")
    t.equal([(g["host"], g["duration"]) for g in errand.json("grants", "s1")],
            [("api.example.com", "once"), ("*.example.net", "10m"), ("b.example", "always")], "the grants")
    t.equal(list(errand.json("grants")), ["s1"], "every session's grants")
    table = errand.good("grants")
    t.matches(table.splitlines()[0], r"^SESSION +N +HOST +DURATION +EXPIRES +BY$", "the titles")
    t.lacks(table, "\x1b", "the table")
    errand.good("revoke", "s1", "2")
    t.contains(errand.good("revoke", "s1", "API.example.com"), "grant 1")
    t.equal([g["host"] for g in errand.json("grants", "s1")], ["b.example"], "what is left")
    t.equal(errand.run("revoke", "s1", "2")[0], 3, "what is not there")
    t.equal(errand.run("grant", "nosuch", "b.example")[0], 3, "no session")
    t.each([("s1", "https://b.example"), ("s1", "b.example", "soon"), ("s1", "*"), ("s1", "b.example", "31d")],
           lambda row: t.equal(errand.run("grant", *row)[0], 1, "the code"))
    errand.good("session", "stop", "s1")


@case("C199: what looks like an option, a path or a command is no session, and nothing is started for it")
def _(t):
    errand = Errand(t)
    for verb in (["session", "show"], ["session", "stop"], ["grants"], ["receipts"], ["threads", "rm"], ["session", "attach"]):
        def check(name, verb=verb):
            code, _, error = errand.run(*verb, "--", name)
            t.equal(code, 3, "the code")
            t.contains(error, "is no session's id")
            t.lacks(error, "\x1b", "what is said")
        t.each(["--privileged", "-v/:/h", "x;id", "$(id)", "../../x", "x" * 5000, "", "a\nb", "\x1b[2J"], check)
    t.equal(errand.run("run", "--embedded", "--", "--privileged")[0], 127, "a command that looks like an option")
    t.check(not os.path.exists(t.path("h")), "something was made")


@case("a session that is not there is named by whoever asks for something of it")
def _(t):
    errand = Errand(t)
    errand.good("run", "--embedded", "--", "true")
    for verb in (["session", "show"], ["session", "stop"], ["grants"], ["receipts"], ["threads", "rm"], ["session", "attach"]):
        t.matches(errand.run(*verb, "nosuch")[2], "(?m)^errand: session nosuch: .*there is no such session", " ".join(verb))


@case("C201: nobody there, not permitted and no answer are three things; nothing is started, nothing removed")
def _(t):
    errand = Errand(t)
    code, _, error = errand.run("session", "list")
    t.equal(code, 5, "the code when nobody is there")
    t.contains(error, "no errandd answers here")
    t.check(not os.path.exists(errand.state), "a state directory was made")

    errand.good("run", "--embedded", "-q", "true")
    bus = os.path.join(errand.state, ".run", "bus")
    before = os.stat(bus)
    # Root is stopped by no mode.
    other = {"user": 65533, "group": 65533, "extra_groups": []} if os.getuid() == 0 else {}
    if not other:
        os.chmod(bus, 0)
    code, _, error = errand.run("session", "list", cwd="/", **other)
    t.equal(code, 4, "the code when it is not permitted")
    t.contains(error, "you may not use the errandd at")
    code, _, error = errand.run("run", "--embedded", "true", cwd="/", **other)
    t.equal(code, NOT_SET_UP, "the code of run")
    t.equal(os.stat(bus).st_ino, before.st_ino, "the socket")
    errand.end_daemon()

    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as silent:
        silent.bind(bus)
        silent.listen()
        code, _, error = errand.run("session", "list")
        t.equal(code, 5, "the code when nobody answers")
        t.contains(error, "does not answer")
        t.check(os.path.exists(bus), "the socket was removed")


@case("T: two runs that start at one time share one errandd; two that bring configurations are told apart")
def _(t):
    errand = Errand(t)
    runs = [errand.start("run", "--embedded", "-q", "sh", "-c", "echo $$; exit 5") for _ in range(6)]
    t.equal([r.wait() for r in runs], [5] * 6, "the codes")
    t.equal(errand.daemon_log().count("sandbox backend: bailey"), 1, "daemons")
    with open(t.path("errand.json"), "w", encoding="utf-8") as f:
        f.write("{}")
    code, _, error = errand.run("run", "--config", t.path("errand.json"), "true")
    t.equal(code, NOT_SET_UP, "the code")
    t.contains(error, "would have no effect")
    errand.end_daemon()
    for text in ("{}", '{"sandbox": {"env": {"NEW": "value"}}}'):
        with open(t.path("errand.json"), "w", encoding="utf-8") as f:
            f.write(text)
        out = errand.good("run", "--embedded", "--config", "../errand.json", "sh", "-c", "echo $NEW")
    t.equal(out, "value\n", "what the file says by now")
    t.equal(errand.daemon_log().count("the configuration was read again"), 1, "reloads")


@case("T: of a configuration that is not there, or is refused, the first line says so, and nothing before it")
def _(t):
    errand = Errand(t)
    rows = [(("run", "--config", "nosuch", "true"), "errand: --config: {} cannot be read: No such file or directory\n"), (("report", "--config", "nosuch"), None),
            (("session", "list", "--embedded", "--config", "nosuch"), None)]
    for arguments, expected in rows:
        code, out, error = errand.run(*arguments)
        t.equal((code, out), (NOT_SET_UP if arguments[0] == "run" else 2, ""), "code and output")
        t.equal(error, (expected or rows[0][1]).format(os.path.join(errand.project, "nosuch")), "what is said")
    with open(t.path("errand.json"), "w", encoding="utf-8") as f:
        f.write('{"sandbx": {}}')
    code, _, error = errand.run("run", "--config", t.path("errand.json"), "true")
    t.equal(code, NOT_SET_UP, "the code")
    t.contains(error.splitlines()[0], "sandbx: unknown key")
    t.lacks(error, "embedded mode")


@case("T: a configuration with three mistakes gives three messages, from run and from config check")
def _(t):
    errand = Errand(t)
    path = t.path("errand.json")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"sandbx": {}, "sandbox": {"memory": "lots", "egressPorts": [0]}}, f)
    for arguments, expected in ((["config", "check", path], 2), (["run", "--embedded", "--config", path, "true"], NOT_SET_UP),
                                (["report", "--embedded", "--config", path], 2)):
        code, _, error = errand.run(*arguments)
        t.equal(code, expected, "the code")
        for part in ("sandbx", "sandbox.memory", "sandbox.egressPorts"):
            t.contains(error, part)
    checked = json.loads(errand.run("config", "check", path, "--json")[1])
    t.equal((checked["accepted"], len(checked["problems"])), (False, 3), "the JSON")
    t.equal([(p["file"], p["line"], p["key"]) for p in checked["problems"]],
            [(path, 1, "sandbx"), (path, 1, "sandbox.memory"), (path, 1, "sandbox.egressPorts[0]")], "the places")
    with open(path, "w", encoding="utf-8") as f:
        json.dump({"agent": {"providers": {"p": {"credential": {"file": "/nonexistent/key"}, "baseUrl": "https://p.example"}}}}, f, indent=1)
    code, _, error = errand.run("config", "check", "--embedded", path)
    t.equal(code, 1, "the code of a file that is taken and names what is not there")
    t.contains(error, f"{path}:5: agent.providers.p.credential: the secret file /nonexistent/key cannot be opened")
    t.equal(errand.run("config", "check", t.path("nosuch"))[0], 3, "a file that is not there")


@case("T: receipts and the report, for people and for programs")
def _(t):
    errand = Errand(t)
    t.equal(errand.json("report", "--embedded")["backend"], "bailey", "the backend")
    report = errand.good("report")
    t.contains(report, "sandbox backend: bailey\n")
    t.matches(report, r"\d+ guarantee\(s\) cannot be enforced on this host:\n")
    t.equal(errand.json("receipts"), [], "the receipts")
    t.equal(errand.good("receipts"), "", "nothing to list for a program")
    t.each([("--limit", "0"), ("--since", "yesterday"), ("--outcome", "nosuch")],
           lambda row: t.equal(errand.run("receipts", *row)[0], 1, "the code"))
    errand.good("session", "create", "--id", "s1", "--", "true")
    full = [("report",), ("session", "list"), ("session", "show", "s1"), ("threads", "list", "--json"), ("threads", "show", "s1", "--json"), ("monitor", "--json")]
    with open("/dev/full", "wb") as nowhere:
        t.each(full, lambda row: t.equal((lambda done: (done[0], done[2].strip()))(errand.run(*row, stdout=nowhere)),
                                         (1, "errand: Failed to write to standard output: No space left on device"), "code and error"))
    follow = errand.start("receipts", "-f")
    follow.stdout.close()
    t.equal(follow.wait(), 0, "the code when nobody reads")


class Provider:
    """A model's API on loopback, which only a configuration that allows it may name."""

    def __init__(self, t):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["content-length"]))
                self.send_response(404 if self.path.endswith("/none") else 200)
                self.send_header("content-length", "5")
                self.end_headers()
                self.wfile.write(b"hello")

            def log_message(self, *_):
                pass
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        t.defer(self.server.server_close)
        t.defer(self.server.shutdown)
        self.config = t.path("errand.json")
        with open(self.config, "w", encoding="utf-8") as f:
            json.dump({"agent": {"providers": {"p": {"kind": "openai", "baseUrl": f"http://127.0.0.1:{self.server.server_port}/v1",
                                                     "credential": "sk-real-0123456789", "credentialName": "P_KEY"}}},
                       "sandbox": {"egress": {"allow": [], "allowInternal": ["127.0.0.1"]}}}, f)
        os.chmod(self.config, 0o600)


@case("S065 T: provider calls in receipts and threads show: newest last, filtered, followed, as JSON")
def _(t):
    errand, provider = Errand(t), Provider(t)
    errand.environment["ERRAND_CONFIG"] = provider.config
    call = 'for path; do curl -s --noproxy "*" -H "authorization: Bearer $P_KEY" -d 123 "$ERRAND_PROVIDER_P_URL/$path"; done; echo'
    t.equal(errand.good("run", "--embedded", "--id", "s1", "--provider", "p", "--", "sh", "-c", call, "sh", "first", "none", "third"), "hello" * 3 + "\n")
    follow = errand.start("receipts", "-f", "--json")
    first = [json.loads(follow.stdout.readline()) for _ in range(3)]
    t.equal([(r["session"], r["path"], r["status"], r["bytesDown"], r["outcome"]) for r in first],
            [("s1", path, status, 5, "completed") for path, status in (("/first", 200), ("/none", 404), ("/third", 200))], "the receipts")
    t.equal(errand.json("receipts"), first, "the list")
    t.equal(errand.json("receipts", "s1", "-n", "1"), first[2:], "the newest")
    t.equal(errand.json("receipts", "--outcome", "denied"), [], "none denied")
    t.equal(errand.json("receipts", "--since", "1h"), first, "of the last hour")
    t.equal(errand.good("run", "--id", "s2", "--", "sh", "-c", call, "sh", "fourth"), "hello\n")
    t.equal(json.loads(follow.stdout.readline())["path"], "/fourth", "what follows")
    t.equal([r["path"] for r in errand.json("receipts", "-n", "all")], ["/first", "/none", "/third", "/fourth"], "every one")
    lines = errand.good("receipts").splitlines()
    t.matches(lines[0], r"^ENDED +SESSION +PROVIDER +HOST +CALL +STATUS +TIME +UP +DOWN +OUTCOME$", "the titles")
    t.matches(lines[2], r" s1 +p +127\.0\.0\.1\S* +POST /none +404 +\d+\.\d{3}s +3 +5 +completed$", "a line")
    t.contains(errand.good("threads", "show", "s2"), "POST /fourth")
    t.equal([r["path"] for r in errand.json("threads", "show", "s1")["receipts"]], ["/third", "/none", "/first"], "the newest first")
    for output in (errand.good("receipts", "--json"), errand.good("threads", "show", "s1", "--json"), errand.daemon_log()):
        t.lacks(output, "sk-real-0123456789", "what is told")


@case("T: receipts of a session that is not there are an error, of one that called nobody none")
def _(t):
    errand = Errand(t)
    errand.good("run", "--embedded", "-q", "--id", "s1", "true")
    t.equal(errand.good("receipts", "s1"), "", "the receipts")
    code, out, error = errand.run("receipts", "s2")
    t.equal((code, out), (3, ""), "code and output")
    t.contains(error, "there is no such session", "what is said")


@case("T: why nothing ran is told by session show and session logs, and by errandd after a restart as well")
def _(t):
    errand = Errand(t)
    errand.run("run", "--embedded", "--id", "s1", "no-such-program")

    def look():
        t.matches(errand.good("session", "show", "s1"), r"result  nothing ran, exit code 127\n +reason  no-such-program: no such program in PATH\n", "what is shown")
        t.equal(errand.json("session", "show", "s1")["exitText"], "no-such-program: no such program in PATH", "for programs")
        t.equal(errand.run("session", "logs", "s1"), (0, "", "errand: session s1 wrote nothing, since nothing ran: no-such-program: no such program in PATH\n"),
                "the transcript")
    look()
    errand.end_daemon()
    look()
    errand.good("session", "create", "--id", "s2", "true")
    errand.good("session", "start", "s2")
    errand.await_state("s2", "stopped")
    t.equal(errand.run("session", "logs", "s2"), (0, "", ""), "one that ran and wrote nothing")
    t.lacks(errand.good("session", "show", "s2"), "reason", "what is shown")


@case("T: a start that waits for a stopped launcher says so, goes on when it does, and is stopped by one Ctrl-C")
def _(t):
    errand = Errand(t)
    errand.good("run", "--embedded", "-q", "true")
    (launcher,) = [pid for pid in children(errand.daemon_pid()) if command_of(pid) == "errand-launch"]
    os.kill(launcher, signal.SIGSTOP)
    t.defer(os.kill, launcher, signal.SIGCONT)
    first, second = errand.start("run", "--id", "s1", "true"), errand.start("run", "--id", "s2", "true")
    errand.good("session", "create", "--id", "s3", "true")
    third = errand.start("session", "start", "s3")
    for process, session, more in ((first, "s1", "; Ctrl-C stops it"), (second, "s2", "; Ctrl-C stops it"), (third, "s3", "")):
        t.equal(process.stderr.readline().decode(), f"errand: session {session}: waiting for errand-launch to start its sandbox{more}\n", "what is said")
    t.equal(errand.json("session", "show", "s1")["waiting"], "errand-launch to start its sandbox", "for programs")
    first.send_signal(signal.SIGINT)
    t.contains(first.stderr.readline().decode(), "stopping session s1", "what is said")
    os.kill(launcher, signal.SIGCONT)
    t.equal([first.wait(20), second.wait(20), third.wait(20)], [130, 0, 0], "the exit codes")
    t.equal(errand.json("session", "show", "s1")["waiting"], "", "for programs")


@case("T: shells complete sessions and the hosts that were granted, live, and start no errandd for it")
def _(t):
    errand = Errand(t)
    errand.environment["PATH"] = f"{os.path.dirname(program('errand'))}:{errand.environment['PATH']}"

    def bash(*words):
        script = ('compopt() { :; }; source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _errand; printf "%s\\n" "${COMPREPLY[@]}"')
        return ["bash", "-c", script, "bash", source("shell-completions", "bash", "errand"), *words]

    def fish(*words):
        return ["fish", "--no-config", "-c", f"source {source('shell-completions', 'fish', 'errand.fish')}; complete -C '{' '.join(words)}'"]

    def complete(shell, *words):
        done = subprocess.run(shell(*words), env=errand.environment, stdout=subprocess.PIPE, text=True, check=True, cwd=errand.project)
        return [line.split("\t")[0] for line in done.stdout.splitlines() if line]
    shells = [bash, *([fish] if shutil.which("fish") else [])]
    for shell in shells:
        t.equal(complete(shell, "errand", "session", "stop", ""), [], "without an errandd")
    t.equal(errand.daemon_pid(), 0, "errandd")
    errand.good("session", "create", "--embedded", "--id", "s1", "--", "sleep", "100")
    errand.good("session", "start", "s1")
    errand.good("grant", "s1", "api.example.com", "always")
    errand.good("session", "create", "--id", "s2", "true")
    for shell in shells:
        t.equal(sorted(complete(shell, "errand", "session", "stop", "")), ["s1", "s2"], "sessions")
        t.equal(complete(shell, "errand", "revoke", "s1", ""), ["api.example.com"], "hosts")
        t.equal(complete(shell, "errand", "revoke", "s2", ""), [], "hosts")


if __name__ == "__main__":
    run()
