#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""errand monitor on the system bus: each account is told of what it may see, over a restart of errandd as well."""

import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_machine import good  # noqa: E402
from errand_system import Client  # noqa: E402
from errand_test import case, run  # noqa: E402

OWNER, OTHER = "alice", "carol"
for name in (OWNER, OTHER):
    machine.account(name, "errand-users")
system.configure()


class Monitor:
    def __init__(self, t, account):
        self.t = t
        self.process = subprocess.Popen(["setpriv", f"--reuid={account}", "--regid=nogroup", "--init-groups", "--", "errand", "monitor", "--json"],
                                        stdout=subprocess.PIPE, text=True)
        t.defer(self.end)
        t.equal(self.event()["place"], "the system bus", "which errandd")

    def event(self):
        return json.loads(self.process.stdout.readline())

    def until(self, event, session=None):
        """All until that one, which is the last."""
        found = [self.event()]
        while found[-1]["event"] != event or (session and found[-1]["session"] != session):
            found.append(self.event())
        return found

    def end(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


@case("T D008 C197: the owner and root are told of a session, another member of its own alone, and all of a restart of errandd", timeout=60)
def _(t):
    owner, other, root = Monitor(t, OWNER), Monitor(t, OTHER), Monitor(t, "root")
    Client(OWNER).start("m1", ["/bin/sh", "-c", "read x"])
    Client(OTHER).start("m2", ["/bin/sleep", "1000"], project="other")
    for monitor in (owner, root):
        t.equal([(e["event"], e["session"], e.get("state")) for e in monitor.until("exited", "m1") if e["session"] == "m1" and e["event"] != "notice"],
                [("new", "m1", "created"), ("state", "m1", "starting"), ("state", "m1", "running"), ("state", "m1", "stopped"), ("exited", "m1", None)], "events")
    good("systemctl", "restart", "errandd.service")
    for monitor, sees in ((owner, {"m1"}), (other, {"m2"}), (root, {"m1", "m2"})):
        found = monitor.until("errandd-back")
        t.equal([e["event"] for e in found[-2:]], ["errandd-gone", "errandd-back"], "the restart")
        t.check({e["session"] for e in found if "session" in e} <= sees, f"it was told of {found}")
    Client(OTHER).session("m2", "Stop")
    for monitor in (other, root):
        t.equal(monitor.until("exited", "m2")[-1]["reason"], "signal", "how it ended")
    Client(OWNER).session("m1", "Collect")
    found = owner.until("removed")
    t.equal({e["session"] for e in found}, {"m1"}, "whose events the owner was told since")


run()
