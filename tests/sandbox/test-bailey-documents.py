#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whatever tells of bailey's verbs, options and gaps a second time says the same as the program's own table."""

import json
import os
import re
import shutil
import subprocess

from bailey import check, main

TOP = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
COMPLETIONS = {shell: os.path.join(TOP, "shell-completions", shell, name)
               for shell, name in (("bash", "bailey"), ("zsh", "_bailey"), ("fish", "bailey.fish"))}


def text(*parts):
    with open(os.path.join(TOP, *parts), encoding="utf-8") as f:
        return f.read()


def table(w):
    r = w.call("--print-verbs")
    check(r.status == 0 and r.err == "", r)
    return {v["verb"]: {o["name"]: o["value"] for o in v["options"]} for v in json.loads(r.out)}


def same(what, told, meant):
    check(told == meant, f"{what}\nsays  {told}\nmeant {meant}")


def gaps():
    return re.findall(r'\{"([a-z-]+)",', text("src", "bailey", "gap.c"))


def page(w):
    """The synopsis has every option of every verb, and every option is explained once."""
    synopsis = text("man", "bailey.1").split(".Sh SYNOPSIS")[1].split(".Sh")[0]
    verbs = {}
    for part in synopsis.split("\n.Nm\n")[1:]:
        match = re.match(r"\.Cm ([a-z]+(?: (?:list|show|generate))?)\n", part)
        if match:
            options = dict(re.findall(r"Fl Fl ([a-z-]+)(?: Ar ([A-Za-z0-9.:]+))?", part))
            verbs.setdefault(match[1], {}).update({f"--{name}": value or None for name, value in options.items()})
    same("the synopsis", verbs, table(w))
    described = re.findall(r"^\.It (Fl Fl .*)$", text("man", "bailey.1"), re.M)
    names = [n for line in described for n in re.findall(r"Fl Fl ([a-z-]+)", line)]
    same("the options", sorted(f"--{n}" for n in names), sorted({o for v in table(w).values() for o in v}))
    same("the verbs", re.findall(r"^\.It Cm ([a-z ]+)$", text("man", "bailey.1"), re.M), list(table(w)))


def bash(w):
    listed = dict(re.findall(r'^ +\[([a-z-]+)\]="([^"]*)"$', text("shell-completions", "bash", "bailey"), re.M))
    same("bash", {verb.replace("-", " "): options.split() for verb, options in listed.items()},
         {verb: ["--help", *options] for verb, options in table(w).items()})
    known = re.search(r"_bailey_value\(\) \{(.*?)\n\}", text("shell-completions", "bash", "bailey"), re.S)[1]
    named = set(" | ".join(re.findall(r"^ +(--[a-z| -]*)\)", known, re.M)).split(" | "))
    same("bash, options with values", named, {name for v in table(w).values() for name, value in v.items() if value})
    same("bash, gaps", re.search(r'compgen -W "(namespaces[^"]*)"', known)[1].split(), gaps())


