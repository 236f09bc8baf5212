#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Shows the main job to a newcomer: story.py BUILD_DIR. Exits with 0 only when every step came out as promised.

Everything is real but the internet: the provider and the other host are servers in a network namespace of their own, so
that nothing leaves this machine.
"""

import os
import shutil
import sys
import textwrap

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path[:0] = [os.path.join(os.path.dirname(HERE), "lib"), HERE]

import errand_test  # noqa: E402
import errand_world  # noqa: E402

WIDTH = max(60, min(118, shutil.get_terminal_size((118, 24)).columns))
TITLES = {
    "environment": "The agent looks at what it was given",
    "project": "It reads its project and writes a file there",
    "provider": "It calls its model provider; the answer is streamed",
    "echo": "It asks the provider to repeat what was sent, to get at the key",
    "denied": "It tries another host",
    "granted": "Its owner grants that host, and it tries again",
    "home": "It looks for its owner's home directory",
    "shadow": "It tries to read the system's passwords",
    "processes": "It looks for other processes",
    "network": "It looks for a network of its own",
    "key": "It searches everything for the real key",
}
CHECKS = {
    "environment": ("environment", "a stand-in and a proxy credential, minted for this session; nothing of the caller's environment"),
    "project": ("project", "the file is in the project, owned by the agent's account; nothing was written elsewhere on the host"),
    "provider": ("provider", "the provider saw the real key, and neither the stand-in nor the credential"),
    "granted": ("granted", "the other host saw no connection before the grant, and one after it"),
}


def say(kind, text):
    if kind == "step":
        say.number += 1
        print(f"\n{say.number:2}. {TITLES[text]}")
        return
    prefix = {"agent": "agent   ", "owner": "owner   ", "checked": "checked ", "failed": "FAILED  "}[kind]
    print(textwrap.fill(text, WIDTH, initial_indent=f"      {prefix}| ", subsequent_indent="              | ", break_long_words=False,
                        break_on_hyphens=False), flush=True)


say.number = 0  # of the step


def introduce(first):
    print(f"""
errand: an agent that cannot leave
  project    {first.project}, the agent's (account {first.uid})
  provider   https://provider.example, key {first.key[:8]}… in errand's configuration, known to the session's broker alone
  internet   api.example.com, provider.example and denied.example, in a network namespace on this machine
  session    errand run --embedded --id {first.session} --provider anthropic -- agent {' '.join(TITLES)}
             with no host on its allowlist; errandd, errand-launch, errand-shim, errand-broker and bailey start and end with it""", flush=True)


def table(first):
    print(f"\nerrand receipts {first.session} (no key, header, body or query is kept)\n")
    print(textwrap.indent(first.errand.good("receipts", first.session), "      "), end="")


def verify(first, names):
    """Checks from the outside; → whether all hold."""
    good = True
    for name, text in names:
        try:
            getattr(first, f"check_{name}")()
        except errand_test.Failure as failure:
            say("failed", str(failure))
            good = False
        else:
            say("checked", text)
    return good


def tell(test):
    from first_run import STEPS
    from run_story import RunStory
    first = RunStory(test).prepare()
    introduce(first)
    state = {"good": True, "step": None}

    def listen(kind, text):
        # A step's checks from the outside come when the agent goes on to the next.
        if kind == "step" and state["step"] in CHECKS:
            state["good"] = verify(first, [CHECKS[state["step"]]]) and state["good"]
        if kind == "step":
            state["step"] = text
        say(kind, text)
    results = first.run(listen)
    print(textwrap.indent("\n" + first.stderr.rstrip(), "      "))
    good = state["good"] and list(results) == STEPS and all(ok for ok, _ in results.values())
    print()
    good = verify(first, [("closing_line", "errand run returned the agent's exit status, and errand session show knows how it ended"),
                          ("no_key", "the key is in no output, and in no file that errandd keeps"),
                          ("receipts", "the receipts are exactly the provider calls that the agent made")]) and good
    table(first)
    return good


def main():
    if len(sys.argv) != 2 or not os.path.isdir(sys.argv[1]):
        print("usage: story.py BUILD_DIR", file=sys.stderr)
        return 2
    os.environ["ERRAND_BUILD"] = os.path.abspath(sys.argv[1])
    errand_world.enter()
    test = errand_test.Test("the story")
    try:
        with test.stack:
            try:
                good = tell(test)
            except (errand_test.Failure, OSError) as error:
                say("failed", str(error))
                for title, log in test.logs:
                    print(f"\n--- {title}\n{log()}")
                good = False
    except KeyboardInterrupt:
        return 130
    print("\nEvery step came out as promised." if good else "\nNOT every step came out as promised: see FAILED above.")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
