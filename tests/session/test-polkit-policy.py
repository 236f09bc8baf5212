# SPDX-License-Identifier: LGPL-2.1-or-later
"""polkit/org.errand1.policy has exactly the actions that errandd asks for, and their defaults are those that were decided."""

import os
import re
import sys
import xml.etree.ElementTree as tree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "lib"))

import errand_test  # noqa: E402
from errand_test import case, run  # noqa: E402

ACTIONS = {a.get("id"): a for a in tree.parse(errand_test.source("polkit/org.errand1.policy")).getroot().iter("action")}


@case("C197: each action that errandd asks for is there, and no other")
def _(t):
    with open(errand_test.source("src/errandd/action.c"), encoding="utf-8") as f:
        asked = set(re.findall(r'"(org\.errand1\.[a-z]+-[a-z]+)"', f.read()))
    t.check(len(asked) > 10, "found none in action.c")
    t.equal(set(ACTIONS), asked, "actions")


@case("C197: only what is one's own is free; what concerns others is asked for each time")
def _(t):
    def check(name):
        own, others = name.endswith("-own"), name.endswith("-others")
        wanted = "yes" if own else "auth_admin" if others else "auth_admin_keep"
        defaults = {d.tag: d.text for d in ACTIONS[name].find("defaults")}
        t.equal(defaults, {"allow_any": wanted, "allow_inactive": wanted, "allow_active": wanted}, name)

    t.each(sorted(ACTIONS), check)


@case("each action is owned by errandd's account and says what is asked for")
def _(t):
    def check(name):
        action = ACTIONS[name]
        t.equal({a.get("key"): a.text for a in action.iter("annotate")}, {"org.freedesktop.policykit.owner": "unix-user:errand"}, name)
        t.check(action.find("description").text and action.find("message").text.startswith("Authentication is required to "), name)
        details = re.findall(r"\$\(([a-z]+)\)", action.find("message").text)
        t.check(set(details) <= {"session", "host", "duration", "project"}, f"{name}: {details}")

    t.each(sorted(ACTIONS), check)


run()
