#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a configuration says of providers, as a session meets it: from errand.json by errandd and broker to the provider, and back."""

import base64
import http.server
import json
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
from errand_bus import Connection  # noqa: E402
from errand_command import Errand, wait_for  # noqa: E402
from errand_test import case, run  # noqa: E402

KEY = "sk-real-0123456789abcdef"
# Calls METHOD PATH of each argument on the route of provider ID, the first one, and prints the statuses.
CALLER = r"""
import base64, os, sys, urllib.request, urllib.error
name = sys.argv[1].upper()
url, stand_in = os.environ[f"ERRAND_PROVIDER_{name}_URL"], os.environ[f"{name}_API_KEY"]
header = sys.argv[2]
value = stand_in
if header == "basic":
    header, value = "Authorization", "Basic " + base64.b64encode(f"git:{stand_in}".encode()).decode()
elif header == "bearer":
    header, value = "Authorization", f"Bearer {stand_in}"
for call in sys.argv[3:]:
    method, _, path = call.partition(" ")
    request = urllib.request.Request(url + path, method=method, headers={header: value})
    try:
        with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request) as answer:
            print(answer.status, answer.read().decode())
    except urllib.error.HTTPError as e:
        print(e.code, e.read().decode().strip())
"""


class Provider(http.server.ThreadingHTTPServer):
    """On this host's loopback, which a base URL may name as a literal."""

    daemon_threads = True

    def __init__(self, t):
        self.seen = []
        provider = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self):
                provider.seen.append((self.command, self.path, dict(self.headers.items())))
                status, body = provider.answer(self.path, self.headers.get("Authorization"))
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            do_POST = do_GET

            def log_message(self, *_):
                pass

        super().__init__(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.serve_forever, daemon=True).start()
        t.defer(self.server_close)
        t.defer(self.shutdown)
        self.url = f"http://127.0.0.1:{self.server_port}"

    root = token = None

    def serve(self, root, token):
        """The files of a directory as /repo.git/…, to who shows the token."""
        self.root, self.token = root, token

    def answer(self, path, token):
        if not self.root:
            return 200, json.dumps({"usage": {"input_tokens": 4, "output_tokens": 6}}).encode()
        if token != self.token:
            return 401, b"no token"
        try:
            with open(os.path.join(self.root, path.partition("?")[0].removeprefix("/repo.git/")), "rb") as f:
                return 200, f.read()
        except OSError:
            return 404, b"no such file"

    def credentials(self, number):
        headers = {k.lower(): v for k, v in self.seen[number][2].items()}
        return {k: headers[k] for k in ("authorization", "x-api-key", "private-token") if k in headers}


class Setting:
    def __init__(self, t, providers, **more):
        self.t = t
        self.errand = Errand(t)
        self.upstream = Provider(t)
        self.path = t.path("errand.json")
        self.errand.environment["ERRAND_CONFIG"] = self.path
        self.write(providers, **more)
        with open(os.path.join(self.errand.project, "caller.py"), "w", encoding="ascii") as f:
            f.write(CALLER)

    def write(self, providers, **more):
        config = {"agent": {"providers": {name: {"baseUrl": self.upstream.url, "credential": KEY, **p} for name, p in providers.items()}},
                  "sandbox": {"egress": {"allow": ["a.example"], "allowInternal": ["127.0.0.1"]}}, **more}
        with open(self.path, "w", encoding="ascii") as f:
            json.dump(config, f)
        os.chmod(self.path, 0o600)

    def run(self, *arguments, options=()):
        return self.errand.good("run", "--embedded", *options, "--", "/usr/bin/python3", "caller.py", *arguments).splitlines()


