#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""C218: 10 000 files opened and closed in the sandbox, with Landlock and the filter on, beside the same outside of it, in turns. The program times its own
loop, so that no start is in it. Prints medians and a ratio; asserts nothing. Argument: bailey. As root it runs as nobody."""

import os
import statistics
import subprocess
import sys
import tempfile

FILES, RUNS = 10000, 15
ACCOUNT = 65534
LOOP = f"""
import os, time
begun = time.perf_counter()
for number in range({FILES}):
    os.close(os.open(f"files/{{number}}", os.O_RDONLY))
print(time.perf_counter() - begun)
"""


def main(bailey):
    with tempfile.TemporaryDirectory(prefix="errand-bench-") as place:
        os.chmod(place, 0o755)
        os.chdir(place)
        os.mkdir("files")
        for number in range(FILES):
            with open(f"files/{number}", "x", encoding="ascii"):
                pass
        with open("policy.toml", "w", encoding="ascii") as f:
            f.write('[filesystem]\nread = ["files"]\n')
        os.mkdir("home")
        os.chown("home", ACCOUNT if os.geteuid() == 0 else -1, -1)
        account = {"user": ACCOUNT, "group": ACCOUNT, "extra_groups": []} if os.geteuid() == 0 else {}
        python = ["/usr/bin/python3", "-c", LOOP]
        commands = {"bare": python, "bailey": [bailey, "run", "--quiet", "--home", f"{place}/home", "--config", f"{place}/policy.toml", "--", *python]}
        times = {name: [] for name in commands}
        for _ in range(RUNS):
            for name, command in commands.items():
                done = subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, **account,
                                      env={"PATH": "/usr/bin:/bin", "HOME": place})
                times[name].append(float(done.stdout))
    for name, values in times.items():
        print(f"{name:8} {statistics.median(values) * 1000:6.1f} ms for {FILES} files")
    print(f"bailey / bare: {statistics.median(times['bailey']) / statistics.median(times['bare']):.2f}")


main(os.path.abspath(sys.argv[1]))
