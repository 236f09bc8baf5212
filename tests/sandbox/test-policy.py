#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a policy file means for a program that runs under it."""

import json
import os
import socket
import subprocess
import threading

from bailey import NOT_RUN, check, main


def lines(r):
    return r.out.splitlines()


def said(r, *expected):
    check(lines(r) == list(expected), r)


TRY = 'try() { if "$@" >/dev/null 2>&1; then echo yes; else echo no; fi; }; put() { echo x >"$1"; }; '


def nested(w):
    w.mkdir("W/H/proj/state/secret")
    for name in ("H/proj/x", "H/other", "H/proj/state/secret/s"):
        w.write(f"W/{name}", "text\n")
    rules = ['deny = ["H", "H/proj/state/secret"]', 'read = ["H/proj"]', 'write = ["H/proj/state"]']
    for order in (rules, rules[::-1]):
        r = w.run("[filesystem]\n" + "\n".join(order) + "\n", TRY + "try put H/proj/state/a; try cat H/proj/x; try put H/proj/x;"
                  "try cat H/other; try cat H/proj/state/secret/s; try ls H/proj/state/secret; test -e H/other; echo $?")
        said(r, "yes", "yes", "no", "no", "no", "no", "1")
    check(w.read("W/H/proj/state/a") == "x\n" and w.read("W/H/proj/x") == "text\n", "the host's files")


def protected_links(w):
    w.mkdir("elsewhere")
    w.write("elsewhere/rc", "rc\n")
    w.mkdir("W/tree")
    w.link("/nonexistent/target", "W/tree/.bashrc")
    w.link("../../elsewhere/rc", "W/tree/.zshrc")
    w.write("elsewhere/profile", "profile\n")
    w.link("chain", "W/tree/.profile")
    w.link("../../elsewhere/profile", "W/tree/chain")
    names = [".bashrc", ".zshrc", ".profile"]
    r = w.run('[filesystem]\nwrite = ["tree"]\nread = ["../elsewhere"]\nread_only = ["tree/.bashrc", "tree/.zshrc"]\ndeny = ["tree/.profile"]\n'
              .replace('"../', f'"{w.root}/'),
              TRY + "echo hi; cd tree; " + "; ".join(f"try put {n}; try rm -f {n}; try mv {n} x; try ln -sfT /x {n}; try mv -T other {n}"
                                                     for n in names)
              + "; try rm -f chain; try mv chain x; cat .zshrc; readlink .zshrc; try cat .profile; try mv ../tree ../moved")
    said(r, "hi", *["no"] * 15, "no", "no", "rc", "../../elsewhere/rc", "no", "no")
    check(w.read("elsewhere/rc") == "rc\n" and not os.path.exists("/nonexistent"), "the links' targets")
    check([os.readlink(w.path(f"W/tree/{n}")) for n in [*names, "chain"]] ==
          ["/nonexistent/target", "../../elsewhere/rc", "chain", "../../elsewhere/profile"], "the links")


def runtime_directories(w):
    """Where an errandd of the account's own is spoken to, wherever its runtime directory is."""
    names = ("run/errand", f"tmp/errand-{w.uid}")
    for name in names:
        w.mkdir(f"W/{name}")
        w.write(f"W/{name}/bus", "text\n")
    environment = {**w.environment, "XDG_RUNTIME_DIR": w.path("W/run"), "TMPDIR": w.path("W/tmp")}
    script = TRY + "".join(f"try cat {n}/bus; try put {n}/other; try put {n}-more;" for n in names)
    r = w.run('[filesystem]\nwrite = ["."]\n', script, environment=environment)
    said(r, *["no", "no", "yes"] * 2)
    said(w.run('[filesystem]\nwrite = ["."]\n', script), *["yes"] * 6)


def hooks_link(w):
    w.mkdir("W/shared")
    w.mkdir("W/.git")
    w.link("../shared", "W/.git/hooks")
    r = w.run('[filesystem]\nwrite = ["."]\nread_only = [".git/hooks"]\n',
              TRY + "try put .git/hooks/pre-commit; try put shared/pre-commit; try ls .git/hooks; try rm .git/hooks; try mv .git/hooks x;"
              "try mv .git x; try ln -sfT /x .git/hooks; try put .git/config")
    said(r, "no", "no", "yes", "no", "no", "no", "no", "yes")
    check(os.readlink(w.path("W/.git/hooks")) == "../shared" and os.listdir(w.path("W/shared")) == [], "the host's files")


