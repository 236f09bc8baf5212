# SPDX-License-Identifier: LGPL-2.1-or-later
"""Sessions whose agent, acp-agent, is talked to over the bus, by a client that follows all of them."""

import os
import shutil

import errand_bus
import errand_launch
import errand_test
from errand_service import MANAGER, ROOT, Service, Sessions

ACP = {"protocol": ("s", "acp")}


class Talk(Sessions):
    def __init__(self, t, config=None):
        super().__init__(Service(t, config=self.configuration(config or {})))
        self.t = t
        agent = self.service.path("project", "acp-agent")
        shutil.copyfile(errand_test.source("tests", "session", "acp-agent"), agent)
        os.chmod(agent, 0o755)
        script = self.service.path("project", "until")
        with open(script, "w", encoding="ascii") as f:
            f.write("#!/bin/sh\nwhile ! test -e $1; do sleep 0.02; done\n")
        os.chmod(script, 0o755)
        self.serve()

    @staticmethod
    def configuration(config):
        return {"sandbox": {"requireFullEnforcement": False, "gracePeriodMs": 1000}, **config}

    def reload(self, config):
        """For what comes from now on."""
        self.service.configure(self.configuration(config))
        self.bus.call(ROOT, MANAGER, "Reload")

    def serve(self):
        super().serve()
        self.bus.call(ROOT, MANAGER, "Subscribe")

    def agent(self, name, *options, ready=True, **more):
        self.start(name, "./acp-agent", *options, **{**ACP, "network": ("s", "none"), **more})
        if ready:
            self.await_agent(name)

    def await_agent(self, name):
        """Until it is known what its agent does: its shim is reached and has answered, and so has the agent."""
        errand_launch.wait_for(lambda: "Its agent" in (status := self.say(name, "!status")) and "not answered" not in status)

    def say(self, name, text):
        return self.call(name, "Say", "s", text)[0]

    def prompt(self, name, text):
        self.call(name, "Prompt", "s", text)

    def update(self, name, kind, **fields):
        """The next one of that kind, which is taken out; its fields."""
        def fits(m):
            return m["path"] == f"{ROOT}/session/{name}" and m["body"][0] == kind and all(m["body"][1].get(k) == v for k, v in fields.items())
        return self.bus.signal("Update", fits)["body"][1]

    def seen(self, name, *kinds):
        """What has been told of it so far, by kind, and a number."""
        self.bus.get(ROOT, MANAGER, "Version")
        found = [m["body"] for m in self.bus.signals if m["member"] == "Update" and m["path"] == f"{ROOT}/session/{name}"]
        return [(kind, fields.get("prompt")) for kind, fields in found if not kinds or kind in kinds]

    def refused(self, error, text, function, *arguments, **options):
        try:
            answer = function(*arguments, **options)
        except errand_bus.BusError as e:
            self.t.equal(e.name, f"org.errand1.Error.{error}", e.text)
            self.t.contains(e.text, text)
            return
        self.t.fail(f"{arguments} worked: {answer}")

    def ask(self, host):
        self.go(f"ask-{host}")
        answer = self.service.path("project", f"answer-{host}")
        errand_launch.wait_for(lambda: os.path.exists(answer))
        with open(answer, encoding="ascii") as f:
            text = f.read()
        os.unlink(answer)
        return text

    def go(self, name):
        with open(self.service.path("project", name), "w", encoding="ascii"):
            pass


def until(file):
    """A step of the agent that ends when the file is there."""
    return f"run ./until {file}"
