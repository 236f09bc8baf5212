#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whatever tells of the command's verbs, options and configuration a second time says the same as their tables."""

import json
import os
import re
import shutil
import subprocess

from errand_test import case, program, run, source

COMPLETION = source("shell-completions", "bash", "errand")


def table():
    return json.loads(subprocess.run([program("errand"), "--print-verbs"], check=True, capture_output=True).stdout)


def text(*parts):
    with open(source(*parts), encoding="utf-8") as f:
        return f.read()


@case("D T: errand(1) names every verb and every option, with its operands, and no other")
def _(t):
    page = text("man", "errand.1")
    described = set(re.findall(r"^\.It Cm ((?:session |threads |config )?[a-z]+)", page, re.M))
    t.equal(described, {v["verb"] for v in table()}, "the verbs of the page")
    options = {(o["name"], o["brief"], o["value"]) for v in table() for o in v["options"]}
    items = {}
    for line in re.findall(r"^\.It (.*Fl Fl .*)$", page, re.M):
        words = line.split(" , ") if " , " in line else [line]
        brief = None
        for word in words:
            if match := re.fullmatch(r"Fl ([a-zA-Z])", word):
                brief = "-" + match[1]
            else:
                match = re.fullmatch(r"Fl Fl ([a-z-]+)(?: Ar (\S+))?", word)
                t.check(match, f"not understood: {word}")
                items["--" + match[1]] = (brief, match[2])
    t.equal({(name, *rest) for name, rest in items.items()}, options, "the options of the page")


@case("D T: errand(1) has every exit code, and every variable of the environment that is looked at")
def _(t):
    page = text("man", "errand.1")
    codes = set(re.findall(r"EXIT_[A-Z_]+ = ([0-9]+)", text("src", "errand", "exit.h")))
    t.equal(set(re.findall(r"^\.It ([0-9]+)$", page, re.M)), codes, "the exit codes")
    sources = "".join(text("src", "errand", name) for name in os.listdir(source("src", "errand")) if name.endswith(".c"))
    looked_at = set(re.findall(r'\b(?:secure_)?(?:getenv|setenv)\("([A-Z_]+)"', sources)) - {"TERM", "PATH", "HOME"}
    named = set(re.findall(r"[A-Z_]{4,}", page.split(".Sh ENVIRONMENT")[1].split(".Sh FILES")[0]))
    t.equal(looked_at - named, set(), "variables that are looked at and not named")


@case("T: the helps of every program fit a terminal of 80 columns")
def _(t):
    def check(name):
        done = subprocess.run([program(name), "--help"], check=True, capture_output=True, text=True)
        t.equal([line for line in done.stdout.splitlines() if len(line) > 80], [], "long lines")
    t.each(["errand", "errandd", "errand-launch", "errand-shim", "errand-broker", "errand-connect"], check)


@case("D012: errandd(8) names every option of errandd, and every exit code, and no other")
def _(t):
    helped = subprocess.run([program("errandd"), "--help"], check=True, capture_output=True, text=True).stdout
    page = text("man", "errandd.8")
    listed = set(re.findall(r"--([a-z-]+)", "".join(line for line in helped.splitlines(True) if re.match(r"  --|errandd ", line))))
    t.equal(set(re.findall(r"Fl Fl ([a-z-]+)", page)), listed, "options")
    codes = re.search(r"Exit codes: (.*)", helped, re.S)[1]
    t.equal(re.findall(r"^\.It ([0-9])$", page, re.M), re.findall(r"([0-9]) [a-z]", codes), "exit codes")


@case("D T: bash completes the verbs and options of the table, and no other")
def _(t):
    listed = dict(re.findall(r'^ +\[([a-z-]+)\]="([^"]*)"$', text("shell-completions", "bash", "errand"), re.M))
    t.equal({verb: options.split() for verb, options in listed.items()},
            {v["verb"].replace(" ", "-"): [o["name"] for o in v["options"]] for v in table()}, "what is completed")


@case("D T: zsh completes the verbs and options of the table, with their words, and no other")
def _(t):
    body = text("shell-completions", "zsh", "_errand")

    def plain(words):
        return words.replace("'\\''", "'").replace("\\:", ":").replace("\\[", "[").replace("\\]", "]")
    found = {}
    for verb, options in re.findall(r"^ +'?([a-z]+(?: [a-z]+)?)'?\)\n +options=\(\n(.*?)^ +\)$", body, re.M | re.S):
        found[verb] = [(name, plain(words), plain(value) or None) for name, words, value in
                       re.findall(r"^ +'(?:\([^)]*\))?\*?(--?[a-z-]+|-[a-zA-Z])[=+]?\[((?:[^\]\\]|\\.)*)\](?::((?:[^':\\]|\\.)*):.*)?'$", options, re.M)]
    t.equal(found, {v["verb"]: [(name, o["help"], o["value"]) for o in v["options"] for name in (o["name"], o["brief"]) if name and o["name"] != "--help"]
                    for v in table()}, "what is completed")
    if shutil.which("zsh"):
        t.equal(subprocess.run(["zsh", "-n", source("shell-completions", "zsh", "_errand")], check=False).returncode, 0, "syntax")