def no_debris(w):
    before = sorted(os.listdir(w.work)) + ["policy.toml"]
    r = w.run('[filesystem]\nwrite = ["."]\ndeny = ["no.such"]\nread_only = ["nor.this"]\n', "ls -A")
    check(r.status == 0, r)
    check(sorted(os.listdir(w.work)) == sorted(before), os.listdir(w.work))
    check("no.such does not exist" in r.err, r)


def planted_link(w):
    w.mkdir("private")
    w.write("private/key", "SECRET\n")
    w.mkdir("W/tree")
    w.link(w.path("private"), "W/tree/link")
    r = w.run('[filesystem]\nwrite = ["tree", "tree/link"]\n', "cat tree/link/key")
    check(r.status == NOT_RUN and r.out == "" and w.path("private") in r.err and "policy.toml:2" in r.err, r)
    # The owner's own link, where no session writes, is followed.
    w.link(w.path("private"), "W/own")
    r = w.run('[filesystem]\nread = ["own"]\n', f"cat {w.path('private/key')} own/key")
    said(r, "SECRET", "SECRET")


def working_directory(w):
    w.mkdir("real/a/b")
    w.write("real/secret", "SECRET\n")
    r = w.call("run", "sh", "-c", "pwd; cat ../../secret; cat ../../../../etc/shadow; ls -A . .. | grep -v :; readlink /proc/self/cwd",
               cwd=w.path("real/a/b"))
    check(lines(r) == [w.path("real/a/b"), "", "b", w.path("real/a/b")], r)


def renamed_parent(w):
    w.mkdir("W/conf")
    w.write("W/conf/key", "SECRET\n")
    w.mkdir("W/sub/conf")
    w.write("W/sub/conf/key", "SECRET\n")
    r = w.run('[filesystem]\nwrite = ["."]\ndeny = ["conf", "sub/conf"]\n',
              "mv conf c2; mkdir x; mv x conf; mv sub sub2; cat c2/key conf/key conf/x/key sub/conf/key sub2/conf/key; rmdir conf; rm -r conf; echo end")
    said(r, "end")
    check(w.read("W/conf/key") == "SECRET\n", "the host's file")


def rebuilt_parent(w):
    """Nobody can put another directory in the place of one that holds something protected: the host would find the new one."""
    w.mkdir("W/.git/hooks")
    w.mkdir("W/a/b/c")
    w.write("W/a/b/c/kept", "kept\n")
    w.mkdir("W/a/ro/only")
    r = w.run('[filesystem]\nwrite = ["."]\ndeny = [".git/hooks"]\nread_only = ["a/b/c/kept"]\nread = ["a/ro/only"]\n',
              TRY + "for d in .git a a/b a/b/c a/ro; do try mv $d away; try rmdir $d; done; try mkdir .git/hooks; try put .git/hooks/post-checkout;"
              "try put a/ro/only/x; try put .git/config; try mv .git/config .git/renamed; try mv .git/renamed a/b/moved; try cat a/b/moved")
    said(r, *["no"] * 10, "no", "no", "no", "yes", "yes", "yes", "yes")
    check(os.listdir(w.path("W/.git/hooks")) == [] and w.read("W/a/b/c/kept") == "kept\n", "the host's files")
    check(w.read("W/a/b/moved") == "x\n" and not os.path.exists(w.path("W/.git/config")), "what is not protected moves")


def relative_rule(w):
    r = w.run('[filesystem]\ndeny = [".."]\nwrite = ["."]\n', "pwd")
    check(r.status == NOT_RUN and "leaves the file's directory" in r.err, r)
    r = w.run(f'[filesystem]\ndeny = ["{w.root}"]\nwrite = ["."]\n', "pwd; touch here; ls -A ..")
    said(r, w.work, "W", "data")  # data: where the private home stands
    check(os.path.exists(w.path("W/here")), "not made on the host")


