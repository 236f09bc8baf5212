#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""bailey show, and every bad input of bailey run: it is named, and nothing runs."""

import json
import os
import re
import socket
import subprocess

from bailey import NOT_EXECUTABLE, NOT_FOUND, NOT_RUN, Run, check, main

SHOWN = """\
profile base: untrusted
config layers: (none)

filesystem:
  r-x /bin
  r-- /etc
  r-x /lib
  r-x /lib64
  r-- /proc
  r-x /sbin
  r-- /sys
  r-x {root}/real/programs/program
  r-x /usr
network:
  egress: DenyAll
  bind_ports: []
  mode: isolated (own namespace, loopback only, no route off the host)
devices:
  rw- /dev/full
  rw- /dev/null
  r-- /dev/random
  rw- /dev/tty
  r-- /dev/urandom
  r-- /dev/zero
resources: ResourceLimits {{ memory_bytes: None, pids_max: None, cpu_percent: None, tmp_bytes: None, shm_bytes: None }}
home: {root}/real/.local/share/bailey/program/home
  (private; the real home is not granted)
environment:
  HOME={root}/real/.local/share/bailey/program/home  (base)
  LANG=C.UTF-8  (base)
  LOGNAME={name}  (base)
  PATH=/usr/local/bin:/usr/bin:/bin  (base)
  SHELL=/bin/sh  (base)
  TERM=vt100  (base)
  TMPDIR=/tmp  (base)
  USER={name}  (base)
  BAILEY_SANDBOX=1  (base)
  BAILEY_SANDBOX_NET=none  (base)
"""


def program(w):
    """A target that leaves a mark, in its own granted directory, when it runs."""
    w.mkdir("real/programs")
    return w.write("real/programs/program", f"#!/bin/sh\necho ran\n: > {w.path('W/mark')}\n", 0o755)


def account_name(w):
    import pwd
    try:
        return pwd.getpwuid(w.uid).pw_name
    except KeyError:
        return "user"


def show_exact(w):
    program(w)
    environment = {k: v for k, v in w.environment.items() if k != "XDG_DATA_HOME"}
    r = w.call("show", "./program", cwd=w.path("real/programs"), environment=environment)
    check(r.status == 0 and r.err == "", r)
    expected = SHOWN.format(root=w.root, name=account_name(w))
    check(r.out == expected, f"{r.out}\n--- is not ---\n{expected}")
    check(not os.path.exists(w.path("W/mark")), "the target ran")
    check(not os.path.exists(w.path("real/.local")), "show made something")


def show_file(w):
    target = program(w)
    w.mkdir("W/data")
    w.policy('[filesystem]\nread = ["."]\nwrite = ["./data"]\ndeny = ["./secret"]\n'
             '[env]\nset = { CI = "a\\nb" }\n[resources]\nmemory = "64m"\npids_max = 9\ntmp_size = 5\n')
    w.mkdir("W/secret")
    r = w.call("show", "--config", "W/policy.toml", target, cwd=w.root)
    check(r.status == 0, r)
    lines = r.out.splitlines()
    check(lines[1:3] == ["config layers:", f"  {w.work}/policy.toml"], r)
    f = f"{w.work}/policy.toml"
    for line in (f"  r-- {w.work}  ({f}:2)", f"  rw- {w.work}/data  ({f}:3)", f"  --- {w.work}/secret  ({f}:4)",
                 f"  CI=a\\nb  ({w.work}/policy.toml)",
                 "resources: ResourceLimits { memory_bytes: Some(67108864), pids_max: Some(9), cpu_percent: None, "
                 "tmp_bytes: Some(5), shm_bytes: None }"):
        check(line in lines, f"{line}\nis not in\n{r}")


def show_json(w):
    target = program(w)
    r = w.call("show", "--json", target)
    check(r.status == 0 and r.out.count("\n") == 1, r)
    shown = json.loads(r.out)
    check(shown["network"]["mode"] == "isolated" and shown["resources"]["memory_bytes"] is None, shown)
    check({"path": "/etc", "resolved": "/etc", "rights": "r--", "exists": True, "layer": "untrusted"} in shown["filesystem"], shown)


def show_plan(w):
    target = program(w)
    first = w.call("show", "--plan", target)
    second = w.call("show", "--plan", target)
    check(first.status == 0 and first.out == second.out, first)
    check(f"bind      r-x {target}\n" in first.out and f"execute   {target}\n" in first.out, first)
    check(f"directory     {w.work}\n" in first.out, first)