def bash_words(w):
    w.mkdir("W/d")
    w.write("W/bailey.toml", "")
    w.write("W/other.toml", "")

    def complete(*words):
        # As text: the account may not be able to go where the checkout is.
        script = ('compopt() { :; }; eval "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _bailey; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        account = {"user": w.uid, "group": w.gid, "extra_groups": []} if w.as_root else {}
        done = subprocess.run(["bash", "-c", script, "bash", text("shell-completions", "bash", "bailey"), w.bailey, *words], check=True, capture_output=True,
                              encoding="utf-8", cwd=w.work, env=w.environment, **account)
        check(done.stderr == "", done.stderr)
        return sorted(set(done.stdout.split()))

    for words, expected in ((["sh"], ["shell", "show"]), (["profile", ""], ["generate", "list", "show"]), (["profile", "show", "n"], ["native-game", "network-client"]),
                            (["run", "--prof"], ["--profile"]), (["run", "--profile", "des"], ["desktop-app"]), (["trust", ""], ["bailey.toml", "d"]),
                            (["run", "--strict", "--accept-gap", "landlock-t"], ["landlock-truncate"]), (["show", "--pl"], ["--plan"]),
                            (["run", "--pl"], []), (["run", "cat", "oth"], ["other.toml"]), (["audit", "--unc"], ["--unconfined"]), (["audit", "cat", "oth"], ["other.toml"]),
                            (["profile", "generate", "--trace", "oth"], ["other.toml"]), (["run", "--config", "oth"], ["other.toml"]),
                            (["show", "--json", "tru"], ["true", "truncate"]), (["show", "true", ""], [])):
        same(words, [c for c in complete(*words) if words[-1] or c], expected)


def zsh(w):
    body = text("shell-completions", "zsh", "_bailey")
    verbs = {}
    for verb, options in re.findall(r"^ +'?([a-z]+(?: [a-z]+)?)'?\)\n +options=\(\n(.*?)^ +\)$", body, re.M | re.S):
        found = re.findall(r"^ +'\*?(--[a-z-]+)(=?)\[[^]]*\](?::((?:[^':\\]|\\:)*):)?", options, re.M)
        check(all(bool(equals) == bool(value) for _, equals, value in found), found)
        verbs[verb] = {name: value.replace("\\:", ":") or None for name, _, value in found}
    same("zsh", verbs, table(w))
    same("zsh, gaps", re.search(r"\((namespaces [^)]*)\)", body)[1].split(), gaps())
    if shutil.which("zsh"):
        check(subprocess.run(["zsh", "-n", COMPLETIONS["zsh"]]).returncode == 0, "syntax")


def fish(w):
    body = text("shell-completions", "fish", "bailey.fish")
    verbs = {}
    for verb, name, rest in re.findall(r"^complete -c bailey -n '__bailey_verb ([a-z ]+)' -l ([a-z-]+)( .*)$", body, re.M):
        verbs.setdefault(verb, {})["--" + name] = bool(re.match(r" -(r|x)", rest))
    same("fish", verbs, {verb: {name: value is not None for name, value in options.items()} for verb, options in table(w).items()})
    same("fish, gaps", re.search(r"'(namespaces [^']*)'", body)[1].split(), gaps())
    if shutil.which("fish"):
        check(subprocess.run(["fish", "-n", COMPLETIONS["fish"]]).returncode == 0, "syntax")


def help_text(w):
    """Every option is in the help, and its lines fit a terminal."""
    r = w.call("--help")
    for verb, options in table(w).items():
        check(f"bailey {verb} " in r.out and all(f"{o} " in r.out for o in options), verb)
        check(w.call(*verb.split(), "--help").out == r.out, verb)
    check(all(len(line) <= 80 for line in r.out.splitlines()), r.out)


def guide(w):
    """Every policy of the guide is one, its links lead somewhere, and each limit that was promised to be told is."""
    body = text("docs", "BAILEY.md")
    blocks = re.findall(r"^```toml\n(.*?)^```$", body, re.M | re.S)
    check(len(blocks) == 2, blocks)
    w.mkdir("config/bailey/profiles")
    for block in blocks:
        profile = "applies_to" in block
        file = w.write("config/bailey/profiles/guide.toml" if profile else "W/guide.toml", block)
        r = w.call("show", *(["--profile", "guide"] if profile else ["--config", file]), "/bin/true")
        check(r.status == 0, (block, r))
    keys = set(re.findall(r'\{"[a-z]*", "([a-z_]+)", read_', text("src", "bailey", "policy-file.c")))
    check(keys - set(re.findall(r"^([a-z_]+) =", "\n".join(blocks), re.M)) <= {"device", "egress_allow"}, "keys")
    for link in re.findall(r"\]\(([^)#]+)\)", body):
        check(os.path.exists(os.path.join(TOP, "docs", link)), link)
    for heading in ("Configuration", "The policy model", "Profiles", "Known limitations", "A confined shell", "Auditing a program", "Environment and storage",
                    "Trusting a config"):
        check(re.search(rf"^#+ {heading}$", body, re.M), heading)
    limits = body.split("## Known limitations")[1]
    for word in ("credential", "read_only", "CIDR", "UDP", "Side channels", "X11", "device", "trace", "kernel bug", "home directory"):
        check(word in limits, word)
    for name in json.loads(w.call("profile", "list", "--json").out):
        check(f"| `{name['name']}` |" in body or name["path"], name)


main([
    ("Q030: the guide's policies work, and it names what is not promised", guide),
    ("bailey(1) has every verb and option, with its value, and no other", page),
    ("bash completes the verbs, options and gaps of the table, and no other", bash),
    ("bash completes a line, word by word", bash_words),
    ("zsh completes the verbs, options and gaps of the table, and no other", zsh),
    ("fish completes the verbs, options and gaps of the table, and no other", fish),
    ("the help has every option", help_text),
])
