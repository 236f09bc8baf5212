#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""A bailey that was executed before there is a run for it, and is handed one."""

import array
import json
import os
import socket
import subprocess

from bailey import NOT_RUN, check, main

LIMIT = 1 << 20
SHADOW_MIN = 1 << 30  # bytes: what is larger is a sanitizer's note of which bytes may be used; it has no bytes of the program's


class Waiting:
    """One that waits, and what it is handed."""

    def __init__(self, w):
        self.w = w
        self.gate, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}
        self.process = subprocess.Popen([w.bailey, "--wait-fd", str(theirs.fileno())], pass_fds=[theirs.fileno()], env={}, cwd="/",
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **account)
        theirs.close()
        self.gate.settimeout(50)
        check(self.gate.recv(16) == b"\0", "that it waits")
        self.out, self.out_end = os.pipe()
        self.err, self.err_end = os.pipe()

    def message(self, **more):
        return {"v": 1, "type": "run", "arguments": ["bailey", "run", "--quiet", "--config", self.w.policy('[filesystem]\nread = ["."]\nexecute = ["."]\n'),
                                                     "sh", "-c", "pwd; echo $TERM; ulimit -c; ulimit -f; ls /proc/self/fd | wc -l"],
                "environment": ["PATH=/usr/bin:/bin", "TERM=mine", f"HOME={self.w.environment['HOME']}"], "fds": ["stdin", "stdout", "stderr", "project"], **more}

    def hand(self, message, fds=None, released=b"\0"):
        project, null = os.open(self.w.work, os.O_PATH | os.O_DIRECTORY), os.open("/dev/null", os.O_RDWR)
        text = message if isinstance(message, bytes) else json.dumps(message).encode()
        given = [null, self.out_end, self.err_end, project] if fds is None else fds(null)
        self.gate.sendmsg([text], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", given))] if given else [])
        os.close(project)
        os.close(null)
        try:
            if released is not None:
                self.gate.send(released)
        except BrokenPipeError:
            pass
        return self

    def end(self):
        """Status, and what it wrote: to what it was started with, and to what it was handed."""
        self.gate.close()
        os.close(self.out_end)
        os.close(self.err_end)
        with open(self.out, encoding="utf-8") as out, open(self.err, encoding="utf-8") as err:
            texts = out.read(), err.read()
        own = self.process.communicate(timeout=50)
        return self.process.returncode, own[0].decode() + own[1].decode(), *texts


def handed(w):
    waiting = Waiting(w)
    with open(f"/proc/{waiting.process.pid}/comm", encoding="ascii") as f:
        check(f.read() == "bailey-ahead\n", "what it is called")
    message = waiting.message(core=0, fileMax=LIMIT)
    status, own, out, err = waiting.hand(message).end()
    check((status, own, err) == (0, "", "") and out.split() == [w.work, "mine", "0", str(LIMIT // 512), "4"], (status, own, out, err))


def numbered(w):
    """A descriptor that the arguments name has its number, whatever is there before; of the others none is left."""
    waiting = Waiting(w)
    report, theirs = socket.socketpair()
    message = waiting.message(fds=["7", "stdin", "stdout", "stderr", "project"])
    message["arguments"][2:2] = ["--report-fd", "7"]
    project = os.open(w.work, os.O_PATH | os.O_DIRECTORY)
    status, own, out, err = waiting.hand(message, lambda null: [theirs.fileno(), null, waiting.out_end, waiting.err_end, project]).end()
    os.close(project)
    theirs.close()
    check(status == 0 and not own and out.split()[-1] == "4", (status, own, out, err))
    check(b'"gaps"' in report.recv(65536), "its report")


def not_released(w):
    for released in (None, b"/no/end", b""):
        waiting = Waiting(w)
        message = waiting.message()
        message["arguments"][-3:] = ["touch", os.path.join(w.work, "ran")]
        status, _, out, err = waiting.hand(message, released=released).end()
        check(status == NOT_RUN and not out + err and not os.path.exists(os.path.join(w.work, "ran")), (released, status, out, err))
    waiting = Waiting(w)
    check(waiting.end()[:2] == (NOT_RUN, ""), "without a word when nobody wants it")


def may_open(w, path):
    """Whether another process of its account may."""
    pid = os.fork()
    if pid == 0:
        if w.as_root:
            os.setgroups([])
            os.setresgid(w.gid, w.gid, w.gid)
            os.setresuid(w.uid, w.uid, w.uid)
        try:
            os.close(os.open(path, os.O_RDONLY))
            os._exit(0)
        except PermissionError:
            os._exit(1)
        except BaseException:  # pylint: disable=broad-exception-caught
            os._exit(2)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def hidden(w):
    """As its parent is: what it is handed are descriptors of a session that is not theirs."""
    waiting = Waiting(w)
    pid = waiting.process.pid
    message = waiting.message()
    for handed_over in (False, True):
        if handed_over:
            waiting.hand(message, released=None)
        check([may_open(w, f"/proc/{pid}/{name}") for name in ("environ", "mem", "fd")] == [1, 1, 1], handed_over)
    check(may_open(w, f"/proc/{pid}/comm") == 0, "what everybody may read")
    check(waiting.end()[0] == NOT_RUN, "not released")


def wiped(w):
    """What a run needs of it the first process has elsewhere."""
    waiting = Waiting(w)
    message = waiting.message()
    message["environment"].append("MARKER=not-for-the-session")
    message["arguments"][-3:] = ["sh", "-c", "echo $MARKER; exec sleep 100"]
    waiting.hand(message)
    check(os.read(waiting.out, 4096) == b"\n", "that it runs")
    outside = waiting.process.pid
    with open(f"/proc/{outside}/task/{outside}/children", encoding="ascii") as f:
        first = int(f.read())
    if os.getuid() == 0:  # nobody else may look
        check(found(outside, b"not-for-the-session") and not found(first, b"not-for-the-session"), "its variables")
    waiting.process.terminate()
    waiting.end()


def found(pid, text):
    """Whether that is in what the process may write."""
    with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, open(f"/proc/{pid}/mem", "rb", buffering=0) as memory:
        for line in maps:
            area, rights = line.split()[:2]
            if rights.startswith("rw"):
                begin, end = (int(n, 16) for n in area.split("-"))
                if end - begin > SHADOW_MIN:
                    continue
                memory.seek(begin)
                if text in memory.read(end - begin):
                    return True
    return False


def malformed(w):
    def without(message, name):
        return {key: value for key, value in message.items() if key != name}

    four = ["stdin", "stdout", "stderr", "project"]
    wrong = [lambda m: b"", lambda m: b"{", lambda m: b"[]", lambda m: json.dumps(m).encode() + b"x",
             lambda m: {**m, "v": 2}, lambda m: {**m, "type": "start"}, lambda m: {**m, "more": 1}, lambda m: without(m, "arguments"),
             lambda m: {**m, "arguments": "run"}, lambda m: {**m, "core": -1}, lambda m: {**m, "fds": four[:3]}, lambda m: {**m, "fds": four + ["7"]},
             lambda m: {**m, "fds": four[:3] + ["2"]}, lambda m: {**m, "fds": four[:3] + ["stdin"]}, lambda m: {**m, "fds": four[:3] + ["7"]},
             lambda m: {**m, "fds": four[:3] + ["2147483647"]}, lambda m: {**m, "fds": four[:3] + ["elsewhere"]},
             lambda m: json.dumps(m).encode()[:-1] + b',"fds":["7"]}', lambda m: json.dumps(m).encode()[:-1] + b',"core":1,"core":2}',
             lambda m: json.dumps({**m, "environment": []}).encode()[:-1] + b',"environment":["LD_PRELOAD=x"]}',
             *[lambda m, name=name: without(m, name) for name in ("v", "type", "environment", "fds")]]
    for make in wrong:
        waiting = Waiting(w)
        message = make(waiting.message())
        status, own, out, err = waiting.hand(message).end()
        check(status == NOT_RUN and not out + err, (message, status, own, out, err))
        check("What is to be run is not understood" in own or not message, (message, own))


def only_so(w):
    for words in (["--wait-fd"], ["--wait-fd", "1"], ["--wait-fd", "90"], ["--wait-fd", "x"], ["--wait-fd", "3", "run"]):
        r = w.call(*words)
        check(r.status == NOT_RUN and "--wait-fd" in r.err, r)


main([
    ("D003 C056: what it is handed is what it runs: arguments, environment, directory, limits, and no other descriptor", handed),
    ("C056: a descriptor comes to the number that the arguments name", numbered),
    ("D003: nothing runs before it is let go, nor when whoever would do that is gone", not_released),
    ("C056: while it waits no other process of its account looks into it", hidden),
    ("C060 C063: of what it is handed the first process keeps nothing that the run does not need", wiped),
    ("a message that is not understood runs nothing, and is told", malformed),
    ("--wait-fd with anything else is refused", only_so),
])
