"""The endpoint of the program that plays the model: OpenAI Chat Completions, streamed."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tools.real_job.debugger import Call

NextStep = Callable[[str, Sequence[str]], Call | str]


class ModelServer:
    """What it was asked, and how many steps it took."""

    def __init__(self, port: int, next_step: NextStep) -> None:
        self.url = f"http://127.0.0.1:{port}/v1"
        self.calls: list[Call] = []
        self.results: list[str] = []
        self._next_step = next_step

    def answer(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """The choices of the chunks that answer a request."""
        messages = request["messages"]
        tasks = [_text(message) for message in messages if message["role"] == "user"]
        if not request.get("tools"):
            return _words("A title" if len(messages) < 4 else f"So far {len(messages)} messages.")
        results = [_text(message) for message in messages if message["role"] == "tool"]
        step = self._next_step(tasks[0], results)
        self.results = results
        if isinstance(step, str):
            return _words(step)
        if len(results) == len(self.calls):  # a request that a crash repeated asks for the same call
            self.calls.append(step)
        call = {"name": step[0], "arguments": json.dumps(step[1])}
        calls = [{"index": 0, "id": f"call-{len(results)}", "type": "function", "function": call}]
        return [{"delta": {"tool_calls": calls}}, {"delta": {}, "finish_reason": "tool_calls"}]


def _text(message: dict[str, Any]) -> str:
    content = message["content"]
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _words(text: str) -> list[dict[str, Any]]:
    return [{"delta": {"content": text}}, {"delta": {}, "finish_reason": "stop"}]


@contextmanager
def model_server(next_step: NextStep) -> Generator[ModelServer]:
    """Serve the program until the block ends."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            choices = fake_model.answer(json.loads(self.rfile.read(int(self.headers["content-length"]))))
            self.send_response(200)
            self.send_header("content-type", "text/event-stream")
            self.end_headers()
            for choice in choices:
                data = {"id": "x", "object": "chat.completion.chunk", "choices": [{"index": 0, **choice}]}
                self.wfile.write(f"data: {json.dumps(data)}\n\n".encode())
            self.wfile.write(b"data: [DONE]\n\n")

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        fake_model = ModelServer(server.server_port, next_step)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield fake_model
        finally:
            server.shutdown()
            thread.join()
