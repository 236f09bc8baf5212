# SPDX-License-Identifier: LGPL-2.1-or-later
"""600 hostile messages, always the same: what is known of request smuggling, and the edges of heads and chunks. Each is followed on its connection by MARKER:
whether a reader sees that as a request of its own shows where it thinks that the message has ended."""

import random

MARKER = b"GET /marker HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
INNER = b"GET /inner HTTP/1.1\r\nHost: h\r\n\r\n"
COUNT = 600


def head(*lines, line=b"POST /a HTTP/1.1", host=b"Host: h"):
    return b"\r\n".join([line, *([host] if host else []), *lines]) + b"\r\n\r\n"


def chunked(body, *lines):
    return head(b"Transfer-Encoding: chunked", *lines) + body


def shown(data, most=44):
    return f"<{repr(data)[2:-1][:most]}>"


def request_lines():
    for line in (b"GET  /a HTTP/1.1", b"GET /a  HTTP/1.1", b" GET /a HTTP/1.1", b"GET /a HTTP/1.1 ", b"GET\t/a HTTP/1.1", b"GET /a\tHTTP/1.1", b"GET /a",
                 b"GET /a ", b"GET", b"GET /a b HTTP/1.1", b"GET /a HTTP/1.1 HTTP/1.1", b"GET /a http/1.1", b"GET /a Http/1.1", b"GET /a HTTP/1.2",
                 b"GET /a HTTP/1.10", b"GET /a HTTP/1.01", b"GET /a HTTP/01.1", b"GET /a HTTP/2.0", b"GET /a HTTP/0.9", b"GET /a HTTP/1", b"GET /a HTTP/1.",
                 b"GET /a HTTP/.1", b"GET /a HTTP/1,1", b"GET /a HTTP/1.1x", b"GET /a HTTP/ 1.1", b"GET /a HTTP /1.1", b"GET /a FTP/1.1", b"GET /a HTTP/1.1\x00",
                 b"GET /a\x00 HTTP/1.1", b"GET /\x01a HTTP/1.1", b"GET /\x1fa HTTP/1.1", b"GET /\x7fa HTTP/1.1", b"GET /\x80a HTTP/1.1", b"GET /\xc3\xa4 HTTP/1.1",
                 b"GET /a\rb HTTP/1.1", b"GET /a\x0bb HTTP/1.1", b"GET /a#f HTTP/1.1", b"GET a HTTP/1.1", b"GET ?a HTTP/1.1", b"GET * HTTP/1.1",
                 b"OPTIONS * HTTP/1.1", b"GET //a HTTP/1.1", b"GET /../a HTTP/1.1", b"GET /%00 HTTP/1.1", b"GET /%zz HTTP/1.1", b"GET /% HTTP/1.1",
                 b"GET http://h/a HTTP/1.1", b"GET http://other/a HTTP/1.1", b"GET http:///a HTTP/1.1", b"GET http://u@h/a HTTP/1.1", b"GET HTTP://h/a HTTP/1.1",
                 b"GET https://h/a HTTP/1.1", b"GET ftp://h/a HTTP/1.1", b"get /a HTTP/1.1", b"Get /a HTTP/1.1", b"G@T /a HTTP/1.1", b"G(T /a HTTP/1.1",
                 b"G\x00T /a HTTP/1.1", b"G:T /a HTTP/1.1", b"G\"T /a HTTP/1.1", b"GET, /a HTTP/1.1", b"M-SEARCH /a HTTP/1.1", b"X!Y /a HTTP/1.1",
                 b"A" * 33 + b" /a HTTP/1.1", b"CONNECT h:80 HTTP/1.1", b"TRACE /a HTTP/1.1", b"HEAD /a HTTP/1.1", b"PRI * HTTP/2.0", b"\x16\x03\x01\x02\x00\x01",
                 b"\x00GET /a HTTP/1.1", b"\xffGET /a HTTP/1.1", b"\xef\xbb\xbfGET /a HTTP/1.1"):
        yield f"line {shown(line)}", head(line=line)
    for before in (b"\r\n", b"\n", b"\r", b"\r\n\r\n", b" \r\n", b"\x0b"):
        yield f"before the line {shown(before)}", before + head(line=b"GET /a HTTP/1.1")


def line_ends():
    template = [b"GET /a HTTP/1.1", b"Host: h", b"X: y", b""]
    for number in range(4):
        for end in (b"\n", b"\r", b"\r\r\n", b"\n\r", b"\r \n", b"\x0b\r\n", b"\n\n"):
            text = b"".join(line + (end if i == number else b"\r\n") for i, line in enumerate(template))
            yield f"end of line {number + 1} {shown(end)}", text
    yield "all lines LF", b"\n".join(template) + b"\n"
    yield "all lines CR", b"\r".join(template) + b"\r"
    yield "lf hides a length", head(b"X: y\nContent-Length: 32", line=b"GET /a HTTP/1.1") + INNER
    yield "cr hides a length", head(b"X: y\rContent-Length: 32", line=b"GET /a HTTP/1.1") + INNER


