#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""bailey audit and bailey profile generate: what a program does beyond its policy is seen, kept, and made a policy."""

import json
import os
import platform
import signal
import socket
import stat
import subprocess
import threading
import tomllib

from bailey import NOT_RUN, check, main


def audit(w, *command, options=(), **more):
    r = w.call("audit", "--save-trace", w.path("trace.json"), *options, *command, **more)
    r.trace = json.loads(w.read("trace.json")) if os.path.exists(w.path("trace.json")) else None
    return r


def found(r, kind="path"):
    return {a["name"]: a for a in r.trace["accesses"] if a["kind"] == kind}


def operations(r, name, kind="path"):
    return set(found(r, kind).get(name, {"operations": []})["operations"])


def script(w, text, name="W/script.py"):
    """Whose own file is granted, being the target."""
    return w.write(name, "#!/usr/bin/python3 -I\nimport os, socket, sys, threading\nfrom ctypes import CDLL, c_long\nlibc = CDLL(None, use_errno=True)\n"
                   "def attempt(f, *a, **k):\n    try: return f(*a, **k)\n    except OSError as e: return e\n" + text, 0o755)


def trace_file(w):
    w.write("secret", "SECRET\n")
    w.write("W/a", "a\n")
    r = audit(w, "sh", "-c", "cat a ../secret; exit 7")
    check(r.status == 7 and "SECRET" not in r.out, r)
    t = r.trace
    check(t["bailey_trace"] == 1 and t["target"] == os.path.realpath("/bin/sh") and t["status"] == 7 and t["signal"] == 0, t)
    check(not t["truncated"] and not t["unconfined"] and t["calls"] > 10 and t["working_directory"] == w.work, t)
    check(operations(r, w.path("W/a")) == {"read"} and operations(r, w.path("secret")) == {"read"}, t)
    one = found(r)[w.path("secret")]
    check(one["command"] == "cat" and one["count"] == 1 and not one["missing"] and not one["directory"] and one["pid"] > 0, one)
    check(t["started_usec"] <= one["first_usec"] <= one["last_usec"] <= t["ended_usec"], one)
    # What is granted is not listed, and each thing once.
    check(not any(n.startswith(("/usr/", "/etc/", "/lib")) for n in found(r)), found(r).keys())
    check(len(found(r)) == sum(a["kind"] == "path" for a in t["accesses"]), "each once")
    check(stat.S_IMODE(os.stat(w.path("trace.json")).st_mode) == 0o600, "mode")
    check(f"not granted:\n" in r.err and f"  read            {w.path('secret')}\n" in r.err, r)
    policy = w.policy('[filesystem]\nread = ["."]\n')
    r = audit(w, "sh", "-c", "cat a", options=["--config", policy])
    check(r.out == "a\n" and not found(r) and "grants everything" in r.err, r)


def confined(w):
    """The default enforces the policy; --unconfined enforces nothing, and says so."""
    w.mkdir("real/.ssh")
    w.mkdir("real/.config")
    w.write("real/.ssh/id_ed25519", "KEY\n")
    key = w.path("real/.ssh/id_ed25519")
    command = ["sh", "-c", f"cat {key}; echo >../made; mkdir {w.path('real/.config/autostart')}"]
    r = audit(w, *command)
    check("KEY" not in r.out and not os.path.exists(w.path("made")) and "unconfined" not in r.err, r)
    check("enforced: own root, namespaces" in r.err, r)
    for _ in range(2):
        high, routine = r.err.split("not granted:\n")[1:3]
        check(f"{key}  (private keys)" in high and key not in routine, r)
        check(w.path("real/.config/autostart") in high and "started without being asked" in high and w.path("made") in routine, r)
        check(found(r)[key]["risk"] == "private keys" and found(r)[w.path("made")]["risk"] == "", r.trace)
        r = audit(w, *command, options=["--unconfined"])
    check("KEY" in r.out and os.path.exists(w.path("made")) and os.path.isdir(w.path("real/.config/autostart")), r)
    check("warning: unconfined: this run is only watched" in r.err and "enforced:" not in r.err and r.trace["unconfined"], r)
    for bad in (["--unconfined", "--strict"], ["--json"], ["--env-fd", "3"]):
        check(w.call("audit", *bad, "true").status == NOT_RUN, bad)


