# SPDX-License-Identifier: LGPL-2.1-or-later
"""The supervisor's side: setup once, exact about every member, and nothing half applied."""

import json
import os
import pwd
import select
import socket

import errand_spool
import errand_world
from errand_broker import BROKER_UID, F_SEALS_ALL, Broker, Channel, Provider, sealed_memfd
from errand_test import case, run
from errand_upstream import Upstream

errand_world.enter()


def refused_and_not_set_up(t, broker, reply):
    """An error that is a sentence; after it nothing can be handed over."""
    t.check(reply is None or reply["type"] == "error", lambda: f"the reply is {reply}")
    if reply is not None:
        t.check(isinstance(reply.get("text"), str) and len(reply["text"]) > 8, lambda: f"the reply is {reply}")
    waiting = broker.begin_hand_over()
    broker.control.close()  # it may be closed already
    broker.connect_control()
    stats = broker.control.request("stats")
    t.equal((stats["configured"], stats["listening"]), (False, False), "configured, and listening")
    waiting.unanswered(t)


@case("S042: setup is answered, and a second one is refused without changing the first")
def twice(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t)
    t.equal(broker.setup(allow=["api.example.com"])["type"], "ok", "reply")
    message, fds = broker.setup_message(allow=["*"])
    reply = broker.control.request("setup", fds, **message)
    t.check(reply is None or reply["type"] == "error", lambda: f"the reply is {reply}")
    t.equal(broker.hand_over()["type"], "ready", "answer to the hand-over")
    t.equal(broker.open_tunnel("api.example.com:443")[1].status, 200, "status")
    t.equal(broker.open_tunnel("denied.example:443")[1].status, 403, "status")


def changed(change):
    """A setup message with a change: change(message, keys) → None, or fds to send in place of the usual ones."""
    def send(t):
        broker = Broker(t)
        broker.connect_control()
        broker.providers = {"p": Provider()}
        message, fds = broker.setup_message(allow=["*"], ports=[443])
        keys = json.loads(os.pread(fds[0], 65536, 0))
        result = change(message, keys)
        fds[0] = sealed_memfd(json.dumps(keys).encode()) if result is None else result
        refused_and_not_set_up(t, broker, broker.control.request("setup", fds, **message))
        for secret in (broker.token, broker.credential, broker.providers["p"].key, broker.providers["p"].stand_in):
            t.lacks(broker.log(), secret, "log")
    return send


def put(path, value):
    def change(message, keys):
        where = {"keys": keys}.get(path[0], message)
        steps = path[1:] if path[0] == "keys" else path
        for step in steps[:-1]:
            where = where[step]
        where[steps[-1]] = value
    return change


def drop(*path):
    def change(message, keys):
        where = keys if path[0] == "keys" else message
        steps = path[1:] if path[0] == "keys" else path
        for step in steps[:-1]:
            where = where[step]
        del where[steps[-1]]
    return change