def field_names():
    for byte in b"\x00\x01\t\x0b\x0c\x1f \"(),/;<=>?@[\\]{}\x7f\x80\xff":
        name = b"X" + bytes([byte]) + b"Y"
        yield f"name {shown(name)}", head(name + b": z", line=b"GET /a HTTP/1.1")
    for name in (b"", b" ", b"X ", b"X\t", b"X\x0b", b" X", b"\tX", b"Content_Length", b"Transfer_Encoding", b"_X", b"X_"):
        yield f"name {shown(name)}", head(name + b": 3", line=b"GET /a HTTP/1.1")
    for lines in ([b"no colon"], [b"nocolon"], [b":"], [b": x"], [b"X: a", b" folded"], [b"X: a", b"\tfolded"], [b"X:", b" folded"], [b"X: a", b" "], [b"X: a", b" X: b"]):
        yield f"fields {shown(b'/'.join(lines))}", head(*lines, line=b"GET /a HTTP/1.1")
    yield "first field folded", b"GET /a HTTP/1.1\r\n Host: h\r\n\r\n"
    yield "first field folded, then another", b"GET /a HTTP/1.1\r\n X: h\r\nHost: h\r\n\r\n"


def field_values():
    for byte in [*range(0x20), 0x7f, 0x80, 0xa0, 0xff]:
        if byte not in (0x0a, 0x0d, 0x09):
            yield f"value with {byte:#04x}", head(b"X: a" + bytes([byte]) + b"b", line=b"GET /a HTTP/1.1")
    for value in (b"", b" ", b"\t", b"\ta\t", b"a" * 4000):
        yield f"value {shown(value, 20)}", head(b"X:" + value, line=b"GET /a HTTP/1.1")


def hosts():
    for lines in ([], [b"Host: h", b"Host: h"], [b"Host: h", b"Host: other"], [b"Host: h", b"host: h"], [b"Host:"], [b"Host: h h"], [b"Host: h,other"], [b"Host: u@h"],
                  [b"Host: h/x"], [b"Host: h:x"], [b"Host: h:80:80"], [b"Host: h\t"], [b"Host: [::1"], [b"Host: h?"], [b"Host : h"], [b"Host: h\x00"], [b"Host: ..h"], [b"Hos\xc2t: h"]):
        yield f"host {shown(b'/'.join(lines))}", head(*lines, line=b"GET /a HTTP/1.1", host=None)
    yield "host missing in HTTP/1.0", head(line=b"GET /a HTTP/1.0", host=None)


LENGTHS = (b"32", b"+32", b"-32", b"032", b"0032", b" 32", b"32 ", b"32\t", b"\t32", b"\x0b32", b"32\x0b", b"32\x0c", b"\x0032", b"32\x00", b"3 2", b"32,32", b"32, 32", b"32,0", b"0,32",
           b"32;", b"32;x=1", b"32.0", b"32e0", b"0x20", b"0X20", b"20h", b"\"32\"", b"'32'", b"(32)", b"", b" ", b"-0", b"+0", b"-1", b"4294967328", b"18446744073709551648",
           b"9223372036854775808", b"99999999999999999999999999999932", b"\xd9\xa3\xd9\xa2", b"\xa032", b"32\xa0", b"one", b"32 0", b"NaN", b"1_0")


def lengths():
    for value in LENGTHS:
        yield f"length {shown(value)}", head(b"Content-Length: " + value) + INNER
    for lines in ([b"Content-Length: 32", b"Content-Length: 32"], [b"Content-Length: 32", b"Content-Length: 0"], [b"Content-Length: 0", b"Content-Length: 32"],
                  [b"Content-Length: 32", b"content-length: 0"], [b"Content-Length : 32"], [b"Content-Length\t: 32"], [b"Content-Length: ", b" 32"], [b"Content-Length: 3", b" 2"],
                  [b"X: y", b" Content-Length: 32"], [b"Content-Length\x00: 32"], [b"Content-Length: 32", b"Content_Length: 0"], [b"Content_Length: 32"], [b"Content-length:32"],
                  [b"Connection: content-length", b"Content-Length: 32"], [b"\xefContent-Length: 32"], [b"Content-Length:32\r"], [b"\rContent-Length: 32"], [b"Content\xadLength: 32"]):
        yield f"lengths {shown(b'/'.join(lines), 56)}", head(*lines) + INNER
    yield "length of a GET", head(b"Content-Length: 32", line=b"GET /a HTTP/1.1") + INNER
    yield "length in HTTP/1.0", head(b"Content-Length: 32", line=b"POST /a HTTP/1.0") + INNER
    yield "length in HTTP/1.0, kept", head(b"Content-Length: 32", b"Connection: keep-alive", line=b"POST /a HTTP/1.0") + INNER
    yield "length beyond the end", head(b"Content-Length: 1000") + INNER