def calls(w):
    """Each call that names a path or an address, confined and not."""
    w.mkdir("o")
    for name in ("old", "gone", "target", "run"):
        w.write(f"o/{name}", "#!/bin/sh\n", 0o755)
    w.link("target", "o/lnk")
    program = script(w, f"""
o = {w.path('o')!r}
os.close(os.open("/", os.O_RDONLY))
attempt(os.open, o + "/open", os.O_RDONLY)
attempt(os.open, o + "/rw", os.O_RDWR)
attempt(os.open, o + "/created", os.O_WRONLY | os.O_CREAT, 0o644)
libc.creat((o + "/creat").encode(), 0o644)
how = (c_long * 3)(0, 0, 0)
libc.syscall(437, -100, (o + "/openat2").encode(), how, 24)
attempt(os.stat, o + "/stat"); attempt(os.lstat, o + "/lnk"); attempt(os.access, o + "/access", os.R_OK)
libc.statx(-100, (o + "/statx").encode(), 0, 0, (c_long * 64)())
attempt(os.readlink, o + "/readlink"); attempt(os.chdir, o + "/chdir")
attempt(os.mkdir, o + "/mkdir"); attempt(os.rmdir, o + "/rmdir"); attempt(os.unlink, o + "/gone")
attempt(os.rename, o + "/old", o + "/new"); attempt(os.link, o + "/run", o + "/hard"); attempt(os.symlink, "x", o + "/soft")
attempt(os.truncate, o + "/truncate", 0); attempt(os.chmod, o + "/chmod", 0o600); attempt(os.chown, o + "/chown", -1, -1)
attempt(os.utime, o + "/utime"); attempt(os.mkfifo, o + "/fifo"); attempt(os.setxattr, o + "/xattr", "user.x", b"")
pid = os.fork()
if pid == 0:
    attempt(os.execv, o + "/run", ["run"])
    os._exit(0)
os.waitpid(pid, 0)
pid = os.fork()
if pid == 0:
    libc.syscall(322, -100, (o + "/execveat").encode(), None, None, 0)
    os._exit(0)
os.waitpid(pid, 0)
for family, address in ((socket.AF_INET, ("127.0.0.1", 9)), (socket.AF_INET6, ("::1", 9)), (socket.AF_UNIX, o + "/sock"), (socket.AF_UNIX, "\\0abstract")):
    attempt(socket.socket(family, socket.SOCK_STREAM).connect, address)
attempt(socket.socket(socket.AF_INET).bind, ("127.0.0.1", 2)); attempt(socket.socket(socket.AF_INET6).bind, ("::1", 3))
attempt(socket.socket(socket.AF_UNIX).bind, o + "/bound")
attempt(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto, b"x", ("127.0.0.1", 4))
attempt(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect, ("127.0.0.1", 5)); attempt(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).bind, ("127.0.0.1", 6))
attempt(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendmsg, [b"x"], [], 0, ("127.0.0.1", 7))
threading.Thread(target=lambda: attempt(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect, ("127.0.0.1", 8))).start()
attempt(socket.socketpair()[0].sendmsg, [b"x"])
""")
    expected = {
        "open": {"read"}, "rw": {"read", "write"}, "created": {"write", "entry"}, "creat": {"write"}, "openat2": {"read"},
        "stat": {"look"}, "lnk": {"look"}, "access": {"look"}, "statx": {"look"}, "readlink": {"look"}, "chdir": {"look"},
        "mkdir": {"entry"}, "rmdir": {"entry"}, "gone": {"entry"}, "old": {"entry"}, "new": {"entry"}, "hard": {"entry"}, "soft": {"entry"},
        "truncate": {"write"}, "chmod": {"write"}, "chown": {"write"}, "utime": {"write"}, "fifo": {"entry"}, "xattr": {"write"},
        "run": {"execute", "entry"}, "execveat": {"execute"}, "sock": {"connect"}, "bound": {"bind"},
    }
    for options in ([], ["--unconfined"]):
        r = audit(w, program, options=options)
        check(r.status == 0 and not r.trace["truncated"], r)
        for name, wanted in expected.items():
            # A shell that is run as well has its own look at its script.
            check(operations(r, w.path(f"o/{name}")) - ({"read", "look"} if name == "run" else set()) == wanted, (name, operations(r, w.path(f"o/{name}"))))
        check(operations(r, "127.0.0.1:9", "address") == {"connect"} == operations(r, "[::1]:9", "address"), r.trace)
        check(operations(r, "127.0.0.1:2", "address") == {"bind"} == operations(r, "[::1]:3", "address"), r.trace)
        check(all(operations(r, f"127.0.0.1:{port}", "address") == {"send"} for port in (5, 7, 8)) and "127.0.0.1:6" not in found(r), r.trace)
        check(operations(r, "127.0.0.1:4", "address") == {"send"} and operations(r, "abstract", "abstract") == {"connect"}, r.trace)
        check(found(r)[w.path("o/open")]["missing"] and not found(r)[w.path("o/run")]["missing"], r.trace)