@case("C119 S089 S036: a setup with a wrong, missing or unknown member is refused by name, and nothing is set up")
def bad_setup(t):
    rows = {
        "no session": drop("session"), "session with a slash": put(["session"], "a/b"), "session too long": put(["session"], "a" * 29),
        "upper case session": put(["session"], "S1"), "empty session": put(["session"], ""), "session a number": put(["session"], 1),
        "no token": drop("token"), "short token": put(["token"], "ab"), "token not hex": put(["token"], "x" * 64),
        "unknown member": put(["alow"], []), "unknown egress member": put(["egress", "alow"], []), "allow a string": put(["egress", "allow"], "*"),
        "allow of numbers": put(["egress", "allow"], [1]), "port 0": put(["egress", "ports"], [0]), "port 65536": put(["egress", "ports"], [65536]),
        "port a string": put(["egress", "ports"], ["443"]), "allowInternal a name": put(["egress", "allowInternal"], ["localhost"]),
        "allowInternal a network": put(["egress", "allowInternal"], ["10.0.0.0/8"]),
        "unknown provider member": put(["providers", "p", "basUrl"], "x"), "no base URL": drop("providers", "p", "baseUrl"),
        "placement unknown": put(["providers", "p", "placement"], "query"), "provider id with a dot": put(["providers", "a.b"], {}),
        "provider id upper case": put(["providers", "P"], {}), "no key for a provider": drop("keys", "providers", "p"),
        "no stand-in": drop("keys", "providers", "p", "standIn"), "no credential": drop("keys", "credential"),
        "empty key": put(["keys", "providers", "p", "key"], ""), "key with a line end": put(["keys", "providers", "p", "key"], "a\r\nX-Evil: 1"),
        "key with a NUL": put(["keys", "providers", "p", "key"], "a\0b"), "base URL of another scheme": put(["providers", "p", "baseUrl"], "ftp://x/"),
        "base URL with userinfo": put(["providers", "p", "baseUrl"], "https://u@api.example.com/"),
        "base URL with a query": put(["providers", "p", "baseUrl"], "https://api.example.com/?x"),
        "base URL with a fragment": put(["providers", "p", "baseUrl"], "https://api.example.com/#x"),
        "base URL with dots": put(["providers", "p", "baseUrl"], "https://api.example.com/v1/../x"),
        "no key memfd": put(["fds"], ["other", "spool", "ca:p"]), "a CA for nobody": put(["fds"], ["keys", "spool", "ca:q"]),
    }
    t.each(list(rows), lambda name: changed(rows[name])(t))


@case("C119: a pattern that is none of *, *.name and name is refused at setup")
def bad_patterns(t):
    patterns = ["*com", "www*.com", "api.*.com", "*.*.com", "**.example.com", "*.", "", ".", "https://x.com", "x.com:443", "x.com/path", " example.com ",
                "exa mple.com", "a..b", "*.example.com:443", "über.example", "x.com\n", "user@x.com", "*.*", "10.0.0.0/8", "0x7f.1", "127.1"]
    t.each(patterns, lambda pattern: changed(put(["egress", "allow"], [pattern]))(t))


@case("S043 C177: keys must come in a memfd that nobody can change any more")
def unsealed(t):
    for seals in (0, F_SEALS_ALL & ~0x8, F_SEALS_ALL & ~0x2):
        changed(lambda message, keys, s=seals: sealed_memfd(json.dumps(keys).encode(), s))(t)

    def plain_file(message, keys):
        path = t.path("keys")
        with open(path, "w", encoding="ascii") as f:
            json.dump(keys, f)
        return os.open(path, os.O_RDONLY)
    changed(plain_file)(t)
    changed(lambda message, keys: sealed_memfd(b"not json"))(t)
    changed(lambda message, keys: sealed_memfd(b""))(t)


@case("control: garbage gets one error and the close, and the broker goes on")
def garbage(t):
    broker = Broker(t)
    rows = [b"x", b"{}", b"[]", b"null", b'{"v":1}', b'{"v":2,"type":"setup","serial":1}', b'{"v":"1","type":"setup"}', b'{"v":1,"type":1}',
            b'{"v":1,"type":"nonsense","serial":1}', b'{"v":1,"type":"setup","serial":1', b"\0" * 10, b"\xff\xfe", b"[" * 60000,
            b'{"v":1,"type":"setup","fds":["keys"]}', b'{"v":1,"type":"' + b"x" * 60000 + b'"}']

    def check(data):
        channel = Channel(broker.control_path)
        channel.send_raw(data)
        reply = channel.receive()
        if reply is not None:
            t.equal(reply["type"], "error", "type of the reply")
            t.check(channel.receive() is None, "the connection was not closed")
        channel.close()
        t.equal(broker.process.poll(), None, "exit status")
    t.each(rows, check)
    broker.start(allow=["*"])


