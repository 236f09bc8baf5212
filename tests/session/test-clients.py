#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ordinary clients in a session, as their users start them: each finds its way through the broker by itself, and says why when it is refused."""

import ctypes
import http.server
import os
import pwd
import subprocess
import time

import errand_world
from errand_site import Client, Handler, Site, Sshd
from errand_test import case, run
from errand_upstream import Peer

errand_world.enter()
world = errand_world.world()

REASON = "{host} is not on the egress allowlist or granted; its owner can run: errand grant {session} {host}"
QUICK = 15  # seconds: a refusal needs no waiting, only a busy machine does


class Hello(Handler):
    def do_GET(self):
        self.answer(b"hello\n", kind="text/plain")


def repository(t):
    """A bare repository with one commit, ready for the plainest of servers."""
    bare, work = t.path("repository.git"), t.path("work")
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.com", "-c", "init.defaultBranch=main"]
    environment = {"PATH": os.environ["PATH"], "HOME": t.directory, "GIT_CONFIG_NOSYSTEM": "1"}
    for command in ([*git, "init", "-q", work], [*git, "-C", work, "commit", "-q", "--allow-empty", "-m", "the first one"],
                    [*git, "clone", "-q", "--bare", work, bare], [*git, "-C", bare, "update-server-info"]):
        subprocess.run(command, check=True, env=environment)
    return bare


def refused(t, result, status, *parts):
    t.equal(result.returncode, status, f"exit status (it said {result.stderr!r})")
    for part in parts:
        t.contains(result.stderr, part, "what it says")


@case("S070 C171: curl over https reaches an allowed host and names the status of a refusal at once")
def curl(t):
    Site(t, "9.9.9.9", 443, Hello)
    client = Client(t, ["api.example.com"])
    t.equal(client.good("curl", "-sS", "-f", "https://api.example.com/"), "hello\n", "answer")
    started = time.monotonic()
    refused(t, client.run("curl", "-sS", "https://denied.example/"), 56, "403")
    t.check(time.monotonic() - started < QUICK, "the refusal is slow")
    t.contains(client.run("curl", "-sSv", "https://denied.example/").stderr, "not on the egress allowlist or granted", "curl -v")


@case("S070 C171: Python's urllib over https, and its refusal")
def urllib(t):
    Site(t, "9.9.9.9", 443, Hello)
    client = Client(t, ["api.example.com"])
    get = "import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1]).read())"
    t.equal(client.good("/usr/bin/python3", "-c", get, "https://api.example.com/"), "b'hello\\n'\n", "answer")
    refused(t, client.run("/usr/bin/python3", "-c", get, "https://denied.example/"), 1, "403 not on the egress allowlist or granted")


@case("C097: every proxy variable is http://, so that nobody fails who knows no SOCKS; C090: Node is told to look at them")
def variables(t):
    client = Client(t, [], env={"SOME": "thing"})
    lines = client.good("env").splitlines()
    proxies = [line for line in lines if line.lower().startswith(("http_proxy=", "https_proxy=", "all_proxy="))]
    t.equal(len(proxies), 6, "proxy variables")
    t.equal(len({line.partition("=")[2] for line in proxies}), 1, "different values")
    t.check(all("=http://errand:" in line for line in proxies), "one is not http://")
    t.contains(lines, "NODE_USE_ENV_PROXY=1", "variables")
    t.contains(lines, "SOME=thing", "variables")


@case("C090: what the configuration says of NODE_USE_ENV_PROXY stands")
def chosen(t):
    client = Client(t, [], env={"NODE_USE_ENV_PROXY": "0"})
    t.contains(client.good("env").splitlines(), "NODE_USE_ENV_PROXY=0", "variables")


@case("git over https clones from an allowed host, and names the status of a refusal")
def git_https(t):
    bare = repository(t)

    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *arguments):
            super().__init__(*arguments, directory=os.path.dirname(bare))

        def log_message(self, format, *args):  # pylint: disable=redefined-builtin
            self.server.lines.append(format % args)
    Site(t, "9.9.9.9", 443, Files)
    client = Client(t, ["api.example.com"])
    client.good("git", "clone", "-q", "https://api.example.com/repository.git", "copy")
    t.equal(client.good("git", "-C", "copy", "log", "--format=%s"), "the first one\n", "log")
    refused(t, client.run("git", "ls-remote", "https://denied.example/repository.git"), 128, "403")


