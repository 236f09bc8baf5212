#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Policy files that are found by walking: which count, in which order, and that none counts before it was accepted."""

import hashlib
import json
import os
import pty
import select
import stat
import subprocess
import termios
import threading

from bailey import NOT_RUN, check, main

GRANT = '[filesystem]\nread = ["."]\n'


def trust(w, *args, **more):
    return w.call("trust", *args, **more)


def accept(w, name):
    r = trust(w, "--yes", w.path(name))
    check(r.status == 0 and f"accepted {w.path(name)}\n" in r.out and r.err == "", r)


def shown(w, *args, target="/bin/true", **more):
    r = w.call("show", "--json", *args, target, **more)
    check(r.status == 0, r)
    return json.loads(r.out), r.err


def layers(w, *args, **more):
    """The files in force, below the tests' folder, lowest first."""
    policy, _ = shown(w, *args, **more)
    return [os.path.relpath(f, w.root) for f in policy["config_layers"]]


def variable(w, name, **more):
    policy, _ = shown(w, **more)
    return {v["name"]: v["value"] for v in policy["environment"]}.get(name)


def store(w):
    return w.path("config/bailey/trusted")


def beside_the_program(w):
    """The guide's own steps."""
    w.mkdir("programs/data")
    w.write("programs/program", "#!/bin/sh\ncat beside; echo made >data/file; cat ../other\n", 0o755)
    w.write("programs/beside", "beside\n")
    w.write("other", "other\n")
    file = w.write("programs/bailey.toml", '[filesystem]\nread = ["."]\nwrite = ["./data"]\n')
    here = w.path("programs")
    r = w.call("run", "./program", cwd=here)
    check("beside\n" not in r.out and not os.path.exists(w.path("programs/data/file")), r)
    check(f"bailey: warning: skipped {file}: it is not accepted; to accept it: bailey trust {file}\n" in r.err, r)
    r = trust(w, "--yes", "./bailey.toml", cwd=here)
    check(r.status == 0, r)
    check(f"{file} grants:\n  r-- {here}\n  rw- {here}/data\naccepted {file}\n" == r.out, r)
    for cwd in (here, w.work, "/"):
        r = w.call("run", w.path("programs/program"), cwd=cwd)
        check("skipped" not in r.err, r)
        if cwd == here:
            check(r.out == "beside\n", r)
    check(w.read("programs/data/file") == "made\n", "the host's file")


def after_an_edit(w):
    w.write("W/bailey.toml", '[env]\nset = { A = "1" }\n')
    accept(w, "W/bailey.toml")
    check(variable(w, "A") == "1", "accepted")
    w.write("W/bailey.toml", '[env]\nset = { A = "2" }\n')
    policy, err = shown(w)
    check("was changed since it was accepted; to accept it: bailey trust" in err, err)
    check(policy["config_layers"] == [] and policy["skipped"] == [w.path("W/bailey.toml")], policy)
    check(variable(w, "A") is None, "changed")
    w.write("W/bailey.toml", '[env]\nset = { A = "1" }\n')
    check(variable(w, "A") == "1", "the accepted text again")
    w.write("W/bailey.toml", '[env]\nset = { A = "3" }\n')
    accept(w, "W/bailey.toml")
    check(variable(w, "A") == "3", "accepted anew")
    w.write("W/bailey.toml", '[env]\nset = { A = "1" }\n')
    check(variable(w, "A") is None, "what was accepted before the last time is not accepted any more")


def swapped(w):
    """The text that is compared is the text that applies, whatever is put in its place meanwhile and however."""
    good, bad = '[env]\nset = { A = "good" }\n', '[env]\nset = { A = "bad!" }\n'
    w.write("W/bailey.toml", good)
    accept(w, "W/bailey.toml")
    end = threading.Event()

    def swap():
        w.write("good.toml", good)
        while not end.is_set():
            for text in (bad, good):
                w.write("next.toml", text)
                os.rename(w.path("next.toml"), w.path("W/bailey.toml"))
            w.link(w.path("good.toml"), "next.link")
            os.rename(w.path("next.link"), w.path("W/bailey.toml"))
            os.unlink(w.path("W/bailey.toml"))
            # In place, too: this one can be read half written.
            for text in (bad, good):
                w.write("W/bailey.toml", text)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        seen = [variable(w, "A") for _ in range(150)]
    finally:
        end.set()
        thread.join()
    check(set(seen) <= {"good", None} and "good" in seen and None in seen, set(seen))