# (policy, pieces of stderr; {f} is the file)
BAD_FILES = [
    ("[filesystm]\n", ["{f}:1:2: filesystm: unknown table", '"filesystem"']),
    ('[filesystem]\ndenny = ["x"]\n', ["{f}:2:1: filesystem.denny: unknown key", '"deny"']),
    ("[filesystem]\nRead = []\n", ["{f}:2:1: filesystem.Read: unknown key", '"read"']),
    ("[resources]\nread = []\n", ["{f}:2:1: resources.read: unknown key", "[filesystem]"]),
    ('[resources]\nmemory = "64 M"\n', ["{f}:2:1: resources.memory:", '"64 M"']),
    ("[filesystem]\nread = []\nread = []\n", ["{f}:3:"]),
    ('[filesystem]\nread = "."\n', ["{f}:2:1: filesystem.read: wants a list, not a string"]),
    ('[filesystem]\nread = ["../up"]\n', ["{f}:2:9: filesystem.read:", "leaves the file's directory"]),
    ('[filesystem]\nread = ["x"]\ndeny = ["x"]\n', ["{f}:3:9: filesystem.deny:", "line 2", "line 3"]),
    ('[filesystem]\nread = ["~you"]\n', ["{f}:2:9: filesystem.read:", "only one's own home"]),
    ('[filesystem]\nread = ["${NOT_SET}"]\n', ["{f}:2:9: filesystem.read:", "NOT_SET}} is not set"]),
    ('[[device]]\npath = "/dev/sda"\nacess = "r"\n', ["{f}:3:1: device: unknown key"]),
    ('[[device]]\npath = "/etc"\n', ["{f}:2:1: device: /etc is not in /dev"]),
    ('[network]\negress = "some"\n', ["{f}:2:1: network.egress:"]),
    ("[env]\npass = 1\n", ["{f}:2:1: env.pass: wants a list, not an integer"]),
    ("[filesystem\n", ["{f}:1:"]),
    ('[filesystem]\nread = ["/run/user"]\n', ["{f}:2: /run/user", "always covered"]),
    ('[filesystem]\nwrite = ["/proc"]\n', ["{f}:2: /proc", "bailey itself"]),
    ("a = 1\n[b]\n[env]\nc = 1\n", ["{f}:1:1: a:", "{f}:2:2: b:", "{f}:4:1: env.c:"]),
]


def bad_files(w):
    target = program(w)
    for text, pieces in BAD_FILES:
        f = w.policy(text)
        for verb in ("run", "show"):
            r = w.call(verb, "--config", f, target)
            check(r.status == NOT_RUN and r.out == "", f"{text}{r}")
            for piece in pieces:
                check(piece.format(f=f) in r.err, f"{text}lacks {piece}\n{r}")
            check(all(line.startswith("bailey: ") for line in r.err.splitlines()), r)
    r = w.call("run", "--config", w.path("none.toml"), target)
    check(r.status == NOT_RUN and "none.toml: the policy cannot be read: No such file" in r.err, r)
    check(not os.path.exists(w.path("W/mark")), "the target ran")


def network_modes(w):
    target = program(w)
    ports = "landlock only (TCP ports; UDP, QUIC, and DNS are not restricted)"
    any_port = "landlock only (TCP to any port, listening on bind_ports; UDP, QUIC, and DNS are not restricted)"
    table = [('egress = "deny"', "isolated (own namespace, loopback only, no route off the host)", "isolated"),
             ('egress = "allow"', any_port, "landlock-only"), ('egress_allow = ["443"]', ports, "landlock-only"),
             ("bind_ports = [8080]", ports, "landlock-only")]
    for text, mode, word in table:
        f = w.policy(f"[network]\n{text}\n")
        r = w.call("show", "--config", f, target)
        check(r.status == 0 and f"  mode: {mode}\n" in r.out and r.err == "", r)
        network = json.loads(w.call("show", "--config", f, "--json", target).out)["network"]
        check(network["mode"] == word and network["meaning"] in mode and network["refused_because"] is None, network)
    r = w.call("show", target, lacking="clone3:EPERM")
    check("  mode: isolated (no user namespaces here: internet sockets are refused)\n" in r.out, r)
    r = w.call("show", "--config", f, target, lacking="landlock_create_ruleset:ENOSYS")
    check("  mode: isolated (" in r.out, r)  # a bound port alone: what is denied stays so
    f = w.policy('[network]\negress_allow = ["443"]\n')
    r = w.call("show", "--config", f, target, lacking="landlock_create_ruleset:ENOSYS")
    check("  mode: landlock only (TCP ports are not enforced: Landlock is older than ABI 4)\n" in r.out, r)
    r = w.call("show", "--egress-proxy", "169.254.169.1:8443", target, lacking="clone3:EPERM")
    check("  mode: refused (--egress-proxy needs user namespaces" in r.out, r)
    r = w.call("show", "--config", f, "--proxy-net", target, lacking="clone3:EPERM")
    check("  mode: landlock only (" in r.out and "  proxy-net: not here (no user namespaces): the host's address stays visible\n" in r.out, r)