CODINGS = (b"chunked", b"Chunked", b"CHUNKED", b"chunked ", b"\tchunked", b" chunked\t", b"\x0bchunked", b"chunked\x0b", b"\x0cchunked", b"chunked\x00", b"\x00chunked", b"chunked,", b",chunked",
           b", chunked", b"chunked, chunked", b"chunked,chunked", b"identity", b"identity, chunked", b"chunked, identity", b"gzip, chunked", b"chunked, gzip", b"gzip", b"xchunked", b"chunkedx",
           b"chunk", b"x, chunked", b"chunked;q=1", b"chunked; q=0", b"chunked;", b"\"chunked\"", b"'chunked'", b"chunked chunked", b"c\xc3\xa5unked", b"\xa0chunked", b"chun ked", b"",
           b" ", b"none", b"deflate", b"chunked\xff", b"chunked#", b"cow, chunked", b"[chunked]", b"chunked\t,", b"trailers")


def codings():
    body = b"0\r\n\r\n"
    for value in CODINGS:
        yield f"coding {shown(value)}", head(b"Transfer-Encoding: " + value) + body
    for lines in ([b"Transfer-Encoding: chunked", b"Transfer-Encoding: chunked"], [b"Transfer-Encoding: chunked", b"Transfer-Encoding: identity"],
                  [b"Transfer-Encoding: identity", b"Transfer-Encoding: chunked"], [b"Transfer-Encoding: gzip", b"Transfer-Encoding: chunked"], [b"Transfer-Encoding : chunked"],
                  [b"Transfer-Encoding\t: chunked"], [b"Transfer-Encoding:", b" chunked"], [b"Transfer-Encoding: x", b" chunked"], [b"X: y", b" Transfer-Encoding: chunked"],
                  [b"Transfer_Encoding: chunked"], [b"Transfer-Encoding\x00: chunked"], [b"Transfer-Encoding:\x00chunked"], [b"transfer-encoding:chunked"],
                  [b"Connection: transfer-encoding", b"Transfer-Encoding: chunked"], [b"TE: chunked"], [b"TE: trailers, chunked"], [b"Content-Encoding: chunked"], [b"Transfer-Encoding chunked"],
                  [b"X: y\rTransfer-Encoding: chunked"], [b"X: y\nTransfer-Encoding: chunked"], [b"Transfer-Encoding: chunked\r"], [b"\rTransfer-Encoding: chunked"]):
        yield f"codings {shown(b'/'.join(lines), 60)}", head(*lines) + body
    yield "coding in HTTP/1.0", head(b"Transfer-Encoding: chunked", line=b"POST /a HTTP/1.0") + body
    yield "coding in HTTP/1.0, kept", head(b"Transfer-Encoding: chunked", b"Connection: keep-alive", line=b"POST /a HTTP/1.0") + body
    yield "coding of a GET", head(b"Transfer-Encoding: chunked", line=b"GET /a HTTP/1.1") + body


def both():
    smuggled = b"0\r\n\r\n" + INNER
    for order in (0, 1):
        for length in (b"4", b"5", b"37", b"0", b"x"):
            for coding in (b"chunked", b"Chunked", b" chunked", b"identity", b"xchunked"):
                lines = [b"Content-Length: " + length, b"Transfer-Encoding: " + coding]
                yield f"both {'TE.CL' if order else 'CL.TE'} {length.decode()} {coding.decode()}", head(*(reversed(lines) if order else lines)) + smuggled


SIZES = (b"5", b"05", b"000000000000005", b"0000000000000005", b"0" * 40 + b"5", b"0x5", b"0X5", b"+5", b"-5", b" 5", b"5 ", b"\t5", b"5\t", b"5\x0b", b"5\x00", b"\x005", b"5h", b"5,", b"5.0", b"\"5\"", b"",
         b";", b"5;", b"5;x", b"5;x=y", b"5;x=\"y\"", b"5;x=\"\r", b"5;x\x00", b"5;x\x01", b"5;\xff", b"5 ;x", b"5; x", b"5;x=y;z", b"5;" + b"x" * 300, b"F5", b"g", b"5\n", b"5\r", b"ffffffffffffffff5", b"10000000000000005",
         b"fffffffffffffffb", b"8000000000000005", b"FFFFFFFFFFFFFFFFFFFFFFFFFF5", b"5 5", b"5\r\n5", b"1_0", b"\xd9\xa5")