def odd_mounts(w):
    """What is mounted below a granted directory is as read-only as that, however its place is called."""
    names = ["a b", "a\tb", "a\nb", "a\\b", "a\\040b"]
    script = 'root=$1; shift; for p; do mount -t tmpfs none "$p"; cp /bin/true "$p/own"; chmod 4755 "$p/own"; done; '
    places = []
    for i, name in enumerate(names):
        places.append(w.mkdir(f"W/S{i}/{name}/n"))
    policy = w.policy('[filesystem]\nread = ["."]\n')
    inside = w.write("W/look.py", "import os, sys\nfor p in sys.argv[1:]:\n    print(os.path.exists(p + '/own'), end=' ')\n    for f in (lambda: open(p + '/x', 'w'), "
                     "lambda: os.chmod(p + '/own', 0), lambda: os.execv(p + '/own', ['own'])):\n        try:\n            f(); print('did', end=' ')\n"
                     "        except OSError as e: print(e.errno, end=' ')\n"
                     "    v = os.statvfs(p); print(bool(v.f_flag & os.ST_RDONLY), bool(v.f_flag & os.ST_NOSUID), bool(v.f_flag & os.ST_NODEV))\n")
    tail = f'exec unshare -U --map-user={w.uid} --map-group={w.gid} "$root/bailey" run --config "$root/W/policy.toml" -- /usr/bin/python3 "$root/W/look.py" "$@"'
    account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}
    r = subprocess.run(["/usr/bin/unshare", "-Urm", "/bin/sh", "-c", script + tail, "sh", w.root, *places], capture_output=True, text=True,
                       cwd=w.work, env=w.environment, timeout=50, **account)
    check(r.stdout.splitlines() == ["True 30 30 13 True True True"] * len(names), (r, policy, inside))


def many_denied(w):
    for count in (1, 2, 3, 300):
        names = [f"f{i}" for i in range(count)]
        for name in names:
            w.write(f"W/{name}", "SECRET\n")
        text = ", ".join(f'"{n}"' for n in names)
        r = w.run(f'[filesystem]\nwrite = ["."]\ndeny = [{text}]\n', "cat f* 2>/dev/null; echo end")
        said(r, "end")


def odd_names(w):
    long = "/".join(["d" * 200] * 18)
    for name in ("a:b", "a,b", "-n", "a\nb", "日本", "a b", 'q"\\', long):
        w.mkdir(f"W/{name}")
        text = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        policy = w.policy(f'[filesystem]\nwrite = ["{text}"]\n')
        r = w.call("run", "--config", policy, "sh", "-c", 'echo in >"./$1/file"', "sh", name)
        check(r.status == 0, r)
        check(w.read(f"W/{name}/file") == "in\n", name)
        shown = w.call("show", "--config", policy, "sh")
        check(shown.status == 0 and f"  rw- {w.work}/" + name.replace("\n", "\\n") + f"  ({policy}:2)" in lines(shown), shown)
        rules = json.loads(w.call("show", "--json", "--config", policy, "sh").out)["filesystem"]
        check(any(rule["path"] == w.path(f"W/{name}") for rule in rules), rules)


def own_dev(w):
    w.write("W/denied", "SECRET\n")
    r = w.run('[filesystem]\nwrite = ["/"]\ndeny = ["denied"]\n',
              TRY + "try put /dev/null; head -c4 /dev/urandom | wc -c; ls -A /dev/pts; ls /dev | tr '\\n' ' '; echo; try put here; cat denied;"
              "try ls /run/dbus; try put /proc/sys/kernel/core_pattern; try put /usr/x")
    said(r, "yes", "4", "ptmx", "fd full null ptmx pts random shm stderr stdin stdout tty urandom zero ", "yes", "no", "no", "no")
    check(w.read("W/here") == "x\n", "not on the host")