@case("S089 S093 C185: each placement of the configuration: the key goes where it says, the stand-in stays")
def _(t):
    basic = "Basic " + base64.b64encode(f"oauth2:{KEY}".encode()).decode()
    default = "Basic " + base64.b64encode(f"x-access-token:{KEY}".encode()).decode()
    rows = [("a", {"kind": "anthropic"}, "x-api-key", {"x-api-key": KEY}), ("o", {"kind": "openai"}, "bearer", {"authorization": f"Bearer {KEY}"}),
            ("e", {}, "x-api-key", {"authorization": f"Bearer {KEY}", "x-api-key": KEY}), ("f", {}, "bearer", {"authorization": f"Bearer {KEY}"}),
            ("g", {"placement": "basic", "user": "oauth2"}, "basic", {"authorization": basic}), ("h", {"placement": "basic"}, "basic", {"authorization": default}),
            ("p", {"header": "PRIVATE-TOKEN"}, "private-token", {"private-token": KEY})]
    s = Setting(t, {name: members for name, members, _, _ in rows})
    for i, (name, _, header, expected) in enumerate(rows):
        (line,) = s.run(name, header, "GET /x")
        t.equal(line[:3], "200", f"status of {name}")
        t.equal(s.upstream.credentials(i), expected, f"credentials of {name}")
    t.check(s.run("a", "bearer", "GET /x")[0].startswith("401 "), "kind anthropic takes a bearer token")
    t.equal(len(s.upstream.seen), len(rows), "calls")


@case("S050 S051 S101 S102 S115: a strict list holds a session, also after the configuration was read again; then the next one has the new list")
def _(t):
    strict = {"kind": "openai", "capabilities": [{"method": "POST", "path": "/v1/messages"}, {"method": "GET", "path": "/files/**"}], "strictCapabilities": True}
    s = Setting(t, {"p": strict})
    calls = ["POST /v1/messages?beta=true", "GET /files/a/b", "GET /v1/messages"]
    lines = s.run("p", "bearer", *calls)
    t.equal([line[:3] for line in lines], ["200", "200", "403"], "statuses")
    t.contains(lines[2], "POST /v1/messages, GET /files/**", "sentence")
    waiting = s.errand.start("run", "--embedded", "--id", "w1", "--", "/usr/bin/python3", "-c", "import sys; sys.stdin.readline(); exec(open('caller.py').read())",
                             "p", "bearer", *calls)
    wait_for(lambda: s.errand.state_of("w1") == "running")
    s.write({"p": {**strict, "capabilities": "*"}, "new": {"kind": "openai"}})
    s.errand.good("reload", "--embedded")
    t.equal([line[:3] for line in s.run("p", "bearer", *calls)], ["200"] * 3, "statuses of a session that started after it")
    t.equal([line[:3] for line in s.run("new", "bearer", "GET /")], ["200"], "status of a new provider")
    out, _ = waiting.communicate(b"go\n")
    t.equal([line[:3] for line in out.decode().splitlines()], ["200", "200", "403"], "statuses of the session that ran already")
    t.equal(len(s.upstream.seen), 8, "calls")


@case("budgets: requests and tokens of a session count over its runs, also with another errandd; another session begins anew")
def _(t):
    s = Setting(t, {"p": {"kind": "openai", "budgets": {"requests": 3}}, "q": {"kind": "openai"}}, budgets={"tokens": 45})
    t.equal([line[:3] for line in s.run("p", "bearer", "GET /1", "GET /2", options=("--id", "s1"))], ["200", "200"], "statuses")
    s.errand.end_daemon()

    def again(session, *arguments):
        before = len(s.errand.good("session", "logs", session, "--embedded"))
        s.errand.good("session", "start", session, "--embedded")
        s.errand.await_state(session, "stopped")
        return s.errand.good("session", "logs", session, "--embedded")[before:].splitlines()

    # One call is left for the first of the two, and then none.
    lines = [line for line in again("s1") if line[:1] in "0123456789"]
    t.equal([line[:3] for line in lines], ["200", "403"], "statuses of the second run")
    t.contains(lines[1], "has spent its budget of 3 requests for provider p", "sentence")
    t.equal([line[:3] for line in s.run("p", "bearer", "GET /1", options=("--id", "s2"))], ["200"], "status of another session")
    lines = s.run("q", "bearer", *[f"GET /{i}" for i in range(6)], options=("--id", "s3"))
    t.equal([line[:3] for line in lines], ["200"] * 5 + ["403"], "statuses by tokens: five times ten are beyond 45")
    t.contains(lines[5], "45 tokens", "sentence")


