#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""errand-launch as a service that its socket starts, with errandd coming and going."""

import os
import resource
import signal
import socket
import subprocess

import errand_launch
from errand_launch import Launcher, Watch, children, wait_for
from errand_test import case, run


def launcher_pid(launcher):
    """test-activate becomes it."""
    return launcher.process.pid


def log_has(launcher, text):
    wait_for(lambda: text in launcher.log_text())


# ---- who is served ----

@case("C204 T004: whoever connects is errandd, by its uid, or is closed with a line in the log")
def _(t):
    launcher = Launcher(t, listening=True)
    launcher.connect()
    t.equal(launcher.channel.request("nothing")["type"], "error", "errandd's own request")
    other = Launcher(t, listening=True, errandd=os.getuid() + 1)
    refused = other.connect()
    try:
        t.fail(f"another account is answered: {refused.request('probe')}")
    except (errand_launch.Ended, BrokenPipeError, ConnectionResetError):
        pass
    log_has(other, f"A connection of uid {os.getuid()} was refused: only errandd, uid {os.getuid() + 1}, may ask")
    if os.getuid() == 0:
        # The account of sessions, which the launcher itself runs as, is not errandd's.
        done = subprocess.run(["/usr/bin/python3", "-c", "import socket,sys\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\ns.connect(sys.argv[1])\n"
                               "try:\n    s.send(b'{\"v\":1,\"type\":\"probe\"}')\n    print(s.recv(100))\nexcept OSError as e:\n    print(e)",
                               os.path.join(launcher.root, "launch")], capture_output=True, text=True, check=False, cwd="/", **launcher.account)
        t.check("type" not in done.stdout and done.returncode == 0, done)
        log_has(launcher, f"A connection of uid {errand_launch.PAYLOAD} was refused")
    # Who is refused takes nobody's place.
    t.equal(launcher.channel.request("nothing")["type"], "error", "errandd's own request afterwards")


@case("C200 T004: errandd goes and comes back: sessions go on, and are stopped by the next one")
def _(t):
    launcher = Launcher(t, listening=True)
    launcher.connect()
    s = launcher.session("goeson", "sh", "-c", "echo begin; while read x; do echo said $x; done", interactive=True).launch()
    terminal = s.attach()
    terminal.until("begin")
    launcher.channel.close()
    terminal.type("still\n")
    terminal.until("said still")
    launcher.connect()
    t.equal(launcher.channel.request("adopt", session="goeson", shimSocket=s.socket_path)["type"], "ok", "adopt")
    t.equal(launcher.channel.request("stop", session="goeson", shimSocket=s.socket_path)["type"], "ok", "stop")
    last, gone = s.ended()
    t.equal((last["reason"], last["status"], gone["status"]), ("signal", 143, 0), "the end")


@case("C200: a second errandd takes the place of the first, which is closed")
def _(t):
    launcher = Launcher(t, listening=True)
    first = launcher.connect()
    s = launcher.session("first", "sleep", "1000").launch()
    second = launcher.connect()
    t.equal(second.request("adopt", session="first", shimSocket=s.socket_path)["type"], "ok", "the second")
    try:
        t.fail(f"the first is answered: {first.receive()}")
    except errand_launch.Ended:
        pass
    t.equal(second.request("stop", session="first", shimSocket=s.socket_path)["type"], "ok", "stop")
    s.ended()
    log_has(launcher, "Another errandd has connected")


@case("C200 C052: kill -9 of the launcher: its socket starts the next, which finds the session; who connected meanwhile is served")
def _(t):
    launcher = Launcher(t, listening=True)
    launcher.connect()
    s = launcher.session("found", "sleep", "1000").launch()
    s.started()
    launcher.kill()
    launcher.connect()
    launcher.channel.send({"v": 1, "type": "adopt", "serial": 1, "session": "found", "shimSocket": s.socket_path})
    launcher.start()
    t.equal(launcher.channel.reply(1)["type"], "ok", "adopt")
    launcher.channel.serial = 1
    t.equal(launcher.channel.request("stop", session="found", shimSocket=s.socket_path)["type"], "ok", "stop")
    last, gone = s.ended()
    t.equal((last["reason"], last["status"], gone["status"]), ("signal", 143, None), "the end")


@case("T004: it leaves when there is neither errandd nor a session, and not before")
def _(t):
    launcher = Launcher(t, listening=True, idle_ms=50)
    t.equal(launcher.process.wait(20), 0, "the status of one that nobody came to")
    launcher.idle_ms = 0
    launcher.connect()
    launcher.start()
    t.equal(launcher.channel.request("nothing")["type"], "error", "the answer to who came first")
    s = launcher.session("idle", "sh", "-c", "read x", interactive=True).launch()
    terminal = s.attach()
    watch = Watch(launcher.process.pid)
    launcher.channel.close()
    t.check(not watch.ended(0.3), "it left with a session there")
    terminal.type("\n")
    t.check(watch.ended(), "it stays with nothing to do")
    t.equal(launcher.process.wait(20), 0, "the status")
    t.equal(s.exited()["status"], 0, "the session's status")
    launcher.connect()  # first: one that nobody waits for leaves at once
    launcher.start()
    watch = Watch(launcher.process.pid)
    t.equal(launcher.channel.request("nothing")["type"], "error", "a request")
    t.check(not watch.ended(0.3), "it left with errandd there")


