#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The main job through the command: errand run, errand grant from a second process, errand receipts. Each step bites when its protection is off."""

import os
import subprocess

import errand_test
import errand_world
from errand_test import case, run
from first_run import EVENTS, STEPS
from run_story import RunStory
from told import bites, bites_outside, once

errand_world.enter()

told = once(RunStory, "grants")


def plain(t, **sandbox):
    """A session's makings without the story; sandbox: of its configuration."""
    first = RunStory(t, "s2").prepare()
    return first.start_broker(first.key, **sandbox)


def unprotected(t, name, **sandbox):
    """The step as the agent finds it with that configuration."""
    results, _, _ = plain(t, **sandbox).inside(name)
    bites(t, results, name)


# ---- the steps ----

@case("S016 Q010: errand run: the agent works in its project, as its own account, and nothing is written elsewhere")
def _(t):
    told().step(t, "project", "project")


@case("S016 bite: with policyExtra the agent writes beside its project")
def _(t):
    first = plain(t)
    first.start_broker(first.key, policyExtra={"write": [first.base]})
    first.inside("project")
    bites_outside(t, first.check_project)


@case("S024 S210: errand run: the provider saw the real key and no stand-in, and the answer came as a stream")
def _(t):
    told().step(t, "provider", "provider")
    t.equal(len([line for line in told().first.lines if '"event"' in line]), len(EVENTS), "events")


@case("S089 S210: errand run: the provider's echo of the key is scrubbed")
def _(t):
    told().step(t, "echo")


@case("S127 S128: errand run: another host is refused, and the refusal names the command that grants it")
def _(t):
    told().step(t, "denied")


@case("S127 bite: with that host on the configured allowlist it is reached")
def _(t):
    unprotected(t, "denied", allow=["denied.example"])


@case("S132: errand grant from a second process: the agent's next attempt reaches the host, nothing restarted; a grant for once is used up then")
def _(t):
    told().step(t, "granted", "granted", "grants")


@case("S132 bite: without errand grant the next attempt is refused as well")
def _(t):
    first = plain(t)
    results, _, _ = first.inside("granted")
    bites(t, results, "granted")
    t.equal(first.other_host.accepts(), [], "connections")


@case("Q009 T001: errand run: the agent finds no home directory of its owner")
def _(t):
    told().step(t, "home")


@case("Q009 bite: with policyExtra naming the home the agent finds it")
def _(t):
    first = plain(t)
    first.start_broker(first.key, policyExtra={"read": [first.owner_home]})
    results, _, _ = first.inside("home")
    bites(t, results, "home")


@case("T009: errand run: the agent cannot read /etc/shadow, although its mode would let it")
def _(t):
    told().step(t, "shadow")


@case("T009 bite: without a session the same account reads it")
def _(t):
    bites(t, plain(t).outside("shadow"), "shadow")


@case("Q021 T011: errand run: the agent sees no process of the host")
def _(t):
    told().step(t, "processes")


@case("Q021 bite: without a session it sees them")
def _(t):
    bites(t, plain(t).outside("processes"), "processes")


@case("S121 N002 N005: errand run: no network address but loopback, and no way out of its own")
def _(t):
    told().step(t, "network")


@case("S121 bite: without a session it sees the host's and gets out")
def _(t):
    bites(t, plain(t).outside("network"), "network")


@case("S210 S227: errand run: no key in the environment, /proc, answers or files; none in the output, nor in what errandd keeps")
def _(t):
    told().step(t, "key", "no_key")


@case("S210 bite: with the real key as a variable of the configuration the agent finds it, and so does the check of what is kept")
def _(t):
    first = plain(t)
    first.start_broker(first.key, env={"CARELESS": first.key})
    results, _, _ = first.inside("key")
    bites(t, results, "key")
    # As a word of the command it is in the record.
    first.lines, first.stderr, first.stand_in, first.credential = [], "", "none", "none"
    first.session = "s3"
    first.inside("echo", first.key)
    bites_outside(t, first.check_no_key)


