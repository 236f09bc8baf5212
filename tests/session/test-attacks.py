#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What hostile accounts, projects and sessions try on errandd --embedded and the command: planted directories, names and links."""

import json
import os
import pwd
import socket
import threading

from errand_command import Errand
from errand_test import case, run

NOT_PERMITTED, NOT_SET_UP = 4, 125


def as_payload(path):
    """Owned, as the project is, by whom sessions run as."""
    if os.getuid() == 0:
        nobody = pwd.getpwnam("nobody")
        os.lchown(path, nobody.pw_uid, nobody.pw_gid)
    return path


def folder(errand, *parts):
    os.mkdir(path := errand.t.path(*parts))
    return as_payload(path)


class Listener:
    """A socket of this account's own that notes whether anybody came."""

    def __init__(self, t, path):
        self.came = 0
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.bind(path)
        self.socket.listen()
        threading.Thread(target=self._serve, daemon=True).start()
        t.defer(self.socket.close)

    def _serve(self):
        try:
            while True:
                connection = self.socket.accept()[0]
                self.came += 1  # before the other side is let go
                connection.close()
        except OSError:
            pass


@case("T: the command says nothing in a runtime directory that others may write to, where its socket may be a link to any other")
def _(t):
    errand = Errand(t)
    runtime = t.path("state", ".run")
    os.makedirs(runtime)
    listener = Listener(t, t.path("other.sock"))
    os.symlink(t.path("other.sock"), os.path.join(runtime, "bus"))

    def check(refused):
        code, _, error = errand.run("report", "--no-start")
        t.equal("others may write to it" in error, refused, error)
        t.equal(listener.came > 0, not refused, "whether the socket was connected to")
        return code
    os.chmod(runtime, 0o777)
    t.equal(check(True), NOT_PERMITTED, "the exit code")
    if os.getuid() == 0:
        os.chmod(runtime, 0o700)
        os.chown(runtime, 65534, 65534)
        check(True)
        os.chown(runtime, 0, 0)
    os.chmod(runtime, 0o700)
    check(False)  # the same link, and nobody else who could have made it


@case("T: a project that was moved away for a link is not followed to where the link leads")
def _(t):
    errand = Errand(t)
    outer, other = folder(errand, "outer"), folder(errand, "other")
    inner = folder(errand, "outer", "inner")
    with open(os.path.join(other, "private"), "w", encoding="ascii") as f:
        f.write("a secret\n")
    t.equal(errand.run("run", "--id", "inner", "--project", inner, "sh", "-c", "cat private")[0], 1, "without the file")
    # Another session, whose project is around that one.
    errand.good("run", "--project", outer, "sh", "-c", f"mv inner away && ln -s {other} inner")
    errand.end_daemon()  # which held the directory
    code, _, error = errand.run("session", "start", "inner")
    t.check(code != 0, "it was started")
    t.contains(error, "symbolic link", "what is said")
    t.lacks(errand.run("session", "log", "inner")[1], "a secret", "the transcript")


@case("T: no session is started where it reaches the configuration, a key's file or errand's state, by its project or by policyExtra")
def _(t):
    errand = Errand(t)
    keys, config = folder(errand, "keys"), folder(errand, "config")
    with open(key := os.path.join(keys, "key"), "w", encoding="ascii") as f:
        f.write("sk-real-0123456789\n")
    os.chmod(key, 0o600)
    os.symlink(keys, t.path("link"))

    def check(row):
        project, extra, part = row
        value = {"agent": {"providers": {"anthropic": {"baseUrl": "https://192.0.2.1", "credential": {"file": key}}}},
                 "sandbox": {"policyExtra": extra}}
        with open(path := os.path.join(config, "errand.json"), "w", encoding="ascii") as f:
            json.dump(value, f)
        os.chmod(path, 0o600)
        code, out, error = errand.run("run", "--config", path, "--project", project, "sh", "-c", "echo ran")
        errand.end_daemon()
        if part:
            t.equal((code, out), (NOT_SET_UP, ""), f"code and output of {row}")
            t.contains(error, part, "what is said")
        else:
            t.equal((code, out), (0, "ran\n"), f"code and output of {row}: {error}")
    t.each([(errand.project, {}, None), (config, {}, "errand's configuration"), (keys, {}, "a key's file"),
            (errand.project, {"read": [keys]}, "a key's file"), (errand.project, {"read": [t.path("link")]}, "a key's file"),
            (errand.project, {"write": [config]}, "errand's configuration"),
            (errand.project, {"execute": [t.path("state")]}, "may not reach the records"),
            (errand.project, {"read": [t.path()]}, "may not reach the records")], check)