def chunks():
    for size in SIZES:
        yield f"chunk size {shown(size, 30)}", chunked(size + b"\r\nhello\r\n0\r\n\r\n")
    for name, body in {"size line ends in LF": b"5\nhello\r\n0\r\n\r\n", "size line ends in CR": b"5\rhello\r\n0\r\n\r\n", "data ends in LF": b"5\r\nhello\n0\r\n\r\n", "data ends in CR": b"5\r\nhello\r0\r\n\r\n",
                       "data ends in nothing": b"5\r\nhello0\r\n\r\n", "data one byte longer": b"5\r\nhellox\r\n0\r\n\r\n", "data one byte shorter": b"5\r\nhell\r\n0\r\n\r\n", "data ends in CR CR LF": b"5\r\nhello\r\r\n0\r\n\r\n",
                       "data ends in XX": b"5\r\nhelloXX0\r\n\r\n", "last chunk 00": b"00\r\n\r\n", "last chunk 0;x": b"0;x\r\n\r\n", "last chunk -0": b"-0\r\n\r\n", "last chunk 0x0": b"0x0\r\n\r\n", "last chunk 0 ends in LF": b"0\n\r\n",
                       "last line is LF": b"0\r\n\n", "last line is CR": b"0\r\n\rX", "last chunk alone": b"0\r\n", "trailer": b"0\r\nX: y\r\n\r\n", "trailer with a length": b"0\r\nContent-Length: 32\r\n\r\n",
                       "trailer with a coding": b"0\r\nTransfer-Encoding: chunked\r\n\r\n", "trailer without a colon": b"0\r\nXy\r\n\r\n", "trailer of LF": b"0\r\nX: y\n\r\n", "trailer ends in LF LF": b"0\r\nX: y\n\n",
                       "trailer folded": b"0\r\nX: y\r\n z\r\n\r\n", "trailer with NUL": b"0\r\nX: \x00\r\n\r\n", "trailer with a space before the colon": b"0\r\nX : y\r\n\r\n", "trailer begins with a space": b"0\r\n X: y\r\n\r\n",
                       "trailer is a request": b"0\r\nGET /inner HTTP/1.1\r\nHost: h\r\n\r\n", "extension hides a chunk": b"5;\nhello\r\n0\r\n\r\n", "extension with LF": b"5;x\ny\r\nhello\r\n0\r\n\r\n", "extension with CR": b"5;x\ry\r\nhello\r\n0\r\n\r\n",
                       "empty line before a size": b"\r\n5\r\nhello\r\n0\r\n\r\n", "empty line between chunks": b"5\r\nhello\r\n\r\n0\r\n\r\n", "a chunk that is a request": b"20\r\n" + INNER + b"\r\n0\r\n\r\n",
                       "a request behind the end": b"0\r\n\r\n" + INNER, "chunks of one byte": b"1\r\nx\r\n" * 50 + b"0\r\n\r\n"}.items():
        yield f"chunks: {name}", chunked(body)


def others():
    for lines in ([b"Expect: 100-continue"], [b"Expect: 200-ok"], [b"Expect: 100-continue, x"], [b"Expect: 100-continue", b"Expect: 100-continue"], [b"Expect:"], [b"Upgrade: h2c", b"Connection: upgrade"],
                  [b"Upgrade: websocket", b"Connection: upgrade"], [b"Connection: close, keep-alive"], [b"Connection: keep-alive"], [b"Connection: clo se"], [b"Connection: \x00"], [b"Connection:"], [b"Connection: @"],
                  [b"Connection: close"], [b"Keep-Alive: timeout=0"], [b"Proxy-Connection: close"], [b"X-HTTP-Method-Override: DELETE"]):
        yield f"others {shown(b'/'.join(lines), 56)}", head(*lines, b"Content-Length: 0")


def mutations(count):
    """One byte put into a good chunked request, or in place of one of its bytes; the places and bytes are drawn, always the same."""
    draw = random.Random(20261129)
    good = chunked(b"5;x=y\r\nhello\r\n0\r\nT: u\r\n\r\n", b"X: y")
    special = b"\x00\t\n\x0b\x0c\r\x1f :;,=\"\\\x7f\x80\xff0"
    seen = set()
    while count > 0:
        at, byte, insert = draw.randrange(len(good)), bytes([draw.choice(special)]), draw.random() < 0.5
        text = good[:at] + byte + good[at + (0 if insert else 1):]
        if text in seen or text == good:
            continue
        seen.add(text)
        count -= 1
        yield f"mutation {at} {'+' if insert else '='} {shown(byte)}", text


def messages():
    found = [m for family in (request_lines, line_ends, field_names, field_values, hosts, lengths, codings, both, chunks, others) for m in family()]
    found += mutations(COUNT - len(found))
    names = [name for name, _ in found]
    assert len(found) == COUNT and len(set(names)) == COUNT, (len(found), sorted(n for n in names if names.count(n) > 1))
    return found
