#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""tools/check's counting: what must not pass does not, whatever a test's log looks like."""

import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
sys.dont_write_bytecode = True
import suites  # noqa: E402

SKIPS = suites.Skips("# comment\nallow gcc a/b/known* -- a reason\nexclude sanitizers s/* -- static programs\n")


def outcomes(result, stdout, run="gcc", returncode=0):
    entry = {"name": "b", "result": result, "stdout": stdout, "returncode": returncode}
    return [c.outcome for c in suites.judge(run, suites.cases_of("a/b", entry), SKIPS)]


CASES = [
    ("each TAP case counts", outcomes("OK", "ok 1 - x\n# note\nok 2 - y\n1..2\n"), ["passed", "passed"]),
    ("a failed case is a failure", outcomes("FAIL", "1..2\nok 1 - x\nnot ok 2 - y\n"), ["passed", "failed"]),
    ("a case without number or title counts", outcomes("OK", "ok\nok\n1..2\n"), ["passed", "passed"]),
    ("a plan that was not kept is a failure", outcomes("ERROR", "1..3\nok 1\nok 2\n"), ["passed", "passed", "failed"]),
    ("no plan is a failure", outcomes("ERROR", "ok 1\n"), ["passed", "failed"]),
    ("a bad exit after good cases is a failure", outcomes("ERROR", "ok 1\n1..1\n", returncode=1), ["passed", "failed"]),
    ("a time-out is a failure", outcomes("TIMEOUT", "1..1\nok 1\n"), ["passed", "failed"]),
    ("a listed skip is a skip", outcomes("OK", "ok 1 - known thing # SKIP why\n1..1\n"), ["skipped"]),
    ("a skip that is not listed is a failure", outcomes("OK", "ok 1 - other # SKIP why\n1..1\n"), ["failed"]),
    ("a listed skip is listed for its run only", outcomes("OK", "ok 1 - known thing # SKIP why\n1..1\n", "clang"), ["failed"]),
    ("a whole test that skips itself is a failure", outcomes("SKIP", "1..0 # SKIP no kernel\n"), ["failed"]),
    ("an expected failure is a failure", outcomes("OK", "not ok 1 - x # TO" "DO later\n1..1\n"), ["failed"]),
    ("a program that is no TAP counts once", outcomes("OK", ""), ["passed"]),
    ("its skip is a failure", outcomes("SKIP", "", returncode=77), ["failed"]),
    ("its failure is a failure", outcomes("FAIL", "", returncode=1), ["failed"]),
    ("output that only looks like a case counts not", outcomes("OK", "okay\n  ok 9 - inner\nok 1 - x\n1..1\n"), ["passed"]),
    ("exclusions are by run", [SKIPS.find("exclude", "gcc", "s/t"), SKIPS.find("exclude", "sanitizers", "s/t")],
     [None, "static programs"]),
]


def failed(result, stdout, stderr="", returncode=0):
    """Of each failed case: its name, why, and its own lines."""
    entry = {"name": "b", "result": result, "stdout": stdout, "stderr": stderr, "returncode": returncode}
    return [(c.name, c.reason, c.own) for c in suites.cases_of("a/b", entry) if c.outcome == "failed"]


def shown(n_failures, n_lines=9):
    return suites.summary([(f"a/{i}", [f"line {j}" for j in range(n_lines)]) for i in range(n_failures)])


CASES += [
    ("a failed case has what was said since the one before it", failed("FAIL", "# of x\nok 1 - x\n# seen 1\n\n# not 2\nnot ok 2 - y\n# of z\nok 3 - z\n1..3\n"),
     [("a/b/y", "", ["seen 1", "not 2"])]),
    ("one that says nothing has its program's errors", failed("FAIL", "not ok 1 - x\n1..1\n", "one\ntwo\n"), [("a/b/x", "", ["one", "two"])]),
    ("a program that crashes has its errors, and after which case", failed("ERROR", "1..2\nok 1 - x\n", "SUMMARY: leaks\n", -6),
     [("a/b", "planned 2 cases, reported 1; the last one: x", ["SUMMARY: leaks"])]),
    ("one that hangs says so", failed("TIMEOUT", "1..3\nnot ok 1 - x\n# at y\n")[1:],
     [("a/b", "TIMEOUT, planned 3 cases, reported 1; the last one: x", ["at y"])]),
    ("the summary has the last lines of each, and fewer where there is much", [shown(1)[1], [len(shown(n)) for n in (1, 3, 5, 28, 29, 1000)], shown(1000)[-1]],
     ["    line 3", [7, 21, 25, 28, 28, 28], "and 973 more"]),
    ("a long line is cut in its middle", [len(line) for line in suites.summary([("x", ["y" * 1000])])], [8, 4 + suites.OWN_WIDTH + 3]),
]


def refuses(text):
    try:
        suites.Skips(text)
    except ValueError:
        return True
    return False


CASES.append(("a skip without a reason is refused", [refuses("allow gcc a/*\n"), refuses("allow gcc a/* -- \n"), refuses("gcc a -- b\n")],
              [True, True, True]))

failures = 0
for number, (title, got, expected) in enumerate(CASES, 1):
    if got != expected:
        failures += 1
        print(f"# {got}, not {expected}")
    print(f"{'ok' if got == expected else 'not ok'} {number} - {title}")
print(f"1..{len(CASES)}")
sys.exit(1 if failures else 0)
