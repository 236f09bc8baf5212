#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Starting: what is built, what stops it, what is handed over. Whenever a run is refused, nothing has run."""

import json
import os
import resource
import socket
import stat
import subprocess
import threading

from sandbox import REFUSED, Skip, check, main

ISOLATION_GAPS = {"namespaces", "private-tmp", "private-home"}
TOKEN = "0123456789abcdef" * 4


def proof(world):
    return os.path.join(world.work, "proof")


def refused(world, *words, **more):
    """Is refused with these words in one line, and the command has not run."""
    if os.path.exists(proof(world)):
        os.unlink(proof(world))
    r = world.run(["/usr/bin/touch", proof(world)], **more)
    check(not os.path.exists(proof(world)), "it ran", r)
    check(r.status == REFUSED, r)
    lines = [line for line in r.err.splitlines() if "warning: " not in line]
    check(len(lines) == 1 and all(w in lines[0] for w in words + ("Nothing was run",)), f"wanted {words}", r)
    return r


def runs(world, **more):
    r = world.run(["/usr/bin/touch", proof(world)], **more)
    check(r.status == 0 and os.path.exists(proof(world)), r)
    os.unlink(proof(world))
    return r


def loopback(world):
    refused(world, "bringing up loopback in the new network namespace", "AppArmor", without=["ioctl,1=0x8914:EPERM"])
    runs(world)


def ids(world):
    # In a user namespace whose ids were never mapped, the kernel makes no other.
    command, _ = world.command(["/usr/bin/touch", proof(world)], options=["--strict"])
    r = subprocess.run(["/usr/bin/unshare", "-U", *command], capture_output=True, text=True, cwd=world.root, **world.account)
    check(r.returncode == REFUSED and "creating the namespaces" in r.stderr and not os.path.exists(proof(world)), r)


def propagation(world):
    refused(world, "mounting the new root", "private propagation", without=["mount_setattr:EACCES"])


def steps_fail(world):
    for call, words in (("move_mount", "mounting the new root"), ("fsopen", "mounting the new root"), ("open_tree", "bind mount at"),
                        ("pivot_root", "changing to the new root"), ("umount2", "detaching the old root"),
                        ("sethostname", "host name"), ("landlock_add_rule", "Landlock"), ("landlock_restrict_self", "Landlock"),
                        ("capset", "dropping capabilities"), ("openat2", "building the new root")):
        refused(world, words, without=[f"{call}:EPERM"])
    refused(world, "system call filter", without=["seccomp,0=1:EPERM"])


def no_landlock(world):
    without = ["landlock_create_ruleset:ENOSYS"]
    r = runs(world, without=without)
    check("warning: not enforced: landlock" in r.err and r.gaps == {"landlock"} and r.landlock == 0, r)
    refused(world, "landlock", "--accept-gap landlock", without=without, options=["--strict"])
    r = runs(world, without=without, options=["--strict", "--accept-gap", "landlock"])
    check("warning: not enforced: landlock" in r.err, r)


def no_seccomp(world):
    without = ["seccomp:ENOSYS"]
    r = runs(world, without=without)
    check("warning: not enforced: seccomp" in r.err and r.gaps == {"seccomp"}, r)
    refused(world, "seccomp", without=without, options=["--strict"])
    runs(world, without=without, options=["--strict", "--accept-gap", "seccomp"])


def no_namespaces(world):
    # The network's is made and entered apart from the others.
    for call, errors in (("clone3", ("EPERM", "ENOSYS", "ENOSPC", "EUSERS", "EINVAL")), ("unshare", ("ENOSPC", "EINVAL")), ("setns", ("EPERM",))):
        for error in errors:
            r = runs(world, without=[f"{call}:{error}"])
            check("warning: no namespaces here" in r.err and r.isolated == 0 and r.gaps == ISOLATION_GAPS, r)
        for error in ("EAGAIN", "ENOMEM"):
            refused(world, "creating the namespaces", without=[f"{call}:{error}"])
    r = runs(world, without=["setns,1=0x40000000:EPERM"])  # CLONE_NEWNET: in the first process itself
    check(r.isolated == 0 and r.gaps == ISOLATION_GAPS, r)
    without = ["clone3:EPERM"]
    refused(world, "creating the namespaces", "--strict", without=without, options=["--strict"])
    accept = [o for g in ISOLATION_GAPS for o in ("--accept-gap", g)]
    runs(world, without=without, options=["--strict", *accept])
    refused(world, "--strict", without=without, options=["--strict", *accept[:-2]])
    plan = world.plan("nested-deny", "nested-read-only")
    check(runs(world, without=without, plan=plan).gaps == ISOLATION_GAPS | {"nested-deny", "read-only"})
    refused(world, "--strict", without=without, plan=plan, options=["--strict", *accept])