def resolution(w):
    """Paths are those that the kernel comes to: from descriptors, working directories and links, there or not."""
    w.mkdir("o/d")
    w.write("o/d/f", "f\n")
    w.link("d", "o/to-d")
    w.link("nowhere/else", "o/dangling")
    w.link(w.path("o/to-d"), "o/far")
    program = script(w, f"""
o = {w.path('o')!r}
def look(path, **k): attempt(os.open, path, os.O_RDONLY, **k)
look(o + "/to-d/f"); look(o + "/far/../named"); look(o + "/dangling"); look(o + "/./d//../d/missing/../x")
d = os.open(o, os.O_RDONLY); look("by-fd", dir_fd=d); look("to-d/by-fd", dir_fd=d)
os.chdir(o + "/d"); look("by-cwd"); look("../from-above"); look("/proc/self/cwd/by-proc"); look(f"/proc/self/fd/{{d}}/by-link")
look("/proc/thread-self/root" + o + "/by-root")
os.chdir("/"); look(o[1:] + "/by-root-directory")
""")
    names = ("d/f", "named", "nowhere/else", "d/x", "by-fd", "d/by-fd", "d/by-cwd", "from-above", "d/by-proc", "by-link", "by-root", "by-root-directory")
    r = audit(w, program, options=["--unconfined"])
    listed = {n for n in found(r) if n.startswith(w.path("o/"))}
    check(listed >= {w.path(f"o/{n}") for n in names}, {w.path(f"o/{n}") for n in names} - listed)
    over = {w.path(f"o/{n}") for n in ("to-d", "dangling", "far")}
    check(not any(n.startswith(tuple(f"{o}/" for o in over)) for n in listed), listed)
    check(all(found(r)[o]["link"] and operations(r, o) == {"look"} for o in over), listed)
    # Confined, what leads there is seen where it is granted, and is a name where it is not.
    r = audit(w, program, options=["--config", w.policy(f'[filesystem]\nread = ["{w.path("o")}"]\n')])
    check(not any(n.startswith(w.path("o/")) for n in found(r)), found(r).keys())


def places(w):
    """C111: nothing is followed, nothing that is no file is written to, and nothing is left behind."""
    w.write("victim", "victim\n")
    w.mkdir("at")
    os.mkfifo(w.own(w.path("at")) + "/fifo")
    w.own(w.path("at/fifo"))
    w.mkdir("at/dir")
    w.link(w.path("victim"), "at/link")
    w.link("nowhere", "at/dangling")
    for name in ("fifo", "dir", "link", "dangling", "none/x", "", "..", "dir/"):
        r = w.call("audit", "--save-trace", f"{w.path('at')}/{name}", "sh", "-c", "echo ran")
        check(r.status == NOT_RUN and "ran" not in r.out and "nothing was run" in r.err.lower(), (name, r))
    check(w.read("victim") == "victim\n" and not os.path.exists(w.path("at/nowhere")), "followed")
    # A program that puts a link there meanwhile loses it.
    config = w.policy(f'[filesystem]\nwrite = ["{w.path("at")}"]\n')
    r = w.call("audit", "--config", config, "--save-trace", w.path("at/new"), "sh", "-c", f"ln -s {w.path('victim')} {w.path('at/new')}")
    check(r.status == 0 and w.read("victim") == "victim\n" and not os.path.islink(w.path("at/new")), r)
    json.loads(w.read("at/new"))
    r = w.call("audit", "--config", config, "--save-trace", w.path("at/late"), "sh", "-c", f"mkdir {w.path('at/late')}; exit 3")
    check(r.status == 1 and "the trace cannot be written" in r.err, r)
    check(sorted(os.listdir(w.path("at"))) == ["dangling", "dir", "fifo", "late", "link", "new"], os.listdir(w.path("at")))
    if not w.as_root:
        return
    w.mkdir("closed", 0o555)
    r = w.call("audit", "--save-trace", w.path("closed/x"), "true")
    check(r.status == NOT_RUN and "nothing can be written there" in r.err, r)


def generate(w, *options, target):
    r = w.call("profile", "generate", "--trace", w.path("trace.json"), "--target", target, *options)
    check(r.status == 0, r)
    return w.policy(r.out, "generated.toml"), r.out


