# SPDX-License-Identifier: LGPL-2.1-or-later
"""What account errand-agent could make of errand-launch: it names errandd itself as the process of every shim, and takes the shims' sockets away."""

import array
import json
import os
import select
import socket
import struct
import subprocess
import sys

listening = socket.socket(fileno=3)
errandd = listening.accept()[0]
(errandd_pid,) = struct.unpack_from("i", errandd.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
os.dup2(theirs.fileno(), 3, inheritable=True)
environment = {k: v for k, v in os.environ.items() if not k.startswith("LISTEN_")}
with subprocess.Popen((sys.argv[1],), pass_fds=(3,), env=environment):
    listening.close()
    theirs.close()
    while True:
        for source in select.select((errandd, ours), (), ())[0]:
            data, fds, _, _ = socket.recv_fds(source, 65536, 16)
            if not data:
                sys.exit(0)
            message = json.loads(data)
            if message["type"] == "launch":
                path = message["shimSocket"]
            if message["type"] == "launched":
                os.unlink(path)
                data = json.dumps({**message, "pid": errandd_pid}).encode()
            socket.send_fds(ours if source is errandd else errandd, [data], array.array("i", fds))
            for fd in fds:
                os.close(fd)