@case("T004: what is passed to it has to be one socket that listens")
def _(t):
    launcher = Launcher(t, listening=True)
    launcher.process.kill()
    launcher.process.wait()
    for kind, listens, text in ((socket.SOCK_SEQPACKET, False, "that listens"), (socket.SOCK_STREAM, True, "that listens")):
        sock = socket.socket(socket.AF_UNIX, kind)
        sock.bind(t.path(f"socket-{kind}"))
        if listens:
            sock.listen(1)
        launcher.listener.close()
        launcher.listener = sock
        launcher.start()
        t.equal(launcher.process.wait(20), 2, "the status")
        t.contains(launcher.log_text(), text, "the log")
    done = subprocess.run([errand_launch.errand_test.program("errand-launch"), "--errandd", "no-such-account"], capture_output=True, text=True, check=False)
    t.equal(done.returncode, 2, "the status")
    t.contains(done.stderr, "there is no such account", "what it says")


# ---- what a sandbox inherits ----

@case("C056 C057 C058: nothing of how the launcher was started reaches shim, bailey or the session")
def _(t):
    odd = {"NOTIFY_SOCKET": "/run/x", "INVOCATION_ID": "0" * 32, "JOURNAL_STREAM": "1:2", "WATCHDOG_USEC": "5", "CREDENTIALS_DIRECTORY": "/run/x",
           "XDG_RUNTIME_DIR": t.directory, "MEMORY_PRESSURE_WATCH": "/x", "DBUS_SESSION_BUS_ADDRESS": "unix:path=/x", "LD_BIND_NOW": "1"}

    def before():
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGUSR1, signal.SIGTERM, signal.SIGCHLD})
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGUSR2, signal.SIGPIPE):
            signal.signal(number, signal.SIG_IGN)
        os.umask(0o027)
        resource.setrlimit(resource.RLIMIT_NOFILE, (512, 1024))

    launcher = Launcher(t, listening=True, environment=odd, before=before)
    launcher.connect()
    out, write = os.pipe()
    s = launcher.session("clean", "sh", "-c", "env | sort; echo --; grep -E '^(Sig(Blk|Ign)|NoNewPrivs)' /proc/self/status; umask; ulimit -Sn; ulimit -Hn;"
                         "cat /proc/self/oom_score_adj; ls /proc/self/fd | tr '\\n' ' '; sleep 1000", stdio={"stdout": write}).launch()
    s.started()
    text = ""
    while "0 1 2 3" not in text:
        text += os.read(out, 65536).decode()
    environment, _, state = text.partition("--\n")
    names = {line.split("=")[0] for line in environment.splitlines()}
    t.check(not names & {*odd, "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES", "BAILEY_CGROUP_ROOT"}, f"the session has {names}")
    lines = state.splitlines()
    t.equal([line.split() for line in lines[:3]], [["SigBlk:", "0" * 16], ["SigIgn:", "0" * 16], ["NoNewPrivs:", "1"]], "its signals")
    with open(f"/proc/{launcher_pid(launcher)}/oom_score_adj", encoding="ascii") as f:
        t.equal(lines[3:7], ["0027", "512", "1024", f.read().strip()], "umask, limits and badness: as the launcher's own")
    if os.getuid() == 0:  # else they cannot be looked into
        bailey = children(s.pid)[0]
        for pid, wanted in ((s.pid, set()), (bailey, {"PATH", "TERM"})):
            with open(f"/proc/{pid}/environ", "rb") as f:
                found = {word.split(b"=")[0].decode() for word in f.read().split(b"\0") if word}
            t.equal(found, wanted, f"the environment of {pid}")
    t.equal(launcher.channel.request("kill", session="clean", signal=15)["type"], "ok", "kill")
    s.ended()
    os.close(out)


# ---- errandd of another account ----

@case("C204: where errandd is another account it reaches a shim by its group; the mode lets nobody else, and the uid is looked at")
def _(t):
    errandd = 54323
    if os.getuid() != 0:
        t.skip("only root can be two accounts")
    launcher = Launcher(t, listening=True, errandd=errandd)
    os.chmod(launcher.root, 0o711)
    shims = os.path.join(launcher.root, "shim")
    os.chown(shims, errand_launch.PAYLOAD, errandd)
    os.chmod(shims, 0o2750)

    def as_account(uid, action):
        os.setegid(uid)
        os.seteuid(uid)
        try:
            return action()
        finally:
            os.seteuid(0)
            os.setegid(0)
    groups = os.getgroups()
    os.setgroups([])
    t.defer(os.setgroups, groups)
    as_account(errandd, launcher.connect)
    s = launcher.session("apart", "sleep", "1000").launch()
    s.started()
    st = os.stat(s.socket_path)
    t.equal((st.st_mode & 0o7777, st.st_uid, st.st_gid), (0o660, errand_launch.PAYLOAD, errandd), "mode, owner and group of the shim's socket")
    t.equal(as_account(errandd, s.connect).request("status")["state"], "running", "errandd's own question")
    own = as_account(errand_launch.PAYLOAD, s.connect)
    try:
        t.fail(f"the session's account is answered: {own.request('status')}")
    except (errand_launch.Ended, OSError):
        pass
    try:
        as_account(54324, s.connect)
        t.fail("a stranger connects")
    except PermissionError:
        pass
    launcher.channel.request("stop", session="apart")
    s.ended()


