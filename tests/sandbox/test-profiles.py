#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Profiles: the bundled ones, a person's own, and what is chosen by the program."""

import json
import os
import socket
import stat
import subprocess
import sys
import tomllib

from bailey import NOT_RUN, check, main

SOURCES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "src", "bailey", "profiles")
NAMES = ["untrusted", "network-client", "desktop-app", "native-game", "ai-agent"]


def shown(w, *args, target="/bin/true", **more):
    r = w.call("show", "--json", *args, target, **more)
    check(r.status == 0, r)
    return json.loads(r.out)


def rights(policy, layer=None):
    return {rule["path"]: rule["rights"] for rule in policy["filesystem"] + policy["devices"] if layer in (None, rule["layer"])}


def listed(w):
    r = w.call("profile", "list")
    check(r.status == 0 and [line.split()[0] for line in r.out.splitlines()] == NAMES and r.err == "", r)
    r = w.call("profile", "list", "--json")
    check([p["name"] for p in json.loads(r.out)] == NAMES and all(p["path"] is None and p["description"] for p in json.loads(r.out)), r)
    for name in NAMES:
        r = w.call("profile", "show", name)
        with open(os.path.join(SOURCES, name + ".toml"), encoding="utf-8") as f:
            check(r.status == 0 and r.out == f.read(), r)
        tomllib.loads(r.out)


def listed_for_root(w):
    """As root, with nobody to stand for; as an ordinary account the same call is one's own."""
    environment = {name: value for name, value in os.environ.items() if name != "SUDO_UID"}
    r = subprocess.run([os.path.realpath(sys.argv[1]), "profile", "list"], capture_output=True, text=True,
                       cwd="/", env={**environment, "XDG_CONFIG_HOME": w.path("none")}, check=False)
    check(r.returncode == 0 and [line.split()[0] for line in r.stdout.splitlines()] == NAMES and r.stderr == "", r)


def bundled_files_are_policies(w):
    """What profile show prints can be taken, changed and used as a profile of one's own."""
    w.mkdir("config/bailey/profiles")
    environment = dict(w.environment, XDG_RUNTIME_DIR=w.mkdir("run"), WAYLAND_DISPLAY="wayland-0")
    for name in NAMES:
        own = "my-" + name
        w.write(f"config/bailey/profiles/{own}.toml", w.call("profile", "show", name).out)
        args = [] if name == "untrusted" else ["--profile", name]
        mine, theirs = shown(w, "--profile", own, environment=environment), shown(w, *args, environment=environment)
        exist = {path: r for path, r in rights(mine).items() if os.path.exists(path) or "/.git/" in path}
        check(exist == {p: r for p, r in rights(theirs).items() if p in exist}, (exist, theirs))
        check(mine["network"]["egress_allow"] == theirs["network"]["egress_allow"], mine)


def over_the_floor(w):
    """A profile adds to the floor, a policy to both, and each is told with what it gave."""
    floor = rights(shown(w))
    w.mkdir("config/bailey/profiles")
    w.write("config/bailey/profiles/mine.toml", '[filesystem]\nread = ["/var", "/opt"]\n[env]\nset = { A = "profile", B = "profile" }\n'
            '[resources]\nmemory = 5\n')
    named = w.write("named.toml", '[filesystem]\ndeny = ["/opt"]\n[env]\nset = { B = "file" }\n[resources]\npids_max = 3\n')
    policy = shown(w, "--profile", "mine", "--config", named)
    check(policy["layers"] == ["target", "untrusted", "profile mine", named] and policy["profile"] == "mine", policy)
    check(rights(policy) == {**floor, "/var": "r--", "/opt": "---"}, policy)
    check(rights(policy, "profile mine") == {"/var": "r--"} and rights(policy, named) == {"/opt": "---"}, policy)
    variables = {v["name"]: (v["value"], v["layer"]) for v in policy["environment"]}
    check(variables["A"] == ("profile", "profile mine") and variables["B"] == ("file", named), variables)
    check(policy["resource_layers"] == {"memory_bytes": "profile mine", "pids_max": named}, policy)
    r = w.call("show", "--profile", "mine", "--config", named, "true")
    lines = r.out.splitlines()
    for line in ("profile base: untrusted, mine", "  r-- /var  (profile mine)", f"  --- /opt  ({named}:2)", "  A=profile  (profile mine)"):
        check(line in lines, (line, r))
    r = w.call("run", "--profile", "mine", "sh", "-c", "ls /var >/dev/null && echo $A; ls /srv")
    check(r.out == "profile\n" and "/srv" in r.err, r)


