#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Repositories that a session may write in: git works, and what it leaves there for the next git outside to execute is told."""

import json
import os
import shutil
import subprocess

from bailey import check, main

WRITE = '[filesystem]\nwrite = ["."]\nread = ["/etc"]\n'
GIT = "git -c user.name=n -c user.email=e@x -c init.defaultBranch=main"
TOLD = "git outside could run what this command left: "


def told(r):
    return [line.split(TOLD)[1].removesuffix("; look at it first") for line in r.err.splitlines() if TOLD in line]


def repository(w, name="W"):
    w.mkdir(name)
    policy = w.policy(WRITE, f"{name}/policy.toml")
    return w.call("run", "--config", policy, "sh", "-c", f"{GIT} init -q . && echo a >a && {GIT} add a && {GIT} commit -qm one",
                  cwd=w.path(name))


def everyday(w):
    """Branches, commits, stash, rebase, fetch, a name: all of it works, and none of it is worth a word."""
    r = repository(w)
    check(r.status == 0 and told(r) == [], r)
    r = w.run(WRITE, f"set -e; G='{GIT}'; $G checkout -qb b; echo b >b; $G add b; $G commit -qm two; $G checkout -q main; echo c >c; $G add c;"
              "$G commit -qm three; $G rebase -q main b; echo d >>a; $G stash -q; $G stash pop -q; $G config user.name x;"
              "$G fetch -q . b:fetched; $G gc -q; $G status --short -uno; $G log --oneline | wc -l")
    check(r.status == 0 and r.out == " M a\n3\n" and told(r) == [], r)
    check(w.call("run", "true", cwd=w.work).err.count("git outside") == 0, "nothing new")


def guarded(w):
    """The same with what makes the host execute code protected."""
    repository(w)
    before = w.read("W/.git/config")
    r = w.run(WRITE + 'read_only = [".git/hooks", ".git/config"]\n',
              f"echo x >x; {GIT} add x && {GIT} commit -qm x && echo committed; {GIT} checkout -qb y && echo branched;"
              f"{GIT} config core.fsmonitor ./x; echo x >.git/hooks/pre-commit; mv .git g; mv .git/hooks h; ls .git/hooks >/dev/null && echo seen")
    check(r.out == "committed\nbranched\nseen\n" and told(r) == [], r)
    check(w.read("W/.git/config") == before and not os.path.exists(w.path("W/.git/hooks/pre-commit")), "the host's files")


def left_behind(w):
    """A fresh directory, as the case has it."""
    r = w.run(WRITE, f"{GIT} init -q .; printf '#!/bin/sh\\n' >.git/hooks/post-checkout; chmod +x .git/hooks/post-checkout;"
              f"{GIT} config core.fsmonitor ./x; {GIT} config user.name harmless")
    check(told(r) == [f'{w.work}/.git/config says "fsmonitor = ./x"', f"{w.work}/.git/hooks/post-checkout is a hook"], r)
    check("warning: git outside" in r.err, r)
    # Told once: what was there before is the host's own affair.
    r = w.run(WRITE, "echo >file")
    check(told(r) == [], r)
    r = w.run(WRITE, "echo >>.git/hooks/post-checkout")
    check(told(r) == [f"{w.work}/.git/hooks/post-checkout is a hook"], r)
    r = w.run(WRITE, "touch -d 2001-01-01 .git/hooks/x; cp -p .git/hooks/x .git/hooks/y; rm .git/hooks/x")
    check(told(r) == [f"{w.work}/.git/hooks/y is a hook"], r)


SETTINGS = ["[core]\n\tsshCommand = x", "[CORE]hooksPath=x", "[alias] a = !x", '[filter "f"]\n clean = x', '[includeIf "gitdir:/"]\npath=x',
            '[diff "d"]\ntextconv = x', '[merge "m"]\ndriver = x', "[gpg]\nprogram = x", '[credential "u"]\nhelper = x', '[remote "r"]\nuploadpack = x',
            "[core]\nPAGER = x", '[url "ext::sh -c x"]\ninsteadOf = y', '[submodule "s"]\nupdate = !x', "[core]\nattributesFile = x",
            "[interactive]\ndiffFilter = x", '[mergetool "m"]\ncmd = x', "[alias]\nst = !x", "[pager]\nlog = x", '[man "x"] cmd = y',
            '[core "a]"]\n[core] hooksPath = x', "[core]\n" + "x" * 200 + "hooksPath = x"]
HARMLESS = '[remote "origin"]\nurl = https://host/update/helper.git\nfetch = +refs/heads/*:refs/x/*\n[branch "update-path"]\nmerge = refs/heads/hook\n'


def every_setting(w):
    """Whatever its case and form, a setting that names a program is told."""
    repository(w)
    before = w.read("W/.git/config")
    for text in SETTINGS:
        w.write("W/.git/config", before)
        w.write("W/setting", text + "\n")
        r = w.run(WRITE, "cat setting >>.git/config")
        check(len(told(r)) >= 1 and told(r)[0].startswith(f"{w.work}/.git/config says "), (text, r))
    w.write("W/.git/config", before)
    w.write("W/setting", HARMLESS)
    r = w.run(WRITE, "cat setting >>.git/config")
    check(told(r) == [], r)
    # A new entry of a section that was there before.
    w.write("W/.git/config", w.read("W/.git/config") + "[alias]\nst = status\n")
    r = w.run(WRITE, "echo 'up = !x' >>.git/config")
    check(told(r) == [f'{w.work}/.git/config says "up = !x"'], r)


