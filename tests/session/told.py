# SPDX-License-Identifier: LGPL-2.1-or-later
"""A story that is told once in a process, for the tests that each look at one step of it, and what says that a check bites."""

import functools

import errand_test
from errand_test import Failure

CHECKS = ["environment", "project", "provider", "granted", "closing_line", "receipts", "no_key"]


class Told:
    """make(test) → a FirstRun, which is told and over when the first test looks at it: the next session needs the same addresses.
    checks: of the outside's, by name, beside those of every story."""

    def __init__(self, make, *checks):
        test = errand_test.Test("the story")
        self.lines, self.problems = [], {}
        with test.stack:
            self.first = make(test).prepare()
            try:
                self.first.run(lambda kind, text: self.lines.append(f"{kind}: {text}"))
            except Failure as failure:
                self.problems["story"] = failure
            for name in (*CHECKS, *checks) if not self.problems else []:
                try:
                    getattr(self.first, f"check_{name}")()
                except Failure as failure:
                    self.problems[name] = failure
            self.log = self.first.log()

    def raise_problem(self, name):
        for key in ("story", name):
            if key in self.problems:
                raise self.problems[key]

    def step(self, t, name, *checks):
        """The agent's own word on a step, and then what the outside found."""
        t.log("the story", lambda: "\n".join([*self.lines, self.log, getattr(self.first, "stderr", "")]))
        self.raise_problem("story")
        t.check(name in self.first.results, lambda: f"the agent did not come to {name}")
        ok, saw = self.first.results[name]
        t.note(saw)
        t.check(ok, f"the agent reports: {saw}")
        for check in checks:
            self.raise_problem(check)


def once(make, *checks):
    """→ what tells the story at its first call."""
    return functools.cache(lambda: Told(make, *checks))


def bites(t, results, name):
    """The agent's own check says that the protection is gone."""
    t.check(name in results, lambda: f"the agent did not come to {name}: {results}")
    ok, saw = results[name]
    t.note(saw)
    t.check(not ok, f"without its protection {name} still reports success: {saw}")


def bites_outside(t, check):
    """A check from the outside says that the protection is gone."""
    try:
        check()
    except Failure as failure:
        t.note(failure)
        return
    t.fail("the check from the outside notices nothing")