@case("S044 S070 T020 S196: errand run: the environment is built; nothing of the caller's is in it")
def _(t):
    told().step(t, "environment", "environment")


@case("T020 bite: a variable that was asked for by --env is seen")
def _(t):
    results, _, _ = plain(t).inside("environment", options=("--env", "OWNER_SECRET=x"))
    bites(t, results, "environment")


@case("S052: errand receipts lists exactly the provider calls")
def _(t):
    told().raise_problem("receipts")


@case("S052 bite: one call less is noticed")
def _(t):
    first = plain(t)
    results, _, _ = first.inside("echo")
    t.check(results["echo"][0], lambda: f"the call failed: {results}")
    bites_outside(t, first.check_receipts)
    first.check_receipts((("POST", "/echo", 200, "completed"),))


@case("S177: errand run took all steps and ended with the agent's status; errand session show tells how")
def _(t):
    told().raise_problem("closing_line")
    t.equal(list(told().first.results), STEPS, "steps")


@case("S177 bite: an agent that fails a step is not a success")
def _(t):
    first = plain(t)
    first.lines = []
    _, first.status, first.stderr = first.inside("granted")
    t.equal(first.status, 1, "exit status")
    bites_outside(t, first.check_closing_line)


@case("S132: errand grants and errand revoke: a grant that is taken back before its use lets nothing through")
def _(t):
    first = plain(t)
    process = first.start("granted")
    process.stdout.readline()
    errand = first.errand
    errand.good("grant", "s2", "denied.example", "10m")
    t.contains(errand.good("grants", "s2"), "denied.example", "the table")
    errand.good("revoke", "s2", "denied.example")
    t.equal(errand.json("grants", "s2"), [], "the grants")
    out, _ = process.communicate("go on\n", timeout=20)
    t.contains(out, '"ok": false', "what the agent says")
    t.equal(first.other_host.accepts(), [], "connections")


def tell_story(*prefix, **variables):
    environment = {k: v for k, v in os.environ.items() if k not in ("ERRAND_TEST_WORLD", "PYTHONPATH", "ERRAND_BUILD")}
    return subprocess.run([*prefix, "/usr/bin/python3", errand_test.source("tests/session/story.py"), os.environ["ERRAND_BUILD"]],
                          env={**environment, **variables}, capture_output=True, text=True, check=False)


def told_well(t, result):
    t.log("the demonstration", lambda: result.stdout + result.stderr)
    t.equal(result.returncode, 0, "exit status")
    t.contains(result.stdout, "Every step came out as promised.", "the last line")
    t.matches(result.stdout, r"(?m)^ +20.* provider\.example +POST /sse/3\S* +200 .* completed", "the receipts")
    t.lacks(result.stdout, "FAILED", "the transcript")


@case("tools/try: the demonstration ends with 0, says that every step came out, and shows the receipts")
def _(t):
    told_well(t, tell_story())


@case("tools/try: root's demonstration again as an ordinary account")
def _(t):
    if os.getuid() != 0:
        t.note("this is an ordinary account")
        return
    account = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]
    for path in (os.environ["ERRAND_BUILD"], errand_test.source("tests/session/story.py")):
        if subprocess.run([*account, "test", "-r", path], check=False).returncode != 0:
            t.note(f"{path} cannot be read by an ordinary account; the suite is to be run as the one that it belongs to")
            return
    told_well(t, tell_story(*account, SUDO_UID=""))


@case("tools/try bite: where a session cannot be started it says so and does not end with 0")
def _(t):
    # errandd is looked for there and nowhere else.
    result = tell_story(ERRAND_LIBEXEC="/nonexistent")
    t.equal(result.returncode, 1, "exit status")
    t.contains(result.stdout, "NOT every step", "the last line")


if __name__ == "__main__":
    run()
