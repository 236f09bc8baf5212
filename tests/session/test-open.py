#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""sandbox.egress.mode "open", and no network at all: what a session reaches, sees and holds, and what the report says of it."""

import os
import sys

import errand_test
import errand_world
from errand_run import Errand
from errand_test import Skip, case, run

sys.path.insert(0, errand_test.source("tests/sandbox"))
import network  # noqa: E402
from network import PASTA, PROBE, bound, hidden, servers  # noqa: E402

errand_world.enter()
net = errand_world.world()
FAR, HOST4 = errand_world.PUBLIC4[0], errand_world.HOST4
has_tun = network.usable_tun()
network.settle()
KEY = "sk-real-0123456789abcdef"
LOOK = "ip -o addr; ip -o link; cat /proc/net/route; ls /sys/class/net; cat /sys/class/net/*/address; env"


def configuration(**sandbox):
    provider = {"kind": "anthropic", "baseUrl": "https://provider.example", "credential": KEY, "credentialName": "ANTHROPIC_API_KEY"}
    return {"agent": {"providers": {"anthropic": provider}}, "sandbox": {"gracePeriodMs": 5000, "egress": {"mode": "open", "allow": ["a.example"]}, **sandbox}}


def probe(errand, *operations):
    """Some may have no answer: where the host's gateway is nobody, it depends on pasta."""
    out = errand.good("run", "--embedded", "--", "/usr/bin/python3", "-c", PROBE, "wait=5", *operations)
    return dict(zip(operations, out.splitlines()))


def told(errand):
    """The report, its lines joined again."""
    return " ".join(errand.log().replace("errandd: ", " ").split())


def policies(errand):
    found = []
    for name in os.listdir(errand.state):
        path = os.path.join(errand.state, name, "policy.toml")
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                found.append(f.read())
    return found


@case("S028 S029 S031 S035 S039 S122 S211: open reaches any host on the allowed ports, in the host's network, with no broker and the real key")
def _(t):
    errand = Errand(t, configuration(egressPorts=[443, 8080]))
    with servers((net.internet, FAR, 443, "far"), (net.internet, FAR, 444, "other"), (net.host, "127.0.0.1", 8080, "near")):
        got = probe(errand, f"tcp={FAR},443", f"tcp={FAR},444", "tcp=127.0.0.1,8080")
        t.equal(list(got.values()), ["far", "EACCES", "near"], "what is reached")
        seen = errand.good("run", "--", "sh", "-c", LOOK + "; readlink /proc/self/ns/net")
        t.contains(seen, HOST4)
        t.equal(seen.splitlines()[-1], os.readlink("/proc/self/ns/net"), "the network namespace")
        t.contains(seen, f"ANTHROPIC_API_KEY={KEY}\n")
        t.lacks(seen.lower(), "_proxy=")
        t.lacks(seen, "_URL=")
        t.equal(errand.find("errand-broker"), [], "brokers")
    t.check(all('egress_allow = ["443", "8080"]\n' in text for text in policies(errand)) and policies(errand), policies(errand))
    log = told(errand)
    t.contains(log, "sessions reach any host on TCP port 443, 8080, the host's own network included")
    t.contains(log, "sessions share the host's network and can read its address, MAC and ARP neighbours")
    t.contains(log, 'sandbox.egress.allow does nothing: sandbox.egress.mode is "open", so that there is no broker')
    t.lacks(log, "named hosts")
    t.contains(log, "sessions HOLD the real keys of providers that are not brokered: anthropic")


@case("S123 S125: hideHostAddress shows a synthetic address and MAC, and the ports are the same")
def _(t):
    if not has_tun:
        raise Skip("only root can give an ordinary account /dev/net/tun")
    errand = Errand(t, configuration(hideHostAddress=True))
    with servers((net.internet, FAR, 443, "far"), (net.internet, FAR, 444, "other"), (net.host, "127.0.0.1", 443, "near")):
        got = probe(errand, f"tcp={FAR},443", f"tcp={FAR},444", "tcp=127.0.0.1,443", "tcp=10.0.2.2,443")
        t.equal(list(got.values())[:3], ["far", "EACCES", "ECONNREFUSED"], "what is reached")
        t.check("near" not in got.values(), got)
        seen = errand.good("run", "--", "sh", "-c", LOOK)
        t.contains(seen, "inet 10.0.2.15/24")
        for word in hidden():
            t.lacks(seen.lower(), word)
        if os.path.exists("/proc/net/if_inet6"):
            t.contains(seen, "inet6 fd62:6169:6c65:79::f/64")
    t.contains(told(errand), "sessions see a synthetic address in place of the host's")


@case("S124: without pasta a session starts all the same, and the report says that the host's address stays visible")
def _(t):
    with bound("/dev/null", PASTA), servers((net.internet, FAR, 443, "far"), (net.internet, FAR, 444, "other")):
        errand = Errand(t, configuration(hideHostAddress=True))
        got = probe(errand, f"tcp={FAR},443", f"tcp={FAR},444")
        t.equal(list(got.values()), ["far", "EACCES"], "what is reached")
        t.contains(errand.good("run", "--", "sh", "-c", LOOK), HOST4)
        t.contains(told(errand), "a session has no private network: the host's address stays visible")
        t.contains(told(errand), "sessions share the host's network and can read its address")
        errand.end()
        errand.configure(configuration(hideHostAddress=True, requireFullEnforcement=True))
        failed = errand.run("run", "--embedded", "--", "true")
        t.equal(failed.returncode, 125, "under requireFullEnforcement")


@case("S036 S041: network none opens nothing, whatever ports are named")
def _(t):
    errand = Errand(t, configuration(network="none", egressPorts=[443]))
    with servers((net.internet, FAR, 443, "far"), (net.host, "127.0.0.1", 443, "near")):
        got = probe(errand, f"tcp={FAR},443", "tcp=127.0.0.1,443", f"udp={FAR},443", "local")
        t.equal(list(got.values()), ["ENETUNREACH", "ECONNREFUSED", "ENETUNREACH", "ok"], "what is reached")
        seen = errand.good("run", "--", "env")
        t.lacks(seen, KEY)
        t.lacks(seen.lower(), "_proxy=")
        t.equal(errand.find("errand-broker"), [], "brokers")


run()
