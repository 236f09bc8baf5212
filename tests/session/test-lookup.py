#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Providers that this host cannot resolve, or that will not be called: told at the start, which goes on."""

import errand_world
from errand_run import Errand, wait_for
from errand_test import case, run

errand_world.enter()
world = errand_world.world()


def configuration(**urls):
    return {"agent": {"providers": {name: {"kind": "openai", "baseUrl": url, "credential": "sk-0123456789"} for name, url in urls.items()}},
            "sandbox": {"gracePeriodMs": 500, "egress": {"allow": ["a.example"]}}}


@case("S080 S085: a provider that does not resolve, and one that will not be called, are warned about by name and reason; sessions start all the same")
def warned(t):
    errand = Errand(t, configuration(gone="https://gone.test", good="https://provider.example", literal="https://9.9.9.9", plain="http://plain.test"))
    t.equal(errand.run("run", "--embedded", "--", "/bin/true").returncode, 0, "exit code")
    process, _ = errand.started("s1", "/bin/sh", "-c", "echo up; read line")
    wait_for(lambda: "agent.providers.gone: its host gone.test does not resolve here" in errand.log(), "the warning")
    t.contains(" ".join(errand.log().replace("errandd: ", "").split()), "agent.providers.plain: will not be called: its baseUrl is not https://", "log")
    report = " ".join(errand.good("report").split())
    t.contains(report, "warning: agent.providers.gone: its host gone.test does not resolve here (Name or service not known)", "report")
    for name in ("good", "literal"):
        t.lacks(report, f"agent.providers.{name}", "report")
    t.check(not [name for name, _ in world.resolver.asked if name == "plain.test"], "what will not be called was looked up")
    errand.configure(configuration(good="https://provider.example"))
    errand.good("reload")
    wait_for(lambda: "gone.test" not in errand.good("report"), "the report without it")
    process.communicate("end\n")


@case("S080: a resolver that does not answer keeps no start waiting")
def silent(t):
    world.resolver.names["silent.test"] = None
    errand = Errand(t, configuration(silent="https://silent.test"))
    t.equal(errand.run("run", "--embedded", "--", "/bin/true").returncode, 0, "exit code")
    t.lacks(errand.log(), "does not resolve", "log, when a session has come and gone already")
    wait_for(lambda: [name for name, _ in world.resolver.asked if name == "silent.test"], "the question")


if __name__ == "__main__":
    run()