def native_game(w):
    """The guide's own command: runs, and devices and sockets that this host has are there and no others."""
    runtime = w.mkdir("run")
    game = w.write("W/game", "#!/bin/sh\nls /dev; echo $WAYLAND_DISPLAY\n", 0o755)
    environment = dict(w.environment, XDG_RUNTIME_DIR=runtime, WAYLAND_DISPLAY="wayland-0")
    r = w.call("run", "--profile", "native-game", game, environment=environment)
    check(r.status == 0 and r.out.endswith("wayland-0\n") and "warning" not in r.err, r)
    policy = shown(w, "--profile", "native-game", environment=environment)
    for path in rights(policy, "profile native-game"):
        check(os.path.exists(path), path)
    # No keyboard, no mouse, no camera.
    check(not any(p.startswith(("/dev/input/event", "/dev/video", "/dev/input/mouse")) for p in rights(policy)), policy)


def display_socket(w):
    """A socket that is granted by its own name can be spoken to; one beside it is not there."""
    runtime = w.mkdir("run")
    listeners = []
    for name in ("wayland-7", "bus"):
        s = socket.socket(socket.AF_UNIX)
        s.bind(os.path.join(runtime, name))
        w.own(os.path.join(runtime, name))
        s.listen()
        listeners.append(s)
    environment = dict(w.environment, XDG_RUNTIME_DIR=runtime, WAYLAND_DISPLAY="wayland-7")
    code = ("import os, socket\nfor n in (os.environ['WAYLAND_DISPLAY'], 'bus'):\n try:\n  socket.socket(socket.AF_UNIX).connect("
            "os.environ['XDG_RUNTIME_DIR'] + '/' + n); print('connected')\n except OSError as e: print(e.strerror)\n")
    r = w.call("run", "--profile", "desktop-app", "/usr/bin/python3", "-c", code, environment=environment)
    check(r.out == "connected\nNo such file or directory\n", r)
    for s in listeners:
        s.close()


RUNTIME = ["bus", "systemd/private", "gnupg/S.gpg-agent", "podman/podman.sock", "wayland-", "wayland-0.lock", "wayland-x", "pulse", "pulse/x",
           "pipewire-0-manager", "../dbus"]


def runtime_directory(w):
    """Of /run/user only displays and sound can be granted, each by its own name."""
    for name in RUNTIME:
        f = w.policy(f'[filesystem]\nread = ["/run/user/1000/{name}"]\n')
        r = w.call("show", "--config", f, "true")
        check(r.status == NOT_RUN and "is always covered" in r.err, (name, r))
    for name in ("wayland-0", "wayland-12", "pulse/native", "pipewire-0"):
        f = w.policy(f'[filesystem]\nread = ["/run/user/1000/{name}"]\n')
        check(w.call("show", "--config", f, "true").status == 0, name)


def devices(w):
    """[[device]]: one, and a directory of them as it is now; what is not granted is not there."""
    f = w.policy('[[device]]\npath = "/dev/net/tun"\n[[device]]\npath = "/dev/kvm"\naccess = "r"\n[[device]]\npath = "/dev/net"\naccess = "r"\n')
    policy = shown(w, "--config", f)
    nodes = {os.path.join("/dev/net", n) for n in (os.listdir("/dev/net") if os.path.isdir("/dev/net") else [])}
    nodes = {n for n in nodes if stat.S_ISCHR(os.stat(n).st_mode)}
    granted = rights(policy, f)
    check(set(granted) == nodes | {"/dev/net/tun", "/dev/kvm"}, granted)
    check("/dev/net" not in granted and granted["/dev/kvm"] == "r--", granted)
    for text, piece in (('path = "/dev/null"\n[filesystem]\ndeny = ["/dev/null"]', "granted in line 2 and denied in line 4"),
                        ('path = "/dev/no-such-device"', "does not exist"), ('path = "/dev/../etc/passwd"', "/etc/passwd is not in /dev")):
        r = w.call("show", "--config", w.policy(f"[[device]]\n{text}\n"), "true")
        check(piece in r.err, (text, r))
    r = w.run('[[device]]\npath = "/dev/null"\naccess = "r"\n', "echo x >/dev/null && echo written; cat /dev/null && echo read")
    check(r.out == "read\n", r)
    # A link to a device is the device; one to a file is refused.
    r = w.run('[filesystem]\nreset = true\nexecute = ["/bin", "/usr", "/lib", "/lib64"]\n', "ls /dev | tr '\\n' ' '")
    check({"null", "zero", "tty"} <= set(r.out.split()) and "kvm" not in r.out, r)


