# SPDX-License-Identifier: LGPL-2.1-or-later
"""Servers on the internet side as real clients want them: HTTPS whose handler the test writes, and sshd. And errand, set up to reach them."""

import contextlib
import http.server
import os
import pwd
import shutil
import ssl
import subprocess
import threading

from errand_run import Errand
from errand_test import Failure, source
from errand_world import world

CA = source("tests/peers/ca/ca.pem")


def payload():
    """Never root: as root the account behind sudo, else nobody."""
    if os.getuid() != 0:
        return pwd.getpwuid(os.getuid())
    behind = int(os.environ.get("SUDO_UID") or 0)
    return pwd.getpwuid(behind) if behind else pwd.getpwnam("nobody")


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        self.server.lines.append(format % args)

    def answer(self, body, status=200, kind="application/json"):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class Site(http.server.ThreadingHTTPServer):
    """HTTPS on the internet side. handler: a subclass of Handler; `lines` is its log."""

    def __init__(self, t, address, port, handler):
        super().__init__((address, port), handler, bind_and_activate=False)
        self.lines = []
        self.socket.close()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(source("tests/peers/ca/server.pem"), source("tests/peers/ca/server-key.pem"))
        # A client that goes within a handshake must not stop the others: it is made in the connection's own thread.
        self.context = context
        self.socket = world().internet.listen(address, port)
        self.thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        self.thread.start()
        t.defer(self.stop)
        t.log(f"the site {address}:{port}", lambda: "\n".join(self.lines))

    def finish_request(self, request, client_address):
        with contextlib.suppress(OSError):  # ssl.SSLError among them
            with self.context.wrap_socket(request, server_side=True) as tls:
                super().finish_request(tls, client_address)

    def handle_error(self, request, client_address):
        pass

    def stop(self):
        self.shutdown()
        self.thread.join()
        self.server_close()


class Sshd:
    """sshd on the internet side, for the test's own account and the keys that it makes in `directory`: "client" is let in."""

    def __init__(self, t, address, directory):
        self.user = pwd.getpwuid(os.getuid()).pw_name
        for name in ("host", "client"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", name, "-f", os.path.join(directory, name)], check=True)
        shutil.copy(os.path.join(directory, "client.pub"), os.path.join(directory, "authorized"))
        with open(os.path.join(directory, "host.pub"), encoding="ascii") as f:
            self.host_key = " ".join(f.read().split()[:2])
        config = os.path.join(directory, "sshd_config")
        with open(config, "w", encoding="ascii") as f:
            f.write(f"ListenAddress {address}:22\nHostKey {directory}/host\nAuthorizedKeysFile {directory}/authorized\nPidFile none\n"
                    "UsePAM no\nStrictModes no\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nLogLevel VERBOSE\n")
        if os.getuid() == 0:
            os.makedirs("/run/sshd", 0o755, exist_ok=True)  # and it stays: another test's sshd may be about to go there
        self.lines = []
        with world().internet.inside():
            self.process = subprocess.Popen([shutil.which("sshd", path="/usr/sbin:/usr/local/sbin") or "sshd", "-D", "-e", "-f", config],
                                            stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        t.defer(self.stop)
        t.log("sshd", lambda: "\n".join(self.lines))
        for line in self.process.stderr:
            self.lines.append(line.rstrip())
            if "Server listening" in line:
                break
        else:
            raise Failure(f"sshd has not started: {self.lines}")
        self.reader = threading.Thread(target=lambda: self.lines.extend(line.rstrip() for line in self.process.stderr), daemon=True)
        self.reader.start()

    def stop(self):
        self.process.terminate()
        self.process.wait()
        self.reader.join()


class Client:
    """A session's project, and errand with a configuration that lets it reach `allow`. What a client needs to trust the sites is in the session's variables."""

    def __init__(self, t, allow, ports=(443,), providers=None, env=None):
        self.t = t
        self.account = payload()
        self.project = t.path("project")
        os.mkdir(self.project)
        self.give(self.project)
        self.ca = self.file("ca.pem", open(CA, encoding="ascii").read())  # pylint: disable=consider-using-with
        trust = {name: self.ca for name in ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "NODE_EXTRA_CA_CERTS")}
        # For a sanitized errand-connect: looking for leaks is tracing, which no sandbox allows.
        trust["ASAN_OPTIONS"] = "detect_leaks=0"
        config = {"agent": {"providers": providers or {}},
                  "sandbox": {"gracePeriodMs": 5000, "egress": {"allow": list(allow)}, "egressPorts": list(ports), "env": {**trust, **(env or {})}}}
        self.errand = Errand(t, config, project=self.project)
        self.number = 0

    def give(self, path):
        if os.getuid() == 0:
            os.chown(path, self.account.pw_uid, self.account.pw_gid)

    def file(self, name, text, mode=0o644):
        path = os.path.join(self.project, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        os.chmod(path, mode)
        self.give(path)
        return path

    def run(self, *command, seconds=30, **options):
        """Runs it in a session of its own; → CompletedProcess."""
        self.number += 1
        return self.errand.run("run", "--embedded", "--id", f"s{self.number}", *options.pop("options", ()), "--", *command, seconds=seconds, **options)

    def good(self, *command, **options):
        result = self.run(*command, **options)
        if result.returncode != 0:
            raise Failure(f"{' '.join(command)} has ended with {result.returncode}: {result.stdout}{result.stderr}")
        return result.stdout
