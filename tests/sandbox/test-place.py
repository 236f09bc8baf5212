#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a supervisor hands bailey by descriptor: the working directory, the policy, the target's standard error, a terminal's size."""

import array
import json
import os
import socket

from bailey import NOT_EXECUTABLE, NOT_FOUND, NOT_RUN, check, main


def lines(r):
    return r.out.splitlines()


def said(r, *expected):
    check(lines(r) == list(expected), r)


class Closed:
    """ROOT/closed/project, with `closed` open to nobody: an account can be in the project and cannot go there."""

    def __init__(self, w):
        self.w = w
        w.mkdir("closed/project/part")
        w.mkdir("closed/other")
        w.write("closed/project/file", "text\n")
        w.write("closed/project/part/file", "part\n")
        w.write("closed/project/deny", "SECRET\n")
        w.write("closed/other/file", "SECRET\n")
        w.write("closed/project/agent", "#!/bin/sh\npwd\ncat file\n", 0o755)
        self.path = w.path("closed/project")
        self.fd = os.open(self.path, os.O_PATH | os.O_DIRECTORY)
        os.chown(w.path("closed"), 0 if w.as_root else -1, -1)
        os.chmod(w.path("closed"), 0o700 if w.as_root else 0)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.fd)
        os.chmod(self.w.path("closed"), 0o700)

    def call(self, *args, policy, **more):
        return self.w.call("run", "--config", self.w.policy(policy), *args, preexec_fn=lambda: os.fchdir(self.fd), **more)


def closed_project(w):
    with Closed(w) as c:
        r = w.call("run", "--config", w.policy(f'[filesystem]\nread = ["{c.path}"]\n'), "cat", f"{c.path}/file")
        check(r.status == 1 and "Permission denied" in r.err, r)  # by name nothing leads there
        policy = (f'[filesystem]\nread = ["{c.path}", "{w.path("closed/other")}"]\nwrite = ["{c.path}"]\n'
                  f'read_only = ["{c.path}/part"]\ndeny = ["{c.path}/deny"]\n')
        r = c.call("sh", "-c", f'pwd; cat file part/file {c.path}/file; echo x >new && echo made; (echo x >part/new) 2>/dev/null || echo held;'
                   'cat deny 2>/dev/null || echo denied; cat ../other/file 2>/dev/null || echo closed; ls ..', policy=policy)
        said(r, c.path, "text", "part", "text", "made", "held", "denied", "closed", "project")
        check("other" in r.err and "the grant is skipped" in r.err, r)
    check(w.read("closed/project/new") == "x\n", "the project's own file")


def closed_target(w):
    with Closed(w) as c:
        policy = f'[filesystem]\nread = ["{c.path}"]\nexecute = ["{c.path}"]\n'
        for target in ("./agent", f"{c.path}/agent"):
            said(c.call(target, policy=policy), c.path, "text")


def closed_links(w):
    w.mkdir("closed/project/real")
    w.write("closed/project/real/file", "text\n")
    w.link("real", "closed/project/relative")
    w.link(w.path("closed/project/real"), "closed/project/absolute")
    with Closed(w) as c:
        r = c.call("cat", "relative/file", "absolute/file", policy=f'[filesystem]\nread = ["{c.path}/relative", "{c.path}/absolute"]\n')
        said(r, "text", "text")


def policy_by_descriptor(w):
    w.write("W/file", "text\n")
    w.mkdir("shut")
    w.write("shut/policy", f'[filesystem]\nread = ["{w.work}"]\n')
    fd = os.open(w.path("shut/policy"), os.O_RDONLY)
    os.chown(w.path("shut"), 0 if w.as_root else -1, -1)
    os.chmod(w.path("shut"), 0o700 if w.as_root else 0)

    def in_memory(text):
        descriptor = os.memfd_create("policy")
        os.write(descriptor, text.encode())
        return descriptor
    memory = in_memory(f'[filesystem]\nread = ["{w.work}"]\n')
    relative = in_memory('[filesystem]\nread = ["relative"]\n')
    for given in (fd, memory):  # the second has no name at all, and stands at its end
        r = w.call("run", "--config", f"/proc/self/fd/{given}", "sh", "-c", f"cat file; [ -e /proc/self/fd/{given} ]; echo $?", pass_fds=[given])
        said(r, "text", "1")
    r = w.call("run", "--config", f"/proc/self/fd/{relative}", "true", pass_fds=[relative])
    check(r.status == NOT_RUN and "write an absolute path" in r.err, r)
    r = w.call("run", "--config", "/proc/self/fd/99", "true")
    check(r.status == NOT_RUN and "cannot be read" in r.err, r)
    os.chmod(w.path("shut"), 0o700)
    for descriptor in (fd, memory, relative):
        os.close(descriptor)


def own_messages_apart(w):
    read, write = os.pipe()
    r = w.call("run", "--json", "--stderr-fd", str(write), "sh", "-c", f"echo out; echo error >&2; [ -e /proc/self/fd/{write} ]; echo $?", pass_fds=[write])
    os.close(write)
    said(r, "out", "1")
    check(os.read(read, 100) == b"error\n" and os.read(read, 100) == b"", "the target's standard error")
    check("signal" not in json.loads(r.err) and json.loads(r.err)["status"] == 0, r)
    os.close(read)
    r = w.run(None, "kill -KILL $$", "--json")
    check(json.loads(r.err)["signal"] == 9, r)


def sized_terminal(w):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    r = w.call("run", "--console-socket", str(theirs.fileno()), "--console-size", "33x111", "sh", "-c", "stty size; stty size", pass_fds=[theirs.fileno()])
    check(r.status == 0, r)
    message, control, _, _ = ours.recvmsg(4096, socket.CMSG_SPACE(4))
    master = array.array("i", control[0][2])[0]
    check(os.read(master, 4096) == b"33 111\r\n33 111\r\n", message)
    os.close(master)
    for wrong in ("33", "33x", "x111", "33x70000", "-1x2", "33x111x"):
        r = w.call("run", "--console-size", wrong, "true")
        check(r.status == NOT_RUN and "wants ROWSxCOLUMNS" in r.err, r)


def not_started(w):
    w.write("W/no-interpreter", "#!/nonexistent/interpreter\n", 0o755)
    w.write("W/not-a-program", "\0\1\2", 0o755)
    for target, status in (("./no-interpreter", NOT_FOUND), ("./not-a-program", NOT_EXECUTABLE), ("./missing", NOT_FOUND)):
        r = w.call("run", "--json", "--config", w.policy('[filesystem]\nread = ["."]\nexecute = ["."]\n'), target)
        check(r.status == status and "{" not in r.err, r)


main([
    ("C019 T020: a project below a closed directory is entered and granted by what it is, and nothing beside it", closed_project),
    ("C019: a target in such a project runs, by either name", closed_target),
    ("C018: links in such a project lead on", closed_links),
    ("C058 C056: a policy handed over as a descriptor, with a closed name and with none", policy_by_descriptor),
    ("C056: the target's standard error apart from bailey's own messages", own_messages_apart),
    ("C054: a terminal has its size before the target runs", sized_terminal),
    ("a target that cannot be executed: 126 and 127, also when that shows inside", not_started),
])