@case("D T: fish completes the verbs and options of the table, with their words, and no other")
def _(t):
    found = {}
    for verb, brief, name, value, words in re.findall(
            r"^complete -c errand -n '__errand_verb ([a-z ]+)'(?: -s (.))? -l ([a-z-]+)( -[rx].*)? -d '((?:[^'\\]|\\.)*)'$",
            text("shell-completions", "fish", "errand.fish"), re.M):
        found.setdefault(verb, []).append(("--" + name, "-" + brief if brief else None, words.replace("\\'", "'"), bool(value)))
    t.equal(found, {v["verb"]: [(o["name"], o["brief"], o["help"], bool(o["value"])) for o in v["options"]] for v in table()}, "what is completed")
    if shutil.which("fish"):
        t.equal(subprocess.run(["fish", "-n", source("shell-completions", "fish", "errand.fish")], check=False).returncode, 0, "syntax")


@case("D T: the three shells have each verb's summary, and the ids of sessions where the verb wants them")
def _(t):
    zsh, fish = text("shell-completions", "zsh", "_errand"), text("shell-completions", "fish", "errand.fish")

    def check(verb):
        words = verb["summary"][0].lower() + verb["summary"][1:]
        last = verb["verb"].split()[-1]
        t.contains(zsh, f"'{last}:{words}'".replace("session's", "session'\\''s"), "zsh")
        t.matches(fish, rf"-a {last} -d '{re.escape(words)}'".replace("session's", "session\\\\'s"), "fish")
        ids = "ID" in verb["operands"]
        rest = re.search(rf"^ +'?{verb['verb']}'?\)\n +options=\(\n.*?^ +\)\n +rest=\((.*?)\)$", zsh, re.M | re.S)[1]
        t.equal("_errand_sessions" in rest, ids, "zsh, sessions")
        t.equal(bool(re.search(rf"^complete -c errand -n '__errand_verb {verb['verb']}.* -a '\(__errand_sessions\)'$", fish, re.M)), ids, "fish, sessions")
    t.each(table(), check)


@case("D T: options that want a value have one to be completed, or are known to have none")
def _(t):
    known = re.search(r"_errand_value\(\) \{(.*?)\n\}", text("shell-completions", "bash", "errand"), re.S)[1]
    named = set(" | ".join(re.findall(r"^ +(-[a-zA-Z| -]*)\)", known, re.M)).split(" | "))
    wanted = {name for v in table() for o in v["options"] if o["value"] for name in (o["name"], o["brief"]) if name}
    t.equal(named, wanted, "options with values")


@case("T: completion of a line, word by word")
def _(t):
    def complete(*words):
        script = ('compopt() { :; }; source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _errand; '
                  'printf "%s\\n" "${COMPREPLY[@]}"')
        done = subprocess.run(["bash", "-c", script, "bash", COMPLETION, *words], check=True, capture_output=True, text=True)
        t.equal(done.stderr, "", "standard error")
        return done.stdout.split()
    rows = [(("errand", "se"), ["session"]), (("errand", "session", "st"), ["start", "stop"]), (("errand", "threads", ""), ["list", "rm", "show"]),
            (("errand", "run", "--proj"), ["--project"]), (("errand", "run", "--network", "n"), ["none"]),
            (("errand", "grant", "x", "h.example", "al"), ["always"]), (("errand", "session", "list", "--js"), ["--json"]),
            (("errand", "session", "kill", "-s", "SIGKI"), ["SIGKILL"]), (("errand", "session", "stop", "--json"), [])]
    t.each(rows, lambda row: t.equal(sorted(complete(*row[0])), row[1], "completions"))


