# SPDX-License-Identifier: LGPL-2.1-or-later
"""A session whose agent is talked to, driven as errandd drives it: over the shim's socket."""

import os
import shutil

import errand_launch
import errand_test
from errand_broker import sealed_memfd

TIMES = {"protocol": "acp", "startupMs": 30000, "questionMs": 30000, "abortMs": 30000}


class Conversation:
    """A session of acp-agent with those options, launched and watched."""

    def __init__(self, launcher, name, *options, ready=True, **more):
        times = {key: more.pop(key) for key in ("startupMs", "questionMs", "abortMs") if key in more}
        self.session = launcher.session(name, "./acp-agent", "--await", "watched", *options, conversation={**TIMES, **times}, **more)
        agent = os.path.join(self.session.project, "acp-agent")
        shutil.copyfile(errand_test.source("tests", "session", "acp-agent"), agent)
        os.chmod(agent, 0o755)
        self.number = 0
        self.session.launch()
        self.channel = None
        self.watch()
        launcher.t.defer(self.close)
        with open(os.path.join(self.session.project, "watched"), "w", encoding="ascii"):  # before, it would not be told that the agent is ready
            pass
        if ready:
            self.ready = self.update("ready")

    def watch(self):
        """As an errandd that has just come."""
        self.close()
        self.channel = self.session.connect()
        self.status = self.channel.request("status", watch=True)
        return self.status

    def close(self):
        if self.channel:
            self.channel.close()
            self.channel = None

    def request(self, kind, **members):
        return self.channel.request(kind, **members)

    def prompt(self, text, number=None, **members):
        """Queues it; its number."""
        self.number = number or self.number + 1
        reply = self.try_prompt(text.encode() if isinstance(text, str) else text, self.number, **members)
        if reply["type"] != "ok":
            raise errand_test.Failure(f"the prompt was not taken: {reply}")
        return self.number

    def try_prompt(self, data, number, **members):
        fd = sealed_memfd(data)
        try:
            return self.channel.request("prompt", {"text": fd}, number=number, **members)
        finally:
            os.close(fd)

    def begin(self, text, **members):
        """A prompt and its turn; the number."""
        number = self.prompt(text, **members)
        reply = self.request("turn")
        if reply["type"] != "ok":
            raise errand_test.Failure(f"the turn did not begin: {reply}")
        return number

    def turn(self, text):
        """A whole one: [(kind, fields), …] with its turn-ended as the last."""
        number = self.begin(text)
        return self.until("turn-ended", prompt=number)

    def next(self):
        """The next update: (kind, fields)."""
        event = self.channel.event("update")
        return event["kind"], event["fields"]

    def until(self, kind, **fields):
        """All updates up to that one."""
        seen = []
        while True:
            seen.append(self.next())
            if seen[-1][0] == kind and all(seen[-1][1].get(k) == v for k, v in fields.items()):
                return seen

    def update(self, kind, **fields):
        return self.until(kind, **fields)[-1][1]

    def state(self):
        return self.request("status")["conversation"]

    def ended(self):
        return self.session.ended()


def texts(updates, kind="message"):
    return "".join(fields["text"] for k, fields in updates if k == kind)


def wait_for(condition):
    return errand_launch.wait_for(condition)
