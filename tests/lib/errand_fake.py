# SPDX-License-Identifier: LGPL-2.1-or-later
"""The command errand with a stand-in for errandd, on private dbus-daemons."""

import os
import subprocess

from errand_command import Errand

POLICY = """<busconfig><type>{kind}</type><listen>unix:path={path}</listen><auth>EXTERNAL</auth><servicedir>{services}</servicedir>
<policy context='default'><allow user='*'/><allow own='*'/><allow send_destination='*'/><allow receive_sender='*'/></policy></busconfig>"""


def test_errandd():
    return os.path.join(os.environ["ERRAND_BUILD"], "tests", "bus", "test-errandd")


class Bus:
    def __init__(self, t, kind, starts=None):
        self.t, self.path, self.services = t, t.path(kind), t.path(kind + "-services")
        self.address = "unix:path=" + self.path
        os.mkdir(self.services)
        if starts:
            with open(os.path.join(self.services, "org.errand1.service"), "w", encoding="utf-8") as f:
                f.write(f"[D-BUS Service]\nName=org.errand1\nExec={starts}\n")
        with open(t.path(kind + ".conf"), "w", encoding="utf-8") as f:
            f.write(POLICY.format(kind=kind, path=self.path, services=self.services))
        self.daemon = subprocess.Popen(["dbus-daemon", "--nofork", "--nopidfile", "--print-address=1", "--config-file=" + t.path(kind + ".conf")],
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        t.defer(self.stop)
        t.check(self.daemon.stdout.readline(), "dbus-daemon does not listen")

    def stop(self):
        self.daemon.kill()
        self.daemon.wait()
        self.daemon.stdout.close()

    def errandd(self, *arguments, stdin=None, **environment):
        """The stand-in, which says what it is asked to make."""
        process = subprocess.Popen([test_errandd(), *arguments, self.address], stdin=stdin, stdout=subprocess.PIPE, text=True, env=os.environ | environment)
        self.t.defer(process.stdout.close)
        self.t.defer(process.wait)
        self.t.defer(process.kill)
        self.t.equal(process.stdout.readline(), "ready\n", "its first word")
        return process


def command(t, system=None, user=None):
    errand = Errand(t)
    errand.environment.pop("ERRAND_EMBEDDED_STATE")
    errand.environment |= {"DBUS_SYSTEM_BUS_ADDRESS": system or "unix:path=" + t.path("none"),
                           "DBUS_SESSION_BUS_ADDRESS": user or "unix:path=" + t.path("none"),
                           "XDG_STATE_HOME": t.path("state-home"), "XDG_RUNTIME_DIR": t.path("run")}
    os.mkdir(t.path("run"), 0o700)
    return errand