def directions(w):
    """stat list read append create delete rename, for a denied, a read-only and a writable directory and file in a writable one."""
    for kind in ("d", "f"):
        for name in "abc":
            if kind == "d":
                w.mkdir(f"W/{name}.d")
                w.write(f"W/{name}.d/in", "old\n")
            else:
                w.write(f"W/{name}.f", "old\n")
    script = TRY + "append() { echo x >>$1; }; create() { touch $1/new; };"
    script += ("for n in a b c; do echo $n.d $(try stat $n.d; try ls $n.d; try cat $n.d/in; try append $n.d/in; try create $n.d;"
               "try rm $n.d/in; try mv $n.d $n.e); done;"
               "for n in a b c; do echo $n.f $(try stat $n.f; try ls $n.f; try cat $n.f; try append $n.f; try rm $n.f;"
               "try mv $n.f $n.g); done")
    r = w.run('[filesystem]\nwrite = ["."]\ndeny = ["a.d", "a.f"]\nread_only = ["b.d", "b.f"]\n', script)
    said(r, "a.d yes no no no no no no", "b.d yes yes yes no no no no", "c.d yes yes yes yes yes yes yes",
         "a.f yes yes no no no no", "b.f yes yes yes no no no", "c.f yes yes yes yes yes no")
    check(w.read("W/a.d/in") == "old\n" and w.read("W/a.f") == "old\n" and w.read("W/b.d/in") == "old\n", "the host's files")


def grant_inside_denied(w):
    w.mkdir("W/secret/open")
    w.write("W/secret/s", "SECRET\n")
    w.write("W/secret/open/o", "open\n")
    r = w.run('[filesystem]\nwrite = ["."]\ndeny = ["secret"]\nread = ["secret/open"]\n',
              TRY + "cat secret/open/o; try cat secret/s; try ls secret; try put secret/new; try put secret/open/o; try chmod 777 secret")
    said(r, "open", "no", "no", "no", "no", "no")
    check(sorted(os.listdir(w.path("W/secret"))) == ["open", "s"], "the host's directory")


def execute(w):
    w.mkdir("W/bin")
    for name in ("W/bin/tool", "W/tool"):
        w.write(name, "#!/bin/sh\necho tool\n", 0o755)
    r = w.run('[filesystem]\nwrite = ["."]\nexecute = ["bin"]\n', TRY + "try ./tool; bin/tool; try put bin/x; cp bin/tool /tmp/t; /tmp/t")
    said(r, "no", "tool", "no", "tool")


def built_environment(w):
    noise = {f"NOISE_{i}": "x" for i in range(2000)}
    secrets = {name: "SECRET" for name in (
        "AWS_SECRET_ACCESS_KEY", "SSH_AUTH_SOCK", "DOCKER_HOST", "LD_AUDIT_X", "BASH_ENV", "ENV", "NODE_OPTIONS",
        "PYTHONSTARTUP", "PERL5OPT", "GIT_SSH_COMMAND", "BASH_FUNC_x%%")}
    environment = {**w.environment, **noise, **secrets, "LINES_": "a\nb", "PASSED": "verbatim\n$x"}
    for policy in (None, "[env]\npass = []\n"):
        config = ["--config", w.policy(policy)] if policy else []
        r = w.call("run", *config, "env", "-0", environment=environment)
        check(r.status == 0, r)
        inside = dict(item.split("=", 1) for item in r.out.split("\0") if item)
        shown = w.call("show", *config, "env", environment=environment)
        listed = dict(line.strip().rsplit("  (", 1)[0].split("=", 1)
                      for line in shown.out.split("environment:\n")[1].splitlines())
        check(inside == listed, f"{inside}\n{listed}")
        check(set(inside) == {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "USER", "BAILEY_SANDBOX",
                              "BAILEY_SANDBOX_NET"}, inside)
        check(inside["BAILEY_SANDBOX"] == "1" and inside["BAILEY_SANDBOX_NET"] == "none", inside)
    r = w.call("run", "--config", w.policy('[env]\npass = ["PASSED"]\nset = { A = "1" }\ndeny = ["LANG"]\n'), "env", "-0",
               environment=environment)
    items = r.out.split("\0")
    check("PASSED=verbatim\n$x" in items and "A=1" in items and not any(i.startswith("LANG=") for i in items), r)


