# SPDX-License-Identifier: LGPL-2.1-or-later
"""No answer of a provider shows the session the key, wherever and however it is split."""

import gzip

import errand_world
from errand_broker import Broker, Provider
from errand_test import case, run
from errand_upstream import Upstream

errand_world.enter()

OK = b"HTTP/1.1 200 OK\r\n"


def begin(t, key=None, placement="bearer"):
    up = Upstream(t, "9.9.9.9:443")
    broker = Broker(t).start({"p": Provider(key=key, placement=placement)}, allow=["api.example.com"])
    return up, broker, broker.providers["p"].key.encode()


def chunk(data):
    return b"%x\r\n%s\r\n" % (len(data), data)


def chunked(*pieces):
    return OK + b"Transfer-Encoding: chunked\r\n\r\n" + b"".join(chunk(p) for p in pieces if p) + b"0\r\n\r\n"


def call_raw(broker, up, answer, query=""):
    up.raw("answer", answer)
    return broker.call("p", f"/raw/answer{query}")


@case("S227 C178: every echo of the key in a body is replaced, for any status and framing, and the body is whole")
def echoes(t):
    up, broker, key = begin(t)
    page = b"<p>Bearer " + key + b"</p>" + key + key + b'{"authorization":"' + key + b'"}' + key
    clean = page.replace(key, b"[redacted]")
    for status in (200, 401, 500):
        for head, body in ((b"Content-Length: %d\r\n\r\n" % len(page), page), (b"Transfer-Encoding: chunked\r\n\r\n", chunk(page) + b"0\r\n\r\n"),
                           (b"Connection: close\r\n\r\n", page)):
            answer = call_raw(broker, up, b"HTTP/1.1 %d Echo\r\n" % status + head + body)
            t.equal((answer.status, answer.body, answer.complete), (status, clean, True), "answer")
    answer = broker.call("p", "/echo", "POST", headers="X-A: 1\r\n", body=b"z" * 1000)
    t.lacks(answer.body, key, "echo of the request")
    t.contains(answer.body, b"[redacted]", "echo of the request")
    t.check(answer.complete and answer.body.endswith(b"z" * 1000), "the echo is not whole")


@case("S227 C179: the key split over chunks at every offset, over single bytes, doubled, and after its own beginning")
def splits(t):
    up, broker, key = begin(t)
    for i in range(1, len(key)):
        answer = call_raw(broker, up, chunked(b"before " + key[:i], key[i:] + b" after"))
        t.equal((answer.body, answer.complete), (b"before [redacted] after", True), f"body when split at {i}")
    answer = call_raw(broker, up, chunked(*(bytes([b]) for b in b"before " + key + key + b" after")))
    t.equal(answer.body, b"before [redacted][redacted] after", "body in single bytes")
    for lead in (key[:1] * 3, key[:5], key[:-1], key[:-1] * 2):
        answer = call_raw(broker, up, chunked(lead, key))
        t.equal(answer.body, (lead + key).replace(key, b"[redacted]"), f"body after {lead!r}")
    answer = call_raw(broker, up, chunked(b"only a part: " + key[:-1]))
    t.equal(answer.body, b"only a part: " + key[:-1], "body that ends in the key's beginning")


@case("S227 C179: the key split over TLS records with the reader waiting in between")
def paced_splits(t):
    up, broker, key = begin(t)
    up.raw("paced", [OK + b"Transfer-Encoding: chunked\r\n\r\n", chunk(b"a " + key[:10]), b"%x\r\n" % (len(key) - 10 + 2) + key[10:20], key[20:] + b" b\r\n",
                     b"0\r\n\r\n"])
    client = broker.connect()
    client.send(broker.route_request("p", "/raw/paced?paced"))
    up.go()
    t.equal(client.head().status, 200, "status")
    up.go()
    t.equal(client.chunk(), b"a ", "what could not be the key")
    for _ in range(3):
        up.go()
    body = b""
    while piece := client.chunk():
        body += piece
    t.equal(body, b"[redacted] b", "the rest")


@case("S227: no part of an answer is asked for: two parts of it could each hold half a key")
def ranges(t):
    _, broker, key = begin(t)
    for header in ("Range: bytes=0-40\r\n", "RANGE: bytes=40-\r\nIf-Range: \"x\"\r\n", "Range: bytes=0-1,5-6\r\n"):
        answer = broker.call("p", "/echo", headers=f"X-A: 1\r\n{header}")
        t.equal(answer.status, 200, "status")
        t.contains(answer.body, b"X-A: 1", "echo of the request")
        t.lacks(answer.body.lower(), b"range", "echo of the request")
        t.lacks(answer.body, key, "echo of the request")


