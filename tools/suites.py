# SPDX-License-Identifier: LGPL-2.1-or-later
"""Builds the tree in several ways, runs its tests in each, and counts every case from meson's own logs."""

import argparse
import dataclasses
import fnmatch
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parent.parent
BUILDS = TOP / "build-check"
LOG_TAIL_LINES = 40
OWN_LINES, OWN_WIDTH = 6, 240  # of what a failed case said itself, in the summary
SUMMARY_LINES = 28  # of all, where there are many: the end of a long output is what is looked at

TAP_RESULT = re.compile(r"^(not )?ok\b(?:\s+\d+)?(?:\s+-)?\s*(.*)$")
TAP_DIRECTIVE = re.compile(r"^(.*?)\s*#\s*(SKIP|TO[D]O)\S*\s*(.*)$", re.IGNORECASE)
TAP_PLAN = re.compile(r"^1\.\.(\d+)(?:\s*#\s*SKIP\S*\s*(.*))?$", re.IGNORECASE)


@dataclasses.dataclass
class Run:
    """One way to build, and the suites to run in it (None: all; style is about the text, so one run of it is enough; machine boots Debian as it
    is, which has no sanitizers' libraries; vm takes minutes and is run by name alone)."""
    name: str
    options: list
    environment: dict = dataclasses.field(default_factory=dict)
    suites: list = None
    without: list = dataclasses.field(default_factory=list)


RUNS = [
    Run("gcc", ["-Dwerror=true"], {"CC": "gcc", "CXX": "g++"}, without=["vm"]),
    Run("clang", ["-Dwerror=true"], {"CC": "clang", "CXX": "clang++"}, suites=["unit", "fuzz"]),
    # Sanitized code confuses the compiler's own flow analysis: its warnings are not errors here.
    Run("sanitizers", ["-Db_sanitize=address,undefined", "-Db_lundef=false", "-Dbuildtype=debug", "-Doptimization=1"],
        {"CC": "gcc", "CXX": "g++", "ASAN_OPTIONS": "abort_on_error=1:detect_stack_use_after_return=1",
         "UBSAN_OPTIONS": "halt_on_error=1:abort_on_error=1:print_stacktrace=1"}, without=["style", "machine", "vm"]),
]


@dataclasses.dataclass
class Case:
    """One counted result. outcome: passed, failed, skipped. own: the last lines that were said before it, of one that failed."""
    name: str
    outcome: str
    reason: str = ""
    own: list = dataclasses.field(default_factory=list)


class Skips:
    """The list of what may be skipped (allow) or is not run at all (exclude), each with its reason: tests/skips."""

    def __init__(self, text):
        self.rules = []
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            rule, separator, reason = line.partition(" -- ")
            words = rule.split(None, 2)
            if not separator or not reason.strip() or len(words) != 3 or words[0] not in ("allow", "exclude"):
                raise ValueError(f"tests/skips:{number}: expected 'allow|exclude RUN PATTERN -- REASON'")
            self.rules.append((words[0], words[1], words[2].strip(), reason.strip()))

    def find(self, kind, run, name):
        """The reason of the first rule of this kind that covers name in this run, or None."""
        for rule_kind, rule_run, pattern, reason in self.rules:
            if rule_kind == kind and fnmatch.fnmatchcase(run, rule_run) and fnmatch.fnmatchcase(name, pattern):
                return reason
        return None


def tap_cases(test, text):
    """The cases that a TAP stream reports, or None when it is no TAP."""
    cases, plan, said = [], None, []
    for line in text.splitlines():
        if match := TAP_PLAN.match(line):
            plan = int(match[1])
            if plan == 0:
                return [Case(test, "skipped", match[2] or "no reason given")]
        elif match := TAP_RESULT.match(line):
            title, outcome, reason = match[2], "failed" if match[1] else "passed", ""
            if directive := TAP_DIRECTIVE.match(title):
                # A known failure has to be on the list like everything that is not really tested.
                title, outcome, reason = directive[1], "skipped", f"{directive[2].upper()} {directive[3]}".strip()
            cases.append(Case(f"{test}/{title}", outcome, reason, said[-OWN_LINES:]))
            said = []
        elif line.strip():
            said.append(line.removeprefix("# "))
    if plan is None and not cases:
        return None
    last = f"; the last one: {cases[-1].name.removeprefix(f'{test}/')}" if cases else ""
    if plan is None:
        cases.append(Case(test, "failed", f"ended without a plan{last}", said[-OWN_LINES:]))
    elif plan != len(cases):
        cases.append(Case(test, "failed", f"planned {plan} cases, reported {len(cases)}{last}", said[-OWN_LINES:]))
    return cases


