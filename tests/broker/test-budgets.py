# SPDX-License-Identifier: LGPL-2.1-or-later
"""What a session may spend on its provider calls."""

import json

import errand_world
from errand_broker import Broker, Provider
from errand_test import case, run
from errand_upstream import Upstream

errand_world.enter()


def begin(t, session=None, **members):
    up = Upstream(t, "9.9.9.9:443")
    broker = Broker(t)
    broker.budgets = session
    broker.start({"p": Provider(**members), "q": Provider("https://provider.example/v1", name="OTHER_KEY")}, allow=["api.example.com"])
    return up, broker


def answer_with(up, name, value, kind="application/json"):
    body = value if isinstance(value, bytes) else json.dumps(value).encode()
    up.raw(name, f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body)


@case("budgets: requests: of a provider and of the session, with what was spent before; a spent one is 403 with a sentence, not 429")
def requests(t):
    up, broker = begin(t, {"requests": {"limit": 13, "spent": 9}}, budgets={"requests": {"limit": 3, "spent": 1}})
    for expected in (200, 200, 403, 403):
        t.equal(broker.call("p", "/length/1").status, expected, "status")
    answer = broker.call("p", "/length/1")
    t.equal((answer.status, answer.reason), (403, "budget spent"), "answer")
    t.equal(answer.text.strip(), "this session has spent its budget of 3 requests for provider p; an administrator can raise agent.providers.p.budgets.requests "
            "in errand.json, which counts from a session's next start", "body")
    t.equal([broker.call("q", "/length/1").status for _ in range(3)], [200, 200, 403], "statuses of the other provider")
    t.equal([r["outcome"] for r in broker.receipts(8)].count("refused"), 4, "refused receipts")
    t.equal(broker.open_tunnel("api.example.com:443")[1].status, 200, "status of a tunnel, which budgets do not concern")


@case("budgets: bytes: bodies both ways; a call that is under way is not cut")
def size(t):
    up, broker = begin(t, {"bytes": {"limit": 1000}})
    t.equal(len(broker.call("p", "/length/600").body), 600, "bytes")
    answer = broker.call("p", "/length/5000")
    t.equal((answer.status, len(answer.body)), (200, 5000), "answer")
    answer = broker.call("q", "/length/1")
    t.equal(answer.status, 403, "status")
    t.contains(answer.text, "1000 bytes", "body")
    other = Broker(t, "s2")
    other.budgets = {"bytes": {"limit": 1500}}
    other.start({"p": Provider()}, allow=["api.example.com"])
    t.equal(other.call("p", "/echo", "POST", body=b"x" * 1500).status, 200, "status")
    t.equal(other.call("p", "/length/1").status, 403, "status after an upload")


@case("budgets: tokens: read from the answers as they pass, whole or as events; the receipt has their number and nothing else of them")
def tokens(t):
    up, broker = begin(t, {"tokens": {"limit": 100}})
    answer_with(up, "a", {"content": [{"text": "BODYMARK \"usage\":{\"input_tokens\":900}"}], "usage": {"input_tokens": 20, "output_tokens": 5}})
    events = (b'event: message_start\ndata: {"type":"message_start","message":{"usage":{"input_tokens":30,"output_tokens":1}}}\n\n'
              b'event: message_delta\ndata: {"type":"message_delta","usage":{"output_tokens":20}}\n\n')
    answer_with(up, "b", events, "text/event-stream; charset=utf-8")
    answer_with(up, "c", {"usage": {"prompt_tokens": 20, "completion_tokens": 10, "total_tokens": 30}})
    for name in ("a", "b", "c"):
        t.equal(broker.call("p", f"/raw/{name}").status, 200, "status")
    answer = broker.call("q", "/raw/a")
    t.equal(answer.status, 403, "status")
    t.contains(answer.text, "100 tokens", "body")
    records = broker.receipts(4)
    t.equal([r.get("tokens") for r in records], [25, 50, 30, None], "tokens")
    t.lacks(str(records) + broker.log(), "BODYMARK", "receipts and log")


@case("budgets: tokens: an answer that comes in pieces counts once, and the calls to another provider not at all")
def cut(t):
    up, broker = begin(t, budgets={"tokens": {"limit": 10}})
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    up.raw("s", [head + b'data: {"usage":{"prompt_to', b'kens":7,"completion_tokens":1', b'1}}\n\n'])
    client = broker.connect()
    client.send(broker.route_request("p", "/raw/s?paced"))
    for _ in range(3):
        up.go()
    t.equal(client.head().status, 200, "status")
    while client.chunk():
        pass
    t.equal(broker.call("p", "/length/1").status, 403, "status of the next call")
    answer_with(up, "a", {"usage": {"total_tokens": 5}})
    t.equal(broker.call("q", "/raw/a").status, 200, "status")
    t.equal([r.get("tokens") for r in broker.receipts(3)], [18, None, None], "tokens")


if __name__ == "__main__":
    run()
