#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The live suite: sessions of errandd's own making against this host's kernel. An ordinary run of the tests leaves it out:

    meson test -C build --suite live

Where sessions cannot run here each case fails and says why; none is skipped.
"""

import errand_test
import errand_world
from errand_test import case, run
from errand_upstream import Upstream
from run_story import RunStory

errand_world.enter()


def host_services():
    """On a port that the policy admits: on the host's loopback, and on the address that its packets come from."""
    return "127.0.0.1:443", "9.9.9.1:443", "[::1]:443", "[2606:4700::fff1]:443"


def live(t, *steps, allow=("*",), **options):
    """The agent's steps in a session of errand run; → (results, what errand says)."""
    first = RunStory(t).prepare()
    first.start_broker(first.key, allow=list(allow))
    results, status, err = first.inside(*steps, **options)
    t.note(err)
    missing = [name for name in steps if name not in results]
    t.check(not missing, f"no session ran here, or it ended before {missing}: errand run has ended with {status}: {err}")
    return first, results


def services(t):
    return Upstream(t, *host_services(), certificate=None, namespace=errand_world.world().host)


def good(t, results, name):
    ok, saw = results[name]
    t.note(saw)
    t.check(ok, saw)


@case("S173: live: a session of errandd's reaches its broker: its provider by the route, a host by the proxy")
def _(t):
    first, results = live(t, "echo", "live")
    good(t, results, "echo")
    t.check(first.provider_host.accepts(), "the provider saw no connection")


@case("S173 bite: live: a host that its policy does not name is not reached by the broker")
def _(t):
    first, results = live(t, "live", allow=["other.example"])
    t.check(not results["live"][0], lambda: f"the broker let through what was not allowed: {results['live'][1]}")
    t.contains(results["live"][1], "CONNECT provider.example:443 by the broker: 403", "what the agent saw")
    t.equal(first.provider_host.accepts(), [], "connections to the host")


@case("S174: live: services of the host on an admitted port are reached by none of its addresses, neither directly nor by the broker")
def _(t):
    host = services(t)
    _, results = live(t, "live")
    good(t, results, "live")
    t.equal(host.accepts(), [], "connections to the host's services")


@case("S174 bite: live: without a session the same addresses answer")
def _(t):
    host = services(t)
    first = RunStory(t).prepare()
    ok, saw = first.outside("live")["live"]
    t.check(not ok, lambda: f"the agent noticed nothing: {saw}")
    for address in ("127.0.0.1", "9.9.9.1"):
        t.contains(saw, f"{address}:443 answers", "what the agent saw")
    t.check(host.accepts(), "nobody connected to the host's services")


@case("S175: live: a port that the policy does not admit is refused at once, and nobody is dialled")
def _(t):
    elsewhere = Upstream(t, "9.9.9.9:444")
    _, results = live(t, "live")
    good(t, results, "live")
    t.equal(elsewhere.accepts(), [], "connections to the port")


@case("S175 bite: live: with the port admitted it is not refused")
def _(t):
    elsewhere = Upstream(t, "9.9.9.9:444")
    first = RunStory(t).prepare()
    first.start_broker(first.key, allow=["*"], egressPorts=[443, 444])
    results, _, _ = first.inside("live")
    t.contains(results["live"][1], "CONNECT provider.example:444 by the broker: 200", "what the agent saw")
    t.check(elsewhere.accepts(), "nobody connected")


@case("S176: live: the broker's own port leads to its routes and its proxy, and nowhere else")
def _(t):
    _, results = live(t, "live", "network")
    good(t, results, "live")
    good(t, results, "network")


@case("S177: live: where no sandbox can be made nothing runs, the reason is given, and none of these cases passes")
def _(t):
    # No process gets namespaces of its own; threads are made in another way then.
    try:
        live(t, "live", prefix=[errand_test.program("without"), "clone3:ENOSYS", "--"])
    except errand_test.Failure as failure:
        t.note(failure)
        t.matches(str(failure), "no session ran here.* errand run has ended with 125: .*does not let it create namespaces", "the case's failure")
    else:
        t.fail("a case passed without a session")


if __name__ == "__main__":
    run()