def order(w):
    """Lowest first: config.toml, then by depth, of two at one depth the working directory's, then --config."""
    for name in ("bailey.toml", "W/bailey.toml", "W/a/bailey.toml", "T/bailey.toml", "T/b/bailey.toml", "T/b/c/bailey.toml"):
        w.mkdir(os.path.dirname(name))
        w.write(name, f'[env]\nset = {{ A = "{name}" }}\n')
        accept(w, name)
    w.mkdir("config/bailey")
    w.write("config/bailey/config.toml", '[env]\nset = { A = "own" }\n')
    named = w.write("named.toml", '[env]\nset = { A = "named" }\n')
    target = w.write("T/b/c/program", "#!/bin/sh\n", 0o755)
    expected = ["config/bailey/config.toml", "bailey.toml", "T/bailey.toml", "W/bailey.toml", "T/b/bailey.toml", "W/a/bailey.toml",
                "T/b/c/bailey.toml"]
    check(layers(w, target=target, cwd=w.path("W/a")) == expected, layers(w, target=target, cwd=w.path("W/a")))
    check(variable(w, "A", target=target, cwd=w.path("W/a")) == "T/b/c/bailey.toml", "the deepest wins")
    check(layers(w, "--config", named, target=target, cwd=w.path("W/a")) == [*expected, "named.toml"], "--config is the highest")
    check(layers(w, "--config", named, "--only-config", target=target, cwd=w.path("W/a")) == ["named.toml"], "--only-config")
    # Both ways lead over the same directories.
    check(layers(w, target=target, cwd=w.path("T/b")) == ["config/bailey/config.toml", "bailey.toml", "T/bailey.toml",
                                                          "T/b/bailey.toml", "T/b/c/bailey.toml"], "once each")
    # The one that is named is not counted a second time, and needs no acceptance.
    w.write("W/a/bailey.toml", '[env]\nset = { A = "edited" }\n')
    policy, err = shown(w, "--config", w.path("W/a/bailey.toml"), cwd=w.path("W/a"))
    check(policy["config_layers"].count(w.path("W/a/bailey.toml")) == 1 and "skipped" not in err, (policy, err))


def found_twice(w):
    """By a hard link: counted where it stands highest."""
    w.mkdir("W/a")
    w.write("W/bailey.toml", GRANT)
    os.link(w.path("W/bailey.toml"), w.path("W/a/bailey.toml"))
    accept(w, "W/bailey.toml")
    accept(w, "W/a/bailey.toml")
    check(layers(w, cwd=w.path("W/a")) == ["W/a/bailey.toml"], layers(w, cwd=w.path("W/a")))


def links(w):
    """A link is the file that it is found as: another project's policy means this one's directory."""
    w.mkdir("other")
    w.mkdir("dots")
    w.write("other/secret", "SECRET\n")
    w.write("other/bailey.toml", GRANT)
    accept(w, "other/bailey.toml")
    w.link("../other/bailey.toml", "W/bailey.toml")
    check(layers(w) == [], "accepted there is not accepted here")
    accept(w, "W/bailey.toml")
    policy, _ = shown(w)
    granted = {rule["path"] for rule in policy["filesystem"]}
    check(w.work in granted and w.path("other") not in granted, granted)
    w.write("dots/b.toml", '[filesystem]\nread = ["/"]\n')
    w.link("../dots/b.toml", "W/bailey.toml")
    _, err = shown(w)
    check("was changed since it was accepted" in err, err)
    # The directory above becomes a link to one with the same text.
    w.mkdir("P")
    w.mkdir("Q")
    w.write("P/bailey.toml", GRANT)
    w.write("Q/bailey.toml", GRANT)
    accept(w, "P/bailey.toml")
    os.rename(w.path("P"), w.path("P.old"))
    w.link("Q", "P")
    check(layers(w, cwd=w.path("P")) == [], "another directory of that name")
    r = trust(w, "--yes", w.write("dots/other.toml", GRANT))
    check(r.status == 1 and "only files named bailey.toml are found" in r.err, r)


