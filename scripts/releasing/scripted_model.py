"""A model on loopback for the real Claude Code: it would rather stop, is told to continue, says "done" too early, is
refused, and then does the work."""

import http.server
import json
import threading


def start():
    """Starts the server; returns its address and the list of replies that it gave."""
    replies = []

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            request = json.loads(self.rfile.read(int(self.headers["content-length"])))
            if not self.path.startswith("/v1/messages") or "count_tokens" in self.path:
                return self.answer("application/json", json.dumps({"input_tokens": 100}))
            content = reply(request)
            if "tools" in request and request["tools"]:
                replies.append(content)
            message = {
                "id": f"msg_scripted_{len(replies):04}_{id(request)}",
                "type": "message",
                "role": "assistant",
                "model": request.get("model", "scripted"),
                "content": content,
                "stop_reason": "tool_use" if any(part["type"] == "tool_use" for part in content) else "end_turn",
                "stop_sequence": None,
                "usage": {"input_tokens": 100, "output_tokens": 20},
            }
            if request.get("stream"):
                lines = [f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events(message)]
                self.answer("text/event-stream", "".join(lines))
            else:
                self.answer("application/json", json.dumps(message))

        def do_GET(self):
            self.answer("application/json", "{}")

        def do_HEAD(self):
            self.answer("application/json", "")

        def answer(self, kind, body):
            self.send_response(200)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body.encode())))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_):
            """The replies are the record."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}", replies


def reply(request):
    """The next step, found from what the conversation already has."""
    conversation = json.dumps(request["messages"])
    update_goal = next((it["name"] for it in request.get("tools", []) if it["name"].endswith("update_goal")), None)
    if not request.get("tools"):
        return [text("{}")]
    if "toolu_done_2" in conversation:
        return [text("The goal is complete.")]
    if "toolu_make" in conversation:
        return [tool("toolu_done_2", update_goal, {"status": "complete"})]
    if "toolu_done_1" in conversation:
        return [tool("toolu_make", "Bash", {"command": "touch done.txt", "description": "Make the file"})]
    if "Goal not finished" in conversation and update_goal:
        return [tool("toolu_done_1", update_goal, {"status": "complete"})]
    return [text("I would rather stop here.")]


def text(words):
    return {"type": "text", "text": words}


def tool(call, name, arguments):
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def events(message):
    """The message as server-sent events."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, part in enumerate(message["content"]):
        if part["type"] == "text":
            opening, delta = text(""), {"type": "text_delta", "text": part["text"]}
        else:
            opening = {**part, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(part["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": opening}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": message["usage"],
    }
    yield {"type": "message_stop"}