def round_trip(w, prepare, target, *arguments):
    """Audited once, unconfined, the program does the same under what was generated, and nothing of it without."""
    prepare()
    once = audit(w, target, *arguments, options=["--unconfined"])
    check(once.status == 0 and not once.trace["truncated"], once)
    prepare()
    config, text = generate(w, target=target)
    without = w.call("run", target, *arguments)
    check((without.status, without.out) != (0, once.out), (target, without))
    prepare()
    again = w.call("run", "--config", config, target, *arguments)
    check(again.status == 0 and again.out == once.out, (text, again))
    return text


def loop(w):
    def fresh():
        subprocess.run(["rm", "-rf", w.path("W")], check=True)
        for name in ("W/data", "W/out", "W/lib/package"):
            w.mkdir(name)
        for i in range(6):
            w.write(f"W/data/{i}", f"{i}\n")
        w.write("W/lib/package/__init__.py", "import json, ssl\nNAME = 'package'\n")
        w.write("W/tool", "#!/usr/bin/python3\nprint('tool')\n", 0o755)
        w.write("W/Makefile", "all: out/sum\nout/sum: data/1 data/2\n\tcat data/1 data/2 >$@.tmp\n\tmv $@.tmp $@\n\tcat $@\n\t./tool\n")
        w.write("W/main.py", "import sys\nsys.path.insert(0, 'lib')\nimport package, glob\nprint(package.NAME, sorted(glob.glob('data/*')))\n"
                "open('out/o', 'w').write('x')\nprint(open('out/o').read())\n")
        w.write("W/main.js", "const fs = require('fs'); console.log(require('./lib/package.json').name, fs.readdirSync('data')); fs.writeFileSync('out/o', 'x');"
                "console.log(require('child_process').execSync('./tool').toString())\n")
        w.write("W/lib/package.json", '{"name": "package"}\n')
        account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}
        subprocess.run(["git", "init", "-q", "-b", "main", "repository"], cwd=w.work, env=w.environment, check=True, **account)
        w.write("W/repository/file", "file\n")

    round_trip(w, fresh, "sh", "-c", "cat data/*; ./tool; echo new >out/new; rm out/new; ls out; (cd lib && pwd) & wait")
    round_trip(w, fresh, "/usr/bin/python3", "main.py")
    round_trip(w, fresh, "/usr/bin/make", "-s")
    if os.path.exists("/usr/bin/node"):
        round_trip(w, fresh, "/usr/bin/node", "main.js")
    else:
        print("# node is not installed")
    round_trip(w, fresh, "/usr/bin/git", "-C", "repository", "status", "--porcelain")
    text = round_trip(w, fresh, "sh", "-c", "cd repository; git add file; git -c user.name=n -c user.email=e@x commit -qm m; git log --format=%s; "
                      "python3 -c 'import json, ssl; open(\"../out/o\", \"w\")'; git status --porcelain")
    check(w.path("W/repository/.git") in text, text)


def links(w):
    """What a link leads to may be granted and the link be out of sight; its grant takes nothing away from there."""
    def prepare():
        w.mkdir("W/venv/bin")
        w.link("/usr/bin/python3", "W/venv/bin/python")
        w.mkdir("real-data")
        w.write("real-data/f", "f\n")
        w.link("../real-data", "W/data")
        w.write("W/tool", f"#!{w.path('W/venv/bin/python')} -I\nimport json, subprocess\nprint(open('data/f').read())\n"
                "print(subprocess.run(['/usr/bin/python3', '-c', 'print(1)'], capture_output=True).stdout)\n", 0o755)
    text = round_trip(w, prepare, w.path("W/tool"))
    check(w.path("W/venv/bin/python") in text, text)


