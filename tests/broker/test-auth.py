# SPDX-License-Identifier: LGPL-2.1-or-later
"""Who may use a session's proxy."""

import base64
import os
import shutil
import subprocess
import urllib.request

import errand_world
from errand_broker import BROKER_UID, Broker, Provider, mint
from errand_http import basic
from errand_test import case, run
from errand_upstream import Upstream

errand_world.enter()
world = errand_world.world()


def wrong_credentials(broker):
    other = mint()
    right = broker.credential
    encoded = base64.b64encode(f"errand:{right}".encode()).decode()
    return [
        ("none", ""),
        ("another session's", f"Proxy-Authorization: {basic('errand', other)}\r\n"),
        ("another scheme", f"Proxy-Authorization: Bearer {right}\r\n"),
        ("no scheme", f"Proxy-Authorization: {right}\r\n"),
        ("no base64", "Proxy-Authorization: Basic !!!!\r\n"),
        ("broken base64", f"Proxy-Authorization: Basic {encoded[:-3]}\r\n"),
        ("not decoded", f"Proxy-Authorization: Basic errand:{right}\r\n"),
        ("empty", "Proxy-Authorization: Basic\r\n"),
        ("empty user and password", f"Proxy-Authorization: {basic('', '')}\r\n"),
        ("empty password", f"Proxy-Authorization: {basic('errand', '')}\r\n"),
        ("another user", f"Proxy-Authorization: {basic('root', right)}\r\n"),
        ("a prefix", f"Proxy-Authorization: {basic('errand', right[:-1])}\r\n"),
        ("one byte more", f"Proxy-Authorization: {basic('errand', right + '0')}\r\n"),
        ("a NUL after it", f"Proxy-Authorization: {basic('errand', right + chr(0))}\r\n"),
        ("8 KiB", f"Proxy-Authorization: {basic('errand', 'x' * 8192)}\r\n"),
        ("the origin's header", f"Authorization: {basic('errand', right)}\r\n"),
    ]


@case("S068 S069 C168: without the session's credential 407 and its challenge, before any lookup or connection")
def challenge(t):
    up = Upstream(t, "9.9.9.9:443", "9.9.9.9:80", certificate=None)
    broker = Broker(t).start(allow=["*"], ports=[80, 443])
    world.resolver.asked.clear()

    def check(row):
        for request in ("CONNECT never-asked.test:443 HTTP/1.1\r\nHost: never-asked.test:443\r\n",
                        "GET http://never-asked.test/ HTTP/1.1\r\nHost: never-asked.test\r\n",
                        "CONNECT 9.9.9.9:443 HTTP/1.1\r\nHost: 9.9.9.9:443\r\n"):
            answer = broker.ask(f"{request}{row[1]}\r\n")
            t.equal(answer.status, 407, "status")
            t.equal(answer.reason, "Proxy Authentication Required", "reason")
            t.equal(len(answer.all("Proxy-Authenticate")), 1, "number of challenges")
            t.matches(answer.get("Proxy-Authenticate"), r'^Basic realm="[^"]+"', "challenge")
    t.each(wrong_credentials(broker), check)
    t.equal(world.resolver.asked, [], "lookups")
    t.equal(up.accepts(), [], "upstream connections")


@case("C168: the connection is kept for the retry with the credential")
def retry(t):
    up = Upstream(t, "9.9.9.9:80", certificate=None)
    broker = Broker(t).start(allow=["api.example.com"], ports=[80])
    client = broker.connect()
    request = "GET http://api.example.com/status/200 HTTP/1.1\r\nHost: api.example.com\r\n"
    client.send(request + "\r\n")
    t.equal(client.answer().status, 407, "status")
    client.send(request + broker.auth + "\r\n")
    t.equal(client.answer().status, 200, "status")
    t.equal(up.accepts(), ["9.9.9.9:80"], "upstream connections")


@case("C168: the scheme's name is not case-sensitive, nor is the header's")
def spelling(t):
    Upstream(t, "9.9.9.9:80", certificate=None)
    broker = Broker(t).start(allow=["api.example.com"], ports=[80])
    value = basic("errand", broker.credential)[6:]
    for line in (f"proxy-authorization: basic {value}\r\n", f"PROXY-AUTHORIZATION:BASIC {value}\r\n"):
        answer = broker.ask(f"GET http://api.example.com/status/200 HTTP/1.1\r\nHost: api.example.com\r\n{line}\r\n")
        t.equal(answer.status, 200, "status")


