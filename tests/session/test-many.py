#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Ten sessions at one time, of ten errand runs that begin together on one state directory."""

import json
import os
import re
import signal

import errand_world
from errand_run import PATIENCE, Watched, wait_for
from errand_test import case, run
from run_story import RunStory

errand_world.enter()

IDS = [f"many{i}" for i in range(10)]


def lines_until(process, word):
    """Its lines up to the one that has the word."""
    lines = []
    for line in process.stdout:
        lines.append(line)
        if word in line:
            break
    return lines


def start_all(first, *steps):
    processes = {}
    for name in IDS:
        first.session = name
        processes[name] = first.start(*steps)
    return processes


@case("C008 S042 S043 S045: ten errand runs at once: one errandd, ten brokers, ports, credentials; a grant lets its own session through and no other", timeout=120)
def _(t):
    first = RunStory(t).prepare()
    errand = first.errand
    # Nobody serves yet: which of the ten starts errandd is left to them.
    processes = start_all(first, "environment", "echo", "granted")
    seen = {}
    for name, process in processes.items():
        lines = lines_until(process, "waiting")
        t.check(lines and "waiting" in lines[-1], lambda n=name, p=process: f"{n} has not come to its grant: {p.stderr.read()}")
        seen[name] = next(m["environment"] for m in map(json.loads, lines) if "environment" in m)
    family = errand.family()
    names = sorted(family.values())
    t.equal([names.count(n) for n in ("errandd", "errand-launch", "errand-shim", "errand-broker")], [1, 1, 10, 10], "processes")
    t.equal(sorted(s["id"] for s in errand.json("session list") if s["state"] == "running"), IDS, "what errand session list shows")
    proxies = [re.match(r"http://errand:(\S+)@127\.0\.0\.1:(\d+)$", e["http_proxy"]).groups() for e in seen.values()]
    for kind, values in (("credentials", [c for c, _ in proxies]), ("ports", [p for _, p in proxies]),
                         ("stand-ins", [e["ANTHROPIC_API_KEY"] for e in seen.values()]), ("homes", [e["HOME"] for e in seen.values()])):
        t.equal(len(set(values)), len(IDS), f"different {kind}")
    granted = IDS[::2]
    for name in granted:
        first.session = name
        first.grant("denied.example")
    for process in processes.values():
        process.stdin.write("go on\n")
        process.stdin.flush()
    for name, process in processes.items():
        out, err = process.communicate(timeout=PATIENCE)
        last = json.loads(out.splitlines()[-1])
        t.equal((last["ok"], process.returncode), (name in granted, 0 if name in granted else 1), f"{name}: {out} {err}: the end")
    t.equal(len(first.other_host.accepts()), len(granted), "connections to the granted host")
    # Each session's receipts are its own; together there is one of each.
    for name in IDS:
        t.equal([(r["session"], r["path"]) for r in errand.json("receipts", name)], [(name, "/echo")], f"the receipts of {name}")
    t.equal(sorted(r["session"] for r in errand.json("receipts")), IDS, "all receipts")
    wait_for(lambda: not [n for n in errand.family().values() if n in ("errand-shim", "errand-broker", "bailey", "agent")], "the end of sessions' processes")


@case("C200: errandd is killed with ten sessions: all end, none of their processes is left, and each is known as lost", timeout=120)
def _(t):
    first = RunStory(t).prepare()
    processes = start_all(first, "granted")
    for process in processes.values():
        lines_until(process, "waiting")
    family = first.errand.family()
    t.check(len(family) >= 2 + 10 * 5, f"the family has {len(family)} processes: {family}")
    watched = Watched(family)
    os.kill(first.errand.pid(), signal.SIGKILL)
    for name, process in processes.items():
        t.equal(process.wait(PATIENCE), 123, f"exit status of {name}")
    watched.await_end()
    t.equal(first.errand.sockets(), [], "sockets that are served")
    threads = {s["id"]: s["state"] for s in first.errand.json("threads list")}
    t.equal(threads, {name: "failed" for name in IDS}, "the states")


if __name__ == "__main__":
    run()