@case("control: file descriptors that nobody asked for are not kept")
def extra_fds(t):
    broker = Broker(t)
    broker.start(allow=["*"])

    def count():
        return len(os.listdir(f"/proc/{broker.process.pid}/fd"))
    try:
        before = count()
    except PermissionError:
        t.note("an ordinary account cannot count the descriptors of a process that is not dumpable; errors are checked all the same")
        before = None
    broker.control.close()
    for _ in range(20):
        channel = Channel(broker.control_path)
        fds = [os.open("/dev/null", os.O_RDONLY) for _ in range(16)]
        channel.send({"v": 1, "type": "stats", "serial": 1, "fds": [f"f{i}" for i in range(16)]}, fds)
        channel.receive()
        channel.close()
        for fd in fds:
            os.close(fd)
    broker.connect_control()
    t.equal(broker.control.request("stats")["type"], "stats", "type of the reply")
    if before is not None:
        t.check(count() <= before + 4, lambda: f"{before} descriptors have become {count()}")


@case("control: nothing but setup is answered before setup")
def before_setup(t):
    broker = Broker(t)
    for kind, members in (("grant", {"id": "g1", "host": "x.com", "duration": "always"}), ("revoke", {"id": "g1"})):
        channel = Channel(broker.control_path)
        reply = channel.request(kind, **members)
        t.check(reply is None or reply["type"] == "error", lambda k=kind, r=reply: f"{k} was answered with {r}")
        channel.close()
    broker.start(allow=["api.example.com"])


@case("S046 S047: close makes credential and stand-ins dead, on kept connections too, and frees the port")
def close(t):
    up = Upstream(t, "9.9.9.9:443", "9.9.9.9:80", certificate=None)
    broker = Broker(t).start({"p": Provider()}, allow=["api.example.com"], ports=[80, 443])
    kept = broker.connect()
    request = f"GET http://api.example.com/status/200 HTTP/1.1\r\nHost: api.example.com\r\n{broker.auth}\r\n"
    kept.send(request)
    t.equal(kept.answer().status, 200, "status")
    before = up.accepts()
    t.equal(broker.control.request("close")["type"], "ok", "reply")
    try:
        kept.send(request)
        data = kept.rest()
    except ConnectionError:
        data = b""
    t.lacks(data[:12], b"HTTP/1.1 200", "answer on a kept connection")
    broker.namespace.listen("127.0.0.1", broker.port).close()
    broker.check_port_closed()
    t.equal(up.accepts(), before, "upstream connections")
    reply = broker.control.request("grant", id="g9", host="x.com", duration="always")
    t.check(reply is None or reply["type"] == "error", lambda: f"a grant after the close was answered with {reply}")


@case("S046 S047 C170: close cuts calls that are under way, and a stand-in is worth nothing on a connection that was kept; tunnels go on")
def close_calls(t):
    up = Upstream(t, "9.9.9.9:443")
    broker = Broker(t).start({"p": Provider()}, allow=["api.example.com"])
    tunnel, answer = broker.open_tunnel("api.example.com:443")
    t.equal(answer.status, 200, "status of a tunnel")
    kept = broker.connect()
    kept.send(broker.route_request("p", "/status/200"))
    t.equal(kept.answer().status, 200, "status on a connection that is kept")
    streaming = broker.connect()
    streaming.send(broker.route_request("p", "/endless"))
    t.equal(streaming.head().status, 200, "status of an answer that goes on")
    uploading = broker.connect()
    uploading.send(broker.route_request("p", "/echo", method="POST", body=b"x" * 10).replace(b"Content-Length: 10", b"Content-Length: 1000"))
    half = broker.connect()
    half.send(broker.route_request("p", "/status/200")[:-2])
    # The upload is dialled for once its head was read: the tunnel's, the kept one, and its own.
    while broker.control.request("stats")["connections"] < 5 or len(up.accepts()) < 3:
        pass
    before = len(up.accepts())
    t.equal(broker.control.request("close")["type"], "ok", "reply")
    t.equal((broker.control.request("stats")["connections"], broker.control.request("stats")["tunnels"]), (1, 1), "connections and tunnels")
    for client, rest in ((kept, broker.route_request("p", "/status/200")), (half, b"\r\n"), (uploading, b"x" * 990)):
        try:
            client.send(rest)
            t.equal(client.rest(), b"", "what comes after the close")
        except ConnectionError:
            pass
    data = streaming.rest()
    t.lacks(data[-5:], b"0\r\n\r\n", "the end of an answer that was cut")
    t.check(not select.select([tunnel.socket], [], [], 0)[0], "the tunnel has ended")
    t.equal(len(up.accepts()), before, "upstream connections")
    t.equal(sorted(r["outcome"] for r in broker.receipts(3)), ["completed", "interrupted", "interrupted"], "outcomes")
    try:
        broker.hand_over()
        t.fail("the session socket still takes connections")
    except ConnectionRefusedError:
        pass