@case("S045 C170: a credential or stand-in of one session is refused by another's broker")
def across(t):
    up = Upstream(t, "9.9.9.9:443")
    one = Broker(t, "one").start({"p": Provider()}, allow=["*"])
    two = Broker(t, "two").start({"p": Provider()}, allow=["*"])
    _, answer = two.open_tunnel("api.example.com:443", auth=one.auth)
    t.equal(answer.status, 407, "status")
    t.equal(two.call("p", auth=one.providers["p"].header).status, 401, "status")
    t.equal(up.accepts(), [], "upstream connections")
    t.equal(two.call("p").status, 200, "status")


@case("S072: who only finds the port cannot use it: not from the host, not from another session; nothing listens on the host")
def only_the_port(t):
    broker = Broker(t).start(allow=["*"])
    other = world.session()
    t.equal(broker.ask("GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n\r\n").status, 407, "status inside")
    for namespace in (world.host, other):
        for address in ("127.0.0.1", errand_world.HOST4):
            s = namespace.socket()
            try:
                s.connect((address, broker.port))
            except OSError:
                continue
            t.fail(f"{address} leads to the broker")
    for table in ("/proc/thread-self/net/tcp", "/proc/thread-self/net/tcp6"):
        with open(table, encoding="ascii") as f:
            listening = [line for line in f.readlines()[1:] if line.split()[3] == "0A"]
        t.equal(listening, [], "TCP listeners of the host")


@case("C169: no refusal, and no log line, repeats what was sent as a credential")
def no_echo(t):
    broker = Broker(t).start({"p": Provider()}, allow=["*"])
    marker = "marker-" + mint()
    for auth in (f"Proxy-Authorization: {basic('errand', marker)}\r\n", f"Proxy-Authorization: {marker}\r\n"):
        answer = broker.ask(f"GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n{auth}\r\n")
        t.lacks(answer.head.decode() + answer.text, marker, "answer")
    answer = broker.call("p", auth=f"Authorization: Bearer {marker}\r\n")
    t.equal(answer.status, 401, "status")
    for secret in (marker, basic("errand", marker)[6:], broker.credential, broker.providers["p"].stand_in, broker.providers["p"].key,
                   broker.token):
        t.lacks(answer.head.decode() + answer.text, secret, "answer")
        t.lacks(broker.log(), secret, "log")


@case("S070 C171: ordinary clients send the credential of the proxy variables by themselves")
def ordinary_clients(t):
    Upstream(t, "9.9.9.9:80", certificate=None)
    broker = Broker(t).start(allow=["api.example.com"], ports=[80])
    proxy = f"http://errand:{broker.credential}@127.0.0.1:{broker.port}"
    with broker.namespace.inside():
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy}))
        with opener.open("http://api.example.com/echo") as answer:
            t.equal(answer.status, 200, "status for urllib")
        for command in (["curl", "-sS", "-f", "http://api.example.com/echo"], ["wget", "-q", "-O", "-", "http://api.example.com/echo"]):
            if not shutil.which(command[0]):
                t.note(f"{command[0]} is not installed")
                continue
            result = subprocess.run(command, env={"http_proxy": proxy, "PATH": os.environ["PATH"]}, capture_output=True, check=False)
            t.equal((result.returncode, result.stderr), (0, b""), command[0])
            t.contains(result.stdout, b"GET /echo HTTP/1.1", f"{command[0]}'s answer")
            t.lacks(result.stdout.lower(), b"proxy-authorization", f"{command[0]}'s request upstream")


@case("C063: the holder of the keys cannot be dumped or read by its own account")
def not_dumpable(t):
    broker = Broker(t).start({"p": Provider()}, allow=["*"])
    uid = BROKER_UID if os.getuid() == 0 else os.getuid()
    # A process that is not dumpable has its files in /proc owned by root, whom a user namespace may show as 65534.
    t.check(uid == 65534 or os.stat(f"/proc/{broker.process.pid}/mem").st_uid != uid, "the broker's /proc entries belong to its account")
    probe = ("import sys\n"
             "for name in ('mem', 'environ', 'fd/0'):\n"
             "    try:\n"
             "        open(f'/proc/{sys.argv[1]}/{name}', 'rb').read(1)\n"
             "    except PermissionError:\n"
             "        continue\n"
             "    sys.exit(name)\n")
    command = ["/usr/bin/python3", "-c", probe, str(broker.process.pid)]
    if os.getuid() == 0:
        command = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", *command]
    else:
        command = ["setpriv", "--ambient-caps=-all", "--inh-caps=-all", *command]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    t.equal((result.returncode, result.stderr), (0, ""), "what its own account could open")


if __name__ == "__main__":
    run()
