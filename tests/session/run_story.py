# SPDX-License-Identifier: LGPL-2.1-or-later
"""The main job as its user meets it: `errand run`, the grant by `errand grant` from a second process, the receipts by `errand receipts`."""

import contextlib
import os
import re
import secrets

import errand_test
from errand_run import Errand
from errand_test import Failure
from first_run import STANDIN, STEPS, FirstRun, _results


class RunStory(FirstRun):
    """FirstRun with errand in place of bailey and a broker of the test's own."""

    def start_broker(self, key=None, allow=(), **sandbox):
        """No broker is started: errandd will. What it is told of its provider, and whom a session may reach."""
        self.key = key or "sk-real-" + secrets.token_hex(24)
        provider = {"kind": "anthropic", "baseUrl": "https://provider.example", "caFile": errand_test.source("tests/peers/ca/ca.pem"),
                    "credential": self.key, "credentialName": "ANTHROPIC_API_KEY"}
        config = {"agent": {"providers": {"anthropic": provider}},
                  "sandbox": {"gracePeriodMs": 5000, "egress": {"allow": list(allow)}, **sandbox}}
        if self.errand:
            self.errand.configure(config)
        else:
            self.errand = Errand(self.t, config, project=self.project)
        return self

    errand = None  # until its configuration is known

    def bailey(self, *_, **__):
        raise NotImplementedError("the story is told through errand")

    def start(self, *steps, options=(), **more):
        """Starts errand run with the agent; → Popen with pipes."""
        caller = {"HOME": self.owner_home, "OWNER_SECRET": "not for the agent"}
        return self.errand.start(self.agent, *steps, options=("--id", self.session, "--provider", "anthropic", *options), variables=caller, **more)

    def start_story(self):
        return self.start(*STEPS)

    def grant(self, host):
        # A second process, which knows the session's id and nothing else.
        self.errand.good("grant", self.session, host, "once")
        return f"errand grant {self.session} {host} once"

    def inside(self, *steps, grant=False, **options):
        """Runs the agent's steps by errand run to the end; → ({step: (ok, saw)}, exit status, stderr)."""
        process = self.start(*steps, **options)
        lines = []
        for line in process.stdout:
            lines.append(line)
            if '"waiting"' in line:
                if grant:
                    self.grant("denied.example")
                process.stdin.write("go on\n")
                process.stdin.flush()
        return _results(lines), process.wait(), process.stderr.read()

    def log(self):
        return self.errand.log()

    # ---- the outside's view ----

    def check_environment(self):
        e = self.environment or {}
        match = re.match(r"^http://errand:(errand-session-[0-9a-f]{64})@127\.0\.0\.1:([0-9]+)$", e.get("http_proxy", ""))
        if not match:
            raise Failure(f"http_proxy inside is {e.get('http_proxy')!r}")
        self.credential, port = match.groups()
        self.stand_in = e.get("ANTHROPIC_API_KEY", "")
        if not re.match(STANDIN, self.stand_in) or self.stand_in == self.credential:
            raise Failure("the stand-in is not errand-session- and 64 hex digits of its own")
        route = f"http://127.0.0.1:{port}/provider/anthropic"
        wanted = {"ERRAND_PROVIDER_ANTHROPIC_URL": route, "ANTHROPIC_BASE_URL": route, "BAILEY_SANDBOX_NET": "broker"}
        for name in ("http_proxy", "https_proxy", "all_proxy"):
            wanted[name] = wanted[name.upper()] = e["http_proxy"]
        wanted["no_proxy"] = wanted["NO_PROXY"] = "127.0.0.1,localhost,::1"
        for name, value in wanted.items():
            if e.get(name) != value:
                raise Failure(f"{name} inside is {e.get(name)!r}")
        if "OWNER_SECRET" in e:
            raise Failure("a variable of the caller has crossed")

    def check_provider(self):
        seen = self.provider_host.everything_received()
        if self.key.encode() not in seen:
            raise Failure("the provider did not see the key")
        for secret in (self.stand_in, self.credential):
            if secret.encode() in seen:
                raise Failure("the provider saw a stand-in or the session's credential")

    def check_grants(self):
        """What was granted for once is used up."""
        left = self.errand.json("grants", self.session)
        if left:
            raise Failure(f"grants that are left: {left}")

    def check_receipts(self, expected=(("POST", "/sse/3", 200, "completed"), ("POST", "/echo", 200, "completed"))):
        """errand receipts lists exactly the provider calls; → them, the oldest first."""
        receipts = self.errand.json("receipts", self.session)
        found = tuple((r["method"], r["path"], r["status"], r["outcome"]) for r in receipts)
        if found != tuple(expected):
            raise Failure(f"the receipts are {found}, not {tuple(expected)}")
        return receipts

    def check_no_key(self):
        """The key is in nothing that came out of the session, and in no file that errandd keeps; the secrets of the session in no file either."""
        for name, text in (("the agent's output", "".join(self.lines)), ("errand's output", self.stderr)):
            if self.key in text:
                raise Failure(f"the key is in {name}")
        n_files = 0
        for directory, _, names in os.walk(self.errand.state):
            for path in (os.path.join(directory, name) for name in names):
                if os.path.isfile(path):
                    n_files += 1
                    data = b""
                    with contextlib.suppress(FileNotFoundError), open(path, "rb") as f:  # one that is put in another's place
                        data = f.read()
                    for secret in (self.key, self.stand_in, self.credential):
                        if secret.encode() in data:
                            raise Failure(f"a secret is in {path}")
        if n_files < 4:
            raise Failure(f"{self.errand.state} has {n_files} files: there was nothing to look at")

    def check_closing_line(self):
        """errand's own exit status, and what it knows of the session afterwards."""
        if self.status != 0:
            raise Failure(f"errand run has ended with {self.status}: {self.stderr!r}")
        shown = self.errand.json("session show", self.session)
        if (shown.get("state"), shown.get("exitReason"), shown.get("exitStatus")) != ("stopped", "exited", 0):
            raise Failure(f"the session is shown as {shown}")
