# SPDX-License-Identifier: LGPL-2.1-or-later
"""What is written down of provider calls, and what never is."""

import ctypes
import os
import time

import errand_world
from errand_broker import Broker, Provider, mint
from errand_test import case, run
from errand_upstream import Upstream

errand_world.enter()


def begin(t, **options):
    up = Upstream(t, "9.9.9.9:443")
    broker = Broker(t, "s52").start({"p": Provider(**options)}, allow=["api.example.com"])
    return up, broker


@case("S052 S053 S054: a call leaves one receipt with its fields")
def fields(t):
    before = time.time()
    up, broker = begin(t)
    answer = broker.call("p", "/echo?a=bc", "POST", body=b"x" * 100)
    receipt, = broker.receipts(1)
    t.check(before * 1e6 <= receipt["ended"] <= time.time() * 1e6, lambda: f"ended is {receipt['ended']}")
    t.check(0 < receipt["duration"] < 40e6, lambda: f"duration is {receipt['duration']}")
    expected = {"session": "s52", "provider": "p", "credential": "PROVIDER_API_KEY", "host": "provider.example", "method": "POST", "path": "/echo", "query": 4,
                "status": 200, "up": 100, "down": len(answer.body), "outcome": "completed"}
    t.equal({k: receipt.get(k) for k in expected}, expected, "receipt")
    t.equal(set(receipt) - set(expected), {"ended", "duration"}, "further fields")


@case("S055 S057 S058 S063: each outcome, and no receipt for a provider that is not served")
def outcomes(t):
    up, broker = begin(t)
    broker.call("p", "/length/10")
    broker.call("p", "/length/1000/500")
    broker.call("p", "/a/../b")
    broker.call("p", f"/length/{(64 << 20) + 1}")
    client = broker.connect()
    client.send(broker.route_request("p", "/endless"))
    client.take(10000)
    client.close()
    broker.receipts(5)
    client = broker.connect()
    client.send(f"GET /provider/q/echo HTTP/1.1\r\nHost: 127.0.0.1\r\n{broker.providers['p'].header}\r\n")
    t.equal(client.answer().status, 404, "status")
    up.stop()
    broker.call("p", "/echo")
    records = broker.receipts(6)
    broker.stop()
    t.equal([r["outcome"] for r in records], ["completed", "interrupted", "refused", "refused", "interrupted", "upstream-unreachable"], "outcomes")
    t.equal([r["status"] for r in records[:4]], [200, 200, 400, 502], "statuses")
    t.equal(len(broker.receipts(0)), 6, "number of receipts")


@case("S056: calls without the stand-in leave one receipt a minute, with the next one's count of the rest")
def denied(t):
    up, broker = begin(t)
    for _ in range(20):
        t.equal(broker.call("p", auth=broker.providers["p"].header_with(mint())).status, 401, "status")
    t.equal(broker.call("p", "/length/1").status, 200, "status")
    broker.receipts(2)
    broker.stop()
    records = broker.receipts(0)
    t.equal([r["outcome"] for r in records], ["denied", "completed"], "outcomes")
    t.equal(up.accepts(), ["9.9.9.9:443"], "upstream connections")


@case("S052 S057: a session that is refused in a loop does not fill the disk; calls that go through are recorded all the same")
def refused_in_a_loop(t):
    up, broker = begin(t)
    client = broker.connect()
    request = f"GET /provider/p/a/../b HTTP/1.1\r\nHost: 127.0.0.1:{broker.port}\r\n{broker.providers['p'].header}\r\n"
    started = time.monotonic()
    for _ in range(1500):
        client.send(request)
        t.equal(client.answer().status, 400, "status")
    taken = time.monotonic() - started
    t.equal(broker.call("p", "/length/1").status, 200, "status")
    broker.stop()
    records = broker.receipts(0)
    refused = [r for r in records if r["outcome"] == "refused"]
    t.check(1000 <= len(refused) <= 1001 + taken, f"{len(refused)} receipts of refusals in {taken:.1f} s")
    t.equal([r["outcome"] for r in records if r not in refused], ["completed"], "other outcomes")
    left = 1500 - len(refused) - sum(r.get("unrecorded", 0) for r in refused)
    t.contains(broker.log(), f"{1500 - len(refused)} more calls, turned away, without a receipt of their own", "log")
    t.check(left >= 0, "the counts of receipts are at most what was left out")
    t.equal(up.accepts(), ["9.9.9.9:443"], "upstream connections")


