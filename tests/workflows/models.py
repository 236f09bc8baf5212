# SPDX-License-Identifier: LGPL-2.1-or-later
"""A provider that answers agents as their APIs do, by a script: PROMPT has the agent run COMMAND, and every other prompt gets three words."""

import json

from errand_site import Handler

PROMPT = "please use a tool"
COMMAND = "touch made-by-the-agent"
WORDS, DONE = ("one ", "two ", "three"), ("It ", "has ", "run.")


class Models(Handler):
    """server.calls: (path, headers, body) of each call, in the order in which they came. server.go: a semaphore, of which each word but the first takes one."""

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        self.answer(b"{}", status=404)

    def read_body(self):
        if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length") or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def do_POST(self):
        body = json.loads(self.read_body())
        self.server.calls.append((self.path, dict(self.headers), body))
        if "contents" in body:
            self.gemini(body)
        else:
            self.anthropic(body)

    def stream(self, events):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event, waits in events:
            if waits:
                self.server.go.acquire()
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
        self.wfile.write(b"0\r\n\r\n")

    # ---- Messages ----

    def anthropic(self, body):
        if "count_tokens" in self.path:
            self.answer(json.dumps({"input_tokens": 5}).encode())
            return
        number = len(self.server.calls)  # an id that comes twice would be taken for the first
        last = body["messages"][-1]["content"]
        parts = [{"type": "text", "text": last}] if isinstance(last, str) else last
        # A refused tool's result comes with the next prompt, and agents add remarks of their own behind either.
        told = [part for part in parts if part["type"] == "tool_result" or PROMPT in part.get("text", "")]
        done = bool(told) and told[-1]["type"] == "tool_result"
        tool = next((t["name"] for t in body.get("tools", []) if t["name"].split("__")[-1] == "Bash"), None)
        if tool and told and not done:
            block = {"type": "tool_use", "id": f"toolu_{number}", "name": tool, "input": {}}
            deltas = [{"type": "input_json_delta", "partial_json": json.dumps({"command": COMMAND, "description": "make a file"})}]
        else:
            block = {"type": "text", "text": ""}
            deltas = [{"type": "text_delta", "text": word} for word in (DONE if done else WORDS)]
        message = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": body["model"], "content": [], "stop_reason": None, "stop_sequence": None,
                   "usage": {"input_tokens": 5, "output_tokens": 1}}
        events = [{"type": "message_start", "message": message},
                  {"type": "content_block_start", "index": 0, "content_block": block},
                  *({"type": "content_block_delta", "index": 0, "delta": delta} for delta in deltas),
                  {"type": "content_block_stop", "index": 0},
                  {"type": "message_delta", "delta": {"stop_reason": "tool_use" if "id" in block else "end_turn", "stop_sequence": None},
                   "usage": {"output_tokens": 3}},
                  {"type": "message_stop"}]
        self.stream([(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n".encode(), event.get("delta", {}).get("text") in WORDS[1:])
                     for event in events])

    # ---- generateContent ----

    def gemini(self, body):
        parts = body["contents"][-1]["parts"]
        done = "functionResponse" in parts[-1]
        tools = [f["name"] for t in body.get("tools", []) for f in t.get("functionDeclarations", [])]
        if ":streamGenerateContent" not in self.path:
            # Which model is to answer, it asks a small one first.
            choice = {"reasoning": "short", "complexity_reasoning": "short", "complexity_score": 1, "model_choice": "flash"}
            self.answer(self.chunk([{"text": json.dumps(choice)}], "STOP") if ":generateContent" in self.path else b'{"totalTokens": 5}')
            return
        if "run_shell_command" in tools and not done and PROMPT in parts[-1].get("text", ""):
            chunks = [[{"functionCall": {"name": "run_shell_command", "args": {"command": COMMAND, "description": "make a file"}}}]]
        else:
            chunks = [[{"text": word}] for word in (DONE if done else WORDS)]
        self.stream([(b"data: %s\r\n\r\n" % self.chunk(c, "STOP" if c is chunks[-1] else None), c[0].get("text") in WORDS[1:]) for c in chunks])

    @staticmethod
    def chunk(parts, reason):
        candidate = {"content": {"role": "model", "parts": parts}, "index": 0} | ({"finishReason": reason} if reason else {})
        return json.dumps({"candidates": [candidate], "usageMetadata": {"promptTokenCount": 5, "candidatesTokenCount": 3, "totalTokenCount": 8},
                           "modelVersion": "m"}).encode()
