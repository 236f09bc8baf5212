#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""C218: 10 000 files opened and closed in the sandbox, with Landlock and the filter on, beside the same outside of it, in turns: files that may be read,
and files that may be written, where Landlock need not look further up. The program times its own loop, so that no start is in it. Prints medians
and ratios, and the same of the fastest hundred files; asserts nothing. Argument: bailey. As root it runs as nobody."""

import os
import statistics
import subprocess
import sys
import tempfile

FILES, PART, RUNS = 10000, 100, 15
ACCOUNT = 65534
LOOP = f"""
import os, time
parts = []
for first in range(0, {FILES}, {PART}):
    begun = time.perf_counter()
    for number in range(first, first + {PART}):
        os.close(os.open(f"files/{{number}}", os.O_RDONLY))
    parts.append(time.perf_counter() - begun)
print(sum(parts), min(parts))
"""


def main(bailey):
    with tempfile.TemporaryDirectory(prefix="errand-bench-") as place:
        os.chmod(place, 0o755)
        os.chdir(place)
        os.mkdir("files")
        for number in range(FILES):
            with open(f"files/{number}", "x", encoding="ascii"):
                pass
        for right in ("read", "write"):
            with open(f"{right}.toml", "w", encoding="ascii") as f:
                f.write(f'[filesystem]\n{right} = ["files"]\n')
        os.mkdir("home")
        os.chown("home", ACCOUNT if os.geteuid() == 0 else -1, -1)
        account = {"user": ACCOUNT, "group": ACCOUNT, "extra_groups": []} if os.geteuid() == 0 else {}
        python = ["/usr/bin/python3", "-c", LOOP]
        commands = {"bare": python}
        for right in ("read", "write"):
            commands[right] = [bailey, "run", "--quiet", "--home", f"{place}/home", "--config", f"{place}/{right}.toml", "--", *python]
        times = {name: [] for name in commands}
        for _ in range(RUNS):
            for name, command in commands.items():
                done = subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, **account,
                                      env={"PATH": "/usr/bin:/bin", "HOME": place})
                times[name].append([float(word) for word in done.stdout.split()])
    median = {name: statistics.median(whole for whole, _ in values) for name, values in times.items()}
    best = {name: min(part for _, part in values) * FILES / PART for name, values in times.items()}
    for name in commands:
        print(f"{name:8} {median[name] * 1000:6.1f} ms for {FILES} files, {best[name] * 1000:6.1f} at best")
    for name in ("read", "write"):
        print(f"{name} / bare: {median[name] / median['bare']:.2f}, at best {best[name] / best['bare']:.2f}")


main(os.path.abspath(sys.argv[1]))
