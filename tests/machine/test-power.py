# SPDX-License-Identifier: LGPL-2.1-or-later
"""A machine that loses its power, with sessions in every state: each is found as it has to be, what was half made is undone, and nothing is left over."""

import json
import os
import signal
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_bus import BusError  # noqa: E402
from errand_machine import good, wait_for  # noqa: E402
from errand_system import Client  # noqa: E402
from errand_test import case  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

OWNER = "alice"
BOOTS = "/var/lib/boots"  # a line for each; the last one is this
ROUNDS = 4                # of losing power at some moment of sessions' starts and ends
UNITS = ("errand-broker@*.service", "errand-broker@*.socket", "errand-broker-control@*.socket")

CALL = r"""
port=${ERRAND_PROVIDER_ANTHROPIC_URL#http://127.0.0.1:}
exec 3<>"/dev/tcp/127.0.0.1/${port%%/*}"
printf 'GET /provider/anthropic/one HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nx-api-key: %s\r\nConnection: close\r\n\r\n' "${port%%/*}" "$ANTHROPIC_API_KEY" >&3
read -r _ status _ <&3
echo "called $status"
echo made >file
sleep infinity
"""


def lose_power():
    os.sync()
    with open("/mnt/out/lose-power", "w", encoding="ascii"):
        pass
    signal.pause()


def record(session):
    return f"{system.STATE}/.records/{session}/session.json"


def write_record(session, change):
    directory = os.path.dirname(record(session))
    wait_for(lambda: os.listdir(directory).count("session.json") and not [n for n in os.listdir(directory) if n.startswith(".session.json")], "record on disk")
    with open(record(session), "r+", encoding="utf-8") as f:
        text = change(f.read())
        f.seek(0)
        f.truncate()
        f.write(text)


def prepare():
    machine.account(OWNER, "errand-users")
    machine.write("/etc/errand/credentials/anthropic", "sk-real-key-of-the-provider\n", 0o600)
    provider = {"kind": "anthropic", "baseUrl": "https://provider.invalid", "credential": {"systemdCredential": "keys_anthropic"}, "credentialName": "ANTHROPIC_API_KEY"}
    system.configure({"agent": {"providers": {"anthropic": provider}}, "limits": {"maxLiveSessions": 500}})
    good("systemctl", "enable", "errandd.service")
    machine.write("/etc/errand/sessions.d/booted.json", json.dumps({"project": "units", "command": ["/bin/sh", "-c", "cat /proc/sys/kernel/random/boot_id; sleep infinity"]}))
    good("systemctl", "enable", "--now", "errand-session@booted.service")