def explained(w):
    """C114: after a failed run, what was refused, by what, and the line that grants it, which does."""
    w.write("secret", "SECRET\n")
    w.write("W/denied", "x\n")
    w.mkdir("o")
    policy = f'[filesystem]\nread = ["."]\ndeny = ["./denied"]\n'
    command = f"cat {w.path('secret')} denied; echo >{w.path('o/new')}; cat nowhere; exit 3"
    r = w.run(policy, command, "--explain")
    lines = {line.split(" (")[0].strip(): line for line in r.err.splitlines() if line.startswith("  ")}
    check(r.status == 3 and "enforced: own root" in r.err, r)
    check(f'no rule grants it; [filesystem] read = ["{w.path("secret")}"]' in lines[f"read {w.path('secret')}"], r)
    check(f'no rule grants it; [filesystem] write = ["{w.path("o")}"]' in lines[f"write {w.path('o/new')}"], r)
    denied = lines[f"read {w.path('W/denied')}"]
    check("(cat, " in denied and denied.endswith(f"denied in {w.path('W/policy.toml')}, line 3"), r)
    check("nowhere" not in "".join(lines) and len(lines) == 3, r)
    granted = f'[filesystem]\nread = [".", "{w.path("secret")}"]\nwrite = ["{w.path("o")}"]\n'
    r = w.run(granted, f"cat {w.path('secret')}; echo >{w.path('o/new')}; exit 3", "--explain")
    check("SECRET" in r.out and os.path.exists(w.path("o/new")) and "refused nothing" in r.err, r)
    r = w.run(policy, f"cat {w.path('secret')}; exit 0", "--explain")
    check(r.status == 0 and "refused by the policy" not in r.err, r)
    r = w.run(None, "echo >/dev/none; : </dev/loop-control", "--explain")
    check("write /dev/none " in r.err and "no policy can" in r.err and '"/dev' not in r.err, r)
    check(w.call("run", "--explain", "--json", "true").status == NOT_RUN, "json")
    # A shell's status is its last command's.
    for status in ("0", "3"):
        r = w.call("shell", "--config", w.policy(policy), "--explain", "--", "-c", f"cat {w.path('secret')}; exit {status}",
                   environment={**w.environment, "SHELL": "/bin/sh"})
        check(r.status == int(status) and f"  read {w.path('secret')} (cat, " in r.err, r)
    r = w.call("shell", "--explain", "--", "-c", ":", environment={**w.environment, "SHELL": "/bin/sh"})
    check(r.status == 0 and "refused" not in r.err and "failed" not in r.err, r)


def nested(w):
    """Where the memory of others may not be read, nothing is run."""
    config = w.policy(f'[filesystem]\nexecute = ["{w.bailey}"]\n[env]\nset = {{ ASAN_OPTIONS = "detect_leaks=0" }}\n')
    r = w.call("run", "--config", config, w.bailey, "audit", "sh", "-c", "echo ran")
    check(r.status == NOT_RUN and "ran" not in r.out and "is this a sandbox?" in r.err, r)


def high_risk(w):
    """Left out, and kept out where a directory above is granted; taken when asked for."""
    w.mkdir("W/p/.git/hooks")
    w.write("W/p/.env", "TOKEN\n")
    w.write("W/p/x", "x\n")
    w.mkdir("real/.ssh")
    w.write("real/.ssh/known", "KNOWN\n")
    command = ["sh", "-c", f"cd p; ls >/dev/null; for i in 1 2 3 4 5; do echo >$i; done; cat .env {w.path('real/.ssh/known')}; echo hook >.git/hooks/pre-commit"]
    r = audit(w, *command, options=["--unconfined"])
    check("TOKEN" in r.out, r)
    os.unlink(w.path("W/p/.git/hooks/pre-commit"))
    config, text = generate(w, target="sh")
    check(f"#   read: {w.path('W/p/.env')} (passwords and tokens)" in text and "#   write: " in text and "~/.ssh" not in text, text)
    r = w.call("run", "--config", config, *command)
    check("TOKEN" not in r.out and "KNOWN" not in r.out and os.path.exists(w.path("W/p/5")), (text, r))
    check(not os.path.exists(w.path("W/p/.git/hooks/pre-commit")), (text, r))
    config, text = generate(w, "--include-high-risk", target="sh")
    check('"~/.ssh/known"' in text, text)
    r = w.call("run", "--config", config, *command)
    check("TOKEN" in r.out and "KNOWN" in r.out and os.path.exists(w.path("W/p/.git/hooks/pre-commit")), (text, r))


def names(w):
    """Whatever a name holds, the policy is one, and means it or leaves it out."""
    kept = ["a b", 'a"b', "a\\b", "a\nb", "a\tb", "ü", "#", "'", "~", "]"]
    for name in kept:
        w.write(f"o{kept.index(name)}", "")
        w.mkdir(f"n{kept.index(name)}")
        w.write(f"n{kept.index(name)}/{name}", "in\n")
    program = script(w, f"""
for i, name in enumerate({kept!r}):
    print(attempt(lambda: open(f"{w.root}/n{{i}}/{{name}}").read()))
attempt(open, b"{w.root}/n0/\\xff"); attempt(open, "{w.root}/n0/${{HOME}}")
""")
    for name in (b"\xff", b"${HOME}"):
        w.own(os.path.join(w.path("n0").encode(), name)) if os.close(os.open(os.path.join(w.path("n0").encode(), name), os.O_CREAT | os.O_RDONLY, 0o644)) else None
    r = audit(w, program)
    check(r.out.count("Errno 2") == len(kept) and any(a["lossy"] for a in r.trace["accesses"]), r)
    config, text = generate(w, target=program)
    check(text.count("a policy cannot say such a name") == 2, text)
    r = w.call("run", "--config", config, program)
    check(r.status == 0 and r.out.count("in\n") == len(kept), (text, r))


