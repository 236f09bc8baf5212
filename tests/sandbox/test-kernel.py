#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The kernel's surface as seen from inside, each refusal beside what the same probe gets without a sandbox."""

import os
import platform
import socket
import subprocess

from sandbox import Skip, check, main

NEWUSER, NEWNS, NEWPID, NEWNET, NEWIPC, NEWUTS, NEWCGROUP, NEWTIME = (
    0x10000000, 0x00020000, 0x20000000, 0x40000000, 0x08000000, 0x04000000, 0x02000000, 0x80)
HIGH = 1 << 32


def compare(world, expected, **more):
    """Each operation answers as given inside, and with something else without a sandbox."""
    inside = world.run([world.probe, *expected], **more)
    check(inside.status == 0, inside)
    got, bare = inside.answers(), world.bare([world.probe, *expected]).answers()
    for operation, answer in expected.items():
        check(got[operation] == answer, f"{operation} is {got[operation]} inside, not {answer}")
        check(bare[operation] != answer, f"{operation} is {answer} outside too: this shows nothing")


def works(world, operations, **more):
    got = world.run([world.probe, *operations], **more).answers()
    for operation in operations:
        check(got.get(operation) == "ok", f"{operation} is {got.get(operation)}")


def namespaces(world):
    # As an ordinary account only a new user namespace gives the others: each goes with it.
    flags = [NEWUSER] + [NEWUSER | f for f in (NEWNS, NEWPID, NEWNET, NEWIPC, NEWUTS, NEWCGROUP, NEWTIME)]
    compare(world, {f"unshare={f:#x}": "EPERM" for f in flags})
    compare(world, {f"clone={f:#x}": "EPERM" for f in flags if not f & NEWTIME} | {f"clone={HIGH | NEWUSER:#x}": "EPERM"})
    compare(world, {"setns": "EPERM"})
    works(world, ["clone=0"])


def clone3(world):
    compare(world, {"clone3=0": "ENOSYS", f"clone3={NEWUSER:#x}": "ENOSYS"})
    code = ("import threading, subprocess; t = threading.Thread(target=print, args=('ok',)); t.start(); t.join(); "
            "print(subprocess.run(['true']).returncode)")
    r = world.run(["/usr/bin/python3", "-c", code])
    check(r.out == "ok\n0\n", r)


def processes(world):
    compare(world, {n: "EPERM" for n in ("ptrace", "process_vm_readv", "pidfd_getfd", "kcmp", "modify_ldt", "name_to_handle",
                                         "fanotify")})
    bare = world.bare([world.probe, "userfaultfd"]).answers()
    check(world.run([world.probe, "userfaultfd"]).answers()["userfaultfd"] == "EPERM")
    check(bare["userfaultfd"] in ("ok", "EPERM"))


def io_uring(world):
    compare(world, {"io_uring": "ENOSYS"})


def mounts(world):
    compare(world, {n: "EPERM" for n in ("open_tree", "fsconfig", "chroot")})
    # The kernel itself refuses these to an ordinary account: that the filter does is shown by tests/unit/test-seccomp.c.
    got = world.run([world.probe, "mount", "umount", "pivot_root", "fsopen", "move_mount", "fsmount", "mount_setattr"]).answers()
    check(set(got.values()) == {"EPERM"}, got)


def newest(world):
    # 451 is cachestat, which is there on new kernels; the rest is not yet anywhere.
    got = world.run([world.probe, "syscall=451", "syscall=600", "syscall=5000"]).answers()
    check(set(got.values()) == {"ENOSYS"}, got)
    bare = world.bare([world.probe, "syscall=451"]).answers()
    release = tuple(int(x) for x in platform.release().split(".")[:2])
    check(release < (6, 5) or bare["syscall=451"] != "ENOSYS", bare)


def x32(world):
    got = world.run([world.probe, *(f"syscall={0x40000000 | n:#x}" for n in (39, 101, 165, 425))]).answers()
    check(set(got.values()) == {"ENOSYS"}, got)