@case("D T: errand.json(5) has every key of the schema, with its words and its default, and no other")
def _(t):
    schema = json.loads(text("data", "errand.schema.json"))
    keys = {}

    def walk(properties, prefix):
        for name, value in properties.items():
            if name == "$schema":
                continue
            keys[prefix + name] = value
            walk(value.get("properties", {}), f"{prefix}{name}.")
            inner = value.get("additionalProperties")
            if isinstance(inner, dict):
                walk(inner.get("properties", {}), f"{prefix}{name}.ID.")
    walk(schema["properties"], "")
    page = text("man", "errand.json.5").split(".Ss Keys")[1].split(".Sh EXAMPLES")[0]
    items = {}
    for item in page.split("\n.It Ic ")[1:]:
        name, _, rest = item.partition("\n")
        items[name] = " ".join(rest.split())
    t.equal(list(items), list(keys), "the keys of the page")

    def check(name):
        said, key = items[name].replace("\\&", ""), keys[name]
        t.contains(said, key["description"], "what is said")
        t.contains(said, type_of(name, key), "the type and its bounds")
        default = key.get("default")
        if isinstance(default, (str, bool, int)):
            t.contains(said, f".Li {default if isinstance(default, str) else json.dumps(default)} .", "the default")
        if "enum" in key:
            t.contains(said, f"One of .Cm {' , '.join(key['enum'])} .", "the words")
    t.each(list(keys), check)
    # A key that may do nothing says so, and no other does.
    inert = set(re.findall(r'^        {"([a-zA-Z.]+)", [a-z_]+},', text("src", "errandd", "config-inert.c"), re.M))
    t.equal({name for name, said in items.items() if "Does nothing" in said}, inert, "keys that may do nothing")


def size(n):
    for unit in ("", "k", "m", "g"):
        if n % 1024 or n == 0:
            return f"{n}{unit}"
        n //= 1024
    return f"{n}t"


def type_of(name, key):
    """As the page puts it."""
    kind = key.get("type")
    if isinstance(kind, list):
        return f"A size, {size(key['minimum'])} to {size(key['maximum'])}."
    if kind == "integer":
        return f"{'Milliseconds' if name.endswith('Ms') else 'A number'}, {key['minimum']} to {key['maximum']}."
    if kind == "number":
        return f"A number, {key['minimum']:g} to {key['maximum']}."
    if kind == "array":
        item = key["items"]
        what = "numbers, 1 to 65535" if item["type"] == "integer" else "absolute paths" if item.get("pattern") else "texts"
        return f"A list of at most {key['maxItems']} {what}."
    if kind == "string":
        return "An absolute path." if key.get("pattern") else f"A text of at most {key['maxLength']} bytes." if "maxLength" in key else "A text."
    if kind == "object":
        return "An object of texts." if key.get("additionalProperties") == {"type": "string"} else ""
    first = key.get("oneOf", [{}])[0]
    return {"boolean": "True, false or a list of texts.", "string": "A secret."}.get(first.get("type"), "") if kind is None else "True or false."


@case("T: the journal's catalogue explains every event of the log, with the fields that there are, in lines of 80 columns, and no other")
def _(t):
    ids = dict(re.findall(r'^#define (EVENT_[A-Z_]+) "([0-9a-f]+)"$', text("src", "shared", "event-id.h"), re.M))
    entries = re.split(r"^-- ", text("data", "errand.catalog"), flags=re.M)[1:]
    found = [entry.split("\n", 1)[0] for entry in entries]
    t.equal(sorted(found), sorted(ids.values()), "the ids")
    t.check(all(re.fullmatch("[0-9a-f]{32}", i) for i in found), "an id is none")
    fields = set(re.findall(r'\{"(ERRAND_[A-Z]+)",', text("src", "basic", "log.c")))
    sources = "".join(open(os.path.join(place, name), encoding="utf-8").read() for place, _, names in os.walk(source("src")) for name in names
                      if name.endswith(".c"))
    t.equal([name for name in ids if name not in sources], [], "events that nobody tells")
    for entry in entries:
        t.matches(entry, r"\A[0-9a-f]+\nSubject: .+\nDefined-By: errand\nDocumentation: man:.+\n\n(?s:.+)", "an entry")
        t.equal(set(re.findall("@([A-Z_]+)@", entry)) - fields, set(), "fields that there are not")
        t.check(max(map(len, entry.split("\n"))) <= 80, f"a long line: {entry}")
    page = text("man", "errandd.8").split(".Ss Journal")[1].split(".Sh FILES")[0]
    t.equal(set(re.findall(r"\b([A-Z]+_[A-Z]+)\b", page)) - {"_SYSTEMD_UNIT"}, fields | {"MESSAGE_ID"}, "the fields of errandd(8)")
    t.equal(set(re.findall(r"^\.It Li ([0-9a-f]{32})$", page, re.M)), set(ids.values()), "the events of errandd(8)")


@case("T: every verb has a help that names its options, and ends with 0")
def _(t):
    def check(verb):
        done = subprocess.run([program("errand"), *verb["verb"].split(), "--help"], capture_output=True, text=True)
        t.equal((done.returncode, done.stderr), (0, ""), verb["verb"])
        for option in verb["options"]:
            t.contains(done.stdout, option["name"], verb["verb"])
        for line in done.stdout.splitlines():
            t.check(len(line) <= 80, f"a line of {len(line)} columns")
    t.each([{"verb": "", "options": []}, *table()], check)


run()
