#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""errandd as a service, and its configuration: what it does with one that is bad, or names places that are; and when it changes."""

import contextlib
import os
import signal
import subprocess
import sys

import errand_launch
import errand_test
import errand_world
from errand_bus import BusError
from errand_service import ACCOUNT, MANAGER, ROOT, Service, Sessions
from errand_test import case, run

errand_world.enter()
errand_world.world()

SANDBOX = {"requireFullEnforcement": False, "gracePeriodMs": 1000, "egress": {"allow": ["api.example.com"]}}


def ends(service, *arguments, **environment):
    """errandd, which is not to get ready; → its exit code and what it has logged."""
    before = len(service.log())
    service.start(*arguments, environment=environment)
    return service.errandd.wait(30), service.log()[before:]


def never_ready(service):
    service.notify.settimeout(0.01)
    with contextlib.suppress(TimeoutError):
        raise errand_test.Failure(f"it said {service.said()}")
    service.notify.settimeout(30)


@case("S178: the backend is probed before the name is taken: where nothing can be confined nobody can call, and the report says why")
def probed(t):
    service = Service(t, config={"sandbox": {"egress": {"allow": []}}})
    service.launcher.kill()
    service.launcher.wait()
    names = service.watch_names("org.errand1")
    broken = t.path("bailey")
    with open(broken, "w", encoding="ascii") as f:
        f.write("#!/bin/sh\necho 'bailey: nothing works here' >&2\nexit 125\n")
    os.chmod(broken, 0o755)
    service.start_launcher(bailey=broken)
    code, said = ends(service)
    t.equal(code, 3, "the exit code")
    said = " ".join(said.replace("errandd: ", " ").split())
    t.contains(said, "sandbox backend: bailey, which does not work here")
    t.matches(said, r"\d guarantee\(s\) cannot be enforced on this host: - sessions cannot be confined: ")
    t.contains(said, "sandbox.requireFullEnforcement is true, which is the default; set it to false")
    never_ready(service)
    t.equal(names(), [], "owners of the name")


@case("stateDir counts in user mode, where nobody else can write; what is no such directory is refused by name, and nothing is served")
def state_directory(t):
    service = Service(t, config={})
    place = service.path("home", "elsewhere")

    def configure(path):
        service.configure({"stateDir": path, "sandbox": SANDBOX})
    configure(place)
    s = Sessions(service)
    s.serve()
    s.start("a1", "sleep", "1000")
    t.check({".lock", ".records", "a1", "receipts.db"} <= set(os.listdir(place)), "the directory lacks something")
    t.equal(oct(os.stat(place).st_mode & 0o7777), "0o700", "its mode")
    t.check(not os.path.exists(service.path("home", "errand")), "the usual one is there as well")
    # It is no matter of a reload.
    for config in ({"sandbox": SANDBOX}, {"stateDir": service.path("home", "third"), "sandbox": SANDBOX}):
        service.configure(config)
        with contextlib.suppress(BusError):
            s.bus.call(ROOT, MANAGER, "Reload")
            t.fail("another stateDir was taken")
    t.contains(service.said(), "is refused, the one before stays in force", "the status, which is told once")
    t.check(not os.path.exists(service.path("home", "third")), "the third directory was made")
    s.call("a1", "Stop")
    t.equal(service.terminate(), 0, "exit code")

    os.symlink(place, service.path("link"))
    with open(service.path("file"), "w", encoding="ascii"):
        pass
    rows = [("link", "links are not followed there"), ("file", "is no directory that can be used"), ("file/below", "cannot be made: Not a directory")]
    if os.getuid() == 0:
        for name, owner, mode in (("roots", 0, 0o700), ("others", ACCOUNT + 1, 0o777)):
            os.mkdir(service.path(name))
            os.chmod(service.path(name), mode)
            os.chown(service.path(name), owner, owner)
        rows += [("others", f"belongs to uid {ACCOUNT + 1}, not to uid {ACCOUNT}"), ("roots", "Permission denied"), ("roots/below", "cannot be made: Permission denied")]

    def refused(row):
        configure(service.path(row[0]))
        code, said = ends(service)
        t.equal(code, 1, f"the exit code for {row[0]}")
        t.contains(said, row[1])
        t.contains(said, service.path(row[0]))
    t.each(rows, refused)
    never_ready(service)


MOUNT = """
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
target, options, flags = sys.argv[1].encode(), sys.argv[2].encode(), int(sys.argv[3])
if libc.mount(b"tmpfs", target, b"tmpfs", flags, options):
    sys.exit(os.strerror(ctypes.get_errno()))
"""


