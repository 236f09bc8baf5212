#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""polkit/org.errand1.policy against the gate's table of actions, and against what polkit reads."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from errand_test import case, run, source  # noqa: E402

DEFAULTS = ("allow_any", "allow_inactive", "allow_active")
OWNER = "org.freedesktop.policykit.owner"
# What the gate always tells of a call (src/errandd/gate-details.c); another variable would stand in the dialog as it is.
DETAILS = {
    "create": {"member", "project"}, "control": {"member", "session"}, "attach": {"member", "session"},
    "grant": {"member", "session", "host", "duration"}, "read-own": {"member"}, "read-others": {"member", "session"},
    "collect": {"member", "session"}, "manage": {"member"},
}


POLICY = source("polkit", "org.errand1.policy")


def root():
    return xml.etree.ElementTree.parse(POLICY).getroot()


def actions():
    return {a.get("id"): a for a in root().iter("action")}


@case("C197: the policy has every action of the gate's table, and no other")
def _(t):
    program = os.path.join(os.environ["ERRAND_BUILD"], "tests", "bus", "print-actions")
    table = subprocess.run([program], capture_output=True, text=True, check=True).stdout.split()
    t.equal(sorted(actions()), sorted(set(table)), "actions")
    t.equal(len(list(root().iter("action"))), len(actions()), "none is there twice")


@case("C197: every action may be asked about by errandd's account")
def _(t):
    for name, action in actions().items():
        found = [(a.get("key"), a.text) for a in action.iter("annotate")]
        t.equal(found, [(OWNER, "unix-user:errand")], name)


@case("C197: defaults are as reviewed")
def _(t):
    """An owner's are yes, also over ssh; making sessions and the daemon are kept for a while; others' are an administrator's each time."""
    for name, action in actions().items():
        expected = "yes" if name.endswith("-own") else "auth_admin" if name.endswith("-others") else "auth_admin_keep"
        t.equal([(d.tag, d.text) for d in action.find("defaults")], [(tag, expected) for tag in DEFAULTS], name)


@case("texts say what is asked, with details that are always there")
def _(t):
    for name, action in actions().items():
        kind = name.split(".")[-1]
        known = DETAILS.get(kind, DETAILS.get(kind.split("-")[0]))
        message = action.find("message").text
        t.check(action.find("description").text, f"{name} has no description")
        t.check(message.startswith("Authentication is required to ") and message.endswith("."), message)
        used = set(re.findall(r"\$\((.*?)\)", message))
        t.check(used <= known, f"{name} uses {sorted(used - known)}")
        if kind.endswith("-others"):
            t.check(used & {"session", "project"}, f"{name} does not say whose")


@case("C197: each default has its reason")
def _(t):
    """Each action begins with a comment that says why its defaults are what they are."""
    with open(POLICY, encoding="utf-8") as f:
        text = f.read()
    for name in actions():
        t.check(re.search(rf'<action id="{re.escape(name)}">\s*<!-- \S', text), f"{name} gives no reason")


@case("the policy is what polkit reads")
def _(t):
    """By a description of what polkit's reader takes; its own is in polkitd's package alone."""
    dtd = ("<!ELEMENT policyconfig (vendor?, vendor_url?, icon_name?, action+)>"
           "<!ELEMENT action (description, message, defaults, annotate*)><!ATTLIST action id ID #REQUIRED>"
           "<!ELEMENT defaults (allow_any, allow_inactive, allow_active)><!ELEMENT annotate (#PCDATA)>"
           "<!ATTLIST annotate key CDATA #REQUIRED>"
           + "".join(f"<!ELEMENT {e} (#PCDATA)>" for e in ("vendor", "vendor_url", "icon_name", "description", "message", *DEFAULTS)))
    reader, writer = os.pipe()
    os.write(writer, dtd.encode())
    os.close(writer)
    with open(POLICY, encoding="utf-8") as f:
        # Only polkitd's package brings the description that the file names, and nobody is to fetch it.
        policy = re.sub(r"<!DOCTYPE[^>]*>", "", f.read())
    r = subprocess.run(["xmllint", "--nonet", "--noout", "--dtdvalid", f"/proc/self/fd/{reader}", "-"], pass_fds=(reader,),
                       capture_output=True, text=True, input=policy)
    os.close(reader)
    t.equal((r.returncode, r.stderr), (0, ""), "xmllint")


run()