@case("C168 C185: git clones from a host that wants a token, by the route with the stand-in; the token is nowhere in the session")
def _(t):
    s = Setting(t, {"forge": {"placement": "basic", "user": "oauth2"}})
    root = t.path("forge")
    with open(t.path("gitconfig"), "w", encoding="ascii"):
        pass
    environment = {"PATH": os.environ["PATH"], "HOME": t.directory, "GIT_CONFIG_GLOBAL": t.path("gitconfig"), "GIT_CONFIG_NOSYSTEM": "1",
                   **{f"GIT_{who}_{what}": "a@b.example" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}}
    for command in (["init", "-q", root], ["-C", root, "commit", "-q", "--allow-empty", "-m", "CONTENTMARK"], ["-C", root, "update-server-info"]):
        subprocess.run(["git", *command], check=True, env=environment)
    s.upstream.serve(os.path.join(root, ".git"), "Basic " + base64.b64encode(f"oauth2:{KEY}".encode()).decode())
    script = 'u=${ERRAND_PROVIDER_FORGE_URL#http://}; git clone -q "http://x:$FORGE_API_KEY@$u/repo.git" clone && git -C clone log --format=%s; env; cat clone/.git/config'
    out = s.errand.good("run", "--embedded", "--", "/bin/sh", "-c", script)
    t.equal(out.splitlines()[0], "CONTENTMARK", "log of the clone")
    for secret in (KEY, base64.b64encode(f"oauth2:{KEY}".encode()).decode()):
        t.lacks(out, secret, "what the session has")
    t.check(any(path.startswith("/repo.git/info/refs?service=") for _, path, _ in s.upstream.seen), "git has not asked")


@case("S128 S129 S130: the thread is told of a refused host in the words for it, once; the report does not claim gaps that are none")
def _(t):
    s = Setting(t, {"p": {"kind": "openai", "strictCapabilities": True, "capabilities": "*", "budgets": {"bytes": "1m"}}, "r": {"broker": False}})
    report = s.errand.good("report", "--embedded")
    for words in ("capabilities", "budget", "server names", "x-api-key"):
        t.lacks(report, words, "report")
    t.contains(report, "HOLD the real keys of providers that are not brokered: r", "report")
    code = "import socket, os, sys; from urllib.parse import urlsplit as u; p = u(os.environ['https_proxy']); import base64\n" \
           "sys.stdin.readline()\n" \
           "for _ in range(5):\n c = socket.create_connection((p.hostname, p.port)); a = base64.b64encode(f'errand:{p.password}'.encode()).decode()\n" \
           " c.sendall(f'CONNECT b.example:443 HTTP/1.1\\r\\nHost: b.example:443\\r\\nProxy-Authorization: Basic {a}\\r\\n\\r\\n'.encode()); c.recv(99)\n"
    process = s.errand.start("run", "--embedded", "--id", "n1", "--", "/usr/bin/python3", "-c", code)
    s.errand.await_state("n1", "running")
    bus = Connection(os.path.join(s.errand.state, ".run/bus"))
    t.defer(bus.close)
    bus.call("/org/errand1", "org.errand1.Manager", "Subscribe")
    process.stdin.write(b"go\n")
    process.stdin.flush()
    notice = bus.signal("Notice", lambda m: m["body"][0] == "egress")
    t.equal(notice["body"][1], "this session tried to reach `b.example`, which is not on the egress allowlist or granted. `!grant b.example` lets its next "
            "connection through, and `!grant b.example 10m` or `!grant b.example always` lets it through for longer", "notice")
    _, error = process.communicate()
    t.equal(process.returncode, 0, "exit code")
    t.equal(error.decode().count("errand grant n1 b.example"), 1, "how often errand tells it")
    t.lacks(error.decode(), "!grant", "what errand tells")


if __name__ == "__main__":
    run()