def handed_environment(w):
    import fcntl
    fd = os.memfd_create("env", os.MFD_ALLOW_SEALING)
    os.write(fd, b"LANG=handed\0https_proxy=http://errand:CREDENTIAL@127.0.0.1:1\0")
    fcntl.fcntl(fd, 1033, 0x2 | 0x4 | 0x8)
    r = w.call("run", "--env-fd", str(fd), "sh", "-c", f"echo $LANG $https_proxy; [ -e /proc/self/fd/{fd} ]; echo $?; cat /proc/1/environ /proc/1/cmdline", pass_fds=[fd])
    os.close(fd)
    check(lines(r)[:2] == ["handed http://errand:CREDENTIAL@127.0.0.1:1", "1"], r)
    check("CREDENTIAL" not in r.err and r.out.count("CREDENTIAL") == 1, r)


def accounts(w):
    for policy in (None, '[filesystem]\ndeny = ["/etc"]\n'):
        r = w.run(policy, 'id -un; cut -d: -f1 /etc/passwd | sort -u | wc -l; echo $HOME; grep ":$(id -u):" /etc/passwd | cut -d: -f6; id -gn; touch ~/x && echo made')
        check(r.status == 0, r)
        out = lines(r)
        home = w.path("data/bailey/sh/home")
        check(out[1:4] == ["3", home, home] and out[5] == "made" and not out[0].isdigit(), r)
        check(os.path.exists(os.path.join(home, "x")), "the home is not the host's private one")


def private_places(w):
    w.write("W/script", "#!/bin/sh\n[ -d /tmp ] && touch /tmp/bailey-test-mark && ls -A /tmp\npwd\ncat ./rel\n", 0o755)
    w.write("W/rel", "relative\n")
    r = w.call("run", "--config", w.policy('[filesystem]\nread = ["."]\n'), "./script")
    said(r, "bailey-test-mark", w.work, "relative")
    check(not os.path.exists("/tmp/bailey-test-mark"), "the host's /tmp")
    r = w.run(None, "ls -A /home /root /run 2>&1 | grep -vc 'No such'; ls -d / >/dev/null && ls /")
    check(lines(r)[0] == "0" and "home" not in lines(r), r)


def sizes(w):
    r = w.run('[resources]\ntmp_size = "1m"\nshm_size = 65536\n',
              TRY + "try dd if=/dev/zero of=/tmp/a bs=1k count=900; try dd if=/dev/zero of=/tmp/b bs=1k count=900;"
              "try dd if=/dev/zero of=/dev/shm/a bs=1k count=100")
    said(r, "yes", "no", "no")


def home_chosen(w):
    w.mkdir("W/home")
    for options, policy in ((["--home", "home"], None), ([], 'home = "home"\n')):
        r = w.run(policy, "echo $HOME; touch ~/made", *options)
        said(r, w.path("W/home"))
        check(os.path.exists(w.path("W/home/made")), "not there")
        os.unlink(w.path("W/home/made"))


def home_refused(w):
    """What no policy grants is no home either: everything in a home is writable."""
    for home in ("/run", "/etc", w.root, w.path("data"), w.path("config/bailey")):
        r = w.run(f'home = "{home}"\n', "ls -A ~")
        check(r.status == NOT_RUN and r.out == "" and f"The home {home} cannot be where" in r.err, r)
        r = w.run(None, "ls -A ~", "--home", home)
        check(r.status == NOT_RUN and r.out == "" and f"The home {home} cannot be where" in r.err, r)


def real_home_path(w):
    """HOME may be the real home's path: the private home stands there, with what is granted below it."""
    w.mkdir("real/proj")
    w.write("real/secret", "SECRET\n")
    w.write("real/proj/file", "project\n")
    r = w.call("run", "--config", w.policy(f'[filesystem]\nwrite = ["{w.path("real/proj")}"]\n[env]\npass = ["HOME"]\n'), "sh", "-c",
               "cat ~/proj/file; cat ~/secret; touch ~/made; touch ~/proj/new; ls -A ~", cwd=w.path("real/proj"))
    said(r, "project", "made", "proj")
    check(os.path.exists(w.path("data/bailey/sh/home/made")) and os.path.exists(w.path("real/proj/new")), "places")
    check(not os.path.exists(w.path("real/made")), "the real home was written")