def i386(world):
    if platform.machine() != "x86_64":
        raise Skip("no 32-bit calls on this architecture")
    # unshare, clone3, ptrace, io_uring_setup, socket(AF_VSOCK), socketcall(SOCKET) with a bad pointer, getpid.
    compare(world, {f"i386=310,{NEWUSER:#x}": "EPERM", "i386=435": "ENOSYS", "i386=26": "EPERM", "i386=425,8": "ENOSYS",
                    "i386=359,40,1": "EAFNOSUPPORT", "i386=102,1": "EPERM", "i386=102,8": "EPERM"})
    works(world, ["i386=20", "i386=359,1,1"])


def sockets(world):
    works(world, ["socket=1,1,0", "socket=2,1,0", "socket=2,1,6", "socket=2,2,17", "socket=10,1,0", "socket=10,2,17",
                  "socket=16,3,0", "socketpair=1", "loopback"])
    # MPTCP, UDPLITE (gone from newest kernels), netlink audit, ALG, VSOCK, packet.
    compare(world, {"socket=2,1,262": "EPROTONOSUPPORT", "socket=16,3,9": "EPROTONOSUPPORT"})
    got = world.run([world.probe, "socket=2,2,136", "socket=2,1,132", "socket=38,5,0", "socket=40,1,0", "socket=17,3,0",
                     "socket=43,1,0", f"socket={HIGH | 40:#x},1,0", "socketpair=2", "socketpair=30"]).answers()
    check(got.pop("socket=2,2,136") == got.pop("socket=2,1,132") == "EPROTONOSUPPORT", got)
    check(set(got.values()) == {"EAFNOSUPPORT"}, got)
    bare = world.bare([world.probe, "socket=38,5,0", "socket=40,1,0"]).answers()
    check("ok" in bare.values(), bare, "neither AF_ALG nor AF_VSOCK outside: this shows nothing")


def network(world):
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        works(world, ["loopback"])
        compare(world, {f"tcp={port}": "ECONNREFUSED"})
    got = world.run([world.probe, "udp-out"]).answers()
    check(got["udp-out"] == "ENETUNREACH", got)
    r = world.run(["/bin/sh", "-c", "ls /sys/class/net; cat /proc/net/route | wc -l; cat /proc/net/arp | wc -l"])
    check(r.out.split() == ["lo", "1", "1"], r)
    check(len(world.bare(["/bin/ls", "/sys/class/net"]).out.split()) > 1, "only loopback outside: this shows nothing")


def abstract(world):
    name = f"bailey-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("\0" + name)
        server.listen()
        compare(world, {f"abstract={name}": "ECONNREFUSED"})
        # Without namespaces Landlock's scoping is what refuses it.
        compare(world, {f"abstract={name}": "EPERM"}, without=["clone3:EPERM"])


def keyring(world):
    compare(world, {"add_key": "EPERM", "keyctl": "EPERM", "request_key": "EPERM", "read=/proc/keys": "EACCES"})


def personality(world):
    works(world, [f"personality={p:#x}" for p in (0, 8, 0x40000, 0x40008, 0xffffffff, HIGH | 0x40000)])
    compare(world, {"personality=0x400000": "EPERM", "personality=6": "EPERM", f"personality={HIGH | 0x400000:#x}": "EPERM"})
    r = world.run(["/usr/bin/setarch", "-R", "true"])
    check(r.status == 0, r)


def privileges(world):
    # The payload, and PID 1 as well.
    for who in ("self", "1"):
        r = world.run(["/bin/grep", "-E", "^(Cap|NoNewPrivs|Seccomp:)", f"/proc/{who}/status"])
        fields = dict(line.split(":\t") for line in r.out.splitlines())
        check(fields.pop("NoNewPrivs") == "1" and fields.pop("Seccomp") == "2", r)
        check(len(fields) == 5 and set(fields.values()) == {"0" * 16}, r)
    r = world.run(["/bin/grep", "-c", "nosuid", "/proc/self/mountinfo"])
    check(r.out == world.run(["/bin/grep", "-c", ".", "/proc/self/mountinfo"]).out, r)
    r = world.run(["/bin/sh", "-c", "echo 1 > /proc/sys/user/max_user_namespaces"])
    check(r.status != 0 and "Read-only" in r.err, r)


