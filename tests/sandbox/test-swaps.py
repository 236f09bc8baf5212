#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is swapped for something else, on and on, while sandboxes start."""

import contextlib
import os
import select

from bailey import check, main

RUNS = 60
LOOK = "i=0; while [ $i -lt 200 ]; do for f in conf/key deep/conf/key; do { read -r x <$f && echo $x; } 2>&-; done; i=$((i+1)); done"


@contextlib.contextmanager
def repeated(step):
    """step() over and over, in a process of its own: a thread would take turns with who starts the sandboxes. It must go well each time."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            os.close(write)
            while not select.select([read], [], [], 0)[0]:
                step()
            status = 0
        except OSError as e:
            print(f"# {e}", flush=True)  # something was made in the workspace meanwhile
        finally:
            os._exit(status)
    os.close(read)
    try:
        yield
    finally:
        os.close(write)
        status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    check(status == 0, "a swap went wrong")


def swapped_link(w):
    """A session flips a directory and a link while others start: they see the directory or refuse, never the target."""
    w.mkdir("private/sub")
    w.write("private/sub/key", "SECRET\n")
    w.mkdir("W/tree/cache/sub")
    w.policy('[filesystem]\nwrite = ["tree"]\nread = ["tree/cache/sub"]\n')
    cache, aside, link = w.path("W/tree/cache"), w.path("W/tree/aside"), w.path("W/tree/link")

    def swap():
        os.rename(cache, aside)
        os.symlink(w.path("private"), link)
        os.rename(link, cache)
        os.unlink(cache)
        os.rename(aside, cache)
    with repeated(swap):
        for _ in range(RUNS):
            r = w.call("run", "--config", "policy.toml", "sh", "-c", "cat tree/cache/sub/key tree/cache/key")
            check("SECRET" not in r.out, r)
    check(os.listdir(w.path("W/tree")) == ["cache"], "what is there")


def moved_aside(w):
    """What a session moves away while others start comes back protected, or they do not start."""
    for name in ("W/conf", "W/deep/conf"):
        w.mkdir(name)
        w.write(name + "/key", "SECRET\n")
    w.policy('[filesystem]\nwrite = ["."]\ndeny = ["conf", "deep/conf"]\n')

    def move():
        for name in ("W/conf", "W/deep"):
            os.rename(w.path(name), w.path("aside"))
            os.rename(w.path("aside"), w.path(name))
    with repeated(move):
        for _ in range(RUNS):
            # The shell is given the time in which what was away is back, and starts no program for each look.
            r = w.call("run", "--config", "policy.toml", "sh", "-c", LOOK)
            # Absent already when the policy was read is told; there is then nothing to protect.
            check("SECRET" not in r.out or "there is nothing to protect" in r.err, r)


main([
    ("C018: a directory swapped for a link during the start is never followed", swapped_link),
    ("C020: what was moved aside during the set-up is not left bare", moved_aside),
])