@case("C180: bytes that cannot begin the key leave at once, and what is held back is never lost")
def hold_back(t):
    up, broker, key = begin(t, key="s-secret-key-0123456789")
    up.raw("held", [OK + b"Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n", chunk(b"data: this\n\n"), chunk(b"tails"), chunk(b"-se"),
                    chunk(b"t"), chunk(b"s-secret"), b"0\r\n\r\n"])
    client = broker.connect()
    client.send(broker.route_request("p", "/raw/held?paced"))
    up.go()
    client.head()
    up.go()
    t.equal(client.chunk(), b"data: this\n\n", "an event that ends outside any beginning of the key")
    up.go()
    t.equal(client.chunk(), b"tail", "what cannot begin the key")
    for _ in range(4):
        up.go()
    body = b""
    while piece := client.chunk():
        body += piece
    t.equal(body, b"s-sets-secret", "the rest")
    t.lacks(body, key, "the rest")


@case("S228 C181: the key in header values, the reason phrase, header names, interim answers, chunk extensions and trailers")
def headers(t):
    up, broker, key = begin(t)
    answer = call_raw(broker, up, b"HTTP/1.1 200 Hello " + key + b"\r\nX-Echo: " + key + b"\r\nSet-Cookie: a=" + key + b"; b=" + key + b"\r\nLocation: /" + key +
                      b"\r\nWWW-Authenticate: Bearer " + key + b"\r\nX-" + key + b": 1\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n" +
                      b"2;x=" + key + b"\r\nok\r\n0\r\nX-T: " + key + b"\r\n\r\n")
    t.lacks(answer.head, key, "head")
    t.equal((answer.status, answer.body, answer.complete), (200, b"ok", True), "answer")
    t.equal((answer.get("X-Echo"), answer.get("Set-Cookie"), answer.get("Location")), ("[redacted]", "a=[redacted]; b=[redacted]", "/[redacted]"), "values")
    client = broker.connect()
    up.raw("interim", b"HTTP/1.1 103 Early\r\nLink: " + key + b"\r\n\r\n" + OK + b"Content-Length: 2\r\n\r\nok")
    client.send(broker.route_request("p", "/raw/interim", headers="Connection: close\r\n"))
    data = client.rest()
    t.lacks(data, key, "an answer with an interim one")
    t.contains(data, b"HTTP/1.1 200", "an answer with an interim one")


@case("S227: a broken chunk line, head or encoding that holds the key shows none of it either")
def broken(t):
    up, broker, key = begin(t)
    for reply in (OK + b"Transfer-Encoding: chunked\r\n\r\n" + key + b"\r\n", OK + b"X\r\n" + key + b"\r\n\r\n", key + b" 200 OK\r\n\r\n",
                  OK + b"Content-Length: " + key + b"\r\n\r\n", OK + b"Content-Length: 1000\r\n\r\n" + key[:20], OK + b"Transfer-Encoding: " + key + b"\r\n\r\nx",
                  b"HTTP/1.1 999999 " + key + b"\r\n\r\n"):
        up.raw("answer", reply)
        client = broker.connect()
        client.send(broker.route_request("p", "/raw/answer"))
        data = client.rest() if b"Length: 1000" in reply else client.until(b"\r\n\r\n") + client.buffer
        t.lacks(data, key, f"answer to {reply[:40]!r}")
    t.lacks(broker.log(), key.decode(), "log")


@case("S229 S230 S232 C183: an answer in a coding is 502 with none of its body, and the log says the warning")
def compressed(t):
    up, broker, key = begin(t)
    packed = gzip.compress(b"marker " + key)
    warnings = 0
    for line in (b"Content-Encoding: gzip", b"Content-Encoding: x-gzip", b"content-encoding: GZIP", b"Content-Encoding: identity, gzip", b"Content-Encoding: br",
                 b"Content-Encoding: zstd", b"Content-Encoding: gzip\r\nContent-Encoding: identity", b"Content-Encoding: identity\r\nContent-Encoding: gzip",
                 b"Content-Encoding: unheard-of"):
        answer = call_raw(broker, up, OK + line + b"\r\nContent-Length: %d\r\n\r\n" % len(packed) + packed)
        t.equal(answer.status, 502, f"status with {line!r}")
        t.lacks(answer.body, packed[:10], "body")
        warnings += 1
        broker.wait_log("a provider answered compressed though asked not to", warnings)
    answer = call_raw(broker, up, OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunk(packed) + b"0\r\n\r\n")
    t.equal(answer.status, 502, "status with a transfer coding")
    answer = call_raw(broker, up, OK + b"Content-Encoding: identity\r\nContent-Length: 2\r\n\r\nok")
    t.equal((answer.status, answer.body), (200, b"ok"), "answer with identity")