def helper_killed(world):
    """By whoever may, before or after it has sent the network namespace: what has become of the command the first process says."""
    for without in ("setns,1=0x10000000:KILL", "unshare:KILL", "sendmsg:KILL"):
        refused(world, "awaiting its network namespace", without=[without])


def fallback_holds(world):
    for call in ("clone3", "unshare"):
        fallback_holds_without(world, [f"{call}:EPERM"])
    check(world.bare([world.probe, f"read={world.secret}"]).out.endswith(" ok\n"))


def fallback_holds_without(world, w):
    r = world.run([world.probe, f"read={world.secret}", f"write={world.secret}", "socket=2,1,0", "socket=10,2,0", "socket=16,3,0",
                   "socket=1,1,0", f"kill={os.getpid()}", f"stat={world.secret}"], without=w)
    got = r.answers()
    check(got.pop("socket=1,1,0") == "ok" and got.pop(f"stat={world.secret}") == "ok", r)
    check([got.pop(k) for k in (f"read={world.secret}", f"write={world.secret}")] == ["EACCES", "EACCES"], r)
    check(got.pop(f"kill={os.getpid()}") == "EPERM", r)
    check(set(got.values()) == {"EAFNOSUPPORT"}, r)


def no_boundary(world):
    refused(world, "no Landlock", without=["clone3:EPERM", "landlock_create_ruleset:ENOSYS"])
    refused(world, "no seccomp", without=["clone3:EPERM", "seccomp:ENOSYS"])


def root(world):
    # Root of a namespace is uid 0 just as well.
    command, _ = world.command(["/usr/bin/touch", proof(world)])
    r = subprocess.run(["/usr/bin/unshare", "-r", *command], capture_output=True, text=True, cwd=world.root, **world.account)
    check(r.returncode == REFUSED and "never run as root" in r.stderr and not os.path.exists(proof(world)), r)
    if os.getuid() == 0:
        r = subprocess.run(command, capture_output=True, text=True, cwd=world.root)
        check(r.returncode == REFUSED and "never run as root" in r.stderr and not os.path.exists(proof(world)), r)


def dropped_root(world):
    """A caller that was root a moment ago is not dumpable, which keeps it from its own /proc files."""
    if os.getuid() != 0:
        raise Skip("only root can drop root")
    r = world.run(["/usr/bin/id", "-u"], options=["--drop", str(world.uid)], user=0, group=0)
    check(r.out == f"{world.uid}\n", r)
    # Its change of ids made it, and the child with it, nobody's to look into, so that it could not always enter the namespace it made.
    p = world.popen(["/usr/bin/cat"], options=["--drop", str(world.uid)], user=0, group=0, stdin=subprocess.PIPE)
    p.stdin.write("ran\n")
    p.stdin.flush()
    check(p.stdout.readline() == "ran\n" and os.stat(f"/proc/{p.pid}/fd").st_uid == world.uid, "it is not dumpable")
    r = world.finish(p)
    check(r.isolated == 1, r)


def locked_flags(world):
    """In a surrounding user namespace whose mounts carry flags that cannot be taken off again."""
    place = world.make("outer")
    plan = world.plan(f"step\tbind\tx\t/srv/file\t{place}/tree/file", "access\tr\t/srv/file")
    script = (f"mount -t tmpfs -o nosuid,nodev,noexec none {place}; mkdir {place}/tree; echo content > {place}/tree/file; "
              f"mount -o remount,bind,ro {place}; ")
    command, _ = world.command(["/bin/cat", "/srv/file"], plan)
    # The plan's device and inode are taken by the runner, in there.
    inner = f"exec unshare -U --map-user={world.uid} --map-group={world.uid} " + " ".join(command)
    r = subprocess.run(["/usr/bin/unshare", "-Urm", "/bin/sh", "-c", script + inner], capture_output=True, text=True,
                       cwd=world.root, **world.account)
    check(r.returncode == 0 and r.stdout == "content\n", r)


