# SPDX-License-Identifier: LGPL-2.1-or-later
"""The first run as a test, each step once with its protection and once without, to show that the step would notice."""

import contextlib
import json
import os
import socket
import threading

import errand_test
import errand_world
from errand_test import Failure, case, run
from errand_upstream import Upstream
from first_run import EVENTS, STEPS, FirstRun
from told import bites, bites_outside, once

errand_world.enter()

told = once(FirstRun)


def plain(t):
    """A session's makings without the story."""
    return FirstRun(t, "s2").prepare()


def refused(t, process):
    """bailey ran nothing: its exit status, one line that says so, and no trace of the agent."""
    out, err = process.communicate()
    t.note(err)
    t.equal(process.returncode, 125, "exit status")
    t.equal(out, "", "output of the agent")
    t.check(err.strip(), "bailey does not say why")
    return err


# ---- the steps ----

@case("S016 Q010: the agent reads its project and writes a file there, and nothing of the host elsewhere")
def _(t):
    told().step(t, "project", "project")


@case("S016 bite: without the grant of its project the agent cannot write there; outside bailey it writes beside it")
def _(t):
    first = plain(t)
    results, _, _ = first.inside("project", policy=first.policy(write=[]))
    bites(t, results, "project")
    first.outside("project")
    bites_outside(t, first.check_project)


@case("S024 S089 S210: the provider is called with the stand-in, its events arrive as they are sent, and it saw the real key alone")
def _(t):
    told().step(t, "provider", "provider")
    told().step(t, "echo")


@case("S024 S210 bite: a wrong stand-in fails, a provider that is called directly sees the stand-in, an answer that is no stream is noticed")
def _(t):
    first = plain(t)
    results, _, _ = first.inside("provider", environment=first.session_environment(ANTHROPIC_API_KEY="errand-session-" + "0" * 64))
    bites(t, results, "provider")
    # Past the route: the host is on the allowlist and the agent's client goes to it by CONNECT.
    first.start_broker(first.provider.key, allow=["provider.example"])
    first.provider_host.go()
    with open(os.path.join(first.project, "task.json"), encoding="ascii") as f:
        task = json.load(f)
    environment = first.session_environment(ERRAND_PROVIDER_ANTHROPIC_URL="https://provider.example/v1", SSL_CERT_FILE=os.path.join(first.project, "ca.pem"))
    results, _, _ = first.inside("echo", environment=environment)
    bites(t, results, "echo")
    bites_outside(t, first.check_provider)
    task["stream"] = "/length/5"
    with open(os.path.join(first.project, "task.json"), "w", encoding="ascii") as f:
        json.dump(task, f)
    first.start_broker(first.provider.key)
    results, _, _ = first.inside("provider")
    bites(t, results, "provider")


@case("S127 S128: another host is refused with 403 and the sentence that names the grant's command")
def _(t):
    told().step(t, "denied")


@case("S127 bite: with the host on the allowlist the agent's check says so")
def _(t):
    first = plain(t)
    first.start_broker(allow=["denied.example"])
    results, _, _ = first.inside("denied")
    bites(t, results, "denied")
    bites_outside(t, lambda: expect_untouched(first))


def expect_untouched(first):
    if first.other_host.accepts():
        raise Failure("the other host was connected to")


@case("S132: after the owner's grant the agent's next attempt reaches the host, nothing restarted")
def _(t):
    told().step(t, "granted", "granted")


@case("S132 bite: without the grant the next attempt is refused as well")
def _(t):
    first = plain(t)
    results, _, _ = first.inside("granted", grant=False)
    bites(t, results, "granted")


@case("Q009 T001: the agent finds no home directory of its owner")
def _(t):
    told().step(t, "home")


@case("Q009 bite: with a policy that grants the home the agent finds it")
def _(t):
    first = plain(t)
    results, _, _ = first.inside("home", policy=first.policy(read=[first.owner_home]))
    bites(t, results, "home")


@case("T009: the agent cannot read /etc/shadow, although its mode would let it")
def _(t):
    told().step(t, "shadow")