def set_user_id(world):
    if os.getuid() != 0:
        raise Skip("only root can make a set-user-id file for another account")
    path = os.path.join(world.bin, "suid-id")
    with open("/usr/bin/id", "rb") as source, open(path, "wb") as copy:
        copy.write(source.read())
    os.chmod(path, 0o4755)
    try:
        check(world.bare([path, "-u"]).out == "0\n", "set-user-id has no effect outside: this shows nothing")
        r = world.run([path, "-u"])
        check(r.out == f"{world.uid}\n", r)
    finally:
        os.unlink(path)


def landlock_renames(world):
    """By the calls themselves: mv would copy where it cannot rename."""
    w = world.work
    moves = [f"create={w}/f", f"mkdir={w}/d", f"rename={w}/f,{w}/d/f", f"link={w}/d/f,{w}/g", f"mkdir={w}/t", f"mkdir={w}/t/tmp",
             f"create={w}/t/tmp/full", f"rename={w}/t/tmp/full,{w}/t/out", f"rename={w}/t/tmp,{w}/d/tmp"]

    def clean():
        subprocess.run(["/bin/rm", "-r", f"{w}/d", f"{w}/t", f"{w}/g"], check=True)

    works(world, moves)
    clean()
    works(world, moves, without=["clone3:EPERM"])
    clean()
    # Two domains, one in the other.
    inner = world.write("plan-inner", "\n".join(world.plan()) + "\n")
    r = world.run([world.runner, inner, world.probe, *moves],
                  plan=world.plan(f"step\tbind\t-\t{inner}\t{inner}", f"access\tr\t{inner}"))
    check(set(r.answers().values()) == {"ok"} and "nested sandboxing is not permitted here" in r.err, r)
    clean()
    # Without the right to write, as the mounts would have it.
    plan = world.plan(f"access\trx\t{w}", work=False, cwd="/tmp") + [f"step\tbind\twx\t{w}\t{w}"]
    world.write("work/f", "")
    world.make("work/d")
    check(world.run([world.probe, f"rename={w}/f,{w}/d/f"], plan=plan).answers() == {f"rename={w}/f,{w}/d/f": "EACCES"})
    os.unlink(f"{w}/f")
    os.rmdir(f"{w}/d")


def landlock_rights(world):
    """Landlock alone: what the mounts would also refuse."""
    w, f = world.work, world.write("work/file", "x\n")
    plan = world.plan(f"access\trx\t{w}", work=False, cwd="/tmp") + [f"step\tbind\twx\t{w}\t{w}"]
    refused = [f"write={f}", f"truncate={f}", f"create={w}/new", f"mkdir={w}/directory", f"unlink={f}",
               f"mkfifo={w}/fifo"]
    got = world.run([world.probe, *refused, f"read={f}"], plan=plan).answers()
    check(got.pop(f"read={f}") == "ok" and set(got.values()) == {"EACCES"}, got)
    # The same mounts without Landlock: all of it works.
    got = world.run([world.probe, *refused], plan=plan, without=["landlock_create_ruleset:ENOSYS"]).answers()
    check(set(got.values()) == {"ok"}, got)
    os.rmdir(f"{w}/directory")
    os.unlink(f"{w}/new")
    os.unlink(f"{w}/fifo")


main([
    ("C041 T017: unshare, clone and setns give no namespace", namespaces),
    ("C040 T018: clone3 does not exist, threads and processes do", clone3),
    ("T004 T016: no way into other processes or the kernel", processes),
    ("C037: io_uring does not exist", io_uring),
    ("C041: mounts cannot be changed", mounts),
    ("C041: what is newer than the filter does not exist", newest),
    ("C035: x32 numbers are never executed", x32),
    ("C035: the 32-bit entry has the same rules", i386),
    ("T015 C038: only the families and protocols that are meant", sockets),
    ("N002 N007 N008 C043: loopback of its own and no more network", network),
    ("C033 T013: abstract sockets of the host are out of reach", abstract),
    ("C044: no kernel keyring", keyring),
    ("C038: personality by an allowlist", personality),
    ("C045: no capability, no_new_privs, all mounts nosuid", privileges),
    ("C045: set-user-id files gain nothing", set_user_id),
    ("C031: files move between directories, in nested domains too", landlock_renames),
    ("T009 T026: Landlock refuses on its own", landlock_rights),
])