def other_state(w):
    check(w.run(None, "echo SECRET >~/mine").status == 0, "first run")
    home = w.path("data/bailey/sh/home/mine")
    r = w.call("run", "--config", w.policy(f'[filesystem]\nwrite = ["{w.root}"]\n'), "env", "sh", "-c",
               TRY + f"try cat {home}; try ls {w.path('data/bailey')}; try put {w.path('W/policy.toml')}; try put {w.path('W/x')};"
               f"try rm {w.path('W/policy.toml')}; touch ~/y; echo $?")
    said(r, "no", "no", "no", "yes", "no", "0")
    r = w.call("run", "--config", w.policy(f'[filesystem]\nwrite = ["{w.root}"]\n'), "sh", "-c",
               TRY + f"cd {w.root}; try mv W away; try mv data away; try mv config away; try mkdir W; touch there", cwd=w.root)
    said(r, "no", "no", "no", "no")
    check(os.path.exists(w.path("there")) and os.path.exists(w.path("W/policy.toml")), "the host's directories")


def shown_gaps(w):
    limits = '[resources]\nmemory = "1g"\n'
    r = w.run(limits, "echo ran")
    check(r.status == 0 and lines(r) == ["ran"] and "bailey: warning: not enforced: resources: " in r.err, r)
    r = w.run(limits, "echo ran", "--quiet")
    check("not enforced: resources" in r.err and "bailey: enforced" not in r.err, r)
    r = w.run(limits, "echo ran", "--strict")
    check(r.status == NOT_RUN and r.out == "" and "--accept-gap resources" in r.err, r)
    r = w.run(limits, "echo ran", "--strict", "--accept-gap", "resources", "--accept-gap", "sysfs")
    check(r.status == 0 and lines(r) == ["ran"], r)


def closing_lines(w):
    r = w.run(None, "exit 3")
    check(r.status == 3 and r.err.startswith("bailey: enforced: own root, namespaces, "), r)
    check(", seccomp, egress denied\n" in r.err, r)
    r = w.run(None, "exit 3", "--quiet")
    check(r.status == 3 and "bailey: enforced" not in r.err, r)
    r = w.run(None, "kill -TERM $$", "--json")
    closing = json.loads(r.err)
    check(r.status == 143 and closing["status"] == 143 and "egress denied" in closing["enforced"], r)


def closing_without_namespaces(w):
    """A socket of the host can be connected to then: nothing may be said that this makes untrue."""
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(w.path("W/socket"))
        w.own(w.path("W/socket"))
        server.listen()
        r = w.call("run", "/usr/bin/python3", "-c", "import socket; socket.socket(socket.AF_UNIX).connect('socket'); print('in')",
                   lacking="clone3:EPERM")
    said(r, "in")
    check("internet sockets denied\n" in r.err and "egress denied" not in r.err, r)
    check(r.err.count("sockets at paths and System V IPC can be used") == 2, r)


def survivors(w):
    r = w.run(None, "sleep 1000 & sleep 1000 & exit 0")
    check(r.status == 0 and "2 processes that outlived the command were ended" in r.err, r)


def brokered(w):
    """With a broker that hands the listener's first client a word: that is the only way out, and it is said."""
    path = w.path("broker.sock")
    server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    server.bind(path)
    w.own(path)
    server.listen()
    seen = {}

    def serve():
        peer = server.accept()[0]
        message, fds, _, _ = socket.recv_fds(peer, 65536, 4)
        seen.update(json.loads(message))
        listener = socket.socket(fileno=fds[0])
        listener.setblocking(True)
        peer.send(b'{"v":1,"type":"ready"}')
        client = listener.accept()[0]
        client.sendall(b"from outside\n")
        client.close()
        listener.close()
        peer.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    read, write = os.pipe()
    token = "0123456789abcdef" * 4
    os.write(write, token.encode())
    os.close(write)
    program = ("import socket, os; print(os.environ['BAILEY_SANDBOX_NET'], flush=True);"
               "print(socket.create_connection(('127.0.0.1', 3128)).makefile().read(), end='')")
    r = w.call("run", "--broker-socket", path, "--broker-token-fd", str(read), "--listen", "127.0.0.1:3128",
               "/usr/bin/python3", "-c", program, pass_fds=[read])
    os.close(read)
    server.close()
    check(r.status == 0 and r.out == "broker\nfrom outside\n", r)
    check(", egress broker\n" in r.err and token not in r.err, r)
    check(seen["type"] == "listeners" and seen["token"] == token and seen["fds"] == ["proxy"], seen)