@case("T009 bite: outside bailey the same account reads it")
def _(t):
    bites(t, plain(t).outside("shadow"), "shadow")


@case("Q021 T011: the agent sees no process of the host")
def _(t):
    told().step(t, "processes")


@case("Q021 bite: outside bailey it sees them")
def _(t):
    bites(t, plain(t).outside("processes"), "processes")


@case("S121 N002 N005: the agent sees no network address but loopback, and has no way out of its own")
def _(t):
    told().step(t, "network")


@case("S121 bite: outside bailey it sees the host's and gets out")
def _(t):
    bites(t, plain(t).outside("network"), "network")


@case("S210 S227: no key in the agent's environment, in /proc, in any answer or file; none in what came out of the session")
def _(t):
    told().step(t, "key", "no_key")


@case("S210 bite: with the real key in the environment, or in an answer, the agent finds it")
def _(t):
    first = plain(t)
    results, _, _ = first.inside("key", environment=first.session_environment(ANTHROPIC_API_KEY=first.provider.key))
    bites(t, results, "key")
    # An echo that nobody scrubs: the key is sent by the agent itself, past the route.
    first.start_broker(first.provider.key, allow=["provider.example"])
    environment = first.session_environment(ERRAND_PROVIDER_ANTHROPIC_URL="https://provider.example/v1", SSL_CERT_FILE=os.path.join(first.project, "ca.pem"),
                                            ANTHROPIC_API_KEY=first.provider.key)
    results, _, _ = first.inside("echo", "key", environment=environment)
    t.contains(results["key"][1], "an answer", "what the agent found")
    bites(t, results, "key")


@case("S044 S070 T020 S196: the environment is built: stand-in, route, proxy with the credential, and nothing of the caller's")
def _(t):
    told().step(t, "environment", "environment")


@case("T020 bite: outside bailey a variable of the caller's is seen")
def _(t):
    first = plain(t)
    bites(t, first.outside("environment", environment={**first.session_environment(BAILEY_SANDBOX_NET="broker"), "OWNER_SECRET": "x"}), "environment")


@case("S052: the spool lists exactly the provider calls")
def _(t):
    told().raise_problem("receipts")


@case("S052 bite: one call more, or one less, is noticed")
def _(t):
    first = plain(t)
    results, _, _ = first.inside("echo")
    t.check(results["echo"][0], lambda: f"the call failed: {results}")
    first.broker.receipts(1)
    bites_outside(t, first.check_receipts)


@case("S177: all steps were taken, bailey said what it enforced, and ended with the agent's status")
def _(t):
    told().raise_problem("closing_line")
    t.equal(list(told().first.results), STEPS, "steps")
    t.equal(len([line for line in told().first.lines if '"event"' in line]), len(EVENTS), "events")