def advisory(w):
    target = program(w)
    f = w.policy('[network]\negress_allow = ["443", "*:80", "example.com:22", "10.0.0.0/8:5432"]\n')
    for verb in ("run", "show"):
        r = w.call(verb, "--config", f, target)
        told = [line for line in r.err.splitlines() if "advisory" in line]
        check(told == [f'bailey: warning: egress_allow: the host in "{h}" is advisory: any host can be reached at that TCP port'
                       for h in ("example.com:22", "10.0.0.0/8:5432")], r)


BAD_COMMANDS = [
    ([], "a verb is missing"),
    (["rnu", "true"], 'did you mean "run"?'),
    (["shwo"], 'did you mean "show"?'),
    (["trsut"], 'did you mean "trust"?'),
    (["profil"], 'did you mean "profile"?'),
    (["profile"], "wants list, show or generate"),
    (["profile", "sow"], 'has no "sow"; it has list, show and generate'),
    (["profile", "show"], "wants a NAME"),
    (["profile", "list", "x"], '"x" is too much'),
    (["trust"], "wants a FILE, or --list"),
    (["trust", "--list", "--revoke", "x"], "give one"),
    (["trust", "--list", "x"], "takes no FILE"),
    (["trust", "--json", "x"], "with --list alone"),
    (["trust", "--config", "x"], "it is one of bailey run, bailey show, bailey shell"),
    (["shell", "--plan"], "it is one of bailey show"),
    (["run", "--profile", "../x", "true"], "is not a profile's name"),
    (["run", "--profile", "ai-agnt", "true"], 'did you mean "ai-agent"?'),
    (["run", "--profile", "x", "true"], "see bailey profile list"),
    (["true"], '"true" is not a verb; to run a program: bailey run true'),
    (["-V"], "a verb comes first"),
    (["--config", "x", "run", "true"], "options come after the verb, as in bailey run --config"),
    (["shell", "-c", "ls"], "bailey shell -- -c"),
    (["run"], "wants a TARGET"),
    (["run", "--"], "wants a TARGET"),
    (["run", "--strct", "true"], "did you mean --strict?"),
    (["run", "--plan", "true"], "no such option; it is one of bailey show"),
    (["show", "--strict", "true"], "no such option; it is one of bailey run"),
    (["run", "-c", "true"], "no such option; see bailey --help"),
    (["show", "--json", "--plan", "true"], "--json and --plan"),
    (["run", "--strict=yes", "true"], "takes no value"),
    (["run", "--config"], "wants FILE"),
    (["run", "--config", "", "true"], "not an empty word"),
    (["run", "--strict", "--accept-gap", "landlok", "true"], 'did you mean "landlock"?'),
    (["run", "--strict", "--accept-gap", "all", "true"], "no such gap; they are namespaces, isolation, landlock, "),
    (["run", "--accept-gap", "landlock", "true"], "without --strict"),
    (["run", "--env-fd", "x", "true"], "number of an open file descriptor"),
    (["run", "--env-fd", "1", "true"], "above 2"),
    (["run", "--env-fd", "77", "true"], "is not open"),
    (["run", "--listen", "127.0.0.1:3128", "true"], "given together"),
    (["run", "--listen", "10.0.0.1:3128", "true"], "127.0.0.1:PORT"),
    (["run", "--broker-socket", "/x", "true"], "given together"),
    (["run", "--user", "no-such-account", "true"], "there is no such account"),
    (["show", "true", "more"], "without arguments"),
    (["run", "--home", "/proc/self", "true"], "/proc/self"),
]