def endings(w):
    """C112: by a signal, by a program that leaves something behind, by nothing to grant."""
    w.write("secret", "x\n")
    r = audit(w, "sh", "-c", "cat ../secret; kill -9 $$")
    check(r.status == 137 and r.trace["signal"] == 9, r)
    check("# Partial: signal 9 ended the program." in generate(w, target="sh")[1], "partial")
    r = audit(w, "sh", "-c", "(sleep 1000; cat ../secret) >/dev/null 2>&1 & exit 0")
    check(r.status == 0 and "that outlived the command" in r.err, r)
    r = audit(w, "true")
    check(r.status == 0 and not r.trace["accesses"], r)
    r = w.call("profile", "generate", "--trace", w.path("trace.json"), "--target", "true")
    check(r.status == 1 and r.out == "" and "nothing that its policy did not grant" in r.err, r)
    for command, status in ((["./none"], 127), ([w.write("W/noexec", "x")], 126)):
        os.unlink(w.path("trace.json")) if os.path.exists(w.path("trace.json")) else None
        r = audit(w, *command)
        check(r.status == status and r.trace is None, r)
    # Timers do not keep a call from being made, threads do not get in each other's way.
    program = script(w, """
import signal, threading
signal.signal(signal.SIGALRM, lambda *_: None)
signal.setitimer(signal.ITIMER_REAL, 0.0002, 0.0002)
def many(n):
    for i in range(300):
        # Python asks for calls to be interrupted, and one that waits to be looked at is.
        while isinstance(attempt(os.stat, f"/nowhere/{n}/{i}"), InterruptedError): pass
threads = [threading.Thread(target=many, args=(n,)) for n in range(4)]
for t in threads: t.start()
for t in threads: t.join()
print("done")
""")
    r = audit(w, program)
    check(r.out == "done\n" and sum(n.startswith("/nowhere/") for n in found(r)) == 1200, (r, len(found(r))))


def network(w):
    """TCP that was seen is granted by port, and works then; what stays inside needs nothing, and what no key is about is said."""
    service = bound_below(socket.socket.listen)
    port = service.getsockname()[1]
    threading.Thread(target=serve, args=(service,), daemon=True).start()
    client = script(w, f"""
import threading
s = socket.create_connection(("127.0.0.1", {port})); print(s.recv(10)); s.close()
attempt(socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto, b"x", ("192.0.2.1", 53))
""")
    r = audit(w, client, options=["--unconfined"])
    check("outside" in r.out and operations(r, f"127.0.0.1:{port}", "address") == {"connect"}, r)
    config, text = generate(w, target=client)
    check(tomllib.loads(text)["network"] == {"egress_allow": [str(port)]}, text)
    check("send: 192.0.2.1:53 (a datagram: let out where a policy allows any egress" in text, text)
    check("outside" not in w.call("run", client).out, "without a policy")
    again = audit(w, client, options=["--config", config])
    check("outside" in again.out and not any(a["kind"] == "address" for a in again.trace["accesses"]), again.trace)
    service.shutdown(socket.SHUT_RDWR)
    # Nobody else takes this one meanwhile, and a program that is to listen there may.
    held = bound_below(lambda s: s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1))
    own = script(w, f"""
import threading
server = socket.create_server(("127.0.0.1", 0)); fixed = socket.socket(); fixed.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
fixed.bind(("127.0.0.1", {held.getsockname()[1]})); fixed.listen()
for s in (server, fixed):
    c = socket.create_connection(s.getsockname()); s.accept()[0].sendall(b"inside"); print(c.recv(10))
open("../new", "w").close()
""")
    r = audit(w, own, options=["--unconfined"])
    check(r.out.count("inside") == 2, r)
    config, text = generate(w, target=own)
    check("network" not in tomllib.loads(text) and "a port of the kernel's choice" in text, text)
    check(w.call("run", "--config", config, own).out.count("inside") == 2, text)
    held.close()


