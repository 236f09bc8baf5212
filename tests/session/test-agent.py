#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What the command line tells of an agent that is talked to, against a real errandd --embedded."""

import os
import shutil

from errand_command import Errand, wait_for
from errand_test import case, run, source


def give_agent(errand):
    shutil.copyfile(source("tests", "session", "acp-agent"), os.path.join(errand.project, "acp-agent"))
    os.chmod(os.path.join(errand.project, "acp-agent"), 0o755)


@case("T: of an agent that ran and cannot be talked to nobody says that nothing ran, and each says why")
def _(t):
    errand = Errand(t)
    give_agent(errand)
    create = ("session", "create", "--embedded", "--protocol", "acp", "--id")
    why = "the agent ended with status 7 before it had answered initialize"
    errand.good(*create, "a1", "./acp-agent", "--quit")
    code, _, error = errand.run("prompt", "a1", "x")
    t.equal((code, error), (1, "errand: session a1: the prompt was not taken: session a1 was not started yet: errand session start a1\n"), "before")
    errand.good("session", "start", "a1")
    errand.await_state("a1", "failed")
    t.matches(errand.good("session", "show", "a1"), rf"result  its agent could not be talked to, exit code 125\n +reason  {why}\n", "what is shown")
    t.equal(errand.run("session", "logs", "a1"), (0, "", f"errand: session a1 wrote nothing, since its agent could not be talked to: {why}\n"), "the transcript")
    t.equal(errand.run("prompt", "a1", "x")[2],
            f"errand: session a1: the prompt was not taken: session a1 has ended: {why}; errand session start a1 starts it again\n", "a prompt")
    t.equal(errand.good("say", "a1", "!status"), f"Session a1 is failed: setup, status 125; {why}.\n", "its status")
    errand.good(*create, "a2", "./no-such-agent")
    errand.run("session", "start", "a2")
    t.contains(errand.good("session", "show", "a2"), "result  nothing ran, exit code 127\n", "one that did not run")


@case("T: session show and list say whether an agent works, waits for a prompt, or for an answer")
def _(t):
    errand = Errand(t)
    give_agent(errand)
    errand.good("session", "create", "--embedded", "--protocol", "acp", "--id", "a1", "./acp-agent")
    t.lacks(errand.good("session", "show", "a1"), "turn", "before its start")

    def listed(word):
        t.matches(errand.good("session", "list"), rf"(?m)^a1 +{word}  ", "the list")
    listed("created")
    errand.good("session", "start", "a1")
    errand.good("prompt", "a1", "say hello")
    t.contains(errand.good("session", "show", "a1"), "turn  waits for a prompt\n", "when it is done")
    listed("running")
    asking = errand.start("prompt", "a1", "ask May I?")
    while b"!answer 1 yes" not in asking.stderr.readline():
        pass
    errand.good("prompt", "--no-wait", "a1", "wait")
    shown = errand.good("session", "show", "a1")
    t.contains(shown, "turn  prompt 2 waits for an answer: errand session logs a1 has the question, and errand say a1 '!answer OPTION' answers it\n", "when it asks")
    t.contains(shown, "queued  1 more\n", "what waits")
    listed("running, asks")
    t.equal(errand.json("session", "show", "a1")["openQuestions"], 1, "for programs")
    errand.good("say", "a1", "!answer yes")
    t.equal(asking.wait(), 0, "its end")
    wait_for(lambda: "turn  the agent works on prompt 3\n" in errand.good("session", "show", "a1"))
    listed("running, works")


run()