@case("a state directory that is full, or can only be read: errandd or the session says so by name; nothing is half made, and with room again all is well")
def full(t):
    if os.getuid() != 0:
        t.skip("only root can mount a file system")
    service = Service(t, config={"sandbox": SANDBOX})
    place = service.path("home", "errand")
    os.mkdir(place)
    # For this process and what it starts alone: it has a mount namespace of its own.
    subprocess.run([sys.executable, "-c", MOUNT, place, f"size=2m,mode=700,uid={ACCOUNT},gid={ACCOUNT}", "0"], check=True)
    t.defer(subprocess.run, ["umount", "-l", place])
    s = Sessions(service)
    s.serve()
    s.start("a1", "sleep", "1000")
    ballast = os.path.join(place, "ballast")
    with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as f:
        while f.write(bytes(4096)):
            pass
    for create in (True, False):
        try:
            if create:
                s.create("b1", "true")
            s.call("b1", "Start")
            t.fail("a session was started without room for it")
        except BusError as error:
            t.matches(error.name, r"\.(Storage|NotFound|SetupFailed)$")
    t.equal(s.state("a1")[0], "running", "the session that ran")
    t.equal(s.bus.get(ROOT, MANAGER, "Ready"), True, "ready")
    os.unlink(ballast)
    if not os.path.exists(os.path.join(place, ".records", "b1")):
        s.create("b1", "true")
    s.call("b1", "Start")
    errand_launch.wait_for(lambda: s.state("b1")[0] == "stopped")
    s.call("a1", "Stop")
    t.equal(service.terminate(), 0, "exit code")
    subprocess.run(["mount", "-o", "remount,ro", place], check=True)
    code, said = ends(service)
    t.equal(code, 1, "the exit code where nothing can be written")
    t.contains(said, "Read-only file system")
    t.contains(said, place)


@case("a configuration that is huge, deep, not UTF-8, has a member twice, or is no file, is refused by line; --check says the same and serves nobody")
def malformed(t):
    service = Service(t, config={})
    rows = [("{" + '"a":{' * 40 + "}" * 41, "deeper"), ('{"sandbox":{},"sandbox":{}}', "sandbox"), ("[]", ""), ("", ""), ("{} x", ""), ("// x\n{}", ""),
            ('{"stateDir":"/' + "x" * 2**20 + '"}', "is larger than 1 MiB"), ('{"timeouts":{"idleMs":99999999999999999999}}', "18 digits"),
            ('{"timeouts":{"idleMs":999999999999999999}}', "timeouts.idleMs"), ('{"timeouts":{"idleMs":-1}}', "timeouts.idleMs"),
            ('{"timeouts":{"startupMs":1e3}}', "timeouts.startupMs"), ('{"sandbox":{"diskCheckMs":0}}', "sandbox.diskCheckMs"), ('{"sandbox":{"disk":"9999t"}}', "sandbox.disk"),
            ('{"sandbox":{"egress":{"allow":["a b","https://x.example","1.2.3","*.*.x",""]}}}', "sandbox.egress.allow[4]"),
            ('{"sandbox":{"egressPorts":[0,65536,1.5]}}', "sandbox.egressPorts[2]")]

    def refused(row):
        service.configure(row[0])
        t.equal(ends(service)[0], 2, "the exit code")
        code, said = ends(service, "--check")
        t.equal(code, 2, "the exit code of --check")
        t.contains(said, row[1])
        t.contains(said, "errand.json")
    t.each(rows, refused)
    with open(service.path("errand.json"), "wb") as f:
        f.write(b'{"projectRoot":"/\xff"}')
    t.equal(ends(service)[0], 2, "the exit code of what is not UTF-8")
    os.unlink(service.path("errand.json"))
    code, said = ends(service)
    t.equal(code, 2, "the exit code without the file that was named")
    t.contains(said, "No such file or directory")
    os.mkfifo(service.path("errand.json"))
    code, said = ends(service)
    t.equal(code, 2, "the exit code of a pipe")
    t.contains(said, "is not a regular file")
    os.unlink(service.path("errand.json"))
    service.configure({"sandbox": SANDBOX, "agent": {"providers": {"p": {"baseUrl": "https://p.example", "credential": {"file": "/nonexistent/key"}}}}})
    code, said = ends(service, "--check")
    t.equal(code, 0, "the exit code of a file that is taken")
    t.contains(said, "agent.providers.p.credential: the secret file /nonexistent/key cannot be opened")
    never_ready(service)


@case("a file that every account can change is refused")
def open_to_others(t):
    service = Service(t, config={"sandbox": SANDBOX})
    os.chmod(service.path("errand.json"), 0o666)
    code, said = ends(service)
    t.equal(code, 2, "the exit code")
    t.contains(said, "can be changed by every account")
    never_ready(service)