def taken_back(w):
    w.write("W/bailey.toml", GRANT)
    accept(w, "W/bailey.toml")
    digest = hashlib.sha256(GRANT.encode()).hexdigest()
    r = trust(w, "--list")
    check(r.status == 0 and r.out == f"accepted  {digest}  {w.path('W/bailey.toml')}\n", r)
    r = trust(w, "--list", "--json")
    check(json.loads(r.out) == [{"path": w.path("W/bailey.toml"), "sha256": digest, "state": "accepted"}], r)
    r = trust(w, "--revoke", "bailey.toml")
    check(r.status == 0 and r.out == f"taken back: {w.path('W/bailey.toml')}\n", r)
    check(layers(w) == [] and trust(w, "--list").out == "", "taken back")
    r = trust(w, "--revoke", "bailey.toml")
    check(r.status == 1 and "was not accepted" in r.err, r)
    accept(w, "W/bailey.toml")
    w.write("W/bailey.toml", "")
    check(trust(w, "--list").out.startswith("changed "), "the list")
    os.unlink(w.path("W/bailey.toml"))
    check(trust(w, "--list").out.startswith("gone "), "the list")
    check(trust(w, "--revoke", w.path("W/bailey.toml")).status == 0, "of a deleted file")
    w.mkdir("moved")
    w.write("moved/bailey.toml", GRANT)
    accept(w, "moved/bailey.toml")
    os.rename(w.path("moved"), w.path("moved.away"))
    check(trust(w, "--revoke", w.path("moved/bailey.toml")).status == 0, "of a moved directory")
    w.write("W/bailey.toml", GRANT)
    accept(w, "W/bailey.toml")
    check(trust(w, "--revoke", digest).status == 0 and layers(w) == [], "by digest")


def damaged_store(w):
    """A store that cannot be believed holds nothing, and says so; accepting does not paint over it."""
    w.write("W/bailey.toml", GRANT)
    accept(w, "W/bailey.toml")
    good = w.read("config/bailey/trusted")
    check(stat.S_IMODE(os.stat(store(w)).st_mode) == 0o600 and stat.S_IMODE(os.stat(w.path("config/bailey")).st_mode) == 0o700, "modes")

    def refused(piece):
        policy, err = shown(w)
        check(policy["config_layers"] == [] and piece in err and "nothing is trusted" in err, (policy, err))
        r = trust(w, "--yes", "bailey.toml")
        check(r.status == 1 and piece in r.err and "accepted" not in r.out.splitlines()[-1].split()[0], r)
        r = trust(w, "--list")
        check(r.status == 1 and r.out == "" and piece in r.err, r)

    for text in ("", "x\n", good + "half a line", good + good.splitlines()[1] + "\n", good.replace("bailey-trust 1", "bailey-trust 2"),
                 good.upper(), good.replace(" /", " "), good.replace("\n", "\r\n"), good + "\0\n"):
        w.write("config/bailey/trusted", text, 0o600)
        refused("is damaged")
    w.write("config/bailey/trusted", good, 0o666)
    refused("can write to")
    w.write("config/bailey/trusted", good, 0o600)
    os.chmod(w.path("config/bailey"), 0o777)
    refused("can write to")
    os.chmod(w.path("config/bailey"), 0o700)
    check(layers(w) == ["W/bailey.toml"], "mended")
    os.rename(store(w), w.path("elsewhere"))
    w.link(w.path("elsewhere"), "config/bailey/trusted")
    refused("is a link")
    os.unlink(store(w))
    os.mkfifo(store(w))
    w.own(store(w))
    refused("is no file")


def store_of_another(w):
    if not w.as_root:
        return "not root"
    w.write("W/bailey.toml", GRANT)
    accept(w, "W/bailey.toml")
    os.chmod(store(w), 0o644)
    os.chown(store(w), 12345, w.gid)
    policy, err = shown(w)
    check(policy["config_layers"] == [] and "belongs to another account" in err, err)
    return None