@case("C058 S071: no secret is on any command line while a session runs")
def _(t):
    first = plain(t)
    process = first.bailey("granted")
    process.stdout.readline()  # it waits inside now
    secrets = [first.provider.key, first.provider.stand_in, first.broker.credential, first.broker.token]
    seen = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        for name in ("cmdline", "environ"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/{name}", encoding="latin-1") as f:
                text = f.read()
                seen += 1
                # The payload's own environment holds what is meant for it.
                allowed = name == "environ" and "BAILEY_SANDBOX=1" in text
                for secret in secrets[:1] if allowed else secrets:
                    t.lacks(text, secret, f"/proc/{pid}/{name}")
    t.check(seen > 5, "nothing could be looked at")
    process.stdin.write("go on\n")
    process.stdin.flush()


def host_services(t):
    """Services of the host on a port that the policy admits: on its loopback and on its own address."""
    return Upstream(t, "127.0.0.1:443", "9.9.9.1:443", "[::1]:443", "[2606:4700::fff1]:443", certificate=None, namespace=errand_world.world().host)


@case("S173 S174 S175 S176: a session reaches its broker, and by no way a service of the host, another port, or anything else at the broker's port")
def _(t):
    first = plain(t)
    services = host_services(t)
    first.start_broker(allow=["*"])
    results, status, err = first.inside("live")
    t.check("live" in results, lambda: f"bailey has ended with {status}: {err}")
    t.note(results["live"][1])
    t.check(results["live"][0], results["live"][1])
    t.equal(services.accepts(), [], "connections to the host's services")


@case("S174 bite: outside bailey the host's services answer")
def _(t):
    first = plain(t)
    services = host_services(t)
    bites(t, first.outside("live", environment=first.session_environment()), "live")
    t.check(services.accepts(), "nobody connected to the host's services")


@case("C161: a broker that is killed while the agent runs: its calls fail, nothing hangs, and nothing else becomes reachable")
def _(t):
    first = plain(t)
    process = first.bailey("granted", "provider", "network")
    process.stdout.readline()
    first.broker.kill()
    process.stdin.write("go on\n")
    process.stdin.flush()
    messages = [json.loads(line) for line in process.stdout]
    t.equal([m["ok"] for m in messages if "step" in m], [False, False, True], "what the agent could do")
    t.equal(process.wait(), 1, "exit status")
    t.equal(first.other_host.accepts() + first.provider_host.accepts(), [], "connections")


# ---- what must stop a session from running ----

def fake_broker(t, first, behave):
    """A session socket of ours in place of the broker's; behave(connection) in a thread."""
    path = os.path.join(first.base, "fake")
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listener.bind(path)
    os.chmod(path, 0o666)
    listener.listen(1)
    t.defer(listener.close)

    def serve():
        with contextlib.suppress(OSError):
            connection, _ = listener.accept()
            with connection:
                behave(connection)
    threading.Thread(target=serve, daemon=True).start()
    return path


@case("fail-closed: a broker that is not there: nothing runs")
def _(t):
    first = plain(t)
    refused(t, first.bailey("project", socket_path=os.path.join(first.base, "nobody")))
    first.broker.stop()
    refused(t, first.bailey("project"))
    bites_outside(t, first.check_project)


@case("fail-closed: garbage in place of ready, an error, another type, a ready with an fd, or nothing but the close: nothing runs")
def _(t):
    answers = [b"garbage", b"{}", b'{"v":1,"type":"error","text":"no"}', b'{"v":2,"type":"ready"}', b'{"v":1,"type":"readyy"}', b'{"v":1,"type":"ready"',
               b'["ready"]', b"ready", b"\0" * 100, b'{"v":1,"type":"ready"}' + b" " * 70000, None]
    first = plain(t)

    def check(answer):
        def behave(connection):
            connection.recv(65536)
            if answer is not None:
                connection.send(answer)
                with contextlib.suppress(OSError):
                    connection.recv(1)
        path = fake_broker(t, first, behave)
        try:
            refused(t, first.bailey("project", socket_path=path))
        finally:
            os.unlink(path)
    t.each(answers, check)
    bites_outside(t, first.check_project)


@case("fail-closed bite: the same stand-in of a broker that does answer ready lets the agent run")
def _(t):
    first = plain(t)

    def behave(connection):
        connection.recv(65536)
        connection.send(b'{"v":1,"type":"ready"}')
        with contextlib.suppress(OSError):
            connection.recv(1)
    process = first.bailey("project", socket_path=fake_broker(t, first, behave))
    process.communicate()
    t.equal(process.returncode, 0, "exit status")
    first.check_project()


@case("fail-closed: a broker that is killed before its ready: nothing runs")
def _(t):
    first = plain(t)
    path = fake_broker(t, first, lambda connection: None)  # accepts and is gone
    refused(t, first.bailey("project", socket_path=path))
    first.broker.kill()
    refused(t, first.bailey("project"))
    bites_outside(t, first.check_project)


@case("fail-closed: a wrong token, one that is no token, or a second session with the same one: nothing runs")
def _(t):
    first = plain(t)
    for token in ("0" * 64, "x" * 64, "", "0" * 63, first.broker.token + "0"):
        t.equal(first.broker.process.poll(), None, "exit status of the broker")
        refused(t, first.bailey("project", token=token))
    bites_outside(t, first.check_project)
    results, status, err = first.inside("project")
    t.equal((status, results["project"][0]), (0, True), f"the right one: {err}")
    os.unlink(os.path.join(first.project, "written-by-the-agent.txt"))
    refused(t, first.bailey("project"))
    bites_outside(t, first.check_project)


@case("fail-closed: a policy with an error: file, line and key are named, and nothing runs")
def _(t):
    first = plain(t)
    path = os.path.join(first.base, "bad.toml")
    rows = [("[filesystem]\nraed = []\n", "raed", 2), ("[filesystem]\nread = 1\n", "read", 2), ("[filesystem]\nread = [\"../../..\"]\n", "read", 2),
            ("[filesystem]\n\nread = [\"/usr\"]\ndeny = [\"/usr\"]\n", "/usr", None), ("[nonsense]\n", "nonsense", 1), ("[filesystem\n", "bad.toml", 1)]

    def check(row):
        text, word, line = row
        with open(path, "w", encoding="ascii") as f:
            f.write(text)
        err = refused(t, first.bailey("project", policy=path))
        t.contains(err, "bad.toml", "the error")
        t.contains(err, word, "the error")
        if line:
            t.matches(err, rf"bad\.toml:{line}\b", "the error")
    t.each(rows, check)
    bites_outside(t, first.check_project)
    t.equal(first.inside("project")[1], 0, "exit status afterwards: the token was not used up")


@case("C003: a missing kernel feature is warned of and listed as not enforced, and refused under --strict")
def _(t):
    prefix = [errand_test.program("without"), "landlock_create_ruleset:ENOSYS", "--"]
    first = plain(t)
    err = refused(t, first.bailey("project", prefix=prefix, options=["--strict"]))
    t.contains(err, "landlock", "the refusal")
    bites_outside(t, first.check_project)
    results, status, err = first.inside("project", prefix=prefix)
    t.equal((status, results["project"][0]), (0, True), f"without --strict: {err}")
    t.matches(err, r"(?i)warning.*landlock", "the warning")
    t.matches(err, r"(?i)not enforced.*landlock", "the closing lines")


@case("C003: with --accept-gap the named gap is accepted under --strict, and no other")
def _(t):
    prefix = [errand_test.program("without"), "landlock_create_ruleset:ENOSYS", "--"]
    first = plain(t)
    refused(t, first.bailey("project", prefix=prefix, options=["--strict", "--accept-gap", "sysfs"]))
    _, status, err = first.inside("project", prefix=prefix, options=["--strict", "--accept-gap", "landlock"])
    t.equal(status, 0, f"exit status: {err}")


@case("C001 C003: without namespaces a brokered run is refused, whatever is accepted")
def _(t):
    first = plain(t)
    for rule in ("clone3:EPERM", "clone3:ENOSPC"):
        err = refused(t, first.bailey("project", prefix=[errand_test.program("without"), rule, "--"]))
        t.contains(err, "namespace", "the refusal")
    bites_outside(t, first.check_project)


@case("design 6: a command is never run as uid 0")
def _(t):
    first = plain(t)
    if os.getuid() != 0:
        t.note("an ordinary account: there is no other to become; --user of another is refused")
        options = ["--user", "root"]
    else:
        options = ["--user", "0"]
    process = first.bailey("project", options=options)
    out, err = process.communicate()
    t.check(process.returncode == 125 and out == "", lambda: f"status {process.returncode}: {out} {err}")


@case("S042 S046: close ends the agent's way out while it runs")
def _(t):
    first = plain(t)
    process = first.bailey("granted", "denied", "provider")
    process.stdout.readline()
    t.equal(first.broker.control.request("close")["type"], "ok", "reply")
    process.stdin.write("go on\n")
    process.stdin.flush()
    messages = [json.loads(line) for line in process.stdout]
    t.equal([m["ok"] for m in messages if "step" in m], [False, False, False], "what the agent could do")
    t.equal(first.other_host.accepts() + first.provider_host.accepts(), [], "connections")


if __name__ == "__main__":
    run()
