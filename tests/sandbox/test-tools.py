#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What developers' tools need of a sandbox: the host's own programs, shared memory, a home, a key that is lent; and what they cannot have."""

import os
import re
import socket
import subprocess
import threading
import time

from bailey import check, main

GIT_WHO = "Please tell me who you are"


def own_tools(w):
    """They are the host's very files, and a run leaves nothing but its home."""
    before = sorted(os.listdir(w.root))
    r = w.run(None, "stat -c %d:%i /usr/bin/git /usr/bin/python3; git --version")
    numbers = [f"{st.st_dev}:{st.st_ino}" for st in (os.lstat(p) for p in ("/usr/bin/git", "/usr/bin/python3"))]
    check(r.status == 0 and r.out.splitlines()[:2] == numbers and r.out.splitlines()[2].startswith("git version"), (numbers, r))
    check(sorted(os.listdir(w.root)) == before and os.listdir(w.work) == [], "beside it")
    made = [os.path.relpath(os.path.join(at, n), w.path("data")) for at, ds, fs in os.walk(w.path("data")) for n in ds + fs]
    check(sorted(made) == ["bailey", "bailey/sh", "bailey/sh/home"], made)


def shared_memory(w):
    """As large as asked for, of this run alone, and nobody else's."""
    name = f"bailey-test-{os.getpid()}"
    with open(f"/dev/shm/{name}", "w", encoding="utf-8") as f:
        f.write("outside\n")
    try:
        script = ("import mmap, multiprocessing as m, os, stat\n"
                  "if __name__ == '__main__':\n"
                  "    print(oct(stat.S_IMODE(os.stat('/dev/shm').st_mode)), os.listdir('/dev/shm'))\n"
                  "    print(m.Pool(2).map(abs, [-1, -2]))\n"
                  "    from multiprocessing import shared_memory\n"
                  "    s = shared_memory.SharedMemory(create=True, size=64 << 20); s.buf[-1] = 7; print(s.buf[-1]); s.close(); s.unlink()\n")
        path = w.write("W/shared.py", script)
        policy = w.policy('[filesystem]\nread = ["."]\n')
        r = w.call("run", "--config", policy, "/usr/bin/python3", path)
        check(r.status == 0 and r.out.splitlines() == ["0o1777 []", "[1, 2]", "7"], r)
        r = w.run('[resources]\nshm_size = "1m"\n', "head -c 2m /dev/zero >/dev/shm/x")
        check(r.status == 1 and "No space left" in r.err, r)
        check(name in os.listdir("/dev/shm"), "the host's")
    finally:
        os.unlink(f"/dev/shm/{name}")


def home(w):
    """It is there, empty, writable and kept; what of the real one is wanted is granted by name."""
    script = "ls -A ~; mkdir -p ~/.cache; head -c 10m /dev/zero >~/.cache/x && wc -c <~/.cache/x"
    for kept in ([], [".cache"]):
        r = w.run(None, script)
        check(r.status == 0 and r.out.splitlines() == [*kept, "10485760"], r)
    w.write("real/.gitconfig", "[user]\n\tname = Nobody Else\n\temail = n@e.invalid\n")
    work = '[filesystem]\nwrite = ["."]\n'
    commit = "git init -q r && cd r && git commit -q --allow-empty -m x && git log --format=%an; cd ..; rm -rf r"
    r = w.run(work, commit)
    check(GIT_WHO in r.err and "Read-only" not in r.err, r)
    here = f'[filesystem]\nwrite = ["."]\nread = ["~/.gitconfig"]\n[env]\nset = {{ HOME = "{w.path("real")}" }}\n'
    r = w.run(here, commit + "; echo x >>~/.gitconfig; ls -A ~")
    check(r.out.splitlines()[0] == "Nobody Else" and ".gitconfig" in r.out, r)
    check(re.search(r"\.gitconfig: (Read-only|Permission denied)", r.err) and "x" not in w.read("real/.gitconfig").split(), r)


def caches(w):
    """What one program, or one directory's shell, keeps is no other's, and nothing of it is where others look for programs."""
    poison = "mkdir -p ~/.local/bin ~/.cache; printf '#!/bin/sh\\necho poisoned\\n' >~/.local/bin/tool; chmod +x ~/.local/bin/tool; cp ~/.local/bin/tool ~/.cache/"
    for name in ("one", "two"):
        w.mkdir(name)
    environment = {**w.environment, "SHELL": "/bin/sh"}
    r = w.call("shell", "--", "-c", poison + "; echo $HOME", cwd=w.path("one"), environment=environment)
    first = r.out.strip()
    check(os.path.exists(f"{first}/.cache/tool"), r)
    look = "tool; ls -A ~; echo $HOME; case :$PATH: in *:$HOME*) echo in PATH;; esac"
    r = w.call("shell", "--", "-c", look, cwd=w.path("two"), environment=environment)
    check("poisoned" not in r.out and len(r.out.splitlines()) == 1 and r.out.strip() != first, r)
    r = w.run(None, look)
    check("poisoned" not in r.out and r.out.strip() != first, r)
    # Nor can it be got at from there: no policy makes another's home writable.
    r = w.run(f'[filesystem]\nwrite = ["{w.path("data")}"]\n', f"echo >{first}/.cache/tool")
    check(r.status != 0 and os.stat(f"{first}/.cache/tool").st_size > 1, r)


