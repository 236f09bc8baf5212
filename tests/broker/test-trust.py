# SPDX-License-Identifier: LGPL-2.1-or-later
"""The system's trusted certificates: read at the first call over TLS, by a thread, while everybody else is served."""

import os
import subprocess
import threading

import errand_world
from errand_broker import Broker, Provider
from errand_test import case, run
from errand_upstream import Upstream

errand_world.enter()
STORE = "/etc/ssl/certs/ca-certificates.crt"  # where Debian's GnuTLS looks


def slow_store(t):
    """A store that gives nothing until the function that is returned is called."""
    if not os.path.exists(STORE):
        t.skip("ca-certificates is not installed")
    fifo = t.path("store")
    os.mkfifo(fifo, 0o644)
    os.chmod(t.directory, 0o755)
    subprocess.run(["mount", "--bind", fifo, STORE], check=True)
    t.defer(subprocess.check_call, ["umount", "-l", STORE])

    def release():
        # Opens only where somebody reads: the thread is at it.
        with open(fifo, "wb") as f:
            f.write(b"nothing\n")
    return release


@case("S083 C160: while the store is read for a first provider call, tunnels, refusals and the supervisor do not wait; then the call goes on")
def meanwhile(t):
    release = slow_store(t)
    up = Upstream(t, "9.9.9.9:443")
    broker = Broker(t).start({"p": Provider()}, allow=["api.example.com"])
    answers = []

    def call():
        answers.append(broker.call("p", "/status/200").status)
    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    while broker.control.request("stats")["connections"] < 3:
        pass
    gone = broker.connect()  # one that does not wait
    gone.send(broker.route_request("p", "/status/200"))
    gone.close()
    t.equal(broker.open_tunnel("api.example.com:443")[1].status, 200, "status of a tunnel")
    t.equal(broker.open_tunnel("denied.example:443")[1].status, 403, "status of a refusal")
    t.equal(broker.call("p", auth="Authorization: Bearer wrong\r\n").status, 401, "status without the stand-in")
    t.equal(answers, [], "answers before the store is there")
    release()
    for thread in threads:
        thread.join()
    t.equal(answers, [200] * 3, "answers")
    t.contains(broker.wait_log("trusted certificates"), "caFile", "what is said of a store without certificates")
    t.equal(broker.call("p", "/status/200").status, 200, "status of a later call")
    t.check(up.accepts(), "upstream connections")


@case("S046: a broker is closed, and ends, while the store is being read")
def closed(t):
    release = slow_store(t)
    Upstream(t, "9.9.9.9:443")
    broker = Broker(t).start({"p": Provider()}, allow=["api.example.com"])
    client = broker.connect()
    client.send(broker.route_request("p", "/status/200"))
    while broker.control.request("stats")["connections"] < 1:
        pass
    t.equal(broker.control.request("close")["type"], "ok", "reply")
    t.check(client.is_closed(), "the call is still open")
    t.equal([r["outcome"] for r in broker.receipts(1)], ["interrupted"], "outcome")
    broker.stop()
    threading.Thread(target=release, daemon=True).start()  # nobody may be there to read it


if __name__ == "__main__":
    run()
