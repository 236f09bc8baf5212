# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which ports a session reaches."""

import errand_world
from errand_broker import Broker
from errand_test import case, run
from errand_upstream import Upstream

errand_world.enter()


@case("S037 C125: only the given ports, for CONNECT and plain http alike")
def ports(t):
    up = Upstream(t, *(f"9.9.9.9:{p}" for p in (22, 25, 80, 443, 8080)), certificate=None)
    broker = Broker(t).start(allow=["*"], ports=[443])
    for port in (22, 25, 80, 8080, 444, 1, 65535):
        _, answer = broker.open_tunnel(f"api.example.com:{port}")
        t.equal(answer.status, 403, f"status of CONNECT :{port}")
        answer = broker.ask(f"GET http://api.example.com:{port}/ HTTP/1.1\r\nHost: api.example.com:{port}\r\n{broker.auth}\r\n")
        t.equal(answer.status, 403, f"status of GET :{port}")
    answer = broker.ask(f"GET http://api.example.com/ HTTP/1.1\r\nHost: api.example.com\r\n{broker.auth}\r\n")
    t.equal(answer.status, 403, "status of GET without a port")
    t.equal(up.accepts(), [], "upstream connections")
    _, answer = broker.open_tunnel("api.example.com:443")
    t.equal(answer.status, 200, "status")
    answer = broker.ask(f"GET http://api.example.com:443/status/200 HTTP/1.1\r\nHost: api.example.com:443\r\n{broker.auth}\r\n")
    t.equal(answer.status, 200, "status")


@case("C125: a malformed port is 400, and none is guessed for CONNECT")
def malformed(t):
    up = Upstream(t, "9.9.9.9:443", "9.9.9.9:80", certificate=None)
    broker = Broker(t).start(allow=["*"], ports=[80, 443])
    bad = ["api.example.com:0", "api.example.com:65536", "api.example.com:0443", "api.example.com:+443", "api.example.com: 443",
           "api.example.com:443x", "api.example.com", "api.example.com:", ":443", "api.example.com:-1", "api.example.com:4 43",
           "api.example.com:99999999999999999999", "api.example.com:443:443", "[2606:4700::1]", "[2606:4700::1]443", "2606:4700::1:443",
           "[2606:4700::1", "api.example.com:0x1bb"]

    def check(authority):
        _, answer = broker.open_tunnel(authority)
        t.equal(answer.status, 400, "status of CONNECT")
    t.each(bad, check)

    def check_http(port):
        answer = broker.ask(f"GET http://api.example.com{port}/ HTTP/1.1\r\nHost: api.example.com{port}\r\n{broker.auth}\r\n")
        t.equal(answer.status, 400, "status of GET")
    t.each([":0", ":65536", ":080", ":+80", ":80x", ":-1"], check_http)
    t.equal(up.accepts(), [], "upstream connections")


@case("S035: a list of several ports admits each; left out it is 443 alone")
def several(t):
    Upstream(t, "9.9.9.9:443", "9.9.9.9:80", certificate=None)
    broker = Broker(t).start(allow=["*"], ports=[80, 443])
    for port in (80, 443):
        t.equal(broker.open_tunnel(f"api.example.com:{port}")[1].status, 200, f"status of :{port}")
    for broker in (Broker(t).start(allow=["*"]), Broker(t).start()):
        t.equal(broker.open_tunnel("api.example.com:443")[1].status, 200, "status")
        t.equal(broker.open_tunnel("api.example.com:80")[1].status, 403, "status")


if __name__ == "__main__":
    run()