@case("S231: an answer without a body is relayed whatever coding it names")
def compressed_nothing(t):
    _, broker, _ = begin(t)
    for path, method, status in (("/status/204?gzip", "GET", 204), ("/status/304?gzip", "GET", 304), ("/status/200?gzip", "HEAD", 200)):
        t.equal(broker.call("p", path, method).status, status, f"status of {method} {path}")


@case("S227 C178: an answer in a form in which the key is not found is 502 with none of it: in part, or in a character set that is not ASCII's")
def unreadable(t):
    up, broker, key = begin(t)
    types = [b"text/plain; charset=utf-16", b"application/json;Charset = \"UTF-16LE\"", b"text/html; charset='utf-32'", b"text/plain; x=y; charset=utf-7",
             b"text/plain; charset=UCS-2", b"text/plain; charset=IBM037"]
    heads = [b"HTTP/1.1 200 OK\r\nContent-Type: " + t + b"\r\n" for t in types]
    heads += [b"HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 0-9/99\r\n", b"HTTP/1.1 226 IM Used\r\nIM: range\r\n"]
    body = b"marker " + key.decode().encode("utf-16-le")
    for head in heads:
        answer = call_raw(broker, up, head + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        t.equal(answer.status, 502, f"status with {head!r}")
        t.lacks(answer.body, b"marker", "body")
    broker.wait_log("in a character set in which its key could not be found", len(types))
    broker.wait_log("with a part though asked for the whole", 2)
    for kind in (b"text/plain; charset=utf-8", b"application/json; charset=\"UTF8\"", b"text/html; charset=iso-8859-1", b"image/png", b"text/plain; charset"):
        answer = call_raw(broker, up, OK + b"Content-Type: " + kind + b"\r\nContent-Length: 2\r\n\r\nok")
        t.equal((answer.status, answer.body), (200, b"ok"), f"answer of {kind!r}")
    answer = broker.call("p", "/echo", headers="Accept-Charset: utf-16\r\nA-IM: range, gzip\r\nRequest-Range: bytes=0-40\r\n")
    t.equal(answer.status, 200, "status")
    for part in (b"utf-16", b"a-im", b"range"):
        t.lacks(answer.body.lower(), part, "echo of the request")


@case("C158: an answer that ends early is not presented as whole, and what was held back is given first")
def early_end(t):
    up, broker, key = begin(t)
    for head, body in ((b"Content-Length: 1000\r\n\r\n", b"abc" + key[:4]), (b"Transfer-Encoding: chunked\r\n\r\n", chunk(b"abc" + key[:4]))):
        for query in ("", "?cut", "?reset"):
            answer = call_raw(broker, up, OK + head + body, query)
            t.equal((answer.status, answer.complete), (200, False), f"answer with {query}")
            if query != "?reset":
                t.equal(answer.body, b"abc" + key[:4], f"body with {query}")


@case("S227 S235: the cut at 64 MiB gives no part of a key that it falls into")
def cut_within_key(t):
    up, broker, key = begin(t)
    body = b"x" * ((64 << 20) - len(key) + 1) + key + b"y" * 1000
    up.raw("cut", OK + b"Transfer-Encoding: chunked\r\n\r\n" + chunk(body) + b"0\r\n\r\n")
    client = broker.connect()
    client.send(broker.route_request("p", "/raw/cut"))
    t.equal(client.head().status, 200, "status")
    piece, last = client.chunk(), b""
    while piece:
        last, piece = (last + piece)[-len(key):], client.chunk()
    t.equal((last, piece), (b"x" * len(key), None), "the end of what came")


@case("C158: an answer until the close that comes without close_notify counts as cut, with it as whole")
def close_delimited(t):
    up, broker, _ = begin(t)
    call_raw(broker, up, OK + b"Connection: close\r\n\r\nabc")
    t.equal(broker.receipts(1)[0]["outcome"], "completed", "outcome with close_notify")
    call_raw(broker, up, OK + b"Connection: close\r\n\r\nabc", "?cut")
    t.equal(broker.receipts(2)[1]["outcome"], "interrupted", "outcome without close_notify")


@case("S227: a key in x-api-key is scrubbed alike")
def other_placement(t):
    up, broker, key = begin(t, placement="x-api-key")
    answer = broker.call("p", "/echo")
    t.contains(up.received(1), key, "request upstream")
    t.lacks(answer.body, key, "echo")
    t.contains(answer.body, b"[redacted]", "echo")


if __name__ == "__main__":
    run()
