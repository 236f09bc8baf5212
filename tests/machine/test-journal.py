#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the journal has of sessions: each line with whose it is, the main events with their explanation, and nothing secret."""

import json
import os
import pwd
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_machine import good  # noqa: E402
from errand_system import Client  # noqa: E402
from errand_test import case, run, source  # noqa: E402

KEY = "sk-ant-0123456789abcdef0123456789"
CONFIG = {"sandbox": {"egress": {"allow": ["api.example.com"]}}, "agent": {"providers": {"anthropic": {
    "kind": "anthropic", "baseUrl": "https://api.example.com", "credential": {"systemdCredential": "keys_anthropic"}}}}}
ASK = ("import sys, urllib.request\ntry: urllib.request.urlopen('https://blocked.example/')\n"
       "except OSError as e: sys.exit(3 if '403' in str(e) else 4)")


def ids():
    with open(source("src", "shared", "event-id.h"), encoding="utf-8") as f:
        return {line.split()[1][6:]: line.split('"')[1] for line in f if line.startswith("#define EVENT_")}


def lines(*match):
    """What was logged, as objects."""
    good("journalctl", "--sync")
    return [json.loads(line) for line in good("journalctl", "-q", "-o", "json", "--no-pager", *match).splitlines()]


def await_lines(what, *match):
    return machine.wait_for(lambda: lines(*match), what)


machine.account("alice", "errand-users")
good("journalctl", "--update-catalog")
os.makedirs("/etc/errand/credentials", exist_ok=True)
machine.write("/etc/errand/credentials/anthropic", KEY, 0o600)
system.configure(CONFIG)


@case("T: journalctl ERRAND_SESSION=ID has what errandd, broker, launcher and shim said of a session, and of no other")
def _(t):
    client = Client()
    client.start("j1", ["/usr/bin/python3", "-c", ASK])
    client.start("j2", ["/bin/sleep", "1000"])
    client.wait("j1", "stopped")
    await_lines("its end", "ERRAND_SESSION=j1", f"MESSAGE_ID={ids()['SESSION_ENDED']}")
    found = lines("ERRAND_SESSION=j1")
    t.equal({e["SYSLOG_IDENTIFIER"] for e in found} & {"errandd", "errand-broker"}, {"errandd", "errand-broker"}, "who said something")
    t.equal([e["MESSAGE"] for e in found if "j2" in e["MESSAGE"]], [], "lines of another session")
    # Of one that has ended by the time the journal comes to its line, that does not know the unit any more.
    units = {e["_SYSTEMD_UNIT"] for e in found if "_SYSTEMD_UNIT" in e}
    t.equal(units - {"errandd.service", "errand-broker@j1.service", "errand-launch.service"}, set(), "other units that said something")
    events = {name: [e for e in found if e.get("MESSAGE_ID") == number] for name, number in ids().items()}
    t.equal({name for name, of in events.items() if of}, {"SESSION_STARTED", "SESSION_ENDED", "HOST_REFUSED"}, "the events")
    t.equal(events["HOST_REFUSED"][0]["ERRAND_HOST"], "blocked.example", "what was refused")
    t.equal([events["SESSION_ENDED"][0][name] for name in ("ERRAND_REASON", "ERRAND_PROJECT", "PRIORITY")], ["exited", "demo", "6"], "how it ended")
    client.session("j2", "Grant", "ss", "host.example", "10m")
    client.call("/org/errand1/grant/j2/1", "org.errand1.Grant", "Revoke")
    given, revoked = (await_lines(name, "ERRAND_SESSION=j2", f"MESSAGE_ID={ids()[name]}")[0] for name in ("GRANT_GIVEN", "GRANT_REVOKED"))
    t.equal([given[name] for name in ("ERRAND_HOST", "ERRAND_GRANT", "ERRAND_DURATION", "ERRAND_UID")], ["host.example", "1", "10m", "0"], "the grant")
    t.equal(revoked["ERRAND_HOST"], "host.example", "what was revoked")
    system.kill("errand-broker@j2.service")
    await_lines("the crash", "ERRAND_SESSION=j2", f"MESSAGE_ID={ids()['BROKER_CRASHED']}")
    await_lines("its return", "ERRAND_SESSION=j2", f"MESSAGE_ID={ids()['BROKER_BACK']}")
    client.end("j2")


