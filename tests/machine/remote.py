# SPDX-License-Identifier: LGPL-2.1-or-later
"""remote.py NAME: runs programs for the test from wherever it was started, in a unit, as an account. Root asks it over an abstract socket
(errand_machine.Remote): a line of JSON with the arguments, and one with how it ended."""

import json
import socket
import subprocess
import sys

with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
    listener.bind("\0errand-remote-" + sys.argv[1])
    listener.listen()
    while True:
        connection, _ = listener.accept()
        with connection, connection.makefile("rw", encoding="utf-8") as f:
            line = f.readline()
            if not line: # whoever asked only wanted to know whether this listens
                continue
            done = subprocess.run(json.loads(line), stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
            print(json.dumps([done.returncode, done.stdout, done.stderr]), file=f, flush=True)
