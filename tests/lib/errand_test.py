# SPDX-License-Identifier: LGPL-2.1-or-later
"""Tests in TAP, with Python's standard library alone.

    from errand_test import case, run
    @case("C045 T020: what is shown")
    def _(t):
        t.equal(1 + 1, 2)
    run()

A test's name begins with the ids that it shows. A failed check ends its test, not the file; a test that takes longer than its time-out
fails. The time-out is a bound for a hung program and never a means to order events: tests wait for what they want to see.
"""

import contextlib
import os
import re
import shutil
import signal
import sys
import tempfile
import traceback

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TIMEOUT = 40  # seconds: a machine that is busy with other suites


class Failure(AssertionError):
    pass


class Timeout(Failure):
    pass


class Skip(Exception):
    """Every reason for a skip must be on the list of tools/check."""


_cases = []


def case(name, timeout=TIMEOUT):
    def add(function):
        _cases.append((name, function, timeout))
        return function
    return add


def program(name):
    """The path of a program under test: $ERRAND_BUILD/… as the build lays it out."""
    build = os.environ.get("ERRAND_BUILD")
    if not build:
        raise Failure("ERRAND_BUILD, the build directory, is not set")
    places = {"errand-broker": "src/broker", "bailey": "src/bailey", "errand-launch": "src/launch", "errand-shim": "src/shim",
              "errandd": "src/errandd", "errand-connect": "src/connect", "errand": "src/errand", "test-upstream": "tests/peers", "test-activate": "tests/peers", "without": "tests/sandbox",
              "fake-manager": "tests/session", "test-fuzz-bus": "tests/bus", "test-polkit-errandd": "tests/bus"}
    path = os.path.join(build, places[name], name)
    if not os.access(path, os.X_OK):
        raise Failure(f"{path} is not there: build first")
    return path


def source(*parts):
    return os.path.join(SOURCE, *parts)


class Test:
    """What a test function gets: checks, a private directory, and things that are undone at its end."""

    def __init__(self, name):
        self.name = name
        self.stack = contextlib.ExitStack()
        self.logs = []  # (title, function → text): shown when the test fails
        self.directory = self.stack.enter_context(temporary_directory())

    def enter(self, manager):
        return self.stack.enter_context(manager)

    def defer(self, function, *arguments):
        self.stack.callback(function, *arguments)

    def log(self, title, function):
        self.logs.append((title, function))

    def path(self, *parts):
        return os.path.join(self.directory, *parts)

    def note(self, text):
        for line in str(text).splitlines():
            print(f"# {line}")

    def fail(self, text):
        raise Failure(text)

    def check(self, condition, text="the condition does not hold"):
        if not condition:
            raise Failure(text() if callable(text) else text)

    def equal(self, actual, expected, what="value"):
        if actual != expected:
            raise Failure(f"{what} is {actual!r}, not {expected!r}")

    def contains(self, text, part, what="text"):
        if part not in text:
            raise Failure(f"{what} lacks {part!r}: {text!r}")

    def lacks(self, text, part, what="text"):
        if part in text:
            raise Failure(f"{what} holds {part!r}: {text!r}")

    def matches(self, text, pattern, what="text"):
        if not re.search(pattern, text):
            raise Failure(f"{what} does not match {pattern!r}: {text!r}")

    def each(self, rows, check):
        """check(row) for every row of a table; says all the rows that failed, not the first only."""
        problems = []
        for row in rows:
            try:
                check(row)
            except Timeout:
                raise
            except (Failure, OSError, ValueError) as error:
                problems.append(f"{row!r}: {type(error).__name__}: {error}")
        if problems:
            raise Failure("\n".join(problems))

    def note_logs(self):
        for title, text in self.logs:
            self.note(f"--- {title}")
            with contextlib.suppress(Exception):
                self.note(text()[-6000:])

    def skip(self, reason):
        raise Skip(reason)


@contextlib.contextmanager
def temporary_directory(prefix="errand-test-", where=None):
    # Not in the build tree: a socket's path may have 107 bytes only, and another account must be able to reach it.
    directory = tempfile.mkdtemp(prefix=prefix, dir=where)
    os.chmod(directory, 0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _on_alarm(signum, frame):
    raise Timeout("the time-out has passed")


def _run_one(number, name, function, timeout):
    test = Test(name)
    result, problem = "ok", None
    signal.signal(signal.SIGALRM, _on_alarm)
    signal.alarm(timeout)
    try:
        try:
            function(test)
        finally:
            signal.alarm(0)
    except Skip as skip:
        print(f"ok {number} - {name} # SKIP {skip}", flush=True)
        test.stack.close()
        return True
    except (Exception, KeyboardInterrupt) as error:  # pylint: disable=broad-except
        result, problem = "not ok", error
        test.note_logs()
        where = traceback.format_exc() if not isinstance(error, Failure) else "".join(
            f"{f.filename}:{f.lineno}: {f.line}\n" for f in traceback.extract_tb(error.__traceback__) if "/tests/" in f.filename)
        test.note(where)
        test.note(error)
    try:
        test.stack.close()
    except Exception as error:  # pylint: disable=broad-except
        if problem is None:
            test.note_logs()  # what ended badly is not known before its end
        result, problem = "not ok", error
        test.note(traceback.format_exc())
    print(f"{result} {number} - {name}", flush=True)
    return problem is None


def run():
    """Runs every case of the file, or those whose name holds one of the arguments, and exits."""
    chosen = [c for c in _cases if len(sys.argv) < 2 or any(word in c[0] for word in sys.argv[1:])]
    print(f"1..{len(chosen)}", flush=True)
    good = True
    for number, (name, function, timeout) in enumerate(chosen, 1):
        good = _run_one(number, name, function, timeout) and good
    sys.exit(0 if good else 1)