def store_in_project(w):
    """Where a project's tool sets XDG_CONFIG_HOME to a place in the project, the project would bring its own store."""
    w.write("W/bailey.toml", GRANT)
    w.mkdir("W/.config/bailey", 0o700)
    digest = hashlib.sha256(GRANT.encode()).hexdigest()
    w.write("W/.config/bailey/trusted", f"bailey-trust 1\n{digest} {w.path('W/bailey.toml')}\n", 0o600)
    environment = dict(w.environment, XDG_CONFIG_HOME=w.path("W/.config"))
    policy, err = shown(w, environment=environment)
    check(policy["config_layers"] == [] and "bailey's own configuration lies beside or below it" in err, err)
    # The home directory itself holds its configuration as a matter of course.
    w.write("real/bailey.toml", GRANT)
    environment = dict(w.environment, XDG_CONFIG_HOME=w.path("real/.config"))
    r = trust(w, "--yes", w.path("real/bailey.toml"), environment=environment)
    check(r.status == 0 and layers(w, environment=environment, cwd=w.path("real")) == ["real/bailey.toml"], r)


def written_by_others(w):
    """A file that somebody else could have written is never applied, accepted or not."""
    w.write("W/bailey.toml", GRANT)
    accept(w, "W/bailey.toml")
    os.chmod(w.path("W/bailey.toml"), 0o666)
    policy, err = shown(w)
    check(policy["config_layers"] == [] and "other accounts can write to it (chmod go-w)" in err and "bailey trust" not in err, err)
    r = trust(w, "--yes", "bailey.toml")
    check(r.status == 1 and "cannot be accepted: other accounts can write to it" in r.err, r)
    os.chmod(w.path("W/bailey.toml"), 0o644)
    check(layers(w) == ["W/bailey.toml"], "mended")
    w.mkdir("config/bailey")
    w.write("config/bailey/config.toml", GRANT.replace(".", "/usr"), 0o666)
    r = w.call("run", "/bin/true")
    check(r.status == NOT_RUN and "config.toml: the policy is not taken: other accounts can write to it" in r.err, r)
    os.chmod(w.path("config/bailey/config.toml"), 0o600)
    if not w.as_root:
        return
    check(w.call("run", "/bin/true").status == 0, "mended")
    os.chown(w.path("W/bailey.toml"), 12345, 12345)
    policy, err = shown(w)
    check("it belongs to another account" in err and "W/bailey.toml" not in str(policy["config_layers"]), err)
    os.chown(w.path("W/bailey.toml"), 0, 0)
    check("config/bailey/config.toml" in layers(w) and "W/bailey.toml" in layers(w), "root's own is taken")


def not_a_file(w):
    os.mkfifo(w.own(w.mkdir("W/f")) + "/bailey.toml")
    w.mkdir("W/d/bailey.toml")
    w.mkdir("W/l")
    w.link("nowhere", "W/l/bailey.toml")
    w.mkdir("W/u")
    w.write("W/u/bailey.toml", GRANT, 0o000)
    # Nothing is opened that a link may lead to: a reader of this one would let its writer go on.
    w.mkdir("W/p")
    os.mkfifo(w.path("pipe"))
    w.own(w.path("pipe"))
    w.link(w.path("pipe"), "W/p/bailey.toml")
    opened = []
    thread = threading.Thread(target=lambda: opened.append(os.open(w.path("pipe"), os.O_WRONLY)))
    thread.start()
    _, err = shown(w, cwd=w.path("W/p"))
    check("is not a regular file" in err and not opened, err)
    os.close(os.open(w.path("pipe"), os.O_RDONLY | os.O_NONBLOCK))
    thread.join()
    os.close(opened[0])
    for name, piece in (("f", "is not a regular file"), ("d", "is not a regular file"), ("l", None), ("u", "Permission denied")):
        policy, err = shown(w, cwd=w.path(f"W/{name}"))
        check(policy["config_layers"] == [] and (piece in err if piece else err == ""), (name, err))