@case("stats: what a supervisor that comes back needs to know of the session is there")
def stats(t):
    broker = Broker(t)
    before = {"session": None, "configured": False, "handedOver": False, "listening": False, "port": 0, "closed": False, "refused": 0}

    def check(what, **changes):
        before.update(changes)
        reply = broker.control.request("stats")
        t.equal({k: reply.get(k) for k in before}, before, what)
        return reply
    broker.connect_control()
    check("before setup")
    broker.setup(allow=["api.example.com"])
    check("after setup", session="s1", configured=True)
    broker.hand_over()
    idle = broker.connect()
    idle.send("GET /x HTTP/1.1\r\nHost: x\r\n\r\n")
    idle.answer()
    reply = check("after the hand-over", handedOver=True, listening=True, port=broker.port)
    t.equal((reply["connections"], reply["accepted"], reply["turnedAway"]), (1, 1, 1), "connections")
    for _ in range(3):
        broker.open_tunnel("denied.example:443")
    check("after three refusals", refused=3)
    broker.control.request("close")
    check("after the close", closed=True, listening=False)


@case("control: a supervisor that comes in place of an older one gets it, and what the older one had asked for is done")
def replaced(t):
    broker = Broker(t).start(allow=[])
    older = broker.control
    # Asked for, and not read: the sender dies before the answers, or the newer one connects before they were even looked at.
    for i in range(20):
        older.send({"v": 1, "type": "grant", "serial": 100 + i, "id": f"g{i}", "host": f"h{i}.test", "duration": "always"})
    newer = Channel(broker.control_path)
    t.equal(newer.request("stats")["grants"], 20, "grants that the newer one finds")
    replies = []
    while (reply := older.receive()) is not None:
        replies.append(reply["type"])
    t.equal(replies, ["ok"] * 20 + ["error"], "what the older one got")
    newest = Channel(broker.control_path)
    newer.close()  # it is served on, though the one before goes after it came
    t.equal(newest.request("stats")["grants"], 20, "grants that the newest one finds")
    newest.close()
    older.close()
    broker.connect_control()
    t.equal(broker.control.request("close")["type"], "ok", "reply")


@case("control: a close whose sender dies at once is done all the same")
def dying_close(t):
    broker = Broker(t).start(allow=[])
    broker.control.send({"v": 1, "type": "close", "serial": 7})
    broker.control.close()
    broker.connect_control()
    t.equal(broker.control.request("stats")["closed"], True, "closed")


