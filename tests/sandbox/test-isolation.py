#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What isolation gives a run, and what remains with --no-isolate: Landlock, seccomp and the network namespace. What is then not enforced
is told in the run's summary, line by line, and refused under --strict."""

import json
import os
import re
import socket
import subprocess
import tempfile
import time

from bailey import NOT_RUN, check, main

NAMESPACES = ("user", "pid", "mnt", "net", "uts", "ipc", "cgroup")
LINKS = "for n in " + " ".join(NAMESPACES) + "; do readlink /proc/self/ns/$n; done; "
NESTED = '[filesystem]\nread = ["."]\nwrite = ["."]\ndeny = ["denied"]\nread_only = ["island"]\n'
ALL_FOUR = ["nested-deny", "read-only", "private-tmp", "private-home"]


def namespaces(r):
    lines = r.out.splitlines()[:len(NAMESPACES)]
    check(len(lines) == len(NAMESPACES), r)
    return {n for n, line in zip(NAMESPACES, lines) if line != os.readlink(f"/proc/self/ns/{n}")}


def told(r):
    """The summary alone: what it says is not enforced."""
    return re.findall(r"^bailey: warning: not enforced: ([a-z-]+): ", r.err, re.M)


def nested(w, **more):
    w.mkdir("W/denied")
    w.mkdir("W/island")
    w.write("W/denied/secret", "SECRET\n")
    w.write("W/island/file", "kept\n")
    return f'{NESTED}[env]\nset = {{ HOME = "{w.path("real")}" }}\n'


def by_default(w):
    w.write("real/key", "SECRET\n")
    look = LINKS + f"cat {w.path('real/key')}; python3 -c 'import os; os.chroot(\"/\")'"
    r = w.run(None, look)
    check(namespaces(r) == set(NAMESPACES), r)
    check("SECRET" not in r.out and "No such file" in r.err and "PermissionError" in r.err, r)
    check("enforced: own root, namespaces, landlock" in r.err and told(r) == [], r)
    r = w.run(None, look, "--no-isolate")
    check(namespaces(r) == {"user", "net"}, r)
    check("SECRET" not in r.out and "Permission denied" in r.err and "PermissionError" in r.err, r)
    check(re.search(r"^bailey: enforced: landlock ABI \d+, seccomp, own network$", r.err, re.M), r)


def four(w):
    policy = nested(w)
    script = "cat denied/secret; echo changed > island/file; echo $HOME; test -e ../real && echo seen"
    r = w.run(policy, script)
    check("SECRET" not in r.out and w.read("W/island/file") == "kept\n" and told(r) == [], r)
    r = w.run(policy, script, "--no-isolate")
    check(told(r) == ["isolation", *ALL_FOUR], r)
    # It is what it says.
    check("SECRET" in r.out and w.read("W/island/file") == "changed\n" and "seen" in r.out, r)
    r = w.run(policy, "true", "--no-isolate", "--json")
    check([g["name"] for g in json.loads(r.err.splitlines()[-1])["not_enforced"]] == ["isolation", *ALL_FOUR], r)
    # Where nothing is nested, nothing nested is lost.
    r = w.run('[filesystem]\nread = ["."]\n', "true", "--no-isolate")
    check(told(r) == ["isolation", "private-tmp", "private-home"], r)


def temporary(w):
    with tempfile.NamedTemporaryFile(prefix="bailey-test-", dir="/tmp") as f:
        w.own(f.name)
        granted = f'[filesystem]\nread = ["{f.name}"]\n'
        check(w.run(None, f"test -e {f.name}").status == 1, "seen in a private /tmp")
        r = w.run(granted, f"cat {f.name}; touch /tmp/mine", "--no-isolate")
        check("touch" in r.err and "Permission denied" in r.err and not os.path.exists("/tmp/mine"), r)


def private_home(w):
    """The one that is not at the real home's place works as ever."""
    r = w.run(None, "cat $HOME/kept; echo kept > $HOME/kept", "--no-isolate")
    r = w.run(None, "cat $HOME/kept", "--no-isolate")
    check(r.out == "kept\n", r)
    policy = f'[env]\nset = {{ HOME = "{w.path("real")}" }}\n'
    w.write("real/.profile", "mine\n")
    r = w.run(policy, "echo changed > $HOME/.profile", "--no-isolate")
    check("Permission denied" in r.err and w.read("real/.profile") == "mine\n", r)