def bad_text(w):
    """An accepted file with a mistake ends the run; one that was not accepted is not even read."""
    w.write("W/bailey.toml", "[nonsense]\n")
    check(w.call("run", "/bin/true").status == 0, "skipped")
    r = trust(w, "--yes", "bailey.toml")
    check(r.status == 1 and f"{w.path('W/bailey.toml')}:1:2: nonsense: unknown table" in r.err and r.out == "", r)
    check(trust(w, "--list").out == "", "nothing is accepted")
    # Accepted by hand, as an older version with other keys could have done.
    digest = hashlib.sha256(b"[nonsense]\n").hexdigest()
    w.mkdir("config/bailey", 0o700)
    w.write("config/bailey/trusted", f"bailey-trust 1\n{digest} {w.path('W/bailey.toml')}\n", 0o600)
    r = w.call("run", "/bin/true")
    check(r.status == NOT_RUN and ":1:2: nonsense: unknown table" in r.err, r)


def no_includes(w):
    """No file brings in another, and a project's has no key for where a credential goes or what the host runs."""
    w.write("W/extra.toml", GRANT)
    for text in ('include = ["extra.toml"]', 'extends = "extra.toml"', 'include = "~/*"', '[provider]\nupstream = "x"', '[trust]\nall = true',
                 '[broker]\nsocket = "x"', 'hook = "./x"', 'profile = "ai-agent"', '[network]\nproxy = "x"', 'user = "root"', 'strict = false'):
        w.write("W/bailey.toml", text + "\n")
        r = trust(w, "--yes", "bailey.toml")
        check(r.status == 1 and f"{w.path('W/bailey.toml')}:" in r.err, r)


def nothing_of_the_host(w):
    """Nothing in the working directory is executed outside, or read but bailey.toml, whatever is done there."""
    for name in ("nft", "pasta", "bwrap", "newuidmap", "sh", "editor", "true", "git"):
        w.write(f"W/{name}", f"#!/bin/sh\n: >{w.path('mark')}\n", 0o755)
    w.write("W/.env", "BAILEY_CONFIG=./evil.toml\nPATH=.\nSHELL=./sh\nEDITOR=./editor\nXDG_CONFIG_HOME=.\n")
    w.write("W/evil.toml", '[env]\nset = { A = "evil" }\n')
    w.write("W/.bailey.toml", '[env]\nset = { A = "evil" }\n')
    w.write("W/config.toml", '[env]\nset = { A = "evil" }\n')
    w.write("W/bailey.toml", '[env]\nset = { A = "evil" }\n')
    environment = dict(w.environment, PATH=".:./bin::/usr/bin:/bin", SHELL="./sh", EDITOR="./editor")
    for args in (["run", "true"], ["show", "true"], ["show", "--plan", "true"], ["shell", "--", "-c", "true"], ["trust", "--list"],
                 ["trust", "bailey.toml"], ["profile", "list"], ["profile", "show", "ai-agent"], ["--help"]):
        r = w.call(*args, environment=environment)
        check("evil" not in (r.out if args[0] != "trust" else "") and not os.path.exists(w.path("mark")), (args, r))


def from_inside(w):
    """A session can neither write the policy of the next one nor accept it."""
    w.write("W/bailey.toml", '[filesystem]\nwrite = ["."]\n')
    accept(w, "W/bailey.toml")
    before, kept = w.read("W/bailey.toml"), w.read("config/bailey/trusted")
    script = ('try() { if "$@" >/dev/null 2>&1; then echo yes; else echo no; fi; }\n'
              'edit() { echo >>"$1"; }\n'
              'try edit bailey.toml; try mv bailey.toml b; try rm bailey.toml; try ln -sf x bailey.toml; cd ..; try mv W W2; cd W;'
              f'try edit {store(w)}; try cat {store(w)}; try mkdir sub; echo "[filesystem]" >sub/bailey.toml; cat sub/bailey.toml')
    r = w.call("run", "sh", "-c", script)
    check(r.out.split() == ["no"] * 7 + ["yes", "[filesystem]"], r)
    check(w.read("W/bailey.toml") == before and w.read("config/bailey/trusted") == kept, "the host's files")
    policy, err = shown(w, cwd=w.path("W/sub"))
    check(f"skipped {w.path('W/sub/bailey.toml')}: it is not accepted" in err, err)
    # With the real home writable, too, and with no configuration there before.
    w.mkdir("real/W")
    w.write("real/W/named.toml", '[filesystem]\nwrite = ["~"]\n')
    environment = {k: v for k, v in w.environment.items() if not k.startswith("XDG_")}
    real = w.path("real")
    r = w.call("run", "--config", w.path("real/W/named.toml"), "--home", w.mkdir("home"), "sh", "-c",
               f"mkdir -p {real}/.config/bailey; echo x >{real}/.config/bailey/config.toml; mv {real}/.config {real}/c; echo; echo x >{real}/x",
               environment=environment)
    check(os.path.exists(f"{real}/x") and os.listdir(f"{real}/.config/bailey") == [], r)