def nested(world):
    inner = world.write("plan-nested", "\n".join(world.plan()) + "\n")
    plan = world.plan(f"step\tbind\t-\t{inner}\t{inner}", f"access\tr\t{inner}")
    r = world.run([world.runner, "--strict", inner, "/usr/bin/touch", proof(world)], plan=plan)
    check(r.status == REFUSED and "nested sandboxing is not permitted here" in r.err, r)
    check(not os.path.exists(proof(world)))
    os.unlink(inner)


def masked_proc(world, mask):
    command, _ = world.command(["/usr/bin/touch", proof(world)])
    inner = f"{mask}exec unshare -U --map-user={world.uid} --map-group={world.uid} " + " ".join(command)
    return subprocess.run(["/usr/bin/unshare", "-Urmpf", "--mount-proc", "/bin/sh", "-c", inner], capture_output=True, text=True,
                          cwd=world.root, **world.account)


def container_proc(world):
    for mask in ("mount --bind /dev/null /proc/kallsyms; ", "mount --bind /proc/sys /proc/sys; mount -o remount,bind,ro /proc/sys; "):
        r = masked_proc(world, mask)
        check(r.returncode == REFUSED and "masks parts of /proc" in r.stderr and "unmask" in r.stderr, r)
        check(not os.path.exists(proof(world)))
    r = masked_proc(world, "")
    check(r.returncode == 0 and os.path.exists(proof(world)), r)
    os.unlink(proof(world))


def no_sysfs(world):
    command, result = world.command(["/bin/sh", "-c", "ls /sys 2>&1; touch proof"])
    strict, _ = world.command(["/usr/bin/touch", proof(world)], options=["--strict"])
    hide = "mount -t tmpfs none /sys; "
    for argv in (command, strict):
        inner = f"exec unshare -U --map-user={world.uid} --map-group={world.uid} " + " ".join(
            f"'{a}'" if " " in a else a for a in argv)
        r = subprocess.run(["/usr/bin/unshare", "-Urm", "/bin/sh", "-c", hide + inner], capture_output=True, text=True,
                           cwd=world.root, **world.account)
        if argv is command:
            check(r.returncode == 0 and "warning: not enforced: sysfs" in r.stderr and os.path.exists(proof(world)), r)
            with open(result) as f:
                check(f.read().split()[5] == "sysfs")
            os.unlink(proof(world))
        else:
            check(r.returncode == REFUSED and "sysfs" in r.stderr and not os.path.exists(proof(world)), r)


def links_lead_nowhere(world):
    outside = world.make("outside")
    os.symlink("/etc", f"{world.work}/link")
    os.symlink(outside, f"{world.work}/link2")
    for link in ("link", "link2"):
        plan = world.plan(f"step\tbind\twx\t{world.work}/{link}/hosts\t{outside}")
        refused(world, "symbolic link", plan=plan)
        refused(world, "symbolic link", plan=world.plan(f"step\tcover\t-\t{world.work}/{link}/x"))
        refused(world, plan=world.plan(f"step\tdirectory\t-\t{world.work}/{link}/made"))
    check(not os.listdir(outside), os.listdir(outside))
    os.unlink(f"{world.work}/link")
    os.unlink(f"{world.work}/link2")


def stale(world):
    refused(world, "no longer the file", plan=world.plan(f"step\tbind\t-\t/srv/x\t{world.secret}\tstale"))