def listener(w, name):
    s = socket.socket(socket.AF_UNIX)
    s.bind(w.path(name))
    os.chmod(w.path(name), 0o777)
    s.listen()

    def serve():
        while True:
            try:
                with s.accept()[0] as c:
                    c.sendall(name.encode())
            except OSError:
                return
    threading.Thread(target=serve, daemon=True).start()
    return s


def lent_socket(w):
    """One socket by its name, as that of a key agent: no other in its directory is there."""
    w.mkdir("agent")
    servers = [listener(w, "agent/lent"), listener(w, "agent/other")]
    script = w.write("W/ask.py", "import os, socket, sys\nprint(os.environ.get('SSH_AUTH_SOCK'), os.listdir(sys.argv[1]))\n"
                     "for name in ('lent', 'other'):\n    try:\n        with socket.socket(socket.AF_UNIX) as s:\n            s.connect(sys.argv[1] + '/' + name); print(s.recv(20).decode())\n"
                     "    except OSError as e: print(e.errno)\n")
    policy = w.policy(f'[filesystem]\nread = [".", "{w.path("agent/lent")}"]\n[env]\npass = ["SSH_AUTH_SOCK"]\n')
    environment = {**w.environment, "SSH_AUTH_SOCK": w.path("agent/lent")}
    r = w.call("run", "--config", policy, "/usr/bin/python3", script, w.path("agent"), environment=environment)
    check(r.out.splitlines() == [f"{w.path('agent/lent')} ['lent']", "agent/lent", "2"], r)
    r = w.call("run", "--config", w.policy('[filesystem]\nread = ["."]\n'), "/usr/bin/python3", script, w.path("agent"), environment=environment)
    check("lent" not in r.out, r)
    for s in servers:
        s.shutdown(socket.SHUT_RDWR)


def desktop_helper(w):
    """Whoever reads files for others at a socket is reached neither there, nor by a link in the project, nor by what the caller had open."""
    w.mkdir("bus")
    server = listener(w, "bus/bus")
    w.link(w.path("bus/bus"), "W/alternative")
    script = w.write("W/ask.py", "import socket, sys\nfor p in sys.argv[2:]:\n    try:\n        with socket.socket(socket.AF_UNIX) as s:\n            s.connect(p); print(s.recv(20).decode())\n"
                     "    except OSError as e: print(e.errno)\ntry: print(socket.socket(fileno=int(sys.argv[1])).recv(20).decode())\nexcept OSError as e: print(e.errno)\n")
    policy = w.policy('[filesystem]\nwrite = ["."]\n')
    places = [w.path("bus/bus"), w.path("W/alternative"), "/proc/self/root" + w.path("bus/bus")]
    account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}
    with socket.socket(socket.AF_UNIX) as had:
        had.connect(places[0])
        r = w.call("run", "--config", policy, "/usr/bin/python3", script, str(had.fileno()), *places, pass_fds=[had.fileno()])
        check(r.out.split() == ["2", "2", "2", "9"], r)
        bare = subprocess.run(["/usr/bin/python3", script, str(had.fileno()), *places], capture_output=True, text=True, check=True, pass_fds=[had.fileno()], **account)
        check(bare.stdout.split() == ["bus/bus"] * 4, bare)
    server.shutdown(socket.SHUT_RDWR)


def debugging(w):
    """No process is traced, not even a child; that is said at once, and nothing hangs."""
    script = w.write("W/trace.py", "import ctypes, os, signal\nlibc = ctypes.CDLL(None, use_errno=True)\npid = os.fork()\n"
                     "if pid == 0:\n    signal.pause()\nr = libc.ptrace(16, pid, None, None); print(r, ctypes.get_errno())\nos.kill(pid, 9); os.wait()\n"
                     "print(libc.personality(0x0040000))\n")
    r = w.call("run", "--config", w.policy('[filesystem]\nread = ["."]\n'), "/usr/bin/python3", script)
    check(r.out.splitlines()[0] == "-1 1", r)
    bare = subprocess.run(["/usr/bin/python3", script], capture_output=True, text=True, check=True, **({"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}))
    check(bare.stdout.splitlines()[0] == "0 0", bare)
    check(r.out.splitlines()[1] != "-1", "a program without address randomization, which debuggers and sanitizers ask for")


def own_sandbox(w):
    """A browser's own sandbox, of further namespaces, is not to be had: it is refused with what the kernel says where there are none."""
    begun = time.monotonic()
    r = w.run(None, "unshare -Urpn true; python3 -c 'import ctypes, os; l = ctypes.CDLL(None, use_errno=True); print(l.unshare(0x10000000), ctypes.get_errno())'")
    check("-1 1\n" in r.out and "unshare" in r.err and time.monotonic() - begun < 20, r)


main([
    ("S003: a sandbox runs the host's own tools, and nothing is made for that", own_tools),
    ("C093: shared memory of a size, of its own, for semaphores and pools", shared_memory),
    ("C096: a home that is there, empty and kept; a missing identity is git's own message", home),
    ("C099: what a cache holds is not another's", caches),
    ("C068: a socket that is lent by its name, and no other", lent_socket),
    ("C066: a helper on a bus is not reached: not by its path, a link to it, or a connection of the caller's", desktop_helper),
    ("C095: a debugger is refused, at once", debugging),
    ("C092: a program's own sandbox is refused, at once", own_sandbox),
])