def during_a_run(w):
    """A policy is read once, at the start: what is done to it later is for the next run."""
    w.write("W/bailey.toml", '[filesystem]\nwrite = ["."]\n')
    accept(w, "W/bailey.toml")
    os.mkfifo(w.path("W/go"))
    w.own(w.path("W/go"))
    result = {}
    thread = threading.Thread(target=lambda: result.update(r=w.call(
        "run", "sh", "-c", 'echo 1 >one; cat go; echo 2 >two; cat /etc/hostname >/dev/null && echo read')))
    thread.start()
    with open(w.path("W/go"), "w", encoding="utf-8") as go:
        w.write("new", '[filesystem]\nreset = true\n')
        os.rename(w.path("new"), w.path("W/bailey.toml"))
        go.write("go\n")
    thread.join()
    check(result["r"].out == "go\nread\n" and w.read("W/two") == "2\n", result["r"])
    _, err = shown(w)
    check("was changed since it was accepted" in err, err)


def at_once(w):
    """Many accept at the same moment, and readers meanwhile see a whole store."""
    names = [f"P{i}/bailey.toml" for i in range(12)]
    for name in names:
        w.mkdir(os.path.dirname(name))
        w.write(name, GRANT)
    threads = [threading.Thread(target=accept, args=(w, name)) for name in names]
    for t in threads:
        t.start()
    while any(t.is_alive() for t in threads):
        r = trust(w, "--list")
        check(r.status == 0 and all(line.startswith("accepted ") for line in r.out.splitlines()), r)
    for t in threads:
        t.join()
    check(len(trust(w, "--list").out.splitlines()) == len(names), "all are in")
    check(os.listdir(w.path("config/bailey")) == ["trusted"], "no debris")


def odd_names(w):
    for name in ("a b", "a\nb", "q'\\", "日本", "-n"):
        w.mkdir(f"W/{name}")
        w.write(f"W/{name}/bailey.toml", GRANT)
        _, err = shown(w, cwd=w.path(f"W/{name}"))
        check(err.count("\n") == 1, err)
        if "\n" not in name:
            # What is said to be typed does it.
            command = err.split("to accept it: bailey ")[1]
            r = subprocess.run(["sh", "-c", "set -- " + command + 'printf "%s\\n" "$@"'], capture_output=True, encoding="utf-8")
            check(r.stdout == f"trust\n{w.path('W/' + name)}/bailey.toml\n", r)
        accept_path = w.path(f"W/{name}/bailey.toml")
        check(trust(w, "--yes", accept_path).status == 0, name)
        check(layers(w, cwd=w.path(f"W/{name}")) == [f"W/{name}/bailey.toml"], name)
    check(len(trust(w, "--list").out.splitlines()) == 5, "the list")
    check(trust(w, "--revoke", w.path("W/a\nb/bailey.toml")).status == 0, "taken back")