def bad_commands(w):
    for args, piece in BAD_COMMANDS:
        r = w.call(*args)
        check(r.status == NOT_RUN and piece in r.err and r.out == "", f"{args}\n{r}")
        check(r.err.startswith("bailey: ") and r.err.count("\n") == 1, r)


def help_and_version(w):
    r = w.call("--help")
    check(r.status == 0 and "--broker-token-fd N" in r.out and r.err == "", r)
    check(w.call("run", "--help").out == r.out, "run --help differs")
    r = w.call("--version")
    check(r.status == 0 and r.out.startswith("bailey "), r)


def manuals(w):
    """The help and the table of keys are what is read; the manual pages say the same."""
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    with open(os.path.join(top, "man/bailey.1"), encoding="utf-8") as f:
        manual = f.read()
    options = re.findall(r"--[a-z][a-z-]+", w.call("--help").out)
    check(len(set(options)) > 12, options)
    for option in options:
        check(f"Fl Fl {option[2:]}" in manual, f"{option} is not in bailey.1")
    for option in re.findall(r"Fl Fl ([a-z-]+)", manual):
        check(f"--{option}" in options, f"--{option} is in bailey.1 alone")
    with open(os.path.join(top, "src/bailey/policy-file.c"), encoding="utf-8") as f:
        keys = re.findall(r'\{"([a-z]*)", "([a-z_]+)", read_', f.read())
    with open(os.path.join(top, "man/bailey.toml.5"), encoding="utf-8") as f:
        manual = f.read()
    check(len(keys) == 27, keys)
    for table, key in keys:
        part = manual.split(f".Ss [{table}]" if table else ".Ss Top level")[1].split(".Ss")[0]
        check(re.search(rf"\.It Ic \[*(?:.*, )*{key}\b", part), f"[{table}] {key} is not in bailey.toml.5")


def exit_codes(w):
    w.write("W/plain", "", 0o644)
    w.mkdir("W/dir")
    for args, status in ((["nosuchprogram"], NOT_FOUND), (["./none"], NOT_FOUND), (["./plain"], NOT_EXECUTABLE),
                         (["./dir"], NOT_EXECUTABLE), ([""], NOT_FOUND)):
        for verb in ("run", "show"):
            r = w.call(verb, *args)
            check(r.status == status and r.out == "" and r.err, f"{args}\n{r}")


def not_a_program(w):
    """Found, but not to be executed: the reason is said, not only the error's name."""
    w.write("W/text", "echo hi\n", 0o755)
    w.write("W/lost", "#!/nowhere/interpreter\n", 0o755)
    for target, status, piece in (("./text", NOT_EXECUTABLE, "needs a #! line"), ("./lost", NOT_FOUND, "does not exist inside")):
        r = w.call("run", target)
        check(r.status == status and piece in r.err, r)


def readme(w):
    """The README's policy, as it stands there, gives what the README says."""
    top = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    with open(os.path.join(top, "README.md"), encoding="utf-8") as f:
        policy = re.search(r"<<'END'\n(.*?)\nEND\n", f.read(), re.DOTALL)[1]
    w.mkdir("W/project/secrets")
    w.write("W/project/secrets/key", "k")
    w.write("W/beside", "b")
    r = w.run(policy, "ls; cp /bin/true project/t && project/t && echo ran; ls project/secrets || echo denied")
    check(r.status == 0 and r.out == "project\nran\ndenied\n", r)
    check("warning" not in r.err and os.path.exists(w.path("W/project/t")), r)


def path_is_absolute_only(w):
    w.write("W/true", "#!/bin/sh\necho hijacked\n", 0o755)
    r = w.call("show", "true", environment=dict(w.environment, PATH=".::/usr/bin"))
    check(r.status == 0 and "  r-x /usr/bin/true\n" in r.out, r)


def broker_missing(w):
    target = program(w)
    read, write = os.pipe()
    os.write(write, b"0" * 64)
    os.close(write)
    for path in (w.path("none.sock"), w.path("x" * 60 + "/" + "y" * 60)):
        r = w.call("run", "--broker-socket", path, "--broker-token-fd", str(read), "--listen", "127.0.0.1:3128", target,
                   pass_fds=[read])
        check(r.status == NOT_RUN and f"Failed to connect to the broker at {path}" in r.err and "nothing was run" in r.err, r)
    # A stream socket is no broker.
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as s:
        s.bind(w.path("stream.sock"))
        w.own(w.path("stream.sock"))
        s.listen()
        r = w.call("run", "--broker-socket", w.path("stream.sock"), "--broker-token-fd", str(read), "--listen", "127.0.0.1:3128",
                   target, pass_fds=[read])
        check(r.status == NOT_RUN and "Failed to connect to the broker" in r.err, r)
    os.close(read)
    check(not os.path.exists(w.path("W/mark")), "the target ran")