def bound_below(use):
    """At a port that the kernel chooses for nobody, and no other of these tests has."""
    for port in range(20000, 30000):
        s = socket.socket()
        try:
            s.bind(("127.0.0.1", port))
            use(s)
            return s
        except OSError:
            s.close()
    raise AssertionError("no port is free")


def serve(service):
    while True:
        try:
            with service.accept()[0] as c:
                c.sendall(b"outside")
        except OSError:
            return


def hostile(w):
    """T008: what a hostile program did is granted when its trace is accepted, but for what is of high risk. Nothing in the trace is more
    than a value of the policy."""
    w.write("real/.bashrc", "mine\n")
    w.mkdir("real/.ssh")
    w.write("real/.ssh/id_ed25519", "KEY\n")
    w.write("diary", "DIARY\n")
    program = script(w, f"""
for path in ("real/.ssh/id_ed25519", "diary"):
    print(attempt(lambda: open({w.root!r} + "/" + path).read()))
attempt(lambda: open({w.path('real/.bashrc')!r}, "a").write("evil"))
for address in (("192.0.2.1", 443), ("169.254.169.254", 80)):
    s = socket.socket(); s.settimeout(0.1); attempt(s.connect, address)
""")
    r = audit(w, program)
    check("KEY" not in r.out and "DIARY" not in r.out, r)
    config, text = generate(w, target=program)
    policy = tomllib.loads(text)
    check(policy["network"] == {"egress_allow": ["443"]} and "169.254.169.254:80 (" in text and "  192.0.2.1:443" in text, text)
    check(w.path("diary") in policy["filesystem"]["read"] and ".ssh" not in str(policy) and ".bashrc" not in str(policy), text)
    r = w.call("run", "--config", config, program)
    check("DIARY" in r.out and "KEY" not in r.out and w.read("real/.bashrc") == "mine\n", r)
    config, text = generate(w, "--include-high-risk", target=program)
    check(tomllib.loads(text)["network"] == {"egress_allow": ["80", "443"]}, text)
    r = w.call("run", "--config", config, program)
    check("KEY" in r.out and w.read("real/.bashrc") == "mine\nevil", (text, r))
    # A trace written by hand says no more than its values.
    trace = json.loads(w.read("trace.json"))
    evil = ['x:443"]\negress = "allow', "1.2.3.4:443\n[filesystem]\nread = ['/']", "1.2.3.4:0", ":", "[::1]"]
    first = trace["accesses"][0]
    trace["accesses"] = [{**first, "kind": "address", "name": n, "operations": ["connect", "bind"], "granted": []} for n in evil]
    trace["accesses"].append({**first, "kind": "path", "name": '/x"]\nreset = true #', "operations": ["read"], "missing": False})
    w.write("trace.json", json.dumps(trace))
    policy = tomllib.loads(generate(w, target=program)[1])
    check(policy == {"filesystem": {"read": ['/x"]\nreset = true #']}}, policy)


def unseen(w):
    """What cannot be looked at counts as lost where it is possible at all, so that no policy is made of it by oversight."""
    program = script(w, """
libc.syscall(425, 1, (c_long * 20)())  # io_uring_setup
attempt(os.chroot, "/")
""")
    if audit(w, program).trace["lost_unreadable"] != 0:
        raise AssertionError("confined, both are refused: nothing is lost")
    r = audit(w, program, options=["--unconfined"])
    check(r.trace["lost_unreadable"] == 2 and r.trace["truncated"] and "what 2 calls do could not be told" in r.err, r)
    if platform.machine() == "x86_64":
        r = audit(w, script(w, "libc.syscall(0x40000000 + 39)\n"), options=["--unconfined"])
        check(r.trace["lost_unreadable"] == 1, r.trace)


def losses(w):
    """What was too much is counted, and a policy is not made of it by oversight."""
    program = script(w, "for i in range(66000): libc.access(b'/nowhere/%d' % i, 0)\n")
    r = audit(w, program)
    check(r.status == 0 and r.trace["truncated"] and r.trace["lost_dropped"] > 400 and len(r.trace["accesses"]) == 65536, r)
    check("not everything was seen" in r.err, r)
    w.write("secret", "x\n")
    r = audit(w, "cat", w.path("secret"))
    r.trace["lost_unreadable"] = 3
    w.write("trace.json", json.dumps(r.trace))
    arguments = ["profile", "generate", "--trace", w.path("trace.json"), "--target", "cat"]
    r = w.call(*arguments)
    check(r.status == 1 and r.out == "" and "3 accesses were lost" in r.err and "--accept-truncated" in r.err, r)
    r = w.call(*arguments, "--accept-truncated")
    check(r.status == 0 and "# Not all: 3 accesses were lost." in r.out and w.path("secret") in r.out, r)