def many_masks(world):
    masks = []
    for i in range(200):
        name = world.write(f"work/mask-{i}", "hidden\n")
        masks.append(f"step\tcover\t-\t{name}")
    directory = world.make("work/hidden")
    world.write("work/hidden/file", "hidden\n")
    masks += [f"step\tcover\t-\t{directory}", f"step\tcover\t-\t{world.work}/absent"]
    limit = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (24, 24))
    probes = [f"read={world.work}/mask-0", f"read={world.work}/mask-199", f"list={directory}", f"read={directory}/file",
              f"chmod={directory}", f"unlink={world.work}/mask-1"]
    got = world.run([world.probe, *probes], plan=world.plan(*masks), preexec_fn=limit).answers()
    check([got[p] for p in probes] == ["EACCES", "EACCES", "EACCES", "EACCES", "EROFS", "EBUSY"], got)
    got = world.run([world.probe, *probes[:4]]).answers()
    check(set(got.values()) == {"ok"}, got)
    for i in range(200):
        os.unlink(f"{world.work}/mask-{i}")
    os.unlink(f"{directory}/file")
    os.rmdir(directory)


def read_only_island(world):
    island = world.make("work/island")
    f = world.write("work/island/file", "x\n")
    probes = [f"write={f}", f"create={island}/new", f"chmod={f}"]
    got = world.run([world.probe, *probes], plan=world.plan(f"step\tread-only\t-\t{island}")).answers()
    check(set(got.values()) == {"EROFS"}, got)
    check(set(world.run([world.probe, *probes]).answers().values()) == {"ok"})
    os.unlink(f"{island}/new")
    os.unlink(f)
    os.rmdir(island)


def only_what_is_granted(world):
    r = world.run(["/bin/ls", "/"])
    names = set(r.out.split())
    check(not names & {"home", "root", "var", "srv", "opt", "mnt", "boot", "run"} - {"var"}, r)
    r = world.run([world.probe, f"stat={world.secret}", "create=/new", "create=/dev/new", "mkdir=/etc/new", "create=/tmp/new",
                   "create=/dev/shm/new"],
                  plan=world.plan("step\ttmpfs\tw\t/dev/shm\t1048576", "access\trw\t/dev/shm"))
    check(list(r.answers().values()) == ["ENOENT", "EROFS", "EROFS", "EROFS", "ok", "ok"], r)
    # The mounts alone, without Landlock.
    r = world.run([world.probe, f"stat={world.secret}", "create=/new", "create=/dev/new", "mkdir=/usr/new"],
                  without=["landlock_create_ruleset:ENOSYS"])
    check(list(r.answers().values()) == ["ENOENT", "EROFS", "EROFS", "EROFS"], r)
    check(not os.path.exists("/tmp/new"))


def root_bind(world):
    """A plan that grants "/" itself, read-only, with its own /proc and /tmp over it."""
    plan = ["step\tbind\tx\t/\t/", "step\tproc\t-\t/proc", "step\ttmpfs\twx\t/tmp", "access\trx\t/", "access\trwx\t/tmp", "cwd\t/tmp"]
    r = world.run(["/bin/sh", "-c", f"cat {world.secret}; ls /proc | grep -c '^[0-9]'; echo x > {world.root}/new; ls -d /tmp/*"],
                  plan=plan)
    check(r.out == "SECRET\n3\n" or r.out == "SECRET\n4\n", r)
    check(not os.path.exists(f"{world.root}/new"), r)


def size_limit(world):
    plan = world.plan("step\ttmpfs\tw\t/srv\t65536", "access\trw\t/srv")
    r = world.run(["/bin/sh", "-c", "head -c 60000 /dev/zero > /srv/a && head -c 60000 /dev/zero > /srv/b"], plan=plan)
    check("No space left" in r.err, r)


class Broker:
    """The other end of a hand-over: takes the listener, gives one answer."""

    def __init__(self, answer, token=TOKEN):
        self.ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.answer, self.message, self.fds = answer, None, []
        self.token = os.memfd_create("token")
        os.write(self.token, token.encode())
        os.lseek(self.token, 0, os.SEEK_SET)
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        data, fds, *_ = socket.recv_fds(self.ours, 65536, 16)
        self.message, self.fds = data, fds
        if self.answer is not None and data:
            self.ours.send(self.answer)
        if self.answer is None or not data:
            self.ours.close()

    def options(self):
        return {"options": ["--broker", str(self.theirs.fileno()), "--token", str(self.token)],
                "pass_fds": (self.theirs.fileno(), self.token)}

    def close(self):
        self.theirs.close()
        self.thread.join()
        os.close(self.token)
        self.ours.close()
        for fd in self.fds:
            os.close(fd)