@case("T: a project's name makes no line of its own where an error is told")
def _(t):
    errand = Errand(t)
    project = folder(errand, "a\nerrand: all is well\x1b[2J")
    code, out, error = errand.run("run", "--embedded", "--project", project, "true")
    t.equal((code, out), (NOT_SET_UP, ""), "code and output")
    t.check(error.count("\n") == 1 and "\x1b" not in error, f"what is said: {error!r}")
    code, _, error = errand.run("run", "--embedded", "--provider", "a\u202eb", "true")
    t.contains(error, "a\\u{202e}b", "what is said")


@case("T: a start that fails half-way lets go of the caller's pipes, so that who reads them is not kept waiting")
def _(t):
    errand = Errand(t)
    other = errand.start("run", "sh", "-c", "echo ready; read x")  # for as long as it runs errandd does not leave
    t.equal(other.stdout.readline(), b"ready\n")
    # Where the shim would listen stands what it cannot replace, at the last step of the launch.
    sockets = next(path for path, _, names in os.walk(t.path("state", ".run", "embedded-shim")) if names)
    os.makedirs(os.path.join(sockets, "again", "x"))
    process = errand.start("run", "--id", "again", "echo", "ran")
    out, error = process.communicate(timeout=20)  # to the end of its output, not of itself
    t.equal((process.returncode, out), (NOT_SET_UP, b""), "code and output")
    t.contains(error.decode(), "the shim cannot set up its socket", "what is said")
    t.equal(other.communicate(b"\n")[0], b"", "the other's output")


@case("T: a record that was not finished when errandd was killed does not keep its id; what one holds is set aside")
def _(t):
    errand = Errand(t)
    errand.good("run", "true")
    errand.end_daemon()
    records = t.path("state", ".records")
    for name in ("empty", "begun", "more"):
        os.mkdir(os.path.join(records, name), 0o700)
    for name in (".session.json.new", "../more/transcript"):
        with open(os.path.join(records, "begun", name), "x", encoding="ascii"):
            pass
    t.equal(errand.good("run", "--id", "empty", "echo", "one"), "one\n")
    t.equal(errand.good("run", "--id", "begun", "echo", "two"), "two\n")
    t.equal(errand.good("run", "--id", "more", "echo", "three"), "three\n")
    t.equal(os.listdir(t.path("state", ".damaged", "more-1", "record")), ["transcript"])


@case("S022 T: a session that was made under a configuration is not started again under another, which may allow more")
def _(t):
    errand = Errand(t)
    config = os.path.join(folder(errand, "config"), "errand.json")
    with open(config, "w", encoding="ascii") as f:
        json.dump({"sandbox": {"egress": {"allow": []}}}, f)
    errand.good("run", "--config", config, "--id", "narrow", "true")
    errand.good("run", "--config", config, "--id", "again", "true")
    errand.end_daemon()
    code, _, error = errand.run("session", "start", "narrow")
    t.check(code not in (0, NOT_PERMITTED), f"the code without the configuration: {code}")
    t.contains(error, f"made with the configuration {config}", "what is said")
    errand.end_daemon()
    errand.good("session", "start", "--config", config, "again")


if os.getuid() == 0:
    @case("T: --user counts for its own session, whatever the errandd that runs was started with")
    def _(t):
        errand = Errand(t)
        first, second = "65534", str(61000)
        project = folder(errand, "open")
        os.chmod(project, 0o777)
        os.chmod(t.directory, 0o755)
        t.equal(errand.good("run", "--project", project, "--account", first, "id", "-u"), first + "\n", "the first")
        t.equal(errand.good("run", "--project", project, "--account", second, "id", "-u"), second + "\n", "the second")
        t.equal(errand.run("run", "--project", project, "--account", "root", "id", "-u")[:2], (NOT_SET_UP, ""), "root")
        t.equal(errand.run("run", "--project", project, "--account", "nosuchaccount", "id", "-u")[:2], (NOT_SET_UP, ""), "none")

run()