# ---- projects ----

def acl(path):
    """{kind: {entry: permissions}} of the access and default lists, as the kernel has them."""
    found = {}
    for kind in ("access", "default"):
        data = os.getxattr(path, f"system.posix_acl_{kind}")
        entries = [data[i:i + 8] for i in range(4, len(data), 8)]
        found[kind] = [(int.from_bytes(e[:2], "little"), int.from_bytes(e[2:4], "little"), int.from_bytes(e[4:], "little")) for e in entries]
    return found


@case("T004 C019: a project is made whole, is its owner's to edit, and an attempt on another place is refused")
def _(t):
    launcher = Launcher(t, listening=True)
    launcher.connect()
    uid = launcher.uid
    root = os.path.join(launcher.root, "projects")
    os.mkdir(root, 0o775)
    launcher.own(root)
    fd = os.open(root, os.O_PATH | os.O_DIRECTORY)

    def make(name, owner=4711):
        return launcher.channel.request("mkproject", {"root": fd}, name=name, ownerUid=owner)
    reply = make("Web-site_2.0")
    t.equal((reply["type"], reply.get("made")), ("ok", True), reply)
    path = os.path.join(root, "Web-site_2.0")
    st = os.stat(path)
    t.equal((st.st_mode & 0o7777, st.st_uid, st.st_gid), (0o2770, uid, launcher.gid), "mode, owner and group")
    none = 0xffffffff
    entries = [(1, 7, none), (2, 7, 4711), (4, 7, none), (16, 7, none), (32, 0, none)]
    t.equal(acl(path), {"access": entries, "default": entries}, "the lists")
    t.equal(os.listdir(root), ["Web-site_2.0"], "what is there")
    if os.getuid() == 0:
        script = "import os,sys\nos.umask(0o77)\nos.mkdir('sub')\nopen('sub/file', 'w').write('by ' + str(os.getuid()))"
        subprocess.run(["/usr/bin/python3", "-c", script], check=True, cwd=path, user=4711, group=4711, extra_groups=[])
        subprocess.run(["/usr/bin/python3", "-c", "open('sub/file', 'a').write('both'); open('sub/other', 'w')"], check=True, cwd=path, **launcher.account)
        subprocess.run(["/usr/bin/python3", "-c", "open('sub/other', 'a').write('x')"], check=True, cwd=path, user=4711, group=4711, extra_groups=[])
        t.equal(subprocess.run(["/usr/bin/python3", "-c", "open('sub/file')"], check=False, capture_output=True, cwd=path, user=4712, group=4712,
                               extra_groups=[], preexec_fn=None).returncode, 1, "a stranger")
    # Again: as it is.
    os.chmod(path, 0o2700)
    t.equal(make("Web-site_2.0", 1)["made"], False, "the second time")
    t.equal(os.stat(path).st_mode & 0o7777, 0o2700, "the mode of what was there")
    os.symlink("/etc", os.path.join(root, "link"))
    os.mkdir(os.path.join(root, ".new-begun"))
    launcher.own(os.path.join(root, ".new-begun"))
    t.equal(make("begun")["made"], True, "one that was begun before")
    with open(os.path.join(root, "file"), "w", encoding="ascii"):
        pass
    names = ["", ".", "..", ".hidden", "-x", "a/b", "a\nb", "x" * 64, "ä"]
    rows = [*((name, "the project's name") for name in names), ("link", "no directory"), ("file", "no directory")]
    if os.getuid() == 0:
        os.mkdir(os.path.join(root, "roots"))
        rows.append(("roots", "belongs to another account"))

    def refuse(row):
        reply = make(row[0])
        t.equal(reply["type"], "error", "the reply")
        t.contains(reply["text"], row[1], "the reply")
    t.each(rows, refuse)
    for members in ({"name": "x"}, {"name": "x", "ownerUid": -1}, {"name": "x", "ownerUid": 2 ** 32 - 1}, {"name": "x", "ownerUid": 1, "mode": 1}):
        t.equal(launcher.channel.request("mkproject", {"root": fd}, **members)["type"], "error", repr(members))
    t.equal(launcher.channel.request("mkproject", name="x", ownerUid=1)["type"], "error", "without a root")
    t.equal(sorted(os.listdir(root)), sorted({"Web-site_2.0", "begun", "file", "link", *(["roots"] if os.getuid() == 0 else [])}), "what is there")
    os.close(fd)


run()