def handed_over(world):
    broker = Broker(b'{"v":1,"type":"ready"}')
    code = ("import socket; s = socket.create_connection(('127.0.0.1', 3128)); s.sendall(b'hello'); "
            "print(s.recv(100).decode(), flush=True)")
    p = world.popen(["/usr/bin/python3", "-c", code], **broker.options())
    broker.theirs.close()
    broker.thread.join()
    message = json.loads(broker.message)
    check(message == {"v": 1, "type": "listeners", "token": TOKEN, "fds": ["proxy"]}, message)
    check(len(broker.fds) == 1)
    listener = socket.socket(fileno=broker.fds.pop())
    check(listener.getsockname() == ("127.0.0.1", 3128) and listener.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN) == 1)
    listener.settimeout(10)
    connection, _ = listener.accept()
    check(connection.recv(100) == b"hello")
    if os.getuid() == 0:
        with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
            inside = f.read().strip()
        check(len(os.listdir(f"/proc/{inside}/fd")) == 4, "PID 1 kept the broker's socket, listener or token")
    connection.sendall(b"from the trusted side")
    connection.close()
    r = world.finish(p)
    check(r.status == 0 and r.out == "from the trusted side\n", r)
    listener.close()
    broker.close()


def not_handed_over(world):
    for answer, words in (
            (b'{"v":1,"type":"error","text":"token \\u001b[31mis wrong"}', "the broker refused: token \\x1b[31mis wrong"),
            (b"garbage", "not understood"), (b'{"v":2,"type":"ready"}', "not understood"), (b"{}", "not understood"),
            (b'{"v":1,"type":"ready"} trailing', "not understood"), (b"x" * 5000, "answer"), (None, "went away")):
        broker = Broker(answer)
        r = refused(world, "handing the listener to the broker", words, **broker.options())
        check(TOKEN not in r.err, r)
        broker.close()
    for token in ("", "short", TOKEN[:-1], TOKEN + "0", TOKEN + "\n\n", "g" * 64):
        broker = Broker(b'{"v":1,"type":"ready"}', token)
        refused(world, "token", **broker.options())
        broker.close()
    for call in ("clone3", "unshare"):
        broker = Broker(b'{"v":1,"type":"ready"}')
        refused(world, "own network namespace", without=[f"{call}:EPERM"], **broker.options())
        broker.close()


def silent_broker(world):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    token = os.memfd_create("token")
    os.write(token, TOKEN.encode())
    os.lseek(token, 0, os.SEEK_SET)
    refused(world, "did not answer within 10 seconds", options=["--broker", str(theirs.fileno()), "--token", str(token)],
            pass_fds=(theirs.fileno(), token))
    os.close(token)
    ours.close()
    theirs.close()


def reported(world):
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    p = world.popen(["/bin/cat"], options=["--report", str(theirs.fileno())], pass_fds=(theirs.fileno(),), stdin=subprocess.PIPE)
    theirs.close()
    ours.settimeout(10)
    data, fds, *_ = socket.recv_fds(ours, 65536, 16)
    report = json.loads(data)
    pid = report.pop("pid")
    check(data.endswith(b"}\n") and report.pop("landlock") >= 1, data)
    check(report == {"v": 1, "type": "report", "isolated": True, "gaps": [], "fds": ["pidfd", "user", "net"]}, report)
    check(len(fds) == 3)
    with open(f"/proc/self/fdinfo/{fds[0]}") as f:
        check(f"Pid:\t{pid}\n" in f.read())
    for fd, name in ((fds[1], "user"), (fds[2], "net")):
        check(os.readlink(f"/proc/self/fd/{fd}").startswith(f"{name}:["))
        check(os.fstat(fd).st_ino != os.stat(f"/proc/self/ns/{name}").st_ino)
        os.close(fd)
    os.close(fds[0])
    with open(f"/proc/{pid}/status") as f:
        check("NSpid:\t%d\t1\n" % pid in f.read())
    p.stdin.close()
    p.stdin = None
    check(world.finish(p).status == 0)
    ours.close()
    # A pipe gets the line alone; one that nobody reads is a refusal.
    r, w = os.pipe()
    check(world.run(["/bin/true"], options=["--report", str(w)], pass_fds=(w,), without=["landlock_create_ruleset:ENOSYS"]).status == 0)
    line = json.loads(os.read(r, 65536))
    check(line["gaps"] == ["landlock"] and line["landlock"] == 0 and "fds" not in line, line)
    os.close(r)
    refused(world, "writing the report", options=["--report", str(w)], pass_fds=(w,))
    os.close(w)