def env_fd_refused(w):
    target = program(w)
    for data, seal in ((b"A=1\0", False), (b"A=SECRET", True), (b"SECRET\0", True)):
        fd = os.memfd_create("env", os.MFD_ALLOW_SEALING)
        os.write(fd, data)
        if seal:
            import fcntl
            fcntl.fcntl(fd, 1033, 0x2 | 0x4 | 0x8)  # F_ADD_SEALS: shrink, grow, write
        r = w.call("run", "--env-fd", str(fd), target, pass_fds=[fd])
        check(r.status == NOT_RUN and "--env-fd" in r.err and "SECRET" not in r.err and r.out == "", r)
        os.close(fd)


def root_needs_account(w):
    if not w.as_root:
        return "not root"
    os.chown(w.work, 0, 0)
    target = program(w)
    r = w.call("show", target, root=True)
    check(r.status == NOT_RUN and "uid 0 never runs a command" in r.err, r)
    r = w.call("show", "--user", "root", target, root=True)
    check(r.status == NOT_RUN and "uid 0 never runs a command" in r.err, r)
    r = w.call("show", "--user", "0", target, root=True)
    check(r.status == NOT_RUN and "uid 0 never runs a command" in r.err, r)
    r = w.call("show", target, root=True, environment=dict(w.environment, SUDO_UID="0"))
    check(r.status == NOT_RUN, r)
    r = w.call("run", "--home", w.path("real/h"), "id", "-u", root=True, environment=dict(w.environment, SUDO_UID=str(w.uid)))
    check(r.status == 0 and r.out == f"{w.uid}\n", r)
    r = w.call("run", "--user", str(w.uid), "--home", w.path("real/h"), "id", "-u", root=True)
    check(r.status == 0 and r.out == f"{w.uid}\n", r)
    os.chown(w.work, w.uid, w.gid)
    r = w.call("run", "--home", w.path("real/h"), "sh", "-c", "id -u; id -g; id -G", root=True)
    check(r.status == 0 and r.out == f"{w.uid}\n{w.gid}\n{w.gid}\n", r)


def root_reads_nothing_first(w):
    """The policy is read with the account's rights: a file of root's alone is not read."""
    if not w.as_root:
        return "not root"
    target = program(w)
    f = w.policy("[nonsense]\n")
    os.chown(f, 0, 0)
    os.chmod(f, 0o600)
    r = w.call("show", "--config", f, target, root=True)
    check(r.status == NOT_RUN and "Permission denied" in r.err and "nonsense" not in r.err, r)


def root_without_capabilities(w):
    target = program(w)
    if w.as_root:
        command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
        account = {}
    else:
        command = ["unshare", "-Ur"]
        account = {}
    r = Run(subprocess.run([*command, w.bailey, "run", "--user", "nobody", target], cwd=w.work, env=w.environment,
                           stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=50, **account))
    check(r.status == NOT_RUN and "cannot become uid" in r.err and "CAP_SETUID" in r.err and r.out == "", r)


