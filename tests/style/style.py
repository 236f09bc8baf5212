#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Checks of the tree's text, one TAP case each: style.py TOP. style.py --bites shows that each finds a planted fault."""

import ast
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

LICENCE = "SPDX-License-Identifier: LGPL-2.1-or-later"
LINES_MAX = 600
DOCUMENT_LINES_MAX = {"README.md": 150, "docs/ARCHITECTURE.md": 200, "docs/CODING_STYLE.md": 150}

# What a folder of src/ may include beside itself. One that is not here may use basic and shared.
LAYERS = {"basic": set(), "shared": {"basic"}, "bailey": {"basic"}, "listen": {"basic"}, "connect": {"basic"},
          # Two modules that the command and the daemon must agree in: how a configuration is read, and where an embedded errandd's files are.
          "errand": {"basic", "shared", "errandd/config-check.h", "errandd/paths.h"}}
# basic is linked by bailey, whose start is on everybody's critical path: libc only.
LIBC_ONLY = {"basic", "listen", "connect"}
LIBRARY_HEADER = re.compile(r"<(systemd/|json-glib/|glib|gnutls/|sqlite3|seccomp|nftables/|toml)")
BAILEY_LIBRARY = re.compile(r"<(systemd/|json-glib/|glib|gnutls/|sqlite3|nftables/)")
# A program of its own, which bailey starts where it wants that library.
BAILEY_PROGRAM = {"src/bailey/netfilter-program.c"}

UNSAFE_CALL = re.compile(r"\b(strcat|sprintf|vsprintf|gets|system|popen|tmpnam|mktemp|atoi|atol|strtok)\s*\(")

# Spelt so that the expressions do not find themselves.
FOREIGN = [
    (re.compile(r"(?<![\w.~])/(wor[k]|workspac[e]|build[s])/"), "a path of one machine"),
    (re.compile(r"https?://(deb|registry|snapshot|security|packages|pypi|proxy)[.]"), "a host of a package registry"),
    (re.compile(r"\b(pypi[.]org|npmjs[.](org|com)|debian[.]org/debian)\b"), "a host of a package registry"),
]
PACKAGE_GROUPS = ("build", "run", "test", "check", "machine", "vm", "system", "kernel")
UNFINISHED = re.compile(r"(#|//|/\*|^\s*\*)\s*(TOD[O]|FIXM[E]|XX[X]|HAC[K])\b")


class Tree:
    """The files of a checkout, without what is built. Works without git: a release has none."""

    def __init__(self, top):
        self.top = pathlib.Path(top).resolve()
        self.files = []
        for folder, folders, names in os.walk(self.top):
            if "meson-private" in folders: # a build folder, whatever its name
                folders.clear()
                continue
            at_top = pathlib.Path(folder) == self.top
            folders[:] = [f for f in folders if f not in (".git", "__pycache__") and not (at_top and f.startswith("build"))]
            for name in names:
                path = pathlib.Path(folder, name)
                if not path.is_symlink() and name != ".git":
                    self.files.append(str(path.relative_to(self.top)))
        self.files.sort()

    def text(self, name):
        """The text of a file, "" for one that is none or not there."""
        try:
            return (self.top / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError):
            return ""

    def lines(self, name):
        return enumerate(self.text(name).splitlines(), 1)

    def named(self, *suffixes, under=""):
        return [f for f in self.files if f.endswith(suffixes) and f.startswith(under)]

    def scripts(self, interpreter):
        expression = re.compile(r"#!.*\b(" + interpreter + r")\b")
        return [f for f in self.files if "." not in os.path.basename(f) and expression.match(self.text(f).split("\n", 1)[0])]

    def c_files(self, under=""):
        return self.named(".c", ".h", ".cc", under=under)

    def shell(self):
        return self.named(".sh") + self.scripts("sh|bash|dash")

    def python(self):
        return self.named(".py") + self.scripts("python3")

    def code(self):
        return self.c_files() + self.shell() + self.python() + self.named("meson.build", ".S", ".map")