def linked_policy(w):
    """A policy named by a link that a session can replace is told; one by a link elsewhere is not."""
    w.mkdir("policies")
    f = w.policy('[filesystem]\nwrite = ["../W"]\n'.replace("../W", w.work), "policies/p.toml")
    w.link(f, "W/link.toml")
    w.link(f, "link.toml")
    for name in ("link.toml", w.path("W/link.toml")):
        r = w.call("run", "--config", name, "true")
        check(r.status == 0 and f"leads over the link {w.path('W/link.toml')}" in r.err and f"name {f} itself" in r.err, r)
    for name in (w.path("link.toml"), "../link.toml", f):
        r = w.call("run", "--config", name, "true")
        check(r.status == 0 and "link" not in r.err, r)


def late_policy(w):
    """What governs a run is fixed when it starts."""
    w.write("secret", "SECRET\n")
    w.policy('[filesystem]\nread = ["policy.toml"]\n')
    p = subprocess.Popen([w.bailey, "run", "--config", "policy.toml", "sh", "-c", f"echo go; read x; cat {w.path('secret')}; echo end"],
                         cwd=w.work, env=w.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                         encoding="utf-8", **({"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}))
    check(p.stdout.readline() == "go\n", "it did not start")
    w.policy(f'[filesystem]\nread = ["{w.path("secret")}"]\n')
    out = p.communicate("\n", timeout=50)[0]
    check(out == "end\n", out)


main([
    ("the runtime directory of the account's own errandd is covered", runtime_directories),
    ("C010 Q011: the most specific path wins", nested),
    ("C011: a protected link: its target is protected, the run goes on, no file appears", protected_links),
    ("C012: a protected link to a directory protects the directory by both names", hooks_link),
    ("C013: protecting what is not there leaves nothing behind", no_debris),
    ("C014: a grant over a planted link is refused with the place it leads to", planted_link),
    ("C019 Q025: the working directory exists inside and leads nowhere", working_directory),
    ("C020: a denied directory cannot be renamed away", renamed_parent),
    ("C020 C109: directories above something protected stay where they are", rebuilt_parent),
    ("C023: a rule above the working directory leaves it in place", relative_rule),
    ("C026: a mount below a granted directory is read-only, whatever its name", odd_mounts),
    ("C025: one, two, three and three hundred denied files", many_denied),
    ("C027: odd names are granted whole and shown escaped", odd_names),
    ("C028: with / granted, /dev stays bailey's own", own_dev),
    ("C030: what deny, read_only and write do to each operation", directions),
    ("C030: a grant inside a denied directory", grant_inside_denied),
    ("write does not execute, execute does not write", execute),
    ("C057 T020 T021 Q008: the environment is the one that show prints", built_environment),
    ("C058: a supervisor's variables come in by fd and show nowhere else", handed_environment),
    ("C062 Q007: the account has an entry, its home is the private one, no other account shows", accounts),
    ("Q025 Q009 T010: /tmp and home are private, relative paths work, nothing else is there", private_places),
    ("tmp_size and shm_size bound the private places", sizes),
    ("home and --home replace the private home", home_chosen),
    ("C109 C014: what can never be granted cannot be the home", home_refused),
    ("Q025: the private home at the real home's path", real_home_path),
    ("C109 C014: other homes and the file in force are out of reach", other_state),
    ("T019: limits that are not applied are told, and refused under --strict", shown_gaps),
    ("the closing line says what was enforced; --quiet and --json", closing_lines),
    ("the closing line without namespaces claims no egress denied", closing_without_namespaces),
    ("C051: processes that outlive the command are ended and told", survivors),
    ("N026 N027 S121: a brokered run has one way out, says so inside and in the closing line", brokered),
    ("C109 C018: a policy file named by a link that a session can replace", linked_policy),
    ("C110: a policy changed during the run changes nothing", late_policy),
])
