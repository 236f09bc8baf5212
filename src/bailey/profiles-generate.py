#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""The bundled profiles as C: profiles-generate.py FILE.toml… > profiles-data.h. The floor becomes a table, too: it is under every
run, and reading it as text each time would cost more than all the rest of the policy."""

import json
import os
import sys
import tomllib


def literal(text):
    # One line of C for each of TOML; what is not ASCII stays a byte.
    lines = text.encode().splitlines(keepends=True)
    return "\n".join('        "' + "".join(chr(b) if 32 <= b < 127 and b not in b'"\\?' else f"\\{b:03o}" for b in line) + '"'
                     for line in lines)


def floor(document):
    rights = {"read": "RIGHT_READ", "execute": "RIGHT_READ | RIGHT_EXECUTE", "r": "RIGHT_READ", "rw": "RIGHT_READ | RIGHT_WRITE"}
    if set(document) != {"description", "filesystem", "device"} or not set(document["filesystem"]) <= set(rights):
        sys.exit("the floor says more than its table can hold")
    rows = [(path, rights[key], "false") for key, paths in document["filesystem"].items() for path in paths]
    rows += [(device["path"], rights[device.get("access", "rw")], "true") for device in document["device"]]
    return [f"        {{{json.dumps(path)}, {right}, {device}}}," for path, right, device in rows]


def main(files):
    print("/* SPDX-License-Identifier: LGPL-2.1-or-later */\n/* Generated from the files of src/bailey/profiles. */\n")
    print("static const BundledProfile bundled_profiles[] = {")
    rows = []
    for file in files:
        name = os.path.basename(file).removesuffix(".toml")
        with open(file, encoding="utf-8") as f:
            text = f.read()
        document = tomllib.loads(text)
        if name == "untrusted":
            rows = floor(document)
        print(f"        {{{json.dumps(name)}, {json.dumps(document['description'])},\n{literal(text)}}},")
    print("};\n\nstatic const FloorRule bundled_floor[] = {")
    print("\n".join(rows))
    print("};")


main(sys.argv[1:])