@case("S129 control: what happens while no supervisor is there is told to the next one, once")
def told_later(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t).start(allow=[])
    broker.grant("api.example.com", "always", "g1")
    broker.control.close()
    for i in range(5):
        for _ in range(i + 1):
            t.equal(broker.open_tunnel(f"h{i}.test:443")[1].status, 403, "status")
    for _ in range(2):
        t.equal(broker.open_tunnel("api.example.com:443")[1].status, 200, "status")
    broker.connect_control().request("stats")
    broker.control.request("stats")  # what was told after the first reply has come by then
    events = broker.control.events
    t.equal([(e["host"], e["port"], e["count"], e["total"]) for e in events if e["type"] == "refused"],
            [("h4.test", 443, 5, 15), ("h3.test", 443, 4, 15), ("h2.test", 443, 3, 15)], "hosts that were told")
    t.equal([(e["count"], e["hosts"], e["total"]) for e in events if e["type"] == "denied-summary"], [(3, 2, 15)], "the rest")
    t.equal([(e["id"], e["host"]) for e in events if e["type"] == "grant-used"], [("g1", "api.example.com")], "uses of grants")
    broker.control.close()
    broker.connect_control().request("stats")
    t.equal(broker.control.request("stats")["refused"], 15, "refusals in all")
    t.equal(broker.control.events, [], "what a third one is told again")


@case("S129 C163 control: a grant for once that was used with nobody there is in the spool, and told nowhere else")
def once_later(t):
    Upstream(t, "9.9.9.9:443", certificate=None)
    broker = Broker(t).start(allow=[])
    broker.grant("api.example.com", "once", "g1")
    broker.control.close()
    t.equal(broker.open_tunnel("api.example.com:443")[1].status, 200, "status")
    broker.connect_control().request("stats")
    t.equal(broker.control.request("stats")["grants"], 0, "grants")
    t.equal(broker.control.events, [], "events")
    t.equal([record["grant"] for _, record in errand_spool.read(broker.spool())], ["g1"], "grants that the spool names")


def connect_as(uid, path):
    """Whether that account's connection is served."""
    ours, theirs = socket.socketpair()
    child = os.fork()
    if child == 0:
        try:
            os.setresuid(uid, uid, uid)
            channel = Channel(path)
            reply = channel.request("stats")
            theirs.send(b"y" if reply and reply["type"] == "stats" else b"n")
        except (ConnectionError, BrokenPipeError):
            theirs.send(b"n")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    answer = ours.recv(1)
    ours.close()
    theirs.close()
    return answer == b"y"


@case("control: --control-user names the account that is served beside root, by name or number; others are not, and replace nobody")
def control_user(t):
    if os.getuid() != 0:
        broker = Broker(t, arguments=["--control-user", pwd.getpwuid(os.getuid()).pw_name])
        broker.connect_control()
        t.equal(broker.control.request("stats")["type"], "stats", "reply")
        t.note("only root can be another account")
        return
    nobody = pwd.getpwnam("nobody").pw_uid
    for arguments in (["--control-user", "nobody"], ["--control-user", str(nobody)], ["--control-uid", str(nobody)]):
        broker = Broker(t, arguments=arguments)
        os.chmod(broker.directory, 0o755)
        broker.connect_control()  # root's
        t.check(not connect_as(54321, broker.control_path), "a stranger was served")
        t.equal(broker.control.request("stats")["type"], "stats", "what root gets after a stranger tried")
        t.check(not connect_as(BROKER_UID, broker.control_path), "the broker's own account was served")
        t.check(connect_as(nobody, broker.control_path), "the account was not served")
        broker.wait_log("refused a connection of uid 54321")


@case("control: an account that does not exist is refused before anything is served")
def unknown_user(t):
    for arguments, part in ((["--control-user", "no-such-account"], "names no account of this host: no-such-account"),
                            (["--control-user", ""], "names no account"), (["--control-uid", "nobody"], "is not a user id: nobody"),
                            (["--control-uid", "4294967295"], "is not a user id"), (["surplus"], "unexpected argument: surplus")):
        broker = Broker(t, arguments=arguments)
        broker.killed = True  # its end is not one that stop() should wonder about
        broker.wait_log(part)
        t.equal(broker.process.wait(), 2, f"exit status with {arguments}")


if __name__ == "__main__":
    run()
