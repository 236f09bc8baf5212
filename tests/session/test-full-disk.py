# SPDX-License-Identifier: LGPL-2.1-or-later
"""A state directory without any room: what errandd refuses because of it is not there later, in its memory, on the disk, and after it was killed."""

import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../lib"))
import errand_bus  # noqa: E402
import errand_launch  # noqa: E402
import errand_world  # noqa: E402
from errand_service import ACCOUNT, ASK, MANAGER, ROOT, Service, Sessions  # noqa: E402
from errand_test import case, run  # noqa: E402

errand_world.enter()
errand_world.world()

SIZE = 4 << 20


class Full(Sessions):
    def __init__(self, t):
        super().__init__(Service(t))
        self.t = t
        owner = f",uid={ACCOUNT},gid={ACCOUNT}" if os.getuid() == 0 else ""
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=0700{owner}", "tmpfs", self.service.path("home")], check=True)
        t.defer(lambda: subprocess.run(["umount", "-l", self.service.path("home")], check=True))
        self.serve()

    def fill(self):
        """To the last block; what a record takes in addition while it is put in its place is free again."""
        self.service.settled("a1")
        with open(self.service.path("home", "filler"), "wb", buffering=0) as f:
            try:
                while True:
                    f.write(b"x" * 4096)
            except OSError:
                return

    def empty(self):
        os.unlink(self.service.path("home", "filler"))

    def refused(self, function, *arguments):
        try:
            function(*arguments)
        except errand_bus.BusError as e:
            self.t.equal(e.name, "org.errand1.Error.Storage", e.text)
            return e.text
        return self.t.fail(f"{arguments} worked")

    def grants(self):
        return [g[1] for g in self.bus.call(ROOT, MANAGER, "ListGrants", "s", "a1")[0]]

    def grant(self, host):
        return self.call("a1", "Grant", "ss", host, "always")

    def again(self):
        self.service.kill()
        self.serve()


@case("C200: grants that a full disk refused are not there, before and after a kill, with those beside them")
def grants(t):
    s = Full(t)
    s.start("a1", "/usr/bin/python3", "-c", ASK)
    s.grant("first.example")
    s.fill()
    t.contains(s.refused(s.grant, "refused.example"), "is not given", "what is told")
    t.equal(s.grants(), ["first.example"], "in memory")
    s.again()
    t.equal(s.grants(), ["first.example"], "after a kill")
    t.contains(s.refused(s.grant, "refused.example"), "is not given", "what is told")
    s.empty()
    s.grant("second.example")
    t.equal(s.grants(), ["first.example", "second.example"], "with room again")
    s.again()
    t.equal(s.grants(), ["first.example", "second.example"], "after a kill")
    s.call("a1", "Stop")


@case("C200 S131: a revocation on a full disk counts at once, says that it is not written, and is written when there is room")
def revoked(t):
    s = Full(t)
    s.start("a1", "/usr/bin/python3", "-c", ASK)
    s.grant("first.example")
    s.fill()
    t.contains(s.refused(s.bus.call, f"{ROOT}/grant/a1/1", "org.errand1.Grant", "Revoke"), "is revoked, but that cannot be recorded yet", "what is told")
    t.equal(s.grants(), [], "in memory")
    s.empty()
    errand_launch.wait_for(lambda: "first.example" not in s.service.record("a1", "grants.json"))
    s.again()
    t.equal(s.grants(), [], "after a kill")
    s.call("a1", "Stop")


@case("C200: a start and a session that a full disk refused leave the record as it was, and none")
def records(t):
    s = Full(t)
    s.start("a1", "sh", "-c", "exit 3")
    errand_launch.wait_for(lambda: s.state("a1")[0] == "stopped")
    before, text = s.describe("a1"), s.service.record("a1")
    s.fill()
    t.contains(s.refused(s.call, "a1", "Start"), "cannot be written", "what is told")
    t.equal(s.describe("a1"), before, "in memory")
    t.equal(s.service.record("a1"), text, "on disk")
    t.contains(s.refused(s.create, "a2", "true"), "cannot be", "what is told")
    t.equal(sorted(os.listdir(s.service.path("home", "errand", ".records"))), ["a1"], "records")
    s.again()
    t.equal(s.describe("a1")["State"], "stopped", "after a kill")
    t.equal(len(s.bus.call(ROOT, MANAGER, "ListThreads")[0]), 1, "sessions")
    s.empty()
    s.call("a1", "Start")
    errand_launch.wait_for(lambda: s.state("a1") == ("stopped", "exited", 3))
    s.fill()
    s.call("a1", "Collect") # what makes room needs none
    s.again()
    t.equal(s.bus.call(ROOT, MANAGER, "ListThreads")[0], [], "sessions")


run()