def every_state():
    owner = Client(OWNER)
    owner.start("runs", ["/bin/bash", "-c", CALL], provider="anthropic")
    wait_for(lambda: "called" in owner.transcript("runs"), "call of the provider")
    owner.session("runs", "Grant", "ss", "kept.example", "always")
    owner.create("made", ["/bin/sh", "-c", "cat file"])
    owner.start("ended", ["/bin/sh", "-c", "exit 7"])
    for name in ("half", "empty"):
        owner.start(name, ["/bin/sleep", "infinity"])
    wait_for(lambda: owner.manager("ListReceipts", "a{sv}", {"session": ("s", "runs")})[0], "receipt")
    # One whose start does not come to its end.
    owner.create("starts", ["/bin/touch", "ran"])
    good("systemctl", "kill", "--signal=STOP", "errand-launch.service")
    owner.send(f"{system.ROOT}/session/starts", system.SESSION, "Start")
    wait_for(lambda: owner.state("starts") == "starting", "start")
    write_record("half", lambda text: text[:len(text) // 2])
    write_record("empty", lambda text: "")
    lose_power()


def is_churned(name):
    return "x" in name


def churn():
    """Sessions start, end and are collected, several at once, until the power goes."""
    def one(n):
        owner = Client(OWNER)
        for i in range(1000):
            name = f"c{len(boots)}x{n}x{i}"
            try:
                owner.start(name, ["/bin/sh", "-c", "true" if i % 2 else "sleep infinity"])
                if i % 3 == 0:
                    owner.session(name, "Stop")
                if i % 4 == 1:
                    owner.wait(name, "stopped")
                    owner.session(name, "Collect")
            except BusError as error:
                print(error, file=sys.stderr)
    for n in range(3):
        threading.Thread(target=one, args=(n,), daemon=True).start()
    time.sleep(0.4 + 0.13 * len(boots))
    lose_power()


def await_booted():
    """Until the session that each boot starts has said that it has begun: the kernel is the same one, so it is a line more with each."""
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as boot_id:
        said = boot_id.read() * len(boots)
    wait_for(lambda: Client().transcript("booted") == said, "what the session of this boot says")


def look():
    """What is wrong with how things are found; nothing."""
    client, wrong = Client(), []
    states = {s[0]: s[2] for s in client.manager("ListThreads")[0]}
    live = [n for n, state in states.items() if state not in ("stopped", "failed", "created") and n != "booted"]
    if live:
        wrong.append(f"live: {live}")
    for name, state in states.items():
        if is_churned(name) and state == "failed" and client.describe(name)["ExitReason"] not in ("lost", "setup"):
            wrong.append(f"{name} failed: {client.describe(name)}")
    records, homes = set(os.listdir(f"{system.STATE}/.records")), {n for n in os.listdir(system.STATE) if n.isalnum() and n != "receiptsdb"}
    if records != set(states) or not homes <= records | {"receipts.db"}:
        wrong.append(f"records {sorted(records ^ set(states))} homes {sorted(homes - records)}")
    return wrong


with open(BOOTS, "a", encoding="ascii") as f:
    print(time.time(), file=f)
with open(BOOTS, encoding="ascii") as f:
    boots = f.readlines()
if len(boots) == 1:
    prepare()
elif len(boots) <= ROUNDS + 1:
    with open(f"{BOOTS}.wrong", "a", encoding="utf-8") as f:
        f.writelines(f"boot {len(boots)}: {w}\n" for w in look())
if len(boots) <= ROUNDS + 1:
    await_booted()
if len(boots) <= ROUNDS:
    churn()
if len(boots) == ROUNDS + 1:
    every_state()


@case("C200: after a loss of power what ran is lost and its record whole, what was made is there, what was half made undone, what is damaged set aside")
def _(t):
    t.log("journal", system.log)
    owner = Client(OWNER)
    states = {s[0]: s[2] for s in owner.manager("ListThreads")[0] if not is_churned(s[0])}
    t.equal(states, {"runs": "failed", "made": "created", "ended": "stopped", "starts": "failed"}, "sessions")
    ends = {n: (owner.describe(n)["ExitReason"], owner.describe(n)["ExitStatus"]) for n in ("runs", "ended", "starts")}
    t.equal(ends, {"runs": ("lost", 137), "ended": ("exited", 7), "starts": ("setup", 125)}, "how they ended")
    t.equal(owner.transcript("runs"), "called 502\n", "transcript")
    t.equal([g[1:3] for g in owner.manager("ListGrants", "s", "runs")[0]], [("kept.example", "always")], "grants")
    receipts = owner.manager("ListReceipts", "a{sv}", {"session": ("s", "runs")})[0]
    t.equal(len(receipts), 1, "receipts")
    with open("/srv/errand/demo/file", encoding="ascii") as f:
        t.equal(f.read(), "made\n", "the project")
    t.check(not os.path.exists("/srv/errand/demo/ran"), "what was only being started has run")
    t.equal(sorted(os.listdir(f"{system.STATE}/.damaged")), ["empty-1", "half-1"], "what was set aside")
    # What there is can be used.
    owner.session("made", "Start")
    owner.wait("made", "stopped")
    t.equal(owner.transcript("made"), "made\n", "transcript of the one that was made")
    owner.session("runs", "Start")
    owner.wait("runs", "running")
    wait_for(lambda: owner.transcript("runs") == "called 502\n" * 2, "another call")
    owner.end("runs")
    for name in ("half", "starts"):
        if name == "half":
            owner.create(name, ["/bin/true"])
        owner.session(name, "Start")
        owner.wait(name, "stopped")


@case("D007: a session that is enabled as a unit was started at boot")
def _(t):
    wait_for(lambda: Client().state("booted") == "running", "session")
    await_booted()


@case("C200: no unit, socket, scope or process is left of what ran before")
def _(t):
    wait_for(lambda: [good("systemctl", "list-units", "--all", "--plain", "--no-legend", u).count("\n") for u in UNITS] == [1] * 3, "end of the brokers but one")
    t.equal(os.listdir("/run/errand/shim"), ["booted"], "shims")
    t.equal(system.agent_manager("list-units", "--all", "--plain", "--no-legend", "errand-session-*").out.count("\n"), 1, "scopes")


@case(f"C200: power lost {ROUNDS} times at some moment of starts and ends: errandd comes up each time, nothing lives that did not, nothing is half there")
def _(t):
    with open(f"{BOOTS}.wrong", encoding="utf-8") as found:
        t.equal(found.read(), "", "what was found wrong")
    t.note(f"{len(Client().manager('ListThreads')[0])} sessions were made by then")


run_tests()