LOCAL = """import http.server, socket, subprocess, sys, threading
class Both(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6
class Hello(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header('Content-Length', '6')
        self.end_headers()
        self.wfile.write(b'local\\n')
    def log_message(self, *a):
        pass
server = Both(('::', 8443), Hello)
threading.Thread(target=server.serve_forever, daemon=True).start()
for host in ('localhost', '127.0.0.1', '[::1]'):
    url = 'http://%s:%d/' % (host, server.server_port)
    get = 'import sys, urllib.request; sys.stdout.write(urllib.request.urlopen(sys.argv[1]).read().decode())'
    for command in (['curl', '-sS', '-g'], ['wget', '-q', '-O', '-'], ['/usr/bin/python3', '-c', get]):
        done = subprocess.run([*command, url], capture_output=True, text=True)
        print(command[0], host, done.stdout.strip() or done.stderr.splitlines()[-1])
"""


@case("C098: what listens in the session itself is reached without the proxy, in every spelling; the one client that cannot be told gets a 403")
def local(t):
    client = Client(t, ["*"], ports=(8443,))
    said = client.good("/usr/bin/python3", "-c", LOCAL).splitlines()
    t.equal(len(said), 9, f"answers in {said}")
    # Python's urllib alone wants brackets in no_proxy, on which others choke.
    unfit = "/usr/bin/python3 [::1] urllib.error.HTTPError: HTTP Error 403: not a public host"
    t.each(said, lambda line: t.check(line.endswith(" local") or line == unfit, line))


RELAY = """import base64, errno, os, socket, threading, urllib.parse
proxy = urllib.parse.urlsplit(os.environ['https_proxy'])
broker = (proxy.hostname, proxy.port)
login = base64.b64encode(f'{proxy.username}:{proxy.password}'.encode()).decode()
def carry(a, b):
    try:
        while data := a.recv(65536):
            b.sendall(data)
        b.shutdown(socket.SHUT_WR)
    except OSError:
        for s in (a, b):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
def relay(server):
    while True:
        c = server.accept()[0]
        s = socket.create_connection(broker)
        for pair in ((c, s), (s, c)):
            threading.Thread(target=carry, args=pair, daemon=True).start()
server = socket.create_server(('127.0.0.1', 9000))
threading.Thread(target=relay, args=(server,), daemon=True).start()
def ask(host, with_login=True):
    credential = f'Proxy-Authorization: Basic {login}\\r\\n' if with_login else ''
    return f'CONNECT {host}:443 HTTP/1.1\\r\\nHost: {host}:443\\r\\n{credential}\\r\\n'.encode()
def answers(address, *parts):
    with socket.create_connection(address) as c:
        c.settimeout(10)
        data = b''
        try:
            for n, part in enumerate(parts):
                c.sendall(part)
                if n + 1 < len(parts):
                    data += c.recv(65536)
            c.shutdown(socket.SHUT_WR)
            while more := c.recv(65536):
                data += more
        except OSError as e:  # refused, with more under way
            if e.errno not in (errno.ECONNRESET, errno.EPIPE, errno.ENOTCONN):
                raise
    return [line.split(b' ')[1].decode() for line in data.split(b'\\r\\n') if line.startswith(b'HTTP/1.1 ')]
denied, allowed = ask('denied.example'), ask('api.example.com')
for parts in ((denied,), (ask('denied.example', False),), (allowed, denied), (allowed + denied,), (denied, denied), (denied + denied,), (ask('denied.example', False), denied)):
    print(answers(broker, *parts), answers(('127.0.0.1', 9000), *parts), sep=' = ')
"""


@case("C070: what a relay inside sends on is judged as what comes directly")
def relayed(t):
    site = Site(t, "9.9.9.9", 443, Hello)
    client = Client(t, ["api.example.com"])
    said = [line.split(" = ") for line in client.good("/usr/bin/python3", "-c", RELAY).splitlines()]
    t.equal(len(said), 7, f"answers in {said}")
    t.equal(said[:3], [[answer] * 2 for answer in ("['403']", "['407']", "['200']")], "directly, and by a relay")
    # Behind an open tunnel it is no request of the broker's any more; to the server it is no TLS, and its reset may overtake the answer.
    t.each(said[3], lambda answers: t.check(answers in ("['200']", "[]"), f"behind an open tunnel: {answers}"))
    # What comes after a refusal may meet a closed connection; it is refused, however many times it is asked.
    t.each(sum(said[4:], []), lambda answers: t.lacks(answers, "200", "after a refusal"))
    t.check(not any("denied" in line for line in site.lines), f"the site saw {site.lines}")