def executed(world):
    r = world.run(["/bin/no-such-program"])
    check(r.status == 127 and r.started == 0 and "/bin/no-such-program cannot be executed" in r.err, r)
    plain = world.write("work/plain", "#!/bin/sh\n")
    r = world.run([plain])
    check(r.status == 126 and r.started == 0 and "Permission denied" in r.err, r)
    r = world.run(["/bin/sh", "-c", "exit 42"])
    check(r.status == 42 and r.started == 1 and not r.err, r)
    r = world.run(["/bin/sh", "-c", "kill -SEGV $$"])
    check(r.status == 139, r)
    r = world.run(["/bin/pwd"])
    check(r.out == world.work + "\n", r)
    refused(world, "working directory", plan=world.plan(cwd="/no-such-directory"))
    os.unlink(plain)


def same_ids(world):
    r = world.run(["/bin/sh", "-c", "id -u; id -g; touch f; stat -c %u f; umask; hostname || cat /proc/sys/kernel/hostname"],
                  preexec_fn=lambda: os.umask(0o027))
    check(r.out.split()[:4] == [str(world.uid)] * 3 + ["0027"], r)
    check(os.stat(f"{world.work}/f").st_uid == world.uid and stat.S_IMODE(os.stat(f"{world.work}/f").st_mode) == 0o640)
    os.unlink(f"{world.work}/f")


def own_passwd(world):
    line = f"me:x:{world.uid}:{world.uid}::/:/bin/sh"
    plan = world.plan(f"step\tfile\t-\t/etc/passwd\t{line}", "step\tfile\t-\t/srv/made/file\tcontent", "access\tr\t/srv")
    r = world.run(["/bin/sh", "-c", "cat /etc/passwd; echo; id -un; cat /srv/made/file; echo x > /etc/passwd"], plan=plan)
    check(r.out == line + "\nme\ncontent" and r.err, r)


main([
    ("the command's exit code, 126, 127, 128 + signal, its directory", executed),
    ("C061: ids, owners and umask are the caller's", same_ids),
    ("C062: a passwd file of its own", own_passwd),
    ("T010 Q025: nothing but what is granted, read-only and writable", only_what_is_granted),
    ("a plan that grants the whole root", root_bind),
    ("a tmpfs has its size", size_limit),
    ("C001: loopback that cannot be brought up", loopback),
    ("C001: a user namespace without ids", ids),
    ("C002: propagation that cannot be cut", propagation),
    ("C002 C003: any step that fails", steps_fail),
    ("C003: no Landlock", no_landlock),
    ("C003: no seccomp", no_seccomp),
    ("C003 Q024: no namespaces", no_namespaces),
    ("T009 T026: what holds without namespaces", fallback_holds),
    ("C003: no boundary at all", no_boundary),
    ("C006: never as root", root),
    ("a caller that dropped root", dropped_root),
    ("who makes the network namespace is killed: nothing has run", helper_killed),
    ("C007: mounts with locked flags around", locked_flags),
    ("C007: a sandbox in a sandbox", nested),
    ("C009: a container that masks /proc", container_proc),
    ("a container that hides /sys", no_sysfs),
    ("C015: no link of a bound tree is followed", links_lead_nowhere),
    ("a source that changed since the policy was read", stale),
    ("C025 T024: many masks, few descriptors", many_masks),
    ("T024: a read-only island", read_only_island),
    ("S120 S121: the listener is handed over", handed_over),
    ("S121: a hand-over that fails", not_handed_over),
    ("S121: a broker that is silent", silent_broker),
    ("the report and its descriptors", reported),
])
