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