@case("T: a shim's lines have the session, and so has why nothing ran")
def _(t):
    client = Client()
    client.create("j3", ["/no/such/program"])
    client.fails("/org/errand1/session/j3", "org.errand1.Session", "Start")
    failed = await_lines("that it failed", "ERRAND_SESSION=j3", f"MESSAGE_ID={ids()['SESSION_FAILED']}")[0]
    t.equal(failed["ERRAND_REASON"], "setup", "the reason")
    client.start("j4", ["/bin/sleep", "1000"])
    good("/usr/bin/python3", "-c", "import socket\ns = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)\ns.connect('/run/errand/shim/j4')\ns.recv(1)",
         account="errand-agent")
    shim = await_lines("the shim's word", "ERRAND_SESSION=j4", "SYSLOG_IDENTIFIER=errand-shim")
    t.contains(shim[0]["MESSAGE"], "only errandd may ask", "what the shim says")
    client.end("j4")


@case("T: journalctl -x explains the events, with the session's id, and systemctl status shows why a configuration is refused")
def _(t):
    text = good("journalctl", "-x", "-q", "--no-pager", "ERRAND_SESSION=j1")
    for part in ("Subject: Session j1 runs", "Subject: Session j1 was refused a host", "errand grant j1 HOST 10m", "errand threads show j1"):
        t.contains(text, part, "the explanations")
    system_config = {"sandbox": {"memroy": "1g"}, "limits": 3}
    machine.write(system.CONFIG, json.dumps(system_config), 0o640)
    t.check(machine.run("systemctl", "restart", "errandd.service").status != 0, "it has started")
    refused = await_lines("the refusal", "-u", "errandd.service", f"MESSAGE_ID={ids()['CONFIGURATION_REFUSED']}")
    t.equal(len(refused), 1, "lines with the event's id")
    text = good("journalctl", "-x", "-q", "--no-pager", "-u", "errandd.service")
    t.contains(text, "errand config check /etc/errand/errand.json")
    t.contains(text, "memroy")
    # The bus gives up after 25 seconds only.
    before = time.monotonic()
    done = machine.run("errand", "threads", "list", account="alice")
    t.check(time.monotonic() - before < 15, "it took as long as the bus does")
    t.equal(done.status, 5, "the exit code of errand")
    for part in ("errandd did not start: its configuration is refused", "errand config check /etc/errand/errand.json", "journalctl -xu errandd"):
        t.contains(done.err, part, "what errand says")
    # Meanwhile nothing is tried again for whoever calls, but by root's errand.
    t.contains(machine.run("errand", "threads", "list", account="alice").err, "this is of its last start, and nothing was tried now; if that is mended: "
               "systemctl start errandd", "what errand says soon after")
    # Nor of one that the service manager was told to forget, which is no failure without a reason.
    good("systemctl", "reset-failed", "errandd.service")
    t.contains(machine.run("errand", "threads", "list", account="alice").err, "the bus still waits for a start that failed, and asks for no other\n"
               "errand: nothing was tried now; to start it: systemctl start errandd", "what errand says after reset-failed")
    machine.write(system.CONFIG, json.dumps({"sandbox": {"requireFullEnforcement": True}}), 0o640)
    os.chown(system.CONFIG, 0, pwd.getpwnam("errand").pw_gid)
    machine.run("systemctl", "restart", "errandd.service")
    t.contains(machine.run("errand", "threads", "list", account="alice").err, "a guarantee cannot be enforced on this host", "what errand says")
    # The report keeps its order, the list behind the line that announces it, whichever way each line takes into the journal.
    lines = good("journalctl", "-q", "--no-pager", "-o", "cat", "-u", "errandd.service").splitlines()
    at = max(i for i, line in enumerate(lines) if line.endswith("guarantee(s) cannot be enforced on this host:"))
    t.check(lines[at + 1].startswith("    - "), f"what follows {lines[at]!r}: {lines[at + 1]!r}")
    system.configure(CONFIG)


@case("T: no secret is in any field of the journal")
def _(t):
    t.lacks(good("journalctl", "-o", "export", "--no-pager"), KEY, "the journal")


run()