def disguises(w):
    """A .git that leads elsewhere, links, directories in the place of files, a configuration that is too large, a NUL before the key."""
    os.mkdir(w.own(w.mkdir("W/other")) + "/evil")
    w.own(w.path("W/other/evil"))
    repository(w)
    subprocess.run(["cp", "-a", w.path("W/.git"), w.path("as-made")], check=True)
    for script, expected in (("mv .git g; echo 'gitdir: other/evil' >.git", [f'{w.work}/.git leads to "gitdir: other/evil"']),
                             ("mv .git g; ln -s other/evil .git", [f"{w.work}/.git is no directory"]),
                             ("rm .git/config; ln -s ../a .git/config", [f"{w.work}/.git/config is no file"]),
                             ("rm .git/config; mkfifo .git/config", [f"{w.work}/.git/config is no file"]),
                             ("head -c 300000 /dev/zero >>.git/config", [f"{w.work}/.git/config cannot be read"]),
                             ("printf '\\0[core]fsmonitor=x\\n' >>.git/config", [f'{w.work}/.git/config says "[core]fsmonitor=x"']),
                             ("rm -r .git/hooks; ln -s ../other .git/hooks", [f"{w.work}/.git/hooks is no directory"]),
                             ("ln -s ../../a .git/hooks/pre-push", [f"{w.work}/.git/hooks/pre-push is a hook"]),
                             ("echo ../other >.git/commondir", [f'{w.work}/.git/commondir leads to "../other"']),
                             ("printf '[core]\\nfsmonitor = \\033[2J\\n' >.git/config.worktree",
                              [f'{w.work}/.git/config.worktree says "fsmonitor = \\x1b[2J"'])):
        r = w.run(WRITE, script)
        check([" ".join(t.split()) for t in told(r)] == expected, (script, r))
        for name in ("W/.git", "W/g"):
            if os.path.islink(w.path(name)) or os.path.isfile(w.path(name)):
                os.unlink(w.path(name))
            shutil.rmtree(w.path(name), ignore_errors=True)
        subprocess.run(["cp", "-a", w.path("as-made"), w.path("W/.git")], check=True)


def many(w):
    """However many there are, the report is short and soon there."""
    repository(w)
    r = w.run(WRITE, "i=0; while [ $i -lt 3000 ]; do : >.git/hooks/h$i; echo \"fsmonitor = $i\" >>.git/config; i=$((i+1)); done")
    check(r.status == 0 and len(told(r)) == 16, r)


def worktree(w):
    """A linked worktree, with the main repository's directory granted: a commit works, and the pointer is watched."""
    repository(w, "main")
    r = w.run(f'[filesystem]\nwrite = ["{w.root}/main", "."]\n', f"{GIT} -C {w.path('main')} worktree add -q {w.path('W')}/wt", cwd=w.work)
    check(r.status == 0, r)
    policy = f'[filesystem]\nwrite = ["{w.path("W")}/wt", "{w.path("main")}/.git"]\nread_only = ["{w.path("main")}/.git/hooks", "{w.path("main")}/.git/config"]\n'
    w.write("secret", "SECRET\n")
    r = w.run(policy, f"echo x >x; {GIT} add . && {GIT} commit -qm x && {GIT} branch c && echo done; cat {w.path('main')}/a",
              cwd=w.path("W/wt"))
    check(r.out == "done\n" and told(r) == [], r)
    r = w.run(policy, "echo 'gitdir: /tmp/x' >.git", cwd=w.path("W/wt"))
    check(told(r) == [f'{w.path("W/wt")}/.git leads to "gitdir: /tmp/x"'], r)
    r = w.run(f'[filesystem]\nwrite = ["{w.path("main")}/.git"]\n', f"echo 'fsmonitor = x' >>{w.path('main')}/.git/config")
    check(told(r) == [f'{w.path("main")}/.git/config says "fsmonitor = x"'], r)


def above(w):
    """The repository stands above the working directory, in what is granted."""
    repository(w)
    w.mkdir("W/src/deep")
    r = w.run(WRITE, "echo 'fsmonitor = x' >>../../.git/config", cwd=w.path("W/src/deep"))
    check(told(r) == [f'{w.work}/.git/config says "fsmonitor = x"'], r)


def for_programs(w):
    repository(w)
    r = w.run(WRITE, ": >.git/hooks/pre-commit", "--json", "--quiet")
    check(json.loads(r.err.splitlines()[-1])["git"] == [f"{w.work}/.git/hooks/pre-commit is a hook"], r)
    r = w.run(WRITE, ": >.git/hooks/pre-push", "--quiet")
    check(told(r) == [f"{w.work}/.git/hooks/pre-push is a hook"], r)


main([
    ("C087: commits, branches, rebase, stash and fetch work, and nothing is told", everyday),
    ("C087: the same with hooks and configuration protected", guarded),
    ("C029: a hook and a setting that git outside would run are told, once", left_behind),
    ("C029: every setting that names a program is told", every_setting),
    ("C029: a .git that leads elsewhere, and other disguises", disguises),
    ("C029: many of them cost little", many),
    ("C086 C029: a linked worktree", worktree),
    ("C029: a repository above the working directory", above),
    ("C029: --json and --quiet have it, too", for_programs),
])