@case("C192: each kind of refusal is in the log with its session, what was asked for and the reason; one for an address names the address")
def refusals_in_the_log(t):
    world = errand_world.world()
    world.resolver.names["inside.test"] = ["10.0.0.5"]
    world.resolver.names["gone.test"] = "nxdomain"
    up = Upstream(t, "9.9.9.9:443")
    broker = Broker(t, "s52").start({"p": Provider(capabilities=[{"method": "GET", "path": "/raw/**"}], strictCapabilities=True),
                                     "q": Provider(name="Q_KEY", budgets={"requests": {"limit": 1, "spent": 1}})},
                                    allow=["api.example.com", "inside.test", "gone.test"])
    up.raw("coded", b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 2\r\n\r\nxx")
    tunnels = {"denied.example:443": "not on the egress allowlist or granted", "api.example.com:22": "this port is not one", "inside.test:443": "10.0.0.5",
               "gone.test:443": "the name did not resolve", "127.0.0.1:443": ": loopback"}
    for authority, words in tunnels.items():
        broker.open_tunnel(authority)
        t.contains(broker.wait_log(f"session s52: CONNECT {authority}: refused with"), words, "line")
    broker.open_tunnel("api.example.com:443", auth="")
    t.contains(broker.wait_log("refused with 407"), "session s52: CONNECT api.example.com:443", "line")
    calls = [("p", "/a/../b", None, "refused with 400: the path has"), ("p", "/other", None, "refused with 403: a call that capabilities does not name"),
             ("q", "/x", None, "refused with 403: this session has spent"), ("p", "/raw/coded", None, "a provider answered compressed though asked not to"),
             ("p", "/raw/x", "", "denied with 401")]
    for provider, path, auth, words in calls:
        broker.call(provider, path, auth=auth)
        t.contains(broker.wait_log(words), f"session s52: provider {provider}: ", "line")
    client = broker.connect()
    client.send(b"GET http://api.example.com/ HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")
    client.answer()
    t.contains(broker.wait_log("refused with 400: ", 2), "session s52: ", "line of a malformed request")


@case("S059 S060 S061 S062 C190: neither method, query, header, body, credential nor stand-in is kept, nor do they reach the log")
def nothing_secret(t):
    _, broker = begin(t)
    p = broker.providers["p"]
    broker.call("p", "/echo?key=QUERYMARK", "SECRETTOKEN", headers="Cookie: COOKIEMARK\r\nX-Y: HEADERMARK\r\n", body=b"BODYMARK")
    broker.call("p", f"/x/{p.stand_in}/y")
    broker.call("p", "/before%3Fsecret=ENCODEDMARK")
    broker.call("p", "/%E2%80%AEabc%C2%9b")
    broker.call("p", "/" + "l" * 400)
    broker.call("p", "/echo", "POST", headers="Referer: https://u:REFERERMARK@x/\r\n", body=broker.credential.encode())
    broker.receipts(6)
    broker.stop()
    records = broker.receipts(0)
    paths = [r["path"] for r in records]
    t.equal(records[0]["method"], "OTHER", "method")
    t.equal(records[0]["query"], len("key=QUERYMARK"), "length of the query")
    t.equal(paths[2], "/before", "path with an encoded query")
    t.check(all(32 <= ord(c) and ord(c) != 127 for p in paths for c in p), lambda: f"control characters in {paths}")
    t.check(len(paths[4].encode()) <= 256, lambda: f"a path of {len(paths[4])} bytes")
    kept = broker.spool().decode("latin-1") + broker.log()
    for secret in ("QUERYMARK", "SECRETTOKEN", "COOKIEMARK", "HEADERMARK", "BODYMARK", "ENCODEDMARK", "REFERERMARK", p.stand_in, p.key, broker.credential,
                   broker.token):
        t.lacks(kept, secret, "spool and log")


@case("S067 C189: a full disk under the spool: calls go on, the log says so, and no torn record is left")
def full_disk(t):
    Upstream(t, "9.9.9.9:443")
    small = t.path("small")
    os.mkdir(small)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", small.encode(), b"tmpfs", 0, b"size=64k,mode=755") != 0:
        t.fail(f"cannot mount a small tmpfs: {os.strerror(ctypes.get_errno())}")
    t.defer(libc.umount2, small.encode(), 2)
    broker = Broker(t)
    broker.spool_path = os.path.join(small, "spool")
    broker.start({"p": Provider()}, allow=["api.example.com"])
    t.equal(broker.call("p", "/length/1").status, 200, "status")
    t.equal(len(broker.receipts(1)), 1, "number of receipts")
    filler = os.path.join(small, "filler")
    with open(filler, "wb", buffering=0) as f:
        try:
            while True:
                f.write(b"x" * 4096)
        except OSError:
            pass
    # The spool's own last page may still have room: fill that as well.
    client = broker.connect()
    for _ in range(60):
        client.send(broker.route_request("p", "/length/1"))
        answer = client.answer()
        t.equal((answer.status, answer.body), (200, b"x"), "answer on a full disk")
    broker.wait_log("receipt")
    t.equal(broker.control.event("receipt-failed")["type"], "receipt-failed", "event")
    n = len(broker.receipts(1))
    t.check(n < 61, lambda: f"{n} receipts fit on a full disk: the test shows nothing")
    t.check(broker.log().count("receipt") <= 4, "the log repeats itself")
    t.equal(broker.process.poll(), None, "exit status")
    # Room again: what waited is kept, and what comes then behind it, whichever the writer finds first; and the file reads whole.
    os.unlink(filler)
    t.equal(broker.call("p", "/length/2").status, 200, "status")
    t.equal([r["path"] for r in broker.receipts(62)], ["/length/1"] * 61 + ["/length/2"], "paths of the receipts")


@case("S067: without a spool calls go on, and a line says that receipts are not kept")
def no_spool(t):
    Upstream(t, "9.9.9.9:443")
    broker = Broker(t)
    broker.connect_control()
    broker.providers = {"p": Provider()}
    message, fds = broker.setup_message(allow=["api.example.com"])
    del message["fds"][1]
    os.close(fds.pop(1))
    t.equal(broker.control.request("setup", fds, **message)["type"], "ok", "reply")
    broker.hand_over()
    t.equal(broker.call("p", "/length/1").status, 200, "status")
    broker.wait_log("receipts")


@case("S052: receipts older than a second are not lost when the broker is killed, and the file has no damaged record")
def killed(t):
    up, broker = begin(t)
    client = broker.connect()
    for _ in range(50):
        client.send(broker.route_request("p", "/length/1"))
        t.equal(client.answer().status, 200, "status")
    broker.receipts(50)
    client.send(broker.route_request("p", "/endless"))
    client.take(100)
    broker.kill()
    t.equal(len(broker.receipts(50)), 50, "number of receipts")
    up.wait("end")


@case("S052: what is queued is written when the broker is stopped")
def stopped(t):
    _, broker = begin(t)
    for _ in range(5):
        broker.call("p", "/length/1")
    broker.stop()
    t.equal(len(broker.receipts(0)), 5, "number of receipts")
    t.equal(os.stat(broker.spool_path).st_mode & 0o777, 0o600, "mode of the spool")


if __name__ == "__main__":
    run()
