#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""org.errand1(5) against dbus/*.xml and the tables in errandd: nothing that is there is missing in it, and nothing else is in it."""

import os
import re
import subprocess
import sys
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from errand_test import case, run, source  # noqa: E402

INTERFACES = [f"org.errand1.{name}" for name in ("Manager", "Session", "Grant", "Receipt")]
LOG_CONTROL = "org.freedesktop.LogControl1"

with open(source("man", "org.errand1.5"), encoding="utf-8") as f:
    PAGE = f.read()
PRINTED = [line.split() for line in subprocess.run([os.path.join(os.environ["ERRAND_BUILD"], "tests", "bus", "print-api")], capture_output=True, text=True,
                                                   check=True).stdout.splitlines()]


def table(kind):
    return [tuple(words[1:]) for words in PRINTED if words[0] == kind]


def section(name):
    """Its items: the words of each one's first line, and the text after it."""
    text = re.split(rf"^\.Ss {re.escape(name)}\n", PAGE, flags=re.M)[1]
    text = re.split(r"^\.S[sh] ", text, maxsplit=1, flags=re.M)[0]
    return [(item.partition("\n")[0], item.partition("\n")[2]) for item in re.split(r"^\.It ", text, flags=re.M)[1:]], text


def arguments(words):
    """"s host , s duration" → ((type, name), …)"""
    return tuple(tuple(one.split()) for one in words.split(" , ")) if words else ()


def calls(interface):
    """Methods and signals of the page: name → arguments in, arguments out."""
    found = {}
    for line, _ in section(interface)[0]:
        if match := re.fullmatch(r"Ic (\w+)(?: Ar ([^\\]*?))?(?: No \\\(-> Ar (.*))?", line):
            found[match[1]] = (arguments(match[2]), arguments(match[3]))
    return found


def properties(interface):
    return {m[1]: m[2] for m in (re.fullmatch(r"Va (\w+) Pq Ar (\S+)", line) for line, _ in section(interface)[0]) if m}


def introspected(interface):
    return xml.etree.ElementTree.parse(source("dbus", f"{interface}.xml")).getroot().find("interface")


@case("D001 D002: every method and signal, with its arguments, their types and their order")
def _(t):
    for interface in INTERFACES:
        expected = {}
        for member in introspected(interface):
            if member.tag in ("method", "signal"):
                args = {"in": [], "out": []}
                for a in member.iter("arg"):
                    args[a.get("direction", "in")].append((a.get("type"), a.get("name")))
                expected[member.get("name")] = (tuple(args["in"]), tuple(args["out"]))
        t.equal(calls(interface), expected, interface)


@case("D001 D002: every property, with its type")
def _(t):
    for interface in INTERFACES:
        t.equal(properties(interface), {p.get("name"): p.get("type") for p in introspected(interface).iter("property")}, interface)
    t.equal(properties(LOG_CONTROL), {"LogLevel": "s", "LogTarget": "s", "SyslogIdentifier": "s"}, LOG_CONTROL)


def permission(action):
    """As the page writes it."""
    return re.sub(r"^org\.errand1\.|-(own|session)$", "", action)


@case("C197: every member says which of polkit's actions it needs, as the gate's table does")
def _(t):
    commands = {re.match(r"Li (!\w+)", line)[1]: text for line, text in section("Commands of Say")[0]}
    t.equal(sorted(commands), sorted(member for kind, _, member, _ in table("action") if kind == "said"), "commands")
    for kind, interface, member, action in table("action"):
        if kind == "said":
            t.equal(re.findall(r"^\.Em (\S+)", commands[member], re.M), [permission(action)], member)
            continue
        if interface not in (*INTERFACES, LOG_CONTROL):
            continue
        items, whole = section(interface)
        text = next(text for line, text in items if re.match(rf"(Ic|Va) {member}\b", line))
        # Where all properties need the same it is said once, above them.
        said = re.findall(r"^\.Em (\S+)", text, re.M) or re.findall(r"Properties, for which\n\.Em (\S+)", whole)
        t.check(permission(action) in said, f"{kind} {interface}.{member}: {said}, not {permission(action)}")
        if kind == "method":
            t.equal(said[0], permission(action), f"{interface}.{member}")


@case("D001: every option of CreateSession and filter of ListReceipts, with its type")
def _(t):
    for name, method in (("Options of CreateSession", "CreateSession"), ("Filters of ListReceipts", "ListReceipts")):
        found = [re.fullmatch(r"Cm (\w+) Pq Ar (\S+)", line).groups() for line, _ in section(name)[0]]
        t.equal(found, [(option, kind) for of, option, kind in table("option") if of == method], name)


@case("D001: every error, with its number, and every state of a session")
def _(t):
    found = [re.fullmatch(r"Er (\w+) Pq (\w+)", line).groups() for line, _ in section("Errors")[0]]
    t.equal([(f"org.errand1.Error.{name}", number) for name, number in found], table("error"), "errors")
    state = next(text for line, text in section("org.errand1.Session")[0] if line.startswith("Va State"))
    t.equal(re.findall(r"[a-z]+", state.replace("\nor\n", " ").replace(".Li", "")), [s for (s,) in table("state")], "states")


@case("D001: everything that Describe tells")
def _(t):
    with open(source("src", "errandd", "session-bus.c"), encoding="utf-8") as f:
        code = f.read()
    code = code[code.index("static int append_identity"):code.index("static int method_describe")]
    told = set(re.findall(r'"([A-Z]\w+)"', code))
    found = [name for line, _ in section("What Describe tells")[0] for name in line.removeprefix("Li ").split(" , ")]
    t.equal(sorted(found), sorted(told), "names")


@case("D005: the example's calls have the types that the methods have")
def _(t):
    example = PAGE.split(".Sh EXAMPLES")[1].split(".Ed")[0].replace("\\e\n", " ")
    inputs = {(interface, name): "".join(kind for kind, _ in args[0]) for interface in INTERFACES for name, args in calls(interface).items()}
    found = re.findall(r"busctl call (?:-- )?org\.errand1 \S+\s+(\S+)\s+(\w+)(?: +'?([a-z{}()]+)'?)?", example)
    t.check(len(found) >= 5, f"only {len(found)} calls")
    for interface, member, signature in found:
        t.equal(signature, inputs[interface, member], member)


run()