@case("a reload that is refused changes nothing and says why; one that is taken counts from the next session on, with its gaps")
def reloaded(t):
    service = Service(t, config={"sandbox": SANDBOX})
    s = Sessions(service)
    s.serve()
    s.start("a1", "sh", "-c", "sleep 1000")
    before = s.bus.get(ROOT, MANAGER, "Report")
    refused = "STATUS=Serving org.errand1; the configuration that is there now is refused, the one before stays in force$"
    for n, text in enumerate(('{"sandbox": {"env": {"PATH": "/x"}}}', "{", '{"sandbox": {"backend": "podman", "image": "x"}}', '{"sandbox": {"env": {"A": "b"}, "memory": 1}}')):
        service.configure(text)
        try:
            s.bus.call(ROOT, MANAGER, "Reload")
            t.fail("it was taken")
        except BusError as error:
            t.equal(error.name, "org.errand1.Error.Configuration", "the error")
            t.contains(error.text, "errand.json")
        if n == 0:
            t.matches(service.said(), f"^{refused}", "the status, which is told once")
        service.errandd.send_signal(signal.SIGHUP)
        t.contains(service.said(), "RELOADING=1")
        t.matches(service.said(), f"^READY=1\n{refused}")
        t.equal(s.bus.get(ROOT, MANAGER, "Report"), before, "the report")
    service.configure({"sandbox": {**SANDBOX, "egress": {"mode": "open"}, "env": {"NEW": "value"}}})
    service.errandd.send_signal(signal.SIGHUP)
    t.contains(service.said(), "RELOADING=1")
    t.matches(service.said(), "^READY=1\nSTATUS=Serving org.errand1$")
    t.contains("\n".join(s.bus.get(ROOT, MANAGER, "Report")), "sessions have the variables: NEW")
    t.equal(s.state("a1")[0], "running", "the session that ran")
    s.start("a2", "sh", "-c", "echo $NEW; sleep 1000")
    errand_launch.wait_for(lambda: s.transcript("a2") == "value\n")
    t.equal([s.describe(n)["BrokerUnit"] for n in ("a1", "a2")], ["errand-broker@a1.service", ""], "brokers")


@case("a reload while a session is being started is for the next one: that one is made of one configuration, and not of two")
def reloaded_meanwhile(t):
    extra = t.path("extra")
    os.mkdir(extra)
    os.chmod(extra, 0o755)
    service = Service(t, config={"sandbox": {**SANDBOX, "env": {"SAYS": "before"}}})
    s = Sessions(service)
    s.serve()
    service.manager.hold = "errand-broker@"
    s.create("a1", "sh", "-c", "echo $SAYS; sleep 1000")
    s.bus.send(f"{ROOT}/session/a1", "org.errand1.Session", "Start")
    service.manager.wait_asked("StartUnit", "errand-broker@a1.socket")
    service.configure({"sandbox": {**SANDBOX, "env": {"SAYS": "after"}, "policyExtra": {"read": [extra]}, "egressPorts": [80], "egress": {"mode": "open"}}})
    s.bus.call(ROOT, MANAGER, "Reload")
    service.manager.hold = None
    service.manager.release()
    errand_launch.wait_for(lambda: s.transcript("a1") == "before\n")
    with open(service.path("home", "errand", "a1", "policy.toml"), encoding="utf-8") as f:
        t.lacks(f.read(), extra)
    s.start("a2", "sh", "-c", "echo $SAYS; sleep 1000")
    errand_launch.wait_for(lambda: s.transcript("a2") == "after\n")
    with open(service.path("home", "errand", "a2", "policy.toml"), encoding="utf-8") as f:
        t.contains(f.read(), extra)


@case("what is measured and waited for goes on when errandd is started again, by what the project was at the start")
def found_again(t):
    service = Service(t, config={"sandbox": {**SANDBOX, "disk": "8m", "diskCheckMs": 100}})
    s = Sessions(service)
    with open(service.path("project", "before"), "wb") as f:
        f.write(os.urandom(24 << 20))
    s.serve()
    s.start("a1", "sh", "-c", "while ! test -e go; do sleep 0.05; done; head -c 4194304 /dev/urandom > one; while ! test -e on; do sleep 0.05; done; "
            "head -c 8388608 /dev/urandom > two; sleep 1000")
    errand_launch.wait_for(lambda: '"projectBytes":2' in service.record("a1"))
    service.kill()
    with open(service.path("project", "go"), "w", encoding="ascii"):
        pass
    errand_launch.wait_for(lambda: os.path.exists(service.path("project", "one")) and os.stat(service.path("project", "one")).st_size == 4 << 20)
    s.serve()
    t.equal(s.state("a1")[0], "running", "the session")
    with open(service.path("project", "on"), "w", encoding="ascii"):
        pass
    errand_launch.wait_for(lambda: s.state("a1")[0] == "stopped")
    t.equal(s.state("a1"), ("stopped", "disk", 143), "the end")


if __name__ == "__main__":
    run()