@case("S003: a session runs the host's own programs; what it leaves is state, record and the project's files")
def own_programs(t):
    client = Client(t, [])
    numbers = "".join(f"{st.st_dev}:{st.st_ino}\n" for st in map(os.lstat, ("/usr/bin/git", "/usr/bin/python3")))
    t.equal(client.good("stat", "-c", "%d:%i", "/usr/bin/git", "/usr/bin/python3"), numbers, "device and inode")


class SshClient(Client):
    """With a key of its own and the server's, which its owner has put into the project."""

    def __init__(self, t, allow, ports=(22,)):
        keys = t.path("keys")
        os.mkdir(keys, 0o755)
        self.server = Sshd(t, "9.9.9.9", keys)
        os.chmod(keys, 0o755)
        project = t.path("project")
        super().__init__(t, allow, ports, env={"GIT_SSH_COMMAND": f"ssh -i {project}/key -o UserKnownHostsFile={project}/known"})
        with open(os.path.join(keys, "client"), encoding="ascii") as f:
            self.file("key", f.read(), 0o600)
        self.file("known", "".join(f"{name} {self.server.host_key}\n" for name in ("git.example", "9.9.9.9")))
        world.resolver.names["git.example"] = ["9.9.9.9"]

    def ssh(self, host, *command):
        return self.run("ssh", "-i", "key", "-o", f"UserKnownHostsFile={self.project}/known", "-o", "BatchMode=yes", f"{self.server.user}@{host}", *command)


@case("C089: git over ssh clones from a host that is allowed on port 22, without a word about a proxy in anybody's configuration")
def git_ssh(t):
    bare = repository(t)
    client = SshClient(t, ["git.example"])
    client.good("git", "clone", "-q", f"ssh://{client.server.user}@git.example{bare}", "copy")
    t.equal(client.good("git", "-C", "copy", "log", "--format=%s"), "the first one\n", "log")
    client.good("git", "-C", "copy", "fetch", "-q")
    refused(t, client.run("git", "ls-remote", f"{client.server.user}@denied.example:x"), 128,
            "errand-connect: denied.example port 22: " + REASON.format(host="denied.example", session="s4"))


@case("C089: ssh runs a command on an allowed host, passes bytes and ends; what it carries is not in an argument list")
def ssh(t):
    client = SshClient(t, ["git.example", "9.9.9.9"])
    result = client.ssh("git.example", "head -c 300000 /dev/zero | wc -c; exit 7")
    t.equal((result.returncode, result.stdout), (7, "300000\n"), "status and output")
    t.equal(client.ssh("9.9.9.9", "echo", "there").stdout, "there\n", "by address")
    watch = client.run("sh", "-c", "ssh -i key -o UserKnownHostsFile=$PWD/known -o BatchMode=yes $0@git.example sleep 60 & "
                       "until cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -q 'errand-connec[t] git.example 22'; do sleep 0.02; done; "
                       "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -c 'errand-sessio[n]-'; kill $!", client.server.user)
    t.equal(watch.stdout, "0\n", f"argument lists with the credential (it said {watch.stderr!r})")


@case("C089: a host or port that is not allowed, and one that does not answer, give ssh a sentence at once")
def ssh_refused(t):
    client = SshClient(t, ["git.example", "9.9.9.10", "nowhere.test"])
    started = time.monotonic()
    refused(t, client.ssh("denied.example"), 255, "errand-connect: denied.example port 22: " + REASON.format(host="denied.example", session="s1"))
    t.check(time.monotonic() - started < QUICK, "the refusal is slow")
    refused(t, client.run("ssh", "-p", "2222", "git.example"), 255, "errand-connect: git.example port 2222: this port is not one that sessions may reach")
    refused(t, client.ssh("9.9.9.10"), 255, "errand-connect: 9.9.9.10 port 22: upstream unreachable")
    refused(t, client.ssh("nowhere.test"), 255, "errand-connect: nowhere.test port 22: the name did not resolve")