def asked(w):
    """On a terminal it is asked, and only a yes is one; without, it is not taken for granted."""
    w.write("W/bailey.toml", '[env]\npass = ["SECRET"]\nset = { A = "\\u001b[31m" }\n[network]\negress_allow = ["443"]\n'
            '[resources]\nmemory = "1k"\n[filesystem]\nreset = true\ndeny = ["x"]\nread_only = ["y"]\n[[device]]\npath = "/dev/kvm"\n')
    r = trust(w, "bailey.toml")
    check(r.status == 1 and "there is no terminal to ask on" in r.err and "  egress: to 443\n" in r.out, r)
    for line in ("  drops all lower layers of [filesystem]\n", f"  --- {w.work}/x  (denied)\n", f"  read-only {w.work}/y\n",
                 "  rw- /dev/kvm  (device)\n", "  variable SECRET with the value that it has\n", "  limit: memory in bytes: 1024\n",
                 "  variable A=\\x1b[31m\n"):
        check(line in r.out, (line, r))
    for answer, taken in (("n", False), ("", False), ("yess", False), ("y", True)):
        master, slave = pty.openpty()
        if w.as_root:
            os.fchown(slave, w.uid, -1)
        attributes = termios.tcgetattr(slave)
        attributes[3] &= ~termios.ECHO
        termios.tcsetattr(slave, termios.TCSANOW, attributes)
        account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}
        process = subprocess.Popen([w.bailey, "trust", "bailey.toml"], cwd=w.work, env=w.environment, stdin=slave, stdout=slave, stderr=slave,
                                   **account)
        os.close(slave)
        text = ""
        while "[y/N] " not in text:
            ready, _, _ = select.select([master], [], [], 20)
            check(ready, text)
            text += os.read(master, 4096).decode()
        os.write(master, answer.encode() + b"\n")
        check(process.wait(20) == (0 if taken else 1), (answer, text))
        os.close(master)
        check((trust(w, "--list").out != "") == taken, answer)


def no_cost(w):
    """Where there is nothing to find, each directory is asked once, and nothing else is opened for it."""
    if not os.path.exists("/usr/bin/strace"):
        return "no strace"
    deep = w.mkdir("W/a/b/c")
    account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}
    log = w.path("trace")
    w.write("trace", "", 0o666)
    subprocess.run(["strace", "-e", "trace=file", "-o", log, w.bailey, "show", "/usr/bin/true"], cwd=deep, check=True,
                   env=dict(w.environment, ASAN_OPTIONS="detect_leaks=0"),  # a sanitized bailey looks for leaks by tracing itself
                   capture_output=True, **account)
    calls = [line for line in w.read("trace").splitlines() if "bailey.toml" in line or "config/bailey" in line]
    directories = deep.count("/") + 1 + 2  # and those of the target that are not above: /usr/bin, /usr
    check(sum("bailey.toml" in c for c in calls) == directories, "\n".join(calls))
    check(len(calls) <= directories + 4, "\n".join(calls))
    return None


main([
    ("Q012 Q013 Q014 Q016 T007 C102: a bailey.toml beside the program applies once it is accepted, relative to its own directory", beside_the_program),
    ("Q015 C104: an edit takes acceptance away, the accepted text has it again, an older one does not", after_an_edit),
    ("C104: a text that was not accepted never applies, whatever is swapped while runs start", swapped),
    ("Q027: the layers' order: config.toml, by depth, the working directory's over the target's, --config", order),
    ("a file found twice counts once", found_twice),
    ("C105: a link is accepted as the file it is found as, and means the directory it is found in", links),
    ("C106: acceptance is taken back by path or digest, also of what is gone", taken_back),
    ("C106: a store that is damaged or open to others holds nothing, and that is said", damaged_store),
    ("C106: a store of another account holds nothing", store_of_another),
    ("T007: a store inside the project is not asked", store_in_project),
    ("T007: a file that others can have written is not taken", written_by_others),
    ("what stands there in place of a file is skipped", not_a_file),
    ("C100 T022: an accepted file with a mistake ends the run, another is not read", bad_text),
    ("C107 C102: no includes, no keys of the host's", no_includes),
    ("C103: nothing in the working directory is executed or read outside", nothing_of_the_host),
    ("T022 C109: a session can neither change nor accept a policy", from_inside),
    ("T022 C110: a policy changed during a run changes the next one", during_a_run),
    ("the store is replaced whole, by one at a time", at_once),
    ("C027: odd names are reported on one line, accepted and taken back", odd_names),
    ("bailey trust shows what a file grants and asks", asked),
    ("a run with nothing to find costs one look a directory", no_cost),
])