def tool(name, *arguments, cwd):
    """What a checking program printed, or None when it found nothing."""
    done = subprocess.run([name, *arguments], cwd=cwd, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    return (done.stdout + done.stderr).splitlines() or [f"exit status {done.returncode}"] if done.returncode else None


def layers(tree):
    """no layer includes one above it"""
    for name in tree.c_files("src/"):
        layer = name.split("/")[1]
        allowed = LAYERS.get(layer, {"basic", "shared"}) | {layer}
        for number, line in tree.lines(name):
            if match := re.match(r'\s*#\s*include\s+"([^"]*)"', line):
                target, slash, _ = match[1].partition("/")
                if not slash:
                    # A generated header has no folder in the tree.
                    if any(os.path.basename(f) == target for f in tree.files):
                        yield f"{name}:{number}: {match[1]} does not name its layer"
                elif target not in allowed and match[1] not in allowed:
                    yield f"{name}:{number}: {layer} includes {match[1]}"
            elif re.match(r"\s*#\s*include\s+<", line):
                if (layer in LIBC_ONLY and LIBRARY_HEADER.search(line)) or (layer == "bailey" and name not in BAILEY_PROGRAM and BAILEY_LIBRARY.search(line)):
                    yield f"{name}:{number}: {layer} includes a library: {line.strip()}"


def licences(tree):
    """every source names its licence"""
    for name in tree.code():
        if not any(LICENCE in line for _, line in list(tree.lines(name))[:2]):
            yield f"{name}: no SPDX line at its top"


def sizes(tree):
    """no source is longer than 600 lines, except the listed"""
    exceptions = {}
    for number, line in tree.lines("tests/style/large-files"):
        if line.strip() and not line.startswith("#"):
            name, separator, reason = line.partition(" -- ")
            if not separator or not reason.strip():
                yield f"tests/style/large-files:{number}: expected PATH -- REASON"
            exceptions[name.strip()] = number
    for name in tree.code():
        length = len(list(tree.lines(name)))
        if length > LINES_MAX and not exceptions.pop(name, None):
            yield f"{name}: {length} lines; split it by noun"
    for name, number in exceptions.items():
        yield f"tests/style/large-files:{number}: {name} is not longer than {LINES_MAX} lines, or not there"


def whitespace(tree):
    """spaces only, none at a line's end, a newline at the file's end"""
    for name in tree.code():
        text = tree.text(name)
        if text and not text.endswith("\n"):
            yield f"{name}: no newline at the end"
        for number, line in tree.lines(name):
            if line != line.rstrip() or "\t" in line:
                yield f"{name}:{number}: a tab, or white space at the end"


def headers(tree):
    """every header is included once only"""
    for name in tree.named(".h"):
        if "#pragma once" not in tree.text(name):
            yield f"{name}: no #pragma once"


def repeated(tree):
    """nothing is listed, included or declared twice"""
    for name in tree.named("meson.build"):
        for statement in re.split(r"\n(?=[^\s#)\]}])", tree.text(name)):
            sources = re.findall(r"'([\w./-]+\.(?:c|cc|S))'", statement)
            for source in sorted({s for s in sources if sources.count(s) > 1}):
                yield f"{name}: {source} stands in one list twice"
    for name in tree.c_files():
        wanted = re.compile(r"#include .*" + (r"|\w.*\);" if name.endswith(".h") else ""))
        lines = [line for _, line in tree.lines(name) if wanted.fullmatch(line)]
        for line in sorted({s for s in lines if lines.count(s) > 1}):
            yield f"{name}: twice: {line}"


def unsafe_calls(tree):
    """no call of a function that cannot be used safely"""
    for name in tree.c_files("src/"):
        for number, line in tree.lines(name):
            if UNSAFE_CALL.search(re.sub(r'"(\\.|[^"\\])*"|/?\*.*|//.*', "", line)):
                yield f"{name}:{number}: {line.strip()}"


def session_lines(tree):
    """a line of errandd's and the launcher's log about a session is logged with its id, by which the journal finds it"""
    for name in tree.c_files("src/errandd/") + tree.c_files("src/launch/"):
        for number, line in tree.lines(name):
            if re.search(r'\blog_(error|warning|info|debug)(_errno)?\((\w+, )?"[Ss]ession %', line):
                yield f"{name}:{number}: log_session_…(): {line.strip()}"


def documents(tree):
    """documents are short, start with the two commands, and link to what is there"""
    for name, most in DOCUMENT_LINES_MAX.items():
        if name not in tree.files:
            yield f"{name}: is missing"
        elif (length := len(list(tree.lines(name)))) > most:
            yield f"{name}: {length} lines, {most} are allowed"
    if "README.md" in tree.files:
        start = [line.strip() for _, line in list(tree.lines("README.md"))[:40]]
        for command in ("tools/try", "tools/check"):
            if not any(line.split(" #")[0].strip() == command for line in start):
                yield f"README.md: {command} is not among its first 40 lines"
    for name in tree.named(".md"):
        for number, line in tree.lines(name):
            for link in re.findall(r"\]\(([^)#\s]+)[^)]*\)", line):
                if not re.match(r"[a-z]+:", link) and not (tree.top / name).parent.joinpath(link).exists():
                    yield f"{name}:{number}: {link} is not there"


def _attackers(tree, cell):
    """What a cell of tests names → (the files, what is not there). A name without a folder is in that of the one before."""
    files, missing, folder = [], [], None
    for name in re.findall(r"`((?:tests/|test-|fuzz-)[\w/.-]+)`", cell):
        folder, path = (os.path.dirname(name), name) if "/" in name else (folder, f"{folder}/{name}")
        found = [f for f in tree.files if f == path or f.startswith(path + "/")]
        files += found
        missing += [] if found else [path]
    return files, missing


def promises(tree):
    """each promise of docs/SECURITY.md names tests that are there and show its ids"""
    attacked = False
    for number, line in tree.lines("docs/SECURITY.md"):
        cells = [c.strip() for c in re.split(r"(?<!\\)\|", line)[1:-1]]
        if not cells or set("".join(cells)) <= {"-"}:
            attacked = attacked and bool(cells)
        elif cells[-1] == "attacked by":
            attacked = True
        elif attacked:
            files, missing = _attackers(tree, cells[-1])
            for path in missing:
                yield f"docs/SECURITY.md:{number}: {path} is not there"
            if not files:
                yield f"docs/SECURITY.md:{number}: names no test"
            shown = "".join(tree.text(f) for f in files)
            for name in re.findall(r"\b[A-Z]\d{3}\b", cells[0]):
                if files and name not in shown:
                    yield f"docs/SECURITY.md:{number}: none of its tests shows {name}"


def foreign(tree):
    """no path of a machine, and no host of a registry"""
    own = re.compile(re.escape(str(tree.top)) + r"\b")
    for name in tree.files:
        for number, line in tree.lines(name):
            if own.search(line):
                yield f"{name}:{number}: the path of this checkout"
            for expression, what in FOREIGN:
                if expression.search(line):
                    yield f"{name}:{number}: {what}: {line.strip()[:100]}"


def unfinished(tree):
    """no mark of unfinished work"""
    for name in tree.code():
        for number, line in tree.lines(name):
            if UNFINISHED.search(line):
                yield f"{name}:{number}: {line.strip()}"


def shell(tree):
    """shellcheck finds nothing"""
    if tree.shell():
        yield from tool("shellcheck", "-x", *tree.shell(), cwd=tree.top) or []


def python(tree):
    """every Python file parses, and runs Debian's interpreter"""
    for name in tree.python():
        try:
            ast.parse(tree.text(name), name, feature_version=(3, 11))
        except SyntaxError as e:
            yield f"{name}:{e.lineno}: {e.msg}"
        first = tree.text(name).split("\n", 1)[0]
        if first.startswith("#!") and first != "#!/usr/bin/python3":
            yield f"{name}: {first}; it has to be /usr/bin/python3"


def manuals(tree):
    """mandoc finds nothing in the man pages"""
    pages = [f for f in tree.files if re.match(r"man/.*\.[1-9]$", f)]
    if pages:
        yield from tool("mandoc", "-Tlint", "-Wwarning", *pages, cwd=tree.top) or []


def xml(tree):
    """xmllint reads every XML file"""
    files = tree.named(".xml", ".policy", ".svg") + tree.named(".conf", under="dbus/")
    if files:
        yield from tool("xmllint", "--nonet", "--noout", *files, cwd=tree.top) or []


def packages(tree):
    """the list of packages says what each is for"""
    seen = set()
    for number, line in tree.lines("tools/packages"):
        if line.strip() and not line.startswith("#"):
            words = line.split()
            if len(words) < 3 or words[0] not in PACKAGE_GROUPS or tuple(words[:2]) in seen:
                yield f"tools/packages:{number}: expected GROUP NAME WHAT FOR, and each name once in a group"
            seen.add(tuple(words[:2]))


CHECKS = [layers, licences, sizes, whitespace, headers, repeated, unsafe_calls, session_lines, documents, promises, foreign, unfinished, shell, python,
          manuals, xml, packages]
TOOLS = {shell: "shellcheck", manuals: "mandoc", xml: "xmllint"}

# Per check, files with a fault that it has to find, and how many it has to find.
FAULTS = {
    layers: ({"src/basic/a.h": "", "src/basic/a.c": '#include "shared/b.h"\n#include "a.h"\n#include "generated.h"\n#include <json-glib/json-glib.h>\n',
              "src/bailey/a.c": '#include "shared/message.h"\n#include <gnutls/gnutls.h>\n',
              "src/broker/a.c": '#include "bailey/plan.h"\n#include "basic/fd.h"\n#include "shared/message.h"\n'}, 6),
    licences: ({"src/basic/a.c": "int a;\n", "tools/a": "#!/bin/sh\n", "meson.build": f"# {LICENCE}\n"}, 2),
    sizes: ({"src/basic/a.c": "\n" * 601, "src/basic/b.c": "\n" * 601, "src/basic/c.c": "\n" * 600,
             "tests/style/large-files": "src/basic/b.c -- a table\nsrc/basic/c.c -- gone\n"}, 2),
    whitespace: ({"src/basic/a.c": "\tint a;\nint b; \nint c;"}, 3),
    headers: ({"src/basic/a.h": "int a;\n"}, 1),
    repeated: ({"src/basic/meson.build": "a = library('a', 'a.c', 'b.c',\n        'a.c')\nb = library('b', 'a.c')\n",
                "src/basic/a.c": '#include "basic/a.h"\n#include "basic/b.h"\n#include "basic/a.h"\n',
                "src/basic/a.h": "int a(void); /* once */\nint b(int x);\nint b(int x);\n"}, 3),
    unsafe_calls: ({"src/basic/a.c": 'strcat(a, b);\nlog("system(x)");\n/* atoi(x) */\nmy_system(a);\n'}, 1),
    session_lines: ({"src/errandd/a.c": 'log_warning_errno(r, "session %s: x", id);\nlog_info("session %s", id);\nlog_session_info(id, "x");\n',
                     "src/broker/a.c": 'log_info("session %s", id);\n'}, 2),
    documents: ({"README.md": "[there](docs/CODING_STYLE.md) [gone](docs/gone.md)\n" + "\n" * 150 + "tools/try\n",
                 "docs/CODING_STYLE.md": "text\n"}, 5),
    promises: ({"docs/SECURITY.md": "| promise | kept by | attacked by |\n|---|---|---|\n| One (C001) | x | `tests/unit/test-a.c`, `test-gone.c` |\n"
                                    "| Two (C002) | x | `tests/unit/test-a.c` |\n| Three | x | nobody |\n\n| account | holds |\n|---|---|\n| a | b |\n",
                "tests/unit/test-a.c": "C001\n"}, 3),
    foreign: ({"README.md": "/wor" "kspace/main\nhttps://registry" ".example.com/\nhttp://deb" ".example.org/x\n~/wor" "kspace/x is fine\n"}, 3),
    unfinished: ({"src/basic/a.c": "/* TOD" "O */\nmkstemp(\"/tmp/aXXXXXX\");\n"}, 1),
    shell: ({"tools/a.sh": "#!/bin/sh\necho $1\n"}, 1),
    python: ({"tools/a.py": "#!/usr/bin/env python3\nx = (\n"}, 2),
    manuals: ({"man/a.1": ".TH\n.XX\n"}, 1),
    xml: ({"dbus/a.xml": "<a><b></a>\n", "dbus/a.conf": "<a>\n"}, 1),
    packages: ({"tools/packages": "build gcc the compiler\nbuild gcc again\nother x y\n"}, 2),
}


def case(number, ok, title, problems):
    for problem in problems:
        print(f"# {problem}")
    print(f"{'ok' if ok else 'not ok'} {number} - {title}", flush=True)
    return ok


def run_checks(tree):
    good = True
    for number, check in enumerate(CHECKS, 1):
        needed = TOOLS.get(check)
        if needed and not shutil.which(needed):
            print(f"ok {number} - {check.__doc__} # SKIP {needed} is not installed")
            continue
        problems = list(check(tree))
        good &= case(number, not problems, check.__doc__, problems)
    return good


def run_bites():
    good = True
    for number, check in enumerate(CHECKS, 1):
        needed = TOOLS.get(check)
        if needed and not shutil.which(needed):
            print(f"ok {number} - a planted fault is found: {check.__doc__} # SKIP {needed} is not installed")
            continue
        files, expected = FAULTS[check]
        with tempfile.TemporaryDirectory() as top:
            for name, text in files.items():
                path = pathlib.Path(top, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text, encoding="utf-8")
            found = list(check(Tree(top)))
        # Programs that check print several lines a fault.
        ok = len(found) >= 1 if needed else len(found) == expected
        good &= case(number, ok, f"a planted fault is found: {check.__doc__}", [] if ok else [f"expected {expected}", *found])
    return good


def main():
    good = run_bites() if sys.argv[1] == "--bites" else run_checks(Tree(sys.argv[1]))
    print(f"1..{len(CHECKS)}")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