def applying(w):
    """A profile of one's own is taken for the programs it names by path, and never for another of their name."""
    w.mkdir("config/bailey/profiles")
    w.mkdir("apps")
    app = w.write("apps/app", "#!/bin/sh\necho $P\n", 0o755)
    w.link("apps/app", "alias")
    imposter = w.write("W/app", "#!/bin/sh\necho $P\n", 0o755)
    w.write("config/bailey/profiles/app.toml", f'description = "for app"\napplies_to = ["{app}", "/nowhere/x"]\n[env]\nset = {{ P = "app" }}\n')
    for target, expected in ((app, "app\n"), (w.path("alias"), "app\n"), (imposter, "\n")):
        r = w.call("run", target)
        check(r.status == 0 and r.out == expected, (target, r))
    check(shown(w, target=app)["profile"] == "app" and shown(w, "--profile", "untrusted", target=app)["profile"] is None, "named")
    check(shown(w, "--only-config", target=app)["profile"] is None, "--only-config")
    r = w.call("profile", "list")
    check(r.out.splitlines()[-1].split(maxsplit=1) == ["app", "for app"], r)
    check(w.call("profile", "show", "app").out.startswith('description = "for app"'), "show")
    w.write("config/bailey/profiles/second.toml", f'applies_to = ["{w.path("alias")}"]\n')
    r = w.call("run", app)
    check(r.status == NOT_RUN and "both apply to" in r.err and "--profile" in r.err, r)
    check(w.call("run", "--profile", "app", app).out == "app\n", "named")
    w.write("config/bailey/profiles/second.toml", 'applies_to = ["app"]\n')
    r = w.call("run", app)
    check(r.status == NOT_RUN and "second.toml:1:15: applies_to:" in r.err and "any program could take that name" in r.err, r)


def own_files(w):
    """Reserved names, odd names, a file that others can write to, a mistake: told, and not taken."""
    w.mkdir("config/bailey/profiles")
    w.write("config/bailey/profiles/ai-agent.toml", '[env]\nset = { P = "mine" }\n')
    w.write("config/bailey/profiles/a b.toml", "")
    w.write("config/bailey/profiles/.hidden.toml", "[nonsense]\n")
    w.write("config/bailey/profiles/README", "[nonsense]\n")
    r = w.call("profile", "list")
    check(r.status == 0 and "ai-agent.toml is not taken: the name is a bundled profile's" in r.err and "a b.toml is not taken" in r.err, r)
    check("P" not in {v["name"] for v in shown(w, "--profile", "ai-agent")["environment"]}, "the bundled one")
    w.write("config/bailey/profiles/open.toml", "", 0o666)
    r = w.call("run", "--profile", "open", "true")
    check(r.status == NOT_RUN and "open.toml: the profile is not taken: other accounts can write to it" in r.err, r)
    os.unlink(w.path("config/bailey/profiles/open.toml"))
    w.write("config/bailey/profiles/bad.toml", "[nonsense]\n")
    r = w.call("run", "--profile", "bad", "true")
    check(r.status == NOT_RUN and "bad.toml:1:2: nonsense: unknown table" in r.err, r)
    r = w.call("profile", "list")
    check(r.status == 1 and "bad.toml:1:2:" in r.err and "network-client" in r.out, r)
    r = w.call("profile", "show", "none")
    check(r.status == 1 and 'there is no profile "none"' in r.err, r)


def network_profiles(w):
    """What asks for the network says so, and is never run as if it had not."""
    for name in ("network-client", "ai-agent"):
        policy = shown(w, "--profile", name)
        check(policy["network"]["egress"] == "allow" and policy["network"]["egress_allow"] == ["80", "443"], policy)
        check(policy["network"]["egress_layer"] == f"profile {name}", policy)
        r = w.call("show", "--profile", name, "true")
        check(f"  egress: Allow [80, 443]  (profile {name})\n" in r.out, r)
    for name in ("desktop-app", "native-game"):
        check(shown(w, "--profile", name)["network"]["egress"] == "deny", name)


def no_home(w):
    """No bundled profile reaches the home directory, but where it is the working directory itself."""
    for name in NAMES:
        for path, r in rights(shown(w, "--profile", name)).items():
            check(not path.startswith(w.path("real")) and not (r[1] == "w" and not path.startswith((w.work, "/dev/"))), (name, path, r))


main([
    ("Q026: the bundled profiles are listed, and shown as the TOML they are", listed),
    ("Q026: the bundled profiles are listed to root, whoever it stands for", listed_for_root),
    ("a bundled profile's text is a policy like another", bundled_files_are_policies),
    ("Q027: a profile adds to the floor, a policy to both, each told by its layer", over_the_floor),
    ("Q026: run --profile native-game: what this host has of it, and no keyboard", native_game),
    ("a display that is granted by its name can be spoken to, the bus beside it not", display_socket),
    ("of the runtime directory only displays and sound can be granted", runtime_directory),
    ("devices are granted one by one", devices),
    ("a profile applies to programs by path, not by name", applying),
    ("a profile of one's own: reserved names, owners, mistakes", own_files),
    ("N003: profiles that reach the network say so", network_profiles),
    ("T001 Q009: no bundled profile reaches the home directory", no_home),
])