def cases_of(test, entry):
    """The cases of one line of testlog.json, which is about test (suite/test)."""
    result, errors = entry["result"], [line for line in (entry.get("stderr") or "").splitlines() if line.strip()]
    cases = tap_cases(test, entry.get("stdout") or "")
    if cases is None:
        outcome = {"OK": "passed", "SKIP": "skipped"}.get(result, "failed")
        return [Case(test, outcome, "" if outcome == "passed" else result, errors[-OWN_LINES:])]
    if result not in ("OK", "SKIP") and not any(c.outcome == "failed" for c in cases):
        cases.append(Case(test, "failed", f"{result}, exit status {entry.get('returncode')}"))
    elif result == "TIMEOUT":
        cases[-1].reason = f"{result}, {cases[-1].reason}".rstrip(", ")
    for case in cases:
        case.own = case.own or errors[-OWN_LINES:]
    return cases


def judge(run, cases, skips):
    """Turns every skip that is not on the list into a failure."""
    for case in cases:
        if case.outcome == "skipped" and skips.find("allow", run, case.name) is None:
            case.outcome, case.reason = "failed", f"skipped, and not on tests/skips: {case.reason}"
    return cases


class Tally:
    def __init__(self):
        self.passed = self.failed = self.skipped = 0
        self.failures = []  # (what, lines of its own), for the summary

    def add(self, outcome):
        setattr(self, outcome, getattr(self, outcome) + 1)

    def fails(self, what, own=()):
        self.add("failed")
        self.failures.append((what, list(own)))

    def join(self, other):
        for outcome in ("passed", "failed", "skipped"):
            setattr(self, outcome, getattr(self, outcome) + getattr(other, outcome))
        self.failures += other.failures

    def line(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


def clipped(line):
    return line if len(line) <= OWN_WIDTH else f"{line[:OWN_WIDTH * 3 // 4]} … {line[-OWN_WIDTH // 4:]}"


def summary(failures):
    """Every failed case with the last lines of its own, in as many lines as are looked at."""
    if len(failures) > SUMMARY_LINES:
        rest = len(failures) - SUMMARY_LINES + 1
        return [f"FAILED {clipped(what)}" for what, _ in failures[:-rest]] + [f"and {rest} more"]
    each = min(OWN_LINES, SUMMARY_LINES // max(1, len(failures)) - 1)
    lines = []
    for what, own in failures:
        lines += [f"FAILED {clipped(what)}"] + [f"    {clipped(line)}" for line in own[len(own) - min(each, len(own)):]]
    return lines


def say(text):
    print(text, flush=True)


def tail(path_or_text):
    text = path_or_text.read_text(errors="replace") if isinstance(path_or_text, pathlib.Path) else path_or_text
    for line in text.splitlines()[-LOG_TAIL_LINES:]:
        say(f"    {line}")


def command(argv, environment, log, append=False):
    """Runs argv with its output in the file log."""
    with open(log, "ab" if append else "wb") as out:
        return subprocess.run(argv, env=environment, stdin=subprocess.DEVNULL, stdout=out, stderr=out, cwd=TOP).returncode == 0


def configured(directory):
    """Whether directory is a build folder of this checkout at this place: one that was moved along would build the old one."""
    try:
        places = json.loads((directory / "meson-info" / "meson-info.json").read_text())["directories"]
        return (directory / "build.ninja").exists() and places["source"] == str(TOP) and places["build"] == str(directory)
    except (OSError, ValueError, KeyError):
        return False


def build(run, directory, environment, log):
    # Options of an older checkout's run must not survive in the folder.
    if not configured(directory) or not command(["meson", "configure", str(directory), *run.options], environment, log):
        if directory.exists():
            shutil.rmtree(directory)
        if not command(["meson", "setup", str(directory), str(TOP), *run.options], environment, log):
            return False
    return command(["ninja", "-k", "0", "-C", str(directory)], environment, log, append=True)


def select(run, directory, wanted, skips):
    """The tests to run, as meson's name → suite/test, and those that are left out by the list, as suite/test → reason."""
    text = subprocess.run(["meson", "introspect", "--tests", str(directory)], check=True, capture_output=True, text=True).stdout
    chosen, excluded = {}, {}
    for test in json.loads(text):
        suites = [s.rpartition(":")[2] for s in test["suite"]]
        among = [wanted.only] if wanted.only else run.suites
        if (among is not None and not set(among) & set(suites)) or (set(run.without + wanted.without) - {wanted.only}) & set(suites):
            continue
        name = f"{'/'.join(suites)}/{test['name']}"
        reason = skips.find("exclude", run.name, name)
        if reason is not None:
            excluded[name] = reason
        elif test["name"] in chosen:
            raise ValueError(f"{name} and {chosen[test['name']]}: the names of two tests are equal, which meson's log cannot tell apart")
        else:
            chosen[test["name"]] = name
    return chosen, excluded


def report(run, cases, logs, tally):
    for case in cases:
        if case.outcome == "failed":
            what = f"{case.name}{': ' + case.reason if case.reason else ''}"
            tally.fails(f"({run}) {what}", case.own)
            say(f"  FAILED {what}")
        else:
            tally.add(case.outcome)
    failed = [c.name for c in cases if c.outcome == "failed"]
    for name, text in logs.items():
        if any(f == name or f.startswith(name + "/") for f in failed):
            say(f"  log of {name}, its end:")
            tail(text)


def make_tree(version):
    """→ whether it is there."""
    made = subprocess.run([TOP / "tests" / "machine" / "tree", version, "system"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.PIPE, text=True, errors="replace", check=False)
    if made.returncode != 0:
        say(f"  no tree of Debian {version} for machines:")
        tail(made.stderr)
    return made.returncode == 0


def prepare(chosen):
    """The trees that machines are booted from, so that no test's time goes into making them; once more where that fails, since a mirror that is
    just being renewed has other files than its lists say. What fails again, the tests tell."""
    if os.geteuid() == 0 and any(name.startswith("machine/") for name in chosen.values()):
        for version in [v for v in ("12", "13") if not make_tree(v)]:
            make_tree(version)


def test(run, directory, environment, wanted, skips, tally):
    """Runs the tests of one build and counts them. True when there were any and none failed."""
    chosen, excluded = select(run, directory, wanted, skips)
    cases = [Case(name, "skipped", reason) for name, reason in excluded.items()]
    logs = {}
    if not chosen:
        cases.append(Case(run.name, "failed", f"no tests{' in suite ' + wanted.only if wanted.only else ''}"))
    else:
        # Meson 1.0 writes one testlog.json, later ones a log for each test setup.
        for log in directory.glob("meson-logs/testlog*.json"):
            log.unlink()
        prepare(chosen)
        command(["meson", "test", "-C", str(directory), "--no-rebuild", "--setup", "everything", *chosen], environment, directory / "test.log")
        entries = [json.loads(line) for log in directory.glob("meson-logs/testlog*.json") for line in log.read_text().splitlines()]
        for entry in entries:
            # With tests of several suites in a run meson writes "project:suite / test".
            name = entry["name"].rpartition(" / ")[2]
            name = chosen.pop(name, name)
            logs[name] = (entry.get("stdout") or "") + (entry.get("stderr") or "")
            cases += judge(run.name, cases_of(name, entry), skips)
        cases += [Case(name, "failed", "is not in meson's log: it did not run") for name in chosen.values()]
        if not entries:
            tail(directory / "test.log")
    own = Tally()
    report(run.name, cases, logs, own)
    tally.join(own)
    return own


def check(runs, wanted, tally):
    """Builds and tests each run; whatever happens is in the tally."""
    skips = Skips((TOP / "tests" / "skips").read_text())
    BUILDS.mkdir(exist_ok=True)
    if not os.access(BUILDS, os.W_OK):
        raise OSError(f"cannot write to {BUILDS}; remove it, or run as its owner (uid {BUILDS.stat().st_uid})")
    for run in runs:
        directory, log = BUILDS / run.name, BUILDS / f"{run.name}.log"
        environment = {**os.environ, **run.environment}
        started = time.monotonic()
        say(f"{run.name}: building")
        if not build(run, directory, environment, log):
            say(f"  FAILED {run.name}: the build; the end of {log}, and its errors:")
            tail(log)
            errors = [line for line in log.read_text(errors="replace").splitlines() if re.search(r"\berror:|\bERROR\b", line)]
            tail("\n".join(errors))
            tally.fails(f"{run.name}: the build", errors[:OWN_LINES])
            continue
        built = time.monotonic()
        say(f"{run.name}: built in {built - started:.0f} s, testing")
        own = test(run, directory, environment, wanted, skips, tally)
        say(f"{run.name}: {own.line()}, in {time.monotonic() - built:.0f} s")


def main():
    parser = argparse.ArgumentParser(prog="tools/check", allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help="gcc only")
    parser.add_argument("--only", metavar="SUITE", help="gcc only, one suite")
    parser.add_argument("--without", metavar="SUITE", help="all suites but one", action="append", default=[])
    arguments = parser.parse_args()

    tally = Tally()
    try:
        check(RUNS[:1] if arguments.quick or arguments.only else RUNS, arguments, tally)
    except (OSError, ValueError, subprocess.CalledProcessError) as e:
        tally.fails(f"check: {e}")
        say(f"check: {e}")
    if tally.failures:
        say("what failed:")
        for line in summary(tally.failures):
            say(line)
    say(tally.line())
    return 0 if tally.passed and not tally.failed else 1


if __name__ == "__main__":
    sys.exit(main())
