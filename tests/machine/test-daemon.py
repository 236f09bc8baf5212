# SPDX-License-Identifier: LGPL-2.1-or-later
"""errandd as systemd has it: when it is started again and when not, what a reload changes, its watchdog, and that there is one alone."""

import json
import os
import pwd
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_machine as machine  # noqa: E402
import errand_system as system  # noqa: E402
from errand_machine import good, run, wait_for  # noqa: E402
from errand_system import MANAGER, ROOT, Client  # noqa: E402
from errand_test import case  # noqa: E402
from errand_test import run as run_tests  # noqa: E402

OWNER, ERRANDD = "alice", "errandd.service"

machine.account(OWNER, "errand-users")
system.configure()


def write_config(text):
    machine.write(system.CONFIG, text, 0o640)
    os.chown(system.CONFIG, 0, pwd.getpwnam("errand").pw_gid)


def restarts():
    return int(machine.show(ERRANDD, "NRestarts"))


def running(t, session):
    return system.Running(t, session, lambda: Client(OWNER))


@case("a configuration that is refused, and a guarantee that cannot be kept, end errandd once, with their exit codes; sessions go on meanwhile")
def _(t):
    t.log("journal", system.log)
    s = running(t, "g1")
    for text, code in (('{"sandbox": {"memroy": "4g"}}', 2), ("{", 2), ('{"sandbox": {"requireFullEnforcement": true}}', 3)):
        write_config(text)
        run("systemctl", "reset-failed", ERRANDD)
        before = restarts()
        t.check(run("systemctl", "restart", ERRANDD).status != 0, f"it has started with {text}")
        t.equal([machine.show(ERRANDD, p) for p in ("ActiveState", "SubState", "Result", "ExecMainStatus")], ["failed", "failed", "exit-code", str(code)], text)
        t.equal(restarts(), before, "restarts")
        s.pipe.write("without errandd\n")
        s.pipe.flush()
        s.seen += "got without errandd\n"
    system.configure()
    s.await_transcript()


@case("a reload that is refused changes nothing, and one that is not counts for the next session")
def _(t):
    pid = machine.pid_of(ERRANDD)
    owner = Client(OWNER)
    running(t, "h1")
    config = {"limits": {"maxLiveSessions": 1, "brokersAhead": 0}, "sandbox": {"requireFullEnforcement": False, "gracePeriodMs": 5000}}
    write_config(json.dumps({**config, "limit": {}}))
    t.defer(system.configure)
    t.check(run("systemctl", "reload", ERRANDD).status != 0, "a reload with an unknown key has succeeded")
    owner.start("h2", ["/bin/true"])
    write_config(json.dumps(config))
    good("systemctl", "reload", ERRANDD)
    owner.create("h3", ["/bin/true"])
    t.equal(owner.fails(f"{ROOT}/session/h3", system.SESSION, "Start"), "org.errand1.Error.LimitExceeded", "a start over the new limit")
    t.equal((machine.pid_of(ERRANDD), owner.state("h1")), (pid, "running"), "errandd and the session of before")


@case("one that hangs is killed by its watchdog and started again; its session goes on, and is found")
def _(t):
    t.log("journal", system.log)
    s = running(t, "w1")
    machine.unit(f"{ERRANDD}.d/watchdog.conf", "[Service]\nWatchdogSec=2\n")
    t.defer(machine.no_unit, f"{ERRANDD}.d/watchdog.conf")
    good("systemctl", "restart", ERRANDD)
    pid = machine.pid_of(ERRANDD)
    os.kill(pid, signal.SIGSTOP)
    wait_for(lambda: machine.is_active(ERRANDD) and machine.pid_of(ERRANDD) not in (0, pid), "another one")
    t.contains(machine.journal("-u", ERRANDD), "watchdog", "systemd's reason")
    t.equal(Client(OWNER).get(ROOT, MANAGER, "Ready"), True, "its answer")
    s.answers("after it")


@case("a second errandd on the same state ends with 4, and the first one does not notice")
def _(t):
    before = machine.pid_of(ERRANDD)
    done = run("/usr/local/libexec/errand/errandd", "--system", account="errand")
    t.equal(done.status, 4, f"how it ended: {done}")
    t.contains(done.err, f"another errandd (pid {before}) serves /var/lib/errand")
    t.equal(machine.pid_of(ERRANDD), before, "errandd")


@case("one that cannot start for a reason that may pass is tried again, and not for ever")
def _(t):
    machine.unit(f"{ERRANDD}.d/fails.conf", "[Service]\nExecStart=\nExecStart=/bin/false\nRestartSec=50ms\n")
    t.defer(system.configure)
    t.defer(machine.no_unit, f"{ERRANDD}.d/fails.conf")
    run("systemctl", "restart", ERRANDD)
    wait_for(lambda: machine.show(ERRANDD, "ActiveState") == "failed", "the end of trying")
    t.check(restarts() >= 1, "it was not tried again")
    t.contains(machine.journal("-u", ERRANDD), "Start request repeated too quickly", "systemd's reason")


run_tests()