@case("C089: ssh of Debian 13 works, whose configuration has a file of root's that a session sees as a stranger's")
def ssh_snippets(t):
    libc = ctypes.CDLL(None, use_errno=True)
    place = b"/etc/ssh/ssh_config.d"
    # In this program's own mount namespace. As an ordinary account the file is the session's own, which ssh takes; as root the session must not
    # be nobody's, whose number is that of all strangers.
    if os.getuid() == 0 and "SUDO_UID" not in os.environ:
        os.environ["SUDO_UID"] = str(pwd.getpwnam("daemon").pw_uid)
        t.defer(os.environ.pop, "SUDO_UID")
    t.equal(libc.mount(b"snippets", place, b"tmpfs", 0, None), 0, f"mount (errno {ctypes.get_errno()})")
    t.defer(libc.umount, place)
    with open("/etc/ssh/ssh_config.d/20-of-the-system.conf", "w", encoding="ascii") as f:
        f.write("Host none.example\n    Port 1\n")
    client = SshClient(t, ["git.example"])
    t.equal(client.ssh("git.example", "echo", "there").stdout, "there\n", "output")


@case("a server that is not known is not trusted for being allowed, and nothing of ssh's own goes through the proxy to this machine")
def ssh_trust(t):
    client = SshClient(t, ["git.example"])
    refused(t, client.run("ssh", "-o", "BatchMode=yes", "git.example"), 255, "Host key verification failed")
    for host in ("localhost", "127.0.0.1", "::1"):
        t.lacks(client.good("ssh", "-G", host), "proxycommand", f"ssh's configuration for {host}")
    t.contains(client.good("ssh", "-G", "git.example"), "proxycommand errand-connect %h %p", "ssh's configuration")


@case("the session's own .ssh/config is written once: what was made of it stays")
def own_config(t):
    client = Client(t, [])
    client.good("sh", "-c", "ls -ld ~/.ssh ~/.ssh/config; grep -q ProxyCommand ~/.ssh/config && echo '# mine' > ~/.ssh/config")
    client.errand.good("session start", "s1")
    path = os.path.join(client.errand.state, "s1/state/home/.ssh/config")
    with open(path, encoding="ascii") as f:
        text = f.read()
    st = os.stat(path)
    t.equal((st.st_mode & 0o777, st.st_uid), (0o600, client.account.pw_uid), "mode and owner")
    t.note(text)


@case("errand-connect: half-close, bytes of all kinds, and what it says when it cannot")
def connect(t):
    peer = Peer(t, "9.9.9.9", 443)
    client = Client(t, ["api.example.com"])
    process = client.errand.start("errand-connect", "api.example.com", "443", options=("--id", "half"), text=False)
    far = peer.accept()
    far.send(b"\x00\xff early")
    sent = bytes(range(256)) * 1000
    process.stdin.write(sent)
    process.stdin.close()
    t.equal(far.rest(), sent, "bytes up, to the half-close")
    far.send(b" late \r\n")
    far.close()
    t.equal(process.stdout.read(), b"\x00\xff early late \r\n", "bytes down after it")
    t.equal((process.wait(), process.stderr.read()), (0, b""), "exit status and what it says")

    def check(row):
        command, status, part = row
        refused(t, client.run("sh", "-c", command), status, part)
    t.each([("errand-connect", 2, "a host and a port are needed"), ("errand-connect a b c", 2, "a host and a port are needed"),
            ("errand-connect api.example.com https", 2, "is no host and port"), ("errand-connect 'a b' 22", 2, "is no host and port"),
            ("errand-connect -- -o 22", 1, "the host begins with '-'"), ("errand-connect '' 22", 2, "is no host and port"),
            ("errand-connect 10.0.0.5 443", 3, "10.0.0.5 port 443: not a public host"), ("errand-connect ::1 443", 3, "not a public host"),
            ("errand-connect denied.example 443", 3, "denied.example is not on the egress allowlist or granted"),
            ("https_proxy=http://errand:wrong@127.0.0.1:${https_proxy##*:} errand-connect api.example.com 443", 1, "does not take the credential"),
            ("https_proxy=http://127.0.0.1:1 errand-connect api.example.com 443", 1, "cannot be reached: Connection refused"),
            ("https_proxy=socks5h://127.0.0.1:1 errand-connect api.example.com 443", 2, "https_proxy cannot be used: it is no http:// address"),
            ("unset https_proxy HTTPS_PROXY all_proxy ALL_PROXY; errand-connect api.example.com 443", 2, "neither https_proxy nor all_proxy is set"),
            ], check)


if __name__ == "__main__":
    run()