def strict(w):
    policy = nested(w)
    for gap in ("isolation", *ALL_FOUR):
        accepted = [x for g in ("isolation", *ALL_FOUR) if g != gap for x in ("--accept-gap", g)]
        r = w.run(policy, "touch ran", "--no-isolate", "--strict", *accepted)
        check(r.status == NOT_RUN and gap in r.err and not os.path.exists(w.path("W/ran")), r)
    accepted = [x for g in ("isolation", *ALL_FOUR) for x in ("--accept-gap", g)]
    r = w.run(policy, "touch ran", "--no-isolate", "--strict", *accepted)
    check(r.status == 0 and os.path.exists(w.path("W/ran")), r)


def no_network(w):
    script = ("import socket, sys\n"
              "for family, kind in ((2, 1), (2, 2)):\n"
              "    with socket.socket(family, kind) as s:\n"
              "        try:\n"
              "            s.connect(('127.0.0.1', int(sys.argv[1]))); s.send(b'x'); s.send(b'x'); print('sent')\n"
              "        except OSError as e: print(e.errno)\n"
              "        try:\n"
              "            s.connect(('192.0.2.1', 9)); print('route')\n"
              "        except OSError as e: print(e.errno)\n")
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = str(server.getsockname()[1])
        bare = subprocess.run(["/usr/bin/python3", "-c", script, port], capture_output=True, text=True, check=True, timeout=20).stdout
        check(bare.startswith("sent\n"), bare)
        for options in ([], ["--no-isolate"]):
            r = w.call("run", *options, "/usr/bin/python3", "-c", script, port)
            check(r.out.split() == ["111", "101", "111", "101"], r)