def bad_traces(w):
    w.write("secret", "x\n")
    good = audit(w, "cat", w.path("secret")).trace
    path = w.path("trace.json")

    def refused(text, target="cat"):
        w.write("trace.json", text)
        r = w.call("profile", "generate", "--trace", path, "--target", target)
        check(r.status == 1 and r.out == "" and path in r.err, (text, r))

    def changed(**more):
        refused(json.dumps({**good, **more}))

    access = good["accesses"][0]
    for text in ("", "{}", "[]", "x", json.dumps(good)[:-1], json.dumps(good) + "x", json.dumps(good).replace('"calls"', '"signal"'), "\0"):
        refused(text)
    refused(json.dumps(good), "sh")
    for more in ({"bailey_trace": 2}, {"extra": 1}, {"calls": -1}, {"calls": 1.5}, {"target": "cat"}, {"status": 999}, {"accesses": {}},
                 {"accesses": [access, access]}, {"accesses": [{**access, "name": "relative"}]}, {"accesses": [{**access, "name": "/a/../b"}]},
                 {"accesses": [{**access, "operations": []}]}, {"accesses": [{**access, "operations": ["fly"]}]}, {"accesses": [{**access, "kind": "x"}]}):
        changed(**more)
    os.unlink(path)
    r = w.call("profile", "generate", "--trace", path, "--target", "cat")
    check(r.status == 1 and "cannot be opened" in r.err, r)
    os.mkfifo(path)
    w.own(path)
    r = w.call("profile", "generate", "--trace", path, "--target", "cat")
    check(r.status == 1 and "is no file" in r.err, r)
    for arguments in ([], ["--trace", path], ["--target", "cat"], ["--trace", path, "--target", "cat", "x"]):
        check(w.call("profile", "generate", *arguments).status == NOT_RUN, arguments)


def killed(w):
    """Whoever is watched does not outlive the one who watches."""
    marker = w.path("W/pid")
    command = [w.bailey, "audit", "--unconfined", "sh", "-c", f"echo $$ >{marker}; echo ready; exec sleep 1000"]
    account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}
    p = subprocess.Popen(command, cwd=w.work, env=w.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **account)
    check(p.stdout.readline() == b"ready\n", "it started")
    watched = os.pidfd_open(int(w.read("W/pid")))
    p.send_signal(signal.SIGKILL)
    p.wait()
    check(p.stdout.read() == b"", "its end")
    signal_sent = True
    try:
        signal.pidfd_send_signal(watched, 0)
    except ProcessLookupError:
        signal_sent = False
    os.close(watched)
    check(not signal_sent or not os.path.exists(f"/proc/{w.read('W/pid').strip()}/fd/1"), "it went on")


def fallback(w):
    """Without namespaces the policy is still enforced, and seen through."""
    w.write("secret", "SECRET\n")
    r = audit(w, "sh", "-c", "cat ../secret", lacking="clone3:EPERM")
    check("SECRET" not in r.out and operations(r, w.path("secret")) == {"read"} and "not enforced: namespaces" in r.err, r)


main([
    ("Q017 C114: the trace is JSON, whole, private, and has each refused access once", trace_file),
    ("T002: confined by default; unconfined is said; high risk is apart", confined),
    ("every call that names a path or address is seen", calls),
    ("paths are those that the kernel comes to", resolution),
    ("C111: the trace file is put in place, through no link", places),
    ("Q018 C112: what was audited once runs under the generated policy: sh, python3, make, git, node", loop),
    ("C112: links out of sight are granted with what they lead to", links),
    ("C114: a failed run is explained", explained),
    ("a sandbox has no audits", nested),
    ("high risk is left out of the policy, and kept out, unless asked for", high_risk),
    ("names of any bytes are said in TOML or left out", names),
    ("C112: signals, survivors, threads and timers, nothing to grant", endings),
    ("what was lost is counted, and refused unless accepted", losses),
    ("C112: calls that do what cannot be seen are losses", unseen),
    ("Q019: the network that was used is granted by port", network),
    ("T008: a hostile program's trace, and a forged one", hostile),
    ("a trace that is none, or was changed, is refused whole", bad_traces),
    ("C052: nobody outlives the one who watches", killed),
    ("without namespaces an audit goes on", fallback),
])
