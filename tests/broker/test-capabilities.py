# SPDX-License-Identifier: LGPL-2.1-or-later
"""Which calls a key may make: a list that warns, a list that is strict, and no list."""

import json

import errand_world
from errand_broker import Broker, Provider
from errand_test import case, run
from errand_upstream import Upstream

errand_world.enter()

LIST = [{"method": "POST", "path": "/messages"}, {"method": "GET", "path": "/models"}, {"method": "*", "path": "/length/**"}]


def begin(t, **members):
    up = Upstream(t, "9.9.9.9:443")
    broker = Broker(t).start({"p": Provider(**members)}, allow=["api.example.com"])
    return up, broker, broker.providers["p"]


@case("S097 S098 S099 S102 C188: a strict list: what it names goes on, everything else is 403 with the list and reaches nobody")
def strict(t):
    up, broker, p = begin(t, capabilities=LIST, strictCapabilities=True)
    client = broker.connect()
    refused = [("HEAD", "/"), ("GET", ""), ("HEAD", "/api/hello"), ("POST", "/messages/count_tokens?beta=true"), ("OPTIONS", "/messages"), ("GET", "/messages"),
               ("GET", "/%6dodels"), ("GET", "/other?/models"), ("POST", "/Messages")]
    for method, path in refused:
        client.send(broker.route_request("p", path, method, body=b"{}" if method == "POST" else b""))
        answer = client.answer(bodiless=method == "HEAD")
        t.equal(answer.status, 403, f"status of {method} {path}")
        if method != "HEAD":
            for entry in LIST:
                t.contains(answer.text, f"{entry['method']} {entry['path']}", "body")
    t.equal(up.accepts(), [], "upstream connections")
    client.send(broker.route_request("p", "/length/3", "GET"))
    t.equal(client.answer().body, b"xxx", "body on the same connection")
    for method, path in (("POST", "/messages?beta=true"), ("GET", "/models"), ("DELETE", "/length/1")):
        t.check(broker.call("p", path, method).status != 403, f"{method} {path} was refused")
    outcomes = [r["outcome"] for r in broker.receipts(len(refused) + 4)]
    t.equal(outcomes[:len(refused)], ["refused"] * len(refused), "outcomes")


@case("S101: a list that is not strict is advice: another call is forwarded and named in the log, once a minute with its number")
def warned(t):
    up, broker, p = begin(t, capabilities=LIST)
    for _ in range(5):
        t.equal(broker.call("p", "/echo?q=QUERYMARK").status, 200, "status")
    t.contains(broker.wait_log("that capabilities does not name"), '{"method":"GET","path":"/echo"}', "log")
    broker.call("p", "/length/1")
    t.equal(len(broker.receipts(6)), 6, "number of receipts")
    broker.stop()
    t.equal(broker.log().count("that capabilities does not name"), 1, "number of lines")
    t.lacks(broker.log(), "QUERYMARK", "log")


@case("S103: without a list every call is forwarded and logged with the entry that would name it; the entry is taken, and names it")
def logged(t):
    up, broker, p = begin(t)
    calls = [("GET", "/echo?q=1"), ("POST", "/v1/a*b/%41"), ("PUT", ""), ("DELETE", f"/x/{p.stand_in}/y"), ("BREW", "/pot")]
    entries = []
    for i, (method, path) in enumerate(calls):
        t.check(broker.call("p", path, method, headers="Connection: close\r\n").status != 403, f"{method} {path} was refused")
        line = broker.wait_log("its entry in capabilities would be ", i + 1)
        entries.append(json.loads(line.partition("would be ")[2]))
    t.lacks(broker.log(), p.stand_in, "log")
    t.equal(entries[0], {"method": "GET", "path": "/echo"}, "entry")
    again = Broker(t, "s2").start({"p": Provider(capabilities=entries, strictCapabilities=True)}, allow=["api.example.com"])
    for method, path in calls:
        path = path.replace(p.stand_in, again.providers["p"].stand_in)
        t.check(again.call("p", path, method).status != 403, f"{method} {path} is not named by its entry")
    t.equal(again.call("p", "/other").status, 403, "status of another call")


@case("S096: \"*\" is every call, and says nothing of them")
def every(t):
    up, broker, p = begin(t, capabilities="*", strictCapabilities=True)
    t.equal(broker.call("p", "/echo").status, 200, "status")
    broker.receipts(1)
    broker.stop()
    t.lacks(broker.log(), "capabilities", "log")


@case("S108 S116: the tools' endpoints are named as every other; a tunnel to the same host is held by its host alone")
def tools(t):
    for listed in (False, True):
        up, broker, p = begin(t, capabilities=LIST + ([{"method": "POST", "path": "/images/generations"}] if listed else []), strictCapabilities=True)
        t.equal(broker.call("p", "/images/generations", "POST").status == 403, not listed, "refused")
        t.equal(up.everything_received().startswith(b"POST /v1/images/generations "), listed, "passed on")
        t.equal(broker.open_tunnel("api.example.com:443")[1].status, 200, "status of a tunnel")
        up.stop()


@case("S109 S110 S111: whatever a list allows, a path that could be read differently is 400")
def hygiene(t):
    up, broker, p = begin(t, capabilities=[{"method": "*", "path": "/**"}], strictCapabilities=True)
    for path in ("//a", "/a/", "/./a", "/a/../b", "/%2e%2e/a", "/a%2fb", "/a%5cb", "/a;b", "/%252e/a", "/a%3fb", "/a%23b",
                 "/..%3b/a", "/%c0%ae%c0%ae/a"):
        t.equal(broker.call("p", path).status, 400, f"status of {path}")
    t.equal(up.accepts(), [], "upstream connections")


if __name__ == "__main__":
    run()