def bound_port(w):
    """What listens in a network of its own is reached there and nowhere else, by whatever address."""
    script = ("import socket, sys\ns = socket.create_server(('0.0.0.0', int(sys.argv[1])))\n"
              "c = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); s.accept()[0].sendall(b'inside'); print(c.recv(10).decode(), flush=True)\n"
              "sys.stdin.readline()\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}
    for command in ([w.bailey, "run", "--quiet"], [w.bailey, "run", "--quiet", "--no-isolate"], None):
        bare = not command
        p = subprocess.Popen([*(command or []), "/usr/bin/python3", "-c", script, str(port)], cwd=w.work, env=w.environment, stdin=subprocess.PIPE,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **account)
        check(p.stdout.readline() == "inside\n", command)
        with socket.socket() as s:
            check((s.connect_ex(("127.0.0.1", port)) == 0) == bare, command)
        p.stdin.close()
        p.stdout.close()
        check(p.wait() == 0, command)


def abstract(w):
    """Where X11, D-Bus and PipeWire have theirs: of the network namespace, with Landlock's scope or without."""
    name = f"bailey-test-{os.getpid()}"
    script = f"import socket\ntry: socket.socket(socket.AF_UNIX).connect('\\0{name}'); print('reached')\nexcept OSError as e: print(e.errno)\n"
    with socket.socket(socket.AF_UNIX) as s:
        s.bind("\0" + name)
        s.listen()
        check(subprocess.run(["/usr/bin/python3", "-c", script], capture_output=True, text=True, check=True).stdout == "reached\n", "outside")
        for options in ([], ["--no-isolate"]):
            for lacking in (None, *([] if options else ["landlock_create_ruleset:ENOSYS"])):
                r = w.call("run", *options, "/usr/bin/python3", "-c", script, lacking=lacking)
                check(r.out == "111\n", r)


def allowed_network(w):
    r = w.run('[network]\negress_allow = ["443"]\n', LINKS + "echo ran", "--no-isolate")
    check(namespaces(r) == set() and "ran" in r.out, r)
    check(", seccomp, TCP ports\n" in r.err and r.err.count("UDP, QUIC, and DNS are not restricted") == 1, r)


def nothing_more(w):
    """Neither a further namespace nor a capability, though the user namespace is the run's own."""
    r = w.run(None, "grep -h Cap /proc/self/status; cat /proc/sys/user/max_user_namespaces; unshare -U true; echo 1 > /proc/sys/user/max_user_namespaces",
              "--no-isolate")
    check(re.findall(r"^Cap\w+:\s+(\w+)$", r.out, re.M) == ["0" * 16] * 5, r)
    check("\n0\n" in r.out and "unshare" in r.err and "Permission denied" in r.err, r)


def survivors(w):
    policy = '[filesystem]\nwrite = ["."]\n'
    begun = time.monotonic()
    # Each of them comes to bailey only when the one before it has ended.
    deep = "sh -c \"sh -c 'sleep 60 & echo \\$! >&3; echo; wait' & wait\""
    r = w.run(policy, f"mkfifo up; setsid {deep} 3>&1 >up 2>/dev/null & read x < up", "--no-isolate")
    check(r.status == 0 and time.monotonic() - begun < 30 and "outlived" in r.err, r)
    check(r.out.strip().isdigit() and not os.path.exists(f"/proc/{r.out.strip()}"), r)


def first_process(w):
    """Without a PID namespace it is a process like others, and what outlives the command is ended by it."""
    if "landlock-scope" in w.run(None, "true", "--no-isolate").err:
        return "this kernel's Landlock does not hold signals"
    for lacking in (None, "clone3:EPERM"):
        r = w.run('[filesystem]\nwrite = ["."]\n',  # it has left the group when its number is read
                  "rm -f up; mkfifo up; setsid sh -c 'echo $$ >up; exec sleep 60' & read x <up; echo $x;"
                  " for s in 9 STOP TERM; do kill -$s $PPID; done; kill -9 0",
                  "--no-isolate", lacking=lacking)
        check(r.status == 137 and r.err.count("kill: Operation not permitted") == 3 and "first process" not in r.err, r)
        check(not os.path.exists(f"/proc/{r.out.strip()}") and "outlived" in r.err, r)
    return None


def killed_before_listener(w):
    """By its own filter, when it would be listened to: nobody waits for it, nor for its helper."""
    for options in ((), ("--no-isolate",)):
        r = w.run(None, "echo ran", "--explain", *options, lacking="seccomp,0=1,1=0x28:KILL")  # SECCOMP_SET_MODE_FILTER with a listener
        check(r.status == NOT_RUN and "killed by signal 31" in r.err and "ran" not in r.out, r)


def lacking(w):
    r = w.run(None, "true", "--no-isolate", lacking="landlock_create_ruleset:ENOSYS")
    check(r.status == NOT_RUN and "nothing else would protect files" in r.err, r)
    r = w.run(None, LINKS, "--no-isolate", lacking="clone3:EPERM")
    check(r.status == 0 and namespaces(r) == set() and "internet sockets denied" in r.err, r)
    check(told(r) == ["namespaces", "private-tmp", "private-home"], r)
    r = w.call("run", "--no-isolate", "--broker-socket", "/x", "--broker-token-fd", "9", "--listen", "127.0.0.1:1", "true", pass_fds=[w_fd()])
    check(r.status == NOT_RUN and "give one" in r.err, r)


def w_fd():
    fd = os.open("/dev/null", os.O_RDONLY)
    os.dup2(fd, 9)
    os.close(fd)
    return 9


def shown(w):
    policy = w.policy(nested(w))
    r = w.call("show", "--config", policy, "--no-isolate", "sh")
    check(re.findall(r"^not enforced: ([a-z-]+): ", r.out, re.M) == ["isolation", *ALL_FOUR], r)
    check("mode: isolated (own namespace, loopback only, no route off the host)" in r.out, r)
    r = w.call("show", "--config", policy, "--no-isolate", "--json", "sh")
    check([g["name"] for g in json.loads(r.out)["not_enforced"]] == ["isolation", *ALL_FOUR], r)
    check("not enforced" not in w.call("show", "--config", policy, "sh").out, "without the option")


def in_a_shell(w):
    policy = w.policy('[filesystem]\nread = ["."]\n')
    r = w.call("shell", "--config", policy, "--no-isolate", "--", "-c", LINKS + "false",
               environment={**w.environment, "SHELL": "/bin/sh"})
    check(r.status == 1 and namespaces(r) == {"user", "net"} and told(r)[0] == "isolation", r)
    r = w.run(None, f"cat {w.path('config')}", "--no-isolate", "--explain")
    check(r.status == 1 and f"{w.path('config')} (cat" in r.err and "not everything" not in r.err, r)


main([
    ("Q021 Q022 S002: isolation is the default; without it Landlock, seccomp and the network namespace stay", by_default),
    ("Q023: what is not enforceable without it is told, each by its line, and is so", four),
    ("Q023: without isolation there is no private /tmp, and the host's is not opened for it", temporary),
    ("Q023: the real home is not opened where the private one cannot stand", private_home),
    ("Q022 Q023: --strict refuses, until each is accepted", strict),
    ("T003 N006: a denied egress is denied by a namespace, whatever isolation there is", no_network),
    ("N009 N006: the host's abstract sockets are not there", abstract),
    ("N034 N006: what listens inside is reached inside only", bound_port),
    ("N006 T023: allowed egress is the host's network, held by TCP port", allowed_network),
    ("Q022 T017: no capability and no further namespace comes with it", nothing_more),
    ("Q022 C050: nothing outlives the run", survivors),
    ("Q022 C050: what runs inside cannot end the first process, alone or with its group", first_process),
    ("a first process that is killed as its listener is handed over leaves nobody who waits", killed_before_listener),
    ("Q022: without Landlock nothing runs; without user namespaces that is told", lacking),
    ("Q022 Q023: bailey show says what would not be enforced", shown),
    ("Q022: a shell and an explained run without isolation", in_a_shell),
])
