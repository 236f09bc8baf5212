#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Whatever tells of the command's verbs, options and configuration a second time says the same as their tables."""

import json
import re
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