def account_of_a_service(w):
    """One that is in no file: it is asked for by getent, and its groups."""
    if not w.as_root:
        return "not root"
    home = w.mkdir("service")
    os.chown(home, 61234, 61235)
    stub = w.write("getent", """#!/bin/sh
case "$*" in
"-- passwd stranger"|"-- passwd 61234") echo stranger:x:61234:61235::/home/stranger:/bin/sh;;
"-- group 61235") echo strangers:x:61235:;;
"-- initgroups stranger") echo "stranger              61236 61237";;
"-- passwd joe 27"|"-- passwd 61238") echo "joe 27:x:61238:61235::/home/joe:/bin/sh";;
"-- initgroups joe 27") echo "joe 27                61236";;
"-- passwd other"|"-- passwd 61239") echo "other:x:61239:61235::/home/other:/bin/sh";;
"-- initgroups other") echo "other7 61236";;
*) exit 2;;
esac
""", 0o755)
    environment = dict(w.environment, ASAN_OPTIONS="detect_leaks=0")  # a sanitized bailey looks for leaks by tracing itself
    for user in ("stranger", "61234"):
        command = ["unshare", "--mount", "/bin/sh", "-c", f'mount --bind {stub} /usr/bin/getent && exec "$@"', "sh", "strace", "-f", "-e",
                   "trace=setgroups", w.bailey, "run", "--user", user, "--home", home, "/bin/sh", "-c", "id -u; id -un; id -g; id -gn"]
        r = Run(subprocess.run(command, cwd=w.work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8",
                               timeout=50, check=False))
        check(r.status == 0 and r.out == "61234\nstranger\n61235\nstrangers\n", r)
        check("setgroups(3, [61235, 61236, 61237])" in r.err, r)
    # A caller that ignores SIGCHLD.
    r = Run(subprocess.run([*command[:6], "env", "--ignore-signal=CHLD", *command[6:]], cwd=w.work, env=environment,
                           stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=50, check=False))
    check(r.status == 0 and "setgroups(3, [61235, 61236, 61237])" in r.err, r)
    # A name with a space, and an answer about somebody else.
    for user, uid, words in (("joe 27", 61238, "setgroups(2, [61235, 61236])"), ("other", 61239, "Failed to read the groups of other")):
        os.chown(home, uid, 61235)
        other = [user if word in ("61234", "stranger") else word for word in command]
        r = Run(subprocess.run(other, cwd=w.work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=50,
                               check=False))
        check(words in r.err and (r.status == NOT_RUN or r.out.startswith(f"{uid}\n")), r)
    # That getent fails does not mean that there is none: what root stands for would have other groups.
    os.chown(home, 61234, 61235)
    w.write("broken", "#!/bin/sh\nexit 1\n", 0o755)
    broken = [word.replace(stub, w.path("broken")) for word in command]
    for user in ("stranger", "61234"):
        r = Run(subprocess.run([user if word == "61234" else word for word in broken], cwd=w.work, env=environment, stdin=subprocess.DEVNULL,
                               capture_output=True, encoding="utf-8", timeout=50, check=False))
        check(r.status == NOT_RUN and "Failed to ask /usr/bin/getent" in r.err and r.out == "", r)
    command[4] = 'mount --bind /dev/null /usr/bin/getent && exec "$@"'
    r = Run(subprocess.run(command, cwd=w.work, env=environment, stdin=subprocess.DEVNULL, capture_output=True, encoding="utf-8", timeout=50,
                           check=False))
    check(r.status == 0 and r.out == "61234\nuser\n61234\nuser\n" and "setgroups(0, NULL)" in r.err, r)


def not_another_account(w):
    target = program(w)
    r = w.call("show", "--user", "root", target)
    check(r.status == NOT_RUN and "only root" in r.err, r)
    r = w.call("show", "--user", str(w.uid), target)
    check(r.status == 0, r)


main([
    ("Q001 Q002 Q003 Q004 Q005 Q006 Q007 Q008: show prints the policy in the documented form and runs nothing", show_exact),
    ("Q006 Q008: a file's rules, limits and variables are shown with their layer", show_file),
    ("show --json is one object", show_json),
    ("Q025: show --plan is stable", show_plan),
    ("C100 C107 T022: a bad policy file is named with file, line and key; nothing runs", bad_files),
    ("N001 N002 N003: the mode that a policy has on this host", network_modes),
    ("N032: a host in egress_allow is advisory, and that is told", advisory),
    ("a bad command line is an error that says what is meant", bad_commands),
    ("--help and --version", help_and_version),
    ("the README's policy works", readme),
    ("a target that cannot be executed: the reason", not_a_program),
    ("the manual pages name every option and key, and no other", manuals),
    ("126 and 127 as env(1) gives them", exit_codes),
    ("C103: a program is not taken from the working directory by accident", path_is_absolute_only),
    ("a broker that is not there: nothing runs", broker_missing),
    ("C058: --env-fd that can change or is malformed is refused, without its text", env_fd_refused),
    ("uid 0 runs nothing: --user, SUDO_UID, the directory's owner, or a refusal", root_needs_account),
    ("uid 0 is given up before the policy is read", root_reads_nothing_first),
    ("C006: uid 0 without capabilities is told why", root_without_capabilities),
    ("C006: an account that is in no file has its entry and groups", account_of_a_service),
    ("only root chooses another account", not_another_account),
])
