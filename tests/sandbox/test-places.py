#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Where mount points may be made: in what bailey made itself, never in a tree of the host."""

import os

from sandbox import REFUSED, check, main


def nothing_made_on_host(w):
    """A directory or file that went away since the policy was resolved is not made anew through the bind above it."""
    w.make("there")
    file = w.write("there/file", "x\n")
    for target, source in ((f"{w.work}/gone", os.path.join(w.root, "there")), (f"{w.work}/gone/deep", os.path.join(w.root, "there")), (f"{w.work}/gone", file)):
        r = w.run(["/bin/sh", "-c", "echo ran"], w.plan(f"step\tbind\t-\t{target}\t{source}"))
        check(r.status == REFUSED and r.out == "" and target in r.err, r)
        check(os.listdir(w.work) == [], os.listdir(w.work))


def covered_place(w):
    """A tmpfs without write permission takes mount points while the root is built, and nothing afterwards."""
    w.make("work/secret")
    w.make("shown")
    w.write("shown/file", "shown\n")
    w.write("work/secret/s", "SECRET\n")
    plan = w.plan(f"step\ttmpfs\t-\t{w.work}/secret", f"step\tbind\t-\t{w.work}/secret/a/b\t{os.path.join(w.root, 'shown')}",
                  f"access\tr\t{os.path.join(w.root, 'shown')}\t-")
    r = w.run(["/bin/sh", "-c", "cd secret; cat a/b/file; cat s; touch new; mkdir a/c; echo end"], plan)
    check(r.out == "shown\nend\n", r)
    check(os.listdir(os.path.join(w.root, "work/secret")) == ["s"], "made on the host")


main([
    ("C013 C015 C018: no mount point is made in a tree of the host", nothing_made_on_host),
    ("C030: a place that is covered holds what is mounted in it and takes no more", covered_place),
])
