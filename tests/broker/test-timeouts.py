# SPDX-License-Identifier: LGPL-2.1-or-later
"""The promised limits of a lookup and of a dial. These take their five and ten seconds, so they are a file of their own."""

import threading
import time

import errand_world
from errand_broker import Broker
from errand_test import case, run
from errand_upstream import Upstream

errand_world.enter()
world = errand_world.world()


@case("S117 S118 S119 C139: a silent resolver is answered after 5 s with 504, four black holes after 10 s over all with one 502; others do not wait")
def limits(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t).start(allow=["*"])
    world.resolver.names["silent.test"] = None
    # Routed to the internet side, which drops what is not its own.
    world.resolver.names["holes.test"] = ["8.8.8.1", "8.8.8.2", "8.8.8.3", "8.8.8.4"]
    results = {}

    def ask(name, client):
        started = time.monotonic()
        client.send(f"CONNECT {name}:443 HTTP/1.1\r\nHost: {name}:443\r\n{broker.auth}\r\n")
        answer = client.head()
        results[name] = (answer.status, answer.reason, time.monotonic() - started)
    threads = [threading.Thread(target=ask, args=(name, broker.connect())) for name in ("silent.test", "holes.test")]
    for thread in threads:
        thread.start()
    _, answer = broker.open_tunnel("api.example.com:443")
    t.equal(answer.status, 200, "status of another request")
    t.equal(results, {}, "answers before the limits")
    for thread in threads:
        thread.join()
    t.equal(results["silent.test"][:2], (504, "the name did not resolve in time"), "answer")
    t.equal(results["holes.test"][:2], (502, "upstream unreachable"), "answer")
    # Never before its time; after it there is only a bound for a busy machine.
    t.check(4.9 <= results["silent.test"][2] <= 9.5, lambda: f"a lookup took {results['silent.test'][2]} s")
    t.check(9.9 <= results["holes.test"][2] <= 19, lambda: f"a dial took {results['holes.test'][2]} s")
    for name in ("silent.test", "holes.test"):
        t.contains(broker.wait_log(name), broker.session, "log line")


if __name__ == "__main__":
    run()
