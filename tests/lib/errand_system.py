# SPDX-License-Identifier: LGPL-2.1-or-later
"""errandd as a service of a machine made by tests/machine/boot, and its sessions as their owners have them: over the bus."""

import contextlib
import json
import os
import pwd

import errand_machine as machine
from errand_bus import BusError, MessageBus
from errand_machine import good, run
from errand_test import Failure

NAME, ROOT = "org.errand1", "/org/errand1"
MANAGER, SESSION = "org.errand1.Manager", "org.errand1.Session"
CONFIG = "/etc/errand/errand.json"
STATE = "/var/lib/errand"


def configure(config=None):
    """Writes the configuration, its default part for tests beside what is given, and starts errandd with it."""
    config = {**(config or {})}
    # Of this kernel's controllers a machine has none: without limits then, and the report says so.
    config["sandbox"] = {"requireFullEnforcement": False, "gracePeriodMs": 5000, **config.get("sandbox", {})}
    # What runs is what a test has started.
    config["limits"] = {"brokersAhead": 0, **config.get("limits", {})}
    machine.write(CONFIG, json.dumps(config, indent=2), 0o640)
    os.chown(CONFIG, 0, pwd.getpwnam("errand").pw_gid)
    run("systemctl", "reset-failed", "errandd.service")
    good("systemctl", "restart", "errandd.service")


def kill(unit):
    """kill -9 of a unit's main process, and until another one serves in its place."""
    before = machine.pid_of(unit)
    good("systemctl", "kill", "--kill-whom=main", "--signal=KILL", unit)
    machine.wait_for(lambda: machine.is_active(unit) and machine.pid_of(unit) not in (0, before), f"another process of {unit}")


class Client(MessageBus):
    """A connection of that account's to errandd. Arguments of CreateSession are taken by their Python types."""

    def __init__(self, account="root", **options):
        super().__init__(NAME, account, **options)

    def manager(self, member, *arguments):
        return self.call(ROOT, MANAGER, member, *arguments)

    def create(self, session, command, project="demo", **options):
        kinds = {str: "s", bool: "b", list: "as", dict: "a{ss}"}
        options = {"id": session, "command": command, "project": project, **options}
        (path,) = self.manager("CreateSession", "a{sv}", {k: (kinds[type(v)], v) for k, v in options.items()})
        return path

    def session(self, session, member, *arguments):
        return self.call(f"{ROOT}/session/{session}", SESSION, member, *arguments)

    def start(self, session, command, **options):
        self.create(session, command, **options)
        self.session(session, "Start")
        self.wait(session, "running", "stopped", "failed")

    def state(self, session):
        return self.get(f"{ROOT}/session/{session}", SESSION, "State")

    def wait(self, session, *states):
        return machine.wait_for(lambda: self.state(session) in states, f"state {' or '.join(states)} of {session}, which is {self.state(session)}")

    def describe(self, session):
        return self.session(session, "Describe")[0]

    def stdio(self, session):
        """Descriptors of its standard input, output and error, as files."""
        stdin, stdout, stderr = self.session(session, "OpenStdio")
        return os.fdopen(stdin, "w", encoding="utf-8"), os.fdopen(stdout, encoding="utf-8"), os.fdopen(stderr, encoding="utf-8")

    def transcript(self, session):
        text, offset = b"", 0
        while True:
            offset, data = self.session(session, "ReadTranscript", "tu", offset, 65536)
            if not data:
                return text.decode("utf-8", "replace")
            text += data

    def fails(self, *arguments):
        """The name of the error that this call has to be answered with."""
        try:
            found = self.call(*arguments)
        except BusError as error:
            return error.name
        raise Failure(f"{self.account}: {arguments[2]} has succeeded: {found}")

    def end(self, session):
        with contextlib.suppress(BusError):
            self.session(session, "Stop")
            self.wait(session, "stopped", "failed")


class Running:
    """A session that answers every line that comes by a pipe in its project, into its transcript, until the pipe has nobody at its other end."""

    COMMAND = 'mkfifo "$0" && echo up; exec <"$0"; while read line; do echo "got $line"; done; exit 3'

    def __init__(self, t, session, client, project=None):
        """client: makes a connection of its owner; project: its directory, in user mode."""
        self.client, self.name, self.seen = client, session, "up\n"
        path = f"{project or '/srv/errand/demo'}/in-{session}"
        self.client().start(session, ["/bin/sh", "-c", self.COMMAND, path], project=project or "demo")
        t.defer(lambda: self.client().end(session))
        self.await_transcript()
        self.pipe = open(path, "w", encoding="utf-8")  # pylint: disable=consider-using-with
        t.defer(self.pipe.close)

    def await_transcript(self):
        owner = self.client()
        machine.wait_for(lambda: owner.transcript(self.name) == self.seen, f"{self.seen!r} in the transcript of {self.name}")

    def answers(self, line):
        self.pipe.write(f"{line}\n")
        self.pipe.flush()
        self.seen += f"got {line}\n"
        self.await_transcript()

    def processes(self):
        """bailey, outside and in, and its command."""
        return run("pgrep", "-f", f"in-{self.name}").out.split()


def agent_manager(*arguments):
    """systemctl for the service manager of errand-agent, as an administrator uses it."""
    return run("systemctl", "--user", "-M", "errand-agent@.host", "--no-pager", *arguments)


def log():
    return machine.journal("-u", "errandd.service", "-u", "errand-launch.service", "-u", "errand-broker@*.service")
